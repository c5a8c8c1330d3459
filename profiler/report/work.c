/* Estimates the times of a fused operator's layers. */
#include "profiler/report/work.h"

#include "base/shape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    double rate;
} kinds[PRN_WORK_COUNT] = {
#define KIND(symbol, name, rate) {name, rate},
    PRN_WORK_LIST(KIND)
#undef KIND
};

const char *prn_work_name(prn_work work)
{
    return kinds[work].name;
}

/* ---- rates ---- */

/* 0: not measured. */
static double rate_at(const prn_report_roof *roof, const char *work, int threads)
{
    const prn_roof_work *low = NULL, *high = NULL;
    for (size_t i = 0; i < roof->work_count; i++) {
        const prn_roof_work *row = &roof->work[i];
        if (strcmp(row->work, work) != 0) continue;
        if (row->threads <= threads && (!low || row->threads > low->threads)) low = row;
        if (row->threads >= threads && (!high || row->threads < high->threads)) high = row;
    }
    if (!low || !high || low->threads == high->threads) return low ? low->per_second : high ? high->per_second : 0;
    return low->per_second +
           (high->per_second - low->per_second) * (threads - low->threads) / (high->threads - low->threads);
}

void prn_work_rates_at(prn_work_rates *rates, const prony_report *report, int threads)
{
    rates->measured = report->has_roof;
    for (int k = 0; k < PRN_WORK_COUNT && rates->measured; k++) {
        rates->per_second[k] = rate_at(&report->roof, kinds[k].name, threads);
        rates->measured = rates->per_second[k] > 0;
    }
    for (int k = 0; k < PRN_WORK_COUNT && !rates->measured; k++)
        rates->per_second[k] = kinds[k].rate * (threads > 1 ? threads : 1);
}

const char *prn_estimate_basis(const prony_report *report)
{
    prn_work_rates rates;
    prn_work_rates_at(&rates, report, 1);
    return rates.measured ? "measured" : "default";
}

bool prn_report_has_estimates(const prony_report *report)
{
    for (size_t l = 0; l < report->layer_count; l++)
        if (report->layers[l].measured && report->layers[l].time_attributed) return true;
    return false;
}

/* ---- work ---- */

/* The special functions of operators; two kinds share them evenly. Other operators divide. */
static const struct {
    const char *op;
    prn_work first, second;
} special_of[] = {
    {"Erf", PRN_WORK_ERF, PRN_WORK_ERF},        {"Gelu", PRN_WORK_ERF, PRN_WORK_ERF},
    {"FastGelu", PRN_WORK_TANH, PRN_WORK_TANH}, {"BiasGelu", PRN_WORK_ERF, PRN_WORK_ERF},
    {"Tanh", PRN_WORK_TANH, PRN_WORK_TANH},     {"Exp", PRN_WORK_EXP, PRN_WORK_EXP},
    {"Elu", PRN_WORK_EXP, PRN_WORK_EXP},        {"Selu", PRN_WORK_EXP, PRN_WORK_EXP},
    {"Celu", PRN_WORK_EXP, PRN_WORK_EXP},       {"Sigmoid", PRN_WORK_EXP, PRN_WORK_DIVIDE},
    {"Swish", PRN_WORK_EXP, PRN_WORK_DIVIDE},   {"QuickGelu", PRN_WORK_EXP, PRN_WORK_DIVIDE},
    {"Softmax", PRN_WORK_EXP, PRN_WORK_DIVIDE}, {"LogSoftmax", PRN_WORK_EXP, PRN_WORK_LOG},
    {"Softplus", PRN_WORK_EXP, PRN_WORK_LOG},   {"Mish", PRN_WORK_EXP, PRN_WORK_TANH},
    {"Log", PRN_WORK_LOG, PRN_WORK_LOG},        {"Sqrt", PRN_WORK_SQRT, PRN_WORK_SQRT},
    {"Pow", PRN_WORK_POW, PRN_WORK_POW},        {"Sin", PRN_WORK_SIN, PRN_WORK_SIN},
    {"Cos", PRN_WORK_SIN, PRN_WORK_SIN},        {"Tan", PRN_WORK_SIN, PRN_WORK_SIN},
    {"Asin", PRN_WORK_SIN, PRN_WORK_SIN},       {"Acos", PRN_WORK_SIN, PRN_WORK_SIN},
    {"Atan", PRN_WORK_SIN, PRN_WORK_SIN},       {"Sinh", PRN_WORK_EXP, PRN_WORK_EXP},
    {"Cosh", PRN_WORK_EXP, PRN_WORK_EXP},
};

static bool row_work_is_op(const prony_layer_row *layer, const char *op)
{
    return layer->op && strcmp(layer->op, op) == 0;
}

