/* Varies a row as text. An extent that stands in several inputs (channels of image and weights, say) becomes the same
 * other extent in all of them, and in kernel_shape and group; what LSTM, GRU and RNN want to be a multiple of the
 * hidden size stays one. Inputs with data stay as they are. */
#include "tests/support/op_vary.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EXTENTS = 64, MOST_INPUT_ELEMENTS = 1 << 15 };

typedef struct varier {
    uint64_t state;
    int64_t from[MOST_EXTENTS], to[MOST_EXTENTS];
    size_t extents;
    int rank;  /* of the first input */
    bool loop; /* recurrent operators amplify every rounding */
    char *out;
    size_t used;
    bool fits;
} varier;

static int64_t below(varier *v, int64_t limit)
{
    v->state = v->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((v->state >> 33) % (uint64_t)limit);
}

static bool chance(varier *v, int percent)
{
    return below(v, 100) < percent;
}

static void put(varier *v, const char *text, size_t size)
{
    if (v->used + size + 1 > OP_VARY_TEXT) {
        v->fits = false;
        return;
    }
    memcpy(v->out + v->used, text, size);
    v->used += size;
    v->out[v->used] = '\0';
}

static void put_int(varier *v, int64_t value)
{
    char text[24];
    put(v, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)value));
}

static int64_t other_extent(varier *v, int64_t from)
{
    static const int64_t usual[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 64};
    int64_t to = from;
    if (chance(v, 20))
        to = from + below(v, 5) - 2;
    else if (chance(v, 40))
        to = usual[below(v, v->loop ? 8 : 17)];
    else if (chance(v, 3))
        to = 0;
    return to < 0 ? from : to;
}

static int64_t extent(varier *v, int64_t from)
{
    for (size_t i = 0; i < v->extents; i++)
        if (v->from[i] == from) return v->to[i];
    if (v->extents == MOST_EXTENTS) return from;
    v->from[v->extents] = from;
    v->to[v->extents] = other_extent(v, from);
    return v->to[v->extents++];
}

static void map_extent(varier *v, int64_t from, int64_t to)
{
    for (size_t i = 0; i < v->extents; i++)
        if (v->from[i] == from) return;
    v->from[v->extents] = from;
    v->to[v->extents++] = to;
}

/* Directions stay; gates, biases and peepholes follow the hidden size, the last extent of the third input. */
static void map_recurrent(varier *v, const op_case *row)
{
    const int gates = strcmp(row->op, "LSTM") == 0 ? 4 : strcmp(row->op, "GRU") == 0 ? 3 : strcmp(row->op, "RNN") == 0;
    const char *r = row->inputs;
    for (int i = 0; i < 2 && r; i++) r = strchr(r, ']') ? strchr(r, ']') + 1 : NULL;
    const char *last = r && gates ? strchr(r, ']') : NULL;
    if (!last) return;
    while (isdigit((unsigned char)last[-1])) last--;
    const int64_t hidden = strtoll(last, NULL, 10);
    map_extent(v, 1, 1);
    map_extent(v, 2, 2);
    map_extent(v, hidden, other_extent(v, hidden));
    const int64_t to = extent(v, hidden);
    map_extent(v, gates * hidden, gates * to);
    map_extent(v, 2 * gates * hidden, 2 * gates * to);
    map_extent(v, 3 * hidden, 3 * to);
}

/* "[1,16,14,14]" at *text; moves *text past it. */
static void vary_dims(varier *v, const char **text, bool may)
{
    int64_t elements = 1;
    int rank = 0;
    put(v, (*text)++, 1);
    while (**text && **text != ']') {
        char *end;
        int64_t dim = strtoll(*text, &end, 10);
        if (may && dim >= 0) dim = chance(v, 4) ? other_extent(v, dim) : extent(v, dim);
        put_int(v, dim);
        elements *= dim > 1 ? dim : 1;
        rank++;
        *text = end;
        if (**text == ',') put(v, (*text)++, 1);
    }
    if (elements > MOST_INPUT_ELEMENTS) v->fits = false;
    if (v->rank < 0) v->rank = rank;
}

