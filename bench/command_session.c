/* What subcommands share: errors, models and sessions from options, inputs, progress, reports, outputs. */
#include "bench/command.h"
#include "bench/inputs.h"
#include "bench/interrupt.h"
#include "bench/part.h"

#include <stdarg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void put_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        fputc(c < 0x20 || c == 0x7f ? '?' : c, to);
    }
}

void put_wrapped(const char *text, int column, int indent)
{
    int width = terminal_width();
    for (bool first = true; *text; first = false) {
        size_t length = strcspn(text, " ,");
        length += text[length] == ',';
        if (!first && column + 1 + (int)length > width) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)length, text);
        column += (int)length;
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

int fail(const options *o, const char *format, ...)
{
    char message[PRONY_ERROR_MESSAGE_BYTES + 1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fprintf(stderr, "prony%s%s: ", o->command ? " " : "", o->command ? o->command : "");
    put_text(stderr, message);
    fputc('\n', stderr);
    return EXIT_FAILED;
}

int report_error(const options *o, const prony_error *error)
{
    clear_progress();
    if (error->status == PRONY_CANCELLED && interrupted()) return fail(o, "%s: %s", interrupted(), error->message);
    return fail(o, "%s", *error->message ? error->message : prony_status_text(error->status));
}

/* ---- sessions ---- */

prony_session_options session_options(const options *o)
{
    prony_session_options s = PRONY_SESSION_OPTIONS_INIT;
    s.intra_op_threads = o->intra_op;
    s.inter_op_threads = o->inter_op;
    s.precision = o->precision;
    s.affinity = o->affinity;
    s.dims = o->dims;
    s.dim_count = o->dim_count;
    s.max_dims = o->max_dims;
    s.max_dim_count = o->max_dim_count;
    s.shapes = o->shapes;
    s.shape_count = o->shape_count;
    s.batch = o->batch;
    s.no_rewrites = o->no_rewrites;
    s.no_help = o->no_help;
    s.no_reuse = o->no_reuse;
    s.max_loop_trips = o->max_loop_trips;
    s.free_dims = PRONY_FREE_ASK;
    s.record_memory = o->memory || forms_need_events(o);
    return s;
}

/* What of --affinity could not be had: said once, though a matrix has many sessions. */
static void say_affinity(const options *o, const prony_session *session)
{
    static bool said;
    const char *failure;
    (void)prony_session_affinity(session, &failure);
    if (failure && !said) fail(o, "warning: --affinity %s: %s", o->affinity, failure);
    said = said || failure;
}

prony_status load_model(const options *o, prony_model **model, const char *path, prony_error *error)
{
    prony_model_options m = PRONY_MODEL_OPTIONS_INIT;
    m.copy = o->copy_model;
    m.data_folder = o->data_folder;
    interrupt_at_once(true);
    prony_status status = prony_model_load(model, path, &m, error);
    interrupt_at_once(false);
    return status;
}

int make_session(const options *o, prony_model *model, prony_session **session, bool profile)
{
    prony_error error = {0};
    prony_session_options s = session_options(o);
    s.no_profile = !profile;
    if (session_create(session, model, &s, &error) != PRONY_OK) return report_error(o, &error);
    say_affinity(o, *session);
    return bind_inputs(o, model, *session);
}

int open_session(const options *o, prony_model **model, prony_session **session, bool profile)
{
    prony_error error = {0};
    if (load_model(o, model, o->arguments[0], &error) != PRONY_OK) return report_error(o, &error);
    int quantized = quantize_in_place(o, model);
    if (quantized != EXIT_DONE) return quantized;
    if (!is_part(o)) return make_session(o, *model, session, profile);
    prony_model *part = NULL;
    int code = open_part(o, *model, &part, session, profile);
    prony_model_release(*model);
    *model = part;
    return code;
}

prony_profile_options profile_options(const options *o)
{
    prony_profile_options p = PRONY_PROFILE_OPTIONS_INIT;
    p.warmup_runs = o->warmup;
    p.runs = o->runs;
    p.max_seconds = o->seconds;
    p.trace_threads = strcmp(o->command, "profile") == 0;
    p.count_hardware = o->counters;
    p.measure_cost = strcmp(o->command, "profile") == 0;
    if (want_progress(o)) {
        p.progress = show_progress;
        p.progress_user = (void *)(uintptr_t)o;
    }
    return p;
}

/* ---- the terminal ---- */

int terminal_width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int width = columns ? atoi(columns) : 0;
    if (width <= 0 && isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
    if (width < 80) width = 80;
    return width > 160 ? 160 : width;
}

bool want_color(const options *o)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (o->no_color || (no_color && *no_color) || (term && strcmp(term, "dumb") == 0)) return false;
    return isatty(STDOUT_FILENO);
}

