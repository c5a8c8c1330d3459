/* Queries of rewrites about a program: nodes, constants, operators' parameters, products of factors. */
#include "engine/rewrites/pass.h"

#include "base/shape.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- nodes ---- */

bool prn_node_is(const prn_node_def *node, const char *name)
{
    if (node->dead || node->dynamic || strcmp(node->info.op_type, name) != 0) return false;
    return node->binding.op && !(node->binding.op->flags & PRN_OP_OTHER_FORM) &&
           node->binding.op == prn_op_find(node->info.domain, name, node->info.opset);
}

bool prn_node_is_any(const prn_node_def *node, const char *const *names)
{
    for (; *names; names++)
        if (prn_node_is(node, *names)) return true;
    return false;
}

uint32_t prn_node_input(const prn_node_def *node, uint32_t i)
{
    return i < node->input_count ? node->inputs[i] : PRN_NO_VALUE;
}

prn_node_def *prn_rewrite_producer(const prn_rewriter *r, uint32_t value)
{
    if (value == PRN_NO_VALUE || r->program->values[value]->producer == PRN_NO_NODE) return NULL;
    prn_node_def *node = r->program->nodes[r->program->values[value]->producer];
    bool first = node->output_count > 0 && node->outputs[0] == value;
    return !node->dead && !node->dynamic && first ? node : NULL;
}

prn_node_def *prn_rewrite_inner(const prn_rewriter *r, uint32_t value, const char *name)
{
    prn_node_def *node = prn_rewrite_producer(r, value);
    return node && prn_rewrite_used_once(r, value) && prn_node_is(node, name) ? node : NULL;
}

bool prn_node_takes_post_op(const prn_node_def *node)
{
    return node->binding.op && (node->binding.op->flags & PRN_OP_POST_OPS) && node->output_count == 1 &&
           (!node->post_ops || node->post_ops->count < PRN_MAX_POST_OPS);
}

int64_t prn_node_int(const prn_node_def *node, const char *name, int64_t absent)
{
    const prn_attr *attr = prn_attr_find(node->info.attributes, name);
    return attr && attr->type == PRN_ATTR_INT ? attr->i : absent;
}

double prn_node_float(const prn_node_def *node, const char *name, double absent)
{
    const prn_attr *attr = prn_attr_find(node->info.attributes, name);
    return attr && attr->type == PRN_ATTR_FLOAT ? (double)attr->f : absent;
}

/* ---- values ---- */

bool prn_rewrite_used_once(const prn_rewriter *r, uint32_t value)
{
    return value != PRN_NO_VALUE && r->uses[value] == 1;
}

bool prn_rewrite_is_f32(const prn_rewriter *r, uint32_t value)
{
    if (value == PRN_NO_VALUE) return false;
    const prony_value *info = &r->program->values[value]->info;
    return info->kind == PRONY_TENSOR && info->dtype == PRONY_FLOAT32 && prn_shape_known(&info->shape);
}

bool prn_rewrite_same_shape(const prn_rewriter *r, uint32_t a, uint32_t b)
{
    return prn_shape_equal(&r->program->values[a]->info.shape, &r->program->values[b]->info.shape);
}

/* A constant tensor with known data, or NULL. */
static const prony_value *constant_of(const prn_rewriter *r, uint32_t value)
{
    if (value == PRN_NO_VALUE) return NULL;
    const prn_value_def *def = r->program->values[value];
    bool supported =
        def->constant && def->info.kind == PRONY_TENSOR && def->info.data && prn_shape_known(&def->info.shape);
    return supported ? &def->info : NULL;
}

bool prn_rewrite_constant(const prn_rewriter *r, uint32_t value, const float **data, const prony_shape **shape)
{
    const prony_value *constant = constant_of(r, value);
    if (!constant || constant->dtype != PRONY_FLOAT32) return false;
    *data = constant->data;
    *shape = &constant->shape;
    return true;
}

bool prn_rewrite_is_all(const prn_rewriter *r, uint32_t value, float wanted)
{
    const float *data;
    const prony_shape *shape;
    if (!prn_rewrite_constant(r, value, &data, &shape)) return false;
    for (int64_t i = 0; i < prony_shape_numel(shape); i++)
        if (data[i] != wanted) return false;
    return true;
}

bool prn_rewrite_scalar(const prn_rewriter *r, uint32_t value, double *out)
{
    const prony_value *constant = constant_of(r, value);
    if (!constant || prony_shape_numel(&constant->shape) != 1) return false;
    switch (constant->dtype) {
    case PRONY_FLOAT32:
        *out = (double)*(const float *)constant->data;
        return true;
    case PRONY_FLOAT64:
        *out = *(const double *)constant->data;
        return true;
    case PRONY_INT32:
        *out = *(const int32_t *)constant->data;
        return true;
    case PRONY_INT64:
        *out = (double)*(const int64_t *)constant->data;
        return true;
    default:
        return false;
    }
}

bool prn_rewrite_near(double value, double wanted)
{
    return fabs(value - wanted) <= 0x1p-22 * fabs(wanted);
}

bool prn_rewrite_scalar_is(const prn_rewriter *r, uint32_t value, double wanted)
{
    double found;
    return prn_rewrite_scalar(r, value, &found) && found == wanted;
}

int prn_rewrite_scalar_operand(const prn_rewriter *r, const prn_node_def *node, double *out)
{
    if (node->input_count != 2) return -1;
    for (int i = 1; i >= 0; i--)
        if (prn_rewrite_scalar(r, node->inputs[i], out)) return i;
    return -1;
}

/* ---- operators' parameters ---- */

