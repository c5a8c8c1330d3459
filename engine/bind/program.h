/* A program: one graph at bound shapes. Bind makes it, rewrites edit it, the plan reads it.
 *
 *   prn_graph + input shapes --bind--> program --rewrites--> program --plan--> steps
 *
 * Values and layers are only added; nodes are edited or marked dead. A layer is an original node of the model with its
 * cost, fixed at bind time. Each live node lists the layers it stands for. Every layer with a cost belongs to exactly
 * one live node, so rewrites conserve costs. Ownership: everything is in the program's pool (addresses of values and
 * nodes are stable), except constants (model file or shared cache) and child programs. One thread at a time. */
#ifndef PRN_ENGINE_BIND_PROGRAM_H
#define PRN_ENGINE_BIND_PROGRAM_H

#include "base/memory/alloc.h"
#include "engine/bind/engine_model.h"
#include "ops/op.h"

#define PRN_NO_VALUE UINT32_MAX
#define PRN_NO_NODE UINT32_MAX
#define PRN_NO_WEIGHT UINT32_MAX

/* One reader of a value: input `index` of a node, its capture by child `child`, or output `index` of the graph (node
 * NULL). Outdated once the reader reads something else. */
typedef struct prn_use {
    struct prn_use *next;
    struct prn_node_def *node;
    uint32_t index, child;
} prn_use;

#define PRN_NO_CHILD UINT32_MAX

/* Dependence of a value on extents that change from run to run (engine/bind/dynamic_dims.h). */
enum {
    PRN_DYNAMIC_DIMS_AFFECT = 1, /* it follows from an input that has one: type, shape or elements may depend on it */
    PRN_DYNAMIC_DIMS_CHANGE = 2, /* a constant whose elements do; its data is NULL while the program is rewritten */
    PRN_DYNAMIC_DIMS_DECIDE = 4, /* a constant that decided which nodes there are */
    PRN_DYNAMIC_DIMS_FIXED =
        8 /* a constant that follows from them and came out the same: what follows from it does not */
};
static inline bool prn_dynamic_dims_affect(uint8_t extents)
{
    return (extents & (PRN_DYNAMIC_DIMS_AFFECT | PRN_DYNAMIC_DIMS_FIXED)) == PRN_DYNAMIC_DIMS_AFFECT;
}

typedef struct prn_value_def {
    const char *name;
    prony_value info; /* type and shape (rank -1: known at run time only); data for constants; layout plain */
    bool constant;    /* same in every run; info.data is NULL only in a static program */
    prn_weight_cache_entry *shared; /* cache entry of constants that bind or a rewrite made; NULL: the model's bytes */
    bool input, output;             /* of the graph */
    bool cache;                     /* a graph input whose bytes have room for program->cache_rows rows in each block */
    bool appended;                  /* such an input behind whose rows the program writes the new ones */
    uint32_t producer;              /* node; PRN_NO_NODE for inputs and constants */
    uint32_t weight;                /* initializers and Constant outputs: index into program->weights; otherwise
                                PRN_NO_WEIGHT */
    uint32_t folded_from; /* the node that bind evaluated; its inputs lead to the weights; otherwise PRN_NO_NODE */
    uint8_t claims;       /* which claims of weights have passed through it */
    uint8_t extents;      /* PRN_DYNAMIC_DIMS_* bits, in a program whose input extents change */
    uint64_t moved_at;    /* the program's last change of extents (program->moves) that changed its type, shape or
                             elements; 0: none */
    bool reached;         /* the last change of extents (prn_dynamic_dims_set) moved it; see program->reached_only */
    prn_use *places;      /* every reader, and outdated ones */
} prn_value_def;

/* An initializer or Constant output: counted as parameters once, by the first layer that uses it as a weight. */
typedef struct prn_weight {
    uint64_t elements, bytes; /* elements: packed codes count each; bytes: as stored */
    prony_dtype dtype;
    int32_t rank;
    unsigned bits; /* of an element: of its type, or of the codes that are packed into it */
    bool claimed;
    bool buffer;    /* running statistics: no parameter, but part of what the model has learnt */
    uint32_t layer; /* the first that uses it; meaningful if claimed or buffer */
} prn_weight;

typedef struct prn_program prn_program;

