/* Both decisions of engine/plan/device_split.h.
 *
 * Memory: a minimum cut between the device (source) and the host (sink). A unit pays its time on its side, a tensor its
 * copy where maker and readers are on both sides, and the device's side pays `price` for each byte of weights and values:
 *
 *     device --host_ns--> unit --device_ns + price * values--> host      unit --never--> weight --price * bytes--> host
 *
 * A higher price leaves fewer bytes there; the search looks for the lowest that fits. Equal layers would leave at one
 * price, all together, so the price rises with the position: the device keeps the first ones. */
#include "engine/plan/device_split.h"

#include "base/memory/alloc.h"
#include "engine/memory/min_cut.h"

#include <math.h>
#include <string.h>

/* The price of the last unit is that much higher than that of the first. */
#define PRICE_SLOPE 0.25
/* Capacities: of the time of all units on the host, and at most of an edge. */
#define ALL_TIME 1073741824.0
#define MOST_CAPACITY 1e15
enum { PRICE_DOUBLINGS = 64, PRICE_BISECTIONS = 16 };

prony_status prn_device_split_create(prn_device_split **out, size_t node_count, prony_error *error)
{
    *out = prn_calloc(1, sizeof **out);
    if (*out && ((*out)->rows = prn_calloc(node_count + 1, sizeof *(*out)->rows))) {
        (*out)->count = node_count;
        return PRONY_OK;
    }
    prn_free(*out);
    *out = NULL;
    return prn_no_memory(error);
}

void prn_device_split_release(prn_device_split *split)
{
    if (!split) return;
    prn_free(split->rows);
    prn_free(split);
}

/* ---- copies ---- */

static uint32_t chain_of(uint32_t *chain, uint32_t unit)
{
    while (chain[unit] != unit) unit = chain[unit] = chain[chain[unit]];
    return unit;
}

/* Units of the device are of one chain if a tensor between them stays there. The first unit names the chain. */
static void find_chains(const prn_partition_graph *g, const bool *on_device, uint32_t *chain)
{
    for (uint32_t u = 0; u < g->unit_count; u++) chain[u] = u;
    for (size_t i = 0; i < g->use_count; i++) {
        const prn_partition_use *use = &g->uses[i];
        const prn_partition_tensor *t = &g->tensors[use->tensor];
        if (!use->on_device || !t->made_on_device || t->maker == PRN_NO_UNIT || !on_device[t->maker] ||
            !on_device[use->unit])
            continue;
        const uint32_t a = chain_of(chain, t->maker), b = chain_of(chain, use->unit);
        chain[a > b ? a : b] = a > b ? b : a;
    }
}

/* true: a tensor is copied between a unit of the chain and one on the host. */
static bool joins_host(const prn_partition_graph *g, const bool *on_device, uint32_t *chain, uint32_t name)
{
    for (size_t i = 0; i < g->use_count; i++) {
        const prn_partition_use *use = &g->uses[i];
        const prn_partition_tensor *t = &g->tensors[use->tensor];
        if (t->constant || t->maker == PRN_NO_UNIT || on_device[t->maker] == on_device[use->unit]) continue;
        const uint32_t there = on_device[t->maker] ? t->maker : use->unit;
        if (chain_of(chain, there) == name) return true;
    }
    return false;
}

static void set_chain(const prn_partition_graph *g, uint32_t *chain, uint32_t name, bool *on_device, bool there)
{
    for (uint32_t u = name; u < g->unit_count; u++)
        if (g->units[u].can && chain_of(chain, u) == name) on_device[u] = there;
}

/* Weighs one chain: without it the time of all units and copies has to be less. */
static void weigh_chain(prn_device_split *split, const prn_partition_graph *g, uint32_t *chain, uint32_t name,
                        bool *on_device, double *total)
{
    double saved = 0;
    for (uint32_t u = name; u < g->unit_count; u++)
        if (on_device[u] && chain_of(chain, u) == name) saved += g->units[u].host_ns - g->units[u].device_ns;
    set_chain(g, chain, name, on_device, false);
    const double without = prn_partition_graph_ns(g, on_device);
    if (without >= *total) {
        set_chain(g, chain, name, on_device, true);
        return;
    }
    const double copies = *total - without + saved;
    *total = without;
    for (uint32_t u = name; u < g->unit_count; u++) {
        if (!g->units[u].can || chain_of(chain, u) != name) continue;
        split->rows[g->units[u].node] =
            (prn_partition_row){.reason = PRN_PARTITION_FOR_COPIES, .copies_ns = copies, .saved_ns = saved};
        split->for_copies++;
    }
}

