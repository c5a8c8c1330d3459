/* Two lines below a report on a terminal: what a user does next. */
#include "bench/session/judge.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "%" stands for the command line's MODEL, TARGET or A B; "@" for the study's file. */
static const struct next_step {
    const char *command, *line, *gives;
} next_steps[] = {
    {"inspect", "prony profile %", "time and memory of each layer"},
    {"inspect", "prony inspect % --html model.html", "graph and tables as a page"},
    {"profile", "prony recommend %", "what to change, and what it gives"},
    {"profile", "prony profile % --html report.html", "graph, charts and every layer as a page"},
    {"bench", "prony profile %", "time and memory of each layer"},
    {"bench", "prony scale %", "how the model scales with threads"},
    {"load", "prony bench % --scenario server --latency-bound 20ms", "the largest rate within a bound"},
    {"load", "prony profile %", "time and memory of each layer"},
    {"compare", "prony compare % --all", "every metric and layer"},
    {"compare", "prony compare % --html comparison.html", "the same as a page"},
    {"check", "prony metrics %", "every metric that a threshold may name"},
    {"check", "prony check % --threshold ... --junit check.xml", "a test case for each threshold, for CI"},
    {"recommend", "prony profile %", "the measurements behind the advice"},
    {"recommend", "prony recommend % --html advice.html", "the same as a page"},
    {"versus", "prony profile %", "time and memory of each layer"},
    {"versus", "prony versus % --html versus.html", "every operator as a page"},
    {"scale", "prony scale @ --html study.html", "charts, from the file of --json"},
    {"scale", "prony scale --repeat @", "the same study again: is the result the same?"},
};

/* A word as a shell reads it. */
static void put_shell_word(const char *word)
{
    if (!strpbrk(word, " \t'\"$&;|<>()*?[]#~\\!`")) {
        put_text(stdout, word);
        return;
    }
    putchar('\'');
    while (*word) {
        const size_t length = strcspn(word, "'");
        char *part = strndup(word, length);
        put_text(stdout, part ? part : "");
        free(part);
        word += length;
        if (*word) fputs("'\\''", stdout), word++;
    }
    putchar('\'');
}

static void put_arguments(const options *o)
{
    for (size_t i = 0; i < o->argument_count; i++) {
        if (i) putchar(' ');
        put_shell_word(o->arguments[i]);
    }
}

/* The file of the study that was measured or shown. */
static const char *study_file(const options *o)
{
    if (o->files.json) return o->files.json;
    return o->argument_count && is_report_file(o->arguments[0]) ? o->arguments[0] : "STUDY.json";
}

static void put_command(const options *o, const char *line)
{
    for (; *line; line++) {
        if (*line == '%')
            put_arguments(o);
        else if (*line == '@')
            put_shell_word(study_file(o));
        else
            putchar(*line);
    }
}

void say_next_steps(const options *o)
{
    const char *name = strcmp(o->command, "bench") == 0 && (o->load.scenario || o->load.streams) ? "load" : o->command;
    const bool color = want_color(o);
    bool first = true;
    if (o->terminal.quiet || stdout_taken(o) || !isatty(STDOUT_FILENO)) return;
    for (size_t i = 0; i < sizeof next_steps / sizeof *next_steps; i++) {
        const struct next_step *step = &next_steps[i];
        if (strcmp(step->command, name) != 0 || (strchr(step->line, '%') && o->argument_count == 0)) continue;
        printf("%s%s", first ? "\nnext: " : "      ", color ? "\x1b[1m" : "");
        put_command(o, step->line);
        printf("%s  %s\n", color ? "\x1b[0m" : "", step->gives);
        first = false;
    }
}
