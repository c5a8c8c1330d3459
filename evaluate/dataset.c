/* prony_dataset_*: what kind of data a path leads to, arrays and labels taken over, types converted. A dataset owns
 * everything it holds; what the model is asked for, it is asked while the dataset is made. */
#include "evaluate/dataset.h"

#include "base/os/folder.h"
#include "base/option_struct.h"
#include "base/shape.h"
#include "loaders/tensors/tensor_file.h"

#include <string.h>
#include <strings.h>

void prony_dataset_release(prony_dataset *data)
{
    if (!data) return;
    for (size_t i = 0; i < data->array_count; i++) prn_value_free(data->arrays[i].value);
    prn_value_free(data->labels);
    prn_free(data->arrays);
    prn_bump_release(&data->pool);
    prn_free(data);
}

int64_t prony_dataset_count(const prony_dataset *data)
{
    return data ? data->count : 0;
}

/* ---- types ---- */

/* ---- arrays and labels ---- */

/* ---- opening ---- */

static prony_status dataset_create(prony_dataset **out, const prony_model *model, const prony_dataset_options *options,
                                   prony_error *error)
{
    prony_dataset_options own = PRONY_DATASET_OPTIONS_INIT;
    PRN_TRY(prn_options_read(&own, sizeof own, options, "dataset options", error));
    options = &own;
    prony_image_options image;
    PRN_TRY(prn_image_options_read(&image, options->image, error));
    prony_dataset *data = prn_calloc(1, sizeof *data);
    if (!data) return prn_no_memory(error);
    data->image = image;
    data->has_image = options->image != NULL;
    data->unlabelled = options->unlabelled;
    data->arrays = prn_calloc(prony_model_input_count(model) + 1, sizeof *data->arrays);
    prony_status status = data->arrays ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK && options->classes)
        status = prn_text_lines_read(&data->classes, &data->pool, options->classes, error);
    if (status == PRONY_OK)
        *out = data;
    else
        prony_dataset_release(data);
    return status;
}

static bool dataset_ends_with(const char *path, const char *ending)
{
    const char *dot = strrchr(path, '.');
    return dot && strcasecmp(dot, ending) == 0;
}

static prony_status has_file(const char *folder, const char *name, bool *has, prony_error *error)
{
    prn_bump pool = {0};
    prn_folder list;
    *has = false;
    prony_status status = prn_folder_read(&list, &pool, folder, error);
    for (size_t i = 0; status == PRONY_OK && i < list.count; i++)
        if (!list.entries[i].folder && strcmp(list.entries[i].name, name) == 0) *has = true;
    prn_bump_release(&pool);
    return status;
}

static prony_status read_any(prony_dataset *data, const char *path, const prony_model *model, prony_error *error)
{
    bool arrays = dataset_ends_with(path, ".npz"), folder = prn_is_folder(path);
    if (folder) PRN_TRY(has_file(path, "labels.npy", &arrays, error));
    if (arrays) return prn_dataset_read_arrays(data, path, model, error);
    if (prony_model_input_count(model) != 1)
        return prn_fail(
            error, PRONY_UNSUPPORTED,
            "the model has %zu inputs, but single-sample files serve one; use an .npz with an array per input",
            prony_model_input_count(model));
    if (folder) return prn_dataset_read_folder(data, path, error);
    if (dataset_ends_with(path, ".txt") || dataset_ends_with(path, ".csv"))
        return prn_dataset_read_list(data, path, error);
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "data must be a folder, an .npz, or a list in a .txt or .csv");
}

prony_status prony_dataset_open(prony_dataset **out, const char *path, const prony_model *model,
                                const prony_dataset_options *options, prony_error *error)
{
    prony_dataset *data = NULL;
    if (!out || !path || !model)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_dataset_open: an argument is NULL");
    PRN_TRY(dataset_create(&data, model, options, error));
    prony_status status = read_any(data, path, model, error);
    if (status == PRONY_OK) {
        *out = data;
        return PRONY_OK;
    }
    if (status != PRONY_OUT_OF_MEMORY && error && !strstr(error->message, path))
        prn_error_prefix(error, "'%.400s'", path);
    prony_dataset_release(data);
    return status;
}

static prony_status dataset_copy_of(prony_value **out, const prony_value *value, prony_error *error)
{
    prony_value *copy = prn_calloc(1, sizeof *copy);
    if (!copy) return prn_no_memory(error);
    prony_status status = prn_value_copy(copy, value, error);
    if (status == PRONY_OK)
        *out = copy;
    else
        prn_value_free(copy);
    return status;
}

static prony_status copy_all(prony_dataset *data, const prony_model *model, const char *const *names,
                             const prony_value *const *values, size_t count, const prony_value *labels,
                             prony_error *error)
{
    prony_value *copy = NULL;
    if (count > prony_model_input_count(model))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%zu arrays for %zu inputs", count,
                        prony_model_input_count(model));
    for (size_t i = 0; i < count; i++) {
        size_t input = 0;
        while (input < prony_model_input_count(model) && strcmp(prony_model_input(model, input)->name, names[i]) != 0)
            input++;
        if (input == prony_model_input_count(model))
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "the model has no input '%s'", names[i]);
        for (size_t k = 0; k < data->array_count; k++)
            if (data->arrays[k].input == input)
                return prn_fail(error, PRONY_INVALID_ARGUMENT, "input '%s' is given twice", names[i]);
        PRN_TRY(dataset_copy_of(&copy, values[i], error));
        PRN_TRY(prn_dataset_add_array(data, model, input, names[i], copy, error));
    }
    if (!labels && data->unlabelled) return PRONY_OK;
    if (!labels) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_dataset_create: an argument is NULL");
    PRN_TRY(dataset_copy_of(&copy, labels, error));
    return prn_dataset_set_labels(data, copy, error);
}

prony_status prony_dataset_create(prony_dataset **out, const prony_model *model, const char *const *names,
                                  const prony_value *const *values, size_t count, const prony_value *labels,
                                  const prony_dataset_options *options, prony_error *error)
{
    prony_dataset *data = NULL;
    if (!out || !model || !names || !values || !count)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_dataset_create: an argument is NULL");
    PRN_TRY(dataset_create(&data, model, options, error));
    prony_status status = copy_all(data, model, names, values, count, labels, error);
    if (status == PRONY_OK)
        *out = data;
    else
        prony_dataset_release(data);
    return status;
}
