/* Resolves names: producers, the order of nodes, and values captured by subgraphs.
 *
 * Look-ups use sorted tables, so no choice of names makes them slow. Within a graph every name has one producer (an
 * input that is also an initializer is the constant). Nodes are ordered by a depth-first walk in file order, which
 * leaves an ordered file as it is; the walk keeps its own stack. Subgraphs come first: their captures count as inputs
 * of the node that holds them. Recursion is as deep as graphs are nested; the reader bounds it. */
#include "loaders/onnx/reader.h"

#include <stdlib.h>
#include <string.h>

static int compare_entries(const void *a, const void *b)
{
    const prn_name_entry *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (order) return order;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

void prn_name_entries_sort(prn_name_entry *entries, size_t count)
{
    if (count > 1) qsort(entries, count, sizeof *entries, compare_entries);
}

const prn_name_entry *prn_name_entries_find(const prn_name_entry *entries, size_t count, const char *name)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(entries[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && strcmp(entries[low].name, name) == 0 ? &entries[low] : NULL;
}

/* The first kind wins if two have one name. */
enum { INITIALIZER, INPUT, NODE };

/* A graph, or a function seen as one, while its names are resolved. */
typedef struct scope {
    prn_reader *reader;
    prn_graph *graph; /* of a function: inputs, outputs and nodes only */
    prn_name_entry *defined;
    size_t defined_count;
    prn_name_entry *missing; /* used here, produced elsewhere; kind NODE: item is the node, INPUT: a graph output */
    size_t missing_count, missing_capacity;
    size_t *producers; /* nodes that node i waits for: [first[i], first[i + 1]) */
    size_t *first;
    size_t producer_count, producer_capacity;
} scope;

static prony_status scope_resolve(prn_reader *reader, prn_graph *graph, const prn_graph *parent);

/* ---- definitions ---- */

static void scope_define(scope *s, const char *name, uint32_t kind, size_t item)
{
    s->defined[s->defined_count++] = (prn_name_entry){name, kind, item};
}

static prony_status collect_definitions(scope *s)
{
    const prn_graph *graph = s->graph;
    size_t count = graph->input_count + graph->initializer_count;
    for (size_t n = 0; n < graph->node_count; n++) count += graph->nodes[n].output_count;
    s->defined = prn_calloc(count, sizeof *s->defined);
    if (!s->defined) return prn_no_memory(s->reader->error);
    for (size_t i = 0; i < graph->initializer_count; i++) scope_define(s, graph->initializers[i].name, INITIALIZER, i);
    for (size_t i = 0; i < graph->input_count; i++) scope_define(s, graph->inputs[i].name, INPUT, i);
    for (size_t n = 0; n < graph->node_count; n++) {
        const prn_model_node *node = &graph->nodes[n];
        for (size_t i = 0; i < node->output_count; i++) {
            if (node->outputs[i][0]) scope_define(s, node->outputs[i], NODE, n);
        }
    }
    prn_name_entries_sort(s->defined, s->defined_count);
    return PRONY_OK;
}

static prony_status refuse_double(scope *s, const prn_name_entry *a, const prn_name_entry *b)
{
    static const char *const kinds[] = {"an initializer", "an input", "a node"};
    const prn_model_node *node = b->kind == NODE ? &s->graph->nodes[b->item] : NULL;
    if (!node) {
        return prn_fail(s->reader->error, PRONY_INVALID_MODEL, "value " PRN_NAME " is defined twice, by %s and by %s",
                        a->name, kinds[a->kind], kinds[b->kind]);
    }
    return prn_fail(s->reader->error, PRONY_INVALID_MODEL,
                    "value " PRN_NAME " is defined twice, by %s and by node %u " PRN_NAME " (%.60s)", a->name,
                    kinds[a->kind], node->file_index, node->name, node->op_type);
}

enum {
    IR_WITH_DEFAULTS = 4
}; /* from this version on an initializer need not be an input; if it is one, it is the
                                  default */

/* Moves inputs that are also initializers behind all others, in the file's order. */
static prony_status set_apart(scope *s, const size_t *initializer, size_t apart)
{
    prn_port *inputs = (prn_port *)(uintptr_t)s->graph->inputs;
    prn_port *optional = PRN_NEW(s->reader, apart, prn_port);
    size_t *defaults = PRN_NEW(s->reader, apart, size_t);
    size_t kept = 0, count = 0;
    if (!optional || !defaults) return prn_no_memory(s->reader->error);
    for (size_t i = 0; i < s->graph->input_count; i++) {
        if (!initializer[i]) {
            inputs[kept++] = inputs[i];
            continue;
        }
        defaults[count] = initializer[i] - 1;
        optional[count++] = inputs[i];
    }
    memcpy(inputs + kept, optional, count * sizeof *optional);
    s->graph->input_count = kept;
    if (s->graph->parent || s->reader->in_function || s->reader->ir_version < IR_WITH_DEFAULTS) return PRONY_OK;
    s->graph->defaults = defaults;
    s->graph->optional_count = count;
    return PRONY_OK;
}

/* One producer per name. */
static prony_status check_definitions(scope *s)
{
    size_t *initializer = prn_calloc(s->graph->input_count + 1, sizeof *initializer); /* of that name, + 1 */
    size_t apart = 0;
    prony_status status = initializer ? PRONY_OK : prn_no_memory(s->reader->error);
    for (size_t i = 1; i < s->defined_count && status == PRONY_OK; i++) {
        const prn_name_entry *a = &s->defined[i - 1], *b = &s->defined[i];
        if (strcmp(a->name, b->name) != 0) continue;
        if (a->kind != INITIALIZER || b->kind != INPUT) {
            status = refuse_double(s, a, b);
        } else {
            initializer[b->item] = a->item + 1;
            apart++;
        }
    }
    if (status == PRONY_OK && apart) status = set_apart(s, initializer, apart);
    prn_free(initializer);
    return status;
}

/* ---- uses ---- */

static prony_status scope_use(scope *s, const char *name, uint32_t kind, size_t item)
{
    const prn_name_entry *found = prn_name_entries_find(s->defined, s->defined_count, name);
    if (!found) {
        if (!PRN_GROW(s->missing, s->missing_capacity, s->missing_count + 1)) return prn_no_memory(s->reader->error);
        s->missing[s->missing_count++] = (prn_name_entry){name, kind, item};
    } else if (found->kind == NODE && kind == NODE) {
        if (!PRN_GROW(s->producers, s->producer_capacity, s->producer_count + 1)) {
            return prn_no_memory(s->reader->error);
        }
        s->producers[s->producer_count++] = found->item;
    }
    return PRONY_OK;
}

bool prn_model_is_gradient(const prn_model_node *node)
{
    return strcmp(node->op_type, "Gradient") == 0 && strcmp(node->domain, PRN_GRADIENT_DOMAIN) == 0;
}

/* A Gradient differentiates tensors that are not its inputs, so it waits for their producers. */
static prony_status use_of_gradient(scope *s, size_t n)
{
    const prn_model_node *node = &s->graph->nodes[n];
    if (!prn_model_is_gradient(node)) return PRONY_OK;
    for (size_t a = 0; a < node->attributes.count; a++) {
        const prn_attr *attr = &node->attributes.items[a];
        const size_t count = attr->type == PRN_ATTR_STRING ? 1 : attr->type == PRN_ATTR_STRINGS ? attr->count : 0;
        for (size_t i = 0; i < count; i++) {
            const char *name = attr->type == PRN_ATTR_STRING ? attr->s.data : attr->strings[i].data;
            if (name && prn_name_entries_find(s->defined, s->defined_count, name)) PRN_TRY(scope_use(s, name, NODE, n));
        }
    }
    return PRONY_OK;
}

static prony_status use_of_node(scope *s, size_t n)
{
    const prn_model_node *node = &s->graph->nodes[n];
    PRN_TRY(use_of_gradient(s, n));
    for (size_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i][0]) PRN_TRY(scope_use(s, node->inputs[i], NODE, n));
    }
    for (size_t a = 0; a < node->attributes.count; a++) {
        const prn_attr *attr = &node->attributes.items[a];
        for (size_t g = 0; attr->graph && g < attr->count; g++) {
            const prn_graph *inner = &attr->graph[g];
            for (size_t i = 0; i < inner->captured_count; i++) PRN_TRY(scope_use(s, inner->captured[i], NODE, n));
        }
    }
    return PRONY_OK;
}

