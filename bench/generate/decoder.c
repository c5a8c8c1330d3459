/* A session with a generator, from the command line's options. */
#include "bench/generate/generate.h"
#include "bench/options/option_table.h"
#include "bench/process/interrupt.h"
#include "bench/session/inputs.h"

#include <stdlib.h>
#include <string.h>

/* ---- inputs that the generator does not feed ---- */

static bool decoder_is_set(const prony_model *model, const prony_session *session, const char *name)
{
    for (size_t i = 0; i < prony_model_input_count(model); i++)
        if (strcmp(prony_model_input(model, i)->name, name) == 0) return prony_session_input_value(session, i) != NULL;
    return false;
}

/* true: a cache without an output that is fed back to it. */
static bool decoder_is_lone_cache(const prony_value_info *input)
{
    return strstr(input->name, "past") && input->shape.rank > 1 && !strstr(input->name, "encoder") &&
           !strstr(input->name, "cross");
}

/* true: an input that counts tokens, so that a generated value changes the ids; an encoder's length does not. */
static bool decoder_counts_tokens(const prony_value_info *input)
{
    const bool whole = input->dtype == PRONY_INT64 || input->dtype == PRONY_INT32;
    return whole && input->shape.rank <= 1 && strstr(input->name, "len") && !strstr(input->name, "encoder") &&
           !strstr(input->name, "cross");
}

/* Fills an input that has neither a role nor -i: random floats, or ones. An input that looks like a cache or counts
 * tokens is refused: invented data there would change the work of a step. */
static int decoder_fill_input(const options *o, decoder *d, const char *name, int64_t batch)
{
    prony_error error = {0};
    prony_value_info input;
    prony_value *value = NULL;
    prony_status status = prony_session_input(d->session, name, &input, &error);
    if (status != PRONY_OK) return report_error(o, &error);
    if (decoder_is_lone_cache(&input))
        return fail(
            o,
            "input '%s' looks like a cache, but no output is known for it: name both by --cache '%s=OUTPUT', or "
            "give the input by -i",
            name, name);
    if (decoder_counts_tokens(&input))
        return fail(o,
                    "input '%s' counts tokens before or behind a run: give its role by --roles past_length=%s or "
                    "total=%s, or the input by -i",
                    name, name, name);
    if (input.shape.rank > 0 && input.shape.dim[0] < 0) input.shape.dim[0] = batch;
    for (int k = 0; k < input.shape.rank; k++)
        if (input.shape.dim[k] < 0)
            return fail(
                o, "input '%s': dimension %s is free: set it by --dim, or give the input by -i, or its role by --roles",
                name, input.dim_names[k] ? input.dim_names[k] : "of the input");
    const bool floats = input.dtype == PRONY_FLOAT32 || input.dtype == PRONY_FLOAT16 || input.dtype == PRONY_FLOAT64 ||
                        input.dtype == PRONY_BFLOAT16;
    status = prony_value_parse(&value, floats ? "uniform:-0.5:0.5" : "ones", input.dtype, &input.shape, o->model.seed,
                               &error);
    if (status == PRONY_OK) status = prony_session_set_input(d->session, name, value, &error);
    prony_value_release(value);
    return status == PRONY_OK ? EXIT_DONE : report_error(o, &error);
}

static int decoder_fill_inputs(const options *o, const prony_model *model, int64_t batch, decoder *d)
{
    int code = bind_given_inputs(o, model, d->session);
    for (size_t i = 0; i < prony_model_input_count(model) && code == EXIT_DONE; i++) {
        const char *name = prony_generator_unfed_input(d->generator, i);
        if (name && !decoder_is_set(model, d->session, name)) code = decoder_fill_input(o, d, name, batch);
    }
    return code;
}

/* ---- --dim ---- */

/* The axis of a fed input that a symbol names; -1: none. */
static int decoder_axis_of(const prony_value_info *input, const char *symbol)
{
    for (int d = 0; d < input->shape.rank; d++)
        if (input->shape.dim[d] < 0 && input->dim_names[d] && strcmp(input->dim_names[d], symbol) == 0) return d;
    return -1;
}

static int decoder_refuse_batch(const options *o, const prony_dim *dim, int64_t batch)
{
    return usage(o, "--dim %s=%lld differs from the %lld sequence%s to generate: %s", dim->name, (long long)dim->value,
                 (long long)batch, batch == 1 ? "" : "s",
                 strcmp(o->command, "run") == 0 ? "--prompt-ids gives them, ';' begins the next one"
                                                : "-b sets their number");
}

/* The same before there is a generator, which would refuse the caches of such a batch: rows of integers are ids, masks
 * and positions. */
static int decoder_check_batch(const options *o, const prony_model *model, int64_t batch)
{
    for (size_t k = 0; k < o->model.dim_count; k++)
        for (size_t i = 0; i < prony_model_input_count(model); i++) {
            const prony_value_info *input = prony_model_input(model, i);
            const bool integers = input->dtype == PRONY_INT64 || input->dtype == PRONY_INT32;
            if (integers && input->shape.rank == 2 && decoder_axis_of(input, o->model.dims[k].name) == 0 &&
                o->model.dims[k].value != batch)
                return decoder_refuse_batch(o, &o->model.dims[k], batch);
        }
    return EXIT_DONE;
}

