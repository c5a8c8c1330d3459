#include "tests/support/near_miss_check.h"

#include "base/shape.h"
#include "engine/bind/engine_model.h"
#include "engine/rewrites/rewrite.h"
#include "tests/support/graph_report.h"
#include "tests/support/graph_run.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *block)
{
    if (!block) abort();
    return block;
}

/* ---- the same graph in float64 ---- */

/* A float32 number; moved by half of its last place where `moved`, which spares numbers of few digits: exponents,
 * bounds, counts. `all`: moves those too, as the float32 mean of whole numbers is rounded like any other. */
static double number_of(double x, bool moved, bool all, uint64_t *random)
{
    const double single = (double)(float)x;
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    if (!moved || !isfinite(single) || (!all && single == rint(single * 16) / 16)) return single;
    return single * (1 + (*random >> 63 ? 0x1p-24 : -0x1p-24));
}

static const char *wide_attributes(prn_bump *pool, const char *attributes)
{
    if (strcmp(attributes, "to=1") == 0) return "to=11";
    return must(prn_bump_strndup(pool, attributes, strlen(attributes)));
}

static bool has_mean(const random_graph *g)
{
    static const char *const ops[] = {"LayerNormalization", "InstanceNormalization", "GroupNormalization"};
    for (size_t n = 0; n < g->main.node_count; n++)
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
            if (strcmp(g->main.nodes[n].op, ops[i]) == 0) return true;
    return false;
}

/* Converts every float32 value to float64 with the same numbers. Constant nodes become initializers. */
static void make_wide(random_graph *wide, const random_graph *g, bool moved)
{
    uint64_t random = g->seed + 1;
    const bool centred = has_mean(g);
    *wide = *g;
    wide->pool = (prn_bump){0};
    wide->values = must(malloc((g->value_count + 1) * sizeof *wide->values));
    memcpy(wide->values, g->values, g->value_count * sizeof *wide->values);
    wide->main.nodes = must(prn_bump_alloc(&wide->pool, g->main.node_count + 1, sizeof *wide->main.nodes));
    wide->main.node_count = 0;
    for (size_t n = 0; n < g->main.node_count; n++) {
        rg_node node = g->main.nodes[n];
        if (strcmp(node.op, "Constant") == 0) {
            rg_value *value = &wide->values[node.out[0]];
            *value = (rg_value){.dtype = PRONY_FLOAT32, .constant = true};
            value->low = value->high = strtod(strchr(node.attributes, '=') + 1, NULL);
            continue;
        }
        node.attributes =
            strcmp(node.op, "Cast") == 0 ? wide_attributes(&wide->pool, node.attributes) : node.attributes;
        wide->main.nodes[wide->main.node_count++] = node;
    }
    for (size_t v = 0; v < g->value_count; v++) {
        rg_value *value = &wide->values[v];
        if (value->dtype != PRONY_FLOAT32) continue;
        const int64_t count = value->constant || value->input ? prony_shape_numel(&value->shape) : 0;
        double *reals = must(prn_bump_alloc(&wide->pool, (size_t)count + 1, sizeof *reals));
        for (int64_t i = 0; i < count; i++)
            reals[i] = number_of(random_graph_element(wide, (int)v, i), moved, centred && value->input, &random);
        value->reals = reals;
        value->dtype = PRONY_FLOAT64;
    }
}

/* Makes every node result an output, after the graph's own outputs. */
static void show_all(random_graph *wide)
{
    rg_graph *graph = &wide->main;
    int *ids =
        must(prn_bump_alloc(&wide->pool, graph->output_count + RG_MOST_RESULTS * graph->node_count + 1, sizeof *ids));
    memcpy(ids, graph->outputs, graph->output_count * sizeof *ids);
    for (size_t n = 0; n < graph->node_count; n++)
        for (size_t k = 0; k < graph->nodes[n].out_count; k++) ids[graph->output_count++] = graph->nodes[n].out[k];
    graph->outputs = ids;
}

