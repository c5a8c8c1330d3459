#include "tests/support/graph_report.h"
#include "tests/support/report_counts.h"

#include <stdlib.h>
#include <string.h>

typedef struct written {
    char *text;
    size_t size;
} written;

static int collect(void *user, const char *data, size_t size)
{
    written *w = user;
    w->text = realloc(w->text, w->size + size + 1);
    if (!w->text) abort();
    memcpy(w->text + w->size, data, size);
    w->size += size;
    w->text[w->size] = '\0';
    return 0;
}

/* true: neither form of the report has a figure that is not finite, or asks to report a fault. */
static bool text_is_clean(const prony_report *report, char *text, size_t size)
{
    static const char *const faults[] = {"please report", " nan", "-nan", " inf", ":nan", ":inf", ":-inf"};
    static const prony_format formats[] = {PRONY_FORMAT_TEXT, PRONY_FORMAT_JSON};
    bool clean = true;
    for (size_t f = 0; f < sizeof formats / sizeof *formats && clean; f++) {
        written w = {0};
        prony_error error = {0};
        clean = prony_report_write(report, formats[f], NULL, collect, &w, &error) == PRONY_OK;
        if (!clean) snprintf(text, size, "report: %s", error.message);
        for (size_t i = 0; i < sizeof faults / sizeof *faults && clean; i++) {
            clean = !strstr(w.text, faults[i]);
            if (!clean) snprintf(text, size, "the report says '%s'", faults[i]);
        }
        free(w.text);
    }
    return clean;
}

bool graph_report_agrees(const graph_model *m, graph_counts *counts, char *text, size_t size)
{
    prony_error error = {0};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_report *report = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    prony_profile_options once = PRONY_PROFILE_OPTIONS_INIT;
    size_t bytes_size, layers;
    const void *bytes = mb_finish(m->builder, &bytes_size);
    once.warmup_runs = 0;
    once.runs = 1;
    options.intra_op_threads = 1;
    prony_status status = prony_model_load_memory(&model, "random", bytes, bytes_size, NULL, &error);
    if (status == PRONY_OK) status = prony_session_create(&session, model, &options, &error);
    for (size_t i = 0; i < m->input_count && status == PRONY_OK; i++)
        status = prony_session_set_input(session, prony_model_input(model, i)->name, &m->inputs[i], &error);
    if (status == PRONY_OK) status = prony_session_profile(&report, session, &once, &error);
    if (status != PRONY_OK) snprintf(text, size, "profile: %s", error.message);
    const bool good =
        status == PRONY_OK && report_counts_agree(report, text, size) && text_is_clean(report, text, size);
    if (good && counts) {
        (void)prony_report_layers(report, &layers);
        *counts = (graph_counts){prony_report_totals(report)->cost, layers};
    }
    prony_report_release(report);
    prony_session_release(session);
    prony_model_release(model);
    return good;
}
