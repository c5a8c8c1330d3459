#include "tests/support/qdq_check.h"

#include "base/shape.h"
#include "engine/bind/node.h"
#include "engine/plan/planner.h"
#include "engine/rewrites/rewrite.h"
#include "tests/support/graph_run.h"
#include "tests/support/graph_report.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- properties of a value of the unrewritten program ---- */

typedef struct entry {
    prony_value mine, theirs; /* as the unrewritten node and the rewritten program made it; data: own */
    bool kept;                /* the rewritten program has it too, and readers see that */
    double most;              /* bound of the absolute terms that `mine` sums */
    bool rounded;             /* a bias among them may have been rounded to steps */
    uint8_t *wrong;           /* per element: in no rounding of the ties so far as the rewritten program has it */
} entry;

typedef struct check {
    graph_model *m;
    prn_program *before, *after;
    entry *entries; /* as many as `before` has values */
    qdq_tally *tally;
    char *text;
    size_t size;
} check;

enum { NEAREST = 0, DOWN = -1, UP = 1 }; /* how ties of codes that rewrites took away are rounded */

static void *must(void *block)
{
    if (!block) abort();
    return block;
}

static int64_t elements(const prony_value *value)
{
    return prony_shape_numel(&value->shape);
}

static double largest(const prony_value *v)
{
    double most = 0;
    for (int64_t i = 0; i < elements(v); i++) most = fmax(most, fabs(graph_element(v, (size_t)i)));
    return most;
}

/* ---- the rewritten program, and all its values ---- */

/* Every value that a node of the rewritten program makes becomes an output. */
static void expose(prn_program *p)
{
    const size_t had = p->output_count;
    uint32_t *all = must(prn_bump_alloc(&p->pool, had + 4 * p->value_count + 1, sizeof *all));
    memcpy(all, p->outputs, had * sizeof *all);
    p->outputs = all;
    for (size_t n = 0; n < p->node_count; n++) {
        const prn_node_def *node = p->nodes[n];
        for (uint32_t k = 0; k < node->output_count && !node->dead; k++) {
            const uint32_t v = node->outputs[k];
            if (v == PRN_NO_VALUE || p->values[v]->output) continue;
            p->values[v]->output = true;
            all[p->output_count++] = v;
        }
    }
}

static prony_status bind(graph_model *m, prn_program **out)
{
    prony_value *types = must(calloc(m->input_count + 1, sizeof *types));
    for (size_t i = 0; i < m->input_count; i++) {
        types[i] = m->inputs[i];
        types[i].data = NULL;
    }
    prn_bind_options options = {.inputs = types, .input_count = m->input_count};
    prony_status status = prn_program_bind(out, &m->model, &m->model.file->graph, NULL, NULL, &options, &m->error);
    free(types);
    return status;
}

static void keep(check *c, uint32_t id, const prony_value *value)
{
    if (id >= c->before->value_count || c->entries[id].kept || c->before->values[id]->constant) return;
    entry *e = &c->entries[id];
    const size_t bytes = prn_value_bytes(value);
    *e = (entry){.theirs = *value, .kept = true};
    e->theirs.data = must(prn_alloc_aligned(64, bytes + 64));
    if (bytes) memcpy(e->theirs.data, value->data, bytes);
    e->wrong = must(malloc((size_t)elements(value) + 1));
    memset(e->wrong, 1, (size_t)elements(value) + 1);
}

static prony_status run_after(check *c, prn_plan **plan)
{
    graph_model *m = c->m;
    prn_plan_options options = {.threads = 1};
    expose(c->after);
    if (!prn_program_trim(c->after, NULL)) abort();
    PRN_TRY(prn_plan_create(plan, c->after, NULL, &options, &m->error));
    for (size_t i = 0; i < m->input_count; i++) (*plan)->values[c->after->inputs[i]]->value.data = m->inputs[i].data;
    prn_plan_point(*plan, (*plan)->memory.base);
    prn_arena_run_begin((*plan)->memory.arena);
    PRN_TRY(prn_plan_run(*plan, NULL, &m->error));
    for (size_t i = 0; i < m->input_count; i++) keep(c, c->after->inputs[i], &m->inputs[i]);
    for (size_t k = 0; k < c->after->output_count; k++)
        keep(c, c->after->outputs[k], &(*plan)->values[(*plan)->outputs[k]]->value);
    return PRONY_OK;
}

/* ---- one node of the unrewritten program ---- */

static const prony_value *known(const check *c, uint32_t id)
{
    if (id == PRN_NO_VALUE) return NULL;
    const prn_value_def *def = c->before->values[id];
    if (def->constant) return &def->info;
    return c->entries[id].kept ? &c->entries[id].theirs : &c->entries[id].mine;
}

