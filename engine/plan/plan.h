/* The plan: an array of steps over one arena, made once per input shapes and thread budget, run many times.
 *
 *   program --kernels, layouts, reorders--> steps --views, joins, in-place, lifetimes--> buffers --memory plan-->
 *   offsets
 *
 * Every step's context is complete after planning: pointers into `values`, whose data pointers are fixed unless the
 * value is dynamic. A run therefore touches no name, no lock and no heap. Ownership: the plan owns its values, steps,
 * states and arena, and holds references to the program's shared data. It borrows the program. Used by one session, one
 * run at a time. */
#ifndef PRN_ENGINE_PLAN_PLAN_H
#define PRN_ENGINE_PLAN_PLAN_H

#include "engine/bind/node_environment.h"
#include "engine/memory/memory_plan.h"
#include "engine/memory/arena.h"
#include "engine/plan/trace.h"

#define PRN_NO_BUFFER UINT32_MAX
#define PRN_NO_STEP UINT32_MAX

/* What of a plan is at one place that is not the host: the roots there lie in one block. */
typedef struct prn_plan_memory_space {
    const prn_memory_space *place;
    void *block;
    prn_memory_plan_figures figures;
} prn_plan_memory_space;

enum { PRN_ON_HOST = 0, PRN_MOST_PLACES = UINT8_MAX };

typedef struct prn_plan_value {
    prony_value value; /* what contexts point at; layout settled */
    uint32_t source;   /* program value it is, or is a reordered form of */
    uint32_t variant;  /* next form of the same value, in another layout or at another place; PRN_NO_VALUE ends */
    uint32_t alias;    /* value whose bytes it shares; PRN_NO_VALUE: its own */
    uint64_t alias_offset;
    uint32_t view;     /* value whose elements it has, if no step makes it: what it was a view of before anything was
                      joined */
    uint64_t bytes;    /* in its layout */
    uint32_t defined;  /* step; PRN_NO_STEP: before the first */
    uint32_t last_use; /* step; step_count for graph outputs */
    uint32_t buffer;   /* of a value with bytes of its own in the arena; otherwise PRN_NO_BUFFER */
    bool constant, input, dynamic;
    uint8_t place;                  /* PRN_ON_HOST, or the number of one of the plan's places */
    prn_weight_cache_entry *shared; /* of constants: see prn_value_def */
    void *lent;                     /* of a root: bytes outside of the arena that it is made in instead; NULL: none */
} prn_plan_value;

/* Type and shape of a value. */
typedef struct prn_tensor_type {
    prony_kind kind;
    prony_dtype dtype;
    prony_shape shape;
} prn_tensor_type;

typedef struct prn_step {
    uint32_t index; /* in plan->steps */
    prn_node_def *node;
    const prn_kernel *kernel;         /* dynamic steps: NULL, chosen when run */
    const struct prn_tune_row *tuned; /* what the kernel was chosen by (engine/plan/tune.h); NULL: nothing was
                                         measured */
    const prn_kernel *chosen;         /* dynamic steps: by the last run; NULL before the first */
    uint32_t *inputs, *outputs;       /* plan value ids; PRN_NO_VALUE where omitted */
    const prony_value **input_values;
    prony_value **output_values;
    prony_context context;
    prn_node_environment site;
    void *state;
    uint32_t scratch_buffer;
    struct prn_plan **children; /* one per node child */
    uint32_t children_buffer;   /* arena bytes the children share: one runs at a time */
    prn_tensor_type
        *forms;      /* dynamic steps: of inputs and outputs as `chosen` was chosen for them; NULL: it is chosen anew by
                        every run */
    bool costed;     /* `cost` is that of these forms */
    uint32_t unheld; /* dynamic steps; bit i: constant input i is deferred and nobody holds it: kernels have packed it
                        so far */
    uint32_t *dying; /* dynamic values whose last reader this step is */
    uint32_t dying_count;
    bool dynamic;
    bool empty;         /* its outputs have no elements: nothing runs */
    prn_kept_cost cost; /* layers' sum; bytes external; dynamic steps and those with children: of the last run. Facts:
                           of dynamic ones */
    /* In this run so far, over all times it was executed; parameters 0. Steps with children: work of their own beside
     * the children's. In a subgraph: of dynamic steps what they did. */
    prony_cost *executed;  /* NULL: a step of known cost without children */
    uint32_t nested_index; /* in a subgraph: its place among all steps of subgraphs (engine/run/nested.h) */
    int64_t nested_start_ns, nested_ns; /* in a subgraph, while stamped: when it last began, and what it took
                                           altogether */
} prn_step;

