/* Finds cuts that change a kernel or its layouts: the order of a sum may follow the layout. Kernels
 * and layouts are chosen for the whole program and for each stage, and nothing is prepared. Operators are compared by
 * their results. */
#include "engine/plan/planner.h"
#include "engine/rewrites/rewrite.h"
#include "engine/session/precision.h"
#include "engine/session/shard_state.h"

typedef struct kernel_choice {
    const prn_kernel *kernel; /* NULL: no step makes the value, or the run chooses */
    uint64_t layouts;         /* hash over those of inputs and outputs, in their order */
} kernel_choice;

typedef struct kernel_list {
    kernel_choice *of; /* by value */
    size_t count;
} kernel_list;

static uint64_t add_layout(uint64_t hash, const prony_value *value)
{
    return (hash ^ (value ? value->layout + 1u : 0u)) * 0x100000001b3u; /* FNV-1a */
}

static kernel_choice shard_kernels_choice_of(const prn_step *step)
{
    kernel_choice choice = {step->kernel, 0xcbf29ce484222325u};
    for (uint32_t i = 0; i < step->context.input_count; i++)
        choice.layouts = add_layout(choice.layouts, step->input_values[i]);
    for (uint32_t k = 0; k < step->context.output_count; k++)
        choice.layouts = add_layout(choice.layouts, step->output_values[k]);
    return choice;
}

static bool same_choice(const kernel_choice *a, const kernel_choice *b)
{
    return a->kernel == b->kernel && (a->layouts == b->layouts || (a->kernel && a->kernel->layout_invariant));
}

static prony_status plan_kernels(const prony_shard_plan *plan, prn_program *program, kernel_list *out,
                                 prony_error *error)
{
    prn_plan *made = NULL;
    const char *text;
    prn_plan_options options = {.precision = prn_precision_find(plan->session.precision, &text),
                                .threads = plan->threads,
                                .workers = 1,
                                .cores = plan->threads,
                                .no_reuse = plan->session.no_reuse,
                                .kernels_only = true};
    out->of = prn_calloc(program->value_count + 1, sizeof *out->of);
    out->count = program->value_count;
    if (!out->of) return prn_no_memory(error);
    PRN_TRY(prn_plan_create(&made, program, NULL, &options, error));
    for (size_t s = 0; s < made->step_count; s++) {
        const prn_step *step = made->steps[s];
        for (uint32_t k = 0; k < step->node->output_count; k++)
            if (step->node->outputs[k] < out->count) out->of[step->node->outputs[k]] = shard_kernels_choice_of(step);
    }
    prn_plan_release(made);
    return PRONY_OK;
}

static prony_status shard_kernels_narrow(const prony_shard_plan *plan, size_t s, prn_program **out, prony_error *error)
{
    prony_model *stage = NULL;
    PRN_TRY(prn_stage_create(&stage, plan->model, plan->inputs, plan->input_count, plan->program,
                             plan->cuts[plan->chosen[s]].node, plan->cuts[plan->chosen[s + 1]].node, error));
    prony_status status = prn_stage_bind(out, stage->stage, !plan->session.no_rewrites, error);
    if (*out) (*out)->graph = NULL; /* it is the stage's, which goes */
    prony_model_release(stage);
    return status;
}

/* The cut that is nearer to the first operator whose kernel differs. */
static size_t shard_kernels_blame(const prony_shard_plan *plan, size_t s, uint32_t node)
{
    const size_t before = plan->chosen[s], behind = plan->chosen[s + 1];
    const uint32_t from = plan->cuts[before].node, to = plan->cuts[behind].node;
    if (s == 0) return behind;
    if (s + 1 == plan->stage_count) return before;
    return node - from <= to - node ? before : behind;
}

static prony_status check_stage(const prony_shard_plan *plan, size_t s, const kernel_list *whole, size_t *refused,
                                prony_error *error)
{
    prn_program *program = NULL;
    kernel_list own = {0};
    prony_status status = shard_kernels_narrow(plan, s, &program, error);
    if (status == PRONY_OK) status = plan_kernels(plan, program, &own, error);
    for (uint32_t n = plan->cuts[plan->chosen[s]].node;
         status == PRONY_OK && !*refused && n < plan->cuts[plan->chosen[s + 1]].node; n++) {
        const prn_node_def *node = plan->program->nodes[n];
        for (uint32_t k = 0; !node->dead && k < node->output_count; k++) {
            const uint32_t value = node->outputs[k];
            if (value == PRN_NO_VALUE || same_choice(&own.of[value], &whole->of[value])) continue;
            *refused = shard_kernels_blame(plan, s, n);
            break;
        }
    }
    prn_program_release(program);
    prn_free(own.of);
    return status;
}

prony_status prn_shard_check_kernels(prony_shard_plan *plan, size_t *refused, prony_error *error)
{
    kernel_list whole = {0};
    *refused = 0;
    prony_status status = plan_kernels(plan, plan->program, &whole, error);
    for (size_t s = 0; status == PRONY_OK && !*refused && s < plan->stage_count; s++)
        status = check_stage(plan, s, &whole, refused, error);
    prn_free(whole.of);
    return status;
}
