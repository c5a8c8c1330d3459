/* Finds steps with a choice of kernels, identifies problems, and keeps the rows of measurements. */
#include "engine/plan/tune.h"

#include "base/os/clock.h"
#include "base/hash/sha256.h"
#include "engine/plan/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- rows ---- */

/* No problem begins after so much measuring; chosen without measurement. */
#define MOST_NS INT64_C(20000000000)

prony_status prn_tuning_create(prn_tuning **out, prony_error *error)
{
    prn_tuning *tuning = prn_calloc(1, sizeof *tuning);
    if (!tuning) return prn_no_memory(error);
    tuning->most_ns = MOST_NS;
    tuning->now_ns = prn_now_ns;
    *out = tuning;
    return PRONY_OK;
}

void prn_tuning_release(prn_tuning *tuning)
{
    if (!tuning) return;
    prn_free(tuning->rows);
    prn_free(tuning->verdicts);
    prn_bump_release(&tuning->pool);
    prn_free(tuning);
}

bool prn_tuning_add(prn_tuning *tuning, prn_tune_row *row)
{
    if (!PRN_GROW(tuning->rows, tuning->capacity, tuning->count + 1)) return false;
    tuning->rows[tuning->count++] = row;
    return true;
}

static size_t tune_find_verdict(const prn_tuning *tuning, const char *program)
{
    size_t v = 0;
    while (v < tuning->verdict_count && strcmp(tuning->verdicts[v]->program, program) != 0) v++;
    return v;
}

const prn_tune_verdict *prn_tuning_verdict(const prn_tuning *tuning, const char *program)
{
    const size_t v = tune_find_verdict(tuning, program);
    return v < tuning->verdict_count ? tuning->verdicts[v] : NULL;
}

bool prn_tuning_set_verdict(prn_tuning *tuning, prn_tune_verdict *verdict)
{
    const size_t v = tune_find_verdict(tuning, verdict->program);
    if (v == tuning->verdict_count) {
        if (!PRN_GROW(tuning->verdicts, tuning->verdict_capacity, v + 1)) return false;
        tuning->verdict_count++;
    }
    tuning->verdicts[v] = verdict;
    return true;
}

void prn_tuning_add_note(prn_tuning *tuning, const char *format, ...)
{
    char text[sizeof tuning->note];
    size_t used = strlen(tuning->note);
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (strstr(tuning->note, text)) return;
    snprintf(tuning->note + used, sizeof tuning->note - used, "%s%s", used ? "; " : "", text);
}

/* ---- the problem ---- */

static void add_text(prn_sha256 *hash, const char *text)
{
    prn_sha256_add(hash, text, strlen(text) + 1);
}

static void add_number(prn_sha256 *hash, int64_t number)
{
    prn_sha256_add(hash, &number, sizeof number);
}

static void tune_add_value(prn_sha256 *hash, const prony_value *value)
{
    add_number(hash, value ? (int64_t)value->dtype : -1);
    if (!value) return;
    add_number(hash, value->layout);
    add_number(hash, value->shape.rank);
    for (int d = 0; d < value->shape.rank; d++) add_number(hash, value->shape.dim[d]);
}

/* Hashes a parameter's name and value; absent lists differ from empty ones. Tensors and graphs follow from the node's
 * name. */
static void add_param(prn_sha256 *hash, const prn_param *param, const char *params)
{
    const void *field = params + param->offset;
    const prn_ints *ints = field;
    const prn_floats *floats = field;
    const char *text;
    add_text(hash, param->name);
    switch (param->type) {
    case PRN_PARAM_INT:
        prn_sha256_add(hash, field, sizeof(int64_t));
        break;
    case PRN_PARAM_FLOAT:
        prn_sha256_add(hash, field, sizeof(float));
        break;
    case PRN_PARAM_STRING:
        memcpy(&text, field, sizeof text);
        add_text(hash, text ? text : "");
        break;
    case PRN_PARAM_INTS:
        add_number(hash, ints->present ? (int64_t)ints->count : -1);
        if (ints->present) prn_sha256_add(hash, ints->v, ints->count * sizeof *ints->v);
        break;
    case PRN_PARAM_FLOATS:
        add_number(hash, floats->present ? (int64_t)floats->count : -1);
        if (floats->present) prn_sha256_add(hash, floats->v, floats->count * sizeof *floats->v);
        break;
    case PRN_PARAM_TENSOR:
    case PRN_PARAM_GRAPH:
        break;
    }
}

static void add_post_ops(prn_sha256 *hash, const prn_post_ops *post_ops)
{
    add_number(hash, post_ops ? (int64_t)post_ops->count : -1);
    for (size_t i = 0; post_ops && i < post_ops->count; i++) {
        const prn_post_op *op = &post_ops->op[i];
        add_number(hash, op->kind);
        add_number(hash, (int64_t)op->input);
        prn_sha256_add(hash, &op->a, sizeof op->a);
        prn_sha256_add(hash, &op->b, sizeof op->b);
    }
}

