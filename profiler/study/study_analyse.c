/* Results of a study: medians, speed-ups and efficiencies with intervals by drawing processes anew. Times are those of
 * processes' medians; what is drawn from is never a single run. */
#include "profiler/study/study.h"

#include <math.h>
#include <string.h>

/* Medians of a configuration's processes, in the results' pool. */
static prony_status medians_of(prony_study *s, size_t configuration, prn_processes *out, prony_error *error)
{
    const prn_study_block **blocks = prn_bump_alloc(&s->results_pool, s->block_count + 1, sizeof *blocks);
    double *values = prn_bump_alloc(&s->results_pool, s->block_count + 1, sizeof *values);
    if (!blocks || !values) return prn_no_memory(error);
    *out = (prn_processes){values, prn_study_blocks_of(s, configuration, blocks)};
    for (size_t i = 0; i < out->count; i++) values[i] = prn_study_block_median(blocks[i]);
    return PRONY_OK;
}

/* Ratios base / of by rounds: the two blocks of a round lie close in time, and what the machine does meets both. False,
 * and nothing usable, where less than three quarters of the rounds have both. */
static prony_status pair_rounds(prony_study *s, size_t base, size_t of, prn_processes *out, bool *paired,
                                prony_error *error)
{
    const prn_study_block **first = prn_bump_alloc(&s->results_pool, s->block_count + 1, sizeof *first);
    const prn_study_block **second = prn_bump_alloc(&s->results_pool, s->block_count + 1, sizeof *second);
    double *values = prn_bump_alloc(&s->results_pool, s->block_count + 1, sizeof *values);
    *paired = false;
    if (!first || !second || !values) return prn_no_memory(error);
    size_t n = prn_study_blocks_of(s, base, first), m = prn_study_blocks_of(s, of, second), pairs = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m; k++) {
            if (first[i]->process != second[k]->process || first[i]->again || second[k]->again) continue;
            values[pairs++] = prn_study_block_median(first[i]) / fmax(1, prn_study_block_median(second[k]));
            break;
        }
    *out = (prn_processes){values, pairs};
    *paired = pairs >= PRN_STUDY_FEWEST_QUIET && pairs * 4 >= (n < m ? n : m) * 3;
    return PRONY_OK;
}

static prony_status speedup_of(prony_study *s, const prn_processes *medians, size_t base, size_t of,
                               prony_study_result *r, prony_error *error)
{
    prn_processes ratios;
    bool paired;
    PRN_TRY(pair_rounds(s, base, of, &ratios, &paired, error));
    if (paired) return prn_process_interval(&r->speedup, r->speedup_ci95, ratios, NULL, error);
    return prn_process_interval(&r->speedup, r->speedup_ci95, medians[of], &medians[base], error);
}

static prony_status fill_result(prony_study *s, const prn_processes *medians, size_t index, prony_error *error)
{
    const prn_study_configuration *c = &s->configurations[index];
    prony_study_result *r = &s->results[index];
    size_t baseline = prn_study_baseline(s, c->group);
    *r = (prony_study_result){.intra_op_threads = c->intra_op,
                              .inter_op_threads = c->inter_op,
                              .batch = c->batch,
                              .precision = c->precision,
                              .again = c->again,
                              .beyond = c->beyond,
                              .processes = medians[index].count,
                              .speedup = NAN,
                              .speedup_ci95 = {NAN, NAN},
                              .efficiency = NAN,
                              .efficiency_ci95 = {NAN, NAN},
                              .karp_flatt = NAN};
    if (r->processes == 0) return PRONY_OK;
    PRN_TRY(prn_process_interval(&r->median_ns, r->ci95_ns, medians[index], NULL, error));
    if (r->median_ns > 0) r->samples_per_second = 1e9 * (double)(c->samples ? c->samples : 1) / r->median_ns;
    if (baseline == PRONY_NO_INDEX || medians[baseline].count == 0) return PRONY_OK;
    if (baseline == index) { /* itself, not a second draw of it */
        r->speedup = r->efficiency = 1;
        for (int end = 0; end < 2; end++) r->speedup_ci95[end] = r->efficiency_ci95[end] = 1;
        return PRONY_OK;
    }
    PRN_TRY(speedup_of(s, medians, baseline, index, r, error));
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

prony_status prony_study_analyse(prony_study *s, prony_error *error)
{
    if (!s) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_study_analyse: the study is NULL");
    prn_bump_release(&s->results_pool);
    s->results_pool = (prn_bump){0};
    s->analysed = s->compared = false;
    s->fit_count = s->loss_count = s->limit_count = s->difference_count = s->manifest_difference_count = 0;
    s->quality = (prn_study_quality){0};
    s->results = prn_bump_alloc(&s->results_pool, s->configuration_count + 1, sizeof *s->results);
    prn_processes *medians = prn_bump_alloc(&s->results_pool, s->configuration_count + 1, sizeof *medians);
    if (!s->results || !medians) return prn_no_memory(error);
    for (size_t i = 0; i < s->configuration_count; i++) PRN_TRY(medians_of(s, i, &medians[i], error));
    for (size_t i = 0; i < s->configuration_count; i++) PRN_TRY(fill_result(s, medians, i, error));
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

/* ---- laws ---- */

static prony_status fit_law(prony_study *s, prn_study_fit *fit, prony_error *error)
{
    double *threads = prn_bump_alloc(&s->results_pool, s->configuration_count + 1, sizeof *threads);
    prn_processes *rates = prn_bump_alloc(&s->results_pool, s->configuration_count + 1, sizeof *rates);
    size_t count = 0;
    if (!threads || !rates) return prn_no_memory(error);
    for (size_t i = 0; i < s->configuration_count; i++) {
        const prn_study_configuration *c = &s->configurations[i];
        if (c->group != fit->group || c->beyond || (fit->inter ? c->intra_op : c->inter_op) != 1) continue;
        PRN_TRY(medians_of(s, i, &rates[count], error));
        if (rates[count].count == 0) continue;
        double *values = (double *)(uintptr_t)rates[count].values;
        for (size_t k = 0; k < rates[count].count; k++) values[k] = 1e9 * (double)c->samples / fmax(values[k], 1);
        threads[count++] = prn_study_threads(c);
    }
    if ((fit->law == PRN_LAW_GUSTAFSON) != s->weak) {
        fit->reason = s->weak ? "a law of a fixed amount of work, and here it grows with the threads"
                              : "a law of work that grows with the threads, and here it is fixed";
        return PRONY_OK;
    }
    PRN_TRY(prn_law_fit_processes(&fit->fit, fit->law, threads, rates, count, error));
    if (!fit->fit.known)
        fit->reason = prn_bump_printf(&s->results_pool, "not enough points to say: it takes %zu numbers of threads",
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
