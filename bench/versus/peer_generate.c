/* The peer's side of versus --generate: the loop around ONNX Runtime that feeds ids, masks, positions and the cache.
 * The parent writes a file that says what each input is for (versus_generate.c); growing caches are fed back as the
 * values that the run made, shared ones are written in place. */
#include "bench/generate/generate.h"
#include "bench/versus/ort.h"
#include "bench/versus/versus.h"
#include "prony_analysis.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LINE = 4096, FEWEST = 3, MOST_REPETITIONS = 1000 };

typedef struct peer_feed {
    char name[512], role[32];
    prony_value value; /* data owned; of a growing cache: without rows */
    size_t output;
    bool shared;     /* of a cache: it is written in place */
    bool rolled;     /* of a mask of a fixed length: its last places are filled */
    int64_t fixed;   /* last dimension of a mask that has a fixed length; 0: that of the keys */
    size_t capacity; /* elements of value.data */
} peer_feed;

typedef struct peer_decoder {
    const options *o;
    ort ort;
    peer_feed *feeds;
    size_t count, logits;
    int64_t batch, max_length;
    prompt prompt;
    int64_t *ids; /* [batch, max_length] */
    int64_t length;
    bool has_cache;
    bool one_column;               /* prompts are read token by token */
    int64_t prefill_ns, decode_ns; /* of the last repetition */
} peer_decoder;

/* ---- what inputs are for */

/* A line "role type output rank dims shared name"; dims are separated by commas, -1: rows. `shared` of a mask:
 * rolled. */
static bool peer_feed_read(peer_feed *f, char *line)
{
    char dims[512];
    int type = 0, rank = 0, shared = 0, used = 0;
    if (sscanf(line, "%31s %d %zu %d %511s %d %n", f->role, &type, &f->output, &rank, dims, &shared, &used) != 6 ||
        rank < 0 || rank > PRONY_MAX_RANK)
        return false;
    snprintf(f->name, sizeof f->name, "%s", line + used);
    f->value = (prony_value){.dtype = (prony_dtype)type, .shape = {.rank = rank}};
    const bool mask = strcmp(f->role, "mask") == 0;
    f->shared = shared != 0 && !mask;
    f->rolled = shared != 0 && mask;
    const char *at = dims;
    for (int d = 0; d < rank; d++) {
        char *end;
        f->value.shape.dim[d] = strtoll(at, &end, 10);
        at = *end ? end + 1 : end;
    }
    if (mask && rank > 0 && f->value.shape.dim[rank - 1] > 0) f->fixed = f->value.shape.dim[rank - 1];
    return true;
}

static int peer_read_feeds(peer_decoder *d)
{
    char line[MOST_LINE];
    FILE *file = d->o->generate.roles ? fopen(d->o->generate.roles, "r") : NULL;
    long long batch = 0, most = 0;
    bool ok = file && fgets(line, sizeof line, file) &&
              sscanf(line, "%zu %lld %lld %zu", &d->logits, &batch, &most, &d->count) == 4;
    d->batch = batch;
    d->max_length = most;
    d->feeds = ok ? calloc(d->count + 1, sizeof *d->feeds) : NULL;
    for (size_t k = 0; ok && k < d->count; k++) {
        ok = d->feeds && fgets(line, sizeof line, file);
        if (ok) line[strcspn(line, "\n")] = '\0';
        ok = ok && peer_feed_read(&d->feeds[k], line);
        const prony_shape *shape = ok ? &d->feeds[k].value.shape : NULL;
        if (ok && strcmp(d->feeds[k].role, "ids") == 0) d->one_column = shape->rank && shape->dim[shape->rank - 1] == 1;
    }
    if (file) fclose(file);
    return ok ? EXIT_DONE : fail(d->o, "'%s': not a list of a decoder's inputs", d->o->generate.roles);
}

/* ---- values */

