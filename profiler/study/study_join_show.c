/* Several studies side by side as text, and as one HTML page that needs no network and runs no script. */
#include "profiler/exporters/export_out.h"
#include "profiler/exporters/html_page.h"
#include "profiler/exporters/text_cell.h"
#include "profiler/study/study_join.h"
#include "profiler/text/number_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- cells, for both ---- */

enum { JOIN_COLUMNS = 9 };

static const prn_column join_columns[JOIN_COLUMNS] = {{"configuration", false, false, 1, 12},
                                                      {"study", false, false, 1, 10},
                                                      {"median", true, false, 0, 0},
                                                      {"samples/s", true, true, 0, 0},
                                                      {"speed-up", true, true, 0, 0},
                                                      {"ratio", true, false, 0, 0},
                                                      {"95 %", true, false, 0, 0},
                                                      {"is", false, false, 0, 0},
                                                      {"", false, true, 0, 0}};

static void join_number(prn_cell *cell, double value, int decimals)
{
    prn_number_text text;
    snprintf(cell->own, sizeof cell->own, "%s", isfinite(value) ? prn_number_fixed(text, value, decimals) : "-");
    cell->string = cell->own;
}

/* Row `row` holds a configuration of one study; all studies of a configuration follow one another. */
static void study_join_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const prn_study_join *join = user;
    const size_t of = row / join->count, k = row % join->count, at = prn_study_join_at(join, of, k);
    const prn_study_difference *d = prn_study_join_difference(join, of, k);
    const prony_study_result *r = at == PRONY_NO_INDEX ? NULL : &join->studies[k]->results[at];
    char label[PRN_STUDY_LABEL_BYTES];
    prn_number_text low, high;
    const bool known = r && r->processes > 0;
    switch (column) {
    case 0:
        if (k) return;
        snprintf(cell->own, sizeof cell->own, "%.63s", prn_study_join_label(join, of, label));
        cell->string = cell->own;
        return;
    case 1:
        cell->string = join->names[k];
        return;
    case 2:
        if (known)
            prn_cell_time(cell, (int64_t)llround(r->median_ns));
        else
            join_number(cell, NAN, 0);
        return;
    case 3:
        if (!known) return;
        snprintf(cell->own, sizeof cell->own, "%s", prn_number_si(low, r->samples_per_second, 4, ""));
        cell->string = cell->own;
        return;
    case 4:
        if (known) join_number(cell, r->speedup, 2);
        return;
    case 5:
        if (d) join_number(cell, d->ratio, 3);
        return;
    case 6:
        if (!d || !isfinite(d->interval[0]) || !isfinite(d->interval[1])) return;
        snprintf(cell->own, sizeof cell->own, "%s..%s", prn_number_fixed(low, d->interval[0], 3),
                 prn_number_fixed(high, d->interval[1], 3));
        cell->string = cell->own;
        return;
    case 7:
        if (!d) return;
        cell->string = d->verdict;
        cell->style = strcmp(d->verdict, "same") == 0        ? PRN_STYLE_GOOD
                      : strcmp(d->verdict, "different") == 0 ? PRN_STYLE_BAD
                                                             : PRN_STYLE_WARN;
        return;
    default:
        if (d) cell->string = d->why;
    }
}

/* ---- text ---- */

/* Differences of the machines stand above the table, because ratios between unlike machines need them. The first study
 * is the base of all ratios and has no differences. */
prony_status prn_study_join_text(const prn_study_join *join, const prony_write_options *options, prony_write_fn write,
                                 void *user, prony_error *error)
{
    prn_text *text = prn_alloc(sizeof *text);
    if (!text) return prn_no_memory(error);
    prn_text_begin(text, options->width ? options->width : 80, options->color, write, user, error);
    text->whole_names = options->whole_names != 0;
    for (size_t k = 0; k < join->count; k++) {
        const prony_study *s = join->studies[k];
        prn_text_putf(text, PRN_STYLE_TITLE, "%s", join->names[k]);
        prn_text_putf(text, PRN_STYLE_DIM, ": %s on %s, %zu blocks, data: %s", prn_report_title(s->manifest),
                      s->manifest->system.machine.host_name, s->block_count, s->quality.verdict);
        prn_text_line(text);
        for (size_t i = 0; k && i < s->manifest_difference_count; i++)
            prn_text_wrap(text, PRN_STYLE_WARN, 2, s->manifest_differences[i]);
        if (k && s->manifest_difference_count == 0)
            prn_text_wrap(text, PRN_STYLE_DIM, 2, "same machine, system and build as the first study");
    }
    prn_text_line(text);
    const prn_table table = {.columns = join_columns,
                             .column_count = JOIN_COLUMNS,
                             .names = 1u << 1,
                             .rows = join->row_count * join->count,
                             .cell = study_join_cell,
                             .user = join};
    prn_text_table(text, &table);
    if (join->count > 1)
        prn_text_wrap(text, PRN_STYLE_DIM, 2,
                      "ratio: the study's time over that of the first study; different and same are decided as for "
                      "'prony scale --repeat'");
    const prony_status status = prn_text_end(text);
    prn_free(text);
    return status;
}