/* What runs it, or last ran it. NULL: a dynamic step before its first run. */
static inline const prn_kernel *prn_step_kernel(const prn_step *step)
{
    return step->dynamic ? step->chosen : step->kernel;
}

#define PRN_WORKERS_AUTO (-1)

typedef struct prn_plan_options {
    prony_precision precision;
    int threads;          /* inside of an operator; 0: as many as fit beside the workers */
    int workers;          /* that run steps side by side; 0 and 1: one; PRN_WORKERS_AUTO: what the plan gains from */
    int cores;            /* that may be used; for what is left open above */
    bool no_help;         /* workers that have nothing to do leave other workers' operators alone */
    prn_step_rates rates; /* zero: a guess */
    bool record_memory;
    int64_t max_loop_trips;    /* 0: 2^31 */
    bool follows;              /* for prn_plan_respecialize: no joins and parts, whose offsets are extents' */
    bool no_reuse;             /* no views, joins, parts or results in place; every buffer lives for the whole run */
    struct prn_tuning *tuning; /* kernels are chosen by measurement, as far as precision and extents let them; NULL:
                                  they are not */
    bool standard_kernels;     /* with `tuning`: nothing is measured and no step follows what was */
    bool kernels_only;         /* kernels and layouts are chosen and nothing is prepared: such a plan cannot run */
    bool fill_dead;            /* tests: dead bytes hold a pattern, see engine/plan/buffer_poison.h; runs are then not
                               stamped */
} prn_plan_options;

typedef struct prn_plan {
    prn_program *program;
    prn_plan_options options;
    prn_bump pool;
    prn_weight_cache_refs refs;
    prn_plan_value **values; /* stable addresses; the first program->value_count are the program's, in its order */
    size_t value_count, value_capacity;
    prn_step **steps;
    size_t step_count, step_capacity;
    uint32_t *outputs; /* plan values of the graph outputs, plain */
    prn_buffer *buffers;
    uint32_t *buffer_owner; /* value id; for scratch and children: step index */
    uint8_t *buffer_tag;    /* prn_arena_tag */
    size_t buffer_count;
    prn_memory_plan_figures figures;
    uint64_t scratch_bytes;        /* largest of any step, as asked */
    prn_plan_memory_space *places; /* value->place k is places[k - 1]; those of subgraphs are their plans' own */
    size_t place_count;            /* 0: everything is on the host */
    prn_arena *arena;              /* of the outermost plan; children borrow it */
    uint8_t *base;                 /* where this plan's buffers start */
    struct prn_plan *outer;
    uint32_t *kept; /* dynamic values that outlive the last step: graph outputs */
    uint32_t kept_count;
    struct prn_step_graph *graph;           /* several workers: the order that steps must keep; NULL: one worker, the
                                           array's order */
    struct prn_schedule *schedule;          /* several workers: how a run goes; NULL otherwise */
    int workers;                            /* 1 without a graph */
    int threads;                            /* inside of an operator, each worker */
    char workers_note[160];                 /* why so many, where that was the plan's to choose or not as asked for; ""
                                    otherwise */
    prony_cost fixed_cost;                  /* of the layers whose cost no run changes; parameters 0 */
    const struct prn_tune_verdict *verdict; /* of the outermost: what came of running it beside the default plan
                                               (engine/plan/tune.h); NULL: it was not */
    bool stamped;                           /* the run at hand is: what runs in subgraphs keeps the time of each step */
    uint32_t stopped_at; /* step at which the last run failed or was called off; PRN_NO_STEP: nowhere */
    /* Of a subgraph: value and step of the outermost plan that its memory is booked to; and how often it was begun in
     * this run of the step around it all. */
    uint32_t account, account_step;
    uint64_t trips;
    uint32_t nested_index; /* engine/run/nested.h: its place among the subgraphs */
} prn_plan;

