/* Writes a comparison with another engine as text and as JSON, "prony.versus/1". */
#include "base/option_struct.h"
#include "profiler/text/number_text.h"
#include "profiler/text/text_out.h"
#include "profiler/compare/versus.h"
#include "profiler/json/json_write.h"
#include "profiler/report/report_keys.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ROWS 15

/* ---- text: results ---- */

const char *prony_versus_verdict_text(const prony_versus_result *row)
{
    const prony_verdict verdict = row ? row->verdict : PRONY_VERDICT_NONE;
    return row && row->withheld              ? "undecided"
           : verdict == PRONY_VERDICT_BETTER ? "faster"
           : verdict == PRONY_VERDICT_WORSE  ? "slower"
           : verdict == PRONY_VERDICT_SAME   ? "as fast"
           : verdict == PRONY_VERDICT_NONE   ? "not judged"
                                             : "cannot tell";
}

static prn_style versus_write_verdict_style(prony_verdict verdict)
{
    return verdict == PRONY_VERDICT_BETTER  ? PRN_STYLE_GOOD
           : verdict == PRONY_VERDICT_WORSE ? PRN_STYLE_BAD
           : verdict == PRONY_VERDICT_SAME  ? PRN_STYLE_PLAIN
                                            : PRN_STYLE_WARN;
}

static const char *time_text(prn_cell *cell, double ns)
{
    prn_number_text number;
    if (ns < 0) return "-";
    snprintf(cell->own, sizeof cell->own, "%s", prn_number_time(number, llround(ns), 3, " "));
    return cell->own;
}

static const char *versus_write_ratio_text(prn_cell *cell, double ratio)
{
    prn_number_text number;
    if (!isfinite(ratio)) return "-";
    snprintf(cell->own, sizeof cell->own, "%s", prn_number_fixed(number, ratio, 2));
    return cell->own;
}

static const char *versus_write_interval_text(prn_cell *cell, const double interval[2])
{
    prn_number_text low, high;
    if (!isfinite(interval[0]) || !isfinite(interval[1])) return "-";
    snprintf(cell->own, sizeof cell->own, "%s..%s", prn_number_fixed(low, interval[0], 2),
             prn_number_fixed(high, interval[1], 2));
    return cell->own;
}

static const prn_column result_columns[] = {{"threads", true, false, 0, 0},  {"prony", true, false, 0, 0},
                                            {"peer", true, false, 0, 0},     {"peer / prony", true, false, 0, 0},
                                            {"95 %", true, false, 0, 0},     {"pairs", true, true, 0, 0},
                                            {"prony is", false, false, 0, 0}};

/* One cell of the table of results. */
static void versus_write_result_cell(const void *user, size_t index, int column, prn_cell *cell)
{
    const prony_versus_result *row = &((const prony_versus *)user)->results[index];
    switch (column) {
    case 0:
        snprintf(cell->own, sizeof cell->own, "%d", row->intra_op_threads);
        break;
    case 1:
        cell->string = time_text(cell, row->own_ns);
        return;
    case 2:
        cell->string = time_text(cell, row->peer_ns);
        return;
    case 3:
        cell->string = versus_write_ratio_text(cell, row->ratio);
        return;
    case 4:
        cell->string = versus_write_interval_text(cell, row->ratio_ci95);
        return;
    case 5:
        snprintf(cell->own, sizeof cell->own, "%zu", row->pairs);
        break;
    default:
        cell->string = prony_versus_verdict_text(row);
        cell->style = versus_write_verdict_style(row->verdict);
        return;
    }
    cell->string = cell->own;
}

