/* An operator is one descriptor row, which binds attributes, shape inference, cost and kernels.
 *
 * Operators know no graph, no file, no clock and no profiler. They ask the engine services for everything above them
 * (prn_services). Descriptors and kernels are const and shared by all threads; what a kernel keeps between runs is its
 * prepared state, which belongs to one plan step and is read-only while running. */
#ifndef PRN_OPS_OP_H
#define PRN_OPS_OP_H

#include "base/attr.h"
#include "base/shape.h"
#include "base/status.h"
#include "ops/layout.h"
#include "ops/memory_space.h"
#include "ops/pack_key.h"

/* ---- attributes ------------------------------------------------------------------------------------------------- */

typedef struct prn_ints {
    const int64_t *v; /* not NULL where present */
    size_t count;
    bool present;
} prn_ints;

typedef struct prn_floats {
    const float *v;
    size_t count;
    bool present;
} prn_floats;

/* Default of an integer attribute whose absence means something of its own. */
#define PRN_ABSENT INT64_MIN

typedef enum prn_param_type {
    PRN_PARAM_INT,    /* int64_t */
    PRN_PARAM_FLOAT,  /* float */
    PRN_PARAM_STRING, /* const char *; NUL-terminated; default may be NULL */
    PRN_PARAM_INTS,   /* prn_ints */
    PRN_PARAM_FLOATS, /* prn_floats */
    PRN_PARAM_TENSOR, /* const prony_value *; NULL if absent */
    PRN_PARAM_GRAPH   /* const struct prn_graph *; NULL if absent */
} prn_param_type;

/* One attribute row: where it goes in the operator's params struct. */
typedef struct prn_param {
    const char *name;
    prn_param_type type;
    size_t offset;
    bool required;
    int64_t int_default;
    float float_default;
    const char *string_default;
} prn_param;

#define PRN_INT(params, field, value) {#field, PRN_PARAM_INT, offsetof(params, field), false, (value), 0, NULL}
#define PRN_INT_REQUIRED(params, field) {#field, PRN_PARAM_INT, offsetof(params, field), true, 0, 0, NULL}
#define PRN_FLOAT(params, field, value) {#field, PRN_PARAM_FLOAT, offsetof(params, field), false, 0, (value), NULL}
#define PRN_STRING(params, field, value) {#field, PRN_PARAM_STRING, offsetof(params, field), false, 0, 0, (value)}
#define PRN_INTS(params, field) {#field, PRN_PARAM_INTS, offsetof(params, field), false, 0, 0, NULL}
#define PRN_INTS_REQUIRED(params, field) {#field, PRN_PARAM_INTS, offsetof(params, field), true, 0, 0, NULL}
#define PRN_FLOATS(params, field) {#field, PRN_PARAM_FLOATS, offsetof(params, field), false, 0, 0, NULL}
#define PRN_TENSOR(params, field) {#field, PRN_PARAM_TENSOR, offsetof(params, field), false, 0, 0, NULL}
#define PRN_GRAPH(params, field) {#field, PRN_PARAM_GRAPH, offsetof(params, field), false, 0, 0, NULL}
#define PRN_GRAPH_REQUIRED(params, field) {#field, PRN_PARAM_GRAPH, offsetof(params, field), true, 0, 0, NULL}

/* ---- post-operations: what a rewrite attaches to a contraction -------------------------------------------------- */

/* One of each line of activations.inc, where the function stands, and two more. */
typedef enum prn_post_kind {
#define PRN_ACTIVATION(SYMBOL, operator, attributes, a_, b_, flops, special, madds, in_double, in_float, dnnl)         \
    PRN_POST_##SYMBOL,
#include "ops/activations.inc"
    PRN_POST_AFFINE, /* a x + b */
    PRN_POST_ADD     /* + inputs[input], which has the output's shape and layout */
} prn_post_kind;

typedef struct prn_post_op {
    prn_post_kind kind;
    float a, b;
    size_t input;
} prn_post_op;

#define PRN_MAX_POST_OPS 4
/* Applied in order to the operator's result before it is stored. */
typedef struct prony_post_ops { /* the name that prony_operator.h declares */
    prn_post_op op[PRN_MAX_POST_OPS];
    size_t count;
} prn_post_ops;

/* Applies context->post_ops to `count` consecutive float32 elements of the output, the first of them at element index
 * `first` of output 0 (as stored), in place at `data`. A NULL post_ops does nothing. */
