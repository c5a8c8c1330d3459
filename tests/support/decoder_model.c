#include "decoder_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const decoder_style decoder_no_cache = {.cache = NO_CACHE},
                    decoder_optimum = {.cache = TWO_TENSORS,
                                       .past = {"past_key_values.0.key", "past_key_values.0.value"},
                                       .present = {"present.0.key", "present.0.value"}},
                    decoder_packed = {.cache = PACKED, .past = {"past_0"}, .present = {"present_0"}},
                    decoder_grouped = {.cache = GROUPED,
                                       .past = {"past_key_values.0.key", "past_key_values.0.value"},
                                       .present = {"present.0.key", "present.0.value"}},
                    decoder_lengths = {
                        .cache = GROUPED_LENGTHS, .no_mask = true, .past = {"a", "b"}, .present = {"c", "d"}};

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
    mb_initializer(m, "bias_of_head", PRONY_FLOAT32, "1,16", (const float[VOCABULARY]){0.5f, 0.5f});
    number(m, "zero", "", 0);
    number(m, "one", "", 1);
    number(m, "two", "", 2);
    number(m, "first_axis", "1", 0);
    number(m, "second_axis", "1", 1);
    number(m, "third_axis", "1", 2);
    number(m, "end", "1", POSITIONS);
    mb_initializer(m, "mask_axes", PRONY_INT64, "2", (int64_t[]){1, 2});
    mb_initializer(m, "head_shape", PRONY_INT64, "4", (int64_t[]){0, 0, HEADS, HEAD});
    mb_initializer(m, "flat_shape", PRONY_INT64, "3", (int64_t[]){0, 0, WIDTH});
    scalar(m, "scale", 0.5f);
    scalar(m, "none", 0.0f);
    scalar(m, "least", -1e9f);
}

/* Rows first: new ones joined behind the past ones, or written into them by position. */
static void cached_rows_first(model_builder *m, const decoder_style *style, int which)
{
    const char name = "kv"[which];
    char fresh[8], turned[16], past[16], inputs[96], all[8];
    snprintf(fresh, sizeof fresh, "%c", name);
    snprintf(turned, sizeof turned, "%c_turned_rows", name);
    snprintf(all, sizeof all, "%c_all", name);
    mb_node(m, "Transpose", fresh, turned, "perm=[2,0,1,3]");
    if (style->cache == ROWS_FIRST) {
        snprintf(inputs, sizeof inputs, "%s %s", style->past[which], turned);
        mb_node(m, "Concat", inputs, style->present[which], "axis=0");
        mb_node(m, "Transpose", style->present[which], all, "perm=[1,2,0,3]");
        return;
    }
    snprintf(past, sizeof past, "%c_past_rows", name);
    mb_node(m, "Transpose", style->past[which], past, "perm=[2,0,1,3]");
    snprintf(inputs, sizeof inputs, "%s row_index %s", past, turned);
    snprintf(turned, sizeof turned, "%c_all_rows", name);
    mb_node(m, "ScatterND", inputs, turned, "");
    mb_node(m, "Transpose", turned, style->present[which], "perm=[1,2,0,3]");
    mb_node(m, "Identity", style->present[which], all, "");
}

