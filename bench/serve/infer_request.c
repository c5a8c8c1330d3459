#include "bench/serve/infer_request.h"
#include "bench/serve/datatypes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BAD = 400, NO_MEMORY = 503, SHAPE_TEXT = 200, NAME_SHOWN = 80, MOST_ID = 1024 };

/* One tensor of the request as it is written, in any order of its members. */
typedef struct tensor_text {
    json_slice name, datatype, shape, data;
    int64_t binary_size; /* -1: none */
} tensor_text;

typedef struct parser {
    infer_request *out;
    const infer_signature *signature;
    json_scan scan;
    const char *binary; /* the next tensor's bytes */
    size_t binary_left;
    bool binary_output; /* of all outputs that do not say it */
    char *message;
} parser;

int infer_fail(char message[INFER_MESSAGE], int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, INFER_MESSAGE, format, arguments);
    va_end(arguments);
    return status;
}

static int refuse_json(const parser *p)
{
    return infer_fail(p->message, BAD, "invalid JSON: %s at byte %zu",
                      p->scan.problem ? p->scan.problem : "a value is missing", p->scan.at);
}

static const char *shape_text(const prony_shape *shape, char text[SHAPE_TEXT])
{
    size_t used = (size_t)snprintf(text, SHAPE_TEXT, "[");
    for (int i = 0; i < shape->rank && used + 32 < SHAPE_TEXT; i++)
        used += (size_t)snprintf(text + used, SHAPE_TEXT - used, "%s%lld", i ? "," : "", (long long)shape->dim[i]);
    snprintf(text + used, SHAPE_TEXT - used, "]");
    return text;
}

/* ---- members ---- */

static bool parse_bool(json_slice text, bool *out)
{
    *out = json_equals(text, "true");
    return *out || json_equals(text, "false");
}

/* Parameters of a tensor: binary_data_size of an input, binary_data of an output. Unknown ones are passed. */
static bool parse_tensor_parameters(parser *p, int64_t *binary_size, bool *binary)
{
    json_slice key, value;
    for (bool first = true; json_next_member(&p->scan, &first, &key);) {
        if (!json_value(&p->scan, &value)) return false;
        if (binary_size && json_equals(key, "binary_data_size") &&
            (!json_integer(value, binary_size) || *binary_size < 0)) {
            p->scan.problem = "binary_data_size is not a number of bytes";
            return false;
        }
        if (binary && json_equals(key, "binary_data") && !parse_bool(value, binary)) {
            p->scan.problem = "binary_data is not true or false";
            return false;
        }
    }
    return !p->scan.problem;
}

static bool parse_tensor(parser *p, tensor_text *tensor)
{
    json_slice key;
    *tensor = (tensor_text){.binary_size = -1};
    for (bool first = true; json_next_member(&p->scan, &first, &key);) {
        bool ok;
        if (json_equals(key, "name"))
            ok = json_string(&p->scan, &tensor->name);
        else if (json_equals(key, "datatype"))
            ok = json_string(&p->scan, &tensor->datatype);
        else if (json_equals(key, "parameters"))
            ok = parse_tensor_parameters(p, &tensor->binary_size, NULL);
        else
            ok = json_value(&p->scan, json_equals(key, "shape")  ? &tensor->shape
                                      : json_equals(key, "data") ? &tensor->data
                                                                 : NULL);
        if (!ok) return false;
    }
    return !p->scan.problem;
}

/* true: the JSON string is this name. Names of models may hold any character, so escapes count. */
static bool name_is(json_slice raw, const char *name)
{
    char text[1024];
    if (!memchr(raw.text, '\\', raw.size)) return json_equals(raw, name);
    return raw.size < sizeof text && json_unescape(raw, text) == strlen(name) && memcmp(text, name, strlen(name)) == 0;
}

/* ---- inputs ---- */

static int parse_dims(parser *p, const tensor_text *t, const char *input, prony_shape *out)
{
    json_scan scan = {.text = t->shape.text, .size = t->shape.size};
    json_slice value;
    out->rank = 0;
    for (bool first = true; json_next_element(&scan, &first);) {
        if (!json_value(&scan, &value)) break;
        int64_t dim;
        if (!json_integer(value, &dim) || dim < 0)
            return infer_fail(p->message, BAD, "model '%s': input '%s': dimension %d, %.*s, is not a size",
                              p->signature->model, input, out->rank, (int)(value.size > 40 ? 40 : value.size),
                              value.text);
        if (out->rank == PRONY_MAX_RANK)
            return infer_fail(p->message, BAD, "model '%s': input '%s': more than %d dimensions", p->signature->model,
                              input, PRONY_MAX_RANK);
        out->dim[out->rank++] = dim;
    }
    if (scan.problem)
        return infer_fail(p->message, BAD, "model '%s': input '%s': shape: %s", p->signature->model, input,
                          scan.problem);
    return 0;
}