static void peer_put(peer_feed *f, size_t at, int64_t value)
{
    switch ((int)f->value.dtype) {
    case PRONY_INT64:
        ((int64_t *)f->value.data)[at] = value;
        break;
    case PRONY_INT32:
        ((int32_t *)f->value.data)[at] = (int32_t)value;
        break;
    case PRONY_BOOL:
        ((uint8_t *)f->value.data)[at] = value != 0;
        break;
    default:
        ((float *)f->value.data)[at] = (float)value;
    }
}

static int peer_reserve(const peer_decoder *d, peer_feed *f)
{
    const size_t count = (size_t)prony_shape_numel(&f->value.shape);
    if (f->value.dtype != PRONY_INT64 && f->value.dtype != PRONY_INT32 && f->value.dtype != PRONY_BOOL &&
        f->value.dtype != PRONY_FLOAT32)
        return fail(d->o, "input '%s': the peer's loop feeds no %s", f->name, prony_dtype_name(f->value.dtype));
    if (count <= f->capacity) return EXIT_DONE;
    free(f->value.data);
    f->value.data = calloc(count, sizeof(int64_t));
    f->capacity = f->value.data ? count : 0;
    return f->value.data ? EXIT_DONE : fail(d->o, "out of memory");
}

/* A mask of `total` keys, where those from `begin` on are tokens; with rows: row c may look at keys up to its own. */
static void peer_fill_mask(peer_feed *f, int64_t batch, int64_t begin, int64_t first, int64_t columns, int64_t total)
{
    const bool rows = f->value.shape.rank > 2, floats = rows && f->value.dtype == PRONY_FLOAT32;
    const int64_t lines = batch * (rows ? columns : 1);
    for (int64_t r = 0; r < lines; r++) {
        const int64_t last = begin + first + (rows ? r % columns : columns - 1);
        for (int64_t t = 0; t < total; t++) {
            const bool shown = t >= begin && t <= last;
            if (floats)
                ((float *)f->value.data)[r * total + t] = shown ? 0.0f : -0x1.fep127f;
            else
                peer_put(f, (size_t)(r * total + t), shown);
        }
    }
}

/* The number that an input of the role has at `column` of a run from `first` to `end`. */
static int64_t peer_number(const peer_feed *f, int64_t column, int64_t first, int64_t end)
{
    static const struct {
        const char *role;
        int kind; /* 0: first, 1: end, 2: end - 1, 3: column, 4: behind the first run */
    } numbers[] = {{"past_length", 0}, {"starts", 0},    {"total", 1}, {"keys", 1},
                   {"lengths", 2},     {"positions", 3}, {"rows", 3},  {"use_cache", 4}};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        if (strcmp(f->role, numbers[k].role) == 0)
            return (const int64_t[]){first, end, end - 1, column, first > 0}[numbers[k].kind];
    return 0;
}

static bool peer_is_any(const peer_feed *f, const char *const *roles)
{
    for (; *roles; roles++)
        if (strcmp(f->role, *roles) == 0) return true;
    return false;
}

/* Fills one input for columns [first, first + columns). */
static int peer_fill(const peer_decoder *d, peer_feed *f, int64_t first, int64_t columns)
{
    static const char *const rows[] = {"ids", "positions", "types", NULL}, *const each[] = {"lengths", "keys", "starts",
                                                                                            NULL};
    const int64_t total = first + columns, keys = f->fixed ? f->fixed : total, batch = d->batch;
    const bool by_row = peer_is_any(f, rows), mask = strcmp(f->role, "mask") == 0;
    prony_shape *shape = &f->value.shape;
    if (keys < total)
        return fail(d->o, "input '%s' has %lld columns; wanted %lld", f->name, (long long)keys, (long long)total);
    if (by_row || mask) {
        shape->dim[0] = batch;
        if (shape->rank > 2) shape->dim[shape->rank - 2] = columns;
        if (shape->rank == 4) shape->dim[1] = 1;
        shape->dim[shape->rank - 1] = mask ? keys : columns;
    } else if (shape->rank == 1) {
        shape->dim[0] = peer_is_any(f, each) ? batch : strcmp(f->role, "rows") == 0 ? columns : 1;
    }
    const int code = peer_reserve(d, f);
    if (code != EXIT_DONE) return code;
    if (mask) return peer_fill_mask(f, batch, f->rolled ? keys - total : 0, first, columns, keys), EXIT_DONE;
    const size_t count = (size_t)prony_shape_numel(shape), width = by_row ? (size_t)columns : count;
    for (size_t k = 0; k < count; k++) {
        const int64_t column = first + (int64_t)(k % width), b = (int64_t)(k / width);
        const bool ids = strcmp(f->role, "ids") == 0;
        peer_put(f, k, ids ? d->ids[b * d->max_length + column] : peer_number(f, column, first, total));
    }
    return EXIT_DONE;
}

