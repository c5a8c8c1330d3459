/* Generators over decoders of every naming convention: the ids of the model without a cache; batches, sampling, rewinding,
 * and what is refused. */
#include "base/memory/alloc.h"
#include "engine/session/session.h"
#include "prony_generate.h"
#include "tests/support/model_builder.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCABULARY = 16, WIDTH = 8, HEADS = 2, HEAD = WIDTH / HEADS, POSITIONS = 32, NEW = 12 };

/* ---- models ---- */

typedef enum cache_style { NO_CACHE, TWO_TENSORS, PACKED, GROUPED, GROUPED_LENGTHS, TWICE } cache_style;

typedef struct decoder_style {
    cache_style cache;
    const char *past[2], *present[2]; /* of keys and values; packed: the first */
    bool no_mask, no_positions, use_cache, encoder;
    const char *peek; /* another reader of keys: "present", or of the past ones: "past" */
    const char *ids;
} decoder_style;

static const decoder_style no_cache = {.cache = NO_CACHE};
static const decoder_style optimum = {.cache = TWO_TENSORS,
                                      .past = {"past_key_values.0.key", "past_key_values.0.value"},
                                      .present = {"present.0.key", "present.0.value"}};

static void weights(model_builder *m, const char *name, const char *dims, size_t count, uint32_t seed)
{
    float data[512];
    assert_true(count <= sizeof data / sizeof *data);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = 2 * ((float)(seed >> 8) / (float)(1 << 24) - 0.5f);
    }
    mb_initializer(m, name, PRONY_FLOAT32, dims, data);
}

static void number(model_builder *m, const char *name, const char *dims, int64_t value)
{
    mb_initializer(m, name, PRONY_INT64, dims, &value);
}

static void scalar(model_builder *m, const char *name, float value)
{
    mb_initializer(m, name, PRONY_FLOAT32, "", &value);
}

static void constants(model_builder *m)
{
    weights(m, "table", "16,8", 128, 7);
    weights(m, "places", "32,8", 256, 8);
    weights(m, "wq", "8,8", 64, 1);
    weights(m, "wk", "8,8", 64, 2);
    weights(m, "wv", "8,8", 64, 3);
    weights(m, "wo", "8,8", 64, 4);
    weights(m, "head", "8,16", 128, 5);
    number(m, "zero", "", 0);
    number(m, "one", "", 1);
    number(m, "two", "", 2);
    number(m, "first_axis", "1", 0);
    number(m, "second_axis", "1", 1);
    mb_initializer(m, "mask_axes", PRONY_INT64, "2", (int64_t[]){1, 2});
    mb_initializer(m, "head_shape", PRONY_INT64, "4", (int64_t[]){0, 0, HEADS, HEAD});
    mb_initializer(m, "flat_shape", PRONY_INT64, "3", (int64_t[]){0, 0, WIDTH});
    scalar(m, "scale", 0.5f);
    scalar(m, "none", 0.0f);
    scalar(m, "least", -1e9f);
}

/* Keys or values with those of the cache before them: "k_all" of "k". */
static void cached(model_builder *m, const decoder_style *style, int which)
{
    char fresh[8], flat[16], old[16], all[8], inputs[96];
    const char name = "kv"[which];
    snprintf(fresh, sizeof fresh, "%c", name);
    snprintf(flat, sizeof flat, "%c_flat", name);
    snprintf(old, sizeof old, "%c_old", name);
    snprintf(all, sizeof all, "%c_all", name);
    snprintf(inputs, sizeof inputs, "x w%c", name);
    mb_node(m, "MatMul", inputs, flat, "");
    snprintf(inputs, sizeof inputs, "%s head_shape", flat);
    mb_node(m, "Reshape", inputs, old, "");
    mb_node(m, "Transpose", old, fresh, "perm=[0,2,1,3]");
    if (style->cache == NO_CACHE) {
        mb_node(m, "Identity", fresh, all, "");
    } else if (style->cache == PACKED) {
        snprintf(inputs, sizeof inputs, "%s %s", style->past[0], which ? "one" : "zero");
        snprintf(old, sizeof old, "%c_past", name);
        mb_node(m, "Gather", inputs, old, "axis=0");
        snprintf(inputs, sizeof inputs, "%s %s", old, fresh);
        mb_node(m, "Concat", inputs, all, "axis=2");
    } else {
        snprintf(inputs, sizeof inputs, "%s %s%s%s", style->past[which], fresh, style->cache == TWICE ? " " : "",
                 style->cache == TWICE ? fresh : "");
        mb_node(m, "Concat", inputs, style->present[which], "axis=2");
        mb_node(m, "Identity", style->present[which], all, "");
    }
}

