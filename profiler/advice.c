/* prony_recommend: what the figures say about what to change.
 *
 * Two kinds of reasons, and no others. Measured: a variant's report lies beside, and comparing it gives a significant
 * gain. Computed: times, counts and bytes of this report bound from above what a change can give. What falls below a
 * topic's threshold is not recommended; then a row says what was found. Rows own their strings.
 */
#include "profiler/number_text.h"
#include "profiler/report.h"
#include "profiler/row_block.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 16
#define WORTH 0.02    /* of the latency, for what is computed */
#define WORTH_CPU 0.1 /* of the processor time, for fewer threads */
#define WORTH_BYTES (UINT64_C(64) << 10)
#define WORTH_GAP 0.05
#define WORTH_PACKED (UINT64_C(1) << 20)
#define SMALL_NS 100000 /* longer operators have another reason to be far from the roof than being started */
#define INT8_SAVES 0.75 /* of the bytes of fp32 weights */
#define NAMED 3         /* layers or operators that a reason names */

typedef struct adviser {
    const prony_report *report;
    const prony_report *const *variants;
    size_t variant_count;
    prony_advice *rows;
    size_t count;
    prony_error *error;
    bool failed; /* a string found no memory */
} adviser;

static const char *format_text(adviser *a, const char *format, va_list args)
{
    char text[1200];
    vsnprintf(text, sizeof text, format, args);
    const char *copy = prn_rows_text(a->rows, text);
    if (!copy) a->failed = true;
    return copy;
}

static void nothing(adviser *a, const char *topic, const char *format, ...) PRN_PRINTF(3, 4);
static void nothing(adviser *a, const char *topic, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    a->rows[a->count++] = (prony_advice){.topic = topic, .reason = format_text(a, format, args)};
    va_end(args);
}

static prony_advice *advise(adviser *a, const char *topic, const char *metric, bool measured, double gain,
                            const char *format, ...) PRN_PRINTF(6, 7);
/* The action; reason and gain_text are left to the caller. */
static prony_advice *advise(adviser *a, const char *topic, const char *metric, bool measured, double gain,
                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    prony_advice *row = &a->rows[a->count++];
    *row = (prony_advice){.topic = topic,
                          .applies = true,
                          .action = format_text(a, format, args),
                          .reason = "",
                          .metric = metric,
                          .measured = measured,
                          .gain = gain};
    va_end(args);
    return row;
}

static void because(adviser *a, prony_advice *row, const char *format, ...) PRN_PRINTF(3, 4);
static void because(adviser *a, prony_advice *row, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    row->reason = format_text(a, format, args);
    va_end(args);
}

/* "at most 12.3 % of the latency" */
static void gain_of(prony_advice *row, const char *before, const char *behind)
{
    prn_number_text number;
    snprintf(row->gain_text, sizeof row->gain_text, "%s%s %%%s", before, prn_number_percent(number, row->gain), behind);
}

static double mean_ns(const prony_report *r)
{
    return r->measured && r->latency.count ? (double)r->latency.mean_ns : 0;
}

/* ---- measured variants ---- */

typedef struct found {
    const prony_report *variant;
    prony_compare_metric row;
} found;

static prony_status compare_one(adviser *a, const prony_report *variant, const char *key, prony_compare_metric *out,
                                bool *known)
{
    prony_comparison *comparison = NULL;
    size_t count;
    PRN_TRY(prony_compare(&comparison, a->report, variant, NULL, a->error));
    const prony_compare_metric *rows = prony_comparison_metrics(comparison, &count);
    *known = false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].first.metric->key, key) != 0) continue;
        *out = rows[i];
        out->first.metric = out->second.metric = NULL; /* they end with the comparison */
        *known = true;
    }
    prony_comparison_release(comparison);
    return PRONY_OK;
}

typedef enum changed { CHANGED_BATCH, CHANGED_THREADS, CHANGED_REWRITES, CHANGED_OTHER } changed;

