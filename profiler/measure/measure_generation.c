/* prony_generation_measure: prompts and steps of a generator, repeated; then reports of one prompt and of one step.
 *
 * A step is one call of prony_generator_next that computes a token, from entry to return: feeding, the run, the choice.
 * The first such call after a prompt only chooses, and belongs to the time to the first token. */
#include "base/memory/alloc.h"
#include "base/option_struct.h"
#include "base/os/clock.h"
#include "engine/generate/generator.h"
#include "profiler/measure/machine_peaks.h"
#include "profiler/report/report.h"
#include "profiler/statistics/statistics.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_PROMPT = 512, DEFAULT_NEW = 128, FEWEST_REPETITIONS = 3, MOST_REPETITIONS = 1000 };
#define DEFAULT_GENERATION_SECONDS 5.0
#define DEFAULT_REPORT_SECONDS 1.0
#define PRECISE_ENOUGH 0.01

typedef struct generation_run {
    prony_generator *g;
    prony_generation_options options;
    int64_t *ids;                               /* [batch, prompt_tokens] */
    size_t *lengths;                            /* [batch] */
    int64_t *next;                              /* [batch] */
    int64_t *first_ns, *prefill_ns, *decode_ns; /* [capacity] by repetition; decode_ns: sum of the steps */
    int64_t *step_ns;                           /* [capacity, new_tokens - 1] */
    size_t count, capacity;
} generation_run;

static prony_status generation_prepare(generation_run *r, prony_error *error)
{
    const prony_generation_options *o = &r->options;
    const size_t batch = (size_t)r->g->batch, tokens = (size_t)o->prompt_tokens;
    if (o->prompt_tokens + o->new_tokens > r->g->max_length)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "%s: %lld prompt tokens and %lld new ones exceed max_length %lld",
                        r->g->file, (long long)o->prompt_tokens, (long long)o->new_tokens, (long long)r->g->max_length);
    r->ids = prn_calloc(batch * tokens, sizeof *r->ids);
    r->lengths = prn_calloc(batch, sizeof *r->lengths);
    r->next = prn_calloc(batch, sizeof *r->next);
    if (!r->ids || !r->lengths || !r->next) return prn_no_memory(error);
    uint64_t state = o->seed;
    const size_t bound = r->g->limits.vocabulary ? (size_t)r->g->limits.vocabulary : 1;
    for (size_t k = 0; k < batch * tokens; k++)
        r->ids[k] = o->prompt_ids ? o->prompt_ids[k % tokens] : (int64_t)prn_random_below(&state, bound);
    for (size_t b = 0; b < batch; b++) r->lengths[b] = tokens;
    return PRONY_OK;
}

static prony_status generation_reserve(generation_run *r, prony_error *error)
{
    const size_t steps = (size_t)r->options.new_tokens, want = r->count + 1;
    if (want <= r->capacity) return PRONY_OK;
    const size_t room = 2 * want;
    int64_t **lists[] = {&r->first_ns, &r->prefill_ns, &r->decode_ns, &r->step_ns};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        int64_t *grown = prn_realloc(*lists[k], room, sizeof *grown * (k == 3 ? steps : 1));
        if (!grown) return prn_no_memory(error);
        *lists[k] = grown;
    }
    r->capacity = room;
    return PRONY_OK;
}

/* One repetition, into row `count` of the times. */
static prony_status generation_repeat(generation_run *r, prony_error *error)
{
    const size_t steps = (size_t)r->options.new_tokens - 1;
    PRN_TRY(generation_reserve(r, error));
    PRN_TRY(prony_generator_rewind(r->g, 0, error));
    const int64_t start = prn_now_ns();
    PRN_TRY(prony_generator_prompt(r->g, r->ids, r->lengths, error));
    r->prefill_ns[r->count] = prn_now_ns() - start;
    PRN_TRY(prony_generator_next(r->g, r->next, NULL, error));
    int64_t last = prn_now_ns();
    r->first_ns[r->count] = last - start;
    r->decode_ns[r->count] = 0;
    for (size_t k = 0; k < steps; k++) {
        PRN_TRY(prony_generator_next(r->g, r->next, NULL, error));
        const int64_t now = prn_now_ns();
        r->step_ns[r->count * steps + k] = now - last;
        r->decode_ns[r->count] += now - last;
        last = now;
    }
    return PRONY_OK;
}