void prn_post_ops_apply_f32(const prony_context *context, float *data, int64_t first, int64_t count);
/* True if zero stays zero (an addition's does where the residual is zero). */
bool prn_post_op_keeps_zero(const prn_post_op *op);
/* True if all of them do; also for NULL. */
bool prn_post_ops_keep_zero(const prn_post_ops *post_ops);
/* Asks for the added values in the output's layout; `in` as in prn_kernel.layouts. NULL: no post-operations. */
void prn_post_ops_ask_layout(const prn_post_ops *post_ops, prn_layout layout, prn_layout *in);

/* An image as it was read: rows from top to bottom, channels (1: grey, 3: red, green, blue) side by side. */
typedef struct prn_pixels {
    uint8_t *data; /* the host's until image_drop */
    int64_t height, width;
    int channels;
} prn_pixels;

/* ---- engine services: what an operator may ask of the engine ---- */

/* Floats of a weight from which on a `build` says what it has read (prn_services.release_range); smaller ones' memory
 * serves the next. */
enum { PRN_RELEASE_WHILE_PACKING_FLOATS = 1 << 22 };

typedef struct prony_engine_services { /* the name that prony_operator.h declares */
    /* A packed form of constant data, built once per model and shared by every session: `source` (address of the
     * constant's bytes) and `key` are its identity. The key's `build` fills `bytes` bytes, 64-byte aligned. Valid as
     * long as the plan. Called from prepare only. A kernel that has packed an input reads the packed form in its runs,
     * never the input. */
    prony_status (*packed)(const prony_context *context, const void *source, const prn_pack_key *key, size_t bytes,
                           void *argument, const void **out);
    /* A `build` given to `packed` says that it has read these bytes of its source; they may be freed. NULL: not
     * supported. */
    void (*release_range)(const prony_context *context, const void *from, size_t bytes);
    /* True if another node reads constant input `input` too, beside a first input of other extents: its kernel may need
     * another packed layout. NULL: no such node. */
    bool (*serves_other_extents)(const prony_context *context, size_t input);
    /* Bytes of all weights of the model, or of the subgraph that the node is in; 0: they are not known. NULL: never. */
    uint64_t (*weight_bytes)(const prony_context *context);
    /* Infers a subgraph for inputs of the given types; fills type and shape of `outputs` (dtype PRONY_UNDEFINED, rank
     * -1: open until it runs), and data where an output is constant. At bind time each call with other types than
     * before binds anew (types from the last call are what runs); at run time it says what was bound. */
    prony_status (*subgraph_infer)(const prony_context *context, const struct prn_graph *graph,
                                   const prony_value *const *inputs, size_t input_count, prony_value *outputs,
                                   size_t output_count);
    /* Sum of the costs of the subgraph's nodes for the given inputs. */
    prony_status (*subgraph_cost)(const prony_context *context, const struct prn_graph *graph,
                                  const prony_value *const *inputs, size_t input_count, prony_cost *cost);
    /* Runs a subgraph. outputs[k] come back as views, valid until the next run of that subgraph. */
    prony_status (*subgraph_run)(const prony_context *context, const struct prn_graph *graph,
                                 const prony_value *const *inputs, size_t input_count, prony_value *outputs,
                                 size_t output_count);
    /* Gives outputs[index] bytes of the arena's dynamic region for the type and shape that it now holds. For outputs
     * whose shape infer left unknown even with all data present. */
    prony_status (*output_alloc)(const prony_context *context, size_t index);
    /* The number of inputs (or outputs) of a subgraph, and the declared type of number `index`, if there is one of that
     * number (dtype PRONY_UNDEFINED, rank -1, dim -1: undeclared). */
    prony_status (*subgraph_port)(const prony_context *context, const struct prn_graph *graph, bool output,
                                  size_t index, size_t *count, prony_value *declared);

    /* ---- values of the operator's own while it runs. They live in the arena's dynamic region, are never written to
     * once they are filled, and may be held several times over. An operator drops every value that it does not hand
     * on; after a failed run the engine releases everything. */

    /* Elements for the type and shape that *value holds. */
    prony_status (*value_take)(const prony_context *context, prony_value *value);
    /* Room for `count` items, zeroed, of the sequence or optional *value. */
    prony_status (*items_take)(const prony_context *context, prony_value *value, size_t count);
    /* *out holds what `from` has: the same bytes where they are the dynamic region's already, else a copy. */
    prony_status (*value_keep)(const prony_context *context, const prony_value *from, prony_value *out);
    /* *out holds the items of the sequence `from` and a zeroed one behind them; copies references seldom. */
    prony_status (*items_append)(const prony_context *context, const prony_value *from, prony_value *out);
    /* *out holds them without the last; false: nothing is held, they have to be copied. */
    bool (*items_shorten)(const prony_context *context, const prony_value *from, prony_value *out);
    void (*value_drop)(const prony_context *context, prony_value *value);
    /* Output `index` becomes *value, which is the operator's own and no longer is afterwards. */
    prony_status (*output_set)(const prony_context *context, size_t index, prony_value *value);
    /* Bytes for the text of string elements; they stay until the run's outputs are gone. */
    prony_status (*text_take)(const prony_context *context, size_t bytes, char **text);
    /* The limit of one Loop's trips. */
    int64_t (*trip_limit)(const prony_context *context);
    /* Adds work of the operator's own to what its subgraphs execute in this run. Only for operators with subgraphs. */
    prony_status (*work_add)(const prony_context *context, const prony_cost *cost);

    /* Reads an image file's bytes. Bytes that are damaged or not an image give out->data NULL and PRONY_OK; a
     * format that is known, but not to this build, is an error that names it. */
    prony_status (*image_decode)(const prony_context *context, const void *bytes, size_t size, prn_pixels *out);
    void (*image_drop)(prn_pixels *image);
} prn_services;

