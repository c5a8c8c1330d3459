/* prony extract MODEL --from T --to T -o OUT.onnx: writes a submodel as a file of its own. */
#include "bench/session/inputs.h"
#include "bench/session/submodel.h"

static void print_ports(const prony_model *model, bool inputs)
{
    size_t count = inputs ? prony_model_input_count(model) : prony_model_output_count(model);
    for (size_t i = 0; i < count; i++) {
        const prony_value_info *port = inputs ? prony_model_input(model, i) : prony_model_output(model, i);
        printf("  %-7s ", inputs ? "input" : "output");
        put_text(stdout, port->name);
        printf("  %s", prony_dtype_name(port->dtype));
        for (int d = 0; d < port->shape.rank; d++) {
            fputs(d ? ", " : "[", stdout);
            if (port->shape.dim[d] >= 0)
                printf("%lld", (long long)port->shape.dim[d]);
            else
                put_text(stdout, port->dim_names[d] ? port->dim_names[d] : "?");
        }
        puts(port->shape.rank > 0 ? "]" : port->shape.rank == 0 ? "[]" : "");
    }
}

/* Reads the written file back, like any model. */
static int extract_command_show(const options *o)
{
    prony_error error = {0};
    prony_model *model = NULL;
    if (prony_model_load(&model, o->files.output, NULL, &error) != PRONY_OK) return report_error(o, &error);
    if (!o->terminal.quiet) {
        put_text(stdout, o->files.output);
        putchar('\n');
        print_ports(model, true);
        print_ports(model, false);
    }
    prony_model_release(model);
    return EXIT_DONE;
}

static int extract(const options *o, prony_model *model)
{
    prony_error error = {0};
    prony_session_options s = session_options(o);
    prony_submodel p = PRONY_SUBMODEL_INIT;
    p.from = o->model.from;
    p.from_count = o->model.from_count;
    p.to = o->model.to;
    p.to_count = o->model.to_count;
    p.options = &s;
    return prony_model_extract_save(model, &p, o->files.output, &error) == PRONY_OK
               ? EXIT_DONE
               : report_session_error(o, model, &error);
}

int command_extract(const options *o)
{
    prony_error error = {0};
    prony_model *model = NULL;
    if (!o->files.output) return fail(o, "-o OUT.onnx is missing"), EXIT_USAGE;
    if (!is_submodel(o))
        return fail(o, "--from TENSOR or --to TENSOR is missing; without them the submodel is the whole model"),
               EXIT_USAGE;
    if (load_model(o, &model, o->arguments[0], &error) != PRONY_OK) return report_error(o, &error);
    int code = extract(o, model);
    if (code == EXIT_DONE) code = extract_command_show(o);
    prony_model_release(model);
    return code;
}