/* "  a session can run after  12 ms, the peer's after 30 ms; peak memory 50 MiB, 80 MiB" of the first row. */
static void put_start(prn_text *text, const prony_versus *v)
{
    prn_number_text own, peer;
    if (v->result_count == 0) return;
    const prony_versus_result *row = &v->results[0];
    if (row->own_start_ns >= 0 && row->peer_start_ns >= 0) {
        prn_text_putf(text, PRN_STYLE_PLAIN, "start (file to session): prony %s,",
                      prn_number_time(own, llround(row->own_start_ns), 3, " "));
        prn_text_putf(text, PRN_STYLE_PLAIN, " peer %s", prn_number_time(peer, llround(row->peer_start_ns), 3, " "));
        prn_text_line(text);
    }
    if (row->own_peak_rss_bytes >= 0 && row->peer_peak_rss_bytes >= 0) {
        prn_text_putf(text, PRN_STYLE_PLAIN, "peak process memory: prony %s,",
                      prn_number_bytes(own, row->own_peak_rss_bytes, 3, " "));
        prn_text_putf(text, PRN_STYLE_PLAIN, " peer %s", prn_number_bytes(peer, row->peer_peak_rss_bytes, 3, " "));
        prn_text_line(text);
    }
}

/* ---- text: reasons against a verdict ---- */

/* "2 threads: 3 of 14 pairs were measured on a busy machine and left out". */
static void put_doubts(prn_text *text, const prony_versus *v)
{
    for (size_t i = 0; i < v->result_count; i++) {
        const prony_versus_result *row = &v->results[i];
        char line[300], threads[32] = "", others[80] = "";
        prn_number_text low, high;
        if (v->result_count > 1)
            snprintf(threads, sizeof threads, "%d thread%s: ", row->intra_op_threads,
                     row->intra_op_threads == 1 ? "" : "s");
        if (row->others_share > 0)
            snprintf(others, sizeof others, " (other processes used up to %.0f %%)", row->others_share * 100);
        if (row->withheld)
            snprintf(line, sizeof line,
                     "%sundecided: %zu of %zu pairs ran on a busy machine%s, and a verdict needs %d quiet pairs; "
                     "--ignore-load judges anyway",
                     threads, row->busy_pairs, row->measured_pairs, others, PRONY_VERSUS_LEAST_PAIRS);
        else if (row->busy_pairs)
            snprintf(line, sizeof line, "%s%zu of %zu pairs ran on a busy machine and are left out", threads,
                     row->busy_pairs, row->measured_pairs);
        else if (row->pairs && row->pairs < PRONY_VERSUS_LEAST_PAIRS)
            snprintf(line, sizeof line,
                     "%snot judged: %zu pair%s from %s to %s; a 95 %% interval needs %d (--processes %d)", threads,
                     row->pairs, row->pairs == 1 ? "" : "s", prn_number_fixed(low, row->ratio_least, 2),
                     prn_number_fixed(high, row->ratio_most, 2), PRONY_VERSUS_LEAST_PAIRS, PRONY_VERSUS_LEAST_PAIRS);
        else
            continue;
        prn_text_put(text, PRN_STYLE_WARN, "!");
        prn_text_wrap(text, PRN_STYLE_WARN, 3, line);
    }
}

/* ---- text: outputs ---- */

/* One line if all outputs agree; else each differing output with its reason. */
static void versus_write_put_outputs(prn_text *text, const prony_versus *v)
{
    size_t agree = 0;
    double largest = 0;
    for (size_t k = 0; k < v->output_count; k++) {
        agree += v->outputs[k].agrees;
        if (v->outputs[k].difference > largest) largest = v->outputs[k].difference;
    }
    if (v->output_count == 0) return;
    if (agree == v->output_count) {
        prn_text_putf(text, PRN_STYLE_GOOD, "outputs agree");
        prn_text_putf(text, PRN_STYLE_DIM, ": %zu, largest difference %.1e of the output's range", agree, largest);
        prn_text_line(text);
        return;
    }
    prn_text_putf(text, PRN_STYLE_BAD, "%zu of %zu outputs differ", v->output_count - agree, v->output_count);
    prn_text_line(text);
    for (size_t k = 0; k < v->output_count; k++) {
        if (v->outputs[k].agrees) continue;
        prn_text_putf(text, PRN_STYLE_BAD, "  %.60s", v->outputs[k].name);
        if (isfinite(v->outputs[k].difference))
            prn_text_putf(text, PRN_STYLE_PLAIN, ": by %.1e of its range", v->outputs[k].difference);
        prn_text_line(text);
        if (*v->outputs[k].reason) prn_text_wrap(text, PRN_STYLE_DIM, 4, v->outputs[k].reason);
    }
}

/* ---- text: operators ---- */

