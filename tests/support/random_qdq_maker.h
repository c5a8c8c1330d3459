/* Shared by the parts of the maker of QDQ networks. Nodes and numbers are those of tests/support/random_graph_maker.h.
 */
#ifndef PRN_TESTS_SUPPORT_RANDOM_QDQ_MAKER_H
#define PRN_TESTS_SUPPORT_RANDOM_QDQ_MAKER_H

#include "tests/support/random_graph_maker.h"

enum { QM_MOST_PARAMETERS = 256, QM_MOST_SCALES = 64 };

/* Scale and zero point of a QuantizeLinear or DequantizeLinear; zero -1: omitted. */
typedef struct qm_parameters {
    int scale, zero;
    prony_dtype type;
    double step;  /* of the first channel */
    int axis;     /* -1: one scale */
    bool contrib; /* the operators are of com.microsoft */
} qm_parameters;

typedef struct qm_maker {
    rg_maker k;
    int style;       /* of scales: powers of two, round decimals, any */
    int change;      /* percent of patterns with one change */
    int contrib;     /* percent of operators of com.microsoft */
    bool wide_types; /* int16 and uint16 */
    bool narrow;     /* weights of 4 bits, of 16 bits, and with a scale for each block (opset 21) */
    qm_parameters all[QM_MOST_PARAMETERS];
    size_t count;
    int *parameters_of; /* per value: index in `all`; -1: not dequantized */
    size_t known, capacity;
} qm_maker;

/* ---- parameters ---- */

bool qm_changed(qm_maker *q);
int qm_pick_int(qm_maker *q, const int *from, size_t count);
#define QM_ONE_OF(q, ...) qm_pick_int(q, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))
/* The parameters with which the value was dequantised; NULL: it was not. */
const qm_parameters *qm_parameters_of(const qm_maker *q, int value);
/* A constant of these numbers; rank 0 if `count` is -1. */
int qm_reals(qm_maker *q, prony_dtype dtype, const double *reals, int64_t count);
/* A scale of about this size in the graph's style. */
double qm_step(qm_maker *q, double about);

/* New parameters for values of this size, as their index in `all`; `channels`: a scale for each entry along axis 1, -1:
 * one. */
int qm_add_parameters(qm_maker *q, double most, int64_t channels);

/* ---- nodes ---- */

/* Dequantises codes, most often with the parameters of this index. */
int qm_dequantize(qm_maker *q, int codes, int index, double most);

/* Quantises and dequantises `value`, with new parameters, earlier ones, or `like` (which may be NULL). */
int qm_quantize(qm_maker *q, int value, const qm_parameters *like);
/* The same most of the time; otherwise `value` stays in float. */
int qm_store(qm_maker *q, int value, const qm_parameters *like);
/* Constant weights, dequantized most of the time: one scale, or one for each entry along the axis. *steps has *scales
 * numbers, if known. */
int qm_weights(qm_maker *q, const prony_shape *shape, int axis, double *steps, int64_t *scales);
/* Adds a node between an operator and its QuantizeLinear: an activation, rarely an Identity, Cast or Dropout. */
int qm_between(qm_maker *q, int value);
/* A visible float32 value, dequantized most of the time; -1: not found. */
int qm_pick(qm_maker *q, int low, int high);

/* One for each channel: float, or int32 codes; -1: none. `steps`: of the weights, `scales` of them. */
int qm_bias(qm_maker *q, int x, int64_t channels, const double *steps, int64_t scales);
/* " name=[v,v]" */
size_t qm_put_list(char *text, size_t size, const char *name, int axes, const int64_t *values);
/* true: a value of the shape is small enough. */
static inline bool qm_fits(const prony_shape *shape)
{
    const int64_t count = prony_shape_numel(shape);
    return count >= 0 && count <= RG_MOST_ELEMENTS;
}

/* ---- recipes: each adds nodes if it finds operands ---- */

void qm_make_conv(qm_maker *q);
void qm_make_qlinear_conv(qm_maker *q);
void qm_make_split(qm_maker *q);
void qm_make_conv_transpose(qm_maker *q);
void qm_make_product(qm_maker *q);
void qm_make_binary(qm_maker *q);
void qm_make_concat(qm_maker *q);
void qm_make_pool(qm_maker *q);
void qm_make_move(qm_maker *q);
void qm_make_functions(qm_maker *q);
/* random_qdq_types.c */
void qm_make_half(qm_maker *q);
int qm_narrow_weights(qm_maker *q, const prony_shape *shape);

#endif
