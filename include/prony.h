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
    X(PRONY_INTERNAL, "internal error")                                                                                \
    X(PRONY_CANCELLED, "cancelled")                                                                                    \
    X(PRONY_NEEDS_DIMENSION, "a free dimension needs a value")

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

/* The monotonic clock that all times are of, ns. */
PRONY_API int64_t prony_now_ns(void);

/* Version of the library that is running, "MAJOR.MINOR.PATCH". */
PRONY_API const char *prony_version(void);

/* What is running. Borrowed; the strings are never NULL. */
typedef struct prony_build {
    const char *version;
    const char *git_commit; /* "" if it was not built from a repository */
    const char *compiler, *compiler_flags;
    const char *isa;        /* that kernels use here: "avx512", "avx2", "baseline" */
    const char *libraries;  /* "onednn 2.6.3, openblas 0.3.21" */
} prony_build;
PRONY_API const prony_build *prony_build_info(void);

/* For a program that interposes malloc and its relatives: `count` returns the calls so far, of all threads. Reports then
 * tell the heap calls that libraries make during a run from Prony's own. NULL switches it off. */
PRONY_API void prony_heap_hook_install(uint64_t (*count)(void));

/* ---- memory ------------------------------------------------------------------------------------------------- */

/* Bounds what Prony's own code holds on the heap of this process, all models, sessions and reports together; 0: no bound.
 * A model's and a session's options bound those alone. What does not fit is refused with PRONY_LIMIT; the message names
 * who asked, for how much, and the limit. Mapped files do not count, nor does what libraries take for themselves.
 * Thread-safe; what is held already stays. */
PRONY_API void prony_memory_set_limit(uint64_t bytes);
/* What Prony's own code holds now. Thread-safe. */
PRONY_API uint64_t prony_memory_in_use(void);
/* What this process can still get: the least of what the machine has available and of what each control group around the
 * process leaves, pages of files that can be given up included. 0: not known. */
PRONY_API uint64_t prony_memory_available(void);

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

/* Reads one tensor from FILE.npy, FILE.npz (which then holds one array) or FILE.pb (TensorProto). The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_value_load(prony_value **out, const char *path, prony_error *error);
/* As above; a .pb file does not say what it holds: a TensorProto, SequenceProto or OptionalProto is told by `kind`. */
PRONY_API PRONY_MUST_USE prony_status prony_value_load_kind(prony_value **out, const char *path, prony_kind kind,
                                                            prony_error *error);
/* One array of FILE.npz by its name; NULL: the only one. An only array that numpy.savez called arr_0 has any name. */
PRONY_API PRONY_MUST_USE prony_status prony_value_load_array(prony_value **out, const char *path, const char *name,
                                                             prony_error *error);
/* Wraps the bytes of a raw little-endian file as a tensor of the given type and shape; the size must match. */
PRONY_API PRONY_MUST_USE prony_status prony_value_load_raw(prony_value **out, const char *path, prony_dtype dtype,
                                                           const prony_shape *shape, prony_error *error);
/* A tensor written as text, for an input of this type and shape: a number or true or false, which fills it; [1, 2, 3] or
 * nested lists, of the input's own number of elements or, where dimensions are free (-1), of a rank up to the input's, with
 * leading dimensions of 1 as in broadcasting; zeros; ones; uniform:LOW:HIGH, drawn from `seed` (of integers: both ends
 * included). A number that the type cannot hold is PRONY_INVALID_ARGUMENT; a free dimension that the text leaves open is
 * PRONY_NEEDS_DIMENSION. The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_value_parse(prony_value **out, const char *text, prony_dtype dtype,
                                                        const prony_shape *shape, uint64_t seed, prony_error *error);
/* Whether a text is one that prony_value_parse may read. */
PRONY_API bool prony_value_is_literal(const char *text);
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
    const char *within;  /* the If and its branch that it was put in place of, as messages name them; NULL: none */
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

/* Whether the work that the calling thread does for a session was called off (prony_session_cancel); for loops that take
 * long. What run makes does not count then, whatever it returns. True on every thread of prony_parallel_for, which leaves no
 * piece out by itself. */
PRONY_API bool prony_cancelled(const prony_context *context);

/* ---- custom operators and overrides --------------------------------------------------------------------------- */

typedef struct prony_registry prony_registry;

typedef struct prony_operator {
    size_t struct_size;
    const char *domain; /* "" for ai.onnx */
    const char *name;
    int64_t since_opset; /* first version of the domain this definition serves */
    prony_infer_fn infer; /* required */
    prony_cost_fn cost;   /* required: an operator without a cost would falsify the totals */
    prony_run_fn run;     /* required; with several inter-op workers it may be called for different nodes at the same time */
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
    bool copy; /* read the files (external data too) into memory instead of mapping them */
    uint64_t memory_limit_bytes; /* heap of the model and all its sessions together; 0: no bound but the process's */
    const char *data_folder; /* where external data lies; NULL: in the folder of the model */
} prony_model_options;
#define PRONY_MODEL_OPTIONS_INIT {sizeof(prony_model_options), 0, false, 0, 0}

/* Maps and checks the file; weights are borrowed from the map. A file that somebody makes shorter while it is mapped ends
 * the process with SIGBUS when the lost part is read, and one that is written to changes the weights: replace model files by
 * rename, or set `copy`. A file that is no longer what was loaded (size, time of modification) is PRONY_IO_ERROR when a
 * session plans, and between the runs of a profile. Operators that cannot run are no error here (prony_inspect
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

/* A part of a model: the nodes that the tensors `to` need, down to the tensors `from`. */
typedef struct prony_part {
    size_t struct_size;
    const char *const *from; /* become inputs, besides the model's own that are still needed; none: those alone */
    size_t from_count;
    const char *const *to;   /* become outputs; none: the model's */
    size_t to_count;
    /* Types and shapes of the tensors `from`, in their order, as a run had them; NULL: what the file declares, else what
     * follows from the input shapes that `options` give (NULL: defaults). */
    const prony_value *const *values;
    const struct prony_session_options *options;
} prony_part;
#define PRONY_PART_INIT {sizeof(prony_part), 0, 0, 0, 0, 0, 0}

/* The part as a model of its own. Names that the graph has not (those inside of subgraphs and functions among them),
 * constants, a `to` that no node makes, a `from` that nothing of the part reads and sequences as `from` are
 * PRONY_INVALID_ARGUMENT; weights of 2 GiB or more, and external data of a subgraph, PRONY_UNSUPPORTED. */
PRONY_API PRONY_MUST_USE prony_status prony_model_part(prony_model **out, prony_model *model, const prony_part *part,
                                                       prony_error *error);
/* As an ONNX file, complete in itself: to a temporary name, then renamed. */
PRONY_API PRONY_MUST_USE prony_status prony_model_save_part(prony_model *model, const prony_part *part, const char *path,
                                                            prony_error *error);

/* ---- images ---------------------------------------------------------------------------------------------------- */

/* What happens to an image before the centre crop. */
typedef enum prony_image_resize {
    PRONY_IMAGE_RESIZE_FIT,     /* to the crop's size exactly, or the input's; where both are free: as it is */
    PRONY_IMAGE_RESIZE_NONE,
    PRONY_IMAGE_RESIZE_SHORTER, /* its shorter side to resize_height, aspect kept */
    PRONY_IMAGE_RESIZE_EXACT,   /* to resize_height x resize_width */
    PRONY_IMAGE_RESIZE_MARGIN   /* its shorter side so that the crop is 7/8 of it: 256 for 224; a free crop is 224 x 224 */
} prony_image_resize;

/* What becomes of a channel's value v, 0..255. */
typedef enum prony_image_normalize {
    PRONY_NORMALIZE_DEFAULT,  /* as 0..1 where the input is of floats, as 0..255 where it is uint8 */
    PRONY_NORMALIZE_UNIT,     /* 0..1:     v / 255 */
    PRONY_NORMALIZE_SIGNED,   /* -1..1:    (v / 255 - 0.5) / 0.5 */
    PRONY_NORMALIZE_BYTES,    /* 0..255:   v */
    PRONY_NORMALIZE_IMAGENET, /* imagenet: (v / 255 - mean) / std, mean 0.485 0.456 0.406, std 0.229 0.224 0.225 */
    PRONY_NORMALIZE_CUSTOM    /* (v / 255 - mean) / std with those of the options */
} prony_image_normalize;

typedef enum prony_image_layout { PRONY_LAYOUT_AUTO, PRONY_LAYOUT_NCHW, PRONY_LAYOUT_NHWC } prony_image_layout;

typedef struct prony_image_options {
    size_t struct_size;
    prony_image_resize resize;
    int64_t resize_height, resize_width;
    bool bicubic;                      /* else bilinear; both as Pillow resizes: antialiased, in fixed point */
    int64_t crop_height, crop_width;   /* of the centre; 0: the input's size, or none where that is free */
    prony_image_normalize normalize;
    float mean[3], std[3];             /* in RGB order, of values 0..1; of one channel the first */
    bool bgr;                          /* channels in the order blue, green, red */
    prony_image_layout layout;         /* AUTO: where the input has 1 or 3; first if it does not tell */
    uint64_t max_pixels;               /* larger images are refused; 0: 2^27 */
} prony_image_options;
#define PRONY_IMAGE_OPTIONS_INIT                                                                                       \
    {                                                                                                                  \
        sizeof(prony_image_options), PRONY_IMAGE_RESIZE_FIT, 0, 0, false, 0, 0, PRONY_NORMALIZE_DEFAULT, {0}, {0},      \
            false, PRONY_LAYOUT_AUTO, 0                                                                                \
    }

/* Reads "resize=256,crop=224,normalize=imagenet" and the like into *out. KEY=VALUE, comma-separated: resize=N (shorter
 * side), HxW, fit or none; crop=N, HxW or none; filter=bilinear or bicubic; normalize=0..1, -1..1, 0..255 or imagenet;
 * mean=R:G:B, std=R:G:B; channels=rgb or bgr; layout=nchw or nhwc. The word imagenet alone is what torchvision's
 * classifiers were trained with: shorter side 8/7 of the crop, crop to the input's size, normalize=imagenet. */
PRONY_API PRONY_MUST_USE prony_status prony_image_options_parse(prony_image_options *out, const char *text,
                                                                prony_error *error);
/* Formats that this build decodes, "PNG, JPEG"; "" if none. */
PRONY_API const char *prony_image_formats(void);
/* Whether a name ends in .png, .jpg or .jpeg. */
PRONY_API bool prony_image_is_file(const char *path);
/* Decodes an image and makes it the tensor that an input wants: `port` says type (float32, float64, uint8), channels (1
 * or 3), layout and size; where its first dimension is fixed, the image stands there so many times, else once. Palettes
 * become colours, 16 bits their upper 8, transparency is dropped, CMYK becomes RGB; orientation tags are not followed.
 * A damaged file is PRONY_INVALID_ARGUMENT, one above max_pixels PRONY_LIMIT, a format that this build has no library
 * for PRONY_UNSUPPORTED. `options` NULL: the defaults. The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_image_load(prony_value **out, const char *path, const prony_port *port,
                                                       const prony_image_options *options, prony_error *error);
/* As above from memory; `name` appears in messages. */
PRONY_API PRONY_MUST_USE prony_status prony_image_load_memory(prony_value **out, const char *name, const void *data,
                                                              size_t size, const prony_port *port,
                                                              const prony_image_options *options, prony_error *error);