/* Half the width of the interval of the median, over the median; 1: too few repetitions. */
static double generation_error(const int64_t *times, size_t count, prony_error *error)
{
    prony_time_stats stats;
    if (count < FEWEST_REPETITIONS || prn_stats_compute(&stats, times, count, true, error) != PRONY_OK) return 1;
    const double width = (double)(stats.median_ci95_ns[1] - stats.median_ci95_ns[0]) / 2;
    return stats.median_ns > 0 ? width / (double)stats.median_ns : 0;
}

static prony_status generation_loop(generation_run *r, prony_error *error)
{
    const prony_generation_options *o = &r->options;
    const double seconds = o->max_seconds > 0 ? o->max_seconds : DEFAULT_GENERATION_SECONDS;
    const int64_t begin = prn_now_ns();
    for (int64_t k = 0; k < o->warmup; k++) PRN_TRY(generation_repeat(r, error));
    for (;;) {
        PRN_TRY(generation_repeat(r, error));
        r->count++;
        const double spent = (double)(prn_now_ns() - begin) / 1e9;
        const double wrong = generation_error(o->new_tokens > 1 ? r->decode_ns : r->prefill_ns, r->count, error);
        if (o->progress) o->progress(o->progress_user, (int64_t)r->count, spent, wrong);
        if (o->repetitions > 0 ? (int64_t)r->count >= o->repetitions
                               : wrong <= PRECISE_ENOUGH || spent >= seconds || r->count >= MOST_REPETITIONS)
            return PRONY_OK;
        if (o->max_seconds > 0 && spent >= seconds) return PRONY_OK;
    }
}

/* ---- results ---- */

/* Tokens a second from a median and its interval; the longer the time, the lower the rate. */
static void generation_rate(const prony_time_stats *stats, double tokens, double *rate, double ci95[2])
{
    *rate = stats->median_ns > 0 ? tokens * 1e9 / (double)stats->median_ns : 0;
    ci95[0] = stats->median_ci95_ns[1] > 0 ? tokens * 1e9 / (double)stats->median_ci95_ns[1] : *rate;
    ci95[1] = stats->median_ci95_ns[0] > 0 ? tokens * 1e9 / (double)stats->median_ci95_ns[0] : *rate;
}

/* Theil's slope: the median over pairs of steps that lie half of the run apart. The first steps, whose weights the
 * prompt has displaced from the caches, do not move it, as they would a least-squares line. `values`: room for count /
 * 2. */
static double generation_slope(const int64_t *times, size_t count, double *values)
{
    const size_t pairs = count / 2, apart = count - pairs;
    for (size_t k = 0; k < pairs; k++) values[k] = (double)(times[k + apart] - times[k]) / (double)apart;
    return pairs ? prn_median(values, pairs) : 0;
}

static prony_status generation_positions(const generation_run *r, prony_report *report, prony_error *error)
{
    prony_generation *out = &report->generation;
    const size_t steps = (size_t)r->options.new_tokens - 1;
    int64_t *median = prn_bump_alloc(&report->pool, steps + 1, sizeof *median);
    double *values = prn_calloc((r->count > steps ? r->count : steps) + 1, sizeof *values);
    if (!median || !values) {
        prn_free(values);
        return prn_no_memory(error);
    }
    for (size_t k = 0; k < steps; k++) {
        for (size_t n = 0; n < r->count; n++) values[n] = (double)r->step_ns[n * steps + k];
        median[k] = (int64_t)prn_median(values, r->count);
    }
    out->position_ns = median;
    out->position_count = steps;
    out->step_growth_ns = generation_slope(median, steps, values);
    prn_free(values);
    return PRONY_OK;
}