/* Why an operator's products stay float32 although the session asks for another precision: the fact `stays_in_fp32`. */
typedef enum prn_stays_in_fp32 {
    PRN_STAYS_RANGE = 1, /* a weight is infinite, NaN or beyond the range, or all weights lose the same digits */
    PRN_STAYS_VARIABLE,  /* neither operand is a constant matrix */
    PRN_STAYS_SMALL,     /* too little to gain */
    PRN_STAYS_KIND       /* this build lacks a kernel of its kind, or a faster one for this processor */
} prn_stays_in_fp32;

/* ---- kernels ---- */

/* State and scratch bytes that `prepare` hands to the plan. Custom operators use the same struct. */
typedef prony_prepared prn_prepared;

#define PRN_TYPE(dtype) (UINT32_C(1) << (dtype))
#define PRN_TYPE_F32 PRN_TYPE(PRONY_FLOAT32)
#define PRN_PRECISION(precision) (1u << PRONY_PRECISION_##precision)
#define PRN_TYPE_ANY UINT32_C(0)

typedef struct prn_kernel {
    const char *name;     /* "conv_f32_dnnl": operator, type, implementation */
    const char *backend;  /* "dnnl", "openblas", "native" (vectorised C), "reference" (plain C) */
    uint32_t types;       /* PRN_TYPE bits of the first present input; PRN_TYPE_ANY: all */
    uint32_t float_types; /* PRN_TYPE bits of all its floating-point inputs, of an operator that lets them differ; [0]
                             those that it lets through */
    unsigned precisions;  /* PRN_PRECISION bits of those that it serves, alone; [0] all, as it computes in float32 or
                            more, in an order that no instruction set changes */
    /* True if it can run this node (shapes, attributes, post_ops, ISA, which inputs are constant). NULL: always. Must
     * not depend on the thread count: outputs are bit-identical for every number of threads. Nor on what a constant of
     * rank 2 or more contains: its bytes may not be there yet (engine/bind/lazy_constant.h). */
    bool (*supported)(const prony_context *context);
    /* True if it is likely to be faster than the rows below it, of what it can run. NULL: always. Asked when a kernel
     * is chosen; tests run what is usable. The same rule for thread counts. */
    bool (*profitable)(const prony_context *context);
    /* Predicts the cycles that one core takes for this node, in the unit of the operator's cost model; INFINITY: it
     * cannot run the node, or another row certainly takes less. Of successive rows that predict, the plan asks the one
     * with the fewest cycles first; rows without a prediction are asked in order. Cheap: asked of every row, before
     * `supported`. The same rule for thread counts. */
    double (*predict)(const prony_context *context);
    /* Assigns layouts: inputs[i]->layout is what the producer offers; writes what this kernel needs into in[i] and what
     * it makes into out[k]. Both arrays arrive zeroed (PRN_PLAIN). NULL: everything plain. */
    void (*layouts)(const prony_context *context, prn_layout *in, prn_layout *out);
    /* At plan time, layouts assigned in inputs and outputs; input data is set for constants. NULL: nothing to
     * prepare. */
    prony_status (*prepare)(const prony_context *context, prn_prepared *out);
    prony_status (*run)(const prony_context *context);
    void (*release)(void *state);
    /* Bytes of a state that owns no other memory; kernel, types, shapes and attributes decide its contents, but for
     * addresses that `run` sets. [0]: the state is more than that. */
    size_t state_bytes;
    /* Joining operators (Concat): true if input i, in the assigned layouts, is exactly the bytes of output 0 from
     * *offset_bytes on. The plan then lets the producer write there; run skips an input that already lies in its place,
     * and is not called at all when every input does. Asked for the inputs in order; *offset_bytes arrives as it was
     * left for the one before (0 for the first), also where that one does not lie so. NULL: never. */
    bool (*concat_alias)(const prony_context *context, size_t input, uint64_t *offset_bytes);
    /* Splitting operators (Split, Slice): true if output k is exactly the bytes of input 0 from *offset_bytes on. If so
     * for every wanted output, they become views and nothing runs. Asked in order, as `concat_alias` is. NULL:
     * never. */
    bool (*split_alias)(const prony_context *context, size_t output, uint64_t *offset_bytes);
    /* States facts of its work on this node once it is prepared, by prn_cost_fact; profiler/report/reasons.h has the
     * keys and turns them into words. Layouts and shapes alone decide. NULL: nothing. */
    void (*facts)(const prony_context *context, prony_cost *facts);
    uint32_t inplace;          /* bit i: output 0 may lie in input i's bytes (if equally large and dead afterwards) */
    bool post_ops;             /* honours context->post_ops */
    bool post_add_after_store; /* what a post-operation behind the first adds is read after results were stored: its
                                 bytes are not taken over */
    bool own_layout;           /* makes a layout of its own whatever it is offered: no kernel for steps that must stay
                            plain */
    bool layout_invariant;     /* an element-wise map or a move: its outputs have the same bits in every layout, but for
                            which of two NaNs it keeps */
    uint32_t packs; /* bit i: of a constant input i, supported, profitable, layouts and prepare look at nothing but the
                            address, apart from the `build` handed to the host's `packed`. Its bytes are then there
                            while it is packed, and in runs only if it was not. */
    uint32_t unaligned; /* bit i: input i is read as bytes, wherever they lie */
    /* The memory space of its inputs and outputs; [NULL] the host's. Only steps whose types and shapes are known before
     * a run take a kernel of another one. */
    const prn_memory_space *memory_space;
    uint32_t host_inputs, host_outputs; /* of one that is elsewhere; bit i: that input (output) is on the host all the
                                           same */
} prn_kernel;

