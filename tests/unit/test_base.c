/* The base layer: heap and its failures, pool, status, shapes, attributes, hashes, files, machine facts. */
#define _GNU_SOURCE
#include "base/alloc.h"
#include "base/attr.h"
#include "base/budget.h"
#include "base/cgroup.h"
#include "base/cpu_mask.h"
#include "base/file.h"
#include "base/isa.h"
#include "base/machine.h"
#include "base/sha256.h"
#include "base/shape.h"
#include "base/text_file.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- heap */

static void heap_counts_and_fails(void **state)
{
    (void)state;
    uint64_t before = prn_heap_calls();
    void *block = prn_alloc(0);
    assert_non_null(block);
    prn_free(block);
    prn_free(NULL);
    assert_int_equal(prn_heap_calls() - before, 2);

    assert_null(prn_calloc(SIZE_MAX / 2, 4));
    assert_null(prn_alloc(SIZE_MAX));
    assert_null(prn_realloc(NULL, SIZE_MAX / 8, 16));
    assert_null(prn_alloc_aligned(64, SIZE_MAX - 8));

    prn_alloc_fail_at(2);
    void *first = prn_alloc(8);
    assert_non_null(first);
    assert_false(prn_alloc_failed());
    assert_null(prn_strdup("second"));
    assert_true(prn_alloc_failed());
    char *third = prn_strndup("third", 2);
    assert_string_equal(third, "th");
    prn_alloc_fail_at(0);
    prn_free(first);
    prn_free(third);
}

static void aligned_blocks_are_aligned(void **state)
{
    (void)state;
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        unsigned char *block = prn_alloc_aligned(alignment, 100);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % alignment, 0);
        memset(block, 1, 100);
        prn_free_aligned(block);
    }
}

static void grown_arrays_keep_their_elements(void **state)
{
    (void)state;
    int *array = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 1000; i++) {
        assert_true(PRN_GROW(array, capacity, i + 1));
        array[i] = (int)i;
    }
    for (size_t i = 0; i < 1000; i++) assert_int_equal(array[i], (int)i);
    size_t old = capacity;
    prn_alloc_fail_at(1);
    assert_false(PRN_GROW(array, capacity, capacity + 1));
    prn_alloc_fail_at(0);
    assert_int_equal(capacity, old);
    assert_int_equal(array[999], 999);
    assert_false(PRN_GROW(array, capacity, SIZE_MAX / 2));
    prn_free(array);
}

static void pool_objects_are_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    prn_pool pool = {0};
    unsigned char *object[300];
    size_t size[300];
    for (size_t i = 0; i < 300; i++) {
        size[i] = i % 50 == 49 ? 100000 + i : i;
        object[i] = prn_pool_alloc(&pool, size[i], 1);
        assert_non_null(object[i]);
        assert_int_equal((uintptr_t)object[i] % 16, 0);
        for (size_t b = 0; b < size[i]; b++) assert_int_equal(object[i][b], 0);
        memset(object[i], (int)(i & 0xff), size[i]);
    }
    for (size_t i = 0; i < 300; i++) {
        for (size_t b = 0; b < size[i]; b++) assert_int_equal(object[i][b], i & 0xff);
    }
    assert_string_equal(prn_pool_printf(&pool, "%s-%d", "name", 7), "name-7");
    assert_string_equal(prn_pool_strndup(&pool, "abcdef", 3), "abc");
    assert_null(prn_pool_alloc(&pool, SIZE_MAX / 2, 3));
    assert_null(prn_pool_alloc(&pool, SIZE_MAX, 1));
    prn_pool_release(&pool);
    assert_null(pool.block);

    prn_alloc_fail_at(1);
    assert_null(prn_pool_printf(&pool, "%d", 1));
    prn_alloc_fail_at(0);
    prn_pool_release(&pool);
}

/* ---- status */

