/* prony profile [MODEL]: the three-level report. Without a model, the embedded digits network runs on its held-back
 * test images, and the accuracy on them is printed above the report. */
#include "bench/session/accuracy.h"
#include "bench/command.h"
#include "bench/generate/generate.h"
#include "bench/options/option_table.h"
#include "bench/embedded.h"
#include "bench/process/interrupt.h"
#include "bench/session/judge.h"
#include "bench/session/phases.h"
#include "bench/process/processes.h"
#include "prony_quantize.h"

#include <stdlib.h>
#include <string.h>

enum { DIGIT_PIXELS = 64, DIGIT_CLASSES = 10, PIXEL_MAX = 16 };

static int profile_command_measure(const options *o, const prony_model *model, prony_session *session,
                                   prony_report **report)
{
    prony_error error = {0};
    prony_profile_options p = profile_options(o);
    phases around = {0};
    int code = phases_begin(&around, o, model, &p);
    if (code == EXIT_DONE) {
        prony_status status = prony_session_profile(report, session, &p, &error); /* first: *report is read below */
        code = measured(o, status, *report, &error);
    }
    clear_progress();
    if (code == EXIT_DONE && o->shown.topk && !o->terminal.quiet && !stdout_taken(o)) {
        phases_print(&around);
        putchar('\n');
    }
    phases_end(&around);
    return code;
}

/* The end of every profile, also after a failure. */
static int write_and_release(const options *o, int code, prony_model *model, prony_session *session,
                             prony_report *report)
{
    if (code == EXIT_DONE) code = add_accuracy(o, model, session, report);
    if (code == EXIT_DONE) code = write_report(o, report);
    if (code == EXIT_DONE) code = write_all_forms(o, report);
    if (code == EXIT_DONE) code = save_outputs(o, model, session);
    code = check_after_report(o, report, code);
    prony_report_release(report);
    session_release(session);
    prony_model_release(model);
    return code;
}

static int profile_model(const options *o)
{
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_report *report = NULL;
    int code = open_session(o, &model, &session, true);
    if (code == EXIT_DONE) code = profile_command_measure(o, model, session, &report);
    return write_and_release(o, code, model, session, report);
}

/* ---- the embedded default ---- */

/* Start of the data of an embedded .npy file of version 1: its header length stands at byte 8. */
static const uint8_t *npy_data(const uint8_t *file)
{
    return file + 10 + file[8] + 256 * file[9];
}

/* The first images as the model takes them; the caller frees data; NULL: out of memory. */
static prony_value first_digits(size_t count)
{
    const uint8_t *pixels = npy_data(prn_digits_images);
    float *data = malloc(count * DIGIT_PIXELS * sizeof *data);
    for (size_t i = 0; data && i < count * DIGIT_PIXELS; i++) data[i] = (float)pixels[i] / PIXEL_MAX;
    return (prony_value){.dtype = PRONY_FLOAT32, .shape = {4, {(int64_t)count, 1, 8, 8}}, .data = data};
}

static prony_status set_digits(prony_session *session, size_t count, prony_error *error)
{
    prony_value value = first_digits(count);
    prony_status status = value.data ? prony_session_set_input(session, "image", &value, error) : PRONY_OUT_OF_MEMORY;
    free(value.data);
    return status;
}

/* -p int8: the ranges come from the embedded images, the only data available. */
static prony_status quantize_digits(const options *o, prony_model **model, size_t images, prony_error *error)
{
    prony_value value = first_digits(images);
    const prony_value *const values[] = {&value};
    prony_dataset_options d = PRONY_DATASET_OPTIONS_INIT;
    prony_calibrate_options c = PRONY_CALIBRATE_OPTIONS_INIT;
    prony_quantize_options q = PRONY_QUANTIZE_OPTIONS_INIT;
    prony_dataset *data = NULL;
    prony_calibration *calibration = NULL;
    prony_model *made = NULL;
    d.unlabelled = true;
    if (o->precision.calibrate_method) (void)prony_calibration_method_find(&c.method, o->precision.calibrate_method);
    prony_status status =
        value.data ? prony_dataset_create(&data, *model, (const char *const[]){"image"}, values, 1, NULL, &d, error)
                   : PRONY_OUT_OF_MEMORY;
    if (status == PRONY_OK) status = prony_calibrate(&calibration, *model, data, &c, error);
    q.calibration = calibration;
    q.data = data;
    q.keep_accuracy = o->precision.keep_accuracy;
    q.power_of_two = o->precision.power_of_two;
    if (status == PRONY_OK) status = prony_model_quantize(&made, *model, &q, error);
    if (status == PRONY_OK) {
        prony_model_release(*model);
        *model = made;
    }
    prony_calibration_release(calibration);
    prony_dataset_release(data);
    free(value.data);
    return status;
}