prony_status prn_partition_for_copies(prn_device_split *split, const prn_partition_graph *graph, bool *on_device,
                                      prony_error *error)
{
    uint32_t *chain = prn_calloc(graph->unit_count + 1, sizeof *chain),
             *length = prn_calloc(graph->unit_count + 1, sizeof *length);
    if (chain && length) {
        find_chains(graph, on_device, chain);
        for (uint32_t u = 0; u < graph->unit_count; u++) length[chain_of(chain, u)]++;
        double total = prn_partition_graph_ns(graph, on_device);
        for (uint32_t u = 0; u < graph->unit_count; u++)
            if (on_device[u] && chain[u] == u && length[u] <= PRN_PARTITION_CHAIN &&
                joins_host(graph, on_device, chain, u))
                weigh_chain(split, graph, chain, u, on_device, &total);
    }
    prn_free(chain);
    prn_free(length);
    return chain && length ? PRONY_OK : prn_no_memory(error);
}

/* ---- memory ---- */

typedef struct memory_choice {
    const prn_partition_graph *graph;
    const bool *may; /* units that may run on the device */
    uint64_t room;
    double unit_ns;   /* of a capacity of 1 */
    bool *side;       /* of the cut's nodes */
    bool *now, *best; /* units on the device: of the last cut, and of the best that fits */
    bool *beyond;     /* of the best that does not fit */
} memory_choice;

static void memory_choice_release(memory_choice *c)
{
    prn_free(c->side);
    prn_free(c->now);
    prn_free(c->best);
    prn_free(c->beyond);
}

static prony_status memory_choice_reserve(memory_choice *c, prony_error *error)
{
    const size_t units = c->graph->unit_count;
    c->side = prn_calloc(PRN_CUT_FIRST + units + 2 * c->graph->tensor_count, sizeof *c->side);
    c->now = prn_calloc(units + 1, sizeof *c->now);
    c->best = prn_calloc(units + 1, sizeof *c->best);
    c->beyond = prn_calloc(units + 1, sizeof *c->beyond);
    return c->side && c->now && c->best && c->beyond ? PRONY_OK : prn_no_memory(error);
}

static int64_t price_capacity(const memory_choice *c, double ns)
{
    const double units = ns / c->unit_ns;
    return units >= MOST_CAPACITY ? (int64_t)MOST_CAPACITY : units > 0 ? (int64_t)llround(units) : 0;
}

static prony_status choice_fits(const memory_choice *c, const bool *on_device, bool *fits, prony_error *error)
{
    prn_partition_memory need;
    PRN_TRY(prn_partition_graph_memory(c->graph, on_device, &need, error));
    *fits = need.values <= c->graph->largest_buffer && need.values <= c->room && need.weights <= c->room - need.values;
    return PRONY_OK;
}

/* Edges of one tensor: its copies, or the price of a constant. `price` is that of its maker or its first reader. */
static void add_tensor(const memory_choice *c, prn_min_cut *cut, size_t number, double price)
{
    const prn_partition_graph *g = c->graph;
    const prn_partition_tensor *t = &g->tensors[number];
    const uint32_t out = (uint32_t)(PRN_CUT_FIRST + g->unit_count + 2 * number), in = out + 1;
    const uint32_t maker = t->maker == PRN_NO_UNIT || !t->made_on_device ? PRN_CUT_SINK : PRN_CUT_FIRST + t->maker;
    for (uint32_t i = 0; i < t->use_count; i++) {
        const prn_partition_use *use = &g->uses[t->first_use + i];
        const uint32_t reader = PRN_CUT_FIRST + use->unit;
        if (use->on_device) prn_min_cut_edge(cut, reader, in, PRN_CUT_NEVER);
        if (!t->constant) prn_min_cut_edge(cut, out, use->on_device ? reader : PRN_CUT_SINK, PRN_CUT_NEVER);
    }
    if (t->constant) {
        prn_min_cut_edge(cut, in, PRN_CUT_SINK,
                         t->bytes > c->graph->largest_buffer ? PRN_CUT_NEVER
                         : t->resident                       ? 0
                                                             : price_capacity(c, price * (double)t->bytes));
        return;
    }
    prn_min_cut_edge(cut, in, maker, price_capacity(c, prn_partition_copy_ns(g, t, true)));
    if (maker == PRN_CUT_SINK) return;
    prn_min_cut_edge(cut, maker, out, price_capacity(c, prn_partition_copy_ns(g, t, false)));
    if (t->given) prn_min_cut_edge(cut, out, PRN_CUT_SINK, PRN_CUT_NEVER);
}

