/* The error of a cache in fewer bits: logits beside those of a float32 cache, on the same tokens. */
#include "bench/generate/generate.h"

#include <math.h>
#include <string.h>

static int64_t most_probable(const float *logits, size_t count)
{
    size_t best = 0;
    for (size_t k = 1; k < count; k++)
        if (logits[k] > logits[best]) best = k;
    return (int64_t)best;
}

/* Adds the differences of one token's logits; *squares and *numbers are of all tokens. false: the decoders differ in
 * their vocabulary. */
static bool cache_error_add(const decoder *exact, const decoder *stored, cache_error *out, double *squares,
                            double *numbers, int64_t *id)
{
    size_t count, other;
    const float *a = prony_generator_logits(exact->generator, 0, &count),
                *b = prony_generator_logits(stored->generator, 0, &other);
    if (!a || !b || count != other || count == 0) return false;
    for (size_t k = 0; k < count; k++) {
        const double difference = fabs((double)a[k] - (double)b[k]);
        if (isnan(difference)) continue; /* infinite in both */
        if (difference > out->max) out->max = difference;
        *squares += difference * difference;
        *numbers += 1;
    }
    *id = most_probable(a, count);
    out->equal_ids += most_probable(b, count) == *id;
    out->tokens++;
    return true;
}

/* The first logits follow from a prompt that was computed at once, without the cache: they are not counted. */
static prony_status cache_error_run(const decoder *exact, const decoder *stored, const int64_t *ids, size_t count,
                                    int64_t tokens, cache_error *out, prony_error *error)
{
    double squares = 0, numbers = 0;
    cache_error ignored = {0};
    int64_t id = 0;
    prony_status status = prony_generator_prompt(exact->generator, ids, &count, error);
    if (status == PRONY_OK) status = prony_generator_prompt(stored->generator, ids, &count, error);
    if (status == PRONY_OK) (void)cache_error_add(exact, stored, &ignored, &squares, &numbers, &id);
    squares = numbers = 0;
    for (int64_t k = 0; k < tokens && status == PRONY_OK; k++) {
        const size_t one = 1;
        status = prony_generator_prompt(exact->generator, &id, &one, error);
        if (status == PRONY_OK) status = prony_generator_prompt(stored->generator, &id, &one, error);
        if (status == PRONY_OK && !cache_error_add(exact, stored, out, &squares, &numbers, &id)) break;
    }
    out->rms = numbers > 0 ? sqrt(squares / numbers) : 0;
    out->equal_ids = out->tokens ? out->equal_ids / (double)out->tokens : 0;
    return status;
}

int cache_error_measure(const options *o, prony_model *model, const int64_t *ids, size_t count, int64_t tokens,
                        cache_error *out)
{
    prony_error error = {0};
    decoder exact = {0}, stored = {0};
    options plain = *o;
    *out = (cache_error){0};
    if (!o->generate.cache_type || strcmp(o->generate.cache_type, "fp32") == 0) return EXIT_DONE;
    plain.generate.cache_type = NULL;
    int code = decoder_open(&plain, model, 1, (int64_t)count + tokens, false, &exact);
    if (code == EXIT_DONE) code = decoder_open(o, model, 1, (int64_t)count + tokens, false, &stored);
    if (code == EXIT_DONE && cache_error_run(&exact, &stored, ids, count, tokens, out, &error) != PRONY_OK)
        code = report_error(o, &error);
    decoder_close(&stored);
    decoder_close(&exact);
    return code;
}
