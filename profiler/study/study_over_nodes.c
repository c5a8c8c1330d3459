/* Results over nodes, and each node compared with all others.
 *
 * A value over nodes is the median of the nodes' medians. Its interval draws nodes, and then processes within each node
 * drawn; of fewer than PRN_STUDY_FEWEST_NODES nodes it draws processes alone.
 */
#include "profiler/study/study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Difference of two equal nodes, by memory layout and temperature. Chosen without measurement. */
#define NODE_NOISE 0.02
#define SPREAD_FACTOR 3 /* a node differs if it is beyond so many deviations of the others */

prony_status prn_study_time_over_nodes(prony_study *s, size_t configuration, prony_study_result *r, prony_error *error)
{
    prn_processes *groups = prn_bump_alloc(&s->results_pool, s->node_count + 1, sizeof *groups);
    if (!groups) return prn_no_memory(error);
    for (size_t n = 0; n < s->node_count; n++) PRN_TRY(prn_study_medians(s, s, n, configuration, &groups[n], error));
    return prn_grouped_interval(&r->median_ns, r->ci95_ns, groups, s->node_count, PRN_STUDY_FEWEST_NODES, error);
}

/* Ratios of a node; if too few rounds have both blocks, its median of `base` over each time of `of`. */
static prony_status node_ratios(prony_study *s, size_t node, size_t base, size_t of, prn_processes *out,
                                prony_error *error)
{
    bool paired;
    prn_processes first, second;
    PRN_TRY(prn_study_pair_rounds(s, node, base, of, out, &paired, error));
    if (paired) return PRONY_OK;
    PRN_TRY(prn_study_medians(s, s, node, base, &first, error));
    PRN_TRY(prn_study_medians(s, s, node, of, &second, error));
    *out = (prn_processes){second.values, first.count ? second.count : 0};
    double *values = (double *)(uintptr_t)second.values,
           median = prn_median((double *)(uintptr_t)first.values, first.count);
    for (size_t i = 0; i < out->count; i++) values[i] = median / fmax(1, values[i]);
    return PRONY_OK;
}

prony_status prn_study_speedup_over_nodes(prony_study *s, size_t base, size_t of, prony_study_result *r,
                                          prony_error *error)
{
    prn_processes *groups = prn_bump_alloc(&s->results_pool, s->node_count + 1, sizeof *groups);
    if (!groups) return prn_no_memory(error);
    for (size_t n = 0; n < s->node_count; n++) PRN_TRY(node_ratios(s, n, base, of, &groups[n], error));
    return prn_grouped_interval(&r->speedup, r->speedup_ci95, groups, s->node_count, PRN_STUDY_FEWEST_NODES, error);
}

prony_status prn_study_node_levels(prony_study *s, size_t configuration, prn_processes *out, prony_error *error)
{
    double *values = prn_bump_alloc(&s->results_pool, s->node_count + 1, sizeof *values);
    size_t count = 0;
    if (!values) return prn_no_memory(error);
    for (size_t n = 0; n < s->node_count; n++) {
        prn_processes of;
        PRN_TRY(prn_study_medians(s, s, n, configuration, &of, error));
        if (of.count) values[count++] = prn_median((double *)(uintptr_t)of.values, of.count);
    }
    *out = (prn_processes){values, count};
    return PRONY_OK;
}

/* ---- a node compared with the others ---- */

typedef struct relative_times {
    prony_study *s;
    const double *levels; /* [configuration][node]: median; 0: not measured */
    double *own;          /* times over the other nodes' median of the configuration */
    double *others;       /* times of the others over their own medians: the scatter of equal processes */
    size_t own_count, other_count;
    double *other_levels; /* of each other node, all configurations */
    size_t other_level_count;
    double *references; /* [configuration]: the other nodes' median; 0: none measured it */
    double *room;
} relative_times;

/* Median of the other nodes' levels; 0: no other node measured this configuration. */
static double reference(const relative_times *t, size_t node, size_t configuration)
{
    const size_t nodes = t->s->node_count;
    size_t count = 0;
    for (size_t n = 0; n < nodes; n++) {
        double level = t->levels[configuration * nodes + n];
        if (n != node && level > 0) t->room[count++] = level;
    }
    return count ? prn_median(t->room, count) : 0;
}

