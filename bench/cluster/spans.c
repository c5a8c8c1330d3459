/* Actions of a rank of a pipeline: spans of the last run, and totals of each tensor. Without memory, or beyond
 * MOST_SPANS, spans are left out. */
#include "bench/cluster/pipeline.h"

#include <stdlib.h>

enum { MOST_SPANS = 8192, MOST_TOTALS = 1024 };

void pipeline_begin_spans(pipeline *p)
{
    if (!p->counts) return;
    p->run++;
    p->span_count = 0;
    p->spans_from_ns = prony_now_ns();
    if (!p->spans) p->spans = malloc(MOST_SPANS * sizeof *p->spans);
    if (!p->totals) p->totals = calloc(MOST_TOTALS, sizeof *p->totals);
}

static void add_total(pipeline *p, const pipeline_span *span, size_t bytes)
{
    size_t i = 0;
    while (i < p->total_count &&
           (p->totals[i].kind != span->kind || p->totals[i].peer != span->peer || p->totals[i].tag != span->tag))
        i++;
    if (!p->totals || i == MOST_TOTALS) return;
    if (i == p->total_count)
        p->totals[p->total_count++] = (pipeline_total){.kind = span->kind, .peer = span->peer, .tag = span->tag};
    p->totals[i].messages++;
    p->totals[i].bytes += (int64_t)bytes;
    p->totals[i].time_ns += span->end_ns - span->start_ns;
}

void pipeline_note(pipeline *p, pipeline_span span, int64_t run, size_t bytes)
{
    if (run == 0) return;
    if (span.kind == SPAN_SEND || span.kind == SPAN_RECEIVE) add_total(p, &span, bytes);
    if (run == p->run && p->spans && p->span_count < MOST_SPANS) p->spans[p->span_count++] = span;
}
