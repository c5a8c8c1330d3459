/* Peaks of this machine: measured, stored, read back, refused when damaged; and the roofline of a report made with
 * them. */
#include "failure_trace.h"
#include "base/cpu/peak.h"
#include "base/cpu/processor_id.h"
#include "profiler/measure/machine_peaks.h"

#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define DIGITS PRN_SOURCE_DIR "/models/digits.onnx"

/* Peaks that no machine has, so that a value computed from them is recognisable. */
static const prony_peak_compute compute_rows[] = {
    {"fp32", 1, 1e9, 5, 1000, false}, {"fp64", 1, 5e8, 5, 1000, false}, {"fp32", 4, 4e9, 5, 1000, true}};
static const prony_peak_bandwidth memory_rows[] = {{"L1", "read", 1, 4e9, 16384, 5, 1000, true},
                                                   {"L1", "copy", 1, 6e9, 16384, 5, 1000, false},
                                                   {"DRAM", "read", 1, 1e9, 1 << 26, 3, 1000, false},
                                                   {"DRAM", "write", 1, 5e8, 1 << 26, 3, 1000, false},
                                                   {"DRAM", "read", 4, 2e9, 1 << 24, 3, 1000, false}};

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/prony_machine_XXXXXX");
    return mkdtemp(folder) && setenv("XDG_CACHE_HOME", folder, 1) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    char path[4096];
    if (prony_machine_path(path, sizeof path, NULL) == PRONY_OK) unlink(path);
    snprintf(path, sizeof path, "%s/prony", folder);
    rmdir(path);
    return rmdir(folder);
}

static prony_machine *made_up(void)
{
    prony_machine *m = NULL;
    prony_error error = {0};
    if (prn_machine_create(&m, &error) != PRONY_OK) fail_msg("%s", error.message);
    m->compute = prn_bump_alloc(&m->pool, 3, sizeof *m->compute);
    m->bandwidth = prn_bump_alloc(&m->pool, 5, sizeof *m->bandwidth);
    assert_true(m->compute && m->bandwidth);
    memcpy(m->compute, compute_rows, sizeof compute_rows);
    memcpy(m->bandwidth, memory_rows, sizeof memory_rows);
    m->compute_count = 3;
    m->bandwidth_count = 5;
    m->info.cores = 4;
    m->info.measured_at = 1700000000;
    m->info.seconds = 1.5;
    return m;
}

static void keep_made_up(void)
{
    prony_error error = {0};
    prony_machine *m = made_up();
    if (prony_machine_save(m, &error) != PRONY_OK) fail_msg("%s", error.message);
    prony_machine_release(m);
}

