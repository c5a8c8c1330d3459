/* Headers, body, answer. libmicrohttpd calls exchange_handle when the headers are there, for each piece of the body,
 * once behind it, and again when a suspended connection is resumed. */
#include "bench/serve/http_exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { READ_ON = 16 << 20 };

typedef struct exchange {
    text_buffer body;
    size_t counted; /* of the body, in the service's sum; a job takes both */
    uint64_t seen;  /* bytes of the body that arrived */
    int refused;    /* status: the body is not kept; 0: it is */
    service_job *job;
} exchange;

static service_client *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* The time of a request counts from the end of the one before: the headers do not begin it anew. */
static void mark_client(service *s, struct MHD_Connection *connection, client_phase phase)
{
    service_client *c = client_of(connection);
    if (!c) return;
    pthread_mutex_lock(&s->lock);
    c->phase = phase;
    c->left = false;
    if (phase != CLIENT_SENDS) c->since_ns = prony_now_ns();
    pthread_mutex_unlock(&s->lock);
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* ---- answers ---- */

static void count_answer(service *s, int status)
{
    int i = 0;
    while (i < STATS_STATUSES - 1 && stats_statuses[i] != status) i++;
    pthread_mutex_lock(&s->lock);
    s->http_statuses[i]++;
    pthread_mutex_unlock(&s->lock);
}

static void add_headers(struct MHD_Response *response, const service_answer *a)
{
    char number[32];
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                            a->type                      ? a->type
                            : a->header_size == SIZE_MAX ? "application/json"
                                                         : "application/octet-stream");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (a->page)
        MHD_add_response_header(
            response, "Content-Security-Policy",
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src "
            "'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    if (a->status == 429) MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (a->allow) MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, a->allow);
    if (a->header_size == SIZE_MAX) return;
    snprintf(number, sizeof number, "%zu", a->header_size);
    MHD_add_response_header(response, "Inference-Header-Content-Length", number);
}

/* Takes the answer's body. `last`: the connection closes behind it. */
static enum MHD_Result send_answer(service *s, struct MHD_Connection *connection, service_answer *a, bool last)
{
    if (a->body.failed) {
        buffer_free(&a->body);
        *a = (service_answer){.status = 503, .header_size = SIZE_MAX};
    }
    struct MHD_Response *response = MHD_create_response_from_buffer(a->body.size, a->body.data, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        buffer_free(&a->body);
        return MHD_NO;
    }
    a->body = (text_buffer){0};
    add_headers(response, a);
    if (last || atomic_load(&s->draining)) MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    enum MHD_Result result = MHD_queue_response(connection, (unsigned)a->status, response);
    MHD_destroy_response(response);
    count_answer(s, a->status);
    mark_client(s, connection, CLIENT_QUIET);
    return result;
}

static enum MHD_Result send_error(service *s, struct MHD_Connection *connection, int status, const char *message,
                                  bool last)
{
    service_answer answer = {.header_size = SIZE_MAX};
    answer_error(&answer, status, "%s", message);
    return send_answer(s, connection, &answer, last);
}

/* ---- headers ---- */

/* A number of bytes; SIZE_MAX - 1: none that fits, SIZE_MAX: no header. */
static size_t size_header(struct MHD_Connection *connection, const char *name)
{
    const char *text = header(connection, name);
    char *end;
    if (!text) return SIZE_MAX;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value >= SIZE_MAX - 1) return SIZE_MAX - 1;
    return (size_t)value;
}

/* "2", "0.5": seconds; "500ms": with a unit. false: another form. */
static bool timeout_header(struct MHD_Connection *connection, int64_t *ns)
{
    const char *text = header(connection, "Request-Timeout");
    char *end;
    if (!text) return true;
    double value = strtod(text, &end), unit = strcmp(end, "ms") == 0 ? 1e6 : strcmp(end, "us") == 0 ? 1e3 : 1e9;
    bool known = *end == '\0' || strcmp(end, "s") == 0 || unit < 1e9;
    if (end == text || !known || !(value > 0) || !(value * unit < 1e18)) return false;
    int64_t wanted = (int64_t)(value * unit) + 1;
    if (!*ns || wanted < *ns) *ns = wanted;
    return true;
}

