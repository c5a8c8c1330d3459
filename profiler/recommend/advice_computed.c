/* Advice computed from one report: missed fusion, precision, overhead, memory. A gain is an upper bound. */
#include "profiler/text/number_text.h"
#include "profiler/recommend/advice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WORTH 0.02 /* of the latency, for computed gains; chosen without measurement */
/* The thresholds below were chosen without measurement as well. */
#define WORTH_BYTES (UINT64_C(64) << 10)
#define WORTH_GAP 0.05
#define WORTH_PACKED (UINT64_C(1) << 20)
/* The start of an operator explains its distance from the roof only below this time. Chosen without measurement. */
#define SMALL_NS 100000
#define INT8_SAVES 0.75 /* of the bytes of fp32 weights */
#define NAMED 3         /* layers or operators that a reason names */

static double mean_ns(const prony_report *r)
{
    return r->measured && r->latency.count ? (double)r->latency.mean_ns : 0;
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

static bool advice_computed_is_one_of(const char *op, const char *const *list)
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

static size_t advice_computed_tensors_of(const prony_report *r, uint32_t layer)
{
    size_t tensors = 0;
    for (size_t p = 0; p < r->parameter_count; p++) tensors += r->parameters[p].layer == layer;
    return tensors;
}

/* true: an operator that runs alone could have been fused into the one before it. */
static bool could_fuse(const prony_report *r, const prony_operator_row *o)
{
    static const char *const into[] = {"Conv", "ConvTranspose", "Gemm", "MatMul", NULL};
    static const char *const fusible[] = {"BatchNormalization", "Relu",      "Clip", "PRelu",
                                          "LeakyRelu",          "HardSwish", NULL};
    if (o->layer_count != 1 || o->layers[0] >= r->layer_count) return false;
    const prony_layer_row *layer = &r->layers[o->layers[0]];
    if (!layer->op || !advice_computed_is_one_of(layer->op, fusible) || !layer->sources || layer->input_count == 0)
        return false;
    uint32_t producer = layer->sources[0];
    return producer < r->layer_count && r->layers[producer].op &&
           advice_computed_is_one_of(r->layers[producer].op, into);
}

static const char *why_alone(const prony_report *r, const prony_layer_row *layer)
{
    if (!r->config.rewrites) return "";
    if (readers_of(r, layer->sources[0]) > 1) return " (its input has other readers)";
    if (strcmp(layer->op, "BatchNormalization") == 0 && advice_computed_tensors_of(r, layer->index) < 4)
        return " (its statistics are not constant, or are shared)";
    return " (no rewrite rule matched)";
}

/* The gain is at most the time of normalisations and activations that run alone. */
static void advise_missed_fusion(prn_adviser *a)
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
            prn_advise_nothing(a, "fusion",
                               "%zu normalisations or activations run unfused, but take only %.1f %% of the latency",
                               names.count, share * 100);
        else
            prn_advise_nothing(a, "fusion", "no unfused normalisation or activation follows a convolution or matmul");
        return;
    }
    prony_advice *row =
        prn_advise(a, "fusion", "latency", false, share,
                   r->config.rewrites ? "export the model so that these can be fused with the operator before them"
                                      : "enable rewrites (without --no-rewrites)");
    prn_advise_because(a, row, "%zu normalisation%s or activation%s run%s unfused behind a convolution or matmul: %s",
                       names.count, names.count > 1 ? "s" : "", names.count > 1 ? "s" : "", names.count > 1 ? "" : "s",
                       names.text);
    prn_advise_gain(row, "at most ", " less latency (their measured time)");
}

prony_status prn_advise_fusion(prn_adviser *a)
{
    prn_found best;
    size_t tried;
    PRN_TRY(prn_best_variant(a, PRN_CHANGED_REWRITES, "latency", false, &best, &tried));
    if (best.variant && best.variant->config.rewrites) {
        char ratio[80];
        prony_advice *row =
            prn_advise(a, "fusion", "latency", true, 1 - best.row.ratio, "enable rewrites (without --no-rewrites)");
        prn_ratio_text(ratio, sizeof ratio, &best.row);
        prn_advise_because(a, row, "without rewrites: median %s, %zu operators; with rewrites: %s, %zu (%s)",
                           best.row.first.text, a->report->operator_count, best.row.second.text,
                           best.variant->operator_count, ratio);
        prn_advise_gain(row, "", " less latency");
        return PRONY_OK;
    }
    advise_missed_fusion(a);
    return PRONY_OK;
}

/* ---- precision ---- */