/* "row_of_each": the positions of new rows in a cache of one length. */
static void written_rows(model_builder *m, const decoder_style *style)
{
    if (strcmp(style->written_dims, "1") == 0) {
        mb_node(m, "Shape", style->ids, "written_shape", "");
        mb_node(m, "Gather", "written_shape one", "written_count", "");
        mb_node(m, "Range", "zero written_count one", "written_range", "");
        char inputs[64];
        snprintf(inputs, sizeof inputs, "written_range %s", style->written);
        mb_node(m, "Add", inputs, "row_of_each", "");
    } else {
        mb_node(m, "Identity", style->written, "row_of_each", "");
    }
    mb_node(m, "Unsqueeze", "row_of_each second_axis", "row_index", "");
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
    } else if (style->cache == NEW_ROWS) {
        snprintf(inputs, sizeof inputs, "%s %s", style->past[which], fresh);
        mb_node(m, "Concat", inputs, all, "axis=2");
        mb_node(m, "Identity", fresh, style->present[which], "");
    } else if (style->cache == ROLLED) {
        snprintf(inputs, sizeof inputs, "%s %s", style->past[which], fresh);
        mb_node(m, "Concat", inputs, all, "axis=2");
        snprintf(inputs, sizeof inputs, "%s second_axis end third_axis", all);
        mb_node(m, "Slice", inputs, style->present[which], "");
    } else if (style->cache == ROWS_FIRST || style->cache == WRITTEN) {
        cached_rows_first(m, style, which);
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
    if (style->cache == WRITTEN) written_rows(m, style);
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
    mb_node(m, "Shape", style->ids, "ids_shape", "");
    mb_node(m, "Gather", "ids_shape one", "rows", "");
    mb_node(m, "Sub", "total rows", "first", "");
    if (style->cache == WRITTEN)
        mb_node(m, "Identity", "row_of_each", "mine_flat", "");
    else
        mb_node(m, "Range", "first total one", "mine_flat", "");
    mb_node(m, "Unsqueeze", "mine_flat second_axis", "mine", "");
    mb_node(m, "Range", "zero total one", "everything", "");
    mb_node(m, "Greater", "everything mine", "future", "");
    mb_node(m, "Where", "future least none", style->no_mask ? "bias" : "causal", "");
    if (style->wide_mask == PRONY_FLOAT32) {
        mb_node(m, "Identity", style->mask, "bias", "");
    } else if (style->wide_mask) {
        char wide[64];
        snprintf(wide, sizeof wide, "%s none least", style->mask);
        mb_node(m, "Where", wide, "bias", "");
    } else if (!style->no_mask) {
        char narrow[64];
        snprintf(narrow, sizeof narrow, "%s mask_axes", style->mask);
        mb_node(m, "Unsqueeze", narrow, "seen", "");
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
        snprintf(inputs, sizeof inputs, "%s second_axis", style->mask);
        mb_node(m, "ReduceSum", inputs, "seen", "keepdims=0");
        mb_node(m, "Sub", "seen one", "last", "");
        mb_node(m, "Cast", "last", "lengths", "to=6");
        mb_node(m, "Shape", style->mask, "mask_shape", "");
        mb_node(m, "Gather", "mask_shape one", "total_wide", "");
        mb_node(m, "Cast", "total_wide", "total", "to=6");
    }
    snprintf(inputs, sizeof inputs, "q k v %s %s %s %s", style->past[0], style->past[1],
             lengths ? style->lengths : "lengths", lengths ? style->total : "total");
    snprintf(outputs, sizeof outputs, "joined %s %s", style->present[0], style->present[1]);
    mb_node(m, "com.microsoft::GroupQueryAttention", inputs, outputs, "num_heads=2 kv_num_heads=2 scale=0.5");
}

/* Nodes that give the same greedy ids, and that a product of the last row alone allows ("bias") or not. */
static void decoder_tail(model_builder *m, const char *tail)
{
    if (strcmp(tail, "bias") == 0) {
        mb_node(m, "Add", "product bias_of_head", "shifted", "");
        mb_node(m, "Mul", "scale shifted", "logits", "");
    } else if (strcmp(tail, "reader") == 0) {
        mb_node(m, "Identity", "product", "logits", "");
        mb_node(m, "Relu", "product", "positive", "");
        mb_output(m, "positive", PRONY_FLOAT32, "batch,rows,16");
    } else {
        mb_node(m, "ReduceMean", "product", "mean", "axes=[1,2]");
        mb_node(m, "Sub", "product mean", "logits", "");
    }
}

