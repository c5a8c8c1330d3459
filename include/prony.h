/* Prony: an ONNX inference engine that measures itself. This header loads and runs models and includes
 *
 *   prony_status.h    how functions fail
 *   prony_tensor.h    types, shapes and values
 *
 * Beside it stand
 *
 *   prony_report.h    profiling: what a model costs and how long it takes, in every format
 *   prony_analysis.h  analyses and metrics of a report; one call per question
 *   prony_judge.h     comparing reports, checking limits, advice, thread-scaling studies
 *   prony_history.h   runs over time, the verdict on the newest one
 *   prony_machine.h   this machine's measured peaks and present state
 *   prony_operator.h  custom operators, and the table of built-in ones
 *   prony_data.h      images and labelled data as inputs, evaluation
 *   prony_quantize.h  calibration, 8-bit models
 *   prony_serve.h     requests of many threads, monitoring a service
 *   prony_shard.h     a model cut into stages, one for each process
 *   prony_generate.h  text generation with decoders
 *   prony_device.h    devices other than the processor
 *   prony_ranges.h    ranges of runs and operators for other profilers
 *
 * Core functions. Most programs need no others; every other function is a convenience or serves one special task.
 *
 *   model      prony_model_load, prony_model_load_memory, prony_model_release, prony_model_input_count,
 *              prony_model_input, prony_model_output_count, prony_model_output
 *   session    prony_session_create, prony_session_release, prony_session_set_input, prony_session_bind_input,
 *              prony_session_bind_output, prony_session_generate_inputs, prony_session_prepare, prony_session_run,
 *              prony_session_cancel, prony_session_output
 *   report     prony_inspect, prony_session_profile, prony_report_load, prony_report_write, prony_report_save,
 *              prony_report_release, prony_report_totals, prony_report_layers, prony_report_operators,
 *              prony_report_latency, prony_report_memory
 *   judgement  prony_compare, prony_comparison_regressions, prony_comparison_release
 *   operators  prony_registry_create, prony_registry_add, prony_registry_release, prony_fail, prony_parallel_for,
 *              prony_node_int
 *   the rest   prony_value_load, prony_value_release, prony_rows_release
 *
 * One call per question (prony_analysis.h): prony_profile_macs, prony_profile_madds, prony_profile_flops,
 * prony_profile_params, prony_profile_memory and prony_profile_runtime give one number for the whole model;
 * prony_count_params, prony_estimate_ops, prony_trace_io_sizes and prony_estimate_inference_time a row per layer.
 *
 * Conventions
 *  - Functions that can fail return prony_status; the value must be used. Out-parameters come first. The last
 *    parameter, prony_error *, may be NULL; when given it receives a message that names file, node, operator and value.
 *  - `_create`, `_load` and functions taking `T **out` give ownership; the matching `_release` takes it and accepts
 *    NULL. Returned `const` pointers are borrowed from the object that the caller asked.
 *  - Option structs start with `struct_size`; initialise them with their PRONY_*_INIT macro, then set fields by name.
 *    Zero means the default.
 *  - A prony_model is immutable and may be shared by threads. A prony_session runs one request at a time; a second
 *    concurrent run returns PRONY_BUSY. Everything else is thread-safe when used on different objects.
 *  - Sizes are in bytes, times in integer nanoseconds of one monotonic clock. Tensors are dense and row-major. */
#ifndef PRONY_H
#define PRONY_H

#include "prony_tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PRONY_VERSION_MAJOR 0
#define PRONY_VERSION_MINOR 1
#define PRONY_VERSION_PATCH 0
#define PRONY_VERSION "0.1.0"

/* ---- what is running ---- */

/* The present time of the monotonic clock, ns. All times of the library are on this clock. */
PRONY_API int64_t prony_now_ns(void);

/* Version of the library that is running, "MAJOR.MINOR.PATCH". */
PRONY_API const char *prony_version(void);

