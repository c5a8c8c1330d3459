/* ONNX Runtime's profile, joined with this engine's operators.
 *
 * It is an array of events: a "model_run" of category Session for each run, and for each node that ran
 * "NAME_kernel_time" of category Node, whose duration is in microseconds. A fused node, or one in another layout, has a
 * node's or output's name with a suffix ("/conv/Conv_output_0_nchwc", "/attn/MatMul/MatMulScaleFusion/"): suffixes are
 * removed until a layer has that name. Nodes inside of an If or Loop belong to that node, and are left out. */
#include "profiler/compare/versus.h"
#include "profiler/json/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX "_kernel_time"

typedef struct event {
    const char *name, *op; /* of the node, without the suffix */
    size_t order;
    double ns;
} event;

/* A name in the model, and its operator; PRONY_NO_INDEX: none, because it is folded or inside of a subgraph. */
typedef struct known_name {
    const char *name;
    uint32_t operator_index;
    bool nested;
} known_name;

typedef struct joining {
    prony_versus *versus;
    prn_bump pool;
    event *events;
    size_t event_count, event_capacity;
    size_t runs;
    known_name *names;
    size_t name_count;
    prony_versus_operator *rows; /* own operators in order, then operators of the peer alone, by type */
    size_t row_count;
    prony_error *error;
} joining;

/* ---- reading ---- */

static prony_status versus_nodes_add_event(joining *j, prn_json_reader *reader, const prn_json_value *object)
{
    const char *category = "", *name = "", *op = "";
    double micros = 0;
    prn_json_get_string(reader, object, "cat", false, &category);
    if (!prn_json_get_string(reader, object, "name", false, &name)) return reader->status;
    if (strcmp(category, "Session") == 0 && strcmp(name, "model_run") == 0) j->runs++;
    const size_t length = strlen(name), suffix = sizeof SUFFIX - 1;
    if (strcmp(category, "Node") != 0 || length <= suffix || strcmp(name + length - suffix, SUFFIX) != 0)
        return reader->status;
    const prn_json_value *arguments = prn_json_get_object(reader, object, "args", false);
    if (arguments) prn_json_get_string(reader, arguments, "op_name", false, &op);
    if (!prn_json_get_double(reader, object, "dur", true, &micros)) return reader->status;
    const char *own = prn_bump_strndup(&j->pool, name, length - suffix);
    if (!own || !PRN_GROW(j->events, j->event_capacity, j->event_count + 1)) return prn_no_memory(j->error);
    j->events[j->event_count] = (event){own, op, j->event_count, micros * 1e3};
    j->event_count++;
    return reader->status;
}

/* Behind the white space at `at`. */
static size_t versus_nodes_skip_space(const char *text, size_t size, size_t at)
{
    while (at < size && strchr(" \t\r\n", text[at])) at++;
    return at;
}

/* Behind `word` at `at` and the white space around it; 0: another text stands there. */
static size_t skip_word(const char *text, size_t size, size_t at, const char *word)
{
    const size_t length = strlen(word);
    at = versus_nodes_skip_space(text, size, at);
    return size - at >= length && memcmp(text + at, word, length) == 0
               ? versus_nodes_skip_space(text, size, at + length)
               : 0;
}

/* Offset of the value in "name": "value" at `at`, behind its quote; 0: no such member. */
static size_t name_at(const char *text, size_t size, size_t at)
{
    const size_t colon = skip_word(text, size, at, "\"name\"");
    const size_t value = colon ? skip_word(text, size, colon, ":") : 0;
    return value && value < size && text[value] == '"' ? value + 1 : 0;
}

/* True if a string ends at the quote at `at`: another member of an event follows, or the event's end. */
static bool ends_string(const char *text, size_t size, size_t at)
{
    static const char *const members[] = {"\"args\"", "\"dur\"", "\"ts\"", "\"ph\"", "\"cat\"", "\"pid\"", "\"tid\""};
    if (skip_word(text, size, at + 1, "}")) return true;
    const size_t comma = skip_word(text, size, at + 1, ",");
    for (size_t m = 0; comma && m < sizeof members / sizeof *members; m++) {
        const size_t colon = skip_word(text, size, comma, members[m]);
        if (colon && skip_word(text, size, colon, ":")) return true;
    }
    return false;
}

/* ONNX Runtime writes node names without escaping. This escapes quotes, backslashes and controls. `to` has room for six
 * times the bytes of `text`; returns the bytes written. */
