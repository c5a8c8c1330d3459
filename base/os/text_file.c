/* Reads /proc and /sys with plain system calls: these run while a report is made, where heap calls are being counted.
 */
#include "base/os/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t read_some(int fd, char *buffer, size_t size)
{
    ssize_t got;
    do {
        got = read(fd, buffer, size);
    } while (got < 0 && errno == EINTR);
    return got < 0 ? 0 : (size_t)got;
}

bool prn_text_read(const char *path, char *buffer, size_t size)
{
    buffer[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t used = 0;
    for (size_t got; used < size - 1 && (got = read_some(fd, buffer + used, size - 1 - used)) > 0;) used += got;
    close(fd);
    while (used && strchr(" \t\n", buffer[used - 1])) used--;
    buffer[used] = '\0';
    return true;
}

bool prn_text_read_int(const char *path, int64_t *out)
{
    char text[32], *end;
    if (!prn_text_read(path, text, sizeof text)) return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || errno) return false;
    *out = value;
    return true;
}

bool prn_lines_open(prn_lines *lines, const char *path)
{
    lines->at = lines->end = 0;
    lines->fd = open(path, O_RDONLY | O_CLOEXEC);
    return lines->fd >= 0;
}

char *prn_lines_next(prn_lines *lines)
{
    size_t length = 0;
    bool any = false;
    for (;;) {
        if (lines->at == lines->end) {
            lines->at = 0;
            lines->end = read_some(lines->fd, lines->chunk, sizeof lines->chunk);
            if (lines->end == 0) break;
        }
        any = true;
        char c = lines->chunk[lines->at++];
        if (c == '\n') break;
        if (length < sizeof lines->line - 1) lines->line[length++] = c;
    }
    lines->line[length] = '\0';
    return any ? lines->line : NULL;
}

void prn_lines_close(prn_lines *lines)
{
    if (lines->fd >= 0) close(lines->fd);
    lines->fd = -1;
}
