/* Operators that compose strings: StringNormalizer, StringConcat, StringSplit; and RegexFullMatch, which reads them.
 *
 * An element is a prony_string whose bytes have an owner that outlives the run's values: the model, the session's
 * inputs, or the text that operators take from the host for what they compose. Elements that stay as they are, and
 * parts of them, share their bytes. */
#define _GNU_SOURCE
#include "base/threads/cancel.h"
#include "ops/kernels/subgraph.h"
#include "ops/text/regex.h"
#include "ops/text/text_case.h"

#include <string.h>

#define STRING_TYPE PRN_TYPE(PRONY_STRING)

static const prony_string empty_string = {"", 0};

static bool same_string(prony_string a, prony_string b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* ---- StringNormalizer ---- */

typedef struct normalizer_params {
    const char *case_change_action, *locale;
    int64_t is_case_sensitive;
} normalizer_params;

static const prn_param normalizer_attributes[] = {PRN_STRING(normalizer_params, case_change_action, "NONE"),
                                                  PRN_STRING(normalizer_params, locale, NULL),
                                                  PRN_INT(normalizer_params, is_case_sensitive, 0),
                                                  {0}};

typedef struct normalizer {
    const prony_string *words;
    size_t count;
    prn_case change;
    bool sensitive;
} normalizer;

static prony_status read_normalizer(const prony_context *context, normalizer *n)
{
    static const char *const names[] = {"NONE", "LOWER", "UPPER"};
    const normalizer_params *params = context->params;
    const prn_attr *attr = prn_attr_find(context->node->attributes, "stopwords");
    *n = (normalizer){.sensitive = params->is_case_sensitive != 0};
    int k = 0;
    while (k < 3 && strcmp(params->case_change_action, names[k]) != 0) k++;
    if (k == 3)
        return prony_fail(context, PRONY_INVALID_MODEL, "case_change_action is '%s'", params->case_change_action);
    n->change = (prn_case)k;
    if (!attr || attr->count == 0) return PRONY_OK;
    if (attr->type != PRN_ATTR_STRINGS)
        return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'stopwords' is not a list of strings");
    n->words = attr->strings;
    n->count = attr->count;
    return PRONY_OK;
}

static prony_status normalizer_check(const prony_context *context)
{
    normalizer n;
    return read_normalizer(context, &n);
}

static prony_status normalizer_infer(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    normalizer n;
    PRN_TRY(read_normalizer(context, &n));
    PRN_TRY(prn_check_type(context, 0, STRING_TYPE));
    PRN_TRY(prn_check_rank(context, 0, 1, 2));
    if (in->shape.rank == 2 && in->shape.dim[0] != 1) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "the first of two axes has %lld entries, wanted 1",
                          (long long)in->shape.dim[0]);
    }
    prony_shape shape = in->shape;
    if (n.count > 0) shape = prn_shape_unknown();
    if (shape.rank > 0 && shape.dim[shape.rank - 1] == 0) shape.dim[shape.rank - 1] = 1;
    prn_set_output(context, 0, PRONY_STRING, &shape);
    return PRONY_OK;
}

static bool is_stop_word(const normalizer *n, const prn_case_table *table, prony_string text)
{
    for (size_t k = 0; k < n->count; k++)
        if (n->sensitive ? same_string(n->words[k], text) : prn_case_same(table, n->words[k], text)) return true;
    return false;
}

static prony_status normalizer_prepare(const prony_context *context, prn_prepared *out)
{
    out->state = prn_case_table_open(((const normalizer_params *)context->params)->locale);
    return out->state ? PRONY_OK : prn_no_memory(context->error);
}

static void normalizer_release(void *state)
{
    prn_case_table_close(state);
}

/* Two passes: the first counts kept strings and bytes, the second writes them into one block of text. */
static prony_status normalizer_run(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prony_value *out = context->outputs[0];
    const prn_case_table *table = context->state;
    const prony_string *from = in->data;
    int64_t count = prony_shape_numel(&in->shape), kept = 0;
    size_t bytes = 0;
    normalizer n;
    char *text = NULL;
    PRN_TRY(read_normalizer(context, &n));
    for (int64_t i = 0; i < count && !prn_cancelled(); i++) {
        if (is_stop_word(&n, table, from[i])) continue;
        kept++;
        if (n.change != PRN_CASE_AS_IS) bytes += prn_case_change(table, from[i], n.change, NULL);
    }
    if (prn_cancelled()) return PRONY_OK; /* the sums may not be whole */
    if (!out->data) {
        out->shape = in->shape;
        out->shape.dim[in->shape.rank - 1] = kept ? kept : 1;
        PRN_TRY(context->services->output_alloc(context, 0));
    }
    if (bytes) PRN_TRY(context->services->text_take(context, bytes, &text));
    prony_string *to = out->data;
    if (kept == 0) *to = empty_string; /* nothing left is one empty string */
    for (int64_t i = 0; i < count && !prn_cancelled(); i++) {
        if (is_stop_word(&n, table, from[i])) continue;
        *to = from[i];
        if (n.change != PRN_CASE_AS_IS && from[i].size) {
            *to = (prony_string){text, prn_case_change(table, from[i], n.change, text)};
            text += to->size;
        }
        to++;
    }
    return PRONY_OK;
}

