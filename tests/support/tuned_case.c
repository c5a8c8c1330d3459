/* See tuned_case.h. */
#define _GNU_SOURCE
#include "tests/support/tuned_case.h"

#include "base/cpu/isa.h"
#include "engine/plan/tune.h"
#include "profiler/measure/tune_file.h"
#include "prony_report.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

float tc_x[TC_ELEMENTS], tc_w[TC_CHANNELS * TC_CHANNELS * 9];
tc_clock_state tc_clock;
tc_row_names tc_rows;
bool tc_forgets, tc_saves;
model_run tc_run;
static char folder[64];

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *at)
{
    (void)facts;
    (void)kind;
    (void)at;
    return remove(path);
}

bool tc_has_choice(void)
{
    return prn_isa_has(PRN_HAS_FMA);
}

/* Read before and after each timed run: one run of the default plan, one of the other, and so on. */
static int64_t fake_now(void)
{
    const int call = tc_clock.calls++;
    if (call % 2) tc_clock.now += call / 2 % 2 ? tc_clock.tuned_ns : tc_clock.default_ns;
    if (tc_clock.cancel_at && call + 1 == tc_clock.cancel_at) prony_session_cancel(tc_clock.session);
    return tc_clock.now;
}

static void load(prn_tuning *tuning, const prn_tune_key *key, bool again)
{
    prn_tune_cache.load(tuning, key, again);
    tuning->now_ns = fake_now;
    if (tc_forgets) tuning->verdict_count = 0;
    for (size_t r = 0; r < tuning->count && tc_rows != TC_AS_KEPT; r++) {
        prn_tune_row *row = tuning->rows[r];
        row->kernel = row->standard;
        for (size_t k = 0; k < row->trial_count && tc_rows == TC_OTHERS; k++)
            if (strcmp(row->trials[k].kernel, row->standard) != 0 && row->trials[k].time_ns >= 0)
                row->kernel = row->trials[k].kernel;
    }
}

static void save(prn_tuning *tuning, const prn_tune_key *key)
{
    if (tc_saves) prn_tune_cache.save(tuning, key);
}

static const prn_tune_files files = {load, save};

void tc_clock_says(int64_t default_ns, int64_t tuned_ns)
{
    memset(&tc_clock, 0, sizeof tc_clock);
    tc_clock.default_ns = default_ns;
    tc_clock.tuned_ns = tuned_ns;
}

model_builder *tc_build(void)
{
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,32,12,12");
    mb_initializer(m, "w", PRONY_FLOAT32, "32,32,3,3", tc_w);
    mb_node(m, "Conv", "x w", "a", "pads=[1,1,1,1]");
    mb_node(m, "Tanh", "a", "b", "");
    mb_node(m, "Conv", "b w", "y", "pads=[1,1,1,1]");
    mb_output(m, "y", PRONY_FLOAT32, "1,32,12,12");
    return m;
}

void tc_open(model_builder *m)
{
    prony_registry *registry = tc_run.registry;
    const prony_session_options options = tc_run.options;
    tc_run = (model_run){.registry = registry, .options = options};
    if (!options.struct_size) tc_run.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    if (!tc_run.options.intra_op_threads) tc_run.options.intra_op_threads = 1;
    tc_run.options.tune = PRONY_TUNE;
    mr_open(&tc_run, m);
    tc_run.model->tune_files = &files;
    tc_clock.session = tc_run.session;
}

void tc_close(void)
{
    mr_close(&tc_run);
    tc_run = (model_run){0};
}

int tc_set_up(void **state)
{
    (void)state;
    uint32_t seed = 3;
    for (int i = 0; i < TC_ELEMENTS; i++)
        tc_x[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
    for (int i = 0; i < TC_CHANNELS * TC_CHANNELS * 9; i++)
        tc_w[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
    strcpy(folder, "/tmp/prony_tuned_XXXXXX");
    tc_run = (model_run){0};
    tc_rows = TC_AS_KEPT;
    tc_forgets = false;
    tc_saves = true;
    tc_clock_says(100, 100);
    return mkdtemp(folder) && setenv("XDG_CACHE_HOME", folder, 1) == 0 ? 0 : -1;
}

int tc_tear_down(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

prony_report *tc_profile(float *out)
{
    prony_report *report = NULL;
    prony_profile_options options = PRONY_PROFILE_OPTIONS_INIT;
    options.runs = 2;
    tc_open(tc_build());
    mr_set(&tc_run, "x", PRONY_FLOAT32, "1,32,12,12", tc_x);
    if (prony_session_profile(&report, tc_run.session, &options, &tc_run.error) != PRONY_OK)
        fail_msg("%s", tc_run.error.message);
    memcpy(out, mr_output(&tc_run, 0)->data, sizeof tc_x);
    tc_close();
    return report;
}

void tc_measure(void)
{
    static float out[TC_ELEMENTS];
    bool any = true;
    for (int session = 0; any && session < 5; session++) {
        prony_report *report = tc_profile(out);
        any = prony_report_tuning(report)->measured > 0;
        prony_report_release(report);
        tc_rows = TC_OTHERS;
        tc_forgets = true;
    }
    assert_false(any);
}
