/* Normalizations and losses: each is rebuilt from simpler operators, which are differentiated. Half-width types are
 * widened for it, as the operators themselves compute. */
#include "engine/gradient/rules.h"

#include <string.h>

#define X(i) prn_grad_in(g, i)

static uint32_t wide(prn_gradient *g, uint32_t value)
{
    if (prn_grad_failed(g) || value == PRN_NO_VALUE) return PRN_NO_VALUE;
    const prony_dtype t = prn_grad_info(g, value)->dtype;
    if (t != PRONY_FLOAT16 && t != PRONY_BFLOAT16) return value;
    const prn_attr to = prn_grad_attr_int("to", PRONY_FLOAT32);
    return prn_grad_op(g, "Cast", &to, 1, &value, 1);
}

/* Sets the rebuilt value of output k, cast to its type. */
static void through(prn_gradient *g, uint32_t k, uint32_t value)
{
    if (prn_grad_of(g, k) == PRN_NO_VALUE || prn_grad_failed(g)) return;
    const uint32_t narrow = prn_grad_cast_like(g, value, prn_grad_out(g, k));
    prn_grad_through(g, k, narrow);
}

static uint32_t rules_norm_mean_of(prn_gradient *g, uint32_t value, uint32_t axes)
{
    return prn_grad_reduce(g, "ReduceMean", value, axes, true);
}

typedef struct moments {
    uint32_t mean, variance, away; /* x - mean */
} moments;

static moments moments_of(prn_gradient *g, uint32_t x, uint32_t axes)
{
    moments m = {.mean = rules_norm_mean_of(g, x, axes)};
    m.away = prn_grad_sub(g, x, m.mean);
    m.variance = rules_norm_mean_of(g, prn_grad_mul(g, m.away, m.away), axes);
    return m;
}

/* 1 / sqrt(variance + epsilon) */
static uint32_t inverse_deviation(prn_gradient *g, uint32_t variance, double epsilon)
{
    const uint32_t sum = prn_grad_add(g, variance, prn_grad_number(g, variance, epsilon));
    return prn_grad_1(g, "Reciprocal", prn_grad_1(g, "Sqrt", sum));
}

/* Reshapes [C] to [C, 1, …], which broadcasts with [N, C, …] of that rank. */
static uint32_t per_channel(prn_gradient *g, uint32_t value, int rank)
{
    const uint32_t widened = wide(g, value);
    return rank <= 2 ? widened : prn_grad_2(g, "Unsqueeze", widened, prn_grad_axes(g, 1, rank - 1));
}

static uint32_t rules_norm_scaled(prn_gradient *g, uint32_t value, uint32_t scale, uint32_t bias)
{
    if (scale != PRN_NO_VALUE) value = prn_grad_mul(g, value, scale);
    return bias != PRN_NO_VALUE ? prn_grad_add(g, value, bias) : value;
}

/* ---- over a batch ---- */

static uint32_t moved_on(prn_gradient *g, uint32_t old, uint32_t current, double momentum)
{
    const uint32_t kept = prn_grad_mul(g, old, prn_grad_number(g, old, momentum));
    const uint32_t added =
        prn_grad_mul(g, prn_grad_reshape_like(g, current, old), prn_grad_number(g, old, 1 - momentum));
    return prn_grad_add(g, kept, added);
}