/* A branch of a merged decoder: attention and logits, with the cache or without. */
static void decoder_branch(model_builder *m, const decoder_style *style, const char *name, bool cache)
{
    decoder_style inner = *style;
    inner.cache = cache ? style->cache : NO_CACHE;
    inner.present[0] = "branch_k";
    inner.present[1] = "branch_v";
    mb_graph_begin(m, name);
    attend(m, &inner);
    mb_node(m, "MatMul", "joined wo", "projected", "");
    mb_node(m, "Add", "x projected", "sum", "");
    mb_node(m, "MatMul", "sum head", "branch_logits", "");
    mb_output(m, "branch_logits", PRONY_FLOAT32, "batch,rows,16");
    mb_output(m, cache ? "branch_k" : "k_all", PRONY_FLOAT32, "batch,2,now,4");
    mb_output(m, cache ? "branch_v" : "v_all", PRONY_FLOAT32, "batch,2,now,4");
    mb_graph_end(m);
}

/* Dimensions of a cache: its input's, or its output's. */
static const char *cache_dims(cache_style cache, bool output)
{
    switch (cache) {
    case PACKED:
        return output ? "2,batch,2,now,4" : "2,batch,2,past,4";
    case WRITTEN:
        return "batch,2,32,4";
    case ROLLED:
        return "batch,2,31,4";
    case NEW_ROWS:
        return output ? "batch,2,rows,4" : "batch,2,past,4";
    case ROWS_FIRST:
        return output ? "now,batch,2,4" : "past,batch,2,4";
    default:
        return output ? "batch,2,now,4" : "batch,2,past,4";
    }
}

static decoder_style with_names(const decoder_style *given)
{
    decoder_style s = *given;
    if (!s.ids) s.ids = "input_ids";
    if (!s.mask) s.mask = "attention_mask";
    if (!s.positions) s.positions = "position_ids";
    if (!s.lengths) s.lengths = "seqlens_k";
    if (!s.total) s.total = "total_sequence_length";
    if (!s.ids_dims) s.ids_dims = "batch,rows";
    if (!s.mask_dims) s.mask_dims = s.wide_mask ? "batch,1,rows,total" : "batch,total";
    return s;
}

