/* prony recommend TARGET: advice with its gain. A model is measured with variants: other batch sizes if free, other
 * thread counts, other precisions with their errors, and rewritten if it was to run unchanged. Advice on a report uses
 * the report alone. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "bench/session/inputs.h"
#include "bench/process/interrupt.h"
#include "bench/session/document.h"
#include "bench/session/judge.h"
#include "prony_judge.h"
#include "prony_quantize.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Random inputs that a precision's error is measured with, and seconds for each variant; chosen without measurement. */
enum { VARIANTS_MOST = 32, LOSS_INPUTS = 5 };
#define SECONDS_EACH 2.0

typedef struct study {
    target base;
    target other[VARIANTS_MOST];
    size_t count, first_precision; /* from first_precision on they differ in precision alone */
    const char *base_precision;
} study;

/* Adds a batch size only if the model allows it. */
static int add_batch(const options *o, int64_t batch, study *s)
{
    prony_error error = {0};
    options changed = *o;
    changed.model.batch = batch;
    prony_session_options session = session_options(&changed);
    target *t = &s->other[s->count];
    prony_status status = session_create(&t->session, s->base.model, &session, &error);
    if (status == PRONY_OK) status = prony_session_generate_inputs(t->session, o->model.seed, &error);
    if (status == PRONY_OK) status = prony_session_prepare(t->session, &error);
    if (status == PRONY_OK)
        s->count++;
    else
        target_close(t);
    return status == PRONY_OUT_OF_MEMORY || status == PRONY_IO_ERROR ? report_error(o, &error) : EXIT_DONE;
}

static int add_changed(const options *changed, study *s)
{
    return make_session(changed, s->base.model, &s->other[s->count++].session, true);
}

static int usable_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* ---- precisions ---- */

/* Default list. Precisions that model or processor do not support are left out; in the user's list they are an
 * error. */
static const char *const usual_precisions[] = {"fast", "bf16", "fp16", "int8", "int8-weights", "int4-weights"};

/* Quantises without data: only MatMul and Gemm use 8-bit values. */
static prony_status quantize_plainly(const options *o, prony_model *model, prony_model **out, prony_error *error)
{
    prony_session_options s = session_options(o);
    prony_quantize_options q = PRONY_QUANTIZE_OPTIONS_INIT;
    s.precision = NULL;
    q.session = &s;
    return prony_model_quantize(out, model, &q, error);
}

/* Adds a session of this precision to the study. A precision that the user asked for has to work. One that is tried
 * unasked is left out where the model does not support it. Errors of memory, files and cancellation end the command in
 * both cases. */
static int add_precision(const options *o, const char *precision, bool asked, study *s)
{
    prony_error error = {0};
    options changed = *o;
    target *t = &s->other[s->count];
    changed.precision.name = precision;
    if (!asked) changed.terminal.quiet = true;
    prony_model *own = NULL; /* an own model, because sessions of one model share packed weights and their memory */
    if (load_model(&changed, &own, o->arguments[0], &error) != PRONY_OK) return report_error(o, &error);
    t->model = own;
    prony_status status = PRONY_OK;
    if (wants_codes(&changed, own)) {
        t->model = NULL;
        int code = EXIT_DONE;
        if (asked || o->precision.calibrate)
            code = quantize_model(&changed, own, &t->model);
        else
            status = quantize_plainly(o, own, &t->model, &error);
        prony_model_release(own);
        if (code != EXIT_DONE) return code;
    }
    prony_session_options session = session_options(&changed);
    if (status == PRONY_OK) status = session_create(&t->session, t->model, &session, &error);
    if (status != PRONY_OK) {
        target_close(t);
        const bool cannot = status != PRONY_OUT_OF_MEMORY && status != PRONY_CANCELLED && status != PRONY_IO_ERROR;
        return asked || !cannot ? report_error(o, &error) : EXIT_DONE;
    }
    s->count++;
    return bind_inputs(&changed, t->model, t->session);
}

