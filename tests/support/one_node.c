/* Models of one node, for tests of counts; see the header. */
#include "one_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int64_t elements_of(const char *dims)
{
    int64_t n = 1;
    for (const char *p = dims; *p;) {
        n *= strtoll(p, (char **)&p, 10);
        if (*p == ',') p++;
    }
    return n;
}

prony_report *inspect_built(model_builder *m)
{
    size_t size;
    prony_error error = {0};
    prony_model *model = NULL;
    prony_report *report = NULL;
    const void *bytes = mb_finish(m, &size);
    prony_status status = prony_model_load_memory(&model, "test", bytes, size, NULL, &error);
    if (status == PRONY_OK) status = prony_inspect(&report, model, NULL, &error);
    if (status != PRONY_OK) fail_msg("%s", error.message);
    prony_model_release(model);
    return report;
}

void zero_weight(model_builder *m, const char *name, const char *dims)
{
    void *data = calloc((size_t)elements_of(dims) + 1, sizeof(float));
    assert_non_null(data);
    mb_initializer(m, name, PRONY_FLOAT32, dims, data);
    free(data);
}

model_builder *one_node(const char *op, int64_t opset, const char *attributes, const char *inputs)
{
    char list[256], names_of_inputs[256] = "";
    model_builder *m = mb_begin(opset);
    snprintf(list, sizeof list, "%s", inputs);
    int i = 0;
    for (char *part = strtok(list, " "); part; part = strtok(NULL, " "), i++) {
        char name[16];
        snprintf(name, sizeof name, "i%d", i);
        snprintf(names_of_inputs + strlen(names_of_inputs), 24, "%s%s", i ? " " : "", name);
        if (*part == '!')
            zero_weight(m, name, part + 1);
        else
            mb_input(m, name, PRONY_FLOAT32, part);
    }
    mb_node(m, op, names_of_inputs, "y", attributes);
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    return m;
}
