/* prony_studies_write: compares each study with the first one, and writes JSON and CSV (a row a result). */
#include "profiler/study/study_join.h"

#include "base/option_struct.h"
#include "profiler/exporters/export_out.h"

#include <math.h>
#include <string.h>

/* ---- JSON ---- */

static void study_join_pair(prn_json *j, const char *key, const double pair[2])
{
    if (!isfinite(pair[0]) || !isfinite(pair[1])) {
        prn_json_null(j, key);
        return;
    }
    prn_json_open(j, key, '[', true);
    prn_json_double(j, NULL, pair[0]);
    prn_json_double(j, NULL, pair[1]);
    prn_json_close(j, ']');
}

static void put_studies(prn_json *j, const prn_study_join *join)
{
    prn_json_open(j, "studies", '[', false);
    for (size_t k = 0; k < join->count; k++) {
        const prony_study *s = join->studies[k];
        const prn_machine *m = &s->manifest->system.machine;
        prn_json_open(j, NULL, '{', false);
        prn_json_string(j, "name", join->names[k]);
        prn_json_string(j, "host", m->host_name);
        prn_json_string(j, "cpu", m->cpu_model);
        prn_json_int(j, "usable_processors", s->usable);
        prn_json_uint(j, "nodes", prn_study_node_total(s));
        prn_json_string(j, "model", prn_report_title(s->manifest));
        prn_json_string(j, "model_sha256", s->manifest->model.sha256);
        prn_json_bool(j, "weak", s->weak);
        prn_json_uint(j, "blocks", s->block_count);
        prn_json_string(j, "quality", s->quality.verdict);
        prn_json_open(j, "manifest_differences", '[', false);
        for (size_t i = 0; k && i < s->manifest_difference_count; i++)
            prn_json_string(j, NULL, s->manifest_differences[i]);
        prn_json_close(j, ']');
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

static void study_join_result(prn_json *j, const prn_study_join *join, size_t row, size_t k)
{
    const size_t at = prn_study_join_at(join, row, k);
    const prony_study_result *r = &join->studies[k]->results[at];
    const prn_study_difference *d = prn_study_join_difference(join, row, k);
    prn_json_open(j, NULL, '{', false);
    prn_json_uint(j, "study", k);
    prn_json_uint(j, "processes", r->processes);
    prn_json_bool(j, "beyond_quota", r->oversubscribed);
    if (r->processes) {
        prn_json_double(j, "median_ns", r->median_ns);
        study_join_pair(j, "median_ci95_ns", r->ci95_ns);
        prn_json_double(j, "samples_per_second", r->samples_per_second);
        prn_json_double(j, "speedup", r->speedup);
        study_join_pair(j, "speedup_ci95", r->speedup_ci95);
        prn_json_double(j, "efficiency", r->efficiency);
        study_join_pair(j, "efficiency_ci95", r->efficiency_ci95);
    }
    if (d) {
        prn_json_double(j, "ratio", d->ratio);
        study_join_pair(j, "ratio_ci95", d->interval);
        prn_json_double(j, "p", d->p);
        prn_json_string(j, "verdict", d->verdict);
        prn_json_string(j, "why", d->why);
    }
    prn_json_close(j, '}');
}

/* A configuration per row, and under it a result per study that has it. A study without the configuration is missing
 * from the list, so each result names its study. */
static prony_status study_join_json(const prn_study_join *join, prony_write_fn write, void *user, prony_error *error)
{
    prn_json *j = prn_json_dated_document(PRN_STUDIES_SCHEMA, write, user, error);
    if (!j) return prn_no_memory(error);
    put_studies(j, join);
    prn_json_open(j, "configurations", '[', false);
    for (size_t row = 0; row < join->row_count; row++) {
        size_t have;
        const prn_study_configuration *c = prn_study_join_row(join, row, &have);
        prn_json_open(j, NULL, '{', false);
        prn_json_int(j, "intra_op_threads", c->intra_op);
        prn_json_int(j, "inter_op_threads", c->inter_op);
        prn_json_int(j, "replicas", prn_study_replicas(c));
        if (c->batch)
            prn_json_int(j, "batch", c->batch);
        else
            prn_json_null(j, "batch");
        prn_json_string(j, "precision", c->precision);
        prn_json_bool(j, "again", c->again);
        prn_json_open(j, "results", '[', false);
        for (size_t k = 0; k < join->count; k++)
            if (prn_study_join_at(join, row, k) != PRONY_NO_INDEX) study_join_result(j, join, row, k);
        prn_json_close(j, ']');
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
    return prn_json_finish(j);
}

/* ---- CSV ---- */

/* In quotes, doubled inside. */
static void csv_text(prn_out *out, const char *text)
{
    prn_out_text(out, "\"");
    for (; *text; text++) prn_out_bytes(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    prn_out_text(out, "\"");
}

/* An unknown number is an empty field. */
static void csv_number(prn_out *out, double value)
{
    prn_out_text(out, ",");
    if (isfinite(value)) prn_out_format(out, "%.15g", value);
}

static void csv_pair(prn_out *out, const double pair[2])
{
    csv_number(out, pair[0]);
    csv_number(out, pair[1]);
}

/* A line per study and configuration. Unknown numbers are empty fields: csv_number and csv_pair write NAN so. The
 * columns of the format string follow the heading. */
static prony_status study_join_csv(const prn_study_join *join, prony_write_fn write, void *user, prony_error *error)
{
    static const double unknown[2] = {NAN, NAN};
    prn_out out;
    prn_out_begin(&out, write, user, error);
    prn_out_text(&out, "study,host,intra_op_threads,inter_op_threads,replicas,batch,precision,again,beyond_quota,"
                       "processes,median_ns,median_low_ns,median_high_ns,samples_per_second,speedup,speedup_low,"
                       "speedup_high,efficiency,efficiency_low,efficiency_high,ratio,ratio_low,ratio_high,verdict\n");
    for (size_t k = 0; k < join->count; k++)
        for (size_t row = 0; row < join->row_count; row++) {
            const prony_study *s = join->studies[k];
            const size_t at = prn_study_join_at(join, row, k);
            if (at == PRONY_NO_INDEX) continue;
            const prn_study_configuration *c = &s->configurations[at];
            const prony_study_result *r = &s->results[at];
            const prn_study_difference *d = prn_study_join_difference(join, row, k);
            const bool known = r->processes > 0;
            csv_text(&out, join->names[k]);
            prn_out_text(&out, ",");
            csv_text(&out, s->manifest->system.machine.host_name);
            prn_out_format(&out, ",%d,%d,%d,%lld,%s,%d,%d,%zu", c->intra_op, c->inter_op, prn_study_replicas(c),
                           (long long)c->samples, c->precision, c->again, c->beyond, r->processes);
            csv_number(&out, known ? r->median_ns : NAN);
            csv_pair(&out, known ? r->ci95_ns : unknown);
            csv_number(&out, known ? r->samples_per_second : NAN);
            csv_number(&out, known ? r->speedup : NAN);
            csv_pair(&out, known ? r->speedup_ci95 : unknown);
            csv_number(&out, known ? r->efficiency : NAN);
            csv_pair(&out, known ? r->efficiency_ci95 : unknown);
            csv_number(&out, d ? d->ratio : NAN);
            csv_pair(&out, d ? d->interval : unknown);
            prn_out_format(&out, ",%s\n", d ? d->verdict : "");
        }
    return prn_out_end(&out);
}

/* ---- */

static prony_status study_join_write(const prn_study_join *join, prony_format format,
                                     const prony_write_options *options, prony_write_fn write, void *user,
                                     prony_error *error)
{
    switch (format) {
    case PRONY_FORMAT_TEXT:
        return prn_study_join_text(join, options, write, user, error);
    case PRONY_FORMAT_JSON:
        return study_join_json(join, write, user, error);
    case PRONY_FORMAT_CSV:
        return study_join_csv(join, write, user, error);
    case PRONY_FORMAT_SVG:
        return prn_study_join_svg(join, options, write, user, error);
    case PRONY_FORMAT_HTML:
        return prn_study_join_html(join, options, write, user, error);
    default:
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "studies side by side can be written as text, JSON, CSV, SVG or HTML only");
    }
}

prony_status prony_studies_write(prony_study *const *studies, const char *const *names, size_t count,
                                 prony_format format, const prony_write_options *options, prony_write_fn write,
                                 void *user, prony_error *error)
{
    prony_write_options own = PRONY_WRITE_OPTIONS_INIT;
    if (!studies || !names || !count || !write)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_studies_write: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "write options", error));
    for (size_t k = 0; k < count; k++)
        if (!studies[k] || !names[k] || !studies[k]->analysed)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "study %zu is NULL, has no name, or was not analysed", k);
    for (size_t k = 1; k < count; k++) PRN_TRY(prn_study_compare_any(studies[k], studies[0], NULL, error));
    prn_study_join join = {.studies = (const prony_study *const *)studies, .names = names, .count = count};
    prony_status status = prn_study_join_find_rows(&join, error);
    if (status == PRONY_OK) status = study_join_write(&join, format, &own, write, user, error);
    prn_free(join.rows);
    return status;
}

size_t prony_study_differences(const prony_study *study)
{
    size_t different = 0;
    for (size_t i = 0; study && study->compared && i < study->difference_count; i++)
        different += strcmp(study->differences[i].verdict, "different") == 0;
    return different;
}
