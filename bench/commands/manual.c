/* prony manual [COMMAND] and prony completion SHELL: the tables of the command line as a manual page and as what shells
 * complete. Both are installed; nobody writes them by hand. */
#include "bench/options/option_table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { SPEC_BYTES = 80, TEXT_BYTES = 600 };

/* One option: "-x, --intra-op N" and what it does, in one line. */
typedef struct item {
    char spec[SPEC_BYTES], text[TEXT_BYTES];
} item;

/* Takes the next option off a piece of help; false at its end. Lines that do not begin with a dash go on. */
static bool next_item(const char **help, item *out)
{
    const char *at = *help;
    *out = (item){0};
    while (*at) {
        const char *line = at + strspn(at, " ");
        size_t length = strcspn(line, "\n");
        if (*line == '-' && *out->spec && at - *help > 0) break;
        const char *words = line;
        if (*line == '-' && !*out->spec) {
            const char *gap = strstr(line, "  ");
            size_t size = gap && gap < line + length ? (size_t)(gap - line) : length;
            snprintf(out->spec, sizeof out->spec, "%.*s", (int)size, line);
            words = line + size + strspn(line + size, " ");
        }
        size_t used = strlen(out->text), left = length - (size_t)(words - line);
        snprintf(out->text + used, sizeof out->text - used, "%s%.*s", used && left ? " " : "", (int)left, words);
        at = line + length + (line[length] == '\n');
    }
    bool found = at != *help;
    *help = at;
    return found;
}

/* Calls `each` for every option that the command takes; NULL: for all options. */
static void for_each_option(const command_row *command, void (*each)(const command_row *command, const item *option))
{
    int option;
    const char *help;
    for (size_t i = 0; (help = option_help_at(i, &option)); i++) {
        item one;
        if (command && option && !command_takes(command, option)) continue;
        while (next_item(&help, &one)) each(command, &one);
    }
}

/* "x" and "intra-op" of "-x, --intra-op N"; empty where there is none. True if it takes a value. */
static bool split_spec(const char *spec, char letter[2], char word[40])
{
    const char *dashes = strstr(spec, "--");
    letter[0] = letter[1] = word[0] = '\0';
    if (spec[0] == '-' && spec[1] != '-') letter[0] = spec[1];
    if (dashes) snprintf(word, 40, "%.*s", (int)strcspn(dashes + 2, " ,="), dashes + 2);
    return dashes && strchr(dashes, ' ') != NULL;
}

/* ---- manual pages ---- */

static void put_roff(const char *text)
{
    if (*text == '.' || *text == '\'') fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '\\')
            fputs("\\e", stdout);
        else
            putchar(*text);
    }
}

static void roff_option(const command_row *command, const item *option)
{
    (void)command;
    fputs(".TP\n.B ", stdout);
    put_roff(option->spec);
    putchar('\n');
    put_roff(option->text);
    putchar('\n');
}

static void roff_title(const char *name, const char *summary)
{
    char upper[40];
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof upper; n++) upper[n] = (char)toupper((unsigned char)name[n]);
    upper[n] = '\0';
    printf(".TH %s 1 \"\" \"prony %s\" \"User Commands\"\n.SH NAME\n", upper, prony_version());
    put_roff(name);
    fputs(" \\- ", stdout);
    put_roff(summary);
    putchar('\n');
}

static void roff_status(void)
{
    puts(
        ".SH EXIT STATUS\n.TP\n.B 0\nIt is done.\n.TP\n.B 1\nIt failed; the message says what, where and which value.\n"
        ".TP\n.B 2\nWrong usage.\n.TP\n.B 3\nA verdict went against it: a threshold missed, a regression found, a "
        "conformance case failed.");
}

