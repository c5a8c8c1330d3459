/* One counter runs over all ways; the way whose turn it is changes the row. New tensors are blocks of their own that
 * the row owns as it owned the old ones; new attribute values lie in its pool. */
#include "tests/support/op_distort.h"

#include "base/attr.h"
#include "ops/kernels/vector/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct turn {
    op_case_node *row;
    size_t left; /* ways to pass before the chosen one */
    char *what;
    size_t size;
    bool done;
} turn;

static bool is_turn(turn *t, const char *what, long long a, long long b)
{
    if (t->done || t->left-- > 0) return false;
    snprintf(t->what, t->size, "%s %lld, %lld", what, a, b);
    t->done = true;
    return true;
}

/* ---- inputs ---- */

static const prony_dtype dtypes[] = {PRONY_FLOAT32, PRONY_FLOAT64,   PRONY_FLOAT16,      PRONY_BFLOAT16,
                                     PRONY_INT8,    PRONY_UINT8,     PRONY_INT32,        PRONY_INT64,
                                     PRONY_UINT64,  PRONY_BOOL,      PRONY_STRING,       PRONY_INT4,
                                     PRONY_UINT2,   PRONY_COMPLEX64, PRONY_FLOAT8E4M3FN, PRONY_INT16};

enum { MOST_BYTES = 1 << 24 };

static void remake(prony_value *value, prony_dtype dtype, const prony_shape *shape)
{
    int64_t count = prony_shape_numel(shape);
    size_t bytes = count < 0 ? 0 : prony_dtype_bytes(dtype, count);
    if (bytes > MOST_BYTES) return; /* a huge extent lost the zero beside it */
    void *data = op_case_bytes(bytes);
    memset(data, dtype == PRONY_STRING ? 0 : 1, bytes);
    if (dtype == value->dtype && value->data) {
        size_t old = prn_value_bytes(value);
        memcpy(data, value->data, bytes < old ? bytes : old);
    }
    prn_free_aligned(value->data);
    value->data = data;
    value->dtype = dtype;
    value->shape = *shape;
}

#define HUGE_EXTENT (INT64_C(1) << 45) /* with a few more, of a size that still fits */

static void distort_shape(turn *t, size_t i, prony_value *value)
{
    prony_shape shape = value->shape;
    if (is_turn(t, "rank 0: input", (long long)i, 0)) shape.rank = 0;
    if (shape.rank < PRONY_MAX_RANK && is_turn(t, "a dimension more: input", (long long)i, 0)) {
        memmove(&shape.dim[1], &shape.dim[0], (size_t)shape.rank * sizeof shape.dim[0]);
        shape.dim[0] = 1;
        shape.rank++;
    }
    if (shape.rank > 1 && is_turn(t, "a dimension less: input", (long long)i, 0)) shape.rank--;
    for (int d = 0; d < value->shape.rank; d++) {
        if (is_turn(t, "empty: input, dimension", (long long)i, d)) shape.dim[d] = 0;
        if (is_turn(t, "one more in: input, dimension", (long long)i, d)) shape.dim[d]++;
    }
    for (int d = 0; d + 1 < value->shape.rank; d++) { /* no product of the extents may be formed before the zero is
                                                         met */
        if (is_turn(t, "huge, then empty: input, dimension", (long long)i, d))
            shape.dim[d] = HUGE_EXTENT, shape.dim[d + 1] = 0;
        if (is_turn(t, "empty, then huge: input, dimension", (long long)i, d))
            shape.dim[d] = 0, shape.dim[d + 1] = HUGE_EXTENT;
    }
    if (t->done) remake(value, value->dtype, &shape);
}

static void put(prony_value *value, bool all, double real, int64_t whole)
{
    int64_t count = prony_shape_numel(&value->shape);
    for (int64_t e = all ? 0 : count - 1; e < count; e++) {
        if (prn_dtype_is_float(value->dtype))
            prn_put_f64(value->data, value->dtype, e, real);
        else
            prn_put_i64(value->data, value->dtype, e, whole);
    }
}

static void distort_data(turn *t, size_t i, prony_value *value)
{
    static const double reals[] = {NAN, INFINITY, -INFINITY, 0.0, -1.0, 3e38, 1e-40, 1e9};
    static const int64_t wholes[] = {INT64_MIN, INT64_MAX, -1, 0, 1, 1000000, (int64_t)1 << 31, (int64_t)1 << 40};
    bool number = (PRN_TYPES_NUMBER_BOOL & PRN_TYPE(value->dtype)) != 0;
    if (!number || prony_shape_numel(&value->shape) <= 0 || value->dtype == PRONY_BOOL) return;
    for (int k = 0; k < 8; k++)
        for (int all = 0; all < 2; all++)
            if (is_turn(t, all ? "extreme data: input" : "extreme last element: input", (long long)i, k))
                put(value, all, reals[k], wholes[k]);
    for (int k = 0; k < 8; k++) {
        if (!is_turn(t, "extreme data but for a zero at the end: input", (long long)i, k)) continue;
        put(value, true, reals[k], wholes[k]);
        put(value, false, 0, 0);
    }
}

