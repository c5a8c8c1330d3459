/* A session: bound inputs, a bounded cache of plans by input shapes, and one request at a time.
 *
 * Ownership: the session owns its input bytes and plans, and holds a reference to the model. Option strings and arrays
 * are copied into the pool. `busy` and `stop` are the only fields that two threads may touch at once. */
#ifndef PRN_ENGINE_SESSION_SESSION_H
#define PRN_ENGINE_SESSION_SESSION_H

#include "base/threads/affinity.h"
#include "base/threads/cancel.h"
#include "engine/bind/dynamic_dims.h"
#include "engine/plan/plan.h"
#include "engine/plan/tune.h"
#include "engine/session/free_dims.h"
#include "engine/session/io_info.h"

/* Plans kept per session; the least recently used goes first. */
#define PRN_PLAN_CACHE 4

typedef struct prn_session_input {
    prony_value value; /* data: `room`, user-bound bytes, or (strings, sequences, optionals) its own */
    void *room;        /* for tensors of numbers, `capacity` bytes; NULL: none yet */
    size_t capacity;
    const void *user_bytes; /* user-bound bytes; each run copies unaligned ones to `room`. NULL: none */
    bool set;
    size_t bound_bytes; /* of user_bytes, while plans are pointed at them */
    uint32_t like;      /* 1 + an earlier input that is declared alike, with the same names of dimensions; 0: none */
} prn_session_input;

/* User-bound bytes for an output. */
typedef struct prn_session_output {
    void *user_bytes; /* NULL: none */
    size_t bytes;
    bool of_generator; /* they are a generator's cache */
} prn_session_output;

typedef struct prn_cached_plan {
    const prn_graph *graph; /* that the program was bound of */
    prn_program *program;
    prn_dynamic_dims *extents; /* NULL: the program has fixed extents */
    prn_plan *plan;
    prony_value *inputs;                                /* types and shapes of the plan */
    uint64_t used;                                      /* run number of the last use */
    bool pointed;                                       /* pointers to inputs and user-bound bytes are up to date */
    int64_t bind_ns, rewrite_ns, plan_ns, first_run_ns; /* first_run_ns -1: not yet run */
} prn_cached_plan;

/* A dimension of an input that options->max_dims names, or that a generator makes grow. */
typedef struct prn_open_dim {
    size_t input;
    int axis;
    size_t option; /* in options->max_dims: dimensions of one name have one extent */
    int64_t most;
    int64_t offset; /* extent less that of the option: a mask is one row longer than the cache before it */
    int64_t rows;   /* rows that the input's bytes have room for in each block; 0: not a cache */
    int stored;     /* prn_cache_type of these rows */
} prn_open_dim;

/* Dimensions that grow, by purpose; each has a plan for all extents. */
typedef enum prn_growth { PRN_GROWTH_NONE = -1, PRN_GROWTH_STEP, PRN_GROWTH_CHUNK, PRN_GROWTHS } prn_growth;

/* A growth that is not in use. */
typedef struct prn_parked_growth {
    prn_open_dim *dims;
    size_t count;
    const prony_dim *option;
    prn_cached_plan open;
    bool settled, refused;
} prn_parked_growth;

/* An observer that makes a session's runs instead of it, with its own work around each. */
typedef struct prn_watcher {
    prony_status (*run)(prony_session *session, prony_error *error); /* NULL: no observer. Called with `busy` held */
    void (*release)(void *data);
    void *data;
} prn_watcher;

/* A graph that a generator derived for a cache in fewer bits (engine/generate/stored_cache.c). */
typedef struct prn_lowbit_graph {
    const prn_graph *graph;     /* NULL: none yet */
    const prn_graph *last_rows; /* as the session's, of `graph` */
    int64_t rows;               /* that its caches have room for */
    int type;                   /* prn_cache_type */
    size_t last_rows_output;
} prn_lowbit_graph;

