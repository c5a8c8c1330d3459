/* The plan: an array of steps over one arena, made once per input shapes and thread budget, run many times.
 *
 *   program --kernels, layouts, reorders--> steps --views, joins, in-place, lifetimes--> buffers
 *                                                                                        --memory plan--> offsets
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
#include "ops/device.h"

#define PRN_NO_BUFFER UINT32_MAX
#define PRN_NO_STEP UINT32_MAX
#define PRN_NO_NODE UINT32_MAX

/* The values of a plan in one memory space other than the host's: their roots lie in one block. */
typedef struct prn_plan_memory_space {
    const prn_memory_space *memory_space;
    void *block;
    prn_memory_plan_figures figures;
} prn_plan_memory_space;

enum { PRN_ON_HOST = 0, PRN_MOST_PLACES = UINT8_MAX };

typedef struct prn_plan_value {
    prony_value value; /* contexts point here; the layout is assigned */
    uint32_t source;   /* program value that this is, or is a reordered form of */
    uint32_t variant;  /* next form of the same value, in another layout or memory space; PRN_NO_VALUE ends */
    uint32_t alias;    /* value whose bytes it shares; PRN_NO_VALUE: its own */
    uint64_t alias_offset;
    uint32_t view;     /* value whose elements it has, if no step makes it: its source before joins */
    uint64_t bytes;    /* in its layout */
    uint32_t defined;  /* step; PRN_NO_STEP: before the first */
    uint32_t last_use; /* step; step_count for graph outputs */
    uint32_t buffer;   /* of a root in the arena; otherwise PRN_NO_BUFFER */
    bool constant, input, dynamic;
    uint8_t memory_space; /* PRN_ON_HOST, or the number of one of the plan's memory spaces */
    uint64_t room;        /* of a root in one of them: its bytes there, which `bytes` may be fewer than later */
    prn_weight_cache_entry *shared; /* of constants: see prn_value_def */
    void *user_bytes;               /* of a root: bytes outside of the arena where it is written instead; NULL: none */
} prn_plan_value;

/* Type and shape of a value. */
typedef struct prn_tensor_type {
    prony_kind kind;
    prony_dtype dtype;
    prony_shape shape;
} prn_tensor_type;

/* A kernel call. Groups are named after what they hold; the comment of each says who writes it and when. */
typedef struct prn_step {
    /* The call: written by the planner, complete before the first run, read by every run. */
    uint32_t index; /* in plan->steps */
    prn_node_def *node;
    const prn_kernel *kernel;         /* dynamic steps: NULL, chosen when run */
    const struct prn_tune_row *tuned; /* the measurement that chose the kernel (engine/plan/tune.h); NULL: nothing was
                                         measured */
    uint32_t *inputs, *outputs;       /* plan value ids; PRN_NO_VALUE where omitted */
    const prony_value **input_values;
    prony_value **output_values;
    prony_context context;
    prn_device_step device; /* `timed` and `times` are written by stamped runs */
    uint32_t program_node;  /* its index in program->nodes; PRN_NO_NODE: a step between memory spaces or layouts */
    prn_node_environment site;
    void *state;                /* of the kernel, made by prn_kernel.prepare */
    uint64_t followed;          /* the program's change of extents for which it was prepared last */
    struct prn_plan **children; /* one per node child */
    bool dynamic;
    bool empty; /* its outputs have no elements, so its kernel is not called */

    /* Dynamic steps: the choice of the last run, written by engine/run/dispatch.c and kept for the next run, which
     * chooses again when types differ. Other dimensions clear it (engine/plan/respecialize.c). */
    struct {
        const prn_kernel *kernel; /* NULL before the first run */
        prn_tensor_type *types;   /* of inputs and outputs for which it was chosen; NULL: every run chooses again */
        bool costed;              /* `work.cost` is valid for `types` */
        uint32_t unpinned; /* bit i: constant input i is deferred and not pinned, because all kernels so far packed
                                     it */
    } choice;

    /* Bytes beside its values: written by the planner (engine/plan/buffers.c), read by runs and reports. */
    struct {
        uint32_t scratch_buffer;
        uint32_t children_buffer; /* arena bytes that the children share; one child runs at a time */
        uint32_t *last_uses;      /* dynamic values whose last reader this step is */
        uint32_t last_use_count;
    } memory;

    /* The amount of work: written by the planner, and by each run where a run decides; read by reports. */
    struct {
        prn_kept_cost cost; /* sum of its layers, with external bytes only. Dynamic steps and steps with children: of
                               the last run. Dynamic steps have facts */
        /* Work in this run so far, over all executions; parameters 0. Steps with children: their own work without the
         * children's. Dynamic steps in a subgraph have it too. NULL: a step of known cost without children. */
        prony_cost *executed;
    } work;

    /* In a subgraph: the index is given by engine/run/nested.c, times by stamped runs; read by reports. */
    struct {
        uint32_t index;             /* among all steps of subgraphs (engine/run/nested.h) */
        int64_t start_ns, total_ns; /* of its last start, and in all */
    } nested;
} prn_step;

