/* Makes rows as copies, because a report outlives session, plan and program. */
#include "engine/bind/names.h"
#include "engine/plan/tune.h"
#include "engine/session/precision.h"
#include "profiler/measure/report_build.h"
#include "base/os/clock.h"
#include "base/cpu/machine.h"

#include <string.h>

static const char *report_build_copy_text(prony_report *report, const char *text)
{
    return prn_bump_strndup(&report->pool, text, strlen(text));
}

/* ---- model and configuration ---- */

/* Input `index` of the main graph's program: the required ones, then the given optional ones. */
static const prony_value_info *input_port(const prn_program *program, size_t index)
{
    const prn_graph *graph = program->graph;
    const char *name = program->values[program->inputs[index]]->name;
    size_t at = index;
    while (index >= graph->input_count && strcmp(graph->inputs[at].name, name) != 0) at++;
    return &graph->inputs[at];
}

static prony_status fill_ports(prony_report *report, const prn_program *program, bool inputs, prony_error *error)
{
    const prn_graph *graph = program->graph;
    size_t count = inputs ? program->input_count : graph->output_count;
    prony_value_info *ports = prn_bump_alloc(&report->pool, count + 1, sizeof *ports);
    if (!ports) return prn_no_memory(error);
    for (size_t i = 0; i < count; i++) {
        const prony_value_info *declared = inputs ? input_port(program, i) : &graph->outputs[i];
        const prony_value *bound = &program->values[inputs ? program->inputs[i] : program->outputs[i]]->info;
        ports[i] = *declared;
        ports[i].name = report_build_copy_text(report, declared->name);
        if (!ports[i].name) return prn_no_memory(error);
        if (bound->dtype != PRONY_UNDEFINED) ports[i].dtype = bound->dtype;
        if (bound->shape.rank >= 0) ports[i].shape = bound->shape;
        for (int d = 0; d < PRONY_MAX_RANK; d++) {
            if (!declared->dim_names[d]) continue;
            ports[i].dim_names[d] = report_build_copy_text(report, declared->dim_names[d]);
            if (!ports[i].dim_names[d]) return prn_no_memory(error);
        }
    }
    *(inputs ? &report->model.inputs : &report->model.outputs) = ports;
    *(inputs ? &report->model.input_count : &report->model.output_count) = count;
    return PRONY_OK;
}

static prony_status fill_dims(prony_report *report, prony_error *error)
{
    prony_dim *dims = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < report->model.input_count; i++) capacity += PRONY_MAX_RANK;
    dims = prn_bump_alloc(&report->pool, capacity + 1, sizeof *dims);
    if (!dims) return prn_no_memory(error);
    report->config.dims = dims;
    prn_names seen = {0};
    bool room = true;
    for (size_t i = 0; room && i < report->model.input_count; i++) {
        const prony_value_info *port = &report->model.inputs[i];
        for (int d = 0; room && d < port->shape.rank; d++) {
            uint32_t at;
            const char *name = port->dim_names[d];
            if (!name || !*name || prn_names_get(&seen, name, &at)) continue;
            room = prn_names_put(&seen, name, (uint32_t)report->config.dim_count);
            dims[report->config.dim_count++] = (prony_dim){name, port->shape.dim[d]};
        }
    }
    prn_names_free(&seen);
    return room ? PRONY_OK : prn_no_memory(error);
}

prony_status prn_report_fill_assumed(prony_report *report, const prony_model *model, const prn_assumed_list *assumed,
                                     prony_error *error)
{
    prony_assumed_dim *rows = prn_bump_alloc(&report->pool, assumed->count + 1, sizeof *rows);
    if (!rows) return prn_no_memory(error);
    for (size_t k = 0; k < assumed->count; k++) {
        const prn_assumed *a = &assumed->items[k];
        const prony_value_info *port = &model->file->graph.inputs[a->input];
        char text[PRN_FREE_DIM_NAME_BYTES];
        const char *name = report_build_copy_text(report, prn_free_dim_name(port, a->axis, text));
        if (!name) return prn_no_memory(error);
        rows[report->config.assumed_count++] = (prony_assumed_dim){name, a->value, a->reason};
    }
    report->config.assumed = rows;
    return PRONY_OK;
}