static void vary_inputs(varier *v, const char *text)
{
    while (*text) {
        const char *end = text + strcspn(text, " ");
        const char *data = memchr(text, '=', (size_t)(end - text));
        while (data && *end && strchr(text, '}') && end < strchr(text, '}')) end += 1 + strcspn(end + 1, " ");
        if (*text == '!' && !data && chance(v, 15)) text++;
        while (text < end) {
            if (*text == '[')
                vary_dims(v, &text, !data);
            else
                put(v, text++, 1);
        }
        if (*text == ' ') put(v, text++, 1);
    }
}

static int64_t vary_number(varier *v, const char *name, size_t length, int64_t number)
{
    static const char *const small[] = {"strides", "dilations", "pads", "output_padding"};
    static const char *const extents[] = {"kernel_shape", "group", "hidden_size"};
    static const char *const flags[] = {"keepdims",
                                        "ceil_mode",
                                        "count_include_pad",
                                        "transA",
                                        "transB",
                                        "exclusive",
                                        "reverse",
                                        "largest",
                                        "sorted",
                                        "align_corners",
                                        "antialias",
                                        "upper",
                                        "noop_with_empty_axes",
                                        "select_last_index",
                                        "is_causal",
                                        "interleaved",
                                        "center_point_box",
                                        "across_channels",
                                        "fmod"};
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
        if (strlen(extents[i]) == length && strncmp(name, extents[i], length) == 0) return extent(v, number);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        if (strlen(small[i]) == length && strncmp(name, small[i], length) == 0)
            return chance(v, 70) ? number : (i == 0 || i == 1) + below(v, 3);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strlen(flags[i]) == length && strncmp(name, flags[i], length) == 0) return chance(v, 70) ? number : !number;
    bool axis = (length == 4 && (strncmp(name, "axis", 4) == 0 || strncmp(name, "axes", 4) == 0));
    if (axis && v->rank > 0 && chance(v, 40)) return below(v, 2 * v->rank) - v->rank;
    return number;
}

/* "name=value name=[v,v]": whole numbers change where their name says how. */
static void vary_attributes(varier *v, const char *text)
{
    const char *name = text;
    size_t length = 0;
    bool quoted = false;
    while (*text) {
        bool starts = text == name || text[-1] == '=' || text[-1] == '[' || text[-1] == ',';
        const char *digits = text + (*text == '-');
        if (*text == '\'') quoted = !quoted;
        if (*text == ' ' && !quoted) name = text + 1;
        if (*text == '=' && !quoted && text > name) length = (size_t)(text - name);
        if (!quoted && starts && text > name && isdigit((unsigned char)*digits)) {
            char *end;
            int64_t number = strtoll(text, &end, 10);
            if (*end == '\0' || *end == ' ' || *end == ',' || *end == ']') {
                put_int(v, vary_number(v, name, length, number));
                text = end;
                continue;
            }
        }
        put(v, text++, 1);
    }
}

bool op_vary(op_varied *out, const op_case_list *list, size_t row, uint64_t seed)
{
    const op_case *from = &list->items[row];
    varier v = {.state = seed * UINT64_C(0x9e3779b97f4a7c15) + row, .rank = -1, .fits = true};
    v.loop = strstr(from->file, "recurrent") != NULL;
    if (from->refused) return false;
    below(&v, 2);
    const char *attributes = from->attributes;
    if (chance(&v, 15)) { /* those of another row of the operator */
        const op_case *other = &list->items[(size_t)below(&v, (int64_t)list->count)];
        for (int attempt = 0; attempt < 50 && (other->refused || strcmp(other->op, from->op) != 0); attempt++)
            other = &list->items[(row + list->count + (size_t)below(&v, 41) - 20) % list->count];
        if (strcmp(other->op, from->op) == 0 && !other->refused) attributes = other->attributes;
    }
    out->row = *from;
    out->row.attributes = out->attributes;
    out->row.inputs = out->inputs;
    out->attributes[0] = out->inputs[0] = '\0';
    if (v.loop) map_recurrent(&v, from);
    v.out = out->inputs;
    vary_inputs(&v, from->inputs);
    v.out = out->attributes;
    v.used = 0;
    vary_attributes(&v, attributes);
    return v.fits;
}