/* The step's kernel; of a dynamic step the last run's. NULL: a dynamic step before its first run. */
static inline const prn_kernel *prn_step_kernel(const prn_step *step)
{
    return step->dynamic ? step->choice.kernel : step->kernel;
}

#define PRN_WORKERS_AUTO (-1)

typedef struct prn_plan_options {
    prony_precision precision;
    prn_device *device;    /* runs the kernels that it has; the plan borrows it. NULL: none */
    uint64_t device_bytes; /* limit of the memory there; 0: none */
    prony_device_split device_split;
    const struct prn_device_split *split; /* operators that stay on the host (engine/plan/device_split.h); the plan
                                             borrows it while it is made. NULL: none */
    bool *device_full;     /* set where the limit of the device's memory refuses the plan; NULL: not wanted */
    int threads;           /* inside of an operator; 0: as many as fit beside the workers */
    int workers;           /* that run steps in parallel; 0 and 1: one; PRN_WORKERS_AUTO: as many as shorten the run */
    int cores;             /* that may be used, for the automatic choices above */
    bool no_work_stealing; /* idle workers do not steal work from other workers' operators */
    prn_step_rates rates;  /* zero: a guess */
    bool record_memory;
    int64_t max_loop_trips;    /* 0: 2^31 */
    bool follows;              /* for prn_plan_respecialize: no joins and slices, because their offsets depend on
                                  extents */
    bool no_reuse;             /* no views, joins, slices or in-place results; every buffer lives for the whole run */
    struct prn_tuning *tuning; /* kernels are chosen by measurement, within the precision and for fixed extents; NULL:
                                  they are not */
    bool standard_kernels;     /* with `tuning`: nothing is measured and measurements are ignored */
    bool kernels_only;         /* kernels and layouts are chosen but nothing is prepared; the plan cannot run */
    bool fill_dead;            /* tests: unused bytes hold a pattern, see engine/plan/buffer_poison.h; runs are then not
                               stamped */
} prn_plan_options;

/* Groups are named after what they hold; the comment of each says who writes it and when. */
typedef struct prn_plan {
    /* The program as steps: written by the planner, read by everything after it. */
    prn_program *program;
    prn_plan_options options;
    prn_bump pool;
    prn_weight_cache_refs refs;
    prn_plan_value **values; /* stable addresses; the first program->value_count are the program's, in its order */
    size_t value_count, value_capacity;
    prn_step **steps;
    size_t step_count, step_capacity;
    uint32_t *outputs; /* plan values of the graph outputs, plain */
    uint64_t moves;    /* the program's changes of extents that it has followed */
    /* Values and steps that such a change reaches (engine/plan/respecialize.c); NULL: no change was followed yet. */
    struct prn_plan_reach *reach;
    prony_cost fixed_cost;                  /* of the layers with a fixed cost; parameters 0 */
    const struct prn_tune_verdict *verdict; /* of the outermost plan: result of the comparison with the default plan
                                               (engine/plan/tune.h); NULL: not compared */

    struct prn_device_split *split; /* of the outermost plan: operators that stay on the host though the device has a
                                       kernel; NULL: none */

    /* Buffers and the bytes behind them: sizes and offsets by engine/plan/buffers.c and engine/plan/memory_spaces.c, the
     * arena by engine/plan/planner.c, once per plan; prn_plan_point sets the base when a plan is made or taken again. */
    struct {
        prn_buffer *buffers;
        uint32_t *owner; /* of each buffer: value id; for scratch and children: step index */
        uint8_t *tag;    /* of each buffer: prn_arena_tag */
        size_t buffer_count;
        prn_memory_plan_figures figures;
        uint64_t scratch_bytes;        /* largest of any step, as asked */
        prn_plan_memory_space *spaces; /* value->memory_space k is spaces[k - 1]; subgraphs' plans have their own */
        size_t space_count;            /* 0: everything is on the host */
        prn_arena *arena;              /* of the outermost plan; children borrow it */
        uint8_t *base;                 /* start of this plan's buffers */
        uint32_t *retained;            /* dynamic graph outputs: they live beyond the last step */
        uint32_t retained_count;
    } memory;

    /* Threads: written by the planner (engine/plan/workers.c), read by runs and reports. */
    struct {
        struct prn_step_graph *graph;  /* several workers: the partial order of steps; NULL: one worker, the array's
                                          order */
        struct prn_schedule *schedule; /* several workers: the scheduler; NULL otherwise */
        int workers;                   /* 1 without a graph */
        int threads;                   /* of each worker, inside of an operator */
        char note[160]; /* the reason for `workers`, if the plan chose it or could not follow the request;
                                          "" otherwise */
    } parallel;

    /* Of a subgraph's plan: `outer` when it is made; the others by engine/run/services.c when its step runs. */
    struct {
        struct prn_plan *outer;
        uint32_t value, step; /* of the outermost plan, to which its memory is charged */
        uint64_t trips;       /* how often this run of the outermost step began it */
        uint32_t index;       /* among the subgraphs (engine/run/nested.h) */
    } nested;

    /* The current run: written by engine/run/, read by reports. */
    struct {
        bool stamped;        /* steps in subgraphs record their time */
        uint32_t stopped_at; /* step at which it failed or was cancelled; PRN_NO_STEP: it did not */
    } run;
} prn_plan;

