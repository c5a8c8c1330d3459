/* The scale of a block: by its largest weight, or with the least squared error among some candidates. The squares may
 * be weighed by the mean square of the activation that each weight meets. */
#include "quantize/block_weights.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Candidates are the scale by the largest weight times 1 - i / 40: below 0.5 the weights that are cut off cost more
 * than finer steps gain, for normal and uniform weights of 16 to 256 a block. If weights count differently, cutting off
 * a large one that hardly counts may pay at any scale. */
enum { CANDIDATES = 20, WEIGHTED_CANDIDATES = 39, CANDIDATE_STEPS = 40 };

/* The least and the largest positive half. */
#define LEAST_HALF 0x1p-24
#define MOST_HALF 65504.0

typedef struct block_problem {
    const prn_block_format *format;
    const float *weights;
    const double *importance; /* NULL: all count alike */
    int64_t count;
} block_problem;

typedef struct block_choice {
    double error; /* weighted */
    float scale;
    uint8_t zero;
    uint8_t codes[PRN_LARGEST_WEIGHT_BLOCK];
} block_choice;

/* The scale as it is stored. A scale that is not 0 stays so: its least size keeps all of these weights, since they are
 * multiples of it (or nearly, if they were cast to fewer bits). */
static float block_weights_round(const prn_block_format *format, double scale)
{
    const bool half = format->scale_type == PRONY_FLOAT16;
    const double least = half ? LEAST_HALF : (double)FLT_TRUE_MIN, most = half ? MOST_HALF : (double)FLT_MAX;
    const double size = fmin(fmax(fabs(scale), least), most);
    const float bounded = (float)copysign(scale != 0 ? size : 0, scale);
    return half ? prn_f16_to_f32(prn_f32_to_f16(bounded)) : bounded;
}

static double block_weights_counts(const block_problem *p, int64_t k)
{
    return p->importance ? p->importance[k] : 1;
}

/* The nearest codes for a scale and a zero point, and their squared error. A scale of 0 stores zeros. */
static void block_weights_code(const block_problem *p, double scale, int zero, block_choice *out)
{
    const int largest = (1 << p->format->bits) - 1;
    out->scale = block_weights_round(p->format, scale);
    out->zero = (uint8_t)zero;
    out->error = 0;
    const double step = (double)out->scale, inverse = step != 0 ? 1 / step : 0;
    for (int64_t k = 0; k < p->count; k++) {
        const double code = fmin(fmax(rint((double)p->weights[k] * inverse) + zero, 0), largest);
        const double error = (code - zero) * step - (double)p->weights[k];
        out->codes[k] = (uint8_t)code;
        out->error += error * error * block_weights_counts(p, k);
    }
}

/* The scale with the least squared error for given codes; 0: codes are all zero points. */
static double block_weights_fit(const block_problem *p, const block_choice *choice)
{
    double above = 0, below = 0;
    for (int64_t k = 0; k < p->count; k++) {
        const double code = (double)choice->codes[k] - choice->zero, counts = block_weights_counts(p, k);
        above += code * (double)p->weights[k] * counts;
        below += code * code * counts;
    }
    return below > 0 ? above / below : 0;
}

static void block_weights_try(const block_problem *p, double scale, int zero, block_choice *best)
{
    block_choice choice;
    block_weights_code(p, scale, zero, &choice);
    if (choice.error < best->error) *best = choice;
    const double fitted = block_weights_fit(p, &choice);
    if (fitted == 0) return;
    block_weights_code(p, fitted, zero, &choice);
    if (choice.error < best->error) *best = choice;
}

/* Tries scales below `first`, and with zero points the two beside `at`. */
static void block_weights_search(const block_problem *p, double first, int at, block_choice *best)
{
    const int largest = (1 << p->format->bits) - 1, candidates = p->importance ? WEIGHTED_CANDIDATES : CANDIDATES;
    for (int i = 0; i < candidates; i++) {
        const double candidate = first * (1 - (double)i / CANDIDATE_STEPS);
        block_weights_try(p, candidate, at, best);
        if (!p->format->zero_points) {
            block_weights_try(p, -candidate, at, best);
            continue;
        }
        if (at > 0) block_weights_try(p, candidate, at - 1, best);
        if (at < largest) block_weights_try(p, candidate, at + 1, best);
    }
}

/* true: the importance tells weights of the block apart, or at least counts one. */
static bool block_weights_any_counts(const float *weights, const double *importance, int64_t count)
{
    for (int64_t k = 0; importance && k < count; k++)
        if (importance[k] > 0 && weights[k] != 0.0f) return true;
    return false;
}

/* Without zero points the weight of the largest size has the code 0, the one that lies farthest from the zero point: so
 * scales have the sign opposite to that weight's. With zero points, the range from the least weight to the largest one
 * (0 included) has all codes. */
prn_block_errors prn_block_quantize(const prn_block_format *format, const float *weights, const double *importance,
                                    int64_t count, uint8_t *codes, float *scale, uint8_t *zero)
{
    const int largest = (1 << format->bits) - 1, middle = 1 << (format->bits - 1);
    const bool counts = block_weights_any_counts(weights, importance, count);
    const block_problem p = {format, weights, counts ? importance : NULL, count};
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
    const block_problem alike = {format, weights, NULL, count};
    block_choice best;
    block_weights_code(&alike, first, at, &best);
    if (format->search && first != 0) block_weights_search(&alike, first, at, &best);
    if (p.importance) { /* from the scale of least plain error on, so that the weighted one is never larger */
        block_weights_code(&p, (double)best.scale, best.zero, &best);
        if (format->search && first != 0) block_weights_search(&p, first, at, &best);
    }
    memcpy(codes, best.codes, (size_t)count);
    *scale = best.scale;
    *zero = best.zero;
    prn_block_errors errors = {0};
    for (int64_t k = 0; k < count; k++) {
        const double error = ((double)best.codes[k] - best.zero) * (double)best.scale - (double)weights[k];
        errors.plain += error * error;
        errors.weighted += error * error * (importance ? importance[k] : 1);
    }
    return errors;
}
