/* If and Loop in float64: their subgraphs node by node, as bound for the outer node. Constants of subgraphs are used
 * directly. */
#include "profiler/accuracy/reference.h"

#include "base/memory/alloc.h"
#include "base/shape.h"
#include "base/memory/stack.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/number.h"

#include <string.h>

enum {
    MOST_TRIPS = 1 << 20
}; /* bounds a condition that float64 decides differently and that might never end; chosen
                                  without measurement */

static bool is_if(const prn_node_def *node)
{
    return !*node->info.domain && strcmp(node->info.op_type, "If") == 0;
}

static bool is_loop(const prn_node_def *node)
{
    return !*node->info.domain && strcmp(node->info.op_type, "Loop") == 0;
}

uint32_t prn_reference_reads(const prn_node_def *node)
{
    uint32_t count = node->input_count;
    for (uint32_t c = 0; c < node->child_count; c++) count += node->children[c].captured_count;
    return count;
}

uint32_t prn_reference_read_at(const prn_node_def *node, uint32_t i)
{
    if (i < node->input_count) return node->inputs[i];
    i -= node->input_count;
    for (uint32_t c = 0; c < node->child_count; c++) {
        if (i < node->children[c].captured_count) return node->children[c].captured[i];
        i -= node->children[c].captured_count;
    }
    return PRN_NO_VALUE;
}

const char *prn_reference_control_refuses(const prn_node_def *node)
{
    if (!is_if(node) && !is_loop(node)) return "runs subgraphs, which have no float64 reference";
    for (uint32_t c = 0; c < node->child_count; c++) {
        const prn_program *program = node->children[c].program;
        if (!program) return "runs subgraphs that were not bound";
        for (size_t n = 0; n < program->node_count; n++)
            if (!program->nodes[n]->dead && prn_reference_refuses(program->nodes[n]))
                return "a node of its subgraphs has no float64 reference";
    }
    return NULL;
}

/* ---- one run of a subgraph */

typedef struct inner {
    prn_reference reference;
    prn_f64_tensor *values; /* [values of the program] */
} inner;

static bool reference_control_is_there(const prn_f64_tensor *wide)
{
    return wide->value.data != NULL;
}

/* Evaluates one node of a subgraph on the subgraph's values, and stores its outputs there. */
static prony_status inner_node(inner *in, const prn_node_def *node, const char **why, prony_error *error)
{
    const uint32_t reads = prn_reference_reads(node);
    const prn_f64_tensor **inputs = prn_calloc(reads + 1, sizeof *inputs);
    prn_f64_tensor *constants = prn_calloc(reads + 1, sizeof *constants),
                   *outputs = prn_calloc(node->output_count + 1, sizeof *outputs);
    prony_status status = inputs && constants && outputs ? PRONY_OK : prn_no_memory(error);
    for (uint32_t i = 0; status == PRONY_OK && i < reads; i++) {
        const uint32_t v = prn_reference_read_at(node, i);
        if (v == PRN_NO_VALUE) continue;
        inputs[i] = &in->values[v];
        if (reference_control_is_there(inputs[i])) continue;
        inputs[i] = &constants[i];
        if (in->reference.program->values[v]->constant)
            status = prn_reference_constant(in->reference.program, v, &constants[i], error);
        if (!reference_control_is_there(&constants[i])) *why = "a value of its subgraph is missing";
    }
    if (status == PRONY_OK && !*why) status = prn_reference_run(&in->reference, node, inputs, outputs, why, error);
    for (uint32_t k = 0; status == PRONY_OK && k < node->output_count; k++) {
        if (node->outputs[k] == PRN_NO_VALUE) continue;
        prn_f64_tensor_drop(&in->values[node->outputs[k]]);
        in->values[node->outputs[k]] = outputs[k];
        outputs[k] = (prn_f64_tensor){.model = PRONY_UNDEFINED};
    }
    for (uint32_t i = 0; constants && i < reads; i++) prn_f64_tensor_drop(&constants[i]);
    for (uint32_t k = 0; outputs && k < node->output_count; k++) prn_f64_tensor_drop(&outputs[k]);
    prn_free(inputs);
    prn_free(constants);
    prn_free(outputs);
    return status;
}

static prony_status copy_result(const inner *in, uint32_t v, prn_f64_tensor *out, prony_error *error)
{
    const prn_f64_tensor *from = &in->values[v];
    const prony_dtype bound = in->reference.program->values[v]->info.dtype;
    if (!reference_control_is_there(from) && in->reference.program->values[v]->constant)
        return prn_reference_constant(in->reference.program, v, out, error);
    if (!reference_control_is_there(from)) return PRONY_OK;
    PRN_TRY(prn_f64_tensor_read(out, &from->value, false, error));
    out->model = prn_f64_tensor_is_float(bound) ? bound : from->model;
    out->rounded = from->rounded;
    return PRONY_OK;
}

/* `given`: the explicit inputs; `captured`: those of the child, in its order. `results` has the program's outputs,
 * empty before. */
