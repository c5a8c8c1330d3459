/* The base layer: heap and its failures, pool, status, shapes, attributes, hashes, files, machine facts. */
#define _GNU_SOURCE
#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "base/attr.h"
#include "base/memory/budget.h"
#include "base/os/cgroup.h"
#include "base/os/cpu_mask.h"
#include "base/os/file.h"
#include "base/cpu/arm_core.h"
#include "base/cpu/isa.h"
#include "base/cpu/machine.h"
#include "base/shape.h"
#include "base/os/text_file.h"

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
        SCENARIO(alignment);
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
        SCENARIO(i);
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
    prn_bump pool = {0};
    unsigned char *object[300];
    size_t size[300];
    for (size_t i = 0; i < 300; i++) {
        SCENARIO(i);
        size[i] = i % 50 == 49 ? 100000 + i : i;
        object[i] = prn_bump_alloc(&pool, size[i], 1);
        assert_non_null(object[i]);
        assert_int_equal((uintptr_t)object[i] % 16, 0);
        for (size_t b = 0; b < size[i]; b++) assert_int_equal(object[i][b], 0);
        memset(object[i], (int)(i & 0xff), size[i]);
    }
    for (size_t i = 0; i < 300; i++) {
        SCENARIO(i);
        for (size_t b = 0; b < size[i]; b++) assert_int_equal(object[i][b], i & 0xff);
    }
    static const size_t sizes[] = {2, 4, 8, 12, 16, 24, 40, 48, 136};
    for (size_t i = 0; i < 9; i++) {
        SCENARIO(i);
        size_t alignment = sizes[i] & -sizes[i];
        assert_string_equal(prn_bump_printf(&pool, "%s-%d", "name", 7), "name-7");
        assert_string_equal(prn_bump_strndup(&pool, "abcdef", 3), "abc");
        void *objects = prn_bump_alloc(&pool, i + 1, sizes[i]);
        assert_int_equal((uintptr_t)objects % (alignment < 16 ? alignment : 16), 0);
        memset(objects, 1, (i + 1) * sizes[i]);
    }
    assert_non_null(prn_bump_alloc(&pool, 0, 8));
    assert_null(prn_bump_alloc(&pool, SIZE_MAX / 2, 3));
    assert_null(prn_bump_alloc(&pool, SIZE_MAX, 1));
    prn_bump_release(&pool);
    assert_null(pool.block);

    prn_alloc_fail_at(1);
    assert_null(prn_bump_printf(&pool, "%d", 1));
    prn_alloc_fail_at(0);
    prn_bump_release(&pool);
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

/* As Linux prints it on a server, on a board with two kinds of cores, and on a processor that is not in the table. */
static void arm_cores_have_names(void **state)
{
    (void)state;
    char name[64];
    write_text("one", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor\t: 1\n"
                      "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
    assert_true(prn_arm_core_read(name, sizeof name, in_folder("one")));
    assert_string_equal(name, "Neoverse-N1");
    write_text("two", "CPU implementer\t: 0x41\nCPU part\t: 0xd05\nCPU implementer\t: 0x41\nCPU part\t: 0xd05\n"
                      "CPU implementer\t: 0x41\nCPU part\t: 0xd0b\n");
    assert_true(prn_arm_core_read(name, sizeof name, in_folder("two")));
    assert_string_equal(name, "2 x Cortex-A55 + 1 x Cortex-A76");
    assert_true(prn_arm_core_read(name, 8, in_folder("two")));
    assert_string_equal(name, "2 x Cor");
    write_text("new", "CPU implementer\t: 0x41\nCPU part\t: 0xfff\n");
    assert_true(prn_arm_core_read(name, sizeof name, in_folder("new")));
    assert_string_equal(name, "0x41:0xfff");
    write_text("x86", "model name\t: a processor\n");
    assert_false(prn_arm_core_read(name, sizeof name, in_folder("x86")));
    assert_false(prn_arm_core_read(name, sizeof name, in_folder("absent")));
}

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

/* Nested budgets, blocks that outlive them, and the messages of refusals. */
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
        SCENARIO(i);
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

/* This process has one thread, so it cannot use more processor time than has passed, even if only the cost of
 * reading is left. The system kernel gives processor times in microseconds; two are allowed. */
static void one_thread_uses_one_processor_at_most(void **state)
{
    (void)state;
    enum { MEASUREMENTS = 300 };
    int64_t used = 0, passed = 0;
    for (int i = 0; i < MEASUREMENTS; i++) {
        SCENARIO(i);
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

/* Tests of kernels skip themselves if prn_isa_has() says no, so the test also asks the compiler. */
static void isa_is_what_the_compiler_sees(void **state)
{
    (void)state;
#if defined(__x86_64__)
    if (getenv("PRONY_MAX_ISA")) skip();
    __builtin_cpu_init();
    assert_int_equal(prn_isa_has(PRN_HAS_AVX2),
                     __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"));
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        assert_true(prn_isa_has(PRN_HAS_AVX512));
#elif defined(__aarch64__)
    if (getenv("PRONY_MAX_ISA")) skip();
    uint64_t features;
    __asm__("mrs %0, ID_AA64ISAR0_EL1" : "=r"(features)); /* the kernel answers for the registers that it shows */
    assert_int_equal(prn_isa_has(PRN_HAS_DOTPROD), (features >> 44 & 15) >= 1);
    assert_int_equal(prn_isa_has(PRN_HAS_SHA), (features >> 12 & 15) >= 1);
    __asm__("mrs %0, ID_AA64ISAR1_EL1" : "=r"(features));
    assert_int_equal(prn_isa_has(PRN_HAS_I8MM), (features >> 52 & 15) >= 1);
#endif
}

static void isa_is_what_the_features_carry(void **state)
{
    (void)state;
    bool fused = false;
    for (const char *const *feature = prn_isa_features(); *feature; feature++)
        fused |= strcmp(*feature, "avx2") == 0 || strcmp(*feature, "asimd") == 0;
    if (prn_isa_has(PRN_HAS_FMA)) assert_true(fused);
    assert_true(prn_isa_has(0));
    if (prn_isa_has(PRN_HAS_AMX)) assert_string_equal(prn_isa_name(), "amx");
    assert_int_equal(prn_isa_has(PRN_HAS_FMA), strcmp(prn_isa_name(), "scalar") != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap_counts_and_fails),
        cmocka_unit_test(aligned_blocks_are_aligned),
        cmocka_unit_test(grown_arrays_keep_their_elements),
        cmocka_unit_test(pool_objects_are_zeroed_aligned_and_apart),
        cmocka_unit_test_setup_teardown(files_appear_whole_or_not_at_all, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(links_are_written_through, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(maps_refuse_what_is_no_file, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(lines_of_any_length_are_read, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(arm_cores_have_names, make_folder, remove_folder),
        cmocka_unit_test(core_lists_are_parsed),
        cmocka_unit_test_setup_teardown(quotas_of_all_ancestors_count, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(memory_of_all_ancestors_counts, make_folder, remove_folder),
        cmocka_unit_test(budgets_hold),
        cmocka_unit_test(machine_facts_agree_with_one_another),
        cmocka_unit_test(one_thread_uses_one_processor_at_most),
        cmocka_unit_test(heap_hooks_see_every_call),
        cmocka_unit_test(isa_is_what_the_compiler_sees),
        cmocka_unit_test(isa_is_what_the_features_carry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
