/* Inputs from files and literals. Values are released once the session has copied them. */
#include "bench/session/inputs.h"
#include "bench/process/interrupt.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const prony_value_info *find_port(const prony_model *model, const char *name)
{
    for (size_t i = 0; i < prony_model_input_count(model); i++)
        if (strcmp(prony_model_input(model, i)->name, name) == 0) return prony_model_input(model, i);
    for (size_t i = 0; i < prony_model_optional_input_count(model); i++)
        if (strcmp(prony_model_optional_input(model, i)->name, name) == 0) return prony_model_optional_input(model, i);
    return NULL;
}

static bool names_input(const void *model, const char *name, const char *file)
{
    (void)file;
    return find_port(model, name) != NULL;
}

static bool inputs_ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

/* ---- the forms of a value ---- */

prony_status load_image(const options *o, const prony_session *session, const char *name, const char *file,
                        prony_value **out, prony_error *error)
{
    prony_value_info port;
    prony_status status = prony_session_input(session, name, &port, error);
    return status == PRONY_OK ? prony_image_load(out, file, &port, image_options(o), error) : status;
}

/* One free dimension of a raw file follows from the file's size. */
static bool shape_from_size(prony_value_info *port, const char *file)
{
    struct stat info;
    size_t width = prony_dtype_bytes(port->dtype, 1);
    int64_t others = 1;
    int open = -1;
    for (int d = 0; d < port->shape.rank; d++) {
        if (port->shape.dim[d] >= 0) {
            others *= port->shape.dim[d] ? port->shape.dim[d] : 1;
        } else {
            if (open >= 0) return false;
            open = d;
        }
    }
    if (open < 0 || !width || others <= 0 || stat(file, &info) != 0) return false;
    int64_t elements = (int64_t)info.st_size / (int64_t)width;
    if (elements % others) return false;
    port->shape.dim[open] = elements / others;
    return true;
}

static prony_status load_raw(prony_session *session, const char *name, const char *file, prony_value **out,
                             prony_error *error)
{
    prony_value_info port;
    prony_status status = prony_session_input(session, name, &port, error);
    if (status == PRONY_OK && !shape_from_size(&port, file))
        status = prony_session_input_shape(session, name, &port.shape, error);
    return status == PRONY_OK ? prony_value_load_raw(out, file, port.dtype, &port.shape, error) : status;
}

/* A list sets free dimensions; a single value fills the input's shape. */
static prony_status load_literal(const options *o, prony_session *session, const char *name, const char *text,
                                 prony_value **out, prony_error *error)
{
    prony_value_info port;
    prony_status status = prony_session_input(session, name, &port, error);
    if (status == PRONY_OK && *text != '[') status = prony_session_input_shape(session, name, &port.shape, error);
    if (status == PRONY_OK) {
        char message[PRONY_ERROR_MESSAGE_BYTES];
        status = prony_value_parse(out, text, port.dtype, &port.shape, o->model.seed, error);
        if (status == PRONY_OK) return PRONY_OK;
        snprintf(message, sizeof message, "input '%.100s': %.800s", name, error->message);
        memcpy(error->message, message, sizeof message);
    }
    return status;
}

static prony_status load_input(const options *o, const prony_value_info *port, prony_session *session,
                               const named_file *in, prony_value **value, prony_error *error)
{
    if (port && prony_image_is_file(in->file)) return load_image(o, session, in->name, in->file, value, error);
    if (inputs_ends_with(in->file, ".npz")) return prony_value_load_array(value, in->file, in->name, error);
    if (!port || inputs_ends_with(in->file, ".npy") || inputs_ends_with(in->file, ".pb"))
        return prony_value_load(value, in->file, error);
    if (prony_value_is_literal(in->file) && access(in->file, F_OK) != 0)
        return load_literal(o, session, in->name, in->file, value, error);
    if (access(in->file, F_OK) != 0) {
        error->status = PRONY_IO_ERROR;
        snprintf(error->message, sizeof error->message,
                 "input '%.100s': '%.500s' is neither a file nor a value such as %s", in->name, in->file,
                 port->dtype == PRONY_STRING ? "'\"x\"' or '[\"x\", \"y\"]'"
                                             : "16000, [1, 2, 3], zeros, ones or uniform:-1:1");
        return PRONY_IO_ERROR;
    }
    return load_raw(session, in->name, in->file, value, error);
}