static prony_status reference_control_run_child(const prn_reference *r, const prn_child *child,
                                                const prn_f64_tensor *const *given,
                                                const prn_f64_tensor *const *captured, prn_f64_tensor *results,
                                                const char **why, prony_error *error)
{
    prn_program *program = child->program;
    const size_t explicit_count = program->input_count - child->captured_count;
    inner in = {.values = prn_calloc(program->value_count + 1, sizeof *in.values)};
    if (!in.values) return prn_no_memory(error);
    prn_reference_begin(&in.reference, program, r->threads);
    for (size_t i = 0; i < program->input_count; i++) {
        const prn_f64_tensor *from = i < explicit_count ? given[i] : captured[i - explicit_count];
        if (!from) continue;
        in.values[program->inputs[i]] = *from;
        in.values[program->inputs[i]].borrowed = true;
    }
    prony_status status = prn_stack_check(error);
    for (size_t n = 0; status == PRONY_OK && !*why && n < program->node_count; n++)
        if (!program->nodes[n]->dead) status = inner_node(&in, program->nodes[n], why, error);
    for (size_t k = 0; status == PRONY_OK && !*why && k < program->output_count; k++)
        status = copy_result(&in, program->outputs[k], &results[k], error);
    for (size_t v = 0; v < program->value_count; v++) prn_f64_tensor_drop(&in.values[v]);
    prn_free(in.values);
    return status;
}

/* The captured values of child `c` among the node's reads. */
static const prn_f64_tensor *const *captured_of(const prn_node_def *node, const prn_f64_tensor *const *reads,
                                                uint32_t c)
{
    const prn_f64_tensor *const *at = reads + node->input_count;
    for (uint32_t before = 0; before < c; before++) at += node->children[before].captured_count;
    return at;
}

/* ---- If */

static prony_status run_if(const prn_reference *r, const prn_node_def *node, const prn_f64_tensor *const *reads,
                           prn_f64_tensor *outputs, const char **why, prony_error *error)
{
    const char *wanted =
        prn_get_f64(reads[0]->value.data, reads[0]->value.dtype, 0) != 0 ? "then_branch" : "else_branch";
    for (uint32_t c = 0; c < node->child_count; c++) {
        if (strcmp(node->children[c].name, wanted) != 0) continue;
        if (node->children[c].program->output_count != node->output_count) break;
        return reference_control_run_child(r, &node->children[c], NULL, captured_of(node, reads, c), outputs, why,
                                           error);
    }
    *why = "the branch is missing";
    return PRONY_OK;
}

/* ---- Loop */

typedef struct looping {
    const prn_reference *r;
    const prn_node_def *node;
    const prn_f64_tensor *const *reads;
    size_t carried, results;    /* carried values; outputs of the body: condition, carried, scans */
    prn_f64_tensor *now, *made; /* [results] of the trip before; of this one */
    prn_f64_tensor *stacks;     /* [outputs of the node] growing scan outputs */
    int64_t trips;
} looping;

static prony_status counter(prn_f64_tensor *out, prony_dtype dtype, const prony_value *like, int64_t value,
                            prony_error *error)
{
    prony_value made = {.kind = PRONY_TENSOR, .dtype = dtype, .shape = prn_shape_scalar()};
    if (like->shape.rank == 1) made.shape = (prony_shape){1, {1}};
    made.data = prn_alloc_aligned(64, 8);
    if (!made.data) return prn_no_memory(error);
    prn_put_i64(made.data, dtype, 0, value);
    return prn_f64_tensor_take(out, &made, error);
}

/* Appends a slice; the first one sets the slice's type. */
static prony_status stack_up(prn_f64_tensor *stack, const prn_f64_tensor *slice, int64_t rows, const char **why,
                             prony_error *error)
{
    const size_t each = prn_value_bytes(&slice->value), before = each * (size_t)rows;
    prony_value made = {
        .kind = PRONY_TENSOR, .dtype = slice->value.dtype, .shape = {.rank = slice->value.shape.rank + 1}};
    if (made.shape.rank > PRONY_MAX_RANK ||
        (rows && (prn_value_bytes(&stack->value) != before || stack->value.dtype != made.dtype))) {
        *why = "its scan outputs change shape";
        return PRONY_OK;
    }
    made.shape.dim[0] = rows + 1;
    for (int d = 0; d < slice->value.shape.rank; d++) made.shape.dim[d + 1] = slice->value.shape.dim[d];
    made.data = prn_alloc_aligned(64, before + each + 1);
    if (!made.data) return prn_no_memory(error);
    if (before) memcpy(made.data, stack->value.data, before);
    if (each) memcpy((char *)made.data + before, slice->value.data, each);
    const bool rounded = stack->rounded || slice->rounded;
    prn_f64_tensor_drop(stack);
    PRN_TRY(prn_f64_tensor_take(stack, &made, error));
    stack->model = slice->model;
    stack->rounded = rounded;
    return PRONY_OK;
}

/* Runs the body once, appends its scan outputs, and makes its results the next reference_control_trip's carried
 * values. */
