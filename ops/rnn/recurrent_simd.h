/* One time step of a recurrent layer with the usual functions, compiled once per instruction set: the product of the
 * last state with R and what the cell makes of it, a block of units at a time, so that no gate is stored in between. */
#ifndef PRN_OPS_RNN_RECURRENT_SIMD_H
#define PRN_OPS_RNN_RECURRENT_SIMD_H

#include <stdbool.h>
#include <stdint.h>

/* Gates of one product with R, in the order of the packed form. */
typedef enum prn_recurrent_step_id {
    PRN_STEP_LSTM,          /* i, o, f, c: sigmoid, tanh, tanh */
    PRN_STEP_GRU_LINEAR,    /* z, r, h with linear_before_reset: sigmoid, tanh */
    PRN_STEP_GRU_GATES,     /* z, r without: leaves z in `z` and r h in `out` */
    PRN_STEP_GRU_CANDIDATE, /* h, of what PRN_STEP_GRU_GATES left */
    PRN_STEP_RNN_TANH,
    PRN_STEP_RNN_RELU,
    PRN_STEP_COUNT
} prn_recurrent_step_id;

/* Rows are batch items; `hidden` elements each where nothing else is said. No output overlaps `in`. */
typedef struct prn_recurrent_step {
    int64_t rows, hidden;
    const float *in; /* what is multiplied with R */
    const float *r;  /* [block][hidden][gates][lanes]; units beyond `hidden` are zeros */
    const float *x;  /* X W^T + b, gate by gate */
    const float *rb; /* GRU_LINEAR: bias of the last gate's product, before the reset gate; NULL: none */
    const float *h;  /* the last state: for the GRU */
    float *out;      /* the next state, or what the second product takes */
    float *y;        /* written as well; NULL: not wanted */
    float *c;        /* LSTM: the cell state */
    float *z;        /* GRU without linear_before_reset */
    int64_t in_row, x_row, h_row, out_row, y_row, rs_c, z_row;
    bool backward; /* from the last block to the first */
} prn_recurrent_step;

typedef struct prn_recurrent_simd {
    const char *name;
    int64_t lanes; /* units of a block */
    /* Blocks [first, last) of every row. An element's result does not depend on where the range ends. */
    void (*step[PRN_STEP_COUNT])(const prn_recurrent_step *step, int64_t first, int64_t last);
} prn_recurrent_simd;

#endif
