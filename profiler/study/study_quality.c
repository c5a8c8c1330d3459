/* The quality of a study's data, the statement for a paper, and the comparison of two studies. */
#include "profiler/study/study.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PLAIN_NOTES = 8 }; /* notes other than those for each configuration */
/* Differences between studies within 1 % are noise; chosen without measurement. */
#define NOISE 0.01

/* ---- quality ---- */

/* Times of two sets of processes, of one machine as they are. Over nodes each time is divided by the median that its
 * node has in `first`: then differences between nodes do not hide those between the sets. */
static prony_status pair_sets(prony_study *s, const prony_study *first_of, size_t first, const prony_study *second_of,
                              size_t second, prn_processes *a, prn_processes *b, prony_error *error)
{
    bool same_nodes = first_of->node_count && first_of->node_count == second_of->node_count;
    for (size_t n = 0; same_nodes && n < first_of->node_count; n++)
        same_nodes = strcmp(first_of->nodes[n].host, second_of->nodes[n].host) == 0;
    if (!same_nodes) {
        PRN_TRY(prn_study_medians(s, first_of, PRN_STUDY_ALL_NODES, first, a, error));
        return prn_study_medians(s, second_of, PRN_STUDY_ALL_NODES, second, b, error);
    }
    double *values[2];
    size_t counts[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        values[k] =
            prn_bump_alloc(&s->results_pool, first_of->block_count + second_of->block_count + 1, sizeof(double));
        if (!values[k]) return prn_no_memory(error);
    }
    for (size_t n = 0; n < first_of->node_count; n++) {
        prn_processes sides[2];
        PRN_TRY(prn_study_medians(s, first_of, n, first, &sides[0], error));
        PRN_TRY(prn_study_medians(s, second_of, n, second, &sides[1], error));
        if (sides[0].count == 0 || sides[1].count == 0) continue;
        double median = prn_median((double *)(uintptr_t)sides[0].values, sides[0].count);
        for (int k = 0; k < 2; k++)
            for (size_t i = 0; i < sides[k].count; i++) values[k][counts[k]++] = sides[k].values[i] / fmax(1, median);
    }
    *a = (prn_processes){values[0], counts[0]};
    *b = (prn_processes){values[1], counts[1]};
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
        size_t baseline = prn_study_baseline(s, s->configurations[i].group);
        PRN_TRY(pair_sets(s, s, baseline, s, i, &first, &second, error));
        if (first.count == 0 || second.count == 0) continue;
        PRN_TRY(prn_process_compare(&test, first, second, NOISE, PRN_STUDY_EQUAL, error));
        if (!isnan(q->aa_ratio) && fabs(test.ratio - 1) <= fabs(q->aa_ratio - 1)) continue;
        q->aa_ratio = test.ratio;
        memcpy(q->aa_ci95, test.interval, sizeof q->aa_ci95);
        q->aa = sameness(test.verdict);
    }
    return PRONY_OK;
}

static void study_quality_note(prony_study *s, const char **notes, const char *format, ...) PRN_PRINTF(3, 4);
static void study_quality_note(prony_study *s, const char **notes, const char *format, ...)
{
    char text[700];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *kept = prn_bump_strndup(&s->results_pool, text, strlen(text));
    if (kept) notes[s->quality.note_count++] = kept;
}

/* Counts disturbed, failed and unsteady blocks, and finds the widest interval. */
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
    /* Over nodes: of each node, because an interval over nodes includes their differences. */
    const prony_study_result *results = s->node_count ? s->node_results : s->results;
    size_t count = s->node_count ? s->node_result_count : s->configuration_count;
    for (size_t i = 0; i < count; i++) {
        const prony_study_result *r = &results[i];
        double half = r->processes >= 3 && r->median_ns > 0 ? (r->ci95_ns[1] - r->ci95_ns[0]) / 2 / r->median_ns : NAN;
        if (half > q->widest) q->widest = half;
    }
}

/* Processes of the node that has fewest. */
static size_t fewest_processes(const prony_study *s, size_t configuration)
{
    size_t fewest = s->results[configuration].processes;
    for (size_t n = 0; n < s->node_count; n++) {
        size_t own = s->node_results[n * s->configuration_count + configuration].processes;
        if (n == 0 || own < fewest) fewest = own;
    }
    return fewest;
}

