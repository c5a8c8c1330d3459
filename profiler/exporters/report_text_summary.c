/* The summary of the terminal report: the bottleneck in three sentences, and the process's memory as one sum. Reads the
 * report only. */
#include "profiler/exporters/report_text.h"

#include "profiler/exporters/nested_lines.h"
#include "profiler/text/number_text.h"
#include "profiler/report/reasons.h"
#include "profiler/report/type_summary.h"
#include "profiler/report/work.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SENTENCE_BYTES = 512, MOST_EXPENSIVE = 20 };

void prn_text_busy(prn_text *text, const prony_report *r)
{
    char line[160];
    if (!r->has_disturbance || !prn_disturbance_text(&r->disturbance, line, sizeof line)) return;
    prn_text_wrap(text, PRN_STYLE_WARN, 0, line);
}

/* ---- the bottleneck ---- */

/* "Conv takes 76.7 % of the time with 97.0 % of the FLOPs; the 20 most expensive of 175 layers take 64.0 %, the first,
 * /a/b (Gemm), 7.8 %." Without times: of the FLOPs alone. */
static prony_status say_what(const prony_report *r, char *out, prony_error *error)
{
    prn_type_row *types;
    size_t type_count;
    prony_impact_row *rows = NULL;
    size_t count = 0, used = 0;
    const bool stamped = prn_report_stamped(r);
    prn_number_text share, flops;
    *out = '\0';
    PRN_TRY(prn_type_summary(r, &types, &type_count, error));
    const prn_type_row *first = types;
    if (type_count && stamped && r->totals.cost.flops)
        used = (size_t)snprintf(out, SENTENCE_BYTES, "%.60s takes %s %% of the time with %s %% of the FLOPs", first->op,
                                prn_number_percent(share, first->share),
                                prn_number_percent(flops, (double)first->flops / (double)r->totals.cost.flops));
    else if (type_count)
        used = (size_t)snprintf(out, SENTENCE_BYTES, "%.60s takes %s %% of the %s", first->op,
                                prn_number_percent(share, first->share), stamped ? "time" : "FLOPs");
    prn_free(types);
    if (!used) return PRONY_OK;
    PRN_TRY(prony_report_impact(&rows, &count, r, PRONY_LEVEL_LAYER, stamped ? "time" : "flops", NULL, MOST_EXPENSIVE,
                                error));
    if (count && rows[0].share > 0) {
        char name[80];
        const prony_layer_row *layer = &r->layers[rows[0].index];
        prn_text_shorten(name, sizeof name, layer->name, 60);
        bool many = r->layer_count > MOST_EXPENSIVE;
        if (many)
            used +=
                (size_t)snprintf(out + used, SENTENCE_BYTES - used, "; the %d most expensive of %zu layers take %s %%",
                                 MOST_EXPENSIVE, r->layer_count, prn_number_percent(share, rows[count - 1].cumulative));
        else
            used += (size_t)snprintf(out + used, SENTENCE_BYTES - used, "; the most expensive of %zu layer%s",
                                     r->layer_count, r->layer_count == 1 ? "" : "s");
        /* An estimate is shown without tenths. */
        prn_number_percent(share, rows[0].share);
        if (layer->time_attributed)
            prn_number_fixed(share, prn_round_digits(rows[0].share * 100, prn_estimate_digits(layer)), 0);
        used +=
            (size_t)snprintf(out + used, SENTENCE_BYTES - used, ", %s%s (%.40s), %s%s%s %%", many ? "the first, " : "",
                             name, layer->op, many ? "" : "takes ", layer->time_attributed ? "about " : "", share);
    }
    snprintf(out + used, SENTENCE_BYTES - used, ".");
    prony_rows_release(rows);
    return PRONY_OK;
}

/* true: the row has no nested rows. */
static bool is_inmost(const prony_report *r, size_t row)
{
    return row + 1 == r->nested_layer_count || r->nested_layers[row + 1].parent != row;
}

/* "Inside of /If, /then/Conv_3 (Conv) in then_branch takes most, 40.2 % of the whole in 12 executions.", for the
 * slowest layer with subgraphs. Empty if the slowest layer has none. */