/* The headers that tell the body's end. */
typedef struct framing {
    const char *length, *coding;
    bool differs; /* several values */
} framing;

static enum MHD_Result framing_take(void *user, enum MHD_ValueKind kind, const char *name, const char *value)
{
    framing *f = user;
    (void)kind;
    const char **field = strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0      ? &f->length
                         : strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0 ? &f->coding
                                                                                    : NULL;
    if (!field) return MHD_YES;
    f->differs = f->differs || (*field && strcmp(*field, value ? value : "") != 0);
    *field = value ? value : "";
    return MHD_YES;
}

/* Why the body's end is not certain; NULL: it is. A proxy in front may take another end than libmicrohttpd, so that the
 * rest of one client's body becomes the next client's request (request smuggling). RFC 9112, section 6.3. */
static const char *framing_problem(struct MHD_Connection *connection)
{
    framing f = {0};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, framing_take, &f);
    if (f.differs) return "Content-Length or Transfer-Encoding has several values";
    if (f.coding && f.length) return "the request has both Content-Length and Transfer-Encoding";
    if (f.coding && strcasecmp(f.coding, "chunked") != 0) return "Transfer-Encoding is not chunked";
    return NULL;
}

/* ---- the body ---- */

static size_t body_limit(const service *s)
{
    return (size_t)s->o->serve.body_limit;
}

/* Bytes of a body that are read, most of them for the answer's sake: a client that still sends may not see it. */
static uint64_t most_read(const service *s)
{
    return (uint64_t)body_limit(s) + READ_ON;
}

/* A body beyond the limits is read to its end, so that the client gets the answer, but not far. */
static enum MHD_Result take_body(service *s, exchange *x, const char *data, size_t size)
{
    x->seen += size;
    if (!x->refused && x->seen > body_limit(s)) x->refused = 413;
    if (!x->refused && !service_count_bytes(s, &x->counted, size)) x->refused = 503;
    if (!x->refused) {
        buffer_bytes(&x->body, data, size);
        if (x->body.failed) x->refused = 503;
    }
    if (x->refused) {
        buffer_free(&x->body);
        service_uncount_bytes(s, &x->counted);
    }
    return x->seen > most_read(s) ? MHD_NO : MHD_YES;
}

/* Answers a request whose body was refused, and counts it for the model that it was for. `last`: more of the body may
 * follow. */
static enum MHD_Result send_refusal(service *s, struct MHD_Connection *connection, const char *method, const char *url,
                                    int status, bool last)
{
    service_answer answer = {.header_size = SIZE_MAX};
    service_route route = service_find_route(s, method, url, &answer);
    if (route.target == ROUTE_INFER)
        stats_add_request(route.model->stats, &(stats_request){.status = status}, prony_now_ns());
    if (status == 413)
        answer_error(&answer, 413, "the body has more than %zu bytes (--max-body)", body_limit(s));
    else
        answer_error(&answer, status, "too many bytes of requests are in progress");
    return send_answer(s, connection, &answer, last);
}

static enum MHD_Result begin(service *s, struct MHD_Connection *connection, const char *method, const char *url,
                             void **state)
{
    size_t length = size_header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    exchange *x = calloc(1, sizeof *x);
    if (!x) return MHD_NO;
    *state = x;
    mark_client(s, connection, CLIENT_SENDS);
    pthread_mutex_lock(&s->lock);
    s->exchanges++;
    pthread_mutex_unlock(&s->lock);
    const char *problem = framing_problem(connection);
    if (problem) return send_error(s, connection, 400, problem, true);
    if (length == SIZE_MAX || length <= body_limit(s)) return MHD_YES;
    x->refused = 413;
    if (length <= most_read(s) && !header(connection, MHD_HTTP_HEADER_EXPECT)) return MHD_YES;
    return send_refusal(s, connection, method, url, 413, true);
}

