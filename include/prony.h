/* Prony: an ONNX inference engine that measures itself. The only public header.
 *
 * Conventions
 *  - Functions that can fail return prony_status; the value must be used. Out-parameters come first. The last
 *    parameter, prony_error *, may be NULL; when given it receives a message that names file, node, operator and value.
 *  - `_create`, `_load` and functions taking `T **out` give ownership; the matching `_release` takes it and accepts NULL.
 *    `const` pointers that are returned are borrowed from the object they were asked of.
 *  - Option structs start with `struct_size`; initialise them with their PRONY_*_INIT macro. Zero means the default.
 *  - A prony_model is immutable and may be shared by threads. A prony_session runs one request at a time; a second
 *    concurrent run returns PRONY_BUSY. Everything else is thread-safe when used on different objects.
 *  - Sizes are in bytes, times in integer nanoseconds of one monotonic clock. Tensors are dense and row-major.
 */
#ifndef PRONY_H
#define PRONY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRONY_VERSION_MAJOR 0
#define PRONY_VERSION_MINOR 1
#define PRONY_VERSION_PATCH 0
#define PRONY_VERSION "0.1.0"

#if defined(__GNUC__)
#define PRONY_API __attribute__((visibility("default")))
#define PRONY_MUST_USE __attribute__((warn_unused_result))
#else
#define PRONY_API
#define PRONY_MUST_USE
#endif

/* ---- status ------------------------------------------------------------------------------------------------- */

/* X(name, text) for every status; PRONY_OK is zero. */
#define PRONY_STATUS_LIST(X)                                                                                           \
    X(PRONY_OK, "ok")                                                                                                  \
    X(PRONY_OUT_OF_MEMORY, "out of memory")                                                                            \
    X(PRONY_INVALID_ARGUMENT, "invalid argument")                                                                      \
    X(PRONY_IO_ERROR, "input/output error")                                                                            \
    X(PRONY_INVALID_MODEL, "invalid model")                                                                            \
    X(PRONY_UNSUPPORTED, "unsupported")                                                                                \
    X(PRONY_SHAPE_MISMATCH, "shape or type mismatch")                                                                  \
    X(PRONY_OUT_OF_RANGE, "value out of range")                                                                        \
    X(PRONY_BUSY, "session is already running")                                                                        \
    X(PRONY_LIMIT, "limit exceeded")                                                                                   \
    X(PRONY_INTERNAL, "internal error")

typedef enum prony_status {
#define PRONY_STATUS_ENUM(name, text) name,
    PRONY_STATUS_LIST(PRONY_STATUS_ENUM)
#undef PRONY_STATUS_ENUM
} prony_status;

#define PRONY_ERROR_MESSAGE_BYTES 1024

/* Filled on failure only; `message` is always NUL-terminated. Zero-initialise it. */
typedef struct prony_error {
    prony_status status;
    char message[PRONY_ERROR_MESSAGE_BYTES];
} prony_error;

PRONY_API const char *prony_status_text(prony_status status);

/* Version of the library that is running, "MAJOR.MINOR.PATCH". */
PRONY_API const char *prony_version(void);

/* For a program that interposes malloc and its relatives: `count` returns the calls so far, of all threads. Reports then
 * tell the heap calls that libraries make during a run from Prony's own. NULL switches it off. */
PRONY_API void prony_heap_hook_install(uint64_t (*count)(void));

/* ---- values ------------------------------------------------------------------------------------------------- */

