/* libFuzzer target: any bytes as the body of an inference request (bench/serve/infer_request.c). The first byte chooses
 * the model's signature and the length of the JSON part; tensors that parse go into a response. */
#include "bench/serve/datatypes.h"
#include "bench/serve/infer_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const seeds[] = {
    "\0{\"id\":\"a\\u00e9\",\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[2],\"data\":[0.5,[1e3]]},{"
    "\"name\":\"b\","
    "\"datatype\":\"INT64\",\"shape\":[1],\"data\":[3]}],\"outputs\":[{\"name\":\"y\"}]}",
    "\1{\"inputs\":[{\"name\":\"a\",\"datatype\":\"BYTES\",\"shape\":[2],\"data\":[\"x\",\"\\ud83d\\ude00\"]}]}",
    "\2{\"inputs\":[{\"name\":\"a\",\"datatype\":\"INT4\",\"shape\":[3],\"data\":[1,-8,7]}]}",
    "\3{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP16\",\"shape\":[1],\"data\":[65504]}]}",
    "\4{\"inputs\":[{\"name\":\"a\",\"datatype\":\"BOOL\",\"shape\":[2],\"parameters\":{\"binary_data_size\":2}}]}\1",
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *folder = getenv("PRN_FUZZ_SEEDS");
    char path[1024];
    (void)argc;
    (void)argv;
    for (size_t i = 0; folder && i < sizeof seeds / sizeof *seeds; i++) {
        snprintf(path, sizeof path, "%s/request_%zu", folder, i);
        FILE *file = fopen(path, "wb");
        if (!file) abort();
        fputc((int)i, file);
        fputs(seeds[i] + 1, file);
        if (fclose(file) != 0) abort();
    }
    return 0;
}

static void expect(bool holds)
{
    if (!holds) abort();
}

/* Writes the request's own tensors as if they were outputs, and reads the JSON back. */
static void respond(const infer_request *request, const infer_signature *signature)
{
    text_buffer text = {0};
    size_t header;
    expect(infer_respond(&text, signature, request, "1", request->inputs, &header));
    json_scan scan = {.text = text.data, .size = header == SIZE_MAX ? text.size : header};
    expect(json_value(&scan, NULL) && json_end(&scan));
    buffer_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const prony_dtype types[] = {PRONY_FLOAT32, PRONY_STRING, PRONY_INT4,         PRONY_FLOAT16,
                                        PRONY_BOOL,    PRONY_UINT8,  PRONY_FLOAT8E4M3FN, PRONY_COMPLEX64};
    if (size < 2) return 0;
    prony_value_info a = {.name = "a", .dtype = types[data[0] % 8], .shape = {1, {-1}}};
    prony_value_info b = {.name = "b", .dtype = PRONY_INT64, .shape = {.rank = -1}};
    prony_value_info y = a, z = b;
    y.name = "y";
    z.name = "z";
    const prony_value_info *inputs[] = {&a, &b}, *outputs[] = {&y, &z};
    size_t count = data[0] % 8 ? 1 : 2;
    infer_signature signature = {"m", inputs, outputs, count, count};
    infer_request request;
    char message[INFER_MESSAGE] = "";
    /* the body ends with NUL, as the service keeps it */
    char *body = malloc(size);
    expect(body != NULL);
    memcpy(body, data + 1, size - 1);
    body[size - 1] = '\0';
    const char *end = memchr(body, '\1', size - 1); /* the JSON ends there */
    int status = infer_parse(&request, &signature, body, size - 1, end ? (size_t)(end - body) : SIZE_MAX, message);
    expect(status == 0 ? !*message : (status == 400 || status == 503) && *message);
    if (status == 0) respond(&request, &signature);
    infer_request_free(&request);
    free(body);
    return 0;
}
