/* prony_operator_*: the public list of operators. The listing is made once, on first use, and kept. */
#include "loaders/onnx/model.h"
#include "ops/op.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static prony_operator_info *rows; /* in the pool; NULL: out of memory, and the listing is empty */
static size_t row_count;
static prn_bump listing;
static pthread_once_t once = PTHREAD_ONCE_INIT;

enum { TYPE_NAME_BYTES = 16 }; /* of the longest type's name, and a comma */

/* "float32,float16"; "any". NULL: out of memory. */
static const char *list_types(const prn_op *op)
{
    uint32_t types = 0;
    for (const prn_kernel *k = op->kernels; k->name; k++) {
        if (k->types == PRN_TYPE_ANY) return "any";
        types |= k->types;
    }
    const size_t size = PRONY_DTYPE_COUNT * TYPE_NAME_BYTES;
    size_t used = 0;
    char *text = prn_bump_alloc(&listing, size, 1);
    if (!text) return NULL;
    *text = '\0';
    for (int t = 1; t < PRONY_DTYPE_COUNT; t++)
        if (types & PRN_TYPE(t))
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "", prony_dtype_name((prony_dtype)t));
    return text;
}

/* A Gradient becomes nodes of other operators when shapes are bound (engine/bind/bind_gradient.c), so it has no row of
 * its own. */
static prony_operator_info gradient_row(void)
{
    static const char *const none[] = {NULL};
    return (prony_operator_info){.domain = PRN_GRADIENT_DOMAIN,
                                 .name = "Gradient",
                                 .since_opset = 1,
                                 .types = "float32,float16,float64,bfloat16",
                                 .cost = "cost of the nodes that replace it",
                                 .kernels = none};
}

static bool operators_fill_row(prony_operator_info *row, const prn_op *op)
{
    size_t count = 0;
    while (op->kernels[count].name) count++;
    const char **kernels = prn_bump_alloc(&listing, count + 1, sizeof *kernels);
    if (!kernels) return false;
    for (size_t k = 0; k < count; k++) kernels[k] = op->kernels[k].name;
    *row = (prony_operator_info){.domain = prn_op_domain(op),
                                 .name = op->name,
                                 .since_opset = op->since_opset,
                                 .types = list_types(op),
                                 .cost = op->cost_text ? op->cost_text : "",
                                 .kernels = kernels,
                                 .kernel_count = count};
    return row->types != NULL;
}

/* Every row and kernel of the table, and the Gradient. */
static void make_listing(void)
{
    const size_t count = prn_op_count();
    prony_operator_info *made = prn_bump_alloc(&listing, count + 1, sizeof *made);
    bool ok = made != NULL;
    for (size_t i = 0; i < count && ok; i++) ok = operators_fill_row(&made[i], prn_op_at(i));
    if (!ok) {
        prn_bump_release(&listing);
        return;
    }
    made[count] = gradient_row();
    rows = made;
    row_count = count + 1;
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
