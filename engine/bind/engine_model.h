/* A loaded model: the file, the operators that may serve it, and the data that its plans share. Immutable but for the
 * shared cache (which locks itself); reference-counted by sessions. */
#ifndef PRN_ENGINE_BIND_ENGINE_MODEL_H
#define PRN_ENGINE_BIND_ENGINE_MODEL_H

#include "base/memory/budget.h"
#include "engine/bind/registry.h"
#include "engine/bind/weight_cache.h"
#include "loaders/onnx/model.h"
#include "prony_device.h"
#include "ops/op.h"
#include "prony_quantize.h"

#include <stdatomic.h>

/* Rates that turn analytic costs into times. */
typedef struct prn_step_rates {
    double flops_per_ns, bytes_per_ns; /* of one thread */
} prn_step_rates;

/* The result of prony_model_quantize for the layers of a float model. */
typedef struct prn_model_quantized {
    prn_bump pool;
    const prony_quantized_row *rows; /* NULL: the model was not made by it */
    const char *const *reasons;      /* [count] why a layer stays in float; NULL: it does not, or nothing is said */
    const double *weighted_errors;   /* [count] NaN: not known; NULL: of none */
    size_t count;
    const char **kept; /* names of the layers that stay in float, sorted */
    size_t kept_count;
} prn_model_quantized;

/* Names of a decoder's tensors, as a file beside the model gives them. NULL: it gives none. */
enum { PRN_DECODER_CACHES = 3, PRN_DECODER_INPUTS = 6 };
typedef struct prn_decoder_names {
    const char *file;                       /* NULL: no file, and no names */
    const char *inputs[PRN_DECODER_INPUTS]; /* ids, mask, positions, lengths, total length, past length */
    const char *logits;
    const char *past[PRN_DECODER_CACHES], *present[PRN_DECODER_CACHES]; /* '*' stands for the layer */
} prn_decoder_names;

struct prony_model {
    atomic_uint references;
    prn_model_file *file;
    void *owned;              /* bytes of the file, if the model owns them; else NULL */
    prony_registry *registry; /* may be NULL */
    prn_weight_cache *shared;
    const prn_function **functions; /* of the file, by domain, name and overload */
    prn_budget *budget;             /* of the model and its sessions */
    int64_t load_ns;
    /* Sets the measured rates of one thread of this machine; leaves rates that were not measured. NULL: no source.
     * Fails for want of memory only. */
    prony_status (*find_rates)(prn_step_rates *rates, prony_error *error);
    /* Sets the kept peaks of a device. *known false: none are kept. NULL: no source. Fails for want of memory only. */
    prony_status (*find_device_peaks)(prony_device_peaks *peaks, bool *known, const prony_device_info *device,
                                      prony_error *error);
    /* Reads names of a decoder's tensors from a file beside the model file `model`. NULL: no source. */
    prony_status (*read_names)(prn_decoder_names *out, const char *model, prn_bump *pool, prony_error *error);
    const struct prn_tune_files *tune_files; /* where sessions keep measured kernel times (engine/plan/tune.h); NULL:
                                                nowhere */
    const prn_services *services;            /* engine services for its operators */
    prn_model_quantized quantized;
    /* The model is a stage of another one (engine/bind/stage.h), to which everything else here belongs but `file`;
     * NULL: a model of its own. */
    struct prn_stage *stage;
    void (*release_stage)(struct prn_stage *stage);
    /* The model observes the runs of another one (quantize/importance.h), to which everything else here belongs but
     * `file` and `registry`; NULL: it does not. */
    void *observer;
    void (*release_observer)(void *observer);
};

/* The source of a model: a file, or bytes that the caller owns. */
typedef struct prn_model_source {
    const char *name;
    const void *data; /* NULL: the file `name` */
    size_t size;
    const char *data_folder; /* of external data; NULL: the file's own */
    bool copy;               /* the file is read, not mapped */
} prn_model_source;

/* Everything allocated from here on is charged to the model's budget. */
PRN_MUST_USE prony_status prn_model_load(prony_model **out, const prn_model_source *from,
                                         const prony_model_options *options, prony_error *error);
void prn_model_retain(prony_model *model);
/* Fills `functions` from the file. */
PRN_MUST_USE prony_status prn_model_index(prony_model *model, prony_error *error);

/* The model's own function that a node calls; NULL: it is an operator. An operator that the user registered goes before
 * a function, a function before an operator of the table. */
const prn_function *prn_model_function(const prony_model *model, const prn_model_node *node, int64_t opset);

/* Operators and imports that the graphs and called functions need and this build or the file lacks; pool-owned. */
typedef struct prn_model_gaps {
    const char *const *unsupported; /* unsupported operators, "domain::Op-opset (n nodes)" each, sorted */
    size_t unsupported_count;
    const char *const *assumed; /* imports that the file lacks and prn_model_opset assumes, "domain version" each */
    size_t assumed_count;
} prn_model_gaps;
PRN_MUST_USE prony_status prn_model_find_gaps(const prony_model *model, prn_bump *pool, prn_model_gaps *out,
                                              prony_error *error);

#endif