/* ---- session ---------------------------------------------------------------------------------------------------- */

typedef struct prony_session prony_session;

/* The name is a free dimension's symbol; "INPUT.AXIS" (axes from 0), with which those without a symbol are named; or "*", for
 * every free dimension that nothing else says anything of. */
typedef struct prony_dim {
    const char *name;
    int64_t value;
} prony_dim;

typedef struct prony_named_shape {
    const char *name; /* of an input */
    prony_shape shape;
} prony_named_shape;

/* Threads that several sessions share, so that many sessions on few cores do not make many threads: each session's caller
 * works itself, and the pool's threads help whoever has something to do. Outputs do not depend on it. Thread-safe. */
typedef struct prony_pool prony_pool;

/* Starts `threads` threads (0: one less than there are cores to use, as callers work too), or as many of them as can be had.
 * They take the affinity mask of the calling thread. The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_pool_create(prony_pool **out, int threads, prony_error *error);
/* The threads end when the last session that uses them is released as well. */
PRONY_API void prony_pool_release(prony_pool *pool);
/* Threads that it has. */
PRONY_API int prony_pool_threads(const prony_pool *pool);

/* For inter_op_threads: as many workers as the plan gains from, which may be one. */
#define PRONY_INTER_OP_AUTO (-1)
/* What becomes of a free dimension that neither options nor bound inputs fix. */
typedef enum prony_free_dims {
    PRONY_FREE_ONE, /* 1 */
    PRONY_FREE_ASK  /* 1 where it is a batch: an input's first dimension unless its name says otherwise, or any that is called
                       so; what the model tells (metadata, shapes it declares of other tensors); else PRONY_NEEDS_DIMENSION */
} prony_free_dims;

typedef struct prony_session_options {
    size_t struct_size;
    int intra_op_threads;     /* 0: auto = max(1, floor(min(physical cores in the mask, cgroup quota) / inter-op)) */
    int inter_op_threads;     /* workers that run operators side by side, the caller among them, each with intra_op_threads;
                                 0 and 1: one, no queue; or PRONY_INTER_OP_AUTO. Together at most 1024 threads */
    const char *precision;    /* NULL or "fp32"; others are refused by name */
    const char *affinity;     /* core list such as "0-3,8"; NULL leaves masks alone. See prony_session_affinity. */
    const prony_dim *dims;    /* free dimensions by symbol */
    size_t dim_count;
    const prony_named_shape *shapes; /* whole input shapes by name */
    size_t shape_count;
    int64_t batch;            /* > 0: first dimension of every input; refused where the model fixes it to another value */
    bool no_rewrites;         /* run the model's own nodes unfused */
    bool no_reuse;            /* every value in memory of its own for the whole run: no views, nothing in place */
    bool no_profile;          /* leave the dispatcher's stamps out */
    bool record_memory;       /* keep the arena's event list and timeline for the report */
    int64_t max_loop_trips;   /* bound on Loop iterations; 0: 2^31 */
    uint64_t memory_limit_bytes; /* heap that the session takes: inputs, bound graphs, constants, packed weights, plans of
                                    every shape, arenas with what is sized at run time; 0: no bound but the model's */
    bool no_help;             /* workers that have nothing to do leave the operators of others alone */
    prony_pool *pool;         /* NULL: threads of the session's own. Otherwise the pool's help, as many as are asked for above
                                 and free; the session keeps them, the pool may be released before */
    prony_free_dims free_dims;
} prony_session_options;
#define PRONY_SESSION_OPTIONS_INIT                                                                                     \
    {sizeof(prony_session_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, false, false, false, false, 0, 0, false, 0, PRONY_FREE_ONE}

/* A free dimension of the model's inputs; one with a symbol stands here once. */
typedef struct prony_free_dim {
    const char *name;   /* as prony_dim takes it */
    const char *input;  /* the first that has it */
    int axis;
    int64_t value;      /* what it becomes; -1: nothing tells */
    const char *reason; /* "given", "batch", "metadata imgsz", "declared shapes", "nothing reads it"; "" where nothing tells, or it is simply 1 */
    int64_t example;    /* where nothing tells: together with the others' a value for which the shapes fit; -1: none was found */
} prony_free_dim;
/* What free dimensions the model has, and what `options` (NULL: PRONY_FREE_ASK) make of them. Where nothing tells, shapes are
 * inferred for some usual sizes to find an example. Released by prony_rows_release. */
PRONY_API PRONY_MUST_USE prony_status prony_model_free_dims(prony_free_dim **rows, size_t *count, prony_model *model,
                                                            const prony_session_options *options, prony_error *error);

/* Checks that every operator can run (all that cannot are listed in one message) and the options; plans nothing yet. */
PRONY_API PRONY_MUST_USE prony_status prony_session_create(prony_session **out, prony_model *model,
                                                           const prony_session_options *options, prony_error *error);
PRONY_API void prony_session_release(prony_session *session);
/* Threads that an operator may use: what `auto` came to, of the plan at hand. */
PRONY_API int prony_session_threads(const prony_session *session);
/* Workers that run operators side by side, of the plan at hand: 1 before there is one. */
PRONY_API int prony_session_workers(const prony_session *session);

/* PRONY_OK if `list` is a core list ("0-3,8": numbers below 4096 and ascending ranges), whatever processors there are. */
PRONY_API PRONY_MUST_USE prony_status prony_affinity_check(const char *list, prony_error *error);
/* Processors that the session's threads are pinned to, "0,2,1,3": thread i (0 is the one that calls) has the i-th. One
 * processor of each core comes first, NUMA node after NUMA node, then their siblings. Where there are more threads than
 * processors, each may use all of them. NULL: masks are left alone.
 * The calling thread is pinned while a run lasts, and has its own mask again when the call returns.
 * *failure (may be NULL): what of the list could not be had (processors that do not exist or are not allowed are left out)
 * or which thread the system did not pin; the session runs nevertheless. NULL: nothing. Borrowed until the next run. */
PRONY_API const char *prony_session_affinity(const prony_session *session, const char **failure);
/* Pins the calling thread until prony_session_unpin, which the same thread calls: the runs between cost no system call for
 * it. Without it each run of a session with an affinity list makes three. prony_session_profile does this by itself. A
 * session pins one thread at a time (PRONY_INVALID_ARGUMENT); another thread than that may not release it meanwhile. */
PRONY_API PRONY_MUST_USE prony_status prony_session_pin(prony_session *session, prony_error *error);
PRONY_API void prony_session_unpin(prony_session *session);

/* Binds an input by name. The bytes are copied into the session. Another shape than before leads to another plan (kept in
 * a bounded cache) at the next run. */
PRONY_API PRONY_MUST_USE prony_status prony_session_set_input(prony_session *session, const char *name,
                                                              const prony_value *value, prony_error *error);
/* Binds an input by name without a copy: runs read value->data where it lies. The bytes stay the caller's; they must stay valid
 * until the input is bound or set again or the session is released, and may change between runs. Tensors of numbers only
 * (PRONY_UNSUPPORTED). Bytes that are not aligned for their elements are copied by each run. */
PRONY_API PRONY_MUST_USE prony_status prony_session_bind_input(prony_session *session, const char *name,
                                                               const prony_value *value, prony_error *error);
/* Runs write output `index` to `data`, which has room for `bytes` bytes, stays the caller's and must stay valid until other
 * bytes (or NULL: none) are bound or the session is released. What can be made there is made there; an output that is a view
 * of an input or constant, shares bytes with another output or gets its shape in the run is copied at the end of the run, and
 * so is one whose bytes are not aligned for its elements. A run whose output needs more fails with PRONY_OUT_OF_RANGE. The
 * elements are also what prony_session_output gives. */
PRONY_API PRONY_MUST_USE prony_status prony_session_bind_output(prony_session *session, size_t index, void *data,
                                                                size_t bytes, prony_error *error);
/* What is bound to input `index`; NULL: nothing. Borrowed until the input is set again. */
PRONY_API const prony_value *prony_session_input_value(const prony_session *session, size_t index);
/* Fills every input not set by the caller from `seed`, one stream per input: floats uniform in [-0.5, 0.5), integers and
 * bools uniform in {0, 1}. Free dimensions that nothing fixed become what the options' `free_dims` says. */
PRONY_API PRONY_MUST_USE prony_status prony_session_generate_inputs(prony_session *session, uint64_t seed,
                                                                    prony_error *error);
/* The input as the model declares it and the session's options and bound inputs fix it: dim -1 is still free. The names are
 * borrowed from the model. */
PRONY_API PRONY_MUST_USE prony_status prony_session_input(const prony_session *session, const char *name, prony_port *out,
                                                          prony_error *error);
/* The shape that prony_session_generate_inputs would give it now. */
PRONY_API PRONY_MUST_USE prony_status prony_session_input_shape(prony_session *session, const char *name,
                                                                prony_shape *out, prony_error *error);
/* Binds shapes, rewrites and plans for the current inputs, so that the first run need not. */
PRONY_API PRONY_MUST_USE prony_status prony_session_prepare(prony_session *session, prony_error *error);
PRONY_API PRONY_MUST_USE prony_status prony_session_run(prony_session *session, prony_error *error);
/* Calls off what the session is doing, from any thread or from a signal handler: the call that is under way (or else the next
 * one: set_input, generate_inputs, prepare, run, profile, evaluation) ends with PRONY_CANCELLED within a moment, whether it
 * binds, plans, packs weights or is inside an operator, and so uses the request up. No output can be asked for then; the
 * session is as usable as before. A custom operator is waited for, unless it looks at prony_cancelled. */
PRONY_API void prony_session_cancel(prony_session *session);
/* Takes back a request that no call has answered. PRONY_BUSY while one is under way. */
PRONY_API PRONY_MUST_USE prony_status prony_session_uncancel(prony_session *session, prony_error *error);
/* Borrowed until the next run or release. */
PRONY_API PRONY_MUST_USE prony_status prony_session_output(const prony_session *session, size_t index,
                                                           const prony_value **out, prony_error *error);

/* Where the elements of an output that was drawn at random lie; infinite where nothing bounds them. */
typedef struct prony_random_range {
    double low, high;
    bool whole; /* only whole numbers: classes, zeros and ones */
} prony_random_range;

/* Whether output `index` of the last run depends on what a random operator drew (RandomNormal, RandomUniform, their Like
 * forms, Bernoulli, Multinomial, Dropout in training), wherever that stands: two engines then agree on type, shape and
 * range alone. *range is set if so. */
PRONY_API PRONY_MUST_USE prony_status prony_session_output_random(const prony_session *session, size_t index,
                                                                  bool *random, prony_random_range *range,
                                                                  prony_error *error);

/* ---- batching -------------------------------------------------------------------------------------------------------- */

/* Serves requests of many threads with a few sessions on one model's weights, and combines requests into one run along the
 * first dimension of inputs and outputs.
 *
 * A run takes 1, max_batch, or one of two sizes between (powers of two), so that each session keeps its plans; of the
 * requests that wait it takes the largest such number, oldest first. Requests are combined if each is one sample (first
 * dimension 1 of every input) and their types and other dimensions agree; every other request runs alone. Where a combined
 * run fails, each of its requests runs again alone, so that only those fail that must.
 *
 * Combining is right for models that treat the samples of a batch apart, which a model file does not tell: normalisation
 * or quantisation over the batch is not. Even then a sample's result may differ in the last bits from that of its run
 * alone, because kernels are chosen by shape; at one place in runs of one size it does not depend on the samples beside it.
 * prony_batcher_trial says what held for this model. */
typedef struct prony_batcher prony_batcher;

typedef struct prony_batcher_options {
    size_t struct_size;
    int sessions;        /* runs side by side, each by a thread of its own with a session of its own; 0: 1 */
    int64_t max_batch;   /* samples in one run, at most 65536; 0 and 1: nothing is combined */
    int64_t max_wait_ns; /* that a request waits for others, from its submission; 0: what waits already is combined */
    size_t max_queue;    /* requests that may wait; 0: 65536 */
} prony_batcher_options;
#define PRONY_BATCHER_OPTIONS_INIT {sizeof(prony_batcher_options), 0, 0, 0, 0}

/* Starts the threads and makes one run of every batch size on generated inputs in each session, so that no request pays for
 * planning. `session` may be NULL; auto threads are the machine's over `sessions`, and sessions share its affinity list one
 * after another. With max_batch above 1, an input or output whose first dimension is fixed, or that is no tensor of numbers
 * (outputs: no tensor), is PRONY_INVALID_ARGUMENT. */
PRONY_API PRONY_MUST_USE prony_status prony_batcher_create(prony_batcher **out, prony_model *model,
                                                           const prony_session_options *session,
                                                           const prony_batcher_options *options, prony_error *error);
/* Takes no more requests: prony_batcher_submit is PRONY_CANCELLED from now on. Those that wait are served, or, with `drop`,
 * done with PRONY_CANCELLED at once, by the calling thread; runs under way end in any case. Returns before that. */
PRONY_API void prony_batcher_close(prony_batcher *batcher, bool drop);
/* Closes without dropping, waits until every request is done, and frees. Not to be called from a `done` function, nor while
 * another thread may still use the batcher. */
PRONY_API void prony_batcher_release(prony_batcher *batcher);

/* Borrowed: valid during the call of `done`. Times are of the library's monotonic clock. */
typedef struct prony_batch_result {
    prony_status status;
    const char *message;               /* what went wrong; "" */
    const prony_value *const *outputs; /* this request's own, in model order; NULL where it failed */
    size_t output_count;
    int64_t batch;                     /* requests in the run that served it */
    int64_t submitted_ns, started_ns, finished_ns; /* started_ns: of the run; less submitted_ns is the time in the queue */
} prony_batch_result;

/* Called once for every request that was taken, by a thread of the batcher (or of prony_batcher_close). It may submit. */
typedef void (*prony_batch_done)(void *user, const prony_batch_result *result);

/* Takes a request: a value per model input, in model order. The values and their data are borrowed until `done` returns.
 * What the model's inputs do not allow is refused here; a full queue is PRONY_LIMIT. Thread-safe. */
PRONY_API PRONY_MUST_USE prony_status prony_batcher_submit(prony_batcher *batcher, const prony_value *const *inputs,
                                                           size_t count, prony_batch_done done, void *user,
                                                           prony_error *error);
/* Submits and waits. outputs[i] of `output_count` (the model's) are copies that the caller releases; on failure all are
 * NULL. Thread-safe. */
PRONY_API PRONY_MUST_USE prony_status prony_batcher_run(prony_batcher *batcher, const prony_value *const *inputs,
                                                        size_t count, prony_value **outputs, size_t output_count,
                                                        prony_error *error);

/* What the runs of prony_batcher_create showed: samples run alone against the same samples combined. */
typedef struct prony_batch_trial {
    bool known;      /* false: nothing is combined, or the model did not run on generated inputs */
    bool identical;  /* bit for bit */
    double largest;  /* difference over the largest magnitude in the output; 1 where anything but floats differs */
    int sizes_count; /* that runs have, ascending */
    int64_t sizes[4];
    int threads;     /* of each session */
} prony_batch_trial;
PRONY_API prony_batch_trial prony_batcher_trial(const prony_batcher *batcher);

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

/* Of times in any unit of nanoseconds, in order; `samples_ns` is left as it is. */
PRONY_API PRONY_MUST_USE prony_status prony_time_stats_compute(prony_time_stats *out, const int64_t *samples_ns,
                                                               size_t count, prony_error *error);

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
    bool time_attributed; /* an estimate: its operator stands for several layers, which share its time by what their work
                             costs on this machine (docs/profiler.md) */
    prony_time_stats time;
    double share;         /* of the operators' summed mean time, 0..1 */
    uint64_t output_bytes;
    const uint32_t *sources; /* per input the layer that makes it; PRONY_NO_INDEX: model input, weight or omitted.
                                NULL: not known */
    bool counted;   /* `count` is set: a counting preset was chosen and counts this operator */
    uint64_t count; /* what the preset's tool says of it */
    bool removed;          /* returns its input unchanged, or was folded into weights: nothing of it runs, no time is its */
    double operator_share; /* of its operator's time, 0..1; worth about one digit where time_attributed */
} prony_layer_row;

