/* See the header. */
#include "engine/session/static_types.h"

#include "base/option_struct.h"
#include "engine/session/free_dims.h"

prony_status prn_static_types(prn_program **out, prony_model *model, const prony_session_options *given,
                              prony_error *error)
{
    prony_session_options own = PRONY_SESSION_OPTIONS_INIT;
    const prony_session_options *options = &own;
    const prn_graph *graph = &model->file->graph;
    prn_input_shapes shapes;
    PRN_TRY(prn_options_read(&own, sizeof own, given, "session options", error));
    PRN_TRY(prn_ports_check_options(model->file, options, error));
    PRN_TRY(prn_input_shapes_init(&shapes, model, error));
    prony_value *inputs = prn_calloc(graph->input_count + 1, sizeof *inputs);
    prony_status status = inputs ? prn_input_shapes_resolve(&shapes, model, options, error) : prn_no_memory(error);
    if (status == PRONY_OK) status = prn_input_shapes_closed(&shapes, model, error);
    for (size_t i = 0; status == PRONY_OK && i < graph->input_count; i++)
        inputs[i] =
            (prony_value){.kind = graph->inputs[i].kind, .dtype = graph->inputs[i].dtype, .shape = shapes.shapes[i]};
    prn_bind_options bind = {.inputs = inputs, .input_count = graph->input_count, .static_only = true};
    if (status == PRONY_OK) status = prn_program_bind(out, model, graph, NULL, NULL, &bind, error);
    prn_free(inputs);
    prn_input_shapes_free(&shapes);
    return status;
}