/* Refuses --dim of dimensions that the generator sets to another number: the batch, and lengths, which grow. */
static int decoder_check_dims(const options *o, const prony_model *model, int64_t batch, const decoder *d)
{
    for (size_t k = 0; k < o->model.dim_count; k++) {
        const prony_dim *dim = &o->model.dims[k];
        for (size_t i = 0; i < prony_model_input_count(model); i++) {
            const prony_value_info *input = prony_model_input(model, i);
            prony_generator_feed feed;
            const int axis = decoder_axis_of(input, dim->name);
            if (axis < 0 || !prony_generator_input(d->generator, i, &feed) || !feed.role) continue;
            const bool is_batch = axis == (strcmp(feed.role, "cache") == 0 && input->shape.rank == 5 ? 1 : 0);
            if (is_batch && dim->value == batch) continue;
            if (is_batch) return decoder_refuse_batch(o, dim, batch);
            return usage(o, "--dim %s=%lld: --generate sets this dimension of '%s' itself", dim->name,
                         (long long)dim->value, input->name);
        }
    }
    return EXIT_DONE;
}

/* ---- names ---- */

/* Cuts --roles in a copy, which *text owns. */
static int decoder_take_roles(const options *o, prony_generator_options *g, char **text)
{
    static const char *const names[] = {"ids",  "mask",   "positions",   "types", "lengths",  "total",
                                        "keys", "starts", "past_length", "rows",  "use_cache"};
    enum { NAMES = sizeof names / sizeof *names };
    if (!o->generate.roles) return EXIT_DONE;
    prony_input_role *roles = calloc(strlen(o->generate.roles) + 1, sizeof *roles); /* commas are fewer */
    if (!roles) return fail(o, "out of memory");
    g->roles = roles;
    *text = strdup(o->generate.roles);
    if (!*text) return fail(o, "out of memory");
    for (char *item = *text, *next; item; item = next) {
        next = strchr(item, ',');
        if (next) *next++ = '\0';
        const char *value = cut_name(item);
        size_t k = 0;
        while (k < NAMES && strcmp(names[k], item) != 0) k++;
        const bool logits = strcmp(item, "logits") == 0;
        if (!value || (k == NAMES && !logits))
            return usage(o,
                         "--roles needs ids=NAME,mask=NAME,positions=NAME,logits=NAME (or types, lengths, total, keys, "
                         "starts, past_length, rows, use_cache), got '%s'",
                         o->generate.roles);
        if (logits)
            g->logits = value;
        else
            roles[g->role_count++] = (prony_input_role){names[k], value};
    }
    return EXIT_DONE;
}

/* Cuts each --cache in a copy; the array owns them, in `past`. */
static int decoder_take_caches(const options *o, prony_generator_options *g)
{
    if (!o->generate.cache_count) return EXIT_DONE;
    prony_cache_names *caches = calloc(o->generate.cache_count, sizeof *caches);
    if (!caches) return fail(o, "out of memory");
    g->caches = caches;
    for (size_t k = 0; k < o->generate.cache_count; k++) {
        char *past = strdup(o->generate.caches[k]);
        if (!past) return fail(o, "out of memory");
        caches[k].past = past;
        g->cache_count++;
        caches[k].present = cut_name(past);
        if (!caches[k].present) return usage(o, "--cache needs PAST=PRESENT, got '%s'", o->generate.caches[k]);
    }
    return EXIT_DONE;
}

static void decoder_free_names(prony_generator_options *g, char *roles)
{
    for (size_t k = 0; k < g->cache_count; k++) free((char *)(uintptr_t)g->caches[k].past);
    free((void *)(uintptr_t)g->caches);
    free((void *)(uintptr_t)g->roles);
    free(roles);
}

static prony_cache_type decoder_cache_type(const options *o)
{
    const char *name = o->generate.cache_type;
    if (!name) return PRONY_CACHE_FP32;
    return strcmp(name, "fp16") == 0   ? PRONY_CACHE_FP16
           : strcmp(name, "int8") == 0 ? PRONY_CACHE_INT8
                                       : PRONY_CACHE_FP32;
}

/* The names in `g` are needed until the generator exists; what was made stays in *out for decoder_close. */
int decoder_open(const options *o, prony_model *model, int64_t batch, int64_t length, bool profile, decoder *out)
{
    prony_error error = {0};
    prony_generator_options g = PRONY_GENERATOR_OPTIONS_INIT;
    const generate_options *from = &o->generate;
    char *roles = NULL;
    int64_t *stops = NULL;
    g.batch = batch;
    g.chunk = from->chunk;
    g.cache_type = decoder_cache_type(o);
    g.max_length = from->max_length ? from->max_length : length;
    g.sampling = (prony_sampling){.temperature = from->temperature,
                                  .top_k = from->top_k,
                                  .top_p = from->top_p,
                                  .min_p = from->min_p,
                                  .repetition_penalty = from->repetition_penalty,
                                  .seed = o->model.seed};
    int code = decoder_take_roles(o, &g, &roles);
    if (code == EXIT_DONE) code = decoder_take_caches(o, &g);
    if (code == EXIT_DONE && from->stop_ids) code = ids_parse(o, "stop-ids", from->stop_ids, &stops, &g.stop_count);
    g.stop_ids = stops;
    if (code == EXIT_DONE) code = decoder_check_batch(o, model, batch);
    if (code == EXIT_DONE) code = make_bare_session(o, model, &out->session, profile);
    if (code == EXIT_DONE && prony_generator_create(&out->generator, out->session, &g, &error) != PRONY_OK)
        code = report_error(o, &error);
    if (code == EXIT_DONE) code = decoder_check_dims(o, model, batch, out);
    if (code == EXIT_DONE) code = decoder_fill_inputs(o, model, batch, out);
    decoder_free_names(&g, roles);
    free(stops);
    return code;
}

void decoder_close(decoder *d)
{
    prony_generator_release(d->generator);
    session_release(d->session);
    *d = (decoder){0};
}