/* True if output 0 may lie in the bytes of an input, of a node with these post-operations: by the kernel's mask; inputs
 * past its end are never taken over. */
static inline bool prn_kernel_may_overwrite(const prn_kernel *kernel, const prn_post_ops *post_ops, size_t input)
{
    for (size_t i = 1; kernel->post_add_after_store && post_ops && i < post_ops->count; i++)
        if (post_ops->op[i].kind == PRN_POST_ADD && post_ops->op[i].input == input) return false;
    return input < 32 && (kernel->inplace >> input & 1);
}

/* The memory spaces where a kernel reads input i and writes output i. */
static inline const prn_memory_space *prn_kernel_reads_at(const prn_kernel *kernel, size_t i)
{
    return i < 32 && (kernel->host_inputs >> i & 1) ? NULL : kernel->memory_space;
}
static inline const prn_memory_space *prn_kernel_writes_at(const prn_kernel *kernel, size_t i)
{
    return i < 32 && (kernel->host_outputs >> i & 1) ? NULL : kernel->memory_space;
}

/* ---- the descriptor ---- */

enum {
    PRN_OP_VIEW = 1,         /* output 0 is input 0's bytes under another shape or name */
    PRN_OP_POST_OPS = 2,     /* rewrites may attach post-operations; every kernel of the operator then honours them */
    PRN_OP_ONCE_PER_RUN = 4, /* never evaluated at bind time */
    PRN_OP_INT_WEIGHTS = 8,  /* its constant integer inputs of rank >= 1 are weights */
    PRN_OP_DATA_SHAPE = 16,  /* output shape depends on run-time data even when all inputs are given by shape */
    PRN_OP_OTHER_FORM = 128, /* an early opset's form that means something else: rewrites leave it alone */
    PRN_OP_SHAPE_ONLY = 32,  /* the result depends on input 0's shape, not on its data (Shape, Size) */
    PRN_OP_BY_VALUE = 256,   /* which kernel can, or the cost, follows from elements of inputs after the first too, not
                                 from types and shapes alone: a step that learns those in the run asks every time */
    PRN_OP_OPEN = 64         /* takes sequences and optionals too, and infer also sees inputs of which nothing is known
                                 yet (dtype PRONY_UNDEFINED) or no shape (rank -1). Other operators see tensors only. */
};