static void write_kept(const char *text)
{
    char path[4096];
    assert_int_equal(prony_machine_path(path, sizeof path, NULL), PRONY_OK);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void peaks_are_measured(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_machine *m = NULL;
    prony_machine_options options = PRONY_MACHINE_OPTIONS_INIT;
    options.threads = 2;
    options.seconds = 0.05;
    if (prony_machine_measure(&m, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    size_t count;
    const prony_peak_compute *c = prony_machine_compute(m, &count);
    assert_int_equal(count, prn_peak_has_bf16() ? 6 : 4); /* precisions, one and two threads */
    for (size_t i = 0; i < count; i++) assert_true(c[i].flops_per_second > 1e6 && c[i].flops_per_second < 1e14);
    const prony_peak_bandwidth *b = prony_machine_bandwidth(m, &count);
    assert_true(count >= 6);
    bool dram = false;
    for (size_t i = 0; i < count; i++) {
        SCENARIO(i);
        assert_true(b[i].bytes_per_second > 1e5 && b[i].bytes_per_second < 1e14);
        assert_true(b[i].thread_bytes > 0 && b[i].trials > 0 && b[i].trial_ns > 0);
        dram = dram || strcmp(b[i].level, "DRAM") == 0;
    }
    assert_true(dram);
    const prony_machine_info *info = prony_machine_get_info(m);
    assert_true(info->cores == 2 && info->measured_at > 1600000000 && info->seconds > 0);
    prony_machine_release(m);
    options.threads = -1;
    assert_int_equal(prony_machine_measure(&m, &options, &error), PRONY_INVALID_ARGUMENT);
}

/* Twice the work takes about twice as long, or the loop was left out by the compiler. */
static void loops_do_their_work(void **state)
{
    (void)state;
    prn_peak peak;
    prony_error error = {0};
    static const prn_peak_kind read = PRN_PEAK_READ, compute = PRN_PEAK_F32;
    assert_int_equal(prn_peak_measure(&peak, &compute, 1, 1, 0, 5, 1000000, NULL, &error), PRONY_OK);
    assert_true(peak.trial_ns > 100000 && peak.thread_bytes == 0);
    assert_int_equal(prn_peak_measure(&peak, &read, 1, 2, 100000, 5, 1000000, NULL, &error), PRONY_OK);
    assert_true(peak.trial_ns > 10000);
    assert_int_equal(peak.thread_bytes, 100000 / 2048 * 2048);
    assert_int_equal(prn_peak_measure(&peak, &read, 1, 1, 0, 5, 1000000, NULL, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prn_peak_measure(&peak, &compute, 1, 0, 0, 5, 1000000, NULL, &error), PRONY_INVALID_ARGUMENT);
}

/* ---- several threads: a simulated clock and loops, which leave only the order ---- */

enum { TEST_THREADS = 4, WORK_UNITS = 100 };
static _Atomic int64_t test_clock;
static _Atomic int inside, most_inside, calls;

static int64_t test_now(void)
{
    return atomic_fetch_add(&test_clock, 10) + 10;
}

/* Stays until all threads of the trial are inside, so that it ends only where they are at work at the same time. */
static double meet_inside(int64_t rounds, double *flops)
{
    (void)rounds;
    const int number = atomic_fetch_add(&calls, 1) / TEST_THREADS, wanted = (number + 1) * TEST_THREADS;
    const int now = atomic_fetch_add(&inside, 1) + 1;
    int most = atomic_load(&most_inside);
    while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now)) continue;
    while (atomic_load(&calls) < wanted) sched_yield();
    atomic_fetch_sub(&inside, 1);
    return *flops = WORK_UNITS;
}

static const prn_peak_loops meeting_loops = {.compute_f32 = meet_inside};

static void threads_work_side_by_side(void **state)
{
    (void)state;
    static const prn_peak_kind kind = PRN_PEAK_F32;
    const prn_peak_tools tools = {&meeting_loops, test_now};
    prn_peak peak;
    prony_error error = {0};
    atomic_store(&most_inside, 0);
    assert_int_equal(prn_peak_measure(&peak, &kind, 1, TEST_THREADS, 0, 5, 100, &tools, &error), PRONY_OK);
    assert_int_equal(atomic_load(&most_inside), TEST_THREADS);
    assert_true(peak.together > 0 && peak.together < 1);
    /* Four starts and four ends at least 10 apart: the shortest such trial, and all four threads' work in it. */
    assert_true(peak.trial_ns >= 70);
    assert_true(peak.per_second > 0.999e9 * TEST_THREADS * WORK_UNITS / (double)peak.trial_ns);
    assert_true(peak.per_second < 1.001e9 * TEST_THREADS * WORK_UNITS / (double)peak.trial_ns);
}

static void rates_are_over_the_union(void **state)
{
    (void)state;
    static const struct {
        prn_peak_interval of[3];
        int count;
        int64_t any_ns, all_ns;
    } cases[] = {
        {{{0, 100}, {0, 100}}, 2, 100, 100},           {{{50, 150}, {0, 100}}, 2, 150, 50},
        {{{1000, 1100}, {0, 100}}, 2, 200, 0}, /* one after the other: the gap belongs to neither */
        {{{0, 300}, {100, 200}}, 2, 300, 100},         {{{0, 100}, {90, 200}, {195, 300}}, 3, 300, 0},
        {{{0, 100}, {10, 100}, {20, 90}}, 3, 100, 70}, {{{7, 7}}, 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        SCENARIO(i);
        prn_peak_interval intervals[3];
        int64_t any_ns, all_ns;
        memcpy(intervals, cases[i].of, sizeof intervals);
        prn_peak_overlap(intervals, cases[i].count, &any_ns, &all_ns);
        assert_int_equal(any_ns, cases[i].any_ns);
        assert_int_equal(all_ns, cases[i].all_ns);
    }
}

/* A machine of two cores; the second takes part from a certain attempt on. */
static int lame_attempts, asked_of_two;

static prony_status made_up_peak(prn_peak *out, const prn_peak_kind *kinds, size_t count, int threads,
                                 uint64_t thread_bytes, int trials, int64_t trial_ns, const prn_peak_tools *tools,
                                 prony_error *error)
{
    (void)error;
    bool peaks = !tools; /* other kinds are work, not peaks */
    bool lame = peaks && threads > 1 && kinds[0] == PRN_PEAK_F32 && asked_of_two++ < lame_attempts;
    for (size_t k = 0; k < count; k++)
        out[k] = (prn_peak){1e9 * (lame ? 1.0 : threads), 1, thread_bytes, trial_ns, trials};
    return PRONY_OK;
}

static void what_does_not_scale_is_measured_again(void **state)
{
    (void)state;
    prony_machine_options options = PRONY_MACHINE_OPTIONS_INIT;
    options.threads = 2;
    for (int attempts = 0; attempts <= 5; attempts++) {
        SCENARIO(attempts);
        prony_machine *m;
        prony_error error = {0};
        size_t count;
        asked_of_two = 0;
        lame_attempts = attempts;
        if (prn_machine_measure_by(&m, &options, made_up_peak, &error) != PRONY_OK) fail_msg("%s", error.message);
        const prony_peak_compute *c = prony_machine_compute(m, &count);
        assert_int_equal(count, prn_peak_has_bf16() ? 6 : 4);
        if (m->info.usable_cores >= 2) { /* one core may well be as fast with two threads as with one */
            assert_int_equal(asked_of_two, attempts < 2 ? attempts + 1 : 3);
            assert_true(c[count / 2].threads == 2 && c[count / 2].trials == 20 * asked_of_two);
            assert_int_equal(c[count / 2].doubtful, attempts >= 3);
            assert_true(c[count / 2].flops_per_second == (attempts >= 3 ? 1e9 : 2e9));
        }
        for (size_t i = 0; i < count / 2; i++) assert_false(c[i].doubtful);
        const prony_peak_bandwidth *b = prony_machine_bandwidth(m, &count);
        for (size_t i = 0; i < count; i++) assert_false(b[i].doubtful);
        prony_machine_release(m);
    }
}

static void what_is_kept_comes_back(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_machine *m = NULL;
    assert_int_equal(prony_machine_load(&m, &error), PRONY_OK);
    assert_null(m); /* nothing is kept yet */
    keep_made_up();
    if (prony_machine_load(&m, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_non_null(m);
    size_t count;
    const prony_peak_compute *c = prony_machine_compute(m, &count);
    assert_int_equal(count, 3);
    assert_string_equal(c[2].precision, "fp32");
    assert_true(c[2].threads == 4 && c[2].flops_per_second == 4e9 && c[2].trials == 5 && c[2].trial_ns == 1000);
    assert_true(c[2].doubtful && !c[0].doubtful);
    const prony_peak_bandwidth *b = prony_machine_bandwidth(m, &count);
    assert_int_equal(count, 5);
    assert_string_equal(b[1].access, "copy");
    assert_true(b[4].bytes_per_second == 2e9 && b[4].thread_bytes == 1 << 24);
    assert_true(b[0].doubtful && !b[1].doubtful);
    assert_true(m->info.cores == 4 && m->info.measured_at == 1700000000 && m->info.seconds == 1.5);
    assert_true(m->info.load_avg_1min == -1);
    prony_machine_release(m);
}

static void damage_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } bad[] = {{"", "machine-"},
               {"{\"schema\": \"prony.machine/1\"", "machine-"},
               {"{\"schema\": \"prony.machine/2\"}", "schema"},
               {"{\"schema\": \"prony.machine/1\", \"cpu_model\": \"another\"}", "cpu_model"},
               {NULL, "processor"}};
    keep_made_up();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        SCENARIO_NAMED(i, bad[i].text);
        prony_error error = {0};
        prony_machine *m = NULL;
        char text[512];
        prony_machine *here = made_up();
        snprintf(text, sizeof text,
                 "{\"schema\": \"prony.machine/1\", \"cpu_model\": \"%.200s\", \"processor\": \"x\"}",
                 here->info.cpu_model);
        prony_machine_release(here);
        write_kept(bad[i].text ? bad[i].text : text);
        assert_int_not_equal(prony_machine_load(&m, &error), PRONY_OK);
        assert_null(m);
        assert_non_null(strstr(error.message, bad[i].word));
    }
}

static void rates_that_cannot_be_are_refused(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_machine *m = made_up(), *back = NULL;
    m->compute[1].flops_per_second = -1;
    assert_int_equal(prony_machine_save(m, &error), PRONY_OK);
    assert_int_not_equal(prony_machine_load(&back, &error), PRONY_OK);
    assert_non_null(strstr(error.message, "compute"));
    m->compute[1].flops_per_second = 1;
    m->bandwidth_count = 0;
    assert_int_equal(prony_machine_save(m, &error), PRONY_OK);
    assert_int_not_equal(prony_machine_load(&back, &error), PRONY_OK);
    assert_non_null(strstr(error.message, "bandwidth"));
    prony_machine_release(m);
}

/* ---- identity ---- */

/* Of a processor that calls itself "AMD EPYC", as virtual machines do. */
static void identify(char id[PRN_PROCESSOR_ID_BYTES], const char *lines, int cpus, uint32_t approximations)
{
    char path[128];
    const prn_machine machine = {.cpu_count = cpus};
    snprintf(path, sizeof path, "%s/cpuinfo", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "processor\t: 0\nmodel name\t: AMD EPYC\n%s", lines);
    fclose(file);
    prn_processor_id_of(id, path, &machine, approximations);
    unlink(path);
}

static void machines_of_one_name_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *lines;
        int cpus;
        uint32_t approximations;
    } rows[] = {
        {"cpu family\t: 23\nmodel\t\t: 49\nstepping\t: 0\nmicrocode\t: 0x830107d\nflags\t: avx2\n", 2, 1},
        {"cpu family\t: 25\nmodel\t\t: 1\nstepping\t: 0\nmicrocode\t: 0x830107d\nflags\t: avx2\n", 2, 1},
        {"cpu family\t: 25\nmodel\t\t: 17\nstepping\t: 0\nmicrocode\t: 0x830107d\nflags\t: avx2\n", 2, 1},
        {"cpu family\t: 25\nmodel\t\t: 17\nstepping\t: 1\nmicrocode\t: 0x830107d\nflags\t: avx2\n", 2, 1},
        {"cpu family\t: 25\nmodel\t\t: 17\nstepping\t: 1\nmicrocode\t: 0x830107e\nflags\t: avx2\n", 2, 1},
        {"cpu family\t: 25\nmodel\t\t: 17\nstepping\t: 1\nmicrocode\t: 0x830107e\nflags\t: avx2\n", 4, 1},
        {"cpu family\t: 25\nmodel\t\t: 17\nstepping\t: 1\nmicrocode\t: 0x830107e\nflags\t: avx2 vaes\n", 4, 1},
        {"cpu family\t: 25\nmodel\t\t: 17\nstepping\t: 1\nmicrocode\t: 0x830107e\nflags\t: avx2 vaes\n", 4, 2},
        {"CPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n", 4, 2},
        {"CPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 2\n", 4, 2},
        {"", 4, 2},
    };
    enum { ROWS = sizeof rows / sizeof rows[0] };
    char ids[ROWS][PRN_PROCESSOR_ID_BYTES];
    for (int i = 0; i < ROWS; i++) {
        SCENARIO(i);
        identify(ids[i], rows[i].lines, rows[i].cpus, rows[i].approximations);
        for (int k = 0; k < i; k++) assert_string_not_equal(ids[k], ids[i]);
    }
    assert_int_equal(strncmp(ids[3], "25-17-1-0x830107d-2c-", 21), 0);
    assert_int_equal(strncmp(ids[9], "0x41-0xd0c-0x3.2-x-4c-", 22), 0);
    assert_int_equal(strncmp(ids[10], "x-x-x-x-4c-", 11), 0);
    assert_int_equal(prn_processor_approximations(), prn_processor_approximations());

    /* The file's name has it. */
    char path[4096];
    prony_machine *here = made_up();
    assert_int_equal(prony_machine_path(path, sizeof path, NULL), PRONY_OK);
    assert_non_null(strstr(path, here->info.processor));
    prony_machine_release(here);
}

