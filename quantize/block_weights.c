/* The scale of a block: by its largest weight, or with the least squared error among some candidates. */
#include "quantize/block_weights.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Candidates are the scale by the largest weight times 1 - i / 40: below 0.5 the weights that are cut off cost more than
 * finer steps gain, for normal and uniform weights of 16 to 256 a block. */
enum { CANDIDATES = 20, CANDIDATE_STEPS = 40 };

typedef struct block_choice {
    double error;
    float scale;
    uint8_t zero;
    uint8_t codes[PRN_LARGEST_WEIGHT_BLOCK];
} block_choice;

static float block_weights_round(const prn_block_format *format, double scale)
{
    if (format->scale_type != PRONY_FLOAT16) return (float)scale;
    const double bound = fmin(fmax(scale, -65504.0), 65504.0);
    return prn_f16_to_f32(prn_f32_to_f16((float)bound));
}

/* The nearest codes for a scale and a zero point, and their squared error. A scale of 0 stores zeros. */
static void block_weights_code(const prn_block_format *format, const float *weights, int64_t count, double scale,
                               int zero, block_choice *out)
{
    const int largest = (1 << format->bits) - 1;
    out->scale = block_weights_round(format, scale);
    out->zero = (uint8_t)zero;
    out->error = 0;
    const double step = (double)out->scale, inverse = step != 0 ? 1 / step : 0;
    for (int64_t k = 0; k < count; k++) {
        const double code = fmin(fmax(rint((double)weights[k] * inverse) + zero, 0), largest);
        const double error = (code - zero) * step - (double)weights[k];
        out->codes[k] = (uint8_t)code;
        out->error += error * error;
    }
}

/* The scale with the least squared error for given codes; 0: codes are all zero points. */
static double block_weights_fit(const float *weights, int64_t count, const block_choice *choice)
{
    double above = 0, below = 0;
    for (int64_t k = 0; k < count; k++) {
        const double code = (double)choice->codes[k] - choice->zero;
        above += code * (double)weights[k];
        below += code * code;
    }
    return below > 0 ? above / below : 0;
}

static void block_weights_try(const prn_block_format *format, const float *weights, int64_t count, double scale,
                              int zero, block_choice *best)
{
    block_choice choice;
    block_weights_code(format, weights, count, scale, zero, &choice);
    if (choice.error < best->error) *best = choice;
    const double fitted = block_weights_fit(weights, count, &choice);
    if (fitted == 0) return;
    block_weights_code(format, weights, count, fitted, zero, &choice);
    if (choice.error < best->error) *best = choice;
}

/* Without zero points the weight of the largest size has the code 0, the one that lies farthest from the zero point: so
 * scales have the sign opposite to that weight's. With zero points, the range from the least weight to the largest one
 * (0 included) has all codes. */
double prn_block_quantize(const prn_block_format *format, const float *weights, int64_t count, uint8_t *codes,
                          float *scale, uint8_t *zero)
{
    const int largest = (1 << format->bits) - 1, middle = 1 << (format->bits - 1);
    double low = 0, high = 0;
    for (int64_t k = 0; k < count; k++) {
        low = fmin(low, (double)weights[k]);
        high = fmax(high, (double)weights[k]);
    }
    double first = (high > -low ? high : low) / -middle;
    int at = middle;
    if (format->zero_points) {
        first = (high - low) / largest;
        at = first > 0 ? (int)fmin(fmax(rint(-low / first), 0), largest) : 0;
    }
    /* Below the least normal number the weights are as good as zeros, and 1 / scale is not finite. */
    if (fabs(first) < (double)FLT_MIN) first = 0;
    block_choice best;
    block_weights_code(format, weights, count, first, at, &best);
    for (int i = 0; i < CANDIDATES && format->search && first != 0; i++) {
        const double candidate = first * (1 - (double)i / CANDIDATE_STEPS);
        block_weights_try(format, weights, count, candidate, at, &best);
        if (!format->zero_points) {
            block_weights_try(format, weights, count, -candidate, at, &best);
            continue;
        }
        if (at > 0) block_weights_try(format, weights, count, candidate, at - 1, &best);
        if (at < largest) block_weights_try(format, weights, count, candidate, at + 1, &best);
    }
    memcpy(codes, best.codes, (size_t)count);
    *scale = best.scale;
    *zero = best.zero;
    return best.error;
}