/* What one thread of a team did of an operator, in the last run. */
typedef struct prony_thread_share {
    int thread;               /* 0: the one that called */
    int64_t start_ns, end_ns; /* of its first and last task, from the run's entry */
    int64_t busy_ns;          /* less than end_ns - start_ns where the operator calls its team several times */
    int64_t tasks;            /* pieces of the work */
} prony_thread_share;

/* How well the threads were used, means of the runs in which they were traced. Work is what tasks of the team are; an operator that gives its
 * team none is all work of the thread that calls. */
typedef struct prony_parallel {
    double threads_used;   /* that had work; 0: not known, and the rest is not set */
    int64_t busy_ns;       /* at work, all threads together */
    int64_t wait_ns;       /* the operator's time once for each thread it may use, less busy_ns */
    double imbalance;      /* busiest thread over the mean of those that had work, less 1; 0: even */
    double achieved_cores; /* busy_ns over the operator's time */
    double efficiency;     /* achieved_cores over the threads it may use */
} prony_parallel;

/* Why an operator does not reach its roof: a word that programs know (docs/machine.md), and a sentence with the figures. */
typedef struct prony_reason {
    const char *reason, *text;
} prony_reason;

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
    bool traced;                 /* the three below are set */
    int worker;                  /* that executed it in the last run, from 0 */
    int64_t trace_start_ns, trace_end_ns; /* in that run, from its entry */
    const prony_thread_share *team; /* threads that took part in that run, by number; NULL: not asked for, or it ran alone */
    size_t team_count;
    prony_parallel parallel;          /* if threads were traced */
    const int64_t *thread_busy_ns;    /* [thread_busy_count] means per run, by number; NULL: not known */
    size_t thread_busy_count;
    bool counted;                /* the three below are set: hardware counters, mean per run, of all threads, user space only */
    uint64_t cycles, instructions, cache_misses;
    const prony_fact *kernel_facts; /* what the kernel says of its work; docs/report.md has the keys */
    size_t kernel_fact_count;
    const prony_reason *reasons; /* what explains most surely first */
    size_t reason_count;
    double kernel_best;          /* highest share of the roof that an operator with this kernel reaches here; 0: not known */
    uint32_t kernel_best_operator;
} prony_operator_row;

/* A node inside of a subgraph, which an If, Loop, Scan, SequenceMap or another operator with subgraphs runs. It explains the rows around
 * it and stands in no total: the figures of its owner and parents include it. Of the layers, those of a parent's subgraphs sum to the
 * parent's cost without what it does itself; of the operators likewise, but for their bytes, which are external traffic only. */
typedef struct prony_nested_row {
    uint32_t index;  /* position in its list, where each row stands behind the one that it is inside of */
    uint32_t owner;  /* the model's own row around it all, in the list of the same level: layers or operators */
    uint32_t parent; /* row of this list whose subgraph it stands in; PRONY_NO_INDEX: the owner's */
    uint32_t depth;  /* subgraphs around it, from 1 */
    const char *subgraph; /* "then_branch", "body" */
    const char *path;     /* nodes and subgraphs around it: "decode > body > Cond_3 > then_branch" */
    const char *name, *op;
    const char *module;           /* as of a layer */
    const char *kernel, *backend; /* what ran it; "": nothing did, or it is a view */
    bool folded, dynamic;
    const prony_value *const *inputs, *const *outputs; /* layers: type and shape only; NULL where omitted. Operators: NULL */
    size_t input_count, output_count;
    const uint32_t *sources; /* layers: per input the row of this list that makes it; PRONY_NO_INDEX: it comes from elsewhere.
                                NULL: not known */
    uint32_t operator_index; /* layers: row among the operators in subgraphs; PRONY_NO_INDEX: none ran it */
    const uint32_t *layers;  /* operators: rows among the layers in subgraphs */
    size_t layer_count;
    bool executed;       /* `executions` is known: something ran */
    uint64_t executions; /* in the last run; 0: a branch that was not taken */
    prony_cost cost;     /* of all executions in the last run; where nothing ran, of one. parameters: once */
    bool measured;
    prony_time_stats time; /* per run, all executions together; layers of one operator share its time by analytic cost */
    double share;          /* of the operators' summed mean time, as of an operator */
    bool time_attributed;
    bool traced;            /* the two below are set: the last run */
    int64_t trace_start_ns; /* when it began the last time, from the run's entry */
    int64_t trace_ns;       /* all executions together */
    bool stopped;           /* where the run was that was called off */
} prony_nested_row;

typedef struct prony_totals {
    prony_cost cost; /* fact_count 0 */
    uint32_t layers, folded_layers, operators;
    bool counted; /* a counting preset was chosen: `count` is the sum over the layers */
    uint64_t count;
} prony_totals;

/* A weight tensor, or a buffer such as the running statistics of a BatchNormalization. */
typedef struct prony_parameter_row {
    const char *name; /* "": what stands inside of a subgraph or of an attribute */
    uint32_t layer;   /* the first that uses it */
    prony_dtype dtype;
    prony_shape shape;
    uint64_t elements, bytes; /* bytes: 0 where the type is not known */
    uint64_t bits;            /* as above, exact for types narrower than a byte */
    bool trainable;           /* false: a buffer */
    double share;             /* of all rows' elements, 0..1 */
} prony_parameter_row;

/* A module: an inner vertex of the tree that node names such as /layer1/layer1.0/conv1/Conv spell. Sums include what lies
 * below. */