static size_t escape_names(const char *text, size_t size, char *to)
{
    size_t used = 0, end = 0; /* of the name that is being copied; 0: none */
    for (size_t i = 0; i < size; i++) {
        const size_t begin = i >= end && text[i] == '"' ? name_at(text, size, i) : 0;
        if (begin) {
            for (end = begin; end < size && !(text[end] == '"' && ends_string(text, size, end)); end++) {
            }
            memcpy(to + used, text + i, begin - i);
            used += begin - i;
            i = begin;
            if (i == size) break;
        }
        const unsigned char c = (unsigned char)text[i];
        if (i < end && (c == '"' || c == '\\' || c < 0x20))
            used += (size_t)sprintf(to + used, "\\u%04x", c);
        else
            to[used++] = text[i];
    }
    return used;
}

/* {"events": text}, with names escaped or as they are. */
static prony_status parse_events(prn_json_value **out, const char *name, const char *text, size_t size, bool escape,
                                 prony_error *error)
{
    static const char before[] = "{\"events\":", after[] = "}";
    if (size > SIZE_MAX / 8) return prn_no_memory(error);
    char *whole = prn_alloc(sizeof before + (escape ? 6 : 1) * size + sizeof after);
    if (!whole) return prn_no_memory(error);
    size_t used = sizeof before - 1;
    memcpy(whole, before, used);
    if (!escape) memcpy(whole + used, text, size);
    used += escape ? escape_names(text, size, whole + used) : size;
    memcpy(whole + used, after, sizeof after - 1);
    prony_status status = prn_json_document_parse(out, name, whole, used + sizeof after - 1, error);
    prn_free(whole);
    return status;
}

static prony_status read_events(joining *j, const char *name, const char *text, size_t size)
{
    prn_json_value *document = NULL;
    prony_status status = parse_events(&document, name, text, size, false, j->error);
    if (status == PRONY_IO_ERROR) /* invalid JSON */
        status = parse_events(&document, name, text, size, true, j->error);
    PRN_TRY(status);
    prn_json_reader reader = {.pool = &j->pool, .file = name, .error = j->error};
    size_t count;
    const prn_json_value *events = prn_json_get_array(&reader, document, "events", true, &count);
    for (const prn_json_value *e = events ? prn_json_first(events) : NULL; e && status == PRONY_OK;
         e = prn_json_next(e))
        status =
            prn_json_element_is_object(&reader, e, "events") ? versus_nodes_add_event(j, &reader, e) : reader.status;
    prn_json_document_release(document);
    if (reader.status != PRONY_OK) return reader.status;
    PRN_TRY(status);
    if (j->runs == 0 || j->event_count == 0)
        return prn_fail(j->error, PRONY_INVALID_ARGUMENT, "%s: the profile contains no run of a model", name);
    return PRONY_OK;
}

/* ---- names ---- */

static int versus_nodes_by_name(const void *left, const void *right)
{
    const known_name *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->nested > b->nested) - (a->nested < b->nested);
}

static prony_status collect_names(joining *j)
{
    const prony_report *r = j->versus->profile;
    j->names = prn_calloc(r->layer_count + r->nested_layer_count + 1, sizeof *j->names);
    if (!j->names) return prn_no_memory(j->error);
    for (size_t l = 0; l < r->layer_count; l++)
        j->names[j->name_count++] = (known_name){r->layers[l].name, r->layers[l].operator_index, false};
    for (size_t l = 0; l < r->nested_layer_count; l++)
        j->names[j->name_count++] = (known_name){r->nested_layers[l].name, PRONY_NO_INDEX, true};
    qsort(j->names, j->name_count, sizeof *j->names, versus_nodes_by_name);
    return PRONY_OK;
}