static double price_at(const prn_partition_graph *g, uint32_t unit, double price)
{
    return price * (1 + PRICE_SLOPE * (double)unit / (double)g->unit_count);
}

static void add_units(const memory_choice *c, prn_min_cut *cut, double price)
{
    const prn_partition_graph *g = c->graph;
    for (uint32_t u = 0; u < g->unit_count; u++) {
        const prn_partition_unit *unit = &g->units[u];
        if (!c->may[u]) {
            prn_min_cut_edge(cut, PRN_CUT_FIRST + u, PRN_CUT_SINK, PRN_CUT_NEVER);
            continue;
        }
        prn_min_cut_edge(cut, PRN_CUT_SOURCE, PRN_CUT_FIRST + u, price_capacity(c, unit->host_ns));
        prn_min_cut_edge(cut, PRN_CUT_FIRST + u, PRN_CUT_SINK,
                         price_capacity(c, unit->device_ns + price_at(g, u, price) * (double)unit->own_bytes));
    }
    for (size_t i = 0; i < g->tensor_count; i++) {
        const prn_partition_tensor *t = &g->tensors[i];
        const uint32_t at = t->maker != PRN_NO_UNIT ? t->maker : t->use_count ? g->uses[t->first_use].unit : 0;
        add_tensor(c, cut, i, price_at(g, at, price));
        if (t->maker != PRN_NO_UNIT && t->made_on_device && c->may[t->maker])
            prn_min_cut_edge(cut, PRN_CUT_FIRST + t->maker, PRN_CUT_SINK,
                             price_capacity(c, price_at(g, at, price) * (double)t->bytes));
    }
}

/* The cheapest choice at a price per byte, into c->now. *solved false: the search was too expensive. */
static prony_status choose_at(memory_choice *c, double price, bool *solved, prony_error *error)
{
    const prn_partition_graph *g = c->graph;
    const size_t nodes = PRN_CUT_FIRST + g->unit_count + 2 * g->tensor_count;
    prn_min_cut *cut = prn_min_cut_create(nodes, 2 * g->unit_count + 4 * g->tensor_count + 2 * g->use_count);
    if (!cut) return prn_no_memory(error);
    add_units(c, cut, price);
    *solved = prn_min_cut_solve(cut, c->side);
    for (size_t u = 0; *solved && u < g->unit_count; u++) c->now[u] = c->may[u] && c->side[PRN_CUT_FIRST + u];
    prn_min_cut_release(cut);
    return PRONY_OK;
}

/* Cuts at one price, and keeps the choice as the best that fits or the best that does not. */
static prony_status try_price(memory_choice *c, double price, bool *fits, bool *solved, prony_error *error)
{
    PRN_TRY(choose_at(c, price, solved, error));
    if (!*solved) return PRONY_OK;
    PRN_TRY(choice_fits(c, c->now, fits, error));
    memcpy(*fits ? c->best : c->beyond, c->now, c->graph->unit_count * sizeof *c->now);
    return PRONY_OK;
}

/* Finds the lowest price at which the units fit. Starts where all bytes cost a millionth of all time. */
static prony_status find_price(memory_choice *c, double all_ns, double all_bytes, prony_error *error)
{
    bool fits = false, solved = true;
    double low = 0, high = 1e-6 * all_ns / (all_bytes > 1 ? all_bytes : 1);
    PRN_TRY(try_price(c, 0, &fits, &solved, error));
    if (!solved || fits) return PRONY_OK;
    for (int i = 0; i < PRICE_DOUBLINGS && solved && !fits; i++, high *= 2) {
        PRN_TRY(try_price(c, high, &fits, &solved, error));
        if (!fits) low = high;
    }
    for (int i = 0; i < PRICE_BISECTIONS && solved && fits; i++) {
        bool middle_fits = false;
        const double middle = (low + high) / 2;
        PRN_TRY(try_price(c, middle, &middle_fits, &solved, error));
        *(middle_fits ? &high : &low) = middle;
    }
    return PRONY_OK;
}

static bool any_unit(const bool *flags, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (flags[i]) return true;
    return false;
}

/* Adds units of `beyond` to `best`, in the order of the plan, while they fit; keeps as many as take the least time. If no
 * number of units pays for its copies it keeps as many as fit, since the user asked for the device. */