/* The build that is running. Borrowed; the strings are never NULL. */
typedef struct prony_build {
    const char *version;
    const char *git_commit; /* "" if it was not built from a repository */
    const char *compiler, *compiler_flags;
    const char *isa;       /* instruction set of the kernels: "amx", "avx512", "avx2", "scalar"; "neon" */
    const char *libraries; /* "onednn 2.6.3, openblas 0.3.21" */
    const char *isa_names; /* "scalar, avx2, avx512, amx": valid values of the environment variable PRONY_MAX_ISA,
                               which limits the instruction set; "scalar, neon, dotprod, i8mm" on AArch64 */
    const char *left_out;  /* libraries that the build did without and why, separated by "; "; "": none */
} prony_build;
/* Version, compiler, instruction set and libraries of the running library. Thread-safe. */
PRONY_API const prony_build *prony_build_info(void);

/* For a program that interposes malloc and its relatives: `count` returns the calls so far, of all threads. Reports
 * then tell the heap calls that libraries make during a run from Prony's own. NULL switches it off. */
PRONY_API void prony_heap_hook_install(uint64_t (*count)(void));

/* ---- memory ---- */

/* Bounds what Prony's own code holds on the heap of this process, all models, sessions and reports together; 0: no
 * bound. A model's and a session's options bound those alone. A request that does not fit is refused with PRONY_LIMIT;
 * the message names who asked, for how much, and the limit. Mapped files do not count, nor does what libraries take for
 * themselves. Thread-safe; bytes that are held already stay. */
PRONY_API void prony_memory_set_limit(uint64_t bytes);
/* Heap bytes that Prony's own code holds now. Thread-safe. */
PRONY_API uint64_t prony_memory_in_use(void);
/* Bytes that this process can still allocate: the minimum of the machine's available memory and the rest of each
 * control group's limit. Cached file pages count as available. 0: not known. */
PRONY_API uint64_t prony_memory_available(void);

/* Ends the worker threads that runs of the calling thread started, waits for them, and frees their memory. A thread's
 * workers end with the thread; only those of the main thread outlive it, which memory checkers report. A program may
 * call it at the end of main. Later runs start new workers. Not for use while a run of this thread is in progress. */
PRONY_API void prony_threads_shut_down(void);

/* Rows that a function hands over are one block, strings included unless it says that they are borrowed. NULL is
 * fine. */
PRONY_API void prony_rows_release(void *rows);

/* Receives pieces of output in order; a return other than 0 stops with PRONY_IO_ERROR. */
typedef int (*prony_write_fn)(void *user, const char *data, size_t size);

/* ---- cost ---- */

#define PRONY_MAX_FACTS 12

/* A named integer that describes a node's work (groups, kernel volume, axis length, …); `key` has static lifetime. */
typedef struct prony_fact {
    const char *key;
    int64_t value;
} prony_fact;

/* Analytic cost of one node at its bound shapes; docs/reference/counting.md has the rules. Counts are exact
 * integers. */
typedef struct prony_cost {
    uint64_t macs;          /* multiplications accumulated into a contraction's sum */
    uint64_t madds;         /* macs plus scale-and-shift pairs of normalisations */
    uint64_t flops;         /* arithmetic on floating-point data; a MAC is 2 */
    uint64_t special;       /* those of the flops that are exp, log, tanh, erf, sin, pow, sqrt or division */
    uint64_t int_ops;       /* arithmetic on integer data */
    uint64_t bytes_read;    /* every input and weight once, at its stored width */
    uint64_t bytes_written; /* every output once */
    uint64_t parameters;    /* elements of the weights this node is the first to use */
    prony_fact facts[PRONY_MAX_FACTS];
    uint32_t fact_count;
} prony_cost;

/* ---- model ---- */

/* prony_operator.h */
typedef struct prony_registry prony_registry;

typedef struct prony_model prony_model;