static bool label_is_top(const float *logits, uint8_t label)
{
    for (int c = 0; c < DIGIT_CLASSES; c++)
        if (logits[c] > logits[label]) return false;
    return true;
}

static prony_status count_right(prony_session *session, size_t images, size_t *right, prony_error *error)
{
    const uint8_t *labels = npy_data(prn_digits_labels);
    const prony_value *output;
    prony_status status = set_digits(session, images, error);
    if (status == PRONY_OK) status = prony_session_run(session, error);
    if (status == PRONY_OK) status = prony_session_output(session, 0, &output, error);
    for (size_t i = 0; status == PRONY_OK && i < images; i++)
        *right += label_is_top((const float *)output->data + i * DIGIT_CLASSES, labels[i]);
    return status;
}

/* Two passes over the embedded images: the first counts right answers over all of them, the second profiles a batch of
 * the first ones. The report's accuracy is that of the whole set, whatever -b says. */
static int profile_digits(const options *o)
{
    prony_error error = {0};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_report *report = NULL;
    prony_session_options s = session_options(o);
    size_t images = (size_t)(prn_digits_labels_end - npy_data(prn_digits_labels)), right = 0;
    size_t batch = o->model.batch > 0 ? (size_t)o->model.batch : 1;
    if (batch > images) return fail(o, "-b %zu exceeds the %zu embedded images", batch, images);
    prony_status status = prony_model_load_memory(&model, "digits (embedded)", prn_digits_model,
                                                  (size_t)(prn_digits_model_end - prn_digits_model), NULL, &error);
    if (status == PRONY_OK && wants_codes(o, model)) status = quantize_digits(o, &model, images, &error);
    if (status == PRONY_OK) status = session_create(&session, model, &s, &error);
    if (status == PRONY_OK) status = count_right(session, images, &right, &error);
    if (status == PRONY_OK) status = set_digits(session, batch, &error);
    int code = status == PRONY_OK ? profile_command_measure(o, model, session, &report) : report_error(o, &error);
    double accuracy = images ? (double)right / (double)images : 0;
    if (code == EXIT_DONE &&
        prony_report_set_evaluation(report, "top1_accuracy", accuracy, (int64_t)images, &error) != PRONY_OK)
        code = report_error(o, &error);
    if (code == EXIT_DONE && !o->terminal.quiet && !stdout_taken(o)) {
        clear_progress();
        printf("handwritten digits, %zu held-back test images: %zu right, accuracy %.2f %%\n\n", images, right,
               100 * accuracy);
    }
    return write_and_release(o, code, model, session, report);
}

static int profile_processes(const options *o)
{
    prony_report *report = NULL;
    int code = processes_refuse(o);
    if (code == EXIT_DONE) code = processes_measure(o, &report);
    if (code == EXIT_DONE) code = write_report(o, report);
    code = check_after_report(o, report, code);
    prony_report_release(report);
    return code;
}

int command_profile(const options *o)
{
    if (o->generate.enabled && (o->measuring.processes > 1 || !o->argument_count))
        return usage(o, "--generate needs a MODEL, and does not go with --processes");
    if (o->generate.enabled) return command_profile_generate(o);
    if (o->generate.prompt_ids) return usage(o, "--prompt-ids needs --generate");
    if (o->measuring.processes > 1) return profile_processes(o);
    if (o->argument_count > 0) return profile_model(o);
    if (o->model.input_count > 0 || o->model.shape_count > 0 || o->model.dim_count > 0 || o->precision.calibrate) {
        fail(o, "the embedded model brings its own images, and -b sets their number; -i, --shape, --dim and "
                "--calibrate need a MODEL");
        return EXIT_USAGE;
    }
    return profile_digits(o);
}