static prony_status collect_uses(scope *s)
{
    s->first = prn_calloc(s->graph->node_count + 1, sizeof *s->first);
    if (!s->first) return prn_no_memory(s->reader->error);
    for (size_t n = 0; n < s->graph->node_count; n++) {
        PRN_TRY(use_of_node(s, n));
        s->first[n + 1] = s->producer_count;
    }
    for (size_t i = 0; i < s->graph->output_count; i++) PRN_TRY(scope_use(s, s->graph->outputs[i].name, INPUT, i));
    prn_name_entries_sort(s->missing, s->missing_count);
    return PRONY_OK;
}

/* ---- order ---- */

typedef struct walk {
    size_t *next;  /* per node: its first producer not visited yet */
    size_t *stack; /* nodes that wait, outermost first */
    size_t *order;
    uint8_t *state;
    size_t depth, done;
} walk;

enum { UNSEEN, WAITING, DONE };

/* Depth-first walk with its own stack: appends `root` after all its producers. A producer still on the stack is a
 * cycle. */
static prony_status scope_visit(const scope *s, walk *w, size_t root)
{
    if (w->state[root] == DONE) return PRONY_OK;
    w->state[root] = WAITING;
    w->stack[w->depth++] = root;
    while (w->depth) {
        size_t n = w->stack[w->depth - 1];
        if (w->next[n] == s->first[n + 1]) {
            w->state[n] = DONE;
            w->order[w->done++] = n;
            w->depth--;
            continue;
        }
        size_t producer = s->producers[w->next[n]++];
        if (w->state[producer] == WAITING) {
            const prn_model_node *node = &s->graph->nodes[producer];
            return prn_fail(s->reader->error, PRONY_INVALID_MODEL,
                            "node %u " PRN_NAME " (%.60s) depends on its own output " PRN_NAME
                            ": the graph has a cycle",
                            node->file_index, node->name, node->op_type, node->output_count ? node->outputs[0] : "");
        }
        if (w->state[producer] == UNSEEN) {
            w->state[producer] = WAITING;
            w->stack[w->depth++] = producer;
        }
    }
    return PRONY_OK;
}

