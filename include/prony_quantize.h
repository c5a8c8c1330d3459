/* Quantization: ranges of a float model's values from data, and the resulting 8-bit model. Conventions: prony.h. */
#ifndef PRONY_QUANTIZE_H
#define PRONY_QUANTIZE_H

#include "prony_data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- calibration ---- */

/* The choice of a range from the observed elements. Zero is always inside the range. */
typedef enum prony_calibration_method {
    PRONY_CALIBRATE_MINMAX,     /* all of them */
    PRONY_CALIBRATE_PERCENTILE, /* the requested share of elements by size, from histograms with 2048 bins */
    PRONY_CALIBRATE_ENTROPY     /* cut at the least Kullback-Leibler divergence between 128 levels and the elements */
} prony_calibration_method;

PRONY_API const char *prony_calibration_method_name(prony_calibration_method method); /* "minmax", "percentile",
                                                                                         "entropy" */
PRONY_API bool prony_calibration_method_find(prony_calibration_method *out, const char *name);

/* Ranges, scales and zero points by value, and the SHA-256 of their model. Immutable; may be shared by threads. */
typedef struct prony_calibration prony_calibration;

typedef struct prony_calibrate_options {
    size_t struct_size;
    prony_calibration_method method;
    double percentile; /* share of the elements that PRONY_CALIBRATE_PERCENTILE keeps, 0.5 to 1; 0: 0.9999 */
    const prony_session_options *session; /* free dimensions, batch, threads; NULL: defaults. Runs are in fp32 */
    void (*progress)(void *user, int64_t samples_done, int64_t samples); /* may be NULL; other methods than min-max run
                                                                            all samples twice */
    void *progress_user;
} prony_calibrate_options;
#define PRONY_CALIBRATE_OPTIONS_INIT PRONY_INIT(prony_calibrate_options)

/* Runs every sample through the model and keeps the ranges of the values that quantizing it would store: activations
 * are 0 to 255, of the value (q - zero point) scale. A model with nothing to quantize (no Conv, ConvTranspose, Gemm or
 * MatMul with constant weights of float32 in its main graph) is PRONY_UNSUPPORTED; data without samples, of shapes that
 * the model does not take, or that make a value which is not finite, are refused by name. The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_calibrate(prony_calibration **out, prony_model *model,
                                                      const prony_dataset *data, const prony_calibrate_options *options,
                                                      prony_error *error);
/* Frees the calibration. NULL is accepted. */
PRONY_API void prony_calibration_release(prony_calibration *calibration);
/* Samples and values that it was made of. */
PRONY_API int64_t prony_calibration_samples(const prony_calibration *calibration);
/* Number of values with a range. */
PRONY_API size_t prony_calibration_count(const prony_calibration *calibration);
/* Writes JSON, "prony.calibration/1", by way of a temporary name. */
PRONY_API PRONY_MUST_USE prony_status prony_calibration_save(const prony_calibration *calibration, const char *path,
                                                             prony_error *error);
/* Scales that are not positive float32 numbers, zero points outside 0 to 255 and empty ranges are
 * PRONY_INVALID_ARGUMENT or PRONY_INVALID_MODEL, naming file, key and value. prony_model_quantize checks that it
 * belongs to the model. */
PRONY_API PRONY_MUST_USE prony_status prony_calibration_load(prony_calibration **out, const char *path,
                                                             prony_error *error);

/* ---- quantized models ---- */

typedef struct prony_quantize_options {
    size_t struct_size;
    /* NULL: every run finds the ranges of activations, for matrix products only (Gemm and MatMul become
     * DynamicQuantizeMatMul of the domain com.microsoft); convolutions stay in float. */
    const prony_calibration *calibration;
    /* > 0: layers stay in float until the outputs on `data` differ from the float model's by at most this part of their
     * range. The difference of an output is its root mean square; the range is the largest minus the smallest value. */
    double keep_accuracy;
    const prony_dataset *data; /* the first samples of keep_accuracy's data, 32 at most */
    bool power_of_two;         /* scales are rounded up to powers of two: integers and floats then give the same bits */
    const prony_session_options *session; /* free dimensions and threads of those runs, and shapes; NULL: defaults */
    void (*progress)(void *user, int64_t models_tried, int64_t models); /* of keep_accuracy; may be NULL */
    void *progress_user;
} prony_quantize_options;
#define PRONY_QUANTIZE_OPTIONS_INIT PRONY_INIT(prony_quantize_options)

/* A layer of the float model that can be quantized. */
typedef struct prony_quantized_row {
    const char *name, *op; /* borrowed from the quantized model */
    bool quantized;
    /* Change of the outputs if only this layer is quantized, as a fraction of their range; NaN: not measured. Of
     * prony_model_quantize_weights: change of the layer's weights, root mean square over root mean square. */
    double error;
} prony_quantized_row;

