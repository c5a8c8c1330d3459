/* Small text files of /proc and /sys, read without the heap. */
#ifndef PRN_BASE_OS_TEXT_FILE_H
#define PRN_BASE_OS_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file's first bytes as a string, trailing white space removed; false (and "") if it cannot be read. */
bool prn_text_read(const char *path, char *buffer, size_t size);
bool prn_text_read_int(const char *path, int64_t *out);

/* Lines of a file of any length. A line longer than the buffer is cut. */
typedef struct prn_lines {
    int fd;
    size_t at, end; /* of bytes read but not returned yet */
    char chunk[2048], line[2048];
} prn_lines;
bool prn_lines_open(prn_lines *lines, const char *path);
/* The next line without its newline, valid until the next call; NULL at the end. */
char *prn_lines_next(prn_lines *lines);
void prn_lines_close(prn_lines *lines);

#endif
