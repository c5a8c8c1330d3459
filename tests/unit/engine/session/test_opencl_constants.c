/* Constants on an OpenCL device: one copy per source, and per content above 64 KiB; its bytes stay until the last user of
 * either goes. Skipped without OpenCL. */
#include "failure_trace.h"
#include "tests/support/device_here.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#ifdef PRN_HAVE_OPENCL
#include "ops/vendor/opencl/opencl.h"
#include "ops/vendor/opencl/opencl_device.h"

enum { BYTES = (2 << 20) + 12, SMALL = 1 << 10 };
static unsigned char first[BYTES], second[BYTES], back[BYTES];
static prn_device *device;

static int open_device(void **state)
{
    (void)state;
    prony_error error = {0};
    assert_int_equal(prn_device_open(&device, "opencl", "test", &error), PRONY_OK);
    for (size_t i = 0; i < BYTES; i++) first[i] = second[i] = (unsigned char)(i * 2654435761U >> 13);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    const prn_device_use use = prn_device_usage(device);
    assert_int_equal(use.constant_bytes, 0);
    assert_int_equal(use.bytes, 0);
    assert_int_equal(use.buffers, 0);
    prn_device_release(device);
    return 0;
}

static void *keep(const void *source, const void *data, size_t bytes)
{
    void *out = NULL;
    assert_int_equal(prn_device_constant(device, source, data, bytes, &out, NULL), PRONY_OK);
    return out;
}

static void expect_bytes(const void *address, const void *wanted, size_t bytes)
{
    memset(back, 0, bytes);
    assert_int_equal(prn_opencl_space.copy_out(device, back, address, bytes, NULL, NULL), PRONY_OK);
    assert_memory_equal(back, wanted, bytes);
}

static void equal_contents_share_a_buffer(void **state)
{
    (void)state;
    void *a = keep(first, first, BYTES), *b = keep(second, second, BYTES), *c = keep(first, first, BYTES);
    assert_ptr_equal(a, c);
    assert_ptr_not_equal(a, b); /* each source has an address of its own */
    assert_int_equal(prn_device_usage(device).constant_bytes, BYTES);
    assert_int_equal(prn_device_usage(device).buffers, 1);
    expect_bytes(b, second, BYTES);
    prn_device_constant_drop(device, a);
    prn_device_constant_drop(device, c);
    assert_int_equal(prn_device_usage(device).constant_bytes, BYTES); /* b's */
    assert_int_equal(prn_device_usage(device).bytes, BYTES);
    expect_bytes(b, second, BYTES);
    second[BYTES / 2] ^= 1; /* another content may follow at the former source */
    void *d = keep(first, second, BYTES);
    assert_int_equal(prn_device_usage(device).constant_bytes, 2 * (size_t)BYTES);
    expect_bytes(d, second, BYTES);
    prn_device_constant_drop(device, d);
    prn_device_constant_drop(device, b);
    second[BYTES / 2] ^= 1;
}

static void other_contents_do_not(void **state)
{
    (void)state;
    static const size_t changed[] = {0, 12345, BYTES / 2, BYTES - 1};
    void *a = keep(first, first, BYTES);
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        SCENARIO(i);
        second[changed[i]] ^= 1;
        void *b = keep(second, second, BYTES);
        assert_int_equal(prn_device_usage(device).constant_bytes, 2 * (size_t)BYTES);
        expect_bytes(a, first, BYTES);
        expect_bytes(b, second, BYTES);
        prn_device_constant_drop(device, b);
        second[changed[i]] ^= 1;
    }
    void *shorter = keep(second, second, BYTES - 4);
    assert_int_equal(prn_device_usage(device).constant_bytes, 2 * (size_t)BYTES - 4);
    prn_device_constant_drop(device, shorter);
    prn_device_constant_drop(device, a);
}

static void small_ones_are_copied(void **state)
{
    (void)state;
    void *a = keep(first, first, SMALL), *b = keep(second, second, SMALL);
    assert_int_equal(prn_device_usage(device).constant_bytes, 2 * SMALL);
    prn_device_constant_drop(device, a);
    prn_device_constant_drop(device, b);
}

/* A run finds its buffers while another session compiles. */
static void buffers_are_found_during_a_build(void **state)
{
    (void)state;
    size_t offset = 0;
    char *a = keep(first, first, SMALL);
    pthread_mutex_lock(&device->build_lock);
    assert_non_null(prn_opencl_find(device, a + 16, &offset));
    assert_int_equal(offset, 16);
    expect_bytes(a, first, SMALL);
    pthread_mutex_unlock(&device->build_lock);
    prn_device_constant_drop(device, a);
}

int main(void)
{
    if (!device_here()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equal_contents_share_a_buffer, open_device, close_device),
        cmocka_unit_test_setup_teardown(other_contents_do_not, open_device, close_device),
        cmocka_unit_test_setup_teardown(small_ones_are_copied, open_device, close_device),
        cmocka_unit_test_setup_teardown(buffers_are_found_during_a_build, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    print_message("skipped: no OpenCL\n");
    return 77;
}
#endif