/* Value that owns the bytes, and the offset in them. */
uint32_t prn_plan_root(const prn_plan *plan, uint32_t value, uint64_t *offset);

/* Whether it is as the model has it: plain, on the host. */
static inline bool prn_plan_is_plain(const prn_plan_value *value)
{
    return value->value.layout == PRN_PLAIN && value->place == PRN_ON_HOST;
}

/* That form of a captured value, which settling made sure exists. */
uint32_t prn_plan_plain(const prn_plan *plan, uint32_t value);

/* Whether what a step makes may still lie where the plan put it: in an input's bytes, which its kernel overwrites. */
bool prn_plan_stays_in_place(const prn_plan *plan, const prn_step *step);

/* Views, joins, in-place outputs, lifetimes and offsets: fills alias, buffer, buffers and figures. Steps are
 * settled. */
PRN_MUST_USE prony_status prn_plan_buffers(prn_plan *plan, prony_error *error);
/* Points every value with bytes in the arena at them. */
void prn_plan_point(prn_plan *plan, uint8_t *base);

/* Gives the values at other places their bytes there; buffers and lifetimes are settled. */
PRN_MUST_USE prony_status prn_plan_memory_spaces_allot(prn_plan *plan, prony_error *error);
void prn_plan_memory_spaces_release(prn_plan *plan);
/* Copies a value that is not on the host there, as it lies. */
PRN_MUST_USE prony_status prn_plan_fetch(const prn_plan *plan, uint32_t value, void *to, prony_error *error);

/* Runs all steps. `trace` may be NULL: no stamps. Inputs' data pointers are set by the caller. Dynamic outputs of the
 * run before were given up (prn_plan_forget). After a failure the plan holds nothing in the dynamic region. */
PRN_MUST_USE prony_status prn_plan_run(prn_plan *plan, prn_trace *trace, prony_error *error);
/* One step, without its stamps. What dies with it is the caller's to give up (prn_plan_give_back). */
PRN_MUST_USE prony_status prn_plan_step(prn_plan *plan, uint32_t step, prony_error *error);
void prn_plan_give_back(prn_plan *plan, uint32_t value, uint32_t step);
/* Gives the dynamic outputs of the last run back. */
void prn_plan_forget(prn_plan *plan);
/* to += what a step with children did in the last run of the step around it all, the children's work included;
 * parameters stay. false: overflow. */
/* Only a run says what it costs: shapes, branches and trips decide. */
static inline bool prn_step_learns_cost(const prn_step *step)
{
    return step->dynamic || step->children;
}

/* Layer `layer` of a step that learns its cost has what the step executes: its own layer does, and one that was written
 * like it, without arithmetic, does as well. */
static inline bool prn_step_gives_cost(const prn_plan *plan, const prn_step *step, uint32_t layer)
{
    const prn_layer *row = &plan->program->layers[layer];
    return prn_step_learns_cost(step) &&
           (layer == step->node->own_layer || (step->dynamic && row->dynamic && !row->removed));
}

/* Of a step that learns its cost: adds what the other layers cost that its node stands for, which no run changes. The
 * step's own cost is without it. false: it overflows. */
PRN_MUST_USE bool prn_step_beside(const prn_plan *plan, const prn_step *step, prony_cost *to);
PRN_MUST_USE bool prn_step_executed(const prn_step *step, prony_cost *to);

#endif
