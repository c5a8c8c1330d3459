/* Decoders with other names, layouts and caches than the exporters' that a generator knows by name: it finds them by
 * the graph, and chooses the ids of a model with known names. */
#include "decoder_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void same_ids(const decoder_style *style, const decoder_style *known, const prony_generator_options *options)
{
    int64_t ids[NEW], wanted[NEW];
    generation_ids(known, NULL, 5, wanted);
    generation_ids(style, options, 5, ids);
    assert_memory_equal(ids, wanted, sizeof ids);
}

static decoder_style renamed(const char *ids, const char *mask, const char *positions)
{
    decoder_style s = decoder_optimum;
    s.ids = ids;
    s.mask = mask;
    s.positions = positions;
    return s;
}

static void test_words_in_names(void **state)
{
    (void)state;
    const decoder_style styles[] = {renamed("l_input_ids_", "l_attention_mask_", "l_position_ids_"),
                                    renamed("input_ids.1", "mask", "pos"), renamed("idx", "attn_mask.3", "positions")};
    for (size_t k = 0; k < sizeof styles / sizeof *styles; k++) same_ids(&styles[k], &decoder_optimum, NULL);
}

/* The only input of integers that a table is read by; caches without a name in common. */
static void test_ids_by_the_graph(void **state)
{
    (void)state;
    decoder_style bare = decoder_optimum, other;
    bare.no_mask = bare.no_positions = true;
    other = bare;
    other.ids = "idx";
    other.past[0] = "north", other.past[1] = "south", other.present[0] = "east", other.present[1] = "west";
    same_ids(&other, &bare, NULL);
}