static prony_status generation_times(const generation_run *r, prony_report *report, prony_error *error)
{
    prony_generation *out = &report->generation;
    const size_t steps = (size_t)r->options.new_tokens - 1;
    prony_time_stats prefill, decode;
    PRN_TRY(prn_stats_compute(&prefill, r->prefill_ns, r->count, true, error));
    PRN_TRY(prn_stats_compute(&out->ttft, r->first_ns, r->count, true, error));
    generation_rate(&prefill, (double)(out->batch * out->prompt_tokens), &out->prefill_tokens_per_second,
                    out->prefill_ci95);
    if (steps) {
        PRN_TRY(prn_stats_compute(&decode, r->decode_ns, r->count, true, error));
        PRN_TRY(prn_stats_compute(&out->step, r->step_ns, r->count * steps, false, error));
        generation_rate(&decode, (double)out->batch * (double)steps, &out->decode_tokens_per_second, out->decode_ci95);
    }
    return generation_positions(r, report, error);
}

/* FLOPs of the plan at hand. */
static uint64_t generation_flops(const prony_session *session)
{
    const prn_program *program = session->current ? session->current->program : NULL;
    uint64_t sum = 0;
    for (size_t k = 0; program && k < program->layer_count; k++)
        if (!program->layers[k].folded) sum += prn_layer_cost(&program->layers[k]).flops;
    return sum;
}

/* Figures of the last step's plan and cache. */
static prony_status generation_figures(const generation_run *r, prony_report *report, prony_error *error)
{
    static const char *const kinds[] = {"none", "growing", "shared"}, *const types[] = {"fp32", "fp16", "int8"};
    const prony_generation_options *o = &r->options;
    prony_generation *out = &report->generation;
    prony_generator_info info;
    prony_generator_get_info(r->g, &info);
    const bool known =
        info.kind == PRONY_CACHE_GROWING || (info.kind == PRONY_CACHE_SHARED && r->g->cache_type != PRN_CACHE_FLOAT32);
    *out = (prony_generation){.batch = info.batch,
                              .prompt_tokens = o->prompt_tokens,
                              .new_tokens = o->new_tokens,
                              .warmup_repetitions = o->warmup,
                              .repetitions = (int64_t)r->count,
                              .cache = kinds[info.kind],
                              .cache_tensors = info.cache_count,
                              .cache_bytes = info.cache_bytes,
                              .cache_live_bytes = info.cache_live_bytes,
                              .cache_copied_bytes = info.cache_copied_bytes,
                              .bandwidth_share = -1,
                              .cache_type = known ? types[r->g->cache_type] : NULL,
                              .cache_error_tokens = -1,
                              .cache_error_max = -1,
                              .cache_error_rms = -1,
                              .cache_error_equal_ids = -1,
                              .computed_tokens = info.kind == PRONY_CACHE_NONE ? (double)info.computed : 1};
    out->convention = prn_bump_strndup(&report->pool, info.convention, strlen(info.convention));
    if (!out->convention) return prn_no_memory(error);
    report->has_generation = true;
    PRN_TRY(generation_times(r, report, error));
    const prony_session *session = r->g->session;
    out->decode_flops = generation_flops(session) / (uint64_t)info.batch;
    if (session->current) PRN_TRY(prn_plan_weight_traffic(session->current->plan, &out->weight_bytes, error));
    if (!report->has_roof) PRN_TRY(prn_report_fill_roof(report, error));
    const double peak = prn_report_roof_bandwidth(report, "DRAM");
    if (peak > 0 && out->step.count && out->step.median_ns > 0)
        out->bandwidth_share = (double)out->weight_bytes * 1e9 / (double)out->step.median_ns / peak;
    return PRONY_OK;
}

/* FLOPs of a token of the prompt, which is computed anew, chunk after chunk. The last chunk's plan stays. */
static prony_status generation_prefill_flops(generation_run *r, uint64_t *out, prony_error *error)
{
    const size_t batch = (size_t)r->g->batch, tokens = (size_t)r->options.prompt_tokens;
    const size_t chunk = r->g->chunk > 0 && r->g->kind != PRONY_CACHE_NONE ? (size_t)r->g->chunk : tokens;
    int64_t *ids = prn_calloc(batch * tokens, sizeof *ids);
    if (!ids) return prn_no_memory(error);
    uint64_t sum = 0;
    prony_status status = prony_generator_rewind(r->g, 0, error);
    for (size_t at = 0, count; at < tokens && status == PRONY_OK; at += count) {
        count = (tokens - at) % chunk ? (tokens - at) % chunk : chunk < tokens - at ? chunk : tokens - at;
        for (size_t b = 0; b < batch; b++) {
            memcpy(ids + b * count, r->ids + b * tokens + at, count * sizeof *ids);
            r->lengths[b] = count;
        }
        status = prony_generator_prompt(r->g, ids, r->lengths, error);
        sum += generation_flops(r->g->session);
    }
    for (size_t b = 0; b < batch; b++) r->lengths[b] = tokens;
    prn_free(ids);
    *out = sum / (batch * tokens);
    return status;
}