static void run_wide(const random_graph *g, bool moved, graph_outputs *out)
{
    static const graph_way way = {.name = "float64", .no_rewrites = true, .threads = 1, .runs = 1};
    random_graph wide;
    graph_model m;
    make_wide(&wide, g, moved);
    if (!moved) show_all(&wide);
    *out = (graph_outputs){.status = PRONY_INTERNAL};
    if (graph_open(&m, &wide) == PRONY_OK) graph_run(&m, &way, out);
    graph_close(&m);
    free(wide.values);
    prn_bump_release(&wide.pool);
}

/* ---- comparing ---- */

typedef struct runs {
    graph_outputs plain, rewritten, wide, moved;
    bool has_wide;
    bool merged;   /* convolutions that are added became one: for an infinite input, inf - inf may become inf */
    bool infinite; /* the graph's float64 run has an infinity */
    bool vast;     /* a finite number of the graph is so large that a product moved before another may overflow, and a
                      rewrite that moves products fired */
    bool chooses;  /* a softmax of vast scores: one partial sum that overflows to -inf drops its key, and another key is
                      chosen; which sums overflow depends on the order of scale and product */
} runs;

static int64_t elements(const prony_value *value)
{
    return prony_shape_numel(&value->shape);
}

/* The difference that the rewritten elements of output k may have. */
static double bound_of(const runs *r, size_t k)
{
    const prony_value *plain = &r->plain.values[k];
    double largest = 0, error = 0, shift = 0;
    for (int64_t i = 0; i < elements(plain); i++) {
        const double p = graph_element(plain, (size_t)i);
        const double exact = r->has_wide ? graph_element(&r->wide.values[k], (size_t)i) : p;
        const double near = r->has_wide ? graph_element(&r->moved.values[k], (size_t)i) : p;
        if (isfinite(p)) largest = fmax(largest, fabs(p));
        if (isfinite(p) && isfinite(exact)) error = fmax(error, fabs(p - exact));
        if (isfinite(near) && isfinite(exact) && fabs(exact) < (double)FLT_MAX) shift = fmax(shift, fabs(near - exact));
    }
    return 4 * error + 16 * shift + largest * (r->has_wide ? 0x1p-21 : 0x1p-17) + 0x1p-125;
}

#define VAST 0x1p104

static void look_for_extremes(runs *r)
{
    for (size_t k = 0; k < r->wide.count && r->has_wide; k++)
        for (int64_t i = 0; i < elements(&r->wide.values[k]); i++) {
            const double x = graph_element(&r->wide.values[k], (size_t)i);
            r->vast = r->vast || (isfinite(x) && fabs(x) > VAST);
            r->infinite = r->infinite || isinf(x);
        }
}

/* `a`: rewritten; `p`: plain; `exact`: in float64, or NaN. `vast`: as in struct runs. */
static bool number_agrees(double a, double p, double exact, double bound, bool vast)
{
    if (a == p || (isnan(a) && isnan(p))) return true;
    if (vast && fabs(exact) > VAST)
        return true; /* a partial sum may overflow in either direction, and a Relu may turn it into 0 */
    if (isfinite(p)) {
        if (vast && !isfinite(a)) return true;
        if (fabs(a - p) <= bound || fabs(a - exact) <= bound) return true;
        /* at the end of float32 the last bit decides */
        return isinf(a) && fabs(p) >= (double)FLT_MAX * (1 - 0x1p-18) && signbit(a) == signbit(p);
    }
    if (!isfinite(exact)) return false;
    if (vast && !isfinite(a)) return true; /* neither run held the partial sums */
    if (fabs(exact) > (double)FLT_MAX * (1 - 0x1p-18)) return !isfinite(a) || fabs(a - exact) <= bound;
    return fabs(a - exact) <= fmax(bound, 0x1p-18 * fabs(exact));
}

static bool output_agrees(const runs *r, size_t k, char *text, size_t size)
{
    const prony_value *a = &r->rewritten.values[k], *p = &r->plain.values[k];
    const bool rounds = p->dtype == PRONY_FLOAT32 || (p->dtype == PRONY_FLOAT64 && r->has_wide);
    const double bound = rounds ? bound_of(r, k) : 0;
    if (a->dtype != p->dtype || !prn_shape_equal(&a->shape, &p->shape))
        return snprintf(text, size, "output %zu has another type or shape", k) < 0;
    for (int64_t i = 0; i < elements(p); i++) {
        const double x = graph_element(a, (size_t)i), y = graph_element(p, (size_t)i);
        const double exact = r->has_wide ? graph_element(&r->wide.values[k], (size_t)i) : (double)NAN;
        if (number_agrees(x, y, exact, bound, r->vast) || (r->merged && r->infinite && isnan(y)) || r->chooses)
            continue;
        return snprintf(text, size, "output %zu element %lld is %.9g, without rewrites %.9g, in float64 %.9g (+- %.3g)",
                        k, (long long)i, x, y, exact, bound) < 0;
    }
    return true;
}

