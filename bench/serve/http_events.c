/* Server-sent events: one newest event for all streams. A stream without anything to send is suspended until the next
 * one; a stream that reads slowly misses events instead of keeping them. */
#include "bench/serve/service.h"
#include "bench/serve/microhttpd_library.h"

#include <stdlib.h>
#include <string.h>

/* libmicrohttpd asks for more. The event that is being sent may be replaced only between two events, so a copy of it is
 * kept until it is sent. */
typedef struct stream_state {
    service_stream *stream;
    char *event;
    size_t size, sent;
} stream_state;

static ssize_t stream_read(void *user, uint64_t position, char *to, size_t room)
{
    stream_state *x = user;
    service *s = x->stream->service;
    (void)position;
    pthread_mutex_lock(&s->lock);
    bool over = atomic_load(&s->draining), fresh = s->event && s->event_number >= x->stream->next;
    if (x->sent == x->size && fresh && !over) {
        char *event = realloc(x->event, s->event_size);
        if (event) {
            x->event = memcpy(event, s->event, s->event_size);
            x->size = s->event_size;
            x->sent = 0;
        }
        x->stream->next = s->event_number + 1;
    } else if (x->sent == x->size && !over) {
        x->stream->waiting = true;
        MHD_suspend_connection(x->stream->connection);
    }
    pthread_mutex_unlock(&s->lock);
    if (over) return MHD_CONTENT_READER_END_OF_STREAM;
    size_t size = x->size - x->sent < room ? x->size - x->sent : room;
    if (size) memcpy(to, x->event + x->sent, size);
    x->sent += size;
    return (ssize_t)size;
}

static void stream_free(void *user)
{
    stream_state *x = user;
    service *s = x->stream->service;
    pthread_mutex_lock(&s->lock);
    *x->stream = (service_stream){0};
    pthread_mutex_unlock(&s->lock);
    free(x->event);
    free(x);
}

/* The slot in s->streams is reserved under the lock first, so that two connections never share one. From then on it is
 * the response's, whose stream_free gives it back. MHD_destroy_response drops only this function's reference. */
bool events_respond(service *s, struct MHD_Connection *connection)
{
    service_stream *stream = NULL;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < SERVICE_EVENT_STREAMS && !stream && !atomic_load(&s->draining); i++)
        if (!s->streams[i].used) stream = &s->streams[i];
    if (stream) *stream = (service_stream){.service = s, .connection = connection, .used = true};
    pthread_mutex_unlock(&s->lock);
    if (!stream) return false;
    stream_state *x = calloc(1, sizeof *x);
    struct MHD_Response *response = NULL;
    if (x) {
        x->stream = stream;
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1 << 14, stream_read, x, stream_free);
    }
    if (!response) {
        free(x);
        pthread_mutex_lock(&s->lock);
        *stream = (service_stream){0};
        pthread_mutex_unlock(&s->lock);
        return false;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    enum MHD_Result result = MHD_queue_response(connection, 200, response);
    MHD_destroy_response(response);
    return result == MHD_YES;
}

static void wake_streams(service *s)
{
    for (int i = 0; i < SERVICE_EVENT_STREAMS; i++) {
        service_stream *stream = &s->streams[i];
        if (!stream->used || !stream->waiting) continue;
        stream->waiting = false;
        MHD_resume_connection(stream->connection);
    }
}

void events_publish(service *s, const text_buffer *json)
{
    text_buffer event = {0};
    buffer_text(&event, "data: ");
    buffer_bytes(&event, json->data, json->size);
    buffer_text(&event, "\n\n");
    if (event.failed) {
        buffer_free(&event);
        return;
    }
    pthread_mutex_lock(&s->lock);
    free(s->event);
    s->event = event.data;
    s->event_size = event.size;
    s->event_number++;
    wake_streams(s);
    pthread_mutex_unlock(&s->lock);
}

void events_end(service *s)
{
    pthread_mutex_lock(&s->lock);
    wake_streams(s);
    pthread_mutex_unlock(&s->lock);
}