/* What alone sets a variant apart. */
static changed what_changed(const prony_report *r, const prony_report *v)
{
    bool batch = r->config.batch != v->config.batch, threads = r->config.intra_op_threads != v->config.intra_op_threads;
    bool rewrites = r->config.rewrites != v->config.rewrites;
    if (batch + threads + rewrites != 1) return CHANGED_OTHER;
    return batch ? CHANGED_BATCH : threads ? CHANGED_THREADS : CHANGED_REWRITES;
}

/* The variant with the best significant gain in `key`; best->variant NULL: none. *tried: how many there were. */
static prony_status best_variant(adviser *a, changed kind, const char *key, bool larger, found *best, size_t *tried)
{
    *best = (found){0};
    *tried = 0;
    for (size_t i = 0; i < a->variant_count; i++) {
        prony_compare_metric row;
        bool known;
        if (what_changed(a->report, a->variants[i]) != kind) continue;
        PRN_TRY(compare_one(a, a->variants[i], key, &row, &known));
        ++*tried;
        if (!known || row.verdict != PRONY_VERDICT_BETTER) continue;
        bool first = !best->variant, more = row.ratio > best->row.ratio;
        if (first || more == larger) *best = (found){a->variants[i], row};
    }
    return PRONY_OK;
}

static void ratio_text(char *text, size_t size, const prony_compare_metric *row)
{
    prn_number_text ratio, low, high;
    snprintf(text, size, "x %s, 95 %% %s..%s", prn_number_fixed(ratio, row->ratio, 3),
             prn_number_fixed(low, row->ratio_ci95[0], 3), prn_number_fixed(high, row->ratio_ci95[1], 3));
}

static prony_status advise_batch(adviser *a)
{
    found best;
    size_t tried;
    PRN_TRY(best_variant(a, CHANGED_BATCH, "throughput", true, &best, &tried));
    if (!best.variant && tried) {
        nothing(a, "batch",
                "%zu other batch size%s measured beside batch %" PRId64
                "; none gives significantly more samples per second",
                tried, tried > 1 ? "s were" : " was", a->report->config.batch);
        return PRONY_OK;
    }
    if (!best.variant) {
        nothing(a, "batch", "no other batch size was measured: the model fixes it, or there is but a report");
        return PRONY_OK;
    }
    char ratio[80];
    prn_number_text was, is;
    prony_advice *row =
        advise(a, "batch", "throughput", true, best.row.ratio - 1,
               "use batch %" PRId64 " where requests can wait for each other", best.variant->config.batch);
    ratio_text(ratio, sizeof ratio, &best.row);
    because(a, row, "batch %" PRId64 " gives %s, batch %" PRId64 " gives %s (%s); a run then takes %s instead of %s",
            a->report->config.batch, best.row.first.text, best.variant->config.batch, best.row.second.text, ratio,
            prn_number_time(is, best.variant->latency.median_ns, 3, " "),
            prn_number_time(was, a->report->latency.median_ns, 3, " "));
    gain_of(row, "", " more samples per second");
    return PRONY_OK;
}

static double cpu_per_run(const prony_report *r)
{
    return r->measured && r->latency.count ? (double)(r->cpu.user_ns + r->cpu.system_ns) / (double)r->latency.count : 0;
}