static void messages_are_prefixed_and_cut(void **state)
{
    (void)state;
    prony_error error = {0};
    assert_int_equal(prn_fail(&error, PRONY_LIMIT, "value %d", 5), PRONY_LIMIT);
    prn_error_prefix(&error, "file '%s'", "a.onnx");
    assert_string_equal(error.message, "file 'a.onnx': value 5");

    char longer[2 * PRONY_ERROR_MESSAGE_BYTES];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    (void)prn_fail(&error, PRONY_LIMIT, "%s", longer);
    assert_int_equal(strlen(error.message), PRONY_ERROR_MESSAGE_BYTES - 1);
    prn_error_prefix(&error, "p");
    assert_int_equal(strlen(error.message), PRONY_ERROR_MESSAGE_BYTES - 1);
    assert_memory_equal(error.message, "p: ...xx", 8); /* the end says what is the matter */
    prn_error_prefix(NULL, "p");
    assert_int_equal(prn_no_memory(NULL), PRONY_OUT_OF_MEMORY);

    prony_node node = {"conv1", "Conv", "", 13, NULL, NULL};
    prony_context context = {.node = &node, .error = &error};
    assert_int_equal(prony_fail(&context, PRONY_UNSUPPORTED, "group %d", 3), PRONY_UNSUPPORTED);
    assert_string_equal(error.message, "node 'conv1' (Conv): group 3");
    node.domain = "my.ops";
    (void)prony_fail(&context, PRONY_UNSUPPORTED, "no");
    assert_string_equal(error.message, "node 'conv1' (my.ops::Conv): no");
    assert_string_equal(prony_status_text(PRONY_BUSY), "session is already running");
}

/* ---- shapes */

static prony_shape shape3(int64_t a, int64_t b, int64_t c)
{
    return prn_shape_make(3, (const int64_t[]){a, b, c});
}

static void shapes_broadcast_as_onnx_says(void **state)
{
    (void)state;
    prony_shape out, a = shape3(2, 1, 4), b = prn_shape_make(2, (const int64_t[]){3, 1});
    assert_true(prn_shape_broadcast(&out, &a, &b));
    prony_shape expected = shape3(2, 3, 4);
    assert_true(prn_shape_equal(&out, &expected));
    int64_t stride[3];
    prn_shape_broadcast_strides(&b, &out, stride);
    assert_true(stride[0] == 0 && stride[1] == 1 && stride[2] == 0);
    prn_shape_broadcast_strides(&a, &out, stride);
    assert_true(stride[0] == 4 && stride[1] == 0 && stride[2] == 1);

    prony_shape scalar = prn_shape_scalar(), unknown = prn_shape_unknown();
    assert_true(prn_shape_broadcast(&out, &scalar, &a) && prn_shape_equal(&out, &a));
    assert_true(prn_shape_broadcast(&out, &unknown, &a) && out.rank == -1);
    b = prn_shape_make(1, (const int64_t[]){3});
    out = scalar;
    assert_false(prn_shape_broadcast(&out, &a, &b));
    assert_int_equal(out.rank, 0);
    b.dim[0] = 0;
    a.dim[2] = 1;
    assert_true(prn_shape_broadcast(&out, &a, &b) && out.dim[2] == 0);
    b.dim[0] = -1;
    a.dim[2] = 5;
    assert_true(prn_shape_broadcast(&out, &a, &b) && out.dim[2] == 5);
    a.dim[2] = 1;
    assert_true(prn_shape_broadcast(&a, &a, &b) && a.dim[2] == -1);
}

static void products_are_checked(void **state)
{
    (void)state;
    prony_shape shape = shape3(2, 3, 4);
    assert_int_equal(prony_shape_numel(&shape), 24);
    assert_int_equal(prn_shape_count(&shape, 1, 3), 12);
    assert_int_equal(prn_shape_count(&shape, 1, 1), 1);
    shape = shape3(INT64_MAX, 2, 2);
    assert_int_equal(prony_shape_numel(&shape), -1);
    shape.dim[2] = 0; /* what is left without the empty dimension must fit too: kernels multiply parts of a shape */
    assert_int_equal(prony_shape_numel(&shape), -1);
    shape.dim[0] = 5;
    assert_int_equal(prony_shape_numel(&shape), 0);
    shape.dim[0] = -1;
    assert_int_equal(prony_shape_numel(&shape), -1);
    assert_false(prn_shape_known(&shape));

    assert_int_equal(prony_dtype_bytes(PRONY_FLOAT32, 5), 20);
    assert_int_equal(prony_dtype_bytes(PRONY_INT4, 5), 3);
    assert_int_equal(prony_dtype_bytes(PRONY_COMPLEX128, 2), 32);
    assert_int_equal(prony_dtype_bytes(PRONY_STRING, 2), 2 * sizeof(prony_string));
    assert_true(prony_dtype_bytes(PRONY_FLOAT64, INT64_MAX) == SIZE_MAX);
    assert_true(prony_dtype_bytes(PRONY_FLOAT32, -1) == SIZE_MAX);
    assert_true(prony_dtype_bytes((prony_dtype)99, 1) == SIZE_MAX);

    uint64_t out;
    assert_true(prn_mul_u64(&out, UINT32_MAX, UINT32_MAX) && out == 0xfffffffe00000001u);
    assert_false(prn_mul_u64(&out, UINT64_MAX, 2));
    assert_false(prn_add_u64(&out, UINT64_MAX, 1));
}

