/* Labelled data as it lies: arrays, or files of one sample each. */
#ifndef PRN_EVALUATE_DATASET_H
#define PRN_EVALUATE_DATASET_H

#include "engine/bind/engine_model.h"
#include "loaders/label_file.h"
#include "evaluate/image_input.h"

/* All samples of one input. */
typedef struct prn_dataset_array {
    size_t input;       /* of the model */
    prony_value *value; /* of the input's type, or uint8 where it holds images */
    bool images;
} prn_dataset_array;

struct prony_dataset {
    prn_bump pool; /* names and paths */
    int64_t count;
    prony_value *labels;
    prn_dataset_array *arrays; /* NULL: files, which serve the model's only input */
    size_t array_count;
    const char **files;
    prn_text_lines classes;
    prony_image_options image;
    bool unlabelled; /* labels may be missing, and are not looked at */
    bool has_image;  /* options were given: uint8 arrays are images */
};

/* Takes `value` over: converts it to the input's type or refuses it. */
PRN_MUST_USE prony_status prn_dataset_add_array(prony_dataset *data, const prony_model *model, size_t input,
                                                const char *array, prony_value *value, prony_error *error);
/* Takes `labels` over. */
PRN_MUST_USE prony_status prn_dataset_set_labels(prony_dataset *data, prony_value *labels, prony_error *error);
/* From an .npz or a folder of .npy files (evaluate/dataset_arrays.c). */
PRN_MUST_USE prony_status prn_dataset_read_arrays(prony_dataset *data, const char *path, const prony_model *model,
                                                  prony_error *error);
/* From class folders or a list (evaluate/dataset_files.c). */
PRN_MUST_USE prony_status prn_dataset_read_folder(prony_dataset *data, const char *path, prony_error *error);
PRN_MUST_USE prony_status prn_dataset_read_list(prony_dataset *data, const char *path, prony_error *error);
/* Converts a value that a file gave to the type that the port wants, where that is one of the conversions that are
 * made. */
PRN_MUST_USE prony_status prn_dataset_convert(prony_value *value, const prony_value_info *port, prony_error *error);

/* One batch after another of a dataset as the inputs of a session (evaluate/dataset_feed.c). */
typedef struct prn_feed prn_feed;
/* `batch` 0: what the model fixes, else the session's, else 1; *batch is what it came to. */
PRN_MUST_USE prony_status prn_feed_create(prn_feed **out, const prony_dataset *data, prony_session *session,
                                          int64_t *batch, prony_error *error);
/* Binds samples first, first + 1, …; behind the last one stands the last one again. */
PRN_MUST_USE prony_status prn_feed_bind(prn_feed *feed, prony_session *session, int64_t first, prony_error *error);
void prn_feed_release(prn_feed *feed);

#endif