struct prony_session {
    prony_model *model;
    const prn_graph *graph; /* that is bound: the model's, or last_rows */
    /* Of a generator: logits of the last position only (engine/generate/last_rows.c); NULL: none. */
    const prn_graph *last_rows;
    const prn_graph *merged[2]; /* of a generator: use_cache_branch is false, or true (engine/generate/merged.c) */
    size_t last_rows_output;    /* the output of logits that it was derived for */
    prn_lowbit_graph stored;    /* of the last generator that wanted one */
    prony_session_options options;
    prn_bump pool;
    prony_precision precision; /* options.precision */
    prn_device *device;        /* options.device; NULL: none */
    int asked_threads;         /* inside of an operator, auto resolved; plans are made for so many */
    int threads, workers;      /* of the current plan */
    prn_thread_pool *team;     /* the shared pool's, or an own one for several workers; NULL: none yet */
    prn_affinity *affinity;    /* of options.affinity; NULL: none */
    prn_pin pin;               /* of prony_session_pin, if `pinned` */
    bool pinned;
    atomic_flag busy;
    prn_cancel_token stop;              /* prony_session_cancel */
    const prn_cancel_token *outer_stop; /* the previous token of the thread that holds `busy` */
    prn_budget *budget;                 /* a child of the model's */
    prn_budget *former;                 /* the previous budget of the thread that holds `busy` */
    prn_session_input *inputs;          /* required inputs, then optional ones; UNDEFINED if the default holds */
    size_t input_count;                 /* without optional ones */
    size_t optional_count;
    prn_session_output *outputs; /* [of the model]; NULL: no output was bound yet */
    prn_dims dims;               /* of the inputs now bound */
    prn_assumed_list assumed;    /* of generated inputs */
    prn_cached_plan cache[PRN_PLAN_CACHE];
    prn_cached_plan *current; /* plan of the last prepare or run */
    prn_open_dim *open_dims;
    size_t open_count;
    size_t grown_count;       /* of open_dims, by prn_session_grow; open_count is 0 or this */
    prn_cached_plan open;     /* for all extents of open_dims; without a plan: not made yet, or refused */
    bool open_settled;        /* `open` has the extents of open.inputs */
    bool open_refused;        /* the model cannot be bound for more than one set of extents */
    prn_growth growth;        /* of a generator: that open_dims and `open` belong to */
    prn_parked_growth parked; /* the other one */
    /* The generator that ran last: the growing dimensions are its own; NULL: no generator ran, or it was released. */
    const struct prony_generator *generator;
    bool generator_runs; /* the run at hand is the generator's, not the caller's */
    prony_preparations preparations;
    prn_tuning *tuning; /* of options.tune; NULL: not asked for, or no plan was made yet */
    prn_trace trace;
    prn_watcher watcher;
    uint64_t runs;
    uint64_t seed;
    bool seed_known;
};

/* The processors of its affinity list; NULL: no list, or none of its processors is usable. */
const prn_cpu_mask *prn_session_mask(const prony_session *session);

/* As prony_session_create. The session's first thread has position `index` times its threads in the affinity list;
 * automatic thread counts divide the machine by `sharers`. */
PRN_MUST_USE prony_status prn_session_create_among(prony_session **out, prony_model *model,
                                                   const prony_session_options *options, int index, int sharers,
                                                   prony_error *error);

/* Binds input `index` as a tensor of numbers of this type and shape, and returns its bytes, to be filled. Callers hold
 * `busy` or own the session alone. */
PRN_MUST_USE prony_status prn_session_input_room(prony_session *session, size_t index, const prony_value *like,
                                                 void **data, prony_error *error);

/* Makes every plan set its pointers to inputs and user-bound bytes again. */
void prn_session_inputs_moved(prony_session *session);
/* Checks type and shape of a value for input `name`. */
PRN_MUST_USE prony_status prn_session_accept(prony_session *session, const char *name, const prony_value *value,
                                             size_t *index, prony_error *error);
/* true: an optional input is given. */
bool prn_session_overrides(const prony_session *session);
/* Forgets the input's user-bound bytes and its value. */
void prn_session_input_drop(prn_session_input *input);

/* ---- user_buffers.c: before and after a run of the current plan */

/* Gives an input that reads these user-bound bytes already another shape, which the caller has checked. false: it has
 * to be bound. Callers own the session alone. */
bool prn_session_rebind(prony_session *session, size_t index, const prony_value *value);

/* Points the plan's outputs at user-bound bytes, if they can be written there. */
void prn_user_buffer_point(prony_session *session, prn_cached_plan *cached);
/* Copies user-bound inputs that are not aligned. */
void prn_user_buffer_read(prony_session *session);
/* Before a run: refuses outputs that are bound to overlapping bytes, by name. */
PRN_MUST_USE prony_status prn_user_buffer_check(const prony_session *session, prony_error *error);
/* Copies outputs that could not be made in place. */
PRN_MUST_USE prony_status prn_user_buffer_write(prony_session *session, prony_error *error);