typedef struct prony_module_row {
    const char *path; /* "layer1/layer1.0"; the root is "" and shown as __root__ */
    const char *type; /* last part without trailing digits or index; a guess from the name */
    uint64_t macs, flops, parameters;
    int64_t time_ns; /* mean per run; -1: not measured */
    double share;
    uint32_t parent; /* PRONY_NO_INDEX for the root */
    uint32_t depth;
    uint32_t layers; /* in it and below */
    uint64_t count;  /* by the counting preset; 0 without one */
    uint32_t nested_layers; /* in subgraphs of those layers: what they cost and take is in the layers' figures. A module below that of
                               the layer around it, and named by such nodes alone, has 0 `layers` and the figures of these nodes */
} prony_module_row;

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

/* What the process holds when its runs are done; the parts add up to resident_bytes. Anonymous memory that was never touched is
 * not resident: then `other_bytes` is 0 and the parts are what was asked for. */
typedef struct prony_memory_held {
    uint64_t resident_bytes;
    uint64_t file_bytes;    /* pages of the model file and of other mapped files */
    uint64_t packed_bytes;  /* packed and folded weights, constants made at bind time */
    uint64_t arena_bytes;   /* planned and dynamic region */
    uint64_t input_bytes;   /* copies of the inputs */
    uint64_t library_bytes; /* pages of the program and of shared libraries */
    uint64_t other_bytes;   /* graphs, plans, the profiler's samples, the program's own heap, stacks */
} prony_memory_held;

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
    bool held_known;
    prony_memory_held held;
    const prony_memory_point *timeline;
    size_t timeline_count;
    const prony_memory_event *events;
    size_t event_count;
} prony_memory_report;

typedef struct prony_report prony_report;

/* Static report: parameters, shapes, counts; nothing runs, weights are not read. `options` gives free dimensions
 * and says what becomes of the others (NULL: they take 1). Operators that cannot run are listed in the report and make the affected shapes unknown. */
PRONY_API PRONY_MUST_USE prony_status prony_inspect(prony_report **out, prony_model *model,
                                                    const prony_session_options *options, prony_error *error);

typedef struct prony_profile_options {
    size_t struct_size;
    int64_t warmup_runs; /* -1: detected */
    int64_t runs;        /* 0: until the median is known to 1 %, or max_seconds is up */
    double max_seconds;  /* 0: 5 s, or as long as `runs` takes; of warm-up, measuring the cost and runs together: a run that
                            has begun is finished */
    void (*progress)(void *user, int64_t runs_done, double seconds, double relative_error); /* may be NULL; the error of the
                                               median, NaN while nothing is known of it */
    void *progress_user;
    bool keep_samples; /* each operator's time in each run, for prony_report_layer_samples */
    /* Called before and after every run, warm-up included; either may be NULL. They bind inputs and read outputs of the
     * session, and are timed as phases of their own: the latency stays that of the run. A failure ends the profile. */
    prony_status (*preprocess)(void *user, prony_session *session, prony_error *error);
    prony_status (*postprocess)(void *user, prony_session *session, prony_error *error);
    void *phase_user;
    bool trace_threads; /* what each thread does of each operator: means (prony_parallel), and the last run's for
                           PRONY_FORMAT_TRACE; in up to 50 more runs after those that count, in a tenth of the time */
    bool measure_cost;  /* what profiling costs: pairs of runs with and without it before those that count, for a fifth of the
                           time, or a fifth of `runs` (11 pairs at least, but not more than `runs`); one session only */
    bool count_hardware; /* processor cycles, instructions and cache misses per operator, where the kernel gives them: two
                            system calls more per thread and operator, which the report states */
} prony_profile_options;
#define PRONY_PROFILE_OPTIONS_INIT {sizeof(prony_profile_options), -1, 0, 0, 0, 0, false, 0, 0, 0, false, false, false}

/* Runs the session repeatedly on its bound inputs and reports. PRONY_CANCELLED may come with a report, of the runs that were
 * finished by then; the caller releases it as any. */
PRONY_API PRONY_MUST_USE prony_status prony_session_profile(prony_report **out, prony_session *session,
                                                            const prony_profile_options *options, prony_error *error);
/* Several sessions side by side: each warms up, then they take turns of a few runs, in an order drawn anew for each round,
 * until all medians are known or `count` times max_seconds is up. The first run of a turn is not counted: the others have
 * driven its data out of the caches. All get the same number of runs. reports[i] is that of sessions[i]; on failure all are
 * NULL, but for PRONY_CANCELLED: reports of the runs that were finished by then come with it if every session has any, and say
 * so in their stop reason. Sessions may share a model, but none may stand there twice. */
PRONY_API PRONY_MUST_USE prony_status prony_sessions_profile(prony_report **reports, prony_session *const *sessions,
                                                             size_t count, const prony_profile_options *options,
                                                             prony_error *error);
PRONY_API void prony_report_release(prony_report *report);
/* Adds the runs of `count` other processes of the same model and configuration, each in a report of its own (as
 * prony_report_load_memory reads it), to those of `into`. Processes of one model differ by more than the runs within each show;
 * with 4 and more of them, intervals and prony_compare draw processes. Sums of processor use and the load are those of all,
 * layers and operators stay those of `into`, best the process with the middle median. PRONY_INVALID_ARGUMENT where they differ in
 * model, threads, batch or precision, and where one was joined before; `into` is then as it was. */
PRONY_API PRONY_MUST_USE prony_status prony_report_join(prony_report *into, const prony_report *const *others, size_t count,
                                                        prony_error *error);
/* Runs of each process, in the order of the samples; NULL and 0: all are of one. */
PRONY_API const uint64_t *prony_report_process_runs(const prony_report *report, size_t *count);
/* Labels the report: that many threads of another process kept processors busy meanwhile. */
PRONY_API void prony_report_set_background(prony_report *report, int threads);
/* Preprocessing, run and postprocessing together, where prony_profile_options gave such callbacks; else NULL. */
PRONY_API const prony_time_stats *prony_report_end_to_end(const prony_report *report);

/* ---- watching a service ------------------------------------------------------------------------------------------- */

typedef struct prony_sample_row {
    uint32_t index;
    const char *name, *op, *kernel;
    int64_t time_ns; /* in the sampled run */
} prony_sample_row;

/* One run in N, stamped. Borrowed: valid during the callback. */
typedef struct prony_sample {
    uint64_t run;             /* its number since the monitor was set, from 1 */
    int64_t latency_ns;       /* of this run */
    prony_time_stats latency; /* of the runs since the sample before, at most the last 1024 */
    const prony_sample_row *operators;
    size_t operator_count;
    uint64_t arena_bytes;    /* planned for the session's buffers */
    uint64_t resident_bytes; /* of the process; 0: not known */
    double overhead;         /* what watching has cost so far over the time of all runs; callbacks are not part of it */
} prony_sample;

typedef enum prony_alert_kind { PRONY_ALERT_LATENCY, PRONY_ALERT_MEMORY } prony_alert_kind;
typedef struct prony_alert {
    prony_alert_kind kind;
    uint64_t run;
    uint64_t value, threshold; /* ns, or bytes */
} prony_alert;

typedef struct prony_monitor_options {
    size_t struct_size;
    uint64_t every; /* one run in so many is stamped; at least 1 */
    void (*sample)(void *user, const prony_sample *sample); /* may be NULL */
    int64_t latency_above_ns;    /* asked of every run; 0: no alert */
    uint64_t memory_above_bytes; /* of the process, asked of sampled runs; 0: no alert */
    void (*alert)(void *user, const prony_alert *alert);    /* may be NULL */
    void *user;
} prony_monitor_options;
#define PRONY_MONITOR_OPTIONS_INIT {sizeof(prony_monitor_options), 1000, 0, 0, 0, 0, 0}

/* From now on prony_session_run takes two clock readings, and one run in `every` also stamps its operators, whatever
 * `no_profile` says; other runs are not stamped. Callbacks are called by the running thread and may not use the session but
 * for its outputs. NULL ends it. Not for use together with prony_session_profile (PRONY_INVALID_ARGUMENT). */
PRONY_API PRONY_MUST_USE prony_status prony_session_monitor(prony_session *session, const prony_monitor_options *options,
                                                            prony_error *error);

/* ---- labelled data ------------------------------------------------------------------------------------------------ */

typedef struct prony_dataset prony_dataset;

typedef struct prony_dataset_options {
    size_t struct_size;
    const char *classes; /* file with a class name per line, the first one's for class 0; NULL: none */
    const prony_image_options *image; /* copied; NULL: the defaults, and arrays are no images */
} prony_dataset_options;
#define PRONY_DATASET_OPTIONS_INIT {sizeof(prony_dataset_options), 0, 0}

/* Inputs and labels for `model`, from one of:
 *  - FILE.npz, or a folder with labels.npy and other .npy files: arrays whose first dimension counts samples. Labels are the
 *    array labels, label, y, targets, target, y_test or arr_1; an input's array has its name; the only input's may also be
 *    x, images, image, inputs, input, data, x_test or arr_0, or be the only other array. float64 is taken for float32, int32
 *    and int64 for one another; with `image`, uint8 arrays are images ([N, H, W], [N, H, W, C] or [N, C, H, W]).
 *  - a folder with labels.csv or labels.txt beside image or .npy files, or such a list itself (its files are found from where
 *    it stands): lines of file and label. Lines of a label alone belong to the folder's files in the order of their names.
 *  - a folder of folders, one per class, of image or .npy files (one sample each): names that are all whole numbers are the
 *    classes; others are looked up in `classes`, or counted in the order of their bytes.
 * Labels are class numbers or names from `classes` (a whole line, or its first word). Images are decoded when they are used. */
PRONY_API PRONY_MUST_USE prony_status prony_dataset_open(prony_dataset **out, const char *path, const prony_model *model,
                                                         const prony_dataset_options *options, prony_error *error);
/* Of arrays in memory, which are copied: values[i] is that of the input names[i]; the first dimensions count samples. */
PRONY_API PRONY_MUST_USE prony_status prony_dataset_create(prony_dataset **out, const prony_model *model,
                                                           const char *const *names, const prony_value *const *values,
                                                           size_t count, const prony_value *labels,
                                                           const prony_dataset_options *options, prony_error *error);
PRONY_API void prony_dataset_release(prony_dataset *dataset);
PRONY_API int64_t prony_dataset_count(const prony_dataset *dataset);

typedef struct prony_evaluate_options {
    size_t struct_size;
    int64_t batch;         /* 0: what the model fixes, else the session's, else 1. The last batch is filled up with its last
                              sample, which counts once. */
    int64_t warmup_runs;   /* of the first batch, before anything counts */
    int64_t measured_runs; /* batches that the latencies are of, the first ones; 0: 1000 */
    size_t output;         /* that holds the classes' scores */
    void (*progress)(void *user, int64_t samples_done, int64_t samples); /* may be NULL */
    void *progress_user;
    /* A metric of the user's own: `score` sees every batch, outputs (those whose first dimension is the batch cut to
     * `samples`) and labels as the data have them; `value` says at the end what came of it. NULL: top-1 and top-5. */
    const char *metric;
    prony_status (*score)(void *user, const prony_value *const *outputs, size_t output_count, const prony_value *labels,
                          int64_t samples, prony_error *error);
    prony_status (*value)(void *user, double *value, prony_error *error);
    void *user;
} prony_evaluate_options;
#define PRONY_EVALUATE_OPTIONS_INIT {sizeof(prony_evaluate_options), 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}

