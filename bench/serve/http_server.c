/* The daemon of libmicrohttpd: its socket, its limits and its end. */
#define _GNU_SOURCE
#include "bench/serve/http_exchange.h"
#include "bench/serve/microhttpd_library.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* HTTP_THREADS only move bytes, sessions compute. LAST_NS is for answers that are being sent at the end. Chosen
 * without measurement. */
enum { BACKLOG = 511, HTTP_THREADS = 2, DRAIN_STEP_NS = 20000000, LAST_NS = 500000000 };

/* ---- connections ---- */

/* libmicrohttpd's notice of a new or ended connection; the service's list of clients follows. c->link points at the
 * pointer to c, so a client leaves the list without a search. A client without a link never joined it: memory or its
 * socket was missing. */
static void watch_client(void *user, struct MHD_Connection *connection, void **context,
                         enum MHD_ConnectionNotificationCode code)
{
    service *s = user;
    service_client *c = *context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        c = calloc(1, sizeof *c);
        *context = c;
        if (!c || !info) return;
        int on = 1;
        c->fd = info->connect_fd;
        c->since_ns = prony_now_ns();
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        pthread_mutex_lock(&s->lock);
        c->next = s->clients;
        c->link = &s->clients;
        if (c->next) c->next->link = &c->next;
        s->clients = c;
        s->client_count++;
        pthread_mutex_unlock(&s->lock);
        return;
    }
    if (!c) return;
    pthread_mutex_lock(&s->lock);
    if (c->link) {
        *c->link = c->next;
        if (c->next) c->next->link = c->link;
        s->client_count--;
    }
    pthread_mutex_unlock(&s->lock);
    free(c);
    *context = NULL;
}

/* libmicrohttpd keeps a connection whose client leaves within a body until it times out. */
static bool sends_no_more(const service_client *c)
{
    char byte;
    return c->phase == CLIENT_SENDS && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* A body's last bytes may be on their way through libmicrohttpd while the socket is empty already: two sweeps must see
 * it. */
void service_sweep(service *s, int64_t now_ns)
{
    pthread_mutex_lock(&s->lock);
    for (service_client *c = s->clients; c; c = c->next) {
        const bool late = c->phase != CLIENT_WAITS && now_ns - c->since_ns > 2 * s->o->serve.client_timeout_ns;
        const bool left = sends_no_more(c);
        if (late || (left && c->left)) shutdown(c->fd, SHUT_RDWR);
        c->left = left;
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- the socket ---- */

/* -1: errno says why. */
static int listen_at(const struct addrinfo *address)
{
    int on = 1, fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);
    if (fd < 0) return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

/* Listens at the first address of --host that can be bound: a name may have one of a family that is switched off. */
static int open_listener(service *s)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    const char *host = s->o->serve.host ? s->o->serve.host : "127.0.0.1";
    char port[16];
    snprintf(port, sizeof port, "%lld", (long long)s->o->serve.port);
    int code = getaddrinfo(host, port, &hints, &found), fd = -1;
    if (code != 0) return fail(s->o, "--host %s: %s", host, gai_strerror(code));
    for (const struct addrinfo *address = found; address && fd < 0; address = address->ai_next) fd = listen_at(address);
    code = errno;
    freeaddrinfo(found);
    if (fd < 0) return fail(s->o, "cannot listen on %s port %s: %s", host, port, strerror(code));
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    char name[NI_MAXHOST] = "", number[NI_MAXSERV] = "";
    if (getsockname(fd, (struct sockaddr *)&bound, &size) == 0)
        getnameinfo((struct sockaddr *)&bound, size, name, sizeof name, number, sizeof number,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    s->listener = fd;
    s->port = atoi(number);
    snprintf(s->address, sizeof s->address, strchr(name, ':') ? "[%.100s]:%d" : "%.100s:%d", name, s->port);
    return EXIT_DONE;
}

static void log_nothing(void *user, const char *format, va_list arguments)
{
    (void)user;
    (void)format;
    (void)arguments;
}

int service_listen(service *s)
{
    const char *why;
    if (!microhttpd_load(&why)) return fail(s->o, "libmicrohttpd cannot be loaded: %s", why);
    int code = open_listener(s);
    if (code != EXIT_DONE) return code;
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    flags |= MHD_is_feature_supported(MHD_FEATURE_EPOLL) == MHD_YES ? MHD_USE_EPOLL : MHD_USE_POLL;
    int64_t seconds = s->o->serve.client_timeout_ns / 1000000000;
    s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, exchange_handle, s, MHD_OPTION_EXTERNAL_LOGGER, log_nothing,
                                 NULL, MHD_OPTION_LISTEN_SOCKET, s->listener, MHD_OPTION_THREAD_POOL_SIZE,
                                 (unsigned)HTTP_THREADS, MHD_OPTION_CONNECTION_LIMIT, (unsigned)s->o->serve.connections,
                                 MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(seconds > 0 ? seconds : 1),
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)s->o->serve.header_limit,
                                 MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, watch_client, s,
                                 MHD_OPTION_NOTIFY_COMPLETED, exchange_completed, s, MHD_OPTION_END);
    if (s->daemon) return EXIT_DONE;
    close(s->listener);
    return fail(s->o, "cannot start the HTTP server: %s", strerror(errno));
}

/* Waits until no request is in progress, at most until `end_ns`. */
static void await_exchanges(service *s, int64_t end_ns)
{
    for (bool busy = true; busy && prony_now_ns() < end_ns;) {
        service_expire(s, prony_now_ns());
        service_sweep(s, prony_now_ns());
        pthread_mutex_lock(&s->lock);
        busy = s->exchanges > 0;
        pthread_mutex_unlock(&s->lock);
        if (busy) nanosleep(&(struct timespec){.tv_nsec = DRAIN_STEP_NS}, NULL);
    }
}

/* The service stops listening first. Requests that were accepted are answered; new ones on open connections get 503. A
 * suspended connection must not outlive the daemon, so the jobs that are left get 503 too, and time to send it. */
void service_stop(service *s)
{
    if (!s->daemon) return;
    atomic_store(&s->draining, true);
    MHD_socket socket = MHD_quiesce_daemon(s->daemon);
    if (socket != MHD_INVALID_SOCKET) shutdown(socket, SHUT_RDWR); /* threads may still hold it: closed at the end */
    events_end(s);
    await_exchanges(s, prony_now_ns() + s->o->serve.drain_ns);
    service_expire(s, INT64_MAX);
    await_exchanges(s, prony_now_ns() + LAST_NS);
    MHD_stop_daemon(s->daemon);
    if (socket != MHD_INVALID_SOCKET) close(socket);
    s->daemon = NULL;
}
