/* The sole user of libpng. Errors come back by longjmp into guarded(), which has no state of its own. libpng's memory
 * (zlib's in it) comes from base/memory/alloc.h. */
#include "loaders/images/image.h"

#include "base/memory/alloc.h"

#ifdef PRN_HAVE_PNG

#include "loaders/tensors/inflate.h"

#include <png.h>
#include <string.h>

typedef struct decoder {
    const uint8_t *data;
    size_t size, at;
    uint64_t max_pixels;
    png_structp png;
    png_infop info;
    png_bytepp rows;
    prn_image image;
    prony_status status; /* of failures outside of libpng */
    bool no_memory;
    prony_error *error;
} decoder;

static void *image_png_take(png_structp png, png_alloc_size_t bytes)
{
    decoder *d = png_get_mem_ptr(png);
    void *block = prn_alloc(bytes);
    if (!block) d->no_memory = true;
    return block;
}

static void image_png_give(png_structp png, void *block)
{
    (void)png;
    prn_free(block);
}

static void image_png_read_bytes(png_structp png, png_bytep to, size_t size)
{
    decoder *d = png_get_io_ptr(png);
    if (size > d->size - d->at) png_error(png, "the file is cut short");
    memcpy(to, d->data + d->at, size);
    d->at += size;
}

static void image_png_failed(png_structp png, const char *message)
{
    decoder *d = png_get_error_ptr(png);
    if (d->status == PRONY_OK)
        d->status = d->no_memory ? prn_no_memory(d->error)
                                 : prn_fail(d->error, PRONY_INVALID_ARGUMENT, "damaged PNG: %s", message);
    png_longjmp(png, 1);
}

static void warned(png_structp png, const char *message)
{
    (void)png, (void)message;
}

/* A PNG cannot hold more than deflate's largest ratio: headers that claim more are refused before memory is
 * allocated. */
static bool can_hold(const decoder *d)
{
    uint64_t rows = png_get_image_height(d->png, d->info), row = png_get_rowbytes(d->png, d->info);
    return row == 0 || rows <= (uint64_t)d->size * PRN_INFLATE_RATIO / row + 1;
}

static void set_transforms(decoder *d)
{
    int colour = png_get_color_type(d->png, d->info);
    png_set_strip_16(d->png);
    png_set_packing(d->png);
    if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(d->png);
    if (colour == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(d->png);
    png_set_strip_alpha(d->png);
    (void)png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
}

static void image_png_stop(decoder *d, prony_status status)
{
    d->status = status;
    png_longjmp(d->png, 1);
}

static void image_png_read_image(decoder *d)
{
    png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, NULL,
                                -1); /* text and profiles may be decompression bombs too */
    png_set_read_fn(d->png, d, image_png_read_bytes);
    png_read_info(d->png, d->info);
    if (!can_hold(d)) png_error(d->png, "it is too short for its declared size");
    set_transforms(d);
    int64_t height = png_get_image_height(d->png, d->info), width = png_get_image_width(d->png, d->info);
    int channels = png_get_channels(d->png, d->info);
    prony_status status = prn_image_reserve(&d->image, height, width, channels, d->max_pixels, d->error);
    if (status != PRONY_OK) image_png_stop(d, status);
    size_t row = (size_t)width * (size_t)channels;
    if (png_get_rowbytes(d->png, d->info) != row) png_error(d->png, "unexpected row size");
    d->rows = prn_alloc((size_t)height * sizeof *d->rows);
    if (!d->rows) image_png_stop(d, prn_no_memory(d->error));
    for (int64_t y = 0; y < height; y++) d->rows[y] = d->image.pixels + (size_t)y * row;
    png_read_image(d->png, d->rows);
}

static void image_png_guarded(decoder *d)
{
    if (setjmp(png_jmpbuf(d->png)) == 0) image_png_read_image(d);
}

prony_status prn_png_decode(prn_image *out, const uint8_t *data, size_t size, uint64_t max_pixels, prony_error *error)
{
    decoder d = {.data = data, .size = size, .max_pixels = max_pixels, .error = error};
    d.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &d, image_png_failed, warned, &d, image_png_take,
                                     image_png_give);
    if (!d.png) return prn_no_memory(error);
    d.info = png_create_info_struct(d.png);
    if (!d.info) {
        png_destroy_read_struct(&d.png, NULL, NULL);
        return prn_no_memory(error);
    }
    image_png_guarded(&d);
    png_destroy_read_struct(&d.png, &d.info, NULL);
    prn_free(d.rows);
    if (d.status == PRONY_OK)
        *out = d.image;
    else
        prn_image_free(&d.image);
    return d.status;
}

#else

prony_status prn_png_decode(prn_image *out, const uint8_t *data, size_t size, uint64_t max_pixels, prony_error *error)
{
    (void)out, (void)data, (void)size, (void)max_pixels;
    return prn_fail(error, PRONY_UNSUPPORTED, "a PNG image, but this build has no libpng (PRONY_PNG)");
}

#endif
