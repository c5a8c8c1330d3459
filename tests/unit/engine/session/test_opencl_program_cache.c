/* Programs of an OpenCL device in the user's cache folder: a later opening of the device compiles nothing; files that are
 * damaged, foreign or another driver's are compiled anew and replaced; folders that cannot be written are no error; the
 * oldest files go first. Skipped without OpenCL. */
#define _GNU_SOURCE
#include "failure_trace.h"
#include "tests/support/device_here.h"
#include "tests/support/model_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef PRN_HAVE_OPENCL
#include "base/hash/sha256.h"
#include "engine/session/session.h"
#include "ops/vendor/opencl/opencl_program_cache.h"
#include "tests/support/cache_folder.h"

enum { MOST_FILES = 16, NAME = 64, PATH = 1500, HEAD = 146 }; /* "prony.program/1", key and hash, a line each */

static char folder[300];
static char names[MOST_FILES][NAME + 1];
static size_t name_count;

static int make_root(void **state)
{
    const int status = cache_folder_make(state);
    snprintf(folder, sizeof folder, "%s/prony/opencl", cache_folder);
    unsetenv("PRONY_DEVICE_CACHE");
    return status;
}

static const char *path_of(const char *name)
{
    static char path[PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* The files of the cache, in order of their names. */
static size_t list_files(void)
{
    struct dirent **all = NULL;
    const int count = scandir(folder, &all, NULL, alphasort);
    name_count = 0;
    for (int i = 0; i < count; i++) {
        if (strlen(all[i]->d_name) == NAME && name_count < MOST_FILES)
            memcpy(names[name_count++], all[i]->d_name, NAME + 1);
        free(all[i]);
    }
    free(all);
    return name_count;
}

static int remove_root(void **state)
{
    (void)state;
    char path[PATH];
    list_files();
    for (size_t i = 0; i < name_count; i++) unlink(path_of(names[i]));
    unlink(path_of("other"));
    rmdir(folder);
    snprintf(path, sizeof path, "%s/prony", cache_folder);
    rmdir(path);
    return rmdir(cache_folder);
}

static model_builder *two_programs(void)
{
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "4,8");
    mb_node(m, "Relu", "x", "r", "");
    mb_node(m, "Softmax", "r", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "4,8");
    return m;
}

typedef struct opened {
    size_t programs, loaded;
    float y[32];
} opened;

/* A session on the device, which is closed again, so that the next one has to load or compile. */
static opened open_once(void)
{
    float x[32];
    for (int i = 0; i < 32; i++) x[i] = (float)(i % 5) - 2;
    model_run r = {.options = {.device = "opencl"}};
    mr_open(&r, two_programs());
    mr_set(&r, "x", PRONY_FLOAT32, "4,8", x);
    opened out = {0};
    memcpy(out.y, mr_run(&r, 0)->data, sizeof out.y);
    const prn_device_use use = prn_device_usage(r.session->device);
    out.programs = use.programs;
    out.loaded = use.loaded;
    mr_close(&r);
    return out;
}

static void expect_loaded(size_t loaded)
{
    static opened first;
    const opened now = open_once();
    if (!first.programs) first = now;
    assert_int_equal(now.programs, first.programs);
    assert_int_equal(now.loaded, loaded);
    assert_memory_equal(now.y, first.y, sizeof first.y);
}

static void the_second_opening_compiles_nothing(void **state)
{
    (void)state;
    expect_loaded(0);
    const size_t programs = open_once().programs;
    assert_true(programs >= 2);
    assert_int_equal(list_files(), programs);
    expect_loaded(programs);
}

static void change_file(const char *name, long at, int by)
{
    FILE *file = fopen(path_of(name), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    const int was = fgetc(file);
    assert_int_not_equal(was, EOF);
    assert_int_equal(fseek(file, -1, SEEK_CUR), 0);
    fputc(was ^ by, file);
    assert_int_equal(fclose(file), 0);
}

static void damaged_files_are_replaced(void **state)
{
    (void)state;
    open_once();
    const size_t programs = list_files();
    static const long places[] = {0, 20, 100, HEAD, -1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        SCENARIO(i);
        change_file(names[i % programs], places[i], 1);
        expect_loaded(programs - 1);
        expect_loaded(programs);
    }
    static const long lengths[] = {0, 10, HEAD, HEAD + 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        SCENARIO(i);
        assert_int_equal(truncate(path_of(names[0]), lengths[i]), 0);
        expect_loaded(programs - 1);
        expect_loaded(programs);
    }
}

static void copy_file(const char *from, const char *to)
{
    static char bytes[1 << 22];
    FILE *in = fopen(path_of(from), "rb");
    assert_non_null(in);
    const size_t size = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    assert_true(size > HEAD && size < sizeof bytes);
    FILE *out = fopen(path_of(to), "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

static void foreign_files_are_replaced(void **state)
{
    (void)state;
    open_once();
    const size_t programs = list_files();
    copy_file(names[0], names[1]); /* whole, but of another program */
    expect_loaded(programs - 1);
    expect_loaded(programs);
    static const char binary[] = "no program of this driver";
    prn_sha256 hash;
    char sum[65];
    prn_sha256_init(&hash);
    prn_sha256_add(&hash, binary, sizeof binary);
    prn_sha256_text(&hash, sum);
    FILE *out = fopen(path_of(names[0]), "wb"); /* its hashes are right, but the driver does not take it */
    assert_non_null(out);
    fprintf(out, "prony.program/1\n%s\n%s\n", names[0], sum);
    assert_int_equal(fwrite(binary, 1, sizeof binary, out), sizeof binary);
    assert_int_equal(fclose(out), 0);
    expect_loaded(programs - 1);
    expect_loaded(programs);
}

static void a_folder_that_cannot_be_made_is_no_error(void **state)
{
    (void)state;
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
    expect_loaded(0);
    char file[PATH];
    snprintf(file, sizeof file, "%s/file", cache_folder);
    FILE *made = fopen(file, "w");
    assert_non_null(made);
    fclose(made);
    setenv("XDG_CACHE_HOME", file, 1);
    expect_loaded(0);
    unlink(file);
}

static void it_can_be_switched_off(void **state)
{
    (void)state;
    setenv("PRONY_DEVICE_CACHE", "off", 1);
    expect_loaded(0);
    assert_int_equal(list_files(), 0);
    unsetenv("PRONY_DEVICE_CACHE");
    const size_t programs = open_once().programs;
    setenv("PRONY_DEVICE_CACHE", "off", 1);
    expect_loaded(0);
    unsetenv("PRONY_DEVICE_CACHE");
    expect_loaded(programs);
}

static void set_age(const char *name, long seconds)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {0}};
    clock_gettime(CLOCK_REALTIME, &times[1]);
    times[1].tv_sec -= seconds;
    assert_int_equal(utimensat(AT_FDCWD, path_of(name), times, 0), 0);
}

static bool is_there(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

static void the_oldest_go_first(void **state)
{
    (void)state;
    char recent[NAME + 1], old[NAME + 1];
    struct stat is;
    prn_device *device = NULL;
    open_once();
    list_files();
    copy_file(names[0], "other"); /* not a name of the cache */
    memcpy(recent, names[0], sizeof recent);
    memcpy(old, names[1], sizeof old);
    set_age(recent, 100);
    set_age(old, 200);
    open_once(); /* a use makes them new */
    assert_int_equal(stat(path_of(old), &is), 0);
    assert_true(time(NULL) - is.st_mtime < 90);
    set_age(recent, 100);
    set_age(old, 200);
    set_age("other", 9000);
    assert_int_equal(prn_device_open(&device, "opencl", "test", NULL), PRONY_OK);
    cl_kernel kernel = NULL;
    assert_int_equal(prn_opencl_kernel(device, &prn_opencl_peaks, "", "nothing", &kernel, NULL), PRONY_OK);
    assert_int_equal(list_files(), 3);
    opencl_recipe recipe = {.key = "0000000000000000000000000000000000000000000000000000000000000000"};
    uint64_t all = 0;
    for (size_t i = 0; i < name_count; i++) {
        assert_int_equal(stat(path_of(names[i]), &is), 0);
        all += (uint64_t)is.st_size;
    }
    assert_int_equal(stat(path_of(old), &is), 0);
    /* One more file: without the oldest one there is room for the others, and not a byte more. */
    size_t added = 0;
    assert_int_equal(
        prn_opencl.clGetProgramInfo(device->programs->program, CL_PROGRAM_BINARY_SIZES, sizeof added, &added, NULL),
        CL_SUCCESS);
    prn_opencl_program_cache_keep(&recipe, device->programs->program, all + added + HEAD - (uint64_t)is.st_size);
    assert_false(is_there(old));
    assert_true(is_there(recent));
    assert_true(is_there(recipe.key));
    assert_true(is_there("other"));
    prn_opencl_program_cache_keep(&recipe, device->programs->program, added + HEAD);
    assert_false(is_there(recent));
    assert_int_equal(list_files(), 1);
    assert_true(is_there(recipe.key));
    prn_opencl_program_cache_keep(&recipe, device->programs->program, 1); /* larger than all: not kept */
    prn_opencl_kernel_release(device, kernel);
    prn_device_release(device);
}

/* Entries of the folder, whatever their names. */
static int entries(void)
{
    struct dirent **all = NULL;
    const int count = scandir(folder, &all, NULL, NULL);
    for (int i = 0; i < count; i++) free(all[i]);
    free(all);
    return count - 2; /* . and .. */
}

/* A disk that is full in the middle of a file, as a limit of the file's size: nothing is left of the file, and with room it
 * is written. */
static void a_full_disk_leaves_no_file(void **state)
{
    (void)state;
    struct rlimit before, full;
    prn_device *device = NULL;
    cl_kernel kernel = NULL;
    open_once();
    const int files = entries();
    opencl_recipe recipe = {.key = "1111111111111111111111111111111111111111111111111111111111111111"};
    assert_int_equal(prn_device_open(&device, "opencl", "test", NULL), PRONY_OK);
    assert_int_equal(prn_opencl_kernel(device, &prn_opencl_peaks, "", "nothing", &kernel, NULL), PRONY_OK);
    const int with_program = entries();
    assert_int_equal(with_program, files + 1);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    full = before;
    for (rlim_t room = 0; room <= HEAD + 64; room += (HEAD + 64) / 4) {
        full.rlim_cur = room;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
        prn_opencl_program_cache_keep(&recipe, device->programs->program, UINT64_C(1) << 30);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(entries(), with_program);
    }
    signal(SIGXFSZ, handler);
    prn_opencl_program_cache_keep(&recipe, device->programs->program, UINT64_C(1) << 30);
    assert_int_equal(entries(), with_program + 1);
    prn_opencl_kernel_release(device, kernel);
    prn_device_release(device);
}

/* Processes that compile the same programs for an empty folder at once: each has the right result, and the files that they
 * leave are whole. */
static void processes_write_at_once(void **state)
{
    (void)state;
    enum { PROCESSES = 4 };
    pid_t children[PROCESSES];
    char *arguments[] = {(char[]){"/proc/self/exe"}, (char[]){"child"}, NULL};
    for (int c = 0; c < PROCESSES; c++)
        assert_int_equal(posix_spawn(&children[c], "/proc/self/exe", NULL, NULL, arguments, environ), 0);
    for (int c = 0; c < PROCESSES; c++) {
        int status = 0;
        assert_int_equal(waitpid(children[c], &status, 0), children[c]);
        assert_int_equal(status, 0);
    }
    const size_t files = list_files();
    assert_true(files >= 2);
    assert_int_equal(entries(), (int)files); /* nothing half written */
    expect_loaded(files);
}

/* One of these processes: opens a session, and checks its result. */
static int child(void)
{
    const opened now = open_once();
    float sum = 0;
    for (int i = 0; i < 32; i++) sum += now.y[i]; /* four rows of a Softmax */
    return sum > 3.999f && sum < 4.001f ? 0 : 1;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (!device_here()) return 77;
    if (argc > 1) return child();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_second_opening_compiles_nothing, make_root, remove_root),
        cmocka_unit_test_setup_teardown(damaged_files_are_replaced, make_root, remove_root),
        cmocka_unit_test_setup_teardown(foreign_files_are_replaced, make_root, remove_root),
        cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_made_is_no_error, make_root, remove_root),
        cmocka_unit_test_setup_teardown(it_can_be_switched_off, make_root, remove_root),
        cmocka_unit_test_setup_teardown(the_oldest_go_first, make_root, remove_root),
        cmocka_unit_test_setup_teardown(a_full_disk_leaves_no_file, make_root, remove_root),
        /* Drivers of other processes keep files there. */
        cmocka_unit_test_setup_teardown(processes_write_at_once, make_root, cache_folder_remove),
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