/* Nodes that differ from the others, by time or by manifest. */
static void note_nodes(prony_study *s, const char **notes)
{
    for (size_t n = 0; n < s->node_difference_count; n++) {
        const prn_study_node_difference *d = &s->node_differences[n];
        char name[PRN_STUDY_NODE_BYTES], label[PRN_STUDY_LABEL_BYTES], facts[300] = "";
        size_t used = 0;
        for (size_t i = 0; i < d->manifest_count && used < sizeof facts - 1; i++)
            used += (size_t)snprintf(facts + used, sizeof facts - used, "%s%.120s", i ? "; " : "", d->manifest[i]);
        prn_study_node_label(s, n, name);
        if (strcmp(d->verdict, "slower") == 0 || strcmp(d->verdict, "faster") == 0)
            study_quality_note(
                s, notes,
                "node %s is %s: its runs take %.2f times as long as the other nodes' (95 %%: %.2f to %.2f), %.2f "
                "times on %s%s%s",
                name, d->verdict, d->ratio, d->interval[0], d->interval[1], d->worst_ratio,
                prn_study_label(s, d->worst, label), *facts ? "; " : "", facts);
        else if (*facts)
            study_quality_note(s, notes, "node %s differs in %s", name, facts);
    }
}

/* The verdict follows from the repeated baseline, processes, disturbances and intervals; each doubt gets a note. The
 * limits were chosen without measurement. */
