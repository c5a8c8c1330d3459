/* smaps has a line "from-to permissions offset device inode PATH" per mapping, and lines "Rss: N kB" and others below
 * it. The program's file and every "….so…" are libraries; any other path is a mapped data file. */
#include "base/os/resident.h"

#include "base/os/text_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Before the path there are five fields. NULL: the mapping has no path. */
static const char *resident_path_of(const char *line)
{
    for (int field = 0; field < 5; field++) {
        line += strcspn(line, " ");
        line += strspn(line, " ");
    }
    return *line == '/' ? line : NULL;
}

static bool is_header(const char *line)
{
    size_t digits = strspn(line, "0123456789abcdef");
    return digits > 0 && line[digits] == '-';
}

bool prn_resident_read(prn_resident *out)
{
    prn_lines lines;
    char program[1024];
    *out = (prn_resident){0};
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    if (!prn_lines_open(&lines, "/proc/self/smaps")) return false;
    uint64_t *sum = &out->anonymous_bytes;
    for (const char *line; (line = prn_lines_next(&lines));) {
        if (is_header(line)) {
            const char *path = resident_path_of(line);
            if (!path)
                sum = &out->anonymous_bytes;
            else
                sum = strcmp(path, program) == 0 || strstr(path, ".so") ? &out->library_bytes : &out->mapped_bytes;
        } else if (strncmp(line, "Rss:", 4) == 0) {
            *sum += strtoull(line + 4, NULL, 10) << 10;
        }
    }
    prn_lines_close(&lines);
    return true;
}