/* A call of a model-local function while its body is walked, with the data that its inner nodes need later. */
typedef struct prn_frame {
    const prn_function *function;
    const prn_attr_list *attributes; /* of the call; references are resolved */
    const char *name;                /* of the call: inner nodes are "name/inner" */
    const struct prn_frame *outer;
} prn_frame;

/* A subgraph attribute of a node, bound. */
typedef struct prn_child {
    const prn_graph *graph;
    const char *name; /* of the attribute: "then_branch", "body" */
    prn_program *program;
    uint32_t *captured; /* values of the parent, in the order of graph->captured */
    uint32_t captured_count;
    uint64_t folded_bytes; /* its share of the outermost program's */
} prn_child;

/* The reason why a node with dequantized operands computes on floats; profiler/report/reasons.c has the texts. */
typedef enum prn_stays_in_float {
    PRN_FLOAT_NOTHING_SAID,
    PRN_FLOAT_NO_FORM,    /* it has no quantised operator */
    PRN_FLOAT_NOT_STORED, /* its result is not quantized, or the float result has other readers */
    PRN_FLOAT_OPERAND,    /* another operand is neither constant nor quantized */
    PRN_FLOAT_PARAMETERS, /* scales, zero points or a bias that the quantised operator does not take */
    PRN_FLOAT_KEPT        /* quantized, it would lose more than was allowed (prony_model_quantize) */
} prn_stays_in_float;

typedef struct prn_node_def {
    prony_node info;
    prn_operator_binding binding;
    void *params;
    uint32_t *inputs; /* value ids; PRN_NO_VALUE where omitted */
    uint32_t *outputs;
    uint32_t input_count, output_count;
    const prony_value **input_values; /* &values[id]->info, NULL where omitted: what contexts point at */
    prony_value **output_values;
    prn_child *children;
    uint32_t child_count;
    const prn_frame *frame; /* of the function whose body holds it; NULL: no function */
    uint32_t *layers;       /* layers that it stands for, ascending */
    uint32_t layer_count, layer_capacity;
    uint32_t own_layer;             /* the layer that it was bound as; the others were absorbed */
    uint32_t first_kept, last_kept; /* of its layers that are not removed, a list through the layers: index + 1; 0:
                                       none */
    prn_post_ops *post_ops;         /* NULL: none */
    bool dead;                      /* evaluated at bind time, unused, or absorbed by a rewrite */
    bool dynamic;                   /* an input or output shape is known only at run time */
    bool folded;                    /* evaluated at bind time, whatever reads its outputs */
    bool computes;                  /* one of its layers has arithmetic */
    uint8_t stays_in_float;         /* prn_stays_in_float */
} prn_node_def;

/* A cost with room for existing facts only. Unused facts are most of prony_cost. */
typedef struct prn_kept_cost {
    uint64_t macs, madds, flops, special, int_ops, bytes_read, bytes_written, parameters;
    prony_fact *facts;
    uint32_t fact_count;
} prn_kept_cost;

typedef struct prn_layer {
    prony_node info;
    const uint32_t *inputs, *outputs; /* value ids */
    uint32_t input_count, output_count;
    prn_kept_cost cost;
    bool folded; /* evaluated at bind time, or unused */
    bool dynamic;
    bool removed;       /* an identity that a rewrite removed, or folded into weights: it has no time */
    uint32_t next_kept; /* of the node that stands for it: index + 1; 0: the last */
    uint64_t moved_at;  /* the last change of extents that counted its cost again */
    bool reached;       /* the last change of extents counted its cost again; see program->reached_only */
    uint32_t leader;    /* the layer of a congruent node, which has the same cost at all extents: index + 1; 0: none */
} prn_layer;

