#include "simulated_study.h"

#include "base/memory/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

int study_page_write(void *user, const char *data, size_t size)
{
    study_page *p = user;
    if (p->size + size >= sizeof p->text) return -1;
    memcpy(p->text + p->size, data, size);
    p->size += size;
    p->text[p->size] = '\0';
    return 0;
}

prony_report *simulated_study_manifest(void)
{
    prony_report *r = prn_calloc(1, sizeof *r);
    if (!r) return NULL;
    r->model.name = "made up";
    r->model.sha256 = "00";
    r->config.batch = 1;
    r->config.warmup_runs = r->config.runs = -1;
    r->system.libraries = "";
    snprintf(r->system.machine.cpu_model, sizeof r->system.machine.cpu_model, "Processor");
    return r;
}

prony_status simulated_study_plan(prony_study **out, const int64_t *threads, size_t count, int processes,
                                  prony_error *error)
{
    prony_study_options o = PRONY_STUDY_OPTIONS_INIT;
    prony_report *report = simulated_study_manifest();
    if (!report) return PRONY_OUT_OF_MEMORY;
    o.intra_op = threads;
    o.intra_op_count = count;
    o.processes = processes;
    o.runs = 20;
    prony_status status = prn_study_plan(out, report, &o, 8, error);
    if (status != PRONY_OK) prony_report_release(report);
    return status;
}

/* Two operators: one is divided among threads and scales with them, one is not. */
prony_status simulated_study_add(prony_study *s, size_t node, double factor, const prony_study_task *task,
                                 uint64_t *random, prony_error *error)
{
    char text[4000];
    int n = task->intra_op_threads, used = 0;
    factor *= 1 + 0.005 * prn_random_normal(random);
    double cut = (1 - SIMULATED_SERIAL) * SIMULATED_NS / n * factor, uncut = SIMULATED_SERIAL * SIMULATED_NS * factor;
    used += snprintf(text + used, sizeof text - (size_t)used,
                     "{\"schema\": \"prony.study/1\", \"batch\": 1, \"warmup_runs\": 3, \"warmup_detected\": true, "
                     "\"involuntary_switches\": 0, \"samples_ns\": [");
    for (int i = 0; i < 20; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%.0f", i ? ", " : "",
                         (cut + uncut) * (1 + 0.002 * prn_random_normal(random)));
    snprintf(text + used, sizeof text - (size_t)used,
             "], \"operators\": [{\"name\": \"cut\", \"op\": \"Conv\", \"kernel\": \"k\", \"flops\": 9, \"bytes\": 9, "
             "\"on_path\": true, "
             "\"measured\": [%.0f, 64, %d, %.0f, %.0f, 0]}, {\"name\": \"whole\", \"op\": \"Relu\", \"kernel\": \"k\", "
             "\"flops\": 1, "
             "\"bytes\": 1, \"on_path\": true, \"measured\": [%.0f, 0, 0, 0, 0, 0]}]}",
             cut, n, (1 - SIMULATED_SERIAL) * SIMULATED_NS * factor, cut, uncut);
    prony_study_process p = {.sample = text, .sample_bytes = strlen(text)};
    p.before =
        (prony_machine_state){.time_ns = (int64_t)task->block * 1000, .temperature_c = NAN, .throttle_events = -1};
    p.after = p.before;
    p.after.time_ns += 900;
    return prony_study_add_on(s, node, task, &p, error);
}

void fail_every_allocation(prony_status (*all)(prony_error *error), uint64_t denser)
{
    prony_error error;
    for (uint64_t n = 1; n < 100000; n += 1 + n / denser) {
        prn_alloc_fail_at(n);
        prony_status status = all(&error);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_true(status == PRONY_OK || status == PRONY_OUT_OF_MEMORY);
        if (!failed) {
            assert_int_equal(status, PRONY_OK);
            return;
        }
    }
    fail_msg("it never came to an end");
}