static void attend(model_builder *m, const decoder_style *style)
{
    mb_node(m, "MatMul", "x wq", "q_flat", "");
    mb_node(m, "Reshape", "q_flat head_shape", "q_heads", "");
    mb_node(m, "Transpose", "q_heads", "q", "perm=[0,2,1,3]");
    for (int which = 0; which < 2; which++) cached(m, style, which);
    if (style->cache == PACKED) {
        mb_node(m, "Unsqueeze", "k_all first_axis", "k_packed", "");
        mb_node(m, "Unsqueeze", "v_all first_axis", "v_packed", "");
        mb_node(m, "Concat", "k_packed v_packed", style->present[0], "axis=0");
    }
    mb_node(m, "Transpose", "k_all", "k_turned", "perm=[0,1,3,2]");
    mb_node(m, "MatMul", "q k_turned", "products", "");
    mb_node(m, "Mul", "products scale", "scores", "");
    mb_node(m, "Shape", "k_all", "k_shape", "");
    mb_node(m, "Gather", "k_shape two", "total", "");
    mb_node(m, "Shape", style->ids ? style->ids : "input_ids", "ids_shape", "");
    mb_node(m, "Gather", "ids_shape one", "rows", "");
    mb_node(m, "Sub", "total rows", "first", "");
    mb_node(m, "Range", "first total one", "mine_flat", "");
    mb_node(m, "Unsqueeze", "mine_flat second_axis", "mine", "");
    mb_node(m, "Range", "zero total one", "everything", "");
    mb_node(m, "Greater", "everything mine", "future", "");
    mb_node(m, "Where", "future least none", style->no_mask ? "bias" : "causal", "");
    if (!style->no_mask) {
        mb_node(m, "Unsqueeze", "attention_mask mask_axes", "seen", "");
        mb_node(m, "Equal", "seen zero", "hidden", "");
        mb_node(m, "Where", "hidden least causal", "bias", "");
    }
    mb_node(m, "Add", "scores bias", "masked", "");
    mb_node(m, "Softmax", "masked", "shares", "axis=-1");
    mb_node(m, "MatMul", "shares v_all", "mixed", "");
    mb_node(m, "Transpose", "mixed", "mixed_rows", "perm=[0,2,1,3]");
    mb_node(m, "Reshape", "mixed_rows flat_shape", "joined", "");
}

/* The same by GroupQueryAttention. */
static void attend_grouped(model_builder *m, const decoder_style *style)
{
    const bool lengths = style->cache == GROUPED_LENGTHS;
    char inputs[160], outputs[96];
    mb_node(m, "MatMul", "x wq", "q", "");
    mb_node(m, "MatMul", "x wk", "k", "");
    mb_node(m, "MatMul", "x wv", "v", "");
    if (!lengths) {
        mb_node(m, "ReduceSum", "attention_mask second_axis", "seen", "keepdims=0");
        mb_node(m, "Sub", "seen one", "last", "");
        mb_node(m, "Cast", "last", "lengths", "to=6");
        mb_node(m, "Shape", "attention_mask", "mask_shape", "");
        mb_node(m, "Gather", "mask_shape one", "total_wide", "");
        mb_node(m, "Cast", "total_wide", "total", "to=6");
    }
    snprintf(inputs, sizeof inputs, "q k v %s %s %s %s", style->past[0], style->past[1],
             lengths ? "seqlens_k" : "lengths", lengths ? "total_sequence_length" : "total");
    snprintf(outputs, sizeof outputs, "joined %s %s", style->present[0], style->present[1]);
    mb_node(m, "com.microsoft::GroupQueryAttention", inputs, outputs, "num_heads=2 kv_num_heads=2 scale=0.5");
}

