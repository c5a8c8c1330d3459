/* prony_value_*: tensors in files of their own. */
#include "loaders/tensors/npz.h"
#include "loaders/tensors/tensor_file.h"

prony_status prony_value_load(prony_value **out, const char *path, prony_error *error)
{
    if (!out || !path) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_value_load: an argument is NULL");
    return prn_value_file_load(out, path, PRONY_TENSOR, error);
}

prony_status prony_value_load_kind(prony_value **out, const char *path, prony_kind kind, prony_error *error)
{
    if (!out || !path || kind < PRONY_TENSOR || kind > PRONY_OPTIONAL)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "prony_value_load_kind: an argument is NULL or the kind unknown");
    return prn_value_file_load(out, path, kind, error);
}

prony_status prony_value_load_array(prony_value **out, const char *path, const char *name, prony_error *error)
{
    if (!out || !path) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_value_load_array: an argument is NULL");
    return prn_npz_load(out, path, name, error);
}

prony_status prony_value_load_raw(prony_value **out, const char *path, prony_dtype dtype, const prony_shape *shape,
                                  prony_error *error)
{
    if (!out || !path || !shape)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_value_load_raw: an argument is NULL");
    return prn_value_file_load_raw(out, path, dtype, shape, error);
}

void prony_value_release(prony_value *value)
{
    prn_value_free(value);
}
