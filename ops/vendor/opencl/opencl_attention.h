/* Attention of float32 on an OpenCL device: scores stay in local memory. */
#ifndef PRN_OPS_VENDOR_OPENCL_ATTENTION_H
#define PRN_OPS_VENDOR_OPENCL_ATTENTION_H

#include "ops/kernels/attention/attend.h"
#include "ops/vendor/opencl/opencl.h"

typedef enum prn_opencl_mask {
    PRN_OPENCL_NO_MASK,
    PRN_OPENCL_MASK_ADDED,
    PRN_OPENCL_MASK_CHOOSES, /* a truth value that is not `kept` makes a score `fill` */
    PRN_OPENCL_MASK_LEAVES   /* one that is false adds -infinity */
} prn_opencl_mask;

/* Q, K and V are inputs 0 to 2, the mask is input 3, Y is output 0. */
typedef struct prn_opencl_attend {
    const prn_attend *at; /* sizes, strides, scale, kept and fill */
    prn_opencl_mask mask;
    int64_t mask_stride[4], mask_keys; /* later keys are left out */
    bool causal;                       /* row s attends to keys 0 to before + s */
    int64_t before;
    float cap;   /* 0: scores are not capped */
    float alone; /* result of a row that attends to no key */
} prn_opencl_attend;

/* Reads the sizes alone. */
bool prn_opencl_attend_supported(const prony_context *context, const prn_attend *at);
prony_status prn_opencl_attend_prepare(const prony_context *context, const prn_opencl_attend *problem,
                                       prn_prepared *out);

/* Q, K and V from other inputs, or from elements behind their beginnings; with a bias, or with a mask that each run
 * computes on the host. */
typedef struct prn_opencl_projected {
    size_t input[3], bias; /* bias: input of a row of Q's heads, one of K's and one of V's */
    int64_t from[3];       /* elements */
    uint32_t biased;       /* bit i: it is added to Q, K or V; 0: there is none */
    size_t mask;           /* input of the problem's mask, which is added */
    int64_t mask_count;    /* floats of a mask that the run fills instead; 0: none */
} prn_opencl_projected;
prony_status prn_opencl_projected_prepare(const prony_context *context, const prn_opencl_attend *problem,
                                          const prn_opencl_projected *projected, prn_prepared *out);
/* The mask for the run to fill; it stays as it is until the run has waited. NULL: none. */
float *prn_opencl_projected_mask(const prony_context *context);
prony_status prn_opencl_projected_run(const prony_context *context);

/* New rows of keys or values: that of sequence b, head h and row s begins at element
 * from + b batch + h head + s row of `input`. */
typedef struct prn_opencl_fresh {
    size_t input;
    int64_t from, batch, head, row;
} prn_opencl_fresh;

/* Turning by positions: pairs of a row, and the inputs of cosines and sines. */
typedef struct prn_opencl_angles {
    int64_t half;
    bool interleaved;
    size_t cosines, sines;
} prn_opencl_angles;

/* Sequences of different lengths: rows of each before this run, and positions of the new rows, come in a table of
 * batch + batch * rows ints, which the run fills. */
typedef struct prn_opencl_groups {
    prn_opencl_angles angles; /* half 0: nothing is turned */
    int64_t window;           /* keys that a row attends to at most; 0: all */
    bool as_rows;             /* rows are the heads of one new row */
    bool smooth;              /* the denominator has a further term, 1 */
    size_t sink;              /* input of such terms' logarithms; 0: none */
} prn_opencl_groups;

/* K and V are caches on the device (ops/vendor/opencl/opencl_kv_cache.h): addresses 0 and 1 beside the values
 * (opencl_launch.h). New rows are written behind `past` rows of each block of `capacity` rows; then they are attended
 * to. */
typedef struct prn_opencl_append {
    prn_opencl_fresh k, v;
    int64_t rows, capacity, past;
    size_t mask;                     /* input of the problem's mask */
    const prn_opencl_groups *groups; /* NULL: the sequences have one length */
} prn_opencl_append;

bool prn_opencl_append_supported(const prony_context *context, const prn_attend *at, int64_t capacity);
prony_status prn_opencl_append_prepare(const prony_context *context, const prn_opencl_attend *problem,
                                       const prn_opencl_append *append, prn_prepared *out);
/* The table of a step with groups, for its run to fill. */
int32_t *prn_opencl_append_table(const prony_context *context);
/* Brings the caches' past rows to the device where they are missing, appends, attends, and copies the new rows to the host
 * blocks. */
prony_status prn_opencl_append_run(const prony_context *context, void *host_k, void *host_v);

/* RotaryEmbedding of input 0. */
typedef struct prn_opencl_rotation {
    prn_opencl_angles angles;
    int64_t rows, heads, size;
    bool packed;     /* [batch, rows, heads, size], otherwise heads before rows */
    int64_t ids;     /* positions that the run gives; 0: rows of the angles in order */
    bool first_only; /* one, that of the first row */
} prn_opencl_rotation;
/* Input 0, cosines and sines are the device's; positions are the host's. */
bool prn_opencl_rotate_supported(const prony_context *context, size_t cosines, size_t sines);
prony_status prn_opencl_rotate_prepare(const prony_context *context, const prn_opencl_rotation *rotation,
                                       prn_prepared *out);
/* `ids` are checked, and stay as they are until the run has waited. */
prony_status prn_opencl_rotate_run(const prony_context *context, const int64_t *ids);

#endif