static prony_status say_inside(const prony_report *r, char *out, prony_error *error)
{
    const bool stamped = prn_report_stamped(r);
    prony_impact_row *rows = NULL;
    size_t count = 0, first, most = SIZE_MAX;
    *out = '\0';
    if (!r->nested_layer_count || (!stamped && !r->totals.cost.flops)) return PRONY_OK;
    PRN_TRY(prony_report_impact(&rows, &count, r, PRONY_LEVEL_LAYER, stamped ? "time" : "flops", NULL, 1, error));
    uint32_t owner = count ? rows[0].index : PRONY_NO_INDEX;
    prony_rows_release(rows);
    size_t inside = prn_nested_of(r->nested_layers, r->nested_layer_count, owner, &first);
    for (size_t i = first; i < first + inside; i++) {
        const prony_nested_row *n = &r->nested_layers[i], *best = most == SIZE_MAX ? NULL : &r->nested_layers[most];
        bool more = !best || (stamped ? n->share > best->share : n->cost.flops > best->cost.flops);
        if (is_inmost(r, i) && more) most = i;
    }
    if (most == SIZE_MAX) return PRONY_OK;
    const prony_nested_row *n = &r->nested_layers[most];
    double share = stamped ? n->share : (double)n->cost.flops / (double)r->totals.cost.flops;
    char around[80], name[80];
    prn_number_text percent, times;
    if (!(share > 0)) return PRONY_OK;
    prn_text_shorten(around, sizeof around, n->path, 60);
    prn_text_shorten(name, sizeof name, n->name, 60);
    size_t used = (size_t)snprintf(out, SENTENCE_BYTES, "Inside %s, %s (%.40s) takes most: %s %% of the whole", around,
                                   name, n->op, prn_number_percent(percent, share));
    if (n->executed)
        used += n->executions == 1 ? (size_t)snprintf(out + used, SENTENCE_BYTES - used, ", executed once per run")
                                   : (size_t)snprintf(out + used, SENTENCE_BYTES - used, ", executed %s times per run",
                                                      prn_number_grouped(times, n->executions));
    snprintf(out + used, SENTENCE_BYTES - used, ".");
    return PRONY_OK;
}

/* ": in the model's FLOPs that is 99.7 GFLOP/s", if kernels execute more or fewer FLOPs than the model has. Both rates
 * use the mean latency. */
static const char *model_rate_text(const prony_report *r, char *text, size_t size)
{
    prn_number_text number;
    const double model = (double)r->totals.cost.flops, executed = prn_report_executed_flops(r);
    *text = '\0';
    if (r->latency.mean_ns > 0 && fabs(model - executed) > 0.005 * model)
        snprintf(text, size, " (%s by the model's FLOPs)",
                 prn_number_fixed(number, model / (double)r->latency.mean_ns, 1));
    return text;
}

/* "54.9 % of the time is bound by compute, 2.7 % by memory, 42.4 % by overhead. Kernels execute 29.4 GFLOP/s; the peak
 * of 2 threads is 255 GFLOP/s." The peak is that of all threads of the run, in executed FLOPs. */
static void say_why(const prony_report *r, char *out)
{
    static const prony_bound bounds[] = {PRONY_BOUND_COMPUTE, PRONY_BOUND_MEMORY, PRONY_BOUND_OVERHEAD};
    double shares[PRONY_BOUND_OVERHEAD + 1] = {0};
    double rate = r->latency.mean_ns > 0 ? prn_report_executed_flops(r) / (double)r->latency.mean_ns : 0;
    double peak = prn_report_highest_peak(r) / 1e9;
    prn_number_text a, b, parts[3];
    char model[80];
    model_rate_text(r, model, sizeof model);
    prn_number_fixed(a, rate, 1);
    if (r->has_device && r->device.operator_count) {
        snprintf(out, SENTENCE_BYTES,
                 "Kernels execute %s GFLOP/s%s; %" PRIu64 " of %" PRIu64 " operators run on %.40s.", a, model,
                 r->device.operators_on_device, r->device.operators_on_device + r->device.operators_on_host,
                 r->device.info.id);
        return;
    }
    if (!r->has_roof || peak <= 0) {
        snprintf(out, SENTENCE_BYTES,
                 "Kernels execute %s GFLOP/s%s. Run 'prony machine' once to compare this with the machine's peak.", a,
                 model);
        return;
    }
    double bytes = 0; /* the time share of 8-bit products */
    for (size_t o = 0; o < r->operator_count; o++) {
        shares[prony_report_bound(r, o, NULL)] += r->operators[o].share;
        if (prn_operator_multiplies_bytes(&r->operators[o])) bytes += r->operators[o].share;
    }
    for (size_t i = 0; i < 3; i++) prn_number_percent(parts[i], shares[bounds[i]]);
    if (bytes > 0) {
        snprintf(out, SENTENCE_BYTES,
                 "%s %% of the time is int8 matmul, for which no peak was measured. Of the rest, compute bounds %s %%, "
                 "memory %s %%, overhead %s %%. Kernels execute the equivalent of %s GFLOP/s in floats%s.",
                 prn_number_percent(b, bytes), parts[0], parts[1], parts[2], a, model);
        return;
    }
    snprintf(out, SENTENCE_BYTES,
             "%s %% of the time is bound by compute, %s %% by memory, %s %% by overhead. Kernels execute %s GFLOP/s%s; "
             "the peak of %d thread%s is %s GFLOP/s%s.",
             parts[0], parts[1], parts[2], a, model, prn_report_threads(r), prn_report_threads(r) == 1 ? "" : "s",
             prn_number_fixed(b, peak, 0), r->roof.busy ? " (measured on a busy machine)" : "");
}

