/* Decoded images: choice of the decoder, memory for pixels, arrays as images. */
#include "loaders/images/image.h"

#include "base/memory/alloc.h"
#include "base/shape.h"

#include <string.h>
#include <strings.h>

const char *prn_image_formats(void)
{
#if defined(PRN_HAVE_PNG) && defined(PRN_HAVE_JPEG)
    return "PNG, JPEG";
#elif defined(PRN_HAVE_PNG)
    return "PNG";
#elif defined(PRN_HAVE_JPEG)
    return "JPEG";
#else
    return "";
#endif
}

bool prn_image_name(const char *path)
{
    static const char *const endings[] = {".png", ".jpg", ".jpeg"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++)
        if (strcasecmp(dot, endings[i]) == 0) return true;
    return false;
}

/* The name of a format that this build does not decode; NULL: unknown. */
static const char *other_format(const uint8_t *data, size_t size)
{
    static const struct {
        const char *name;
        size_t at, bytes;
        const char *magic;
    } formats[] = {{"BMP", 0, 2, "BM"},    {"TIFF", 0, 4, "II*\0"},     {"TIFF", 0, 4, "MM\0*"},
                   {"WebP", 8, 4, "WEBP"}, {"JPEG 2000", 4, 4, "jP  "}, {"JPEG 2000", 0, 4, "\xff\x4f\xff\x51"}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (size >= formats[i].at + formats[i].bytes &&
            memcmp(data + formats[i].at, formats[i].magic, formats[i].bytes) == 0)
            return formats[i].name;
    }
    /* PBM, PGM, PPM, PAM: a digit and a blank behind the letter. */
    return size >= 3 && data[0] == 'P' && data[1] >= '1' && data[1] <= '7' && strchr(" \t\r\n", data[2]) && data[2]
               ? "PNM"
               : NULL;
}

prony_status prn_image_decode(prn_image *out, const uint8_t *data, size_t size, uint64_t max_pixels, prony_error *error)
{
    static const uint8_t png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, jpeg[] = {0xff, 0xd8, 0xff};
    *out = (prn_image){0};
    if (size >= sizeof png && memcmp(data, png, sizeof png) == 0)
        return prn_png_decode(out, data, size, max_pixels, error);
    if (size >= sizeof jpeg && memcmp(data, jpeg, sizeof jpeg) == 0)
        return prn_jpeg_decode(out, data, size, max_pixels, error);
    const char *other = other_format(data, size);
    if (other)
        return prn_fail(error, PRONY_UNSUPPORTED, "a %s image; this build reads %s", other,
                        *prn_image_formats() ? prn_image_formats() : "none");
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "not a PNG or JPEG image");
}

static bool image_is_channels(int64_t extent)
{
    return extent == 1 || extent == 3;
}

prony_status prn_image_from_array(prn_image *out, const uint8_t *data, const prony_shape *shape, prony_error *error)
{
    const int64_t *d = shape->dim;
    bool last = shape->rank == 3 && image_is_channels(d[2]),
         first = shape->rank == 3 && !last && image_is_channels(d[0]);
    if (shape->rank != 2 && !last && !first) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prn_fail(error, PRONY_SHAPE_MISMATCH,
                        "%s is not an image: wanted [H, W], [H, W, C] or [C, H, W] with 1 or 3 channels",
                        prn_shape_text(shape, text));
    }
    int channels = (int)(last ? d[2] : first ? d[0] : 1);
    int64_t height = d[first], width = d[first + 1], pixels;
    PRN_TRY(prn_image_reserve(out, height, width, channels, 0, error));
    pixels = height * width;
    if (!first) {
        memcpy(out->pixels, data, (size_t)pixels * (size_t)channels);
        return PRONY_OK;
    }
    for (int c = 0; c < channels; c++)
        for (int64_t i = 0; i < pixels; i++) out->pixels[i * channels + c] = data[c * pixels + i];
    return PRONY_OK;
}
