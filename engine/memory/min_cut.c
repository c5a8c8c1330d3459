/* Dinic's algorithm: flows along shortest paths, level by level, until no path is left. The nodes that still reach the sink
 * are its side of the cut. */
#include "engine/memory/min_cut.h"

#include "base/memory/alloc.h"

/* Bound on the edges that all searches look at, about a second. */
#define MOST_CUT_VISITS ((uint64_t)1 << 28)
#define NO_EDGE UINT32_MAX
#define NO_LEVEL UINT32_MAX

/* Edges 2i and 2i + 1 are one edge and its reverse. */
struct prn_min_cut {
    size_t nodes, edge_count, edge_capacity;
    uint32_t *to, *next; /* [edges] */
    int64_t *left;       /* [edges] capacity that the flow leaves */
    uint32_t *first;     /* [nodes] */
    uint32_t *at;        /* [nodes] the edge that the search tries next */
    uint32_t *level;     /* [nodes] distance from the source */
    uint32_t *queue;     /* [nodes] */
    uint32_t *path;      /* [nodes] edges from the source to the present node */
    uint64_t visits;
};

void prn_min_cut_release(prn_min_cut *cut)
{
    if (!cut) return;
    prn_free(cut->to);
    prn_free(cut->next);
    prn_free(cut->left);
    prn_free(cut->first);
    prn_free(cut->at);
    prn_free(cut->level);
    prn_free(cut->queue);
    prn_free(cut->path);
    prn_free(cut);
}

prn_min_cut *prn_min_cut_create(size_t nodes, size_t edges)
{
    prn_min_cut *cut = prn_calloc(1, sizeof *cut);
    if (!cut || nodes >= NO_LEVEL || edges >= NO_EDGE / 2) {
        prn_free(cut);
        return NULL;
    }
    cut->nodes = nodes;
    cut->edge_capacity = 2 * edges;
    cut->to = prn_calloc(2 * edges + 1, sizeof *cut->to);
    cut->next = prn_calloc(2 * edges + 1, sizeof *cut->next);
    cut->left = prn_calloc(2 * edges + 1, sizeof *cut->left);
    cut->first = prn_calloc(nodes + 1, sizeof *cut->first);
    cut->at = prn_calloc(nodes + 1, sizeof *cut->at);
    cut->level = prn_calloc(nodes + 1, sizeof *cut->level);
    cut->queue = prn_calloc(nodes + 1, sizeof *cut->queue);
    cut->path = prn_calloc(nodes + 1, sizeof *cut->path);
    if (cut->to && cut->next && cut->left && cut->first && cut->at && cut->level && cut->queue && cut->path) {
        for (size_t n = 0; n < nodes; n++) cut->first[n] = NO_EDGE;
        return cut;
    }
    prn_min_cut_release(cut);
    return NULL;
}

static void min_cut_half(prn_min_cut *cut, uint32_t from, uint32_t to, int64_t capacity)
{
    const uint32_t e = (uint32_t)cut->edge_count++;
    cut->to[e] = to;
    cut->left[e] = capacity;
    cut->next[e] = cut->first[from];
    cut->first[from] = e;
}

void prn_min_cut_edge(prn_min_cut *cut, uint32_t from, uint32_t to, int64_t capacity)
{
    if (cut->edge_count + 2 > cut->edge_capacity) return; /* the caller counted them */
    min_cut_half(cut, from, to, capacity);
    min_cut_half(cut, to, from, 0);
}

/* Levels of all nodes that the source reaches. true: the sink is one of them. */
static bool min_cut_levels(prn_min_cut *cut)
{
    size_t head = 0, tail = 0;
    for (size_t n = 0; n < cut->nodes; n++) cut->level[n] = NO_LEVEL;
    cut->level[PRN_CUT_SOURCE] = 0;
    cut->queue[tail++] = PRN_CUT_SOURCE;
    while (head < tail) {
        const uint32_t n = cut->queue[head++];
        for (uint32_t e = cut->first[n]; e != NO_EDGE; e = cut->next[e]) {
            cut->visits++;
            if (cut->left[e] <= 0 || cut->level[cut->to[e]] != NO_LEVEL) continue;
            cut->level[cut->to[e]] = cut->level[n] + 1;
            cut->queue[tail++] = cut->to[e];
        }
    }
    return cut->level[PRN_CUT_SINK] != NO_LEVEL;
}

/* Pushes as much as the path of `length` edges takes. Returns the number of edges before the first that is now full. */
static size_t min_cut_push(prn_min_cut *cut, size_t length)
{
    int64_t least = INT64_MAX;
    size_t keep = 0;
    for (size_t i = 0; i < length; i++)
        if (cut->left[cut->path[i]] < least) least = cut->left[cut->path[i]];
    for (size_t i = length; i-- > 0;) {
        cut->left[cut->path[i]] -= least;
        cut->left[cut->path[i] ^ 1] += least;
        if (cut->left[cut->path[i]] == 0) keep = i;
    }
    return keep;
}

/* A flow along shortest paths that no further shortest path adds to. */
static void min_cut_block(prn_min_cut *cut)
{
    size_t length = 0;
    uint32_t n = PRN_CUT_SOURCE;
    for (size_t i = 0; i < cut->nodes; i++) cut->at[i] = cut->first[i];
    while (cut->visits < MOST_CUT_VISITS) {
        if (n == PRN_CUT_SINK) {
            length = min_cut_push(cut, length);
            n = cut->to[cut->path[length] ^ 1];
        }
        uint32_t e = cut->at[n];
        while (e != NO_EDGE && (cut->left[e] <= 0 || cut->level[cut->to[e]] != cut->level[n] + 1)) {
            cut->visits++;
            e = cut->next[e];
        }
        cut->visits++;
        cut->at[n] = e;
        if (e != NO_EDGE) {
            cut->path[length++] = e;
            n = cut->to[e];
        } else if (length > 0) { /* a dead end: no path of this level goes through it */
            cut->level[n] = NO_LEVEL;
            n = cut->to[cut->path[--length] ^ 1];
        } else {
            return;
        }
    }
}

/* Marks the nodes that reach the sink, by edges backwards; all others are the source's. */
static void min_cut_sides(prn_min_cut *cut, bool *source_side)
{
    size_t head = 0, tail = 0;
    for (size_t n = 0; n < cut->nodes; n++) source_side[n] = true;
    source_side[PRN_CUT_SINK] = false;
    cut->queue[tail++] = PRN_CUT_SINK;
    while (head < tail) {
        const uint32_t n = cut->queue[head++];
        for (uint32_t e = cut->first[n]; e != NO_EDGE; e = cut->next[e]) {
            const uint32_t from = cut->to[e];
            if (cut->left[e ^ 1] <= 0 || !source_side[from]) continue;
            source_side[from] = false;
            cut->queue[tail++] = from;
        }
    }
}

bool prn_min_cut_solve(prn_min_cut *cut, bool *source_side)
{
    while (cut->visits < MOST_CUT_VISITS && min_cut_levels(cut)) min_cut_block(cut);
    if (cut->visits >= MOST_CUT_VISITS) return false;
    min_cut_sides(cut, source_side);
    return true;
}