/* Checks that two statements about a shape on the command line agree. */
static int check_file(const options *o, const prony_model *model, const prony_value_info *port, const named_file *in,
                      const prony_value *value)
{
    const prony_shape *shape = &value->shape;
    bool optional = true; /* true: neither the batch nor dimension options apply */
    for (size_t i = 0; i < prony_model_input_count(model); i++)
        optional = optional && prony_model_input(model, i) != port;
    if (optional || value->kind != PRONY_TENSOR || shape->rank != port->shape.rank) return EXIT_DONE;
    for (size_t i = 0; i < o->model.shape_count; i++) {
        const prony_shape *said = &o->model.shapes[i].shape;
        bool same = said->rank == shape->rank;
        if (strcmp(o->model.shapes[i].name, port->name) != 0) continue;
        for (int d = 0; same && d < shape->rank; d++) same = said->dim[d] == shape->dim[d];
        if (!same) return fail(o, "input '%s': the shape of '%s' differs from --shape", port->name, in->file);
    }
    for (int d = 0; d < shape->rank; d++) {
        long long extent = (long long)shape->dim[d];
        if (d == 0 && o->model.batch > 0 && extent != o->model.batch)
            return fail(o, "input '%s': -b is %lld, but '%s' has batch %lld", port->name, (long long)o->model.batch,
                        in->file, extent);
        for (size_t k = 0; k < o->model.dim_count && port->dim_names[d]; k++)
            if (strcmp(o->model.dims[k].name, port->dim_names[d]) == 0 && o->model.dims[k].value != extent)
                return fail(o, "input '%s': dimension '%s' is set to %lld, but is %lld in '%s'", port->name,
                            o->model.dims[k].name, (long long)o->model.dims[k].value, extent, in->file);
    }
    return EXIT_DONE;
}

int bind_given_inputs(const options *o, const prony_model *model, prony_session *session)
{
    prony_error error = {0};
    prony_model *of = (prony_model *)(uintptr_t)model;
    for (size_t i = 0; i < o->model.input_count; i++) {
        named_file *in = &o->model.inputs[i];
        cut_name_where(in, names_input, model);
        const prony_value_info *port = find_port(model, in->name);
        prony_value *value = NULL;
        for (size_t k = 0; k < i; k++)
            if (strcmp(o->model.inputs[k].name, in->name) == 0) return fail(o, "input '%s' is given twice", in->name);
        prony_value_info unknown;
        prony_status status = port ? PRONY_OK : prony_session_input(session, in->name, &unknown, &error);
        if (status == PRONY_OK) status = load_input(o, port, session, in, &value, &error);
        if (status == PRONY_OK) status = prony_session_set_input(session, in->name, value, &error);
        int code = status == PRONY_OK ? check_file(o, model, port, in, value) : report_session_error(o, of, &error);
        prony_value_release(value);
        if (code != EXIT_DONE) return code;
    }
    return EXIT_DONE;
}

int bind_inputs(const options *o, const prony_model *model, prony_session *session)
{
    prony_error error = {0};
    prony_model *of = (prony_model *)(uintptr_t)model;
    const int code = bind_given_inputs(o, model, session);
    if (code != EXIT_DONE) return code;
    return prony_session_generate_inputs(session, o->model.seed, &error) == PRONY_OK
               ? EXIT_DONE
               : report_session_error(o, of, &error);
}

/* ---- the question ---- */

