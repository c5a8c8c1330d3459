/* prony ops: the operator table, as the library has it. */
#include "bench/terminal/json_file.h"
#include "prony_operator.h"

#include <fnmatch.h>
#include <string.h>

static void print_text(const prony_operator_info *op)
{
    const int types_at =
        printf("%-10s %-26s since %-3lld ", *op->domain ? op->domain : "ai.onnx", op->name, (long long)op->since_opset);
    put_wrapped(op->types, types_at, 48);
    printf("           cost: ");
    put_wrapped(op->cost, 17, 17);
    printf("           kernels: %s", op->kernel_count ? "" : "none of its own");
    int column = 20;
    for (size_t k = 0; k < op->kernel_count; k++) {
        int length = (int)strlen(op->kernels[k]);
        if (k && column + 1 + length > terminal_width()) column = printf("\n%*s", 19, "") - 1;
        column += printf("%s%s", k ? " " : "", op->kernels[k]);
    }
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

/* ---- counting presets ---- */

static void print_preset(const prony_count_preset *preset)
{
    int column = printf("%s: %s at ", preset->name, preset->source);
    put_wrapped(preset->pin, column, 2);
    put_wrapped(preset->note, 0, 0);
    printf("\nM: MACs, n: elements of the first input, o: of the first output,\nK: kernel volume, d: normalised "
           "length\n\n");
    for (size_t r = 0; r < preset->rule_count; r++) {
        printf("  ");
        put_wrapped(preset->rules[r].operators, 2, 2);
        printf("      ");
        put_wrapped(preset->rules[r].formula, 6, 6);
    }
}

static void print_preset_json(FILE *to, const prony_count_preset *preset)
{
    fprintf(
        to,
        "{\"schema\": \"prony.count_preset/1\", \"name\": \"%s\",\n \"source\": \"%s\", \"pin\": \"%s\", \"note\": ",
        preset->name, preset->source, preset->pin);
    json_text(to, preset->note);
    fprintf(to, ", \"rules\": [");
    for (size_t r = 0; r < preset->rule_count; r++) {
        fprintf(to, "%s\n  {\"operators\": ", r ? "," : "");
        json_text(to, preset->rules[r].operators);
        fprintf(to, ", \"formula\": ");
        json_text(to, preset->rules[r].formula);
        fputc('}', to);
    }
    fprintf(to, "\n]}\n");
}

static int show_preset(const options *o)
{
    json_file json;
    const prony_count_preset *preset = prony_count_preset_at(0);
    for (size_t i = 0; i < prony_count_preset_count(); i++)
        if (strcmp(prony_count_preset_at(i)->name, o->shown.count) == 0) preset = prony_count_preset_at(i);
    int code = json_open(&json, o);
    if (code != EXIT_DONE) return code;
    if (json.stream)
        print_preset_json(json.stream, preset);
    else if (!o->terminal.quiet)
        print_preset(preset);
    return json_close(&json, o, code);
}

int command_ops(const options *o)
{
    if (o->shown.count) return show_preset(o);
    const char *glob = o->shown.filter;
    if (glob && strncmp(glob, "name=", 5) != 0) {
        fail(o, "--filter '%s': operators have the filter name=GLOB only", glob);
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
        else if (!o->terminal.quiet)
            print_text(op);
        first = false;
    }
    if (json.stream) fprintf(json.stream, "\n]\n");
    return json_close(&json, o, code);
}