/* Nodes are moved only if the file has them out of order. */
static prony_status scope_reorder(scope *s, const size_t *order)
{
    size_t count = s->graph->node_count, moved = 0;
    for (size_t i = 0; i < count; i++) moved += order[i] != i;
    if (!moved) return PRONY_OK;
    prn_model_node *sorted = PRN_NEW(s->reader, count, prn_model_node);
    if (!sorted) return prn_no_memory(s->reader->error);
    for (size_t i = 0; i < count; i++) sorted[i] = s->graph->nodes[order[i]];
    s->graph->nodes = sorted;
    return PRONY_OK;
}

static prony_status sort_nodes(scope *s)
{
    size_t count = s->graph->node_count;
    walk w = {.next = prn_calloc(count, sizeof *w.next),
              .stack = prn_calloc(count, sizeof *w.stack),
              .order = prn_calloc(count, sizeof *w.order),
              .state = prn_calloc(count, sizeof *w.state)};
    prony_status status = w.next && w.stack && w.order && w.state ? PRONY_OK : prn_no_memory(s->reader->error);
    if (status == PRONY_OK) memcpy(w.next, s->first, count * sizeof *w.next);
    for (size_t n = 0; status == PRONY_OK && n < count; n++) status = scope_visit(s, &w, n);
    if (status == PRONY_OK) status = scope_reorder(s, w.order);
    prn_free(w.next);
    prn_free(w.stack);
    prn_free(w.order);
    prn_free(w.state);
    return status;
}

/* ---- captures ---- */

static prony_status capture(scope *s)
{
    if (!s->missing_count) return PRONY_OK;
    const char **names = PRN_NEW(s->reader, s->missing_count, const char *);
    if (!names) return prn_no_memory(s->reader->error);
    size_t count = 0;
    for (size_t i = 0; i < s->missing_count; i++) {
        if (!count || strcmp(names[count - 1], s->missing[i].name) != 0) names[count++] = s->missing[i].name;
    }
    s->graph->captured = names;
    s->graph->captured_count = count;
    return PRONY_OK;
}

/* The innermost graph below `node` that uses `name`, or NULL if the node itself does. */
static const prn_graph *capturing_graph(const prn_model_node *node, const char *name)
{
    for (size_t i = 0; i < node->input_count; i++) {
        if (strcmp(node->inputs[i], name) == 0) return NULL;
    }
    for (size_t a = 0; a < node->attributes.count; a++) {
        const prn_attr *attr = &node->attributes.items[a];
        for (size_t g = 0; attr->graph && g < attr->count; g++) {
            const prn_graph *inner = &attr->graph[g];
            for (size_t i = 0; i < inner->captured_count; i++) {
                if (strcmp(inner->captured[i], name) == 0) return inner;
            }
        }
    }
    return NULL;
}

