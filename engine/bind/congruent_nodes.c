/* Nodes and values get numbers: equal keys, equal numbers. A key is a string of words. */
#include "engine/bind/congruent_nodes.h"

#include "base/hash/keyed_hash.h"
#include "base/memory/alloc.h"

#include <string.h>

enum { MOST_CONSTANT_BYTES = 256 }; /* of a constant whose elements are compared; shapes and axes are smaller */

/* Starts a key: keys of different kinds are never equal. */
typedef enum congruent_kind {
    CONGRUENT_UNIQUE,
    CONGRUENT_CONSTANT,
    CONGRUENT_MADE, /* a constant that a node makes of the extents */
    CONGRUENT_SHAPED,
    CONGRUENT_NODE
} congruent_kind;

typedef struct congruent_table {
    int64_t *words; /* of all keys, one behind the other */
    size_t word_count, word_capacity;
    struct congruent_key {
        size_t first, count;
        uint64_t hash;
    } *keys;
    size_t key_count, key_capacity;
    uint32_t *slots; /* number of a key + 1 */
    size_t slot_count;
} congruent_table;

static void congruent_release(congruent_table *t)
{
    prn_free(t->words);
    prn_free(t->keys);
    prn_free(t->slots);
}

/* Adds a word to the key that is being written, behind the last complete one. */
static bool congruent_word(congruent_table *t, int64_t word)
{
    if (!PRN_GROW(t->words, t->word_capacity, t->word_count + 1)) return false;
    t->words[t->word_count++] = word;
    return true;
}

static bool congruent_bytes(congruent_table *t, const void *data, size_t size)
{
    bool ok = congruent_word(t, (int64_t)size);
    for (size_t at = 0; at < size && ok; at += sizeof(int64_t)) {
        int64_t word = 0;
        memcpy(&word, (const char *)data + at, size - at < sizeof word ? size - at : sizeof word);
        ok = congruent_word(t, word);
    }
    return ok;
}

/* Doubles the slots when half of them are taken. */
static bool congruent_room(congruent_table *t)
{
    if (t->slot_count > 2 * (t->key_count + 1)) return true;
    const size_t more = t->slot_count ? 2 * t->slot_count : 256;
    uint32_t *slots = prn_calloc(more, sizeof *slots);
    if (!slots) return false;
    for (size_t k = 0; k < t->key_count; k++) {
        size_t slot = (size_t)t->keys[k].hash & (more - 1);
        while (slots[slot]) slot = (slot + 1) & (more - 1);
        slots[slot] = (uint32_t)k + 1;
    }
    prn_free(t->slots);
    t->slots = slots;
    t->slot_count = more;
    return true;
}

/* The number of the key of all words from `first` on; the words of a known key are dropped. */
static bool congruent_number(congruent_table *t, size_t first, uint32_t *out)
{
    const size_t count = t->word_count - first;
    if (!congruent_room(t) || !PRN_GROW(t->keys, t->key_capacity, t->key_count + 1)) return false;
    const uint64_t hash = prn_hash_bytes(t->words + first, count * sizeof *t->words);
    size_t slot = (size_t)hash & (t->slot_count - 1);
    for (; t->slots[slot]; slot = (slot + 1) & (t->slot_count - 1)) {
        const struct congruent_key *key = &t->keys[t->slots[slot] - 1];
        if (key->hash != hash || key->count != count ||
            memcmp(t->words + key->first, t->words + first, count * sizeof *t->words) != 0)
            continue;
        t->word_count = first;
        *out = t->slots[slot] - 1;
        return true;
    }
    t->keys[t->key_count] = (struct congruent_key){first, count, hash};
    *out = (uint32_t)t->key_count++;
    t->slots[slot] = *out + 1;
    return true;
}

/* ---- keys ---- */

/* Writes what prn_attributes_equal compares. */
static bool congruent_attribute(congruent_table *t, const prn_attr *a)
{
    if (!congruent_word(t, a->type) || !congruent_bytes(t, a->name, strlen(a->name))) return false;
    switch (a->type) {
    case PRN_ATTR_INT:
        return congruent_word(t, a->i);
    case PRN_ATTR_FLOAT:
        return congruent_bytes(t, &a->f, sizeof a->f);
    case PRN_ATTR_STRING:
        return congruent_bytes(t, a->s.data, a->s.size);
    case PRN_ATTR_INTS:
        return congruent_bytes(t, a->ints, a->count * sizeof *a->ints);
    case PRN_ATTR_FLOATS:
        return congruent_bytes(t, a->floats, a->count * sizeof *a->floats);
    default:
        return congruent_word(t, (int64_t)(uintptr_t)a);
    }
}

/* The number of a value that no node of the list made as a constant. */
static bool congruent_value(congruent_table *t, const prn_value_def *value, uint32_t id,
                            const prn_value_signature *signature, uint32_t *out)
{
    const prony_value *info = &value->info;
    /* the bytes of others may not be there yet */
    const bool numbers = value->constant && info->data && !prn_lazy_constant_profitable(info) &&
                         info->kind == PRONY_TENSOR && info->dtype != PRONY_STRING && prn_shape_known(&info->shape);
    const size_t first = t->word_count, bytes = numbers ? prn_value_bytes(info) : 0;
    bool ok = true;
    if (numbers && bytes <= MOST_CONSTANT_BYTES) {
        ok = congruent_word(t, CONGRUENT_CONSTANT) && congruent_word(t, info->dtype) &&
             congruent_bytes(t, info->shape.dim, (size_t)info->shape.rank * sizeof *info->shape.dim) &&
             congruent_bytes(t, info->data, bytes);
    } else if (!value->constant && signature->count) {
        ok = congruent_word(t, CONGRUENT_SHAPED);
        for (size_t k = 0; k < signature->count && ok; k++) ok = congruent_word(t, signature->words[k]);
    } else {
        ok = congruent_word(t, CONGRUENT_UNIQUE) && congruent_word(t, id);
    }
    return ok && congruent_number(t, first, out);
}