PRN_GRADIENT_RULE(batch_norm)
{
    const int rank = prn_grad_rank(g, X(0));
    const int64_t opset = g->node->info.opset;
    const bool training = prn_grad_int(g, "training_mode", 0) != 0;
    const double epsilon = prn_grad_float(g, "epsilon", 1e-5f), momentum = prn_grad_float(g, "momentum", 0.9f);
    if (rank < 0) return;
    if (rank < 2 || (opset < 7 && !prn_grad_int(g, "is_test", 0)) || (opset < 9 && !prn_grad_int(g, "spatial", 1))) {
        prn_grad_refuse(g, "no gradient rule exists for this form of it (opset %lld)", (long long)opset);
        return;
    }
    const uint32_t x = wide(g, X(0));
    moments m = {.mean = per_channel(g, X(3), rank), .variance = per_channel(g, X(4), rank)};
    if (training) {
        int64_t axes[PRONY_MAX_RANK] = {0};
        for (int d = 2; d < rank; d++) axes[d - 1] = d;
        m = moments_of(g, x, prn_grad_indices(g, axes, (size_t)(rank - 1)));
        if (prn_grad_of(g, 1) != PRN_NO_VALUE) through(g, 1, moved_on(g, wide(g, X(3)), m.mean, momentum));
        if (prn_grad_of(g, 2) != PRN_NO_VALUE) through(g, 2, moved_on(g, wide(g, X(4)), m.variance, momentum));
    } else {
        m.away = prn_grad_sub(g, x, m.mean);
    }
    const uint32_t normal = prn_grad_mul(g, m.away, inverse_deviation(g, m.variance, epsilon));
    through(g, 0, rules_norm_scaled(g, normal, per_channel(g, X(1), rank), per_channel(g, X(2), rank)));
}

/* ---- over one image ---- */

PRN_GRADIENT_RULE(instance_norm)
{
    const int rank = prn_grad_rank(g, X(0));
    if (rank < 0) return;
    const moments m = moments_of(g, wide(g, X(0)), prn_grad_axes(g, 2, rank));
    const uint32_t normal =
        prn_grad_mul(g, m.away, inverse_deviation(g, m.variance, prn_grad_float(g, "epsilon", 1e-5f)));
    through(g, 0, rules_norm_scaled(g, normal, per_channel(g, X(1), rank), per_channel(g, X(2), rank)));
}

/* Before opset 21 there is one scale and one bias a group. */
PRN_GRADIENT_RULE(group_norm)
{
    const int rank = prn_grad_rank(g, X(0));
    const int64_t shape[] = {0, prn_grad_int(g, "num_groups", 1), -1};
    const bool by_group = g->node->info.opset < 21;
    if (rank < 0) return;
    const uint32_t groups = prn_grad_2(g, "Reshape", wide(g, X(0)), prn_grad_indices(g, shape, 3));
    const moments m = moments_of(g, groups, prn_grad_axes(g, 2, 3));
    uint32_t normal = prn_grad_mul(g, m.away, inverse_deviation(g, m.variance, prn_grad_float(g, "epsilon", 1e-5f)));
    if (by_group) normal = rules_norm_scaled(g, normal, per_channel(g, X(1), 3), per_channel(g, X(2), 3));
    normal = prn_grad_reshape_like(g, normal, X(0));
    if (!by_group) normal = rules_norm_scaled(g, normal, per_channel(g, X(1), rank), per_channel(g, X(2), rank));
    through(g, 0, normal);
}

/* The axes from `axis` on. PRN_NO_VALUE: refused. */
static uint32_t from_axis(prn_gradient *g)
{
    const int rank = prn_grad_rank(g, X(0));
    const int64_t axis = prn_grad_int(g, "axis", -1);
    return rank < 0 ? PRN_NO_VALUE : prn_grad_axes(g, axis < 0 ? axis + rank : axis, rank);
}

PRN_GRADIENT_RULE(layer_norm)
{
    const uint32_t axes = from_axis(g);
    if (prn_grad_failed(g)) return;
    const moments m = moments_of(g, wide(g, X(0)), axes);
    const uint32_t inverse = inverse_deviation(g, m.variance, prn_grad_float(g, "epsilon", 1e-5f));
    through(g, 0, rules_norm_scaled(g, prn_grad_mul(g, m.away, inverse), wide(g, X(1)), wide(g, X(2))));
    through(g, 1, m.mean);
    through(g, 2, inverse);
}

PRN_GRADIENT_RULE(rms_norm)
{
    const uint32_t axes = from_axis(g);
    if (prn_grad_failed(g)) return;
    const uint32_t x = wide(g, X(0)), power = rules_norm_mean_of(g, prn_grad_mul(g, x, x), axes);
    const uint32_t inverse = inverse_deviation(g, power, prn_grad_float(g, "epsilon", 1e-5f));
    through(g, 0, rules_norm_scaled(g, prn_grad_mul(g, x, inverse), wide(g, X(1)), PRN_NO_VALUE));
}

