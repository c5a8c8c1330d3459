/* Keys and values: LabelEncoder, CategoryMapper, OneHotEncoder, ArrayFeatureExtractor, ZipMap, DictVectorizer.
 *
 * The list of keys is sorted once, when the plan is made (the kernel's state); a lookup is a binary search. Of equal
 * keys the first counts. Strings are passed on by reference: they belong to the model, or to the input's owner. */
#include "ops/ml/ml.h"

#include "base/memory/alloc.h"
#include "base/threads/cancel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/number.h"

#include <stdlib.h>

typedef struct map_params {
    prn_ints keys_int64s, values_int64s, cats_int64s;
    prn_floats keys_floats, values_floats;
    const prony_value *keys_tensor, *values_tensor, *default_tensor;
    int64_t default_int64, zeros;
    float default_float;
    const char *default_string;
} map_params;

/* ---- lookup */

typedef struct entry {
    union {
        prony_string s;
        int64_t i;
        double f;
    };
    int64_t index;
} entry;

typedef struct lookup {
    prony_dtype dtype;
    int64_t count;
    entry entries[];
} lookup;

static int ml_map_compare_strings(const entry *a, const entry *b)
{
    const size_t shorter = a->s.size < b->s.size ? a->s.size : b->s.size;
    const int order = shorter ? memcmp(a->s.data, b->s.data, shorter) : 0;
    return order ? order : (a->s.size > b->s.size) - (a->s.size < b->s.size);
}

/* NaN equals NaN and is above everything. */
static int compare_floats(const entry *a, const entry *b)
{
    if (isnan(a->f) || isnan(b->f)) return (isnan(a->f) != 0) - (isnan(b->f) != 0);
    return (a->f > b->f) - (a->f < b->f);
}

static int compare_keys(prony_dtype dtype, const entry *a, const entry *b)
{
    if (dtype == PRONY_STRING) return ml_map_compare_strings(a, b);
    if (prn_dtype_is_float(dtype)) return compare_floats(a, b);
    return (a->i > b->i) - (a->i < b->i);
}

#define ORDER(name, dtype)                                                                                             \
    static int order_##name(const void *left, const void *right)                                                       \
    {                                                                                                                  \
        const entry *a = left, *b = right;                                                                             \
        const int order = compare_keys(dtype, a, b);                                                                   \
        return order ? order : (a->index > b->index) - (a->index < b->index);                                          \
    }
ORDER(strings, PRONY_STRING)
ORDER(floats, PRONY_FLOAT64)
ORDER(integers, PRONY_INT64)

static entry entry_at(const prony_value *list, int64_t i)
{
    entry out = {.index = i};
    if (list->dtype == PRONY_STRING)
        out.s = ((const prony_string *)list->data)[i];
    else if (prn_dtype_is_float(list->dtype))
        out.f = prn_get_f64(list->data, list->dtype, i);
    else
        out.i = prn_get_i64(list->data, list->dtype, i);
    return out;
}

static prony_status lookup_prepare(const prony_context *context, const prony_value *keys, prn_prepared *out)
{
    const int64_t count = prn_ml_count(keys);
    lookup *made = prn_calloc(1, sizeof *made + (size_t)count * sizeof *made->entries);
    if (!made) return prn_no_memory(context->error);
    made->dtype = keys->dtype;
    made->count = count;
    for (int64_t i = 0; i < count; i++) made->entries[i] = entry_at(keys, i);
    qsort(made->entries, (size_t)count, sizeof *made->entries,
          keys->dtype == PRONY_STRING ? order_strings
                                      : (prn_dtype_is_float(keys->dtype) ? order_floats : order_integers));
    out->state = made;
    return PRONY_OK;
}