static model_builder *decoder(const decoder_style *style)
{
    model_builder *m = mb_begin(17);
    const bool grouped = style->cache == GROUPED || style->cache == GROUPED_LENGTHS;
    const char *ids = style->ids ? style->ids : "input_ids";
    char inputs[64];
    mb_opset(m, "com.microsoft", 1);
    mb_input(m, ids, PRONY_INT64, "batch,rows");
    if (!style->no_mask) mb_input(m, "attention_mask", PRONY_INT64, "batch,total");
    if (!style->no_positions) mb_input(m, "position_ids", PRONY_INT64, "batch,rows");
    if (style->use_cache) mb_input(m, "use_cache_branch", PRONY_BOOL, "1");
    if (style->encoder) mb_input(m, "encoder_hidden_states", PRONY_FLOAT32, "batch,8");
    if (style->cache == GROUPED_LENGTHS) {
        mb_input(m, "seqlens_k", PRONY_INT32, "batch");
        mb_input(m, "total_sequence_length", PRONY_INT32, "");
    }
    for (int k = 0; k < 2 && style->past[k]; k++) {
        mb_input(m, style->past[k], PRONY_FLOAT32, style->cache == PACKED ? "2,batch,2,past,4" : "batch,2,past,4");
        mb_output(m, style->present[k], PRONY_FLOAT32, style->cache == PACKED ? "2,batch,2,now,4" : "batch,2,now,4");
    }
    constants(m);
    snprintf(inputs, sizeof inputs, "table %s", ids);
    mb_node(m, "Gather", inputs, style->no_positions ? "x" : "tokens", "");
    if (!style->no_positions) {
        mb_node(m, "Gather", "places position_ids", "placed", "");
        mb_node(m, "Add", "tokens placed", "x", "");
    }
    if (grouped)
        attend_grouped(m, style);
    else
        attend(m, style);
    if (style->peek) {
        mb_node(m, "Abs", *style->peek == 'p' && style->peek[1] == 'r' ? style->present[0] : style->past[0], "peek",
                "");
        mb_output(m, "peek", PRONY_FLOAT32, "batch,2,some,4");
    }
    mb_node(m, "MatMul", "joined wo", "projected", "");
    mb_node(m, "Add", "x projected", "sum", "");
    if (style->encoder) {
        mb_node(m, "Unsqueeze", "encoder_hidden_states second_axis", "states", "");
        mb_node(m, "Add", "sum states", "with_states", "");
    }
    mb_node(m, "MatMul", style->encoder ? "with_states head" : "sum head", style->use_cache ? "plain_logits" : "logits",
            "");
    if (style->use_cache) {
        mb_node(m, "Cast", "use_cache_branch", "flag", "to=1");
        mb_node(m, "Mul", "flag none", "nothing", "");
        mb_node(m, "Add", "plain_logits nothing", "logits", "");
    }
    mb_output(m, "logits", PRONY_FLOAT32, "batch,rows,16");
    return m;
}

/* ---- a generator of a model ---- */

typedef struct generation {
    model_builder *builder;
    prony_model *model;
    prony_session *session;
    prony_generator *generator;
    prony_error error;
} generation;

static void load(generation *g, model_builder *m, int threads)
{
    size_t size;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = threads;
    g->builder = m;
    const void *bytes = mb_finish(m, &size);
    if (prony_model_load_memory(&g->model, "decoder.onnx", bytes, size, NULL, &g->error) != PRONY_OK ||
        prony_session_create(&g->session, g->model, &options, &g->error) != PRONY_OK)
        fail_msg("%s", g->error.message);
}

static void begin(generation *g, const decoder_style *style, const prony_generator_options *options)
{
    *g = (generation){0};
    load(g, decoder(style), 1);
    if (prony_generator_create(&g->generator, g->session, options, &g->error) != PRONY_OK)
        fail_msg("%s", g->error.message);
}

static void end(generation *g)
{
    prony_generator_release(g->generator);
    prony_session_release(g->session);
    prony_model_release(g->model);
    mb_free(g->builder);
}

static void prompt(generation *g, const int64_t *ids, const size_t *lengths)
{
    if (prony_generator_prompt(g->generator, ids, lengths, &g->error) != PRONY_OK) fail_msg("%s", g->error.message);
}

static void next(generation *g, int64_t *ids, size_t count, size_t batch)
{
    for (size_t k = 0; k < count; k++)
        if (prony_generator_next(g->generator, ids + k * batch, NULL, &g->error) != PRONY_OK)
            fail_msg("%s", g->error.message);
}

static const int64_t words[] = {3, 1, 4, 1, 5, 9, 2, 6};

/* NEW ids of a fresh generator, behind the first `count` words. */
static void ids_of(const decoder_style *style, const prony_generator_options *options, size_t count, int64_t out[NEW])
{
    generation g;
    begin(&g, style, options);
    prompt(&g, words, &count);
    next(&g, out, NEW, 1);
    end(&g);
}

/* ---- tests ---- */

