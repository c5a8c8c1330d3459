/* Tables in the manner of booktabs. The file compiles alone, and can be \input by a document that loads booktabs and
 * longtable: it opens its own document only if none is open. Follows `levels`, `top`, `sort` and `filter`. Plain ASCII:
 * other characters of names become '?'. Reads the report only.
 */
#include "profiler/exporters/export_out.h"
#include "profiler/exporters/nested_lines.h"
#include "profiler/text/number_text.h"
#include "profiler/report/report_select.h"
#include "profiler/report/type_summary.h"

#include "base/shape.h"

#include <string.h>

static void report_latex_put_escaped(prn_out *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c & 0xc0) == 0x80) continue; /* the rest of a character that is a '?' already */
        if (strchr("&%$#_{}", c))
            prn_out_format(out, "\\%c", c);
        else if (c == '\\')
            prn_out_text(out, "\\textbackslash{}");
        else if (c == '~')
            prn_out_text(out, "\\textasciitilde{}");
        else if (c == '^')
            prn_out_text(out, "\\textasciicircum{}");
        else if (c == '<' || c == '>' || c == '|' || c == '"')
            prn_out_format(out, "\\char%d{}", c);
        else if (c < 0x20 || c > 0x7e)
            prn_out_text(out, "?");
        else
            prn_out_bytes(out, text, 1);
        if (c == '/' || c == '.' || c == '_' || c == ':') prn_out_text(out, "\\allowbreak{}");
    }
}

static void put_si(prn_out *out, double value)
{
    prn_number_text text;
    prn_out_text(out, value > 0 || value < 0 ? prn_number_si(text, value, 3, "~") : "0");
}

static void report_latex_put_time(prn_out *out, int64_t ns)
{
    prn_number_text text;
    char *number = prn_number_time(text, ns, 3, "~");
    char *micro = strstr(number, "~us");
    if (!micro) {
        prn_out_text(out, number);
        return;
    }
    prn_out_bytes(out, number, (size_t)(micro - number));
    prn_out_text(out, "~$\\mu$s");
}

static void put_percent(prn_out *out, double share)
{
    prn_out_fixed(out, share * 100, 1);
}

static void report_latex_next(prn_out *out)
{
    prn_out_text(out, " & ");
}

/* `heading` is the line of column names, `columns` the tabular's argument. */
static void open_table(prn_out *out, const char *columns, const char *heading, const char *model, const char *what)
{
    prn_out_format(out, "\\begin{longtable}{%s}\n\\caption{", columns);
    report_latex_put_escaped(out, model);
    prn_out_format(out, ": %s}\\\\\n\\toprule\n%s \\\\\n\\midrule\n\\endfirsthead\n", what, heading);
    prn_out_format(out, "\\toprule\n%s \\\\\n\\midrule\n\\endhead\n\\bottomrule\n\\endfoot\n", heading);
}

static void close_table(prn_out *out)
{
    prn_out_text(out, "\\end{longtable}\n\n");
}

static void report_latex_put_fact(prn_out *out, const char *label)
{
    report_latex_put_escaped(out, label);
    report_latex_next(out);
}

static void end_row(prn_out *out)
{
    prn_out_text(out, " \\\\\n");
}

/* Writes the summary table of the model. */
static void report_latex_write_model(prn_out *out, const prony_report *r)
{
    prn_number_text text;
    open_table(out, "lr", "figure & value", prn_report_title(r), "summary");
    report_latex_put_fact(out, "MACs"), put_si(out, (double)r->totals.cost.macs), end_row(out);
    report_latex_put_fact(out, "FLOPs"), put_si(out, (double)r->totals.cost.flops), end_row(out);
    report_latex_put_fact(out, "parameters"), put_si(out, (double)r->totals.cost.parameters), end_row(out);
    report_latex_put_fact(out, "weights");
    prn_out_text(out, prn_number_bytes(text, (double)r->model.parameter_bytes, 3, "~")), end_row(out);
    report_latex_put_fact(out, "layers"), prn_out_format(out, "%zu", r->layer_count), end_row(out);
    if (r->operator_count) {
        report_latex_put_fact(out, "operators executed"), prn_out_format(out, "%zu", r->operator_count), end_row(out);
    }
    if (r->has_memory) {
        report_latex_put_fact(out, "arena");
        prn_out_text(out, prn_number_bytes(text, (double)r->memory.planned_bytes, 3, "~")), end_row(out);
    }
    if (r->measured) {
        report_latex_put_fact(out, "threads"), prn_out_format(out, "%d", r->config.intra_op_threads), end_row(out);
        report_latex_put_fact(out, "runs"), prn_out_format(out, "%llu", (unsigned long long)r->latency.count),
            end_row(out);
        report_latex_put_fact(out, "latency, median"), report_latex_put_time(out, r->latency.median_ns), end_row(out);
        report_latex_put_fact(out, "95 % interval of the median"),
            report_latex_put_time(out, r->latency.median_ci95_ns[0]);
        prn_out_text(out, " -- "), report_latex_put_time(out, r->latency.median_ci95_ns[1]), end_row(out);
        if (r->latency.p99_valid)
            report_latex_put_fact(out, "latency, P99"), report_latex_put_time(out, r->latency.p99_ns), end_row(out);
    }
    close_table(out);
}