static prony_status reference_control_trip(looping *l, bool condition, const char **why, prony_error *error)
{
    const prn_child *body = &l->node->children[0];
    const prn_program *program = body->program;
    const prn_f64_tensor **given = prn_calloc(l->carried + 3, sizeof *given);
    prn_f64_tensor counters[2] = {{.model = PRONY_UNDEFINED}, {.model = PRONY_UNDEFINED}};
    prony_status status = given ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK)
        status = counter(&counters[0], PRONY_INT64, &program->values[program->inputs[0]]->info, l->trips, error);
    if (status == PRONY_OK)
        status = counter(&counters[1], PRONY_BOOL, &program->values[program->inputs[1]]->info, condition, error);
    if (status == PRONY_OK) {
        given[0] = &counters[0];
        given[1] = &counters[1];
        for (size_t k = 0; k < l->carried; k++) given[2 + k] = l->trips ? &l->now[1 + k] : l->reads[2 + k];
        status = reference_control_run_child(l->r, body, given, captured_of(l->node, l->reads, 0), l->made, why, error);
    }
    for (size_t k = 1 + l->carried; status == PRONY_OK && !*why && k < l->results; k++)
        if (k - 1 < l->node->output_count && reference_control_is_there(&l->made[k]))
            status = stack_up(&l->stacks[k - 1], &l->made[k], l->trips, why, error);
    for (size_t k = 0; k < l->results; k++) {
        prn_f64_tensor_drop(&l->now[k]);
        l->now[k] = l->made[k];
        l->made[k] = (prn_f64_tensor){.model = PRONY_UNDEFINED};
    }
    prn_f64_tensor_drop(&counters[0]);
    prn_f64_tensor_drop(&counters[1]);
    prn_free(given);
    l->trips++;
    return status;
}

static prony_status all_trips(looping *l, const char **why, prony_error *error)
{
    const prn_f64_tensor *most = l->node->input_count > 0 ? l->reads[0] : NULL,
                         *first = l->node->input_count > 1 ? l->reads[1] : NULL;
    const int64_t limit = most ? prn_get_i64(most->value.data, most->value.dtype, 0) : INT64_MAX;
    bool goes_on = !first || prn_get_i64(first->value.data, first->value.dtype, 0) != 0;
    while (goes_on && l->trips < limit && !*why) {
        if (l->trips == MOST_TRIPS) {
            *why = "makes too many trips";
            return PRONY_OK;
        }
        PRN_TRY(reference_control_trip(l, goes_on, why, error));
        PRN_TRY(prn_cancel_check(error));
        if (!*why && !reference_control_is_there(&l->now[0])) *why = "its condition is missing";
        if (!*why) goes_on = prn_get_i64(l->now[0].value.data, l->now[0].value.dtype, 0) != 0;
    }
    return PRONY_OK;
}

/* Runs all trips. Carried outputs are the last trip's; without a trip they are the initial values. */
static prony_status run_loop(const prn_reference *r, const prn_node_def *node, const prn_f64_tensor *const *reads,
                             prn_f64_tensor *outputs, const char **why, prony_error *error)
{
    const prn_program *body = node->children[0].program;
    looping l = {.r = r, .node = node, .reads = reads, .results = body->output_count};
    l.carried = node->input_count > 2 ? node->input_count - 2 : 0;
    if (body->input_count < 2 + l.carried + node->children[0].captured_count || l.results < 1 + l.carried) {
        *why = "its body does not match";
        return PRONY_OK;
    }
    l.now = prn_calloc(l.results + 1, sizeof *l.now);
    l.made = prn_calloc(l.results + 1, sizeof *l.made);
    l.stacks = outputs;
    prony_status status = l.now && l.made ? all_trips(&l, why, error) : prn_no_memory(error);
    for (uint32_t k = 0; status == PRONY_OK && !*why && k < node->output_count && k < l.carried; k++) {
        const prn_f64_tensor *last = l.trips ? &l.now[1 + k] : reads[2 + k];
        if (!last || !reference_control_is_there(last)) continue;
        status = prn_f64_tensor_read(&outputs[k], &last->value, false, error);
        outputs[k].model = last->model;
        outputs[k].rounded = last->rounded;
    }
    for (size_t k = 0; k < l.results; k++) {
        if (l.now) prn_f64_tensor_drop(&l.now[k]);
        if (l.made) prn_f64_tensor_drop(&l.made[k]);
    }
    prn_free(l.now);
    prn_free(l.made);
    return status;
}

prony_status prn_reference_control(const prn_reference *r, const prn_node_def *node, const prn_f64_tensor *const *reads,
                                   prn_f64_tensor *outputs, const char **why, prony_error *error)
{
    prony_status status =
        is_if(node) ? run_if(r, node, reads, outputs, why, error) : run_loop(r, node, reads, outputs, why, error);
    if (status != PRONY_OK || *why)
        for (uint32_t k = 0; k < node->output_count; k++) prn_f64_tensor_drop(&outputs[k]);
    return status;
}