static void inputs_put_port(const prony_value_info *port)
{
    fprintf(stderr, "  input ");
    put_text(stderr, port->name);
    fprintf(stderr, "  %s[", prony_dtype_name(port->dtype));
    for (int d = 0; d < port->shape.rank; d++) {
        fputs(d ? ", " : "", stderr);
        if (port->shape.dim[d] >= 0)
            fprintf(stderr, "%lld", (long long)port->shape.dim[d]);
        else
            put_text(stderr, port->dim_names[d] ? port->dim_names[d] : "?");
    }
    fputs("]\n", stderr);
}

static bool is_plain_word(const char *text)
{
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=+-@,")] == '\0';
}

/* Writes text quoted as one shell word. */
static void inputs_put_word(const char *text)
{
    if (*text && is_plain_word(text)) {
        put_text(stderr, text);
        return;
    }
    fputc('\'', stderr);
    for (; *text; text++) {
        char one[2] = {*text, '\0'};
        if (*text == '\'')
            fputs("'\\''", stderr);
        else
            put_text(stderr, one);
    }
    fputc('\'', stderr);
}

static void put_dim_option(const prony_free_dim *dim, int64_t value)
{
    char number[32] = "N";
    size_t size = strlen(dim->name) + sizeof number + 2;
    char *word = malloc(size);
    if (!word) return;
    if (value >= 0) snprintf(number, sizeof number, "%lld", (long long)value);
    snprintf(word, size, "%s=%s", dim->name, number);
    fputs("--dim ", stderr);
    inputs_put_word(word);
    free(word);
}

static void inputs_put_rows(const prony_free_dim *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fputs("  ", stderr);
        put_dim_option(&rows[i], -1);
        fprintf(stderr, "   axis %d of ", rows[i].axis);
        put_text(stderr, rows[i].input);
        if (rows[i].value >= 0)
            fprintf(stderr, ": is %lld (%s)\n", (long long)rows[i].value,
                    strcmp(rows[i].reason, "batch") == 0 ? "the batch; also -b N" : rows[i].reason);
        else
            fputs(": needs a value\n", stderr);
    }
}

static void put_example(const options *o, const prony_free_dim *rows, size_t count)
{
    bool known = true;
    for (size_t i = 0; i < count; i++) known = known && (rows[i].value >= 0 || rows[i].example >= 0);
    if (known) {
        fprintf(stderr, "These values fit the shapes; the model's author knows the intended ones:\n  prony %s ",
                o->command);
        inputs_put_word(o->arguments[0]);
        for (size_t i = 0; i < count; i++) {
            if (rows[i].value >= 0) continue;
            fputc(' ', stderr);
            put_dim_option(&rows[i], rows[i].example);
        }
        fputc('\n', stderr);
    }
    fputs("All of them at once: --dim '*'=1. A whole shape: --shape INPUT=1x3x224x224.\n", stderr);
}

int report_session_error(const options *o, prony_model *model, const prony_error *error)
{
    prony_session_options s = session_options(o);
    prony_free_dim *rows = NULL;
    prony_error other = {0};
    size_t count = 0, open = 0;
    if (error->status != PRONY_NEEDS_DIMENSION) return report_error(o, error);
    interrupt_at_once(true);
    prony_status status = prony_model_free_dims(&rows, &count, model, &s, &other);
    interrupt_at_once(false);
    if (status != PRONY_OK) return report_error(o, error);
    for (size_t i = 0; i < count; i++) open += rows[i].value < 0;
    if (!open) {
        prony_rows_release(rows);
        return report_error(o, error);
    }
    clear_progress();
    fail(o, "%s leaves %zu dimension%s of its inputs free, and gives no sizes for them", o->arguments[0], open,
         open == 1 ? "" : "s");
    for (size_t i = 0; i < prony_model_input_count(model); i++) inputs_put_port(prony_model_input(model, i));
    inputs_put_rows(rows, count);
    put_example(o, rows, count);
    prony_rows_release(rows);
    return EXIT_FAILED;
}