struct prn_program {
    const prony_model *model;
    const prn_graph *graph;
    const prn_program *parent;
    bool static_only;   /* inspect: large constants are not read, nothing runs */
    bool conditional;   /* (inside) a branch of an If: may never run, and then need not fit its inputs */
    int64_t largest;    /* the largest size of a changing extent; 0: no extent changes */
    uint64_t moves;     /* changes of extents so far (prn_dynamic_dims_set) */
    uint64_t reaches;   /* changes of the set of values and layers that are `reached` */
    bool reached_only;  /* the last change moved exactly these; false: it may have moved any, and `reached` is old */
    int64_t cache_rows; /* rows that a generator's caches have room for; 0: no generator */
    int cache_type;     /* prn_cache_type of their bytes */
    const bool *fixed;  /* while it is bound: the options' array */
    size_t fixed_count;
    prn_bump pool;
    prn_weight_cache_refs refs;
    prn_value_def **values;
    size_t value_count, value_capacity;
    prn_node_def **nodes; /* in order of execution */
    size_t node_count, node_capacity;
    prn_layer *layers;
    size_t layer_count, layer_capacity;
    prn_weight *weights;
    size_t weight_count, weight_capacity;
    uint64_t weight_bytes; /* of all of them */
    uint32_t *inputs;      /* explicit graph inputs, then captured values */
    size_t input_count;
    uint32_t *outputs;
    size_t output_count;
    uint64_t folded_bytes;    /* of constants evaluated so far, subgraphs included; of the outermost program */
    uint64_t *folded_total;   /* that of the outermost program */
    uint64_t bound_nodes;     /* nodes of functions and subgraphs bound so far, counted at each bind; of the outermost
                               program */
    uint64_t *bound_total;    /* that of the outermost program */
    uint64_t misfits;         /* nodes of branches that reject their inputs; of the outermost program */
    uint64_t *misfit_total;   /* that of the outermost program */
    uint64_t unfolded_bytes;  /* bytes that these nodes took; of the outermost program */
    uint64_t *unfolded_total; /* that of the outermost program */
    size_t counted_bytes;     /* of the pool, so far */
    const prn_frame *frame;   /* of the function that holds its node; NULL: none */
    uint32_t depth;           /* number of programs and function calls around this one */
};

/* Bounds the memory that a model file can claim by constants. Evaluation beyond this limit, or beyond half of the
 * memory limit's rest, stays run-time work. Subgraphs share the outermost program's limit. */
#define PRN_FOLD_LIMIT_BYTES (UINT64_C(1) << 30)
/* Bounds time and memory of functions that call functions, and of Loops in Loops: nodes of functions and subgraphs in
 * one bind. */
#define PRN_BIND_LIMIT_NODES (UINT64_C(1) << 18)
/* Bounds the bytes of these nodes: nested calls have long names, so a few nodes can be large. */
#define PRN_BIND_LIMIT_BYTES (UINT64_C(512) << 20)
/* Bounds the nesting of subgraphs and function calls. */
#define PRN_BIND_LIMIT_DEPTH 64

/* `inputs`: type and full shape per explicit graph input (rank -1: known at run time only). */
typedef struct prn_bind_options {
    const prony_value *inputs;
    size_t input_count;
    const prony_value *optional; /* by optional input of the graph: type and shape, PRONY_UNDEFINED: its default; NULL:
                                    all have it */
    bool static_only;
    bool conditional;   /* a branch, or inside of one */
    const bool *open;   /* [input_count]: true if the input has extents that change; NULL: no input has */
    int64_t largest;    /* the largest size of such an extent */
    const bool *caches; /* [input_count]: true if the input is a generator's cache; NULL: none is */
    int64_t cache_rows; /* rows that caches have room for */
    int cache_type;     /* prn_cache_type of their bytes */
    const bool *fixed;  /* by value: prn_dynamic_dims_fixed of the same graph at the same inputs; NULL: none */
    size_t fixed_count;
    const prn_frame *frame; /* of the node that owns the subgraph; NULL: no function */
} prn_bind_options;

/* Infers every shape, evaluates nodes that depend on constants alone, counts every node. For a subgraph, `parent` and
 * `captured` (parent value ids in the order of graph->captured) are given; otherwise NULL. */
PRN_MUST_USE prony_status prn_program_bind(prn_program **out, const prony_model *model, const prn_graph *graph,
                                           const prn_program *parent, const uint32_t *captured,
                                           const prn_bind_options *options, prony_error *error);
void prn_program_release(prn_program *program);

/* false: out of memory. */
PRN_MUST_USE bool prn_layer_keep_cost(prn_program *program, prn_layer *layer, const prony_cost *cost);
/* Takes the cost of another layer; `layer` keeps its parameters. false: out of memory. */
PRN_MUST_USE bool prn_layer_share_cost(prn_program *program, prn_layer *layer, const prn_layer *from);
prony_cost prn_layer_cost(const prn_layer *layer);
/* Keeps facts where `kept` has room for them: `facts`, of at least cost->fact_count; NULL: none are kept. */
void prn_cost_keep(prn_kept_cost *kept, const prony_cost *cost);
prony_cost prn_cost_kept(const prn_kept_cost *kept);

