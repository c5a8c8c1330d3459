/* The command line, read from left to right; a subcommand that has no use for an option refuses it. */
#include "bench/options/option_table.h"

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

/* Two documents on stdout would be none. */
static int check_stdout(const options *o)
{
    size_t taken = o->json && strcmp(o->json, "-") == 0;
    for (size_t i = 0; i < o->form_count; i++) taken += strcmp(o->forms[i].file, "-") == 0;
    return taken > 1 ? usage(o, "'-' is stdout, and can be given to one form only") : 0;
}

/* What says how to quantize is for int8 alone. */
static int options_check_codes(const options *o)
{
    bool tries_all = strcmp(o->command, "recommend") == 0 && !o->precision,
         is_worker = strcmp(o->command, "worker") == 0;
    bool int8 = tries_all || is_worker || strcmp(o->command, "quantize") == 0 ||
                (o->precision && strcmp(o->precision, "int8") == 0);
    for (size_t i = 0; i < o->precision_count; i++) int8 = int8 || strcmp(o->precisions[i], "int8") == 0;
    if (int8 || (!o->calibrate && !o->calibrate_method && o->keep_accuracy <= 0 && !o->power_of_two)) return 0;
    return usage(o, "--calibrate, --calibrate-method, --keep-accuracy and --power-of-two are of -p int8");
}

static int choose_command(options *o, const char *name, const command_row **out)
{
    *out = find_command(name);
    if (*out) {
        o->command = (*out)->name;
        return 0;
    }
    const char *near = nearest_command(name);
    if (near) return usage(o, "there is no command '%s'; did you mean '%s'?", name, near);
    return usage(o, "there is no command '%s'", name);
}

/* `prony MODEL` profiles it: what is no command, and is a file or has a model's name. */
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
        print_help(stdout, about);
    else
        print_version(stdout);
    return true;
}

/* Replaces what other tools call an option by its own name. */
static bool take_other_names(options *o, int argc, char **argv)
{
    o->words = calloc((size_t)argc + 1, sizeof *o->words);
    for (int i = 1; o->words && i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) != 0) continue;
        const char *word = argv[i] + 2;
        size_t length = strcspn(word, "=");
        const char *own = option_by_other_name(word, length);
        if (!own) continue;
        size_t size = strlen(own) + strlen(word) + 3;
        char *copy = malloc(size);
        if (!copy) return false;
        snprintf(copy, size, "--%s%s", own, word + length);
        argv[i] = o->words[o->word_count++] = copy;
    }
    return o->words != NULL;
}

/* The option as it was meant, for messages: getopt has moved on past its value by then. */
static const char *option_name(int option, int index, char text[64])
{
    if (index >= 0)
        snprintf(text, 64, "--%s", long_options[index].name);
    else
        snprintf(text, 64, "-%c", option);
    return text;
}

/* What getopt has no value, no use or no name for. `word` is the argument that it came from. */
static int bad_option(const options *o, int kind, const char *word)
{
    bool is_long = strncmp(word, "--", 2) == 0;
    if (kind == ':') return is_long ? usage(o, "%s needs a value", word) : usage(o, "-%c needs a value", optopt);
    if (is_long && optopt) return usage(o, "'%s': this option takes no value", word);
    if (is_long) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
        const char *near = nearest_option(o->command ? find_command(o->command) : NULL, name);
        if (near) return usage(o, "there is no option '%s'; did you mean '--%s'?", word, near);
        return usage(o, "there is no option '%s', or it is short for several", word);
    }
    return usage(o, "there is no option '-%c'", optopt);
}

