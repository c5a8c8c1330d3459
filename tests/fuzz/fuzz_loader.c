/* libFuzzer target: any bytes as a model; whatever loads is read from end to end. */
#include "tests/support/model_walk.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    prn_model_file *file;
    prony_error error = {0};
    prony_status status = prn_model_parse(&file, "fuzz", data, size, &error);
    if (status == PRONY_OK) {
        (void)model_walk(file);
        prn_model_close(file);
    } else if (file || error.status != status || strncmp(error.message, "fuzz: ", 6) != 0) {
        abort();
    }
    return 0;
}