/* Empties a cache: without rows, or with max_length rows of zeros. A state, and a cache whose rows are written by
 * position, are zeros. */
static int peer_empty_cache(const peer_decoder *d, peer_feed *f, const prony_shape *declared)
{
    f->value.shape = *declared;
    for (int k = 0; k < f->value.shape.rank; k++)
        if (declared->dim[k] < 0) f->value.shape.dim[k] = f->shared ? d->max_length : 0;
    const int code = peer_reserve(d, f);
    if (code == EXIT_DONE && f->value.data)
        memset(f->value.data, 0, prony_dtype_bytes(f->value.dtype, prony_shape_numel(&f->value.shape)));
    return code;
}

/* ---- runs */

static int peer_decoder_failed(const peer_decoder *d)
{
    return fail(d->o, "%s", d->ort.error);
}

/* The greedy ids of the last row, behind the others. */
static int peer_choose(peer_decoder *d)
{
    prony_value logits;
    if (!ort_output(&d->ort, d->logits, &logits)) return peer_decoder_failed(d);
    const prony_shape *shape = &logits.shape;
    if (logits.dtype != PRONY_FLOAT32 || (shape->rank != 2 && shape->rank != 3) || shape->dim[0] != d->batch)
        return fail(d->o, "output %zu: wanted logits float32[batch, rows, vocabulary]", d->logits);
    const int64_t rows = shape->rank == 3 ? shape->dim[1] : 1, count = shape->dim[shape->rank - 1];
    for (int64_t b = 0; b < d->batch; b++) {
        const float *row = (const float *)logits.data + (b * rows + rows - 1) * count;
        int64_t best = 0;
        for (int64_t k = 1; k < count; k++)
            if (row[k] > row[best]) best = k;
        d->ids[b * d->max_length + d->length] = best;
    }
    return EXIT_DONE;
}

/* Computes columns [first, length), and chooses the next ids if they are wanted. */
static int peer_step(peer_decoder *d, int64_t first, bool chooses)
{
    if (!d->has_cache) first = 0;
    for (size_t k = 0; k < d->count; k++) {
        peer_feed *f = &d->feeds[k];
        if (strcmp(f->role, "cache") == 0) {
            if (f->shared) ort_write_into_input(&d->ort, f->output, k);
            continue;
        }
        if (strcmp(f->role, "other") == 0) continue;
        const int code = peer_fill(d, f, first, d->length - first);
        if (code != EXIT_DONE) return code;
        if (!ort_set_input(&d->ort, k, &f->value)) return peer_decoder_failed(d);
    }
    const bool ran = ort_run(&d->ort);
    int code = !ran ? EXIT_FAILED : chooses ? peer_choose(d) : EXIT_DONE;
    for (size_t k = 0; k < d->count; k++)
        if (strcmp(d->feeds[k].role, "cache") == 0 && (ran || d->feeds[k].shared))
            ort_feed_back(&d->ort, d->feeds[k].output, k);
    if (ran) ort_drop_outputs(&d->ort);
    d->length += chooses;
    return ran ? code : peer_decoder_failed(d);
}