/* Writes the table by operator type. */
static prony_status write_types(prn_out *out, const prony_report *r, size_t top, prony_error *error)
{
    prn_type_row *rows;
    size_t count;
    PRN_TRY(prn_type_summary(r, &rows, &count, error));
    bool stamped = prn_report_stamped(r);
    open_table(out, "lrrrrrr", "type & $n$ & time & share/\\% & MACs & FLOPs & parameters", prn_report_title(r),
               stamped ? "by type, share of the time" : "by type, share of the FLOPs");
    for (size_t i = 0; i < count && (!top || i < top); i++) {
        const prn_type_row *t = &rows[i];
        report_latex_put_escaped(out, t->op);
        prn_out_format(out, " & %llu & ", (unsigned long long)t->count);
        if (stamped)
            report_latex_put_time(out, t->time_ns);
        else
            prn_out_text(out, "--");
        report_latex_next(out), put_percent(out, t->share);
        report_latex_next(out), put_si(out, (double)t->macs);
        report_latex_next(out), put_si(out, (double)t->flops);
        report_latex_next(out), put_si(out, (double)t->parameters);
        end_row(out);
    }
    close_table(out);
    prn_free(rows);
    return PRONY_OK;
}

static void report_latex_put_row(prn_out *out, uint32_t index, const char *name, const char *what,
                                 const prony_cost *cost, bool measured, const prony_time_stats *time, double share)
{
    prn_out_format(out, "%u & ", index);
    report_latex_put_escaped(out, name);
    report_latex_next(out), report_latex_put_escaped(out, what);
    report_latex_next(out);
    if (measured)
        report_latex_put_time(out, time->mean_ns);
    else
        prn_out_text(out, "--");
    report_latex_next(out);
    if (measured)
        put_percent(out, share);
    else
        prn_out_text(out, "--");
    report_latex_next(out), put_si(out, (double)cost->macs);
    report_latex_next(out), put_si(out, (double)cost->flops);
    report_latex_next(out), put_si(out, (double)cost->parameters);
    end_row(out);
}

/* Writes a nested row in italics, indented below its owner; it is not part of the table's sums. */
static void report_latex_put_nested(prn_out *out, const prn_line *line, const prony_nested_row *n, const char *what)
{
    bool subgraph = line->kind == PRN_LINE_SUBGRAPH;
    size_t indent = strspn(line->label, " ");
    prn_out_format(out, " & \\hspace*{%zuem}\\textit{", indent < 16 ? indent : 16);
    report_latex_put_escaped(out, line->label + indent);
    prn_out_text(out, "}");
    if (n->executed && subgraph) prn_out_format(out, " $\\times$%llu", (unsigned long long)n->executions);
    report_latex_next(out);
    if (subgraph) {
        prn_out_text(out, " &  &  &  &  & ");
        end_row(out);
        return;
    }
    bool timed = n->measured && n->executions;
    report_latex_put_escaped(out, what);
    report_latex_next(out);
    if (timed)
        report_latex_put_time(out, n->time.mean_ns);
    else
        prn_out_text(out, "--");
    report_latex_next(out);
    if (timed)
        put_percent(out, n->share);
    else
        prn_out_text(out, "--");
    report_latex_next(out), put_si(out, (double)n->cost.macs);
    report_latex_next(out), put_si(out, (double)n->cost.flops);
    report_latex_next(out), put_si(out, (double)n->cost.parameters);
    end_row(out);
}

#define ROW_COLUMNS                                                                                                    \
    "r>{\\raggedright\\arraybackslash}p{0.30\\linewidth}>{\\raggedright\\arraybackslash}p{0.14\\linewidth}rrrrr"

static prony_status report_latex_write_layers(prn_out *out, const prn_selection *s, size_t top, prony_error *error)
{
    const prony_report *r = s->report;
    uint32_t *rows;
    size_t count;
    PRN_TRY(prn_select_layers(s, &rows, &count, error));
    prn_lines lines;
    prony_status status = prn_lines_make(&lines, s, true, rows, top && top < count ? top : count, top != 0, error);
    open_table(out, ROW_COLUMNS, "\\# & layer & op & time & \\% & MACs & FLOPs & params", prn_report_title(r),
               "layers");
    for (size_t i = 0; status == PRONY_OK && i < lines.count; i++) {
        const prn_line *line = &lines.items[i];
        if (line->kind != PRN_LINE_ROW) {
            report_latex_put_nested(out, line, &lines.nested[line->row], lines.nested[line->row].op);
            continue;
        }
        const prony_layer_row *l = &r->layers[line->row];
        report_latex_put_row(out, l->index, l->name, l->op, &l->cost, l->measured, &l->time, l->share);
    }
    close_table(out);
    prn_lines_free(&lines);
    prn_free(rows);
    return status;
}