/* Hashes everything on which the fastest kernel may depend, and the candidate kernels. Nodes made by rewrites may have
 * parameters that are not attributes, so the node's name is included. */
static void tune_describe(const prn_step *step, const prn_kernel *const *kernels, size_t count,
                          char problem[PRN_TUNE_PROBLEM_BYTES])
{
    const prony_context *context = &step->context;
    const prn_op *op = step->node->binding.op;
    prn_sha256 hash;
    prn_sha256_init(&hash);
    add_text(&hash, prn_op_domain(op));
    add_text(&hash, op->name);
    add_text(&hash, strcmp(prn_op_domain(op), "prony") == 0 ? step->node->info.name : "");
    add_number(&hash, op->since_opset);
    add_number(&hash, step->node->info.opset);
    add_number(&hash, context->precision);
    add_number(&hash, context->threads);
    add_number(&hash, context->constant_inputs);
    for (size_t i = 0; i < context->input_count; i++) tune_add_value(&hash, context->inputs[i]);
    for (size_t k = 0; k < context->output_count; k++) tune_add_value(&hash, context->outputs[k]);
    for (const prn_param *p = op->params; p && p->name && context->params; p++) add_param(&hash, p, context->params);
    add_post_ops(&hash, context->post_ops);
    for (size_t k = 0; k < count; k++) add_text(&hash, kernels[k]->name);
    prn_sha256_text(&hash, problem);
}

/* Attributes are not hashed: the model's nodes have names. */
static void tune_add_program(prn_sha256 *hash, const prn_program *program)
{
    for (size_t v = 0; v < program->value_count; v++) tune_add_value(hash, &program->values[v]->info);
    for (size_t n = 0; n < program->node_count; n++) {
        const prn_node_def *node = program->nodes[n];
        if (node->dead) continue;
        add_text(hash, node->info.op_type);
        add_text(hash, node->info.name);
        for (uint32_t c = 0; c < node->child_count; c++)
            if (node->children[c].program) tune_add_program(hash, node->children[c].program);
    }
}

void prn_tune_describe(const prn_program *program, const prn_plan_options *options, char text[PRN_TUNE_PROBLEM_BYTES])
{
    prn_sha256 hash;
    prn_sha256_init(&hash);
    add_number(&hash, options->precision);
    add_number(&hash, options->threads);
    add_number(&hash, options->workers);
    add_number(&hash, options->no_work_stealing);
    add_number(&hash, options->no_reuse);
    tune_add_program(&hash, program);
    prn_sha256_text(&hash, text);
}

/* ---- the step ---- */

/* true: a built-in operator on tensors of numbers of known shape, without a subgraph, and the same in every run. */
static bool is_tunable(const prn_step *step)
{
    const prn_node_def *node = step->node;
    const prn_op *op = node->binding.op;
    if (step->dynamic || step->empty || !step->kernel || node->child_count ||
        (op->flags & (PRN_OP_ONCE_PER_RUN | PRN_OP_OPEN)))
        return false;
    if (op != prn_op_find(node->info.domain, node->info.op_type, node->info.opset)) return false;
    for (size_t i = 0; i < step->context.input_count; i++) {
        const prony_value *in = step->context.inputs[i];
        if (in && (in->kind != PRONY_TENSOR || in->dtype == PRONY_STRING || !prn_shape_known(&in->shape))) return false;
    }
    return step->context.output_count > 0;
}

static bool serves_float32(const prn_kernel *kernel)
{
    return !kernel->precisions || (kernel->precisions & PRN_PRECISION(FP32));
}

/* true: the session asked for low-bit weights; a kernel with such weights is not replaced by one without. */
static bool must_store(const prony_context *context, const prn_kernel *standard)
{
    return !serves_float32(standard) && context->precision != PRONY_PRECISION_FAST;
}

/* Lists the candidates, the default one first. Reference kernels exist for tests and are left out. */
static size_t find_candidates(const prn_step *step, const prn_kernel **out)
{
    const prn_kernel *all[PRN_TUNE_MOST_KERNELS], *standard = step->kernel;
    const size_t found = prn_op_kernels(step->node->binding.op, &step->context, all, sizeof all / sizeof *all);
    size_t count = 1;
    out[0] = standard;
    for (size_t i = 0; i < found && count < PRN_TUNE_MOST_KERNELS; i++) {
        if (all[i] == standard || all[i]->memory_space || standard->memory_space ||
            strcmp(all[i]->backend, "reference") == 0)
            continue;
        if (must_store(&step->context, standard) && serves_float32(all[i])) continue;
        out[count++] = all[i];
    }
    return count;
}