static void test_conventions_give_the_ids_of_the_model_without_cache(void **state)
{
    (void)state;
    const prony_cache_names named = {"c_*_a", "d_*_b"};
    prony_generator_options given = PRONY_GENERATOR_OPTIONS_INIT;
    given.caches = &named;
    given.cache_count = 1;
    const decoder_style styles[] = {
        optimum,
        {.cache = TWO_TENSORS,
         .past = {"past_key_values.0.decoder.key", "past_key_values.0.decoder.value"},
         .present = {"present.0.decoder.key", "present.0.decoder.value"}},
        {.cache = TWO_TENSORS, .past = {"past_key_0", "past_value_0"}, .present = {"present_key_0", "present_value_0"}},
        {.cache = TWO_TENSORS,
         .past = {"past_key_values.0.key", "past_key_values.0.value"},
         .present = {"present_key_values.0.key", "present_key_values.0.value"}},
        {.cache = PACKED, .past = {"past_0"}, .present = {"present_0"}},
        {.cache = TWO_TENSORS, .past = {"k_in", "v_in"}, .present = {"k_out", "v_out"}}, /* found by the graph */
        {.cache = GROUPED,
         .past = {"past_key_values.0.key", "past_key_values.0.value"},
         .present = {"present.0.key", "present.0.value"}},
        {.cache = GROUPED_LENGTHS, .no_mask = true, .past = {"a", "b"}, .present = {"c", "d"}},
        {.cache = TWO_TENSORS,
         .past = {"past_key_values.0.key", "past_key_values.0.value"},
         .present = {"present.0.key", "present.0.value"},
         .use_cache = true},
        {.cache = TWO_TENSORS, .past = {"c_0_a", "c_1_a"}, .present = {"d_0_b", "d_1_b"}}}; /* named by the caller */
    const size_t count = sizeof styles / sizeof *styles;
    int64_t wanted[NEW], got[NEW];
    ids_of(&no_cache, NULL, 5, wanted);
    for (size_t k = 0; k < count; k++) {
        ids_of(&styles[k], k + 1 == count ? &given : NULL, 5, got);
        for (size_t n = 0; n < NEW; n++)
            if (got[n] != wanted[n])
                fail_msg("style %zu: id %zu is %lld, not %lld", k, n, (long long)got[n], (long long)wanted[n]);
    }
}

static void test_figures(void **state)
{
    (void)state;
    generation g;
    prony_generator_info info;
    int64_t ids[NEW];
    const size_t count = 5;
    begin(&g, &optimum, NULL);
    prompt(&g, words, &count);
    next(&g, ids, NEW, 1);
    prony_generator_get_info(g.generator, &info);
    assert_int_equal(info.kind, PRONY_CACHE_GROWING);
    assert_string_equal(info.convention, "past_key_values.0.key -> present.0.key");
    assert_int_equal(info.max_length, POSITIONS); /* rows of the table of positions */
    assert_int_equal(info.vocabulary, VOCABULARY);
    assert_int_equal(info.length, 5 + NEW);
    assert_int_equal(info.computed, 5 + NEW - 1);
    assert_int_equal(info.cache_count, 2);
    assert_int_equal(info.cache_live_bytes, 2 * WIDTH * sizeof(float) * (5 + NEW - 1));
    assert_int_equal(info.cache_copied_bytes, 0); /* steps append to the cache */
    assert_int_equal(info.cache_bytes, 2 * WIDTH * sizeof(float) * POSITIONS);
    size_t scores;
    assert_non_null(prony_generator_logits(g.generator, 0, &scores));
    assert_int_equal(scores, VOCABULARY);
    assert_null(prony_generator_logits(g.generator, 1, &scores));
    end(&g);
}

/* Rows of earlier tokens that a step copies: none where Attention or GroupQueryAttention appends to the cache. */
static void test_copied_bytes(void **state)
{
    (void)state;
    const decoder_style styles[] = {optimum,
                                    {.cache = GROUPED,
                                     .past = {"past_key_values.0.key", "past_key_values.0.value"},
                                     .present = {"present.0.key", "present.0.value"}},
                                    {.cache = PACKED, .past = {"past_0"}, .present = {"present_0"}}};
    const uint64_t wanted[] = {0, 0, 2 * WIDTH * sizeof(float) * 6};
    for (size_t k = 0; k < 3; k++) {
        generation g;
        prony_generator_info info;
        int64_t ids[3];
        const size_t count = 5;
        begin(&g, &styles[k], NULL);
        prompt(&g, words, &count);
        next(&g, ids, 3, 1);
        prony_generator_get_info(g.generator, &info);
        assert_int_equal(info.cache_copied_bytes, wanted[k]);
        assert_int_equal(info.cache_bytes, 2 * WIDTH * sizeof(float) * POSITIONS * (wanted[k] ? 2 : 1));
        end(&g);
    }
}