/* The options of a command line, up to --help or --version, which *done tells. */
static int parse_options(options *o, const command_row *command, int argc, char **argv, bool *done)
{
    char text[64];
    *done = true;
    opterr = 0;
    for (;;) {
        int index = -1, at = optind ? optind : 1;
        int option = getopt_long(argc, argv, ":x:y:b:i:S:r:t:w:p:o:qh", long_options, &index);
        if (option == -1) break;
        /* A short option inside of a word leaves optind on that word. */
        if (option == ':' || option == '?') return bad_option(o, option, argv[optind > at ? optind - 1 : at]);
        if (option == 'h') return print_help(stdout, command), EXIT_DONE;
        if (option == OPT_VERSION) return print_version(stdout), EXIT_DONE;
        if (!command) return usage(o, "a command is needed first");
        if (!command_takes(command, option))
            return usage(o, "'%s' has no use for %s", command->name, option_name(option, index, text));
        int status = option_take(o, option, optarg);
        while (!status && option == OPT_THRESHOLD && optind < argc && is_more_threshold(argv[optind]))
            status = option_take(o, option, argv[optind++]);
        if (status) return status;
    }
    *done = false;
    return 0;
}

/* Whoever started it reads one whole report from stdout, and does the rest. */
static void be_one_process(options *o)
{
    if (!o->one_process) return;
    o->processes = o->topk = o->top = 0;
    o->form_count = o->threshold_count = 0;
    o->output_dir = o->filter = o->sort = NULL;
    o->json = "-";
    o->quiet = o->no_progress = true;
}

/* A name that nobody knows caps nothing: what it was meant to show would not be shown. */
static int check_isa(const options *o)
{
    const char *cap = getenv("PRONY_MAX_ISA"), *names = prony_build_info()->isa_names;
    size_t length = cap ? strlen(cap) : 0;
    for (const char *name = names; length > 0; name += strcspn(name, ",") + 2) {
        if (strcspn(name, ",") == length && strncasecmp(name, cap, length) == 0) return 0;
        if (!name[strcspn(name, ",")]) return usage(o, "PRONY_MAX_ISA: '%s' is none of %s", cap, names);
    }
    return 0;
}

int options_parse(options *o, int argc, char **argv, bool *stop)
{
    const command_row *command = NULL;
    bool done;
    *o = (options){.warmup = -1, .batch_window_ns = -1, .image = PRONY_IMAGE_OPTIONS_INIT};
    *stop = true;
    o->arguments = calloc((size_t)argc + 1, sizeof *o->arguments);
    if (!o->arguments) return fail(o, "out of memory");
    int status = 0;
    if (!take_other_names(o, argc, argv)) return fail(o, "out of memory");
    if (argc >= 2 && argv[1][0] != '-' && is_question(o, argc, argv, &status)) return status;
    if (argc >= 2 && argv[1][0] != '-' && is_model_name(argv[1])) {
        status = choose_command(o, "profile", &command);
    } else if (argc >= 2 && argv[1][0] != '-') {
        status = choose_command(o, argv[1], &command);
        argv[1] = argv[0];
        argc--;
        argv++;
    }
    if (status) return status;
    o->argc = argc;
    o->argv = argv;
    status = parse_options(o, command, argc, argv, &done);
    if (done) return status;
    if (!command) return print_help(stderr, NULL), EXIT_USAGE;
    be_one_process(o);
    while (optind < argc) o->arguments[o->argument_count++] = argv[optind++];
    if ((int)o->argument_count < command->min_arguments) return usage(o, "%s is missing", command->arguments);
    if (command->max_arguments >= 0 && (int)o->argument_count > command->max_arguments)
        return usage(o, "'%s' is one argument too many", o->arguments[command->max_arguments]);
    status = check_stdout(o);
    if (!status) status = options_check_codes(o);
    if (!status) status = check_isa(o);
    if (!status) status = set_memory_limit(o);
    if (status) return status;
    *stop = false;
    return 0;
}

void options_free(options *o)
{
    for (size_t i = 0; i < o->word_count; i++) free(o->words[i]);
    free(o->words);
    free(o->arguments);
    free(o->dims);
    free(o->max_dims);
    free(o->shapes);
    free(o->precisions);
    free(o->inputs);
    free(o->from);
    free(o->to);
    free(o->forms);
    free(o->thresholds);
    free(o->against);
}
