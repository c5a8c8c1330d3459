/* Writes the requested formats of a report, each to its file, and files derived from it. */
#include "bench/command.h"

#include <prony_shard.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_stdout(const char *file)
{
    return strcmp(file, "-") == 0;
}

bool stdout_taken(const options *o)
{
    if (o->files.json && is_stdout(o->files.json)) return true;
    for (size_t i = 0; i < o->files.export_count; i++)
        if (is_stdout(o->files.exports[i].file)) return true;
    return false;
}

static int exports_write_stdout(void *user, const char *data, size_t size)
{
    (void)user;
    return fwrite(data, 1, size, stdout) == size ? 0 : -1;
}

static int write_form(const options *o, const prony_report *report, prony_format format, const prony_write_options *w,
                      const char *file)
{
    prony_error error = {0};
    prony_status status = is_stdout(file) ? prony_report_write(report, format, w, exports_write_stdout, NULL, &error)
                                          : prony_report_save(report, format, w, file, &error);
    return status == PRONY_OK ? EXIT_DONE : report_error(o, &error);
}

char *file_beside(const char *file, const char *level)
{
    size_t length = strlen(file), stem = length, size = length + strlen(level) + 8;
    const char *dot = strrchr(file, '.'), *slash = strrchr(file, '/');
    if (dot && dot > file && (!slash || dot > slash + 1)) stem = (size_t)(dot - file);
    char *beside = malloc(size);
    if (beside) snprintf(beside, size, "%.*s_%s%s", (int)stem, file, level, file + stem);
    return beside;
}

static const struct {
    unsigned level;
    const char *name;
} csv_levels[] = {{PRONY_LEVEL_LAYER, "layers"},
                  {PRONY_LEVEL_OPERATOR, "operators"},
                  {PRONY_LEVEL_MODULE, "modules"},
                  {PRONY_LEVEL_MODEL, "model"},
                  {PRONY_LEVEL_NESTED, "nested"}};
enum { CSV_LEVELS = sizeof csv_levels / sizeof csv_levels[0] };

/* true: the report has rows of this level; nested rows need subgraphs. */
static bool has_level(const prony_report *report, unsigned level)
{
    size_t count;
    return level != PRONY_LEVEL_NESTED || prony_report_nested(report, PRONY_LEVEL_LAYER, &count);
}

/* The first wanted level has the name itself; stdout takes only that one. */
static int write_csv(const options *o, const prony_report *report, prony_write_options w, const char *file)
{
    unsigned wanted = o->shown.levels ? o->shown.levels : ~0U;
    bool first = true;
    int code = EXIT_DONE;
    for (size_t i = 0; i < CSV_LEVELS && code == EXIT_DONE; i++) {
        if (!(wanted & csv_levels[i].level) || (!first && is_stdout(file))) continue;
        if (!o->shown.levels && !has_level(report, csv_levels[i].level)) continue;
        w.levels = csv_levels[i].level;
        char *beside = first ? NULL : file_beside(file, csv_levels[i].name);
        if (!first && !beside) return fail(o, "out of memory");
        code = write_form(o, report, PRONY_FORMAT_CSV, &w, first ? file : beside);
        free(beside);
        first = false;
    }
    return code;
}

int write_forms(const options *o, const prony_report *report)
{
    int code = EXIT_DONE;
    for (size_t i = 0; i < o->files.export_count && code == EXIT_DONE; i++) {
        const export_file *form = &o->files.exports[i];
        prony_write_options w = write_options(o);
        w.chart = form->chart;
        if (form->format == PRONY_FORMAT_CSV)
            code = write_csv(o, report, w, form->file);
        else
            code = write_form(o, report, form->format, &w, form->file);
    }
    return code;
}

int make_output_dir(const options *o)
{
    struct stat info;
    if (mkdir(o->files.output_dir, 0777) == 0) return EXIT_DONE;
    int code = errno;
    if (code == EEXIST && stat(o->files.output_dir, &info) == 0 && S_ISDIR(info.st_mode)) return EXIT_DONE;
    return fail(o, "'%s': cannot create the folder: %s", o->files.output_dir,
                strerror(code == EEXIST ? ENOTDIR : code));
}

/* One file of --output-dir. Formats without data (a completely folded model has no timestamps) are skipped with a
 * message. */
static int write_into(const options *o, const prony_report *report, prony_format format, const prony_write_options *w,
                      const char *name, const char *extension)
{
    prony_error error = {0};
    size_t size = strlen(o->files.output_dir) + strlen(name) + 40;
    char *path = malloc(size);
    if (!path) return fail(o, "out of memory");
    snprintf(path, size, "%s/%s%s", o->files.output_dir, name, extension);
    prony_status status = prony_report_save(report, format, w, path, &error);
    int code = EXIT_DONE;
    if (status == PRONY_INVALID_ARGUMENT)
        fail(o, "'%s' is left out: %s", path, error.message);
    else if (status != PRONY_OK)
        code = report_error(o, &error);
    free(path);
    return code;
}

/* Writes every format of the report into --output-dir. A CSV level or chart that this report has no data for is left
 * out without a message; the first failure ends the list. */
int write_all_forms(const options *o, const prony_report *report)
{
    static const struct {
        prony_format format;
        const char *name;
    } files[] = {{PRONY_FORMAT_TEXT, "report.txt"},  {PRONY_FORMAT_JSON, "report.json"},
                 {PRONY_FORMAT_HTML, "report.html"}, {PRONY_FORMAT_LATEX, "report.tex"},
                 {PRONY_FORMAT_TRACE, "trace.json"}, {PRONY_FORMAT_FOLDED, "stacks.folded"},
                 {PRONY_FORMAT_DOT, "graph.dot"}};
    if (!o->files.output_dir) return EXIT_DONE;
    prony_write_options w = PRONY_WRITE_OPTIONS_INIT;
    w.memory = true;
    w.width = 120;
    int code = make_output_dir(o);
    for (size_t i = 0; i < sizeof files / sizeof files[0] && code == EXIT_DONE; i++)
        code = write_into(o, report, files[i].format, &w, files[i].name, "");
    for (size_t i = 0; i < CSV_LEVELS && code == EXIT_DONE; i++) {
        w.levels = csv_levels[i].level;
        if (!has_level(report, csv_levels[i].level)) continue;
        code = write_into(o, report, PRONY_FORMAT_CSV, &w, csv_levels[i].name, ".csv");
    }
    size_t cores, passes;
    for (const char *const *chart = prony_chart_names(); *chart && code == EXIT_DONE; chart++) {
        w.chart = *chart;
        if (strcmp(*chart, "accuracy") == 0 && !prony_report_accuracy_rows(report, PRONY_LEVEL_OPERATOR, NULL))
            continue;
        if (strcmp(*chart, "cores") == 0 && !prony_report_cores(report, &cores, NULL, NULL)) continue;
        if (strcmp(*chart, "pipeline") == 0 && !prony_report_pipeline_events(report, &passes)) continue;
        if (strcmp(*chart, "generation") == 0 && !prony_report_generation(report)) continue;
        code = write_into(o, report, PRONY_FORMAT_SVG, &w, *chart, ".svg");
    }
    return code;
}
