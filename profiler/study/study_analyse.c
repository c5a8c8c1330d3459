/* Results of a study: medians, speed-ups and efficiencies with intervals by drawing processes. Times are processes'
 * medians; single runs are never drawn. */
#include "profiler/study/study.h"

#include <math.h>
#include <string.h>

/* The blocks of a result: those of one node, or of all. */
typedef struct result_view {
    size_t node;                  /* PRN_STUDY_ALL_NODES: of one machine, or over nodes */
    const prn_processes *medians; /* [configuration_count], of these blocks */
} result_view;

static bool is_over_nodes(const prony_study *s, const result_view *view)
{
    return s->node_count && view->node == PRN_STUDY_ALL_NODES;
}

static prony_status speedup_of(prony_study *s, const result_view *view, size_t base, size_t of, prony_study_result *r,
                               prony_error *error)
{
    prn_processes ratios;
    bool paired;
    if (is_over_nodes(s, view)) return prn_study_speedup_over_nodes(s, base, of, r, error);
    PRN_TRY(prn_study_pair_rounds(s, view->node, base, of, &ratios, &paired, error));
    if (paired) return prn_process_interval(&r->speedup, r->speedup_ci95, ratios, NULL, error);
    return prn_process_interval(&r->speedup, r->speedup_ci95, view->medians[of], &view->medians[base], error);
}

/* Time, speed-up and efficiency of one configuration. Without a baseline only the time is known. */
static prony_status fill_result(prony_study *s, const result_view *view, size_t index, prony_study_result *r,
                                prony_error *error)
{
    const prn_study_configuration *c = &s->configurations[index];
    const prn_processes *medians = view->medians;
    size_t baseline = prn_study_baseline(s, c->group);
    *r = (prony_study_result){.intra_op_threads = c->intra_op,
                              .inter_op_threads = c->inter_op,
                              .batch = c->batch,
                              .precision = c->precision,
                              .is_duplicate = c->again,
                              .oversubscribed = c->beyond,
                              .processes = medians[index].count,
                              .speedup = NAN,
                              .speedup_ci95 = {NAN, NAN},
                              .efficiency = NAN,
                              .efficiency_ci95 = {NAN, NAN},
                              .karp_flatt = NAN};
    if (r->processes == 0) return PRONY_OK;
    if (is_over_nodes(s, view))
        PRN_TRY(prn_study_time_over_nodes(s, index, r, error));
    else
        PRN_TRY(prn_process_interval(&r->median_ns, r->ci95_ns, medians[index], NULL, error));
    if (r->median_ns > 0) r->samples_per_second = 1e9 * (double)(c->samples ? c->samples : 1) / r->median_ns;
    if (c->replicas > 1) { /* study_replicas.c compares their throughput with one process */
        prn_processes rates;
        PRN_TRY(prn_study_rates(s, view->node, index, &rates, error));
        r->samples_per_second = prn_median((double *)(uintptr_t)rates.values, rates.count);
        return PRONY_OK;
    }
    if (baseline == PRONY_NO_INDEX || medians[baseline].count == 0) return PRONY_OK;
    if (baseline == index) { /* the baseline itself, not a second draw */
        r->speedup = r->efficiency = 1;
        for (int end = 0; end < 2; end++) r->speedup_ci95[end] = r->efficiency_ci95[end] = 1;
        return PRONY_OK;
    }
    PRN_TRY(speedup_of(s, view, baseline, index, r, error));
    double threads = prn_study_threads(c), work = 1;
    if (s->weak) work = (double)c->samples / fmax(1, (double)s->configurations[baseline].samples);
    r->speedup *= work;
    r->efficiency = r->speedup / threads;
    for (int end = 0; end < 2; end++) {
        r->speedup_ci95[end] *= work;
        r->efficiency_ci95[end] = r->speedup_ci95[end] / threads;
    }
    if (threads > 1 && !s->weak) r->karp_flatt = prn_karp_flatt(r->speedup, threads);
    return PRONY_OK;
}

static prony_status fill_results(prony_study *s, size_t node, prony_study_result *results, prony_error *error)
{
    prn_processes *medians = prn_bump_alloc(&s->results_pool, s->configuration_count + 1, sizeof *medians);
    if (!medians) return prn_no_memory(error);
    const result_view view = {node, medians};
    for (size_t i = 0; i < s->configuration_count; i++) PRN_TRY(prn_study_medians(s, s, node, i, &medians[i], error));
    for (size_t i = 0; i < s->configuration_count; i++) PRN_TRY(fill_result(s, &view, i, &results[i], error));
    return PRONY_OK;
}

static prony_status fill_node_results(prony_study *s, prony_error *error)
{
    size_t count = s->node_count * s->configuration_count;
    s->node_results = prn_bump_alloc(&s->results_pool, count + 1, sizeof *s->node_results);
    if (!s->node_results) return prn_no_memory(error);
    for (size_t n = 0; n < s->node_count; n++)
        PRN_TRY(fill_results(s, n, s->node_results + n * s->configuration_count, error));
    s->node_result_count = count;
    return prn_study_compare_nodes(s, error);
}

