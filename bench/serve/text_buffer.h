/* Text that grows: bodies of requests and responses. */
#ifndef PRN_BENCH_SERVE_TEXT_BUFFER_H
#define PRN_BENCH_SERVE_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialise. `data` has a NUL behind its `size` bytes once anything was added. */
typedef struct text_buffer {
    char *data;
    size_t size, room;
    bool failed; /* memory ran out: further bytes are dropped */
} text_buffer;

void buffer_bytes(text_buffer *buffer, const void *data, size_t size);
void buffer_text(text_buffer *buffer, const char *text);
void buffer_format(text_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string, quoted and escaped; invalid UTF-8 becomes U+FFFD. Valid inside a <script> element too. */
void buffer_json(text_buffer *buffer, const char *text, size_t size);
/* A JSON number; null for NaN and infinities, which JSON does not have. */
void buffer_number(text_buffer *buffer, double value);
/* Replaces the file as a whole, by a rename: readers see the old text or the new one. `durable`: also after a failure
 * of the machine. false: errno says why, and the old file stays. */
bool buffer_save(const text_buffer *buffer, const char *path, bool durable);
void buffer_free(text_buffer *buffer);

#endif
