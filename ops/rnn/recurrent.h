/* RNN, GRU and LSTM as one recurrence over time, told apart by a cell.
 *
 *   gates(t) = X(t) W^T + Wb, joined by h(t-1) R^T + Rb as the cell says; then h(t) (and c(t)) unit by unit
 *
 * recurrent.c describes and counts a node, recurrent_native.c runs float32, recurrent_reference.c every float type in
 * double. A step past a sequence's length leaves the state as it is and puts zeros out. Nothing here owns memory but
 * the native kernel's state. */
#ifndef PRN_OPS_RNN_RECURRENT_H
#define PRN_OPS_RNN_RECURRENT_H

#include "ops/kernels/vector/number.h"
#include "ops/rnn/recurrent_simd.h"
#include "ops/op.h"

enum { PRN_MAX_DIRECTIONS = 2, PRN_MAX_GATE_FUNCTIONS = 3 };

typedef struct prn_recurrent_params {
    prn_floats activation_alpha, activation_beta;
    float clip; /* of what goes into a gate's function; infinity: none */
    const char *direction;
    int64_t hidden_size, layout, linear_before_reset, input_forget;
} prn_recurrent_params;

/* The rows that every cell has. 'activations', a list of strings, is read where the node is described. */
#define PRN_RECURRENT_ROWS                                                                                             \
    PRN_FLOATS(prn_recurrent_params, activation_alpha), PRN_FLOATS(prn_recurrent_params, activation_beta),             \
        PRN_FLOAT(prn_recurrent_params, clip, INFINITY), PRN_STRING(prn_recurrent_params, direction, "forward"),       \
        PRN_INT(prn_recurrent_params, hidden_size, PRN_ABSENT), PRN_INT(prn_recurrent_params, layout, 0)

/* X(SYMBOL, name, takes alpha, takes beta, default alpha, default beta, flops, special, madds) */
#define PRN_GATE_LIST(X)                                                                                               \
    X(SIGMOID, "Sigmoid", false, false, 0.0f, 0.0f, 4, 2, 0)                                                           \
    X(TANH, "Tanh", false, false, 0.0f, 0.0f, 1, 1, 0)                                                                 \
    X(RELU, "Relu", false, false, 0.0f, 0.0f, 1, 0, 0)                                                                 \
    X(AFFINE, "Affine", true, true, 1.0f, 0.0f, 2, 0, 1)                                                               \
    X(LEAKY_RELU, "LeakyRelu", true, false, 0.01f, 0.0f, 2, 0, 0)                                                      \
    X(THRESHOLDED_RELU, "ThresholdedRelu", true, false, 1.0f, 0.0f, 1, 0, 0)                                           \
    X(SCALED_TANH, "ScaledTanh", true, true, 1.0f, 1.0f, 3, 1, 0)                                                      \
    X(HARD_SIGMOID, "HardSigmoid", true, true, 0.2f, 0.5f, 4, 0, 1)                                                    \
    X(ELU, "Elu", true, false, 1.0f, 0.0f, 4, 1, 0)                                                                    \
    X(SOFTSIGN, "Softsign", false, false, 0.0f, 0.0f, 3, 1, 0)                                                         \
    X(SOFTPLUS, "Softplus", false, false, 0.0f, 0.0f, 3, 2, 0)

typedef enum prn_gate_id {
#define PRN_GATE_ENUM(symbol, ...) PRN_GATE_##symbol,
    PRN_GATE_LIST(PRN_GATE_ENUM)
#undef PRN_GATE_ENUM
} prn_gate_id;

/* An activation function with its numbers. */
typedef struct prn_gate {
    prn_gate_id id;
    float alpha, beta;
} prn_gate;

/* Operations per unit (one element of h at one step). */
typedef struct prn_unit_cost {
    uint64_t flops, special, madds;
} prn_unit_cost;

struct prn_recurrent;

/* One row (batch item) of one step in double. Vectors of H or gates * H elements. */
typedef struct prn_recurrent_row_f64 {
    const struct prn_recurrent *node;
    int direction;
    const double *r, *rb; /* R [gates * H, H] and its bias (NULL: none), of this direction */
    const double *p;      /* peepholes [3 H]; NULL: none */
    double *x;            /* X(t) W^T + Wb, for the cell to overwrite */
    double *h, *c;
    double *temp; /* gates * H + H elements of working space */
} prn_recurrent_row_f64;