typedef struct prony_model_options {
    size_t struct_size;
    prony_registry *registry;    /* NULL: built-in operators only */
    bool copy;                   /* read the files (external data too) into memory instead of mapping them */
    uint64_t memory_limit_bytes; /* heap of the model and all its sessions together; 0: no bound but the process's */
    const char *data_folder;     /* where external data lies; NULL: in the folder of the model */
} prony_model_options;
#define PRONY_MODEL_OPTIONS_INIT PRONY_INIT(prony_model_options)

/* Maps and checks the file; weights are borrowed from the map. Do not write to a mapped file: replace it by rename, or
 * set `copy`. A write changes the weights; a read beyond the end of a shortened file ends the process (SIGBUS). If size
 * or time of modification changed since loading, planning and profiling fail with PRONY_IO_ERROR. A model with
 * operators that cannot run loads all the same: prony_inspect names them, and prony_session_create refuses them. */
PRONY_API PRONY_MUST_USE prony_status prony_model_load(prony_model **out, const char *path,
                                                       const prony_model_options *options, prony_error *error);
/* As above from memory that must outlive the model. External data is refused. `name` appears in messages. */
PRONY_API PRONY_MUST_USE prony_status prony_model_load_memory(prony_model **out, const char *name, const void *data,
                                                              size_t size, const prony_model_options *options,
                                                              prony_error *error);
/* Drops the caller's reference; sessions keep theirs. */
PRONY_API void prony_model_release(prony_model *model);

/* A model input or output as declared. dim -1: free; `dim_names[d]` is its symbol or NULL. */
typedef struct prony_value_info {
    const char *name;
    prony_kind kind;
    prony_dtype dtype;
    prony_shape shape;
    const char *dim_names[PRONY_MAX_RANK];
} prony_value_info;

/* Inputs that a run needs. Optional ones (prony_model_optional_input) are not counted. */
PRONY_API size_t prony_model_input_count(const prony_model *model);
/* Outputs of the model. */
PRONY_API size_t prony_model_output_count(const prony_model *model);
/* Input `index` as the model declares it, in the file's order. Borrowed from the model; NULL: no such index. */
PRONY_API const prony_value_info *prony_model_input(const prony_model *model, size_t index);
/* Output `index` as the model declares it, in the file's order. Borrowed from the model; NULL: no such index. */
PRONY_API const prony_value_info *prony_model_output(const prony_model *model, size_t index);
/* Inputs that need not be given: the initializer of the same name is their default (from IR version 4 on; before,
 * initializers had to be listed as inputs). The functions above do not list them. A session that is
 * given a value for it is planned with it as an input; other sessions use the constant. */
PRONY_API size_t prony_model_optional_input_count(const prony_model *model);
/* Optional input `index`, in the file's order. Borrowed from the model; NULL: no such index. */
PRONY_API const prony_value_info *prony_model_optional_input(const prony_model *model, size_t index);

/* A submodel: the nodes that the tensors `to` need, down to the tensors `from`. */
typedef struct prony_submodel {
    size_t struct_size;
    const char *const *from; /* become inputs, beside the model's inputs that it needs; empty: the latter alone */
    size_t from_count;
    const char *const *to; /* become outputs; none: the model's */
    size_t to_count;
    /* Types and shapes of the tensors `from`, in their order, from a run. NULL: as declared in the file, or else
     * inferred from the input shapes of `options` (NULL: defaults). */
    const prony_value *const *values;
    const struct prony_session_options *options;
} prony_submodel;
#define PRONY_SUBMODEL_INIT PRONY_INIT(prony_submodel)

/* Makes the submodel a model. PRONY_INVALID_ARGUMENT: a name is unknown in the main graph, or a constant; no node makes
 * a `to`; no node of the submodel reads a `from`; a `from` is a sequence. PRONY_UNSUPPORTED: weights of 2 GiB or more,
 * or external data in a subgraph. */
PRONY_API PRONY_MUST_USE prony_status prony_model_extract(prony_model **out, prony_model *model,
                                                          const prony_submodel *submodel, prony_error *error);