/* Rows that anything but attention reads as well are not appended to: every step copies them, to the same ids. */
static void test_near_misses_of_appending(void **state)
{
    (void)state;
    const char *const readers[] = {"present", "past"};
    int64_t wanted[NEW], got[NEW];
    ids_of(&no_cache, NULL, 5, wanted);
    for (size_t k = 0; k < 2; k++) {
        decoder_style watched = optimum;
        generation g;
        prony_generator_info info;
        const size_t count = 5;
        watched.peek = readers[k];
        begin(&g, &watched, NULL);
        prompt(&g, words, &count);
        next(&g, got, NEW, 1);
        prony_generator_get_info(g.generator, &info);
        assert_memory_equal(got, wanted, sizeof got);
        assert_int_equal(info.cache_copied_bytes, 2 * WIDTH * sizeof(float) * (5 + NEW - 2));
        end(&g);
    }
}

static void test_steps_bind_and_plan_once(void **state)
{
    (void)state;
    const decoder_style styles[] = {optimum,
                                    no_cache,
                                    {.cache = PACKED, .past = {"past_0"}, .present = {"present_0"}},
                                    {.cache = GROUPED,
                                     .past = {"past_key_values.0.key", "past_key_values.0.value"},
                                     .present = {"present.0.key", "present.0.value"}}};
    for (size_t k = 0; k < sizeof styles / sizeof *styles; k++) {
        generation g;
        int64_t ids[NEW];
        const size_t count = 5;
        begin(&g, &styles[k], NULL);
        prompt(&g, words, &count);
        next(&g, ids, NEW, 1);
        const prony_preparations made = prony_session_preparations(g.session);
        if (made.bound > 3 || made.planned != 2 || made.respecialized != NEW - 1)
            fail_msg("style %zu: bound %llu times, planned %llu, respecialized %llu", k, (unsigned long long)made.bound,
                     (unsigned long long)made.planned, (unsigned long long)made.respecialized);
        end(&g);
    }
}

/* Two sequences of different lengths give the ids that each gives alone. */
static void test_batches(void **state)
{
    (void)state;
    const decoder_style styles[] = {
        optimum,
        no_cache,
        {.cache = PACKED, .past = {"past_0"}, .present = {"present_0"}},
        {.cache = GROUPED,
         .past = {"past_key_values.0.key", "past_key_values.0.value"},
         .present = {"present.0.key", "present.0.value"}},
        {.cache = GROUPED_LENGTHS, .no_mask = true, .past = {"a", "b"}, .present = {"c", "d"}}};
    const int64_t both[] = {3, 1, 4, 1, 5, 9, 3, 1, 4};
    const size_t lengths[] = {6, 3};
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.batch = 2;
    for (size_t k = 0; k < sizeof styles / sizeof *styles; k++) {
        int64_t alone[2][NEW], together[NEW][2];
        generation g;
        ids_of(&styles[k], NULL, 6, alone[0]);
        ids_of(&styles[k], NULL, 3, alone[1]);
        begin(&g, &styles[k], &options);
        prompt(&g, both, lengths);
        next(&g, together[0], NEW, 2);
        for (size_t n = 0; n < NEW; n++)
            for (size_t b = 0; b < 2; b++)
                if (together[n][b] != alone[b][n]) fail_msg("style %zu: sequence %zu, id %zu differs", k, b, n);
        end(&g);
    }
}

/* Tokens that are rewound and given again leave no trace, and prompts may follow new tokens. */
static void test_rewind(void **state)
{
    (void)state;
    const decoder_style grouped = {.cache = GROUPED,
                                   .past = {"past_key_values.0.key", "past_key_values.0.value"},
                                   .present = {"present.0.key", "present.0.value"}};
    const decoder_style *styles[] = {&optimum, &no_cache, &grouped};
    for (size_t k = 0; k < 3; k++) {
        generation g;
        int64_t first[NEW], again[NEW], other[4], wanted[NEW];
        const size_t five = 5, two = 2;
        ids_of(styles[k], NULL, 7, wanted);
        begin(&g, styles[k], NULL);
        prompt(&g, words, &five);
        next(&g, first, NEW, 1);
        assert_int_equal(prony_generator_rewind(g.generator, 7, &g.error), PRONY_OK);
        next(&g, again, NEW - 2, 1);
        for (size_t n = 0; n + 2 < NEW; n++) assert_int_equal(again[n], first[n + 2]);
        assert_int_equal(prony_generator_rewind(g.generator, 5, &g.error), PRONY_OK);
        prompt(&g, words + 5, &two);
        next(&g, again, NEW, 1);
        assert_memory_equal(again, wanted, sizeof wanted);
        assert_int_equal(prony_generator_rewind(g.generator, 0, &g.error), PRONY_OK);
        assert_int_equal(prony_generator_next(g.generator, other, NULL, &g.error), PRONY_INVALID_ARGUMENT);
        prompt(&g, words, &five);
        next(&g, again, NEW, 1);
        assert_memory_equal(again, first, sizeof first);
        assert_int_equal(prony_generator_rewind(g.generator, 99, &g.error), PRONY_OUT_OF_RANGE);
        end(&g);
    }
}