/* A variant with fewer threads that takes the least processor time without being slower. */
static prony_status advise_fewer_threads(adviser *a, bool *advised)
{
    const prony_report *best = NULL;
    for (size_t i = 0; i < a->variant_count; i++) {
        const prony_report *v = a->variants[i];
        prony_compare_metric row;
        bool known;
        if (what_changed(a->report, v) != CHANGED_THREADS ||
            v->config.intra_op_threads > a->report->config.intra_op_threads)
            continue;
        PRN_TRY(compare_one(a, v, "latency", &row, &known));
        if (known && row.verdict == PRONY_VERDICT_SAME && cpu_per_run(v) > 0 &&
            (!best || cpu_per_run(v) < cpu_per_run(best)))
            best = v;
    }
    double now = cpu_per_run(a->report), gain = best && now > 0 ? 1 - cpu_per_run(best) / now : 0;
    *advised = gain >= WORTH_CPU;
    if (!*advised) return PRONY_OK;
    prn_number_text was, is;
    int threads = best->config.intra_op_threads;
    prony_advice *row = advise(a, "threads", "cpu_user", true, gain, "use %d thread%s (-x %d)", threads,
                               threads > 1 ? "s" : "", threads);
    because(a, row,
            "the latency does not differ significantly from that of %d threads, and a run takes %s of processor time "
            "instead of %s",
            a->report->config.intra_op_threads, prn_number_time(is, llround(cpu_per_run(best)), 3, " "),
            prn_number_time(was, llround(now), 3, " "));
    gain_of(row, "", " less processor time");
    return PRONY_OK;
}

static prony_status advise_threads(adviser *a)
{
    found best;
    size_t tried;
    bool advised = false;
    PRN_TRY(best_variant(a, CHANGED_THREADS, "latency", false, &best, &tried));
    if (best.variant) {
        char ratio[80];
        int threads = best.variant->config.intra_op_threads;
        prony_advice *row = advise(a, "threads", "latency", true, 1 - best.row.ratio, "use %d thread%s (-x %d)",
                                   threads, threads > 1 ? "s" : "", threads);
        ratio_text(ratio, sizeof ratio, &best.row);
        because(a, row, "%d thread%s: median %s; %d: %s (%s)", a->report->config.intra_op_threads,
                a->report->config.intra_op_threads > 1 ? "s" : "", best.row.first.text, threads, best.row.second.text,
                ratio);
        gain_of(row, "", " less latency");
        return PRONY_OK;
    }
    PRN_TRY(advise_fewer_threads(a, &advised));
    if (advised) return PRONY_OK;
    if (tried)
        nothing(a, "threads", "%zu other thread count%s measured beside %d; none is significantly faster", tried,
                tried > 1 ? "s were" : " was", a->report->config.intra_op_threads);
    else
        nothing(a, "threads", "no other number of threads was measured");
    return PRONY_OK;
}

/* ---- fusion ---- */

/* The first names of a list, and how many more. */
typedef struct name_list {
    char text[400];
    size_t count;
} name_list;

static void add_name(name_list *list, const char *name, const char *remark)
{
    size_t used = strlen(list->text);
    if (list->count < NAMED)
        snprintf(list->text + used, sizeof list->text - used, "%s%.80s%s", list->count ? ", " : "", name ? name : "",
                 remark);
    else if (list->count == NAMED)
        snprintf(list->text + used, sizeof list->text - used, ", ..");
    list->count++;
}

static bool is_one_of(const char *op, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(*list, op) == 0) return true;
    return false;
}

static size_t readers_of(const prony_report *r, uint32_t producer)
{
    size_t readers = 0;
    for (size_t l = 0; l < r->layer_count; l++)
        for (size_t i = 0; r->layers[l].sources && i < r->layers[l].input_count; i++)
            readers += r->layers[l].sources[i] == producer;
    return readers;
}

static size_t tensors_of(const prony_report *r, uint32_t layer)
{
    size_t tensors = 0;
    for (size_t p = 0; p < r->parameter_count; p++) tensors += r->parameters[p].layer == layer;
    return tensors;
}

/* Whether an operator that runs alone could have been part of the one before it. */
static bool could_fuse(const prony_report *r, const prony_operator_row *o)
{
    static const char *const into[] = {"Conv", "ConvTranspose", "Gemm", "MatMul", NULL};
    static const char *const fusible[] = {"BatchNormalization", "Relu",      "Clip", "PRelu",
                                          "LeakyRelu",          "HardSwish", NULL};
    if (o->layer_count != 1 || o->layers[0] >= r->layer_count) return false;
    const prony_layer_row *layer = &r->layers[o->layers[0]];
    if (!layer->op || !is_one_of(layer->op, fusible) || !layer->sources || layer->input_count == 0) return false;
    uint32_t producer = layer->sources[0];
    return producer < r->layer_count && r->layers[producer].op && is_one_of(r->layers[producer].op, into);
}

