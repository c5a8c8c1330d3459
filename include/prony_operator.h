/* Operators of your own: what their functions see, how they are registered; and the table of built-in ones.
 * Conventions: prony.h. */
#ifndef PRONY_OPERATOR_H
#define PRONY_OPERATOR_H

#include "prony.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- attributes, as a custom operator sees them --------------------------------------------------------------- */

typedef struct prony_node {
    const char *name;    /* never NULL; may be made up from the operator and index if the model has none */
    const char *op_type; /* "Conv" */
    const char *domain;  /* "" is ai.onnx */
    int64_t opset;       /* version of `domain` that the model imports */
    const struct prn_attr_list *attributes;
    const char *within; /* the If and its branch that it was put in place of, as messages name them; NULL: none */
} prony_node;

/* Each returns false, leaving *out alone, if the node has no such attribute of that type. Results are borrowed. */
PRONY_API bool prony_node_int(const prony_node *node, const char *name, int64_t *out);
PRONY_API bool prony_node_float(const prony_node *node, const char *name, float *out);
PRONY_API bool prony_node_string(const prony_node *node, const char *name, prony_string *out);
PRONY_API bool prony_node_ints(const prony_node *node, const char *name, const int64_t **out, size_t *count);
PRONY_API bool prony_node_floats(const prony_node *node, const char *name, const float **out, size_t *count);
PRONY_API bool prony_node_tensor(const prony_node *node, const char *name, const prony_value **out);

/* ---- the context an operator's functions see -------------------------------------------------------------------- */

/* One struct for infer, cost, prepare and run.
 *  infer:   inputs have type and full shape; `data` is set only where the value is known already. Fill type and shape of
 *           the outputs. If the shape depends on data that is not there yet, set rank -1: infer is called again at run
 *           time, then with all data.
 *  cost:    outputs are inferred. bytes_read, bytes_written and parameters arrive filled by the general rule.
 *  run:     `data` of inputs and wanted outputs is set; outputs do not overlap inputs unless the kernel allows it.
 * An omitted optional input, or an output nobody asked for, is a NULL pointer. */
/* How exactly an operator that multiplies and adds many numbers has to compute on float32. */
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

typedef struct prony_context {
    const prony_node *node;
    const void *params; /* built-in operators: the parsed attribute struct */
    void *user;         /* custom operators: the definition's `user` */
    void *state;        /* what prepare made; custom operators: NULL */
    size_t input_count; /* trailing omitted inputs are not counted */
    size_t output_count;
    const prony_value *const *inputs;
    prony_value *const *outputs;
    void *scratch; /* in run: bytes that prepare asked for (none: not NULL either), 64-byte aligned;
                                       contents undefined */
    size_t scratch_bytes;
    int threads;                         /* this call's intra-op thread budget, >= 1 */
    const struct prn_post_ops *post_ops; /* set by rewrites on operators that take them; otherwise NULL */
    const struct prn_services *host;     /* what operators may ask of the engine */
    void *host_data;
    prony_error *error;
    prony_precision precision; /* what the session admits; more is always right */
    uint32_t constant_inputs;  /* bit i: input i is a constant of the graph, the same in every run */
} prony_context;

typedef prony_status (*prony_infer_fn)(const prony_context *context);
typedef prony_status (*prony_cost_fn)(const prony_context *context, prony_cost *cost);
typedef prony_status (*prony_run_fn)(const prony_context *context);

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

/* Whether the work that the calling thread does for a session was called off (prony_session_cancel); for loops that
 * take long. What run makes does not count then, whatever it returns. True on every thread of prony_parallel_for, which
 * leaves no piece out by itself. */
PRONY_API bool prony_cancelled(const prony_context *context);

/* ---- custom operators and overrides --------------------------------------------------------------------------- */

typedef struct prony_operator {
    size_t struct_size;
    const char *domain; /* "" for ai.onnx */
    const char *name;
    int64_t since_opset;  /* first version of the domain this definition serves */
    prony_infer_fn infer; /* required */
    prony_cost_fn cost;   /* required: an operator without a cost would falsify the totals */
    prony_run_fn run;     /* required; with several inter-op workers it may be called for different nodes at the same
                             time */
    void *user;           /* handed back in context->user; must outlive the registry and every model using it */
} prony_operator;
#define PRONY_OPERATOR_INIT {sizeof(prony_operator), "", 0, 1, 0, 0, 0, 0}

PRONY_API PRONY_MUST_USE prony_status prony_registry_create(prony_registry **out, prony_error *error);
/* Copies the definition. A custom operator goes before a built-in one of the same name. A second definition of the same
 * domain, name and since_opset is PRONY_INVALID_ARGUMENT. Not to be called once a model uses the registry. */
PRONY_API PRONY_MUST_USE prony_status prony_registry_add(prony_registry *registry, const prony_operator *definition,
                                                         prony_error *error);
/* Replaces the cost or shape function of an existing operator; context->user is `user`. A second override of the same
 * function is PRONY_INVALID_ARGUMENT. */
PRONY_API PRONY_MUST_USE prony_status prony_cost_override(prony_registry *registry, const char *domain,
                                                          const char *name, prony_cost_fn cost, void *user,
                                                          prony_error *error);
PRONY_API PRONY_MUST_USE prony_status prony_infer_override(prony_registry *registry, const char *domain,
                                                           const char *name, prony_infer_fn infer, void *user,
                                                           prony_error *error);
/* Drops the caller's reference; models keep theirs. */
PRONY_API void prony_registry_release(prony_registry *registry);

/* ---- operator table --------------------------------------------------------------------------------------------- */

typedef struct prony_operator_info {
    const char *domain;
    const char *name;
    int64_t since_opset;
    const char *types;          /* element types of the first input, comma-separated */
    const char *cost;           /* the cost formula in words */
    const char *const *kernels; /* in order of preference; none: nodes of other operators take its place (Gradient) */
    size_t kernel_count;
} prony_operator_info;

PRONY_API size_t prony_operator_count(void);
PRONY_API const prony_operator_info *prony_operator_at(size_t index);

#ifdef __cplusplus
}
#endif
#endif