bool want_progress(const options *o)
{
    return !o->quiet && !o->no_progress && isatty(STDERR_FILENO);
}

/* Columns of stderr's last line that hold progress. */
static int progress_columns;

void show_progress_text(const char *text)
{
    int columns = (int)strlen(text);
    fprintf(stderr, "\r%-*s", progress_columns, text);
    fflush(stderr);
    if (columns > progress_columns) progress_columns = columns;
}

void show_progress(void *user, int64_t runs, double seconds, double relative_error)
{
    const options *o = user;
    char text[128];
    if (o->runs > 0)
        snprintf(text, sizeof text, "%lld of %lld runs, %.1f s", (long long)runs, (long long)o->runs, seconds);
    else if (isnan(relative_error))
        snprintf(text, sizeof text, "%lld runs, %.1f s", (long long)runs, seconds);
    else
        snprintf(text, sizeof text, "%lld runs, %.1f s, median known to %.1f %%", (long long)runs, seconds,
                 relative_error * 100);
    show_progress_text(text);
}

void clear_progress(void)
{
    if (progress_columns) fprintf(stderr, "\r%*s\r", progress_columns, "");
    progress_columns = 0;
}

/* ---- reports and outputs ---- */

void put_assumed(const prony_report *report, int column)
{
    size_t count;
    const prony_assumed_dim *rows = prony_report_assumed_dims(report, &count);
    for (size_t i = 0; i < count; i++) {
        bool say = *rows[i].reason && strcmp(rows[i].reason, "batch") != 0;
        const char *by = say ? " by " : "", *reason = say ? rows[i].reason : "", *before = i ? "" : "(assumed: ";
        int length = snprintf(NULL, 0, "%s%s=%lld%s%s,", before, rows[i].name, (long long)rows[i].value, by, reason);
        bool next_line = column + 1 + length > terminal_width();
        fputs(next_line ? "\n  " : " ", stdout);
        column = (next_line ? 2 : column + 1) + length;
        fputs(before, stdout);
        put_text(stdout, rows[i].name);
        printf("=%lld%s%s%s", (long long)rows[i].value, by, reason, i + 1 < count ? "," : ")");
    }
}

static int write_stdout(void *user, const char *data, size_t size)
{
    (void)user;
    return fwrite(data, 1, size, stdout) == size ? 0 : -1;
}

prony_write_options write_options(const options *o)
{
    prony_write_options w = PRONY_WRITE_OPTIONS_INIT;
    w.color = want_color(o);
    w.width = terminal_width();
    w.levels = o->levels;
    w.top = o->top;
    w.sort = o->sort;
    w.filter = o->filter;
    w.all = o->all;
    w.memory = o->memory;
    w.module_depth = o->depth;
    return w;
}

int apply_count(const options *o, prony_report *report)
{
    prony_error error = {0};
    if (!o->count || prony_report_set_count(report, o->count, &error) == PRONY_OK) return EXIT_DONE;
    return report_error(o, &error);
}

int write_report(const options *o, prony_report *report)
{
    prony_error error = {0};
    prony_write_options w = write_options(o);
    bool json_stdout = o->json && strcmp(o->json, "-") == 0;
    clear_progress();
    prony_status status = PRONY_OK;
    if (apply_count(o, report) != EXIT_DONE) return EXIT_FAILED;
    if (status == PRONY_OK && !stdout_taken(o) && !o->quiet)
        status = prony_report_write(report, PRONY_FORMAT_TEXT, &w, write_stdout, NULL, &error);
    if (status == PRONY_OK && o->json)
        status = json_stdout ? prony_report_write(report, PRONY_FORMAT_JSON, &w, write_stdout, NULL, &error)
                             : prony_report_save(report, PRONY_FORMAT_JSON, &w, o->json, &error);
    return status == PRONY_OK ? write_forms(o, report) : report_error(o, &error);
}

int save_outputs(const options *o, const prony_model *model, const prony_session *session)
{
    prony_error error = {0};
    if (!o->output_dir) return EXIT_DONE;
    int made = make_output_dir(o);
    if (made != EXIT_DONE) return made;
    size_t size = strlen(o->output_dir) + 64;
    char *path = malloc(size);
    if (!path) return fail(o, "out of memory");
    int status = EXIT_DONE;
    for (size_t k = 0; k < prony_model_output_count(model) && status == EXIT_DONE; k++) {
        const prony_value *value;
        snprintf(path, size, "%s/output_%zu.npy", o->output_dir, k);
        if (prony_session_output(session, k, &value, &error) != PRONY_OK ||
            prony_value_save_npy(value, path, &error) != PRONY_OK)
            status = report_error(o, &error);
    }
    free(path);
    return status;
}