/* Adds the stored bytes and element bits of weights that are parameters, subgraphs included. */
static void add_claimed(const prn_program *program, uint64_t *bytes, uint64_t *bits)
{
    for (size_t w = 0; w < program->weight_count; w++) {
        const prn_weight *weight = &program->weights[w];
        if (!weight->claimed) continue;
        *bytes += weight->bytes;
        *bits += weight->elements * weight->bits;
    }
    for (size_t n = 0; n < program->node_count; n++)
        for (uint32_t c = 0; c < program->nodes[n]->child_count; c++)
            if (program->nodes[n]->children[c].program)
                add_claimed(program->nodes[n]->children[c].program, bytes, bits);
}

static prony_status fill_model(prony_report *report, const prony_model *model, const prn_program *program,
                               prony_error *error)
{
    const prn_model_file *file = model->file;
    report->model = (prn_report_model){.name = report_build_copy_text(report, file->name),
                                       .producer = report_build_copy_text(report, file->producer ? file->producer : ""),
                                       .file_bytes = file->file_bytes,
                                       .ir_version = file->ir_version,
                                       .opset = prn_model_opset(file, ""),
                                       .nodes = file->graph.node_count};
    if (!report->model.name || !report->model.producer) return prn_no_memory(error);
    add_claimed(program, &report->model.parameter_bytes, &report->model.parameter_bits);
    PRN_TRY(fill_ports(report, program, true, error));
    PRN_TRY(fill_ports(report, program, false, error));
    return fill_dims(report, error);
}

static prony_status fill_config(prony_report *report, const prony_session_options *options, const prn_plan *plan,
                                int threads, const prn_affinity *affinity, prony_error *error)
{
    prn_report_config *config = &report->config;
    const prony_value_info *first = report->model.input_count ? &report->model.inputs[0] : NULL;
    config->intra_op_threads = threads;
    config->inter_op_threads = plan                            ? plan->parallel.workers
                               : options->inter_op_threads > 1 ? options->inter_op_threads
                                                               : 1;
    config->inter_op_reason = report_build_copy_text(report, plan ? plan->parallel.note : "");
    config->affinity = report_build_copy_text(report, options->affinity ? options->affinity : "");
    config->batch = first && first->shape.rank > 0 ? first->shape.dim[0] : -1;
    prn_precision_find(options->precision, &config->precision);
    config->warmup_runs = config->runs = -1;
    config->rewrites = !options->no_rewrites;
    config->reuse = !options->no_reuse;
    config->affinity_used = report_build_copy_text(report, affinity && affinity->count ? affinity->used : "");
    config->affinity_failure = report_build_copy_text(report, affinity ? affinity->failure : "");
    const prony_device_info *device =
        plan && plan->options.device ? prn_device_description(plan->options.device) : NULL;
    config->device = device ? prn_bump_printf(&report->pool, "%s %s", device->id, device->name) : "";
    bool copied = config->device && config->affinity && config->inter_op_reason && config->affinity_used &&
                  config->affinity_failure;
    return copied ? PRONY_OK : prn_no_memory(error);
}

/* ---- rows ---- */

/* Fills for each input the layer that makes it. */
static prony_status report_build_fill_sources(prony_report *report, const prn_program *program, prony_error *error)
{
    uint32_t *maker = prn_calloc(program->value_count + 1, sizeof *maker); /* layer + 1; 0: none */
    if (!maker) return prn_no_memory(error);
    for (size_t l = 0; l < program->layer_count; l++)
        for (uint32_t k = 0; k < program->layers[l].output_count; k++)
            if (program->layers[l].outputs[k] != PRN_NO_VALUE) maker[program->layers[l].outputs[k]] = (uint32_t)l + 1;
    prony_status status = PRONY_OK;
    for (size_t l = 0; l < program->layer_count && status == PRONY_OK; l++) {
        const prn_layer *layer = &program->layers[l];
        uint32_t *sources = prn_bump_alloc(&report->pool, layer->input_count + 1, sizeof *sources);
        if (!sources) status = prn_no_memory(error);
        for (uint32_t i = 0; sources && i < layer->input_count; i++) {
            uint32_t from = layer->inputs[i] == PRN_NO_VALUE ? 0 : maker[layer->inputs[i]];
            sources[i] = from ? from - 1 : PRONY_NO_INDEX;
        }
        report->layers[l].sources = sources;
    }
    prn_free(maker);
    return status;
}