/* Saves the submodel as a complete ONNX file, by way of a temporary name. */
PRONY_API PRONY_MUST_USE prony_status prony_model_extract_save(prony_model *model, const prony_submodel *submodel,
                                                               const char *path, prony_error *error);

/* ---- session ---- */

typedef struct prony_session prony_session;

/* The name is a free dimension's symbol; "INPUT.AXIS" (axes from 0) for a dimension without a symbol; or "*" for every
 * free dimension not set otherwise. */
typedef struct prony_dim {
    const char *name;
    int64_t value;
} prony_dim;

typedef struct prony_named_shape {
    const char *name; /* of an input */
    prony_shape shape;
} prony_named_shape;

/* Threads that several sessions share, so that many sessions on few cores need few threads. Each session's caller
 * works, and the pool's threads help any session with work. Outputs do not depend on it. Thread-safe. */
typedef struct prony_thread_pool prony_thread_pool;

/* Starts `threads` threads (0: one less than the usable cores, as callers work too), or fewer if the system creates no
 * more. They take the affinity mask of the calling thread. The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_thread_pool_create(prony_thread_pool **out, int threads,
                                                               prony_error *error);
/* The threads end when the last session that uses them is released as well. */
PRONY_API void prony_thread_pool_release(prony_thread_pool *pool);
/* Number of its threads. */
PRONY_API int prony_thread_pool_threads(const prony_thread_pool *pool);

/* For inter_op_threads: as many workers as the plan gains from, which may be one. */
#define PRONY_INTER_OP_AUTO (-1)
/* The value of a free dimension that neither options nor bound inputs fix. */
typedef enum prony_free_dims {
    /* 1, or the least extent for which the model's first windows and tree ensembles fit. */
    PRONY_FREE_ONE,
    /* The same for a batch: an input's first dimension unless its name says otherwise, or any dimension named batch.
     * Other dimensions get the size in the model: features of tree ensembles, metadata, declared shapes of other
     * tensors. Without one: PRONY_NEEDS_DIMENSION. */
    PRONY_FREE_ASK
} prony_free_dims;

/* The choice among several kernels that can run an operator at the requested precision. */
typedef enum prony_tune {
    PRONY_TUNE_OFF,     /* by shapes and processor */
    PRONY_TUNE,         /* by measurement, when a plan is made, or by what an earlier process measured: kept in
                        $XDG_CACHE_HOME/prony/tune or ~/.cache/prony/tune, for this model, processor, version, precision
                        and these threads. A failure to keep it is not an error; prony_report_tuning tells the reason.
                        Outputs may differ in their last bits from those of other kernels */
    PRONY_TUNE_NO_CACHE /* by measurement; what is kept is replaced */
} prony_tune;

/* Which operators run on a session's device, of those that it has a kernel for. Decisions follow from shapes, from the
 * limit, and from rates in the user's cache folder, never from times of the run. prony_device_report gives the reasons. */
typedef enum prony_device_split {
    /* Operators stay on the host until the others' weights and values fit the device's memory; with the device's peaks
     * stored (prony_device_peaks_save), so do short chains between operators of the host whose copies take longer than
     * the device saves. */
    PRONY_DEVICE_SPLIT_AUTO,
    PRONY_DEVICE_SPLIT_MEMORY, /* for memory alone */
    PRONY_DEVICE_SPLIT_NONE    /* all of them; PRONY_LIMIT or PRONY_OUT_OF_MEMORY: they do not fit */
} prony_device_split;