static const prony_value *operand(const check *c, const prn_node_def *node, uint32_t i)
{
    return i < node->input_count ? known(c, node->inputs[i]) : NULL;
}

static double most_of(const check *c, const prn_node_def *node, uint32_t i)
{
    const prony_value *v = operand(c, node, i);
    if (!v) return 0;
    const entry *e = &c->entries[node->inputs[i]];
    return c->before->values[node->inputs[i]]->constant || e->kept ? largest(v) : e->most;
}

static bool is(const prn_node_def *node, const char *op)
{
    return strcmp(node->info.op_type, op) == 0;
}

/* true: no rewrite changes the order of its arithmetic, and all its operands still exist. */
static bool is_exact(const check *c, const prn_node_def *node)
{
    static const char *const ops[] = {"DequantizeLinear", "QuantizeLinear", "Relu",    "Clip",  "Concat", "Slice",
                                      "Transpose",        "Reshape",        "MaxPool", "Expand"};
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t in = node->inputs[i];
        if (in != PRN_NO_VALUE && !c->before->values[in]->constant && !c->entries[in].kept) return false;
    }
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (is(node, ops[i])) return true;
    return false;
}

/* The number of products that a contraction sums; 0 for another operator. */
static int64_t depth_of(const check *c, const prn_node_def *node)
{
    const prony_value *w = operand(c, node, 1);
    if (is(node, "Conv") || is(node, "ConvTranspose"))
        return elements(w) / (w->shape.dim[is(node, "Conv") ? 0 : 1] > 0 ? w->shape.dim[is(node, "Conv") ? 0 : 1] : 1);
    if (!is(node, "Gemm") && !is(node, "MatMul")) return 0;
    const prony_shape *x = &operand(c, node, 0)->shape;
    return x->dim[x->rank - 1];
}

/* The scales with which a value was dequantized, before or in the program; NULL: it was not. */
static const prony_value *scales_of(const check *c, uint32_t value)
{
    const prn_program *p = c->before;
    if (value == PRN_NO_VALUE) return NULL;
    const uint32_t maker =
        p->values[value]->folded_from != PRN_NO_NODE ? p->values[value]->folded_from : p->values[value]->producer;
    if (maker == PRN_NO_NODE || !is(p->nodes[maker], "DequantizeLinear")) return NULL;
    return known(c, p->nodes[maker]->inputs[1]);
}

/* true: a rewrite takes the codes of the bias as they are. */
static bool is_in_steps(const check *c, uint32_t x, uint32_t w, uint32_t bias)
{
    const prony_value *xs = scales_of(c, x), *ws = scales_of(c, w), *bs = scales_of(c, bias);
    if (!xs || !ws || !bs || elements(xs) != 1) return false;
    if (elements(ws) != 1 && elements(bs) != 1 && elements(ws) != elements(bs)) return false; /* blocks of weights */
    const int64_t count = elements(ws) > elements(bs) ? elements(ws) : elements(bs);
    for (int64_t i = 0; i < count; i++) {
        const double step = graph_element(xs, 0) * graph_element(ws, elements(ws) > 1 ? (size_t)i : 0);
        if (!(fabs(graph_element(bs, elements(bs) > 1 ? (size_t)i : 0) - step) <= 1e-6 * step)) return false;
    }
    return true;
}

/* true: the node adds a bias that a rewrite may round to steps. */
static bool adds_rounded_bias(const check *c, const prn_node_def *node)
{
    if (depth_of(c, node))
        return operand(c, node, 2) && !is_in_steps(c, node->inputs[0], node->inputs[1], node->inputs[2]);
    if (!is(node, "Add")) return false;
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t made = c->before->values[node->inputs[1 - i]]->producer;
        if (!c->before->values[node->inputs[i]]->constant || made == PRN_NO_NODE) continue;
        const prn_node_def *product = c->before->nodes[made];
        return !is(product, "MatMul") || !is_in_steps(c, product->inputs[0], product->inputs[1], node->inputs[i]);
    }
    return false;
}

