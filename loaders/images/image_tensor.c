/* Derives a tensor from a model's input declaration, selects the part of the image, and writes it there. */
#include "loaders/images/image.h"

#include "base/shape.h"

#include <math.h>
#include <string.h>

#define FREE_CROP 224 /* of PRONY_IMAGE_RESIZE_MARGIN, if the input's size is free */
#define LONGEST_SIDE ((int64_t)1 << 20)

/* ---- the input ---- */

static bool image_tensor_is_channels(int64_t extent)
{
    return extent == 1 || extent == 3;
}

static prony_status no_image(const prony_value_info *port, const char *why, prony_error *error)
{
    prony_value declared = {.kind = port->kind, .dtype = port->dtype, .shape = port->shape};
    char text[PRN_SHAPE_TEXT_BYTES];
    return prn_fail(error, PRONY_SHAPE_MISMATCH, "input '%s' is %s and cannot take an image: %s", port->name,
                    prn_value_text(&declared, text), why);
}

/* Finds the channel axis: the one with extent 1 or 3. */
static bool find_channels(const int64_t *dim, prony_image_layout layout, bool *last)
{
    *last = layout == PRONY_LAYOUT_NHWC ||
            (layout == PRONY_LAYOUT_AUTO && !image_tensor_is_channels(dim[0]) && image_tensor_is_channels(dim[2]));
    int64_t extent = dim[*last ? 2 : 0];
    return extent < 0 || image_tensor_is_channels(extent);
}

/* Accepts tensors of 3 or 4 dimensions with 1 or 3 channels. Free batch and channels become 1 and 3; a free size stays
 * -1. */
prony_status prn_image_target_make(prn_image_target *out, const prony_value_info *port,
                                   const prony_image_options *options, prony_error *error)
{
    int rank = port->shape.rank;
    *out = (prn_image_target){.value = {.kind = PRONY_TENSOR, .dtype = port->dtype, .shape = port->shape}, .batch = 1};
    if (port->kind != PRONY_TENSOR) return no_image(port, "it is not a tensor", error);
    if (port->dtype != PRONY_FLOAT32 && port->dtype != PRONY_FLOAT64 && port->dtype != PRONY_UINT8)
        return no_image(port, "pixels must be float32, float64 or uint8", error);
    if (rank < 0) { /* [N, 3, H, W] is assumed */
        out->value.shape = (prony_shape){4, {-1, -1, -1, -1}};
        rank = 4;
    }
    if (rank != 3 && rank != 4) return no_image(port, "images have 3 or 4 dimensions", error);
    int64_t *dim = out->value.shape.dim + (rank - 3);
    if (!find_channels(dim, options->layout, &out->channels_last))
        return no_image(port, "wanted 1 or 3 channels (layout=nchw, layout=nhwc)", error);
    if (rank == 4 && dim[-1] == 0) return no_image(port, "its first dimension is 0", error);
    if (rank == 4 && dim[-1] < 0) dim[-1] = 1;
    if (rank == 4) out->batch = dim[-1];
    int64_t *channels = &dim[out->channels_last ? 2 : 0];
    if (*channels < 0) *channels = 3;
    out->channels = (int)*channels;
    out->height = dim[out->channels_last ? 0 : 1];
    out->width = dim[out->channels_last ? 1 : 2];
    if (port->dtype == PRONY_UINT8 && options->normalize != PRONY_NORMALIZE_DEFAULT &&
        options->normalize != PRONY_NORMALIZE_BYTES)
        return no_image(port, "integers can be normalised to 0..255 only", error);
    if (out->channels == 1 && options->normalize == PRONY_NORMALIZE_IMAGENET)
        return no_image(port, "normalize=imagenet is for three channels", error);
    return PRONY_OK;
}

/* ---- the part of the image ---- */

/* The longer side is truncated to whole pixels. */
static void keep_aspect(prn_image_window *w, const prn_image *image, int64_t shorter)
{
    if (image->width <= image->height) {
        w->width = shorter;
        w->height = (int64_t)((double)(shorter * image->height) / (double)image->width);
    } else {
        w->height = shorter;
        w->width = (int64_t)((double)(shorter * image->width) / (double)image->height);
    }
}

/* Halves are rounded to even. */
static int64_t centre(int64_t extent, int64_t part)
{
    int64_t rest = extent - part, half = rest / 2;
    return rest % 2 && half % 2 ? half + 1 : half;
}

static void set_size(prn_image_window *w, const prn_image *image, const prony_image_options *o, int64_t rows,
                     int64_t columns)
{
    w->height = image->height;
    w->width = image->width;
    if (o->resize == PRONY_IMAGE_RESIZE_EXACT) {
        w->height = o->resize_height;
        w->width = o->resize_width;
    } else if (o->resize == PRONY_IMAGE_RESIZE_SHORTER) {
        keep_aspect(w, image, o->resize_height);
    } else if (o->resize == PRONY_IMAGE_RESIZE_MARGIN) {
        keep_aspect(w, image, llround((double)(rows > columns ? rows : columns) * 8 / 7));
    } else if (o->resize == PRONY_IMAGE_RESIZE_FIT) {
        if (rows > 0) w->height = rows;
        if (columns > 0) w->width = columns;
    }
}

/* The crop's size comes from the options, the target or the resized image, in this order. Sets the target's free
 * extents. */
