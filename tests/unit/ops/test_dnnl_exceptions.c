/* Each allocation of oneDNN fails once, as std::bad_alloc, each in a process of its own: a run ends with a status, or
 * with another kernel, and the next one is right. oneDNN's operator new is the one below. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "base/cpu/isa.h"
#include "ops/vendor/dnnl.h"
#include "tests/support/model_builder.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

#if defined(PRN_HAVE_DNNL) && !defined(HAS_ASAN)

__attribute__((visibility("default"))) void *_Znwm(size_t size);            /* operator new(unsigned long) */
__attribute__((visibility("default"))) void _ZdlPv(void *block);            /* operator delete(void *) */
__attribute__((visibility("default"))) void _ZdlPvm(void *block, size_t n); /* operator delete(void *, unsigned long) */

static long calls, failing; /* failing 0: none */

void *_Znwm(size_t size)
{
    void *block = ++calls == failing ? NULL : malloc(size);
    void (*raise_bad_alloc)(void);
    void *symbol = block ? NULL : dlsym(RTLD_DEFAULT, "_ZSt17__throw_bad_allocv"); /* std::__throw_bad_alloc() */
    if (block) return block;
    memcpy(&raise_bad_alloc, &symbol, sizeof symbol);
    raise_bad_alloc();
    abort();
}

void _ZdlPv(void *block)
{
    free(block);
}

void _ZdlPvm(void *block, size_t n)
{
    (void)n;
    free(block);
}

enum { CHANNELS = 3, FILTERS = 64, SIDE = 5, IMAGE = 64, OUT = IMAGE - SIDE + 1 };

/* A first layer of a large image, which oneDNN takes on AVX2; every input and weight is the same. */
static model_builder *make_model(void)
{
    static float weights[FILTERS * CHANNELS * SIDE * SIDE];
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) weights[i] = 0.5f;
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,3,64,64");
    mb_initializer(m, "w", PRONY_FLOAT32, "64,3,5,5", weights);
    mb_node(m, "Conv", "x w", "c", "");
    mb_node(m, "Relu", "c", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "1,64,60,60");
    return m;
}

static prony_status run_once(const void *bytes, size_t size, bool *right)
{
    static float x[CHANNELS * IMAGE * IMAGE];
    const prony_value input = {.dtype = PRONY_FLOAT32, .shape = {4, {1, CHANNELS, IMAGE, IMAGE}}, .data = x};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    prony_model *model = NULL;
    prony_session *session = NULL;
    const prony_value *output = NULL;
    options.intra_op_threads = 1;
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = 1;
    prony_status status = prony_model_load_memory(&model, "m", bytes, size, NULL, NULL);
    if (status == PRONY_OK) status = prony_session_create(&session, model, &options, NULL);
    if (status == PRONY_OK) status = prony_session_set_input(session, "x", &input, NULL);
    if (status == PRONY_OK) status = prony_session_run(session, NULL);
    if (status == PRONY_OK) status = prony_session_output(session, 0, &output, NULL);
    if (status == PRONY_OK) {
        const float *y = output->data;
        *right = prony_shape_numel(&output->shape) == FILTERS * OUT * OUT;
        for (int i = 0; i < FILTERS * OUT * OUT; i++) *right = *right && y[i] == 0.5f * CHANNELS * SIDE * SIDE;
    }
    prony_session_release(session);
    prony_model_release(model);
    return status;
}

enum { CHILD_FAILED = 1, CHILD_NOT_REACHED = 2 };

static int child(const void *bytes, size_t size, long n)
{
    bool right = true;
    calls = 0;
    failing = n;
    prony_status status = run_once(bytes, size, &right);
    if (calls < n) return CHILD_NOT_REACHED;
    failing = 0;
    if ((status != PRONY_OK && status != PRONY_OUT_OF_MEMORY) || !right) {
        print_error("allocation %ld: %s%s\n", n, prony_status_text(status), right ? "" : " and a wrong result");
        return CHILD_FAILED;
    }
    const prony_status again = run_once(bytes, size, &right);
    if (again == PRONY_OK && right) return 0;
    print_error("allocation %ld: %s, then %s%s\n", n, prony_status_text(status), prony_status_text(again),
                right ? "" : " and a wrong result");
    return CHILD_FAILED;
}

static void test_every_allocation_that_throws(void **state)
{
    (void)state;
    size_t size;
    long n = 1;
    model_builder *m = make_model();
    const void *bytes = mb_finish(m, &size);
    if (!prn_isa_has(PRN_HAS_AVX2)) skip();
    for (;; n++) {
        int how = 0;
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) _exit(child(bytes, size, n));
        assert_int_equal(waitpid(pid, &how, 0), pid);
        if (WIFSIGNALED(how)) fail_msg("allocation %ld: signal %d", n, WTERMSIG(how));
        if (WEXITSTATUS(how) == CHILD_NOT_REACHED) break;
        if (WEXITSTATUS(how) != 0) fail_msg("allocation %ld: a wrong status or result", n);
    }
    assert_true(n > 50); /* oneDNN did the convolution */
    mb_free(m);
}

#else

static void test_every_allocation_that_throws(void **state)
{
    (void)state;
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation_that_throws)};
    setenv("PRONY_MAX_ISA", "avx2", 1); /* with AVX-512, Prony's own kernels take the convolution */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