/* Type and shape as the model declares them. */
static int check_shape(parser *p, const prony_value_info *info, const prony_value *value)
{
    char given[SHAPE_TEXT], wanted[SHAPE_TEXT];
    bool fits = info->shape.rank < 0 || info->shape.rank == value->shape.rank;
    for (int d = 0; fits && d < info->shape.rank; d++)
        fits = info->shape.dim[d] < 0 || info->shape.dim[d] == value->shape.dim[d];
    if (info->dtype != value->dtype)
        return infer_fail(p->message, BAD, "model '%s': input '%s' has the datatype %s; wanted %s", p->signature->model,
                          info->name, datatype_name(value->dtype), datatype_name(info->dtype));
    if (!fits)
        return infer_fail(p->message, BAD, "model '%s': input '%s' has the shape %s; wanted %s (-1: any size)",
                          p->signature->model, info->name, shape_text(&value->shape, given),
                          shape_text(&info->shape, wanted));
    if (prony_shape_numel(&value->shape) < 0 ||
        prony_dtype_bytes(value->dtype, prony_shape_numel(&value->shape)) >= SIZE_MAX / 2)
        return infer_fail(p->message, BAD, "model '%s': input '%s': the shape %s has too many elements",
                          p->signature->model, info->name, shape_text(&value->shape, given));
    return 0;
}

/* Binds one input of the request to the model's input of that name. Returns 0 or an HTTP status with a message. Binary
 * data lie behind the JSON in the order of the inputs, so p->binary advances past each. `owned` are the memory that the
 * request frees: two pointers an input, for elements and for the bytes of strings. */
static int take_input(parser *p, const tensor_text *t)
{
    const infer_signature *s = p->signature;
    size_t index = 0;
    if (!t->name.text) return infer_fail(p->message, BAD, "model '%s': an input has no name", s->model);
    while (index < s->input_count && !name_is(t->name, s->inputs[index]->name)) index++;
    int shown = t->name.size > NAME_SHOWN ? NAME_SHOWN : (int)t->name.size;
    if (index == s->input_count)
        return infer_fail(p->message, BAD, "model '%s' has no input '%.*s'", s->model, shown, t->name.text);
    const char *name = s->inputs[index]->name;
    prony_value *value = &p->out->values[index];
    if (p->out->inputs[index])
        return infer_fail(p->message, BAD, "model '%s': input '%s' is given twice", s->model, name);
    if (!t->datatype.text || !t->shape.text)
        return infer_fail(p->message, BAD, "model '%s': input '%s' has no %s", s->model, name,
                          t->datatype.text ? "shape" : "datatype");
    value->kind = PRONY_TENSOR;
    value->dtype = datatype_find(t->datatype.text, t->datatype.size);
    if (value->dtype == PRONY_UNDEFINED)
        return infer_fail(p->message, BAD, "model '%s': input '%s': unknown datatype '%.*s'", s->model, name,
                          (int)(t->datatype.size > 40 ? 40 : t->datatype.size), t->datatype.text);
    int status = parse_dims(p, t, name, &value->shape);
    if (!status) status = check_shape(p, s->inputs[index], value);
    if (status) return status;
    if ((t->binary_size >= 0) == (t->data.text != NULL))
        return infer_fail(p->message, BAD, "model '%s': input '%s' needs either data or binary_data_size", s->model,
                          name);
    void **owned = &p->out->owned[2 * index];
    p->out->inputs[index] = value;
    if (t->data.text) return infer_read_data(value, owned, &p->out->allocated, t->data, s->model, name, p->message);
    if ((uint64_t)t->binary_size > p->binary_left)
        return infer_fail(p->message, BAD, "model '%s': input '%s': binary_data_size is %lld, but %zu bytes follow",
                          s->model, name, (long long)t->binary_size, p->binary_left);
    status = infer_read_binary(value, owned, &p->out->allocated, p->binary, (size_t)t->binary_size, s->model, name,
                               p->message);
    p->binary += t->binary_size;
    p->binary_left -= (size_t)t->binary_size;
    return status;
}

static int parse_inputs(parser *p)
{
    for (bool first = true; json_next_element(&p->scan, &first);) {
        tensor_text tensor;
        if (!parse_tensor(p, &tensor)) return refuse_json(p);
        int status = take_input(p, &tensor);
        if (status) return status;
    }
    return p->scan.problem ? refuse_json(p) : 0;
}

/* ---- outputs ---- */

