/* Replicas: independent processes of one configuration that run at once, started together. The throughput of a round is
 * the sum over its processes, each by its mean time, which includes waiting for a processor. It is compared with that
 * of one process. Bootstraps draw rounds. */
#include "profiler/study/study.h"

#include <math.h>
#include <string.h>

bool prn_study_round_is_whole(const prony_study *s, size_t i)
{
    const prn_study_block *b = &s->blocks[i];
    const int replicas = b->failure ? 1 : prn_study_replicas(&s->configurations[b->configuration]);
    if (b->replica < 0 || b->replica >= replicas) return false;
    if (b->replica > 0) {
        const prn_study_block *before = i ? b - 1 : NULL;
        return before && before->replica == b->replica - 1 && before->configuration == b->configuration &&
               before->node == b->node && !before->failure;
    }
    if (s->block_count - i < (size_t)replicas) return false;
    for (int r = 1; r < replicas; r++)
        if (s->blocks[i + (size_t)r].replica != r) return false;
    return true;
}

static double runs_per_second(const prn_study_block *b)
{
    double sum = 0;
    for (size_t i = 0; i < b->sample_count; i++) sum += (double)b->samples_ns[i];
    return sum > 0 ? 1e9 * (double)b->sample_count / sum : 0;
}

prony_status prn_study_rates(prony_study *s, size_t node, size_t configuration, prn_processes *out, prony_error *error)
{
    const prn_study_configuration *c = &s->configurations[configuration];
    const size_t replicas = (size_t)prn_study_replicas(c);
    const prn_study_block **blocks = prn_bump_alloc(&s->results_pool, s->block_count + 1, sizeof *blocks);
    double *rates = prn_bump_alloc(&s->results_pool, s->block_count + 1, sizeof *rates);
    if (!blocks || !rates) return prn_no_memory(error);
    const size_t count = prn_study_blocks_on(s, node, configuration, blocks);
    for (size_t i = 0; i < count; i++)
        rates[i / replicas] += (double)(c->samples ? c->samples : 1) * runs_per_second(blocks[i]);
    *out = (prn_processes){rates, count / replicas};
    return PRONY_OK;
}

static bool study_replicas_repeats(const prn_study_configuration *many, const prn_study_configuration *one)
{
    return one->replicas <= 1 && !one->again && one->group == many->group && one->intra_op == many->intra_op &&
           one->inter_op == many->inter_op;
}

static size_t single_of(const prony_study *s, size_t configuration)
{
    for (size_t i = 0; i < s->configuration_count; i++)
        if (study_replicas_repeats(&s->configurations[configuration], &s->configurations[i])) return i;
    return PRONY_NO_INDEX;
}

/* Rounds of all nodes together: those of one number, of which every node has a whole one. One replica on each node is
 * the sum of the nodes' medians, `singles`. */
static prony_status sum_over_nodes(prony_study *s, prn_study_replication *p, double singles, prony_error *error)
{
    prony_study_replica_result *r = &p->result;
    const prn_study_configuration *c = &s->configurations[p->configuration];
    const size_t replicas = (size_t)prn_study_replicas(c);
    double *sums = prn_bump_alloc(&s->results_pool, (size_t)s->processes + 1, sizeof *sums);
    size_t *nodes = prn_bump_alloc(&s->results_pool, (size_t)s->processes + 1, sizeof *nodes), count = 0;
    if (!sums || !nodes) return prn_no_memory(error);
    for (size_t i = 0; i < s->block_count; i++) {
        const prn_study_block *b = &s->blocks[i];
        if (b->configuration != p->configuration || b->replica || b->again || b->failure || b->process < 0 ||
            b->process >= s->processes || !prn_study_round_is_whole(s, i))
            continue;
        for (size_t k = 0; k < replicas; k++)
            sums[b->process] += (double)(c->samples ? c->samples : 1) * runs_per_second(&s->blocks[i + k]);
        nodes[b->process]++;
    }
    for (int k = 0; k < s->processes; k++)
        if (nodes[k] == s->node_count) sums[count++] = sums[k];
    r->all_nodes_rounds = count;
    if (count == 0) return PRONY_OK;
    PRN_TRY(prn_process_interval(&r->all_nodes_samples_per_second, r->all_nodes_ci95, (prn_processes){sums, count},
                                 NULL, error));
    p->over_nodes = true;
    r->all_nodes_efficiency = singles > 0 ? r->all_nodes_samples_per_second / singles / (double)replicas : NAN;
    return PRONY_OK;
}

/* Over nodes the value is the median of the nodes', and each node's rounds are divided by its own median of one. */
static prony_status compare_over_nodes(prony_study *s, prn_study_replication *p, prony_error *error)
{
    prony_study_replica_result *r = &p->result;
    prn_processes *rates = prn_bump_alloc(&s->results_pool, s->node_count + 1, sizeof *rates);
    prn_processes *ratios = prn_bump_alloc(&s->results_pool, s->node_count + 1, sizeof *ratios);
    double singles = 0;
    if (!rates || !ratios) return prn_no_memory(error);
    for (size_t n = 0; n < s->node_count; n++) {
        prn_processes one;
        PRN_TRY(prn_study_rates(s, n, p->configuration, &rates[n], error));
        PRN_TRY(prn_study_rates(s, n, p->configuration, &ratios[n], error));
        PRN_TRY(prn_study_rates(s, n, p->single, &one, error));
        double median = prn_median((double *)(uintptr_t)one.values, one.count);
        if (one.count == 0) ratios[n].count = 0;
        for (size_t i = 0; i < ratios[n].count; i++) ((double *)(uintptr_t)ratios[n].values)[i] /= median;
        r->rounds += rates[n].count;
        singles += one.count ? median : NAN;
    }
    PRN_TRY(sum_over_nodes(s, p, singles, error));
    PRN_TRY(prn_grouped_interval(&r->samples_per_second, r->ci95, rates, s->node_count, PRN_STUDY_FEWEST_NODES, error));
    return prn_grouped_interval(&r->speedup, r->speedup_ci95, ratios, s->node_count, PRN_STUDY_FEWEST_NODES, error);
}

