/* Data: images and labelled samples as inputs, evaluation. Conventions: prony.h. */
#ifndef PRONY_DATA_H
#define PRONY_DATA_H

#include "prony_report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- images ---- */

/* The resizing of an image before the centre crop. */
typedef enum prony_image_resize {
    PRONY_IMAGE_RESIZE_FIT, /* to the crop's size exactly, or the input's; if both are free: unchanged */
    PRONY_IMAGE_RESIZE_NONE,
    PRONY_IMAGE_RESIZE_SHORTER, /* shorter side to resize_height, with the aspect kept */
    PRONY_IMAGE_RESIZE_EXACT,   /* to resize_height x resize_width */
    PRONY_IMAGE_RESIZE_MARGIN   /* shorter side so that the crop is 7/8 of it: 256 for 224; a free crop is 224 x 224 */
} prony_image_resize;

/* The normalisation of a channel's value v, 0..255. */
typedef enum prony_image_normalize {
    PRONY_NORMALIZE_DEFAULT,  /* 0..1 for an input of floats, 0..255 for uint8 */
    PRONY_NORMALIZE_UNIT,     /* 0..1:     v / 255 */
    PRONY_NORMALIZE_SIGNED,   /* -1..1:    (v / 255 - 0.5) / 0.5 */
    PRONY_NORMALIZE_BYTES,    /* 0..255:   v */
    PRONY_NORMALIZE_IMAGENET, /* imagenet: (v / 255 - mean) / std, mean 0.485 0.456 0.406, std 0.229 0.224 0.225 */
    PRONY_NORMALIZE_CUSTOM    /* (v / 255 - mean) / std with the options' values */
} prony_image_normalize;

typedef enum prony_image_layout { PRONY_LAYOUT_AUTO, PRONY_LAYOUT_NCHW, PRONY_LAYOUT_NHWC } prony_image_layout;

typedef struct prony_image_options {
    size_t struct_size;
    prony_image_resize resize;
    int64_t resize_height, resize_width;
    bool bicubic;                    /* else bilinear; both as Pillow resizes: antialiased, in fixed point */
    int64_t crop_height, crop_width; /* of the centre; 0: the input's size, or no crop if that is free */
    prony_image_normalize normalize;
    float mean[3], std[3];     /* in RGB order, of values 0..1; one channel takes the first */
    bool bgr;                  /* channels in the order blue, green, red */
    prony_image_layout layout; /* AUTO: the axis on which the input has 1 or 3; the first if ambiguous */
    uint64_t max_pixels;       /* larger images are refused; 0: 2^27 */
} prony_image_options;
#define PRONY_IMAGE_OPTIONS_INIT PRONY_INIT(prony_image_options)

/* Reads "resize=256,crop=224,normalize=imagenet" and the like into *out. KEY=VALUE, comma-separated: resize=N (shorter
 * side), HxW, fit or none; crop=N, HxW or none; filter=bilinear or bicubic; normalize=0..1, -1..1, 0..255 or imagenet;
 * mean=R:G:B, std=R:G:B; channels=rgb or bgr; layout=nchw or nhwc. The word imagenet alone is what torchvision's
 * classifiers were trained with: shorter side 8/7 of the crop, crop to the input's size, normalize=imagenet. */
PRONY_API PRONY_MUST_USE prony_status prony_image_options_parse(prony_image_options *out, const char *text,
                                                                prony_error *error);