static bool row_work_is_scalar(const prony_layer_row *layer, size_t input)
{
    const prony_value *value = input < layer->input_count ? layer->inputs[input] : NULL;
    return value && prony_shape_numel(&value->shape) == 1;
}

/* Division by one number is a multiplication, and a power of one exponent mostly a square or a root. */
static bool is_cheap(const prony_layer_row *layer)
{
    return (row_work_is_op(layer, "Div") || row_work_is_op(layer, "Pow")) && row_work_is_scalar(layer, 1);
}

void prn_layer_work_of(prn_layer_work *work, const prony_layer_row *layer, double bytes)
{
    const prony_cost *cost = &layer->cost;
    double products = 2 * (double)cost->macs, special = (double)cost->special;
    double all = (double)cost->flops + (double)cost->int_ops;
    *work = (prn_layer_work){{0}};
    if (special > all) special = all;
    if (is_cheap(layer)) special = 0;
    if (products > all - special) products = all - special;
    work->amount[PRN_WORK_PRODUCT] = products;
    work->amount[PRN_WORK_SIMPLE] = all - special - products;
    work->amount[PRN_WORK_MOVE] = bytes;
    prn_work first = PRN_WORK_DIVIDE, second = PRN_WORK_DIVIDE;
    for (size_t k = 0; k < sizeof special_of / sizeof special_of[0]; k++) {
        if (!row_work_is_op(layer, special_of[k].op)) continue;
        first = special_of[k].first;
        second = special_of[k].second;
    }
    work->amount[first] += special / 2;
    work->amount[second] += special / 2;
}

/* ---- shares ---- */

static double row_work_time_of(const prn_work_rates *rates, const prn_layer_work *layer, bool products)
{
    double ns = 0;
    for (int k = 0; k < PRN_WORK_COUNT; k++)
        if ((k == PRN_WORK_PRODUCT) == products) ns += layer->amount[k] / rates->per_second[k] * 1e9;
    return ns;
}

void prn_work_shares(const prn_work_rates *rates, const prn_layer_work *layers, size_t count, double time_ns,
                     double *shares)
{
    double products = 0, others = 0, slower = 1;
    for (size_t k = 0; k < count; k++) {
        products += row_work_time_of(rates, &layers[k], true);
        others += row_work_time_of(rates, &layers[k], false);
    }
    if (rates->measured && products > 0) slower = (time_ns - others) / products;
    if (slower < 1) slower = 1;
    if (slower > PRN_SLOWEST_PRODUCTS) slower = PRN_SLOWEST_PRODUCTS;
    double whole = slower * products + others;
    for (size_t k = 0; k < count; k++)
        shares[k] =
            whole > 0
                ? (slower * row_work_time_of(rates, &layers[k], true) + row_work_time_of(rates, &layers[k], false)) /
                      whole
                : 1 / (double)count;
}

/* ---- a report's layers ---- */

static double value_bytes(const prony_value *value)
{
    int64_t count =
        value && value->kind == PRONY_TENSOR && value->shape.rank >= 0 ? prony_shape_numel(&value->shape) : -1;
    size_t bytes = count > 0 ? prony_dtype_bytes(value->dtype, count) : 0;
    return bytes == SIZE_MAX ? 0 : (double)bytes;
}

enum { READ_INSIDE = 1, READ_OUTSIDE = 2 };

/* The readers of each layer's output: layers of its operator, or others. */
static unsigned char *find_readers(const prony_report *r)
{
    unsigned char *readers = prn_calloc(r->layer_count + 1, 1);
    for (size_t l = 0; readers && l < r->layer_count; l++) {
        const prony_layer_row *layer = &r->layers[l];
        for (size_t i = 0; layer->sources && i < layer->input_count; i++) {
            uint32_t from = layer->sources[i];
            if (from >= r->layer_count) continue;
            bool inside = r->layers[from].operator_index == layer->operator_index;
            readers[from] |= inside ? READ_INSIDE : READ_OUTSIDE;
        }
    }
    return readers;
}