static void shapes_and_axes_print_and_normalize(void **state)
{
    (void)state;
    char text[PRN_SHAPE_TEXT_BYTES];
    prony_value value = {.dtype = PRONY_FLOAT32, .shape = shape3(1, -1, 224)};
    assert_string_equal(prn_value_text(&value, text), "float32[1, ?, 224]");
    value.shape = prn_shape_scalar();
    assert_string_equal(prn_value_text(&value, text), "float32[]");
    value.shape.rank = PRONY_MAX_RANK;
    for (int d = 0; d < PRONY_MAX_RANK; d++) value.shape.dim[d] = INT64_MAX;
    prn_value_text(&value, text);
    assert_int_equal(text[strlen(text) - 1], ']');
    value.shape = prn_shape_unknown();
    value.kind = PRONY_SEQUENCE;
    assert_string_equal(prn_value_text(&value, text), "sequence(float32)");

    int64_t axis = -1;
    assert_true(prn_axis_normalize(&axis, 4) && axis == 3);
    axis = 4;
    assert_false(prn_axis_normalize(&axis, 4));
    axis = -5;
    assert_false(prn_axis_normalize(&axis, 4));
    axis = 0;
    assert_false(prn_axis_normalize(&axis, 0));

    int64_t stride[3];
    prony_shape shape = shape3(2, 3, 4);
    prn_shape_strides(&shape, stride);
    assert_true(stride[0] == 12 && stride[1] == 4 && stride[2] == 1);
}

static void attributes_are_found_by_name_and_type(void **state)
{
    (void)state;
    const int64_t pads[] = {1, 2};
    const prn_attr items[] = {{.name = "axis", .type = PRN_ATTR_INT, .i = -1},
                              {.name = "pads", .type = PRN_ATTR_INTS, .ints = pads, .count = 2},
                              {.name = "alpha", .type = PRN_ATTR_FLOAT, .f = 0.5f}};
    const prn_attr_list list = {items, 3};
    const prony_node node = {"n", "Op", "", 13, &list, NULL};
    int64_t i = 7;
    float f = 7;
    const int64_t *ints = NULL;
    size_t count = 7;
    assert_true(prony_node_int(&node, "axis", &i) && i == -1);
    assert_true(prony_node_ints(&node, "pads", &ints, &count) && ints == pads && count == 2);
    assert_true(prony_node_float(&node, "alpha", &f) && f == 0.5f);
    i = 7;
    assert_false(prony_node_int(&node, "alpha", &i) || prony_node_int(&node, "missing", &i));
    assert_int_equal(i, 7);
    const prony_node bare = {"n", "Op", "", 13, NULL, NULL};
    assert_false(prony_node_int(&bare, "axis", &i));
}

/* ---- hashes: the examples of FIPS 180-4 */

static void sha256_gives_the_published_digests(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *digest;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char text[65];
    prn_sha256 hash;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        prn_sha256_init(&hash);
        prn_sha256_add(&hash, known[i].text, strlen(known[i].text));
        prn_sha256_text(&hash, text);
        assert_string_equal(text, known[i].digest);
    }
    char piece[997]; /* a million letters in uneven pieces */
    memset(piece, 'a', sizeof piece);
    prn_sha256_init(&hash);
    for (size_t done = 0; done < 1000000;) {
        size_t size = 1000000 - done < sizeof piece ? 1000000 - done : sizeof piece;
        prn_sha256_add(&hash, piece, size);
        done += size;
    }
    prn_sha256_text(&hash, text);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* ---- files */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/prony-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static const char *in_folder(const char *name)
{
    static char path[4][512];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[0], "%s/%s", folder, name);
    return path[next];
}

