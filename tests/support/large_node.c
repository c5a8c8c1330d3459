/* Parses the lines of large_node.h. */
#include "tests/support/large_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static prony_dtype type_of(char letter)
{
    static const struct {
        char letter;
        prony_dtype dtype;
    } types[] = {{'f', PRONY_FLOAT32}, {'d', PRONY_FLOAT64}, {'h', PRONY_FLOAT16},
                 {'i', PRONY_INT64},   {'j', PRONY_INT32},   {'u', PRONY_UINT8},
                 {'c', PRONY_INT8},    {'b', PRONY_BOOL},    {'s', PRONY_STRING}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].letter == letter) return types[i].dtype;
    fprintf(stderr, "no type '%c'\n", letter);
    exit(1);
}

static void put(prony_value *v, int64_t i, double x)
{
    static const char text[] = "the quick brown fox";
    switch (v->dtype) {
    case PRONY_FLOAT32:
        ((float *)v->data)[i] = (float)x;
        break;
    case PRONY_FLOAT64:
        ((double *)v->data)[i] = x;
        break;
    case PRONY_INT64:
        ((int64_t *)v->data)[i] = (int64_t)x;
        break;
    case PRONY_INT32:
        ((int32_t *)v->data)[i] = (int32_t)x;
        break;
    case PRONY_STRING:
        ((prony_string *)v->data)[i] = (prony_string){text, sizeof text - 1};
        break;
    case PRONY_FLOAT16: /* small numbers of either sign */
        ((uint16_t *)v->data)[i] = (uint16_t)(0x2c00 | (x < 0 ? 0x8000 : 0) | ((int)(x * 512) & 0x3ff));
        break;
    default:
        ((uint8_t *)v->data)[i] = (uint8_t)(int64_t)x;
        break;
    }
}

static void make_input(large_input *in, const char *text, int index)
{
    char *data = strdup(text), *at = data;
    in->constant = *at == '!';
    if (in->constant) at++;
    in->value = (prony_value){.dtype = type_of(*at++)};
    snprintf(in->name, sizeof in->name, "i%d", index);
    size_t size = strcspn(at, "=%");
    const char kind = at[size];
    at[size] = '\0';
    snprintf(in->dims, sizeof in->dims, "%s", at);
    int64_t count = 1;
    for (char *d = at; *d;) {
        int64_t dim = strtoll(d, &d, 10);
        in->value.shape.dim[in->value.shape.rank++] = dim;
        count *= dim;
        if (*d == ',') d++;
    }
    const size_t bytes = prony_dtype_bytes(in->value.dtype, count);
    in->value.data = malloc(bytes + 16);
    if (!in->value.data) exit(1);
    at += size + 1;
    double below = kind == '%' ? strtod(at, NULL) : 0;
    uint64_t state = 88172645463325252u;
    for (int64_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        double x = (double)(state >> 40) / (1 << 23) - 1;
        if (kind == '=') {
            x = strtod(at, &at);
            if (*at == ',') at++;
        } else if (kind == '%') {
            x = (double)(state >> 40) / (1 << 24) * below;
        }
        put(&in->value, i, x);
    }
    free(data);
}

int large_inputs_make(const large_node *c, large_input inputs[LARGE_MOST_INPUTS])
{
    char list[256];
    int count = 0;
    snprintf(list, sizeof list, "%s", c->inputs);
    for (char *part = strtok(list, " "); part && count < LARGE_MOST_INPUTS; part = strtok(NULL, " "), count++) {
        if (*part == '?')
            inputs[count] = (large_input){.name = "?"};
        else
            make_input(&inputs[count], part, count);
    }
    return count;
}

model_builder *large_model(const large_node *c, const large_input *inputs, int count)
{
    char names[128];
    int used = 0;
    model_builder *m = mb_begin(c->opset);
    if (strchr(c->op, ':')) {
        char domain[64];
        snprintf(domain, sizeof domain, "%.*s", (int)strcspn(c->op, ":"), c->op);
        mb_opset(m, domain, 1);
    }
    for (int i = 0; i < count; i++) {
        const large_input *in = &inputs[i];
        used += snprintf(names + used, sizeof names - (size_t)used, "%s%.7s", i ? " " : "", in->name);
        if (in->name[0] == '?') continue;
        if (in->constant)
            mb_initializer(m, in->name, in->value.dtype, in->dims, in->value.data);
        else
            mb_input(m, in->name, in->value.dtype, in->dims);
    }
    mb_node(m, c->op, names, c->outputs ? c->outputs : "y", c->attributes);
    char first[16];
    snprintf(first, sizeof first, "%.*s", c->outputs ? (int)strcspn(c->outputs, " ") : 1,
             c->outputs ? c->outputs : "y");
    mb_output(m, first, c->type ? type_of(*c->type) : inputs[0].value.dtype, NULL);
    return m;
}