/* Extents that belong together, such as the channels of image and weights, become empty or huge together. */
static void distort_extents(turn *t)
{
    static const int64_t extents[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16};
    op_case_node *row = t->row;
    for (size_t e = 0; e < sizeof extents / sizeof *extents && !t->done; e++) {
        bool there = false;
        for (size_t i = 0; i < row->input_count; i++)
            for (int d = 0; row->inputs[i] && d < row->values[i].shape.rank; d++)
                there |= row->values[i].shape.dim[d] == extents[e];
        if (!there || !is_turn(t, "empty everywhere: extent", extents[e], 0)) continue;
        for (size_t i = 0; i < row->input_count; i++) {
            prony_shape shape = row->values[i].shape;
            for (int d = 0; d < shape.rank; d++)
                if (shape.dim[d] == extents[e]) shape.dim[d] = 0;
            if (row->inputs[i]) remake(&row->values[i], row->values[i].dtype, &shape);
        }
    }
}

static void distort_inputs(turn *t)
{
    distort_extents(t);
    op_case_node *row = t->row;
    for (size_t i = 0; i < row->input_count && !t->done; i++) {
        prony_value *value = &row->values[i];
        if (!row->inputs[i]) continue;
        if (is_turn(t, "left out: input", (long long)i, 0)) row->inputs[i] = NULL;
        if (is_turn(t, "inputs end before", (long long)i, 0)) row->input_count = i;
        for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
            if (dtypes[k] != value->dtype && is_turn(t, "other type: input, type", (long long)i, dtypes[k]))
                remake(value, dtypes[k], &value->shape);
        if (!t->done) distort_shape(t, i, value);
        if (!t->done) distort_data(t, i, value);
    }
    if (row->input_count + 1 < OP_CASE_MAX_VALUES && is_turn(t, "one input more", 0, 0)) {
        size_t i = row->input_count++;
        prn_free_aligned(row->values[i].data); /* of an input that was cut off before */
        row->values[i] = (prony_value){0};
        remake(&row->values[i], PRONY_FLOAT32, &(prony_shape){.rank = 1, .dim = {2}});
        row->inputs[i] = &row->values[i];
        row->constant[i] = false;
    }
}

/* ---- attributes ---- */

