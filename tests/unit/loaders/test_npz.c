/* .npz archives: stored, compressed and zip64 members, the choice of the array, and archives that are damaged or
 * lie. */
#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "prony.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A zip archive under construction: local parts, then the directory. */
typedef struct archive {
    uint8_t bytes[1 << 14], directory[1 << 12];
    size_t used, directory_used, count;
    bool wide; /* sizes and offsets in extra fields, as zip64 has them */
} archive;

static void put(uint8_t *to, size_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) to[(*at)++] = (uint8_t)(value >> (8 * i));
}

static uint32_t crc_of(const uint8_t *data, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

typedef struct member {
    const char *name;
    const uint8_t *data;
    size_t size, plain_size;
    uint32_t crc;
    unsigned method, flags;
} member;

/* Of local header and directory alike: flags, method, time, date, checksum. */
static void put_common(uint8_t *to, size_t *at, const member *m)
{
    put(to, at, 20, 2), put(to, at, m->flags, 2), put(to, at, m->method, 2), put(to, at, 0, 4), put(to, at, m->crc, 4);
}

static void add_member(archive *a, const member *m)
{
    size_t name = strlen(m->name), offset = a->used;
    put(a->bytes, &a->used, 0x04034b50, 4);
    put_common(a->bytes, &a->used, m);
    put(a->bytes, &a->used, m->size, 4), put(a->bytes, &a->used, m->plain_size, 4);
    put(a->bytes, &a->used, name, 2), put(a->bytes, &a->used, 3, 2);
    memcpy(a->bytes + a->used, m->name, name), a->used += name + 3; /* 3 bytes of extra field */
    memcpy(a->bytes + a->used, m->data, m->size), a->used += m->size;

    uint8_t *d = a->directory;
    put(d, &a->directory_used, 0x02014b50, 4), put(d, &a->directory_used, 45, 2);
    put_common(d, &a->directory_used, m);
    put(d, &a->directory_used, a->wide ? UINT32_MAX : m->size, 4);
    put(d, &a->directory_used, a->wide ? UINT32_MAX : m->plain_size, 4);
    put(d, &a->directory_used, name, 2), put(d, &a->directory_used, a->wide ? 33 : 0, 2),
        put(d, &a->directory_used, 0, 2);
    put(d, &a->directory_used, 0, 8), put(d, &a->directory_used, a->wide ? UINT32_MAX : offset, 4);
    memcpy(d + a->directory_used, m->name, name), a->directory_used += name;
    if (a->wide) {
        put(d, &a->directory_used, 0x9999, 2), put(d, &a->directory_used, 1, 2), put(d, &a->directory_used, 7, 1);
        put(d, &a->directory_used, 1, 2), put(d, &a->directory_used, 24, 2),
            put(d, &a->directory_used, m->plain_size, 8);
        put(d, &a->directory_used, m->size, 8), put(d, &a->directory_used, offset, 8);
    }
    a->count++;
}

static void finish(archive *a)
{
    size_t offset = a->used, comment = 5;
    memcpy(a->bytes + a->used, a->directory, a->directory_used), a->used += a->directory_used;
    if (a->wide) {
        size_t end64 = a->used;
        put(a->bytes, &a->used, 0x06064b50, 4), put(a->bytes, &a->used, 44, 8), put(a->bytes, &a->used, 0, 8),
            put(a->bytes, &a->used, 0, 4);
        put(a->bytes, &a->used, a->count, 8), put(a->bytes, &a->used, a->count, 8);
        put(a->bytes, &a->used, a->directory_used, 8), put(a->bytes, &a->used, offset, 8);
        put(a->bytes, &a->used, 0x07064b50, 4), put(a->bytes, &a->used, 0, 4), put(a->bytes, &a->used, end64, 8);
        put(a->bytes, &a->used, 1, 4);
    }
    put(a->bytes, &a->used, 0x06054b50, 4), put(a->bytes, &a->used, 0, 4);
    put(a->bytes, &a->used, a->wide ? UINT16_MAX : a->count, 2),
        put(a->bytes, &a->used, a->wide ? UINT16_MAX : a->count, 2);
    put(a->bytes, &a->used, a->wide ? UINT32_MAX : a->directory_used, 4);
    put(a->bytes, &a->used, a->wide ? UINT32_MAX : offset, 4), put(a->bytes, &a->used, comment, 2);
    memcpy(a->bytes + a->used, "hello", comment), a->used += comment;
}

/* "<i4" [2, 3] of first, first + 1, … */
static size_t make_npy(uint8_t *to, int32_t first)
{
    const char header[] =
        "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }                                  \n";
    memcpy(to, "\x93NUMPY\x01", 8);
    to[8] = (uint8_t)(sizeof header - 1), to[9] = 0;
    memcpy(to + 10, header, sizeof header - 1);
    for (int32_t i = 0; i < 6; i++) {
        int32_t value = first + i;
        memcpy(to + 10 + sizeof header - 1 + 4 * i, &value, 4);
    }
    return 10 + sizeof header - 1 + 24;
}

static member stored(const char *name, const uint8_t *npy, size_t size)
{
    return (member){name, npy, size, size, crc_of(npy, size), 0, 0};
}

static void path_of(char path[64])
{
    snprintf(path, 64, "test_npz_%ld.npz", (long)getpid());
}

static prony_status load_bytes(prony_value **out, const uint8_t *bytes, size_t size, const char *name,
                               prony_error *error)
{
    char path[64];
    path_of(path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    memset(error, 0, sizeof *error);
    *out = NULL;
    prony_status status = prony_value_load_array(out, path, name, error);
    assert_true((status == PRONY_OK) == (*out != NULL));
    remove(path);
    return status;
}

static prony_status load(prony_value **out, const archive *a, const char *name, prony_error *error)
{
    return load_bytes(out, a->bytes, a->used, name, error);
}

static archive *two_arrays(bool wide)
{
    uint8_t npy[256];
    archive *a = calloc(1, sizeof *a);
    assert_non_null(a);
    a->wide = wide;
    size_t size = make_npy(npy, 10);
    member readme = stored("readme.txt", (const uint8_t *)"no array", 8), first = stored("first.npy", npy, size);
    add_member(a, &readme);
    add_member(a, &first);
    size = make_npy(npy, 20);
    member second = stored("second.npy", npy, size);
    add_member(a, &second);
    finish(a);
    return a;
}

static void stored_arrays(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        SCENARIO(wide);
        archive *a = two_arrays(wide);
        prony_error error;
        prony_value *value;
        static const char *const names[] = {"first", "second"};
        for (int k = 0; k < 2; k++) {
            if (load(&value, a, names[k], &error) != PRONY_OK) fail_msg("%s", error.message);
            assert_int_equal(value->dtype, PRONY_INT32);
            assert_int_equal(value->shape.dim[1], 3);
            for (int32_t i = 0; i < 6; i++) assert_int_equal(((const int32_t *)value->data)[i], 10 * (k + 1) + i);
            prony_value_release(value);
        }
        assert_int_equal(load(&value, a, "third", &error), PRONY_INVALID_ARGUMENT);
        assert_non_null(strstr(error.message, "unknown array 'third'; it has 'first', 'second'"));
        assert_int_equal(load(&value, a, NULL, &error), PRONY_INVALID_ARGUMENT);
        assert_non_null(strstr(error.message, "wanted one array"));
        free(a);
    }
}

static void an_only_array(void **state)
{
    (void)state;
    uint8_t npy[256];
    prony_error error;
    prony_value *value;
    static const char *const names[] = {"arr_0.npy", "x.npy"};
    for (int k = 0; k < 2; k++) {
        SCENARIO(k);
        archive *a = calloc(1, sizeof *a);
        assert_non_null(a);
        member m = stored(names[k], npy, make_npy(npy, 0));
        add_member(a, &m);
        finish(a);
        assert_int_equal(load(&value, a, NULL, &error), PRONY_OK);
        prony_value_release(value);
        /* numpy.savez(file, x) gives no name: any name is right. */
        assert_int_equal(load(&value, a, "image", &error), k ? PRONY_INVALID_ARGUMENT : PRONY_OK);
        prony_value_release(value);
        free(a);
    }
}

/* An archive that must be refused with a message that contains `word`. */
static void refuse(const member *m, const char *word)
{
    prony_error error;
    prony_value *value;
    archive *a = calloc(1, sizeof *a);
    assert_non_null(a);
    add_member(a, m);
    finish(a);
    prony_status status = load(&value, a, "x", &error);
    if (status == PRONY_OK || !strstr(error.message, word) || !strstr(error.message, "array 'x'"))
        fail_msg("status %d, '%s' has no '%s'", (int)status, error.message, word);
    free(a);
}

static void what_is_refused(void **state)
{
    (void)state;
    uint8_t npy[256];
    size_t size = make_npy(npy, 0);
    member good = stored("x.npy", npy, size), m = good;
    m.flags = 1;
    refuse(&m, "encrypted");
    m = good, m.method = 14;
    refuse(&m, "method 14");
    m = good, m.plain_size = size + 1;
    refuse(&m, "two sizes");
    m = good, m.method = 8, m.plain_size = (size_t)1 << 31;
    refuse(&m, "cannot hold");
    m = stored("x.npy", (const uint8_t *)"\x93NUMPZ", 7);
    refuse(&m, "not an .npy");
#ifdef PRN_HAVE_ZLIB
    m = good, m.crc ^= 1;
    refuse(&m, "checksum");
    m = (member){"x.npy", (const uint8_t *)"\7\7\7", 3, 4, 0, 8, 0}; /* a block of no kind that there is */
    refuse(&m, "damaged compressed data");
    /* A stored block of 3 bytes and the end; it gives fewer and more than are claimed. */
    const uint8_t block[] = {1, 3, 0, 0xfc, 0xff, 'a', 'b', 'c'};
    m = (member){"x.npy", block, sizeof block, 4, 0, 8, 0};
    refuse(&m, "declared 4 bytes");
    m.plain_size = 2;
    refuse(&m, "declared 2 bytes");
#else
    m = good, m.method = 8;
    refuse(&m, "PRONY_ZLIB");
#endif
}

static void damaged_archives(void **state)
{
    (void)state;
    uint64_t random = 1;
    prony_error error;
    prony_value *value;
    for (int wide = 0; wide < 2; wide++) {
        SCENARIO(wide);
        archive *a = two_arrays(wide);
        for (size_t length = 0; length < a->used - 5; length += 3)
            if (load_bytes(&value, a->bytes, length, "second", &error) == PRONY_OK) fail_msg("%zu bytes pass", length);
        for (int round = 0; round < 600; round++) {
            uint8_t copy[sizeof a->bytes];
            memcpy(copy, a->bytes, a->used);
            for (int change = 0; change <= round % 3; change++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                copy[(random >> 33) % a->used] = (uint8_t)(random >> 20);
            }
            prony_status status = load_bytes(&value, copy, a->used, "second", &error);
            assert_true(status == PRONY_OK || *error.message);
            prony_value_release(value);
        }
        free(a);
    }
}

static void memory_that_fails(void **state)
{
    (void)state;
    uint64_t n = 1;
    for (bool failed = true; failed; n++) {
        SCENARIO(failed);
        archive *a = two_arrays(true);
        prony_error error;
        prony_value *value;
        prn_alloc_fail_at(n);
        prony_status status = load(&value, a, "second", &error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
        prony_value_release(value);
        free(a);
    }
    assert_true(n > 4);
}

#ifdef PRN_HAVE_ZLIB
/* As numpy.savez_compressed writes it. */
static void compressed_arrays(void **state)
{
    (void)state;
    const char *path = PRN_SOURCE_DIR "/tests/data/images/expected.npz";
    uint64_t n = 1;
    for (bool failed = true; failed; n++) {
        SCENARIO(failed);
        prony_error error = {0};
        prony_value *value = NULL;
        prn_alloc_fail_at(n);
        prony_status status = prony_value_load_array(&value, path, "rgb.png", &error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
        if (!failed) assert_int_equal(prony_shape_numel(&value->shape), 3 * 29 * 37);
        prony_value_release(value);
    }
    assert_true(n > 6);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_arrays),     cmocka_unit_test(an_only_array),     cmocka_unit_test(what_is_refused),
        cmocka_unit_test(damaged_archives),  cmocka_unit_test(memory_that_fails),
#ifdef PRN_HAVE_ZLIB
        cmocka_unit_test(compressed_arrays),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