static void test_sampling(void **state)
{
    (void)state;
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    int64_t greedy[NEW], first[NEW], again[NEW];
    ids_of(&optimum, NULL, 5, greedy);
    options.sampling = (prony_sampling){.temperature = 2, .seed = 1};
    ids_of(&optimum, &options, 5, first);
    ids_of(&optimum, &options, 5, again);
    assert_memory_equal(first, again, sizeof first);
    options.sampling.seed = 2;
    ids_of(&optimum, &options, 5, again);
    assert_memory_not_equal(first, again, sizeof first);
    const prony_sampling narrow[] = {{.temperature = 2, .top_k = 1},
                                     {.temperature = 2, .top_p = 1e-6},
                                     {.temperature = 2, .min_p = 1},
                                     {.temperature = 1e-4}};
    for (size_t k = 0; k < 4; k++) {
        options.sampling = narrow[k];
        ids_of(&optimum, &options, 5, again);
        assert_memory_equal(again, greedy, sizeof greedy);
    }
    options.sampling = (prony_sampling){.repetition_penalty = 1e9};
    ids_of(&optimum, &options, 1, again); /* as long as other ids are there, none comes twice */
    for (size_t n = 0; n < NEW; n++)
        for (size_t b = 0; b < n; b++) assert_int_not_equal(again[n], again[b]);
}

/* A draw falls on each id as often as its probability says. */
static void test_sampled_frequencies(void **state)
{
    (void)state;
    enum { DRAWS = 4000 };
    generation g;
    const size_t count = 3;
    size_t scores;
    double sum = 0, shares[VOCABULARY] = {0};
    int64_t drawn[VOCABULARY] = {0}, id;
    begin(&g, &optimum, NULL);
    prompt(&g, words, &count);
    const float *logits = prony_generator_logits(g.generator, 0, &scores);
    float copy[VOCABULARY];
    memcpy(copy, logits, sizeof copy);
    for (size_t k = 0; k < scores; k++) sum += shares[k] = exp((double)copy[k] / 2);
    for (int n = 0; n < DRAWS; n++) {
        prony_sampling sampling = {.temperature = 2, .seed = (uint64_t)n * 77};
        assert_int_equal(prony_generator_set_sampling(g.generator, &sampling, &g.error), PRONY_OK);
        if (n) assert_int_equal(prony_generator_rewind(g.generator, 3, &g.error), PRONY_OK);
        next(&g, &id, 1, 1);
        drawn[id]++;
    }
    for (size_t k = 0; k < scores; k++) {
        const double wanted = shares[k] / sum, got = (double)drawn[k] / DRAWS;
        if (fabs(got - wanted) > 5 * sqrt(wanted / DRAWS))
            fail_msg("id %zu: %.4f of the draws, not %.4f", k, got, wanted);
    }
    end(&g);
}

static void test_ids_do_not_depend_on_threads(void **state)
{
    (void)state;
    int64_t ids[4][NEW];
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.sampling = (prony_sampling){.temperature = 1, .seed = 5};
    for (int threads = 1; threads <= 4; threads++) {
        generation g = {0};
        const size_t count = 8;
        load(&g, decoder(&optimum), threads);
        assert_int_equal(prony_generator_create(&g.generator, g.session, &options, &g.error), PRONY_OK);
        prompt(&g, words, &count);
        next(&g, ids[threads - 1], NEW, 1);
        assert_memory_equal(ids[threads - 1], ids[0], sizeof ids[0]);
        end(&g);
    }
}

static void test_stop_ids(void **state)
{
    (void)state;
    generation g;
    int64_t greedy[NEW], id = 0;
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    const size_t count = 5;
    bool done = false;
    ids_of(&optimum, NULL, count, greedy);
    options.stop_ids = &greedy[3];
    options.stop_count = 1;
    begin(&g, &optimum, &options);
    prompt(&g, words, &count);
    for (size_t n = 0; !done; n++) {
        assert_int_equal(prony_generator_next(g.generator, &id, &done, &g.error), PRONY_OK);
        assert_int_equal(id, greedy[n]);
        assert_true(n <= 3);
    }
    assert_int_equal(id, greedy[3]);
    assert_int_equal(prony_generator_next(g.generator, &id, &done, &g.error), PRONY_OK);
    assert_true(done && id == greedy[3]);
    end(&g);
}