static const char *why_alone(const prony_report *r, const prony_layer_row *layer)
{
    if (!r->config.rewrites) return "";
    if (readers_of(r, layer->sources[0]) > 1) return " (others read its input too)";
    if (strcmp(layer->op, "BatchNormalization") == 0 && tensors_of(r, layer->index) < 4)
        return " (its statistics are not constants of the model, or shared)";
    return " (no rule matched)";
}

static void advise_missed_fusion(adviser *a)
{
    const prony_report *r = a->report;
    name_list names = {0};
    double time = 0, whole = mean_ns(r);
    for (size_t i = 0; i < r->operator_count; i++) {
        const prony_operator_row *o = &r->operators[i];
        if (!could_fuse(r, o)) continue;
        const prony_layer_row *layer = &r->layers[o->layers[0]];
        add_name(&names, layer->name, names.count < NAMED ? why_alone(r, layer) : "");
        if (o->measured) time += (double)o->time.mean_ns;
    }
    double share = whole > 0 ? time / whole : 0;
    if (names.count == 0 || share < WORTH / 2) {
        if (names.count)
            nothing(a, "fusion",
                    "%zu normalisations or activations run by themselves, but take no more than %.1f %% of the latency",
                    names.count, share * 100);
        else
            nothing(a, "fusion", "no normalisation or activation behind a convolution or product runs by itself");
        return;
    }
    prony_advice *row =
        advise(a, "fusion", "latency", false, share,
               r->config.rewrites ? "export the model so that these can be part of the operator before them"
                                  : "let the model be rewritten (without --no-rewrites)");
    because(a, row,
            "%zu normalisation%s or activation%s run%s as an operator of its own behind a convolution or product: %s",
            names.count, names.count > 1 ? "s" : "", names.count > 1 ? "s" : "", names.count > 1 ? "" : "s",
            names.text);
    gain_of(row, "at most ", " less latency, their measured time");
}

static prony_status advise_fusion(adviser *a)
{
    found best;
    size_t tried;
    PRN_TRY(best_variant(a, CHANGED_REWRITES, "latency", false, &best, &tried));
    if (best.variant && best.variant->config.rewrites) {
        char ratio[80];
        prony_advice *row = advise(a, "fusion", "latency", true, 1 - best.row.ratio,
                                   "let the model be rewritten (without --no-rewrites)");
        ratio_text(ratio, sizeof ratio, &best.row);
        because(a, row, "as written: median %s, %zu operators; rewritten: %s, %zu (%s)", best.row.first.text,
                a->report->operator_count, best.row.second.text, best.variant->operator_count, ratio);
        gain_of(row, "", " less latency");
        return PRONY_OK;
    }
    advise_missed_fusion(a);
    return PRONY_OK;
}

/* ---- precision ---- */

static bool roof_known(const prony_report *r)
{
    return prn_report_roof_flops(r) > 0 && prn_report_roof_bandwidth(r, "DRAM") > 0;
}

/* Bytes of each operator's fp32 weights. */
static void sum_weights(const prony_report *r, double *bytes)
{
    for (size_t p = 0; p < r->parameter_count; p++) {
        const prony_parameter_row *w = &r->parameters[p];
        if (w->dtype != PRONY_FLOAT32 || w->layer >= r->layer_count) continue;
        uint32_t o = r->layers[w->layer].operator_index;
        if (o < r->operator_count) bytes[o] += (double)w->bytes;
    }
}