/* ---- editing, for bind and rewrites ---- */

/* PRN_NO_VALUE on out of memory. */
uint32_t prn_program_add_value(prn_program *program, const char *name);
/* Appends to the order of execution; NULL on out of memory. */
prn_node_def *prn_program_add_node(prn_program *program);
/* A new constant of the type and shape in `info`. `data` comes from prn_alloc_aligned(64, …) and is taken over, also on
 * failure; equal constants are shared. */
PRN_MUST_USE prony_status prn_program_add_constant(prn_program *program, const char *name, const prony_value *info,
                                                   void *data, uint32_t *out, prony_error *error);
/* Sets a node's inputs (ids are copied). false: out of memory, node unchanged. */
PRN_MUST_USE bool prn_node_set_inputs(prn_program *program, prn_node_def *node, const uint32_t *inputs, uint32_t count);
PRN_MUST_USE bool prn_node_set_outputs(prn_program *program, prn_node_def *node, const uint32_t *outputs,
                                       uint32_t count);
/* Adds a post-operation to the node; prn_node_takes_post_op. false: out of memory, node unchanged. */
PRN_MUST_USE bool prn_node_add_post_op(prn_program *program, prn_node_def *node, const prn_post_op *op);
/* Turns a node into another built-in operator with these attributes, which must outlive the program; name, inputs,
 * outputs and layers stay. Error if the table has no such row or the row rejects the attributes. */
PRN_MUST_USE prony_status prn_node_become(prn_program *program, prn_node_def *node, const char *domain, const char *op,
                                          int64_t opset, const prn_attr_list *attributes, prony_error *error);
/* As prn_program_add_constant, for the result of a recipe that reads all of `from` (NULL: the model's own bytes). */
PRN_MUST_USE prony_status prn_program_add_deferred(prn_program *program, const char *name, const prony_value *info,
                                                   const prn_lazy_constant *recipe, prn_weight_cache_entry *from,
                                                   uint32_t *out, prony_error *error);
/* Pins a constant: its bytes may be read until the program unpins them. */
PRN_MUST_USE prony_status prn_program_hold(prn_program *program, uint32_t value, prony_error *error);
/* Notes a reader of a value (nodes' inputs are noted when they are set). false: out of memory. */
PRN_MUST_USE bool prn_program_note_use(prn_program *program, uint32_t value, prn_node_def *node, uint32_t index,
                                       uint32_t child);
/* Every use of `from` (inputs of live nodes, captured lists, graph outputs) becomes `to`. */
void prn_program_replace_uses(prn_program *program, uint32_t from, uint32_t to);
/* Number of inputs of live nodes, captures and graph outputs that read each value; `uses` has value_count entries. */
void prn_program_count_uses(const prn_program *program, uint32_t *uses);
/* Moves the layers of `from` to `to`; `from` then stands for no layer. false: out of memory, unchanged. */
PRN_MUST_USE bool prn_program_hand_over(prn_program *program, prn_node_def *to, prn_node_def *from);
/* Moves the layers of `absorbed` to `keep`; `absorbed` is dead afterwards. false: out of memory, unchanged. */
PRN_MUST_USE bool prn_program_absorb(prn_program *program, prn_node_def *keep, prn_node_def *absorbed);
/* The node's layers are marked as removed. */
void prn_program_mark_removed(prn_program *program, prn_node_def *node);
/* Marks nodes with unread outputs as dead. Costs are conserved only if another node took the layers of each dead node.
 * So bind sweeps before costs are fixed, and rewrites absorb before they sweep. */
PRN_MUST_USE bool prn_program_sweep(prn_program *program);
/* Releases the data of constants that no live node, subgraph or output reads: constants that rewrites replaced, and
 * forms packed to evaluate nodes. Their types and shapes stay. Bound subgraphs are trimmed too. `others`: further reads
 * per value; NULL: none. false: out of memory, nothing is lost. */
PRN_MUST_USE bool prn_program_trim(prn_program *program, const uint32_t *others);

#endif
