/* prony ops: the operator table, as the library has it. */
#include "bench/command.h"

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

static void print_string(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

static void print_json(FILE *to, const prony_operator_info *op, bool first)
{
    fprintf(to, "%s\n  {\"domain\": \"%s\", \"name\": \"%s\", \"since_opset\": %lld, \"types\": \"%s\", \"cost\": ",
            first ? "" : ",", op->domain, op->name, (long long)op->since_opset, op->types);
    print_string(to, op->cost);
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
    FILE *to = stdout;
    if (o->json && strcmp(o->json, "-") != 0 && !(to = fopen(o->json, "w"))) {
        perror(o->json);
        return EXIT_FAILED;
    }
    bool first = true;
    if (o->json) fprintf(to, "[");
    for (size_t i = 0; i < prony_operator_count(); i++) {
        const prony_operator_info *op = prony_operator_at(i);
        if (glob && fnmatch(glob + 5, op->name, 0) != 0) continue;
        if (o->json)
            print_json(to, op, first);
        else
            print_text(op);
        first = false;
    }
    if (o->json) fprintf(to, "\n]\n");
    if (to != stdout && fclose(to) != 0) {
        perror(o->json);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}