static const prn_kernel *find_named(const prn_kernel *const *kernels, size_t count, const char *name)
{
    for (size_t k = 0; k < count; k++)
        if (strcmp(kernels[k]->name, name) == 0) return kernels[k];
    return NULL;
}

static prn_tune_row *tune_find_row(const prn_tuning *tuning, const char *problem, const prn_kernel *const *kernels,
                                   size_t count)
{
    for (size_t r = 0; r < tuning->count; r++)
        if (strcmp(tuning->rows[r]->problem, problem) == 0 && find_named(kernels, count, tuning->rows[r]->kernel))
            return tuning->rows[r];
    return NULL;
}

static prony_status make_row(prn_plan *plan, prn_step *step, const char *problem, const prn_kernel *const *kernels,
                             size_t count, prn_tune_row **out, prony_error *error)
{
    prn_tuning *tuning = plan->options.tuning;
    char first[PRN_SHAPE_TEXT_BYTES], second[PRN_SHAPE_TEXT_BYTES];
    const prony_value *a = prn_input(&step->context, 0), *b = prn_input(&step->context, 1);
    prn_tune_row *row = prn_bump_alloc(&tuning->pool, 1, sizeof *row);
    if (!row) return prn_no_memory(error);
    row->problem = prn_bump_strndup(&tuning->pool, problem, strlen(problem));
    row->op = prn_bump_strndup(&tuning->pool, step->node->info.op_type, strlen(step->node->info.op_type));
    row->about = prn_bump_printf(&tuning->pool, "%s, %s", a ? prn_value_text(a, first) : "-",
                                 b ? prn_value_text(b, second) : "-");
    row->standard = row->kernel = kernels[0]->name;
    if (!row->problem || !row->op || !row->about) return prn_no_memory(error);
    const int64_t start = prn_now_ns();
    PRN_TRY(prn_tune_measure(plan, step, kernels, count, row, error));
    tuning->spent_ns += prn_now_ns() - start;
    tuning->measured++;
    tuning->unsaved = true;
    if (!prn_tuning_add(tuning, row)) return prn_no_memory(error);
    *out = row;
    return PRONY_OK;
}

prony_status prn_plan_tune(prn_plan *plan, prn_step *step, prony_error *error)
{
    prn_tuning *tuning = plan->options.tuning;
    const prn_kernel *kernels[PRN_TUNE_MOST_KERNELS];
    char problem[PRN_TUNE_PROBLEM_BYTES];
    if (!tuning || plan->options.standard_kernels || plan->options.follows) return PRONY_OK;
    if (plan->options.precision == PRONY_PRECISION_FP32_STRICT || !is_tunable(step)) return PRONY_OK;
    const size_t count = find_candidates(step, kernels);
    if (count < 2) return PRONY_OK;
    tune_describe(step, kernels, count, problem);
    prn_tune_row *row = tune_find_row(tuning, problem, kernels, count);
    if (!row && tuning->spent_ns >= tuning->most_ns) {
        tuning->left++;
        return PRONY_OK;
    }
    if (!row) PRN_TRY(make_row(plan, step, problem, kernels, count, &row, error));
    if (row->kept && !row->used) tuning->kept++;
    row->used = true;
    step->tuned = row;
    step->kernel = find_named(kernels, count, row->kernel);
    return PRONY_OK;
}

size_t prn_plan_tune_changes(const prn_plan *plan)
{
    size_t changes = 0;
    for (size_t s = 0; s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        if (step->tuned && strcmp(step->tuned->kernel, step->tuned->standard) != 0) changes++;
        for (uint32_t c = 0; step->children && c < step->node->child_count; c++)
            if (step->children[c]) changes += prn_plan_tune_changes(step->children[c]);
    }
    return changes;
}

/* Finds the step of a node in another plan of the same program; apart from Reorders the order is the same. */
static prn_step *find_step(prn_plan *plan, const prn_node_def *node, size_t *next)
{
    for (size_t s = *next; s < plan->step_count; s++) {
        if (plan->steps[s]->node != node) continue;
        *next = s + 1;
        return plan->steps[s];
    }
    return NULL;
}

void prn_plan_tune_note(prn_plan *plan, const prn_plan *tuned)
{
    size_t next = 0;
    for (size_t s = 0; s < tuned->step_count; s++) {
        const prn_step *from = tuned->steps[s];
        prn_step *to = from->tuned || from->children ? find_step(plan, from->node, &next) : NULL;
        if (to && to->kernel) to->tuned = from->tuned;
        for (uint32_t c = 0; to && to->children && from->children && c < from->node->child_count; c++)
            if (to->children[c] && from->children[c]) prn_plan_tune_note(to->children[c], from->children[c]);
    }
}
