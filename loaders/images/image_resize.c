/* Resizing as Pillow does it, bit for bit: separable kernels, widened by the scale where an axis shrinks so that every
 * source pixel counts; weights rounded to 22 fractional bits; a horizontal pass, rounded to 8 bits, then a vertical
 * one. Only the wanted window is computed, and in the first pass only the rows that the second one reads.
 *
 * Invariant: a pixel's value does not depend on the window. */
#include "loaders/images/image.h"

#include "base/memory/alloc.h"

#include <math.h>
#include <string.h>

#define FRACTION_BITS 22

/* Weights of the window's positions along one axis. */
typedef struct axis {
    int64_t *first;   /* per position: the first source element */
    int32_t *count;   /* and how many */
    int32_t *weights; /* `taps` per position */
    int64_t taps;
    int64_t positions;
} axis;

static double bilinear(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

/* Keys' kernel with a = -0.5. */
static double bicubic(double x)
{
    x = fabs(x);
    if (x < 1.0) return (1.5 * x - 2.5) * x * x + 1.0;
    return x < 2.0 ? ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0 : 0.0;
}

static void axis_free(axis *a)
{
    prn_free(a->first);
    prn_free(a->count);
    prn_free(a->weights);
}

/* `row` is working space of `taps` doubles. */
static void fill_position(axis *a, int64_t position, int64_t index, double scale, double reach, int64_t in,
                          double (*kernel)(double), double *row)
{
    const double shrink = scale < 1.0 ? 1.0 : scale, support = reach * shrink;
    const double centre = ((double)index + 0.5) * scale;
    double from = centre - support + 0.5, to = centre + support + 0.5, sum = 0;
    int64_t first = from > 0 ? (int64_t)from : 0, last = (int64_t)to < in ? (int64_t)to : in;
    int64_t count = last - first;
    for (int64_t i = 0; i < count; i++) {
        row[i] = kernel(((double)(first + i) - centre + 0.5) / shrink);
        sum += row[i];
    }
    int32_t *weights = a->weights + position * a->taps;
    for (int64_t i = 0; i < count; i++) {
        double weight = row[i] / sum * (double)(1 << FRACTION_BITS);
        weights[i] = (int32_t)(weight < 0 ? weight - 0.5 : weight + 0.5);
    }
    a->first[position] = first;
    a->count[position] = (int32_t)count;
}

/* Positions [begin, begin + positions) of an axis that goes from `in` to `out` elements. */
static prony_status axis_make(axis *a, int64_t in, int64_t out, int64_t begin, int64_t positions, bool cubic,
                              prony_error *error)
{
    const double scale = (double)in / (double)out, reach = cubic ? 2.0 : 1.0;
    a->positions = positions;
    a->taps = 2 * (int64_t)ceil(reach * (scale < 1.0 ? 1.0 : scale)) + 1;
    uint64_t bytes;
    if (__builtin_mul_overflow((uint64_t)a->taps * sizeof(int32_t), (uint64_t)positions, &bytes) || bytes > PTRDIFF_MAX)
        return prn_fail(error, PRONY_LIMIT, "resizing %lld pixels to %lld", (long long)in, (long long)out);
    a->first = prn_alloc((size_t)positions * sizeof *a->first);
    a->count = prn_alloc((size_t)positions * sizeof *a->count);
    a->weights = prn_alloc((size_t)bytes);
    double *row = prn_alloc((size_t)a->taps * sizeof *row);
    bool made = a->first && a->count && a->weights && row;
    for (int64_t i = 0; made && i < positions; i++)
        fill_position(a, i, begin + i, scale, reach, in, cubic ? bicubic : bilinear, row);
    prn_free(row);
    return made ? PRONY_OK : prn_no_memory(error);
}

static uint8_t to_byte(int32_t sum)
{
    int32_t value = sum >> FRACTION_BITS;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* The window's columns of one source row. */
static void resize_row(uint8_t *to, const uint8_t *from, const axis *a, int channels)
{
    for (int64_t x = 0; x < a->positions; x++) {
        const int32_t *weights = a->weights + x * a->taps;
        const uint8_t *source = from + a->first[x] * channels;
        for (int c = 0; c < channels; c++, to++) {
            int32_t sum = 1 << (FRACTION_BITS - 1);
            for (int32_t i = 0; i < a->count[x]; i++) sum += source[i * channels + c] * weights[i];
            *to = to_byte(sum);
        }
    }
}

/* One row of the window, from rows of `elements` that begin at source row `top`. */
static void resize_column(uint8_t *to, const uint8_t *from, const axis *a, int64_t y, int64_t top, int64_t elements)
{
    const int32_t *weights = a->weights + y * a->taps;
    const uint8_t *source = from + (a->first[y] - top) * elements;
    for (int64_t x = 0; x < elements; x++) {
        int32_t sum = 1 << (FRACTION_BITS - 1);
        for (int32_t i = 0; i < a->count[y]; i++) sum += source[i * elements + x] * weights[i];
        to[x] = to_byte(sum);
    }
}

static prony_status image_resize_passes(prn_image *out, const prn_image *image, const axis *across, const axis *down,
                                        prony_error *error)
{
    int64_t top = down->first[0], bottom = top;
    for (int64_t y = 0; y < down->positions; y++)
        if (down->first[y] + down->count[y] > bottom) bottom = down->first[y] + down->count[y];
    prn_image between = {0};
    PRN_TRY(prn_image_reserve(&between, bottom - top, across->positions, image->channels, UINT64_MAX, error));
    const int64_t elements = across->positions * image->channels;
    prony_status status =
        prn_image_reserve(out, down->positions, across->positions, image->channels, UINT64_MAX, error);
    if (status == PRONY_OK) {
        for (int64_t y = top; y < bottom; y++)
            resize_row(between.pixels + (y - top) * elements, image->pixels + y * image->width * image->channels,
                       across, image->channels);
        for (int64_t y = 0; y < down->positions; y++)
            resize_column(out->pixels + y * elements, between.pixels, down, y, top, elements);
    }
    prn_image_free(&between);
    return status;
}

static prony_status image_resize_cut(prn_image *out, const prn_image *image, const prn_image_window *w,
                                     prony_error *error)
{
    PRN_TRY(prn_image_reserve(out, w->rows, w->columns, image->channels, UINT64_MAX, error));
    const int64_t row = w->columns * image->channels;
    for (int64_t y = 0; y < w->rows; y++)
        memcpy(out->pixels + y * row, image->pixels + ((w->top + y) * image->width + w->left) * image->channels,
               (size_t)row);
    return PRONY_OK;
}

prony_status prn_image_resize(prn_image *out, const prn_image *image, const prn_image_window *window, bool cubic,
                              prony_error *error)
{
    if (window->height == image->height && window->width == image->width)
        return image_resize_cut(out, image, window, error);
    axis across = {0}, down = {0};
    prony_status status = axis_make(&across, image->width, window->width, window->left, window->columns, cubic, error);
    if (status == PRONY_OK)
        status = axis_make(&down, image->height, window->height, window->top, window->rows, cubic, error);
    if (status == PRONY_OK) status = image_resize_passes(out, image, &across, &down, error);
    axis_free(&across);
    axis_free(&down);
    return status;
}
