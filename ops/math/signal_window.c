/* Tables that signal processing multiplies with: Hann, Hamming and Blackman windows, and the mel filter bank. All
 * follow from a few numbers, usually constants; they are made in double, one element after the other. */
#include "base/threads/cancel.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"

typedef struct table_params {
    int64_t output_datatype, periodic;
} table_params;

#define INDEX_TYPES (PRN_TYPE(PRONY_INT32) | PRN_TYPE(PRONY_INT64))

static prony_status signal_window_check(const prony_context *context)
{
    const int64_t type = ((const table_params *)context->params)->output_datatype;
    if (type > 0 && type < PRONY_DTYPE_COUNT && (PRN_TYPES_NUMBER & PRN_TYPE(type))) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'output_datatype' is %lld, which is not a number type",
                      (long long)type);
}

static prony_dtype signal_window_output_type(const prony_context *context)
{
    return (prony_dtype)((const table_params *)context->params)->output_datatype;
}

/* A scalar integer; *known is false, and *out left alone, while its data is not there. */
static prony_status read_count(const prony_context *context, size_t input, int64_t *out, bool *known)
{
    size_t count;
    bool here;
    PRN_TRY(prn_check_type(context, input, INDEX_TYPES));
    PRN_TRY(prn_input_ints(context, input, out, 1, &count, &here));
    if (here && count != 1) return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is not a scalar", input);
    if (here && (*out < 0 || *out > INT64_C(1) << 48))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "input %zu is %lld", input, (long long)*out);
    *known = *known && here;
    return PRONY_OK;
}

/* ---- windows: a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N) */

static prony_status window_infer(const prony_context *context)
{
    prony_shape shape = prn_shape_unknown();
    int64_t size = 0;
    bool known = true;
    PRN_TRY(read_count(context, 0, &size, &known));
    if (known) shape = prn_shape_make(1, &size);
    prn_set_output(context, 0, signal_window_output_type(context), &shape);
    return PRONY_OK;
}

typedef struct window {
    double a0, a1, a2;
    uint64_t flops, special; /* per element: i / N times a constant, and per cosine itself, its factor and its addend */
} window;

static const window hann = {0.5, 0.5, 0.0, 5, 2}, hamming = {25.0 / 46.0, 21.0 / 46.0, 0.0, 5, 2},
                    blackman = {0.42, 0.5, 0.08, 9, 3};

/* A symmetric window of one element is its peak. */
static prony_status window_run(const prony_context *context)
{
    const window *w = prn_variant(context);
    const prony_value *y = context->outputs[0];
    const int64_t size = y->shape.dim[0];
    const int64_t period = ((const table_params *)context->params)->periodic ? size : size - 1;
    for (int64_t i = 0; i < size && !prn_cancelled_at(i); i++) {
        const double angle = period ? 2.0 * M_PI * (double)i / (double)period : M_PI;
        prn_put_f64(y->data, y->dtype, i, w->a0 - w->a1 * cos(angle) + w->a2 * cos(2.0 * angle));
    }
    return PRONY_OK;
}

static prony_status window_cost(const prony_context *context, prony_cost *cost)
{
    const window *w = prn_variant(context);
    return prn_cost_map(context, cost, w->flops, w->special, 0);
}

/* ---- MelWeightMatrix [dft_length / 2 + 1, num_mel_bins]: a triangle per mel band */

typedef struct mel_bank {
    int64_t bands, length, rows, rate;
    double low, step; /* in mel */
} mel_bank;

static prony_status mel_infer(const prony_context *context)
{
    int64_t bands = 0, length = 0, rate = 0;
    bool known = true;
    prony_shape shape = prn_shape_unknown();
    PRN_TRY(read_count(context, 0, &bands, &known));
    PRN_TRY(read_count(context, 1, &length, &known));
    bool rate_known = true;
    PRN_TRY(read_count(context, 2, &rate, &rate_known));
    if (rate_known && rate == 0) return prony_fail(context, PRONY_OUT_OF_RANGE, "sample_rate is 0");
    for (size_t i = 3; i < 5; i++) {
        PRN_TRY(prn_check_type(context, i, PRN_TYPES_FLOAT));
        if (prony_shape_numel(&context->inputs[i]->shape) != 1)
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is not a scalar", i);
    }
    if (known) shape = prn_shape_make(2, (const int64_t[]){length / 2 + 1, bands});
    prn_set_output(context, 0, signal_window_output_type(context), &shape);
    return PRONY_OK;
}

static double mel_of(double hertz)
{
    return 2595.0 * log10(1.0 + hertz / 700.0);
}

/* The spectrogram bin at the i-th of bands + 2 equally spaced mel values; -1 outside of the spectrum. The last one only
 * ends a triangle, so it may be one past. */