/* ---- refusals ---- */

static void refused(const generation *g, prony_status got, prony_status wanted, const char *text)
{
    if (got != wanted || !strstr(g->error.message, text))
        fail_msg("status %d, not %d: '%s' without '%s'", (int)got, (int)wanted, g->error.message, text);
}

static void test_prompts_are_checked(void **state)
{
    (void)state;
    generation g;
    int64_t wrong[] = {3, VOCABULARY}, negative[] = {-1}, ids[POSITIONS], id;
    const size_t two = 2, one = 1, none = 0, many = POSITIONS + 1, five = 5;
    begin(&g, &optimum, NULL);
    for (size_t k = 0; k < POSITIONS; k++) ids[k] = 1;
    refused(&g, prony_generator_next(g.generator, &id, NULL, &g.error), PRONY_INVALID_ARGUMENT, "no prompt");
    refused(&g, prony_generator_prompt(g.generator, wrong, &two, &g.error), PRONY_OUT_OF_RANGE,
            "decoder.onnx: input 'input_ids': id 16 (sequence 0, position 1) is not in the vocabulary: 'table' has 16 "
            "rows");
    refused(&g, prony_generator_prompt(g.generator, negative, &one, &g.error), PRONY_OUT_OF_RANGE, "id -1");
    refused(&g, prony_generator_prompt(g.generator, ids, &none, &g.error), PRONY_INVALID_ARGUMENT,
            "sequence 0 is empty");
    int64_t long_prompt[POSITIONS + 1] = {0};
    refused(&g, prony_generator_prompt(g.generator, long_prompt, &many, &g.error), PRONY_OUT_OF_RANGE,
            "33 ids behind 0 tokens exceeds max_length 32");
    prompt(&g, words, &five);
    next(&g, ids, POSITIONS - 5, 1);
    refused(&g, prony_generator_next(g.generator, &id, NULL, &g.error), PRONY_OUT_OF_RANGE, "end of context: all 32");
    assert_int_equal(prony_generator_rewind(g.generator, 5, &g.error), PRONY_OK);
    int64_t again[NEW];
    next(&g, again, NEW, 1);
    assert_memory_equal(again, ids, sizeof again);
    end(&g);
}

static void create_refused(model_builder *m, const prony_generator_options *options, prony_status status,
                           const char *text)
{
    generation g = {0};
    load(&g, m, 1);
    refused(&g, prony_generator_create(&g.generator, g.session, options, &g.error), status, text);
    end(&g);
}

static void test_models_are_checked(void **state)
{
    (void)state;
    model_builder *m = mb_begin(17);
    mb_input(m, "image", PRONY_FLOAT32, "N,3,8,8");
    mb_node(m, "Relu", "image", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "N,3,8,8");
    create_refused(m, NULL, PRONY_INVALID_MODEL, "not a decoder: no input of token ids");
    m = mb_begin(17);
    mb_input(m, "input_ids", PRONY_INT64, "N,S");
    mb_node(m, "Neg", "input_ids", "y", "");
    mb_output(m, "y", PRONY_INT64, "N,S");
    create_refused(m, NULL, PRONY_INVALID_MODEL, "not a decoder: no output of logits");
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.max_length = POSITIONS + 1;
    create_refused(decoder(&optimum), &options, PRONY_OUT_OF_RANGE,
                   "max_length 33: the model has 32 positions (places)");
    options = (prony_generator_options)PRONY_GENERATOR_OPTIONS_INIT;
    options.position_ids = "nowhere";
    create_refused(decoder(&optimum), &options, PRONY_INVALID_ARGUMENT, "input 'nowhere' does not exist");
    options = (prony_generator_options)PRONY_GENERATOR_OPTIONS_INIT;
    options.caches = &(prony_cache_names){"x*", "y*"};
    options.cache_count = 1;
    create_refused(decoder(&optimum), &options, PRONY_INVALID_ARGUMENT, "no input and output match the cache 'x*=y*'");
    options = (prony_generator_options)PRONY_GENERATOR_OPTIONS_INIT;
    options.sampling.top_p = 2;
    create_refused(decoder(&optimum), &options, PRONY_INVALID_ARGUMENT, "top_p 2: wanted 0 to 1");
}

