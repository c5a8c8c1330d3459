/* Paths and their methods; the protocol's metadata and health, the live page. Inference itself is http_infer.c's. */
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

enum { GET = 1, HEAD = 2, POST = 4, READ = GET | HEAD };

static const struct {
    const char *path;
    route_target target;
    unsigned methods;
} fixed_paths[] = {
    {"/", ROUTE_PAGE, READ},
    {"/live", ROUTE_LIVE, READ},
    {"/events", ROUTE_EVENTS, GET},
    {"/metrics", ROUTE_METRICS, READ},
    {"/v2", ROUTE_SERVER, READ},
    {"/v2/", ROUTE_SERVER, READ},
    {"/v2/health/live", ROUTE_HEALTH_LIVE, READ},
    {"/v2/health/ready", ROUTE_HEALTH_READY, READ},
    {"/v2/models", ROUTE_MODELS, READ},
    {"/v2/models/", ROUTE_MODELS, READ},
};

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

static int shown_length(size_t length)
{
    return length > 80 ? 80 : (int)length;
}

/* /NAME[/versions/V][/ready|/infer] behind /v2/models. */
static service_route route_model(service *s, const char *path, service_answer *answer)
{
    const service_route unknown = {.target = ROUTE_UNKNOWN};
    const char *segment = "";
    size_t length = 0;
    next_segment(&path, &segment, &length);
    served_model *model = route_find_model(s, segment, length);
    if (!model) {
        answer_error(answer, 404, "unknown model '%.*s'; GET /v2/models lists the models", shown_length(length),
                     segment);
        return unknown;
    }
    bool more = next_segment(&path, &segment, &length);
    if (more && segment_is(segment, length, "versions")) {
        more = next_segment(&path, &segment, &length);
        if (!more || !version_is(model, segment, length)) {
            answer_error(answer, 404, "model '%s' has no version '%.*s'", model->name, more ? shown_length(length) : 0,
                         segment);
            return unknown;
        }
        more = next_segment(&path, &segment, &length);
    }
    if (!more) return (service_route){ROUTE_MODEL, READ, model};
    if (segment_is(segment, length, "infer") && !*path) return (service_route){ROUTE_INFER, POST, model};
    if (segment_is(segment, length, "ready") && !*path) return (service_route){ROUTE_MODEL_READY, READ, model};
    answer_error(answer, 404, "model '%s' has no '%.*s'; wanted infer or ready", model->name, shown_length(length),
                 segment);
    return unknown;
}

/* The target of a path, whatever the method. */
static service_route find_route(service *s, const char *url, service_answer *answer)
{
    static const char models[] = "/v2/models/";
    for (size_t i = 0; i < sizeof fixed_paths / sizeof *fixed_paths; i++)
        if (strcmp(url, fixed_paths[i].path) == 0)
            return (service_route){fixed_paths[i].target, fixed_paths[i].methods, NULL};
    if (strncmp(url, models, sizeof models - 1) == 0) return route_model(s, url + sizeof models - 2, answer);
    bool v2 = strncmp(url, "/v2", 3) == 0 && url[3] == '/';
    answer_error(answer, 404,
                 v2 ? "unknown path; wanted /v2, /v2/health/live, /v2/health/ready or /v2/models/NAME"
                    : "unknown path; wanted /, /metrics, /live, /events or /v2");
    return (service_route){.target = ROUTE_UNKNOWN};
}

static unsigned method_bit(const char *method)
{
    return strcmp(method, "GET") == 0    ? GET
           : strcmp(method, "HEAD") == 0 ? HEAD
           : strcmp(method, "POST") == 0 ? POST
                                         : 0;
}

service_route service_find_route(service *s, const char *method, const char *url, service_answer *answer)
{
    service_route route = find_route(s, url, answer);
    if (route.target == ROUTE_UNKNOWN || route.methods & method_bit(method)) return route;
    const char *allow = route.methods == READ ? "GET, HEAD" : route.methods == GET ? "GET" : "POST";
    answer_error(answer, 405, "method %.20s is not supported; this path has %s", method, allow);
    answer->allow = allow;
    return (service_route){.target = ROUTE_UNKNOWN};
}

/* Answers the targets that need no batcher and no stream; s->lock is not held. A model's version is held while it is
 * described, so a reload cannot free it meanwhile. */
void service_answer_route(service *s, const service_route *route, service_answer *answer)
{
    model_version *v;
    bool ready = !atomic_load(&s->draining);
    answer->status = 200;
    switch (route->target) {
    case ROUTE_SERVER:
        answer_server(answer);
        break;
    case ROUTE_HEALTH_LIVE:
    case ROUTE_HEALTH_READY:
        answer_health(s, answer, route->target == ROUTE_HEALTH_LIVE);
        break;
    case ROUTE_MODELS:
        answer_models(s, answer);
        break;
    case ROUTE_MODEL:
        v = served_get(route->model);
        put_model(&answer->body, v);
        served_put(v);
        break;
    case ROUTE_MODEL_READY:
        answer->status = ready ? 200 : 503;
        buffer_format(&answer->body, "{\"name\":\"%s\",\"ready\":%s}", route->model->name, ready ? "true" : "false");
        break;
    case ROUTE_LIVE:
        service_live(s, &answer->body);
        break;
    case ROUTE_PAGE:
        answer->type = "text/html; charset=utf-8";
        answer->page = true;
        service_page(&answer->body);
        break;
    case ROUTE_UNKNOWN: /* the exchange answers these itself */
    case ROUTE_INFER:
    case ROUTE_METRICS:
    case ROUTE_EVENTS:
        break;
    }
}
