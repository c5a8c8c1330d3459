/* How far the data of a study can be trusted, the statement that goes into a paper, and two studies side by side. */
#include "profiler/study/study.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PLAIN_NOTES = 8 }; /* that are not one for each configuration */
#define NOISE 0.01

/* ---- quality ---- */

static prony_status medians_of(prony_study *s, const prony_study *of, size_t configuration, prn_processes *out,
                               prony_error *error)
{
    const prn_study_block **blocks = prn_bump_alloc(&s->results_pool, of->block_count + 1, sizeof *blocks);
    double *values = prn_bump_alloc(&s->results_pool, of->block_count + 1, sizeof *values);
    if (!blocks || !values) return prn_no_memory(error);
    *out = (prn_processes){values, prn_study_blocks_of(of, configuration, blocks)};
    for (size_t i = 0; i < out->count; i++) values[i] = prn_study_block_median(blocks[i]);
    return PRONY_OK;
}

static const char *sameness(prn_sameness verdict)
{
    return verdict == PRN_SAME ? "same" : verdict == PRN_DIFFERENT ? "different" : "cannot tell";
}

/* The baseline and itself; of several groups the pair that differs most. */
static prony_status judge_twins(prony_study *s, prony_error *error)
{
    prn_study_quality *q = &s->quality;
    q->aa_ratio = q->aa_ci95[0] = q->aa_ci95[1] = NAN;
    q->aa = "not measured";
    for (size_t i = 0; i < s->configuration_count; i++) {
        if (!s->configurations[i].again) continue;
        prn_processes first, second;
        prn_process_test test;
        PRN_TRY(medians_of(s, s, prn_study_baseline(s, s->configurations[i].group), &first, error));
        PRN_TRY(medians_of(s, s, i, &second, error));
        if (first.count == 0 || second.count == 0) continue;
        PRN_TRY(prn_process_compare(&test, first, second, NOISE, PRN_STUDY_EQUAL, error));
        if (!isnan(q->aa_ratio) && fabs(test.ratio - 1) <= fabs(q->aa_ratio - 1)) continue;
        q->aa_ratio = test.ratio;
        memcpy(q->aa_ci95, test.interval, sizeof q->aa_ci95);
        q->aa = sameness(test.verdict);
    }
    return PRONY_OK;
}

static void note(prony_study *s, const char **notes, const char *format, ...) PRN_PRINTF(3, 4);
static void note(prony_study *s, const char **notes, const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *kept = prn_bump_strndup(&s->results_pool, text, strlen(text));
    if (kept) notes[s->quality.note_count++] = kept;
}

static void count_blocks(prony_study *s, size_t *unsteady, double *others)
{
    prn_study_quality *q = &s->quality;
    size_t known = 0;
    *unsteady = 0;
    *others = 0;
    q->blocks = s->block_count;
    for (size_t i = 0; i < s->block_count; i++) {
        const prn_study_block *b = &s->blocks[i];
        q->disturbed += b->disturbed != NULL;
        q->failed += b->failure != NULL;
        *unsteady += !b->failure && s->warmup_runs < 0 && !b->warmup_detected;
        if (isnan(b->others)) continue;
        *others += b->others;
        known++;
    }
    if (known) *others /= (double)known;
    for (size_t i = 0; i < s->configuration_count; i++) {
        const prony_study_result *r = &s->results[i];
        double half = r->processes >= 3 && r->median_ns > 0 ? (r->ci95_ns[1] - r->ci95_ns[0]) / 2 / r->median_ns : NAN;
        if (half > q->widest) q->widest = half;
    }
}

prony_status prn_study_judge_data(prony_study *s, prony_error *error)
{
    prn_study_quality *q = &s->quality;
    const char **notes = prn_bump_alloc(&s->results_pool, PLAIN_NOTES + s->configuration_count, sizeof *notes);
    size_t unsteady, few = 0, beyond = 0;
    double others;
    if (!notes) return prn_no_memory(error);
    q->notes = notes;
    PRN_TRY(judge_twins(s, error));
    count_blocks(s, &unsteady, &others);
    for (size_t i = 0; i < s->configuration_count; i++) {
        few += !s->configurations[i].refused && s->results[i].processes < 5;
        beyond += s->configurations[i].beyond;
    }
    bool poor = strcmp(q->aa, "different") == 0 || few || q->disturbed * 2 > q->blocks || q->widest > 0.1;
    bool fair = poor || strcmp(q->aa, "same") != 0 || q->disturbed * 10 > q->blocks || q->failed || q->widest > 0.03 ||
                unsteady;
    q->verdict = poor ? "poor" : fair ? "fair" : "good";
    if (few)
        note(s, notes, "%zu of %zu configurations have fewer than 5 processes: their intervals say little", few,
             s->configuration_count);
    if (q->disturbed)
        note(s, notes, "%zu of %zu blocks were disturbed; others took %.0f %% of the processors in the mean",
             q->disturbed, q->blocks, 100 * others);
    if (q->failed) note(s, notes, "%zu processes failed; what they said is in the file", q->failed);
    if (unsteady) note(s, notes, "%zu processes were not seen to reach a steady state", unsteady);
    if (beyond)
        note(s, notes,
             "%zu configurations have more threads than the %d processors that can be used here (marked !); the laws "
             "are fitted without them",
             beyond, s->usable);
    for (size_t i = 0; i < s->configuration_count; i++) {
        char label[PRN_STUDY_LABEL_BYTES];
        if (s->configurations[i].refused)
            note(s, notes, "%s cannot run: %.200s", prn_study_label(s, i, label), s->configurations[i].refused);
    }
    if (!s->manifest->has_roof)
        note(s, notes,
             "the roofs of this machine are not known (`prony machine`): no reason is a bandwidth, and the limit "
             "leaves it out");
    return PRONY_OK;
}

