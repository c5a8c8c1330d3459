/* The checked-out commit of the working folder's git repository. Neither git nor a library of it is needed: HEAD names
 * a commit or a reference, and a reference is a file or a line of packed-refs. */
#include "bench/history/history.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* First line of a file without its end; false: unreadable. */
static bool first_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "r");
    const bool read = file && fgets(line, (int)size, file);
    if (file) fclose(file);
    if (read) line[strcspn(line, "\r\n")] = '\0';
    return read;
}

static bool is_commit(const char *text)
{
    const size_t digits = strspn(text, "0123456789abcdef");
    return text[digits] == '\0' && (digits == 40 || digits == 64);
}

/* The folder of git's data for `top`: .git itself, or the one that the file .git names (work trees, submodules). */
static bool git_folder(const char *top, char folder[PATH_MAX])
{
    char path[PATH_MAX + 8], line[PATH_MAX];
    struct stat info;
    snprintf(path, sizeof path, "%s/.git", top);
    if (stat(path, &info) != 0) return false;
    if (S_ISDIR(info.st_mode)) return snprintf(folder, PATH_MAX, "%s", path) < PATH_MAX;
    if (!first_line(path, line, sizeof line) || strncmp(line, "gitdir: ", 8) != 0) return false;
    const char *named = line + 8;
    return snprintf(folder, PATH_MAX, "%s%s%s", *named == '/' ? "" : top, *named == '/' ? "" : "/", named) < PATH_MAX;
}

static bool packed_reference(const char *folder, const char *name, char text[72])
{
    char path[PATH_MAX + 16], line[1024];
    snprintf(path, sizeof path, "%s/packed-refs", folder);
    FILE *file = fopen(path, "r");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = '\0';
        char *blank = strchr(line, ' ');
        if (!blank || strcmp(blank + 1, name) != 0) continue;
        *blank = '\0';
        found = is_commit(line);
        if (found) snprintf(text, 72, "%.64s", line);
    }
    if (file) fclose(file);
    return found;
}

/* Work trees share references, whose folder the file commondir names. */
static bool resolve(const char *folder, const char *name, char text[72])
{
    char common[PATH_MAX], path[2 * PATH_MAX], line[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (first_line(path, line, sizeof line) && is_commit(line)) return snprintf(text, 72, "%.64s", line) > 0;
    if (packed_reference(folder, name, text)) return true;
    snprintf(path, sizeof path, "%s/commondir", folder);
    if (!first_line(path, line, sizeof line)) return false;
    if (snprintf(common, sizeof common, "%s%s%s", *line == '/' ? "" : folder, *line == '/' ? "" : "/", line) >=
        PATH_MAX)
        return false;
    snprintf(path, sizeof path, "%s/%s", common, name);
    if (first_line(path, line, sizeof line) && is_commit(line)) return snprintf(text, 72, "%.64s", line) > 0;
    return packed_reference(common, name, text);
}

void project_commit(char text[72])
{
    char top[PATH_MAX], folder[PATH_MAX], path[PATH_MAX + 8], line[PATH_MAX];
    *text = '\0';
    if (!getcwd(top, sizeof top)) return;
    for (;;) {
        if (git_folder(top, folder)) break;
        char *slash = strrchr(top, '/');
        if (!slash || top[1] == '\0') return;
        slash[slash == top] = '\0';
    }
    snprintf(path, sizeof path, "%s/HEAD", folder);
    if (!first_line(path, line, sizeof line)) return;
    if (is_commit(line))
        snprintf(text, 72, "%.64s", line);
    else if (strncmp(line, "ref: ", 5) == 0 && !strstr(line, ".."))
        (void)!resolve(folder, line + 5, text);
}