/* The prompt at once, or token by token; the last run chooses the first new ids. */
static int peer_prompt(peer_decoder *d, int64_t count)
{
    int code = EXIT_DONE;
    for (d->length = 1; d->one_column && d->length < count && code == EXIT_DONE; d->length++)
        code = peer_step(d, d->length - 1, false);
    d->length = count;
    return code == EXIT_DONE ? peer_step(d, d->one_column ? count - 1 : 0, true) : code;
}

/* The prompt, then the new tokens one by one; the first of them belongs to the prompt's run. */
static int peer_repeat(peer_decoder *d, const prony_shape *declared, int64_t tokens)
{
    const int64_t count = (int64_t)d->prompt.longest;
    for (size_t k = 0; k < d->count; k++) {
        if (strcmp(d->feeds[k].role, "cache") != 0) continue;
        const int code = peer_empty_cache(d, &d->feeds[k], &declared[k]);
        if (code != EXIT_DONE) return code;
        if (!ort_set_input(&d->ort, k, &d->feeds[k].value)) return peer_decoder_failed(d);
    }
    for (int64_t b = 0; b < d->batch; b++)
        memcpy(d->ids + b * d->max_length, d->prompt.ids, (size_t)count * sizeof *d->ids);
    const int64_t start = prony_now_ns();
    int code = peer_prompt(d, count);
    const int64_t middle = prony_now_ns();
    for (int64_t n = 1; n < tokens && code == EXIT_DONE; n++) code = peer_step(d, d->length - 1, true);
    d->prefill_ns = middle - start;
    d->decode_ns = prony_now_ns() - middle;
    return code;
}