/* Makes a row per layer with its static facts; folded layers have no output bytes. */
static prony_status fill_layer_rows(prony_report *report, const prn_program *program, const prony_value **copies,
                                    prony_error *error)
{
    report->layers = prn_bump_alloc(&report->pool, program->layer_count + 1, sizeof *report->layers);
    if (!report->layers) return prn_no_memory(error);
    report->layer_count = program->layer_count;
    for (size_t l = 0; l < program->layer_count; l++) {
        const prn_layer *layer = &program->layers[l];
        prony_layer_row *row = &report->layers[l];
        row->index = (uint32_t)l;
        row->operator_index = PRONY_NO_INDEX;
        row->name = report_build_copy_text(report, layer->info.name);
        row->op = report_build_copy_text(report, layer->info.op_type);
        if (!row->name || !row->op) return prn_no_memory(error);
        row->module = prn_report_module_of(report, row->name);
        if (!row->module) return prn_no_memory(error);
        row->folded = layer->folded;
        row->dynamic = layer->dynamic;
        row->removed = layer->removed;
        row->cost = prn_layer_cost(layer);
        row->input_count = layer->input_count;
        row->output_count = layer->output_count;
        PRN_TRY(
            prn_report_copy_values(report, program, copies, layer->inputs, layer->input_count, &row->inputs, error));
        PRN_TRY(
            prn_report_copy_values(report, program, copies, layer->outputs, layer->output_count, &row->outputs, error));
        for (size_t k = 0; k < row->output_count; k++) {
            size_t bytes = row->outputs[k] && !layer->folded ? prn_value_bytes(row->outputs[k]) : 0;
            if (bytes != SIZE_MAX) row->output_bytes += bytes;
        }
    }
    return PRONY_OK;
}

static prony_status report_build_fill_layers(prony_report *report, const prn_program *program, prony_error *error)
{
    const prony_value **copies = prn_calloc(program->value_count + 1, sizeof *copies);
    if (!copies) return prn_no_memory(error);
    prony_status status = fill_layer_rows(report, program, copies, error);
    prn_free(copies);
    return status == PRONY_OK ? report_build_fill_sources(report, program, error) : status;
}

static uint64_t offset_of(const prn_plan *plan, uint32_t value)
{
    uint64_t offset;
    if (value == PRN_NO_VALUE) return UINT64_MAX;
    const prn_plan_value *root = plan->values[prn_plan_root(plan, value, &offset)];
    return root->buffer == PRN_NO_BUFFER ? UINT64_MAX : plan->memory.buffers[root->buffer].offset + offset;
}

/* The reason why a matmul-like operator runs in float32 although the session allows less precision; 0: it does not, or
 * no reason is needed. */
static int64_t stays_in_fp32(const prn_step *step, const prn_kernel *kernel)
{
    const prony_context *context = &step->context;
    const prony_value *first = prn_input(context, 0);
    const char *op = step->node->info.op_type;
    const bool in_less = kernel->precisions && !(kernel->precisions & PRN_PRECISION(FP32));
    if (context->precision == PRONY_PRECISION_FP32 || context->precision == PRONY_PRECISION_FP32_STRICT || in_less)
        return 0;
    if (step->work.cost.macs == 0 || step->work.cost.flops == 0) return 0;
    if (!first || first->dtype != PRONY_FLOAT32) return 0;
    if (!context->constant_inputs) return PRN_STAYS_VARIABLE;
    return strcmp(op, "Gemm") == 0 || strcmp(op, "MatMul") == 0 ? PRN_STAYS_SMALL : PRN_STAYS_KIND;
}

/* Copies facts of the kernel; dynamic nodes have none. */
static prony_status fill_kernel_facts(prony_report *report, prony_operator_row *row, const prn_step *step,
                                      const prn_kernel *kernel, prony_error *error)
{
    prony_cost facts = {.fact_count = 0};
    if (!kernel || step->dynamic) return PRONY_OK;
    if (kernel->facts) kernel->facts(&step->context, &facts);
    const int64_t stays = stays_in_fp32(step, kernel);
    if (stays) prn_cost_fact(&facts, "stays_in_fp32", stays);
    if (step->node->stays_in_float) prn_cost_fact(&facts, "stays_in_float", step->node->stays_in_float);
    prony_context context = step->context;
    context.error = error;
    PRN_TRY(prn_cost_facts_check(&context, &facts));
    if (facts.fact_count == 0) return PRONY_OK;
    prony_fact *copy = prn_bump_alloc(&report->pool, facts.fact_count + 1, sizeof *copy);
    if (!copy) return prn_no_memory(error);
    memcpy(copy, facts.facts, facts.fact_count * sizeof *copy);
    row->kernel_facts = copy;
    row->kernel_fact_count = facts.fact_count;
    return PRONY_OK;
}

