/* prony_dataset_*: what kind of data a path leads to, arrays and labels taken over, types converted. A dataset owns
 * everything it holds; what the model is asked for, it is asked while the dataset is made. */
#include "profiler/evaluate/dataset.h"

#include "base/folder.h"
#include "base/option_struct.h"
#include "base/shape.h"
#include "loaders/tensors/tensor_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void prony_dataset_release(prony_dataset *data)
{
    if (!data) return;
    for (size_t i = 0; i < data->array_count; i++) prn_value_free(data->arrays[i].value);
    prn_value_free(data->labels);
    prn_free(data->arrays);
    prn_pool_release(&data->pool);
    prn_free(data);
}

int64_t prony_dataset_count(const prony_dataset *data)
{
    return data ? data->count : 0;
}

/* ---- types ---- */

static prony_status to_floats(prony_value *value, prony_error *error)
{
    int64_t count = prony_shape_numel(&value->shape);
    const double *from = value->data;
    float *to = prn_alloc_aligned(64, (size_t)count * sizeof *to);
    if (!to) return prn_no_memory(error);
    for (int64_t i = 0; i < count; i++) to[i] = (float)from[i];
    prn_free_aligned(value->data);
    value->data = to;
    value->dtype = PRONY_FLOAT32;
    return PRONY_OK;
}

/* Whole numbers of 4 bytes to 8, or back where they fit. */
static prony_status resize_integers(prony_value *value, bool wide, prony_error *error)
{
    int64_t count = prony_shape_numel(&value->shape);
    void *to = prn_alloc_aligned(64, prony_dtype_bytes(wide ? PRONY_INT64 : PRONY_INT32, count));
    if (!to) return prn_no_memory(error);
    for (int64_t i = 0; i < count; i++) {
        int64_t element = wide ? ((const int32_t *)value->data)[i] : ((const int64_t *)value->data)[i];
        if (wide) {
            ((int64_t *)to)[i] = element;
        } else if (element >= INT32_MIN && element <= INT32_MAX) {
            ((int32_t *)to)[i] = (int32_t)element;
        } else {
            prn_free_aligned(to);
            return prn_fail(error, PRONY_OUT_OF_RANGE, "%lld does not fit int32", (long long)element);
        }
    }
    prn_free_aligned(value->data);
    value->data = to;
    value->dtype = wide ? PRONY_INT64 : PRONY_INT32;
    return PRONY_OK;
}

prony_status prn_dataset_convert(prony_value *value, const prony_port *port, prony_error *error)
{
    if (value->dtype == port->dtype || port->dtype == PRONY_UNDEFINED) return PRONY_OK;
    if (value->dtype == PRONY_FLOAT64 && port->dtype == PRONY_FLOAT32) return to_floats(value, error);
    if (value->dtype == PRONY_INT32 && port->dtype == PRONY_INT64) return resize_integers(value, true, error);
    if (value->dtype == PRONY_INT64 && port->dtype == PRONY_INT32) return resize_integers(value, false, error);
    char text[PRN_SHAPE_TEXT_BYTES];
    return prn_fail(error, PRONY_SHAPE_MISMATCH, "%s, where input '%s' is %s%s", prn_value_text(value, text),
                    port->name, prony_dtype_name(port->dtype),
                    value->dtype == PRONY_UINT8 ? "; with image options, such as normalize=0..1, it is taken for images"
                                                : "");
}

/* ---- arrays and labels ---- */

static prony_status check_count(prony_dataset *data, const prony_value *value, const char *what, prony_error *error)
{
    int64_t count = value->shape.rank > 0 ? value->shape.dim[0] : 0;
    if (value->kind != PRONY_TENSOR || count <= 0)
        return prn_fail(error, PRONY_SHAPE_MISMATCH, "%s: no samples in it", what);
    if (data->count && data->count != count)
        return prn_fail(error, PRONY_SHAPE_MISMATCH, "%s: %lld samples, where others have %lld", what, (long long)count,
                        (long long)data->count);
    data->count = count;
    return PRONY_OK;
}

