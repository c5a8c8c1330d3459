/* The loader and the file system: missing or wrong external data, unreadable files, and the n-th allocation made to
 * fail, for every n, while whole models load. */
#include "tests/support/loader_checks.h"

#include "base/memory/alloc.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BAD PRONY_INVALID_MODEL

/* ---- external data ---- */

static void put_entry(mb_bytes *tensor, const char *key, const char *value)
{
    mb_bytes entry = {0};
    mb_put_text(&entry, 1, key);
    mb_put_text(&entry, 2, value);
    mb_put_message(tensor, 13, &entry);
    mb_release(&entry);
}

static model_builder *external_model(const char *location, const char *offset, const char *length)
{
    mb_bytes tensor = {0};
    model_builder *m = mb_begin(13);
    mb_put_int(&tensor, 1, 4);
    mb_put_int(&tensor, 2, PRONY_FLOAT32);
    mb_put_text(&tensor, 8, "w");
    mb_put_int(&tensor, 14, 1);
    put_entry(&tensor, "location", location);
    if (offset) put_entry(&tensor, "offset", offset);
    if (length) put_entry(&tensor, "length", length);
    mb_put_message(mb_raw_graph(m), 5, &tensor);
    mb_release(&tensor);
    return m;
}

static void refuse_external(const char *location, const char *offset, const char *length, prony_status status,
                            const char *text)
{
    size_t size;
    model_builder *m = external_model(location, offset, length);
    const void *data = mb_finish(m, &size);
    folder_write("model.onnx", data, size);
    mb_free(m);
    prn_model_file *file = NULL;
    prony_error error = {0};
    prony_status got = prn_model_open(&file, folder_path("model.onnx"), NULL, false, &error);
    if (got != status || !strstr(error.message, text)) {
        fail_msg("%s: wanted '%s', got %s: %s", location, text, prony_status_text(got), error.message);
    }
    assert_null(file);
}

static void test_external_data(void **state)
{
    (void)state;
    const char *folder = folder_make();
    char absolute[256], outside[256];
    snprintf(absolute, sizeof absolute, "%s/data", folder);
    snprintf(outside, sizeof outside, "../%s/data", strrchr(folder, '/') + 1);
    folder_write("data", "0123456789abcdef0123", 20);
    assert_int_equal(symlink("/etc/hostname", folder_path("link")), 0);
    assert_int_equal(symlink("/etc", folder_path("linked_folder")), 0);
    assert_int_equal(symlink("loop", folder_path("loop")), 0);

    refuse_external(absolute, NULL, NULL, BAD, "outside the model's folder");
    refuse_external(outside, NULL, NULL, BAD, "outside the model's folder");
    refuse_external("..", NULL, NULL, BAD, "outside the model's folder");
    refuse_external("a/../data", NULL, NULL, BAD, "outside the model's folder");
    refuse_external("a//../data", NULL, NULL, BAD, "outside the model's folder");
    refuse_external("./.././data", NULL, NULL, BAD, "outside the model's folder");
    refuse_external("//data", NULL, NULL, BAD, "outside the model's folder");
    refuse_external("data//", NULL, NULL, BAD, "outside the model's folder");
    refuse_external("data/.", NULL, NULL, BAD, "outside the model's folder");
    refuse_external("a//absent", NULL, NULL, PRONY_IO_ERROR, "'a/absent'");
    refuse_external("", NULL, NULL, BAD, "outside the model's folder");
    refuse_external("link", NULL, NULL, BAD, "link to outside");
    refuse_external("linked_folder/hostname", NULL, NULL, BAD, "link to outside");
    refuse_external("loop", NULL, NULL, PRONY_IO_ERROR, "loop");
    refuse_external("absent", NULL, NULL, PRONY_IO_ERROR, "absent");
    refuse_external("./", NULL, NULL, BAD, "outside the model's folder");
    refuse_external("data", "8", NULL, BAD, "'data' has 20 bytes, but needs 16 at offset 8");
    refuse_external("data", "999999999999999999", NULL, BAD, "at offset 999999999999999999");
    refuse_external("data", "99999999999999999999", NULL, BAD, "is not a byte count");
    refuse_external("data", "-1", NULL, BAD, "offset '-1' is not a byte count");
    refuse_external("data", "", NULL, BAD, "is not a byte count");
    refuse_external("data", "0", "20", BAD, "length is 20 bytes, but type and shape need 16");
    refuse_external("data", "0", "1x", BAD, "length '1x'");

    size_t size;
    model_builder *m = external_model("data", NULL, NULL);
    const void *data = mb_finish(m, &size);
    must_refuse_bytes(data, size, PRONY_UNSUPPORTED, "loaded from a file");
    mb_free(m);
    folder_remove();
}

static void test_files(void **state)
{
    (void)state;
    prn_model_file *file = NULL;
    prony_error error = {0};
    folder_make();
    assert_int_equal(prn_model_open(&file, folder_path("absent.onnx"), NULL, false, &error), PRONY_IO_ERROR);
    assert_non_null(strstr(error.message, "absent.onnx"));
    folder_write("empty.onnx", "", 0);
    assert_int_equal(prn_model_open(&file, folder_path("empty.onnx"), NULL, false, &error), BAD);
    assert_non_null(strstr(error.message, "empty.onnx"));
    assert_int_equal(prn_model_open(&file, "/tmp", NULL, false, NULL), PRONY_IO_ERROR);
    assert_null(file);
    prn_model_close(NULL);
    folder_remove();
}

/* ---- allocation failure ---- */

static void fail_every_allocation(const char *path)
{
    for (uint64_t n = 1;; n++) {
        prn_model_file *file = NULL;
        prony_error error = {0};
        prn_alloc_fail_at(n);
        prony_status status = prn_model_open(&file, path, NULL, false, &error);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (!failed) {
            assert_int_equal(status, PRONY_OK);
            assert_true(n > 5);
            prn_model_close(file);
            return;
        }
        assert_int_equal(status, PRONY_OUT_OF_MEMORY);
        assert_int_equal(error.status, PRONY_OUT_OF_MEMORY);
        assert_null(file);
    }
}

static void test_every_allocation_failure(void **state)
{
    (void)state;
    fail_every_allocation(PRN_SOURCE_DIR "/models/digits.onnx");
    size_t size;
    model_builder *m = external_model("data", NULL, NULL);
    for (int depth = 0; depth < 20; depth++) {
        mb_node(m, "Op", depth ? "w" : "", "y", "a=1 b=[1,2] c='x' d=['a','b']");
        mb_graph_begin(m, "g");
    }
    const void *data = mb_finish(m, &size);
    folder_make();
    folder_write("model.onnx", data, size);
    folder_write("data", "0123456789abcdef", 16);
    mb_free(m);
    fail_every_allocation(folder_path("model.onnx"));
    folder_remove();
}

static void test_every_allocation_failure_of_nested_graphs(void **state)
{
    (void)state;
    skip_without_test_data();
    fail_every_allocation(TEST_DATA "/node/test_sequence_map_add_2_sequences_expanded/model.onnx");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_external_data),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_every_allocation_failure),
        cmocka_unit_test(test_every_allocation_failure_of_nested_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