/* Element types; the numbers are those of ONNX TensorProto.DataType. */
typedef enum prony_dtype {
    PRONY_UNDEFINED = 0,
    PRONY_FLOAT32 = 1,
    PRONY_UINT8 = 2,
    PRONY_INT8 = 3,
    PRONY_UINT16 = 4,
    PRONY_INT16 = 5,
    PRONY_INT32 = 6,
    PRONY_INT64 = 7,
    PRONY_STRING = 8,
    PRONY_BOOL = 9,
    PRONY_FLOAT16 = 10,
    PRONY_FLOAT64 = 11,
    PRONY_UINT32 = 12,
    PRONY_UINT64 = 13,
    PRONY_COMPLEX64 = 14,
    PRONY_COMPLEX128 = 15,
    PRONY_BFLOAT16 = 16,
    PRONY_FLOAT8E4M3FN = 17,
    PRONY_FLOAT8E4M3FNUZ = 18,
    PRONY_FLOAT8E5M2 = 19,
    PRONY_FLOAT8E5M2FNUZ = 20,
    PRONY_UINT4 = 21,
    PRONY_INT4 = 22,
    PRONY_FLOAT4E2M1 = 23,
    PRONY_FLOAT8E8M0 = 24,
    PRONY_UINT2 = 25,
    PRONY_INT2 = 26,
    PRONY_DTYPE_COUNT = 27
} prony_dtype;

PRONY_API const char *prony_dtype_name(prony_dtype dtype); /* "float32", "int64", … as NumPy spells them */

#define PRONY_MAX_RANK 16

/* rank -1: unknown rank; dim -1: unknown extent. */
typedef struct prony_shape {
    int32_t rank;
    int64_t dim[PRONY_MAX_RANK];
} prony_shape;

typedef enum prony_kind { PRONY_TENSOR = 0, PRONY_SEQUENCE = 1, PRONY_OPTIONAL = 2 } prony_kind;

/* A string element of a PRONY_STRING tensor; not NUL-terminated. */
typedef struct prony_string {
    const char *data;
    size_t size;
} prony_string;

/* A value, or only its type and shape while `data` is NULL.
 * Tensor: `data` holds numel elements of `dtype` (4-bit and 2-bit types: packed, low bits first). Who owns `data` is said
 * where the value is given. Sequence and optional: `items` holds `count` values (an empty optional has count 0).
 * `layout` is 0 (plain, row-major) in every value a user sees. */
typedef struct prony_value {
    prony_kind kind;
    prony_dtype dtype;
    prony_shape shape;
    void *data;
    struct prony_value *items;
    size_t count;
    uint8_t layout;
} prony_value;

/* Elements of a fully known shape; -1 if a dimension is unknown or the product of those that are not 0 exceeds 63 bits. */
PRONY_API int64_t prony_shape_numel(const prony_shape *shape);
/* Bytes of `count` elements; SIZE_MAX on overflow. A string takes sizeof(prony_string). */
PRONY_API size_t prony_dtype_bytes(prony_dtype dtype, int64_t count);

/* Reads one tensor from FILE.npy or FILE.pb (TensorProto). The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_value_load(prony_value **out, const char *path, prony_error *error);
/* As above; a .pb file does not say what it holds: a TensorProto, SequenceProto or OptionalProto is told by `kind`. */
PRONY_API PRONY_MUST_USE prony_status prony_value_load_kind(prony_value **out, const char *path, prony_kind kind,
                                                            prony_error *error);
/* Wraps the bytes of a raw little-endian file as a tensor of the given type and shape; the size must match. */
PRONY_API PRONY_MUST_USE prony_status prony_value_load_raw(prony_value **out, const char *path, prony_dtype dtype,
                                                           const prony_shape *shape, prony_error *error);
/* Writes a tensor as .npy (format 1.0), to a temporary name first, then renamed. */
PRONY_API PRONY_MUST_USE prony_status prony_value_save_npy(const prony_value *value, const char *path,
                                                           prony_error *error);
PRONY_API void prony_value_release(prony_value *value);

/* ---- attributes, as a custom operator sees them --------------------------------------------------------------- */

typedef struct prony_node {
    const char *name;    /* never NULL; may be made up from the operator and index if the model has none */
    const char *op_type; /* "Conv" */
    const char *domain;  /* "" is ai.onnx */
    int64_t opset;       /* version of `domain` that the model imports */
    const struct prn_attr_list *attributes;
} prony_node;