bool prn_rewrite_int_list(const prn_rewriter *r, const prn_node_def *node, const char *name, uint32_t input,
                          int64_t *out, size_t capacity, size_t *count)
{
    const prn_attr *attr = prn_attr_find(node->info.attributes, name);
    if (attr && attr->type == PRN_ATTR_INTS) {
        if (attr->count > capacity) return false;
        if (attr->count) memcpy(out, attr->ints, attr->count * sizeof *out);
        *count = attr->count;
        return true;
    }
    const prony_value *constant = constant_of(r, prn_node_input(node, input));
    if (!constant || constant->shape.rank > 1 || constant->dtype != PRONY_INT64) return false;
    int64_t elements = prony_shape_numel(&constant->shape);
    if (elements < 0 || (uint64_t)elements > capacity) return false;
    *count = (size_t)elements;
    if (elements) memcpy(out, constant->data, *count * sizeof *out);
    return true;
}

bool prn_node_string_is(const prn_node_def *node, const char *name, const char *wanted, bool absent)
{
    const prn_attr *attr = prn_attr_find(node->info.attributes, name);
    return attr ? attr->type == PRN_ATTR_STRING && strcmp(attr->s.data, wanted) == 0 : absent;
}

bool prn_node_pads(const prn_node_def *node, size_t count, int64_t *pads)
{
    const prn_attr *attr = prn_attr_find(node->info.attributes, "pads");
    memset(pads, 0, count * sizeof *pads);
    if (prn_node_string_is(node, "auto_pad", "VALID", false)) return true;
    if (!prn_node_string_is(node, "auto_pad", "NOTSET", true) && !prn_node_string_is(node, "auto_pad", "", false))
        return false;
    if (attr && (attr->type != PRN_ATTR_INTS || attr->count != count)) return false;
    if (attr) memcpy(pads, attr->ints, count * sizeof *pads);
    return true;
}

void prn_rewrite_permutation(const prn_rewriter *r, const prn_node_def *node, int64_t *perm)
{
    const prn_attr *attr = prn_attr_find(node->info.attributes, "perm");
    int rank = r->program->values[node->inputs[0]]->info.shape.rank;
    for (int i = 0; i < rank; i++)
        perm[i] = attr && attr->type == PRN_ATTR_INTS && attr->count == (size_t)rank ? attr->ints[i] : rank - 1 - i;
}

bool prn_rewrite_clip_bounds(const prn_rewriter *r, const prn_node_def *node, float *low, float *high)
{
    *low = -INFINITY;
    *high = INFINITY;
    if (node->info.opset < 11) { /* the operator reads the attribute in these opsets */
        *low = (float)prn_node_float(node, "min", -(double)INFINITY);
        *high = (float)prn_node_float(node, "max", (double)INFINITY);
        return true;
    }
    float *bound[] = {low, high};
    for (uint32_t i = 1; i <= 2; i++) {
        double value;
        uint32_t input = prn_node_input(node, i);
        if (input == PRN_NO_VALUE) continue;
        if (!prn_rewrite_scalar(r, input, &value)) return false;
        *bound[i - 1] = (float)value;
    }
    return true;
}

/* ---- products ---- */

bool prn_pattern_add(prn_pattern *pattern, prn_node_def *node)
{
    if (pattern->node_count == PRN_MAX_PATTERN) return false;
    pattern->nodes[pattern->node_count++] = node;
    return true;
}

bool prn_rewrite_is_factor(double value)
{
    return fabs(value) >= (double)FLT_MIN && fabs(value) <= (double)FLT_MAX;
}

static bool scale_by(prn_factor_product *product, double factor)
{
    product->constant *= factor;
    return prn_rewrite_is_factor(product->constant);
}

static bool add_factor(const prn_rewriter *r, uint32_t value, prn_factor_product *product)
{
    double constant;
    if (prn_rewrite_is_f32(r, value) && prn_rewrite_scalar(r, value, &constant)) {
        return scale_by(product, constant);
    }
    if (product->count == PRN_MAX_FACTORS) return false;
    product->factors[product->count++] = value;
    return true;
}

/* true: Div by a constant with a reciprocal. Division by 0 stays: NaN or infinity depends on the dividend. */
static bool divides(const prn_rewriter *r, const prn_node_def *node, double *divisor)
{
    return prn_node_is(node, "Div") && node->input_count == 2 && prn_rewrite_scalar(r, node->inputs[1], divisor) &&
           *divisor != 0.0 && isfinite(*divisor);
}

bool prn_rewrite_product_of_node(const prn_rewriter *r, prn_node_def *node, prn_factor_product *product,
                                 prn_pattern *pattern)
{
    double divisor;
    if (prn_node_is(node, "Mul") && node->input_count == 2)
        return prn_rewrite_product_of_value(r, node->inputs[0], product, pattern) &&
               prn_rewrite_product_of_value(r, node->inputs[1], product, pattern);
    if (divides(r, node, &divisor)) {
        return scale_by(product, 1.0 / divisor) && prn_rewrite_product_of_value(r, node->inputs[0], product, pattern);
    }
    return add_factor(r, node->outputs[0], product);
}

bool prn_rewrite_product_of_value(const prn_rewriter *r, uint32_t value, prn_factor_product *product,
                                  prn_pattern *pattern)
{
    prn_node_def *node = prn_rewrite_producer(r, value);
    double divisor;
    bool through = node && prn_rewrite_used_once(r, value) && (prn_node_is(node, "Mul") || divides(r, node, &divisor));
    if (!through) return add_factor(r, value, product);
    return prn_pattern_add(pattern, node) && prn_rewrite_product_of_node(r, node, product, pattern);
}
