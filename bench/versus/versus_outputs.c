/* Saves inputs for both engines, and compares both outputs. Values go through .npy files, so each process holds only
 * its engine's data. */
#include "bench/session/inputs.h"
#include "bench/process/interrupt.h"
#include "bench/session/value_compare.h"
#include "bench/versus/versus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Largest difference of two correct engines as a share of an output's range: other order of sums, other approximations.
 * Chosen without measurement. */
#define AGREE 1e-3

int versus_save_value(const versus_job *job, const prony_value *value, const char *what, const char *name,
                      const char *path)
{
    prony_error error = {0};
    if (prony_value_save_npy(value, path, &error) == PRONY_OK) return EXIT_DONE;
    return fail(job->o, "%s '%s' cannot be passed to the peer: %s", what, name, error.message);
}

int versus_save_inputs(versus_job *job, const prony_model *model, const prony_session *session,
                       const prony_generator *generator)
{
    job->input_count = 0;
    job->inputs = calloc(prony_model_input_count(model) + 1, sizeof *job->inputs);
    if (!job->inputs) return fail(job->o, "out of memory");
    for (size_t i = 0; i < prony_model_input_count(model); i++) {
        char path[VERSUS_PATH];
        const char *name = prony_model_input(model, i)->name;
        const prony_value *value = prony_session_input_value(session, i);
        if (!value || (generator && !prony_generator_unfed_input(generator, i))) continue;
        if (value->kind != PRONY_TENSOR || value->dtype == PRONY_STRING || value->dtype >= PRONY_BFLOAT16)
            return fail(job->o, "input '%s' cannot be passed to the peer: .npy has no type for %s", name,
                        value->kind == PRONY_TENSOR ? prony_dtype_name(value->dtype) : "sequences and optionals");
        snprintf(path, sizeof path, "%s/input_%zu.npy", job->folder, i);
        int code = versus_save_value(job, value, "input", name, path);
        if (code != EXIT_DONE) return code;
        char *copy = strdup(name), *file = strdup(path);
        job->inputs[job->input_count][0] = copy;
        job->inputs[job->input_count++][1] = file;
        if (!copy || !file) return fail(job->o, "out of memory");
    }
    return EXIT_DONE;
}

int versus_choose_threads(versus_job *job, const prony_session *session)
{
    const int_list *list = &job->o->threads.intra_ops;
    job->thread_count = list->count ? list->count : 1;
    job->threads = calloc(job->thread_count, sizeof *job->threads);
    if (!job->threads) return fail(job->o, "out of memory");
    for (size_t t = 0; t < job->thread_count; t++) {
        job->threads[t] = list->count ? (int)list->values[t] : 0;
        if (job->threads[t] == 0) job->threads[t] = prony_session_threads(session);
    }
    return EXIT_DONE;
}

int versus_prepare(versus_job *job, prony_model **model)
{
    prony_error error = {0};
    prony_session *session = NULL;
    options automatic = *job->o;
    automatic.threads.intra_op = 0;
    int code = open_session(&automatic, model, &session, false);
    if (code == EXIT_DONE && prony_session_run(session, &error) != PRONY_OK) code = report_error(job->o, &error);
    if (code == EXIT_DONE) code = versus_choose_threads(job, session);
    if (code == EXIT_DONE) code = versus_save_inputs(job, *model, session, NULL);
    for (size_t k = 0; code == EXIT_DONE && k < prony_model_output_count(*model); k++) {
        char path[VERSUS_PATH];
        const prony_value *value;
        if (prony_session_output(session, k, &value, &error) != PRONY_OK) {
            code = report_error(job->o, &error);
            break;
        }
        if (value->dtype == PRONY_STRING) {
            code = fail(job->o, "output '%s' is text, which cannot be compared", prony_model_output(*model, k)->name);
            break;
        }
        snprintf(path, sizeof path, "%s/own_%zu.npy", job->folder, k);
        code = versus_save_value(job, value, "output", prony_model_output(*model, k)->name, path);
    }
    session_release(session);
    return code;
}

int versus_compare(const versus_job *job, prony_versus *versus, const prony_model *model)
{
    int code = EXIT_DONE;
    for (size_t k = 0; code == EXIT_DONE && k < prony_model_output_count(model); k++) {
        char path[VERSUS_PATH], reason[1024] = "";
        prony_error error = {0};
        prony_value *own = NULL, *peer = NULL;
        double difference = NAN;
        snprintf(path, sizeof path, "%s/own_%zu.npy", job->folder, k);
        prony_status status = prony_value_load(&own, path, &error);
        snprintf(path, sizeof path, "%s/output_%zu.npy", job->folder, k);
        if (status == PRONY_OK) status = prony_value_load(&peer, path, &error);
        if (status == PRONY_OK) {
            bool agrees = value_distance(own, peer, &difference) ? difference <= AGREE
                                                                 : value_matches(own, peer, reason, sizeof reason);
            if (!agrees && !*reason) (void)value_matches(own, peer, reason, sizeof reason);
            status = prony_versus_add_output(versus, prony_model_output(model, k)->name, agrees, difference,
                                             agrees ? NULL : reason, &error);
        }
        if (status != PRONY_OK) code = report_error(job->o, &error);
        prony_value_release(own);
        prony_value_release(peer);
    }
    return code;
}