/* ---- the request ---- */

static enum MHD_Result handle_infer(service *s, struct MHD_Connection *connection, served_model *slot, exchange *x)
{
    service_answer answer = {.header_size = SIZE_MAX};
    int64_t timeout_ns = s->o->serve.request_timeout_ns;
    size_t header_size = size_header(connection, "Inference-Header-Content-Length");
    const char *encoding = header(connection, MHD_HTTP_HEADER_CONTENT_ENCODING), *given;
    if (encoding && strcasecmp(encoding, "identity") != 0)
        answer_error(&answer, 415, "Content-Encoding '%.40s' is not supported", encoding);
    else if (header_size == SIZE_MAX - 1)
        answer_error(&answer, 400, "Inference-Header-Content-Length is not a number of bytes");
    else if (!timeout_header(connection, &timeout_ns))
        answer_error(&answer, 400, "Request-Timeout '%.40s' is not a time such as 2 or 500ms",
                     (given = header(connection, "Request-Timeout")) ? given : "");
    else
        x->job = infer_start(s, connection, slot, &x->body, &x->counted, header_size, timeout_ns, &answer);
    if (x->job) return MHD_YES; /* suspended */
    stats_add_request(slot->stats, &(stats_request){.status = answer.status}, prony_now_ns());
    return send_answer(s, connection, &answer, false);
}

static enum MHD_Result handle_metrics(service *s, struct MHD_Connection *connection)
{
    service_answer answer = {.status = 200, .header_size = SIZE_MAX};
    const char *accept = header(connection, MHD_HTTP_HEADER_ACCEPT);
    bool open = accept && strstr(accept, "application/openmetrics-text");
    service_metrics(s, &answer.body, open);
    answer.type = open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                       : "text/plain; version=0.0.4; charset=utf-8";
    return send_answer(s, connection, &answer, false);
}

static enum MHD_Result handle(service *s, struct MHD_Connection *connection, const char *method, const char *url,
                              exchange *x)
{
    service_answer answer = {.header_size = SIZE_MAX};
    mark_client(s, connection, CLIENT_WAITS);
    if (x->refused) return send_refusal(s, connection, method, url, x->refused, false);
    service_route route = service_find_route(s, method, url, &answer);
    if (route.target == ROUTE_INFER) return handle_infer(s, connection, route.model, x);
    if (route.target == ROUTE_METRICS) return handle_metrics(s, connection);
    if (route.target == ROUTE_EVENTS) {
        if (!events_respond(s, connection)) return send_error(s, connection, 503, "too many streams of events", false);
        count_answer(s, 200);
        return MHD_YES;
    }
    if (route.target != ROUTE_UNKNOWN) service_answer_route(s, &route, &answer);
    return send_answer(s, connection, &answer, false);
}

enum MHD_Result exchange_handle(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                                const char *version, const char *data, size_t *data_size, void **state)
{
    service *s = user;
    exchange *x = *state;
    (void)version;
    if (!x) return begin(s, connection, method, url, state);
    if (*data_size) {
        size_t size = *data_size;
        *data_size = 0;
        return take_body(s, x, data, size);
    }
    if (x->job) return send_answer(s, connection, &x->job->answer, false); /* resumed: the answer is there */
    return handle(s, connection, method, url, x);
}

void exchange_completed(void *user, struct MHD_Connection *connection, void **state,
                        enum MHD_RequestTerminationCode code)
{
    service *s = user;
    exchange *x = *state;
    (void)code;
    if (!x) return;
    mark_client(s, connection, CLIENT_QUIET);
    pthread_mutex_lock(&s->lock);
    s->exchanges--;
    pthread_mutex_unlock(&s->lock);
    buffer_free(&x->body);
    service_uncount_bytes(s, &x->counted);
    if (x->job) service_job_release(x->job);
    free(x);
    *state = NULL;
}
