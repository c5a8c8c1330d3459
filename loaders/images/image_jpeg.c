/* The sole user of libjpeg. Errors come back by longjmp into guarded(), which has no state of its own. libjpeg takes
 * its memory itself. */
#include "loaders/images/image.h"

#ifdef PRN_HAVE_JPEG

#include "base/memory/alloc.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

/* Real files have about ten scans; each costs a pass over all blocks. */
#define MOST_SCANS 100
/* A block of 64 samples takes at least one bit, except with arithmetic coding. */
#define PIXELS_PER_BYTE (64 * 8)

typedef struct decoder {
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct jpeg;
    jmp_buf end;
    const uint8_t *data;
    size_t size;
    uint64_t max_pixels;
    prn_image image;
    uint8_t *row; /* of CMYK */
    prony_status status;
    prony_error *error;
} decoder;

static void image_jpeg_stop(decoder *d, prony_status status)
{
    d->status = status;
    longjmp(d->end, 1);
}

static void image_jpeg_failed(j_common_ptr jpeg)
{
    decoder *d = jpeg->client_data;
    char message[JMSG_LENGTH_MAX];
    if (jpeg->err->msg_code == JERR_OUT_OF_MEMORY) image_jpeg_stop(d, prn_no_memory(d->error));
    jpeg->err->format_message(jpeg, message);
    image_jpeg_stop(d, prn_fail(d->error, PRONY_INVALID_ARGUMENT, "damaged JPEG: %s", message));
}

/* Level -1 is a warning: decoding continues, with grey after the end of the file. */
static void noted(j_common_ptr jpeg, int level)
{
    decoder *d = jpeg->client_data;
    if (level < 0 && jpeg->err->msg_code == JWRN_JPEG_EOF)
        image_jpeg_stop(d, prn_fail(d->error, PRONY_INVALID_ARGUMENT, "damaged JPEG: the file is cut short"));
}

static void silent(j_common_ptr jpeg)
{
    (void)jpeg;
}

static void watched(j_common_ptr jpeg)
{
    decoder *d = jpeg->client_data;
    if (d->jpeg.input_scan_number > MOST_SCANS)
        image_jpeg_stop(d, prn_fail(d->error, PRONY_LIMIT, "a JPEG with more than %d scans", MOST_SCANS));
}

static void check_size(decoder *d)
{
    const struct jpeg_decompress_struct *j = &d->jpeg;
    uint64_t pixels = (uint64_t)j->image_width * j->image_height;
    if (!j->arith_code && pixels / PIXELS_PER_BYTE > d->size)
        image_jpeg_stop(d,
                        prn_fail(d->error, PRONY_INVALID_ARGUMENT, "damaged JPEG: %zu bytes cannot hold %u x %u pixels",
                                 d->size, j->image_width, j->image_height));
}

/* Adobe's files hold CMYK inverted. A channel's light is the product of what its ink and the black ink leave. */
static void from_cmyk(uint8_t *to, const uint8_t *cmyk, int64_t width, bool inverted)
{
    for (int64_t x = 0; x < width; x++, cmyk += 4, to += 3) {
        unsigned black = inverted ? cmyk[3] : 255u - cmyk[3];
        for (int c = 0; c < 3; c++) {
            unsigned light = inverted ? cmyk[c] : 255u - cmyk[c];
            to[c] = (uint8_t)((light * black + 127) / 255);
        }
    }
}

static void image_jpeg_read_rows(decoder *d)
{
    struct jpeg_decompress_struct *j = &d->jpeg;
    size_t row = (size_t)d->image.width * (size_t)d->image.channels;
    while (j->output_scanline < j->output_height) {
        uint8_t *to = d->image.pixels + (size_t)j->output_scanline * row;
        JSAMPROW rows[] = {d->row ? d->row : to};
        if (jpeg_read_scanlines(j, rows, 1) != 1)
            image_jpeg_stop(d, prn_fail(d->error, PRONY_INVALID_ARGUMENT, "damaged JPEG: a row is missing"));
        if (d->row) from_cmyk(to, d->row, d->image.width, j->saw_Adobe_marker);
    }
}

static void image_jpeg_read_image(decoder *d)
{
    struct jpeg_decompress_struct *j = &d->jpeg;
    jpeg_create_decompress(j);
    j->progress = &d->progress;
    jpeg_mem_src(j, d->data, (unsigned long)d->size);
    (void)jpeg_read_header(j, TRUE);
    check_size(d);
    bool cmyk = j->num_components == 4, grey = j->jpeg_color_space == JCS_GRAYSCALE;
    j->out_color_space = cmyk ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
    int64_t height = j->image_height, width = j->image_width;
    prony_status status = prn_image_reserve(&d->image, height, width, grey ? 1 : 3, d->max_pixels, d->error);
    if (status != PRONY_OK) image_jpeg_stop(d, status);
    if (cmyk) {
        d->row = prn_alloc((size_t)width * 4);
        if (!d->row) image_jpeg_stop(d, prn_no_memory(d->error));
    }
    (void)jpeg_start_decompress(j);
    image_jpeg_read_rows(d);
}

static void image_jpeg_guarded(decoder *d)
{
    if (setjmp(d->end) == 0) image_jpeg_read_image(d);
}

prony_status prn_jpeg_decode(prn_image *out, const uint8_t *data, size_t size, uint64_t max_pixels, prony_error *error)
{
    decoder d = {.data = data, .size = size, .max_pixels = max_pixels, .error = error};
    d.jpeg.err = jpeg_std_error(&d.errors);
    d.jpeg.client_data = &d;
    d.errors.error_exit = image_jpeg_failed;
    d.errors.emit_message = noted;
    d.errors.output_message = silent;
    d.progress.progress_monitor = watched;
    image_jpeg_guarded(&d);
    jpeg_destroy_decompress(&d.jpeg);
    prn_free(d.row);
    if (d.status == PRONY_OK)
        *out = d.image;
    else
        prn_image_free(&d.image);
    return d.status;
}

#else

prony_status prn_jpeg_decode(prn_image *out, const uint8_t *data, size_t size, uint64_t max_pixels, prony_error *error)
{
    (void)out, (void)data, (void)size, (void)max_pixels;
    return prn_fail(error, PRONY_UNSUPPORTED, "a JPEG image, but this build has no libjpeg (PRONY_JPEG)");
}

#endif