typedef struct operator_view {
    const prony_versus_operator **rows;
    size_t count;
} operator_view;

static const prn_column operator_columns[] = {{"operator", false, false, 3, 12}, {"kernel", false, true, 1, 8},
                                              {"prony", true, false, 0, 0},      {"peer", true, false, 0, 0},
                                              {"difference", true, false, 0, 0}, {"peer / prony", true, true, 0, 0}};

/* One cell of a table of joined operators. */
static void versus_write_operator_cell(const void *user, size_t index, int column, prn_cell *cell)
{
    const prony_versus_operator *row = ((const operator_view *)user)->rows[index];
    const double difference = row->own_ns - row->peer_ns;
    prn_number_text number;
    switch (column) {
    case 0:
        cell->string = row->name;
        return;
    case 1:
        cell->string = row->kernel;
        return;
    case 2:
        cell->string = time_text(cell, row->own_ns);
        return;
    case 3:
        cell->string = time_text(cell, row->peer_ns);
        return;
    case 4:
        if (row->own_ns < 0 || row->peer_ns < 0) return;
        snprintf(cell->own, sizeof cell->own, "%s%s",
                 difference > 0   ? "+"
                 : difference < 0 ? "-"
                                  : "",
                 prn_number_time(number, llround(fabs(difference)), 3, " "));
        cell->string = cell->own;
        return;
    default:
        if (row->own_ns > 0 && row->peer_ns >= 0)
            cell->string = versus_write_ratio_text(cell, row->peer_ns / row->own_ns);
    }
}

/* Writes the operators that `wanted` accepts, at most `top`. */
static size_t put_operators(prn_text *text, const prony_versus *v, const char *title, size_t top,
                            bool (*wanted)(const prony_versus_operator *row), uint32_t hidden)
{
    operator_view view = {prn_calloc(v->operator_count + 1, sizeof *view.rows), 0};
    if (!view.rows) {
        if (text->status == PRONY_OK) text->status = prn_no_memory(text->error);
        return 0;
    }
    for (size_t i = 0; i < v->operator_count; i++)
        if (wanted(&v->operators[i])) view.rows[view.count++] = &v->operators[i];
    const size_t found = view.count;
    prn_table table = {.columns = operator_columns,
                       .column_count = sizeof operator_columns / sizeof operator_columns[0],
                       .hidden = hidden,
                       .names = 1U << 0,
                       .rows = found < top ? found : top,
                       .cell = versus_write_operator_cell,
                       .user = &view};
    if (found) {
        prn_text_line(text);
        prn_text_put(text, PRN_STYLE_TITLE, title);
        if (table.rows < found) prn_text_putf(text, PRN_STYLE_DIM, ", %zu of %zu", table.rows, found);
        prn_text_line(text);
        prn_text_table(text, &table);
    }
    prn_free(view.rows);
    return found;
}

static bool peer_is_ahead(const prony_versus_operator *row)
{
    return row->own_ns >= 0 && row->peer_ns >= 0 && row->own_ns > row->peer_ns;
}

static bool own_has_no_counterpart(const prony_versus_operator *row)
{
    return row->peer_ns < 0 && row->own_ns > 0;
}

static bool peer_has_no_counterpart(const prony_versus_operator *row)
{
    return row->own_ns < 0;
}

/* Writes the operators in which the peer is faster, those without a counterpart on either side, and their sums. */
static void put_profiles(prn_text *text, const prony_versus *v, size_t top)
{
    double own = 0, peer = 0, own_alone = 0, peer_alone = 0;
    size_t joined = 0;
    for (size_t i = 0; i < v->operator_count; i++) {
        const prony_versus_operator *row = &v->operators[i];
        if (row->own_ns >= 0 && row->peer_ns >= 0) {
            joined++;
            own += row->own_ns;
            peer += row->peer_ns;
        } else if (row->own_ns >= 0) {
            own_alone += row->own_ns;
        } else {
            peer_alone += row->peer_ns;
        }
    }
    if (!put_operators(text, v, "Operators that are faster in the peer", top, peer_is_ahead, 0)) {
        prn_text_line(text);
        prn_text_put(text, PRN_STYLE_GOOD, "no operator is slower than the peer's");
        prn_text_line(text);
    }
    put_operators(text, v, "Operators of prony without a peer node of the same name", top / 3 + 1,
                  own_has_no_counterpart, 1U << 3 | 1U << 4 | 1U << 5);
    put_operators(text, v, "Peer nodes without a counterpart, by type", top / 3 + 1, peer_has_no_counterpart,
                  1U << 1 | 1U << 2 | 1U << 4 | 1U << 5);
    prn_number_text a, b, c, d;
    char line[300];
    snprintf(line, sizeof line,
             "%zu operators match by name: prony %s, peer %s; without a counterpart: prony %s, peer %s", joined,
             prn_number_time(a, llround(own), 3, " "), prn_number_time(b, llround(peer), 3, " "),
             prn_number_time(c, llround(own_alone), 3, " "), prn_number_time(d, llround(peer_alone), 3, " "));
    prn_text_line(text);
    prn_text_wrap(text, PRN_STYLE_DIM, 0, line);
}