/* Sets the bound of rounding errors of the node's result, and notes a bias in it. */
static void bound(const check *c, const prn_node_def *node, entry *e)
{
    const double x = most_of(c, node, 0), w = most_of(c, node, 1), rest = most_of(c, node, 2);
    const int64_t depth = depth_of(c, node);
    e->most = x + w + rest;
    e->rounded = adds_rounded_bias(c, node);
    if (depth) e->most = (double)depth * x * w + rest;
    if (is(node, "Mul")) e->most = x * w;
    if (is(node, "Clip")) e->most = x; /* bounds may be infinite */
    if (is(node, "DequantizeLinear")) e->most = 0;
    for (uint32_t i = 3; i < node->input_count; i++) e->most += most_of(c, node, i);
    e->most = fmax(e->most, largest(&e->mine));
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t in = node->inputs[i];
        if (in == PRN_NO_VALUE || is(node, "DequantizeLinear")) continue;
        if (!c->before->values[in]->constant && c->entries[in].rounded && !c->entries[in].kept) e->rounded = true;
    }
}

static prony_status run_node(const check *c, const prn_node_def *node)
{
    const prony_value *inputs[64];
    prony_value *outputs[8];
    prony_context context = prn_node_context(c->before, node, &c->m->error);
    if (node->input_count > 64 || node->output_count > 8) abort();
    for (uint32_t i = 0; i < node->input_count; i++) inputs[i] = operand(c, node, i);
    for (uint32_t k = 0; k < node->output_count; k++) {
        outputs[k] = NULL;
        if (node->outputs[k] == PRN_NO_VALUE) continue;
        outputs[k] = must(malloc(sizeof *outputs[k]));
        *outputs[k] = *node->output_values[k];
        outputs[k]->data = must(prn_alloc_aligned(64, prn_value_bytes(outputs[k]) + 64));
    }
    context.inputs = inputs;
    context.outputs = outputs;
    prony_status status = PRONY_OK;
    if ((node->binding.op->flags & PRN_OP_VIEW) && prn_value_bytes(inputs[0]) == prn_value_bytes(outputs[0])) {
        if (prn_value_bytes(inputs[0])) memcpy(outputs[0]->data, inputs[0]->data, prn_value_bytes(inputs[0]));
    } else {
        status = prn_node_run_once(node, &context, NULL);
    }
    for (uint32_t k = 0; k < node->output_count; k++) {
        if (!outputs[k]) continue;
        entry *e = &c->entries[node->outputs[k]];
        prn_free_aligned(e->mine.data);
        e->mine = *outputs[k];
        free(outputs[k]);
        bound(c, node, e);
    }
    return status;
}

/* ---- comparing ---- */

typedef struct codes {
    double low, high, zero, scale;
} codes;

static codes codes_at(const check *c, const prn_node_def *node, int64_t i)
{
    const prony_value *y = node->output_values[0], *scale = operand(c, node, 1), *zero = operand(c, node, 2);
    codes q = {0, 255, 0, 1};
    int64_t at = 0;
    if (y->dtype == PRONY_INT8) q.low = -128, q.high = 127;
    if (y->dtype == PRONY_INT16) q.low = -32768, q.high = 32767;
    if (y->dtype == PRONY_UINT16) q.high = 65535;
    if (elements(scale) > 1) {
        int64_t inner = 1, axis = 1;
        const prn_attr *attr = prn_attr_find(node->info.attributes, "axis");
        if (attr) axis = attr->i < 0 ? attr->i + y->shape.rank : attr->i;
        for (int d = (int)axis + 1; d < y->shape.rank; d++) inner *= y->shape.dim[d];
        at = i / inner % y->shape.dim[axis];
    }
    q.scale = graph_element(scale, (size_t)at);
    if (zero) q.zero = graph_element(zero, (size_t)at);
    return q;
}

static double code(const codes *q, double steps)
{
    return fmin(fmax(rint(steps) + q->zero, q->low), q->high);
}

/* The uncertainty of a QuantizeLinear's operand, in steps of its scale. */
static double slack(const check *c, const prn_node_def *node, const codes *q, double steps)
{
    const uint32_t in = node->inputs[0];
    const bool kept = c->before->values[in]->constant || c->entries[in].kept;
    double most = kept ? 0 : c->entries[in].most / q->scale;
    if (!(most >= fabs(steps))) most = fabs(steps);
    return most * 0x1p-21 + (!kept && c->entries[in].rounded ? 0.0626 : 0);
}

/* true: a QuantizeLinear may have made this code. *tie: the unrewritten node made another one. */
static bool code_agrees(const check *c, const prn_node_def *node, int64_t i, bool *tie)
{
    const entry *e = &c->entries[node->outputs[0]];
    const double is = graph_element(&e->theirs, (size_t)i), wanted = graph_element(&e->mine, (size_t)i);
    *tie = is != wanted;
    if (!*tie) return true;
    const codes q = codes_at(c, node, i);
    const double steps = graph_element(operand(c, node, 0), (size_t)i) / q.scale, near = slack(c, node, &q, steps);
    c->tally->vague += near > 0.5; /* terms that cancel, thousands of times as large as a code */
    return is >= code(&q, steps - near) && is <= code(&q, steps + near);
}

