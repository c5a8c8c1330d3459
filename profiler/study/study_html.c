/* The study as one HTML page that needs no network and runs no script: the verdict, tables, the charts as drawings
 * (study_svg.c), and the JSON study inside it. */
#include "profiler/exporters/export_out.h"
#include "profiler/exporters/html_page.h"
#include "profiler/text/number_text.h"
#include "profiler/study/study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int to_out(void *user, const char *data, size_t size)
{
    prn_out *out = user;
    prn_out_bytes(out, data, size);
    return out->status == PRONY_OK ? 0 : -1;
}

/* The data must not contain the end of its element. */
static int to_data(void *user, const char *data, size_t size)
{
    prn_out *out = user;
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '<')
            prn_out_text(out, "\\u003c");
        else
            prn_out_bytes(out, data + i, 1);
    }
    return out->status == PRONY_OK ? 0 : -1;
}

static void study_html_cell(prn_out *out, const char *text)
{
    prn_out_text(out, "<td>");
    prn_out_xml(out, text);
    prn_out_text(out, "</td>");
}

static void study_html_number(prn_out *out, double value, double scale, int decimals, const char *unit)
{
    prn_number_text text;
    char whole[80] = "";
    if (isfinite(value)) snprintf(whole, sizeof whole, "%s%s", prn_number_fixed(text, value * scale, decimals), unit);
    prn_out_text(out, "<td class=\"n\">");
    prn_out_xml(out, whole);
    prn_out_text(out, "</td>");
}

static void range(prn_out *out, const double pair[2], double scale, int decimals)
{
    prn_number_text low, high;
    char whole[100] = "";
    if (isfinite(pair[0]) && isfinite(pair[1]))
        snprintf(whole, sizeof whole, "%s - %s", prn_number_fixed(low, pair[0] * scale, decimals),
                 prn_number_fixed(high, pair[1] * scale, decimals));
    prn_out_text(out, "<td class=\"n\">");
    prn_out_xml(out, whole);
    prn_out_text(out, "</td>");
}

/* Writes the table of results. */
static void put_results(prn_out *out, const prony_study *s)
{
    prn_out_text(
        out, "<div class=\"panel wide\"><h2>Results</h2><div class=\"scroller\"><table><thead><tr><th>configuration"
             "</th><th>processes</th><th>median ms</th><th>95 %</th><th>samples/s</th><th>speed-up</th><th>95 %</th>"
             "<th>efficiency</th><th>95 %</th><th>serial fraction</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < s->configuration_count; i++) {
        const prony_study_result *r = &s->results[i];
        char label[PRN_STUDY_LABEL_BYTES], name[PRN_STUDY_LABEL_BYTES + 40];
        bool known = r->processes > 0;
        snprintf(name, sizeof name, "%s%s", prn_study_label(s, i, label),
                 r->oversubscribed ? " (beyond the quota)" : "");
        prn_out_text(out, "<tr>");
        study_html_cell(out, name);
        study_html_number(out, (double)r->processes, 1, 0, "");
        study_html_number(out, known ? r->median_ns : NAN, 1e-6, 4, "");
        range(out, known ? r->ci95_ns : (const double[2]){NAN, NAN}, 1e-6, 4);
        study_html_number(out, known ? r->samples_per_second : NAN, 1, 1, "");
        study_html_number(out, r->speedup, 1, 3, "");
        range(out, r->speedup_ci95, 1, 3);
        study_html_number(out, r->efficiency, 100, 1, " %");
        range(out, r->efficiency_ci95, 100, 1);
        study_html_number(out, r->karp_flatt, 100, 2, " %");
        prn_out_text(out, "</tr>\n");
    }
    prn_out_text(out, "</tbody></table></div></div>\n");
}