/* PRONY_CANCELLED may come with a report, of the samples that were scored by then. Runs every sample and reports: evaluation, latency of the batches, preprocessing (decoding, resizing, batching) and
 * postprocessing as phases around them. Without a metric of the user's, "top1_accuracy" and, from 6 classes on,
 * "top5_accuracy": parts of the samples whose label is the best, or one of the five best, of the output's scores; of equal
 * scores the class of the lower number goes first. An output of one whole number per sample is the class itself. The session
 * is left with the last batch bound. */
PRONY_API PRONY_MUST_USE prony_status prony_evaluate(prony_report **out, prony_session *session,
                                                     const prony_dataset *data, const prony_evaluate_options *options,
                                                     prony_error *error);

typedef struct prony_class_row {
    int64_t index;
    double score;       /* as the model gives it */
    double probability; /* the score where the scores are probabilities already, else softmax's */
} prony_class_row;
/* The `capacity` best classes of sample `sample` of a value of scores [N, classes] or [classes] (trailing dimensions of 1 are
 * passed over), best first; *count is how many there are. */
PRONY_API PRONY_MUST_USE prony_status prony_top_classes(prony_class_row *rows, size_t capacity, size_t *count,
                                                        const prony_value *scores, int64_t sample, prony_error *error);

typedef struct prony_label_row {
    const char *name;
} prony_label_row;
/* A class name per line. Released by prony_rows_release. */
PRONY_API PRONY_MUST_USE prony_status prony_labels_load(prony_label_row **rows, size_t *count, const char *path,
                                                        prony_error *error);

/* ---- what this machine can do --------------------------------------------------------------------------------------- */

/* Peaks are the best of several trials of a loop that does nothing else, by all threads together. */
typedef struct prony_peak_compute {
    const char *precision; /* "fp32", "fp64" */
    int threads;
    double flops_per_second; /* vector multiply-add of the widest instructions in use; a MAC is 2 */
    int trials;
    int64_t trial_ns; /* what the best trial took */
    bool doubtful;    /* measured several times, and still too far below what one thread's rate makes likely */
} prony_peak_compute;

typedef struct prony_peak_bandwidth {
    const char *level;  /* "L1", "L2", "L3", "DRAM" */
    const char *access; /* "read", "write", "copy" */
    int threads;
    double bytes_per_second; /* bytes read plus bytes written by the program */
    uint64_t thread_bytes;   /* that each thread went over */
    int trials;
    int64_t trial_ns;
    bool doubtful;
} prony_peak_bandwidth;

/* What one kind of work makes of a second: FLOPs of matrix products, results of what follows, bytes that are moved; by the
 * loops that operators use, on data in the first two levels of the cache. */
typedef struct prony_work_rate {
    const char *work; /* "product", "simple", "divide", "sqrt", "exp", "log", "erf", "tanh", "sin", "pow", "move" */
    int threads;
    double per_second;
    int trials;
    int64_t trial_ns;
} prony_work_rate;

typedef struct prony_machine_info {
    const char *cpu_model, *isa, *prony_version; /* what the peaks are kept under */
    int cores;             /* largest number of threads measured: cores usable, within the quota */
    int64_t measured_at;   /* seconds since 1970 */
    double seconds;        /* that measuring took */
    double load_avg_1min;  /* when it began; -1: not known */
    int usable_cores;      /* now, in this process */
} prony_machine_info;

typedef struct prony_machine prony_machine;

typedef struct prony_machine_options {
    size_t struct_size;
    int threads;    /* up to how many; 0: as many as `-x auto` */
    double seconds; /* about how long; 0: 2 s */
} prony_machine_options;
#define PRONY_MACHINE_OPTIONS_INIT {sizeof(prony_machine_options), 0, 0}

/* Measures; nothing is kept. */
PRONY_API PRONY_MUST_USE prony_status prony_machine_measure(prony_machine **out, const prony_machine_options *options,
                                                            prony_error *error);
/* What is kept for this processor, instruction set and version of Prony; *out is NULL if nothing is. A damaged file is an
 * error that names it. */
PRONY_API PRONY_MUST_USE prony_status prony_machine_load(prony_machine **out, prony_error *error);
/* Keeps it in $XDG_CACHE_HOME/prony or ~/.cache/prony, for reports to come. */
PRONY_API PRONY_MUST_USE prony_status prony_machine_save(const prony_machine *machine, prony_error *error);
/* The file that load and save use. */
PRONY_API PRONY_MUST_USE prony_status prony_machine_path(char *path, size_t size, prony_error *error);
PRONY_API void prony_machine_release(prony_machine *machine);
PRONY_API const prony_machine_info *prony_machine_about(const prony_machine *machine);
PRONY_API const prony_peak_compute *prony_machine_compute(const prony_machine *machine, size_t *count);
PRONY_API const prony_peak_bandwidth *prony_machine_bandwidth(const prony_machine *machine, size_t *count);
/* Of one thread and of the most. None where the file was kept by a version that did not measure them. */
PRONY_API const prony_work_rate *prony_machine_work(const prony_machine *machine, size_t *count);

/* Reads a "prony.report/1" JSON report back. A report of another version, damaged JSON, a value of the wrong type and an
 * integer above 2^53 are errors that name the file and the key. What is not known here is skipped. */
PRONY_API PRONY_MUST_USE prony_status prony_report_load(prony_report **out, const char *path, prony_error *error);
/* As above from `size` bytes; `name` appears in messages. */
PRONY_API PRONY_MUST_USE prony_status prony_report_load_memory(prony_report **out, const char *name, const char *data,
                                                               size_t size, prony_error *error);

/* ---- counting presets: the figure another tool would give, beside the native ones ---- */

typedef struct prony_count_rule {
    const char *operators; /* operator types, separated by blanks */
    const char *formula;
} prony_count_rule;

typedef struct prony_count_preset {
    const char *name;   /* "fvcore" */
    const char *source; /* the tool's own file */
    const char *pin;    /* commit or release that the numbers are those of */
    const char *note;   /* how a MAC counts, what it leaves out */
    const prony_count_rule *rules;
    size_t rule_count;
} prony_count_preset;

PRONY_API size_t prony_count_preset_count(void);
PRONY_API const prony_count_preset *prony_count_preset_at(size_t index);
/* Fills `count` of layers, modules and totals, and what the preset leaves out; of a live report as of one read back. NULL
 * takes the counts away. An unknown name is PRONY_INVALID_ARGUMENT and names those there are. */
PRONY_API PRONY_MUST_USE prony_status prony_report_set_count(prony_report *report, const char *preset,
                                                             prony_error *error);
/* Operator types that the preset leaves out although they compute, those that take longest first; and the share of the
 * operators' time spent in them (negative: not measured). */
PRONY_API const char *const *prony_report_uncounted(const prony_report *report, size_t *count, double *time_share);

PRONY_API const prony_totals *prony_report_totals(const prony_report *report);
PRONY_API const prony_layer_row *prony_report_layers(const prony_report *report, size_t *count);
PRONY_API const prony_operator_row *prony_report_operators(const prony_report *report, size_t *count);
/* What runs in subgraphs: `level` is PRONY_LEVEL_LAYER (nodes of the model) or PRONY_LEVEL_OPERATOR (executed kernels; none in a report that
 * nothing ran for). NULL, and 0 rows: there is none. Owned by the report. */
PRONY_API const prony_nested_row *prony_report_nested(const prony_report *report, unsigned level, size_t *count);
/* The module tree, parents before children; the root is first. */
PRONY_API const prony_module_row *prony_report_modules(const prony_report *report, size_t *count);
/* Weights and buffers in the order of the layers that first use them. */
PRONY_API const prony_parameter_row *prony_report_parameters(const prony_report *report, size_t *count);
PRONY_API const prony_memory_report *prony_report_memory(const prony_report *report);

/* A processor that the measured runs could use; all processes on it count. */
typedef struct prony_core_row {
    int core;
    double mean;       /* busy, 0..1, over the measured runs */
    const double *use; /* in each interval */
} prony_core_row;
/* Use of each processor over time. *times_ns (may be NULL) gets the ends of the *points intervals, from the first run's start.
 * NULL: not measured, or too short a measurement for the kernel's clock. */
PRONY_API const prony_core_row *prony_report_cores(const prony_report *report, size_t *cores, const int64_t **times_ns,
                                                   size_t *points);
/* A free dimension of the inputs that nobody fixed, and what it became. */
typedef struct prony_assumed_dim {
    const char *name;   /* as prony_dim takes it */
    int64_t value;
    const char *reason; /* "batch", "metadata imgsz", "declared shapes", "nothing reads it"; "": simply 1 */
} prony_assumed_dim;
PRONY_API const prony_assumed_dim *prony_report_assumed_dims(const prony_report *report, size_t *count);
/* Why there are no hardware counters although they were asked for; "" if there are. NULL: not asked for. */
PRONY_API const char *prony_report_counters_missing(const prony_report *report);
/* NULL if the report measured nothing. */
PRONY_API const prony_time_stats *prony_report_latency(const prony_report *report);
/* Operators that no kernel exists for, as "domain::Op-opset (n nodes)"; borrowed. */
PRONY_API const char *const *prony_report_unsupported(const prony_report *report, size_t *count);
/* Share of a run's wall time that lies inside operators, 0..1; negative if not measured. */
PRONY_API double prony_report_time_coverage(const prony_report *report);

/* Stands in the report's `evaluation`, for labelled data that the caller evaluated, in place of what stood there. `metric`
 * is copied. */
PRONY_API PRONY_MUST_USE prony_status prony_report_set_evaluation(prony_report *report, const char *metric,
                                                                  double value, int64_t samples, prony_error *error);
/* A further figure of the same samples. */
PRONY_API PRONY_MUST_USE prony_status prony_report_add_evaluation(prony_report *report, const char *metric,
                                                                  double value, prony_error *error);

typedef struct prony_evaluation_row {
    const char *metric; /* "top1_accuracy" */
    double value;
    int64_t samples;
} prony_evaluation_row;
/* What evaluations gave; the first one is the metric `evaluation`. NULL: there was none. */
PRONY_API const prony_evaluation_row *prony_report_evaluations(const prony_report *report, size_t *count);

typedef enum prony_format {
    PRONY_FORMAT_TEXT,
    PRONY_FORMAT_JSON,
    PRONY_FORMAT_CSV,    /* one level: the single bit of options->levels; 0: layers */
    PRONY_FORMAT_LATEX,  /* tables for booktabs, to be included in a document */
    PRONY_FORMAT_TRACE,  /* Chrome trace events of the last run, for Perfetto */
    PRONY_FORMAT_FOLDED, /* module;...;layer and nanoseconds, for flame graphs */
    PRONY_FORMAT_DOT,    /* the graph, coloured by time (by FLOPs where nothing was measured), for Graphviz */
    PRONY_FORMAT_SVG,    /* the chart that options->chart names */
    PRONY_FORMAT_HTML    /* one file that needs no network */
} prony_format;