static bool number_agrees(const check *c, const prn_node_def *node, const entry *e, int64_t i)
{
    const double is = graph_element(&e->theirs, (size_t)i), wanted = graph_element(&e->mine, (size_t)i);
    if (is == wanted || (isnan(is) && isnan(wanted))) return true;
    if (e->mine.dtype != PRONY_FLOAT32 || is_exact(c, node)) return false;
    if (e->most > (double)FLT_MAX)
        return true;                             /* sums beyond float32: their order decides, and whether steps are
                                                   fused */
    if (!isfinite(wanted)) return !isfinite(is); /* kernels meet infinities in other orders */
    return fabs(is - wanted) <= e->most * 0x1p-20 + 0x1p-140;
}

/* Marks the elements that agree for this rounding of the ties. */
static void compare(const check *c, const prn_node_def *node, uint32_t id, int round)
{
    const entry *e = &c->entries[id];
    for (int64_t i = 0; i < elements(&e->mine); i++) {
        bool tie = false;
        const bool right = is(node, "QuantizeLinear") ? code_agrees(c, node, i, &tie) : number_agrees(c, node, e, i);
        if (right) e->wrong[i] = 0;
        if (round == NEAREST) c->tally->codes += is(node, "QuantizeLinear"), c->tally->ties += tie;
    }
}

/* Codes that a rewrite removed, where the number may round to either neighbour: takes the lower or the upper one. */
static void round_ties(const check *c, const prn_node_def *node, int round)
{
    const entry *e = &c->entries[node->outputs[0]];
    for (int64_t i = 0; i < elements(&e->mine); i++) {
        const codes q = codes_at(c, node, i);
        const double steps = graph_element(operand(c, node, 0), (size_t)i) / q.scale;
        const double other = code(&q, steps + round * slack(c, node, &q, steps));
        if (!isfinite(steps) || fabs(other - graph_element(&e->mine, (size_t)i)) > 1) continue;
        if (e->mine.dtype == PRONY_INT8) ((int8_t *)e->mine.data)[i] = (int8_t)other;
        if (e->mine.dtype == PRONY_UINT8) ((uint8_t *)e->mine.data)[i] = (uint8_t)other;
    }
}

static prony_status walk(check *c, int round)
{
    for (size_t n = 0; n < c->before->node_count; n++) {
        const prn_node_def *node = c->before->nodes[n];
        if (node->dead || node->dynamic) continue;
        PRN_TRY(run_node(c, node));
        for (uint32_t k = 0; k < node->output_count; k++) {
            if (node->outputs[k] == PRN_NO_VALUE) continue;
            if (c->entries[node->outputs[k]].kept)
                compare(c, node, node->outputs[k], round);
            else if (round != NEAREST && is(node, "QuantizeLinear"))
                round_ties(c, node, round);
        }
    }
    return PRONY_OK;
}

/* The first element that no rounding of the ties explains. */
static bool find_wrong(const check *c)
{
    for (size_t n = 0; n < c->before->node_count; n++) {
        const prn_node_def *node = c->before->nodes[n];
        for (uint32_t k = 0; k < node->output_count && !node->dead && !node->dynamic; k++) {
            const entry *e = node->outputs[k] == PRN_NO_VALUE ? NULL : &c->entries[node->outputs[k]];
            for (int64_t i = 0; e && e->kept && i < elements(&e->mine); i++) {
                if (!e->wrong[i]) continue;
                snprintf(c->text, c->size, "%s %s: element %lld is %.9g, wanted %.9g", node->info.op_type,
                         c->before->values[node->outputs[k]]->name, (long long)i, graph_element(&e->theirs, (size_t)i),
                         graph_element(&e->mine, (size_t)i));
                return true;
            }
        }
    }
    return false;
}

static bool same_types(const check *c)
{
    for (size_t v = 0; v < c->before->value_count; v++) {
        const entry *e = &c->entries[v];
        const prony_value *info = &c->before->values[v]->info;
        if (!e->kept || (e->theirs.dtype == info->dtype && prn_shape_equal(&e->theirs.shape, &info->shape))) continue;
        snprintf(c->text, c->size, "%s has another type or shape", c->before->values[v]->name);
        return false;
    }
    return true;
}