/* Each returns false, leaving *out alone, if the node has no such attribute of that type. Results are borrowed. */
PRONY_API bool prony_node_int(const prony_node *node, const char *name, int64_t *out);
PRONY_API bool prony_node_float(const prony_node *node, const char *name, float *out);
PRONY_API bool prony_node_string(const prony_node *node, const char *name, prony_string *out);
PRONY_API bool prony_node_ints(const prony_node *node, const char *name, const int64_t **out, size_t *count);
PRONY_API bool prony_node_floats(const prony_node *node, const char *name, const float **out, size_t *count);
PRONY_API bool prony_node_tensor(const prony_node *node, const char *name, const prony_value **out);

/* ---- cost ------------------------------------------------------------------------------------------------------ */

#define PRONY_MAX_FACTS 12

/* A named integer that describes a node's work (groups, kernel volume, axis length, …); `key` has static lifetime. */
typedef struct prony_fact {
    const char *key;
    int64_t value;
} prony_fact;

/* Analytic cost of one node at its bound shapes; docs/counting.md has the rules. Counts are exact integers. */
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

/* ---- the context an operator's functions see -------------------------------------------------------------------- */

/* One struct for infer, cost, prepare and run.
 *  infer:   inputs have type and full shape; `data` is set only where the value is known already. Fill type and shape of
 *           the outputs. If the shape depends on data that is not there yet, set rank -1: infer is called again at run
 *           time, then with all data.
 *  cost:    outputs are inferred. bytes_read, bytes_written and parameters arrive filled by the general rule.
 *  run:     `data` of inputs and wanted outputs is set; outputs do not overlap inputs unless the kernel allows it.
 * An omitted optional input, or an output nobody asked for, is a NULL pointer. */