static void keep(bool busy, double seconds, int cores)
{
    prony_machine *m = made_up();
    m->info.busy = busy;
    m->info.seconds = seconds;
    m->info.cores = cores;
    assert_int_equal(prony_machine_save(m, NULL), PRONY_OK);
    prony_machine_release(m);
}

static void expect_kept(bool busy, double seconds)
{
    prony_machine *m = NULL;
    assert_int_equal(prony_machine_load(&m, NULL), PRONY_OK);
    assert_non_null(m);
    assert_int_equal(m->info.busy, busy);
    assert_true(m->info.seconds >= seconds && m->info.seconds <= seconds);
    prony_machine_release(m);
}

static void busy_rates_never_replace_quiet_ones(void **state)
{
    (void)state;
    keep(true, 1, 4);
    expect_kept(true, 1);
    keep(true, 2, 4);
    expect_kept(true, 2);
    keep(false, 3, 4);
    expect_kept(false, 3);
    keep(true, 4, 4);
    expect_kept(false, 3);
    keep(true, 5, 2);
    expect_kept(false, 3);
    keep(true, 6, 8); /* more threads than are kept */
    expect_kept(true, 6);
}

/* Processes that use every processor meanwhile, several each. */
static void a_busy_machine_is_marked(void **state)
{
    (void)state;
    enum { MOST = 64 };
    pid_t others[MOST];
    int count = 0;
    prn_machine facts;
    prony_error error = {0};
    prony_machine *m = NULL;
    prony_machine_options options = PRONY_MACHINE_OPTIONS_INIT;
    options.threads = 1;
    options.seconds = 1;
    prn_machine_read(&facts, NULL);
    if (3 * facts.mask_count > MOST) skip(); /* too many to fill */
    while (count < MOST && count < 3 * facts.mask_count) {
        others[count] = fork();
        assert_true(others[count] >= 0);
        if (others[count++] == 0)
            for (volatile unsigned spin = 0;; spin++) continue;
    }
    const prony_status status = prony_machine_measure(&m, &options, &error);
    while (count > 0) {
        kill(others[--count], SIGKILL);
        waitpid(others[count], NULL, 0);
    }
    if (status != PRONY_OK) fail_msg("%s", error.message);
    assert_true(m->info.busy);
    prony_machine_release(m);
}

