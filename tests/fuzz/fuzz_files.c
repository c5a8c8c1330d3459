/* libFuzzer target: any bytes as an image, a zip archive of arrays, or a list of labels, by the first byte. */
#define _GNU_SOURCE
#include "loaders/label_file.h"
#include "loaders/tensors/npz.h"
#include "loaders/tensors/tensor_file.h"
#include "prony_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void as_image(const uint8_t *data, size_t size)
{
    static const prony_value_info port = {.name = "x", .dtype = PRONY_FLOAT32, .shape = {4, {1, 3, 16, 16}}};
    prony_image_options options = PRONY_IMAGE_OPTIONS_INIT;
    prony_value *value = NULL;
    prony_error error = {0};
    options.max_pixels = 1 << 20;
    options.resize = size % 2 ? PRONY_IMAGE_RESIZE_MARGIN : PRONY_IMAGE_RESIZE_FIT;
    prony_status status = prony_image_load_memory(&value, "fuzz", data, size, &port, &options, &error);
    if ((status == PRONY_OK) != (value != NULL) || error.status != status) abort();
    prony_value_release(value);
}

static void as_archive(const char *path)
{
    prn_npz *npz = NULL;
    prony_error error = {0};
    if (prn_npz_open(&npz, path, &error) != PRONY_OK) return;
    for (size_t i = 0; i < prn_npz_count(npz) && i < 16; i++) {
        prony_value *value = NULL;
        if (prn_npz_read(&value, npz, i, &error) == PRONY_OK) prn_value_free(value);
    }
    prn_npz_close(npz);
}

static void as_list(const char *path)
{
    prn_bump pool = {0};
    prn_label_list list;
    prony_error error = {0};
    if (prn_label_list_read(&list, &pool, path, &error) == PRONY_OK)
        for (size_t i = 0; i < list.count; i++)
            if (!*list.rows[i].label) abort();
    prn_bump_release(&pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && (*data == 0x89 || *data == 0xff)) {
        as_image(data, size);
        return 0;
    }
    char path[64];
    int file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || write(file, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (size && *data == 'P')
        as_archive(path);
    else
        as_list(path);
    close(file);
    return 0;
}
