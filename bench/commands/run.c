/* prony run MODEL: one inference, a summary of the outputs, and the outputs in --output-dir's folder. */
#include "bench/process/interrupt.h"
#include "bench/options/option_table.h"
#include "bench/session/phases.h"
#include "bench/generate/generate.h"

#include <math.h>
#include <string.h>

static void run_command_shape_text(const prony_shape *shape, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (int d = 0; d < shape->rank && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", d ? ", " : "", (long long)shape->dim[d]);
    if (used < size) snprintf(text + used, size - used, "]");
}

/* Prints smallest, largest and mean of a float32 output, and the number of non-finite elements. */
static void print_float_summary(const prony_value *value)
{
    const float *x = value->data;
    int64_t count = prony_shape_numel(&value->shape), odd = 0;
    double sum = 0, low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(x[i])) {
            odd++;
            continue;
        }
        sum += x[i];
        if (x[i] < low) low = x[i];
        if (x[i] > high) high = x[i];
    }
    if (count > odd) printf("  min %.6g  mean %.6g  max %.6g", low, sum / (double)(count - odd), high);
    if (odd) printf("  not finite %lld", (long long)odd);
}

static void print_type(const prony_value *value)
{
    char text[256];
    if (value->kind == PRONY_OPTIONAL && !value->count) {
        printf("optional, empty");
    } else if (value->kind == PRONY_OPTIONAL) {
        print_type(&value->items[0]);
    } else if (value->kind == PRONY_SEQUENCE) {
        printf("sequence of %zu %s", value->count, prony_dtype_name(value->dtype));
    } else {
        run_command_shape_text(&value->shape, text, sizeof text);
        printf("%s%s", prony_dtype_name(value->dtype), text);
    }
}

void print_output(size_t index, const char *name, const prony_value *value)
{
    printf("output %zu  ", index);
    put_text(stdout, name);
    printf("  ");
    print_type(value);
    if (value->dtype == PRONY_FLOAT32 && value->data) print_float_summary(value);
    putchar('\n');
}

static int print_outputs(const options *o, const prony_model *model, const prony_session *session)
{
    prony_error error = {0};
    for (size_t k = 0; k < prony_model_output_count(model); k++) {
        const prony_value *value;
        if (prony_session_output(session, k, &value, &error) != PRONY_OK) return report_error(o, &error);
        print_output(k, prony_model_output(model, k)->name, value);
    }
    return EXIT_DONE;
}

/* One run without warm-up, profiled so that --json has a report. With JSON on stdout no summary is printed;
 * --output-dir still writes its files. */
int command_run(const options *o)
{
    prony_error error = {0};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_report *report = NULL;
    phases around = {0};
    bool json_stdout = o->files.json && strcmp(o->files.json, "-") == 0;
    if (o->generate.enabled) return command_run_generate(o);
    if (o->generate.prompt_ids) return usage(o, "--prompt-ids needs --generate");
    int code = open_session(o, &model, &session, true);
    if (code == EXIT_DONE) {
        prony_profile_options p = PRONY_PROFILE_OPTIONS_INIT;
        p.warmup_runs = 0;
        p.runs = 1;
        code = phases_begin(&around, o, model, &p);
        if (code == EXIT_DONE && prony_session_profile(&report, session, &p, &error) != PRONY_OK)
            code = report_error(o, &error);
    }
    if (code == EXIT_DONE && !o->terminal.quiet && !json_stdout) {
        int column =
            printf("%s: 1 run, %.3f ms", o->arguments[0], (double)prony_report_latency(report)->median_ns * 1e-6);
        put_assumed(report, column);
        putchar('\n');
        code = print_outputs(o, model, session);
        phases_print(&around);
    }
    if (code == EXIT_DONE) code = save_outputs(o, model, session);
    if (code == EXIT_DONE && o->files.json) {
        options json_only = *o;
        json_only.terminal.quiet = true;
        code = write_report(&json_only, report);
    }
    phases_end(&around);
    prony_report_release(report);
    session_release(session);
    prony_model_release(model);
    return code;
}