static void no_folder_is_an_error(void **state)
{
    (void)state;
    prony_error error = {0};
    char path[4096];
    const char *home = getenv("HOME");
    char *kept = home ? strdup(home) : NULL;
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_int_equal(prony_machine_path(path, sizeof path, &error), PRONY_IO_ERROR);
    assert_non_null(strstr(error.message, "XDG_CACHE_HOME"));
    setenv("HOME", "/somewhere", 1);
    assert_int_equal(prony_machine_path(path, sizeof path, &error), PRONY_OK);
    assert_int_equal(strncmp(path, "/somewhere/.cache/prony/machine-", 32), 0);
    setenv("XDG_CACHE_HOME", "/dev/null", 1); /* no folder can be made there */
    prony_machine *m = made_up();
    assert_int_equal(prony_machine_save(m, &error), PRONY_IO_ERROR);
    prony_machine_release(m);
    if (kept) setenv("HOME", kept, 1);
    free(kept);
    setenv("XDG_CACHE_HOME", folder, 1);
}

/* Each allocation of loading, saving and measuring fails once; the stored data survives. */
static void out_of_memory_is_a_status(void **state)
{
    (void)state;
    static const prn_peak_kind kinds[] = {PRN_PEAK_READ, PRN_PEAK_COPY};
    keep_made_up();
    prony_machine *fixed = made_up();
    bool failed = true;
    for (uint64_t n = 1; failed && n < 1000; n++) {
        SCENARIO(n);
        prony_machine *m = NULL;
        prn_peak peaks[2];
        prn_alloc_fail_at(n);
        prony_status loaded = prony_machine_load(&m, NULL), saved = prony_machine_save(fixed, NULL);
        prony_status measured = prn_peak_measure(peaks, kinds, 2, 2, 4096, 1, 1000, NULL, NULL);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        int bad = (loaded != PRONY_OK) + (saved != PRONY_OK) + (measured != PRONY_OK);
        assert_int_equal(bad, failed);
        assert_int_equal(m != NULL, loaded == PRONY_OK);
        prony_machine_release(m);
    }
    assert_false(failed);
    prony_machine_release(fixed);
    prony_machine *m = NULL;
    assert_int_equal(prony_machine_load(&m, NULL), PRONY_OK);
    assert_non_null(m);
    prony_machine_release(m);
}