enum {
    PRONY_LEVEL_MODEL = 1,
    PRONY_LEVEL_LAYER = 2,
    PRONY_LEVEL_OPERATOR = 4,
    PRONY_LEVEL_MODULE = 8,
    PRONY_LEVEL_NESTED = 16 /* what runs in subgraphs, in a table of its own */
};

typedef struct prony_write_options {
    size_t struct_size;
    bool color;         /* text: ANSI colours */
    int width;          /* text: columns; 0: 80 */
    unsigned levels;    /* text: PRONY_LEVEL_* bits; 0: model and layers, with `all` operators too */
    int64_t top;        /* text: rows per table; 0: the 20 that take longest, with `all` every one */
    const char *sort;   /* text: "index" (default with `all` and no `top`), "time" (default otherwise; where nothing was
                           measured "flops"), "macs", "madds", "special", "int_ops", "parameters", "bytes", "memory" (of the
                           outputs), "count", "rate" (FLOP/s), "intensity", "name" */
    const char *filter; /* text: KEY=GLOB with KEY name, op, module or kernel; NULL: none */
    bool memory;        /* JSON: timeline and events as well; text: the memory table */
    const char *chart;  /* SVG: a name from prony_chart_names */
    int64_t module_depth; /* text and CSV: levels of the module tree below the root; 0: all */
    bool all;             /* text: everything that is known, not what a first look needs */
} prony_write_options;
#define PRONY_WRITE_OPTIONS_INIT {sizeof(prony_write_options), false, 0, 0, 0, 0, 0, false, 0, 0, false}

/* Charts that PRONY_FORMAT_SVG draws, ending with NULL. */
PRONY_API const char *const *prony_chart_names(void);
/* Whether this build holds the chart library for PRONY_FORMAT_HTML; without it the page has tables and says so. */
PRONY_API bool prony_html_has_charts(void);

/* Receives pieces of output in order; a return other than 0 stops with PRONY_IO_ERROR. */
typedef int (*prony_write_fn)(void *user, const char *data, size_t size);
PRONY_API PRONY_MUST_USE prony_status prony_report_write(const prony_report *report, prony_format format,
                                                         const prony_write_options *options, prony_write_fn write,
                                                         void *user, prony_error *error);
/* To a temporary name, then renamed, so that a failure leaves an old file intact. */
PRONY_API PRONY_MUST_USE prony_status prony_report_save(const prony_report *report, prony_format format,
                                                        const prony_write_options *options, const char *path,
                                                        prony_error *error);

/* As JSON, "prony.machine/1". */
PRONY_API PRONY_MUST_USE prony_status prony_machine_write(const prony_machine *machine, prony_write_fn write, void *user,
                                                          prony_error *error);

/* ---- analysis of a report, live or read back ---------------------------------------------------------------------- */

/* Rows that a function hands over are one block, strings included unless it says that they are borrowed. NULL is fine. */
PRONY_API void prony_rows_release(void *rows);

/* Sums by operator type, of the operators where they were measured, else of the layers; largest share first. */
typedef struct prony_type_row {
    const char *op; /* borrowed from the report */
    uint64_t count, macs, flops, parameters;
    int64_t time_ns;
    double share; /* of time; of FLOPs where nothing was measured */
    double cumulative;
} prony_type_row;
PRONY_API PRONY_MUST_USE prony_status prony_report_types(prony_type_row **rows, size_t *count, const prony_report *report,
                                                         prony_error *error);

/* What each layer or operator has of a quantity: `level` is PRONY_LEVEL_LAYER or PRONY_LEVEL_OPERATOR, `key` one of the sort
 * keys that are numbers and sum up ("time", "macs", "madds", "flops", "special", "int_ops", "parameters", "bytes", "memory",
 * "count"), `filter` KEY=GLOB or NULL, `top` 0 for all. Largest first. */
typedef struct prony_impact_row {
    uint32_t index;    /* of the layer or operator */
    double value;
    double share;      /* of the whole model's, 0..1 */
    double cumulative; /* of the rows up to this one */
} prony_impact_row;
PRONY_API PRONY_MUST_USE prony_status prony_report_impact(prony_impact_row **rows, size_t *count,
                                                          const prony_report *report, unsigned level, const char *key,
                                                          const char *filter, size_t top, prony_error *error);

/* The chain of operators that nothing can shorten but faster operators: each waits for the one before. `operators` are
 * indices in order of execution; *time_ns is their summed mean time. PRONY_UNSUPPORTED if the report has no times or does
 * not know what reads what. */
PRONY_API PRONY_MUST_USE prony_status prony_report_critical_path(uint32_t **operators, size_t *count, int64_t *time_ns,
                                                                 const prony_report *report, prony_error *error);

/* What keeps an operator from being faster, by the roofline of this machine. */
typedef enum prony_bound {
    PRONY_BOUND_UNKNOWN,  /* not measured, `prony machine` has not been run, or products of integers */
    PRONY_BOUND_COMPUTE,  /* the arithmetic takes longer than the traffic */
    PRONY_BOUND_MEMORY,   /* the other way round */
    PRONY_BOUND_OVERHEAD  /* neither explains a tenth of the time */
} prony_bound;
/* *share_of_roof (may be NULL): the time that the roof allows over the measured one; negative where unknown. */
PRONY_API prony_bound prony_report_bound(const prony_report *report, size_t operator_index, double *share_of_roof);
PRONY_API const char *prony_bound_name(prony_bound bound); /* "unknown", "compute", "memory", "overhead" */

typedef struct prony_histogram_bin {
    int64_t from_ns, to_ns; /* [from, to); the last one includes its end */
    uint64_t count;
} prony_histogram_bin;
/* Equal bins over the latencies; `bins` 0: as many as Freedman and Diaconis advise, at most 100. */
PRONY_API PRONY_MUST_USE prony_status prony_report_histogram(prony_histogram_bin **rows, size_t *count,
                                                             const prony_report *report, size_t bins, prony_error *error);

typedef struct prony_outlier {
    uint64_t run; /* from 0 */
    int64_t latency_ns;
    bool severe;       /* beyond 3 interquartile ranges, else beyond 1.5 (Tukey's fences) */
    double modified_z; /* 0.6745 (x - median) / median absolute deviation; above 3.5 in size is an outlier by itself */
} prony_outlier;
/* Runs outside of Tukey's inner fences or with a modified z-score above 3.5, in order of time. They stay in all figures. */
PRONY_API PRONY_MUST_USE prony_status prony_report_outliers(prony_outlier **rows, size_t *count,
                                                            const prony_report *report, prony_error *error);

/* What others took of the machine while the runs were measured. Shares; negative: not known. */
typedef enum prony_load { PRONY_LOAD_UNKNOWN, PRONY_LOAD_QUIET, PRONY_LOAD_BUSY } prony_load;
typedef struct prony_disturbance {
    double others_share; /* of the time of all usable processors: other processes, and what the hypervisor took */
    double steal_share;  /* the latter alone */
    double waited_share; /* threads ready to run that did not, over the wall time */
    int64_t involuntary_switches;
    prony_load verdict;
    char text[160]; /* one sentence about a busy machine, otherwise "" */
} prony_disturbance;
/* false: nothing was measured, or the report is of a version that did not look. */
PRONY_API bool prony_report_disturbance(prony_disturbance *out, const prony_report *report);

typedef struct prony_steady_state {
    bool known;   /* there were 10 runs or more */
    bool steady;  /* no significant trend (Mann-Kendall, 5 %) of more than 1 % of the median */
    bool unsure;  /* nor do they show that there is none: the level moved by more than 2 % by chance alone, it may be */
    double drift; /* (median of the last third - median of the first) / median */
    double p;     /* two-sided, of the trend */
} prony_steady_state;
PRONY_API PRONY_MUST_USE prony_status prony_report_steady_state(prony_steady_state *out, const prony_report *report,
                                                                prony_error *error);

/* A layer's time in each measured run, in order, if the profile kept samples: writes at most `capacity` of them and returns
 * how many there are; 0: none were kept, or no operator executed the layer. */
PRONY_API size_t prony_report_layer_samples(const prony_report *report, size_t layer, int64_t *samples_ns,
                                            size_t capacity);

/* ---- metrics ---------------------------------------------------------------------------------------------------- */

/* How a value becomes text: the unit follows the prefix. */
typedef enum prony_scale {
    PRONY_SCALE_NONE,    /* 17.5 FLOP/byte */
    PRONY_SCALE_SI,      /* 4.09 GMACs */
    PRONY_SCALE_BINARY,  /* bytes: 97.5 MiB */
    PRONY_SCALE_TIME,    /* nanoseconds: 1.23 ms */
    PRONY_SCALE_PERCENT  /* a fraction: 12.3 % */
} prony_scale;

typedef enum prony_direction { PRONY_SMALLER_IS_BETTER = -1, PRONY_NO_DIRECTION = 0, PRONY_LARGER_IS_BETTER = 1 } prony_direction;

typedef struct prony_metric {
    const char *key;  /* a to z, 0 to 9 and _ */
    const char *name;
    const char *description;
    const char *unit; /* "MACs"; "" for bytes, times and fractions, which have theirs by scale */
    prony_scale scale;
    prony_direction direction;
} prony_metric;

typedef struct prony_metric_value {
    const prony_metric *metric; /* borrowed from the registry */
    bool known;                 /* false: the report has not what it needs */
    double value;
    char text[64];              /* "4.09 GMACs"; "-" if not known */
} prony_metric_value;

/* Sets values[i] for the i-th metric it was registered with; NaN: not known. Both arrive as NaN. */
typedef prony_status (*prony_metric_fn)(double *values, const prony_report *report, void *user, prony_error *error);

/* The metrics there are: the built-in ones, and what the user adds. Not to be changed while another thread reads it. */
typedef struct prony_metrics prony_metrics;
PRONY_API PRONY_MUST_USE prony_status prony_metrics_create(prony_metrics **out, prony_error *error);
PRONY_API void prony_metrics_release(prony_metrics *metrics);
/* One function that yields `count` metrics; descriptions are copied. A key of a built-in metric overrides it, in its place;
 * a second definition of a key by the user is PRONY_INVALID_ARGUMENT, and nothing is added. */
PRONY_API PRONY_MUST_USE prony_status prony_metrics_add(prony_metrics *metrics, const prony_metric *definitions,
                                                        size_t count, prony_metric_fn compute, void *user,
                                                        prony_error *error);
PRONY_API size_t prony_metrics_count(const prony_metrics *metrics);
PRONY_API const prony_metric *prony_metrics_at(const prony_metrics *metrics, size_t index);
PRONY_API const prony_metric *prony_metrics_find(const prony_metrics *metrics, const char *key); /* NULL: none */
PRONY_API PRONY_MUST_USE prony_status prony_metrics_compute(const prony_metrics *metrics, const prony_report *report,
                                                            const char *key, prony_metric_value *out, prony_error *error);