PRN_GRADIENT_RULE(lp_norm)
{
    const int64_t axis = prn_grad_int(g, "axis", -1);
    const uint32_t x = wide(g, X(0)), axes = prn_grad_indices(g, &axis, 1);
    const uint32_t norm = prn_grad_reduce(g, prn_grad_int(g, "p", 2) == 1 ? "ReduceL1" : "ReduceL2", x, axes, true);
    const uint32_t none = prn_grad_2(g, "Equal", norm, prn_grad_number(g, norm, 0));
    through(g, 0, prn_grad_div(g, x, prn_grad_3(g, "Where", none, prn_grad_number(g, norm, 1), norm)));
}

PRN_GRADIENT_RULE(mean_variance_norm)
{
    static const int64_t usual[] = {0, 2, 3};
    size_t count;
    const int64_t *said = prn_grad_ints(g, "axes", &count);
    const moments m = moments_of(g, wide(g, X(0)), prn_grad_indices(g, said ? said : usual, said ? count : 3));
    const uint32_t deviation = prn_grad_1(g, "Sqrt", m.variance);
    through(g, 0, prn_grad_div(g, m.away, prn_grad_add(g, deviation, prn_grad_number(g, deviation, 1e-9))));
}

/* x / (bias + alpha times the mean square of `size` neighbouring channels) ^ beta; channels outside count as 0. */
PRN_GRADIENT_RULE(lrn)
{
    const int64_t size = prn_grad_int(g, "size", 1), apart[] = {0, 1, -1, 1};
    const int rank = prn_grad_rank(g, X(0));
    if (rank < 3) {
        prn_grad_refuse(g, "no gradient rule exists for an input of rank %d", rank);
        return;
    }
    const int64_t kernel[] = {size, 1}, pads[] = {(size - 1) / 2, 0, size / 2, 0};
    const uint32_t x = wide(g, X(0)), square = prn_grad_mul(g, x, x);
    const uint32_t last = prn_grad_indices(g, &apart[1], 1), rest = prn_grad_indices(g, &apart[2], 1);
    const prn_attr front = prn_grad_attr_int("axis", 0);
    const uint32_t dims[] = {prn_grad_extent(g, x, 0), last, prn_grad_extent(g, x, 1), rest};
    const uint32_t shape = prn_grad_op(g, "Concat", &front, 1, dims, 4);
    const uint32_t planes = prn_grad_2(g, "Reshape", square, shape);
    const prn_attr attrs[] = {prn_grad_attr_ints("kernel_shape", kernel, 2), prn_grad_attr_ints("pads", pads, 4),
                              prn_grad_attr_int("count_include_pad", 1)};
    const uint32_t around = prn_grad_reshape_like(g, prn_grad_op(g, "AveragePool", attrs, 3, &planes, 1), x);
    const uint32_t sum =
        prn_grad_add(g, prn_grad_mul(g, around, prn_grad_number(g, x, prn_grad_float(g, "alpha", 1e-4f))),
                     prn_grad_number(g, x, prn_grad_float(g, "bias", 1)));
    const uint32_t power = prn_grad_2(g, "Pow", sum, prn_grad_number(g, x, -prn_grad_float(g, "beta", 0.75f)));
    through(g, 0, prn_grad_mul(g, x, power));
}

/* ---- losses ---- */