/* Writes the table of laws, then the limits. */
static void put_fits(prn_out *out, const prony_study *s)
{
    static const char *const names[] = {"Amdahl", "Gustafson", "USL"};
    prn_out_text(
        out,
        "<div class=\"panel wide\"><h2>Laws and limits</h2><div class=\"scroller\"><table><thead><tr><th>law</th>"
        "<th>over</th><th>serial or contention</th><th>95 %</th><th>coherency</th><th>peak at</th><th>residual</th>"
        "<th></th></tr></thead><tbody>\n");
    for (size_t i = 0; i < s->fit_count; i++) {
        const prn_study_fit *f = &s->fits[i];
        const double none[2] = {NAN, NAN};
        bool known = f->fit.known;
        char label[PRN_STUDY_LABEL_BYTES];
        prn_out_text(out, "<tr>");
        study_html_cell(out, names[f->law]);
        prn_study_label(s, prn_study_baseline(s, f->group), label);
        const char *rest = strchr(label, ',');
        char over[PRN_STUDY_LABEL_BYTES + 16];
        snprintf(over, sizeof over, "%s%s", f->inter ? "workers" : "threads", rest ? rest : "");
        study_html_cell(out, over);
        study_html_number(out, known ? f->fit.alpha : NAN, 100, 3, " %");
        range(out, known ? f->fit.alpha_ci95 : none, 100, 3);
        study_html_number(out, known && f->law == PRN_LAW_USL ? f->fit.beta : NAN, 100, 4, " %");
        study_html_number(out, known ? f->fit.peak : NAN, 1, 1, "");
        study_html_number(out, known ? f->fit.rms : NAN, 100, 2, " %");
        study_html_cell(out, known ? "" : f->reason);
        prn_out_text(out, "</tr>\n");
    }
    prn_out_text(out, "</tbody></table></div>");
    for (size_t i = 0; i < s->limit_count; i++) {
        prn_number_text text;
        prn_out_format(out, "<p>This model's speed-up cannot exceed <b>%s</b> on %d processors of this machine: ",
                       prn_number_fixed(text, s->limits[i].speedup, 2), s->limits[i].processors);
        prn_out_xml(out, s->limits[i].why);
        prn_out_text(out, ".</p>");
    }
    prn_out_text(out, "</div>\n");
}

static void study_html_put_losses(prn_out *out, const prony_study *s)
{
    prn_out_text(
        out, "<div class=\"panel wide\"><h2>Operators, by time lost against an even share</h2><div class=\"scroller\">"
             "<table><thead><tr><th>configuration</th><th>operator</th><th>type</th><th>kernel</th><th>1 thread us</th>"
             "<th>now us</th><th>lost us</th><th>efficiency</th><th>because</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < s->loss_count; i++) {
        const prn_study_loss *l = &s->losses[i];
        const prn_study_operator *o = &s->configurations[l->configuration].operators[l->operator];
        char label[PRN_STUDY_LABEL_BYTES];
        if (s->configurations[l->configuration].intra_op == 1) continue;
        prn_out_text(out, "<tr>");
        study_html_cell(out, prn_study_label(s, l->configuration, label));
        study_html_cell(out, o->name);
        study_html_cell(out, o->op);
        study_html_cell(out, o->kernel);
        study_html_number(out, l->serial_ns, 1e-3, 1, "");
        study_html_number(out, l->time_ns, 1e-3, 1, "");
        study_html_number(out, l->lost_ns, 1e-3, 1, "");
        study_html_number(out, l->efficiency, 100, 0, " %");
        study_html_cell(out, l->reason);
        prn_out_text(out, "</tr>\n");
    }
    prn_out_text(out, "</tbody></table></div></div>\n");
}

