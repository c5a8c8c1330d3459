/* Shared by the loader's tests: models that must load or be refused, and a folder for files. */
#ifndef PRN_TESTS_SUPPORT_LOADER_CHECKS_H
#define PRN_TESTS_SUPPORT_LOADER_CHECKS_H

#include "loaders/onnx/model.h"
#include "tests/support/model_builder.h"

#define TEST_DATA "/usr/share/libonnx-testdata/data"
/* Skips the calling case, with a line, on a machine without ONNX's test data (Debian: libonnx-testdata). */
void skip_without_test_data(void);

/* Finishes and parses; fails the test if it is refused. The builder must outlive the file. */
prn_model_file *must_load(model_builder *m);
/* The model must be refused with `status` and a message that names the file and contains `text`. */
void must_refuse_bytes(const void *data, size_t size, prony_status status, const char *text);
/* As above; finishes and frees the builder. */
void must_refuse(model_builder *m, prony_status status, const char *text);

/* A folder of the test's own, removed with everything directly in it by folder_remove. */
const char *folder_make(void);
void folder_remove(void);
/* "FOLDER/name"; borrowed until the eighth call after. */
const char *folder_path(const char *name);
void folder_write(const char *name, const void *data, size_t size);

#endif