/* Refuses names produced nowhere, in outermost scopes. */
static prony_status refuse_missing(const prn_reader *reader, const prn_graph *graph)
{
    if (!graph->captured_count) return PRONY_OK;
    const char *name = graph->captured[0];
    for (size_t n = 0; n < graph->node_count; n++) {
        const prn_model_node *node = &graph->nodes[n];
        const prn_graph *inner = capturing_graph(node, name);
        bool direct = false;
        for (size_t i = 0; i < node->input_count; i++) direct = direct || strcmp(node->inputs[i], name) == 0;
        if (!inner && !direct) continue;
        return prn_fail(reader->error, PRONY_INVALID_MODEL,
                        "node %u " PRN_NAME " (%.60s)%s%.60s uses value " PRN_NAME ", which nothing produces",
                        node->file_index, node->name, node->op_type, inner ? " in its graph " : "",
                        inner ? inner->name : "", name);
    }
    return prn_fail(reader->error, PRONY_INVALID_MODEL, "output " PRN_NAME " is a value that nothing produces", name);
}

/* ---- resolving a graph ---- */

static prony_status resolve_subgraphs(prn_reader *reader, const prn_graph *graph)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        const prn_model_node *node = &graph->nodes[n];
        for (size_t a = 0; a < node->attributes.count; a++) {
            const prn_attr *attr = &node->attributes.items[a];
            for (size_t g = 0; attr->graph && g < attr->count; g++) {
                prony_status status = scope_resolve(reader, &attr->graph[g], graph);
                if (status == PRONY_OK) continue;
                prn_error_prefix(reader->error, "node %u " PRN_NAME " (%.60s)", node->file_index, node->name,
                                 node->op_type);
                return status;
            }
        }
    }
    return PRONY_OK;
}

static prony_status resolve_own(prn_reader *reader, prn_graph *graph)
{
    scope s = {.reader = reader, .graph = graph};
    prony_status status = collect_definitions(&s);
    if (status == PRONY_OK) status = check_definitions(&s);
    if (status == PRONY_OK) status = collect_uses(&s);
    if (status == PRONY_OK) status = sort_nodes(&s);
    if (status == PRONY_OK) status = capture(&s);
    prn_free(s.defined);
    prn_free(s.missing);
    prn_free(s.producers);
    prn_free(s.first);
    return status;
}

static prony_status scope_resolve(prn_reader *reader, prn_graph *graph, const prn_graph *parent)
{
    graph->parent = parent;
    prony_status status = resolve_subgraphs(reader, graph);
    if (status == PRONY_OK) status = resolve_own(reader, graph);
    if (status == PRONY_OK && !parent) status = refuse_missing(reader, graph);
    if (status != PRONY_OK) prn_error_prefix(reader->error, "graph " PRN_NAME, graph->name);
    return status;
}

prony_status prn_scope_resolve_model(prn_reader *reader, prn_graph *graph)
{
    return scope_resolve(reader, graph, NULL);
}

static prony_status function_ports(prn_reader *reader, const char *const *names, size_t count, const prn_port **out)
{
    prn_port *ports = PRN_NEW(reader, count, prn_port);
    if (!ports) return prn_no_memory(reader->error);
    for (size_t i = 0; i < count; i++) ports[i].name = names[i];
    *out = ports;
    return PRONY_OK;
}

prony_status prn_scope_resolve_function(prn_reader *reader, prn_function *function)
{
    prn_graph *body = PRN_NEW(reader, 1, prn_graph); /* stays: the parent of graphs in its nodes */
    if (!body) return prn_no_memory(reader->error);
    *body = (prn_graph){.name = function->name,
                        .nodes = function->nodes,
                        .node_count = function->node_count,
                        .input_count = function->input_count,
                        .output_count = function->output_count};
    PRN_TRY(function_ports(reader, function->inputs, function->input_count, &body->inputs));
    PRN_TRY(function_ports(reader, function->outputs, function->output_count, &body->outputs));
    PRN_TRY(resolve_subgraphs(reader, body));
    PRN_TRY(resolve_own(reader, body));
    PRN_TRY(refuse_missing(reader, body));
    function->nodes = body->nodes;
    return PRONY_OK;
}