/* true: nothing but its operator, attributes and inputs decides a node's results. Functions of the user may depend on
 * more. */
static bool congruent_is_pure(const prn_node_def *node)
{
    const prn_operator_binding *binding = &node->binding;
    const prn_op *op = binding->op;
    return op && op == prn_op_find(node->info.domain, node->info.op_type, node->info.opset) &&
           binding->infer == op->infer && binding->cost == op->cost && !node->dynamic && node->child_count == 0 &&
           !(op->flags & PRN_OP_ONCE_PER_RUN);
}

/* Inputs that are one value count as such: the traffic of a node counts a value that is read twice once. */
static bool congruent_node(congruent_table *t, const prn_node_def *node, const uint32_t *numbers, uint32_t *out)
{
    const size_t first = t->word_count;
    bool ok = congruent_word(t, CONGRUENT_NODE) && congruent_word(t, (int64_t)(uintptr_t)node->binding.op) &&
              congruent_word(t, node->info.opset) && congruent_word(t, node->dead) && congruent_word(t, node->folded) &&
              congruent_word(t, node->input_count) && congruent_word(t, node->output_count);
    for (uint32_t i = 0; i < node->input_count && ok; i++) {
        uint32_t same = 0;
        while (node->inputs[same] != node->inputs[i]) same++;
        ok = congruent_word(t, node->inputs[i] == PRN_NO_VALUE ? -1 : (int64_t)numbers[node->inputs[i]]) &&
             congruent_word(t, same);
    }
    for (uint32_t k = 0; k < node->output_count && ok; k++) ok = congruent_word(t, node->outputs[k] == PRN_NO_VALUE);
    for (size_t a = 0; a < node->info.attributes->count && ok; a++)
        ok = congruent_attribute(t, &node->info.attributes->items[a]);
    return ok && congruent_number(t, first, out);
}

/* A node's outputs: constants have the number of their place among the leader's outputs. */
static bool congruent_outputs(congruent_table *t, const prn_program *p, const prn_node_def *node, uint32_t leader,
                              const prn_value_signature *signatures, uint32_t *numbers)
{
    bool ok = true;
    for (uint32_t k = 0; k < node->output_count && ok; k++) {
        const uint32_t id = node->outputs[k];
        const size_t first = t->word_count;
        if (id == PRN_NO_VALUE) continue;
        if (p->values[id]->constant)
            ok = congruent_word(t, CONGRUENT_MADE) && congruent_word(t, leader) && congruent_word(t, k) &&
                 congruent_number(t, first, &numbers[id]);
        else
            ok = congruent_value(t, p->values[id], id, &signatures[id], &numbers[id]);
    }
    return ok;
}

prony_status prn_congruent_nodes(const prn_program *program, const prn_node_def *const *nodes, size_t count,
                                 const prn_value_signature *signatures, uint32_t *leader, prony_error *error)
{
    congruent_table t = {0};
    uint32_t *numbers = prn_calloc(program->value_count + 1, sizeof *numbers), *firsts = NULL;
    size_t first_capacity = 0;
    bool ok = numbers != NULL;
    for (uint32_t v = 0; v < program->value_count && ok; v++)
        ok = congruent_value(&t, program->values[v], v, &signatures[v], &numbers[v]);
    for (uint32_t n = 0; n < count && ok; n++) {
        uint32_t number = 0;
        leader[n] = n;
        if (congruent_is_pure(nodes[n])) {
            const size_t known = t.key_count;
            ok = congruent_node(&t, nodes[n], numbers, &number) && PRN_GROW(firsts, first_capacity, t.key_count);
            if (ok && t.key_count > known) firsts[number] = n;
            if (ok) leader[n] = firsts[number];
        }
        ok = ok && congruent_outputs(&t, program, nodes[n], leader[n], signatures, numbers);
    }
    congruent_release(&t);
    prn_free(numbers);
    prn_free(firsts);
    return ok ? PRONY_OK : prn_no_memory(error);
}

/* ---- attributes ---- */

static bool congruent_same_list(const void *a, const void *b, size_t count, size_t size)
{
    return a == b || count == 0 || (a && b && memcmp(a, b, count * size) == 0);
}

static bool congruent_same_attribute(const prn_attr *a, const prn_attr *b)
{
    if (a->type != b->type || strcmp(a->name, b->name) != 0) return false;
    switch (a->type) {
    case PRN_ATTR_INT:
        return a->i == b->i;
    case PRN_ATTR_FLOAT:
        return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case PRN_ATTR_STRING:
        return a->s.size == b->s.size && congruent_same_list(a->s.data, b->s.data, a->s.size, 1);
    case PRN_ATTR_INTS:
        return a->count == b->count && congruent_same_list(a->ints, b->ints, a->count, sizeof *a->ints);
    case PRN_ATTR_FLOATS:
        return a->count == b->count && congruent_same_list(a->floats, b->floats, a->count, sizeof *a->floats);
    default:
        return a == b;
    }
}

bool prn_attributes_equal(const prn_attr_list *a, const prn_attr_list *b)
{
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++)
        if (!congruent_same_attribute(&a->items[i], &b->items[i])) return false;
    return true;
}
