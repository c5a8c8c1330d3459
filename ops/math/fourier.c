/* Transforms of a power of two by radix 2; any other length as a convolution with a chirp (Bluestein), which takes two
 * transforms of at least twice the length. */
#include "ops/math/fourier.h"
#include "base/threads/cancel.h"

#include <math.h>
#include <stddef.h>

enum { LOOK_UP = 16384 }; /* steps between two looks at whether to go on */

static bool fourier_is_power(int64_t n)
{
    return (n & (n - 1)) == 0;
}

static int64_t power_for(int64_t length)
{
    int64_t size = 1;
    if (fourier_is_power(length)) return length;
    while (size < 2 * length - 1) size *= 2;
    return size;
}

int64_t prn_fourier_table_count(int64_t length)
{
    const int64_t size = power_for(length);
    return fourier_is_power(length) ? size / 2 : size / 2 + length + size;
}

int64_t prn_fourier_work_count(int64_t length)
{
    return fourier_is_power(length) ? 0 : power_for(length);
}

static prn_complex fourier_multiply(prn_complex a, prn_complex b)
{
    return (prn_complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static void reverse_bits(prn_complex *x, int64_t size)
{
    for (int64_t i = 1, j = 0; i < size && !prn_cancelled_at(i); i++) {
        int64_t bit = size >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i >= j) continue;
        const prn_complex swapped = x[i];
        x[i] = x[j];
        x[j] = swapped;
    }
}

/* `size` is a power of two, roots those of `size`; direction 1 is forward, -1 inverse. */
static void radix_two(prn_complex *x, int64_t size, const prn_complex *roots, double direction)
{
    if (prn_cancelled()) return; /* even a few steps all over fresh memory take long */
    reverse_bits(x, size);
    for (int64_t half = 1; half < size; half *= 2) {
        const int64_t step = size / (2 * half);
        for (int64_t start = 0; start < size; start += 2 * half) {
            for (int64_t k = 0; k < half; k++) {
                if ((start + k) % LOOK_UP == 0 && prn_cancelled()) return;
                const prn_complex root = {roots[k * step].re, direction * roots[k * step].im};
                prn_complex *low = &x[start + k], *high = low + half;
                const prn_complex turned = fourier_multiply(*high, root);
                *high = (prn_complex){low->re - turned.re, low->im - turned.im};
                *low = (prn_complex){low->re + turned.re, low->im + turned.im};
            }
        }
    }
}

static prn_complex root_of(double part)
{
    return (prn_complex){cos(2.0 * M_PI * part), -sin(2.0 * M_PI * part)};
}

/* k^2 mod 2 N by steps, since k^2 itself does not fit for long. */
static void make_chirp(prn_complex *chirp, int64_t length)
{
    int64_t square = 0;
    for (int64_t k = 0; k < length && !prn_cancelled_at(k); k++) {
        chirp[k] = root_of((double)square / (double)(2 * length));
        square = (square + 2 * k + 1) % (2 * length);
    }
}

static void make_image(prn_complex *image, const prn_fourier *plan)
{
    const double scale = 1.0 / (double)plan->size;
    for (int64_t k = 0; k < plan->size && !prn_cancelled_at(k); k++) image[k] = (prn_complex){0.0, 0.0};
    for (int64_t k = 0; k < plan->length && !prn_cancelled_at(k); k++) {
        const prn_complex value = {plan->chirp[k].re * scale, -plan->chirp[k].im * scale};
        image[k] = value;
        if (k > 0) image[plan->size - k] = value;
    }
    radix_two(image, plan->size, plan->roots, 1.0);
}

prn_fourier prn_fourier_make(int64_t length, prn_complex *tables)
{
    prn_fourier plan = {.length = length, .size = power_for(length), .roots = tables};
    for (int64_t k = 0; k < plan.size / 2 && !prn_cancelled_at(k); k++)
        tables[k] = root_of((double)k / (double)plan.size);
    if (fourier_is_power(length)) return plan;
    prn_complex *chirp = tables + plan.size / 2, *image = chirp + length;
    make_chirp(chirp, length);
    plan.chirp = chirp;
    make_image(image, &plan);
    plan.image = image;
    return plan;
}

/* The inverse of x is the conjugate of the transform of x's conjugate. */
void prn_fourier_run(const prn_fourier *plan, bool inverse, prn_complex *x, prn_complex *work)
{
    const int64_t length = plan->length, size = plan->size;
    const double sign = inverse ? -1.0 : 1.0;
    if (!plan->chirp) {
        radix_two(x, size, plan->roots, sign);
        return;
    }
    for (int64_t k = 0; k < length && !prn_cancelled_at(k); k++)
        work[k] = fourier_multiply((prn_complex){x[k].re, sign * x[k].im}, plan->chirp[k]);
    for (int64_t k = length; k < size && !prn_cancelled_at(k); k++) work[k] = (prn_complex){0.0, 0.0};
    radix_two(work, size, plan->roots, 1.0);
    for (int64_t k = 0; k < size && !prn_cancelled_at(k); k++) work[k] = fourier_multiply(work[k], plan->image[k]);
    radix_two(work, size, plan->roots, -1.0);
    for (int64_t k = 0; k < length && !prn_cancelled_at(k); k++) {
        x[k] = fourier_multiply(work[k], plan->chirp[k]);
        x[k].im *= sign;
    }
}

uint64_t prn_fourier_flops(int64_t length, bool real)
{
    uint64_t levels = 0;
    while ((INT64_C(1) << levels) < length) levels++;
    return 5 * (uint64_t)length * levels / (real ? 2 : 1);
}