prony_status prn_study_judge_data(prony_study *s, prony_error *error)
{
    prn_study_quality *q = &s->quality;
    const char **notes =
        prn_bump_alloc(&s->results_pool, PLAIN_NOTES + s->configuration_count + s->node_count, sizeof *notes);
    size_t unsteady, few = 0, beyond = 0;
    double others;
    if (!notes) return prn_no_memory(error);
    q->notes = notes;
    PRN_TRY(judge_twins(s, error));
    count_blocks(s, &unsteady, &others);
    for (size_t i = 0; i < s->configuration_count; i++) {
        few += !s->configurations[i].refused && fewest_processes(s, i) < 5;
        beyond += s->configurations[i].beyond;
    }
    bool poor = strcmp(q->aa, "different") == 0 || few || q->disturbed * 2 > q->blocks || q->widest > 0.1;
    bool fair = poor || strcmp(q->aa, "same") != 0 || q->disturbed * 10 > q->blocks || q->failed || q->widest > 0.03 ||
                unsteady;
    q->verdict = poor ? "poor" : fair ? "fair" : "good";
    note_nodes(s, notes);
    if (few)
        study_quality_note(s, notes,
                           "%zu of %zu configurations have fewer than 5 processes: their intervals are unreliable", few,
                           s->configuration_count);
    if (q->disturbed)
        study_quality_note(s, notes,
                           "%zu of %zu blocks were disturbed; others used %.0f %% of the processors on average",
                           q->disturbed, q->blocks, 100 * others);
    if (q->failed) study_quality_note(s, notes, "%zu processes failed; the file holds their messages", q->failed);
    if (unsteady) study_quality_note(s, notes, "%zu processes reached no detectable steady state", unsteady);
    if (beyond)
        study_quality_note(
            s, notes,
            "%zu configurations have more threads than the %d usable processors (marked !); the fitted laws leave "
            "them out",
            beyond, s->usable);
    for (size_t i = 0; i < s->configuration_count; i++) {
        char label[PRN_STUDY_LABEL_BYTES];
        if (s->configurations[i].refused)
            study_quality_note(s, notes, "%s cannot run: %.200s", prn_study_label(s, i, label),
                               s->configurations[i].refused);
    }
    if (!s->manifest->has_roof)
        study_quality_note(
            s, notes,
            "the peaks of this machine are not known (run `prony machine`): reasons and the limit leave out bandwidth");
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

static void differ_or_none(prony_study *s, const char **out, const char *what, const char *now, const char *earlier)
{
    differ(s, out, what, now && *now ? now : "none", earlier && *earlier ? earlier : "none");
}

static void compare_environments(prony_study *s, const prony_study *earlier, const char **out)
{
    const prn_study_environment *a = &s->environment, *b = &earlier->environment;
    differ_or_none(s, out, "environment variables", prn_study_variables(a, &s->results_pool),
                   prn_study_variables(b, &s->results_pool));
    differ(s, out, "SMT", a->smt, b->smt);
    differ(s, out, "microcode", a->microcode, b->microcode);
    differ(s, out, "huge pages", a->huge_pages, b->huge_pages);
    differ_or_none(s, out, "container", a->container, b->container);
    differ_number(s, out, "NUMA nodes", (double)a->numa_count, (double)b->numa_count);
}

/* Lists the settings that differ and might explain other times. A text that no memory was left for is missing from the
 * list. `out` has room for 32 lines; there are 25 comparisons, those of compare_environments included. */
static prony_status compare_manifests(prony_study *s, const prony_study *earlier, prony_error *error)
{
    const prn_report_system *a = &s->manifest->system, *b = &earlier->manifest->system;
    const prn_machine *m = &a->machine, *n = &b->machine;
    const char **out = prn_bump_alloc(&s->results_pool, 32, sizeof *out);
    if (!out) return prn_no_memory(error);
    s->manifest_differences = out;
    differ(s, out, "model", prn_report_title(s->manifest), prn_report_title(earlier->manifest));
    differ(s, out, "SHA-256 of the model", s->manifest->model.sha256, earlier->manifest->model.sha256);
    if (s->weak != earlier->weak)
        differ(s, out, "scaling", s->weak ? "weak" : "strong", earlier->weak ? "weak" : "strong");
    differ(s, out, "host", m->host_name, n->host_name);
    differ_number(s, out, "nodes", (double)prn_study_node_total(s), (double)prn_study_node_total(earlier));
    differ(s, out, "processor", m->cpu_model, n->cpu_model);
    differ(s, out, "instructions used", a->isa_used, b->isa_used);
    differ_number(s, out, "processors", m->cpu_count, n->cpu_count);
    differ_number(s, out, "usable cores", m->physical_cores, n->physical_cores);
    differ_number(s, out, "processor quota", m->quota_cpus, n->quota_cpus);
    differ_number(s, out, "memory", (double)m->total_memory_bytes, (double)n->total_memory_bytes);
    differ(s, out, "governor", m->governor, n->governor);
    differ(s, out, "system", m->os_release, n->os_release);
    differ(s, out, "libraries", a->libraries, b->libraries);
    differ(s, out, "Prony", a->prony_version ? a->prony_version : PRONY_VERSION,
           b->prony_version ? b->prony_version : PRONY_VERSION);
    differ(s, out, "commit", a->git_commit, b->git_commit);
    differ(s, out, "compiler", a->compiler, b->compiler);
    differ(s, out, "compiler flags", a->compiler_flags, b->compiler_flags);
    if (fabs(s->budget_seconds - earlier->budget_seconds) > 0)
        differ_number(s, out, "budget in seconds (0: none)", s->budget_seconds, earlier->budget_seconds);
    if (s->environment.known && earlier->environment.known) compare_environments(s, earlier, out);
    return PRONY_OK;
}

static size_t disturbed_of(const prony_study *s, size_t configuration)
{
    size_t count = 0;
    for (size_t i = 0; i < s->block_count; i++)
        count += s->blocks[i].configuration == configuration && s->blocks[i].disturbed;
    return count;
}

size_t prn_study_match(const prony_study *s, const prony_study *of, size_t configuration)
{
    const prn_study_configuration *c = &of->configurations[configuration];
    for (size_t i = 0; i < s->configuration_count; i++) {
        const prn_study_configuration *o = &s->configurations[i];
        if (o->intra_op == c->intra_op && o->inter_op == c->inter_op && o->again == c->again && o->batch == c->batch &&
            prn_study_replicas(o) == prn_study_replicas(c) && strcmp(o->precision, c->precision) == 0)
            return i;
    }
    return PRONY_NO_INDEX;
}

/* Tests one configuration of two studies. A verdict that is not "same" names a possible cause. */
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
    const size_t then = prn_study_match(earlier, s, i);
    if (then == PRONY_NO_INDEX) return PRONY_OK;
    PRN_TRY(pair_sets(s, earlier, then, s, i, &first, &second, error));
    if (first.count == 0 || second.count == 0) return PRONY_OK;
    PRN_TRY(prn_process_compare(&test, first, second, noise, PRN_STUDY_EQUAL, error));
    double median, interval[2];
    prn_processes times;
    PRN_TRY(prn_study_medians(s, earlier, PRN_STUDY_ALL_NODES, then, &times, error));
    PRN_TRY(prn_process_interval(&median, interval, times, NULL, error));
    d->earlier_ns = median;
    d->ratio = test.ratio;
    memcpy(d->interval, test.interval, sizeof d->interval);
    d->p = test.p;
    d->verdict = sameness(test.verdict);
    double within = fmax(test.interval90[1], 1 / test.interval90[0]) - 1;
    if (test.interval90[0] > 0 && isfinite(within)) d->within = within;
    size_t now = disturbed_of(s, i), before = disturbed_of(earlier, then);
    bool disturbed = now * 4 > second.count || before * 4 > first.count;
    d->why = test.verdict == PRN_SAME ? ""
             : disturbed              ? "blocks were disturbed"
             : test.verdict == PRN_CANNOT_TELL
                 ? (second.count < 5 || first.count < 5 ? "too few processes" : "the interval is too wide")
                 : "larger than the A/A noise";
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
    return prn_study_compare_any(s, earlier, different, error);
}

