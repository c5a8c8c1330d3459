/* What a study holds: its configurations and groups, and the blocks that count. */
#include "profiler/study/study.h"

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
    int used = c->inter_op > 1 ? snprintf(text, PRN_STUDY_LABEL_BYTES, "%d x %d", c->inter_op, c->intra_op)
                               : snprintf(text, PRN_STUDY_LABEL_BYTES, "%d", c->intra_op);
    used +=
        snprintf(text + used, PRN_STUDY_LABEL_BYTES - (size_t)used, " thread%s", prn_study_threads(c) == 1 ? "" : "s");
    if (batches)
        used += snprintf(text + used, PRN_STUDY_LABEL_BYTES - (size_t)used, ", batch %lld", (long long)c->batch);
    if (precisions) used += snprintf(text + used, PRN_STUDY_LABEL_BYTES - (size_t)used, ", %.16s", c->precision);
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

size_t prn_study_blocks_of(const prony_study *s, size_t configuration, const prn_study_block **out)
{
    size_t quiet = 0, count = 0;
    for (size_t i = 0; i < s->block_count; i++) {
        const prn_study_block *b = &s->blocks[i];
        quiet += b->configuration == configuration && !b->failure && !b->disturbed;
    }
    for (size_t i = 0; i < s->block_count; i++) {
        const prn_study_block *b = &s->blocks[i];
        if (b->configuration != configuration || b->failure || (quiet >= PRN_STUDY_FEWEST_QUIET && b->disturbed))
            continue;
        if (out) out[count] = b;
        count++;
    }
    return count;
}