static const known_name *find_exactly(const joining *j, const char *name)
{
    size_t low = 0, high = j->name_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(j->names[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < j->name_count && strcmp(j->names[low].name, name) == 0 ? &j->names[low] : NULL;
}

/* NULL: no name of the model. */
static const known_name *versus_nodes_find_name(const joining *j, const char *decorated)
{
    char name[512];
    size_t length = strlen(decorated);
    const known_name *found = find_exactly(j, decorated);
    if (found || length >= sizeof name) return found;
    memcpy(name, decorated, length + 1);
    while (!found && length > 0) {
        while (length > 0 && name[length - 1] != '_' && name[length - 1] != '/') length--;
        while (length > 0 && (name[length - 1] == '_' || name[length - 1] == '/')) length--;
        name[length] = '\0';
        if (length > 0) found = find_exactly(j, name);
    }
    return found;
}

/* ---- joining ---- */

static int by_node(const void *left, const void *right)
{
    const event *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

/* The time of a node in a run: the sum of its executions in one run, and the median over runs. */
static double versus_nodes_time_of(const joining *j, const event *events, size_t count, double *sums)
{
    const size_t each = count / j->runs;
    double all = 0;
    if (each == 0 || count % j->runs != 0) {
        for (size_t i = 0; i < count; i++) all += events[i].ns;
        return all / (double)j->runs;
    }
    for (size_t run = 0; run < j->runs; run++) {
        sums[run] = 0;
        for (size_t i = 0; i < each; i++) sums[run] += events[run * each + i].ns;
    }
    return prn_median(sums, j->runs);
}

static prony_status versus_nodes_add_time(joining *j, const event *node, double ns)
{
    const known_name *name = versus_nodes_find_name(j, node->name);
    const size_t own = j->versus->profile->operator_count;
    size_t row;
    if (name && name->nested) return PRONY_OK;
    if (name && name->operator_index < own) {
        row = name->operator_index;
    } else {
        row = own;
        while (row < j->row_count && strcmp(j->rows[row].name, node->op) != 0) row++;
        if (row == j->row_count) {
            const char *op = prn_bump_printf(&j->versus->pool, "%s", node->op);
            if (!op) return prn_no_memory(j->error);
            j->rows[j->row_count++] = (prony_versus_operator){op, "", -1, -1, 0};
        }
    }
    if (j->rows[row].peer_ns < 0) j->rows[row].peer_ns = 0;
    j->rows[row].peer_ns += ns;
    j->rows[row].nodes++;
    return PRONY_OK;
}

static double ahead(const prony_versus_operator *row)
{
    return row->own_ns < 0 ? row->peer_ns : row->peer_ns < 0 ? row->own_ns : row->own_ns - row->peer_ns;
}

static int versus_nodes_by_loss(const void *left, const void *right)
{
    const prony_versus_operator *a = left, *b = right;
    bool a_alone = a->own_ns < 0 || a->peer_ns < 0, b_alone = b->own_ns < 0 || b->peer_ns < 0;
    if (a_alone != b_alone) return a_alone - b_alone;
    if (ahead(a) < ahead(b) || ahead(a) > ahead(b)) return ahead(a) < ahead(b) ? 1 : -1;
    return strcmp(a->name, b->name);
}

static prony_status versus_nodes_join(joining *j)
{
    const prony_report *r = j->versus->profile;
    qsort(j->events, j->event_count, sizeof *j->events, by_node);
    size_t nodes = 0;
    for (size_t e = 0; e < j->event_count; e++)
        nodes += e == 0 || strcmp(j->events[e].name, j->events[e - 1].name) != 0;
    j->rows = prn_bump_alloc(&j->versus->pool, r->operator_count + nodes + 1, sizeof *j->rows);
    double *sums = prn_calloc(j->runs + 1, sizeof *sums);
    prony_status status = j->rows && sums ? PRONY_OK : prn_no_memory(j->error);
    for (size_t o = 0; o < r->operator_count && status == PRONY_OK; o++) {
        const prony_operator_row *own = &r->operators[o];
        j->rows[j->row_count++] =
            (prony_versus_operator){own->name, own->kernel, own->measured ? (double)own->time.median_ns : 0, -1, 0};
    }
    for (size_t e = 0, end; e < j->event_count && status == PRONY_OK; e = end) {
        for (end = e + 1; end < j->event_count && strcmp(j->events[end].name, j->events[e].name) == 0;) end++;
        status = versus_nodes_add_time(j, &j->events[e], versus_nodes_time_of(j, j->events + e, end - e, sums));
    }
    prn_free(sums);
    if (status == PRONY_OK) qsort(j->rows, j->row_count, sizeof *j->rows, versus_nodes_by_loss);
    return status;
}

prony_status prony_versus_add_peer_profile(prony_versus *versus, const char *name, const char *text, size_t size,
                                           prony_error *error)
{
    if (!versus || !name || !text)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_versus_add_peer_profile: an argument is NULL");
    joining j = {.versus = versus, .error = error};
    prony_status status = read_events(&j, name, text, size);
    if (status == PRONY_OK) status = collect_names(&j);
    if (status == PRONY_OK) status = versus_nodes_join(&j);
    if (status == PRONY_OK) {
        versus->operators = j.rows;
        versus->operator_count = j.row_count;
        versus->peer_runs = j.runs;
        versus->has_operators = true;
    }
    prn_free(j.events);
    prn_free(j.names);
    prn_bump_release(&j.pool);
    return status;
}
