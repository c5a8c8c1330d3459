/* Arrays of a data set: held against the model's inputs, and converted to what these take. */
#include "evaluate/dataset.h"

#include <stdio.h>
#include <string.h>

static prony_status dataset_values_to_floats(prony_value *value, prony_error *error)
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

prony_status prn_dataset_convert(prony_value *value, const prony_value_info *port, prony_error *error)
{
    if (value->dtype == port->dtype || port->dtype == PRONY_UNDEFINED) return PRONY_OK;
    if (value->dtype == PRONY_FLOAT64 && port->dtype == PRONY_FLOAT32) return dataset_values_to_floats(value, error);
    if (value->dtype == PRONY_INT32 && port->dtype == PRONY_INT64) return resize_integers(value, true, error);
    if (value->dtype == PRONY_INT64 && port->dtype == PRONY_INT32) return resize_integers(value, false, error);
    char text[PRN_SHAPE_TEXT_BYTES];
    return prn_fail(error, PRONY_SHAPE_MISMATCH, "%s, but input '%s' is %s%s", prn_value_text(value, text), port->name,
                    prony_dtype_name(port->dtype),
                    value->dtype == PRONY_UINT8 ? "; with image options, such as normalize=0..1, it is read as images"
                                                : "");
}

static prony_status dataset_values_check_count(prony_dataset *data, const prony_value *value, const char *what,
                                               prony_error *error)
{
    int64_t count = value->shape.rank > 0 ? value->shape.dim[0] : 0;
    if (value->kind != PRONY_TENSOR || count <= 0)
        return prn_fail(error, PRONY_SHAPE_MISMATCH, "%s: no samples in it", what);
    if (data->count && data->count != count)
        return prn_fail(error, PRONY_SHAPE_MISMATCH, "%s: %lld samples, but others have %lld", what, (long long)count,
                        (long long)data->count);
    data->count = count;
    return PRONY_OK;
}

static prony_status accept_array(prony_dataset *data, const prony_value_info *port, prn_dataset_array *array,
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
    PRN_TRY(dataset_values_check_count(data, value, what, error));
    prony_status status = accept_array(data, prony_model_input(model, input), array, error);
    if (status != PRONY_OK && status != PRONY_OUT_OF_MEMORY) prn_error_prefix(error, "%s", what);
    return status;
}

prony_status prn_dataset_set_labels(prony_dataset *data, prony_value *labels, prony_error *error)
{
    data->labels = labels;
    return dataset_values_check_count(data, labels, "labels", error);
}
