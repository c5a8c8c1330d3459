/* prony serve: models behind HTTP. http_server.c has the daemon, its limits and its end; http_exchange.c the life of
 * one request; http_routes.c the pages and metadata; http_infer.c inference; http_events.c the live page's events;
 * service_metrics.c and service_live.c the documents that the service shows.
 *
 * Threads: libmicrohttpd's own (they parse requests and write responses), those of the batchers (they build responses),
 * and the main thread (deadlines, alerts, events, replaced files). */
#ifndef PRN_BENCH_SERVE_SERVICE_H
#define PRN_BENCH_SERVE_SERVICE_H

#include "bench/serve/served_model.h"

#include <stdatomic.h>

struct MHD_Connection;
struct MHD_Daemon;

enum { SERVICE_MOST_MODELS = 64, SERVICE_ADDRESS = 128, SERVICE_EVENT_STREAMS = 16 };

/* The response to a request. */
typedef struct service_answer {
    int status;
    const char *type; /* NULL: JSON */
    text_buffer body;
    size_t header_size; /* of JSON in front of binary tensors; SIZE_MAX: no such tensors */
    bool page;          /* HTML: gets a policy for its scripts */
    const char *allow;  /* of a 405: the path's methods; NULL otherwise */
} service_answer;

typedef enum client_phase {
    CLIENT_QUIET, /* between requests, or a response is being sent */
    CLIENT_SENDS, /* the headers have arrived, the body has not */
    CLIENT_WAITS  /* a whole request has arrived and is not answered */
} client_phase;

/* A connection: kept to end those whose requests do not arrive in time, or never will. Under the service's lock. */
typedef struct service_client {
    struct service_client *next, **link;
    int fd;
    int64_t since_ns; /* begin of the wait for a request, or of the sending of a response */
    client_phase phase;
    bool left; /* the last sweep found that the client sends no more, with the body incomplete */
} service_client;

/* One inference. The exchange and the batcher hold it; the first of the batcher, its deadline and the end of the
 * service answers it. */
typedef struct service_job {
    struct service_job *next, **link; /* of the jobs that wait for an answer; under the service's lock */
    struct service *service;
    struct MHD_Connection *connection; /* suspended until the answer is there */
    model_version *version;
    infer_request request;
    text_buffer body; /* the request borrows from it */
    size_t counted;   /* bytes of the body and of the parsed tensors, in the service's sum until the job is freed */
    atomic_int references;
    bool answered;                    /* under the lock */
    service_answer answer;            /* of the one that set `answered`; read when the connection is resumed */
    int64_t received_ns, deadline_ns; /* 0: none */
} service_job;

/* A stream of events that waits for the next one. */
typedef struct service_stream {
    struct service *service;
    struct MHD_Connection *connection;
    bool used, waiting; /* waiting: suspended */
    uint64_t next;      /* event */
} service_stream;

typedef struct service {
    const options *o;
    served_model models[SERVICE_MOST_MODELS];
    size_t model_count;
    struct MHD_Daemon *daemon;
    int listener, port;
    char address[SERVICE_ADDRESS]; /* "127.0.0.1:8080", as messages show it */
    int64_t started_ns;
    double started_at; /* seconds since 1970 */
    atomic_bool draining;
    pthread_mutex_t lock;
    pthread_cond_t change;
    service_client *clients;
    size_t client_count, exchanges; /* exchanges: requests in progress */
    service_job *jobs;
    size_t job_count;
    int64_t wake_ns;   /* the main thread wakes by then */
    size_t body_bytes; /* bodies and parsed tensors of all requests in progress, those in queues included */
    service_stream streams[SERVICE_EVENT_STREAMS];
    char *event; /* the newest one, as it is sent */
    size_t event_size;
    uint64_t event_number;
    uint64_t http_statuses[STATS_STATUSES]; /* of all answers */
    double cpu_share, other_share; /* processors that this process and others used in the last second; -1: not known */
    int64_t rss_bytes;             /* -1: not known */
    struct alert_set *alerts;
    prony_history *history;                 /* runs for --history; NULL: none */
    prony_history *past;                    /* sessions that drift alerts compare with; NULL: no such rule */
    unsigned compared[SERVICE_MOST_MODELS]; /* versions that have their baselines */
} service;

/* ---- http_server.c ---- */

/* Listens; EXIT_DONE, or an exit status after a message. */
int service_listen(service *s);
/* Answers what has been accepted, for at most the drain time, then ends all threads of HTTP. */
void service_stop(service *s);
/* Ends connections whose request does not arrive, or whose response is not read, within the time. */
void service_sweep(service *s, int64_t now_ns);

/* ---- http_routes.c ---- */

typedef enum route_target {
    ROUTE_UNKNOWN,
    ROUTE_PAGE,
    ROUTE_LIVE,
    ROUTE_EVENTS,
    ROUTE_METRICS,
    ROUTE_SERVER,
    ROUTE_HEALTH_LIVE,
    ROUTE_HEALTH_READY,
    ROUTE_MODELS,
    ROUTE_MODEL,
    ROUTE_MODEL_READY,
    ROUTE_INFER
} route_target;

/* The target of a request's path. */
typedef struct service_route {
    route_target target;
    unsigned methods;    /* bits that http_routes.c defines */
    served_model *model; /* NULL: the path names none */
} service_route;

/* ROUTE_UNKNOWN: `answer` is 404, or 405 with the path's methods. */
service_route service_find_route(service *s, const char *method, const char *url, service_answer *answer);
/* Answers all targets but inference, metrics and events. */
void service_answer_route(service *s, const service_route *route, service_answer *answer);
/* "error": the message; status by the protocol. */
void answer_error(service_answer *answer, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- http_infer.c ---- */

/* Adds to the sum of bytes of all requests, and to *counted, the request's part of it. false: the sum is too large. The
 * only request always fits. */
bool service_count_bytes(service *s, size_t *counted, size_t bytes);
void service_uncount_bytes(service *s, size_t *counted);
/* Takes the body and *counted, parses the body and submits it; the connection is suspended by then. Returns the job, or
 * NULL with an answer (the connection is not suspended). */
service_job *infer_start(service *s, struct MHD_Connection *connection, served_model *slot, text_buffer *body,
                         size_t *counted, size_t header_size, int64_t timeout_ns, service_answer *answer);
/* 504 for jobs whose deadline has passed. */
void service_expire(service *s, int64_t now_ns);
void service_job_release(service_job *job);

/* ---- http_events.c ---- */

/* Queues a stream of events as the response. false: too many streams. */
bool events_respond(service *s, struct MHD_Connection *connection);
/* Sends `json` to all streams. */
void events_publish(service *s, const text_buffer *json);
/* Ends all streams. */
void events_end(service *s);

/* ---- service_metrics.c, service_live.c ---- */

/* The state of the service as JSON: the live page's data. */
void service_live(service *s, text_buffer *to);
/* Metrics in the text format of Prometheus, or as OpenMetrics. */
void service_metrics(service *s, text_buffer *to, bool openmetrics);
void service_page(text_buffer *to);

#endif