/* ---- a second study ---- */

static void differ(prony_study *s, const char **out, const char *what, const char *now, const char *earlier)
{
    if (strcmp(now ? now : "", earlier ? earlier : "") == 0) return;
    const char *text = prn_bump_printf(&s->results_pool, "%s: %s, was %s", what, now && *now ? now : "not known",
                                       earlier && *earlier ? earlier : "not known");
    if (text) out[s->manifest_difference_count++] = text;
}

static void differ_number(prony_study *s, const char **out, const char *what, double now, double earlier)
{
    char a[40], b[40];
    snprintf(a, sizeof a, "%.15g", now);
    snprintf(b, sizeof b, "%.15g", earlier);
    differ(s, out, what, a, b);
}

static prony_status compare_manifests(prony_study *s, const prony_study *earlier, prony_error *error)
{
    const prn_report_system *a = &s->manifest->system, *b = &earlier->manifest->system;
    const prn_machine *m = &a->machine, *n = &b->machine;
    const char **out = prn_bump_alloc(&s->results_pool, 24, sizeof *out);
    if (!out) return prn_no_memory(error);
    s->manifest_differences = out;
    differ(s, out, "host", m->host_name, n->host_name);
    differ(s, out, "processor", m->cpu_model, n->cpu_model);
    differ(s, out, "instructions used", a->isa_used, b->isa_used);
    differ_number(s, out, "processors", m->cpu_count, n->cpu_count);
    differ_number(s, out, "cores that can be used", m->physical_cores, n->physical_cores);
    differ_number(s, out, "quota of processors", m->quota_cpus, n->quota_cpus);
    differ_number(s, out, "memory", (double)m->total_memory_bytes, (double)n->total_memory_bytes);
    differ(s, out, "governor", m->governor, n->governor);
    differ(s, out, "system", m->os_release, n->os_release);
    differ(s, out, "libraries", a->libraries, b->libraries);
    differ(s, out, "Prony", a->prony_version ? a->prony_version : PRONY_VERSION,
           b->prony_version ? b->prony_version : PRONY_VERSION);
    differ(s, out, "commit", a->git_commit, b->git_commit);
    differ(s, out, "compiler", a->compiler, b->compiler);
    differ(s, out, "compiler flags", a->compiler_flags, b->compiler_flags);
    return PRONY_OK;
}

static size_t disturbed_of(const prony_study *s, size_t configuration)
{
    size_t count = 0;
    for (size_t i = 0; i < s->block_count; i++)
        count += s->blocks[i].configuration == configuration && s->blocks[i].disturbed;
    return count;
}

static prony_status compare_configuration(prony_study *s, const prony_study *earlier, size_t i, double noise,
                                          prony_error *error)
{
    prn_study_difference *d = &s->differences[s->difference_count++];
    prn_processes first, second;
    prn_process_test test;
    *d = (prn_study_difference){.configuration = i,
                                .earlier_ns = NAN,
                                .ratio = NAN,
                                .interval = {NAN, NAN},
                                .p = NAN,
                                .within = NAN,
                                .verdict = "cannot tell",
                                .why = "not measured in both"};
    PRN_TRY(medians_of(s, earlier, i, &first, error));
    PRN_TRY(medians_of(s, s, i, &second, error));
    if (first.count == 0 || second.count == 0) return PRONY_OK;
    PRN_TRY(prn_process_compare(&test, first, second, noise, PRN_STUDY_EQUAL, error));
    double median, interval[2];
    PRN_TRY(prn_process_interval(&median, interval, first, NULL, error));
    d->earlier_ns = median;
    d->ratio = test.ratio;
    memcpy(d->interval, test.interval, sizeof d->interval);
    d->p = test.p;
    d->verdict = sameness(test.verdict);
    double within = fmax(test.interval90[1], 1 / test.interval90[0]) - 1;
    if (test.interval90[0] > 0 && isfinite(within)) d->within = within;
    size_t now = disturbed_of(s, i), before = disturbed_of(earlier, i);
    bool disturbed = now * 4 > second.count || before * 4 > first.count;
    d->why = test.verdict == PRN_SAME ? ""
             : disturbed              ? "blocks were disturbed"
             : test.verdict == PRN_CANNOT_TELL
                 ? (second.count < 5 || first.count < 5 ? "too few processes" : "the interval is too wide")
                 : "beyond what the baseline differs from itself";
    if (disturbed && test.verdict == PRN_DIFFERENT) {
        d->verdict = "cannot tell";
        d->why = "differs, but blocks were disturbed";
    }
    return PRONY_OK;
}