static void write_text(const char *name, const char *text)
{
    prn_file_writer *writer;
    assert_int_equal(prn_file_create(&writer, in_folder(name), NULL), PRONY_OK);
    assert_int_equal(prn_file_write(writer, text, strlen(text)), 0);
    assert_int_equal(prn_file_commit(writer, NULL), PRONY_OK);
}

static void files_appear_whole_or_not_at_all(void **state)
{
    (void)state;
    prony_error error = {0};
    prn_file_writer *writer;
    prn_map map;
    char big[100000];
    memset(big, 'b', sizeof big);

    write_text("f", "old");
    assert_int_equal(prn_file_create(&writer, in_folder("f"), &error), PRONY_OK);
    assert_int_equal(prn_file_write(writer, "head", 4), 0);
    assert_int_equal(prn_file_write(writer, big, sizeof big), 0);
    assert_int_equal(prn_map_open(&map, in_folder("f"), &error), PRONY_OK);
    assert_int_equal(map.size, 3);
    assert_int_equal(prn_file_commit(writer, &error), PRONY_OK);
    assert_memory_equal(map.data, "old", 3);
    prn_map_close(&map);
    assert_int_equal(prn_map_open(&map, in_folder("f"), &error), PRONY_OK);
    assert_int_equal(map.size, 4 + sizeof big);
    assert_memory_equal(map.data, "headbbb", 7);
    prn_map_close(&map);

    assert_int_equal(prn_file_create(&writer, in_folder("f"), &error), PRONY_OK);
    assert_int_equal(prn_file_write(writer, "lost", 4), 0);
    prn_file_abandon(writer);
    prn_file_abandon(NULL);
    char command[512], answer[32];
    snprintf(command, sizeof command, "ls '%s' | wc -l >'%s.count'; mv '%s.count' '%s/count'", folder, folder, folder,
             folder);
    assert_int_equal(system(command), 0);
    assert_true(prn_text_read(in_folder("count"), answer, sizeof answer));
    assert_string_equal(answer, "1");

    assert_int_equal(prn_file_create(&writer, in_folder("none/f"), &error), PRONY_IO_ERROR);
    assert_non_null(strstr(error.message, "none/f"));
    assert_int_equal(prn_file_create(&writer, "/dev/full", &error), PRONY_OK);
    (void)prn_file_write(writer, "x", 1);
    assert_int_equal(prn_file_commit(writer, &error), PRONY_IO_ERROR);
}