/* Stores what the cost model predicts for the kernel and for the next best one. After a run, weights that the run made
 * look like constants, for which other kernels would be asked: their nodes have none. */
static prony_status fill_choice(prony_report *report, const prn_plan *plan, const prn_step *step,
                                const prn_kernel *kernel, prn_kernel_choice *choice)
{
    *choice = (prn_kernel_choice){.cycles = -1.0};
    if (!kernel || !kernel->predict || step->dynamic || !step->node->binding.op) return PRONY_OK;
    if (step->context.input_count < 2 || !plan->values[step->inputs[1]]->constant) return PRONY_OK;
    const prn_kernel *next =
        prn_op_next_kernel(step->node->binding.op, &step->context, kernel, &choice->cycles, &choice->next_cycles);
    choice->next = next ? report_build_copy_text(report, next->name) : NULL;
    return next && !choice->next ? PRONY_OUT_OF_MEMORY : PRONY_OK;
}

/* Takes the cost of a run, except parameters, which do not change. */
static void report_build_take_cost(prony_cost *to, const prony_cost *from)
{
    const uint64_t parameters = to->parameters;
    *to = *from;
    to->parameters = parameters;
}

/* Makes a row per step, links it with its layers, and gives learnt costs to the layers. */
static prony_status fill_operators(prony_report *report, const prn_plan *plan, prony_error *error)
{
    report->operators = prn_bump_alloc(&report->pool, plan->step_count + 1, sizeof *report->operators);
    prn_kernel_choice *choices = prn_bump_alloc(&report->pool, plan->step_count + 1, sizeof *choices);
    if (!report->operators || !choices) return prn_no_memory(error);
    report->choices = choices;
    report->operator_count = plan->step_count;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        const prony_cost own = prn_cost_kept(&step->work.cost);
        const prn_kernel *kernel = prn_step_kernel(step);
        prony_operator_row *row = &report->operators[s];
        uint32_t *layers = prn_bump_alloc(&report->pool, step->node->layer_count + 1, sizeof *layers);
        row->index = s;
        row->name = report_build_copy_text(report, step->node->info.name);
        row->op = report_build_copy_text(report, step->node->info.op_type);
        row->kernel = report_build_copy_text(report, kernel ? kernel->name : "");
        row->backend = report_build_copy_text(report, kernel ? kernel->backend : "");
        if (!layers || !row->name || !row->op || !row->kernel || !row->backend) return prn_no_memory(error);
        for (uint32_t l = 0; l < step->node->layer_count; l++) {
            layers[l] = step->node->layers[l];
            report->layers[layers[l]].operator_index = s;
            if (prn_step_gives_cost(plan, step, layers[l]))
                report_build_take_cost(&report->layers[layers[l]].cost, &own);
        }
        row->layers = layers;
        row->layer_count = step->node->layer_count;
        row->cost = own;
        row->cost.fact_count = 0;
        if (!prn_step_beside(plan, step, &row->cost))
            return prn_fail(error, PRONY_LIMIT, "operator \"%s\": its cost overflows 64 bits", row->name);
        row->threads = plan->parallel.threads;
        row->offset_bytes = step->context.output_count ? offset_of(plan, step->outputs[0]) : UINT64_MAX;
        for (size_t k = 0; k < step->context.output_count; k++)
            if (step->outputs[k] != PRN_NO_VALUE) row->output_bytes += plan->values[step->outputs[k]]->bytes;
        row->scratch_bytes = step->context.scratch_bytes;
        if (fill_choice(report, plan, step, kernel, &choices[s]) != PRONY_OK) return prn_no_memory(error);
        PRN_TRY(fill_kernel_facts(report, row, step, kernel, error));
    }
    return PRONY_OK;
}

/* ---- tuning ---- */

static prony_status copy_trials(prony_report *report, const prn_step *step, prony_tuned_operator *to,
                                prony_error *error)
{
    const prn_tune_row *row = step->tuned;
    prony_tune_trial *trials = prn_bump_alloc(&report->pool, row->trial_count + 1, sizeof *trials);
    to->kernel = report_build_copy_text(report, step->kernel->name);
    to->default_kernel = report_build_copy_text(report, row->standard);
    to->cached = row->kept;
    if (!trials || !to->kernel || !to->default_kernel) return prn_no_memory(error);
    for (size_t k = 0; k < row->trial_count; k++) {
        const prn_tune_trial *from = &row->trials[k];
        trials[k] = (prony_tune_trial){report_build_copy_text(report, from->kernel), from->time_ns, from->reorder_ns,
                                       report_build_copy_text(report, from->failure ? from->failure : "")};
        if (!trials[k].kernel || !trials[k].failure) return prn_no_memory(error);
    }
    to->trials = trials;
    to->trial_count = row->trial_count;
    return PRONY_OK;
}