static int add_precisions(const options *o, study *s)
{
    const size_t usual = sizeof usual_precisions / sizeof *usual_precisions;
    const bool asked = o->precision.count > 1;
    int code = EXIT_DONE;
    if (o->precision.count == 1 && strcmp(o->precision.name, "fp32") != 0) return EXIT_DONE;
    if (asked && strcmp(o->precision.name, "int8") == 0)
        return fail(o, "-p: the first precision is the reference, so it cannot be int8"), EXIT_USAGE;
    if (o->precision.count > 8) return fail(o, "-p: at most 8 precisions"), EXIT_USAGE;
    if (asked)
        for (size_t i = 1; i < o->precision.count && code == EXIT_DONE; i++)
            code = add_precision(o, o->precision.names[i], true, s);
    else
        for (size_t i = 0; i < usual && code == EXIT_DONE; i++)
            if (strcmp(usual_precisions[i], "int8") != 0 || !prony_model_is_quantized(s->base.model))
                code = add_precision(o, usual_precisions[i], false, s);
    return code;
}

/* The worst error of the report's outputs; infinite: NaN or infinity in an output. Negative: not known. */
static double worst_error(const prony_report *report)
{
    const prony_accuracy *a = prony_report_accuracy(report);
    double worst = -1;
    for (size_t k = 0; a && k < a->output_count; k++) {
        const prony_error_metrics *e = &a->outputs[k].error;
        double error = e->nonfinite ? HUGE_VAL : e->max_rel;
        if (e->known && error > worst) worst = error;
    }
    return worst;
}

/* Compares the variant's outputs with those of the base, which has run on the same inputs. */
static prony_status hold_against_base(const study *s, const target *t, const char *source, prony_error *error)
{
    prony_accuracy_options a = PRONY_ACCURACY_OPTIONS_INIT;
    const size_t outputs = prony_model_output_count(s->base.model);
    prony_accuracy_expected *rows = calloc(outputs + 1, sizeof *rows);
    if (!rows) {
        error->status = PRONY_OUT_OF_MEMORY;
        return PRONY_OUT_OF_MEMORY;
    }
    prony_status status = PRONY_OK;
    for (size_t k = 0; k < outputs && status == PRONY_OK; k++) {
        rows[k] = (prony_accuracy_expected){.output = prony_model_output(s->base.model, k)->name, .source = source};
        status = prony_session_output(s->base.session, k, &rows[k].value, error);
    }
    a.outputs_only = true;
    a.against = rows;
    a.against_count = outputs;
    if (status == PRONY_OK) status = prony_session_accuracy(t->report, t->session, &a, error);
    free(rows);
    return status;
}

static prony_status next_inputs(const options *o, const target *t, int input, prony_error *error)
{
    return o->model.input_count ? PRONY_OK
                                : prony_session_generate_inputs(t->session, o->model.seed + (uint64_t)input, error);
}

/* The errors of one precision's outputs so far: the worst one, and its input. */
typedef struct loss {
    double most;
    int input;
    bool unknown; /* its outputs cannot be compared */
} loss;

/* Runs the precisions on one input: all, or with `of_worst` those whose worst input it was, so that their reports keep
 * it. */
static prony_status hold_input(const options *o, const study *s, loss *losses, int input, bool of_worst,
                               const char *source, prony_error *error)
{
    bool ran = false;
    for (size_t i = s->first_precision; i < s->count && !interrupted(); i++) {
        const target *t = &s->other[i];
        if (losses[i].unknown || (of_worst && losses[i].input != input)) continue;
        prony_status status = PRONY_OK;
        if (!ran) {
            status = next_inputs(o, &s->base, input, error);
            if (status == PRONY_OK) status = prony_session_run(s->base.session, error);
            if (status != PRONY_OK) return status;
            ran = true;
        }
        status = next_inputs(o, t, input, error);
        if (status == PRONY_OK) status = hold_against_base(s, t, source, error);
        if (status == PRONY_CANCELLED || status == PRONY_OUT_OF_MEMORY) return status;
        losses[i].unknown = status != PRONY_OK;
        const double now = status == PRONY_OK ? worst_error(t->report) : -1;
        if (now > losses[i].most) losses[i] = (loss){.most = now, .input = input};
    }
    return PRONY_OK;
}