/* ---- StringConcat ---- */

static prony_status strings_concat_infer(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, STRING_TYPE));
    return prn_infer_broadcast(context);
}

/* Element i of the output comes from element *a of input 0 and *b of input 1. */
static void strings_operands_of(const prony_value *out, const int64_t *a_stride, const int64_t *b_stride, int64_t i,
                                int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int d = out->shape.rank; d-- > 0; i /= out->shape.dim[d]) {
        *a += i % out->shape.dim[d] * a_stride[d];
        *b += i % out->shape.dim[d] * b_stride[d];
    }
}

/* Two passes: the first sums bytes, the second writes every pair into one block of text. */
static prony_status strings_concat_run(const prony_context *context)
{
    const prony_value *left = context->inputs[0], *right = context->inputs[1], *out = context->outputs[0];
    const prony_string *x = left->data, *y = right->data;
    int64_t x_stride[PRONY_MAX_RANK], y_stride[PRONY_MAX_RANK], count = prony_shape_numel(&out->shape), a, b;
    prony_string *to = out->data;
    size_t bytes = 0;
    char *text = NULL;
    prn_shape_broadcast_strides(&left->shape, &out->shape, x_stride);
    prn_shape_broadcast_strides(&right->shape, &out->shape, y_stride);
    for (int64_t i = 0; i < count && !prn_cancelled_at(i); i++) {
        strings_operands_of(out, x_stride, y_stride, i, &a, &b);
        bytes += x[a].size + y[b].size;
    }
    if (prn_cancelled()) return PRONY_OK; /* the sum may not be whole */
    if (bytes) PRN_TRY(context->services->text_take(context, bytes, &text));
    for (int64_t i = 0; i < count && !prn_cancelled(); i++) {
        strings_operands_of(out, x_stride, y_stride, i, &a, &b);
        to[i] = (prony_string){text ? text : "", x[a].size + y[b].size};
        if (x[a].size) prn_cancellable_copy(text, x[a].data, x[a].size);
        if (y[b].size) prn_cancellable_copy(text + x[a].size, y[b].data, y[b].size);
        if (text) text += to[i].size;
    }
    return PRONY_OK;
}

/* ---- StringSplit ---- */

typedef struct split_params {
    const char *delimiter;
    int64_t maxsplit;
} split_params;

static const prn_param split_attributes[] = {
    PRN_STRING(split_params, delimiter, ""), PRN_INT(split_params, maxsplit, PRN_ABSENT), {0}};

/* Walks through a string's parts. */
typedef struct splitter {
    prony_string delimiter; /* empty: runs of white space */
    int64_t left;           /* splits that are still allowed */
    prony_string rest;
    bool done;
} splitter;

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
}

static splitter split_start(const prony_context *context, prony_string text)
{
    const split_params *params = context->params;
    const prn_attr *attr = prn_attr_find(context->node->attributes, "delimiter");
    int64_t most = params->maxsplit == PRN_ABSENT || params->maxsplit < 0 ? INT64_MAX : params->maxsplit;
    return (splitter){.delimiter = attr ? attr->s : empty_string, .left = most, .rest = text};
}

static void strings_skip(splitter *s, size_t bytes)
{
    s->rest.data += bytes;
    s->rest.size -= bytes;
}

static size_t find_delimiter(const splitter *s)
{
    const char *found = memmem(s->rest.data, s->rest.size, s->delimiter.data, s->delimiter.size);
    return found ? (size_t)(found - s->rest.data) : s->rest.size;
}

/* The next part; false behind the last. */
static bool split_next(splitter *s, prony_string *part)
{
    if (s->done) return false;
    bool spaces = s->delimiter.size == 0;
    size_t end = 0;
    while (spaces && s->rest.size && is_space(*s->rest.data)) strings_skip(s, 1);
    if (spaces && s->rest.size == 0) return false;
    if (s->left-- <= 0) {
        end = s->rest.size;
    } else if (spaces) {
        while (end < s->rest.size && !is_space(s->rest.data[end])) end++;
    } else {
        end = find_delimiter(s);
    }
    *part = (prony_string){s->rest.data, end};
    s->done = end == s->rest.size;
    if (!s->done) strings_skip(s, end + s->delimiter.size);
    return true;
}

static prony_status strings_split_infer(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prony_shape parts = prn_shape_unknown();
    PRN_TRY(prn_check_type(context, 0, STRING_TYPE));
    PRN_TRY(prn_check_rank(context, 0, 0, PRONY_MAX_RANK - 1));
    if (prony_shape_numel(&in->shape) == 0) {
        parts = in->shape;
        (void)prn_shape_insert(&parts, parts.rank, 0);
    }
    prn_set_output(context, 0, PRONY_STRING, &parts);
    prn_set_output(context, 1, PRONY_INT64, &in->shape);
    return PRONY_OK;
}

