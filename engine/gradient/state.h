/* The state of the backward walk, and functions by which rules make nodes. Failures stick: after the first one no node
 * is made, every value is PRN_NO_VALUE, and the walk returns the status. So a rule can be written as one formula.
 * Internal to engine/gradient/. */
#ifndef PRN_ENGINE_GRADIENT_STATE_H
#define PRN_ENGINE_GRADIENT_STATE_H

#include "engine/gradient/gradient.h"

/* By value. */
typedef struct prn_gradient_mark {
    uint32_t gradient; /* PRN_NO_VALUE: none yet */
    bool seen, leaf;
    bool depends; /* on an x, through differentiable operations */
} prn_gradient_mark;

typedef struct prn_gradient {
    prn_gradient_job *job;
    prn_program *program;
    prony_error *error;
    prony_status status;
    const prn_node_def *node; /* whose rule is at work; NULL: none */
    prn_gradient_mark *marks;
    size_t mark_count;
    uint32_t number; /* of nodes made so far */
    bool seeded;     /* the rule replaced the node by other nodes and gave them its gradients */
} prn_gradient;

/* ---- the node whose rule is at work ---- */

/* Input or output; PRN_NO_VALUE if it is omitted. */
uint32_t prn_grad_in(const prn_gradient *g, uint32_t i);
uint32_t prn_grad_out(const prn_gradient *g, uint32_t k);
/* The gradient of output k; PRN_NO_VALUE: y does not depend on it. */
uint32_t prn_grad_of(const prn_gradient *g, uint32_t k);
/* The same, or zeros. */
uint32_t prn_grad_or_zeros(prn_gradient *g, uint32_t k);
/* true: the gradient of input i is wanted. */
bool prn_grad_wants(const prn_gradient *g, uint32_t i);
/* Adds a value of input i's shape and type to its gradient. Does nothing if this gradient is not wanted. */
void prn_grad_give(prn_gradient *g, uint32_t i, uint32_t gradient);
/* As give, of a value of the node's broadcast shape. */
void prn_grad_give_summed(prn_gradient *g, uint32_t i, uint32_t gradient);
/* The rule made the node again as `value`, which receives the gradient of output k. */
void prn_grad_through(prn_gradient *g, uint32_t k, uint32_t value);
int64_t prn_grad_int(const prn_gradient *g, const char *attribute, int64_t otherwise);
double prn_grad_float(const prn_gradient *g, const char *attribute, double otherwise);
const char *prn_grad_text(const prn_gradient *g, const char *attribute, const char *otherwise);
/* The attribute's numbers; NULL: it is not there. */
const int64_t *prn_grad_ints(const prn_gradient *g, const char *attribute, size_t *count);

/* Fails because no rule covers this case; the message names the Gradient node, the node, its operator and its
 * tensor. */