static int manual_of(const command_row *c)
{
    char name[40];
    snprintf(name, sizeof name, "prony-%s", c->name);
    roff_title(name, c->summary);
    printf(".SH SYNOPSIS\n.B prony %s\n", c->name);
    if (*c->arguments) {
        fputs(".I ", stdout);
        put_roff(c->arguments);
        putchar('\n');
    }
    puts("[options]\n.SH OPTIONS");
    for_each_option(c, roff_option);
    roff_status();
    puts(".SH SEE ALSO\n.BR prony (1)");
    return EXIT_DONE;
}

static int manual(void)
{
    roff_title("prony", "run, profile and compare ONNX models");
    puts(".SH SYNOPSIS\n.B prony\n.I COMMAND\n[arguments] [options]\n.br\n.B prony\n.I MODEL\n[options]\n.SH "
         "DESCRIPTION\n"
         "Runs a model and shows where its time and memory go: for the whole model, for each layer as it was written, "
         "and\n"
         "for each kernel as it was executed, with the analytic cost beside every measured figure.\n"
         "A model alone is profiled.\n.SH COMMANDS");
    for (size_t i = 0; command_at(i); i++) {
        const command_row *c = command_at(i);
        printf(".TP\n.B %s ", c->name);
        put_roff(c->arguments);
        putchar('\n');
        put_roff(c->summary);
        printf(". See\n.BR prony\\-%s (1).\n", c->name);
    }
    puts(".SH OPTIONS\nNot every command takes all of them.");
    for_each_option(NULL, roff_option);
    roff_status();
    puts(".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nNo colours, as \\-\\-no\\-color.\n.TP\n.B COLUMNS\nWidth of the text, "
         "from 80 to 160."
         "\n.TP\n.B XDG_CACHE_HOME\nWhere\n.B prony machine\nkeeps this machine's peaks (default: ~/.cache).\n.SH "
         "FILES\n"
         ".TP\n.I ~/.cache/prony\nThe peaks that were measured here.");
    return EXIT_DONE;
}

int command_manual(const options *o)
{
    if (!o->argument_count) return manual();
    const command_row *c = find_command(o->arguments[0]);
    if (c) return manual_of(c);
    fail(o, "there is no command '%s'", o->arguments[0]);
    return EXIT_USAGE;
}

/* ---- completion ---- */

/* Values of options that have a fixed set of them. */
static const char *const value_sets[][2] = {
    {"level", "model module layer operator"},
    {"sort", "index time macs madds flops special int_ops parameters bytes memory count rate intensity name"},
    {"count", "fvcore deepspeed onnx-tool moduleprofiler thop torch deeplite"},
    {"precision", "fp32 fast bf16 int8"},
    {"calibrate-method", "minmax percentile entropy"},
    {"preprocess", "imagenet resize= crop= normalize= mean= std= channels= layout= filter="},
    {"svg", "layers= types= roofline= memory= latency= modules= graph="}};

static const char *manual_command_values_of(const char *word)
{
    for (size_t i = 0; i < sizeof value_sets / sizeof *value_sets; i++)
        if (strcmp(value_sets[i][0], word) == 0) return value_sets[i][1];
    return NULL;
}

static void put_commands(void)
{
    for (size_t i = 0; command_at(i); i++) printf("%s%s", i ? " " : "", command_at(i)->name);
}

static void bash_option(const command_row *command, const item *option)
{
    (void)command;
    char letter[2], word[40];
    split_spec(option->spec, letter, word);
    if (*letter) printf(" -%s", letter);
    if (*word) printf(" --%s", word);
}