/* Two passes: the first counts parts, whose largest number is the new axis, the second writes views of the input's
 * text, padded with empty strings. */
static prony_status strings_split_run(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    const prony_string *from = in->data;
    prony_value *out = prn_output(context, 0), *counts = prn_output(context, 1);
    int64_t count = prony_shape_numel(&in->shape), most = 0;
    prony_string part;
    for (int64_t i = 0; i < count && !prn_cancelled(); i++) {
        int64_t parts = 0;
        for (splitter s = split_start(context, from[i]); split_next(&s, &part) && !prn_cancelled_at(parts);) parts++;
        if (counts) ((int64_t *)counts->data)[i] = parts;
        if (parts > most) most = parts;
    }
    if (!out || prn_cancelled()) return PRONY_OK;
    if (!out->data) {
        out->shape = in->shape;
        (void)prn_shape_insert(&out->shape, out->shape.rank, most);
        PRN_TRY(context->services->output_alloc(context, 0));
    }
    prony_string *to = out->data;
    for (int64_t i = 0; i < count && !prn_cancelled(); i++) {
        splitter s = split_start(context, from[i]);
        for (int64_t k = 0; k < most; k++, to++) *to = split_next(&s, &part) ? part : empty_string;
    }
    return PRONY_OK;
}

/* ---- RegexFullMatch ---- */

static prony_status compile(const prony_context *context, prn_regex **out)
{
    const prn_attr *attr = prn_attr_find(context->node->attributes, "pattern");
    if (!attr || attr->type != PRN_ATTR_STRING) {
        return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'pattern' is missing");
    }
    prony_error error = {0};
    prony_status status = prn_regex_compile(out, attr->s.data, attr->s.size, &error);
    return status == PRONY_OK ? PRONY_OK : prony_fail(context, status, "%s", error.message);
}

static prony_status match_check(const prony_context *context)
{
    prn_regex *regex;
    PRN_TRY(compile(context, &regex));
    prn_regex_release(regex);
    return PRONY_OK;
}

static prony_status match_infer(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, STRING_TYPE));
    prn_set_output(context, 0, PRONY_BOOL, &context->inputs[0]->shape);
    return PRONY_OK;
}

static prony_status match_prepare(const prony_context *context, prn_prepared *out)
{
    prn_regex *regex;
    PRN_TRY(compile(context, &regex));
    out->state = regex;
    out->scratch_bytes = prn_regex_scratch(regex);
    return PRONY_OK;
}

static void match_release(void *state)
{
    prn_regex_release(state);
}

static prony_status match_run(const prony_context *context)
{
    const prony_string *from = context->inputs[0]->data;
    uint8_t *to = context->outputs[0]->data;
    for (int64_t i = 0; i < prony_shape_numel(&context->inputs[0]->shape) && !prn_cancelled(); i++)
        to[i] = prn_regex_matches(context->state, from[i].data, from[i].size, context->scratch);
    return PRONY_OK;
}

/* ---- rows ---- */

static const prn_kernel string_normalizer_kernels[] = {{.name = "string_normalizer_reference",
                                                        .backend = "reference",
                                                        .prepare = normalizer_prepare,
                                                        .run = normalizer_run,
                                                        .release = normalizer_release},
                                                       {0}};
static const prn_kernel string_concat_kernels[] = {
    {.name = "string_concat_reference", .backend = "reference", .run = strings_concat_run}, {0}};
static const prn_kernel string_split_kernels[] = {
    {.name = "string_split_reference", .backend = "reference", .run = strings_split_run}, {0}};
static const prn_kernel regex_full_match_kernels[] = {{.name = "regex_full_match_reference",
                                                       .backend = "reference",
                                                       .prepare = match_prepare,
                                                       .run = match_run,
                                                       .release = match_release},
                                                      {0}};

// clang-format off
const prn_op prn_ops_strings[] = {
    {.name = "StringNormalizer", .since_opset = 10, .inputs = {1, 1}, .flags = PRN_OP_DATA_SHAPE,
     .params = normalizer_attributes, .params_bytes = sizeof(normalizer_params), .check = normalizer_check,
     .infer = normalizer_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = string_normalizer_kernels},
    {.name = "StringConcat", .since_opset = 20, .inputs = {2, 2},
     .infer = strings_concat_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = string_concat_kernels},
    {.name = "StringSplit", .since_opset = 20, .inputs = {1, 1}, .outputs = {1, 2}, .flags = PRN_OP_DATA_SHAPE,
     .params = split_attributes, .params_bytes = sizeof(split_params),
     .infer = strings_split_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = string_split_kernels},
    {.name = "RegexFullMatch", .since_opset = 20, .inputs = {1, 1},
     .check = match_check,
     .infer = match_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = regex_full_match_kernels},
    {0}};
// clang-format on