static void put_head(prn_text *text, const prony_versus *v)
{
    const prn_machine *m = &v->profile->system.machine;
    prn_number_text memory;
    prn_text_putf(text, PRN_STYLE_BOLD, "prony %s and %.60s on ", prony_version(), v->peer);
    prn_text_putf(text, PRN_STYLE_BOLD, "%.200s", v->profile->model.name);
    prn_text_line(text);
    prn_text_putf(text, PRN_STYLE_DIM, "%.80s, %d core%s, %s, %s", m->cpu_model[0] ? m->cpu_model : "unknown processor",
                  m->physical_cores, m->physical_cores == 1 ? "" : "s",
                  v->profile->system.isa_used ? v->profile->system.isa_used : "",
                  prn_number_bytes(memory, (double)m->total_memory_bytes, 3, " "));
    prn_text_line(text);
    prn_text_line(text);
}

static prony_status versus_write_text(const prony_versus *v, const prony_write_options *options, prony_write_fn write,
                                      void *user, prony_error *error)
{
    prn_text *text = prn_alloc(sizeof *text);
    if (!text) return prn_no_memory(error);
    prn_text_begin(text, options->width ? options->width : 80, options->color, write, user, error);
    text->whole_names = options->whole_names != 0;
    put_head(text, v);
    const prn_table results = {.columns = result_columns,
                               .column_count = sizeof result_columns / sizeof result_columns[0],
                               .rows = v->result_count,
                               .cell = versus_write_result_cell,
                               .user = v};
    prn_text_table(text, &results);
    put_doubts(text, v);
    put_start(text, v);
    versus_write_put_outputs(text, v);
    if (v->has_operators) put_profiles(text, v, options->top > 0 ? (size_t)options->top : DEFAULT_ROWS);
    prony_status status = prn_text_end(text);
    prn_free(text);
    return status;
}

/* ---- JSON ---- */

static void json_known(prn_json *json, const char *key, double value)
{
    if (value >= 0)
        prn_json_double(json, key, value);
    else
        prn_json_null(json, key);
}

static void versus_write_json_side(prn_json *json, const prony_versus *v, const prony_versus_result *row, bool peer)
{
    prn_json_open(json, peer ? "peer" : "prony", '{', false);
    json_known(json, "median_ns", peer ? row->peer_ns : row->own_ns);
    json_known(json, "start_ns", peer ? row->peer_start_ns : row->own_start_ns);
    json_known(json, "peak_rss_bytes", peer ? row->peer_peak_rss_bytes : row->own_peak_rss_bytes);
    prn_json_open(json, "loads", '[', true);
    for (size_t b = 0; b < v->block_count; b++)
        if (v->blocks[b].peer == peer && v->blocks[b].process.intra_op_threads == row->intra_op_threads)
            prn_json_string(json, NULL, prn_verdict_name((prn_verdict)v->blocks[b].process.load));
    prn_json_close(json, ']');
    prn_json_open(json, "medians_ns", '[', true);
    for (size_t b = 0; b < v->block_count; b++)
        if (v->blocks[b].peer == peer && v->blocks[b].process.intra_op_threads == row->intra_op_threads)
            prn_json_int(json, NULL, v->blocks[b].process.median_ns);
    prn_json_close(json, ']');
    prn_json_close(json, '}');
}