/* The number of inputs or outputs. */
typedef struct prn_arity {
    int least, most; /* -1: any number */
} prn_arity;

/* Codes of fewer bits than the type that stores them: how many lie in a constant input, and their bits. count 0: each
 * stored element is one. */
typedef struct prn_packed_qint8 {
    uint64_t count;
    unsigned bits;
} prn_packed_qint8;

/* A family file ends with its rows, an array of prn_op whose name is "prn_ops_" and the family's, the last one without
 * a name; a line in op_list.inc names the family. A member that a row leaves out has the value in brackets. */
typedef struct prn_op {
    const char *name;
    const char *domain;        /* [NULL] ai.onnx; prn_op_domain reads it */
    int64_t since_opset;       /* the row with the highest since_opset <= the model's serves; semantics of versions in
                             between are told apart by node->opset */
    prn_arity inputs, outputs; /* outputs [{0, 0}]: one; prn_op_outputs reads them */
    unsigned flags;
    uint32_t non_weight_inputs; /* bit i: a constant input i is not a parameter (running statistics, ratios, bounds,
                                   paddings) */
    const prn_param *params;    /* ends with a NULL name */
    size_t params_bytes;
    prony_status (*check)(const prony_context *context); /* attribute ranges; NULL: none to check */
    prony_infer_fn infer;
    prony_cost_fn cost; /* never NULL; prn_cost_none for data movement */
    /* The formula, for docs/reference/counting.md: n output elements, K kernel volume, M macs … */
    const char *cost_text;
    const prn_kernel *kernels; /* ordered; the first usable wins; the last is the plain C reference; ends with NULL
                                  name */
    const void *variant; /* which of the family's operators it is (an activation, a reduction, an arity …), in the
                            family's own terms; callbacks get it from prn_variant. [NULL] the family has no use for
                            it */
    /* The codes that an input holds as a weight; inputs have their shapes, data may be missing. [NULL] no input is
     * packed */
    prn_packed_qint8 (*packed_codes)(const prony_context *context, size_t input);
    /* Outputs 1 and 2 may have the bytes of inputs cache_input and cache_input + 1, of the same shape: kernels then
     * write new rows only. [0] they may not */
    size_t cache_input;
} prn_op;

static inline const char *prn_op_domain(const prn_op *op)
{
    return op->domain ? op->domain : "";
}
static inline prn_arity prn_op_outputs(const prn_op *op)
{
    return op->outputs.most ? op->outputs : (prn_arity){1, 1};
}
/* The row's `variant`. A caller of another row's functions puts that row's variant into `user`. */
static inline const void *prn_variant(const prony_context *context)
{
    return context->user;
}

/* Refuses an input that is not a tensor. */
prony_status prn_check_tensor(const prony_context *context, size_t input);

/* No arithmetic: leaves the counts at zero (bytes and parameters are filled by the general rule). */
prony_status prn_cost_none(const prony_context *context, prony_cost *cost);

/* Adds a fact. Facts beyond PRONY_MAX_FACTS are counted but not stored, and prn_cost_facts_check refuses the cost. */
void prn_cost_fact(prony_cost *cost, const char *key, int64_t value);
/* Refuses a cost of more than PRONY_MAX_FACTS facts, and leaves it none. The engine calls it after a cost function and
 * after prn_kernel.facts. */
PRN_MUST_USE prony_status prn_cost_facts_check(const prony_context *context, prony_cost *cost);

/* n arithmetic operations on the type of output 0 (input 0 where that is bool or an index): flops for floats, else
 * int_ops; `special` of them are special when they are flops. n and special are per-output-element factors times
 * `count`. */
prony_status prn_cost_elementwise(const prony_context *context, prony_cost *cost, uint64_t count, uint64_t per_element,
                                  uint64_t special_per_element);
/* The same where the arithmetic is in floats whatever the types of input and output. */
prony_status prn_cost_floats(const prony_context *context, prony_cost *cost, uint64_t count, uint64_t per_element,
                             uint64_t special_per_element);