/* ---- HTML ---- */

static int study_join_to_out(void *user, const char *data, size_t size)
{
    prn_out *out = user;
    prn_out_bytes(out, data, size);
    return out->status == PRONY_OK ? 0 : -1;
}

static prony_status put_join_charts(prn_out *out, const prn_study_join *join, prony_error *error)
{
    static const char *const charts[] = {"throughput", "speedup"};
    for (size_t i = 0; i < sizeof charts / sizeof *charts; i++) {
        prony_write_options o = PRONY_WRITE_OPTIONS_INIT;
        o.chart = charts[i];
        prn_out_text(out, "<div class=\"panel\">");
        PRN_TRY(prn_study_join_svg(join, &o, study_join_to_out, out, error));
        prn_out_text(out, "</div>\n");
    }
    return PRONY_OK;
}

static void put_join_table(prn_out *out, const prn_study_join *join)
{
    prn_out_text(out, "<div class=\"panel wide\"><h2>Results</h2><div class=\"scroller\"><table><thead><tr>");
    for (int c = 0; c < JOIN_COLUMNS; c++) {
        prn_out_text(out, "<th>");
        prn_out_xml(out, join_columns[c].title);
        prn_out_text(out, "</th>");
    }
    prn_out_text(out, "</tr></thead><tbody>\n");
    for (size_t row = 0; row < join->row_count * join->count; row++) {
        prn_out_text(out, "<tr>");
        for (int c = 0; c < JOIN_COLUMNS; c++) {
            prn_cell cell = {0};
            study_join_cell(join, row, c, &cell);
            prn_out_text(out, join_columns[c].right ? "<td class=\"n\">" : "<td>");
            prn_out_xml(out, cell.string ? cell.string : "");
            prn_out_text(out, "</td>");
        }
        prn_out_text(out, "</tr>\n");
    }
    prn_out_text(out, "</tbody></table></div></div>\n");
}

static void put_join_studies(prn_out *out, const prn_study_join *join)
{
    prn_out_text(out, "<section class=\"panel\"><h2>Studies</h2><ul>\n");
    for (size_t k = 0; k < join->count; k++) {
        const prony_study *s = join->studies[k];
        prn_out_text(out, "<li><b>");
        prn_out_xml(out, join->names[k]);
        prn_out_text(out, "</b>: ");
        prn_out_xml(out, prn_report_title(s->manifest));
        prn_out_text(out, " on ");
        prn_out_xml(out, s->manifest->system.machine.host_name);
        prn_out_text(out, ", ");
        prn_out_xml(out, s->manifest->system.machine.cpu_model);
        prn_out_format(out, ", %zu blocks, data: %s<ul>", s->block_count, s->quality.verdict);
        for (size_t i = 0; k && i < s->manifest_difference_count; i++) {
            prn_out_text(out, "<li>");
            prn_out_xml(out, s->manifest_differences[i]);
            prn_out_text(out, "</li>");
        }
        prn_out_text(out, "</ul></li>\n");
    }
    prn_out_text(out, "</ul></section>\n");
}

prony_status prn_study_join_html(const prn_study_join *join, const prony_write_options *options, prony_write_fn write,
                                 void *user, prony_error *error)
{
    prn_out out;
    (void)options;
    prn_out_begin(&out, write, user, error);
    prn_page_begin(
        &out, &(prn_page_head){.title = "Scaling studies side by side", .name = "", .style = PRN_STUDY_STYLE("720px")});
    put_join_studies(&out, join);
    prn_out_text(&out, "<section class=\"grid\">\n");
    const prony_status status = put_join_charts(&out, join, error);
    put_join_table(&out, join);
    prn_out_text(&out, "</section>\n</main>\n</body>\n</html>\n");
    return status == PRONY_OK ? prn_out_end(&out) : status;
}