static bool values_agree(check *c)
{
    static const int rounds[] = {NEAREST, DOWN, UP};
    if (!same_types(c)) return false;
    for (size_t v = 0; v < c->before->value_count; v++)
        if (c->before->values[v]->constant && prn_program_hold(c->before, (uint32_t)v, &c->m->error) != PRONY_OK)
            abort();
    for (size_t r = 0; r < sizeof rounds / sizeof *rounds; r++) {
        if (walk(c, rounds[r]) != PRONY_OK) {
            snprintf(c->text, c->size, "a node alone: %s", c->m->error.message);
            return false;
        }
        if (!find_wrong(c)) return true;
    }
    return false;
}

/* ---- the planned program, with buffers shared, joined and in place ---- */

static bool outputs_agree(check *c)
{
    static const graph_way planned = {.name = "planned", .fill_dead = true, .threads = 2, .runs = 2};
    graph_outputs out = {0};
    bool same = true;
    graph_run(c->m, &planned, &out);
    if (out.status != PRONY_OK) {
        snprintf(c->text, c->size, "planned: %s", out.message);
        same = false;
    }
    for (size_t k = 0; k < out.count && same; k++) {
        const uint32_t id = c->before->outputs[k];
        const entry *e = &c->entries[id];
        if (!e->kept) continue;
        const size_t bytes = prn_value_bytes(&e->theirs);
        same =
            bytes == prn_value_bytes(&out.values[k]) && (!bytes || !memcmp(e->theirs.data, out.values[k].data, bytes));
        if (!same) snprintf(c->text, c->size, "output %zu differs where all values are outputs", k);
    }
    graph_outputs_free(&out);
    return same;
}

/* ---- all of it ---- */

enum { RESIDUAL = 0, ROUNDED_RESIDUAL = 1, FIRST_MOVE = 11 };
const char *const qdq_form_names[QDQ_FORMS] = {"QConv with a residual",
                                               "QConv with a rounded residual",
                                               "QConv",
                                               "QLinearConv",
                                               "QConvTranspose",
                                               "QGemm",
                                               "QLinearMatMul",
                                               "QAdd",
                                               "QMul",
                                               "QMap",
                                               "QLinearAveragePool",
                                               "MaxPool",
                                               "Concat",
                                               "Transpose",
                                               "Slice",
                                               "Expand"};

/* A moved value is codes. */
static int form_of(const check *c, const prn_node_def *node)
{
    if (is(node, "QConv") && node->input_count > 9) return node->input_count > 12 ? ROUNDED_RESIDUAL : RESIDUAL;
    for (int f = ROUNDED_RESIDUAL + 1; f < QDQ_FORMS; f++)
        if (is(node, qdq_form_names[f]) &&
            (f < FIRST_MOVE || c->after->values[node->outputs[0]]->info.dtype != PRONY_FLOAT32))
            return f;
    return -1;
}

static void count_forms(const check *c)
{
    for (size_t n = 0; n < c->after->node_count; n++) {
        const prn_node_def *node = c->after->nodes[n];
        const int form = node->dead ? -1 : form_of(c, node);
        if (form >= 0) c->tally->forms[form]++;
    }
}

static bool rewritten_agrees(check *c)
{
    prn_plan *plan = NULL;
    bool good = bind(c->m, &c->after) == PRONY_OK && prn_program_rewrite(c->after, &c->m->error) == PRONY_OK &&
                run_after(c, &plan) == PRONY_OK;
    if (!good) snprintf(c->text, c->size, "rewritten: %s", c->m->error.message);
    if (plan) {
        prn_plan_forget(plan);
        (void)prn_arena_run_end(plan->memory.arena);
    }
    if (good) count_forms(c);
    good = good && values_agree(c) && outputs_agree(c) && graph_report_agrees(c->m, NULL, c->text, c->size);
    prn_plan_release(plan);
    return good;
}

bool qdq_agrees(const random_graph *g, qdq_tally *tally, char *text, size_t size)
{
    graph_model m;
    bool good = true;
    check c = {.m = &m, .tally = tally, .text = text, .size = size};
    tally->models++;
    tally->nodes += random_graph_nodes(g);
    if (graph_open(&m, g) != PRONY_OK || bind(&m, &c.before) != PRONY_OK) {
        tally->refused++;
        snprintf(text, size, "refused: %s", m.error.message);
    } else {
        c.entries = must(calloc(c.before->value_count + 1, sizeof *c.entries));
        good = rewritten_agrees(&c);
        for (size_t v = 0; v < c.before->value_count; v++) {
            prn_free_aligned(c.entries[v].mine.data);
            prn_free_aligned(c.entries[v].theirs.data);
            free(c.entries[v].wrong);
        }
        free(c.entries);
    }
    prn_program_release(c.after);
    prn_program_release(c.before);
    graph_close(&m);
    return good;
}
