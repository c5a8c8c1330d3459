/* Several studies side by side: prony compare A B of two studies, and prony scale --join STUDY... */
#include "bench/commands/studies.h"

#include "bench/session/judge.h"
#include "bench/terminal/json_file.h"
#include "prony_judge.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 256 };

bool is_study_file(const char *path)
{
    char head[HEAD_BYTES] = "";
    FILE *file = fopen(path, "rb");
    if (file) (void)!fread(head, 1, sizeof head - 1, file);
    if (file) fclose(file);
    return strstr(head, "\"prony.study/") != NULL;
}

/* File names without their folders, unless two are the same. The caller frees the list. */
static const char **name_studies(const options *o)
{
    const char **names = calloc(o->argument_count, sizeof *names);
    bool twice = false;
    for (size_t i = 0; names && i < o->argument_count; i++) {
        const char *slash = strrchr(o->arguments[i], '/');
        names[i] = slash ? slash + 1 : o->arguments[i];
        for (size_t k = 0; k < i; k++) twice = twice || strcmp(names[k], names[i]) == 0;
    }
    for (size_t i = 0; names && twice && i < o->argument_count; i++) names[i] = o->arguments[i];
    return names;
}

typedef struct studies {
    const options *o;
    prony_study **list;
    const char **names;
} studies;

static int studies_to(const studies *s, prony_format format, const char *chart, const char *path)
{
    prony_error error = {0};
    prony_write_options w = write_options(s->o);
    options own = *s->o;
    json_file file;
    own.files.json = path;
    w.chart = chart;
    int code = json_open(&file, &own);
    if (code != EXIT_DONE) return code;
    if (prony_studies_write(s->list, s->names, s->o->argument_count, format, &w, write_to_stream, file.stream,
                            &error) != PRONY_OK)
        code = report_error(s->o, &error);
    return json_close(&file, &own, code);
}

static int studies_show(const studies *s)
{
    const options *o = s->o;
    int code = EXIT_DONE;
    if (!o->terminal.quiet && !stdout_taken(o)) code = studies_to(s, PRONY_FORMAT_TEXT, NULL, "-");
    if (code == EXIT_DONE && o->files.json) code = studies_to(s, PRONY_FORMAT_JSON, NULL, o->files.json);
    for (size_t i = 0; code == EXIT_DONE && i < o->files.export_count; i++)
        code = studies_to(s, o->files.exports[i].format, o->files.exports[i].chart, o->files.exports[i].file);
    return code;
}

int show_studies(const options *o, size_t *different)
{
    prony_error error = {0};
    studies s = {.o = o, .list = calloc(o->argument_count, sizeof(void *)), .names = name_studies(o)};
    int code = s.list && s.names ? EXIT_DONE : fail(o, "out of memory");
    for (size_t i = 0; code == EXIT_DONE && i < o->argument_count; i++) {
        prony_status status = prony_study_load(&s.list[i], o->arguments[i], NULL, &error);
        if (status == PRONY_OK) status = prony_study_analyse(s.list[i], &error);
        if (status != PRONY_OK) code = report_error(o, &error);
    }
    if (code == EXIT_DONE) code = studies_show(&s);
    *different = 0;
    for (size_t i = 0; s.list && i < o->argument_count; i++) {
        *different += prony_study_differences(s.list[i]);
        prony_study_release(s.list[i]);
    }
    free(s.list);
    free(s.names);
    return code;
}
