/* prony quantize MODEL -p int8 --calibrate DATA -o OUT.onnx, and the same in memory for the commands that take -p
 * int8; -p int4-weights and int8-weights. */
#include "bench/generate/generate.h"
#include "bench/session/inputs.h"
#include "bench/process/interrupt.h"
#include "prony_quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void quantize_command_show_samples(void *user, int64_t done, int64_t samples)
{
    (void)user;
    char text[64];
    snprintf(text, sizeof text, "calibration: %lld of %lld samples", (long long)done, (long long)samples);
    show_progress_text(text);
}

static void show_trials(void *user, int64_t done, int64_t trials)
{
    (void)user;
    char text[64];
    snprintf(text, sizeof text, "choosing layers that stay in float: trial %lld of %lld", (long long)done,
             (long long)trials);
    show_progress_text(text);
}

static bool is_calibration(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ".json") == 0;
}

/* ---- calibration ---- */

static prony_status open_data(const options *o, prony_model *model, prony_dataset **data, prony_error *error)
{
    prony_dataset_options d = PRONY_DATASET_OPTIONS_INIT;
    d.image = image_options(o);
    d.unlabelled = true;
    return prony_dataset_open(data, o->precision.calibrate, model, &d, error);
}

char *calibration_path(const options *o)
{
    if (is_calibration(o->precision.calibrate)) return strdup(o->precision.calibrate);
    const size_t size = strlen(o->arguments[0]) + sizeof ".calibration.json";
    char *path = malloc(size);
    if (path) snprintf(path, size, "%s.calibration.json", o->arguments[0]);
    return path;
}

/* Keeps the calibration beside the model. If the file cannot be written, commands that do not need it continue after a
 * message. */
static int keep_calibration(const options *o, const prony_calibration *calibration)
{
    prony_error error = {0};
    char *path = calibration_path(o);
    if (!path) return fail(o, "out of memory");
    int code = EXIT_DONE;
    if (prony_calibration_save(calibration, path, &error) != PRONY_OK) {
        if (strcmp(o->command, "quantize") == 0 || strcmp(o->command, "scale") == 0)
            code = report_error(o, &error);
        else
            fail(o, "warning: the calibration was not saved: %s", error.message);
    }
    free(path);
    return code;
}

static prony_status calibrate(const options *o, prony_model *model, const prony_dataset *data,
                              const prony_session_options *session, prony_calibration **out, prony_error *error)
{
    prony_calibrate_options c = PRONY_CALIBRATE_OPTIONS_INIT;
    c.session = session;
    if (o->precision.calibrate_method) (void)prony_calibration_method_find(&c.method, o->precision.calibrate_method);
    if (want_progress(o)) c.progress = quantize_command_show_samples;
    return prony_calibrate(out, model, data, &c, error);
}

/* Opens *data if its samples are needed: to find ranges, or the layers that stay in float. */
static int quantize_command_find_ranges(const options *o, prony_model *model, const prony_session_options *session,
                                        prony_dataset **data, prony_calibration **out)
{
    prony_error error = {0};
    prony_status status = PRONY_OK;
    if (is_calibration(o->precision.calibrate)) {
        if (o->precision.keep_accuracy > 0)
            return fail(o, "--keep-accuracy needs samples: wanted --calibrate DATA, got '%s'", o->precision.calibrate);
        status = prony_calibration_load(out, o->precision.calibrate, &error);
        return status == PRONY_OK ? EXIT_DONE : report_error(o, &error);
    }
    interrupt_at_once(true);
    status = open_data(o, model, data, &error);
    if (status == PRONY_OK) status = calibrate(o, model, *data, session, out, &error);
    interrupt_at_once(false);
    clear_progress();
    return status == PRONY_OK ? keep_calibration(o, *out) : report_session_error(o, model, &error);
}

/* ---- the model ---- */

/* Warns once per process that convolutions without ranges stay in float. */
static void say_floats(const options *o, const prony_model *made)
{
    static bool said;
    const prony_quantized_row *rows;
    size_t floats = 0, count = prony_model_quantized_layers(made, &rows);
    for (size_t i = 0; i < count; i++) {
        const char *reason = prony_model_float_reason(made, i);
        floats += !rows[i].quantized && reason && strncmp(reason, "without calibration", 19) == 0;
    }
    if (o->precision.calibrate || said || !floats || o->terminal.quiet) return;
    fail(o, "warning: %zu of %zu layers with weights stay in float without --calibrate DATA", floats, count);
    said = true;
}

/* *out is the caller's; so is `model`, still. Ranges and trials run in float32, unpinned and without a record of
 * memory: options of the later measurement change no choice of layers. */