static bool outputs_agree(const runs *r, char *text, size_t size)
{
    for (size_t k = 0; k < r->plain.count; k++)
        if (!output_agrees(r, k, text, size)) return false;
    return true;
}

static prony_status bind(graph_model *m, prn_program **out)
{
    prony_value *types = must(calloc(m->input_count + 1, sizeof *types));
    for (size_t i = 0; i < m->input_count; i++) {
        types[i] = m->inputs[i];
        types[i].data = NULL;
    }
    const prn_bind_options options = {.inputs = types, .input_count = m->input_count};
    const prony_status status =
        prn_program_bind(out, &m->model, &m->model.file->graph, NULL, NULL, &options, &m->error);
    free(types);
    return status;
}

/* The model's counts before any rewrite. */
static bool count_bound(graph_model *m, graph_counts *counts)
{
    prn_program *p = NULL;
    bool good = bind(m, &p) == PRONY_OK;
    *counts = (graph_counts){0};
    for (size_t l = 0; good && l < p->layer_count; l++) {
        const prony_cost cost = prn_layer_cost(&p->layers[l]);
        good = prn_cost_add(&counts->cost, &cost);
    }
    if (good) counts->layers = p->layer_count;
    prn_program_release(p);
    return good;
}

/* The report of the rewritten model has the model's counts. */
static bool same_counts(graph_model *m, char *text, size_t size)
{
    graph_counts with = {0}, without = {0};
    if (!graph_report_agrees(m, &with, text, size)) return false;
    if (!count_bound(m, &without)) return snprintf(text, size, "cannot be counted: %s", m->error.message) < 0;
    const prony_cost *a = &with.cost, *b = &without.cost;
    if (a->macs == b->macs && a->madds == b->madds && a->flops == b->flops && a->special == b->special &&
        a->int_ops == b->int_ops && a->parameters == b->parameters && with.layers == without.layers)
        return true;
    return snprintf(text, size, "%llu FLOPs, %llu parameters, %zu layers; without rewrites %llu, %llu, %zu",
                    (unsigned long long)a->flops, (unsigned long long)a->parameters, with.layers,
                    (unsigned long long)b->flops, (unsigned long long)b->parameters, without.layers) < 0;
}

/* ---- all of it ---- */

static bool has_float32(const random_graph *g)
{
    for (size_t n = 0; n < g->main.node_count; n++)
        if (strcmp(g->main.nodes[n].op, "Cast") == 0) return true;
    for (size_t v = 0; v < g->value_count; v++)
        if (g->values[v].dtype == PRONY_FLOAT32) return true;
    return false;
}

static bool has_softmax(const random_graph *g)
{
    for (size_t n = 0; n < g->main.node_count; n++)
        if (strcmp(g->main.nodes[n].op, "Softmax") == 0) return true;
    return false;
}

static void run_reference(const random_graph *g, runs *r, near_miss_tally *tally)
{
    if (!has_float32(g)) return;
    run_wide(g, false, &r->wide);
    run_wide(g, true, &r->moved);
    r->has_wide = r->wide.status == PRONY_OK && r->moved.status == PRONY_OK && r->wide.count >= r->plain.count;
    for (size_t k = 0; k < r->plain.count && r->has_wide; k++)
        r->has_wide = prn_shape_equal(&r->wide.values[k].shape, &r->plain.values[k].shape);
    look_for_extremes(r);
    if (!r->has_wide && getenv("PRONY_TEST_VERBOSE"))
        printf("seed %llu has no float64 run: %s\n", (unsigned long long)g->seed, r->wide.message);
    tally->alone += !r->has_wide;
}

static uint64_t fired_of(const near_miss_tally *tally, const char *rewrite)
{
    for (size_t k = 0; k < prn_rewrite_count(); k++)
        if (strcmp(prn_rewrite_name(k), rewrite) == 0) return tally->fired[k];
    abort();
}