static prony_status take_relative(relative_times *t, size_t node, prony_error *error)
{
    prony_study *s = t->s;
    t->own_count = t->other_count = t->other_level_count = 0;
    for (size_t c = 0; c < s->configuration_count; c++) t->references[c] = reference(t, node, c);
    for (size_t n = 0; n < s->node_count; n++) {
        size_t levels = 0;
        for (size_t c = 0; c < s->configuration_count; c++) {
            double base = t->references[c];
            prn_processes times;
            if (!(base > 0) || !(t->levels[c * s->node_count + node] > 0)) continue;
            PRN_TRY(prn_study_medians(s, s, n, c, &times, error));
            for (size_t i = 0; i < times.count; i++) {
                if (n == node)
                    t->own[t->own_count++] = times.values[i] / base;
                else
                    t->others[t->other_count++] = times.values[i] / t->levels[c * s->node_count + n];
            }
            if (n != node && times.count) t->room[levels++] = t->levels[c * s->node_count + n] / base;
        }
        if (levels) t->other_levels[t->other_level_count++] = prn_median(t->room, levels);
    }
    return PRONY_OK;
}

/* The spread of the other nodes: SPREAD_FACTOR median absolute deviations, at least NODE_NOISE. A median, so that
 * another slow node does not hide this one. */
static double natural_spread(relative_times *t)
{
    for (size_t i = 0; i < t->other_level_count; i++) t->room[i] = fabs(t->other_levels[i] - 1);
    return fmax(NODE_NOISE, SPREAD_FACTOR * prn_median(t->room, t->other_level_count));
}

static void find_worst(const relative_times *t, prn_study_node_difference *d)
{
    const prony_study *s = t->s;
    for (size_t c = 0; c < s->configuration_count; c++) {
        double base = t->references[c], level = t->levels[c * s->node_count + d->node];
        if (!(base > 0) || !(level > 0)) continue;
        if (d->worst != PRONY_NO_INDEX && fabs(log(level / base)) <= fabs(log(d->worst_ratio))) continue;
        d->worst = c;
        d->worst_ratio = level / base;
    }
}

/* The rank test on the node's relative times and the scatter of the others'. The interval has to lie beyond the spread
 * of the others (natural_spread). The test's p is adjusted for the number of nodes afterwards, so the verdict here is
 * that of the interval. Of two nodes the faster one is not named. */
static prony_status compare_node(relative_times *t, prn_study_node_difference *d, prony_error *error)
{
    prn_process_test test;
    *d = (prn_study_node_difference){.node = d->node,
                                     .ratio = NAN,
                                     .interval = {NAN, NAN},
                                     .p = NAN,
                                     .worst = PRONY_NO_INDEX,
                                     .worst_ratio = NAN,
                                     .verdict = "cannot tell"};
    PRN_TRY(take_relative(t, d->node, error));
    if (t->own_count == 0 || t->other_count == 0) return PRONY_OK;
    double noise = natural_spread(t);
    PRN_TRY(prn_process_compare(&test, (prn_processes){t->others, t->other_count},
                                (prn_processes){t->own, t->own_count}, noise, PRN_STUDY_EQUAL, error));
    d->ratio = test.ratio;
    memcpy(d->interval, test.interval, sizeof d->interval);
    d->p = test.p;
    find_worst(t, d);
    if (test.interval[0] > 1 + noise)
        d->verdict = "slower";
    else if (test.interval[1] < 1 - noise && t->s->node_count > 2)
        d->verdict = "faster";
    else if (test.verdict == PRN_SAME)
        d->verdict = "same";
    return PRONY_OK;
}

static prony_status adjust_for_nodes(prony_study *s, prony_error *error)
{
    double *p = prn_bump_alloc(&s->results_pool, s->node_count + 1, sizeof *p);
    if (!p) return prn_no_memory(error);
    for (size_t n = 0; n < s->node_count; n++) p[n] = s->node_differences[n].p;
    PRN_TRY(prn_holm_adjust(p, s->node_count, error));
    for (size_t n = 0; n < s->node_count; n++) {
        prn_study_node_difference *d = &s->node_differences[n];
        d->p = p[n];
        bool apart = strcmp(d->verdict, "slower") == 0 || strcmp(d->verdict, "faster") == 0;
        if (apart && !(d->p < 0.05)) d->verdict = "cannot tell";
    }
    return PRONY_OK;
}

/* ---- manifests ---- */

enum { NODE_FACTS = 15, NODE_FACT_BYTES = 160 };
static const char *const fact_names[NODE_FACTS] = {
    "processor", "instructions used", "processors", "usable processors", "usable cores", "memory",    "NUMA nodes",
    "governor",  "maximum frequency", "SMT",        "microcode",         "system",       "libraries", "network",
    "commit"};

