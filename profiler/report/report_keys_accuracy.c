/* Keys of the accuracy profile: the object of the whole, and the error of a layer or an operator. */
#include "profiler/report/report_keys.h"

#include <math.h>

#define F prony_error_metrics
// clang-format off
static const prn_key figure_keys[] = {
    {"max_abs", PRN_AT(F, max_abs), PRN_LEAST_0, "Largest |y - r|, y the value and r its reference, in the value's unit; for quantised values with one scale, in the units that they stand for."},
    {"max_rel", PRN_AT(F, max_rel), PRN_LEAST_0,
     "max_abs over the range of r (max r - min r; if r is constant: its size; if it is 0 throughout: 1 if there is any error)."},
    {"ulp", PRN_AT(F, ulp), PRN_LEAST_0, "Largest |y - r| in units in the last place of the larger of both, in y's type; for quantised values in steps."},
    {"snr_db", PRN_AT(F, snr_db), PRN_IF_NUMBER, "10 log10(sum r^2 / sum (y - r)^2); absent: no error, or no signal."},
    {"beyond", PRN_AT(F, over_tolerance), PRN_SHARE, "Share of the elements with |y - r| above the tolerance times the range."},
    {"range", PRN_AT(F, range), PRN_LEAST_0, "Range of r as max_rel takes it."},
    {"nonfinite", PRN_AT(F, nonfinite), PRN_IF_SET, "Elements of y that are infinite or NaN where r differs."},
    {"elements", PRN_AT(F, elements), PRN_ALWAYS, "Compared."},
    {0}};
// clang-format on

#define E prony_accuracy_row
const prn_key prn_error_keys[] = {
    {"own", PRN_IN_WITH(E, own, own.known, figure_keys), PRN_IF_FLAG | PRN_ROW_DIRECT,
     "Error against the reference on the same inputs; absent: not sampled, or without a reference."},
    {"accumulated", PRN_IN_WITH(E, accumulated, accumulated.known, figure_keys), PRN_IF_FLAG | PRN_ROW_DIRECT,
     "Error against the reference that starts from the model's inputs."},
    {"not_compared", PRN_AT(E, not_compared), PRN_IF_SET, "Reason why there are no errors."},
    {"note", PRN_AT(E, note), PRN_IF_SET, "Remark on the errors."},
    {0}};
#undef E
#undef F

static const prony_accuracy_row *keys_accuracy_row_of(const prn_at *at, bool layer)
{
    const prony_report *r = at->root;
    if (layer) return r->layer_errors ? &r->layer_errors[(const prony_layer_row *)at->row - r->layers] : NULL;
    return r->operator_errors ? &r->operator_errors[(const prony_operator_row *)at->row - r->operators] : NULL;
}

bool prn_at_accuracy(const prn_at *at)
{
    return ((const prony_report *)at->root)->operator_errors != NULL;
}

static void write_error(prn_json *j, const prn_key *key, const prony_accuracy_row *row)
{
    prn_json_open(j, key->name, '{', false);
    prn_keys_write(j, prn_error_keys, &(prn_at){.row = (void *)(uintptr_t)row});
    prn_json_close(j, '}');
}

void prn_key_write_layer_error(prn_json *j, const prn_key *key, const prn_at *at)
{
    write_error(j, key, keys_accuracy_row_of(at, true));
}

void prn_key_write_operator_error(prn_json *j, const prn_key *key, const prn_at *at)
{
    write_error(j, key, keys_accuracy_row_of(at, false));
}

/* Once all rows are there: report_read.c. */
void prn_key_read_later(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at)
{
    (void)j, (void)object, (void)key, (void)at;
}

#define A prony_accuracy
static const prn_key output_keys[] = {
    {"name", PRN_AT(prony_accuracy_output, name), PRN_ALWAYS, "Name of the output."},
    {"against", PRN_AT(prony_accuracy_output, against), PRN_IF_SET,
     "File of another runtime's output; absent: compared with the reference."},
    {"error", PRN_IN(prony_accuracy_output, error, figure_keys), PRN_ROW_DIRECT, NULL},
    {0}};

static void keys_accuracy_write_verdict(prn_json *j, const prn_key *key, const prn_at *at)
{
    prn_json_string(j, key->name, ((const prony_report *)at->root)->accuracy_verdict);
}

const prn_key prn_accuracy_keys[] = {
    {"reference", PRN_AT(A, reference), PRN_ALWAYS, "Description of the reference."},
    {"verdict", PRN_MADE(STRING), PRN_ALWAYS, "One sentence for people.", .write = keys_accuracy_write_verdict},
    {"tolerance", PRN_AT(A, tolerance), PRN_LEAST_0, "Tolerance of `beyond`, as a part of the range."},
    {"operators", PRN_AT(A, operators), PRN_IF_SET, "Operators of the plan."},
    {"compared", PRN_AT(A, compared), PRN_IF_SET, "Operators with errors."},
    {"sampled", PRN_AT(A, sampled), PRN_IF_SET, "Operators whose own error was asked for."},
    {"without_reference", PRN_AT(A, without_reference), PRN_IF_SET, "Sampled operators without a float64 reference."},
    {"run_ns", PRN_AT(A, run_ns), PRN_IF_SET, "Time of the run with its reference, ns"},
    {"reference_ns", PRN_AT(A, reference_ns), PRN_IF_SET, "Part of run_ns for the reference and the comparisons, ns"},
    {"peak_bytes", PRN_AT(A, peak_bytes), PRN_IF_SET, "Largest size of the reference tensors at a time."},
    {"outputs", PRN_ROWS(A, outputs, output_count, output_keys), PRN_IF_SET,
     "The model's outputs with their accumulated errors."},
    {0}};
#undef A