/* Value that owns the bytes, and the offset in them. */
uint32_t prn_plan_root(const prn_plan *plan, uint32_t value, uint64_t *offset);

/* true: the value has the model's own form: plain, on the host. */
static inline bool prn_plan_is_plain(const prn_plan_value *value)
{
    return value->value.layout == PRN_PLAIN && value->memory_space == PRN_ON_HOST;
}

/* The plain host form of a captured value. It exists once layouts are assigned. */
uint32_t prn_plan_plain(const prn_plan *plan, uint32_t value);

/* true: the step's in-place output may stay in the bytes of the input that its kernel overwrites. */
bool prn_plan_stays_in_place(const prn_plan *plan, const prn_step *step);

/* Views, joins, in-place outputs, lifetimes and offsets: fills alias, buffer, buffers and figures. Called when layouts
 * are assigned. */
PRN_MUST_USE prony_status prn_plan_buffers(prn_plan *plan, prony_error *error);
/* Sets the data pointer of every value in the arena. */
void prn_plan_point(prn_plan *plan, uint8_t *base);

/* Allocates the values in other memory spaces; called when buffers and lifetimes are final. */
PRN_MUST_USE prony_status prn_plan_memory_spaces_allot(prn_plan *plan, prony_error *error);
void prn_plan_memory_spaces_release(prn_plan *plan);
/* Copies a device value to the host, in its layout. */
PRN_MUST_USE prony_status prn_plan_fetch(const prn_plan *plan, uint32_t value, void *to, prony_error *error);

/* Runs all steps. `trace` may be NULL: no stamps. Inputs' data pointers are set by the caller. Dynamic outputs of the
 * run before have been released (prn_plan_forget). After a failure the plan holds nothing in the dynamic region. */
PRN_MUST_USE prony_status prn_plan_run(prn_plan *plan, prn_trace *trace, prony_error *error);
/* One step, without its stamps. The caller releases the values whose last use it was (prn_plan_give_back). */
PRN_MUST_USE prony_status prn_plan_step(prn_plan *plan, uint32_t step, prony_error *error);
void prn_plan_give_back(prn_plan *plan, uint32_t value, uint32_t step);
/* Releases the dynamic outputs of the last run. */
void prn_plan_forget(prn_plan *plan);
/* Bytes of weights that a run of the plan's own steps reads, in the layouts of its kernels; a table counts by its
 * rows. */
PRN_MUST_USE prony_status prn_plan_weight_traffic(const prn_plan *plan, uint64_t *bytes, prony_error *error);
/* true: the step's cost is known only after a run: shapes, branches and trips decide it. */
static inline bool prn_step_learns_cost(const prn_step *step)
{
    return step->dynamic || step->children;
}

/* true: layer `layer` of a step that learns its cost shows the executed work: the node's own layer, and dynamic layers
 * that the node absorbed and that are not removed. */
static inline bool prn_step_gives_cost(const prn_plan *plan, const prn_step *step, uint32_t layer)
{
    const prn_layer *row = &plan->program->layers[layer];
    return prn_step_learns_cost(step) &&
           (layer == step->node->own_layer || (step->dynamic && row->dynamic && !row->removed));
}

/* For a step that learns its cost: adds the fixed cost of the other layers that its node stands for. The step's own
 * cost does not include it. false: overflow. */
PRN_MUST_USE bool prn_step_beside(const prn_plan *plan, const prn_step *step, prony_cost *to);
/* Adds to *to the work of a step with children in the last run of the outermost step around it, children included;
 * parameters stay. false: overflow. */
PRN_MUST_USE bool prn_step_executed(const prn_step *step, prony_cost *to);

#endif