/* Formats that this build decodes, "PNG, JPEG"; "" if none. */
PRONY_API const char *prony_image_formats(void);
/* true: the name ends in .png, .jpg or .jpeg. */
PRONY_API bool prony_image_is_file(const char *path);
/* Decodes an image and makes it the tensor that an input wants: `port` says type (float32, float64, uint8), channels (1
 * or 3), layout and size; where its first dimension is fixed, the image stands there so many times, else once. Palettes
 * become colours, 16 bits their upper 8, transparency is dropped, CMYK becomes RGB; orientation tags are not followed.
 * A damaged file is PRONY_INVALID_ARGUMENT, one above max_pixels PRONY_LIMIT, a format that this build has no library
 * for PRONY_UNSUPPORTED. `options` NULL: the defaults. The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_image_load(prony_value **out, const char *path,
                                                       const prony_value_info *port, const prony_image_options *options,
                                                       prony_error *error);
/* As above from memory; `name` appears in messages. */
PRONY_API PRONY_MUST_USE prony_status prony_image_load_memory(prony_value **out, const char *name, const void *data,
                                                              size_t size, const prony_value_info *port,
                                                              const prony_image_options *options, prony_error *error);

/* ---- labelled data ---- */

typedef struct prony_dataset prony_dataset;

typedef struct prony_dataset_options {
    size_t struct_size;
    const char *classes;              /* file with a class name per line, the first one's for class 0; NULL: none */
    const prony_image_options *image; /* copied; NULL: the defaults, and arrays are not images */
    bool unlabelled; /* for calibration: labels are left out or not looked at; a folder's files and lists of files alone
                        do too */
} prony_dataset_options;
#define PRONY_DATASET_OPTIONS_INIT PRONY_INIT(prony_dataset_options)

/* Inputs and labels for `model`, from one of:
 *
 *  - FILE.npz, or a folder with labels.npy and other .npy files: arrays whose first dimension counts samples. Labels
 *    are the array labels, label, y, targets, target, y_test or arr_1. An input's array has its name; the only input's
 *    may also be x, images, image, inputs, input, data, x_test or arr_0, or be the only other array. float64 is taken
 *    for float32, int32 and int64 for one another; with `image`, uint8 arrays are images ([N, H, W], [N, H, W, C] or
 *    [N, C, H, W]).
 *  - a folder with labels.csv or labels.txt beside image or .npy files, or such a list itself, whose files are found
 *    from its own folder: lines of file and label. Lines of a label alone belong to the folder's files in the order of
 *    their names.
 *  - a folder of folders, one per class, of image or .npy files (one sample each): names that are all whole numbers are
 *    the classes; others are looked up in `classes`, or counted in the order of their bytes.
 *
 * Labels are class numbers or names from `classes` (a whole line, or its first word). Images are decoded when they are
 * used. The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_dataset_open(prony_dataset **out, const char *path,
                                                         const prony_model *model, const prony_dataset_options *options,
                                                         prony_error *error);
/* Makes a data set of arrays in memory, which are copied: values[i] belongs to the input names[i]; the first
 * dimensions count samples. `labels` may be NULL if the options say so. */
PRONY_API PRONY_MUST_USE prony_status prony_dataset_create(prony_dataset **out, const prony_model *model,
                                                           const char *const *names, const prony_value *const *values,
                                                           size_t count, const prony_value *labels,
                                                           const prony_dataset_options *options, prony_error *error);
/* Frees the data set. NULL is accepted. Not while a call uses it. */
PRONY_API void prony_dataset_release(prony_dataset *dataset);
/* Samples in the data set. */
PRONY_API int64_t prony_dataset_count(const prony_dataset *dataset);