/* Profiles the generator's last run: of the graph that it was bound of. */
static prony_status generation_profile(prony_report **out, const prony_generator *g,
                                       const prony_profile_options *profile, prony_error *error)
{
    g->session->graph = g->bound;
    g->session->generator_runs = true;
    const prony_status status = prony_session_profile(out, g->session, profile, error);
    g->session->generator_runs = false;
    g->session->graph = g->graph;
    return status;
}

static prony_status generation_reports(generation_run *r, prony_report **decode, prony_report **prefill,
                                       const prn_load_state *before, prony_error *error)
{
    prony_profile_options own = PRONY_PROFILE_OPTIONS_INIT;
    own.max_seconds = DEFAULT_REPORT_SECONDS;
    const prony_profile_options *profile = r->options.profile ? r->options.profile : &own;
    PRN_TRY(generation_profile(decode, r->g, profile, error));
    PRN_TRY(generation_figures(r, *decode, error));
    PRN_TRY(generation_prefill_flops(r, &(*decode)->generation.prefill_flops, error));
    if (prefill) PRN_TRY(generation_profile(prefill, r->g, profile, error));
    prn_load_state after;
    prn_load_state_read(&after, prn_session_mask(r->g->session));
    prn_disturbance_between(&(*decode)->disturbance, before, &after);
    (*decode)->has_disturbance = true;
    return prony_generator_rewind(r->g, 0, error);
}

static prony_status generation_check(prony_generation_options *o, prony_error *error)
{
    if (!o->prompt_tokens) o->prompt_tokens = DEFAULT_PROMPT;
    if (!o->new_tokens) o->new_tokens = DEFAULT_NEW;
    if (o->warmup < 0) o->warmup = 1;
    if (o->prompt_tokens < 1 || o->new_tokens < 1 || o->prompt_tokens > INT32_MAX || o->new_tokens > INT32_MAX)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "generation options: %lld prompt tokens and %lld new ones: wanted 1 or more of each",
                        (long long)o->prompt_tokens, (long long)o->new_tokens);
    if (o->repetitions < 0 || !(o->max_seconds >= 0))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "generation options: counts must not be negative");
    return PRONY_OK;
}

/* Repeats the generation, then profiles a step and, if asked for, the prompt. The generator has its stop ids again
 * afterwards. */
prony_status prony_generation_measure(prony_report **decode, prony_report **prefill, prony_generator *generator,
                                      const prony_generation_options *options, prony_error *error)
{
    generation_run r = {.g = generator, .options = PRONY_GENERATION_OPTIONS_INIT};
    if (!decode || !generator)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_generation_measure: an argument is NULL");
    PRN_TRY(prn_options_read(&r.options, sizeof r.options, options, "generation options", error));
    PRN_TRY(generation_check(&r.options, error));
    prony_report *step = NULL, *prompt = NULL;
    const size_t stops = generator->stop_count;
    prn_load_state before;
    generator->stop_count = 0; /* every repetition has the same length */
    prn_load_state_read(&before, prn_session_mask(generator->session));
    prony_status status = generation_prepare(&r, error);
    if (status == PRONY_OK) status = generation_loop(&r, error);
    if (status == PRONY_OK) status = generation_reports(&r, &step, prefill ? &prompt : NULL, &before, error);
    generator->stop_count = stops;
    if (status == PRONY_OK) {
        *decode = step;
        if (prefill) *prefill = prompt;
    } else {
        prony_report_release(step);
        prony_report_release(prompt);
    }
    prn_free(r.ids);
    prn_free(r.lengths);
    prn_free(r.next);
    prn_free(r.first_ns);
    prn_free(r.prefill_ns);
    prn_free(r.decode_ns);
    prn_free(r.step_ns);
    return status;
}
