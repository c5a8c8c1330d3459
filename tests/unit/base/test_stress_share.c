/* Threads that share a model, run after run: every run counts, every output is right to the bit, and memory does not
 * grow. Short as a test; longer by hand: test_stress_share MODEL.onnx RUNS */
#include "prony.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0 /* a sanitizer retains freed blocks, so its resident set proves nothing */
#endif

enum { THREADS = 4, SEEDS = 8, MOST_GROWTH_KIB = 2048 };

static const char *model_path = PRN_SOURCE_DIR "/models/digits.onnx";
static int64_t wanted_runs = 4000;

typedef struct shared {
    prony_model *model;
    prony_value wanted[SEEDS]; /* output 0 for each seed's inputs */
    _Atomic int64_t left, done, wrong;
    _Atomic int failed, warm;
} shared;

static int64_t resident_kib(void)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%*d %lld", &pages) != 1) pages = 0;
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE) / 1024;
}

static prony_status open_seed(prony_session **session, prony_model *model, uint64_t seed, prony_error *error)
{
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = 1;
    options.no_profile = true;
    prony_status status = prony_session_create(session, model, &options, error);
    return status == PRONY_OK ? prony_session_generate_inputs(*session, seed, error) : status;
}

static bool right(const prony_session *session, const prony_value *wanted)
{
    prony_error error = {0};
    const prony_value *output;
    return prony_session_output(session, 0, &output, &error) == PRONY_OK && output->dtype == wanted->dtype &&
           memcmp(&output->shape, &wanted->shape, sizeof output->shape) == 0 &&
           memcmp(output->data, wanted->data, prony_dtype_bytes(output->dtype, prony_shape_numel(&output->shape))) == 0;
}

/* Each thread has a session per seed, and takes them in turn. */
static void *work(void *argument)
{
    shared *s = argument;
    prony_session *sessions[SEEDS] = {NULL};
    prony_error error = {0};
    prony_status status = PRONY_OK;
    for (int i = 0; i < SEEDS && status == PRONY_OK; i++) {
        status = open_seed(&sessions[i], s->model, (uint64_t)i, &error);
        if (status == PRONY_OK) status = prony_session_run(sessions[i], &error);
    }
    atomic_fetch_add(&s->warm, 1);
    for (int i = 0; status == PRONY_OK && atomic_fetch_sub(&s->left, 1) > 0; i = (i + 1) % SEEDS) {
        status = prony_session_run(sessions[i], &error);
        if (status != PRONY_OK) break;
        atomic_fetch_add(&s->done, 1);
        if (!right(sessions[i], &s->wanted[i])) atomic_fetch_add(&s->wrong, 1);
    }
    if (status != PRONY_OK) {
        fprintf(stderr, "%s\n", error.message);
        atomic_fetch_add(&s->failed, 1);
    }
    for (int i = 0; i < SEEDS; i++) prony_session_release(sessions[i]);
    return NULL;
}

static void learn(shared *s)
{
    prony_error error = {0};
    for (int i = 0; i < SEEDS; i++) {
        prony_session *session = NULL;
        const prony_value *output = NULL;
        if (open_seed(&session, s->model, (uint64_t)i, &error) != PRONY_OK ||
            prony_session_run(session, &error) != PRONY_OK ||
            prony_session_output(session, 0, &output, &error) != PRONY_OK)
            fail_msg("%s", error.message);
        size_t bytes = prony_dtype_bytes(output->dtype, prony_shape_numel(&output->shape));
        s->wanted[i] = *output;
        s->wanted[i].data = malloc(bytes + 1);
        assert_non_null(s->wanted[i].data);
        memcpy(s->wanted[i].data, output->data, bytes);
        prony_session_release(session);
    }
}

static void no_run_is_lost_and_nothing_grows(void **state)
{
    (void)state;
    static shared s;
    prony_error error = {0};
    pthread_t thread[THREADS];
    if (prony_model_load(&s.model, model_path, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    learn(&s);
    atomic_store(&s.left, wanted_runs);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, work, &s), 0);
    while (atomic_load(&s.warm) < THREADS || (atomic_load(&s.done) < wanted_runs / 10 && !atomic_load(&s.failed)))
        usleep(1000);
    int64_t before = resident_kib();
    while (atomic_load(&s.done) < wanted_runs * 9 / 10 && !atomic_load(&s.failed)) usleep(1000);
    int64_t after = resident_kib();
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    printf("%lld runs from %d threads, %lld wrong; resident %lld KiB after a tenth, %lld KiB after nine tenths\n",
           (long long)atomic_load(&s.done), THREADS, (long long)atomic_load(&s.wrong), (long long)before,
           (long long)after);
    assert_int_equal(s.failed, 0);
    assert_int_equal(s.done, wanted_runs);
    assert_int_equal(s.wrong, 0);
    if (!SANITIZED) assert_true(after - before <= MOST_GROWTH_KIB);
    for (int i = 0; i < SEEDS; i++) free(s.wanted[i].data);
    prony_model_release(s.model);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_run_is_lost_and_nothing_grows)};
    if (argc == 3) {
        model_path = argv[1];
        wanted_runs = atoll(argv[2]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
