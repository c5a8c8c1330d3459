/* The command line, read from left to right with getopt_long, whose options are made from the table's rows. */
#include "bench/options/option_table.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_version(FILE *to)
{
    const prony_build *b = prony_build_info();
    fprintf(to, "prony %s\n", prony_version());
    fprintf(to, "commit     %s\n", *b->git_commit ? b->git_commit : "unknown");
    fprintf(to, "kernels    %s\n", b->isa);
    fprintf(to, "libraries  %s\n", *b->libraries ? b->libraries : "none");
    if (*b->left_out) fprintf(to, "left out   %s\n", b->left_out);
    fprintf(to, "compiler   %s\n", b->compiler);
}

/* stdout holds one document. */
static int check_stdout(const options *o)
{
    size_t taken = o->files.json && strcmp(o->files.json, "-") == 0;
    for (size_t i = 0; i < o->files.export_count; i++) taken += strcmp(o->files.exports[i].file, "-") == 0;
    return taken > 1 ? usage(o, "'-' is stdout: only one export can go there") : 0;
}

/* Options about quantisation need int8. */
static int check_int8(const options *o)
{
    bool tries_all = strcmp(o->command, "recommend") == 0 && !o->precision.name,
         is_worker = strcmp(o->command, "worker") == 0;
    bool int8 = tries_all || is_worker || strcmp(o->command, "quantize") == 0 ||
                (o->precision.name && strcmp(o->precision.name, "int8") == 0);
    for (size_t i = 0; i < o->precision.count; i++) int8 = int8 || strcmp(o->precision.names[i], "int8") == 0;
    if (int8 || (!o->precision.calibrate && !o->precision.calibrate_method && o->precision.keep_accuracy <= 0 &&
                 !o->precision.power_of_two))
        return 0;
    return usage(o, "--calibrate, --calibrate-method, --keep-accuracy and --power-of-two need -p int8");
}

static int choose_command(options *o, const char *name, const command_row **out)
{
    *out = find_command(name);
    if (*out) {
        o->command = (*out)->name;
        return 0;
    }
    const char *near = nearest_command(name);
    if (near) return usage(o, "unknown command '%s'; did you mean '%s'?", name, near);
    return usage(o, "unknown command '%s'", name);
}

/* `prony MODEL` profiles the model: an existing file, or a name that ends as models' names do. */
static bool is_model_name(const char *word)
{
    static const char *const endings[] = {".onnx", ".ort", ".pb", ".pt", ".pth", ".tflite", ".safetensors", NULL};
    size_t length = strlen(word);
    if (find_command(word)) return false;
    for (const char *const *e = endings; *e; e++)
        if (length > strlen(*e) && strcmp(word + length - strlen(*e), *e) == 0) return true;
    return access(word, F_OK) == 0;
}

/* `prony help`, `prony help COMMAND`, `prony version`. */
static bool is_question(options *o, int argc, char **argv, int *status)
{
    const command_row *about = NULL;
    bool help = strcmp(argv[1], "help") == 0;
    if (!help && strcmp(argv[1], "version") != 0) return false;
    *status = EXIT_DONE;
    if (help && argc > 2) *status = choose_command(o, argv[2], &about);
    if (*status) return true;
    if (help)
        print_help(stdout, about, false);
    else
        print_version(stdout);
    return true;
}

/* ---- getopt's view of the table ---- */

enum { FIRST_LONG = 256 }; /* getopt returns a letter, or this and the index of a row */

static bool stands_in(int argc, char **argv, const char *name, size_t length)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strncmp(argv[i], "--", 2) == 0 && strcspn(argv[i] + 2, "=") == length &&
            strncmp(argv[i] + 2, name, length) == 0)
            return true;
    return false;
}

typedef struct getopt_table {
    char letters[3 * ('z' - 'A' + 1) + 2];
    struct option *names;
    size_t count;
    char *aliases[8];
    size_t alias_count;
} getopt_table;

/* All options for getopt, also those of other commands: an unknown option may not become the abbreviation of another one.
 * A name stands once, with the row that the command takes. Aliases are added only if the command line has them: as
 * further names they would make abbreviations ambiguous. false: out of memory. */
