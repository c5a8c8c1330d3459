/* prony verify DIR...: every ONNX test folder below DIR (model.onnx beside test_data_set_K/{input,output}_K.pb) is run
 * and its outputs compared by ONNX's own rule; outputs of random operators by type, shape and range. Verdicts: pass,
 * fail (wrong result or error), unsupported (operator, type or value kind that this build cannot run). Exit status 3
 * unless all pass. */
#include "bench/process/interrupt.h"
#include "bench/terminal/json_file.h"
#include "bench/session/value_compare.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef enum verdict { VERDICT_PASS, VERDICT_FAIL, VERDICT_UNSUPPORTED } verdict;
static const char *const verdict_names[] = {"pass", "fail", "unsupported"};

typedef struct verification {
    const options *o;
    size_t counts[3];
    json_file json;
    bool first;
} verification;

typedef struct case_result {
    verdict verdict;
    char reason[PRONY_ERROR_MESSAGE_BYTES + 64];
} case_result;

static char *verify_command_join(const char *dir, const char *name)
{
    size_t size = strlen(dir) + strlen(name) + 2;
    char *path = malloc(size);
    if (path) snprintf(path, size, "%s/%s", dir, name);
    return path;
}

/* true: the file exists, or cannot be examined; then reading it gives the reason. */
static bool exists(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

static void set_result(case_result *result, verdict verdict, const char *reason)
{
    result->verdict = verdict;
    snprintf(result->reason, sizeof result->reason, "%s", reason);
}

static void set_error(case_result *result, const prony_error *error)
{
    set_result(result, error->status == PRONY_UNSUPPORTED ? VERDICT_UNSUPPORTED : VERDICT_FAIL,
               *error->message ? error->message : prony_status_text(error->status));
}

static void set_unreadable(case_result *result, int code)
{
    char reason[256];
    snprintf(reason, sizeof reason, "cannot read the folder: %s", strerror(code));
    set_result(result, VERDICT_FAIL, reason);
}

/* *out stays NULL if the file does not exist. NumPy has no bfloat16, so ONNX's older data holds its bits as uint16. */
static prony_status load_numbered(prony_value **out, const char *dir, const char *what, size_t k,
                                  const prony_value_info *port, prony_error *error)
{
    char name[64];
    snprintf(name, sizeof name, "%s_%zu.pb", what, k);
    char *path = verify_command_join(dir, name);
    prony_status status = path && exists(path) ? prony_value_load_kind(out, path, port->kind, error) : PRONY_OK;
    if (*out && port->kind == PRONY_TENSOR && port->dtype == PRONY_BFLOAT16 && (*out)->dtype == PRONY_UINT16)
        (*out)->dtype = PRONY_BFLOAT16;
    free(path);
    return status;
}

static prony_status bind_set(prony_session *session, const prony_model *model, const char *dir, prony_error *error)
{
    for (size_t i = 0; i < prony_model_input_count(model); i++) {
        prony_value *value = NULL;
        const prony_value_info *port = prony_model_input(model, i);
        prony_status status = load_numbered(&value, dir, "input", i, port, error);
        if (status == PRONY_OK && value) status = prony_session_set_input(session, port->name, value, error);
        prony_value_release(value);
        if (status != PRONY_OK) return status;
    }
    return PRONY_OK;
}

/* Compares by value first, also for random operators, because some seeded ones define their values. */
static prony_status verify_command_check_output(const prony_session *session, size_t k, const char *name,
                                                const prony_value *want, case_result *result, prony_error *error)
{
    const prony_value *got;
    bool random;
    prony_random_range range;
    char difference[512], reason[800];
    prony_status status = prony_session_output(session, k, &got, error);
    if (status == PRONY_OK) status = prony_session_output_random(session, k, &random, &range, error);
    if (status != PRONY_OK || value_matches(got, want, difference, sizeof difference)) return status;
    bool pass = random && value_is_drawn(got, want, &range, difference, sizeof difference);
    if (pass) snprintf(difference, sizeof difference, "random: compared by type, shape and range");
    snprintf(reason, sizeof reason, "output %zu '%s': %s", k, name, difference);
    set_result(result, pass ? VERDICT_PASS : VERDICT_FAIL, reason);
    return PRONY_OK;
}

static void verify_command_check_outputs(const prony_session *session, const prony_model *model, const char *dir,
                                         case_result *result)
{
    for (size_t k = 0; k < prony_model_output_count(model) && result->verdict == VERDICT_PASS; k++) {
        prony_error error = {0};
        prony_value *want = NULL;
        const prony_value_info *port = prony_model_output(model, k);
        prony_status status = load_numbered(&want, dir, "output", k, port, &error);
        if (status == PRONY_OK && want)
            status = verify_command_check_output(session, k, port->name, want, result, &error);
        if (status != PRONY_OK) set_error(result, &error);
        prony_value_release(want);
    }
}

static void run_set(const options *o, prony_model *model, const char *dir, case_result *result)
{
    prony_error error = {0};
    prony_session *session = NULL;
    prony_session_options s = session_options(o);
    s.no_profile = true;
    if (session_create(&session, model, &s, &error) != PRONY_OK || bind_set(session, model, dir, &error) != PRONY_OK ||
        prony_session_run(session, &error) != PRONY_OK)
        set_error(result, &error);
    else
        verify_command_check_outputs(session, model, dir, result);
    session_release(session);
}

static int verify_command_by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted names of the folder's entries that begin with `prefix`; NULL-terminated. NULL, with errno: it cannot be
 * read. */
static char **verify_command_list_folder(const char *dir, const char *prefix)
{
    size_t count = 0;
    DIR *folder = opendir(dir);
    char **names = folder ? calloc(1, sizeof *names) : NULL;
    struct dirent *entry;
    while (names && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.' || strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
        char **more = realloc(names, (count + 2) * sizeof *names);
        char *name = more ? strdup(entry->d_name) : NULL;
        if (more) names = more;
        if (!name) break;
        names[count++] = name;
        names[count] = NULL;
    }
    if (folder) closedir(folder);
    if (names && count) qsort(names, count, sizeof *names, verify_command_by_text);
    return names;
}

static void free_list(char **names)
{
    for (char **n = names; n && *n; n++) free(*n);
    free(names);
}

static void verify_command_tell(verification *v, const char *dir, const case_result *result)
{
    FILE *json = v->json.stream;
    v->counts[result->verdict]++;
    if (json) {
        fprintf(json, "%s\n    {\"case\": ", v->first ? "" : ",");
        json_text(json, dir);
        fprintf(json, ", \"verdict\": \"%s\", \"reason\": ", verdict_names[result->verdict]);
        json_text(json, result->reason);
        fputc('}', json);
        v->first = false;
    }
    if (json == stdout || v->o->terminal.quiet) return;
    printf("%-11s %s\n", verdict_names[result->verdict], dir);
    if (!*result->reason) return;
    printf("            ");
    put_text(stdout, result->reason);
    putchar('\n');
}

static void verify_case(verification *v, const char *dir)
{
    case_result result = {VERDICT_PASS, ""};
    prony_error error = {0};
    prony_model *model = NULL;
    char *path = verify_command_join(dir, "model.onnx");
    char **sets = verify_command_list_folder(dir, "test_data_set_");
    const int code = errno;
    if (!path || load_model(v->o, &model, path, &error) != PRONY_OK) {
        set_error(&result, &error);
    } else if (!sets) {
        set_unreadable(&result, code);
    } else if (!*sets) {
        set_result(&result, VERDICT_FAIL, "no test_data_set_* folder beside model.onnx");
    } else {
        for (char **set = sets; *set && result.verdict == VERDICT_PASS; set++) {
            char *data = verify_command_join(dir, *set);
            if (data) run_set(v->o, model, data, &result);
            free(data);
        }
    }
    if (!interrupted() || result.verdict == VERDICT_PASS) verify_command_tell(v, dir, &result);
    prony_model_release(model);
    free_list(sets);
    free(path);
}

/* Depth of folders is bounded, so that a loop of links ends. */
static size_t verify_command_walk(verification *v, const char *dir, int depth)
{
    size_t found = 0;
    if (interrupted()) return 1; /* not examined */
    char *model = verify_command_join(dir, "model.onnx"), **names = NULL;
    if (model && exists(model)) {
        verify_case(v, dir);
        found = 1;
    } else if (depth < 32 && !(names = verify_command_list_folder(dir, ""))) {
        case_result result;
        set_unreadable(&result, errno);
        verify_command_tell(v, dir, &result);
        found = 1;
    } else if (depth < 32) {
        for (char **name = names; name && *name; name++) {
            struct stat s;
            char *path = verify_command_join(dir, *name);
            if (path && stat(path, &s) == 0 && S_ISDIR(s.st_mode)) found += verify_command_walk(v, path, depth + 1);
            free(path);
        }
        free_list(names);
    }
    free(model);
    return found;
}

/* A folder that cannot be read does not end the walk: `code` remembers the failure, and the other folders are verified.
 * The JSON document is complete after an interruption too, with the cases until then. EXIT_VERDICT is returned only if
 * the command itself did not fail. */
int command_verify(const options *o)
{
    verification v = {.o = o, .first = true};
    int code = json_open(&v.json, o);
    if (code != EXIT_DONE) return code;
    FILE *json = v.json.stream;
    if (json) {
        json_begin(v.json.stream, "prony.verify/1");
        fputs(",\n  \"cases\": [", json);
    }
    for (size_t i = 0; i < o->argument_count; i++) {
        struct stat s;
        const char *dir = o->arguments[i];
        if (stat(dir, &s) != 0)
            code = fail(o, "'%s': %s", dir, strerror(errno));
        else if (verify_command_walk(&v, dir, 0) == 0)
            code = fail(o, "'%s': no model.onnx in it or in its folders", dir);
    }
    if (json)
        fprintf(json, "\n  ], \"passed\": %zu, \"failed\": %zu, \"unsupported\": %zu}\n", v.counts[VERDICT_PASS],
                v.counts[VERDICT_FAIL], v.counts[VERDICT_UNSUPPORTED]);
    if (interrupted()) fail(o, "%s; the remaining cases were not verified and are not counted", interrupted());
    if (json != stdout && !o->terminal.quiet)
        printf("%zu passed, %zu failed, %zu unsupported\n", v.counts[VERDICT_PASS], v.counts[VERDICT_FAIL],
               v.counts[VERDICT_UNSUPPORTED]);
    if (code == EXIT_DONE && (v.counts[VERDICT_FAIL] || v.counts[VERDICT_UNSUPPORTED])) code = EXIT_VERDICT;
    return json_close(&v.json, o, code);
}
