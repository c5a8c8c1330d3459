/* Shared by the files of the random graphs' maker. */
#ifndef PRN_TESTS_SUPPORT_RANDOM_GRAPH_MAKER_H
#define PRN_TESTS_SUPPORT_RANDOM_GRAPH_MAKER_H

#include "tests/support/random_graph.h"

enum { RG_MOST_ELEMENTS = 1 << 13, RG_MOST_OPERANDS = 80 };

typedef struct rg_maker {
    random_graph *g;
    rg_graph *graph; /* being written: the model's, or a body */
    uint64_t state;
    int *visible; /* values that nodes of `graph` may use */
    size_t visible_count, visible_capacity;
    unsigned kinds;
    int depth; /* of bodies */
} rg_maker;

/* ---- numbers ---- */

/* 0 to below `limit`. */
int64_t rg_below(rg_maker *k, int64_t limit);
bool rg_chance(rg_maker *k, int percent);

/* ---- values ---- */

const rg_value *rg_of(const rg_maker *k, int id);
int rg_rank(const rg_maker *k, int id);
int64_t rg_elements(const rg_maker *k, int id);
void rg_show(rg_maker *k, int id);

enum {
    RG_F32 = 1,
    RG_FLOATS = 2, /* float32, float64 */
    RG_WHOLE = 4,  /* int64, int32 */
    RG_NUMBERS = RG_FLOATS | RG_WHOLE,
    RG_BOOLS = 8,
    RG_BYTES = 16, /* int8, uint8 */
    RG_ALL = RG_NUMBERS | RG_BOOLS | RG_BYTES,
    RG_OPEN = 32 /* dims known at run time only are allowed */
};
/* A visible value of one of the types and of a rank in low..high, or -1. Later ones are likelier. */
int rg_pick(rg_maker *k, unsigned types, int low, int high);
/* A visible value of the type and shape of `like`, perhaps `like` itself. */
int rg_pick_like(rg_maker *k, int like);

int rg_constant(rg_maker *k, prony_dtype dtype, const prony_shape *shape, double low, double high);
int rg_ints(rg_maker *k, const int64_t *ints, size_t count);
int rg_int_scalar(rg_maker *k, int64_t value);

/* ---- nodes ---- */

/* One result of the given type; `most` as of rg_value. Returns its id. */
int rg_node1(rg_maker *k, const char *op, const int *in, size_t count, prony_dtype dtype, const prony_shape *shape,
             double most, const char *format, ...) __attribute__((format(printf, 8, 9)));
/* A result of the type, shape and size of `like`. */
int rg_same(rg_maker *k, const char *op, const int *in, size_t count, int like, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* `value`, or a bounded value instead. */
int rg_tame(rg_maker *k, int value);
/* A value of the type and shape of `value` (known, a number), made from it by one or more nodes. */
int rg_step(rg_maker *k, int value);
/* The shape after broadcasting; false: they do not fit, or are not known. */
bool rg_broadcast(const rg_maker *k, int a, int b, prony_shape *out);

/* ---- the operators: each adds nodes if it finds operands ---- */

typedef struct rg_recipe {
    void (*make)(rg_maker *k);
    int weight;
    unsigned kinds; /* kinds of graphs that may contain it besides RG_ANY */
} rg_recipe;

/* An axis of `id` that may be sliced or scanned; -1: none. */
int64_t rg_pick_axis(rg_maker *k, int id);
/* A second operand that broadcasts to `x` without changing its shape. */
int rg_partner(rg_maker *k, int x);
/* random_graph_types.c, for the first table */
void rg_make_reduce(rg_maker *k);
void rg_make_softmax(rg_maker *k);
void rg_make_layer_norm(rg_maker *k);
void rg_make_cast(rg_maker *k);
void rg_make_compare(rg_maker *k);
void rg_make_where(rg_maker *k);
void rg_make_quantized(rg_maker *k);
void rg_make_topk(rg_maker *k);
void rg_make_shape(rg_maker *k);

extern const rg_recipe rg_plain_recipes[];   /* random_graph_ops.c; end with NULL */
extern const rg_recipe rg_image_recipes[];   /* random_graph_images.c: operators with layouts, and patterns of
                                                rewrites */
extern const rg_recipe rg_control_recipes[]; /* random_graph_control.c: bodies, and shapes known at run time only */
/* Adds the nodes of one randomly chosen recipe. */
void rg_make_one(rg_maker *k);

#endif
