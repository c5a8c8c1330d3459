/* The study as JSON, "prony.study/1", and its samples as CSV. Reads the study only. */
#include "profiler/exporters/export_out.h"
#include "profiler/study/study_keys.h"

prony_status prn_study_write_json(const prony_study *s, const prony_write_options *options, prony_write_fn write,
                                  void *user, prony_error *error)
{
    (void)options;
    prn_at at = {.root = (prony_study *)s, .row = (prony_study *)s};
    return prn_keys_write_document(PRN_STUDY_SCHEMA, prn_study_keys, &at, write, user, error);
}

/* ---- CSV ---- */

/* One line per sample. Columns of replicas and nodes exist only if the study has them. */
prony_status prn_study_write_csv(const prony_study *s, const prony_write_options *options, prony_write_fn write,
                                 void *user, prony_error *error)
{
    (void)options;
    prn_out out;
    prn_out_begin(&out, write, user, error);
    prn_out_text(&out,
                 "block,configuration,intra_op_threads,inter_op_threads,batch,precision,baseline,again,beyond_quota,"
                 "process,disturbed,run,latency_ns");
    bool replicas = false;
    for (size_t i = 0; i < s->configuration_count; i++) replicas = replicas || s->configurations[i].replicas > 1;
    prn_out_text(&out, replicas ? ",replicas,replica" : "");
    prn_out_text(&out, s->node_count ? ",node,host\n" : "\n");
    for (size_t i = 0; i < s->block_count; i++) {
        const prn_study_block *b = &s->blocks[i];
        const prn_study_configuration *c = &s->configurations[b->configuration];
        for (size_t k = 0; k < b->sample_count; k++) {
            prn_out_format(&out, "%zu,%zu,%d,%d,%lld,%s,%d,%d,%d,%d,%s,%zu,%lld", i, b->configuration, c->intra_op,
                           c->inter_op, (long long)c->samples, c->precision, c->baseline, c->again, c->beyond,
                           b->process, b->disturbed ? b->disturbed : "", k, (long long)b->samples_ns[k]);
            if (replicas) prn_out_format(&out, ",%d,%d", prn_study_replicas(c), b->replica);
            if (s->node_count) prn_out_format(&out, ",%zu,%s", b->node, s->nodes[b->node].host);
            prn_out_text(&out, "\n");
        }
    }
    return prn_out_end(&out);
}
