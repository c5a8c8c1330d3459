#include "bench/terminal/whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WHOLE_FILE_PIECE = 1 << 16 };

char *whole_file(const options *o, const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t capacity = 0;
    bool end = false, failed = !file;
    *size = 0;
    while (!failed && !end) {
        if (*size + WHOLE_FILE_PIECE > capacity) {
            char *larger = realloc(text, capacity = 2 * capacity + WHOLE_FILE_PIECE);
            failed = !larger;
            if (failed) break;
            text = larger;
        }
        const size_t count = fread(text + *size, 1, capacity - *size, file);
        *size += count;
        end = count == 0;
        failed = ferror(file) != 0;
    }
    const int reason = errno;
    if (file) fclose(file);
    if (!failed) return text;
    fail(o, "'%s': cannot read the file: %s", path, strerror(reason));
    free(text);
    return NULL;
}