static bool roof_known(const prony_report *r)
{
    return prn_report_roof_flops(r, "fp32") > 0 && prn_report_roof_bandwidth(r, "DRAM") > 0;
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

/* The gain is at most the saved weight traffic of operators bound by memory. */
prony_status prn_advise_precision_computed(prn_adviser *a)
{
    const prony_report *r = a->report;
    double whole = mean_ns(r), time = 0, saved = 0;
    name_list names = {0};
    if (!roof_known(r) || !prn_report_stamped(r)) {
        prn_advise_nothing(a, "precision",
                           prn_report_stamped(r) ? "memory-bound operators are unknown: run `prony machine` once"
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
        prn_advise_nothing(a, "precision", "operators bound by fp32 weight traffic take %.1f %% of the latency",
                           whole > 0 ? time / whole * 100 : 0);
        return PRONY_OK;
    }
    prony_advice *row =
        prn_advise(a, "precision", "latency", false, gain,
                   "quantize the weights of these operators to 8 bits, then check the accuracy (prony eval)");
    prn_advise_because(
        a, row,
        "%zu operator%s (%.1f %% of the latency) %s memory-bound; 8-bit weights need a quarter of the fp32 traffic: %s",
        names.count, names.count > 1 ? "s" : "", time / whole * 100, names.count > 1 ? "are" : "is", names.text);
    prn_advise_gain(row, "at most ", " less latency, by the traffic saved");
    return PRONY_OK;
}

/* ---- overhead ---- */

/* The gain is at most the time of small operators beyond their roofs, plus the time between operators. */
void prn_advise_overhead(prn_adviser *a)
{
    const prony_report *r = a->report;
    double whole = mean_ns(r), lost = 0, took = 0;
    name_list names = {0};
    if (!prn_report_stamped(r) || whole <= 0) {
        prn_advise_nothing(a, "overhead", "operators were not measured");
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
            prn_advise_nothing(
                a, "overhead",
                "small overhead-bound operators and the gaps between operators take %.1f %% of the latency",
                (took / whole + between) * 100);
        else
            prn_advise_nothing(a, "overhead",
                               "%.1f %% of the latency lies between operators; run `prony machine` once to judge the "
                               "operators themselves",
                               between * 100);
        return;
    }
    prony_advice *row = prn_advise(a, "overhead", "latency", false, fmin(1, gain),
                                   "give each run more work (a larger batch), or use fewer, larger operators");
    if (names.count)
        prn_advise_because(a, row,
                           "%zu small operator%s take%s %.1f %% of the latency; arithmetic and memory traffic explain "
                           "less than a tenth of this (%s); another %.1f %% lies between operators",
                           names.count, names.count > 1 ? "s" : "", names.count > 1 ? "" : "s", took / whole * 100,
                           names.text, between * 100);
    else
        prn_advise_because(a, row, "%.1f %% of the latency lies between operators", between * 100);
    prn_advise_gain(row, "at most ", " less latency");
}

/* ---- memory ---- */

static void advise_bytes(prn_adviser *a, uint64_t bytes, double of, const char *action, const char *behind,
                         const char *what)
{
    prn_number_text number;
    prony_advice *row = prn_advise(a, "memory", "memory", false, of > 0 ? (double)bytes / of : 0, "%s", action);
    prn_advise_because(a, row, "%s", what);
    snprintf(row->gain_text, sizeof row->gain_text, "at most %s%s", prn_number_bytes(number, (double)bytes, 3, " "),
             behind);
}

/* Advises on the gap of the memory plan and on packed weights; without either, states what was found. */
void prn_advise_memory(prn_adviser *a)
{
    const prony_report *r = a->report;
    const prony_memory_report *m = &r->memory;
    size_t before = a->count;
    char what[400];
    prn_number_text first, second;
    if (!r->has_memory) {
        prn_advise_nothing(a, "memory", "the report has no memory plan");
        return;
    }
    double all = (double)m->weight_bytes + (double)m->packed_weight_bytes + (double)m->planned_bytes;
    uint64_t gap = m->planned_bytes > m->lower_bound_bytes ? m->planned_bytes - m->lower_bound_bytes : 0;
    if (gap >= WORTH_BYTES && m->plan_gap >= WORTH_GAP) {
        snprintf(what, sizeof what,
                 "the arena is planned at %s, but at most %s is live at any step; fragmentation reaches %.1f %%",
                 prn_number_bytes(first, (double)m->planned_bytes, 3, " "),
                 prn_number_bytes(second, (double)m->lower_bound_bytes, 3, " "), m->external_fragmentation * 100);
        advise_bytes(a, gap, all, "reorder the model's nodes: another order may close the memory plan's gap", "", what);
    }
    if (m->packed_weight_bytes >= WORTH_PACKED && (double)m->packed_weight_bytes >= 0.25 * all) {
        snprintf(what, sizeof what,
                 "packed weights take %s beside the model's own %s; sessions of one prony_model share both",
                 prn_number_bytes(first, (double)m->packed_weight_bytes, 3, " "),
                 prn_number_bytes(second, (double)m->weight_bytes, 3, " "));
        advise_bytes(a, m->packed_weight_bytes, all, "load the model once and share it among all sessions that run it",
                     " for each further session", what);
    }
    if (a->count == before)
        prn_advise_nothing(a, "memory", "the plan's gap is %.1f %% (%s); packed weights take %s",
                           fmax(0, m->plan_gap) * 100, prn_number_bytes(first, (double)gap, 3, " "),
                           prn_number_bytes(second, (double)m->packed_weight_bytes, 3, " "));
}