typedef struct prony_session_options {
    size_t struct_size;
    int intra_op_threads;  /* 0: auto = max(1, floor(min(physical cores in the mask, cgroup quota) / inter-op)) */
    int inter_op_threads;  /* workers that run operators side by side, the caller among them, each with
                                 intra_op_threads; 0 and 1: one, no queue; or PRONY_INTER_OP_AUTO. Together at most 1024
                                 threads */
    const char *precision; /* NULL or "fp32"; "fp32-strict", "fast", "bf16", "fp16", "int8-weights", "int4-weights"
                                 (docs/reference/precision.md); "int8", where the model computes on codes
                                 (prony_quantize.h);
                                 others are refused by name */
    const char *affinity;  /* core list such as "0-3,8"; NULL leaves masks alone. See prony_session_affinity. */
    const prony_dim *dims; /* free dimensions by symbol */
    size_t dim_count;
    const prony_named_shape *shapes; /* whole input shapes by name */
    size_t shape_count;
    int64_t batch;          /* > 0: first dimension of every input; refused where the model fixes it to another value */
    bool no_rewrites;       /* run the model's own nodes unfused */
    bool no_reuse;          /* every value in memory of its own for the whole run: no views, nothing in place */
    bool no_profile;        /* leave the dispatcher's stamps out; with a `device`, operators are then queued one behind
                                 the other, where stamps wait for each */
    bool record_memory;     /* keep the arena's event list and timeline for the report */
    int64_t max_loop_trips; /* bound on Loop iterations; 0: 2^31 */
    uint64_t memory_limit_bytes; /* heap that the session takes: inputs, bound graphs, constants, packed weights, plans
                                    of every shape, arenas with what is sized at run time; 0: no bound but the
                                    model's */
    bool no_work_stealing;       /* workers that have nothing to do leave the operators of others alone */
    /* NULL: the session has its own threads. Otherwise up to intra_op_threads free threads of the pool help; the
     * session keeps the pool's threads after the pool's release. */
    prony_thread_pool *thread_pool;
    prony_free_dims free_dims;
    /* Free dimensions that change from run to run, by name ("*" is invalid), and the largest size of each, from 1. If
     * the model allows it (docs/guides/changing_dimensions.md), it is bound and planned once, for the largest sizes,
     * with the memory for them. Runs with smaller sizes bind, rewrite and plan nothing; larger sizes are
     * PRONY_OUT_OF_RANGE. The bits equal those of a separate session for each size, except for last places where the
     * memory plan decides the kernel. */
    const prony_dim *max_dims;
    size_t max_dim_count;
    prony_tune tune;    /* no effect with "fp32-strict" or max_dims */
    const char *device; /* "opencl": operators that an OpenCL device has a kernel for run there, a GPU if there is one;
                              "opencl:1", "opencl:NAME": that device (prony_device.h). NULL: the processor alone */
    /* Memory on the device, of all sessions of the process; 0: no bound but the device's. `device_split` says how a
     * plan that needs more becomes one that fits. */
    uint64_t device_memory_limit_bytes;
    prony_device_split device_split; /* which operators run on the `device` */
} prony_session_options;
#define PRONY_SESSION_OPTIONS_INIT PRONY_INIT(prony_session_options)

/* A free dimension of the model's inputs; one with a symbol stands here once. */
typedef struct prony_free_dim {
    const char *name;  /* as prony_dim takes it */
    const char *input; /* the first that has it */
    int axis;
    int64_t value; /* its size; -1: nothing fixes it */
    /* "given", "batch", "tree features", "window size", "metadata imgsz", "declared shapes" or "nothing reads it"; "":
     * nothing fixes it, or it is 1 without a reason */
    const char *reason;
    int64_t example; /* if nothing fixes it: a value that fits, together with the examples of the others; -1: not
                           found */
} prony_free_dim;
/* Lists the model's free dimensions and their values by `options` (NULL: PRONY_FREE_ASK). For a dimension without a
 * value it tries usual sizes to find an example. *rows receives *count rows, which prony_rows_release frees. */
PRONY_API PRONY_MUST_USE prony_status prony_model_free_dims(prony_free_dim **rows, size_t *count, prony_model *model,
                                                            const prony_session_options *options, prony_error *error);

/* Checks that every operator can run (all that cannot are listed in one message) and the options; plans nothing yet. */
PRONY_API PRONY_MUST_USE prony_status prony_session_create(prony_session **out, prony_model *model,
                                                           const prony_session_options *options, prony_error *error);