prony_status prony_study_compare(prony_study *s, const prony_study *earlier, size_t *different, prony_error *error)
{
    if (!s || !earlier || !s->analysed)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_study_compare: an argument is NULL, or not analysed");
    if (s->configuration_count != earlier->configuration_count)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "the studies have %zu and %zu configurations: their plans differ", s->configuration_count,
                        earlier->configuration_count);
    s->difference_count = s->manifest_difference_count = 0;
    s->differences = prn_bump_alloc(&s->results_pool, s->configuration_count + 1, sizeof *s->differences);
    if (!s->differences) return prn_no_memory(error);
    PRN_TRY(compare_manifests(s, earlier, error));
    /* What the machine makes of the same thing twice is no difference between two studies either. */
    double noise = NOISE;
    if (!isnan(s->quality.aa_ratio)) noise = fmax(noise, fabs(s->quality.aa_ratio - 1));
    if (earlier->analysed && !isnan(earlier->quality.aa_ratio))
        noise = fmax(noise, fabs(earlier->quality.aa_ratio - 1));
    for (size_t i = 0; i < s->configuration_count; i++) PRN_TRY(compare_configuration(s, earlier, i, noise, error));
    if (different) *different = 0;
    for (size_t i = 0; i < s->difference_count && different; i++)
        *different += strcmp(s->differences[i].verdict, "different") == 0;
    s->compared = true;
    return PRONY_OK;
}

/* ---- for a paper ---- */

const char *prn_study_statement(const prony_study *s, prn_bump *pool)
{
    const prn_report_system *system = &s->manifest->system;
    const prn_machine *m = &system->machine;
    char length[80], warm[60], quota[60] = "";
    if (s->runs > 0)
        snprintf(length, sizeof length, "%lld runs", (long long)s->runs);
    else
        snprintf(length, sizeof length, "%.3g s of runs", s->seconds);
    if (s->budget_seconds > 0)
        snprintf(length, sizeof length, "runs within a budget of %.0f s for the study", s->budget_seconds);
    if (s->warmup_runs < 0)
        snprintf(warm, sizeof warm, "after detected warm-up");
    else
        snprintf(warm, sizeof warm, "after %lld runs of warm-up", (long long)s->warmup_runs);
    if (m->quota_cpus > 0) snprintf(quota, sizeof quota, ", a quota of %.3g", m->quota_cpus);
    return prn_bump_printf(
        pool,
        "Measured with Prony %s (%s; %s) on %s, %d logical processors, %d usable%s, %s %s, governor %s. Model %s, "
        "SHA-256 %.64s. "
        "%zu configurations in %d fresh processes each, in a random interleaved order (seed %llu), %s %s. %s scaling; "
        "the baseline "
        "is one thread without a pool or queue, measured twice (ratio %.4g). Medians over processes with 95 %% "
        "percentile "
        "bootstrap intervals that draw processes anew, widened for their number (Hesterberg 2015). Data quality: %s "
        "(%zu of %zu blocks disturbed). Repeat with: prony scale MODEL --repeat STUDY.json",
        system->prony_version ? system->prony_version : PRONY_VERSION,
        system->git_commit && *system->git_commit ? system->git_commit : "no commit known", system->libraries,
        m->cpu_model, m->cpu_count, s->usable, quota, m->os, m->os_release, *m->governor ? m->governor : "not readable",
        prn_report_title(s->manifest), s->manifest->model.sha256 ? s->manifest->model.sha256 : "not known",
        s->configuration_count, s->processes, (unsigned long long)s->seed, length, warm, s->weak ? "Weak" : "Strong",
        s->quality.aa_ratio, s->quality.verdict ? s->quality.verdict : "not judged", s->quality.disturbed,
        s->quality.blocks);
}
