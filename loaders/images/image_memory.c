/* Allocates and releases an image's pixels, for codecs and readers. */
#include "loaders/images/image.h"

#include "base/memory/alloc.h"
#include "base/shape.h"

void prn_image_free(prn_image *image)
{
    prn_free(image->pixels);
    *image = (prn_image){0};
}

prony_status prn_image_reserve(prn_image *image, int64_t height, int64_t width, int channels, uint64_t max_pixels,
                               prony_error *error)
{
    uint64_t limit = max_pixels ? max_pixels : PRN_IMAGE_MAX_PIXELS, pixels;
    if (height <= 0 || width <= 0 || (channels != 1 && channels != 3))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "an image of %lld x %lld pixels and %d channels",
                        (long long)width, (long long)height, channels);
    if (!prn_mul_u64(&pixels, (uint64_t)height, (uint64_t)width) || pixels > limit || pixels > PTRDIFF_MAX / 3)
        return prn_fail(error, PRONY_LIMIT, "an image of %lld x %lld pixels exceeds the limit of %llu pixels",
                        (long long)width, (long long)height, (unsigned long long)limit);
    uint8_t *plane = prn_alloc((size_t)pixels * (size_t)channels);
    if (!plane) return prn_no_memory(error);
    *image = (prn_image){plane, height, width, channels};
    return PRONY_OK;
}