/* ---- plans.c */

void prn_cached_release(prn_cached_plan *cached);
/* Notes types and shapes of the set inputs in the plan. */
PRN_MUST_USE prony_status prn_cached_inputs(prony_session *session, prn_cached_plan *cached, prony_error *error);
bool prn_cached_fits(const prony_session *session, const prn_cached_plan *cached);
/* Plans cached->program, which has the extents of the inputs. */
PRN_MUST_USE prony_status prn_cached_plan_program(prony_session *session, prn_cached_plan *cached, prony_error *error);
/* Puts the file in front of the message. If shapes do not fit, appends the free dimensions as a possible cause. */
void prn_session_name_failure(const prony_session *session, prony_status status, prony_error *error);
/* Refuses unset inputs, finds or makes the plan for the bound shapes. Not locked: callers hold `busy`. */
PRN_MUST_USE prony_status prn_session_plan(prony_session *session, prony_error *error);

/* PRONY_BUSY if another call holds the session; prn_session_unlock releases it and returns `status`. In between the
 * thread observes the session's `stop`; a call that ends with PRONY_CANCELLED consumes the request. */
PRN_MUST_USE prony_status prn_session_lock(prony_session *session, prony_error *error);
prony_status prn_session_unlock(prony_session *session, prony_status status);
/* One run, stamped into `trace` unless that is NULL. Callers hold `busy`. */
PRN_MUST_USE prony_status prn_session_run_once(prony_session *session, prn_trace *trace, prony_error *error);

/* ---- open_plan.c: dimensions that change from run to run */

/* Finds the dimensions that options->max_dims names. */
PRN_MUST_USE prony_status prn_open_dims_find(prony_session *session, prony_error *error);
/* PRONY_OUT_OF_RANGE, naming it, if an extent is larger than options->max_dims says. */
PRN_MUST_USE prony_status prn_open_dims_check(const prony_session *session, size_t input, const prony_shape *shape,
                                              prony_error *error);
/* Dimensions that grow together, for a generator: the extent of each is a common number up to `most`, plus its offset.
 * The session must have no max_dims. The plan for all extents is made in the next run, whose other extents it has. */
PRN_MUST_USE prony_status prn_session_grow(prony_session *session, prn_growth growth, const prn_open_dim *dims,
                                           size_t count, int64_t most, prony_error *error);
/* The next runs use the plan for all extents of this growth, if it was given dimensions; PRN_GROWTH_NONE: plans of
 * their own. Plans for all extents stay. */
void prn_session_set_growth(prony_session *session, prn_growth growth);
/* Before `bytes` are released: the session forgets them, if this input is bound to them. */
PRN_MUST_USE prony_status prn_session_unbind_input(prony_session *session, size_t input, const void *bytes,
                                                   prony_error *error);
/* Before a run that is not the generator's: no dimension grows, and no output is bound to a generator's cache. The next
 * run of the generator binds its bytes anew. */
void prn_session_leave_generator(prony_session *session);
/* Puts the plan for all extents into *out, with the inputs' extents; makes it if it does not exist. NULL: these inputs
 * need an own plan. */
PRN_MUST_USE prony_status prn_open_plan(prony_session *session, prn_cached_plan **out, prony_error *error);

/* ---- run_plan.c */

/* Gives threads to a plan of several workers: the shared pool's, or the session's own. Own threads are as many as any
 * of its plans can need. */
PRN_MUST_USE prony_status prn_plan_staff(prony_session *session, prn_plan *plan, prony_error *error);
/* One run of a plan with set inputs; releases the outputs of the run before. Several workers use their own thread pool;
 * one worker uses the shared pool. */
PRN_MUST_USE prony_status prn_session_run_plan(prony_session *session, prn_plan *plan, prn_trace *trace,
                                               prony_error *error);

/* ---- tuned_plan.c */

/* The plan of a program with these options; kernels are chosen by measurement if the session's options say so. */
PRN_MUST_USE prony_status prn_session_create_plan(prony_session *session, prn_program *program,
                                                  prn_plan_options *options, prn_plan **out, prony_error *error);

/* ---- random.c ---- */

/* The next number of a stream, uniform in [0, 1). `state` starts as any number. */
double prn_random_fraction(uint64_t *state);
/* Fills the value from the stream of this input and seed. */
void prn_random_fill(prony_value *value, uint64_t seed, const char *stream);

#endif