static int peer_by_time(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Repeats until the time is up, after one repetition that does not count, and prints the medians. */
static int peer_generate_measure(peer_decoder *d, const prony_shape *declared, int64_t start_ns)
{
    const options *o = d->o;
    const int64_t tokens = o->generate.new_tokens, end = prony_now_ns() + (int64_t)(o->measuring.seconds * 1e9);
    int64_t *times = calloc(2 * MOST_REPETITIONS, sizeof *times);
    size_t count = 0;
    prony_error error = {0};
    prony_load_watch *watch = NULL;
    prony_disturbance load = {.others_share = -1};
    int code = times ? peer_repeat(d, declared, tokens) : fail(o, "out of memory");
    if (code == EXIT_DONE && prony_load_watch_begin(&watch, &error) != PRONY_OK) code = report_error(o, &error);
    while (code == EXIT_DONE && count < MOST_REPETITIONS &&
           (o->measuring.runs > 0 ? (int64_t)count < o->measuring.runs : count < FEWEST || prony_now_ns() < end)) {
        code = peer_repeat(d, declared, tokens);
        times[count] = d->prefill_ns;
        times[MOST_REPETITIONS + count++] = d->decode_ns;
    }
    prony_load_watch_end(watch, &load);
    if (code == EXIT_DONE) {
        qsort(times, count, sizeof *times, peer_by_time);
        qsort(times + MOST_REPETITIONS, count, sizeof *times, peer_by_time);
        printf("version %s\nstart_ns %lld\nruns %zu\nprefill_ns %lld\ndecode_ns %lld\npeak_rss_bytes %lld\nload %d\n"
               "others_ppm %lld\nids",
               d->ort.version, (long long)start_ns, count, (long long)times[count / 2],
               (long long)times[MOST_REPETITIONS + count / 2], peer_peak_bytes(), (int)load.verdict,
               load.others_share < 0 ? -1 : (long long)(load.others_share * 1e6));
        for (int64_t k = 0; k < tokens; k++)
            printf("%c%lld", k ? ',' : ' ', (long long)d->ids[(int64_t)d->prompt.longest + k]);
        putchar('\n');
    }
    free(times);
    return code;
}

/* Values of the inputs that no decoder's loop feeds come from files. */
static int peer_load_others(peer_decoder *d, prony_value **others)
{
    prony_error error = {0};
    for (size_t k = 0; k < d->count; k++) {
        if (strcmp(d->feeds[k].role, "other") != 0) continue;
        const char *file = NULL;
        for (size_t i = 0; i < d->o->model.input_count; i++) {
            const char *given = d->o->model.inputs[i].name;
            const size_t length = strlen(d->feeds[k].name);
            if (strncmp(given, d->feeds[k].name, length) != 0) continue;
            if (d->o->model.inputs[i].file && given[length] == '\0') file = d->o->model.inputs[i].file;
            if (!d->o->model.inputs[i].file && given[length] == '=') file = given + length + 1;
        }
        if (!file) return fail(d->o, "input '%s' was not given", d->feeds[k].name);
        if (prony_value_load(&others[k], file, &error) != PRONY_OK) return report_error(d->o, &error);
        d->feeds[k].value = *others[k];
    }
    return EXIT_DONE;
}

static int peer_generate_run(peer_decoder *d, prony_value **others, prony_shape *declared, ort_input *inputs)
{
    const options *o = d->o;
    int code = peer_load_others(d, others);
    for (size_t k = 0; k < d->count && code == EXIT_DONE; k++) {
        declared[k] = d->feeds[k].value.shape;
        if (strcmp(d->feeds[k].role, "cache") == 0) {
            d->has_cache = true;
            code = peer_empty_cache(d, &d->feeds[k], &declared[k]);
        } else if (strcmp(d->feeds[k].role, "other") != 0) {
            code = peer_fill(d, &d->feeds[k], 0, 1);
        }
        inputs[k] = (ort_input){d->feeds[k].name, &d->feeds[k].value};
    }
    const int64_t start = prony_now_ns();
    if (code == EXIT_DONE &&
        (!ort_session(&d->ort, o->arguments[0], o->threads.intra_op > 0 ? o->threads.intra_op : 1, NULL) ||
         !ort_bind(&d->ort, inputs, d->count)))
        code = peer_decoder_failed(d);
    return code == EXIT_DONE ? peer_generate_measure(d, declared, prony_now_ns() - start) : code;
}

/* The command of a peer's process. The library stays open until the values that it borrows are no longer needed. */
int peer_generate(const options *o)
{
    peer_decoder d = {.o = o};
    int code = o->files.ort_lib ? peer_read_feeds(&d) : fail(o, "--ort-lib is missing");
    if (code == EXIT_DONE) code = prompt_read(o, &d.prompt);
    if (code == EXIT_DONE && (int64_t)d.prompt.longest + o->generate.new_tokens > d.max_length)
        code = fail(o, "the prompt and the new ids exceed %lld tokens", (long long)d.max_length);
    const size_t count = d.count + 1;
    prony_value **others = calloc(count, sizeof *others);
    prony_shape *declared = calloc(count, sizeof *declared);
    ort_input *inputs = calloc(count, sizeof *inputs);
    d.ids = code == EXIT_DONE ? calloc((size_t)d.batch * (size_t)d.max_length + 1, sizeof *d.ids) : NULL;
    if (code == EXIT_DONE && (!others || !declared || !inputs || !d.ids)) code = fail(o, "out of memory");
    if (code == EXIT_DONE && !ort_open(&d.ort, o->files.ort_lib))
        code = fail(o, "%s: %s", o->files.ort_lib, d.ort.error);
    if (code == EXIT_DONE) code = peer_generate_run(&d, others, declared, inputs);
    ort_close(&d.ort);
    for (size_t k = 0; k < d.count && others && d.feeds; k++) {
        if (!others[k]) free(d.feeds[k].value.data);
        prony_value_release(others[k]);
    }
    prompt_free(&d.prompt);
    free(others);
    free(declared);
    free(inputs);
    free(d.feeds);
    free(d.ids);
    return code;
}