/* Writes differences to the earlier study: manifest first, then configurations. */
static void study_html_put_comparison(prn_out *out, const prony_study *s)
{
    prn_out_text(out, "<div class=\"panel wide\"><h2>Compared with the earlier study</h2><ul>");
    for (size_t i = 0; i < s->manifest_difference_count; i++) {
        prn_out_text(out, "<li>");
        prn_out_xml(out, s->manifest_differences[i]);
        prn_out_text(out, "</li>");
    }
    prn_out_text(
        out,
        "</ul><div class=\"scroller\"><table><thead><tr><th>configuration</th><th>then ms</th><th>now ms</th><th>ratio"
        "</th><th>95 %</th><th>p</th><th>is</th><th></th></tr></thead><tbody>\n");
    for (size_t i = 0; i < s->difference_count; i++) {
        const prn_study_difference *d = &s->differences[i];
        char label[PRN_STUDY_LABEL_BYTES];
        prn_out_text(out, "<tr>");
        study_html_cell(out, prn_study_label(s, d->configuration, label));
        study_html_number(out, d->earlier_ns, 1e-6, 4, "");
        study_html_number(out, s->results[d->configuration].processes ? s->results[d->configuration].median_ns : NAN,
                          1e-6, 4, "");
        study_html_number(out, d->ratio, 1, 4, "");
        range(out, d->interval, 1, 4);
        study_html_number(out, d->p, 1, 4, "");
        study_html_cell(out, d->verdict);
        study_html_cell(out, d->why);
        prn_out_text(out, "</tr>\n");
    }
    prn_out_text(out, "</tbody></table></div></div>\n");
}

static void study_html_put_quality(prn_out *out, const prony_study *s)
{
    const prn_study_quality *q = &s->quality;
    prn_number_text text;
    prn_out_text(out, "<section class=\"panel\"><h2>Data quality: ");
    prn_out_xml(out, q->verdict);
    prn_out_text(out, "</h2><p>");
    if (isfinite(q->aa_ratio))
        prn_out_format(out, "The baseline measured twice: %s, ratio %s. ", q->aa,
                       prn_number_fixed(text, q->aa_ratio, 4));
    prn_out_format(out, "%zu of %zu blocks were disturbed, %zu failed.</p><ul>", q->disturbed, q->blocks, q->failed);
    for (size_t i = 0; i < q->note_count; i++) {
        prn_out_text(out, "<li>");
        prn_out_xml(out, q->notes[i]);
        prn_out_text(out, "</li>");
    }
    prn_out_text(out, "</ul></section>\n");
}

static prony_status put_charts(prn_out *out, const prony_study *s, prony_error *error)
{
    for (const char *const *name = prony_study_chart_names(); *name; name++) {
        prony_write_options chart = PRONY_WRITE_OPTIONS_INIT;
        chart.chart = *name;
        prn_out_text(out, "<div class=\"panel\">");
        PRN_TRY(prn_study_write_svg(s, &chart, to_out, out, error));
        prn_out_text(out, "</div>\n");
    }
    return PRONY_OK;
}

/* Writes quality, charts and tables, and the study's JSON as data. */
prony_status prn_study_write_html(const prony_study *s, const prony_write_options *options, prony_write_fn write,
                                  void *user, prony_error *error)
{
    prn_out out;
    prn_bump pool = {0};
    prn_out_begin(&out, write, user, error);
    prn_page_begin(&out, &(prn_page_head){.title = "Scaling of ",
                                          .name = prn_report_title(s->manifest),
                                          .subtitle = s->manifest->system.machine.cpu_model,
                                          .style = PRN_STUDY_STYLE("520px")});
    study_html_put_quality(&out, s);
    prn_out_text(&out, "<section class=\"grid\">\n");
    prony_status status = put_charts(&out, s, error);
    put_results(&out, s);
    put_fits(&out, s);
    if (s->compared) study_html_put_comparison(&out, s);
    study_html_put_losses(&out, s);
    prn_out_text(&out, "<div class=\"panel wide\"><h2>How it was measured</h2><p>");
    const char *statement = prn_study_statement(s, &pool);
    prn_out_xml(&out, statement ? statement : "");
    prn_out_text(&out, "</p></div>\n</section>\n</main>\n<script type=\"application/json\" id=\"data\">");
    if (status == PRONY_OK) status = prn_study_write_json(s, options, to_data, &out, error);
    prn_out_text(&out, "</script>\n</body>\n</html>\n");
    prn_bump_release(&pool);
    return status == PRONY_OK ? prn_out_end(&out) : status;
}