static int64_t mel_bin(const mel_bank *bank, int64_t i)
{
    const double hertz = 700.0 * (pow(10.0, (bank->low + (double)i * bank->step) / 2595.0) - 1.0);
    const double bin = floor((double)(bank->length + 1) * hertz / (double)bank->rate);
    return bin >= 0.0 && bin <= (double)bank->rows ? (int64_t)bin : -1;
}

/* One triangle per band: rises from the left bin to the centre, falls to the right one; bins are rounded from equal
 * steps in mel. */
static prony_status mel_run(const prony_context *context)
{
    const prony_value *y = context->outputs[0], *low = context->inputs[3], *high = context->inputs[4];
    mel_bank bank = {.low = mel_of(prn_get_f64(low->data, low->dtype, 0))};
    bool known = true;
    PRN_TRY(read_count(context, 0, &bank.bands, &known));
    PRN_TRY(read_count(context, 1, &bank.length, &known));
    PRN_TRY(read_count(context, 2, &bank.rate, &known));
    bank.rows = y->shape.dim[0];
    bank.step = (mel_of(prn_get_f64(high->data, high->dtype, 0)) - bank.low) / (double)(bank.bands + 2);
    prn_cancellable_clear(y->data, prn_value_bytes(y));
    for (int64_t band = 0; band < bank.bands && !prn_cancelled(); band++) {
        const int64_t left = mel_bin(&bank, band), centre = mel_bin(&bank, band + 1), right = mel_bin(&bank, band + 2);
        if (left < 0 || centre < left || centre >= bank.rows || right < centre) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "mel band %lld lies outside of a spectrum of %lld bins",
                              (long long)band, (long long)bank.rows);
        }
        if (centre == left) prn_put_f64(y->data, y->dtype, centre * bank.bands + band, 1.0);
        for (int64_t j = left; j <= centre && centre > left; j++)
            prn_put_f64(y->data, y->dtype, j * bank.bands + band, (double)(j - left) / (double)(centre - left));
        for (int64_t j = centre; j < right; j++)
            prn_put_f64(y->data, y->dtype, j * bank.bands + band, (double)(right - j) / (double)(right - centre));
    }
    return PRONY_OK;
}

static prony_status mel_cost(const prony_context *context, prony_cost *cost)
{
    return prn_cost_map(context, cost, 2, 1, 0);
}

static const prn_param window_attributes[] = {
    PRN_INT(table_params, output_datatype, PRONY_FLOAT32), PRN_INT(table_params, periodic, 1), {0}};
static const prn_param mel_attributes[] = {PRN_INT(table_params, output_datatype, PRONY_FLOAT32), {0}};

static const prn_kernel hann_kernels[] = {{.name = "hann_window_reference", .backend = "reference", .run = window_run},
                                          {0}};
static const prn_kernel hamming_kernels[] = {
    {.name = "hamming_window_reference", .backend = "reference", .run = window_run}, {0}};
static const prn_kernel blackman_kernels[] = {
    {.name = "blackman_window_reference", .backend = "reference", .run = window_run}, {0}};
static const prn_kernel mel_kernels[] = {
    {.name = "mel_weight_matrix_reference", .backend = "reference", .run = mel_run}, {0}};

// clang-format off
const prn_op prn_ops_signal_window[] = {
    {.name = "HannWindow", .since_opset = 17, .inputs = {1, 1}, .non_weight_inputs = 1,
     .params = window_attributes, .params_bytes = sizeof(table_params), .variant = &hann, .check = signal_window_check,
     .infer = window_infer, .cost = window_cost, .cost_text = "5 n (mul, div, cos, mul, sub); special 2 n",
     .kernels = hann_kernels},
    {.name = "HammingWindow", .since_opset = 17, .inputs = {1, 1}, .non_weight_inputs = 1,
     .params = window_attributes, .params_bytes = sizeof(table_params), .variant = &hamming, .check = signal_window_check,
     .infer = window_infer, .cost = window_cost, .cost_text = "5 n (mul, div, cos, mul, sub); special 2 n",
     .kernels = hamming_kernels},
    {.name = "BlackmanWindow", .since_opset = 17, .inputs = {1, 1}, .non_weight_inputs = 1,
     .params = window_attributes, .params_bytes = sizeof(table_params), .variant = &blackman, .check = signal_window_check,
     .infer = window_infer, .cost = window_cost,
     .cost_text = "9 n (mul, div, cos, mul, sub, mul, cos, mul, add); special 3 n", .kernels = blackman_kernels},
    {.name = "MelWeightMatrix", .since_opset = 17, .inputs = {5, 5}, .non_weight_inputs = 31,
     .params = mel_attributes, .params_bytes = sizeof(table_params), .check = signal_window_check,
     .infer = mel_infer, .cost = mel_cost,
     .cost_text = "2 n (sub, div per weight, as if none were 0); special n", .kernels = mel_kernels},
    {0}};
// clang-format on