/* The same in float32, after a product with R. */
typedef struct prn_recurrent_row_f32 {
    const struct prn_recurrent *node;
    int direction;
    const float *x;  /* X(t) W^T + Wb + Rb; with linear_before_reset the last gate is without Rb */
    const float *rb; /* NULL: none */
    const float *p;
    float *gates; /* h(t-1) R^T, or r h(t-1) R^T in the second part; for the cell to overwrite */
    float *h, *c;
    float *temp; /* H elements; what the first part leaves is what the second product multiplies with R */
} prn_recurrent_row_f32;

/* The differences of the three operators; the variant of their rows. */
typedef struct prn_recurrent_cell {
    int gates;
    int functions; /* of one direction */
    const char *defaults[PRN_MAX_GATE_FUNCTIONS];
    bool has_c; /* cell state and peepholes: inputs 6 and 7, output 2 */
    /* Besides the products and biases. */
    prn_unit_cost (*unit_cost)(const struct prn_recurrent *node, int direction);
    void (*row_f64)(const prn_recurrent_row_f64 *row);
    /* Gates whose product with R takes h(t-1) itself; the others follow in a second product. */
    int (*first_gates)(const struct prn_recurrent *node);
    void (*row_f32[2])(const prn_recurrent_row_f32 *row);
    /* True if a step of this direction, whose input is not clipped and has no peepholes, is one of recurrent_simd.h,
     * and which each of its products is. */
    bool (*fused_steps)(const struct prn_recurrent *node, int direction, prn_recurrent_step_id *steps);
} prn_recurrent_cell;

/* A node's sizes and strides (in elements), and its operands in one context. */
typedef struct prn_recurrent {
    const prn_recurrent_cell *cell;
    const prn_recurrent_params *params;
    const prony_value *x, *w, *r, *b, *lengths, *h0, *c0, *p; /* NULL where omitted */
    prony_value *y, *yh, *yc;                                 /* NULL where unwanted */
    int64_t steps, batch, input, hidden, columns;             /* columns: gates * hidden */
    int directions;
    bool reverse[PRN_MAX_DIRECTIONS];
    prn_gate gate[PRN_MAX_DIRECTIONS][PRN_MAX_GATE_FUNCTIONS];
    int64_t x_step, x_row;
    int64_t y_step, y_row, y_direction;
    int64_t state_row, state_direction; /* of initial and final states */
    int parts;                          /* of its products, as prn_gemm has them */
} prn_recurrent;

/* The node of a context whose operator has a cell for its variant. */
prony_status prn_recurrent_describe(const prony_context *context, prn_recurrent *out);
/* Takes the operands of another context of the same node: another run's. */
void prn_recurrent_operands(const prony_context *context, prn_recurrent *node);
prony_status prn_recurrent_check(const prony_context *context);
prony_status prn_recurrent_infer(const prony_context *context);
prony_status prn_recurrent_cost(const prony_context *context, prony_cost *cost);
/* At run: every length lies in [0, steps]. */
prony_status prn_recurrent_check_lengths(const prony_context *context, const prn_recurrent *node);

/* Adds what a gate's function costs, clipping its input included. */
void prn_gate_add_cost(prn_unit_cost *cost, const prn_recurrent *node, prn_gate gate);
double prn_gate_f64(const prn_recurrent *node, prn_gate gate, double x);
/* In place, clipped first. Not for PRN_GATE_THRESHOLDED_RELU. */
void prn_gate_f32(const prn_recurrent *node, prn_gate gate, float *x, int64_t n);
/* The same without clipping. */
void prn_gate_unclipped_f32(prn_gate gate, float *y, const float *x, int64_t n);
double prn_gate_unclipped_f64(prn_gate gate, double x);

/* out[j] = sum over i of r[j][i] h[i], plus rb[j]. */
void prn_recurrent_product_f64(double *out, const double *r, const double *h, const double *rb, int64_t rows,
                               int64_t hidden);

bool prn_recurrent_native_supported(const prony_context *context);
prony_status prn_recurrent_native_prepare(const prony_context *context, prn_prepared *out);
prony_status prn_recurrent_native_run(const prony_context *context);
prony_status prn_recurrent_reference_prepare(const prony_context *context, prn_prepared *out);
prony_status prn_recurrent_reference_run(const prony_context *context);

#endif
