/* Checks and files for the loader's tests. */
#include "tests/support/loader_checks.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

prn_model_file *must_load(model_builder *m)
{
    size_t size;
    const void *data = mb_finish(m, &size);
    prn_model_file *file = NULL;
    prony_error error = {0};
    prony_status status = prn_model_parse(&file, "built.onnx", data, size, &error);
    if (status != PRONY_OK) fail_msg("%s", error.message);
    return file;
}

void must_refuse_bytes(const void *data, size_t size, prony_status status, const char *text)
{
    prn_model_file *file = NULL;
    prony_error error = {0};
    prony_status got = prn_model_parse(&file, "built.onnx", data, size, &error);
    if (got != status || strncmp(error.message, "built.onnx: ", 12) != 0 || !strstr(error.message, text)) {
        fail_msg("wanted \"%s\" with '%s', got \"%s\": %s", prony_status_text(status), text, prony_status_text(got),
                 error.message);
    }
    assert_null(file);
    assert_int_equal(error.status, status);
}

void must_refuse(model_builder *m, prony_status status, const char *text)
{
    size_t size;
    const void *data = mb_finish(m, &size);
    must_refuse_bytes(data, size, status, text);
    mb_free(m);
}

static char folder[64];

const char *folder_make(void)
{
    strcpy(folder, "/tmp/prony_test_XXXXXX");
    if (!mkdtemp(folder)) fail_msg("no temporary folder");
    return folder;
}

void folder_remove(void)
{
    char pattern[128];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*", folder);
    if (glob(pattern, GLOB_PERIOD, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) unlink(found.gl_pathv[i]);
        globfree(&found);
    }
    rmdir(folder);
}

const char *folder_path(const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void folder_write(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(folder_path(name), "wb");
    assert_non_null(file);
    if (size) assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void skip_without_test_data(void)
{
    if (access(TEST_DATA "/node", R_OK) == 0) return;
    print_message("skipped: " TEST_DATA " is missing (Debian: libonnx-testdata)\n");
    skip();
}
