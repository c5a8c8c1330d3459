/* The parts of the float32 recurrence: recurrent_native.c prepares and runs it, recurrent_walk.c goes through
 * time. */
#ifndef PRN_OPS_RNN_RECURRENT_NATIVE_H
#define PRN_OPS_RNN_RECURRENT_NATIVE_H

#include "ops/kernels/gemm/gemm_kernel.h"
#include "ops/kernels/vector/vec.h"
#include "ops/rnn/recurrent.h"

enum { PRN_RECURRENT_PARTS = 2 };

/* Weights in packed form: constant ones, or where each run packs them in scratch. NULL: they are read as they are. */
typedef struct prn_recurrent_weights {
    const float *w[PRN_MAX_DIRECTIONS], *r[PRN_MAX_DIRECTIONS][PRN_RECURRENT_PARTS];
    bool pack_w, pack_r;
    bool fused; /* steps of recurrent_simd.h; R is packed for them */
} prn_recurrent_weights;

/* A step's state is one of these; a run copies it and fills in its operands, scratch and threads. */
typedef struct prn_recurrent_job {
    prn_recurrent node;
    prn_recurrent_weights weights;
    const prn_vec_table *vec;
    const prn_recurrent_simd *simd;
    int64_t block, group, groups;          /* steps of a block, batch items of a group, groups */
    int64_t part[PRN_RECURRENT_PARTS + 1]; /* first column of each product with R, and their end */
    prn_recurrent_step_id step[PRN_RECURRENT_PARTS];
    float *bias, *projection, *gates, *temp, *c;
    float *h; /* fused: of even steps, `h_other` behind it of odd ones */
    int64_t h_other;
    int64_t h_row, h_direction, rs_c, c_direction;
    int threads; /* inside of a step */
    int64_t first;
} prn_recurrent_job;

/* The product of a group's states with R that part `part` of a step makes. */
prn_gemm prn_recurrent_step_product(const prn_recurrent_job *job, int direction, int part);

/* Elements of R's columns of a part as fused steps want them, and puts them there. */
uint64_t prn_recurrent_packed_count(const prn_recurrent_job *job, int part);
void prn_recurrent_pack(const prn_recurrent_job *job, int threads, int direction, int part, float *packed);

/* First time step of the block that begins with the walk's step job->first. */
int64_t prn_recurrent_block_start(const prn_recurrent_job *job, int64_t count, int direction);
/* A task of prn_parallel_tasks: the block of steps for one group of one direction. */
void prn_recurrent_walk(void *job, int64_t task);

#endif