/* The model with QuantizeLinear and DequantizeLinear pairs around its quantised operators (opset 13 or newer; weights
 * int8 with one symmetric scale per output channel, activations uint8, biases int32), as a model of its own in memory;
 * sessions of it take the precision "int8". A calibration of another model, one that lacks a value, a model of an older
 * opset than 13 and one that has nothing to quantize are refused. The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_model_quantize(prony_model **out, prony_model *model,
                                                           const prony_quantize_options *options, prony_error *error);
/* ---- weights alone ---- */

/* The mean square of each number that a product multiplies by its weights, from runs of data: the importance of
 * weights. Not thread-safe: one run at a time. */
typedef struct prony_importance prony_importance;

/* Nothing is run yet. A model without products that prony_model_quantize_weights quantises is PRONY_UNSUPPORTED. The
 * caller owns *out, which holds a reference to the model. */
PRONY_API PRONY_MUST_USE prony_status prony_importance_create(prony_importance **out, prony_model *model,
                                                              prony_error *error);
/* Frees the importance. NULL is accepted. Sessions of its model may outlive it. */
PRONY_API void prony_importance_release(prony_importance *importance);
/* A model with the inputs, outputs and values of the float model. Every run of a session of it adds to the importance:
 * bind data of your own, or let a generator read tokens. A run that fails because a number is not finite spoils the
 * importance. Borrowed; NULL: `importance` is NULL. */
PRONY_API prony_model *prony_importance_model(prony_importance *importance);
/* Runs every sample of a data set, which was opened for the float model. `options` (free dimensions, batch, threads)
 * may be NULL. Data without samples, and numbers that are not finite, are PRONY_INVALID_ARGUMENT. */
PRONY_API PRONY_MUST_USE prony_status prony_importance_add(prony_importance *importance, const prony_dataset *data,
                                                           const prony_session_options *options, prony_error *error);

typedef struct prony_weights_options {
    size_t struct_size;
    int bits;           /* 4 or 8; 0: 4 */
    int64_t block;      /* weights of an output channel that share a scale: a power of two from 16 to 256; 0: 32 */
    bool zero_points;   /* blocks have a zero point each; else codes are symmetric */
    bool search_scales; /* of each block the scale with the least squared error; else the largest weight decides */
    /* Not NULL: of each block the scale with the least sum of squared error times importance. It belongs to this model,
     * and something was run. */
    const prony_importance *importance;
} prony_weights_options;
#define PRONY_WEIGHTS_OPTIONS_INIT PRONY_INIT(prony_weights_options)

/* The model with MatMulNBits of the domain com.microsoft for MatMul and Gemm with constant weights [K, N] of float32 or
 * float16, K at least 16, in subgraphs too, as a model of its own in memory. Activations stay as they are. Weights that
 * are not finite, and models without such a product, are PRONY_UNSUPPORTED. The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_model_quantize_weights(prony_model **out, prony_model *model,
                                                                   const prony_weights_options *options,
                                                                   prony_error *error);
/* Change of the weights of row `index` of prony_model_quantized_layers, each weighed by its importance: root mean
 * square over root mean square. This estimates the change of the layer's output. NaN: there was no importance, or no
 * such row. */
PRONY_API double prony_model_weighted_error(const prony_model *model, size_t index);
/* Why the layer of row `index` stays in float. Borrowed from the model; NULL: it is quantised, or there is no such
 * row. */
PRONY_API const char *prony_model_float_reason(const prony_model *model, size_t index);
/* The layers that were, or could have been, quantized, in order of execution: contractions. Borrowed; 0: the model was
 * not made by prony_model_quantize or prony_model_quantize_weights. */
PRONY_API size_t prony_model_quantized_layers(const prony_model *model, const prony_quantized_row **rows);
/* true: the main graph has quantised operators (QuantizeLinear, QLinearConv, MatMulInteger, …). Sessions of it take the
 * precision "int8" as it is. */
PRONY_API bool prony_model_is_quantized(const prony_model *model);
/* Writes a model that was made in memory (prony_model_extract, prony_model_quantize, …_weights) as an ONNX file: to
 * a temporary name, then renamed. `external`: weights of 1 KiB or more to "PATH.data" beside it, which is written
 * first. */
PRONY_API PRONY_MUST_USE prony_status prony_model_save(const prony_model *model, const char *path, bool external,
                                                       prony_error *error);
/* true: weights of the model are in separate files. */
PRONY_API bool prony_model_is_external(const prony_model *model);

#ifdef __cplusplus
}
#endif
#endif