prony_status prn_study_compare_any(prony_study *s, const prony_study *earlier, size_t *different, prony_error *error)
{
    s->difference_count = s->manifest_difference_count = 0;
    s->differences = prn_bump_alloc(&s->results_pool, s->configuration_count + 1, sizeof *s->differences);
    if (!s->differences) return prn_no_memory(error);
    PRN_TRY(compare_manifests(s, earlier, error));
    /* The difference between two equal baselines is noise between two studies too. */
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

/* ", on 4 nodes (a, b, c, d)", and how results over nodes are made. */
static const char *node_statement(const prony_study *s, prn_bump *pool)
{
    const char *names = "";
    char label[PRN_STUDY_NODE_BYTES];
    if (!s->node_count) return "";
    for (size_t n = 0; n < s->node_count && n < 16 && names; n++)
        names = prn_bump_printf(pool, "%s%s%s", names, n ? "; " : "", prn_study_node_label(s, n, label));
    return names ? prn_bump_printf(pool,
                                   " Measured on %zu nodes (%s%s), described in the file; the machine above is the "
                                   "first. Each round of the order holds every configuration on every node. Results "
                                   "over nodes are medians of the nodes' medians; their intervals %s.",
                                   s->node_count, names, s->node_count > 16 ? "; ..." : "",
                                   s->node_count >= PRN_STUDY_FEWEST_NODES
                                       ? "resample nodes, then processes of each node; fitted laws resample nodes"
                                       : "resample processes only, since there are fewer than 3 nodes")
                 : NULL;
}

/* States everything needed to repeat the study, in the order of a methods section. */
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
    const char *nodes = node_statement(s, pool);
    if (!nodes) return NULL;
    return prn_bump_printf(
        pool,
        "Measured with Prony %s (%s; %s) on %s, %d logical processors, %d usable%s, %s %s, governor %s. Model %s, "
        "SHA-256 %.64s. %zu configurations in %d fresh processes each%s, in a random interleaved order (seed %llu), %s "
        "%s. %s scaling; the baseline is one thread without a pool or queue, measured twice (ratio %.4g). Medians over "
        "processes with 95 %% percentile bootstrap intervals that resample processes, widened for their number "
        "(Hesterberg 2015). Data quality: %s (%zu of %zu blocks disturbed).%s Repeat with: %s scale MODEL --repeat "
        "STUDY.json",
        system->prony_version ? system->prony_version : PRONY_VERSION,
        system->git_commit && *system->git_commit ? system->git_commit : "no commit known", system->libraries,
        m->cpu_model, m->cpu_count, s->usable, quota, m->os, m->os_release, *m->governor ? m->governor : "not readable",
        prn_report_title(s->manifest), s->manifest->model.sha256 ? s->manifest->model.sha256 : "not known",
        s->configuration_count, s->processes, s->node_count ? " on each node" : "", (unsigned long long)s->seed, length,
        warm, s->weak ? "Weak" : "Strong", s->quality.aa_ratio, s->quality.verdict ? s->quality.verdict : "not judged",
        s->quality.disturbed, s->quality.blocks, nodes, s->node_count ? "prony-mpi" : "prony");
}