/* The reason of the slowest operator, if known: "/a/b (MatMul) is at 31 % of its roof: …". */
static bool say_reason(const prony_report *r, char *out)
{
    const prony_operator_row *longest = NULL;
    char name[64], reasons[SENTENCE_BYTES / 2];
    double share;
    for (size_t o = 0; o < r->operator_count; o++)
        if (r->operators[o].measured && (!longest || r->operators[o].share > longest->share))
            longest = &r->operators[o];
    if (!longest || !prn_reasons_text(longest, 1, reasons, sizeof reasons)) return false;
    prn_text_shorten(name, sizeof name, longest->name, 48);
    if (prony_report_bound(r, longest->index, &share) != PRONY_BOUND_UNKNOWN)
        snprintf(out, SENTENCE_BYTES, "%s (%.40s) reaches %.0f %% of its roof: %s.", name, longest->op, share * 100,
                 reasons);
    else
        snprintf(out, SENTENCE_BYTES, "%s (%.40s): %s.", name, longest->op, reasons);
    return true;
}

/* "99.9 % of a run is spent inside operators, and of 2 threads 1.3 were busy." */
static void say_where(const prony_report *r, char *out)
{
    prn_number_text inside, busy;
    int threads = r->config.intra_op_threads * r->config.inter_op_threads;
    size_t used = (size_t)snprintf(out, SENTENCE_BYTES, "%s %% of a run is spent inside operators",
                                   prn_number_percent(inside, r->time_share));
    if (threads > 1)
        used += (size_t)snprintf(out + used, SENTENCE_BYTES - used, "; of %d threads, %s were busy", threads,
                                 prn_number_fixed(busy, r->cpu.utilisation * threads, 1));
    snprintf(out + used, SENTENCE_BYTES - used, ".");
}

prony_status prn_text_in_short(prn_text *text, const prony_report *r, prony_error *error)
{
    char sentence[SENTENCE_BYTES];
    PRN_TRY(say_what(r, sentence, error));
    if (!*sentence) return PRONY_OK;
    prn_text_heading(text, "In short", NULL);
    prn_text_wrap(text, PRN_STYLE_PLAIN, 2, sentence);
    PRN_TRY(say_inside(r, sentence, error));
    if (*sentence) prn_text_wrap(text, PRN_STYLE_PLAIN, 2, sentence);
    if (!prn_report_stamped(r)) return PRONY_OK;
    say_why(r, sentence);
    prn_text_wrap(text, PRN_STYLE_PLAIN, 2, sentence);
    if (say_reason(r, sentence)) prn_text_wrap(text, PRN_STYLE_PLAIN, 2, sentence);
    say_where(r, sentence);
    prn_text_wrap(text, PRN_STYLE_PLAIN, 2, sentence);
    return PRONY_OK;
}

/* ---- the process's memory ---- */

static void set_bytes(prn_pair *pair, const char *label, uint64_t bytes)
{
    prn_number_text number;
    *pair = (prn_pair){.label = label};
    snprintf(pair->value, sizeof pair->value, "%s", prn_number_bytes(number, (double)bytes, 4, " "));
}

bool prn_text_held(prn_text *text, const prony_report *r)
{
    const prony_memory_held *held = &r->memory.held;
    prn_number_text now, peak;
    char note[160];
    if (!r->has_memory || !r->memory.held_known) return false;
    prn_number_bytes(now, (double)held->resident_bytes, 4, " ");
    size_t used = (size_t)snprintf(note, sizeof note, "%s held after the runs", now);
    if (r->memory.peak_rss_bytes > held->resident_bytes + held->resident_bytes / 50)
        snprintf(note + used, sizeof note - used, "; peak of the process %s",
                 prn_number_bytes(peak, (double)r->memory.peak_rss_bytes, 4, " "));
    prn_text_heading(text, "Memory", note);
    prn_pair pairs[6];
    set_bytes(&pairs[0], "pages of the model file", held->file_bytes);
    set_bytes(&pairs[1], "packed weights, constants", held->packed_bytes);
    set_bytes(&pairs[2], "arena", held->arena_bytes);
    set_bytes(&pairs[3], "inputs", held->input_bytes);
    set_bytes(&pairs[4], "program and libraries", held->library_bytes);
    set_bytes(&pairs[5], "graphs, plans, samples", held->other_bytes);
    prn_text_pairs(text, pairs, sizeof pairs / sizeof pairs[0]);
    return true;
}
