/* Allocates, shares and releases values in the dynamic region. A failure may leave blocks only inside of a run, whose
 * end releases them. */
#include "base/threads/cancel.h"
#include "engine/run/dynamic_tensor.h"

#include <string.h>

uint32_t prn_dynamic_tensor_owner(const prn_node_environment *site, uint32_t value)
{
    return site->plan->nested.outer ? site->plan->nested.value : value;
}

uint32_t prn_dynamic_tensor_step(const prn_plan *plan, uint32_t step)
{
    return plan->nested.outer ? plan->nested.step : step;
}

static prony_status dynamic_tensor_take(const prn_node_environment *site, uint64_t bytes, uint32_t owner, void **out,
                                        prony_error *error)
{
    prn_arena *arena = site->plan->memory.arena;
    prn_arena_lock(arena);
    prony_status status = prn_arena_take(arena, bytes, prn_dynamic_tensor_owner(site, owner),
                                         prn_dynamic_tensor_step(site->plan, site->step->index), out, error);
    prn_arena_unlock(arena);
    return status == PRONY_OK ? PRONY_OK : prn_error_blame(error, status, &site->step->node->info);
}

prony_status prn_dynamic_tensor_take(const prn_node_environment *site, prony_value *value, uint32_t owner,
                                     prony_error *error)
{
    size_t bytes = prn_value_bytes(value);
    if (bytes == SIZE_MAX) {
        char text[PRN_SHAPE_TEXT_BYTES];
        prn_fail(error, PRONY_LIMIT, "a value of %s is too large", prn_value_text(value, text));
        prn_error_name_node(error, &site->step->node->info);
        return PRONY_LIMIT;
    }
    return dynamic_tensor_take(site, bytes, owner, &value->data, error);
}

/* Takes room for `room` items, with `count` zeroed items. */
static prony_status take_room(const prn_node_environment *site, prony_value *value, size_t count, size_t room,
                              uint32_t owner, prony_error *error)
{
    void *items = NULL;
    prn_arena *arena = site->plan->memory.arena;
    value->items = NULL;
    value->count = 0;
    if (room > SIZE_MAX / sizeof(prony_value)) return prn_fail(error, PRONY_LIMIT, "a sequence of %zu items", count);
    PRN_TRY(dynamic_tensor_take(site, room * sizeof(prony_value), owner, &items, error));
    memset(items, 0, count * sizeof(prony_value));
    prn_arena_lock(arena);
    prn_arena_note(arena, items, count);
    prn_arena_unlock(arena);
    value->items = items;
    value->count = count;
    return PRONY_OK;
}

prony_status prn_dynamic_tensor_take_items(const prn_node_environment *site, prony_value *value, size_t count,
                                           uint32_t owner, prony_error *error)
{
    value->items = NULL;
    value->count = 0;
    return count ? take_room(site, value, count, count, owner, error) : PRONY_OK;
}

static bool dynamic_tensor_share(prn_arena *arena, const void *block)
{
    prn_arena_lock(arena);
    bool shared = prn_arena_share(arena, block);
    prn_arena_unlock(arena);
    return shared;
}

prony_status prn_dynamic_tensor_keep(const prn_node_environment *site, const prony_value *from, prony_value *out,
                                     uint32_t owner, prony_error *error)
{
    prn_arena *arena = site->plan->memory.arena;
    const prony_value source = *from; /* `out` may be the same struct */
    *out = source;
    if (source.kind == PRONY_TENSOR) {
        if (source.data && dynamic_tensor_share(arena, source.data)) return PRONY_OK;
        PRN_TRY(prn_dynamic_tensor_take(site, out, owner, error));
        size_t bytes = prn_value_bytes(out);
        prn_cancellable_copy(out->data, source.data, bytes);
        return PRONY_OK;
    }
    if (source.count == 0) {
        out->items = NULL;
        return PRONY_OK;
    }
    if (dynamic_tensor_share(arena, source.items)) return PRONY_OK;
    PRN_TRY(prn_dynamic_tensor_take_items(site, out, source.count, owner, error));
    for (size_t i = 0; i < source.count; i++)
        PRN_TRY(prn_dynamic_tensor_keep(site, &source.items[i], &out->items[i], owner, error));
    return PRONY_OK;
}

/* Items are dropped under the same lock as the block's release. */
static void drop(prn_arena *arena, prony_value *value, uint32_t step)
{
    if (value->data) prn_arena_give(arena, value->data, step);
    if (value->items) {
        uint64_t filled;
        prn_arena_room(arena, value->items, &filled);
        bool last = prn_arena_holders(arena, value->items) == 1;
        for (size_t i = 0; last && i < filled; i++) drop(arena, &value->items[i], step);
        prn_arena_give(arena, value->items, step);
    }
    value->data = NULL;
    value->items = NULL;
    value->count = 0;
}

void prn_dynamic_tensor_drop(prn_arena *arena, prony_value *value, uint32_t step)
{
    bool holds = value->data || value->items; /* a subgraph that never ran has no arena */
    if (holds) prn_arena_lock(arena);
    drop(arena, value, step);
    if (holds) prn_arena_unlock(arena);
}

/* ---- longer and shorter by one, on the same block */

/* Claims the slot after the last item if it is free: other holders of the block keep their own count of items. An old
 * item there, seen only by a longer sequence that is gone, is released. */
static bool claim_next(prn_arena *arena, const prony_value *from, uint32_t step)
{
    uint64_t filled, room = prn_arena_room(arena, from->items, &filled);
    if (room / sizeof(prony_value) <= from->count || filled < from->count) return false;
    if (filled > from->count) {
        if (prn_arena_holders(arena, from->items) != 1) return false;
        for (uint64_t i = from->count; i < filled; i++) drop(arena, &from->items[i], step);
    }
    if (!prn_arena_share(arena, from->items)) return false;
    from->items[from->count] = (prony_value){0};
    prn_arena_note(arena, from->items, from->count + 1);
    return true;
}

prony_status prn_dynamic_tensor_append(const prn_node_environment *site, const prony_value *from, prony_value *out,
                                       uint32_t owner, prony_error *error)
{
    prn_arena *arena = site->plan->memory.arena;
    const prony_value source = *from;
    *out = source;
    if (source.items) {
        prn_arena_lock(arena);
        bool claimed = claim_next(arena, &source, prn_dynamic_tensor_step(site->plan, site->step->index));
        prn_arena_unlock(arena);
        out->count = source.count + 1;
        if (claimed) return PRONY_OK;
    }
    PRN_TRY(take_room(site, out, source.count + 1, source.count + 1 + source.count / 2, owner, error));
    for (size_t i = 0; i < source.count && !prn_cancelled_at((int64_t)i); i++)
        PRN_TRY(prn_dynamic_tensor_keep(site, &source.items[i], &out->items[i], owner, error));
    return PRONY_OK;
}

bool prn_dynamic_tensor_shorten(const prn_node_environment *site, const prony_value *from, prony_value *out)
{
    prn_arena *arena = site->plan->memory.arena;
    uint64_t filled;
    *out = *from;
    if (from->count < 2) return false;
    prn_arena_lock(arena);
    const bool known = prn_arena_room(arena, from->items, &filled) > 0;
    bool shared = known && filled / 2 < from->count && prn_arena_share(arena, from->items);
    prn_arena_unlock(arena);
    if (shared) out->count--;
    return shared;
}
