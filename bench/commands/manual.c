/* prony manual [COMMAND] and prony completion SHELL: manual pages, shell completion and the reference page of options,
 * generated from the tables of the command line. Both are installed. */
#include "bench/options/option_table.h"

#include <ctype.h>
#include <string.h>

static int group; /* of the option before; rows stand by group */

/* Calls `each` for every option that the command takes; NULL: for all options. */
static void for_each_option(const command_row *command, void (*each)(const command_row *command, const option_row *row))
{
    const option_row *row;
    for (size_t i = 0; (row = option_at(i)); i++)
        if (row->rank != OPTION_INTERNAL && command_takes(command, row)) each(command, row);
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

/* All that a row says, as one text: help, commands where it is the page of all, default, details. */
static void roff_option(const command_row *command, const option_row *row)
{
    char preset[200], commands[200];
    if ((int)row->group != group) printf(".SS %s\n", group_title(row->group));
    group = (int)row->group;
    fputs(".TP\n.B ", stdout);
    if (row->letter) printf("\\-%c, ", row->letter);
    fputs("\\-\\-", stdout);
    put_roff(row->name);
    if (row->value) putchar(' '), put_roff(row->value);
    putchar('\n');
    put_roff(row->help);
    put_roff(option_default(row, preset, sizeof preset));
    if (row->details) fputs(". ", stdout), put_roff(row->details);
    if (!command) printf("\n(%s)", command_list(row->commands, commands, sizeof commands));
    putchar('\n');
}

static void roff_options(const command_row *command)
{
    group = -1;
    for_each_option(command, roff_option);
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
    puts(".SH EXIT STATUS\n.TP\n.B 0\nDone.\n.TP\n.B 1\nFailed; the message names the place and the value.\n"
         ".TP\n.B 2\nWrong usage.\n.TP\n.B 3\nA verdict: a threshold missed, a regression found, a conformance case "
         "failed.");
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
    puts("[options]\n.SH EXAMPLES\n.nf");
    for (size_t i = 0; i < COMMAND_EXAMPLES && c->examples[i]; i++) {
        fputs("prony ", stdout);
        put_roff(c->examples[i]);
        putchar('\n');
    }
    puts(".fi\n.SH OPTIONS");
    roff_options(c);
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
    puts(".SH OPTIONS\nThe commands that take an option stand in parentheses.");
    roff_options(NULL);
    roff_status();
    puts(".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nNo colours, as \\-\\-no\\-color.\n.TP\n.B COLUMNS\nWidth of the text, "
         "from 80 to 160."
         "\n.TP\n.B XDG_CACHE_HOME\nWhere\n.B prony machine\nkeeps this machine's peaks (default: ~/.cache).\n.SH "
         "FILES\n"
         ".TP\n.I ~/.cache/prony\nThe peaks that were measured here.");
    return EXIT_DONE;
}

/* ---- docs/reference/options.md ---- */

/* Text of a table's cell. */
static void put_cell(const char *text)
{
    for (; *text; text++) {
        if (*text == '|' || *text == '*' || *text == '<') putchar('\\');
        putchar(*text);
    }
}

static void markdown_option(const command_row *command, const option_row *row)
{
    char preset[200], commands[200];
    (void)command;
    if ((int)row->group != group)
        printf("\n## %s\n\n| option | meaning | commands |\n|---|---|---|\n", group_title(row->group));
    group = (int)row->group;
    fputs("| `", stdout);
    if (row->letter) printf("-%c, ", row->letter);
    printf("--%s%s%s` | ", row->name, row->value ? " " : "", row->value ? row->value : "");
    put_cell(row->help);
    put_cell(option_default(row, preset, sizeof preset));
    if (row->details) fputs(". ", stdout), put_cell(row->details);
    printf(" | %s |\n",
           row->group == GROUP_TERMINAL ? "every command" : command_list(row->commands, commands, sizeof commands));
}

static int markdown(void)
{
    puts("# Options\n\nThis page is generated from the table of options (`prony manual markdown`). `prony COMMAND\n"
         "--help-all` prints the options of one command. An option with several rows differs by command.");
    group = -1;
    for_each_option(NULL, markdown_option);
    return EXIT_DONE;
}

int command_manual(const options *o)
{
    if (!o->argument_count) return manual();
    if (strcmp(o->arguments[0], "markdown") == 0) return markdown();
    const command_row *c = find_command(o->arguments[0]);
    if (c) return manual_of(c);
    fail(o, "unknown command '%s'", o->arguments[0]);
    return EXIT_USAGE;
}

/* ---- completion ---- */

/* "single multi", or "layers= types=" where the choice is the first half of the value. */
static void put_choices(const option_row *row)
{
    const char *choices = row->choices, *item, *equals = strchr(row->value, '=') ? "=" : "";
    for (size_t length, n = 0; (length = next_item(&choices, ',', &item)); n++)
        printf("%s%.*s%s", n ? " " : "", (int)length, item, equals);
}

static void put_commands(void)
{
    for (size_t i = 0; command_at(i); i++) printf("%s%s", i ? " " : "", command_at(i)->name);
}

static void bash_option(const command_row *command, const option_row *row)
{
    (void)command;
    if (row->letter) printf(" -%c", row->letter);
    printf(" --%s", row->name);
}

/* A case of COMMAND.OPTION for the words after an option with choices. */
static void bash_case(const command_row *command, const option_row *row)
{
    if (!row->choices) return;
    printf("    %s.--%s", command ? command->name : "*", row->name);
    if (row->letter) printf("|%s.-%c", command ? command->name : "*", row->letter);
    fputs(") mapfile -t COMPREPLY < <(compgen -W '", stdout);
    put_choices(row);
    puts("' -- \"$cur\"); return ;;");
}

static void bash(void)
{
    puts("# bash completion of prony, made by `prony completion bash`\n_prony()\n{\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} options\n"
         "    COMPREPLY=()\n    if [ \"$COMP_CWORD\" -eq 1 ]; then");
    fputs("        mapfile -t COMPREPLY < <(compgen -W '", stdout);
    put_commands();
    puts(" --help --version' -- \"$cur\"; compgen -f -- \"$cur\")\n        return\n    fi\n    case "
         "${COMP_WORDS[1]}.$prev in");
    for (size_t i = 0; command_at(i); i++) for_each_option(command_at(i), bash_case);
    for_each_option(NULL, bash_case); /* `prony MODEL` */
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

/* Writes text inside of single quotes, with zsh's special characters escaped. */
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

static void zsh_name(const option_row *row, const char *dashes, const char *name)
{
    printf(" \\\n        '*%s%s%s[", dashes, name, row->value ? dashes[1] ? "=" : "+" : "");
    manual_command_put_quoted(row->help, "[]:\\");
    fputs(!row->value ? "]'" : row->choices ? "]:value:(" : "]:value:_files'", stdout);
    if (!row->choices) return;
    put_choices(row);
    fputs(")'", stdout);
}

static void zsh_option(const command_row *command, const option_row *row)
{
    const char letter[2] = {row->letter, '\0'};
    (void)command;
    if (row->letter) zsh_name(row, "-", letter);
    zsh_name(row, "--", row->name);
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

static void fish_option(const command_row *command, const option_row *row)
{
    printf("complete -c prony -n '__fish_seen_subcommand_from %s'", command->name);
    if (row->letter) printf(" -s %c", row->letter);
    printf(" -l %s", row->name);
    if (row->choices) {
        fputs(" -x -a '", stdout);
        put_choices(row);
        putchar('\'');
    } else if (row->value)
        fputs(" -r", stdout);
    fputs(" -d '", stdout);
    manual_command_put_quoted(row->help, "\\");
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
        return usage(o, "unknown shell '%s'; wanted bash, zsh or fish", shell);
    return EXIT_DONE;
}
