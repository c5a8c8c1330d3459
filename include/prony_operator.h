/* Operators of your own: what their functions see, how they are registered; and the table of built-in ones.
 * Conventions: prony.h. */
#ifndef PRONY_OPERATOR_H
#define PRONY_OPERATOR_H

#include "prony.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- nodes and attributes, as an operator's functions see them ---- */

/* Attributes as the library holds them. */
struct prony_attributes;

typedef struct prony_node {
    const char *name;    /* never NULL; may be made up from the operator and index if the model has none */
    const char *op_type; /* "Conv" */
    const char *domain;  /* "" is ai.onnx */
    int64_t opset;       /* version of `domain` that the model imports */
    const struct prony_attributes *attributes; /* opaque: read it with the functions below */
    const char *within;                        /* the If and the branch that replaced it, for messages; NULL: none */
} prony_node;

/* The integer attribute `name`. false, and *out is left alone: the node has no attribute of this name and type. */
PRONY_API bool prony_node_int(const prony_node *node, const char *name, int64_t *out);
/* The float attribute `name`; as prony_node_int. */
PRONY_API bool prony_node_float(const prony_node *node, const char *name, float *out);
/* The string attribute `name`, borrowed from the model; as prony_node_int. */
PRONY_API bool prony_node_string(const prony_node *node, const char *name, prony_string *out);
/* The integer list `name`: *count numbers, borrowed from the model; as prony_node_int. */
PRONY_API bool prony_node_ints(const prony_node *node, const char *name, const int64_t **out, size_t *count);
/* The float list `name`: *count numbers, borrowed from the model; as prony_node_int. */
PRONY_API bool prony_node_floats(const prony_node *node, const char *name, const float **out, size_t *count);
/* The tensor attribute `name`, borrowed from the model; as prony_node_int. */
PRONY_API bool prony_node_tensor(const prony_node *node, const char *name, const prony_value **out);

/* ---- the context an operator's functions see ---- */

/* The precision that an operator with sums of many float32 products has to keep. */
typedef enum prony_precision {
    PRONY_PRECISION_FP32,         /* as exactly as by plain sums in float32 */
    PRONY_PRECISION_FAST,         /* about 1e-5 of the output's range */
    PRONY_PRECISION_BF16,         /* factors rounded to bfloat16, sums in float32 */
    PRONY_PRECISION_FP16,         /* constant operands of products rounded to half precision, sums in float32 */
    PRONY_PRECISION_INT8_WEIGHTS, /* to 8 bits, with a scale for each column */
    PRONY_PRECISION_INT4_WEIGHTS, /* to 4 bits, with a scale for each column and group of depths */
    PRONY_PRECISION_FP32_STRICT   /* products as the model has them, sums in one order: the same bits on every
                                     instruction set */
} prony_precision;

/* The library's own, opaque to operators. */
struct prony_post_ops;
struct prony_engine_services;
struct prony_device_step;

/* One struct for infer, cost, prepare and run.
 *
 *  infer    inputs have type and full shape; `data` is set only where the value is known already. The function fills
 *           type and shape of the outputs. If a shape depends on data that is not there yet, it sets rank -1: infer is
 *           called again at run time, with all data.
 *  cost     outputs are inferred. bytes_read, bytes_written and parameters arrive filled by the general rule.
 *  prepare  inputs and outputs have type and shape; only inputs in `constant_inputs` have `data`.
 *  run      `data` of inputs and wanted outputs is set; outputs do not overlap inputs.
 *
 * An omitted optional input, or an output that no node reads, is a NULL pointer. Everything is borrowed and valid
 * during the call. Several threads may call the functions of one definition at the same time, each with a context of
 * its own. */
typedef struct prony_context {
    const prony_node *node;
    void *user;         /* the definition's `user` */
    void *state;        /* run: made by prepare; NULL without a prepare function */
    size_t input_count; /* trailing omitted inputs are not counted */
    size_t output_count;
    const prony_value *const *inputs;
    prony_value *const *outputs;
    void *scratch; /* run: the bytes that prepare asked for, 64-byte aligned, contents undefined; never NULL */
    size_t scratch_bytes;
    int threads; /* this call's intra-op thread budget, >= 1 */
    prony_error *error;
    prony_precision precision; /* precision of the session; a more exact result is always right */
    uint32_t constant_inputs;  /* bit i: input i is a constant of the graph, the same in every run */

    /* The library's own. */
    const void *params;
    const struct prony_post_ops *post_ops;
    const struct prony_engine_services *services;
    void *services_data;
    struct prony_device_step *device;
} prony_context;