static bool getopt_begin(getopt_table *g, const command_row *command, int argc, char **argv)
{
    const option_row *row;
    const char *alias;
    char *letter = g->letters;
    size_t rows = 0;
    while (option_at(rows)) rows++;
    *letter++ = ':'; /* a missing value is told apart */
    g->names = calloc(rows + sizeof g->aliases / sizeof *g->aliases + 1, sizeof *g->names);
    for (size_t i = 0; g->names && (row = option_at(i)); i++) {
        const int value = row->value ? required_argument : no_argument;
        const option_row *own = find_option(command, row->name), *first = find_option(NULL, row->name);
        if (row != (own ? own : first)) continue;
        g->names[g->count++] = (struct option){row->name, value, NULL, FIRST_LONG + (int)i};
        if (row->letter) *letter++ = row->letter;
        if (row->letter && value) *letter++ = ':';
        const char *rest = row->aliases;
        for (size_t length; (length = next_item(&rest, ' ', &alias));) {
            if (!stands_in(argc, argv, alias, length) || g->alias_count == sizeof g->aliases / sizeof *g->aliases)
                continue;
            char *name = strndup(alias, length);
            if (!name) return false;
            g->aliases[g->alias_count++] = name;
            g->names[g->count++] = (struct option){name, value, NULL, FIRST_LONG + (int)i};
        }
    }
    return g->names != NULL;
}

static void getopt_end(getopt_table *g)
{
    for (size_t i = 0; i < g->alias_count; i++) free(g->aliases[i]);
    free(g->names);
}

/* ---- wrong use ---- */

/* An option of other commands; `letter` is 0 if the long name was given. */
static int refuse_option(const options *o, const option_row *row, int letter)
{
    uint32_t commands = 0;
    char list[200], name[64];
    const option_row *other;
    for (size_t i = 0; (other = option_at(i)); i++)
        if (strcmp(other->name, row->name) == 0) commands |= other->commands;
    if (letter)
        snprintf(name, sizeof name, "-%c", letter);
    else
        snprintf(name, sizeof name, "--%s", row->name);
    return usage(o, "'%s' does not take %s; these do: %s", o->command, name, command_list(commands, list, sizeof list));
}

static bool is_abbreviation(const getopt_table *g, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < g->count; i++) count += strncmp(g->names[i].name, name, strlen(name)) == 0;
    return count > 1;
}

/* getopt's ':' (no value) or '?' (unknown, ambiguous, or a value too many). `word` is the argument that it stands in. */
static int bad_option(const options *o, const command_row *command, const getopt_table *g, int kind, const char *word)
{
    char name[64];
    if (strncmp(word, "--", 2) != 0)
        return usage(o, kind == ':' ? "-%c needs a value" : "unknown option '-%c'", optopt);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    if (kind == ':') return usage(o, "%s needs a value", name);
    if (optopt) return usage(o, "%s takes no value, got '%s'", name, word);
    if (is_abbreviation(g, name + 2)) return usage(o, "'%s' abbreviates several options", name);
    const char *near = nearest_option(command, name + 2);
    if (near) return usage(o, "unknown option '%s'; did you mean '--%s'?", name, near);
    return usage(o, "unknown option '%s'", name);
}

/* "METRIC:VALUE", unless there is a file of that name: one value more of --threshold. */
static bool is_more_threshold(const char *word)
{
    size_t key = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return key && word[key] == ':' && access(word, F_OK) != 0;
}

