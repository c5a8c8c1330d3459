/* prony_inspect: a static bind at the given shapes; no weight is read and nothing runs. */
#include "base/memory/budget.h"
#include "base/os/clock.h"
#include "base/cpu/machine.h"
#include "base/option_struct.h"
#include "engine/session/free_dims.h"
#include "profiler/measure/report_build.h"

static prony_status input_types(prony_value *inputs, prn_input_shapes *s, const prony_model *model,
                                const prony_session_options *options, prony_error *error)
{
    const prn_model_file *file = model->file;
    PRN_TRY(prn_ports_check_options(file, options, error));
    PRN_TRY(prn_input_shapes_resolve(s, model, options, error));
    PRN_TRY(prn_input_shapes_closed(s, model, error));
    for (size_t i = 0; i < file->graph.input_count; i++) {
        const prony_value_info *port = &file->graph.inputs[i];
        inputs[i] = (prony_value){.kind = port->kind, .dtype = port->dtype, .shape = prn_shape_unknown()};
        /* An input without a declared shape leaves dependent shapes open; the rest is still shown. */
        if (port->kind == PRONY_TENSOR) inputs[i].shape = s->shapes[i];
        if (prn_shape_known(&inputs[i].shape) && port->dtype != PRONY_UNDEFINED &&
            prn_value_bytes(&inputs[i]) == SIZE_MAX)
            return prn_fail(error, PRONY_LIMIT, "%s: input '%s' is too large", file->name, port->name);
    }
    return PRONY_OK;
}

/* Binds statically and reports. The program is released before composites make their own, so that one exists at a
 * time. */
static prony_status inspect(prony_report **out, prony_model *model, const prony_session_options *options,
                            prony_error *error)
{
    size_t count = model->file->graph.input_count;
    prony_value *inputs = prn_calloc(count + 1, sizeof *inputs);
    if (!inputs) return prn_no_memory(error);
    prn_program *program = NULL;
    prn_input_shapes shapes;
    int64_t start = prn_now_ns();
    prony_status status = prn_input_shapes_init(&shapes, model, error);
    if (status == PRONY_OK) status = input_types(inputs, &shapes, model, options, error);
    prn_bind_options bind = {.inputs = inputs, .input_count = count, .static_only = true};
    if (status == PRONY_OK) {
        status = prn_program_bind(&program, model, &model->file->graph, NULL, NULL, &bind, error);
        if (status != PRONY_OK) prn_error_prefix(error, "%s", model->file->name);
        if (prn_is_shape_failure(status)) prn_error_name_dims(error, model, inputs, &shapes.assumed);
    }
    int64_t bound = prn_now_ns();
    int threads = options->intra_op_threads > 0 ? options->intra_op_threads : prn_machine_auto_threads(1, NULL);
    if (status == PRONY_OK) status = prn_report_build(out, model, program, NULL, NULL, options, threads, NULL, error);
    prn_program_release(program); /* composites need another program; both never exist at once */
    if (status == PRONY_OK) {
        (*out)->phases.bind_ns = bound - start;
        status = prn_report_fill_assumed(*out, model, &shapes.assumed, error);
        if (status == PRONY_OK) status = prn_report_fill_modules(*out, error);
        if (status == PRONY_OK) status = prn_report_fill_composites(*out, model, inputs, count, error);
        if (status != PRONY_OK) {
            prony_report_release(*out);
            *out = NULL;
        }
    }
    prn_input_shapes_free(&shapes);
    prn_free(inputs);
    return status;
}

prony_status prony_inspect(prony_report **out, prony_model *model, const prony_session_options *options,
                           prony_error *error)
{
    prony_session_options own = PRONY_SESSION_OPTIONS_INIT;
    if (!out || !model) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_inspect: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "session options", error));
    options = &own;
    prn_budget *budget = prn_budget_create(model->budget, options->memory_limit_bytes);
    if (!budget) return prn_no_memory(error);
    prn_budget *former = prn_budget_enter(budget);
    prony_status status = inspect(out, model, options, error);
    prn_budget_enter(former);
    prn_budget_release(budget);
    return status;
}