/* Ends the session. Values borrowed from it become invalid. NULL is accepted. Not while another thread uses the
 * session. */
PRONY_API void prony_session_release(prony_session *session);
/* Counts of the session's preparations so far. */
typedef struct prony_preparations {
    uint64_t bound;         /* the whole model: shapes, constants, rewrites */
    uint64_t planned;       /* kernels, memory */
    uint64_t respecialized; /* neither: a plan made for the largest of `max_dims` took other extents */
} prony_preparations;
/* Counts of the work done before runs, since the session was created. */
PRONY_API prony_preparations prony_session_preparations(const prony_session *session);
/* Threads that an operator may use, in the present plan (the result of `auto`). */
PRONY_API int prony_session_threads(const prony_session *session);
/* Workers that run operators side by side, in the present plan; 1 before the first plan. */
PRONY_API int prony_session_workers(const prony_session *session);

/* PRONY_OK if `list` is a core list ("0-3,8": numbers below 4096 and ascending ranges), on any machine. */
PRONY_API PRONY_MUST_USE prony_status prony_affinity_check(const char *list, prony_error *error);
/* Processors of the session's threads, "0,2,1,3": thread i (0: the caller) is pinned to the i-th one. One processor of
 * each core comes first, NUMA node after NUMA node, then their siblings. With more threads than processors, each may
 * use all of them. NULL: no pinning. The calling thread is pinned during a run, and has its own mask again afterwards.
 * *failure (may be NULL): processors of the list that do not exist or are not allowed, or the thread that the system
 * did not pin; NULL: no failure. The session runs in each case. Borrowed until the next run. */
PRONY_API const char *prony_session_affinity(const prony_session *session, const char **failure);
/* Pins the calling thread until the same thread calls prony_session_unpin. The runs between need no system call for
 * pinning; otherwise each run of a session with an affinity list makes three. prony_session_profile pins by itself. A
 * session pins one thread at a time (PRONY_INVALID_ARGUMENT), and no other thread may release the session meanwhile. */
PRONY_API PRONY_MUST_USE prony_status prony_session_pin(prony_session *session, prony_error *error);
/* Gives the calling thread the affinity mask that it had before prony_session_pin. */
PRONY_API void prony_session_unpin(prony_session *session);

/* Binds an input by name. The bytes are copied into the session. Another shape than before leads to another plan (kept
 * in a bounded cache) at the next run. */
PRONY_API PRONY_MUST_USE prony_status prony_session_set_input(prony_session *session, const char *name,
                                                              const prony_value *value, prony_error *error);
/* Forgets the value of an input: an optional input has its default again; another one needs a value before the next
 * run. */
PRONY_API PRONY_MUST_USE prony_status prony_session_reset_input(prony_session *session, const char *name,
                                                                prony_error *error);
/* Binds an input by name without a copy: runs read value->data where it lies. The bytes stay the caller's; they must
 * stay valid until the input is bound or set again or the session is released, and may change between runs. Tensors of
 * numbers only (PRONY_UNSUPPORTED). Bytes that are not aligned for their elements are copied by each run. */
PRONY_API PRONY_MUST_USE prony_status prony_session_bind_input(prony_session *session, const char *name,
                                                               const prony_value *value, prony_error *error);
/* Runs write output `index` to `data`, which has room for `bytes` bytes. The caller owns `data` and keeps it valid
 * until it binds other bytes (NULL: none) or releases the session. Kernels write to these bytes directly if they can.
 * The end of the run copies an output that is a view of an input or constant, shares bytes with another output, or gets
 * its shape in the run; also if `data` is not aligned for its elements or belongs to a bound input. Past rows of a
 * cache that the output's operator updates in place (GroupQueryAttention) are the exception: they may be bound to both.
 * PRONY_INVALID_ARGUMENT: two outputs overlap, or another output is bound onto an input that is itself an output.
 * PRONY_OUT_OF_RANGE: the output needs more bytes. prony_session_output returns the same elements. */
