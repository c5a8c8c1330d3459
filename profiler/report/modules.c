/* The module tree in node names: "/layer1/layer1.0/conv1/Conv" is a node of module "layer1/layer1.0/conv1". Names
 * without a slash belong to the root. A module's row includes the modules below it.
 *
 * Names are input from a file: a path is cut at DEEPEST parts, and a name above LONGEST_NAME bytes belongs to the root,
 * so that a hostile model cannot make the tree larger than a multiple of itself.
 *
 * The rows and paths live in the report's pool; the hash table over paths ends with the call.
 */
#include "profiler/report/report.h"

#include "base/hash/keyed_hash.h"
#include "base/shape.h"

#include <string.h>

/* Bounds on hostile names; chosen without measurement. */
#define DEEPEST 32
#define LONGEST_NAME 2048

typedef struct tree {
    prony_report *report;
    prn_module_row *rows;
    size_t count, capacity;
    uint32_t *slots; /* row index + 1; 0: empty. Power of two, at most half full */
    size_t slot_count;
} tree;

static size_t modules_slot_of(const tree *t, const char *path, size_t length)
{
    size_t slot = (size_t)prn_hash_bytes(path, length) & (t->slot_count - 1);
    while (t->slots[slot]) {
        const char *other = t->rows[t->slots[slot] - 1].path;
        if (strncmp(other, path, length) == 0 && other[length] == '\0') break;
        slot = (slot + 1) & (t->slot_count - 1);
    }
    return slot;
}

static bool modules_widen(tree *t)
{
    if (t->count * 2 < t->slot_count) return true;
    size_t old_count = t->slot_count;
    uint32_t *old = t->slots;
    uint32_t *slots = prn_calloc(old_count ? old_count * 2 : 64, sizeof *slots);
    if (!slots) return false;
    t->slots = slots;
    t->slot_count = old_count ? old_count * 2 : 64;
    for (size_t i = 0; i < old_count; i++) {
        if (!old[i]) continue;
        const char *path = t->rows[old[i] - 1].path;
        slots[modules_slot_of(t, path, strlen(path))] = old[i];
    }
    prn_free(old);
    return true;
}

static bool is_index(char c)
{
    return (c >= '0' && c <= '9') || c == '.' || c == '_';
}

/* "layer1.0" -> "layer"; "encoder.layer.3" -> "layer"; a part that is only an index stays. */
static const char *type_from_path(prn_bump *pool, const char *path)
{
    const char *part = strrchr(path, '/');
    part = part ? part + 1 : path;
    size_t length = strlen(part);
    while (length > 0 && is_index(part[length - 1])) length--;
    if (length == 0) return part;
    size_t begin = length;
    while (begin > 0 && part[begin - 1] != '.') begin--;
    return prn_bump_strndup(pool, part + begin, length - begin);
}

/* Row of the path's first `length` bytes; made, if new, below `parent`. PRONY_NO_INDEX: out of memory. */
static uint32_t find_or_add(tree *t, const char *path, size_t length, uint32_t parent)
{
    if (!modules_widen(t) || !PRN_GROW(t->rows, t->capacity, t->count + 1)) return PRONY_NO_INDEX;
    size_t slot = modules_slot_of(t, path, length);
    if (t->slots[slot]) return t->slots[slot] - 1;
    prn_bump *pool = &t->report->pool;
    const char *copy = prn_bump_strndup(pool, path, length);
    const char *type = !copy ? NULL : length == 0 ? "model" : type_from_path(pool, copy);
    if (!type) return PRONY_NO_INDEX;
    t->rows[t->count] = (prn_module_row){.path = copy,
                                         .type = type,
                                         .time_ns = prn_report_stamped(t->report) ? 0 : -1,
                                         .parent = parent,
                                         .depth = parent == PRONY_NO_INDEX ? 0 : t->rows[parent].depth + 1};
    t->slots[slot] = (uint32_t)++t->count;
    return (uint32_t)t->count - 1;
}

/* Copies the name's parts but the last into `path` with single slashes between; returns how many bytes. */
static size_t module_path(const char *name, char path[LONGEST_NAME])
{
    size_t length = 0, end_of_module = 0;
    int parts = 0;
    if (strlen(name) >= LONGEST_NAME) return 0;
    for (const char *p = name; *p;) {
        size_t span = strcspn(p, "/");
        if (span && parts < DEEPEST) {
            end_of_module = length;
            if (length) path[length++] = '/';
            memcpy(path + length, p, span);
            length += span;
            parts++;
        }
        p += span;
        p += strspn(p, "/");
    }
    return end_of_module;
}

static uint32_t row_of_layer(tree *t, const char *name)
{
    char path[LONGEST_NAME];
    size_t length = module_path(name, path);
    uint32_t row = 0;
    for (size_t i = 1; i <= length && row != PRONY_NO_INDEX; i++)
        if (i == length || path[i] == '/') row = find_or_add(t, path, i, row);
    return row;
}

