/* The temporary file lies beside its target, so that the rename stays within one file system and a failure leaves an
 * old file as it was. Targets other than regular files (a pipe, /dev/null) are written in place. */
#include "bench/terminal/json_file.h"
#include "bench/terminal/json_character.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int cannot_write(json_file *file, const options *o, int code)
{
    if (file->stream && file->stream != stdout) fclose(file->stream);
    if (file->temporary) unlink(file->temporary);
    free(file->target);
    free(file->temporary);
    *file = (json_file){0};
    return fail(o, "'%s': cannot write: %s", o->files.json, strerror(code));
}

/* Opens file->stream; json_close commits it. O_EXCL refuses a temporary file of another process, and realpath makes the
 * rename replace the target of a symbolic link, not the link. After a failure no temporary file is left. */
int json_open(json_file *file, const options *o)
{
    struct stat info;
    *file = (json_file){0};
    if (!o->files.json) return EXIT_DONE;
    if (strcmp(o->files.json, "-") == 0) {
        file->stream = stdout;
        return EXIT_DONE;
    }
    if (stat(o->files.json, &info) == 0 && !S_ISREG(info.st_mode)) {
        file->stream = fopen(o->files.json, "w");
        return file->stream ? EXIT_DONE : cannot_write(file, o, errno);
    }
    file->target = realpath(o->files.json, NULL); /* the target of a symbolic link */
    if (!file->target) file->target = strdup(o->files.json);
    size_t size = file->target ? strlen(file->target) + 32 : 0;
    char *temporary = size ? malloc(size) : NULL;
    if (!temporary) return cannot_write(file, o, ENOMEM);
    snprintf(temporary, size, "%s.%ld.tmp", file->target, (long)getpid());
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int code = errno;
    if (fd >= 0) file->temporary = temporary;
    if (fd >= 0 && (file->stream = fdopen(fd, "w"))) return EXIT_DONE;
    if (fd >= 0)
        close(fd);
    else
        free(temporary);
    return cannot_write(file, o, code);
}

void json_begin(FILE *to, const char *schema)
{
    char text[sizeof "2026-01-31T23:59:59Z"];
    struct tm parts;
    const time_t now = time(NULL);
    fprintf(to, "{\n  \"schema\": \"%s\"", schema);
    if (gmtime_r(&now, &parts) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) > 0)
        fprintf(to, ",\n  \"created\": \"%s\"", text);
}

int json_close(json_file *file, const options *o, int code)
{
    if (!file->stream || file->stream == stdout) return code;
    bool failed = fflush(file->stream) != 0 || ferror(file->stream);
    if (fclose(file->stream) != 0) failed = true;
    file->stream = NULL;
    if (failed || (file->temporary && rename(file->temporary, file->target) != 0)) return cannot_write(file, o, errno);
    free(file->target);
    free(file->temporary);
    *file = (json_file){0};
    return code;
}

void json_text(FILE *to, const char *text)
{
    fputc('"', to);
    while (*text) {
        char escape[JSON_ESCAPE];
        size_t bytes = json_character(text, JSON_ESCAPE, escape);
        if (*escape)
            fputs(escape, to);
        else
            fwrite(text, 1, bytes, to);
        text += bytes;
    }
    fputc('"', to);
}
