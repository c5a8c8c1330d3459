/* prony run --generate: the new ids of every sequence, one line each. */
#include "bench/generate/generate.h"
#include "bench/options/option_table.h"
#include "bench/process/interrupt.h"
#include "bench/terminal/json_file.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_NEW = 128, DEFAULT_PROMPT = 1 };

typedef struct generated {
    int64_t *ids;    /* [sequences, new tokens] */
    size_t *lengths; /* [sequences] ids up to the stop id */
    int64_t *stops;
    size_t stop_count;
    size_t sequences, count;
    bool done;
} generated;

/* Ids up to the first stop id, which is repeated behind it. */
static size_t generated_length(const generated *g, const int64_t *ids)
{
    for (size_t k = 0; k < g->count; k++)
        for (size_t s = 0; s < g->stop_count; s++)
            if (ids[k] == g->stops[s]) return k + 1;
    return g->count;
}

static int generate_all(const options *o, decoder *d, const prompt *p, size_t wanted, generated *out)
{
    prony_error error = {0};
    int64_t *next = calloc(p->sequences, sizeof *next);
    out->ids = calloc(p->sequences * wanted, sizeof *out->ids);
    out->lengths = calloc(p->sequences, sizeof *out->lengths);
    out->sequences = p->sequences;
    int code = next && out->ids && out->lengths ? EXIT_DONE : fail(o, "out of memory");
    if (code == EXIT_DONE && o->generate.stop_ids)
        code = ids_parse(o, "stop-ids", o->generate.stop_ids, &out->stops, &out->stop_count);
    if (code == EXIT_DONE && prony_generator_prompt(d->generator, p->ids, p->lengths, &error) != PRONY_OK)
        code = report_error(o, &error);
    while (code == EXIT_DONE && out->count < wanted && !out->done) {
        if (prony_generator_next(d->generator, next, &out->done, &error) != PRONY_OK) {
            code = report_error(o, &error);
            break;
        }
        for (size_t b = 0; b < p->sequences; b++) out->ids[b * wanted + out->count] = next[b];
        out->count++;
    }
    for (size_t b = 0; code == EXIT_DONE && b < p->sequences; b++)
        out->lengths[b] = generated_length(out, out->ids + b * wanted);
    free(next);
    return code;
}

static void generated_print(FILE *to, const int64_t *ids, size_t count, const char *between)
{
    for (size_t k = 0; k < count; k++) fprintf(to, "%s%lld", k ? between : "", (long long)ids[k]);
}

static int write_ids_json(const options *o, const generated *g, size_t wanted)
{
    json_file file = {0};
    int code = json_open(&file, o);
    if (code != EXIT_DONE || !file.stream) return code;
    json_begin(file.stream, "prony.generated/1");
    fputs(",\n  \"ids\": [", file.stream);
    for (size_t b = 0; b < g->sequences; b++) {
        fputs(b ? ",\n    [" : "\n    [", file.stream);
        generated_print(file.stream, g->ids + b * wanted, g->lengths[b], ", ");
        fputs("]", file.stream);
    }
    fprintf(file.stream, "\n  ],\n  \"stopped\": %s\n}\n", g->done ? "true" : "false");
    return json_close(&file, o, code);
}

/* Refuses sizes that are not those of the prompt, and files of outputs, which stay in the generator. */
static int check_generate_options(const options *o, const prompt *p)
{
    if (o->files.output_dir)
        return usage(o, "--output-dir does not go with --generate: the new ids go to stdout and to --json F");
    if (o->model.batch && (size_t)o->model.batch != p->sequences)
        return usage(o, "-b %lld differs from the sequences of --prompt-ids: %zu; ';' begins the next one",
                     (long long)o->model.batch, p->sequences);
    if (o->generate.prompt && (size_t)o->generate.prompt != p->longest)
        return usage(o, "--generate prompt=%lld differs from the %zu ids of --prompt-ids",
                     (long long)o->generate.prompt, p->longest);
    return EXIT_DONE;
}

/* Generates for all sequences, then prints a line of ids for each. */
int command_run_generate(const options *o)
{
    prony_error error = {0};
    prony_model *model = NULL;
    decoder d = {0};
    prompt p = {0};
    generated g = {0};
    const size_t wanted = (size_t)(o->generate.new_tokens ? o->generate.new_tokens : DEFAULT_NEW);
    const bool json_stdout = o->files.json && strcmp(o->files.json, "-") == 0;
    if (!o->generate.prompt_ids) return usage(o, "run --generate needs --prompt-ids, such as --prompt-ids 1,2,3");
    int code = prompt_read(o, &p);
    if (code == EXIT_DONE) code = check_generate_options(o, &p);
    if (code == EXIT_DONE && load_model(o, &model, o->arguments[0], &error) != PRONY_OK) code = report_error(o, &error);
    if (code == EXIT_DONE) code = quantize_in_place(o, &model);
    if (code == EXIT_DONE)
        code = decoder_open(o, model, (int64_t)p.sequences, (int64_t)(p.longest + wanted), false, &d);
    if (code == EXIT_DONE) code = generate_all(o, &d, &p, wanted, &g);
    if (code == EXIT_DONE && !json_stdout) {
        for (size_t b = 0; b < g.sequences; b++) {
            generated_print(stdout, g.ids + b * wanted, g.lengths[b], ",");
            putchar('\n');
        }
    }
    if (code == EXIT_DONE) code = write_ids_json(o, &g, wanted);
    free(g.ids);
    free(g.lengths);
    free(g.stops);
    prompt_free(&p);
    decoder_close(&d);
    prony_model_release(model);
    return code;
}
