/* prony eval MODEL --token-ids F: perplexity of given tokens, for each precision and type of cache.
 *
 * The tokens are cut into windows of --max-length tokens. Each window's tokens are fed one by one, as steps of a
 * generator are, so that the cache takes part; each token but a window's first is predicted from those before it.
 * Perplexity is exp of the mean of -ln p(token). */
#include "bench/generate/generate.h"
#include "bench/options/option_table.h"
#include "bench/process/interrupt.h"
#include "bench/session/document.h"
#include "bench/terminal/json_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_WINDOW = 512, MOST_LINES = 256 };

typedef struct perplexity_line {
    const char *precision, *cache;
    int64_t tokens; /* predicted */
    double loss;    /* mean of -ln p */
} perplexity_line;

/* -ln of the softmax's entry `id`. */
static double perplexity_loss_of(const float *logits, size_t count, int64_t id)
{
    double most = -INFINITY, sum = 0;
    for (size_t k = 0; k < count; k++) most = fmax(most, (double)logits[k]);
    for (size_t k = 0; k < count; k++) sum += exp((double)logits[k] - most);
    return log(sum) + most - (double)logits[id];
}

/* Adds the losses of a window's tokens; the generator is empty. */
static int perplexity_window(const options *o, const decoder *d, const int64_t *ids, size_t count, double *loss,
                             int64_t *tokens)
{
    prony_error error = {0};
    for (size_t k = 0; k < count; k++) {
        const size_t one = 1;
        if (k > 0) {
            size_t vocabulary;
            const float *logits = prony_generator_logits(d->generator, 0, &vocabulary);
            if (ids[k] < 0 || (size_t)ids[k] >= vocabulary)
                return fail(o, "--token-ids: id %lld is not in the vocabulary of %zu", (long long)ids[k], vocabulary);
            *loss += perplexity_loss_of(logits, vocabulary, ids[k]);
            ++*tokens;
        }
        if (k + 1 < count && prony_generator_prompt(d->generator, &ids[k], &one, &error) != PRONY_OK)
            return report_error(o, &error);
        if (interrupted()) return EXIT_FAILED;
    }
    return prony_generator_rewind(d->generator, 0, &error) == PRONY_OK ? EXIT_DONE : report_error(o, &error);
}

int64_t window_length(const options *o, const decoder *d, size_t longest)
{
    prony_generator_info info;
    prony_generator_get_info(d->generator, &info);
    int64_t length = o->generate.max_length ? o->generate.max_length : DEFAULT_WINDOW;
    if (length > info.max_length) length = info.max_length;
    return length > (int64_t)longest ? (int64_t)longest : length;
}

/* Measures one line; *window receives the length of the windows. */
static int perplexity_measure(const options *o, const prompt *p, perplexity_line *line, int64_t *window)
{
    prony_error error = {0};
    prony_model *model = NULL;
    decoder d = {0};
    options one = *o;
    double loss = 0;
    one.precision.name = line->precision;
    one.generate.cache_type = line->cache;
    int code = load_model(&one, &model, o->arguments[0], &error) == PRONY_OK ? EXIT_DONE : report_error(o, &error);
    if (code == EXIT_DONE) code = quantize_in_place(&one, &model);
    if (code == EXIT_DONE) code = decoder_open(&one, model, 1, o->generate.max_length, false, &d);
    if (code == EXIT_DONE) *window = window_length(o, &d, p->longest);
    const int64_t *ids = p->ids;
    for (size_t b = 0; b < p->sequences && code == EXIT_DONE; b++) {
        for (size_t at = 0; at < p->lengths[b] && code == EXIT_DONE; at += (size_t)*window) {
            const size_t rest = p->lengths[b] - at;
            code = perplexity_window(o, &d, ids + at, rest < (size_t)*window ? rest : (size_t)*window, &loss,
                                     &line->tokens);
        }
        ids += p->lengths[b];
    }
    line->loss = line->tokens ? loss / (double)line->tokens : 0;
    decoder_close(&d);
    prony_model_release(model);
    return code;
}

static void perplexity_print(const options *o, const perplexity_line *lines, size_t count, int64_t window)
{
    put_text(stdout, o->arguments[0]);
    printf(": %lld tokens in windows of %lld\n\n%-14s %8s %11s %9s\n", (long long)lines[0].tokens, (long long)window,
           "precision", "kv cache", "perplexity", "change");
    for (size_t i = 0; i < count; i++) {
        const double change = exp(lines[i].loss - lines[0].loss) - 1;
        printf("%-14s %8s %11.6g", lines[i].precision ? lines[i].precision : "fp32", lines[i].cache,
               exp(lines[i].loss));
        if (i) printf(" %+8.3f%%", 100 * change);
        putchar('\n');
    }
}

/* The document of --json: docs/schemas/perplexity.schema.json. */
static int perplexity_write(const options *o, const perplexity_line *lines, size_t count, int64_t window)
{
    document json;
    int code = document_open(&json, o);
    if (code != EXIT_DONE || !json.stream) return code;
    json_begin(json.stream, "prony.perplexity/1");
    fputs(",\n  \"model\": ", json.stream);
    json_text(json.stream, o->arguments[0]);
    fprintf(json.stream, ",\n  \"window\": %lld,\n  \"results\": [", (long long)window);
    for (size_t i = 0; i < count; i++) {
        fprintf(json.stream, "%s\n    {\"precision\": ", i ? "," : "");
        json_text(json.stream, lines[i].precision ? lines[i].precision : "fp32");
        fprintf(json.stream,
                ", \"kv_cache\": \"%s\", \"tokens\": %lld, \"loss\": %.17g, \"perplexity\": %.17g, \"change\": %.17g}",
                lines[i].cache, (long long)lines[i].tokens, lines[i].loss, exp(lines[i].loss),
                exp(lines[i].loss - lines[0].loss) - 1);
    }
    fputs("\n  ]\n}\n", json.stream);
    return document_close(&json, o, code);
}

/* Lines: each precision with a float32 cache, then with that of --kv-cache. */
int command_eval_tokens(const options *o)
{
    prompt p = {0};
    perplexity_line *lines = calloc(MOST_LINES, sizeof *lines);
    size_t count = 0;
    int64_t window = 0;
    const bool other = o->generate.cache_type && strcmp(o->generate.cache_type, "fp32") != 0;
    const size_t precisions = o->precision.count ? o->precision.count : 1;
    if (!lines) return fail(o, "out of memory");
    for (size_t i = 0; i < precisions && count + 2 <= MOST_LINES; i++) {
        const char *name = o->precision.count ? o->precision.names[i] : o->precision.name;
        lines[count++] = (perplexity_line){.precision = name, .cache = "fp32"};
        if (other) lines[count++] = (perplexity_line){.precision = name, .cache = o->generate.cache_type};
    }
    int code = prompt_parse(o, "token-ids", o->generate.token_ids, &p);
    if (code == EXIT_DONE && p.longest < 2) code = usage(o, "--token-ids needs a sequence of two ids or more");
    for (size_t i = 0; i < count && code == EXIT_DONE; i++) code = perplexity_measure(o, &p, &lines[i], &window);
    if (code == EXIT_DONE && !o->terminal.quiet && !stdout_taken(o)) perplexity_print(o, lines, count, window);
    if (code == EXIT_DONE) code = perplexity_write(o, lines, count, window);
    prompt_free(&p);
    free(lines);
    return code;
}