/* `values` has prony_metrics_count entries; each function is called once. */
PRONY_API PRONY_MUST_USE prony_status prony_metrics_compute_all(const prony_metrics *metrics, const prony_report *report,
                                                                prony_metric_value *values, prony_error *error);
/* PRONY_FORMAT_TEXT or PRONY_FORMAT_JSON ("prony.metrics/1"), of the metrics that `keys` names, comma-separated (NULL: all).
 * Text: a line per known metric with its key; `detailed`: all of them, with direction and description. Colour and width
 * count. */
PRONY_API PRONY_MUST_USE prony_status prony_metrics_write(const prony_metrics *metrics, const prony_report *report,
                                                          const char *keys, bool detailed, prony_format format,
                                                          const prony_write_options *options, prony_write_fn write,
                                                          void *user, prony_error *error);
/* As text of all, 100 columns wide. */
PRONY_API PRONY_MUST_USE prony_status prony_metrics_print(const prony_metrics *metrics, const prony_report *report,
                                                          bool detailed, prony_write_fn write, void *user,
                                                          prony_error *error);
PRONY_API void prony_metric_format(const prony_metric *metric, double value, char *text, size_t size);
/* "100ms", "2 GiB", "1000samples/s", "95 %". A value without the metric's unit is PRONY_INVALID_ARGUMENT; prefixes may stand
 * before any unit. */
PRONY_API PRONY_MUST_USE prony_status prony_metric_parse(const prony_metric *metric, const char *text, double *out,
                                                         prony_error *error);

/* ---- judgement: comparing, checking, advising -------------------------------------------------------------------- */

typedef enum prony_verdict {
    PRONY_VERDICT_NONE,   /* nothing to judge by: measured once, known on one side alone, or neither way is better */
    PRONY_VERDICT_SAME,   /* "~": within the noise threshold, or not significant */
    PRONY_VERDICT_BETTER, /* the second one */
    PRONY_VERDICT_WORSE,
    PRONY_VERDICT_UNSURE /* better or worse, but one of the two had less of its machine than the other */
} prony_verdict;
PRONY_API const char *prony_verdict_name(prony_verdict verdict); /* "none", "same", "better", "worse", "cannot tell" */

/* What a verdict rests on. */
typedef enum prony_evidence {
    PRONY_EVIDENCE_NONE,     /* a single measurement: shown, not judged */
    PRONY_EVIDENCE_EXACT,    /* follows from model and configuration: any difference beyond the noise threshold counts */
    PRONY_EVIDENCE_RUNS,     /* Mann-Whitney's p below 0.05 and the bootstrap interval beyond the noise threshold */
    PRONY_EVIDENCE_INTERVAL, /* the bootstrap interval alone: quantiles */
    PRONY_EVIDENCE_MEANS     /* Welch's p, adjusted by Holm for the number of rows, and the interval of the ratio of means */
} prony_evidence;
PRONY_API const char *prony_evidence_name(prony_evidence evidence); /* "single", "exact", "runs", "interval", "means" */

typedef struct prony_compare_options {
    size_t struct_size;
    double noise; /* part of the first value (of fractions: absolute) below which a difference is none; 0: 0.01 */
    const prony_metrics *metrics; /* NULL: the built-in ones; else it must outlive the comparison. A metric that the user
                                     defined is judged as exact. */
    const char *first_name, *second_name; /* as shown; NULL: the models' names */
    const char *keys; /* only these metrics, comma-separated; NULL: all */
    bool ignore_load; /* judge times although the reports differ in what others took of the machine (prony_disturbance) */
} prony_compare_options;
#define PRONY_COMPARE_OPTIONS_INIT {sizeof(prony_compare_options), 0, 0, 0, 0, 0, false}

/* A metric that both reports know. NaN: does not apply. */
typedef struct prony_compare_metric {
    prony_metric_value first, second;
    double difference;         /* second - first */
    double ratio;              /* second / first; NaN where first is 0 */
    double ratio_ci95[2];
    double p;                  /* two-sided */
    prony_evidence evidence;
    prony_verdict verdict;
} prony_compare_metric;

/* Mean time of a layer that both have, or of all operators of a type. */
typedef struct prony_compare_part {
    const char *name; /* of the layer; the type's for types */
    const char *op;
    double first_ns, second_ns, difference_ns, ratio, ratio_ci95[2], p;
    uint64_t first_flops, second_flops;
    prony_verdict verdict;
    uint64_t first_executions, second_executions; /* of what runs in subgraphs, in one run; 0 otherwise */
} prony_compare_part;

/* Two reports side by side; the first one is the baseline. Holds copies of all it shows but metric definitions. */
typedef struct prony_comparison prony_comparison;
PRONY_API PRONY_MUST_USE prony_status prony_compare(prony_comparison **out, const prony_report *first,
                                                    const prony_report *second, const prony_compare_options *options,
                                                    prony_error *error);
PRONY_API void prony_comparison_release(prony_comparison *comparison);
/* In the order of the registry. */
PRONY_API const prony_compare_metric *prony_comparison_metrics(const prony_comparison *comparison, size_t *count);
/* Measured in both and matched by name, in the first one's order. */
PRONY_API const prony_compare_part *prony_comparison_layers(const prony_comparison *comparison, size_t *count);
PRONY_API const prony_compare_part *prony_comparison_types(const prony_comparison *comparison, size_t *count);
/* Layers in subgraphs, named by their whole path ("decode > body > Add_3"), likewise; their times are part of those of the layers around
 * them. */
PRONY_API const prony_compare_part *prony_comparison_nested(const prony_comparison *comparison, size_t *count);
/* What differs in model, configuration and machine, and what weakens the verdict; each a sentence. */
PRONY_API const char *const *prony_comparison_notes(const prony_comparison *comparison, size_t *count);
/* Metrics whose verdict is PRONY_VERDICT_WORSE. */
PRONY_API size_t prony_comparison_regressions(const prony_comparison *comparison);
/* PRONY_FORMAT_TEXT or PRONY_FORMAT_JSON ("prony.comparison/1"); colour, width and top (rows of layers) count. */
PRONY_API PRONY_MUST_USE prony_status prony_comparison_write(const prony_comparison *comparison, prony_format format,
                                                             const prony_write_options *options, prony_write_fn write,
                                                             void *user, prony_error *error);

/* A limit on a metric: at most where smaller is better, at least where larger is. */
typedef struct prony_threshold {
    const prony_metric *metric; /* of the registry that it was read with */
    double limit;
    char text[64]; /* "100 ms" */
} prony_threshold;
/* "latency:100ms", "throughput:1000samples/s", "memory:64MiB": a metric's key or one of the short names p50, p90, p95, p99,
 * p999, mean, min, max, time, fps, rss, params, size, accuracy, top1, top5. An unknown metric, one without a direction, and a value that
 * lacks the metric's unit are PRONY_INVALID_ARGUMENT. */
PRONY_API PRONY_MUST_USE prony_status prony_threshold_parse(prony_threshold *out, const prony_metrics *metrics,
                                                            const char *text, prony_error *error);

typedef enum prony_outcome {
    PRONY_OUTCOME_MET,
    PRONY_OUTCOME_MISSED,
    PRONY_OUTCOME_UNKNOWN, /* the report does not know the metric */
    PRONY_OUTCOME_WITHHELD, /* a time or rate beyond the limit, of which others that had the machine may be the cause: the
                              report's disturbance is busy, and the fastest run meets the limit */
    PRONY_OUTCOME_OPEN     /* beyond the limit, but the interval reaches to it: nothing tells it from a value that meets it */
} prony_outcome;

typedef struct prony_check_row {
    prony_threshold threshold;
    prony_metric_value value;
    prony_outcome outcome;
    double margin; /* part of the limit that is left, negative if it is missed; NaN where it is unknown or the limit is 0 */
    double interval[2]; /* of latencies and rates whose runs the report holds; NaN: the value is taken as it is. 99 %, as the limit
                       may come from a measurement like this one */
} prony_check_row;
/* rows[i] is of thresholds[i], which come from `metrics`, and so do not outlive it. */
PRONY_API PRONY_MUST_USE prony_status prony_check(prony_check_row *rows, const prony_report *report,
                                                  const prony_metrics *metrics, const prony_threshold *thresholds,
                                                  size_t count, prony_error *error);
/* PRONY_FORMAT_TEXT or PRONY_FORMAT_JSON ("prony.check/1"); colour and width count. `target` names what was checked. */
PRONY_API PRONY_MUST_USE prony_status prony_check_write(const prony_check_row *rows, size_t count, const char *target,
                                                        prony_format format, const prony_write_options *options,
                                                        prony_write_fn write, void *user, prony_error *error);

typedef struct prony_advice {
    const char *topic;  /* "batch", "threads", "fusion", "precision", "overhead", "memory" */
    bool applies;       /* false: was looked at, and `reason` says why nothing is recommended; the rest is not set */
    const char *action; /* what to change */
    const char *reason; /* the figures that it rests on */
    const char *metric; /* key of what gains */
    bool measured;      /* in a variant that was given; false: computed from the report, and the most there is to gain */
    double gain;        /* part of the metric's value: 0.25 is a quarter less latency, or a quarter more throughput */
    char gain_text[96];
} prony_advice;
/* What to change, each with its measured or computed reason. `variants` are reports of the same model with another batch,
 * another number of threads, or rewrites on, measured beside `report` (prony_sessions_profile); without them nothing is said
 * of batch and threads. At least one row per topic; those that apply come first. */
PRONY_API PRONY_MUST_USE prony_status prony_recommend(prony_advice **rows, size_t *count, const prony_report *report,
                                                      const prony_report *const *variants, size_t variant_count,
                                                      prony_error *error);
/* PRONY_FORMAT_TEXT or PRONY_FORMAT_JSON ("prony.recommendation/1"); colour and width count. */
PRONY_API PRONY_MUST_USE prony_status prony_advice_write(const prony_advice *rows, size_t count, const char *target,
                                                         prony_format format, const prony_write_options *options,
                                                         prony_write_fn write, void *user, prony_error *error);

/* ---- thread-scaling studies ---------------------------------------------------------------------------------------- */

/* An experiment that can be sent to somebody else, "prony.study/1": a plan of configurations in a random order from a stated
 * seed, each measured in several fresh processes, and what follows from it. The caller starts the processes (`prony scale` does);
 * each of them measures, and writes what it found by prony_study_sample_write. Not thread-safe. */
typedef struct prony_study prony_study;

