/* prony_operator_*: the operator table as a user sees it. The listing is made once, on first use, and kept. */
#include "base/alloc.h"
#include "loaders/onnx/model.h"
#include "ops/op.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static prony_operator_info *rows;
static size_t row_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The types of all kernels, separated by commas. */
static void list_types(char *text, size_t size, const prn_op *op)
{
    uint32_t types = 0;
    for (const prn_kernel *k = op->kernels; k->name; k++) {
        if (k->types == PRN_TYPE_ANY) {
            snprintf(text, size, "any");
            return;
        }
        types |= k->types;
    }
    size_t used = 0;
    *text = 0;
    for (int t = 1; t < PRONY_DTYPE_COUNT && used < size; t++)
        if (types & PRN_TYPE(t))
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "", prony_dtype_name((prony_dtype)t));
}

/* Names of all types, and a comma behind each. */
static size_t type_text_bytes(void)
{
    size_t bytes = 1;
    for (int t = 1; t < PRONY_DTYPE_COUNT; t++) bytes += strlen(prony_dtype_name((prony_dtype)t)) + 1;
    return bytes;
}

static size_t count_kernels(void)
{
    size_t count = 0;
    for (size_t i = 0; i < prn_op_count(); i++)
        for (const prn_kernel *k = prn_op_at(i)->kernels; k->name; k++) count++;
    return count;
}

/* A Gradient becomes nodes of other operators when shapes are bound (engine/bind/bind_gradient.c), so it has no row of its own. */
static void add_gradient(void)
{
    static const char *const none[] = {NULL};
    rows[row_count++] = (prony_operator_info){.domain = PRN_GRADIENT_DOMAIN,
                                              .name = "Gradient",
                                              .since_opset = 1,
                                              .types = "float32,float16,float64,bfloat16",
                                              .cost = "that of the nodes that take its place",
                                              .kernels = none};
}

/* Room for every row, kernel and type, whatever their number; without memory the listing is empty. */
static void make_listing(void)
{
    const size_t count = prn_op_count(), type_bytes = type_text_bytes();
    const char **kernels = prn_calloc(count_kernels() + 1, sizeof *kernels);
    char *types = prn_calloc(count, type_bytes);
    rows = prn_calloc(count + 1, sizeof *rows);
    if (!rows || !kernels || !types) {
        prn_free(rows);
        prn_free(kernels);
        prn_free(types);
        rows = NULL;
        return;
    }
    for (size_t i = 0; i < count; i++, types += type_bytes) {
        const prn_op *op = prn_op_at(i);
        prony_operator_info *row = &rows[row_count++];
        row->domain = prn_op_domain(op);
        row->name = op->name;
        row->since_opset = op->since_opset;
        row->cost = op->cost_text ? op->cost_text : "";
        row->kernels = kernels;
        for (const prn_kernel *k = op->kernels; k->name; k++) *kernels++ = k->name, row->kernel_count++;
        list_types(types, type_bytes, op);
        row->types = types;
    }
    add_gradient();
}

size_t prony_operator_count(void)
{
    pthread_once(&once, make_listing);
    return row_count;
}

const prony_operator_info *prony_operator_at(size_t index)
{
    pthread_once(&once, make_listing);
    return index < row_count ? &rows[index] : NULL;
}