static prony_status compare_with_one(prony_study *s, prn_study_replication *p, prony_error *error)
{
    prony_study_replica_result *r = &p->result;
    prn_processes many, one;
    if (s->node_count) return compare_over_nodes(s, p, error);
    PRN_TRY(prn_study_rates(s, 0, p->configuration, &many, error));
    PRN_TRY(prn_study_rates(s, 0, p->single, &one, error));
    r->rounds = many.count;
    PRN_TRY(prn_process_interval(&r->samples_per_second, r->ci95, many, NULL, error));
    return prn_process_interval(&r->speedup, r->speedup_ci95, one, &many, error);
}

/* Throughputs for fitting a law: of rounds; of nodes, if there are enough nodes to draw. */
static prony_status rates_for_law(prony_study *s, size_t configuration, prn_processes *out, prony_error *error)
{
    if (s->node_count < PRN_STUDY_FEWEST_NODES)
        return prn_study_rates(s, PRN_STUDY_ALL_NODES, configuration, out, error);
    double *levels = prn_bump_alloc(&s->results_pool, s->node_count + 1, sizeof *levels);
    size_t count = 0;
    if (!levels) return prn_no_memory(error);
    for (size_t n = 0; n < s->node_count; n++) {
        prn_processes of;
        PRN_TRY(prn_study_rates(s, n, configuration, &of, error));
        if (of.count) levels[count++] = prn_median((double *)(uintptr_t)of.values, of.count);
    }
    *out = (prn_processes){levels, count};
    return PRONY_OK;
}

static prony_status fit_over_replicas(prony_study *s, size_t single, prony_error *error)
{
    double *replicas = prn_bump_alloc(&s->results_pool, s->configuration_count + 1, sizeof *replicas);
    prn_processes *rates = prn_bump_alloc(&s->results_pool, s->configuration_count + 1, sizeof *rates);
    size_t count = 0;
    bool any = false;
    if (!replicas || !rates) return prn_no_memory(error);
    for (size_t i = 0; i < s->configuration_count; i++) {
        const prn_study_configuration *c = &s->configurations[i];
        if (i != single && !(c->replicas > 1 && single_of(s, i) == single)) continue;
        any = any || i != single;
        if (c->beyond) continue;
        PRN_TRY(rates_for_law(s, i, &rates[count], error));
        replicas[count] = prn_study_replicas(c);
        count += rates[count].count > 0;
    }
    for (int law = 0; any && law < 2; law++) {
        prn_study_replica_fit *fit = &s->replica_fits[s->replica_fit_count++];
        *fit = (prn_study_replica_fit){.configuration = single, .law = law ? PRN_LAW_USL : PRN_LAW_AMDAHL};
        PRN_TRY(prn_law_fit_processes(&fit->fit, fit->law, replicas, rates, count, error));
    }
    prn_study_replica_bandwidth *bandwidth = &s->replica_bandwidths[s->replica_bandwidth_count];
    s->replica_bandwidth_count += any && prn_study_replica_bandwidth_of(s, single, bandwidth);
    return PRONY_OK;
}

prony_status prn_study_find_replications(prony_study *s, prony_error *error)
{
    s->replications = prn_bump_alloc(&s->results_pool, s->configuration_count + 1, sizeof *s->replications);
    s->replica_fits = prn_bump_alloc(&s->results_pool, 2 * s->configuration_count + 1, sizeof *s->replica_fits);
    s->replica_bandwidths = prn_bump_alloc(&s->results_pool, s->configuration_count + 1, sizeof *s->replica_bandwidths);
    if (!s->replications || !s->replica_fits || !s->replica_bandwidths) return prn_no_memory(error);
    for (size_t i = 0; i < s->configuration_count; i++) {
        const prn_study_configuration *c = &s->configurations[i];
        if (c->replicas <= 1) {
            PRN_TRY(fit_over_replicas(s, i, error));
            continue;
        }
        prn_study_replication *p = &s->replications[s->replication_count++];
        *p = (prn_study_replication){.configuration = i, .single = single_of(s, i), .result.replicas = c->replicas};
        if (p->single != PRONY_NO_INDEX) PRN_TRY(compare_with_one(s, p, error));
        prony_study_replica_result *r = &p->result;
        if (r->rounds) s->results[i].samples_per_second = r->samples_per_second;
        if (r->rounds == 0) r->samples_per_second = r->speedup = NAN;
        r->efficiency = r->speedup / c->replicas;
        for (int end = 0; end < 2; end++) r->efficiency_ci95[end] = r->speedup_ci95[end] / c->replicas;
    }
    return PRONY_OK;
}

bool prony_study_replica_result_of(const prony_study *s, size_t configuration, prony_study_replica_result *out)
{
    for (size_t i = 0; s->analysed && i < s->replication_count; i++) {
        if (s->replications[i].configuration != configuration || s->replications[i].result.rounds == 0) continue;
        *out = s->replications[i].result;
        return true;
    }
    return false;
}
