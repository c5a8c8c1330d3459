/* The command line, read from left to right; options and arguments may alternate. */
#include "bench/options/option_table.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_version(FILE *to)
{
    const prony_build *b = prony_build_info();
    fprintf(to, "prony %s\n", prony_version());
    fprintf(to, "commit     %s\n", *b->git_commit ? b->git_commit : "unknown");
    fprintf(to, "kernels    %s\n", b->isa);
#ifdef PRN_COMMAND_LIBRARIES /* that the command alone links */
    fprintf(to, "libraries  %s%s" PRN_COMMAND_LIBRARIES "\n", b->libraries, *b->libraries ? ", " : "");
#else
    fprintf(to, "libraries  %s\n", *b->libraries ? b->libraries : "none");
#endif
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

/* A command line on its way through the parser. */
typedef struct parser {
    options *o;
    const command_row *command; /* NULL: none was given */
    int at;                     /* index of the word that is read */
    bool stop;                  /* --help or --version was answered */
} parser;

/* An option of other commands. */
static int refuse_option(const options *o, const option_row *row, const char *name)
{
    uint32_t commands = 0;
    char list[200];
    const option_row *other;
    for (size_t i = 0; (other = option_at(i)); i++)
        if (strcmp(other->name, row->name) == 0) commands |= other->commands;
    return usage(o, "'%s' does not take %s; these do: %s", o->command, name, command_list(commands, list, sizeof list));
}

/* "METRIC:VALUE", unless there is a file of that name: one value more of --threshold. */
static bool is_more_threshold(const char *word)
{
    size_t key = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return key && word[key] == ':' && access(word, F_OK) != 0;
}

/* Takes an option; its value is `text` or, if that is NULL, the next word. */
static int parse_option(parser *p, const option_row *row, const char *name, char *text)
{
    options *o = p->o;
    if (!row->value && text) return usage(o, "%s takes no value, got '%s'", name, text);
    p->stop = row->type == OPTION_HELP || row->type == OPTION_VERSION;
    if (row->type == OPTION_HELP) return print_help(stdout, p->command, row->least > 0), EXIT_DONE;
    if (row->type == OPTION_VERSION) return print_version(stdout), EXIT_DONE;
    if (!p->command) return usage(o, "a command comes first, such as 'prony profile'");
    if (!command_takes(p->command, row)) return refuse_option(o, row, name);
    if (row->value && !text && p->at + 1 == o->argc) return usage(o, "%s needs a value", name);
    int status = option_take(o, row, row->value && !text ? o->argv[++p->at] : text);
    while (!status && row->parse == parse_threshold && p->at + 1 < o->argc && is_more_threshold(o->argv[p->at + 1]))
        status = option_take(o, row, o->argv[++p->at]);
    return status;
}

/* "--name", "--name=value", an alias or an unambiguous abbreviation. */
static int parse_long(parser *p, char *word)
{
    char name[64], *value = strchr(word, '=');
    bool several;
    snprintf(name, sizeof name, "%.*s", (int)(value ? value - word : (ptrdiff_t)strlen(word)), word);
    const option_row *row = find_long(p->command, name + 2, &several);
    if (row) {
        snprintf(name, sizeof name, "--%s", row->name);
        return parse_option(p, row, name, value ? value + 1 : NULL);
    }
    if (several) return usage(p->o, "'%s' abbreviates several options", name);
    const char *near = nearest_option(p->command, name + 2);
    if (near) return usage(p->o, "unknown option '%s'; did you mean '--%s'?", name, near);
    return usage(p->o, "unknown option '%s'", name);
}

/* "-q", "-r 5", "-r5", "-qr5". */
static int parse_letters(parser *p, char *word)
{
    int status = 0;
    for (char *letter = word + 1; !status && !p->stop && *letter; letter++) {
        const char name[3] = {'-', *letter, '\0'};
        const option_row *row = find_letter(p->command, *letter);
        if (!row) row = find_letter(NULL, *letter);
        if (!row) return usage(p->o, "unknown option '%s'", name);
        char *value = row->value && letter[1] ? letter + 1 : NULL;
        status = parse_option(p, row, name, value);
        if (row->value) break;
    }
    return status;
}

/* Reads all words, up to --help or --version; "--" ends the options. */
static int parse_words(parser *p)
{
    options *o = p->o;
    bool ended = false;
    int status = 0;
    for (p->at = 1; !status && !p->stop && p->at < o->argc; p->at++) {
        char *word = o->argv[p->at];
        if (ended || word[0] != '-' || !word[1])
            o->arguments[o->argument_count++] = word;
        else if (strcmp(word, "--") == 0)
            ended = true;
        else
            status = word[1] == '-' ? parse_long(p, word) : parse_letters(p, word);
    }
    return status;
}

/* One process of several: the parent reads one whole report from stdout, and does the rest. */
static void be_one_process(options *o)
{
    if (!o->measuring.one_process) return;
    o->measuring.processes = o->shown.topk = o->shown.top = 0;
    o->files.export_count = o->verdict.threshold_count = 0;
    o->files.output_dir = NULL;
    o->history.file = NULL;
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

/* Returns an exit status. *stop: no command is to run (help was printed, or an error). A first word that is a model's
 * name means `profile` and stays an argument. Any other first word is the command and is removed. o->arguments is freed
 * by options_free, after an error too. */
int options_parse(options *o, int argc, char **argv, bool *stop)
{
    const command_row *command = NULL;
    const bool has_word = argc >= 2 && argv[1][0] != '-';
    *o = (options){.measuring = {.warmup = -1},
                   .load = {.batch_window_ns = -1},
                   .verdict = {.noise = -1},
                   .model = {.image = PRONY_IMAGE_OPTIONS_INIT}};
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
    parser p = {.o = o, .command = command};
    status = command ? options_begin(o, command) : 0;
    if (!status) status = parse_words(&p);
    if (status || p.stop) return status;
    if (!command) return print_help(stderr, NULL, false), EXIT_USAGE;
    be_one_process(o);
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
    free(o->generate.caches);
    free(o->verdict.thresholds);
    free(o->serve.alerts);
    free(o->files.exports);
}
