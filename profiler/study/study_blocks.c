/* Queries of a study: configurations, groups, and counted blocks. */
#include "profiler/study/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t prn_study_groups(const prony_study *s)
{
    size_t groups = 0;
    for (size_t i = 0; i < s->configuration_count; i++)
        if (s->configurations[i].group >= groups) groups = s->configurations[i].group + 1;
    return groups;
}

int prn_study_threads(const prn_study_configuration *c)
{
    return c->intra_op * c->inter_op;
}

int prn_study_replicas(const prn_study_configuration *c)
{
    return c->replicas > 1 ? c->replicas : 1;
}

int prn_study_processors(const prn_study_configuration *c)
{
    return prn_study_threads(c) * prn_study_replicas(c);
}

int prony_study_replicas(const prony_study *s, size_t configuration)
{
    return configuration < s->configuration_count ? prn_study_replicas(&s->configurations[configuration]) : 1;
}

size_t prn_study_rounds_done(const prony_study *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->block_count; i++) count += s->blocks[i].replica == 0;
    return count;
}

size_t prn_study_baseline(const prony_study *s, size_t group)
{
    for (size_t i = 0; i < s->configuration_count; i++)
        if (s->configurations[i].group == group && s->configurations[i].baseline && !s->configurations[i].again)
            return i;
    return PRONY_NO_INDEX;
}

const char *prn_study_label(const prony_study *s, size_t configuration, char text[PRN_STUDY_LABEL_BYTES])
{
    const prn_study_configuration *c = &s->configurations[configuration], *first = &s->configurations[0];
    bool batches = false, precisions = false;
    for (size_t i = 0; i < s->configuration_count; i++) {
        batches = batches || s->configurations[i].batch != first->batch;
        precisions = precisions || strcmp(s->configurations[i].precision, first->precision) != 0;
    }
    int used = c->inter_op > 1 ? snprintf(text, PRN_STUDY_LABEL_BYTES, "%d x %d", c->intra_op, c->inter_op)
                               : snprintf(text, PRN_STUDY_LABEL_BYTES, "%d", c->intra_op);
    used +=
        snprintf(text + used, PRN_STUDY_LABEL_BYTES - (size_t)used, " thread%s", prn_study_threads(c) == 1 ? "" : "s");
    if (batches)
        used += snprintf(text + used, PRN_STUDY_LABEL_BYTES - (size_t)used, ", batch %lld", (long long)c->batch);
    if (precisions) used += snprintf(text + used, PRN_STUDY_LABEL_BYTES - (size_t)used, ", %.16s", c->precision);
    if (c->replicas > 1)
        used += snprintf(text + used, PRN_STUDY_LABEL_BYTES - (size_t)used, ", %d replicas", prn_study_replicas(c));
    if (c->again) snprintf(text + used, PRN_STUDY_LABEL_BYTES - (size_t)used, ", again");
    return text;
}

void prony_study_release(prony_study *s)
{
    if (!s) return;
    prony_report_release(s->manifest);
    prn_free(s->blocks);
    prn_bump_release(&s->results_pool);
    prn_bump_release(&s->pool);
    prn_free(s);
}

double prn_study_block_median(const prn_study_block *b)
{
    size_t n = b->sample_count;
    int64_t *sorted = n ? prn_calloc(n, sizeof *sorted) : NULL;
    if (!sorted) return n ? (double)b->samples_ns[n / 2] : 0;
    memcpy(sorted, b->samples_ns, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, prn_compare_i64);
    double median = ((double)sorted[(n - 1) / 2] + (double)sorted[n / 2]) / 2;
    prn_free(sorted);
    return median;
}

static bool begins_round(const prony_study *s, size_t i, size_t node, size_t configuration)
{
    const prn_study_block *b = &s->blocks[i];
    return b->configuration == configuration && b->node == node && b->replica == 0 && !b->failure;
}

/* true: no block of the round that begins at `i` was disturbed. */
static bool round_is_quiet(const prony_study *s, size_t i, size_t replicas)
{
    for (size_t r = 0; r < replicas; r++)
        if (s->blocks[i + r].disturbed) return false;
    return true;
}

/* Whole rounds: all replicas of one, or none. */
static size_t blocks_of_node(const prony_study *s, size_t node, size_t configuration, const prn_study_block **out)
{
    size_t quiet = 0, count = 0, replicas = (size_t)prn_study_replicas(&s->configurations[configuration]);
    for (size_t i = 0; i < s->block_count; i++)
        quiet += begins_round(s, i, node, configuration) && round_is_quiet(s, i, replicas);
    for (size_t i = 0; i < s->block_count; i++) {
        if (!begins_round(s, i, node, configuration)) continue;
        if (quiet >= PRN_STUDY_FEWEST_QUIET && !round_is_quiet(s, i, replicas)) continue;
        for (size_t r = 0; r < replicas; r++, count++)
            if (out) out[count] = &s->blocks[i + r];
    }
    return count;
}

size_t prn_study_blocks_on(const prony_study *s, size_t node, size_t configuration, const prn_study_block **out)
{
    size_t count = 0;
    if (node != PRN_STUDY_ALL_NODES) return blocks_of_node(s, node, configuration, out);
    for (size_t n = 0; n < prn_study_node_total(s); n++)
        count += blocks_of_node(s, n, configuration, out ? out + count : NULL);
    return count;
}

size_t prn_study_blocks_of(const prony_study *s, size_t configuration, const prn_study_block **out)
{
    return prn_study_blocks_on(s, PRN_STUDY_ALL_NODES, configuration, out);
}

prony_status prn_study_medians(prony_study *s, const prony_study *of, size_t node, size_t configuration,
                               prn_processes *out, prony_error *error)
{
    const prn_study_block **blocks = prn_bump_alloc(&s->results_pool, of->block_count + 1, sizeof *blocks);
    double *values = prn_bump_alloc(&s->results_pool, of->block_count + 1, sizeof *values);
    if (!blocks || !values) return prn_no_memory(error);
    const size_t replicas = (size_t)prn_study_replicas(&of->configurations[configuration]);
    const size_t count = prn_study_blocks_on(of, node, configuration, blocks);
    for (size_t i = 0; i < count; i++) values[i] = prn_study_block_median(blocks[i]);
    for (size_t i = 0; replicas > 1 && i < count; i += replicas)
        values[i / replicas] = prn_median(values + i, replicas); /* sorts replicas of one round alone */
    *out = (prn_processes){values, count / replicas};
    return PRONY_OK;
}

/* Ratios base / of by rounds: the two blocks of a round are close in time, so the machine's state affects both. *paired
 * false, without results: less than three quarters of the rounds have both. */
prony_status prn_study_pair_rounds(prony_study *s, size_t node, size_t base, size_t of, prn_processes *out,
                                   bool *paired, prony_error *error)
{
    const prn_study_block **first = prn_bump_alloc(&s->results_pool, s->block_count + 1, sizeof *first);
    const prn_study_block **second = prn_bump_alloc(&s->results_pool, s->block_count + 1, sizeof *second);
    double *values = prn_bump_alloc(&s->results_pool, s->block_count + 1, sizeof *values);
    *paired = false;
    if (!first || !second || !values) return prn_no_memory(error);
    size_t n = prn_study_blocks_on(s, node, base, first), m = prn_study_blocks_on(s, node, of, second), pairs = 0;
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