static prony_status advise_precision(adviser *a)
{
    const prony_report *r = a->report;
    double whole = mean_ns(r), time = 0, saved = 0;
    name_list names = {0};
    if (!roof_known(r) || !prn_report_stamped(r)) {
        nothing(a, "precision",
                prn_report_stamped(r) ? "what is bound by memory is not known: `prony machine` has not been run here"
                                      : "operators were not measured");
        return PRONY_OK;
    }
    double *weights = prn_calloc(r->operator_count + 1, sizeof *weights);
    if (!weights) return prn_no_memory(a->error);
    sum_weights(r, weights);
    for (size_t i = 0; i < r->operator_count; i++) {
        const prony_operator_row *o = &r->operators[i];
        double bytes = (double)o->cost.bytes_read + (double)o->cost.bytes_written;
        if (prony_report_bound(r, i, NULL) != PRONY_BOUND_MEMORY || weights[i] <= 0 || bytes <= 0) continue;
        time += (double)o->time.mean_ns;
        saved += (double)o->time.mean_ns * fmin(1, INT8_SAVES * weights[i] / bytes);
        add_name(&names, o->name, "");
    }
    prn_free(weights);
    double gain = whole > 0 ? saved / whole : 0;
    if (gain < WORTH) {
        nothing(a, "precision", "operators that are bound by the traffic of fp32 weights take %.1f %% of the latency",
                whole > 0 ? time / whole * 100 : 0);
        return PRONY_OK;
    }
    prony_advice *row =
        advise(a, "precision", "latency", false, gain,
               "quantize the weights of these operators to 8 bits, and check the accuracy (prony eval)");
    because(a, row,
            "%zu operator%s, %.1f %% of the latency, %s bound by memory, and 8-bit weights are a quarter of the fp32 "
            "weights' traffic: %s",
            names.count, names.count > 1 ? "s" : "", time / whole * 100, names.count > 1 ? "are" : "is", names.text);
    gain_of(row, "at most ", " less latency, by the traffic saved");
    return PRONY_OK;
}

/* ---- overhead ---- */

static void advise_overhead(adviser *a)
{
    const prony_report *r = a->report;
    double whole = mean_ns(r), lost = 0, took = 0;
    name_list names = {0};
    if (!prn_report_stamped(r) || whole <= 0) {
        nothing(a, "overhead", "operators were not measured");
        return;
    }
    for (size_t i = 0; i < r->operator_count && roof_known(r); i++) {
        const prony_operator_row *o = &r->operators[i];
        if (prony_report_bound(r, i, NULL) != PRONY_BOUND_OVERHEAD || o->time.mean_ns > SMALL_NS) continue;
        took += (double)o->time.mean_ns;
        lost += (double)o->time.mean_ns - prn_operator_roof_ns(r, o, NULL);
        add_name(&names, o->name, "");
    }
    double between = fmax(0, 1 - r->time_share), gain = lost / whole + between;
    if (gain < WORTH_GAP) {
        if (roof_known(r))
            nothing(a, "overhead",
                    "small operators that neither arithmetic nor traffic explains, and what lies between operators, "
                    "take %.1f %% of the latency",
                    (took / whole + between) * 100);
        else
            nothing(a, "overhead",
                    "%.1f %% of the latency lies between operators; inside of them it is not known: `prony machine` "
                    "has not been run here",
                    between * 100);
        return;
    }
    prony_advice *row = advise(a, "overhead", "latency", false, fmin(1, gain),
                               "give each run more work (a larger batch), or use fewer and larger operators");
    if (names.count)
        because(a, row,
                "%zu small operator%s take %.1f %% of the latency, of which arithmetic and traffic explain less than a "
                "tenth (%s); %.1f %% lies between operators",
                names.count, names.count > 1 ? "s" : "", took / whole * 100, names.text, between * 100);
    else
        because(a, row, "%.1f %% of the latency lies between operators", between * 100);
    gain_of(row, "at most ", " less latency");
}

/* ---- memory ---- */