/* A layer's traffic across its operator's border; 0 if its result is its input's bytes. */
static double border_bytes(const prony_report *r, const prony_layer_row *layer, unsigned readers)
{
    static const char *const views[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"};
    for (size_t k = 0; k < sizeof views / sizeof views[0]; k++)
        if (row_work_is_op(layer, views[k])) return 0;
    double in = 0, out = 0, most = (double)layer->cost.bytes_read;
    for (size_t i = 0; i < layer->input_count; i++) {
        uint32_t from = layer->sources ? layer->sources[i] : PRONY_NO_INDEX;
        if (from >= r->layer_count || r->layers[from].operator_index != layer->operator_index)
            in += value_bytes(layer->inputs[i]);
    }
    if (readers != READ_INSIDE)
        for (size_t k = 0; k < layer->output_count; k++) out += value_bytes(layer->outputs[k]);
    return (in < most ? in : most) + out;
}

static prony_status check_layers(const prony_report *r, const prony_operator_row *row, prony_error *error)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < row->layer_count; k++) {
        if (row->layers[k] >= r->layer_count)
            return prn_fail(error, PRONY_INTERNAL, "operator \"%s\" refers to layer %u of %zu", row->name,
                            row->layers[k], r->layer_count);
        const prony_cost *cost = &r->layers[row->layers[k]].cost;
        if (!prn_add_u64(&sum, sum, cost->flops) || !prn_add_u64(&sum, sum, cost->int_ops))
            return prn_fail(error, PRONY_LIMIT, "operator \"%s\": cost overflows 64 bits", row->name);
    }
    return PRONY_OK;
}

static void share_operator(prony_report *r, const prony_operator_row *row, const unsigned char *readers,
                           const prn_work_rates *rates, prn_layer_work *work, double *shares)
{
    size_t working = 0;
    for (size_t k = 0; k < row->layer_count; k++) {
        const prony_layer_row *layer = &r->layers[row->layers[k]];
        if (!layer->removed)
            prn_layer_work_of(&work[working++], layer, border_bytes(r, layer, readers[row->layers[k]]));
    }
    bool all = working == 0; /* such as a remaining Identity: all layers */
    if (all) {
        working = row->layer_count;
        memset(work, 0, working * sizeof *work);
    }
    prn_work_shares(rates, work, working, (double)row->time.min_ns, shares);
    for (size_t k = 0, next = 0; k < row->layer_count; k++) {
        prony_layer_row *layer = &r->layers[row->layers[k]];
        if (all) layer->removed = false; /* so it executed */
        bool has_part = !layer->removed;
        layer->operator_share = has_part ? shares[next++] : 0;
        layer->time_attributed = has_part && working > 1;
    }
}

prony_status prn_report_estimate_shares(prony_report *report, prony_error *error)
{
    size_t most = 0;
    for (size_t o = 0; o < report->operator_count; o++) {
        PRN_TRY(check_layers(report, &report->operators[o], error));
        if (report->operators[o].layer_count > most) most = report->operators[o].layer_count;
    }
    unsigned char *readers = find_readers(report);
    prn_layer_work *work = prn_calloc(most + 1, sizeof *work);
    double *shares = prn_calloc(most + 1, sizeof *shares);
    prony_status status = readers && work && shares ? PRONY_OK : prn_no_memory(error);
    prn_work_rates rates;
    int threads = -1;
    for (size_t o = 0; status == PRONY_OK && o < report->operator_count; o++) {
        const prony_operator_row *row = &report->operators[o];
        if (row->threads != threads) prn_work_rates_at(&rates, report, threads = row->threads);
        share_operator(report, row, readers, &rates, work, shares);
    }
    prn_free(readers);
    prn_free(work);
    prn_free(shares);
    return status;
}

uint64_t prn_share_mark(const prony_report *report, const prony_operator_row *row, size_t k, double *sum)
{
    *sum += report->layers[row->layers[k]].operator_share;
    /* The rounding remainder belongs to the last layer with a share. */
    return k + 1 == row->layer_count || *sum > 1 - 1e-9 ? PRN_SHARE_END : (uint64_t)(*sum * (double)PRN_SHARE_END);
}

/* ---- showing ---- */

const char *prn_time_kind(const prony_layer_row *layer)
{
    if (layer->removed) return "removed";
    if (!layer->measured) return NULL;
    return layer->time_attributed ? "estimated" : "measured";
}

int prn_estimate_digits(const prony_layer_row *layer)
{
    double part = layer->operator_share, rest = 1 - part;
    if (!layer->time_attributed) return 3;
    double error = part > 0 && rest < part ? rest / part / 2 : 0.5;
    return error < 0.01 ? 3 : error < 0.1 ? 2 : 1;
}

double prn_round_digits(double value, int digits)
{
    if (!(value > 0) || isinf(value)) return value;
    double unit = pow(10, floor(log10(value)) - digits + 1);
    return unit >= 1 ? round(value / unit) * unit : round(value / unit) / round(1 / unit);
}

const char *prn_part_text(char text[PRN_PART_TEXT_BYTES], const prony_layer_row *layer)
{
    if (!layer->time_attributed || !(layer->operator_share > 0)) return NULL; /* 0: an older report does not have it */
    double percent = prn_round_digits(layer->operator_share * 100, prn_estimate_digits(layer));
    if (percent >= 99.5) return "nearly all";
    if (percent < 1) return "below 1 %";
    snprintf(text, PRN_PART_TEXT_BYTES, "about %.0f %%", percent);
    return text;
}