/* Finds the errors of precisions on generated or user inputs: the base runs once on each. Reports keep the worst. */
static int find_losses(const options *o, const study *s)
{
    prony_error error = {0};
    const int inputs = o->model.input_count ? 1 : LOSS_INPUTS;
    loss losses[VARIANTS_MOST];
    char source[80];
    if (s->first_precision == s->count) return EXIT_DONE;
    if (inputs == 1)
        snprintf(source, sizeof source, "of %.20s", s->base_precision);
    else
        snprintf(source, sizeof source, "of %.20s, the worst of %d generated inputs", s->base_precision, inputs);
    for (size_t i = 0; i < s->count; i++) losses[i] = (loss){.most = -1, .input = inputs - 1};
    prony_status status = PRONY_OK;
    for (int k = 0; k < inputs && status == PRONY_OK; k++) status = hold_input(o, s, losses, k, false, source, &error);
    for (int k = 0; k + 1 < inputs && status == PRONY_OK; k++)
        status = hold_input(o, s, losses, k, true, source, &error);
    return status == PRONY_OK ? EXIT_DONE : report_error(o, &error);
}

/* ---- all variants ---- */

static int add_variants(const options *o, study *s)
{
    static const int64_t batches[] = {1, 2, 4, 8, 16};
    int now = prony_session_threads(s->base.session), most = usable_cores(), code = EXIT_DONE;
    options changed = *o;
    for (size_t i = 0; i < sizeof batches / sizeof batches[0] && code == EXIT_DONE; i++)
        if (batches[i] != (o->model.batch > 0 ? o->model.batch : 1) && o->model.input_count == 0 &&
            o->model.shape_count == 0)
            code = add_batch(o, batches[i], s);
    for (int threads = 1; threads <= most && threads <= 256 && code == EXIT_DONE; threads *= 2) {
        changed.threads.intra_op = threads;
        if (threads != now) code = add_changed(&changed, s);
    }
    changed = *o;
    changed.plan.no_rewrites = false;
    if (code == EXIT_DONE && o->plan.no_rewrites) code = add_changed(&changed, s);
    s->first_precision = s->count;
    return code == EXIT_DONE ? add_precisions(o, s) : code;
}

static int recommend_command_measure(const options *o, study *s)
{
    target *all[VARIANTS_MOST + 1] = {&s->base};
    options limited = *o;
    int code = add_variants(o, s);
    if (limited.measuring.seconds <= 0) limited.measuring.seconds = SECONDS_EACH;
    for (size_t i = 0; i < s->count; i++) all[i + 1] = &s->other[i];
    if (code == EXIT_DONE) code = targets_measure(&limited, all, s->count + 1);
    return code == EXIT_DONE && !interrupted() ? find_losses(o, s) : code;
}

static int write_advice(const options *o, const target *base, const prony_advice *rows, size_t count)
{
    prony_error error = {0};
    document json;
    prony_write_options w = write_options(o);
    prony_status status = PRONY_OK;
    prony_disturbance load;
    int code = document_open(&json, o);
    if (code != EXIT_DONE) return code;
    say_assumed(o, &base, 1);
    if (!o->terminal.quiet && !stdout_taken(o) && prony_report_disturbance(&load, base->report) && *load.text)
        printf("%s\n", load.text);
    if (!o->terminal.quiet && !stdout_taken(o))
        status =
            prony_advice_write(rows, count, o->arguments[0], PRONY_FORMAT_TEXT, &w, write_to_stream, stdout, &error);
    if (status == PRONY_OK && json.stream)
        status = prony_advice_write(rows, count, o->arguments[0], PRONY_FORMAT_JSON, &w, write_to_stream, json.stream,
                                    &error);
    return document_close(&json, o, status == PRONY_OK ? EXIT_DONE : report_error(o, &error));
}

static int advise(const options *o, const study *s)
{
    prony_error error = {0};
    const prony_report *variants[VARIANTS_MOST];
    prony_advice *rows = NULL;
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++) variants[i] = s->other[i].report;
    if (prony_recommend(&rows, &count, s->base.report, variants, s->count, &error) != PRONY_OK)
        return report_error(o, &error);
    int code = write_advice(o, &s->base, rows, count);
    prony_rows_release(rows);
    return code;
}

int command_recommend(const options *o)
{
    study s = {.base_precision = o->precision.name ? o->precision.name : "fp32"};
    int code = refuse_run_options(o, 1);
    if (code == EXIT_DONE) code = target_open(o, 0, &s.base);
    if (code == EXIT_DONE && !s.base.report) code = recommend_command_measure(o, &s);
    if (code == EXIT_DONE) code = advise(o, &s);
    for (size_t i = 0; i < s.count; i++) target_close(&s.other[i]);
    target_close(&s.base);
    return code;
}
