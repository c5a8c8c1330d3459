/* --help and --help-all, made from the rows, for 80 columns. */
#include "bench/options/option_table.h"

#include <ctype.h>
#include <string.h>

enum { HELP_WIDTH = 80, HELP_COLUMN = 26 };

/* Breaks the text at blanks, in lines that begin at HELP_COLUMN. */
static void put_help(FILE *to, const char *text)
{
    const char *word;
    int column = HELP_COLUMN;
    for (size_t length; (length = next_item(&text, ' ', &word));) {
        if (strncmp(word, "(default:", length) == 0 && *text) length += 1 + strcspn(text + 1, " "); /* one word more */
        text = word + length;
        if (column > HELP_COLUMN && column + 1 + (int)length > HELP_WIDTH - 1) {
            fprintf(to, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        } else if (column > HELP_COLUMN) {
            fputc(' ', to);
            column++;
        }
        fprintf(to, "%.*s", (int)length, word);
        column += (int)length;
    }
    fputc('\n', to);
}

const char *option_default(const option_row *row, char *text, size_t size)
{
    const char *value = row->initial ? row->initial : row->otherwise;
    snprintf(text, size, value ? " (default: %s)" : "%s", value ? value : "");
    return text;
}

static bool shares_name(const option_row *row)
{
    const option_row *other;
    for (size_t i = 0; (other = option_at(i)); i++)
        if (other != row && strcmp(other->name, row->name) == 0) return true;
    return false;
}

/* "[bench, scale] " where rows of one name stand together; empty in the help of one command. */
static void print_option(FILE *to, const command_row *command, const option_row *row, bool all)
{
    char text[1200], preset[200], commands[200], takers[204] = "";
    if (!command && shares_name(row))
        snprintf(takers, sizeof takers, "[%s] ", command_list(row->commands, commands, sizeof commands));
    snprintf(text, sizeof text, "%s%s%s%s%s", takers, row->help, option_default(row, preset, sizeof preset),
             all && row->details ? ". " : "", all && row->details ? row->details : "");
    int column = row->letter ? fprintf(to, "  -%c, ", row->letter) : fprintf(to, "      ");
    column += fprintf(to, "--%s%s%s", row->name, row->value ? " " : "", row->value ? row->value : "");
    if (column > HELP_COLUMN - 2) fputc('\n', to), column = 0;
    fprintf(to, "%*s", HELP_COLUMN - column, "");
    put_help(to, text);
}

/* Options up to a rank under their groups' titles. Returns how many of higher rank are left out. */
static size_t print_groups(FILE *to, const command_row *command, option_rank most)
{
    const option_row *row;
    size_t left_out = 0;
    int group = -1;
    for (size_t i = 0; (row = option_at(i)); i++) {
        if (row->rank == OPTION_INTERNAL || !command_takes(command, row)) continue;
        if (row->rank > most) {
            left_out++;
            continue;
        }
        if ((int)row->group != group) fprintf(to, "\n%s:\n", group_title(row->group));
        group = (int)row->group;
        print_option(to, command, row, most == OPTION_RARE);
    }
    return left_out;
}

static void print_command_help(FILE *to, const command_row *command, option_rank most)
{
    fprintf(to, "usage: prony %s%s%s [options]\n\n%c%s.\n\nExamples:\n", command->name, *command->arguments ? " " : "",
            command->arguments, toupper((unsigned char)*command->summary), command->summary + 1);
    for (size_t i = 0; i < COMMAND_EXAMPLES && command->examples[i]; i++)
        fprintf(to, "  prony %s\n", command->examples[i]);
    const size_t left_out = print_groups(to, command, most);
    if (left_out) fprintf(to, "\n%zu more options: prony %s --help-all\n", left_out, command->name);
}

/* The ten options of rank OPTION_FIRST as `prony profile` takes them, without groups. */
static void print_first_options(FILE *to)
{
    const command_row *profile = find_command("profile");
    const option_row *row;
    fputs("\nOptions used first, here as prony profile takes them:\n", to);
    for (size_t i = 0; (row = option_at(i)); i++)
        if (row->rank == OPTION_FIRST && command_takes(profile, row)) print_option(to, profile, row, false);
    fputs("\nA command's options: prony COMMAND --help; all options: prony --help-all\n", to);
}

void print_help(FILE *to, const command_row *command, bool all)
{
    if (command) {
        print_command_help(to, command, all ? OPTION_RARE : OPTION_COMMON);
        return;
    }
    fputs("usage: prony COMMAND [arguments] [options]\n"
          "       prony MODEL [options]     profiles the model\n\n",
          to);
    const command_row *c;
    for (size_t i = 0; (c = command_at(i)); i++) fprintf(to, "  %-10s %-10s %s\n", c->name, c->arguments, c->summary);
    if (all)
        print_groups(to, NULL, OPTION_RARE);
    else
        print_first_options(to);
    fputs("Exit status: 0 done, 1 failed, 2 wrong usage, 3 a verdict such as a regression\n", to);
}