prony_status prn_image_fit(prn_image_window *out, prn_image_target *target, const prn_image *image,
                           const prony_image_options *o, prony_error *error)
{
    int64_t rows = o->crop_height ? o->crop_height : target->height;
    int64_t columns = o->crop_width ? o->crop_width : target->width;
    if (o->resize == PRONY_IMAGE_RESIZE_MARGIN && rows < 0) rows = FREE_CROP;
    if (o->resize == PRONY_IMAGE_RESIZE_MARGIN && columns < 0) columns = FREE_CROP;
    set_size(out, image, o, rows, columns);
    out->rows = rows < 0 ? out->height : rows;
    out->columns = columns < 0 ? out->width : columns;
    const uint64_t most = o->max_pixels ? o->max_pixels : PRN_IMAGE_MAX_PIXELS;
    if (out->height > LONGEST_SIDE || out->width > LONGEST_SIDE || (uint64_t)(out->rows * out->columns) > most)
        return prn_fail(error, PRONY_LIMIT, "resizing %lld x %lld pixels gives %lld x %lld", (long long)image->width,
                        (long long)image->height, (long long)out->width, (long long)out->height);
    if (out->rows > out->height || out->columns > out->width)
        return prn_fail(
            error, PRONY_SHAPE_MISMATCH,
            "an image of height %lld and width %lld is smaller than the crop of %lld x %lld; enlarge it with resize=…",
            (long long)out->height, (long long)out->width, (long long)out->rows, (long long)out->columns);
    if ((target->height >= 0 && target->height != out->rows) || (target->width >= 0 && target->width != out->columns))
        return prn_fail(
            error, PRONY_SHAPE_MISMATCH, "the image is %lld high and %lld wide, wanted %lld x %lld (resize=…, crop=…)",
            (long long)out->rows, (long long)out->columns, (long long)target->height, (long long)target->width);
    out->top = centre(out->height, out->rows);
    out->left = centre(out->width, out->columns);
    target->height = out->rows;
    target->width = out->columns;
    int64_t *dim = target->value.shape.dim + (target->value.shape.rank - 3);
    dim[target->channels_last ? 0 : 1] = out->rows;
    dim[target->channels_last ? 1 : 2] = out->columns;
    return PRONY_OK;
}

/* ---- the tensor ---- */

static float normalized(int value, const prony_image_options *o, bool floats, int channel)
{
    static const float mean[] = {0.485f, 0.456f, 0.406f}, std[] = {0.229f, 0.224f, 0.225f};
    const float unit = (float)value / 255.0f;
    switch (o->normalize) {
    case PRONY_NORMALIZE_SIGNED:
        return (unit - 0.5f) / 0.5f;
    case PRONY_NORMALIZE_BYTES:
        return (float)value;
    case PRONY_NORMALIZE_IMAGENET:
        return (unit - mean[channel]) / std[channel];
    case PRONY_NORMALIZE_CUSTOM:
        return (unit - o->mean[channel]) / o->std[channel];
    default:
        return floats ? unit : (float)value;
    }
}

/* Pillow's grey: 0.299 R + 0.587 G + 0.114 B in 16 fractional bits. */
static uint8_t image_tensor_grey_of(const uint8_t *rgb)
{
    return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 32768u) >> 16);
}

static void image_tensor_put(const prn_image_target *t, size_t at, float value)
{
    if (t->value.dtype == PRONY_FLOAT32)
        ((float *)t->value.data)[at] = value;
    else if (t->value.dtype == PRONY_FLOAT64)
        ((double *)t->value.data)[at] = (double)value;
    else
        ((uint8_t *)t->value.data)[at] = (uint8_t)value;
}

/* One channel of the tensor from one of the image. */
static void write_channel(const prn_image_target *t, size_t base, const prn_image *image, int from, int to,
                          const float table[256])
{
    size_t pixels = (size_t)(image->height * image->width), channels = (size_t)t->channels;
    size_t at = base + (t->channels_last ? (size_t)to : (size_t)to * pixels), step = t->channels_last ? channels : 1;
    const uint8_t *source = image->pixels + from;
    for (size_t i = 0; i < pixels; i++) image_tensor_put(t, at + i * step, table[source[i * (size_t)image->channels]]);
}

/* Converts to one channel before resizing, because Pillow rounds in this order. */
static prony_status to_grey(prn_image *out, const prn_image *image, prony_error *error)
{
    PRN_TRY(prn_image_reserve(out, image->height, image->width, 1, UINT64_MAX, error));
    for (int64_t i = 0; i < image->height * image->width; i++)
        out->pixels[i] = image_tensor_grey_of(image->pixels + 3 * i);
    return PRONY_OK;
}

prony_status prn_image_write(const prn_image_target *target, int64_t index, const prn_image *image,
                             const prn_image_window *window, const prony_image_options *options, prony_error *error)
{
    prn_image grey = {0}, part = {0};
    const prn_image *source = image;
    if (target->channels == 1 && image->channels == 3) {
        PRN_TRY(to_grey(&grey, image, error));
        source = &grey;
    }
    prony_status status = prn_image_resize(&part, source, window, options->bicubic, error);
    size_t base = (size_t)index * (size_t)(window->rows * window->columns) * (size_t)target->channels;
    for (int c = 0; status == PRONY_OK && c < target->channels; c++) {
        float table[256];
        int to = options->bgr ? target->channels - 1 - c : c;
        for (int v = 0; v < 256; v++) table[v] = normalized(v, options, target->value.dtype != PRONY_UINT8, c);
        write_channel(target, base, &part, part.channels == 3 ? c : 0, to, table);
    }
    prn_image_free(&part);
    prn_image_free(&grey);
    return status;
}