/* ---- the roofline ---- */

static prony_report *profile(int threads)
{
    prony_error error = {0};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_report *report = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    prony_profile_options runs = PRONY_PROFILE_OPTIONS_INIT;
    options.intra_op_threads = threads;
    runs.warmup_runs = 1;
    runs.runs = 12;
    if (prony_model_load(&model, DIGITS, NULL, &error) != PRONY_OK ||
        prony_session_create(&session, model, &options, &error) != PRONY_OK ||
        prony_session_generate_inputs(session, 0, &error) != PRONY_OK ||
        prony_session_profile(&report, session, &runs, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    prony_session_release(session);
    prony_model_release(model);
    return report;
}

static double metric(const prony_report *report, const char *key, bool *known)
{
    prony_metrics *metrics = NULL;
    prony_metric_value value = {0};
    assert_int_equal(prony_metrics_create(&metrics, NULL), PRONY_OK);
    assert_int_equal(prony_metrics_compute(metrics, report, key, &value, NULL), PRONY_OK);
    prony_metrics_release(metrics);
    *known = value.known;
    return value.value;
}

static void profile_reads_the_peaks_and_never_measures(void **state)
{
    (void)state;
    char path[4096];
    bool known;
    prony_report *without = profile(1);
    assert_int_equal(prony_report_bound(without, 0, NULL), PRONY_BOUND_UNKNOWN);
    metric(without, "efficiency", &known);
    assert_false(known);
    prony_report_release(without);
    assert_int_equal(prony_machine_path(path, sizeof path, NULL), PRONY_OK);
    assert_int_not_equal(access(path, F_OK), 0);

    keep_made_up();
    prony_report *with = profile(1);
    size_t count;
    const prony_operator_row *o = prony_report_operators(with, &count);
    double efficiency = metric(with, "efficiency", &known), allowed = 0, took = 0;
    assert_true(known);
    for (size_t i = 0; i < count; i++) {
        SCENARIO(i);
        /* L1 is 32 KiB or more wherever this runs; larger operators may be charged to DRAM, at a sixth of its rate. */
        double bytes = (double)(o[i].cost.bytes_read + o[i].cost.bytes_written);
        if (o[i].layer_count == 0) bytes = 2 * (double)o[i].output_bytes; /* a copy between layouts */
        double rate = prn_report_roof_bandwidth(with, bytes <= 32768 ? "L1" : "DRAM"), share;
        double compute = prn_operator_flops(&o[i]), memory = bytes / rate * 1e9;
        double roof = compute > memory ? compute : memory;
        prony_bound bound = prony_report_bound(with, i, &share);
        assert_true(roof > 0);
        allowed += share * (double)o[i].time.mean_ns;
        took += (double)o[i].time.mean_ns;
        if (bytes > 32768) continue;
        assert_true(fabs(share - roof / (double)o[i].time.mean_ns) <= 1e-9 * share + 1e-12);
        assert_int_equal(bound, share < 0.1         ? PRONY_BOUND_OVERHEAD
                                : compute >= memory ? PRONY_BOUND_COMPUTE
                                                    : PRONY_BOUND_MEMORY);
    }
    assert_true(fabs(efficiency - allowed / took) < 1e-9);
    prony_report_release(with);
}

static void rates_between_two_thread_counts_lie_on_a_line(void **state)
{
    (void)state;
    keep_made_up();
    prony_report *report = profile(3);
    assert_true(fabs(prn_report_roof_flops(report, "fp32") - 3e9) < 1);
    assert_true(fabs(prn_report_roof_bandwidth(report, "DRAM") - (1e9 + 2.0 / 3 * 1e9)) < 1);
    assert_true(prn_report_roof_bandwidth(report, "L1") ==
                6e9); /* the higher of read and copy; measured for 1 thread only */
    prony_report_release(report);
    report = profile(4);
    assert_true(prn_report_roof_flops(report, "fp32") == 4e9);
    prony_report_release(report);
}

static void a_damaged_file_leaves_the_report_without_a_roof(void **state)
{
    (void)state;
    keep_made_up();
    write_kept("{");
    prony_report *report = profile(1);
    assert_false(report->has_roof);
    prony_report_release(report);
}

static int collect(void *user, const char *data, size_t size)
{
    char *text = user;
    if (strlen(text) + size < 65536) strncat(text, data, size);
    return 0;
}

static void the_terminal_says_what_dominates(void **state)
{
    (void)state;
    static char text[65536];
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    prony_error error = {0};
    options.levels = PRONY_LEVEL_MODEL;
    options.all = true;
    options.width = 120;
    for (int kept = 0; kept < 2; kept++) {
        SCENARIO(kept);
        if (kept) keep_made_up();
        prony_report *report = profile(1);
        text[0] = '\0';
        assert_int_equal(prony_report_write(report, PRONY_FORMAT_TEXT, &options, collect, text, &error), PRONY_OK);
        for (char *at = text; (at = strstr(at, "\n  "));)
            memmove(at, at + 2, strlen(at + 2) + 1), *at = ' '; /* unwrapped */
        assert_non_null(strstr(text, "What dominates"));
        assert_int_equal(strstr(text, "no roofs are known; run 'prony machine'") != NULL, !kept);
        assert_int_equal(strstr(text, "roofs at 1 thread: 1.00 GFLOP/s, DRAM 1.00 GB/s") != NULL, kept);
        assert_int_equal(strstr(text, " % by memory, ") != NULL, kept);
        assert_int_equal(strstr(text, " % of the time is bound by compute, ") != NULL, kept);
        assert_int_equal(strstr(text, "the peak of 1 thread is 1 GFLOP/s") != NULL, kept);
        prony_report_release(report);
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(peaks_are_measured),
        CASE(loops_do_their_work),
        CASE(threads_work_side_by_side),
        CASE(rates_are_over_the_union),
        CASE(what_does_not_scale_is_measured_again),
        CASE(what_is_kept_comes_back),
        CASE(damage_is_named),
        CASE(rates_that_cannot_be_are_refused),
        CASE(machines_of_one_name_are_told_apart),
        CASE(busy_rates_never_replace_quiet_ones),
        CASE(a_busy_machine_is_marked),
        CASE(no_folder_is_an_error),
        CASE(out_of_memory_is_a_status),
        CASE(profile_reads_the_peaks_and_never_measures),
        CASE(rates_between_two_thread_counts_lie_on_a_line),
        CASE(a_damaged_file_leaves_the_report_without_a_roof),
        CASE(the_terminal_says_what_dominates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