model_builder *decoder_model(const decoder_style *given)
{
    model_builder *m = mb_begin(17);
    decoder_style named = with_names(given);
    const decoder_style *style = &named;
    const bool grouped = style->cache == GROUPED || style->cache == GROUPED_LENGTHS;
    const char *ids = style->ids;
    char inputs[64];
    mb_opset(m, "com.microsoft", 1);
    mb_input(m, ids, PRONY_INT64, style->ids_dims);
    if (!style->no_mask) mb_input(m, style->mask, style->wide_mask ? style->wide_mask : PRONY_INT64, style->mask_dims);
    if (!style->no_positions) mb_input(m, style->positions, PRONY_INT64, style->ids_dims);
    if (style->written) mb_input(m, style->written, PRONY_INT64, style->written_dims);
    if (style->first_output) mb_output(m, style->first_output, PRONY_FLOAT32, "batch,rows,8");
    if (style->use_cache || style->merged) mb_input(m, "use_cache_branch", PRONY_BOOL, "1");
    if (style->encoder) mb_input(m, "encoder_hidden_states", PRONY_FLOAT32, "batch,8");
    if (style->cache == GROUPED_LENGTHS) {
        mb_input(m, style->lengths, PRONY_INT32, "batch");
        mb_input(m, style->total, PRONY_INT32, "");
    }
    for (int k = 0; k < 2 && style->past[k]; k++) {
        mb_input(m, style->past[k], PRONY_FLOAT32, style->unnamed ? "?,?,2,4" : cache_dims(style->cache, false));
        mb_output(m, style->present[k], PRONY_FLOAT32, style->unnamed ? "?,?,2,4" : cache_dims(style->cache, true));
    }
    constants(m);
    if (!strchr(style->ids_dims, ',')) { /* of one sequence */
        snprintf(inputs, sizeof inputs, "%s first_axis", ids);
        mb_node(m, "Unsqueeze", inputs, "ids_of_batch", "");
        named.ids = ids = "ids_of_batch";
    }
    snprintf(inputs, sizeof inputs, "table %s", ids);
    mb_node(m, "Gather", inputs, style->no_positions ? "x" : "tokens", "");
    if (!style->no_positions) {
        snprintf(inputs, sizeof inputs, "places %s", style->positions);
        mb_node(m, "Gather", inputs, "placed", "");
        mb_node(m, "Add", "tokens placed", "x", "");
    }
    if (style->merged) {
        char outputs[96];
        snprintf(outputs, sizeof outputs, "logits %s %s", style->present[0], style->present[1]);
        mb_node(m, "If", "use_cache_branch", outputs, "");
        decoder_branch(m, style, "then_branch", true);
        decoder_branch(m, style, "else_branch", false);
        mb_output(m, "logits", PRONY_FLOAT32, "batch,rows,16");
        return m;
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
    if (style->first_output) mb_node(m, "Identity", "sum", style->first_output, "");
    if (style->encoder) {
        mb_node(m, "Unsqueeze", "encoder_hidden_states second_axis", "states", "");
        mb_node(m, "Add", "sum states", "with_states", "");
    }
    mb_node(m, "MatMul", style->encoder ? "with_states head" : "sum head",
            style->use_cache ? "plain_logits"
            : style->tail    ? "product"
                             : "logits",
            "");
    if (style->tail) decoder_tail(m, style->tail);
    if (style->use_cache) {
        mb_node(m, "Cast", "use_cache_branch", "flag", "to=1");
        mb_node(m, "Mul", "flag none", "nothing", "");
        mb_node(m, "Add", "plain_logits nothing", "logits", "");
    }
    mb_output(m, "logits", PRONY_FLOAT32, "batch,rows,16");
    return m;
}

/* ---- a generator of a model ---- */

void generation_load(generation *g, model_builder *m, int threads)
{
    generation_load_on(g, NULL, m, threads);
}

void generation_load_on(generation *g, const char *device, model_builder *m, int threads)
{
    size_t size;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = threads;
    options.device = device;
    g->builder = m;
    const void *bytes = mb_finish(m, &size);
    if (prony_model_load_memory(&g->model, "decoder.onnx", bytes, size, NULL, &g->error) != PRONY_OK ||
        prony_session_create(&g->session, g->model, &options, &g->error) != PRONY_OK)
        fail_msg("%s", g->error.message);
}

void generation_begin(generation *g, const decoder_style *style, const prony_generator_options *options)
{
    generation_begin_on(g, NULL, style, options);
}

void generation_begin_on(generation *g, const char *device, const decoder_style *style,
                         const prony_generator_options *options)
{
    *g = (generation){0};
    generation_load_on(g, device, decoder_model(style), 1);
    if (prony_generator_create(&g->generator, g->session, options, &g->error) != PRONY_OK)
        fail_msg("%s", g->error.message);
}

void generation_end(generation *g)
{
    prony_generator_release(g->generator);
    prony_session_release(g->session);
    prony_model_release(g->model);
    mb_free(g->builder);
}

void generation_prompt(generation *g, const int64_t *ids, const size_t *lengths)
{
    if (prony_generator_prompt(g->generator, ids, lengths, &g->error) != PRONY_OK) fail_msg("%s", g->error.message);
}

void generation_next(generation *g, int64_t *ids, size_t count, size_t batch)
{
    for (size_t k = 0; k < count; k++)
        if (prony_generator_next(g->generator, ids + k * batch, NULL, &g->error) != PRONY_OK)
            fail_msg("%s", g->error.message);
}

const int64_t decoder_words[8] = {3, 1, 4, 1, 5, 9, 2, 6};

void generation_ids(const decoder_style *style, const prony_generator_options *options, size_t count, int64_t out[NEW])
{
    generation g;
    generation_begin(&g, style, options);
    generation_prompt(&g, decoder_words, &count);
    generation_next(&g, out, NEW, 1);
    generation_end(&g);
}
