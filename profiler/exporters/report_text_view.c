#include "profiler/exporters/report_text_view.h"

#include "profiler/report/work.h"

#include <string.h>

size_t prn_text_shown_rows(size_t count, size_t top)
{
    return top && top < count ? top : count;
}

void prn_text_hidden_rows(prn_text *text, size_t hidden, const char *noun)
{
    if (!hidden) return;
    prn_text_putf(text, PRN_STYLE_DIM, "and %zu more %s%s; --all shows every one", hidden, noun,
                  hidden == 1 ? "" : "s");
    prn_text_line(text);
}

void prn_view_add(prn_text_view *v, const prony_cost *cost, bool measured, int64_t mean_ns, double share)
{
    v->sum.macs += cost->macs;
    v->sum.flops += cost->flops;
    v->sum.parameters += cost->parameters;
    if (!measured) return;
    v->time_ns += mean_ns;
    v->share += share;
    if (share > v->largest_share) v->largest_share = share;
}

const char *prn_view_sum_title(const prn_text_view *v)
{
    return v->filtered || v->part ? "selected" : "total";
}

const prony_nested_row *prn_view_nested(const prn_text_view *v, const prn_line *line)
{
    return line->kind == PRN_LINE_ROW ? NULL : &v->lines.nested[line->row];
}

void prn_view_executions(const prony_nested_row *n, prn_cell *cell)
{
    if (!n->executed) return;
    if (n->executions)
        prn_cell_count(cell, n->executions);
    else
        cell->string = "0";
}

unsigned prn_mark_of(const char *mark)
{
    static const char marks[] = "~-fd!?";
    const char *found = *mark ? strchr(marks, *mark) : NULL;
    return found ? 1U << (found - marks) : 0;
}

void prn_text_marks(prn_text *text, const prony_report *report)
{
    const bool measured = strcmp(prn_estimate_basis(report), "measured") == 0;
    const char *const meanings[] = {
        measured ? "~ estimated time: one operator runs several layers; split by this machine's rates for each kind of "
                   "work"
                 : "~ estimated time: one operator runs several layers; split by the rates of a usual machine ('prony "
                   "machine' measures this one, once)",
        "- removed before the run: it returns or repeats its input, or is folded into weights",
        "f evaluated once, when shapes were bound; costs nothing per run",
        "d shape and cost are known only at run time",
        "! the cancelled run stopped inside it",
        "? too few samples for this quantile (p90 needs 64, p95 130, p99 662)"};
    if (text->marks) prn_text_line(text);
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (text->marks & 1U << i) prn_text_wrap(text, PRN_STYLE_DIM, 0, meanings[i]);
}

void prn_view_nested_legend(prn_text *text, const prn_text_view *v, const char *noun)
{
    for (size_t i = 0; i < v->lines.count; i++) {
        const prony_nested_row *n = prn_view_nested(v, &v->lines.items[i]);
        if (n && n->cancelled) text->marks |= PRN_MARK_CANCELLED;
    }
    if (v->lines.hidden) {
        prn_text_putf(text, PRN_STYLE_DIM, "and %zu more inside these %s; --all shows every one", v->lines.hidden,
                      noun);
        prn_text_line(text);
    }
    if (v->lines.any_nested)
        prn_text_wrap(text, PRN_STYLE_DIM, 0,
                      prn_view_executed(v)
                          ? "indented: runs inside the row above, whose figures include it; runs: executions per run"
                          : "indented: inside the row above, executed once; a row with branches counts the larger one");
}

bool prn_view_executed(const prn_text_view *v)
{
    bool executed = false;
    for (size_t i = 0; i < v->lines.count; i++) {
        const prony_nested_row *n = prn_view_nested(v, &v->lines.items[i]);
        executed |= n && n->executed;
    }
    return executed;
}

void prn_text_heading(prn_text *text, const char *title, const char *note)
{
    prn_text_line(text);
    prn_text_put(text, PRN_STYLE_TITLE, title);
    if (note && *note) {
        prn_text_put(text, PRN_STYLE_PLAIN, "  ");
        prn_text_put(text, PRN_STYLE_DIM, note);
    }
    prn_text_line(text);
}
