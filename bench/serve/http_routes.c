/* Paths: the protocol's metadata and health, the live page. Inference itself is http_infer.c's. */
#include "bench/serve/datatypes.h"
#include "bench/serve/service.h"

#include <stdarg.h>
#include <string.h>

enum { MESSAGE = 1500 };

void answer_error(service_answer *answer, int status, const char *format, ...)
{
    char message[MESSAGE];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    size_t size = length < 0 ? 0 : (size_t)length < sizeof message ? (size_t)length : sizeof message - 1;
    buffer_free(&answer->body);
    *answer = (service_answer){.status = status, .header_size = SIZE_MAX};
    buffer_text(&answer->body, "{\"error\":");
    buffer_json(&answer->body, message, size);
    buffer_text(&answer->body, "}");
}

/* ---- metadata ---- */

static void put_tensors(text_buffer *to, const char *key, const prony_value_info *const *infos, size_t count)
{
    buffer_format(to, ",\"%s\":[", key);
    for (size_t i = 0; i < count; i++) {
        buffer_text(to, i ? ",{\"name\":" : "{\"name\":");
        buffer_json(to, infos[i]->name, strlen(infos[i]->name));
        buffer_format(to, ",\"datatype\":\"%s\",\"shape\":[",
                      datatype_name(infos[i]->dtype) ? datatype_name(infos[i]->dtype) : "");
        for (int d = 0; d < infos[i]->shape.rank; d++)
            buffer_format(to, "%s%lld", d ? "," : "", (long long)infos[i]->shape.dim[d]);
        buffer_text(to, "]}");
    }
    buffer_text(to, "]");
}

static void put_model(text_buffer *to, const model_version *v)
{
    buffer_text(to, "{\"name\":");
    buffer_json(to, v->slot->name, strlen(v->slot->name));
    buffer_format(to, ",\"versions\":[\"%s\"],\"platform\":\"onnx_onnxv1\"", v->text);
    put_tensors(to, "inputs", v->signature.inputs, v->signature.input_count);
    put_tensors(to, "outputs", v->signature.outputs, v->signature.output_count);
    buffer_text(to, "}");
}

static void answer_server(service_answer *answer)
{
    answer->status = 200;
    buffer_format(&answer->body, "{\"name\":\"prony\",\"version\":\"%s\",\"extensions\":[\"binary_tensor_data\"]}",
                  prony_version());
}

static void answer_health(service *s, service_answer *answer, bool live)
{
    bool fine = live || !atomic_load(&s->draining);
    answer->status = fine ? 200 : 503;
    buffer_format(&answer->body, "{\"%s\":%s}", live ? "live" : "ready", fine ? "true" : "false");
}

static void answer_models(service *s, service_answer *answer)
{
    answer->status = 200;
    buffer_text(&answer->body, "{\"models\":[");
    for (size_t i = 0; i < s->model_count; i++) {
        model_version *v = served_get(&s->models[i]);
        if (i) buffer_text(&answer->body, ",");
        put_model(&answer->body, v);
        served_put(v);
    }
    buffer_text(&answer->body, "]}");
}

/* ---- paths ---- */

/* The next segment of the path; false: the path ends. */
static bool next_segment(const char **path, const char **segment, size_t *length)
{
    if (**path != '/') return false;
    *segment = *path + 1;
    *length = strcspn(*segment, "/");
    *path = *segment + *length;
    return *length > 0;
}

static bool segment_is(const char *segment, size_t length, const char *text)
{
    return length == strlen(text) && memcmp(segment, text, length) == 0;
}

static served_model *route_find_model(service *s, const char *name, size_t length)
{
    for (size_t i = 0; i < s->model_count; i++)
        if (segment_is(name, length, s->models[i].name)) return &s->models[i];
    return NULL;
}

/* true: the present version has this number. */
static bool version_is(served_model *slot, const char *text, size_t length)
{
    model_version *v = served_get(slot);
    bool same = segment_is(text, length, v->text);
    served_put(v);
    return same;
}

