/* Image files to tensors: decode, resize, crop, normalise. Files are not trusted: a header's claims are checked against
 * the file's length and a bound on pixels before memory is allocated. */
#ifndef PRN_LOADERS_IMAGES_IMAGE_H
#define PRN_LOADERS_IMAGES_IMAGE_H

#include "base/status.h"
#include "prony_data.h"

/* Default bound on the pixels of a decoded image. */
#define PRN_IMAGE_MAX_PIXELS ((uint64_t)1 << 27)

/* Rows of 8-bit pixels from top to bottom, channels (1: grey, 3: RGB) interleaved. */
typedef struct prn_image {
    uint8_t *pixels; /* prn_free */
    int64_t height, width;
    int channels;
} prn_image;

/* Formats that this build decodes: "PNG, JPEG"; "" if none. */
const char *prn_image_formats(void);
/* true: the name ends like an image file's, even if this build cannot decode it. */
bool prn_image_name(const char *path);

/* PNG or JPEG, by its first bytes. Palettes become colours, 16 bits their upper 8, transparency is dropped, CMYK
 * becomes RGB. On failure *out owns nothing. */
PRN_MUST_USE prony_status prn_image_decode(prn_image *out, const uint8_t *data, size_t size, uint64_t max_pixels,
                                           prony_error *error);
/* From 8-bit elements of shape [H, W], [H, W, C] or [C, H, W] with C 1 or 3. */
PRN_MUST_USE prony_status prn_image_from_array(prn_image *out, const uint8_t *data, const prony_shape *shape,
                                               prony_error *error);
void prn_image_free(prn_image *image);

/* For decoders: checks the extents and takes memory for the pixels. */
PRN_MUST_USE prony_status prn_image_reserve(prn_image *image, int64_t height, int64_t width, int channels,
                                            uint64_t max_pixels, prony_error *error);
PRN_MUST_USE prony_status prn_png_decode(prn_image *out, const uint8_t *data, size_t size, uint64_t max_pixels,
                                         prony_error *error);
PRN_MUST_USE prony_status prn_jpeg_decode(prn_image *out, const uint8_t *data, size_t size, uint64_t max_pixels,
                                          prony_error *error);

/* The wanted part of an image resized to height x width. */
typedef struct prn_image_window {
    int64_t height, width;            /* of the whole resized image */
    int64_t top, left, rows, columns; /* the part that is made */
} prn_image_window;

/* The window of `image` at another size, by a bilinear or bicubic kernel that is widened where the image shrinks, in
 * the fixed-point arithmetic of Pillow: horizontally, then vertically, with 8 bits in between. */
PRN_MUST_USE prony_status prn_image_resize(prn_image *out, const prn_image *image, const prn_image_window *window,
                                           bool bicubic, prony_error *error);

/* The tensor that a model's input needs from an image. */
typedef struct prn_image_target {
    prony_value value; /* type and shape of the tensor; its data belong to the caller */
    bool channels_last;
    int channels;          /* 1 or 3 */
    int64_t height, width; /* -1: free, as the image comes out */
    int64_t batch;
} prn_image_target;

/* Made from an input's declaration and the options. The shape's free dimensions are -1 until an image has filled
 * them. */
PRN_MUST_USE prony_status prn_image_target_make(prn_image_target *out, const prony_value_info *port,
                                                const prony_image_options *options, prony_error *error);
/* Sets the target's free sizes from this image, or checks that the image has the target's sizes. */
PRN_MUST_USE prony_status prn_image_fit(prn_image_window *out, prn_image_target *target, const prn_image *image,
                                        const prony_image_options *options, prony_error *error);
/* Resizes, crops, normalises and writes it as sample `index` of target->value, which has data. */
PRN_MUST_USE prony_status prn_image_write(const prn_image_target *target, int64_t index, const prn_image *image,
                                          const prn_image_window *window, const prony_image_options *options,
                                          prony_error *error);
/* Refuses options that contradict themselves. */
PRN_MUST_USE prony_status prn_image_options_check(const prony_image_options *options, prony_error *error);

#endif