prony_status prony_study_analyse(prony_study *s, prony_error *error)
{
    if (!s) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_study_analyse: the study is NULL");
    prn_bump_release(&s->results_pool);
    s->results_pool = (prn_bump){0};
    s->analysed = s->compared = false;
    s->fit_count = s->loss_count = s->limit_count = s->difference_count = s->manifest_difference_count = 0;
    s->node_result_count = s->node_difference_count = s->replication_count = s->replica_fit_count = 0;
    s->replica_bandwidth_count = 0;
    s->quality = (prn_study_quality){0};
    s->results = prn_bump_alloc(&s->results_pool, s->configuration_count + 1, sizeof *s->results);
    if (!s->results) return prn_no_memory(error);
    PRN_TRY(fill_results(s, PRN_STUDY_ALL_NODES, s->results, error));
    if (s->node_count) PRN_TRY(fill_node_results(s, error));
    PRN_TRY(prn_study_find_replications(s, error));
    PRN_TRY(prn_study_fit_laws(s, error));
    PRN_TRY(prn_study_find_losses(s, error));
    PRN_TRY(prn_study_find_limits(s, error));
    PRN_TRY(prn_study_judge_data(s, error));
    s->analysed = true;
    return PRONY_OK;
}

const prony_study_result *prony_study_results(const prony_study *s, size_t *count)
{
    *count = s->analysed ? s->configuration_count : 0;
    return s->analysed ? s->results : NULL;
}

const prony_study_result *prony_study_results_on(const prony_study *s, size_t node, size_t *count)
{
    const bool known = s->analysed && node < s->node_count;
    *count = known ? s->configuration_count : 0;
    return known ? s->node_results + node * s->configuration_count : NULL;
}

/* ---- laws ---- */

/* Throughputs for fitting a law: of processes; of nodes, if there are enough nodes to draw. */
static prony_status times_for_law(prony_study *s, size_t configuration, prn_processes *out, prony_error *error)
{
    if (s->node_count >= PRN_STUDY_FEWEST_NODES) return prn_study_node_levels(s, configuration, out, error);
    return prn_study_medians(s, s, PRN_STUDY_ALL_NODES, configuration, out, error);
}

/* Fits one law to the throughputs of a group's configurations along one axis: threads or workers. */
static prony_status fit_law(prony_study *s, prn_study_fit *fit, prony_error *error)
{
    double *threads = prn_bump_alloc(&s->results_pool, s->configuration_count + 1, sizeof *threads);
    prn_processes *rates = prn_bump_alloc(&s->results_pool, s->configuration_count + 1, sizeof *rates);
    size_t count = 0;
    if (!threads || !rates) return prn_no_memory(error);
    for (size_t i = 0; i < s->configuration_count; i++) {
        const prn_study_configuration *c = &s->configurations[i];
        if (c->group != fit->group || c->beyond || c->replicas > 1 || (fit->inter ? c->intra_op : c->inter_op) != 1)
            continue;
        PRN_TRY(times_for_law(s, i, &rates[count], error));
        if (rates[count].count == 0) continue;
        double *values = (double *)(uintptr_t)rates[count].values;
        for (size_t k = 0; k < rates[count].count; k++) values[k] = 1e9 * (double)c->samples / fmax(values[k], 1);
        threads[count++] = prn_study_threads(c);
    }
    if ((fit->law == PRN_LAW_GUSTAFSON) != s->weak) {
        fit->reason = s->weak ? "a law for a fixed amount of work, but here it grows with the threads"
                              : "a law for work that grows with the threads, but here it is fixed";
        return PRONY_OK;
    }
    PRN_TRY(prn_law_fit_processes(&fit->fit, fit->law, threads, rates, count, error));
    if (!fit->fit.known)
        fit->reason = prn_bump_printf(&s->results_pool, "too few points: a fit needs %zu numbers of threads",
                                      prn_law_points(fit->law));
    return fit->fit.known || fit->reason ? PRONY_OK : prn_no_memory(error);
}

static bool has_axis(const prony_study *s, size_t group, bool inter)
{
    for (size_t i = 0; i < s->configuration_count; i++) {
        const prn_study_configuration *c = &s->configurations[i];
        if (c->group == group && (inter ? c->inter_op : c->intra_op) > 1) return true;
    }
    return !inter;
}

prony_status prn_study_fit_laws(prony_study *s, prony_error *error)
{
    static const prn_law laws[] = {PRN_LAW_AMDAHL, PRN_LAW_USL, PRN_LAW_GUSTAFSON};
    size_t groups = prn_study_groups(s);
    s->fits = prn_bump_alloc(&s->results_pool, groups * 6 + 1, sizeof *s->fits);
    if (!s->fits) return prn_no_memory(error);
    for (size_t g = 0; g < groups; g++)
        for (int inter = 0; inter < 2; inter++)
            for (size_t l = 0; l < 3 && has_axis(s, g, inter); l++) {
                s->fits[s->fit_count] = (prn_study_fit){.group = g, .law = laws[l], .inter = inter};
                PRN_TRY(fit_law(s, &s->fits[s->fit_count++], error));
            }
    return PRONY_OK;
}