/* /v2/models/NAME[/versions/V][/ready|/infer]. `path` stands behind "models". */
static void route_model(service *s, const char *path, bool post, service_answer *answer, served_model **slot)
{
    const char *segment = "";
    size_t length = 0;
    if (!next_segment(&path, &segment, &length)) {
        if (post)
            answer_error(answer, 405, "the list of models has GET only");
        else
            answer_models(s, answer);
        return;
    }
    served_model *model = route_find_model(s, segment, length);
    int shown = length > 80 ? 80 : (int)length;
    if (!model) {
        answer_error(answer, 404, "unknown model '%.*s'; GET /v2/models lists the models", shown, segment);
        return;
    }
    bool more = next_segment(&path, &segment, &length);
    if (more && segment_is(segment, length, "versions")) {
        more = next_segment(&path, &segment, &length);
        if (!more || !version_is(model, segment, length)) {
            answer_error(answer, 404, "model '%s' has no version '%.*s'", model->name,
                         more ? (length > 80 ? 80 : (int)length) : 0, segment);
            return;
        }
        more = next_segment(&path, &segment, &length);
    }
    bool infer = more && segment_is(segment, length, "infer") && !*path;
    bool ready = more && segment_is(segment, length, "ready") && !*path;
    if (more && !infer && !ready) {
        answer_error(answer, 404, "model '%s' has no '%.*s'; wanted infer or ready", model->name,
                     length > 80 ? 80 : (int)length, segment);
    } else if (infer != post) {
        answer_error(answer, 405, infer ? "infer needs POST" : "this path has GET only");
    } else if (infer) {
        *slot = model;
    } else if (ready) {
        bool fine = !atomic_load(&s->draining);
        answer->status = fine ? 200 : 503;
        buffer_format(&answer->body, "{\"name\":\"%s\",\"ready\":%s}", model->name, fine ? "true" : "false");
    } else {
        model_version *v = served_get(model);
        answer->status = 200;
        put_model(&answer->body, v);
        served_put(v);
    }
}

static void route_v2(service *s, const char *path, bool post, service_answer *answer, served_model **slot)
{
    const char *segment;
    size_t length;
    if (!next_segment(&path, &segment, &length)) {
        if (post)
            answer_error(answer, 405, "this path has GET only");
        else
            answer_server(answer);
    } else if (segment_is(segment, length, "models")) {
        route_model(s, path, post, answer, slot);
    } else if (segment_is(segment, length, "health") && (strcmp(path, "/live") == 0 || strcmp(path, "/ready") == 0)) {
        if (post)
            answer_error(answer, 405, "this path has GET only");
        else
            answer_health(s, answer, strcmp(path, "/live") == 0);
    } else {
        answer_error(answer, 404, "unknown path; wanted v2, v2/health/live, v2/health/ready or v2/models/NAME");
    }
}

void service_route(service *s, const char *method, const char *url, service_answer *answer, served_model **slot)
{
    bool post = strcmp(method, "POST") == 0, get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if (!post && !get) {
        answer_error(answer, 405, "method %.20s is not supported", method);
    } else if (strncmp(url, "/v2", 3) == 0 && (url[3] == '/' || !url[3])) {
        route_v2(s, url + 3, post, answer, slot);
    } else if (post) {
        answer_error(answer, strcmp(url, "/") == 0 ? 405 : 404, "unknown path for POST; wanted v2/models/NAME/infer");
    } else if (strcmp(url, "/") == 0) {
        answer->status = 200;
        answer->type = "text/html; charset=utf-8";
        answer->page = true;
        service_page(&answer->body);
    } else if (strcmp(url, "/live") == 0) {
        answer->status = 200;
        service_live(s, &answer->body);
    } else {
        answer_error(answer, 404, "unknown path; wanted /, /metrics, /live, /events or /v2");
    }
}