static int take_output(parser *p, json_slice name, int binary)
{
    const infer_signature *s = p->signature;
    size_t index = 0;
    if (!name.text) return infer_fail(p->message, BAD, "model '%s': an output has no name", s->model);
    while (index < s->output_count && !name_is(name, s->outputs[index]->name)) index++;
    if (index == s->output_count)
        return infer_fail(p->message, BAD, "model '%s' has no output '%.*s'", s->model,
                          (int)(name.size > NAME_SHOWN ? NAME_SHOWN : name.size), name.text);
    p->out->wanted[index] = true;
    if (binary >= 0) p->out->binary[index] = binary;
    return 0;
}

/* `outputs` follow binary_data_output, wherever the latter stands: outputs without an own word get it at the end. */
static int parse_outputs(parser *p, json_slice text, bool *any)
{
    parser inner = *p;
    inner.scan = (json_scan){.text = text.text, .size = text.size};
    for (bool first = true; json_next_element(&inner.scan, &first);) {
        json_slice key, name = {0};
        bool binary = p->binary_output;
        for (bool member = true; json_next_member(&inner.scan, &member, &key);) {
            bool ok = json_equals(key, "name")         ? json_string(&inner.scan, &name)
                      : json_equals(key, "parameters") ? parse_tensor_parameters(&inner, NULL, &binary)
                                                       : json_value(&inner.scan, NULL);
            if (!ok) break;
        }
        if (inner.scan.problem) break;
        int status = take_output(p, name, binary);
        if (status) return status;
        *any = true;
    }
    return inner.scan.problem ? infer_fail(p->message, BAD, "outputs: %s", inner.scan.problem) : 0;
}

/* ---- the request ---- */

static bool parse_request_parameters(parser *p)
{
    json_slice key, value;
    for (bool first = true; json_next_member(&p->scan, &first, &key);) {
        if (!json_value(&p->scan, &value)) return false;
        if (json_equals(key, "binary_data_output") && !parse_bool(value, &p->binary_output)) {
            p->scan.problem = "binary_data_output is not true or false";
            return false;
        }
    }
    return !p->scan.problem;
}

static bool parse_id(parser *p)
{
    json_slice raw;
    if (!json_string(&p->scan, &raw)) return false;
    if (raw.size > MOST_ID) return p->scan.problem = "the id has more than 1024 bytes", false;
    free(p->out->id);
    p->out->id = malloc(raw.size + 1);
    if (!p->out->id) return p->scan.problem = "out of memory", false;
    p->out->id[json_unescape(raw, p->out->id)] = '\0';
    return true;
}

/* Every input once, nothing left of the binary data, and the outputs that the response has. */
static int finish_request(parser *p, json_slice outputs, bool has_inputs)
{
    const infer_signature *s = p->signature;
    bool any = false;
    int status = outputs.text ? parse_outputs(p, outputs, &any) : 0;
    if (status) return status;
    for (size_t i = 0; !any && i < s->output_count; i++) {
        p->out->wanted[i] = true;
        p->out->binary[i] = p->binary_output;
    }
    if (!has_inputs && s->input_count)
        return infer_fail(p->message, BAD, "model '%s': the request has no inputs", s->model);
    for (size_t i = 0; i < s->input_count; i++)
        if (!p->out->inputs[i])
            return infer_fail(p->message, BAD, "model '%s': input '%s' is missing", s->model, s->inputs[i]->name);
    if (p->binary_left)
        return infer_fail(p->message, BAD, "model '%s': %zu bytes follow the data of the last input", s->model,
                          p->binary_left);
    const prony_value *first = s->input_count ? p->out->inputs[0] : NULL;
    p->out->samples = first && first->shape.rank > 0 ? first->shape.dim[0] : 1;
    return 0;
}

static int parse_body(parser *p)
{
    json_slice key, outputs = {0};
    bool has_inputs = false;
    for (bool first = true; json_next_member(&p->scan, &first, &key);) {
        int status = 0;
        bool ok = true;
        if (json_equals(key, "inputs") && !has_inputs) {
            has_inputs = true;
            status = parse_inputs(p);
        } else if (json_equals(key, "inputs")) {
            status = infer_fail(p->message, BAD, "the request has inputs twice");
        } else if (json_equals(key, "id")) {
            ok = parse_id(p);
        } else if (json_equals(key, "parameters")) {
            ok = parse_request_parameters(p);
        } else {
            ok = json_value(&p->scan, json_equals(key, "outputs") ? &outputs : NULL);
        }
        if (status) return status;
        if (!ok) return refuse_json(p);
    }
    if (!json_end(&p->scan)) return refuse_json(p);
    return finish_request(p, outputs, has_inputs);
}