int quantize_model(const options *o, prony_model *model, prony_model **out)
{
    prony_error error = {0};
    prony_session_options s = session_options(o);
    prony_dataset *data = NULL;
    prony_calibration *calibration = NULL;
    s.precision = NULL;
    s.affinity = NULL;
    s.record_memory = false;
    int code = EXIT_DONE;
    if (o->precision.calibrate) code = quantize_command_find_ranges(o, model, &s, &data, &calibration);
    if (code == EXIT_DONE && !o->precision.calibrate && o->precision.keep_accuracy > 0)
        code = (fail(o, "--keep-accuracy needs samples: wanted --calibrate DATA"), EXIT_USAGE);
    prony_quantize_options q = PRONY_QUANTIZE_OPTIONS_INIT;
    q.calibration = calibration;
    q.keep_accuracy = o->precision.keep_accuracy;
    q.data = data;
    q.power_of_two = o->precision.power_of_two;
    q.session = &s;
    if (want_progress(o)) q.progress = show_trials;
    if (code == EXIT_DONE) {
        interrupt_at_once(true);
        prony_status status = prony_model_quantize(out, model, &q, &error);
        interrupt_at_once(false);
        clear_progress();
        if (status != PRONY_OK)
            code = report_session_error(o, model, &error);
        else
            say_floats(o, *out);
    }
    prony_calibration_release(calibration);
    prony_dataset_release(data);
    return code;
}

bool wants_codes(const options *o, const prony_model *model)
{
    return o->precision.name && strcmp(o->precision.name, "int8") == 0 && !prony_model_is_quantized(model);
}

int quantize_in_place(const options *o, prony_model **model)
{
    prony_model *made = NULL;
    if (!wants_codes(o, *model)) return EXIT_DONE;
    int code = quantize_model(o, *model, &made);
    if (code != EXIT_DONE) return code;
    prony_model_release(*model);
    *model = made;
    return EXIT_DONE;
}

/* ---- the command ---- */

/* Prints the layers that stayed in float, each one's own error and the reason. */
static void print_kept(const prony_model *made, const prony_quantized_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].quantized) continue;
        fputs("  stays in float: ", stdout);
        put_text(stdout, rows[i].name);
        printf(" (%s)", rows[i].op);
        const char *reason = prony_model_float_reason(made, i);
        if (!isnan(rows[i].error))
            printf("; quantized alone it would move the outputs by %.3g %% of their range", 100 * rows[i].error);
        else if (reason)
            printf("; %s", reason);
        putchar('\n');
    }
}

static int quantize_command_show(const options *o, const prony_model *made)
{
    const prony_quantized_row *rows;
    const size_t count = prony_model_quantized_layers(made, &rows);
    size_t quantized = 0;
    for (size_t i = 0; i < count; i++) quantized += rows[i].quantized;
    if (o->terminal.quiet) return EXIT_DONE;
    put_text(stdout, o->files.output);
    printf("\n  %zu of %zu layers with weights compute on int8\n", quantized, count);
    print_kept(made, rows, count);
    return EXIT_DONE;
}

/* 0: quantization to int8, weights and activations. */
static int quantize_command_bits(const options *o)
{
    if (!o->precision.name) return 0;
    return strcmp(o->precision.name, "int4-weights") == 0 ? 4 : strcmp(o->precision.name, "int8-weights") == 0 ? 8 : 0;
}

/* Refuses options of the other kind of quantization. */
static int quantize_command_check(const options *o)
{
    const precision_options *p = &o->precision;
    if (!o->files.output) return fail(o, "-o OUT.onnx is missing"), EXIT_USAGE;
    if (p->name && strcmp(p->name, "int8") != 0 && !quantize_command_bits(o))
        return fail(o, "-p '%s': wanted int8, int8-weights or int4-weights", p->name), EXIT_USAGE;
    if (quantize_command_bits(o) && (p->calibrate_method || p->keep_accuracy > 0 || p->power_of_two))
        return fail(o, "--calibrate-method, --keep-accuracy and --power-of-two need -p int8"), EXIT_USAGE;
    if (quantize_command_bits(o) && p->calibrate && is_calibration(p->calibrate))
        return fail(o, "--calibrate '%s': ranges of activations do not help weights: wanted samples, or token ids",
                    p->calibrate),
               EXIT_USAGE;
    const bool reads = o->generate.max_length || o->generate.chunk || o->generate.roles || o->generate.cache_count;
    if (reads && !(quantize_command_bits(o) && p->calibrate && calibrates_tokens(o)))
        return fail(o,
                    "--max-length, --chunk, --roles and --cache need -p int4-weights or int8-weights and --calibrate "
                    "with token ids"),
               EXIT_USAGE;
    if (!quantize_command_bits(o) && (p->block || p->zero_points || p->search_scales))
        return fail(o, "--block, --zero-points and --search-scales need -p int4-weights or int8-weights"), EXIT_USAGE;
    if (p->block & (p->block - 1))
        return fail(o, "'--block' needs 16, 32, 64, 128 or 256, got '%lld'", (long long)p->block), EXIT_USAGE;
    return EXIT_DONE;
}