/* State and working memory, from prepare to the plan; arrives zeroed. */
typedef struct prony_prepared {
    void *state;          /* passed to every run as context->state, and to release once; may be NULL */
    size_t scratch_bytes; /* working memory of one run, planned together with the model's buffers */
} prony_prepared;

typedef prony_status (*prony_infer_fn)(const prony_context *context);
typedef prony_status (*prony_cost_fn)(const prony_context *context, prony_cost *cost);
typedef prony_status (*prony_prepare_fn)(const prony_context *context, prony_prepared *out);
typedef prony_status (*prony_run_fn)(const prony_context *context);
typedef void (*prony_release_fn)(void *state);

/* Writes a message into context->error (if there is one), prefixed by node and operator, and returns `status`. */
PRONY_API prony_status prony_fail(const prony_context *context, prony_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* Calls fn(argument, begin, end) over disjoint pieces of [0, count), at most context->threads at a time. The pieces
 * depend on `count` and `grain` (smallest piece worth handing out) alone, so results cannot vary with the thread
 * count. */
PRONY_API void prony_parallel_for(const prony_context *context, int64_t count, int64_t grain,
                                  void (*fn)(void *argument, int64_t begin, int64_t end), void *argument);

/* true: the session's call was cancelled (prony_session_cancel); for loops that take long. The result of run does not
 * count then, whatever it returns. True on every thread of prony_parallel_for, which leaves no piece out by itself. */
PRONY_API bool prony_cancelled(const prony_context *context);

/* ---- custom operators and overrides ---- */

typedef struct prony_operator {
    size_t struct_size;
    const char *domain; /* NULL, "" or "ai.onnx": ONNX's own operators */
    const char *name;
    int64_t since_opset;  /* first version of the domain this definition serves */
    prony_infer_fn infer; /* required */
    prony_cost_fn cost;   /* required: an operator without a cost would falsify the totals */
    prony_run_fn run;     /* required; with several inter-op workers it may be called for different nodes at the same
                             time */
    void *user;           /* handed back in context->user; must outlive the registry and every model using it */
    /* Work that is the same in every run, such as packing a constant weight, and the size of the working memory. Called
     * when a plan is made: once a node, session and set of input shapes; a node whose shapes only a run knows is
     * prepared by that run. NULL: nothing to prepare. */
    prony_prepare_fn prepare;
    /* Frees the state that prepare made when its plan is released, on any thread; called with NULL too, as free is.
     * NULL: nothing to free. */
    prony_release_fn release;
} prony_operator;
#define PRONY_OPERATOR_INIT PRONY_INIT_WITH(prony_operator, since_opset, 1)

/* An empty registry. The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_registry_create(prony_registry **out, prony_error *error);
/* Copies the definition. A custom operator takes precedence over a built-in one of the same name. A second
 * definition of the same domain, name and since_opset is PRONY_INVALID_ARGUMENT. Not to be called once a model uses
 * the registry. */
PRONY_API PRONY_MUST_USE prony_status prony_registry_add(prony_registry *registry, const prony_operator *definition,
                                                         prony_error *error);
/* Replaces the cost or shape function of an existing operator; context->user is `user`. A second override of the same
 * function is PRONY_INVALID_ARGUMENT. */
PRONY_API PRONY_MUST_USE prony_status prony_cost_override(prony_registry *registry, const char *domain,
                                                          const char *name, prony_cost_fn cost, void *user,
                                                          prony_error *error);
/* As prony_cost_override, for the function that infers types and shapes. */
PRONY_API PRONY_MUST_USE prony_status prony_infer_override(prony_registry *registry, const char *domain,
                                                           const char *name, prony_infer_fn infer, void *user,
                                                           prony_error *error);
/* Drops the caller's reference; models keep theirs. */
PRONY_API void prony_registry_release(prony_registry *registry);

/* ---- operator table ---- */

typedef struct prony_operator_info {
    const char *domain;
    const char *name;
    int64_t since_opset;
    const char *types;          /* element types of the first input, comma-separated */
    const char *cost;           /* the cost formula in words */
    const char *const *kernels; /* in order of preference; empty: nodes of other operators replace it (Gradient) */
    size_t kernel_count;
} prony_operator_info;

/* Number of built-in operators; each opset version of an operator counts. */
PRONY_API size_t prony_operator_count(void);
/* Built-in operator `index`. Static; NULL: no such index. */
PRONY_API const prony_operator_info *prony_operator_at(size_t index);

#ifdef __cplusplus
}
#endif
#endif
