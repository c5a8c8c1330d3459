#define _GNU_SOURCE /* open_memstream */
#include "bench/session/document.h"

#include "bench/history/history.h"
#include "prony_judge.h"

#include <stdlib.h>
#include <string.h>

int document_open(document *d, const options *o)
{
    *d = (document){0};
    if (!o->files.json && !o->files.export_count && !o->history.file) return EXIT_DONE;
    const int code = json_open(&d->json, o);
    if (code != EXIT_DONE) return code;
    d->stream = open_memstream(&d->text, &d->size);
    return d->stream ? EXIT_DONE : json_close(&d->json, o, fail(o, "out of memory"));
}

static int document_stdout(void *user, const char *data, size_t size)
{
    (void)user;
    return fwrite(data, 1, size, stdout) == size ? 0 : -1;
}

static int write_table(const document *d, const options *o, const export_file *form, const char *table,
                       const char *file)
{
    prony_error error = {0};
    prony_write_options w = write_options(o);
    w.chart = table;
    const prony_status status =
        strcmp(file, "-") == 0
            ? prony_document_write(o->command, d->text, d->size, form->format, &w, document_stdout, NULL, &error)
            : prony_document_save(o->command, d->text, d->size, form->format, &w, file, &error);
    return status == PRONY_OK ? EXIT_DONE : report_error(o, &error);
}

/* The schema's name: the first member of every document. */
static bool schema_of(const document *d, char name[64])
{
    const char *at = strstr(d->text, "\"schema\"");
    return at && sscanf(at, "\"schema\" : \"%63[^\"]\"", name) == 1;
}

/* The first table takes the file's name, the others stand beside it; on stdout there is room for one. */
static int write_tables(const document *d, const options *o, const export_file *form)
{
    char schema[64];
    int code = write_table(d, o, form, NULL, form->file);
    if (strcmp(form->file, "-") == 0 || !schema_of(d, schema)) return code;
    for (size_t t = 1; code == EXIT_DONE && prony_document_table_name(schema, t); t++) {
        const char *table = prony_document_table_name(schema, t);
        char *beside = file_beside(form->file, table);
        code = beside ? write_table(d, o, form, table, beside) : fail(o, "out of memory");
        free(beside);
    }
    return code;
}

int document_close(document *d, const options *o, int code)
{
    if (!d->stream) return code;
    const bool failed = fclose(d->stream) != 0;
    int written = failed ? fail(o, "out of memory") : EXIT_DONE;
    d->stream = NULL;
    if (written == EXIT_DONE && d->json.stream) fwrite(d->text, 1, d->size, d->json.stream);
    written = json_close(&d->json, o, written);
    if (written == EXIT_DONE && d->size) {
        for (size_t i = 0; written == EXIT_DONE && i < o->files.export_count; i++)
            written = o->files.exports[i].format == PRONY_FORMAT_CSV
                          ? write_tables(d, o, &o->files.exports[i])
                          : write_table(d, o, &o->files.exports[i], NULL, o->files.exports[i].file);
    }
    int result = written == EXIT_DONE ? code : written;
    if (written == EXIT_DONE && d->size) result = history_keep_document(o, d->text, d->size, code);
    free(d->text);
    *d = (document){0};
    return result;
}
