/* prony ops: the operator table, as the library has it. */
#include "bench/json_file.h"

#include <fnmatch.h>
#include <string.h>

static void print_text(const prony_operator_info *op)
{
    printf("%-10s %-26s since %-3lld %s\n", *op->domain ? op->domain : "ai.onnx", op->name, (long long)op->since_opset,
           op->types);
    printf("           cost: %s\n           kernels:", op->cost);
    for (size_t k = 0; k < op->kernel_count; k++) printf(" %s", op->kernels[k]);
    putchar('\n');
}

static void print_json(FILE *to, const prony_operator_info *op, bool first)
{
    fprintf(to, "%s\n  {\"domain\": \"%s\", \"name\": \"%s\", \"since_opset\": %lld, \"types\": \"%s\", \"cost\": ",
            first ? "" : ",", op->domain, op->name, (long long)op->since_opset, op->types);
    json_text(to, op->cost);
    fprintf(to, ", \"kernels\": [");
    for (size_t k = 0; k < op->kernel_count; k++) fprintf(to, "%s\"%s\"", k ? ", " : "", op->kernels[k]);
    fprintf(to, "]}");
}

int command_ops(const options *o)
{
    const char *glob = o->filter;
    if (glob && strncmp(glob, "name=", 5) != 0) {
        fail(o, "--filter '%s': operators are filtered by name=GLOB", glob);
        return EXIT_USAGE;
    }
    json_file json;
    int code = json_open(&json, o);
    if (code != EXIT_DONE) return code;
    bool first = true;
    if (json.stream) fprintf(json.stream, "[");
    for (size_t i = 0; i < prony_operator_count(); i++) {
        const prony_operator_info *op = prony_operator_at(i);
        if (glob && fnmatch(glob + 5, op->name, 0) != 0) continue;
        if (json.stream)
            print_json(json.stream, op, first);
        else if (!o->quiet)
            print_text(op);
        first = false;
    }
    if (json.stream) fprintf(json.stream, "\n]\n");
    return json_close(&json, o, code);
}