/* Counts tuned operators, those in subgraphs included, which have no rows. */
static void count_tuned(const prn_plan *plan, prony_tuning *to)
{
    for (size_t s = 0; s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        if (step->tuned) to->operators++;
        if (step->tuned && strcmp(step->kernel->name, step->tuned->standard) != 0) to->changed++;
        for (uint32_t c = 0; step->children && c < step->node->child_count; c++)
            if (step->children[c]) count_tuned(step->children[c], to);
    }
}

/* Copies the tuning's summary and the trials of every step with a choice. */
static prony_status fill_tuning(prony_report *report, const prn_plan *plan, prony_error *error)
{
    const prn_tuning *from = plan->options.tuning;
    prony_tuning *to = &report->tuning;
    if (!from) return PRONY_OK;
    report->has_tuning = true;
    *to = (prony_tuning){.measured = from->measured,
                         .cached = from->kept,
                         .untried = from->left,
                         .measuring_ns = from->spent_ns,
                         .file_ns = from->file_ns,
                         .file = report_build_copy_text(report, from->file ? from->file : ""),
                         .note = report_build_copy_text(report, from->note)};
    to->reverted = plan->verdict && plan->verdict->reverted;
    to->default_run_ns = plan->verdict ? plan->verdict->default_ns : -1;
    to->tuned_run_ns = plan->verdict ? plan->verdict->tuned_ns : -1;
    count_tuned(plan, to);
    if (to->reverted) to->changed = 0;
    prony_tuned_operator *choices = prn_bump_alloc(&report->pool, plan->step_count + 1, sizeof *choices);
    if (!choices || !to->file || !to->note) return prn_no_memory(error);
    to->choices = choices;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        if (!plan->steps[s]->tuned) continue;
        choices[to->choice_count].index = s;
        PRN_TRY(copy_trials(report, plan->steps[s], &choices[to->choice_count++], error));
    }
    return PRONY_OK;
}

/* Layers come before operators, which link to them, and both before the totals. A failure releases the report. */
prony_status prn_report_build(prony_report **out, prony_model *model, const prn_program *program, const prn_plan *plan,
                              const prn_nested *nested, const prony_session_options *options, int threads,
                              const prn_affinity *affinity, prony_error *error)
{
    prony_report *report = prn_calloc(1, sizeof *report);
    if (!report) return prn_no_memory(error);
    report->source = model;
    prn_model_retain(model);
    report->phases = (prn_report_phases){model->load_ns, -1, -1, -1, -1};
    report->time_share = -1;
    prn_model_gaps gaps = {0};
    prony_status status = fill_model(report, model, program, error);
    if (status == PRONY_OK) status = fill_config(report, options, plan, threads, affinity, error);
    if (status == PRONY_OK) status = prn_model_find_gaps(model, &report->pool, &gaps, error);
    if (status == PRONY_OK) {
        report->unsupported = gaps.unsupported;
        report->unsupported_count = gaps.unsupported_count;
        report->assumed_imports = gaps.assumed;
        report->assumed_import_count = gaps.assumed_count;
        status = report_build_fill_layers(report, program, error);
    }
    if (status == PRONY_OK && plan) status = fill_operators(report, plan, error);
    if (status == PRONY_OK && plan) status = fill_tuning(report, plan, error);
    if (status == PRONY_OK) status = prn_report_fill_totals(report, error);
    if (status == PRONY_OK) status = prn_report_fill_nested(report, program, plan, nested, error);
    if (status == PRONY_OK) {
        report->model.parameters = report->totals.cost.parameters;
        prn_report_fill_system(report, affinity && affinity->count ? &affinity->mask : NULL);
    }
    if (status == PRONY_OK) status = prn_report_fill_parameters(report, program, error);
    if (status == PRONY_OK && plan) status = prn_report_fill_memory(report, model, plan, options->record_memory, error);
    if (status == PRONY_OK)
        *out = report;
    else
        prony_report_release(report);
    return status;
}