/* -weight[label] log p[label] for labels that count, and their divisor. */
static uint32_t likelihood_loss(prn_gradient *g, uint32_t log_p, uint32_t labels, uint32_t weights)
{
    const int64_t one = 1;
    const char *reduction = prn_grad_text(g, "reduction", "mean");
    const bool ignores = prn_attr_find(g->node->info.attributes, "ignore_index") != NULL;
    const uint32_t axis = prn_grad_indices(g, &one, 1);
    const prn_attr along = prn_grad_attr_int("axis", 1);
    uint32_t counts = PRN_NO_VALUE, weight = PRN_NO_VALUE;
    if (ignores) {
        const uint32_t ignored = prn_grad_cast_like(g, prn_grad_index(g, prn_grad_int(g, "ignore_index", 0)), labels);
        counts = prn_grad_1(g, "Not", prn_grad_2(g, "Equal", labels, ignored));
        labels = prn_grad_3(g, "Where", counts, labels, prn_grad_cast_like(g, prn_grad_index(g, 0), labels));
        weight = prn_grad_cast_like(g, counts, log_p);
    }
    if (weights != PRN_NO_VALUE) {
        const uint32_t own = prn_grad_2(g, "Gather", weights, labels);
        weight = ignores ? prn_grad_mul(g, own, weight) : own;
    }
    const uint32_t at = prn_grad_2(g, "Unsqueeze", labels, axis);
    const uint32_t picked = prn_grad_op(g, "GatherElements", &along, 1, (const uint32_t[]){log_p, at}, 2);
    uint32_t loss = prn_grad_neg(g, prn_grad_2(g, "Squeeze", picked, axis));
    if (weight != PRN_NO_VALUE) loss = prn_grad_mul(g, loss, weight);
    if (strcmp(reduction, "none") == 0) return loss;
    if (strcmp(reduction, "mean") == 0 && weight == PRN_NO_VALUE)
        return prn_grad_reduce(g, "ReduceMean", loss, PRN_NO_VALUE, false);
    loss = prn_grad_reduce(g, "ReduceSum", loss, PRN_NO_VALUE, false);
    if (strcmp(reduction, "sum") == 0) return loss;
    return prn_grad_div(g, loss, prn_grad_reduce(g, "ReduceSum", weight, PRN_NO_VALUE, false));
}

PRN_GRADIENT_RULE(nll_loss)
{
    through(g, 0, likelihood_loss(g, wide(g, X(0)), X(1), wide(g, X(2))));
}

PRN_GRADIENT_RULE(softmax_loss)
{
    const prn_attr axis = prn_grad_attr_int("axis", 1);
    const uint32_t x = wide(g, X(0)), log_p = prn_grad_op(g, "LogSoftmax", &axis, 1, &x, 1);
    if (prn_grad_of(g, 0) != PRN_NO_VALUE) through(g, 0, likelihood_loss(g, log_p, X(1), wide(g, X(2))));
    through(g, 1, log_p);
}

/* ---- dropout ---- */

/* Inference passes everything; in training the mask selects elements, times 1 / (1 - ratio). */
PRN_GRADIENT_RULE(dropout)
{
    const uint32_t dy = prn_grad_of(g, 0), mask = prn_grad_out(g, 1), training = X(2);
    if (dy == PRN_NO_VALUE) return;
    bool on = true;
    const bool off = prn_grad_constant(g, training, &on, sizeof on) && !on;
    if (g->node->info.opset < 7 && !prn_grad_int(g, "is_test", 0)) {
        prn_grad_refuse(g, "no gradient rule exists for training in opset %lld", (long long)g->node->info.opset);
        return;
    }
    if (training == PRN_NO_VALUE || off) {
        prn_grad_give(g, 0, dy);
        return;
    }
    if (mask == PRN_NO_VALUE) {
        prn_grad_refuse(g, "its gradient in training needs its output mask, which has no name");
        return;
    }
    const uint32_t one = prn_grad_number(g, dy, 1);
    const uint32_t ratio = X(1) == PRN_NO_VALUE ? prn_grad_number(g, dy, 0.5) : prn_grad_cast_like(g, X(1), dy);
    const uint32_t scale = prn_grad_div(g, one, prn_grad_sub(g, one, ratio));
    const uint32_t kept = prn_grad_mul(g, dy, prn_grad_cast_like(g, mask, dy));
    prn_grad_give(g, 0, prn_grad_mul(g, kept, prn_grad_3(g, "Where", training, scale, one)));
}
