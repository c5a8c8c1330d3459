/* Terminal output of subcommands: messages, wrapped text, progress. */
#include "bench/options/option_table.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { NARROWEST = 40, WIDEST = 160 };

int terminal_width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int width = columns ? atoi(columns) : 0;
    if (width <= 0 && isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
    if (width <= 0) return 80;
    return width < NARROWEST ? NARROWEST : width > WIDEST ? WIDEST : width;
}

bool want_whole_names(void)
{
    return !getenv("COLUMNS") && !isatty(STDOUT_FILENO);
}

bool want_color(const options *o)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (o->terminal.no_color || (no_color && *no_color) || (term && strcmp(term, "dumb") == 0)) return false;
    return isatty(STDOUT_FILENO);
}

bool want_progress(const options *o)
{
    return !o->terminal.quiet && !o->terminal.no_progress && isatty(STDERR_FILENO);
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
    if (o->measuring.runs > 0)
        snprintf(text, sizeof text, "%lld of %lld runs, %.1f s", (long long)runs, (long long)o->measuring.runs,
                 seconds);
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

void put_text(FILE *to, const char *text)
{
    while (*text) {
        const size_t bytes = prony_text_printable(text);
        if (bytes)
            fwrite(text, 1, bytes, to);
        else if (((unsigned char)*text & 0xc0) != 0x80)
            fputc('?', to); /* one for a sequence */
        text += bytes ? bytes : 1;
    }
}

/* Writes the first `length` bytes of `text`, in the same way. */
static void terminal_put_word(const char *text, size_t length)
{
    char word[256];
    for (size_t part; length > 0; text += part, length -= part) {
        part = length < sizeof word ? length : sizeof word - 1;
        memcpy(word, text, part);
        word[part] = '\0';
        put_text(stdout, word);
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
        terminal_put_word(text, length);
        column += (int)length;
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

static char *kept_failure;
static size_t kept_failure_size;

void fail_into(char *text, size_t size)
{
    kept_failure = text;
    kept_failure_size = size;
}

/* The line goes out in one write: lines of several processes do not mix, and a launcher that ends the process cuts
 * none. Without memory for the line it is written in pieces. */
static void complain(const options *o, const char *format, va_list args)
{
    char message[PRONY_ERROR_MESSAGE_BYTES + 1024], *line = NULL;
    size_t size = 0;
    FILE *whole = open_memstream(&line, &size), *to = whole ? whole : stderr;
    vsnprintf(message, sizeof message, format, args);
    if (kept_failure) {
        if (!*kept_failure) snprintf(kept_failure, kept_failure_size, "%s", message);
        if (whole) fclose(whole);
        free(line);
        return;
    }
    fprintf(to, "prony%s%s: ", o->command ? " " : "", o->command ? o->command : "");
    put_text(to, message);
    fputc('\n', to);
    if (whole && fclose(whole) == 0) fwrite(line, 1, size, stderr);
    free(line);
}

int fail(const options *o, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(o, format, args);
    va_end(args);
    return EXIT_FAILED;
}

int usage(const options *o, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(o, format, args);
    va_end(args);
    fprintf(stderr, "Try 'prony %s%s--help'.\n", o->command ? o->command : "", o->command ? " " : "");
    return EXIT_USAGE;
}
