/* Requests and responses of the Open Inference Protocol v2, without HTTP: bytes to tensors and back. */
#ifndef PRN_BENCH_SERVE_INFER_REQUEST_H
#define PRN_BENCH_SERVE_INFER_REQUEST_H

#include "bench/serve/json_scan.h"
#include "bench/serve/text_buffer.h"
#include "prony.h"

enum { INFER_MESSAGE = 1200 };

/* The model side of a request: its inputs and outputs, all tensors. */
typedef struct infer_signature {
    const char *model; /* its name in the service */
    const prony_value_info *const *inputs, *const *outputs;
    size_t input_count, output_count;
} infer_signature;

/* A parsed request. Tensors borrow from the body where its bytes are aligned, so the body must outlive the request. */
typedef struct infer_request {
    prony_value *values;        /* [input_count], in model order */
    const prony_value **inputs; /* pointers to them */
    void **owned;               /* [2 * input_count]: what to free */
    bool *wanted, *binary;      /* [output_count] */
    char *id;                   /* NULL: none */
    size_t input_count, output_count;
    size_t allocated; /* bytes of `owned` */
    int64_t samples;  /* first dimension of the first input; 1 without one */
} infer_request;

/* Parses the body. `header_size` is the length of its JSON (the binary tensor extension), SIZE_MAX: all of it. Returns
 * 0, or a status of HTTP with a message that names model, input and value. *out is to be freed in both cases. */
int infer_parse(infer_request *out, const infer_signature *signature, const char *body, size_t size, size_t header_size,
                char message[INFER_MESSAGE]);
void infer_request_free(infer_request *request);

/* Writes the response; *header_size receives the length of its JSON if binary tensors follow, SIZE_MAX otherwise.
 * `values` are all outputs of the model. false: memory ran out. */
bool infer_respond(text_buffer *to, const infer_signature *signature, const infer_request *request, const char *version,
                   const prony_value *const *values, size_t *header_size);

/* Formats the message, and returns `status`. */
int infer_fail(char message[INFER_MESSAGE], int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Reads the elements of `data`, a JSON array, into value->data, which it allocates; *owned are blocks to free, and
 * *allocated grows by their bytes. 0, or a status after a message. */
int infer_read_data(prony_value *value, void *owned[2], size_t *allocated, json_slice data, const char *model,
                    const char *input, char message[INFER_MESSAGE]);
/* The same from binary data, which it borrows where it is aligned. */
int infer_read_binary(prony_value *value, void *owned[2], size_t *allocated, const char *data, size_t size,
                      const char *model, const char *input, char message[INFER_MESSAGE]);

#endif