typedef struct prony_study_options {
    size_t struct_size;
    const int64_t *intra_op, *inter_op; /* thread counts; 0 among intra_op: `-x auto`. None: 1, 2, 4 … usable; 1 */
    size_t intra_op_count, inter_op_count;
    const int64_t *batches; /* none: the model's own, or what `session` says */
    size_t batch_count;
    const char *const *precisions; /* none: fp32 */
    size_t precision_count;
    bool weak;             /* the batch grows with the threads: the batch times intra-op times inter-op */
    uint64_t seed;         /* of the order, and of generated inputs */
    int processes;         /* of each configuration; 0: 10 */
    int64_t runs;          /* measured ones of a process; 0: as many as `seconds` take */
    double seconds;        /* of a process's measurement; 0: 1 */
    int64_t warmup_runs;   /* -1: detected */
    double budget_seconds; /* of the whole study: `seconds`, then `processes` follow from it; 0: none */
    const char *const *arguments; /* what else the processes are told, for the record and for repeating */
    size_t argument_count;
    const prony_session_options *session; /* for the manifest; NULL: defaults */
} prony_study_options;
#define PRONY_STUDY_OPTIONS_INIT {sizeof(prony_study_options), 0, 0, 0, 0, 0, 0, 0, 0, false, 0, 0, 0, 0, -1, 0, 0, 0, 0}

/* Plans; nothing runs. A serial baseline (1 thread, 1 worker) is in every plan, and once more to see what this machine makes of
 * the same thing twice. */
PRONY_API PRONY_MUST_USE prony_status prony_study_create(prony_study **out, prony_model *model,
                                                         const prony_study_options *options, prony_error *error);
/* Damaged files, other versions and studies of another model (where `model` is given) are errors that say so. */
PRONY_API PRONY_MUST_USE prony_status prony_study_load(prony_study **out, const char *path, const prony_model *model,
                                                       prony_error *error);
/* The plan of `earlier`, to be measured here on the same model. */
PRONY_API PRONY_MUST_USE prony_status prony_study_repeat(prony_study **out, const prony_study *earlier, prony_model *model,
                                                         prony_error *error);
PRONY_API void prony_study_release(prony_study *study);

/* The machine at a moment. */
typedef struct prony_machine_state {
    int64_t time_ns;           /* of the monotonic clock */
    double frequency_hz;       /* mean of the usable processors; 0: not readable */
    double temperature_c;      /* of the hottest zone; NaN: not readable */
    int64_t throttle_events;   /* so far; -1: not readable */
    uint64_t busy_ns, total_ns, steal_ns; /* of the usable processors so far, all processes; total_ns 0: not readable */
    uint64_t context_switches; /* of the whole system so far */
} prony_machine_state;
PRONY_API void prony_machine_state_read(prony_machine_state *out);

typedef struct prony_study_task {
    size_t block;         /* its number in the file */
    size_t configuration;
    int process;          /* of this configuration, from 0 */
    bool again;           /* a block of this configuration was disturbed */
    int intra_op_threads, inter_op_threads;
    int64_t batch;        /* 0: not given */
    const char *precision;
    int64_t runs, warmup_runs;
    double seconds;
} prony_study_task;

/* What to measure next; false: all is done. */
PRONY_API bool prony_study_next(const prony_study *study, prony_study_task *out);
/* What a process measured: `latency` of a session without stamps, `operators` (may be NULL) of one with trace_threads. */
PRONY_API PRONY_MUST_USE prony_status prony_study_sample_write(const prony_report *latency, const prony_report *operators,
                                                               prony_write_fn write, void *user, prony_error *error);

typedef struct prony_study_process {
    const char *sample; /* what prony_study_sample_write wrote */
    size_t sample_bytes;
    const char *failure; /* instead of a sample: what happened */
    bool refused;        /* it said itself that this configuration cannot run: it is not tried again */
    int64_t cpu_ns;      /* that the process took */
    prony_machine_state before, after;
} prony_study_process;
PRONY_API PRONY_MUST_USE prony_status prony_study_add(prony_study *study, const prony_study_task *task,
                                                      const prony_study_process *process, prony_error *error);

typedef struct prony_study_progress {
    size_t done, planned;  /* blocks */
    size_t failed, disturbed;
    double seconds_left;   /* by the blocks so far */
    double half_width;     /* of the widest interval at the end, relative, by the processes so far; NaN: not known yet */
} prony_study_progress;
PRONY_API void prony_study_progress_of(const prony_study *study, prony_study_progress *out);

/* Results, fits, operators and the verdict on the data, of what was measured so far. */
PRONY_API PRONY_MUST_USE prony_status prony_study_analyse(prony_study *study, prony_error *error);
/* Sets an analysed study beside an earlier one with the same plan; *different (may be NULL): configurations that are. */
PRONY_API PRONY_MUST_USE prony_status prony_study_compare(prony_study *study, const prony_study *earlier, size_t *different,
                                                          prony_error *error);

typedef struct prony_study_result {
    int intra_op_threads, inter_op_threads;
    int64_t batch;
    const char *precision;
    bool again;       /* the baseline's second time */
    bool beyond;      /* more threads than processors, or than the quota allows */
    size_t processes; /* that count */
    double median_ns, ci95_ns[2];
    double samples_per_second, speedup, speedup_ci95[2], efficiency, efficiency_ci95[2];
    double karp_flatt; /* NaN: one thread, or weak scaling */
} prony_study_result;
/* One per configuration, after prony_study_analyse. */
PRONY_API const prony_study_result *prony_study_results(const prony_study *study, size_t *count);
/* Arguments of the plan, and its options as they were given. */
PRONY_API const char *const *prony_study_arguments(const prony_study *study, size_t *count);
PRONY_API uint64_t prony_study_seed(const prony_study *study);

/* PRONY_FORMAT_TEXT, JSON, CSV (a row a sample), HTML or SVG (options->chart: "speedup", "efficiency", "operators" or
 * "timeline"). */
PRONY_API PRONY_MUST_USE prony_status prony_study_write(const prony_study *study, prony_format format,
                                                        const prony_write_options *options, prony_write_fn write,
                                                        void *user, prony_error *error);
/* To a temporary name, then renamed, so that a failure leaves an old file intact. */
PRONY_API PRONY_MUST_USE prony_status prony_study_save(const prony_study *study, prony_format format,
                                                       const prony_write_options *options, const char *path,
                                                       prony_error *error);
PRONY_API const char *const *prony_study_chart_names(void);

/* ---- one call per question --------------------------------------------------------------------------------------- */

/* All take a model and the options of a session, which give free dimensions, input shapes and threads (NULL: defaults).
 * Inputs are generated. Rows are released by prony_rows_release; the first one is the whole model, "__root__". */

typedef struct prony_figure {
    uint64_t value;
    char text[48]; /* "4.09 GMACs", "97.5 MiB", "12.3 ms" */
} prony_figure;

PRONY_API PRONY_MUST_USE prony_status prony_profile_macs(prony_figure *out, prony_model *model,
                                                         const prony_session_options *options, prony_error *error);
PRONY_API PRONY_MUST_USE prony_status prony_profile_madds(prony_figure *out, prony_model *model,
                                                          const prony_session_options *options, prony_error *error);
PRONY_API PRONY_MUST_USE prony_status prony_profile_flops(prony_figure *out, prony_model *model,
                                                          const prony_session_options *options, prony_error *error);
PRONY_API PRONY_MUST_USE prony_status prony_profile_params(prony_figure *out, prony_model *model,
                                                           const prony_session_options *options, prony_error *error);
/* Weights, packed weights and the planned arena, bytes; runs the model once. */
PRONY_API PRONY_MUST_USE prony_status prony_profile_memory(prony_figure *out, prony_model *model,
                                                           const prony_session_options *options, prony_error *error);
/* Median latency, ns. `runs` NULL: until it is known to 1 %. */
PRONY_API PRONY_MUST_USE prony_status prony_profile_runtime(prony_figure *out, prony_model *model,
                                                            const prony_session_options *options,
                                                            const prony_profile_options *runs, prony_error *error);
/* Every metric of the registry; it must outlive the values. NULL: the built-in ones. */
PRONY_API PRONY_MUST_USE prony_status prony_profile_metrics(prony_metric_value **values, size_t *count, prony_model *model,
                                                            const prony_session_options *options,
                                                            const prony_profile_options *runs,
                                                            const prony_metrics *metrics, prony_error *error);

typedef struct prony_params_row {
    uint32_t layer; /* PRONY_NO_INDEX: the whole model */
    const char *name, *op;
    const char *types; /* of its tensors, comma-separated */
    uint64_t trainable; /* weights, elements */
    uint64_t buffers;   /* not trainable: running statistics */
    uint64_t bits;      /* of both */
    double share;       /* of the model's elements, 0..1 */
} prony_params_row;
/* Layers that hold none are left out. */
PRONY_API PRONY_MUST_USE prony_status prony_count_params(prony_params_row **rows, size_t *count, prony_model *model,
                                                         const prony_session_options *options, prony_error *error);

typedef struct prony_io_row {
    uint32_t layer;
    const char *name, *op;
    bool output;
    uint32_t position;
    prony_dtype dtype;
    prony_shape shape;
    uint64_t elements, bits; /* 0 where the shape is not known */
} prony_io_row;
/* Inputs, weights among them, and outputs of every layer; no row for the whole model. */
PRONY_API PRONY_MUST_USE prony_status prony_trace_io_sizes(prony_io_row **rows, size_t *count, prony_model *model,
                                                           const prony_session_options *options, prony_error *error);

typedef struct prony_ops_row {
    uint32_t layer; /* PRONY_NO_INDEX: the whole model */
    const char *name, *op;
    uint64_t macs, madds, flops, special, int_ops;
    bool counted;   /* by the preset */
    uint64_t count;
    double share;   /* of the model's FLOPs and integer operations, 0..1 */
} prony_ops_row;
/* `preset` may be NULL. */
PRONY_API PRONY_MUST_USE prony_status prony_estimate_ops(prony_ops_row **rows, size_t *count, prony_model *model,
                                                         const prony_session_options *options, const char *preset,
                                                         prony_error *error);

typedef struct prony_timing_options {
    size_t struct_size;
    int64_t iterations; /* 0: 1000 */
    int64_t dropped;    /* first ones that are not counted; -1: 100, or a tenth of fewer than 1000 iterations */
    bool every_sample;  /* `samples_ns` of the rows is set */
} prony_timing_options;
#define PRONY_TIMING_OPTIONS_INIT {sizeof(prony_timing_options), 0, -1, false}

typedef struct prony_timing_row {
    uint32_t layer; /* PRONY_NO_INDEX: the whole model */
    const char *name, *op;
    bool attributed; /* its operator stands for several layers: the time is an estimate of its part */
    int64_t mean_ns, median_ns, min_ns, max_ns, std_ns;
    const int64_t *samples_ns; /* in order; NULL unless asked for, or the layer runs nothing */
    size_t sample_count;       /* iterations that counted */
} prony_timing_row;
PRONY_API PRONY_MUST_USE prony_status prony_estimate_inference_time(prony_timing_row **rows, size_t *count,
                                                                    prony_model *model,
                                                                    const prony_session_options *options,
                                                                    const prony_timing_options *timing,
                                                                    prony_error *error);
/* Of the whole model alone, without stamps inside. */
PRONY_API PRONY_MUST_USE prony_status prony_estimate_total_inference_time(prony_time_stats *out, prony_model *model,
                                                                          const prony_session_options *options,
                                                                          const prony_timing_options *timing,
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