static void test_names_that_the_caller_gives(void **state)
{
    (void)state;
    decoder_style style = renamed("a", "b", "c");
    generation g = {0};
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    generation_load(&g, decoder_model(&style), 1);
    assert_int_equal(prony_generator_create(&g.generator, g.session, NULL, &g.error), PRONY_INVALID_MODEL);
    assert_non_null(strstr(g.error.message, "no input of token ids is known: it may be 'a' or 'c'"));
    generation_end(&g);
    const prony_input_role roles[] = {{"ids", "a"}, {"mask", "b"}, {"positions", "c"}};
    options.roles = roles;
    options.role_count = 3;
    same_ids(&style, &decoder_optimum, &options);
    options.role_count = 1;
    options.roles = &(prony_input_role){"nothing", "a"};
    generation_load(&g, decoder_model(&style), 1);
    assert_int_equal(prony_generator_create(&g.generator, g.session, &options, &g.error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(g.error.message, "role 'nothing' is unknown"));
    generation_end(&g);
}

/* Operands of GroupQueryAttention say which inputs are the lengths. */
static void test_lengths_by_the_graph(void **state)
{
    (void)state;
    decoder_style style = decoder_lengths;
    style.lengths = "current";
    style.total = "everything_now";
    same_ids(&style, &decoder_lengths, NULL);
}

static void test_rows_first(void **state)
{
    (void)state;
    decoder_style style = decoder_optimum;
    style.cache = ROWS_FIRST;
    same_ids(&style, &decoder_optimum, NULL);
    style.unnamed = true; /* the axis of the Concat is the length, so the other free one is the batch */
    same_ids(&style, &decoder_optimum, NULL);
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT; /* each sequence has its own columns of the cache */
    options.batch = 2;
    int64_t ids[2 * NEW], wanted[2 * NEW];
    const size_t lengths[] = {3, 5};
    for (int k = 0; k < 2; k++) {
        generation g;
        generation_begin(&g, k ? &style : &decoder_optimum, &options);
        generation_prompt(&g, decoder_words, lengths);
        generation_next(&g, k ? ids : wanted, NEW, 2);
        generation_end(&g);
    }
    assert_memory_equal(ids, wanted, sizeof ids);
}

static void test_present_rows_without_the_past(void **state)
{
    (void)state;
    decoder_style style = decoder_optimum;
    style.cache = NEW_ROWS;
    same_ids(&style, &decoder_optimum, NULL);
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.chunk = 2; /* runs of several rows behind others */
    same_ids(&style, &decoder_optimum, &options);
}

/* A cache of one length, whose rows are written by position. */
static void test_static_caches(void **state)
{
    (void)state;
    const char *const written[][2] = {{"cache_position", "rows"}, {"input_pos", "rows"}, {"start_pos", "1"}};
    for (size_t k = 0; k < 3; k++) {
        decoder_style style = decoder_optimum;
        style.cache = WRITTEN;
        style.mask_dims = "batch,32";
        style.written = written[k][0];
        style.written_dims = written[k][1];
        same_ids(&style, &decoder_optimum, NULL);
        generation g;
        prony_generator_info info;
        const size_t five = 5, lengths[] = {3, 2};
        int64_t ids[NEW], again[NEW];
        prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
        generation_begin(&g, &style, NULL);
        generation_prompt(&g, decoder_words, &five);
        generation_next(&g, ids, NEW, 1);
        prony_generator_get_info(g.generator, &info);
        assert_true(info.kind == PRONY_CACHE_SHARED && info.max_length == 32 && info.cache_count == 2);
        assert_int_equal(prony_generator_rewind(g.generator, 8, &g.error), PRONY_OK);
        generation_next(&g, again, NEW - 3, 1);
        assert_memory_equal(again, ids + 3, (NEW - 3) * sizeof *ids);
        generation_end(&g);
        options.batch = 2;
        generation_begin(&g, &style, &options);
        assert_int_equal(prony_generator_prompt(g.generator, decoder_words, lengths, &g.error), PRONY_UNSUPPORTED);
        assert_non_null(strstr(g.error.message, "all sequences share the rows of cache"));
        generation_end(&g);
    }
}

/* A cache of one length that drops its oldest row; the mask shows the last keys. */
static void test_rolled_caches(void **state)
{
    (void)state;
    decoder_style style = decoder_optimum;
    style.cache = ROLLED;
    style.ids_dims = "batch,1";
    style.mask_dims = "batch,32";
    same_ids(&style, &decoder_optimum, NULL);
    style.wide_mask = PRONY_FLOAT32;
    style.mask_dims = "batch,1,1,32";
    same_ids(&style, &decoder_optimum, NULL);
}

/* Graphs that compute one token, a fixed number of tokens, or one sequence without a batch. */
static void test_fixed_ids(void **state)
{
    (void)state;
    decoder_style one = decoder_optimum, fixed = decoder_no_cache, flat = decoder_no_cache, bare = decoder_no_cache;
    one.ids_dims = "batch,1";
    same_ids(&one, &decoder_optimum, NULL);
    fixed.ids_dims = fixed.mask_dims = "1,20";
    same_ids(&fixed, &decoder_no_cache, NULL);
    bare.no_mask = bare.no_positions = flat.no_mask = flat.no_positions = true;
    flat.ids_dims = "rows";
    same_ids(&flat, &bare, NULL);
    generation g;
    int64_t id, ids[21] = {0};
    const size_t many = 21;
    generation_begin(&g, &fixed, NULL);
    assert_int_equal(prony_generator_prompt(g.generator, ids, &many, &g.error), PRONY_OUT_OF_RANGE);
    assert_non_null(strstr(g.error.message, "exceeds max_length 20"));
    const size_t all = 20;
    generation_prompt(&g, ids, &all);
    assert_int_equal(prony_generator_next(g.generator, &id, NULL, &g.error), PRONY_OUT_OF_RANGE);
    generation_end(&g);
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.batch = 2;
    g = (generation){0};
    generation_load(&g, decoder_model(&flat), 1);
    assert_int_equal(prony_generator_create(&g.generator, g.session, &options, &g.error), PRONY_UNSUPPORTED);
    assert_non_null(strstr(g.error.message, "one sequence; wanted a batch of 1, got 2"));
    generation_end(&g);
}

/* The output whose last dimension is the vocabulary, not the first one of floats. */
static void test_logits_behind_other_outputs(void **state)
{
    (void)state;
    decoder_style style = decoder_no_cache;
    style.first_output = "hidden_states";
    same_ids(&style, &decoder_no_cache, NULL);
    generation g;
    style.tail = "reader"; /* logits are chosen among two */
    generation_begin(&g, &style, NULL);
    assert_int_equal(prony_generator_logits_output(g.generator), 2);
    generation_end(&g);
}

static model_builder *recurrent(const char *ids_dims)
{
    float data[VOCABULARY * WIDTH], product[3 * WIDTH * WIDTH];
    uint32_t seed = 11;
    model_builder *m = mb_begin(17);
    mb_input(m, "input_ids", PRONY_INT64, ids_dims);
    mb_input(m, "hidden_in", PRONY_FLOAT32, "1,batch,8");
    mb_output(m, "scores", PRONY_FLOAT32, "batch,rows,16");
    mb_output(m, "hidden_out", PRONY_FLOAT32, "1,batch,8");
    for (size_t k = 0; k < VOCABULARY * WIDTH; k++)
        data[k] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / (float)(1 << 23) - 1;
    for (size_t k = 0; k < 3 * WIDTH * WIDTH; k++)
        product[k] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / (float)(1 << 23) - 1;
    mb_initializer(m, "table", PRONY_FLOAT32, "16,8", data);
    mb_initializer(m, "head", PRONY_FLOAT32, "8,16", data);
    mb_initializer(m, "w", PRONY_FLOAT32, "1,24,8", product);
    mb_initializer(m, "r", PRONY_FLOAT32, "1,24,8", product);
    mb_initializer(m, "axis", PRONY_INT64, "1", (const int64_t[]){1});
    mb_node(m, "Gather", "table input_ids", "x", "");
    mb_node(m, "Transpose", "x", "x_rows", "perm=[1,0,2]");
    mb_node(m, "GRU", "x_rows w r ? ? hidden_in", "y hidden_out", "hidden_size=8");
    mb_node(m, "Squeeze", "y axis", "y_rows", "");
    mb_node(m, "Transpose", "y_rows", "z", "perm=[1,0,2]");
    mb_node(m, "MatMul", "z head", "scores", "");
    return m;
}

static void recurrent_begin(generation *g, const char *ids_dims, const prony_generator_options *options)
{
    *g = (generation){0};
    generation_load(g, recurrent(ids_dims), 1);
    if (prony_generator_create(&g->generator, g->session, options, &g->error) != PRONY_OK)
        fail_msg("%s", g->error.message);
}

/* The state of a recurrence: steps, chunks, one token a run, and rewinding give the ids of one run over all tokens. */
static void test_states(void **state)
{
    (void)state;
    generation g;
    prony_generator_info info;
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    int64_t ids[NEW], again[NEW], tokens[5 + NEW];
    const size_t five = 5, lengths[] = {3, 2};
    recurrent_begin(&g, "batch,rows", NULL);
    generation_prompt(&g, decoder_words, &five);
    generation_next(&g, ids, NEW, 1);
    prony_generator_get_info(g.generator, &info);
    assert_int_equal(info.cache_count, 1);
    assert_string_equal(info.convention, "hidden_in -> hidden_out");
    assert_int_equal(info.cache_live_bytes, WIDTH * sizeof(float));
    assert_int_equal(prony_generator_rewind(g.generator, 8, &g.error), PRONY_OK);
    generation_next(&g, again, NEW - 3, 1);
    assert_memory_equal(again, ids + 3, (NEW - 3) * sizeof *ids);
    memcpy(tokens, decoder_words, sizeof *tokens * 5);
    memcpy(tokens + 5, ids, sizeof ids);
    for (size_t n = 5; n < 5 + NEW; n++) {
        assert_int_equal(prony_generator_rewind(g.generator, 0, &g.error), PRONY_OK);
        generation_prompt(&g, tokens, &n);
        generation_next(&g, again, 1, 1);
        assert_int_equal(again[0], tokens[n]);
    }
    generation_end(&g);
    options.chunk = 2;
    recurrent_begin(&g, "batch,rows", &options);
    generation_prompt(&g, decoder_words, &five);
    generation_next(&g, again, NEW, 1);
    assert_memory_equal(again, ids, sizeof ids);
    generation_end(&g);
    recurrent_begin(&g, "batch,1", NULL);
    generation_prompt(&g, decoder_words, &five);
    generation_next(&g, again, NEW, 1);
    assert_memory_equal(again, ids, sizeof ids);
    generation_end(&g);
    options.batch = 2;
    recurrent_begin(&g, "batch,rows", &options);
    assert_int_equal(prony_generator_prompt(g.generator, decoder_words, lengths, &g.error), PRONY_UNSUPPORTED);
    assert_non_null(strstr(g.error.message, "cache 'hidden_in -> hidden_out'"));
    generation_end(&g);
}

/* A state of two layers: state = state * decay + row of the table; logits = the sum of its layers. Without names of
 * dimensions, the layers are not the batch. */
static model_builder *decaying(const char *ids_dims, const char *state_dims, const char *logits_dims)
{
    float data[VOCABULARY * WIDTH];
    uint32_t seed = 5;
    for (size_t k = 0; k < VOCABULARY * WIDTH; k++)
        data[k] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / (float)(1 << 23) - 1;
    model_builder *m = mb_begin(17);
    mb_input(m, "token", PRONY_INT64, ids_dims);
    mb_input(m, "state", PRONY_FLOAT32, state_dims);
    mb_output(m, "logits", PRONY_FLOAT32, logits_dims);
    mb_output(m, "state_out", PRONY_FLOAT32, state_dims);
    mb_initializer(m, "table", PRONY_FLOAT32, "16,8", data);
    mb_initializer(m, "head", PRONY_FLOAT32, "8,16", data);
    mb_initializer(m, "decay", PRONY_FLOAT32, "2,1,1", (const float[]){0.5f, 0.9f});
    mb_initializer(m, "decay_flat", PRONY_FLOAT32, "2,1", (const float[]){0.5f, 0.9f});
    mb_initializer(m, "axis", PRONY_INT64, "1", (const int64_t[]){0});
    mb_initializer(m, "row_axis", PRONY_INT64, "1", (const int64_t[]){1});
    mb_node(m, "Gather", "table token", "tokens", "");
    const bool flat = !strchr(ids_dims, ',');
    if (!flat) mb_node(m, "Squeeze", "tokens row_axis", "x", "");
    mb_node(m, "Mul", flat ? "state decay_flat" : "state decay", "kept", "");
    mb_node(m, "Add", flat ? "kept tokens" : "kept x", "state_out", "");
    mb_node(m, "ReduceSum", "state_out axis", "sum", "keepdims=0");
    mb_node(m, "MatMul", "sum head", "logits", "");
    return m;
}

static void test_states_of_layers(void **state)
{
    (void)state;
    const char *const dims[][3] = {{"1", "2,8", "16"},
                                   {"batch,1", "2,?,8", "batch,16"},
                                   {"1,1", "2,1,8", "1,16"},
                                   {"batch,1", "2,batch,8", "?,16"}};
    int64_t ids[2][NEW];
    const size_t five = 5;
    for (size_t k = 0; k < 4; k++) {
        generation g = {0};
        generation_load(&g, decaying(dims[k][0], dims[k][1], dims[k][2]), 1);
        if (prony_generator_create(&g.generator, g.session, NULL, &g.error) != PRONY_OK)
            fail_msg("%s", g.error.message);
        generation_prompt(&g, decoder_words, &five);
        generation_next(&g, ids[k > 0], NEW, 1);
        assert_memory_equal(ids[k > 0], ids[0], sizeof ids[0]);
        generation_end(&g);
    }
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT; /* as many sequences as layers */
    options.batch = 2;
    int64_t both[2 * NEW];
    const size_t lengths[] = {4, 4};
    generation g = {0};
    generation_load(&g, decaying("batch,1", "2,?,8", "batch,16"), 1);
    assert_int_equal(prony_generator_create(&g.generator, g.session, &options, &g.error), PRONY_OK);
    generation_prompt(&g, (const int64_t[]){3, 1, 4, 1, 3, 1, 4, 1}, lengths);
    generation_next(&g, both, NEW, 2);
    for (size_t n = 0; n < NEW; n++) assert_int_equal(both[2 * n], both[2 * n + 1]);
    generation_end(&g);
}

/* Encoder and decoder in one graph: ids and mask of the encoder are the caller's. */
static void test_ids_of_the_decoder(void **state)
{
    (void)state;
    const float zeros[VOCABULARY * WIDTH] = {0};
    generation g = {0};
    prony_generator_feed feed;
    model_builder *m = mb_begin(17);
    mb_input(m, "input_ids", PRONY_INT64, "batch,sources");
    mb_input(m, "attention_mask", PRONY_INT64, "batch,sources");
    mb_input(m, "decoder_input_ids", PRONY_INT64, "batch,rows");
    mb_output(m, "logits", PRONY_FLOAT32, "batch,rows,8");
    mb_output(m, "encoded", PRONY_FLOAT32, "batch,sources,8");
    mb_initializer(m, "table", PRONY_FLOAT32, "16,8", zeros);
    mb_node(m, "Mul", "input_ids attention_mask", "seen", "");
    mb_node(m, "Gather", "table seen", "encoded", "");
    mb_node(m, "Gather", "table decoder_input_ids", "logits", "");
    generation_load(&g, m, 1);
    assert_int_equal(prony_generator_create(&g.generator, g.session, NULL, &g.error), PRONY_OK);
    assert_string_equal(prony_generator_unfed_input(g.generator, 0), "input_ids");
    assert_string_equal(prony_generator_unfed_input(g.generator, 1), "attention_mask");
    assert_true(prony_generator_input(g.generator, 2, &feed));
    assert_string_equal(feed.role, "ids");
    generation_end(&g);
}

/* Inputs whose names have a role's word and another meaning are the caller's. */
static void test_words_with_other_meanings(void **state)
{
    (void)state;
    const float zeros[VOCABULARY * WIDTH] = {0};
    const char *const others[] = {"head_mask", "padding_mask", "encoder_attention_mask", "num_tokens", "post_norm"};
    generation g = {0};
    model_builder *m = mb_begin(17);
    for (size_t k = 0; k < 5; k++) mb_input(m, others[k], PRONY_INT64, "batch,1");
    mb_input(m, "input_ids", PRONY_INT64, "batch,rows");
    mb_output(m, "logits", PRONY_FLOAT32, "batch,rows,8");
    mb_initializer(m, "table", PRONY_FLOAT32, "16,8", zeros);
    for (size_t k = 0; k < 5; k++) {
        char inputs[64], sum[2][8];
        snprintf(sum[0], sizeof sum[0], "s%zu", k);
        snprintf(sum[1], sizeof sum[1], "s%zu", k + 1);
        snprintf(inputs, sizeof inputs, "%s %s", k ? sum[0] : "input_ids", others[k]);
        mb_node(m, "Add", inputs, sum[1], "");
    }
    mb_node(m, "Gather", "table s5", "logits", "");
    generation_load(&g, m, 1);
    assert_int_equal(prony_generator_create(&g.generator, g.session, NULL, &g.error), PRONY_OK);
    for (size_t k = 0; k < 5; k++) assert_string_equal(prony_generator_unfed_input(g.generator, k), others[k]);
    generation_end(&g);
}

static void create_refused(model_builder *m, prony_status status, const char *text)
{
    generation g = {0};
    generation_load(&g, m, 1);
    const prony_status got = prony_generator_create(&g.generator, g.session, NULL, &g.error);
    if (got != status || !strstr(g.error.message, text)) fail_msg("status %d: '%s'", (int)got, g.error.message);
    generation_end(&g);
}

/* A decoder of one Concat, whose past input and present output have these dimensions. */
static model_builder *small(const char *ids, prony_dtype type, const char *ids_dims, const char *past,
                            const char *present)
{
    const float zeros[VOCABULARY * WIDTH] = {0};
    model_builder *m = mb_begin(17);
    mb_input(m, ids, type, ids_dims);
    mb_input(m, "past_key_values.0.key", PRONY_FLOAT32, past);
    mb_output(m, "logits", PRONY_FLOAT32, "batch,rows,8");
    mb_output(m, "present.0.key", PRONY_FLOAT32, present);
    mb_initializer(m, "table", PRONY_FLOAT32, "16,8", zeros);
    mb_node(m, type == PRONY_INT64 ? "Gather" : "MatMul",
            type == PRONY_INT64 ? "table input_ids" : "inputs_embeds table", "logits", "");
    mb_node(m, "Concat", "past_key_values.0.key logits", "present.0.key", "axis=1");
    return m;
}

static void test_ambiguous_models_are_refused(void **state)
{
    (void)state;
    create_refused(small("inputs_embeds", PRONY_FLOAT32, "batch,rows,16", "batch,past,8", "batch,now,8"),
                   PRONY_INVALID_MODEL, "input 'inputs_embeds' takes embeddings");
    create_refused(small("input_ids", PRONY_INT64, "batch,rows", "batch,31,8", "batch,32,8"), PRONY_UNSUPPORTED,
                   "cache input 'past_key_values.0.key' has a fixed length of 31 rows, and its output 'present.0.key' "
                   "another one");
    create_refused(small("input_ids", PRONY_INT64, "batch,rows", "batch x heads,past,8", "batch x heads,now,8"),
                   PRONY_NEEDS_DIMENSION, "dimension 0 is more than the batch: set it by --dim 'batch x heads=N'");
    create_refused(small("input_ids", PRONY_INT64, "batch,16", "batch,past,8", "batch,now,8"), PRONY_UNSUPPORTED,
                   "input 'input_ids' is int64[?, 16]; the generator feeds [batch, length] of any length, or of 1");
}

/* The caller says what a joined dimension is, as a dimension of the session. */
static void test_joined_batch_and_heads(void **state)
{
    (void)state;
    generation g = {0};
    const prony_dim dim = {"batch x heads", 1};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    const size_t three = 3;
    int64_t ids[NEW];
    generation_load(&g, small("input_ids", PRONY_INT64, "batch,rows", "batch x heads,past,8", "batch x heads,now,8"),
                    1);
    prony_session_release(g.session);
    options.dims = &dim;
    options.dim_count = 1;
    assert_int_equal(prony_session_create(&g.session, g.model, &options, &g.error), PRONY_OK);
    assert_int_equal(prony_generator_create(&g.generator, g.session, NULL, &g.error), PRONY_OK);
    generation_prompt(&g, decoder_words, &three);
    generation_next(&g, ids, NEW, 1);
    generation_end(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_in_names),
        cmocka_unit_test(test_ids_by_the_graph),
        cmocka_unit_test(test_names_that_the_caller_gives),
        cmocka_unit_test(test_lengths_by_the_graph),
        cmocka_unit_test(test_rows_first),
        cmocka_unit_test(test_present_rows_without_the_past),
        cmocka_unit_test(test_static_caches),
        cmocka_unit_test(test_rolled_caches),
        cmocka_unit_test(test_fixed_ids),
        cmocka_unit_test(test_logits_behind_other_outputs),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_states_of_layers),
        cmocka_unit_test(test_ids_of_the_decoder),
        cmocka_unit_test(test_words_with_other_meanings),
        cmocka_unit_test(test_ambiguous_models_are_refused),
        cmocka_unit_test(test_joined_batch_and_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