static const int64_t odd_ints[] = {-1, 0, 1, 2, 3, 7, 100, 1000000000, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
static const float odd_floats[] = {NAN, INFINITY, -INFINITY, 0.0f, -1.0f, 3e38f, 0.5f};
static const char *const odd_texts[] = {"", "bogus", "SAME_UPPER", "linear", "constant", "reflect"};

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Lists get room for one more. */
static void own_list(turn *t, prn_attr *attr)
{
    int64_t *ints = prn_bump_alloc(&t->row->pool, attr->count + 1, sizeof *ints);
    float *floats = prn_bump_alloc(&t->row->pool, attr->count + 1, sizeof *floats);
    if (attr->type == PRN_ATTR_INTS) memcpy(ints, attr->ints, attr->count * sizeof *ints);
    if (attr->type == PRN_ATTR_FLOATS) memcpy(floats, attr->floats, attr->count * sizeof *floats);
    attr->ints = ints;
    attr->floats = floats;
}

static void distort_list(turn *t, size_t a, prn_attr *attr)
{
    bool whole = attr->type == PRN_ATTR_INTS;
    if (is_turn(t, "empty list: attribute", (long long)a, 0)) attr->count = 0;
    if (attr->count && is_turn(t, "shorter list: attribute", (long long)a, 0)) attr->count--;
    if (attr->type == PRN_ATTR_STRINGS) return;
    if (is_turn(t, "longer list: attribute", (long long)a, 0)) {
        own_list(t, attr);
        attr->count++;
    }
    for (size_t k = 0; k < (whole ? COUNT(odd_ints) : COUNT(odd_floats)) && attr->count > 1; k++) {
        if (!is_turn(t, "whole list: attribute, value", (long long)a, (long long)k)) continue;
        own_list(t, attr);
        for (size_t e = 0; e < attr->count && whole; e++) ((int64_t *)(uintptr_t)attr->ints)[e] = odd_ints[k];
        for (size_t e = 0; e < attr->count && !whole; e++) ((float *)(uintptr_t)attr->floats)[e] = odd_floats[k];
    }
    for (size_t e = 0; e < attr->count && !t->done; e++) {
        for (size_t k = 0; k < (whole ? COUNT(odd_ints) : COUNT(odd_floats)); k++) {
            if (!is_turn(t, "list: attribute, value", (long long)a, (long long)k)) continue;
            own_list(t, attr);
            if (whole)
                ((int64_t *)(uintptr_t)attr->ints)[e] = odd_ints[k];
            else
                ((float *)(uintptr_t)attr->floats)[e] = odd_floats[k];
        }
    }
}

static void distort_scalar(turn *t, size_t a, prn_attr *attr)
{
    if (attr->type == PRN_ATTR_INT) {
        for (size_t k = 0; k < COUNT(odd_ints); k++)
            if (is_turn(t, "integer: attribute, value", (long long)a, (long long)odd_ints[k])) attr->i = odd_ints[k];
    } else if (attr->type == PRN_ATTR_FLOAT) {
        for (size_t k = 0; k < COUNT(odd_floats); k++)
            if (is_turn(t, "float: attribute, value", (long long)a, (long long)k)) attr->f = odd_floats[k];
    } else {
        for (size_t k = 0; k < COUNT(odd_texts); k++)
            if (is_turn(t, "text: attribute, value", (long long)a, (long long)k))
                attr->s = (prony_string){odd_texts[k], strlen(odd_texts[k])};
    }
}

static void distort_attributes(turn *t)
{
    op_case_node *row = t->row;
    prn_attr *items = (prn_attr *)(uintptr_t)row->attributes.items;
    for (size_t a = 0; a < row->attributes.count && !t->done; a++) {
        prn_attr *attr = &items[a];
        if (is_turn(t, "without attribute", (long long)a, 0)) {
            row->attributes.count--;
            items[a] = items[row->attributes.count];
        } else if (is_turn(t, "other type: attribute", (long long)a, 0)) {
            *attr = (prn_attr){.name = attr->name, .type = attr->type == PRN_ATTR_INT ? PRN_ATTR_FLOAT : PRN_ATTR_INT};
        } else if (attr->type == PRN_ATTR_INT || attr->type == PRN_ATTR_FLOAT || attr->type == PRN_ATTR_STRING) {
            distort_scalar(t, a, attr);
        } else if (attr->type != PRN_ATTR_TENSOR) {
            distort_list(t, a, attr);
        } else if (is_turn(t, "empty tensor: attribute", (long long)a, 0)) {
            prony_value *tensor = prn_bump_alloc(&row->pool, 1, sizeof *tensor);
            *tensor = *attr->tensor;
            tensor->shape = (prony_shape){.rank = 1, .dim = {0}};
            attr->tensor = tensor;
        }
    }
}

static void distort(turn *t)
{
    static const int64_t opsets[] = {1, 6, 7, 9, 10, 11, 12, 13, 14, 17, 18, 20, 23, 25};
    distort_inputs(t);
    if (!t->done) distort_attributes(t);
    for (size_t o = 0; o < COUNT(opsets); o++)
        if (is_turn(t, "opset", opsets[o], 0)) t->row->node.opset = opsets[o];
    if (is_turn(t, "outputs", 2, 0)) t->row->output_count = 2;
    if (is_turn(t, "outputs", 20, 0)) t->row->output_count = 20;
}

bool op_distort(op_case_node *row, size_t k, char *what, size_t size)
{
    turn t = {.row = row, .left = k, .what = what, .size = size};
    distort(&t);
    return t.done;
}

static size_t count_ways(op_case_node *row)
{
    char what[96];
    turn t = {.row = row, .left = SIZE_MAX, .what = what, .size = sizeof what};
    distort(&t);
    return SIZE_MAX - t.left;
}

static uint64_t draw(uint64_t *seed) /* splitmix64 */
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static bool distort_element(op_case_node *row, uint64_t *seed, char *what, size_t size)
{
    static const double reals[] = {9e300,   -9e300, 1e-320, 2147483648.0, -2147483649.0, 9.3e18,
                                   -9.3e18, 0.5,    255.5,  NAN,          INFINITY,      -0.0};
    static const int64_t wholes[] = {INT64_MIN, INT64_MAX, INT64_MIN + 1, INT64_MAX / 2,
                                     INT32_MAX, INT32_MIN, UINT32_MAX,    65536,
                                     -2,        2,         255,           INT64_C(1) << 62};
    size_t i = row->input_count ? draw(seed) % row->input_count : 0, k = draw(seed) % COUNT(reals);
    if (i >= row->input_count || !row->inputs[i]) return false;
    prony_value *value = &row->values[i];
    int64_t count = prony_shape_numel(&value->shape);
    if (count <= 0 || value->dtype == PRONY_BOOL || !(PRN_TYPES_NUMBER_BOOL & PRN_TYPE(value->dtype))) return false;
    int64_t e = (int64_t)(draw(seed) % (uint64_t)count);
    if (prn_dtype_is_float(value->dtype))
        prn_put_f64(value->data, value->dtype, e, reals[k]);
    else
        prn_put_i64(value->data, value->dtype, e, wholes[k]);
    snprintf(what, size, "element: input, value %zu, %zu", i, k);
    return true;
}

void op_distort_randomly(op_case_node *row, uint64_t seed, char *what, size_t size)
{
    size_t used = 0;
    *what = '\0';
    for (uint64_t left = 1 + draw(&seed) % 4; left > 0 && used < size; left--) {
        char way[96] = "";
        if (draw(&seed) % 3 == 0)
            distort_element(row, &seed, way, sizeof way);
        else
            op_distort(row, draw(&seed) % count_ways(row), way, sizeof way);
        used += (size_t)snprintf(what + used, size - used, "%s%s", used ? "; " : "", way);
    }
}