typedef struct prony_context {
    const prony_node *node;
    const void *params;             /* built-in operators: the parsed attribute struct */
    void *user;                     /* custom operators: the definition's `user` */
    void *state;                    /* what prepare made; custom operators: NULL */
    size_t input_count;             /* trailing omitted inputs are not counted */
    size_t output_count;
    const prony_value *const *inputs;
    prony_value *const *outputs;
    void *scratch;                  /* bytes that prepare asked for, 64-byte aligned; contents undefined */
    size_t scratch_bytes;
    int threads;                    /* this call's intra-op thread budget, >= 1 */
    const struct prn_post_ops *post_ops; /* set by rewrites on operators that take them; otherwise NULL */
    const struct prn_host *host;         /* what operators may ask of the engine */
    void *host_data;
    prony_error *error;
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

/* Calls fn(argument, begin, end) over disjoint pieces of [0, count), at most context->threads at a time. The pieces depend
 * on `count` and `grain` (smallest piece worth handing out) alone, so results cannot vary with the thread count. */
PRONY_API void prony_parallel_for(const prony_context *context, int64_t count, int64_t grain,
                                  void (*fn)(void *argument, int64_t begin, int64_t end), void *argument);

/* ---- custom operators and overrides --------------------------------------------------------------------------- */

typedef struct prony_registry prony_registry;

typedef struct prony_operator {
    size_t struct_size;
    const char *domain; /* "" for ai.onnx */
    const char *name;
    int64_t since_opset; /* first version of the domain this definition serves */
    prony_infer_fn infer; /* required */
    prony_cost_fn cost;   /* required: an operator without a cost would falsify the totals */
    prony_run_fn run;     /* required */
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

/* ---- model ------------------------------------------------------------------------------------------------------ */

typedef struct prony_model prony_model;

typedef struct prony_model_options {
    size_t struct_size;
    prony_registry *registry; /* NULL: built-in operators only */
} prony_model_options;
#define PRONY_MODEL_OPTIONS_INIT {sizeof(prony_model_options), 0}

/* Maps and checks the file; weights are borrowed from the map. Operators that cannot run are no error here (prony_inspect
 * names them); prony_session_create refuses them. */
PRONY_API PRONY_MUST_USE prony_status prony_model_load(prony_model **out, const char *path,
                                                       const prony_model_options *options, prony_error *error);
/* As above from memory that must outlive the model. External data is refused. `name` appears in messages. */
PRONY_API PRONY_MUST_USE prony_status prony_model_load_memory(prony_model **out, const char *name, const void *data,
                                                              size_t size, const prony_model_options *options,
                                                              prony_error *error);
/* Drops the caller's reference; sessions keep theirs. */
PRONY_API void prony_model_release(prony_model *model);

/* A model input or output as declared. dim -1: free; `dim_names[d]` is its symbol or NULL. */
typedef struct prony_port {
    const char *name;
    prony_kind kind;
    prony_dtype dtype;
    prony_shape shape;
    const char *dim_names[PRONY_MAX_RANK];
} prony_port;

PRONY_API size_t prony_model_input_count(const prony_model *model);
PRONY_API size_t prony_model_output_count(const prony_model *model);
PRONY_API const prony_port *prony_model_input(const prony_model *model, size_t index);
PRONY_API const prony_port *prony_model_output(const prony_model *model, size_t index);

/* ---- session ---------------------------------------------------------------------------------------------------- */

typedef struct prony_session prony_session;

typedef struct prony_dim {
    const char *name; /* symbol of a free dimension */
    int64_t value;
} prony_dim;

typedef struct prony_named_shape {
    const char *name; /* of an input */
    prony_shape shape;
} prony_named_shape;

typedef struct prony_session_options {
    size_t struct_size;
    int intra_op_threads;     /* 0: auto = max(1, floor(min(physical cores in the mask, cgroup quota) / inter-op)) */
    int inter_op_threads;     /* 0 and 1: one worker, no queue; more is refused in this version */
    const char *precision;    /* NULL or "fp32"; others are refused by name */
    const char *affinity;     /* core list such as "0-3,8"; NULL leaves the mask alone */
    const prony_dim *dims;    /* free dimensions by symbol */
    size_t dim_count;
    const prony_named_shape *shapes; /* whole input shapes by name */
    size_t shape_count;
    int64_t batch;            /* > 0: first dimension of every input; refused where the model fixes it to another value */
    bool no_rewrites;         /* run the model's own nodes unfused */
    bool no_profile;          /* leave the dispatcher's stamps out */
    bool record_memory;       /* keep the arena's event list and timeline for the report */
    int64_t max_loop_trips;   /* bound on Loop iterations; 0: 2^31 */
    uint64_t memory_limit_bytes; /* arena and constants together; 0: no bound but the machine's */
} prony_session_options;
#define PRONY_SESSION_OPTIONS_INIT {sizeof(prony_session_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, false, false, false, 0, 0}

/* Checks that every operator can run (all that cannot are listed in one message) and the options; plans nothing yet. */
PRONY_API PRONY_MUST_USE prony_status prony_session_create(prony_session **out, prony_model *model,
                                                           const prony_session_options *options, prony_error *error);
PRONY_API void prony_session_release(prony_session *session);

/* Binds an input by name. The bytes are copied into the session. Another shape than before leads to another plan (kept in
 * a bounded cache) at the next run. */
PRONY_API PRONY_MUST_USE prony_status prony_session_set_input(prony_session *session, const char *name,
                                                              const prony_value *value, prony_error *error);
/* Fills every input not set by the caller from `seed`, one stream per input: floats uniform in [-0.5, 0.5), integers and
 * bools uniform in {0, 1}. Free dimensions that nothing fixed take 1. */
PRONY_API PRONY_MUST_USE prony_status prony_session_generate_inputs(prony_session *session, uint64_t seed,
                                                                    prony_error *error);
/* Binds shapes, rewrites and plans for the current inputs, so that the first run need not. */
PRONY_API PRONY_MUST_USE prony_status prony_session_prepare(prony_session *session, prony_error *error);
PRONY_API PRONY_MUST_USE prony_status prony_session_run(prony_session *session, prony_error *error);
/* Borrowed until the next run or release. */
PRONY_API PRONY_MUST_USE prony_status prony_session_output(const prony_session *session, size_t index,
                                                           const prony_value **out, prony_error *error);

/* ---- report ----------------------------------------------------------------------------------------------------- */

/* Statistics of a set of times, ns. Quantiles: nearest rank. `valid` flags say whether the sample count supports them
 * (p90: 64, p95: 130, p99: 662, p99.9: 6636 samples for 99 % confidence). */
typedef struct prony_time_stats {
    uint64_t count;
    int64_t mean_ns, median_ns, min_ns, max_ns, std_ns;
    int64_t p50_ns, p90_ns, p95_ns, p99_ns, p999_ns;
    int64_t median_ci95_ns[2]; /* bootstrap interval of the median */
    bool p90_valid, p95_valid, p99_valid, p999_valid;
} prony_time_stats;

#define PRONY_NO_INDEX UINT32_MAX

/* One original node of the model. Pointers are owned by the report. */
typedef struct prony_layer_row {
    uint32_t index;    /* position in the model */
    uint32_t operator_index; /* row that executed it; PRONY_NO_INDEX: folded, or a view that runs nothing */
    const char *name;
    const char *module; /* path of the module it belongs to, "" for the root */
    const char *op;
    bool folded;       /* evaluated at bind time */
    bool dynamic;      /* shapes, and so the cost, were known only at run time */
    const prony_value *const *inputs; /* type and shape only; NULL where omitted */
    const prony_value *const *outputs;
    size_t input_count, output_count;
    prony_cost cost;
    bool measured;        /* time_ns and share below are set */
    bool time_attributed; /* its operator stands for several layers: the time is shared among them by analytic cost */
    prony_time_stats time;
    double share;         /* of the operators' summed mean time, 0..1 */
    uint64_t output_bytes;
} prony_layer_row;

/* One executed kernel. */
typedef struct prony_operator_row {
    uint32_t index;
    const char *name;
    const char *op;
    const char *kernel;
    const char *backend;
    const uint32_t *layers;
    size_t layer_count;
    prony_cost cost; /* macs … parameters: the layers' sum; bytes: external inputs and outputs only */
    bool measured;
    prony_time_stats time;
    double share;
    int threads;
    uint64_t offset_bytes; /* of output 0 in the arena; UINT64_MAX: not in the arena */
    uint64_t output_bytes;
    uint64_t scratch_bytes;
    uint64_t library_heap_calls; /* per run, made by libraries inside this operator; 0 where not counted */
} prony_operator_row;

typedef struct prony_totals {
    prony_cost cost; /* fact_count 0 */
    uint32_t layers, folded_layers, operators;
} prony_totals;

/* An arena allocation or release. */
typedef struct prony_memory_event {
    bool release;
    const char *owner; /* value or operator name */
    const char *tag;   /* "activation", "scratch", "dynamic" */
    uint64_t asked_bytes, given_bytes, offset_bytes;
    uint32_t step;     /* operator index */
} prony_memory_event;

typedef struct prony_memory_point {
    uint32_t step;
    uint64_t live_bytes;
} prony_memory_point;

typedef struct prony_memory_report {
    uint64_t weight_bytes, packed_weight_bytes;
    uint64_t planned_bytes;      /* arena bytes the plan needs */
    uint64_t lower_bound_bytes;  /* largest sum of aligned live bytes at any step */
    double plan_gap;             /* 1 - lower_bound / planned */
    uint64_t peak_live_bytes, average_live_bytes, scratch_bytes;
    double internal_fragmentation; /* 1 - asked / given */
    double external_fragmentation; /* 1 - largest free block / free bytes, at its worst step */
    uint64_t allocations, releases;
    uint64_t heap_calls_per_run, library_heap_calls_per_run;
    bool heap_calls_known, library_heap_calls_known;
    uint64_t peak_rss_bytes;
    const prony_memory_point *timeline;
    size_t timeline_count;
    const prony_memory_event *events;
    size_t event_count;
} prony_memory_report;

typedef struct prony_report prony_report;

/* Static report: parameters, shapes, counts; nothing runs, weights are not read. `options` gives free dimensions (those
 * that nothing fixes take 1). Operators that cannot run are listed in the report and make the affected shapes unknown. */
PRONY_API PRONY_MUST_USE prony_status prony_inspect(prony_report **out, prony_model *model,
                                                    const prony_session_options *options, prony_error *error);

typedef struct prony_profile_options {
    size_t struct_size;
    int64_t warmup_runs; /* -1: detected */
    int64_t runs;        /* 0: until the median is known to 1 %, or max_seconds is up */
    double max_seconds;  /* 0: 5 s */
    void (*progress)(void *user, int64_t runs_done, double seconds, double relative_error); /* may be NULL */
    void *progress_user;
} prony_profile_options;
#define PRONY_PROFILE_OPTIONS_INIT {sizeof(prony_profile_options), -1, 0, 0, 0, 0}

/* Runs the session repeatedly on its bound inputs and reports. */
PRONY_API PRONY_MUST_USE prony_status prony_session_profile(prony_report **out, prony_session *session,
                                                            const prony_profile_options *options, prony_error *error);
PRONY_API void prony_report_release(prony_report *report);

PRONY_API const prony_totals *prony_report_totals(const prony_report *report);
PRONY_API const prony_layer_row *prony_report_layers(const prony_report *report, size_t *count);
PRONY_API const prony_operator_row *prony_report_operators(const prony_report *report, size_t *count);
PRONY_API const prony_memory_report *prony_report_memory(const prony_report *report);
/* NULL if the report measured nothing. */
PRONY_API const prony_time_stats *prony_report_latency(const prony_report *report);
/* Operators that no kernel exists for, as "domain::Op-opset (n nodes)"; borrowed. */
PRONY_API const char *const *prony_report_unsupported(const prony_report *report, size_t *count);
/* Share of a run's wall time that lies inside operators, 0..1; negative if not measured. */
PRONY_API double prony_report_time_coverage(const prony_report *report);

/* Stands in the report's `evaluation`, for labelled data that the caller evaluated. `metric` is copied. */
PRONY_API PRONY_MUST_USE prony_status prony_report_set_evaluation(prony_report *report, const char *metric,
                                                                  double value, int64_t samples, prony_error *error);

typedef enum prony_format { PRONY_FORMAT_TEXT, PRONY_FORMAT_JSON } prony_format;

enum { PRONY_LEVEL_MODEL = 1, PRONY_LEVEL_LAYER = 2, PRONY_LEVEL_OPERATOR = 4 };

typedef struct prony_write_options {
    size_t struct_size;
    bool color;         /* text: ANSI colours */
    int width;          /* text: columns; 0: 80 */
    unsigned levels;    /* text: PRONY_LEVEL_* bits; 0: all */
    int64_t top;        /* text: rows per table; 0: all */
    const char *sort;   /* text: "index" (default), "time", "macs", "flops", "parameters", "bytes", "name" */
    const char *filter; /* text: KEY=GLOB with KEY name, op, module or kernel; NULL: none */
    bool memory;        /* JSON: timeline and events as well; text: the memory table */
} prony_write_options;
#define PRONY_WRITE_OPTIONS_INIT {sizeof(prony_write_options), false, 0, 0, 0, 0, 0, false}

/* Receives pieces of output in order; a return other than 0 stops with PRONY_IO_ERROR. */
typedef int (*prony_write_fn)(void *user, const char *data, size_t size);
PRONY_API PRONY_MUST_USE prony_status prony_report_write(const prony_report *report, prony_format format,
                                                         const prony_write_options *options, prony_write_fn write,
                                                         void *user, prony_error *error);
/* To a temporary name, then renamed, so that a failure leaves an old file intact. */
PRONY_API PRONY_MUST_USE prony_status prony_report_save(const prony_report *report, prony_format format,
                                                        const prony_write_options *options, const char *path,
                                                        prony_error *error);

/* ---- operator table --------------------------------------------------------------------------------------------- */

typedef struct prony_operator_info {
    const char *domain;
    const char *name;
    int64_t since_opset;
    const char *types;          /* element types of the first input, comma-separated */
    const char *cost;           /* the cost formula in words */
    const char *const *kernels; /* in order of preference */
    size_t kernel_count;
} prony_operator_info;

PRONY_API size_t prony_operator_count(void);
PRONY_API const prony_operator_info *prony_operator_at(size_t index);

#ifdef __cplusplus
}
#endif
#endif
