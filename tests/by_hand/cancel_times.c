/* How soon operators answer a request to stop, for a person to read: it measures time, so it is no test.
 *
 *     cancel_times [-t THREADS] [-w] [TEXT]
 *
 * For every case whose name contains TEXT: a model of one large operator is run, and called off after 25, 60 and 250 ms by
 * another thread. Printed is the most processor time of the whole process, in ms, between the request and the answer, and how
 * many of the runs were called off (the others had ended). Cases marked > exceed 100 ms. With -w nothing is called off, and the
 * time of the second of two whole runs is printed. */
#include "tests/by_hand/cancel_cases.h"
#include "tests/model_builder.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_INPUTS 10

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void check(prony_status status, const prony_error *error)
{
    if (status == PRONY_OK) return;
    printf("?             %s\n", error->message);
    fflush(stdout);
    exit(1);
}

/* ---- inputs ---- */

typedef struct input {
    char name[8], dims[48];
    prony_value value;
    bool constant;
} input;

static prony_dtype type_of(char letter)
{
    static const struct {
        char letter;
        prony_dtype dtype;
    } types[] = {{'f', PRONY_FLOAT32}, {'d', PRONY_FLOAT64}, {'h', PRONY_FLOAT16}, {'i', PRONY_INT64}, {'j', PRONY_INT32},
                 {'u', PRONY_UINT8},   {'c', PRONY_INT8},    {'b', PRONY_BOOL},    {'s', PRONY_STRING}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].letter == letter) return types[i].dtype;
    fprintf(stderr, "cancel_times: no type '%c'\n", letter);
    exit(1);
}

static void put(prony_value *v, int64_t i, double x)
{
    static const char text[] = "the quick brown fox";
    switch (v->dtype) {
    case PRONY_FLOAT32:
        ((float *)v->data)[i] = (float)x;
        break;
    case PRONY_FLOAT64:
        ((double *)v->data)[i] = x;
        break;
    case PRONY_INT64:
        ((int64_t *)v->data)[i] = (int64_t)x;
        break;
    case PRONY_INT32:
        ((int32_t *)v->data)[i] = (int32_t)x;
        break;
    case PRONY_STRING:
        ((prony_string *)v->data)[i] = (prony_string){text, sizeof text - 1};
        break;
    case PRONY_FLOAT16: /* small numbers of either sign */
        ((uint16_t *)v->data)[i] = (uint16_t)(0x2c00 | (x < 0 ? 0x8000 : 0) | ((int)(x * 512) & 0x3ff));
        break;
    default:
        ((uint8_t *)v->data)[i] = (uint8_t)(int64_t)x;
        break;
    }
}

/* "[!]TYPE DIMS[=value,…|%below]" without the blank; numbers otherwise lie in [-1, 1). */
static void make_input(input *in, const char *text, int index)
{
    char *data = strdup(text), *at = data;
    in->constant = *at == '!';
    if (in->constant) at++;
    in->value = (prony_value){.dtype = type_of(*at++)};
    snprintf(in->name, sizeof in->name, "i%d", index);
    size_t size = strcspn(at, "=%");
    const char kind = at[size];
    at[size] = '\0';
    snprintf(in->dims, sizeof in->dims, "%s", at);
    int64_t count = 1;
    for (char *d = at; *d;) {
        int64_t dim = strtoll(d, &d, 10);
        in->value.shape.dim[in->value.shape.rank++] = dim;
        count *= dim;
        if (*d == ',') d++;
    }
    const size_t bytes = prony_dtype_bytes(in->value.dtype, count);
    in->value.data = malloc(bytes + 16);
    if (!in->value.data) exit(1);
    at += size + 1;
    double below = kind == '%' ? strtod(at, NULL) : 0;
    uint64_t state = 88172645463325252u;
    for (int64_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        double x = (double)(state >> 40) / (1 << 23) - 1;
        if (kind == '=') {
            x = strtod(at, &at);
            if (*at == ',') at++;
        } else if (kind == '%') {
            x = (double)(state >> 40) / (1 << 24) * below;
        }
        put(&in->value, i, x);
    }
    free(data);
}

/* ---- a case ---- */

typedef struct canceller {
    prony_session *session;
    int64_t after_ms;
    double at;
} canceller;

static void *cancel_later(void *argument)
{
    canceller *c = argument;
    nanosleep(&(struct timespec){c->after_ms / 1000, c->after_ms % 1000 * 1000000}, NULL);
    c->at = cpu_ms();
    prony_session_cancel(c->session);
    return NULL;
}