typedef struct prony_evaluate_options {
    size_t struct_size;
    /* 0: the model's fixed batch, else the session's, else 1. The last sample fills up the last batch, and counts
     * once. */
    int64_t batch;
    int64_t warmup_runs;   /* runs of the first batch before the measurement */
    int64_t measured_runs; /* number of batches, from the first on, whose latencies count; 0: 1000 */
    size_t output;         /* that holds the classes' scores */
    void (*progress)(void *user, int64_t samples_done, int64_t samples); /* between batches, a few times per second; may
                                                                            be NULL */
    void *progress_user;
    /* A metric of the user's own: `score` sees every batch, outputs (those whose first dimension is the batch cut to
     * `samples`) and labels as the data have them; `value` says at the end what came of it. NULL: top-1 and top-5. */
    const char *metric;
    prony_status (*score)(void *user, const prony_value *const *outputs, size_t output_count, const prony_value *labels,
                          int64_t samples, prony_error *error);
    prony_status (*value)(void *user, double *value, prony_error *error);
    void *user;
    /* Evaluates whole batches of the data alone, those of part 0 to parts - 1; parts 0: everything. The batches are
     * those of an evaluation of everything, so counts of all parts add up to its. */
    int64_t part, parts;
} prony_evaluate_options;
#define PRONY_EVALUATE_OPTIONS_INIT PRONY_INIT_WITH(prony_evaluate_options, warmup_runs, 1)

/* Runs every sample and reports: evaluation, latency of the batches, preprocessing (decoding, resizing, batching) and
 * postprocessing as phases around them. Without a metric of the user's, "top1_accuracy" and, from 6 classes on,
 * "top5_accuracy": parts of the samples whose label is the best, or one of the five best, of the output's scores; of
 * equal scores the class of the lower number goes first. An output of one whole number per sample is the class itself.
 * The session is left with the last batch bound. PRONY_CANCELLED may come with a report of the samples that were scored
 * by then. */
PRONY_API PRONY_MUST_USE prony_status prony_evaluate(prony_report **out, prony_session *session,
                                                     const prony_dataset *data, const prony_evaluate_options *options,
                                                     prony_error *error);

/* An evaluation of runs that the caller makes, such as those of a model that is cut over processes: for each batch
 * bind, run and score; in the end finish. The options are those of prony_evaluate, without warmup_runs and
 * measured_runs. */
typedef struct prony_evaluation prony_evaluation;
/* `session` gets the inputs bound; it need not run. `session` and `data` outlive the evaluation. */
PRONY_API PRONY_MUST_USE prony_status prony_evaluation_create(prony_evaluation **out, prony_session *session,
                                                              const prony_dataset *data,
                                                              const prony_evaluate_options *options,
                                                              prony_error *error);
/* Batches that are still to be scored. */
PRONY_API int64_t prony_evaluation_batches(const prony_evaluation *evaluation);
/* Binds the next batch to the session's inputs. */
PRONY_API PRONY_MUST_USE prony_status prony_evaluation_bind(prony_evaluation *evaluation, prony_error *error);
/* Scores the outputs of the model for this batch, in the model's order; the next batch follows. */
PRONY_API PRONY_MUST_USE prony_status prony_evaluation_score(prony_evaluation *evaluation,
                                                             const prony_value *const *outputs, size_t count,
                                                             prony_error *error);
/* Writes the figures of the samples scored so far into the report. */
PRONY_API PRONY_MUST_USE prony_status prony_evaluation_finish(const prony_evaluation *evaluation, prony_report *report,
                                                              prony_error *error);
/* Frees the evaluation. NULL is accepted. */
PRONY_API void prony_evaluation_release(prony_evaluation *evaluation);

typedef struct prony_class_row {
    int64_t index;
    double score;       /* as the model gives it */
    double probability; /* the score if the scores are probabilities already, otherwise softmax of it */
} prony_class_row;
/* The `capacity` best classes of sample `sample` of a value of scores [N, classes] or [classes] (trailing dimensions of
 * 1 are passed over), best first; *count is how many there are. */
PRONY_API PRONY_MUST_USE prony_status prony_top_classes(prony_class_row *rows, size_t capacity, size_t *count,
                                                        const prony_value *scores, int64_t sample, prony_error *error);

typedef struct prony_label_row {
    const char *name;
} prony_label_row;
/* A class name per line. Released by prony_rows_release. */
PRONY_API PRONY_MUST_USE prony_status prony_labels_load(prony_label_row **rows, size_t *count, const char *path,
                                                        prony_error *error);

#ifdef __cplusplus
}
#endif
#endif
