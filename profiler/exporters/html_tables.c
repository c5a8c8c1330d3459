/* The report as plain tables, for browsers without scripts: the main metrics, the types, and the slowest layers. */
#include "profiler/exporters/html_tables.h"

#include "base/memory/alloc.h"
#include "profiler/text/number_text.h"
#include "profiler/exporters/color_map.h"
#include "profiler/report/type_summary.h"
#include "profiler/report/work.h"

#include <inttypes.h>
#include <stdio.h>

enum { MOST_ROWS = 1000 }; /* of layers: larger tables load slowly and are hard to read; chosen without measurement */

static void html_tables_put_fact(prn_out *out, const char *name, const char *value)
{
    prn_out_text(out, "<dt>");
    prn_out_xml(out, name);
    prn_out_text(out, "</dt><dd>");
    prn_out_xml(out, value);
    prn_out_text(out, "</dd>\n");
}

static void html_tables_cell(prn_out *out, bool number, const char *text)
{
    prn_out_text(out, number ? "<td class=\"num\">" : "<td>");
    prn_out_xml(out, text ? text : "");
}

static void begin_table(prn_out *out, const char *title, const char *const *columns, const char *numeric)
{
    prn_out_format(out, "<h2>%s</h2>\n<div class=\"plain-table\"><table><thead><tr>", title);
    for (size_t i = 0; columns[i]; i++)
        prn_out_format(out, "<th scope=\"col\"%s>%s", numeric[i] == 'n' ? " class=\"num\"" : "", columns[i]);
    prn_out_text(out, "</thead><tbody>\n");
}

static void end_table(prn_out *out)
{
    prn_out_text(out, "</tbody></table></div>\n");
}

static void put_figures(prn_out *out, const prony_report *r)
{
    prn_number_text a, b, c;
    char line[160];
    prn_out_text(out, "<dl>\n");
    if (r->measured) {
        const prony_time_stats *t = &r->latency;
        snprintf(line, sizeof line, "%s median, 95 %% interval %s to %s", prn_number_time(a, t->median_ns, 4, " "),
                 prn_number_time(b, t->median_ci95_ns[0], 4, " "), prn_number_time(c, t->median_ci95_ns[1], 4, " "));
        html_tables_put_fact(out, "Latency", line);
        snprintf(line, sizeof line, "%" PRIu64, t->count);
        html_tables_put_fact(out, "Runs", line);
    }
    snprintf(line, sizeof line, "%s MACs, %sFLOPs", prn_number_si(a, (double)r->totals.cost.macs, 4, " "),
             prn_number_si(b, (double)r->totals.cost.flops, 4, " "));
    html_tables_put_fact(out, "Work", line);
    html_tables_put_fact(out, "Parameters", prn_number_si(a, (double)r->totals.cost.parameters, 4, " "));
    if (r->has_memory) {
        html_tables_put_fact(out, "Arena", prn_number_bytes(a, (double)r->memory.planned_bytes, 4, " "));
        html_tables_put_fact(out, "Peak of the process", prn_number_bytes(a, (double)r->memory.peak_rss_bytes, 4, " "));
    }
    prn_out_text(out, "</dl>\n");
}

static prony_status put_types(prn_out *out, const prony_report *r, prony_error *error)
{
    static const char *const columns[] = {"type", "n", "time", "% of the time", "FLOPs", "% of the FLOPs", NULL};
    prn_type_row *rows;
    size_t count;
    PRN_TRY(prn_type_summary(r, &rows, &count, error));
    begin_table(out, "Types", columns, "tnnnnn");
    double flops = r->totals.cost.flops ? (double)r->totals.cost.flops : 1;
    for (size_t i = 0; i < count; i++) {
        prn_number_text text;
        bool timed = prn_report_stamped(r);
        prn_out_text(out, "<tr>");
        html_tables_cell(out, false, rows[i].op);
        html_tables_cell(out, true, prn_number_grouped(text, rows[i].count));
        html_tables_cell(out, true, timed ? prn_number_time(text, rows[i].time_ns, 3, " ") : "");
        html_tables_cell(out, true, timed ? prn_number_percent(text, rows[i].share) : "");
        html_tables_cell(out, true, prn_number_si(text, (double)rows[i].flops, 3, " "));
        html_tables_cell(out, true, prn_number_percent(text, (double)rows[i].flops / flops));
        prn_out_text(out, "\n");
    }
    end_table(out);
    prn_free(rows);
    return PRONY_OK;
}

static void html_tables_put_layer(prn_out *out, const prony_report *r, const prony_layer_row *l)
{
    prn_number_text text;
    char time[80];
    prn_out_text(out, "<tr>");
    html_tables_cell(out, true, prn_number_grouped(text, l->index));
    html_tables_cell(out, false, l->name);
    html_tables_cell(out, false, l->op);
    const int digits = l->time_attributed ? prn_estimate_digits(l) : 3;
    if (l->measured)
        snprintf(time, sizeof time, "%s%s", l->time_attributed ? "~" : "",
                 prn_number_time(text, l->time.mean_ns, digits, " "));
    html_tables_cell(out, true, l->removed ? "removed" : l->measured ? time : "");
    html_tables_cell(out, true, prn_number_percent(text, prn_color_map_layer(r, l)));
    html_tables_cell(out, true, prn_number_si(text, (double)l->cost.flops, 3, " "));
    html_tables_cell(out, true, prn_number_si(text, (double)l->cost.parameters, 3, " "));
    html_tables_cell(out, true, prn_number_bytes(text, (double)(l->cost.bytes_read + l->cost.bytes_written), 3, " "));
    prn_out_text(out, "\n");
}

static prony_status html_tables_put_layers(prn_out *out, const prony_report *r, prony_error *error)
{
    static const char *const columns[] = {"#", "name", "type", "time", "%", "FLOPs", "parameters", "bytes", NULL};
    size_t count;
    prn_hot_layer *hot = prn_hottest_layers(r, &count);
    if (!hot) return prn_no_memory(error);
    begin_table(out, "Layers", columns, "nttnnnnn");
    for (size_t i = 0; i < count && i < MOST_ROWS; i++) html_tables_put_layer(out, r, &r->layers[hot[i].layer]);
    end_table(out);
    if (count > MOST_ROWS)
        prn_out_format(out, "<p>and %zu smaller ones; the page's JSON holds them all.</p>\n", count - MOST_ROWS);
    prn_out_format(out, "<p>%s; ~: estimated, because one operator runs several layers.</p>\n",
                   prn_report_stamped(r) ? "%: share of the time inside operators" : "%: share of the FLOPs");
    prn_free(hot);
    return PRONY_OK;
}

prony_status prn_html_plain_tables(prn_out *out, const prony_report *r, prony_error *error)
{
    prn_out_text(out, "<noscript>\n<div class=\"plain\"><h1>");
    prn_out_xml(out, prn_report_title(r));
    prn_out_text(out, "</h1>\n<p>Graph, timeline, sorting and filtering need JavaScript; these tables and the pictures "
                      "below do not.</p>\n");
    put_figures(out, r);
    PRN_TRY(put_types(out, r, error));
    PRN_TRY(html_tables_put_layers(out, r, error));
    prn_out_text(out, "</div>\n</noscript>\n");
    return PRONY_OK;
}
