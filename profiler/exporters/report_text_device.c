/* The device's part of a run, for the terminal: its use, its memory, and the largest copies. Reads the report only. */
#include "profiler/exporters/report_text.h"
#include "profiler/text/number_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPIES_SHOWN = 5, OPERATORS_SHOWN = 5 };

static const char *plural_of(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void put_use(prn_text *text, const prony_device_report *d)
{
    char line[300];
    prn_number_text busy, copies, waits, idle;
    if (d->busy_share < 0) return;
    snprintf(line, sizeof line,
             "kernels take %s %% of a stamped run, copies %s %%, launches wait %s %%, and %s %% the device waits for "
             "the host",
             prn_number_percent(busy, d->busy_share), prn_number_percent(copies, d->copy_share),
             prn_number_percent(waits, d->wait_share), prn_number_percent(idle, d->idle_share));
    prn_text_wrap(text, PRN_STYLE_PLAIN, 2, line);
}

static void put_counts(prn_text *text, const prony_device_report *d)
{
    char line[300];
    prn_number_text to, from;
    snprintf(line, sizeof line,
             "%" PRIu64 " operator%s on the device, %" PRIu64
             " on the host; %zu cop%s a run: %s to the device, %s back",
             d->operators_on_device, plural_of(d->operators_on_device), d->operators_on_host, d->copy_count,
             d->copy_count == 1 ? "y" : "ies", prn_number_bytes(to, (double)d->to_device_bytes, 4, " "),
             prn_number_bytes(from, (double)d->from_device_bytes, 4, " "));
    prn_text_wrap(text, PRN_STYLE_PLAIN, 2, line);
}

static void report_text_device_memory(prn_text *text, const prony_device_report *d)
{
    char line[300];
    prn_number_text values, least, constants, peak;
    int used = snprintf(line, sizeof line,
                        "memory: values %s (least possible %s), weights %s, at most %s; %" PRIu32 " program%s",
                        prn_number_bytes(values, (double)d->values_bytes, 4, " "),
                        prn_number_bytes(least, (double)d->values_lower_bound_bytes, 4, " "),
                        prn_number_bytes(constants, (double)d->constants_bytes, 4, " "),
                        prn_number_bytes(peak, (double)d->peak_bytes, 4, " "), d->programs, plural_of(d->programs));
    if (d->programs_loaded)
        snprintf(line + used, sizeof line - (size_t)used, ", %" PRIu32 " of them from the cache", d->programs_loaded);
    prn_text_wrap(text, PRN_STYLE_PLAIN, 2, line);
}

/* Operators that the device could run and that stay on the host, with the reason. */
static void put_split(prn_text *text, const prony_device_report *d)
{
    char line[300];
    prn_number_text weights, room;
    const prony_device_split_totals *s = &d->split;
    if (s->memory_operators) {
        snprintf(line, sizeof line,
                 "split: %" PRIu64 " operator%s with %s of weights stay%s on the host, since the device has %s for the "
                 "plan",
                 s->memory_operators, plural_of(s->memory_operators),
                 prn_number_bytes(weights, (double)s->weight_bytes, 4, " "), s->memory_operators == 1 ? "s" : "",
                 prn_number_bytes(room, (double)s->room_bytes, 4, " "));
        prn_text_wrap(text, PRN_STYLE_PLAIN, 2, line);
    }
    if (s->copies_operators) {
        snprintf(line, sizeof line,
                 "split: %" PRIu64
                 " operator%s stay%s on the host, since copies would take longer than the device saves",
                 s->copies_operators, plural_of(s->copies_operators), s->copies_operators == 1 ? "s" : "");
        prn_text_wrap(text, PRN_STYLE_PLAIN, 2, line);
    }
}

static void text_device_host_operator(prn_text *text, const prony_report *r, const prony_device_host_row *h)
{
    char line[400];
    prn_number_text weights, copies, saved;
    const char *name = r->operators[h->operator_index].name;
    if (h->copies_ns >= 0)
        snprintf(line, sizeof line, "%.200s: its chain's copies take %s, the device saves %s", name,
                 prn_number_time(copies, h->copies_ns, 3, " "), prn_number_time(saved, h->saved_ns, 3, " "));
    else
        snprintf(line, sizeof line, "%.200s: %s of weights", name,
                 prn_number_bytes(weights, (double)h->weight_bytes, 4, " "));
    prn_text_wrap(text, PRN_STYLE_DIM, 4, line);
}

static void put_split_operators(prn_text *text, const prony_report *r, bool all)
{
    const prony_device_report *d = &r->device;
    size_t shown = 0, hidden = 0;
    for (size_t i = 0; i < d->host_operator_count; i++) {
        const prony_device_host_row *h = &d->host_operators[i];
        if (strcmp(h->reason, "no kernel") == 0 || h->operator_index >= r->operator_count) continue;
        if (!all && shown == OPERATORS_SHOWN) {
            hidden++;
            continue;
        }
        if (shown++ == 0) prn_text_wrap(text, PRN_STYLE_PLAIN, 2, "operators that the split leaves on the host:");
        text_device_host_operator(text, r, h);
    }
    prn_text_hidden_rows(text, hidden, "operator");
}

static void put_peaks(prn_text *text, const prony_device_report *d)
{
    char line[300];
    prn_number_text flops, bytes, launch;
    if (!d->has_peaks) {
        prn_text_wrap(text, PRN_STYLE_DIM, 2, "no roofs: run `prony devices` once to measure what the device reaches");
        return;
    }
    snprintf(line, sizeof line, "roofs: %sFLOP/s fp32, memory %sB/s, a launch %s",
             prn_number_si(flops, d->peaks.flops_per_second, 3, " "),
             prn_number_si(bytes, d->peaks.bytes_per_second, 3, " "),
             prn_number_time(launch, d->peaks.launch_ns, 3, " "));
    prn_text_wrap(text, PRN_STYLE_PLAIN, 2, line);
}

static void add_sensor(char *line, size_t size, double value, const char *before, const char *unit)
{
    const size_t used = strlen(line);
    prn_number_text number;
    if (!isnan(value))
        snprintf(line + used, size - used, "%s%s%s %s", used ? ", " : "", before, prn_number_fixed(number, value, 0),
                 unit);
}

static void put_sensors(prn_text *text, const prony_device_report *d)
{
    char line[300] = "", whole[360];
    prn_number_text bytes;
    const prony_device_sensors *s = &d->sensors;
    if (!d->has_sensors) return;
    add_sensor(line, sizeof line, s->power_mean_w, "", "W");
    add_sensor(line, sizeof line, s->power_max_w, "at most ", "W");
    add_sensor(line, sizeof line, s->clock_mean_mhz, "", "MHz");
    add_sensor(line, sizeof line, s->memory_clock_mean_mhz, "memory ", "MHz");
    add_sensor(line, sizeof line, s->temperature_max_c, "", "C");
    add_sensor(line, sizeof line, s->utilisation * 100, "", "% busy");
    if (s->memory_used_bytes != UINT64_MAX)
        snprintf(line + strlen(line), sizeof line - strlen(line), "%s%s in use", *line ? ", " : "",
                 prn_number_bytes(bytes, (double)s->memory_used_bytes, 4, " "));
    snprintf(whole, sizeof whole, "sensors (%" PRIu64 " reading%s): %s", s->samples, plural_of(s->samples), line);
    prn_text_wrap(text, PRN_STYLE_PLAIN, 2, whole);
}

static int slowest_operator_first(const void *left, const void *right)
{
    const prony_device_operator_row *a = *(const prony_device_operator_row *const *)left,
                                    *b = *(const prony_device_operator_row *const *)right;
    if (a->busy_ns != b->busy_ns) return a->busy_ns < b->busy_ns ? 1 : -1;
    return a->operator_index < b->operator_index ? -1 : 1;
}

static void text_device_operator(prn_text *text, const prony_report *r, const prony_device_operator_row *o)
{
    char line[500];
    prn_number_text time, flops, bytes, share;
    int used = snprintf(line, sizeof line, "%s %.200s: %sFLOP/s, %sB/s", prn_number_time(time, o->busy_ns, 3, " "),
                        r->operators[o->operator_index].name, prn_number_si(flops, o->flops_per_second, 3, " "),
                        prn_number_si(bytes, o->bytes_per_second, 3, " "));
    if (o->bound)
        snprintf(line + used, sizeof line - (size_t)used, ", %s %% of the roof (%s)",
                 prn_number_percent(share, o->percent_of_roof / 100), o->bound);
    prn_text_wrap(text, PRN_STYLE_DIM, 4, line);
}

static prony_status text_device_operators(prn_text *text, const prony_report *r, bool all, prony_error *error)
{
    const prony_device_report *d = &r->device;
    size_t count = 0;
    const prony_device_operator_row **order = prn_calloc(d->operator_count + 1, sizeof *order);
    if (!order) return prn_no_memory(error);
    for (size_t i = 0; i < d->operator_count; i++)
        if (d->operators[i].busy_ns > 0 && d->operators[i].operator_index < r->operator_count)
            order[count++] = &d->operators[i];
    qsort(order, count, sizeof *order, slowest_operator_first);
    const size_t shown = all || count < OPERATORS_SHOWN ? count : OPERATORS_SHOWN;
    if (shown) prn_text_wrap(text, PRN_STYLE_PLAIN, 2, "operators on the device, the slowest first:");
    for (size_t i = 0; i < shown; i++) text_device_operator(text, r, order[i]);
    prn_free(order);
    prn_text_hidden_rows(text, count - shown, "operator");
    return PRONY_OK;
}

static int most_expensive_first(const void *left, const void *right)
{
    const prony_device_copy_row *a = *(const prony_device_copy_row *const *)left,
                                *b = *(const prony_device_copy_row *const *)right;
    if (a->busy_ns != b->busy_ns) return a->busy_ns < b->busy_ns ? 1 : -1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return a->operator_index < b->operator_index ? -1 : 1;
}

static void put_copy(prn_text *text, const prony_device_copy_row *c)
{
    char line[600];
    prn_number_text bytes, time, rate;
    int used = snprintf(line, sizeof line, "%s %s", prn_number_bytes(bytes, (double)c->bytes, 4, " "),
                        c->to_device ? "to the device" : "to the host");
    if (c->busy_ns > 0)
        used +=
            snprintf(line + used, sizeof line - (size_t)used, ", %s, %sB/s", prn_number_time(time, c->busy_ns, 3, " "),
                     prn_number_si(rate, (double)c->bytes / ((double)c->busy_ns * 1e-9), 3, " "));
    snprintf(line + used, sizeof line - (size_t)used, ": %.200s, %.200s", c->value, c->reason);
    prn_text_wrap(text, PRN_STYLE_DIM, 4, line);
}

static prony_status put_copies(prn_text *text, const prony_device_report *d, bool all, prony_error *error)
{
    const size_t shown = all || d->copy_count < COPIES_SHOWN ? d->copy_count : COPIES_SHOWN;
    const prony_device_copy_row **order = prn_calloc(d->copy_count + 1, sizeof *order);
    if (!order) return prn_no_memory(error);
    for (size_t i = 0; i < d->copy_count; i++) order[i] = &d->copies[i];
    qsort(order, d->copy_count, sizeof *order, most_expensive_first);
    if (shown) prn_text_wrap(text, PRN_STYLE_PLAIN, 2, "copies, the most expensive first:");
    for (size_t i = 0; i < shown; i++) put_copy(text, order[i]);
    prn_free(order);
    prn_text_hidden_rows(text, d->copy_count - shown, "copied tensor");
    return PRONY_OK;
}

prony_status prn_text_device(prn_text *text, const prony_report *r, bool all, prony_error *error)
{
    const prony_device_report *d = &r->device;
    char line[400];
    if (!r->has_device) return PRONY_OK;
    snprintf(line, sizeof line, "%.30s %.120s (%.60s), %s", d->info.id, d->info.name, d->info.platform, d->info.kind);
    prn_text_heading(text, "Device", line);
    put_use(text, d);
    put_counts(text, d);
    put_split(text, d);
    report_text_device_memory(text, d);
    put_sensors(text, d);
    put_peaks(text, d);
    put_split_operators(text, r, all);
    PRN_TRY(text_device_operators(text, r, all, error));
    return put_copies(text, d, all, error);
}
