/* prony_image_*: image files as the tensors that a model's inputs want. */
#include "evaluate/image_input.h"

#include "base/os/file.h"
#include "base/option_struct.h"
#include "base/shape.h"
#include "loaders/tensors/tensor_file.h"

#include <string.h>

const char *prony_image_formats(void)
{
    return prn_image_formats();
}

bool prony_image_is_file(const char *path)
{
    return path && prn_image_name(path);
}

prony_status prn_image_options_read(prony_image_options *own, const prony_image_options *given, prony_error *error)
{
    *own = (prony_image_options)PRONY_IMAGE_OPTIONS_INIT;
    PRN_TRY(prn_options_read(own, sizeof *own, given, "image options", error));
    return prn_image_options_check(own, error);
}

static prony_status reserve_tensor(prony_value **out, const prony_value *type, prony_error *error)
{
    size_t bytes = prn_value_bytes(type);
    if (bytes == SIZE_MAX) return prn_fail(error, PRONY_LIMIT, "the tensor is too large");
    prony_value *value = prn_calloc(1, sizeof *value);
    if (!value) return prn_no_memory(error);
    *value = *type;
    value->data = prn_alloc_aligned(64, bytes);
    if (!value->data) {
        prn_free(value);
        return prn_no_memory(error);
    }
    *out = value;
    return PRONY_OK;
}

static void repeat_first(prony_value *value, int64_t batch)
{
    size_t bytes = prn_value_bytes(value) / (size_t)batch;
    for (int64_t i = 1; i < batch; i++) memcpy((char *)value->data + (size_t)i * bytes, value->data, bytes);
}

static prony_status make_tensor(prony_value **out, const uint8_t *data, size_t size, const prony_value_info *port,
                                const prony_image_options *options, prony_error *error)
{
    prn_image image;
    prn_image_target target;
    prn_image_window window;
    prony_value *value = NULL;
    PRN_TRY(prn_image_target_make(&target, port, options, error));
    PRN_TRY(prn_image_decode(&image, data, size, options->max_pixels, error));
    prony_status status = prn_image_fit(&window, &target, &image, options, error);
    if (status == PRONY_OK) status = reserve_tensor(&value, &target.value, error);
    if (status == PRONY_OK) {
        target.value.data = value->data;
        status = prn_image_write(&target, 0, &image, &window, options, error);
    }
    prn_image_free(&image);
    if (status == PRONY_OK) {
        repeat_first(value, target.batch);
        *out = value;
    } else {
        prn_value_free(value);
    }
    return status;
}

prony_status prony_image_load_memory(prony_value **out, const char *name, const void *data, size_t size,
                                     const prony_value_info *port, const prony_image_options *options,
                                     prony_error *error)
{
    if (!out || !port || (size && !data))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_image_load: an argument is NULL");
    prony_image_options own;
    PRN_TRY(prn_image_options_read(&own, options, error));
    prony_status status = make_tensor(out, data, size, port, &own, error);
    if (status != PRONY_OK) prn_error_prefix(error, "'%.400s'", name ? name : "image");
    return status;
}

prony_status prony_image_load(prony_value **out, const char *path, const prony_value_info *port,
                              const prony_image_options *options, prony_error *error)
{
    prn_map map;
    if (!path) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_image_load: an argument is NULL");
    PRN_TRY(prn_map_open(&map, path, error));
    prony_status status = prony_image_load_memory(out, path, map.data, map.size, port, options, error);
    prn_map_close(&map);
    return status;
}