static void bash(void)
{
    puts("# bash completion of prony, made by `prony completion bash`\n_prony()\n{\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} options\n"
         "    COMPREPLY=()\n    if [ \"$COMP_CWORD\" -eq 1 ]; then");
    fputs("        mapfile -t COMPREPLY < <(compgen -W '", stdout);
    put_commands();
    puts(" --help --version' -- \"$cur\"; compgen -f -- \"$cur\")\n        return\n    fi\n    case $prev in");
    for (size_t i = 0; i < sizeof value_sets / sizeof *value_sets; i++)
        printf("    --%s) mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\"); return ;;\n", value_sets[i][0],
               value_sets[i][1]);
    puts("    esac\n    case ${COMP_WORDS[1]} in");
    for (size_t i = 0; command_at(i); i++) {
        printf("    %s) options='", command_at(i)->name);
        for_each_option(command_at(i), bash_option);
        puts("' ;;");
    }
    fputs("    *) options='", stdout);
    for_each_option(find_command("profile"), bash_option);
    puts("' ;;\n    esac\n    if [[ $cur == -* ]]; then\n        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- "
         "\"$cur\")\n"
         "    else\n        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n    fi\n}\n"
         "complete -o filenames -o bashdefault -F _prony prony");
}

/* Inside of single quotes; what zsh's specifications give a meaning is escaped. */
static void manual_command_put_quoted(const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr(special, *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void zsh_name(const item *option, const char *dashes, const char *name, bool value)
{
    printf(" \\\n        '*%s%s%s[", dashes, name, value ? dashes[1] ? "=" : "+" : "");
    manual_command_put_quoted(option->text, "[]:\\");
    const char *set = manual_command_values_of(name);
    if (!value)
        fputs("]'", stdout);
    else if (set)
        printf("]:value:(%s)'", set);
    else
        fputs("]:value:_files'", stdout);
}

static void zsh_option(const command_row *command, const item *option)
{
    (void)command;
    char letter[2], word[40];
    bool value = split_spec(option->spec, letter, word);
    if (*letter) zsh_name(option, "-", letter, value);
    if (*word) zsh_name(option, "--", word, value);
}

static void zsh(void)
{
    puts("#compdef prony\n# made by `prony completion zsh`\n_prony() {\n    local -a commands\n    commands=(");
    for (size_t i = 0; command_at(i); i++) {
        printf("        '%s:", command_at(i)->name);
        manual_command_put_quoted(command_at(i)->summary, ":\\");
        puts("'");
    }
    puts("    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        _files\n        return\n "
         "   fi\n"
         "    case $words[2] in");
    for (size_t i = 0; command_at(i); i++) {
        printf("    %s) _arguments -s '1:command:' '*:file:_files'", command_at(i)->name);
        for_each_option(command_at(i), zsh_option);
        puts(" ;;");
    }
    puts("    *) _files ;;\n    esac\n}\n_prony \"$@\"");
}

static void fish_option(const command_row *command, const item *option)
{
    char letter[2], word[40];
    bool value = split_spec(option->spec, letter, word);
    const char *set = manual_command_values_of(word);
    printf("complete -c prony -n '__fish_seen_subcommand_from %s'", command->name);
    if (*letter) printf(" -s %s", letter);
    if (*word) printf(" -l %s", word);
    if (value && set)
        printf(" -x -a '%s'", set);
    else if (value)
        fputs(" -r", stdout);
    fputs(" -d '", stdout);
    manual_command_put_quoted(option->text, "\\");
    puts("'");
}

static void fish(void)
{
    puts("# fish completion of prony, made by `prony completion fish`");
    for (size_t i = 0; command_at(i); i++) {
        printf("complete -c prony -n __fish_use_subcommand -a %s -d '", command_at(i)->name);
        manual_command_put_quoted(command_at(i)->summary, "\\");
        puts("'");
    }
    for (size_t i = 0; command_at(i); i++) for_each_option(command_at(i), fish_option);
}

int command_completion(const options *o)
{
    const char *shell = o->arguments[0];
    if (strcmp(shell, "bash") == 0)
        bash();
    else if (strcmp(shell, "zsh") == 0)
        zsh();
    else if (strcmp(shell, "fish") == 0)
        fish();
    else
        return fail(o, "'%s': bash, zsh or fish", shell), EXIT_USAGE;
    return EXIT_DONE;
}