/* A cache that grows by two rows a token is found after the first run; the message names it. */
static void test_caches_of_a_wrong_shape(void **state)
{
    (void)state;
    generation g;
    decoder_style twice = optimum;
    const size_t count = 3;
    twice.cache = TWICE;
    twice.no_mask = true;
    begin(&g, &twice, NULL);
    refused(&g, prony_generator_prompt(g.generator, words, &count, &g.error), PRONY_SHAPE_MISMATCH,
            "cache output 'present.0.key' is float32[1, 2, 6, 4]; wanted float32[1, 2, 3, 4]");
    end(&g);
}

static void test_lengths_need_mask_and_positions(void **state)
{
    (void)state;
    decoder_style bare = optimum;
    bare.no_mask = bare.no_positions = true;
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.batch = 2;
    generation g;
    const size_t lengths[] = {3, 2}, same[] = {3, 3};
    int64_t ids[2 * NEW];
    begin(&g, &bare, &options);
    refused(&g, prony_generator_prompt(g.generator, words, lengths, &g.error), PRONY_UNSUPPORTED,
            "need inputs attention_mask and position_ids");
    prompt(&g, words, same);
    next(&g, ids, NEW, 2);
    end(&g);
}

/* What the generator does not feed is the caller's. */
static void test_other_inputs(void **state)
{
    (void)state;
    decoder_style with_states = optimum;
    with_states.encoder = true;
    generation g;
    const size_t count = 3;
    const float states[WIDTH] = {1, 2, 3};
    const prony_value value = {.dtype = PRONY_FLOAT32, .shape = {2, {1, WIDTH}}, .data = (void *)(uintptr_t)states};
    int64_t ids[NEW];
    begin(&g, &with_states, NULL);
    assert_null(prony_generator_unfed_input(g.generator, 0));
    assert_string_equal(prony_generator_unfed_input(g.generator, 3), "encoder_hidden_states");
    refused(&g, prony_generator_prompt(g.generator, words, &count, &g.error), PRONY_INVALID_ARGUMENT,
            "input 'encoder_hidden_states' is not set");
    assert_int_equal(prony_session_set_input(g.session, "encoder_hidden_states", &value, &g.error), PRONY_OK);
    prompt(&g, words, &count);
    next(&g, ids, NEW, 1);
    end(&g);
}

static void test_session_options(void **state)
{
    (void)state;
    generation g = {0};
    load(&g, decoder(&optimum), 1);
    prony_session_release(g.session);
    const prony_dim dim = {"past", 8};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.max_dims = &dim;
    options.max_dim_count = 1;
    assert_int_equal(prony_session_create(&g.session, g.model, &options, &g.error), PRONY_OK);
    refused(&g, prony_generator_create(&g.generator, g.session, NULL, &g.error), PRONY_INVALID_ARGUMENT,
            "the session has max_dims");
    end(&g);
}

/* Every allocation of a generator's life fails once: an error each time, and nothing leaks or breaks. */
static void test_faults(void **state)
{
    (void)state;
    int64_t wanted[NEW];
    ids_of(&optimum, NULL, 5, wanted);
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        generation g = {0};
        int64_t ids[3];
        const size_t count = 5;
        load(&g, decoder(&optimum), 1);
        prn_alloc_fail_at(n);
        prony_status status = prony_generator_create(&g.generator, g.session, NULL, &g.error);
        if (status == PRONY_OK) status = prony_generator_prompt(g.generator, words, &count, &g.error);
        for (size_t k = 0; k < 3 && status == PRONY_OK; k++)
            status = prony_generator_next(g.generator, &ids[k], NULL, &g.error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (!failed) assert_int_equal(status, PRONY_OK);
        if (status == PRONY_OK) assert_memory_equal(ids, wanted, sizeof ids);
        end(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conventions_give_the_ids_of_the_model_without_cache),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_copied_bytes),
        cmocka_unit_test(test_near_misses_of_appending),
        cmocka_unit_test(test_steps_bind_and_plan_once),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_rewind),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_sampled_frequencies),
        cmocka_unit_test(test_ids_do_not_depend_on_threads),
        cmocka_unit_test(test_stop_ids),
        cmocka_unit_test(test_prompts_are_checked),
        cmocka_unit_test(test_models_are_checked),
        cmocka_unit_test(test_caches_of_a_wrong_shape),
        cmocka_unit_test(test_lengths_need_mask_and_positions),
        cmocka_unit_test(test_other_inputs),
        cmocka_unit_test(test_session_options),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