/* Index in the list of keys; -1: not there. */
static int64_t ml_map_look_up(const lookup *in, const entry *key)
{
    int64_t low = 0, high = in->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (compare_keys(in->dtype, &in->entries[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < in->count && compare_keys(in->dtype, &in->entries[low], key) == 0 ? in->entries[low].index : -1;
}

/* ---- LabelEncoder, CategoryMapper: y = values[index of x in keys], or a default */

typedef struct mapping {
    prony_value keys, values, fallback; /* keys or values without a type: the index itself */
    prony_string text;                  /* of a fallback that is a string */
} mapping;

static prony_value one(prony_dtype dtype, const void *data)
{
    return (prony_value){.dtype = dtype, .shape = {1, {1}}, .data = (void *)(uintptr_t)data};
}

static void set_fallback(const map_params *params, mapping *map)
{
    map->text = (prony_string){params->default_string, strlen(params->default_string)};
    map->fallback = map->values.dtype == PRONY_STRING    ? one(PRONY_STRING, &map->text)
                    : map->values.dtype == PRONY_FLOAT32 ? one(PRONY_FLOAT32, &params->default_float)
                                                         : one(PRONY_INT64, &params->default_int64);
    if (params->default_tensor) map->fallback = *params->default_tensor;
}

static prony_status pick_list(const prony_context *context, const prony_value *tensor, const prn_ints *ints,
                              const prn_floats *floats, const char *strings, prony_value *out)
{
    if (tensor) {
        *out = *tensor;
        return PRONY_OK;
    }
    PRN_TRY(prn_ml_strings(context, strings, out));
    if (out->dtype == PRONY_UNDEFINED) *out = prn_ml_ints(ints);
    if (out->dtype == PRONY_UNDEFINED) *out = prn_ml_floats(floats);
    return PRONY_OK;
}

static prony_status read_encoder(const prony_context *context, mapping *map)
{
    const map_params *params = context->params;
    PRN_TRY(pick_list(context, params->keys_tensor, &params->keys_int64s, &params->keys_floats, "keys_strings",
                      &map->keys));
    PRN_TRY(pick_list(context, params->values_tensor, &params->values_int64s, &params->values_floats, "values_strings",
                      &map->values));
    set_fallback(params, map);
    return prn_ml_check_count(context, "the list of values", prn_ml_count(&map->values), prn_ml_count(&map->keys));
}

/* One list of strings: to its indices, or from them. */
static prony_status ml_map_read_classes(const prony_context *context, mapping *map)
{
    const bool from_strings = context->inputs[0]->dtype == PRONY_STRING;
    *map = (mapping){0};
    PRN_TRY(prn_ml_strings(context, "classes_strings", from_strings ? &map->keys : &map->values));
    set_fallback(context->params, map);
    return PRONY_OK;
}

static prony_status read_categories(const prony_context *context, mapping *map)
{
    const map_params *params = context->params;
    const bool from_strings = context->inputs[0]->dtype == PRONY_STRING;
    const prony_value ints = prn_ml_ints(&params->cats_int64s);
    prony_value strings;
    PRN_TRY(prn_ml_strings(context, "cats_strings", &strings));
    map->keys = from_strings ? strings : ints;
    map->values = from_strings ? ints : strings;
    set_fallback(params, map);
    return prn_ml_check_count(context, "cats_int64s", prn_ml_count(&ints), prn_ml_count(&strings));
}

/* A row's variant: how its node is read. */
typedef struct mapping_kind {
    prony_status (*read)(const prony_context *context, mapping *map);
} mapping_kind;

static prony_status ml_map_read_node(const prony_context *context, mapping *out)
{
    return ((const mapping_kind *)prn_variant(context))->read(context, out);
}

static prony_dtype type_or_index(const prony_value *list)
{
    return list->dtype == PRONY_UNDEFINED ? PRONY_INT64 : list->dtype;
}

static bool can_be_key(prony_dtype dtype)
{
    return dtype == PRONY_STRING || (prn_dtype_is_number(dtype) && dtype != PRONY_BOOL);
}

static prony_status infer_mapping(const prony_context *context)
{
    mapping map;
    PRN_TRY(ml_map_read_node(context, &map));
    const prony_dtype key = type_or_index(&map.keys), value = type_or_index(&map.values);
    if (!can_be_key(key) || prn_copy_width(value) == 0)
        return prony_fail(context, PRONY_UNSUPPORTED, "keys of %s, values of %s", prony_dtype_name(key),
                          prony_dtype_name(value));
    if (map.fallback.dtype != value || prn_ml_count(&map.fallback) != 1)
        return prony_fail(context, PRONY_INVALID_MODEL, "the default is not a single element of the values' type %s",
                          prony_dtype_name(value));
    PRN_TRY(prn_check_type(context, 0, PRN_TYPE(key)));
    prn_set_output(context, 0, value, &context->inputs[0]->shape);
    return PRONY_OK;
}

typedef struct mapping_job {
    const prony_context *context;
    const mapping *map;
} mapping_job;

static void ml_map_range(void *argument, int64_t begin, int64_t end)
{
    const mapping_job *job = argument;
    const prony_value *x = job->context->inputs[0], *y = job->context->outputs[0], *values = &job->map->values;
    for (int64_t i = begin; i < end; i++) {
        const entry key = entry_at(x, i);
        int64_t index;
        if (job->map->keys.dtype != PRONY_UNDEFINED)
            index = ml_map_look_up(job->context->state, &key);
        else
            index = key.i >= 0 && key.i < prn_ml_count(values) ? key.i : -1;
        if (index >= 0 && values->dtype == PRONY_UNDEFINED)
            ((int64_t *)y->data)[i] = index;
        else
            prn_ml_copy(y, i, index < 0 ? &job->map->fallback : values, index < 0 ? 0 : index);
    }
}

static prony_status run_mapping(const prony_context *context)
{
    mapping map;
    PRN_TRY(ml_map_read_node(context, &map));
    prn_ml_parallel_rows(context, prony_shape_numel(&context->inputs[0]->shape), 64, ml_map_range,
                         &(mapping_job){context, &map});
    return PRONY_OK;
}

static prony_status prepare_mapping(const prony_context *context, prn_prepared *out)
{
    mapping map;
    PRN_TRY(ml_map_read_node(context, &map));
    return lookup_prepare(context, &map.keys, out);
}

/* ---- OneHotEncoder: [… , categories] */

static prony_status read_onehot(const prony_context *context, prony_value *cats)
{
    return prn_ml_ints_or_strings(context, &((const map_params *)context->params)->cats_int64s, "cats_strings", cats);
}

static prony_status infer_onehot(const prony_context *context)
{
    prony_value cats;
    PRN_TRY(read_onehot(context, &cats));
    PRN_TRY(prn_check_type(context, 0, cats.dtype == PRONY_STRING ? PRN_TYPE(PRONY_STRING) : PRN_ML_TYPES));
    PRN_TRY(prn_check_rank(context, 0, 0, PRONY_MAX_RANK - 1));
    prony_shape shape = context->inputs[0]->shape;
    shape.dim[shape.rank++] = prn_ml_count(&cats);
    if (prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_OUT_OF_RANGE, "the output is too large");
    prn_set_output(context, 0, PRONY_FLOAT32, &shape);
    return PRONY_OK;
}

static prony_status prepare_onehot(const prony_context *context, prn_prepared *out)
{
    prony_value cats;
    PRN_TRY(read_onehot(context, &cats));
    return lookup_prepare(context, &cats, out);
}

static prony_status refuse_element(const prony_context *context, const prony_value *x, int64_t i)
{
    const char *why = "is in no category, and zeros is 0";
    if (x->dtype == PRONY_STRING) {
        const prony_string *text = (const prony_string *)x->data + i;
        return prony_fail(context, PRONY_OUT_OF_RANGE, "element %lld, '%.*s', %s", (long long)i,
                          (int)(text->size < 40 ? text->size : 40), text->data, why);
    }
    return prony_fail(context, PRONY_OUT_OF_RANGE, "element %lld, %g, %s", (long long)i,
                      prn_get_f64(x->data, x->dtype, i), why);
}

static prony_status run_onehot(const prony_context *context)
{
    const lookup *cats = context->state;
    const prony_value *x = context->inputs[0];
    float *y = context->outputs[0]->data;
    const int64_t count = prony_shape_numel(&x->shape);
    if (count > 0 && cats->count > 0) prn_cancellable_clear(y, prn_value_bytes(context->outputs[0]));
    for (int64_t i = 0; i < count && !prn_cancelled_at(i); i++) {
        entry key = entry_at(x, i);
        if (prn_dtype_is_float(x->dtype)) key.i = prn_f64_to_i64(key.f);
        const int64_t index = ml_map_look_up(cats, &key);
        if (index >= 0)
            y[i * cats->count + index] = 1.0f;
        else if (!((const map_params *)context->params)->zeros)
            return refuse_element(context, x, i);
    }
    return PRONY_OK;
}

/* ---- ArrayFeatureExtractor: columns of the last axis by index */

static int64_t columns_of(const prony_context *context)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    return shape->dim[shape->rank - 1];
}

static prony_status infer_extractor(const prony_context *context)
{
    PRN_TRY(prn_check_movable(context, 0));
    PRN_TRY(prn_check_rank(context, 0, 1, PRONY_MAX_RANK));
    PRN_TRY(prn_check_type(context, 1, PRN_TYPE(PRONY_INT64)));
    prony_shape shape = context->inputs[0]->shape;
    if (shape.rank == 1) shape = prn_shape_make(2, (const int64_t[]){1, shape.dim[0]});
    shape.dim[shape.rank - 1] = prony_shape_numel(&context->inputs[1]->shape);
    if (prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_OUT_OF_RANGE, "the output is too large");
    prn_set_output(context, 0, context->inputs[0]->dtype, &shape);
    return PRONY_OK;
}

static void extract_rows(void *argument, int64_t begin, int64_t end)
{
    const prony_context *context = argument;
    const int64_t columns = columns_of(context), taken = prony_shape_numel(&context->inputs[1]->shape);
    const int64_t *indices = context->inputs[1]->data;
    for (int64_t row = begin; row < end; row++) {
        for (int64_t k = 0; k < taken; k++)
            prn_ml_copy(context->outputs[0], row * taken + k, context->inputs[0], row * columns + indices[k]);
    }
}

static prony_status run_extractor(const prony_context *context)
{
    const int64_t columns = columns_of(context), taken = prony_shape_numel(&context->inputs[1]->shape);
    const int64_t *indices = context->inputs[1]->data;
    for (int64_t k = 0; k < taken; k++) {
        if (indices[k] < 0 || indices[k] >= columns)
            return prony_fail(context, PRONY_OUT_OF_RANGE, "index %lld of %lld columns", (long long)indices[k],
                              (long long)columns);
    }
    if (taken == 0 || columns == 0) return PRONY_OK;
    prn_ml_parallel_rows(context, prony_shape_numel(&context->inputs[0]->shape) / columns, 16 * taken, extract_rows,
                         (void *)(uintptr_t)context);
    return PRONY_OK;
}

/* ---- ZipMap, DictVectorizer: a map is its values in the order of the keys, so both are views */

static prony_status infer_keyed(const prony_context *context, uint32_t types, const char *what, int64_t keys)
{
    PRN_TRY(prn_ml_check_rows(context, types));
    PRN_TRY(prn_ml_check_count(context, what, keys, prn_ml_rows_of(context).features));
    return prn_infer_same(context);
}

static prony_status infer_zipmap(const prony_context *context)
{
    prony_value keys;
    PRN_TRY(prn_ml_ints_or_strings(context, &((const map_params *)context->params)->keys_int64s, "classlabels_strings",
                                   &keys));
    return infer_keyed(context, PRN_TYPE_F32, "the list of class labels", prn_ml_count(&keys));
}

static prony_status infer_dictionary(const prony_context *context)
{
    prony_value keys;
    PRN_TRY(prn_ml_ints_or_strings(context, &((const map_params *)context->params)->keys_int64s, "string_vocabulary",
                                   &keys));
    return infer_keyed(context, PRN_ML_TYPES | PRN_TYPE(PRONY_STRING), "the vocabulary", prn_ml_count(&keys));
}

static prony_status ml_map_run_view(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prn_copy_bytes(context->threads, in->data, context->outputs[0]->data, prn_value_bytes(in));
    return PRONY_OK;
}

/* ---- rows */

#define RENAMED(params, key, field) {key, PRN_PARAM_INTS, offsetof(params, field), false, 0, 0, NULL}

// clang-format off
static const prn_param encoder_params[] = {
    PRN_INTS(map_params, keys_int64s), PRN_INTS(map_params, values_int64s), PRN_FLOATS(map_params, keys_floats),
    PRN_FLOATS(map_params, values_floats), PRN_TENSOR(map_params, keys_tensor), PRN_TENSOR(map_params, values_tensor),
    PRN_TENSOR(map_params, default_tensor), PRN_INT(map_params, default_int64, -1),
    PRN_FLOAT(map_params, default_float, -0.0f), PRN_STRING(map_params, default_string, "_Unused"), {0}};
// clang-format on
static const prn_param categories_params[] = {PRN_INTS(map_params, cats_int64s),
                                              PRN_INT(map_params, default_int64, -1),
                                              PRN_STRING(map_params, default_string, "_Unused"),
                                              {0}};
static const prn_param onehot_params[] = {PRN_INTS(map_params, cats_int64s), PRN_INT(map_params, zeros, 1), {0}};
static const prn_param zipmap_params[] = {RENAMED(map_params, "classlabels_int64s", keys_int64s), {0}};
static const prn_param dictionary_params[] = {RENAMED(map_params, "int64_vocabulary", keys_int64s), {0}};

static const prn_kernel encoder_kernels[] = {{.name = "label_encoder_reference",
                                              .backend = "reference",
                                              .prepare = prepare_mapping,
                                              .run = run_mapping,
                                              .release = prn_free},
                                             {0}};
static const prn_kernel classes_kernels[] = {{.name = "label_encoder_reference",
                                              .backend = "reference",
                                              .types = PRN_TYPE(PRONY_STRING) | PRN_TYPE(PRONY_INT64),
                                              .prepare = prepare_mapping,
                                              .run = run_mapping,
                                              .release = prn_free},
                                             {0}};
static const prn_kernel categories_kernels[] = {{.name = "category_mapper_reference",
                                                 .backend = "reference",
                                                 .types = PRN_TYPE(PRONY_STRING) | PRN_TYPE(PRONY_INT64),
                                                 .prepare = prepare_mapping,
                                                 .run = run_mapping,
                                                 .release = prn_free},
                                                {0}};
static const prn_kernel onehot_kernels[] = {{.name = "one_hot_encoder_reference",
                                             .backend = "reference",
                                             .types = PRN_ML_TYPES | PRN_TYPE(PRONY_STRING),
                                             .prepare = prepare_onehot,
                                             .run = run_onehot,
                                             .release = prn_free},
                                            {0}};
static const prn_kernel extractor_kernels[] = {
    {.name = "array_feature_extractor_reference", .backend = "reference", .run = run_extractor}, {0}};
static const prn_kernel view_kernels[] = {
    {.name = "map_view_reference", .backend = "reference", .run = ml_map_run_view, .inplace = 1}, {0}};

// clang-format off
const prn_op prn_ops_ml_map[] = {
    {.name = "LabelEncoder", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1},
     .params = categories_params, .params_bytes = sizeof(map_params), .variant = &(const mapping_kind){ml_map_read_classes},
     .infer = infer_mapping, .cost = prn_cost_none, .cost_text = "0 (lookup)", .kernels = classes_kernels},
    {.name = "LabelEncoder", .domain = "ai.onnx.ml", .since_opset = 2, .inputs = {1, 1},
     .params = encoder_params, .params_bytes = sizeof(map_params), .variant = &(const mapping_kind){read_encoder},
     .infer = infer_mapping, .cost = prn_cost_none, .cost_text = "0 (lookup)", .kernels = encoder_kernels},
    {.name = "CategoryMapper", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1},
     .params = categories_params, .params_bytes = sizeof(map_params),
     .variant = &(const mapping_kind){read_categories},
     .infer = infer_mapping, .cost = prn_cost_none, .cost_text = "0 (lookup)", .kernels = categories_kernels},
    {.name = "OneHotEncoder", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1},
     .params = onehot_params, .params_bytes = sizeof(map_params),
     .infer = infer_onehot, .cost = prn_cost_none, .cost_text = "0 (lookup)", .kernels = onehot_kernels},
    {.name = "ArrayFeatureExtractor", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {2, 2},
     .infer = infer_extractor, .cost = prn_cost_none, .cost_text = "0", .kernels = extractor_kernels},
    {.name = "ZipMap", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1}, .flags = PRN_OP_VIEW,
     .params = zipmap_params, .params_bytes = sizeof(map_params),
     .infer = infer_zipmap, .cost = prn_cost_none,
     .cost_text = "0 (a map is the tensor of its values, in the order of the keys)", .kernels = view_kernels},
    {.name = "DictVectorizer", .domain = "ai.onnx.ml", .since_opset = 1, .inputs = {1, 1}, .flags = PRN_OP_VIEW,
     .params = dictionary_params, .params_bytes = sizeof(map_params),
     .infer = infer_dictionary, .cost = prn_cost_none,
     .cost_text = "0 (a map is the tensor of its values, in the order of the keys)", .kernels = view_kernels},
    {0}};
// clang-format on