/* Writes one object per thread count; an infinite interval is null. */
static void json_results(prn_json *json, const prony_versus *v)
{
    prn_json_open(json, "results", '[', false);
    for (size_t i = 0; i < v->result_count; i++) {
        const prony_versus_result *row = &v->results[i];
        prn_json_open(json, NULL, '{', false);
        prn_json_int(json, "intra_op_threads", row->intra_op_threads);
        prn_json_uint(json, "pairs", row->pairs);
        versus_write_json_side(json, v, row, false);
        versus_write_json_side(json, v, row, true);
        prn_json_double(json, "ratio", row->ratio);
        if (isfinite(row->ratio_ci95[0]) && isfinite(row->ratio_ci95[1])) {
            prn_json_open(json, "ratio_ci95", '[', true);
            prn_json_double(json, NULL, row->ratio_ci95[0]);
            prn_json_double(json, NULL, row->ratio_ci95[1]);
            prn_json_close(json, ']');
        } else {
            prn_json_null(json, "ratio_ci95");
        }
        prn_json_uint(json, "measured_pairs", row->measured_pairs);
        prn_json_uint(json, "busy_pairs", row->busy_pairs);
        prn_json_string(json, "prony_is", prony_versus_verdict_text(row));
        prn_json_close(json, '}');
    }
    prn_json_close(json, ']');
}

static void json_outputs(prn_json *json, const prony_versus *v)
{
    prn_json_open(json, "outputs", '[', false);
    for (size_t k = 0; k < v->output_count; k++) {
        const prn_versus_output *row = &v->outputs[k];
        prn_json_open(json, NULL, '{', true);
        prn_json_string(json, "name", row->name);
        prn_json_bool(json, "agrees", row->agrees);
        prn_json_double(json, "difference", row->difference);
        if (*row->reason) prn_json_string(json, "reason", row->reason);
        prn_json_close(json, '}');
    }
    prn_json_close(json, ']');
}

static void json_operators(prn_json *json, const prony_versus *v)
{
    prn_json_open(json, "operators", '[', false);
    for (size_t i = 0; i < v->operator_count; i++) {
        const prony_versus_operator *row = &v->operators[i];
        prn_json_open(json, NULL, '{', true);
        prn_json_string(json, "name", row->name);
        prn_json_string(json, "kernel", row->own_ns < 0 ? NULL : row->kernel);
        json_known(json, "prony_ns", row->own_ns);
        json_known(json, "peer_ns", row->peer_ns);
        prn_json_uint(json, "peer_nodes", row->nodes);
        prn_json_close(json, '}');
    }
    prn_json_close(json, ']');
}

static prony_status versus_write_json(const prony_versus *v, prony_write_fn write, void *user, prony_error *error)
{
    prn_json *json = prn_json_dated_document("prony.versus/1", write, user, error);
    if (!json) return PRONY_OUT_OF_MEMORY;
    prn_json_open(json, "peer", '{', false);
    prn_json_string(json, "name", v->peer);
    prn_json_string(json, "library", v->library);
    prn_json_uint(json, "profiled_runs", v->peer_runs);
    prn_json_close(json, '}');
    prn_json_open(json, "manifest", '{', false);
    prn_keys_write(json, prn_manifest_keys,
                   &(prn_at){.root = (void *)(uintptr_t)v->profile, .row = (void *)(uintptr_t)v->profile});
    prn_json_close(json, '}');
    json_results(json, v);
    json_outputs(json, v);
    json_operators(json, v);
    return prn_json_finish(json);
}

prony_status prony_versus_write(prony_versus *versus, prony_format format, const prony_write_options *options,
                                prony_write_fn write, void *user, prony_error *error)
{
    prony_write_options own = PRONY_WRITE_OPTIONS_INIT;
    if (!versus || !write) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_versus_write: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "write options", error));
    PRN_TRY(prn_versus_judge(versus, error));
    if (format == PRONY_FORMAT_JSON) return versus_write_json(versus, write, user, error);
    if (format == PRONY_FORMAT_TEXT) return versus_write_text(versus, &own, write, user, error);
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "a comparison with a peer can be written as text or JSON only");
}
