/* prony_operator_*: the operator table as a user sees it. The listing is made once, on first use, and kept. */
#include "loaders/onnx/model.h"
#include "ops/op.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Enough for every row and kernel of the table; checked when the listing is made. */
#define MAX_ROWS 512
#define MAX_KERNELS 16

static prony_operator_info rows[MAX_ROWS];
static const char *kernel_names[MAX_ROWS][MAX_KERNELS];
static char type_names[MAX_ROWS][192];
static size_t row_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

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

/* A Gradient becomes nodes of other operators when shapes are bound (engine/bind/bind_gradient.c), so it has no row of its own. */
static void add_gradient(void)
{
    static const char *const none[] = {NULL};
    if (row_count == MAX_ROWS) return;
    rows[row_count++] = (prony_operator_info){.domain = PRN_GRADIENT_DOMAIN,
                                              .name = "Gradient",
                                              .since_opset = 1,
                                              .types = "float32,float16,float64,bfloat16",
                                              .cost = "that of the nodes that take its place",
                                              .kernels = none};
}

static void make_listing(void)
{
    for (size_t i = 0; i < prn_op_count() && row_count < MAX_ROWS; i++) {
        const prn_op *op = prn_op_at(i);
        prony_operator_info *row = &rows[row_count];
        row->domain = prn_op_domain(op);
        row->name = op->name;
        row->since_opset = op->since_opset;
        row->cost = op->cost_text ? op->cost_text : "";
        for (const prn_kernel *k = op->kernels; k->name && row->kernel_count < MAX_KERNELS; k++)
            kernel_names[row_count][row->kernel_count++] = k->name;
        row->kernels = kernel_names[row_count];
        list_types(type_names[row_count], sizeof type_names[row_count], op);
        row->types = type_names[row_count];
        row_count++;
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