static prony_status accept_array(prony_dataset *data, const prony_port *port, prn_dataset_array *array,
                                 prony_error *error)
{
    prony_value *value = array->value;
    bool wanted = port->dtype != PRONY_UINT8 || port->shape.rank == 4;
    int rank = value->shape.rank;
    array->images = data->has_image && value->dtype == PRONY_UINT8 && wanted && (rank == 3 || rank == 4);
    return array->images ? PRONY_OK : prn_dataset_convert(value, port, error);
}

prony_status prn_dataset_add_array(prony_dataset *data, const prony_model *model, size_t input, const char *name,
                                   prony_value *value, prony_error *error)
{
    prn_dataset_array *array = &data->arrays[data->array_count++];
    char what[160];
    *array = (prn_dataset_array){.input = input, .value = value};
    snprintf(what, sizeof what, "array '%.120s'", name);
    PRN_TRY(check_count(data, value, what, error));
    prony_status status = accept_array(data, prony_model_input(model, input), array, error);
    if (status != PRONY_OK && status != PRONY_OUT_OF_MEMORY) prn_error_prefix(error, "%s", what);
    return status;
}

prony_status prn_dataset_set_labels(prony_dataset *data, prony_value *labels, prony_error *error)
{
    data->labels = labels;
    return check_count(data, labels, "labels", error);
}

/* ---- opening ---- */

static prony_status create(prony_dataset **out, const prony_model *model, const prony_dataset_options *options,
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

static bool ends_with(const char *path, const char *ending)
{
    const char *dot = strrchr(path, '.');
    return dot && strcasecmp(dot, ending) == 0;
}

static prony_status has_file(const char *folder, const char *name, bool *has, prony_error *error)
{
    prn_pool pool = {0};
    prn_folder list;
    *has = false;
    prony_status status = prn_folder_read(&list, &pool, folder, error);
    for (size_t i = 0; status == PRONY_OK && i < list.count; i++)
        if (!list.entries[i].folder && strcmp(list.entries[i].name, name) == 0) *has = true;
    prn_pool_release(&pool);
    return status;
}

static prony_status read_any(prony_dataset *data, const char *path, const prony_model *model, prony_error *error)
{
    bool arrays = ends_with(path, ".npz"), folder = prn_is_folder(path);
    if (folder) PRN_TRY(has_file(path, "labels.npy", &arrays, error));
    if (arrays) return prn_dataset_read_arrays(data, path, model, error);
    if (prony_model_input_count(model) != 1)
        return prn_fail(error, PRONY_UNSUPPORTED,
                        "the model has %zu inputs; files of one sample each serve one, "
                        "an .npz has an array for each",
                        prony_model_input_count(model));
    if (folder) return prn_dataset_read_folder(data, path, error);
    if (ends_with(path, ".txt") || ends_with(path, ".csv")) return prn_dataset_read_list(data, path, error);
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "labelled data are a folder, an .npz, or a list in a .txt or .csv");
}

prony_status prony_dataset_open(prony_dataset **out, const char *path, const prony_model *model,
                                const prony_dataset_options *options, prony_error *error)
{
    prony_dataset *data = NULL;
    if (!out || !path || !model)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_dataset_open: an argument is NULL");
    PRN_TRY(create(&data, model, options, error));
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

static prony_status copy_of(prony_value **out, const prony_value *value, prony_error *error)
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
        PRN_TRY(copy_of(&copy, values[i], error));
        PRN_TRY(prn_dataset_add_array(data, model, input, names[i], copy, error));
    }
    PRN_TRY(copy_of(&copy, labels, error));
    return prn_dataset_set_labels(data, copy, error);
}

prony_status prony_dataset_create(prony_dataset **out, const prony_model *model, const char *const *names,
                                  const prony_value *const *values, size_t count, const prony_value *labels,
                                  const prony_dataset_options *options, prony_error *error)
{
    prony_dataset *data = NULL;
    if (!out || !model || !names || !values || !count || !labels)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_dataset_create: an argument is NULL");
    PRN_TRY(create(&data, model, options, error));
    prony_status status = copy_all(data, model, names, values, count, labels, error);
    if (status == PRONY_OK)
        *out = data;
    else
        prony_dataset_release(data);
    return status;
}