static prony_status refill(memory_choice *c, prony_error *error)
{
    const prn_partition_graph *g = c->graph;
    double least = prn_partition_graph_ns(g, c->best);
    memcpy(c->now, c->best, g->unit_count * sizeof *c->now);
    for (size_t u = 0; u < g->unit_count; u++) {
        bool fits;
        if (c->now[u] || !c->beyond[u]) continue;
        c->now[u] = true;
        PRN_TRY(choice_fits(c, c->now, &fits, error));
        c->now[u] = fits;
        if (!fits) continue;
        const double ns = prn_partition_graph_ns(g, c->now);
        if (ns > least) continue; /* the units behind it may make up for it */
        least = ns;
        memcpy(c->best, c->now, g->unit_count * sizeof *c->now);
    }
    if (!any_unit(c->best, g->unit_count)) memcpy(c->best, c->now, g->unit_count * sizeof *c->now);
    return PRONY_OK;
}

/* Time and bytes that set the scale of prices and capacities. */
static void find_scale(memory_choice *c, double *all_ns, double *all_bytes)
{
    const prn_partition_graph *g = c->graph;
    *all_ns = *all_bytes = 0;
    for (size_t u = 0; u < g->unit_count; u++) {
        if (!c->may[u]) continue;
        *all_ns += g->units[u].host_ns;
        *all_bytes += (double)g->units[u].own_bytes;
    }
    for (size_t i = 0; i < g->tensor_count; i++) *all_bytes += (double)g->tensors[i].bytes;
    if (!(*all_ns > 1)) *all_ns = 1;
    c->unit_ns = *all_ns / ALL_TIME; /* the source gives no more than that, so no flow overflows */
}

/* Weights that only units read which stay on the host. */
static uint64_t weights_left(const prn_partition_graph *g, const bool *may, const bool *on_device)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < g->tensor_count; i++) {
        const prn_partition_tensor *t = &g->tensors[i];
        bool there = false, could = false;
        for (uint32_t u = 0; t->constant && u < t->use_count; u++) {
            const prn_partition_use *use = &g->uses[t->first_use + u];
            there |= use->on_device && on_device[use->unit];
            could |= use->on_device && may[use->unit];
        }
        if (could && !there) bytes += t->bytes;
    }
    return bytes;
}

/* Constants that the plan shares with others, which have them on the device already. */
static uint64_t split_resident_bytes(const prn_partition_graph *g, const bool *on_device)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < g->tensor_count; i++) {
        const prn_partition_tensor *t = &g->tensors[i];
        bool read = false;
        for (uint32_t u = 0; t->resident && u < t->use_count; u++)
            read |= g->uses[t->first_use + u].on_device && on_device[g->uses[t->first_use + u].unit];
        if (read) bytes += t->bytes;
    }
    return bytes;
}

/* Bytes of the weights of each unit that stays on the host. */
static void note_weights(prn_device_split *split, const prn_partition_graph *g)
{
    for (size_t i = 0; i < g->use_count; i++) {
        const prn_partition_tensor *t = &g->tensors[g->uses[i].tensor];
        prn_partition_row *row = &split->rows[g->units[g->uses[i].unit].node];
        if (row->reason == PRN_PARTITION_FOR_MEMORY && t->constant && g->uses[i].on_device)
            row->weight_bytes += t->bytes;
    }
}

static void note_memory(prn_device_split *split, const memory_choice *c, const bool *on_device)
{
    const prn_partition_graph *g = c->graph;
    for (size_t n = 0; n < split->count; n++)
        if (split->rows[n].reason == PRN_PARTITION_FOR_MEMORY) split->rows[n] = (prn_partition_row){0};
    split->for_memory = split->on_device = 0;
    split->room_bytes = c->room + split_resident_bytes(g, on_device);
    split->weight_bytes = weights_left(g, c->may, on_device);
    for (uint32_t u = 0; u < g->unit_count; u++) {
        split->on_device += on_device[u];
        if (!c->may[u] || on_device[u]) continue;
        split->rows[g->units[u].node] = (prn_partition_row){.reason = PRN_PARTITION_FOR_MEMORY};
        split->for_memory++;
    }
    note_weights(split, g);
}

prony_status prn_partition_for_memory(prn_device_split *split, const prn_partition_graph *graph, uint64_t room,
                                      bool *on_device, prony_error *error)
{
    memory_choice c = {.graph = graph, .may = on_device, .room = room};
    double all_ns, all_bytes;
    find_scale(&c, &all_ns, &all_bytes);
    prony_status status = memory_choice_reserve(&c, error);
    if (status == PRONY_OK) memcpy(c.beyond, on_device, graph->unit_count * sizeof *c.beyond);
    if (status == PRONY_OK) status = find_price(&c, all_ns, all_bytes, error);
    if (status == PRONY_OK) status = refill(&c, error);
    if (status == PRONY_OK) {
        note_memory(split, &c, c.best);
        memcpy(on_device, c.best, graph->unit_count * sizeof *on_device);
    }
    memory_choice_release(&c);
    return status;
}