int infer_parse(infer_request *out, const infer_signature *signature, const char *body, size_t size, size_t header_size,
                char message[INFER_MESSAGE])
{
    *out =
        (infer_request){.input_count = signature->input_count, .output_count = signature->output_count, .samples = 1};
    out->values = calloc(signature->input_count + 1, sizeof *out->values);
    out->inputs = calloc(signature->input_count + 1, sizeof *out->inputs);
    out->owned = calloc(2 * signature->input_count + 1, sizeof *out->owned);
    out->wanted = calloc(signature->output_count + 1, sizeof *out->wanted);
    out->binary = calloc(signature->output_count + 1, sizeof *out->binary);
    if (!out->values || !out->inputs || !out->owned || !out->wanted || !out->binary)
        return infer_fail(message, NO_MEMORY, "out of memory");
    size_t json_size = header_size == SIZE_MAX ? size : header_size;
    if (json_size > size)
        return infer_fail(message, BAD, "Inference-Header-Content-Length is %zu, but the body has %zu bytes", json_size,
                          size);
    parser p = {.out = out, .signature = signature, .message = message};
    p.scan = (json_scan){.text = body, .size = json_size};
    p.binary = body + json_size;
    p.binary_left = size - json_size;
    return parse_body(&p);
}

void infer_request_free(infer_request *r)
{
    for (size_t i = 0; r->owned && i < 2 * r->input_count; i++) free(r->owned[i]);
    free(r->values);
    free(r->inputs);
    free(r->owned);
    free(r->wanted);
    free(r->binary);
    free(r->id);
    *r = (infer_request){0};
}

/* ---- the response ---- */

static size_t binary_bytes(const prony_value *value)
{
    int64_t count = prony_shape_numel(&value->shape);
    if (value->dtype != PRONY_STRING) return prony_dtype_bytes(value->dtype, count);
    size_t bytes = 0;
    for (int64_t i = 0; i < count; i++) bytes += 4 + ((const prony_string *)value->data)[i].size;
    return bytes;
}

static void put_binary(text_buffer *to, const prony_value *value)
{
    int64_t count = prony_shape_numel(&value->shape);
    if (value->dtype != PRONY_STRING) {
        buffer_bytes(to, value->data, prony_dtype_bytes(value->dtype, count));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const prony_string *text = (const prony_string *)value->data + i;
        unsigned char length[4];
        for (int b = 0; b < 4; b++) length[b] = (unsigned char)(text->size >> (8 * b) & 0xff);
        buffer_bytes(to, length, sizeof length);
        buffer_bytes(to, text->data, text->size);
    }
}

static void put_output(text_buffer *to, const prony_value_info *info, const prony_value *value, bool binary)
{
    buffer_text(to, "{\"name\":");
    buffer_json(to, info->name, strlen(info->name));
    buffer_format(to, ",\"datatype\":\"%s\",\"shape\":[", datatype_name(value->dtype));
    for (int d = 0; d < value->shape.rank; d++)
        buffer_format(to, "%s%lld", d ? "," : "", (long long)value->shape.dim[d]);
    if (binary) {
        buffer_format(to, "],\"parameters\":{\"binary_data_size\":%zu}}", binary_bytes(value));
        return;
    }
    buffer_text(to, "],\"data\":[");
    int64_t count = prony_shape_numel(&value->shape);
    for (int64_t i = 0; i < count && !to->failed; i++) {
        if (i) buffer_bytes(to, ",", 1);
        datatype_put(to, value->dtype, value->data, (size_t)i);
    }
    buffer_text(to, "]}");
}

bool infer_respond(text_buffer *to, const infer_signature *s, const infer_request *request, const char *version,
                   const prony_value *const *values, size_t *header_size)
{
    bool any = false, first = true;
    buffer_text(to, "{\"model_name\":");
    buffer_json(to, s->model, strlen(s->model));
    buffer_format(to, ",\"model_version\":\"%s\"", version);
    if (request->id) {
        buffer_text(to, ",\"id\":");
        buffer_json(to, request->id, strlen(request->id));
    }
    buffer_text(to, ",\"outputs\":[");
    for (size_t i = 0; i < s->output_count; i++) {
        if (!request->wanted[i]) continue;
        if (!first) buffer_text(to, ",");
        put_output(to, s->outputs[i], values[i], request->binary[i]);
        first = false;
        any = any || request->binary[i];
    }
    buffer_text(to, "]}");
    *header_size = any ? to->size : SIZE_MAX;
    for (size_t i = 0; i < s->output_count; i++)
        if (request->wanted[i] && request->binary[i]) put_binary(to, values[i]);
    return !to->failed;
}