static prony_status modules_add_layer(tree *t, prony_layer_row *layer, prony_error *error)
{
    uint32_t row = row_of_layer(t, layer->name);
    if (row == PRONY_NO_INDEX) return prn_no_memory(error);
    layer->module = t->rows[row].path;
    for (; row != PRONY_NO_INDEX; row = t->rows[row].parent) {
        prn_module_row *m = &t->rows[row];
        m->layers++;
        if (!prn_add_u64(&m->macs, m->macs, layer->cost.macs) || !prn_add_u64(&m->flops, m->flops, layer->cost.flops) ||
            !prn_add_u64(&m->parameters, m->parameters, layer->cost.parameters))
            return prn_fail(error, PRONY_LIMIT, "module \"%s\": cost overflows 64 bits", m->path);
        if (!layer->measured) continue;
        m->time_ns += layer->time.mean_ns;
        m->share += layer->share;
    }
    return PRONY_OK;
}

/* ---- nodes in subgraphs ---- */

/* A node's own work: its layer's work minus its nested rows'. */
typedef struct own_work {
    uint64_t macs, flops, parameters;
    int64_t time_ns;
    double share;
} own_work;

static void modules_add_own(own_work *to, const prony_nested_row *n)
{
    to->macs += n->cost.macs;
    to->flops += n->cost.flops;
    to->parameters += n->cost.parameters;
    to->time_ns += n->measured ? n->time.mean_ns : 0;
    to->share += n->measured ? n->share : 0;
}

/* Sums agree to the last unit (report_nested.c), times but for their rounding. */
static void take_own(own_work *from, const prony_nested_row *n)
{
    from->macs -= n->cost.macs;
    from->flops -= n->cost.flops;
    from->parameters -= n->cost.parameters < from->parameters ? n->cost.parameters : from->parameters;
    from->time_ns -= n->measured ? n->time.mean_ns : 0;
    from->share -= n->measured ? n->share : 0;
    if (from->time_ns < 0) from->time_ns = 0;
    if (from->share < 0) from->share = 0;
}

static bool is_below(const tree *t, uint32_t row, uint32_t above)
{
    while (row != above && row != PRONY_NO_INDEX) row = t->rows[row].parent;
    return row == above;
}

/* Adds a nested layer to the modules between it and its outermost layer's module, which already includes it. */
static bool add_nested_layer(tree *t, const prony_nested_row *n, const own_work *own, uint32_t owner)
{
    uint32_t row = row_of_layer(t, n->name);
    if (row == PRONY_NO_INDEX) return false;
    for (bool inside = is_below(t, row, owner); inside && row != owner; row = t->rows[row].parent) {
        prn_module_row *m = &t->rows[row];
        m->nested_layers++;
        m->macs += own->macs;
        m->flops += own->flops;
        m->parameters += own->parameters;
        if (!n->measured) continue;
        m->time_ns += own->time_ns;
        m->share += own->share;
    }
    for (row = owner; row != PRONY_NO_INDEX; row = t->rows[row].parent) t->rows[row].nested_layers++;
    return true;
}

/* Adds nested rows after a run. Before a run an If has the cost of one branch, which cannot be distributed. */
static prony_status modules_add_nested(tree *t, prony_error *error)
{
    const prony_report *r = t->report;
    own_work *own = prn_calloc(r->nested_layer_count + 1, sizeof *own);
    bool ok = own != NULL;
    for (size_t i = 0; ok && i < r->nested_layer_count; i++) {
        const prony_nested_row *n = &r->nested_layers[i];
        modules_add_own(&own[i], n);
        if (n->parent != PRONY_NO_INDEX) take_own(&own[n->parent], n);
    }
    for (size_t i = 0; ok && i < r->nested_layer_count; i++) {
        const prony_nested_row *n = &r->nested_layers[i];
        if (n->executed) ok = add_nested_layer(t, n, &own[i], row_of_layer(t, r->layers[n->owner].name));
    }
    prn_free(own);
    return ok ? PRONY_OK : prn_no_memory(error);
}

prony_status prn_report_fill_modules(prony_report *report, prony_error *error)
{
    tree t = {.report = report};
    prony_status status = PRONY_OK;
    if (find_or_add(&t, "", 0, PRONY_NO_INDEX) == PRONY_NO_INDEX) status = prn_no_memory(error);
    for (size_t l = 0; l < report->layer_count && status == PRONY_OK; l++)
        status = modules_add_layer(&t, &report->layers[l], error);
    if (status == PRONY_OK && report->nested_layer_count) status = modules_add_nested(&t, error);
    if (status == PRONY_OK) {
        report->modules = prn_bump_alloc(&report->pool, t.count, sizeof *report->modules);
        if (report->modules) {
            memcpy(report->modules, t.rows, t.count * sizeof *t.rows);
            report->module_count = t.count;
        } else {
            status = prn_no_memory(error);
        }
    }
    prn_free(t.rows);
    prn_free(t.slots);
    return status;
}