/* Runs the samples or the tokens of --calibrate. */
static int quantize_weights_calibrate(const options *o, prony_model *model, prony_importance **out)
{
    prony_error error = {0};
    prony_dataset *data = NULL;
    if (!o->precision.calibrate) return EXIT_DONE;
    if (calibrates_tokens(o)) return importance_of_tokens(o, model, out);
    prony_session_options s = session_options(o);
    s.precision = NULL;
    s.no_profile = true;
    interrupt_at_once(true);
    prony_status status = open_data(o, model, &data, &error);
    if (status == PRONY_OK) status = prony_importance_create(out, model, &error);
    if (status == PRONY_OK) status = prony_importance_add(*out, data, &s, &error);
    interrupt_at_once(false);
    prony_dataset_release(data);
    return status == PRONY_OK ? EXIT_DONE : report_session_error(o, model, &error);
}

static int quantize_weights(const options *o, prony_model *model, prony_model **out)
{
    prony_error error = {0};
    prony_weights_options w = PRONY_WEIGHTS_OPTIONS_INIT;
    prony_importance *importance = NULL;
    w.bits = quantize_command_bits(o);
    w.block = o->precision.block;
    w.zero_points = o->precision.zero_points;
    w.search_scales = o->precision.search_scales;
    int code = quantize_weights_calibrate(o, model, &importance);
    w.importance = importance;
    if (code == EXIT_DONE) {
        interrupt_at_once(true);
        const prony_status status = prony_model_quantize_weights(out, model, &w, &error);
        interrupt_at_once(false);
        if (status != PRONY_OK) code = report_error(o, &error);
    }
    prony_importance_release(importance);
    return code;
}

/* With --calibrate, both errors of each layer. */
static void print_weight_errors(const options *o, const prony_model *made, const prony_quantized_row *rows,
                                size_t count)
{
    if (!o->precision.calibrate) return;
    printf("  %10s %10s  layer\n", "weights", "weighted");
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].quantized) continue;
        const double weighted = prony_model_weighted_error(made, i);
        printf("  %8.3g %% ", 100 * rows[i].error);
        if (isnan(weighted))
            printf("%10s  ", "not run");
        else
            printf("%8.3g %%  ", 100 * weighted);
        put_text(stdout, rows[i].name);
        printf(" (%s)\n", rows[i].op);
    }
}

static int quantize_weights_show(const options *o, const prony_model *made)
{
    const prony_quantized_row *rows;
    const size_t count = prony_model_quantized_layers(made, &rows);
    size_t quantized = 0;
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].quantized) continue;
        quantized++;
        largest = fmax(largest, rows[i].error);
    }
    if (o->terminal.quiet) return EXIT_DONE;
    put_text(stdout, o->files.output);
    printf("\n  %zu layer%s with %d-bit weights in blocks of %lld; a layer's weights change by %.3g %% at most\n"
           "  (root mean square)\n",
           quantized, quantized == 1 ? "" : "s", quantize_command_bits(o),
           (long long)(o->precision.block ? o->precision.block : 32), 100 * largest);
    print_weight_errors(o, made, rows, count);
    print_kept(made, rows, count);
    return EXIT_DONE;
}

int command_quantize(const options *o)
{
    prony_error error = {0};
    prony_model *model = NULL, *made = NULL;
    int code = quantize_command_check(o);
    if (code != EXIT_DONE) return code;
    if (load_model(o, &model, o->arguments[0], &error) != PRONY_OK) return report_error(o, &error);
    code = quantize_command_bits(o) ? quantize_weights(o, model, &made) : quantize_model(o, model, &made);
    if (code == EXIT_DONE &&
        prony_model_save(made, o->files.output, prony_model_is_external(model), &error) != PRONY_OK)
        code = report_error(o, &error);
    if (code == EXIT_DONE)
        code = quantize_command_bits(o) ? quantize_weights_show(o, made) : quantize_command_show(o, made);
    prony_model_release(made);
    prony_model_release(model);
    return code;
}