static int make_inputs(const cancel_case *c, input *inputs)
{
    char list[256];
    int count = 0;
    snprintf(list, sizeof list, "%s", c->inputs);
    for (char *part = strtok(list, " "); part && count < MOST_INPUTS; part = strtok(NULL, " "), count++) {
        if (*part == '?')
            inputs[count] = (input){.name = "?"};
        else
            make_input(&inputs[count], part, count);
    }
    return count;
}

static model_builder *build(const cancel_case *c, const input *inputs, int count)
{
    char names[128];
    int used = 0;
    model_builder *m = mb_begin(c->opset);
    if (strchr(c->op, ':')) {
        char domain[64];
        snprintf(domain, sizeof domain, "%.*s", (int)strcspn(c->op, ":"), c->op);
        mb_opset(m, domain, 1);
    }
    for (int i = 0; i < count; i++) {
        const input *in = &inputs[i];
        used += snprintf(names + used, sizeof names - (size_t)used, "%s%.7s", i ? " " : "", in->name);
        if (in->name[0] == '?') continue;
        if (in->constant)
            mb_initializer(m, in->name, in->value.dtype, in->dims, in->value.data);
        else
            mb_input(m, in->name, in->value.dtype, in->dims);
    }
    mb_node(m, c->op, names, c->outputs ? c->outputs : "y", c->attributes);
    char first[16];
    snprintf(first, sizeof first, "%.*s", c->outputs ? (int)strcspn(c->outputs, " ") : 1, c->outputs ? c->outputs : "y");
    mb_output(m, first, c->type ? type_of(*c->type) : inputs[0].value.dtype, NULL);
    return m;
}

static void whole_runs(prony_session *session, const char *name)
{
    prony_error error = {0};
    double before = 0;
    for (int run = 0; run < 2; run++) {
        before = cpu_ms();
        check(prony_session_run(session, &error), &error);
    }
    printf("%9.1f  %s\n", cpu_ms() - before, name);
    fflush(stdout);
}

static void measure(const cancel_case *c, int threads, bool whole)
{
    static const int64_t delays[] = {25, 60, 250};
    prony_error error = {0};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    input inputs[MOST_INPUTS] = {0};
    size_t size;
    options.intra_op_threads = threads;
    const int count = make_inputs(c, inputs);
    model_builder *m = build(c, inputs, count);
    const void *bytes = mb_finish(m, &size);
    check(prony_model_load_memory(&model, c->name, bytes, size, NULL, &error), &error);
    check(prony_session_create(&session, model, &options, &error), &error);
    for (int i = 0; i < count; i++) {
        if (!inputs[i].constant && inputs[i].name[0] != '?')
            check(prony_session_set_input(session, inputs[i].name, &inputs[i].value, &error), &error);
        free(inputs[i].value.data);
    }
    if (whole) {
        whole_runs(session, c->name);
        return;
    }
    double worst = 0;
    int cancelled = 0;
    for (size_t d = 0; d < sizeof delays / sizeof *delays; d++) {
        canceller who = {session, delays[d], 0};
        pthread_t other;
        if (pthread_create(&other, NULL, cancel_later, &who) != 0) exit(1);
        prony_status status = prony_session_run(session, &error);
        double now = cpu_ms();
        pthread_join(other, NULL);
        if (status == PRONY_CANCELLED) {
            cancelled++;
            if (now - who.at > worst) worst = now - who.at;
        } else {
            check(status, &error);
        }
        check(prony_session_uncancel(session, &error), &error);
    }
    printf("%c %7.1f  %d  %s\n", worst > 100 ? '>' : ' ', worst, cancelled, c->name);
    fflush(stdout);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

int main(int count, char **arguments)
{
    int threads = 1;
    bool whole = false;
    const char *text = "";
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "-t") == 0 && i + 1 < count)
            threads = atoi(arguments[++i]);
        else if (strcmp(arguments[i], "-w") == 0)
            whole = true;
        else
            text = arguments[i];
    }
    for (const cancel_case *c = cancel_cases; c->name; c++) {
        if (!strstr(c->name, text)) continue;
        pid_t child = fork(); /* one that does not run ends alone, and gives its memory back */
        if (child == 0) {
            measure(c, threads, whole);
            return 0;
        }
        if (child < 0 || waitpid(child, NULL, 0) < 0) return 1;
    }
    return 0;
}