/* Takes the options of a command line, up to --help or --version, which *done tells. */
static int parse_options(options *o, const command_row *command, const getopt_table *g, bool *done)
{
    *done = true;
    opterr = 0;
    for (;;) {
        int at = optind ? optind : 1;
        int option = getopt_long(o->argc, o->argv, g->letters, g->names, NULL);
        if (option == -1) break;
        /* A short option inside of a word leaves optind on that word. */
        if (option == ':' || option == '?')
            return bad_option(o, command, g, option, o->argv[optind > at ? optind - 1 : at]);
        const option_row *row =
            option < FIRST_LONG ? find_letter(command, option) : option_at((size_t)(option - FIRST_LONG));
        if (!row) row = find_letter(NULL, option);
        if (row->type == OPTION_HELP) return print_help(stdout, command, row->least > 0), EXIT_DONE;
        if (row->type == OPTION_VERSION) return print_version(stdout), EXIT_DONE;
        if (!command) return usage(o, "a command comes first, such as 'prony profile'");
        if (!command_takes(command, row)) return refuse_option(o, row, option < FIRST_LONG ? option : 0);
        int status = option_take(o, row, optarg);
        while (!status && row->parse == parse_threshold && optind < o->argc && is_more_threshold(o->argv[optind]))
            status = option_take(o, row, o->argv[optind++]);
        if (status) return status;
    }
    *done = false;
    return 0;
}

/* One process of several: the parent reads one whole report from stdout, and does the rest. */
static void be_one_process(options *o)
{
    if (!o->measuring.one_process) return;
    o->measuring.processes = o->shown.topk = o->shown.top = 0;
    o->files.export_count = o->verdict.threshold_count = 0;
    o->files.output_dir = NULL;
    o->shown.filter = o->shown.sort = NULL;
    o->files.json = "-";
    o->terminal.quiet = o->terminal.no_progress = true;
}

/* An unknown name would cap nothing, in silence. */
static int check_isa(const options *o)
{
    const char *cap = getenv("PRONY_MAX_ISA"), *names = prony_build_info()->isa_names;
    size_t length = cap ? strlen(cap) : 0;
    for (const char *name = names; length > 0; name += strcspn(name, ",") + 2) {
        if (strcspn(name, ",") == length && strncasecmp(name, cap, length) == 0) return 0;
        if (!name[strcspn(name, ",")]) return usage(o, "PRONY_MAX_ISA needs one of %s, got '%s'", names, cap);
    }
    return 0;
}

int options_parse(options *o, int argc, char **argv, bool *stop)
{
    const command_row *command = NULL;
    const bool has_word = argc >= 2 && argv[1][0] != '-';
    bool done = true;
    *o = (options){
        .measuring = {.warmup = -1}, .load = {.batch_window_ns = -1}, .model = {.image = PRONY_IMAGE_OPTIONS_INIT}};
    *stop = true;
    o->arguments = calloc((size_t)argc + 1, sizeof *o->arguments);
    if (!o->arguments) return fail(o, "out of memory");
    int status = 0;
    if (has_word && is_question(o, argc, argv, &status)) return status;
    if (has_word && is_model_name(argv[1])) {
        status = choose_command(o, "profile", &command);
    } else if (has_word) {
        status = choose_command(o, argv[1], &command);
        argv[1] = argv[0];
        argc--;
        argv++;
    }
    if (status) return status;
    o->argc = argc;
    o->argv = argv;
    getopt_table table = {0};
    if (!getopt_begin(&table, command, argc, argv))
        status = fail(o, "out of memory");
    else
        status = command ? options_begin(o, command) : 0;
    if (!status) status = parse_options(o, command, &table, &done);
    getopt_end(&table);
    if (status || done) return status;
    if (!command) return print_help(stderr, NULL, false), EXIT_USAGE;
    be_one_process(o);
    while (optind < argc) o->arguments[o->argument_count++] = argv[optind++];
    if ((int)o->argument_count < command->min_arguments) return usage(o, "%s is missing", command->arguments);
    if (command->max_arguments >= 0 && (int)o->argument_count > command->max_arguments)
        return usage(o, "'%s' is one argument too many", o->arguments[command->max_arguments]);
    status = check_stdout(o);
    if (!status) status = check_int8(o);
    if (!status) status = check_isa(o);
    if (!status) status = set_memory_limit(o);
    *stop = status != 0;
    return status;
}

void options_free(options *o)
{
    free(o->arguments);
    free(o->model.dims);
    free(o->model.max_dims);
    free(o->model.shapes);
    free(o->model.inputs);
    free(o->model.from);
    free(o->model.to);
    free(o->precision.names);
    free(o->accuracy.against);
    free(o->verdict.thresholds);
    free(o->files.exports);
}