/* macs, and the flops (2 each) or int_ops they are; checked for overflow. */
prony_status prn_cost_macs(const prony_context *context, prony_cost *cost, uint64_t macs, bool integer);

/* to += from, checked; facts are left alone. false: overflow. */
PRN_MUST_USE bool prn_cost_add(prony_cost *to, const prony_cost *from);
/* to += times * from, likewise. */
PRN_MUST_USE bool prn_cost_add_times(prony_cost *to, const prony_cost *from, uint64_t times);

/* ---- the table ---- */

enum { PRN_OP_SLOTS = 2048 }; /* of the index by name: a power of two, at least twice as many as there are rows */
size_t prn_op_count(void);
const prn_op *prn_op_at(size_t index);
/* NULL if no row serves this domain, name and opset. */
const prn_op *prn_op_find(const char *domain, const char *name, int64_t opset);

/* The kernel that a node of this row takes: the first that takes its types and post-operations and is usable, or of
 * those that predict their time the one that predicts the least. plain_only: and that takes plain inputs and makes
 * plain outputs, on the host. `like`: and whose backend, own_layout, memory_space and, if it has one, name are that
 * kernel's (NULL: any); a row asked for by name may predict any time. Returns NULL if no kernel fits. */
const prn_kernel *prn_op_kernel(const prn_op *op, const prony_context *context, bool plain_only,
                                const prn_kernel *like);

/* The row of that name, if it takes the node's types, precision and post-operations; whether it supports the node is
 * not asked. NULL: none. */
const prn_kernel *prn_op_kernel_named(const prn_op *op, const prony_context *context, const char *name);

/* The kernel besides `chosen` that predicts the fewest cycles of those that can run the node; NULL: no other predicts
 * any. Rows of libraries are believed, since asking them takes longer than a small run. Stores its cycles and the
 * chosen kernel's (below 0: it predicts none). */
const prn_kernel *prn_op_next_kernel(const prn_op *op, const prony_context *context, const prn_kernel *chosen,
                                     double *chosen_cycles, double *cycles);

/* True if the row's types are those of the node's inputs. */
bool prn_kernel_takes_types(const prn_kernel *kernel, const prony_context *context);

/* All rows that take the node, whether or not they are worth it, in the table's order: at most `most`. */
size_t prn_op_kernels(const prn_op *op, const prony_context *context, const prn_kernel **out, size_t most);

/* Parses the node's attributes by op->params into `params` (op->params_bytes, zeroed by this function). Unknown
 * attributes are ignored (models carry vendors' extras); a known one of the wrong type is an error that names it.
 * Strings, ints and tensors are borrowed from the list. */
prony_status prn_params_parse(const prn_op *op, const prony_node *node, void *params, prony_error *error);

/* ---- helpers for families ---- */

/* Input i if it is present, else NULL. */
static inline const prony_value *prn_input(const prony_context *context, size_t i)
{
    return i < context->input_count ? context->inputs[i] : NULL;
}
static inline prony_value *prn_output(const prony_context *context, size_t i)
{
    return i < context->output_count ? context->outputs[i] : NULL;
}

/* Sets type and shape of output i if it is wanted. */
void prn_set_output(const prony_context *context, size_t i, prony_dtype dtype, const prony_shape *shape);
/* Output 0 has input 0's type and shape. */
prony_status prn_infer_same(const prony_context *context);
/* Output 0: broadcast shape of all inputs, input 0's type; types must agree. */
prony_status prn_infer_broadcast(const prony_context *context);
/* Error "input i (name) …" helpers: type and rank checks that say what was wanted and what came. */
prony_status prn_check_type(const prony_context *context, size_t input, uint32_t types);
prony_status prn_check_rank(const prony_context *context, size_t input, int min_rank, int max_rank);

/* For a kernel's prepare: what it has read of the node, kept for its runs as their state. A copy, which `.release =
 * prn_free` gives back. It excludes pointers to values or their bytes: a run takes those from its own context. */
prony_status prn_prepared_keep(const prony_context *context, const void *problem, size_t bytes, prn_prepared *out);

/* Reads a constant int32/int64 tensor input into `out` (at most `capacity`). *known is false while its data is not
 * there. */
prony_status prn_input_ints(const prony_context *context, size_t input, int64_t *out, size_t capacity, size_t *count,
                            bool *known);

#endif