/* Rewrites that scale an operand of a product instead of its result, or add constants to one another first: beyond
 * 2^104 the moved product may overflow (docs/internals/accuracy_contract.md). Results of other rewrites are as finite
 * as before. */
static uint64_t fired_movers(const near_miss_tally *tally)
{
    static const char *const movers[] = {"merge_constant_sums", "match_gelu",      "fold_layer_norm_affine",
                                         "match_attention",     "widen_attention", "fold_channel_norm_affine",
                                         "fold_batch_norm",     "merge_branches",  "fold_scale_shift"};
    uint64_t fired = 0;
    for (size_t i = 0; i < sizeof movers / sizeof *movers; i++) fired += fired_of(tally, movers[i]);
    return fired;
}

/* Also refuses operators that no domain version has, and, like a session, dead nodes with operators that Prony
 * lacks. */
static prony_status load(graph_model *m)
{
    prony_model *model = NULL;
    prn_bump pool = {0};
    prn_model_gaps gaps = {0};
    size_t size;
    const void *bytes = mb_finish(m->builder, &size);
    prony_status status = prony_model_load_memory(&model, "random", bytes, size, NULL, &m->error);
    if (status == PRONY_OK) status = prn_model_find_gaps(model, &pool, &gaps, &m->error);
    if (status == PRONY_OK && gaps.unsupported_count > 0)
        status = prn_fail(&m->error, PRONY_UNSUPPORTED, "%s is not supported", gaps.unsupported[0]);
    prn_bump_release(&pool);
    prony_model_release(model);
    return status;
}

bool near_miss_agrees(const random_graph *g, near_miss_tally *tally, char *text, size_t size)
{
    const graph_way without = {.name = "plain", .no_rewrites = true, .threads = 1, .runs = 1},
                    with = {.name = "rewritten", .fill_dead = true, .threads = 1, .runs = 2, .fired = tally->fired};
    graph_model m;
    runs r = {0};
    bool good = true;
    tally->models++;
    tally->nodes += random_graph_nodes(g);
    if (prn_rewrite_count() > NEAR_MISS_REWRITES) abort();
    const uint64_t merged = fired_of(tally, "merge_branches"), moved = fired_movers(tally);
    prony_status status = graph_open(&m, g);
    if (status == PRONY_OK) status = load(&m);
    if (status == PRONY_OK) {
        graph_run(&m, &without, &r.plain);
        status = r.plain.status;
        snprintf(text, size, "refused: %s", r.plain.message);
        graph_run(&m, &with, &r.rewritten); /* which must survive what is refused */
    } else {
        snprintf(text, size, "refused: %s", m.error.message);
    }
    if (status != PRONY_OK) {
        tally->refused++;
    } else if (r.rewritten.status != PRONY_OK) {
        snprintf(text, size, "rewritten: %s", r.rewritten.message);
        good = false;
    } else {
        run_reference(g, &r, tally);
        r.merged = fired_of(tally, "merge_branches") > merged;
        r.vast = r.vast && fired_movers(tally) > moved;
        r.chooses = r.vast && has_softmax(g);
        good = outputs_agree(&r, text, size) && same_counts(&m, text, size);
    }
    graph_outputs_free(&r.plain);
    graph_outputs_free(&r.rewritten);
    graph_outputs_free(&r.wide);
    graph_outputs_free(&r.moved);
    graph_close(&m);
    return good;
}

void near_miss_learn_shapes(random_graph *g)
{
    graph_model m;
    if (graph_open(&m, g) == PRONY_OK) {
        prn_program *p = NULL;
        if (bind(&m, &p) == PRONY_OK)
            for (size_t v = 0; v < p->value_count; v++) {
                const char *name = p->values[v]->name;
                const size_t id = name && name[0] == 'v' ? strtoul(name + 1, NULL, 10) : SIZE_MAX;
                if (id >= g->value_count || g->values[id].constant || g->values[id].input) continue;
                g->values[id].shape = p->values[v]->info.shape;
                g->values[id].dtype = p->values[v]->info.dtype;
            }
        prn_program_release(p);
    }
    graph_close(&m);
}