void prn_grad_refuse(prn_gradient *g, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- values ---- */

static inline bool prn_grad_failed(const prn_gradient *g)
{
    return g->status != PRONY_OK;
}

static inline const prony_value *prn_grad_info(const prn_gradient *g, uint32_t value)
{
    return &g->program->values[value]->info;
}

/* NULL: out of memory. Invalidates pointers to other marks. */
prn_gradient_mark *prn_grad_mark(prn_gradient *g, uint32_t value);
bool prn_grad_is_float(const prn_gradient *g, uint32_t value);
/* The known rank; refuses an unknown one and returns -1. */
int prn_grad_rank(prn_gradient *g, uint32_t value);
/* The known shape, for rules whose nodes depend on its extents. NULL: refused. */
const prony_shape *prn_grad_shape(prn_gradient *g, uint32_t value);
/* The bytes of a constant of at most `bytes` bytes that is the same in every run. */
bool prn_grad_constant(prn_gradient *g, uint32_t value, void *out, size_t bytes);
/* Elements of an int64 or int32 constant, at most `most` (at most PRONY_MAX_RANK). false: not such a constant, or more
 * elements. */
bool prn_grad_constant_ints(prn_gradient *g, uint32_t value, int64_t *out, size_t most, size_t *count);
/* The element of a float constant of one element. */
bool prn_grad_constant_float(prn_gradient *g, uint32_t value, double *out);
void prn_grad_add_to(prn_gradient *g, uint32_t value, uint32_t gradient);

/* ---- making nodes ---- */

prn_attr prn_grad_attr_int(const char *name, int64_t value);
prn_attr prn_grad_attr_float(const char *name, double value);
prn_attr prn_grad_attr_text(const char *name, const char *text);
prn_attr prn_grad_attr_ints(const char *name, const int64_t *values, size_t count);
#define PRN_GRAD_NO_ATTRS NULL, 0

/* All outputs of one node of the standard operators. Attributes are copied. */
void prn_grad_node(prn_gradient *g, const char *op, const prn_attr *attrs, size_t attr_count, const uint32_t *inputs,
                   size_t input_count, uint32_t *outputs, size_t output_count);
/* With one output. Inputs after the last given are PRN_NO_VALUE. */
uint32_t prn_grad_op(prn_gradient *g, const char *op, const prn_attr *attrs, size_t attr_count, const uint32_t *inputs,
                     size_t input_count);
uint32_t prn_grad_1(prn_gradient *g, const char *op, uint32_t a);
uint32_t prn_grad_2(prn_gradient *g, const char *op, uint32_t a, uint32_t b);
uint32_t prn_grad_3(prn_gradient *g, const char *op, uint32_t a, uint32_t b, uint32_t c);

/* Rank 0, of the type of `like`. */
uint32_t prn_grad_number(prn_gradient *g, uint32_t like, double number);
uint32_t prn_grad_numbers(prn_gradient *g, uint32_t like, prony_shape shape, const double *numbers);
uint32_t prn_grad_index(prn_gradient *g, int64_t number);
/* Rank 1, int64. */
uint32_t prn_grad_indices(prn_gradient *g, const int64_t *numbers, size_t count);
/* [begin, end) as int64 of rank 1. */
uint32_t prn_grad_axes(prn_gradient *g, int64_t begin, int64_t end);
uint32_t prn_grad_shape_of(prn_gradient *g, uint32_t value);
/* Extent of one axis as a tensor of one element. */
uint32_t prn_grad_extent(prn_gradient *g, uint32_t value, int64_t axis);
/* The type and shape of `like`, filled with a number. */
uint32_t prn_grad_filled(prn_gradient *g, uint32_t like, double number);
uint32_t prn_grad_reshape(prn_gradient *g, uint32_t value, uint32_t shape);
uint32_t prn_grad_reshape_like(prn_gradient *g, uint32_t value, uint32_t like);
uint32_t prn_grad_expand_like(prn_gradient *g, uint32_t value, uint32_t like);
uint32_t prn_grad_transpose(prn_gradient *g, uint32_t value, const int64_t *perm, size_t rank);
/* axes PRN_NO_VALUE: all of them. */
uint32_t prn_grad_reduce(prn_gradient *g, const char *op, uint32_t value, uint32_t axes, bool keep);
/* The bool or integer `mask` as numbers of the type of `like`. */
uint32_t prn_grad_cast_like(prn_gradient *g, uint32_t mask, uint32_t like);
/* Sums over what was broadcast from the shape of `like`. */
uint32_t prn_grad_unbroadcast(prn_gradient *g, uint32_t value, uint32_t like);

/* Shorthands for the standard's operators. */
static inline uint32_t prn_grad_mul(prn_gradient *g, uint32_t a, uint32_t b)
{
    return prn_grad_2(g, "Mul", a, b);
}
static inline uint32_t prn_grad_div(prn_gradient *g, uint32_t a, uint32_t b)
{
    return prn_grad_2(g, "Div", a, b);
}
static inline uint32_t prn_grad_add(prn_gradient *g, uint32_t a, uint32_t b)
{
    return prn_grad_2(g, "Add", a, b);
}
static inline uint32_t prn_grad_sub(prn_gradient *g, uint32_t a, uint32_t b)
{
    return prn_grad_2(g, "Sub", a, b);
}
static inline uint32_t prn_grad_neg(prn_gradient *g, uint32_t a)
{
    return prn_grad_1(g, "Neg", a);
}

#endif