static prony_status report_latex_write_operators(prn_out *out, const prn_selection *s, size_t top, prony_error *error)
{
    const prony_report *r = s->report;
    uint32_t *rows;
    size_t count;
    if (r->operator_count == 0) return PRONY_OK;
    PRN_TRY(prn_select_operators(s, &rows, &count, error));
    prn_lines lines;
    prony_status status = prn_lines_make(&lines, s, false, rows, top && top < count ? top : count, top != 0, error);
    open_table(out, ROW_COLUMNS, "\\# & operator & kernel & time & \\% & MACs & FLOPs & params", prn_report_title(r),
               "operators");
    for (size_t i = 0; status == PRONY_OK && i < lines.count; i++) {
        const prn_line *line = &lines.items[i];
        if (line->kind != PRN_LINE_ROW) {
            report_latex_put_nested(out, line, &lines.nested[line->row], lines.nested[line->row].kernel);
            continue;
        }
        const prony_operator_row *o = &r->operators[line->row];
        report_latex_put_row(out, o->index, o->name, o->kernel, &o->cost, o->measured, &o->time, o->share);
    }
    close_table(out);
    prn_lines_free(&lines);
    prn_free(rows);
    return status;
}

static void report_latex_write_modules(prn_out *out, const prony_report *r, size_t top)
{
    bool stamped = prn_report_stamped(r);
    open_table(out, "lrrrrr", "module & time & share/\\% & MACs & FLOPs & parameters", prn_report_title(r), "modules");
    for (size_t i = 0; i < r->module_count && (!top || i < top); i++) {
        const prn_module_row *m = &r->modules[i];
        prn_out_format(out, "\\hspace*{%uem}", m->depth < 12 ? m->depth : 12);
        const char *last = strrchr(m->path, '/');
        report_latex_put_escaped(out, !*m->path ? "__root__" : last ? last + 1 : m->path);
        report_latex_next(out);
        if (stamped)
            report_latex_put_time(out, m->time_ns), report_latex_next(out), put_percent(out, m->share);
        else
            prn_out_text(out, "-- & --");
        report_latex_next(out), put_si(out, (double)m->macs);
        report_latex_next(out), put_si(out, (double)m->flops);
        report_latex_next(out), put_si(out, (double)m->parameters);
        end_row(out);
    }
    close_table(out);
}

/* Writes the preamble, which is inactive inside of another document, and the tables of the selected levels. */
prony_status prn_report_write_latex(const prony_report *r, const prony_write_options *options, prony_write_fn write,
                                    void *user, prony_error *error)
{
    unsigned all = PRONY_LEVEL_MODEL | PRONY_LEVEL_LAYER | PRONY_LEVEL_OPERATOR | PRONY_LEVEL_MODULE;
    unsigned levels = options->levels ? options->levels : all;
    size_t top = options->top > 0 ? (size_t)options->top : 0;
    prn_selection selection;
    prn_out out;
    PRN_TRY(prn_select_init(&selection, r, options, error));
    prn_out_begin(&out, write, user, error);
    prn_out_text(&out,
                 "% Compiles on its own; in your own document: \\usepackage{array,booktabs,longtable} and "
                 "\\input.\n\\expandafter\\ifx\\csname "
                 "@nodocument\\endcsname\\relax\\def\\pronyend{}\\else\n\\documentclass[a4paper,10pt]{article}"
                 "\n\\usepackage{array,booktabs,longtable}\n\\usepackage[margin=15mm]{geometry}\n\\begin{document}"
                 "\n\\def\\pronyend{\\end{document}}\n\\fi\n{\\footnotesize\\setlength{\\tabcolsep}{4pt}\n");
    if (levels & PRONY_LEVEL_MODEL) report_latex_write_model(&out, r);
    prony_status status = PRONY_OK;
    if (levels & PRONY_LEVEL_MODEL) status = write_types(&out, r, top, error);
    if (status == PRONY_OK && levels & PRONY_LEVEL_LAYER)
        status = report_latex_write_layers(&out, &selection, top, error);
    if (status == PRONY_OK && levels & PRONY_LEVEL_OPERATOR)
        status = report_latex_write_operators(&out, &selection, top, error);
    if (status == PRONY_OK && levels & PRONY_LEVEL_MODULE) report_latex_write_modules(&out, r, top);
    prn_out_text(&out, "}\n\\pronyend\n");
    return status == PRONY_OK ? prn_out_end(&out) : status;
}