static void links_are_written_through(void **state)
{
    (void)state;
    struct stat info;
    write_text("target", "1");
    assert_int_equal(symlink("target", in_folder("link")), 0);
    write_text("link", "22");
    assert_int_equal(lstat(in_folder("link"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat(in_folder("target"), &info), 0);
    assert_int_equal(info.st_size, 2);
}

static void maps_refuse_what_is_no_file(void **state)
{
    (void)state;
    prony_error error = {0};
    prn_map map;
    assert_int_equal(prn_map_open(&map, in_folder("absent"), &error), PRONY_IO_ERROR);
    assert_non_null(strstr(error.message, "absent"));
    assert_int_equal(prn_map_open(&map, folder, &error), PRONY_IO_ERROR);
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_int_equal(prn_map_open(&map, in_folder("pipe"), &error), PRONY_IO_ERROR);
    write_text("empty", "");
    assert_int_equal(prn_map_open(&map, in_folder("empty"), &error), PRONY_OK);
    assert_true(map.data == NULL && map.size == 0);
    prn_map_close(&map);
}

static void lines_of_any_length_are_read(void **state)
{
    (void)state;
    char text[10000];
    memset(text, 'l', sizeof text);
    memcpy(text, "first\n\n", 7);
    memcpy(text + 9990, "\nlast", 5);
    text[9995] = '\0';
    write_text("lines", text);
    prn_lines lines;
    assert_true(prn_lines_open(&lines, in_folder("lines")));
    assert_string_equal(prn_lines_next(&lines), "first");
    assert_string_equal(prn_lines_next(&lines), "");
    assert_int_equal(strspn(prn_lines_next(&lines), "l"), sizeof lines.line - 1);
    assert_string_equal(prn_lines_next(&lines), "last");
    assert_null(prn_lines_next(&lines));
    prn_lines_close(&lines);
    assert_false(prn_lines_open(&lines, in_folder("absent")));
}

/* ---- machine */

static void core_lists_are_parsed(void **state)
{
    (void)state;
    prn_cpu_mask mask, other = {0};
    assert_true(prn_cpu_mask_parse(&mask, "0-3,8,100-101"));
    assert_int_equal(prn_cpu_mask_count(&mask), 7);
    assert_true(prn_cpu_mask_has(&mask, 3) && prn_cpu_mask_has(&mask, 101) && !prn_cpu_mask_has(&mask, 4));
    static const char *const wrong[] = {
        "", ",", "1,", "a", "3-1", "1-", "-1", " 1", "1;2", "4096", "0-", "1--2", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) assert_false(prn_cpu_mask_parse(&other, wrong[i]));
    assert_true(prn_cpu_mask_parse(&other, "0-3,8"));
    assert_int_equal(prn_cpu_mask_missing(&mask, &other), 100);
    assert_int_equal(prn_cpu_mask_missing(&other, &mask), -1);
}

static void quotas_of_all_ancestors_count(void **state)
{
    (void)state;
    char text[1024];
    assert_int_equal(mkdir(in_folder("v2 root"), 0700), 0);
    assert_int_equal(mkdir(in_folder("v2 root/a"), 0700), 0);
    assert_int_equal(mkdir(in_folder("v2 root/a/b"), 0700), 0);
    assert_int_equal(mkdir(in_folder("v1"), 0700), 0);
    write_text("v2 root/a/b/cpu.max", "max 100000\n");
    write_text("v2 root/a/cpu.max", "250000 100000\n");
    snprintf(text, sizeof text,
             "30 1 0:1 / /proc rw - proc proc rw\n"
             "31 1 0:28 / %s/v2\\040root rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
             "32 1 0:29 /box %s/v1 rw - cgroup cgroup rw,cpu,cpuacct\n"
             "cut line\n",
             folder, folder);
    write_text("mounts", text);
    write_text("groups", "4:cpuset:/elsewhere\n3:cpu,cpuacct:/box\n0::/a/b\n");
    assert_true(prn_cgroup_quota_cpus(in_folder("groups"), in_folder("mounts")) == 2.5);
    write_text("v1/cpu.cfs_quota_us", "-1\n");
    write_text("v1/cpu.cfs_period_us", "100000\n");
    assert_true(prn_cgroup_quota_cpus(in_folder("groups"), in_folder("mounts")) == 2.5);
    write_text("v1/cpu.cfs_quota_us", "150000\n");
    assert_true(prn_cgroup_quota_cpus(in_folder("groups"), in_folder("mounts")) == 1.5);
    write_text("groups", "0::/../..\n");
    write_text("v2 root/cpu.max", "50000 100000\n");
    assert_true(prn_cgroup_quota_cpus(in_folder("groups"), in_folder("mounts")) == 0.5);
    assert_true(prn_cgroup_quota_cpus(in_folder("absent"), in_folder("absent")) == 0);
}

static void memory_of_all_ancestors_counts(void **state)
{
    (void)state;
    char text[1024];
    assert_int_equal(mkdir(in_folder("m2"), 0700), 0);
    assert_int_equal(mkdir(in_folder("m2/a"), 0700), 0);
    assert_int_equal(mkdir(in_folder("m2/a/b"), 0700), 0);
    assert_int_equal(mkdir(in_folder("m1"), 0700), 0);
    snprintf(text, sizeof text,
             "31 1 0:28 / %s/m2 rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
             "32 1 0:29 /box %s/m1 rw - cgroup cgroup rw,memory\n",
             folder, folder);
    write_text("mounts", text);
    write_text("groups", "3:memory:/box\n0::/a/b\n");
    assert_true(prn_cgroup_memory_left(in_folder("groups"), in_folder("mounts")) == UINT64_MAX);
    write_text("m2/a/b/memory.max", "max\n");
    write_text("m2/a/memory.max", "1000000\n");
    assert_true(prn_cgroup_memory_left(in_folder("groups"), in_folder("mounts")) == UINT64_MAX);
    write_text("m2/a/memory.current", "700000\n");
    assert_int_equal(prn_cgroup_memory_left(in_folder("groups"), in_folder("mounts")), 300000);
    write_text("m2/a/memory.stat", "anon 5\ninactive_file 150000\nactive_file 7\n");
    assert_int_equal(prn_cgroup_memory_left(in_folder("groups"), in_folder("mounts")), 450000);
    write_text("m1/memory.limit_in_bytes", "9223372036854771712\n");
    write_text("m1/memory.usage_in_bytes", "5000\n");
    assert_int_equal(prn_cgroup_memory_left(in_folder("groups"), in_folder("mounts")), 450000);
    write_text("m1/memory.limit_in_bytes", "4000\n");
    write_text("m1/memory.stat", "inactive_file 1\ntotal_inactive_file 2000\n");
    assert_int_equal(prn_cgroup_memory_left(in_folder("groups"), in_folder("mounts")), 1000);
    assert_true(prn_cgroup_memory_left(in_folder("absent"), in_folder("absent")) == UINT64_MAX);
    assert_true(prony_memory_available() > 0);
}

/* Nested budgets, blocks that outlive them, and what a refusal says. */
static void budgets_hold(void **state)
{
    (void)state;
    prony_error error = {0};
    prn_budget *outer = prn_budget_create(NULL, 10000), *inner = prn_budget_create(outer, 4000);
    prn_budget *former = prn_budget_enter(inner);
    void *a = prn_alloc(1000), *b = prn_alloc_aligned(64, 1000);
    assert_true(a && b && (uintptr_t)b % 64 == 0);
    uint64_t held = prn_budget_held(inner);
    assert_true(held >= 2000 && held < 2300);
    assert_int_equal(prn_budget_held(outer), held);
    assert_int_equal(prn_budget_room(), 4000 - held);
    assert_null(prn_alloc(3000));
    assert_int_equal(prn_no_memory(&error), PRONY_LIMIT);
    assert_non_null(strstr(error.message, "3016 bytes more"));
    assert_non_null(strstr(error.message, "the memory limit is 4000"));
    assert_int_equal(prn_no_memory(&error), PRONY_OUT_OF_MEMORY);
    assert_int_equal(prn_budget_held(outer), held);
    a = prn_realloc(a, 1500, 1);
    assert_non_null(a);
    assert_int_equal(prn_budget_held(inner), held + 500);
    assert_null(prn_realloc(a, 9000, 1));
    assert_int_equal(prn_budget_held(inner), held + 500);
    prn_budget_enter(outer);
    assert_null(prn_calloc(9000, 1));
    prn_budget_enter(former);
    prn_budget_release(inner);
    prn_free(a);
    assert_int_equal(prn_budget_held(outer), held - 1016);
    prn_free_aligned(b);
    assert_int_equal(prn_budget_held(outer), 0);
    prn_budget_release(outer);
}

static void machine_facts_agree_with_one_another(void **state)
{
    (void)state;
    prn_machine machine;
    prn_machine_read(&machine, NULL);
    assert_true(machine.host_name[0] && machine.os[0] && machine.os_release[0] && machine.cpu_model[0]);
    assert_in_range(machine.mask_count, 1, machine.cpu_count);
    assert_in_range(machine.physical_cores, 0, machine.mask_count);
    assert_true(machine.quota_cpus >= 0 && isfinite(machine.quota_cpus));
    assert_true(machine.total_memory_bytes > 1 << 20);
    int known = access("/sys/devices/system/cpu/cpu0/cache/index0", F_OK) == 0; /* by how many processors, only there */
    for (int i = 0; i < machine.cache_count; i++) {
        assert_in_range(machine.caches[i].level, 1, 5);
        assert_true(machine.caches[i].bytes >= 1024 && machine.caches[i].shared_by >= known);
    }
    assert_in_range(prn_machine_auto_threads(1, NULL), 1, machine.mask_count);
    static const struct {
        int cores, inter_op, threads;
        double quota;
    } rows[] = {{8, 1, 8, 0},   {8, 2, 4, 0}, {8, 3, 2, 0},   {8, 9, 1, 0},  {8, 1, 3, 3},
                {8, 1, 3, 3.9}, {8, 2, 1, 3}, {8, 1, 1, 0.5}, {8, 1, 8, 64}, {0, 1, 1, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(prn_machine_threads_of(rows[i].cores, rows[i].quota, rows[i].inter_op), rows[i].threads);
    assert_int_equal(prn_machine_auto_threads(PRN_MAX_CPUS, NULL), 1);

    prn_usage usage;
    prn_usage_begin(&usage);
    assert_true(usage.peak_rss_bytes > 100000 && usage.peak_rss_bytes < machine.total_memory_bytes);
    assert_true(usage.user_ns + usage.system_ns > 0);
}

/* This process has one thread: it cannot use more processor time than passes, not even where what reading costs is all there is.
 * The kernel gives processor times in microseconds, two of them. */
static void one_thread_uses_one_processor_at_most(void **state)
{
    (void)state;
    enum { MEASUREMENTS = 300 };
    int64_t used = 0, passed = 0;
    for (int i = 0; i < MEASUREMENTS; i++) {
        prn_usage before, after;
        prn_usage_begin(&before);
        prn_usage_end(&after);
        assert_true(after.time_ns >= before.time_ns && after.peak_rss_bytes >= before.peak_rss_bytes);
        used += after.user_ns + after.system_ns - before.user_ns - before.system_ns;
        passed += after.time_ns - before.time_ns;
    }
    if (used > passed + MEASUREMENTS * 2000) fail_msg("%lld ns used of %lld", (long long)used, (long long)passed);
}

static void heap_hooks_see_every_call(void **state)
{
    (void)state;
    uint64_t before, after;
    if (!prn_all_heap_calls(&before)) skip(); /* under a sanitizer */
    void *volatile block = malloc(10);
    block = realloc(block, 20);
    free(block);
    block = aligned_alloc(64, 64);
    free(block);
    prn_free(prn_calloc(1, 1));
    assert_true(prn_all_heap_calls(&after));
    assert_int_equal(after - before, 7);
}

static void isa_is_what_the_features_carry(void **state)
{
    (void)state;
    bool avx2 = false;
    for (const char *const *feature = prn_isa_features(); *feature; feature++) avx2 |= strcmp(*feature, "avx2") == 0;
    if (prn_isa_has(PRN_HAS_AVX2)) assert_true(avx2);
    assert_true(prn_isa_has(0));
    if (prn_isa_has(PRN_HAS_AMX)) assert_string_equal(prn_isa_name(), "amx");
    assert_int_equal(prn_isa_has(PRN_HAS_AVX2), strcmp(prn_isa_name(), "scalar") != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap_counts_and_fails),
        cmocka_unit_test(aligned_blocks_are_aligned),
        cmocka_unit_test(grown_arrays_keep_their_elements),
        cmocka_unit_test(pool_objects_are_zeroed_aligned_and_apart),
        cmocka_unit_test(messages_are_prefixed_and_cut),
        cmocka_unit_test(shapes_broadcast_as_onnx_says),
        cmocka_unit_test(products_are_checked),
        cmocka_unit_test(shapes_and_axes_print_and_normalize),
        cmocka_unit_test(attributes_are_found_by_name_and_type),
        cmocka_unit_test(sha256_gives_the_published_digests),
        cmocka_unit_test_setup_teardown(files_appear_whole_or_not_at_all, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(links_are_written_through, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(maps_refuse_what_is_no_file, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(lines_of_any_length_are_read, make_folder, remove_folder),
        cmocka_unit_test(core_lists_are_parsed),
        cmocka_unit_test_setup_teardown(quotas_of_all_ancestors_count, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(memory_of_all_ancestors_counts, make_folder, remove_folder),
        cmocka_unit_test(budgets_hold),
        cmocka_unit_test(machine_facts_agree_with_one_another),
        cmocka_unit_test(one_thread_uses_one_processor_at_most), cmocka_unit_test(heap_hooks_see_every_call),
        cmocka_unit_test(isa_is_what_the_features_carry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