static void fact_text(const prn_study_node *n, size_t fact, char text[NODE_FACT_BYTES])
{
    const prn_report_system *a = &n->manifest->system;
    const prn_machine *m = &a->machine;
    const char *const words[NODE_FACTS] = {[0] = m->cpu_model,  [1] = a->isa_used,         [7] = m->governor,
                                           [9] = n->facts.smt,  [10] = n->facts.microcode, [11] = m->os_release,
                                           [12] = a->libraries, [13] = n->facts.network,   [14] = a->git_commit};
    const double numbers[NODE_FACTS] = {
        [2] = m->cpu_count,          [3] = n->usable,
        [4] = m->physical_cores,     [5] = round((double)m->total_memory_bytes / (1 << 20)),
        [6] = (double)n->numa_count, [8] = (double)n->facts.frequency_max_hz / 1e6};
    if (fact == 5)
        snprintf(text, NODE_FACT_BYTES, "%.0f MiB", numbers[fact]);
    else if (fact == 8)
        snprintf(text, NODE_FACT_BYTES, numbers[fact] > 0 ? "%.0f MHz" : "not known", numbers[fact]);
    else if ((fact >= 2 && fact <= 6))
        snprintf(text, NODE_FACT_BYTES, "%.15g", numbers[fact]);
    else
        snprintf(text, NODE_FACT_BYTES, "%.150s", words[fact] && *words[fact] ? words[fact] : "not known");
}

/* The text that more than half of the nodes share; false: none. */
static bool common_fact(const prony_study *s, size_t fact, char text[NODE_FACT_BYTES])
{
    char other[NODE_FACT_BYTES];
    for (size_t i = 0; i < s->node_count; i++) {
        size_t same = 0;
        fact_text(&s->nodes[i], fact, text);
        for (size_t k = 0; k < s->node_count; k++) {
            fact_text(&s->nodes[k], fact, other);
            same += strcmp(text, other) == 0;
        }
        if (2 * same > s->node_count) return true;
    }
    return false;
}

static prony_status compare_node_manifests(prony_study *s, prony_error *error)
{
    for (size_t n = 0; n < s->node_count; n++) {
        const char **out = prn_bump_alloc(&s->results_pool, NODE_FACTS, sizeof *out);
        if (!out) return prn_no_memory(error);
        s->node_differences[n].manifest = out;
    }
    for (size_t fact = 0; fact < NODE_FACTS; fact++) {
        char common[NODE_FACT_BYTES], own[NODE_FACT_BYTES];
        if (!common_fact(s, fact, common)) continue;
        for (size_t n = 0; n < s->node_count; n++) {
            prn_study_node_difference *d = &s->node_differences[n];
            fact_text(&s->nodes[n], fact, own);
            if (strcmp(own, common) == 0) continue;
            const char *text =
                prn_bump_printf(&s->results_pool, "%s: %s, most nodes: %s", fact_names[fact], own, common);
            if (!text) return prn_no_memory(error);
            ((const char **)(uintptr_t)d->manifest)[d->manifest_count++] = text;
        }
    }
    return PRONY_OK;
}

/* Computes the median of every node and configuration, then compares each node with the others. */
prony_status prn_study_compare_nodes(prony_study *s, prony_error *error)
{
    const size_t nodes = s->node_count, cells = nodes * s->configuration_count;
    prn_bump *pool = &s->results_pool;
    size_t room = s->block_count + nodes + s->configuration_count + 1;
    double *levels = prn_bump_alloc(pool, cells + 1, sizeof *levels);
    relative_times t = {.s = s,
                        .levels = levels,
                        .own = prn_bump_alloc(pool, room, sizeof *t.own),
                        .others = prn_bump_alloc(pool, room, sizeof *t.others),
                        .references = prn_bump_alloc(pool, s->configuration_count + 1, sizeof *t.references),
                        .other_levels = prn_bump_alloc(pool, nodes + 1, sizeof *t.other_levels),
                        .room = prn_bump_alloc(pool, room, sizeof *t.room)};
    s->node_differences = prn_bump_alloc(pool, nodes + 1, sizeof *s->node_differences);
    if (!levels || !t.own || !t.others || !t.references || !t.other_levels || !t.room || !s->node_differences)
        return prn_no_memory(error);
    for (size_t i = 0; i < cells; i++) {
        prn_processes of;
        PRN_TRY(prn_study_medians(s, s, i % nodes, i / nodes, &of, error));
        levels[i] = of.count ? prn_median((double *)(uintptr_t)of.values, of.count) : 0;
    }
    for (size_t n = 0; n < nodes; n++) {
        s->node_differences[n].node = n;
        PRN_TRY(compare_node(&t, &s->node_differences[n], error));
    }
    s->node_difference_count = nodes;
    PRN_TRY(adjust_for_nodes(s, error));
    return compare_node_manifests(s, error);
}

bool prony_study_node_verdict_of(const prony_study *s, size_t node, prony_study_node_verdict *out)
{
    if (!s->analysed || node >= s->node_difference_count) return false;
    const prn_study_node_difference *d = &s->node_differences[node];
    *out = (prony_study_node_verdict){d->verdict, d->ratio, {d->interval[0], d->interval[1]}};
    return true;
}