static void advise_bytes(adviser *a, uint64_t bytes, double of, const char *action, const char *behind,
                         const char *what)
{
    prn_number_text number;
    prony_advice *row = advise(a, "memory", "memory", false, of > 0 ? (double)bytes / of : 0, "%s", action);
    because(a, row, "%s", what);
    snprintf(row->gain_text, sizeof row->gain_text, "at most %s%s", prn_number_bytes(number, (double)bytes, 3, " "),
             behind);
}

static void advise_memory(adviser *a)
{
    const prony_report *r = a->report;
    const prony_memory_report *m = &r->memory;
    size_t before = a->count;
    char what[400];
    prn_number_text first, second;
    if (!r->has_memory) {
        nothing(a, "memory", "no memory plan is in the report");
        return;
    }
    double all = (double)m->weight_bytes + (double)m->packed_weight_bytes + (double)m->planned_bytes;
    uint64_t gap = m->planned_bytes > m->lower_bound_bytes ? m->planned_bytes - m->lower_bound_bytes : 0;
    if (gap >= WORTH_BYTES && m->plan_gap >= WORTH_GAP) {
        snprintf(what, sizeof what,
                 "the arena is planned at %s, and no more than %s of it live at any step; free blocks are fragmented "
                 "by up to %.1f %%",
                 prn_number_bytes(first, (double)m->planned_bytes, 3, " "),
                 prn_number_bytes(second, (double)m->lower_bound_bytes, 3, " "), m->external_fragmentation * 100);
        advise_bytes(a, gap, all, "another order of the model's nodes may close the memory plan's gap", "", what);
    }
    if (m->packed_weight_bytes >= WORTH_PACKED && (double)m->packed_weight_bytes >= 0.25 * all) {
        snprintf(
            what, sizeof what,
            "%s of weights are packed for kernels beside the model's own %s; sessions of one prony_model share both",
            prn_number_bytes(first, (double)m->packed_weight_bytes, 3, " "),
            prn_number_bytes(second, (double)m->weight_bytes, 3, " "));
        advise_bytes(a, m->packed_weight_bytes, all,
                     "where several sessions run this model, let them share one that is loaded once",
                     " for each further session", what);
    }
    if (a->count == before)
        nothing(a, "memory", "the plan's gap is %.1f %% (%s); %s of packed weights", fmax(0, m->plan_gap) * 100,
                prn_number_bytes(first, (double)gap, 3, " "),
                prn_number_bytes(second, (double)m->packed_weight_bytes, 3, " "));
}

/* ---- all of it ---- */

static prony_status advise_all(adviser *a)
{
    PRN_TRY(advise_batch(a));
    PRN_TRY(advise_threads(a));
    PRN_TRY(advise_fusion(a));
    PRN_TRY(advise_precision(a));
    advise_overhead(a);
    advise_memory(a);
    return a->failed ? prn_no_memory(a->error) : PRONY_OK;
}

/* Those that apply first, otherwise in order. */
static void put_first(prony_advice *rows, size_t count)
{
    size_t placed = 0;
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].applies) continue;
        prony_advice row = rows[i];
        memmove(&rows[placed + 1], &rows[placed], (i - placed) * sizeof *rows);
        rows[placed++] = row;
    }
}

prony_status prony_recommend(prony_advice **rows, size_t *count, const prony_report *report,
                             const prony_report *const *variants, size_t variant_count, prony_error *error)
{
    if (!rows || !count || !report || (variant_count && !variants))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_recommend: an argument is NULL");
    adviser a = {.report = report, .variants = variants, .variant_count = variant_count, .error = error};
    a.rows = prn_rows_create(ROWS_MOST, sizeof *a.rows);
    if (!a.rows) return prn_no_memory(error);
    prony_status status = advise_all(&a);
    if (status != PRONY_OK) {
        prony_rows_release(a.rows);
        return status;
    }
    put_first(a.rows, a.count);
    *rows = a.rows;
    *count = a.count;
    return PRONY_OK;
}