PRONY_API PRONY_MUST_USE prony_status prony_session_bind_output(prony_session *session, size_t index, void *data,
                                                                size_t bytes, prony_error *error);
/* The value bound to input `index`; NULL: nothing. Optional inputs come behind the others. Borrowed until the input is
 * set again. */
PRONY_API const prony_value *prony_session_input_value(const prony_session *session, size_t index);
/* Fills every input not set by the caller from `seed`, one stream per input: floats uniform in [-0.5, 0.5), integers
 * and bools uniform in {0, 1}. Free dimensions that nothing fixed become what the options' `free_dims` says. */
PRONY_API PRONY_MUST_USE prony_status prony_session_generate_inputs(prony_session *session, uint64_t seed,
                                                                    prony_error *error);
/* The input as the model declares it and the session's options and bound inputs fix it: dim -1 is still free. The names
 * are borrowed from the model. */
PRONY_API PRONY_MUST_USE prony_status prony_session_input(const prony_session *session, const char *name,
                                                          prony_value_info *out, prony_error *error);
/* The shape that prony_session_generate_inputs would give it now. */
PRONY_API PRONY_MUST_USE prony_status prony_session_input_shape(prony_session *session, const char *name,
                                                                prony_shape *out, prony_error *error);
/* Binds shapes, rewrites and plans for the current inputs, so that the first run need not. */
PRONY_API PRONY_MUST_USE prony_status prony_session_prepare(prony_session *session, prony_error *error);
/* Runs the model once on the bound inputs; inputs that are neither set nor optional are PRONY_INVALID_ARGUMENT.
 * The first run with new input shapes binds and plans as prony_session_prepare does. After a failure no output can
 * be read. PRONY_BUSY: another call of this session is in progress; PRONY_CANCELLED: prony_session_cancel was
 * called; PRONY_LIMIT: a memory or loop limit was reached. */
PRONY_API PRONY_MUST_USE prony_status prony_session_run(prony_session *session, prony_error *error);
/* Cancels the session's present call, or else the next one, from any thread or a signal handler. The call (set_input,
 * generate_inputs, prepare, run, profile, evaluation) soon ends with PRONY_CANCELLED, which consumes the cancellation.
 * Binding, planning, packing and operators all stop. No output can be read then; the session stays usable. A custom
 * operator runs to its end, unless it checks prony_cancelled. */
PRONY_API void prony_session_cancel(prony_session *session);
/* Withdraws a pending cancellation. PRONY_BUSY: a call is in progress. */
PRONY_API PRONY_MUST_USE prony_status prony_session_uncancel(prony_session *session, prony_error *error);
/* Borrowed until the next run or release. */
PRONY_API PRONY_MUST_USE prony_status prony_session_output(const prony_session *session, size_t index,
                                                           const prony_value **out, prony_error *error);

/* Type and shape of output `index` in the present plan (of prony_session_prepare, or a run), without data; rank -1:
 * only a run determines the shape. The caller can then allocate the bytes for prony_session_bind_output. */
PRONY_API PRONY_MUST_USE prony_status prony_session_planned_output(const prony_session *session, size_t index,
                                                                   prony_value *out, prony_error *error);

/* The range of the elements of an output that was drawn at random; infinite: no bound. */
typedef struct prony_random_range {
    double low, high;
    bool whole; /* only whole numbers: classes, zeros and ones */
} prony_random_range;

/* Sets *random to true if output `index` of the last run depends on a random operator (RandomNormal, RandomUniform,
 * their Like variants, Bernoulli, Multinomial, Dropout in training). Two engines then agree on type, shape and range
 * only, and *range is set. */
PRONY_API PRONY_MUST_USE prony_status prony_session_output_random(const prony_session *session, size_t index,
                                                                  bool *random, prony_random_range *range,
                                                                  prony_error *error);

#ifdef __cplusplus
}
#endif
#endif
