/* The operator table, attribute parsing, and what every family shares: cost arithmetic, shape inference of the common
 * kind, and input checks. The table is const; nothing here owns memory.
 * Invariant: whatever a model says reaches a family file only after its type was checked against the attribute rows. */
#include "ops/op.h"

#include "base/memory/alloc.h"
#include "base/memory/stack.h"

#include <pthread.h>
#include <stdio.h>
#include <math.h>
#include <string.h>

#define PRN_OPS(family) extern const prn_op prn_ops_##family[];
#include "ops/op_list.inc"
#undef PRN_OPS

static const prn_op *const families[] = {
#define PRN_OPS(family) prn_ops_##family,
#include "ops/op_list.inc"
#undef PRN_OPS
    NULL};

/* The row after `row` (NULL: the first); NULL: the end. */
static const prn_op *next_row(const prn_op *const **family, const prn_op *row)
{
    if (row && row[1].name) return row + 1;
    if (row) ++*family;
    return **family;
}

size_t prn_op_count(void)
{
    size_t count = 0;
    const prn_op *const *family = families;
    for (const prn_op *op = NULL; (op = next_row(&family, op));) count++;
    return count;
}

const prn_op *prn_op_at(size_t index)
{
    const prn_op *const *family = families;
    const prn_op *op = next_row(&family, NULL);
    while (op && index-- > 0) op = next_row(&family, op);
    return op;
}

/* Rows by name, made when the first one is looked for: binding and rewriting look for several a node. Rows of one name
 * stand behind one another, in the table's order, with none missing between a name's first slot and an empty one. */
static const prn_op *by_name[PRN_OP_SLOTS];
static bool by_name_complete; /* false: there are too many rows, and searches walk the table itself */
static pthread_once_t by_name_made = PTHREAD_ONCE_INIT;

static size_t op_list_slot_of(const char *name)
{
    uint32_t hash = UINT32_C(2166136261);
    for (; *name; name++) hash = (hash ^ (uint8_t)*name) * UINT32_C(16777619);
    return (hash ^ hash >> 15) & (PRN_OP_SLOTS - 1);
}

static void make_by_name(void)
{
    const prn_op *const *family = families;
    if (prn_op_count() > PRN_OP_SLOTS / 2) return; /* in a full table a search for a missing name would not end */
    for (const prn_op *op = NULL; (op = next_row(&family, op));) {
        size_t at = op_list_slot_of(op->name);
        while (by_name[at]) at = (at + 1) & (PRN_OP_SLOTS - 1);
        by_name[at] = op;
    }
    by_name_complete = true;
}

/* The better of two rows for a node: `op` if it serves and begins no earlier than `best`. */
static const prn_op *better_row(const prn_op *best, const prn_op *op, const char *domain, const char *name,
                                int64_t opset)
{
    if (op->since_opset > opset || (best && op->since_opset < best->since_opset)) return best;
    return strcmp(op->name, name) == 0 && strcmp(prn_op_domain(op), domain) == 0 ? op : best;
}

const prn_op *prn_op_find(const char *domain, const char *name, int64_t opset)
{
    const prn_op *best = NULL;
    pthread_once(&by_name_made, make_by_name);
    if (!by_name_complete) {
        const prn_op *const *family = families;
        for (const prn_op *op = NULL; (op = next_row(&family, op));) best = better_row(best, op, domain, name, opset);
        return best;
    }
    for (size_t at = op_list_slot_of(name); by_name[at]; at = (at + 1) & (PRN_OP_SLOTS - 1))
        best = better_row(best, by_name[at], domain, name, opset);
    return best;
}

/* ---- which kernel */

#define MOST_SETTLED 512 /* operands of a node whose layouts are asked for */

/* True if the kernel, offered plain inputs, takes them so and makes plain outputs. */
static PRN_OWN_FRAME bool stays_plain(const prn_kernel *kernel, const prony_context *context)
{
    const size_t in_count = context->input_count, count = in_count + context->output_count;
    if (!kernel->layouts || !kernel[1].name) return true;
    if (count > MOST_SETTLED) return false;
    prn_layout room[MOST_SETTLED];
    for (size_t i = 0; i < count; i++) room[i] = PRN_PLAIN;
    kernel->layouts(context, room, room + in_count);
    for (size_t i = 0; i < count; i++)
        if (room[i] != PRN_PLAIN) return false;
    return true;
}

static bool one_of(uint32_t types, prony_dtype dtype)
{
    return types == PRN_TYPE_ANY || (dtype < 32 && (types & PRN_TYPE(dtype)));
}

bool prn_kernel_takes_types(const prn_kernel *kernel, const prony_context *context)
{
    bool first = true;
    for (size_t i = 0; i < context->input_count && (first || kernel->float_types); i++) {
        const prony_value *in = context->inputs[i];
        if (!in) continue;
        if (first && !one_of(kernel->types, in->dtype)) return false;
        if (prn_dtype_is_float(in->dtype) && !one_of(kernel->float_types, in->dtype)) return false;
        first = false;
    }
    return true;
}

/* True if the row takes the node's types, precision and post-operations. */
static bool serves(const prn_kernel *k, const prony_context *context)
{
    return prn_kernel_takes_types(k, context) && (!k->precisions || (k->precisions >> context->precision & 1)) &&
           (!context->post_ops || k->post_ops);
}

/* True if the row serves this node, however fast. */
static bool op_list_takes(const prn_kernel *k, const prony_context *context)
{
    return serves(k, context) && (!k->supported || k->supported(context));
}

/* True if the row is one of the kind wanted, of those that a plan of plain layouts may take. */
static bool is_like(const prn_kernel *k, bool plain_only, const prn_kernel *like)
{
    if (plain_only && (k->own_layout || k->memory_space)) return false;
    if (!like) return true;
    return k->own_layout == like->own_layout && k->memory_space == like->memory_space &&
           strcmp(k->backend, like->backend) == 0 && (!like->name || strcmp(k->name, like->name) == 0);
}

enum { MOST_KERNELS = 64 }; /* rows of an operator that may predict, or refuse */
/* Predictions that differ by rounding alone are equal, and the first row wins: else the kernel of a tie, and the bits
 * of its results, would change with the batch that both predictions are multiplied by. */
#define TIE 1e-9

/* The rows of an operator for one node: the cycles that each predicts, asked once. */
typedef struct ranking {
    double cycles[MOST_KERNELS]; /* REFUSED, or UNKNOWN until asked */
} ranking;
#define UNKNOWN -1.0
#define REFUSED -2.0

static void ranking_begin(ranking *r)
{
    for (int i = 0; i < MOST_KERNELS; i++) r->cycles[i] = UNKNOWN;
}

/* The row to ask next: of successive rows that predict the one with the fewest cycles, else the first. */
static const prn_kernel *next_to_ask(const prn_op *op, const prony_context *context, bool plain_only,
                                     const prn_kernel *like, ranking *ranking, double *least)
{
    const prn_kernel *best = NULL;
    *least = INFINITY;
    for (const prn_kernel *k = op->kernels; k->name && k - op->kernels < MOST_KERNELS; k++) {
        double *cycles = &ranking->cycles[k - op->kernels];
        if (*cycles == REFUSED || !is_like(k, plain_only, like) || !serves(k, context)) continue;
        if (!k->predict || (like && like->name)) return best ? best : k; /* a row by name competes with none */
        if (*cycles == UNKNOWN) *cycles = k->predict(context);
        if (!(*cycles < (best ? *least * (1 - TIE) : *least))) continue;
        *least = *cycles;
        best = k;
    }
    return best;
}

const prn_kernel *prn_op_kernel(const prn_op *op, const prony_context *context, bool plain_only, const prn_kernel *like)
{
    double cycles;
    ranking ranking;
    ranking_begin(&ranking);
    for (const prn_kernel *k; (k = next_to_ask(op, context, plain_only, like, &ranking, &cycles));) {
        if ((!k->supported || k->supported(context)) && (!k->profitable || k->profitable(context)) &&
            (!plain_only || stays_plain(k, context)))
            return k;
        ranking.cycles[k - op->kernels] = REFUSED;
    }
    return NULL;
}

const prn_kernel *prn_op_kernel_named(const prn_op *op, const prony_context *context, const char *name)
{
    for (const prn_kernel *k = op->kernels; k->name; k++)
        if (strcmp(k->name, name) == 0) return serves(k, context) ? k : NULL;
    return NULL;
}

const prn_kernel *prn_op_next_kernel(const prn_op *op, const prony_context *context, const prn_kernel *chosen,
                                     double *chosen_cycles, double *cycles)
{
    ranking ranking;
    ranking_begin(&ranking);
    *chosen_cycles = chosen->predict ? chosen->predict(context) : -1.0;
    for (const prn_kernel *k; (k = next_to_ask(op, context, false, NULL, &ranking, cycles)) && k->predict;) {
        const bool asked =
            k->supported && strcmp(k->backend, "native") == 0; /* a library's row makes descriptors for it */
        if (k != chosen && (!asked || k->supported(context))) return k;
        ranking.cycles[k - op->kernels] = REFUSED;
    }
    return NULL;
}

size_t prn_op_kernels(const prn_op *op, const prony_context *context, const prn_kernel **out, size_t most)
{
    size_t count = 0;
    for (const prn_kernel *k = op->kernels; k->name && count < most; k++)
        if (op_list_takes(k, context)) out[count++] = k;
    return count;
}

/* ---- attributes */

static prn_attr_type wanted_attr(prn_param_type type)
{
    static const prn_attr_type wanted[] = {
        [PRN_PARAM_INT] = PRN_ATTR_INT,     [PRN_PARAM_FLOAT] = PRN_ATTR_FLOAT,   [PRN_PARAM_STRING] = PRN_ATTR_STRING,
        [PRN_PARAM_INTS] = PRN_ATTR_INTS,   [PRN_PARAM_FLOATS] = PRN_ATTR_FLOATS, [PRN_PARAM_TENSOR] = PRN_ATTR_TENSOR,
        [PRN_PARAM_GRAPH] = PRN_ATTR_GRAPH,
    };
    return wanted[type];
}

static void param_default(const prn_param *param, char *field)
{
    switch (param->type) {
    case PRN_PARAM_INT:
        *(int64_t *)(void *)field = param->int_default;
        break;
    case PRN_PARAM_FLOAT:
        *(float *)(void *)field = param->float_default;
        break;
    case PRN_PARAM_STRING:
        *(const char **)(void *)field = param->string_default;
        break;
    case PRN_PARAM_INTS:
    case PRN_PARAM_FLOATS:
    case PRN_PARAM_TENSOR:
    case PRN_PARAM_GRAPH:
        break; /* zero bytes are their absence */
    }
}

/* The address of an empty list, so that copying none of it needs no exception. */
static const int64_t no_ints[1];
static const float no_floats[1];

/* Stores an attribute of the checked type, or the default where `attr` is NULL, into its field of the parameters. */
static void param_set(const prn_param *param, const prn_attr *attr, char *field)
{
    switch (param->type) {
    case PRN_PARAM_INT:
        *(int64_t *)(void *)field = attr->type == PRN_ATTR_FLOAT ? (int64_t)attr->f : attr->i;
        break;
    case PRN_PARAM_FLOAT:
        *(float *)(void *)field = attr->f;
        break;
    case PRN_PARAM_STRING:
        *(const char **)(void *)field = attr->s.data;
        break;
    case PRN_PARAM_INTS:
        *(prn_ints *)(void *)field = (prn_ints){attr->count ? attr->ints : no_ints, attr->count, true};
        break;
    case PRN_PARAM_FLOATS:
        *(prn_floats *)(void *)field = (prn_floats){attr->count ? attr->floats : no_floats, attr->count, true};
        break;
    case PRN_PARAM_TENSOR:
        *(const prony_value **)(void *)field = attr->tensor;
        break;
    case PRN_PARAM_GRAPH:
        *(const struct prn_graph **)(void *)field = attr->graph;
        break;
    }
}

/* An empty list carries no type of its own in some encodings, so it passes for either list. Opset 1 writes some whole
 * numbers as floats. */
static bool attr_fits(const prn_param *param, const prn_attr *attr, const prony_node *node)
{
    if (attr->type == wanted_attr(param->type)) return true;
    switch (param->type) {
    case PRN_PARAM_INT:
        return attr->type == PRN_ATTR_FLOAT && node->opset == 1 && node->domain[0] == '\0' &&
               fabsf(attr->f) < 0x1p24f && attr->f == truncf(attr->f);
    case PRN_PARAM_TENSOR:
        return attr->type == PRN_ATTR_SPARSE_TENSOR && attr->tensor;
    case PRN_PARAM_INTS:
        return attr->type == PRN_ATTR_FLOATS && attr->count == 0;
    case PRN_PARAM_FLOATS:
        return attr->type == PRN_ATTR_INTS && attr->count == 0;
    default:
        return false;
    }
}

prony_status prn_params_parse(const prn_op *op, const prony_node *node, void *params, prony_error *error)
{
    if (op->params_bytes) memset(params, 0, op->params_bytes);
    for (const prn_param *param = op->params; param && param->name; param++) {
        char *field = (char *)params + param->offset;
        const prn_attr *attr = node->attributes ? prn_attr_find(node->attributes, param->name) : NULL;
        if (!attr) {
            if (param->required) {
                return prn_fail(error, PRONY_INVALID_MODEL, "node '%s' (%s): attribute '%s' is missing", node->name,
                                node->op_type, param->name);
            }
            param_default(param, field);
            continue;
        }
        if (!attr_fits(param, attr, node)) {
            return prn_fail(error, PRONY_INVALID_MODEL, "node '%s' (%s): attribute '%s' is of type %s, wanted %s",
                            node->name, node->op_type, param->name, prn_attr_type_name(attr->type),
                            prn_attr_type_name(wanted_attr(param->type)));
        }
        param_set(param, attr, field);
    }
    return PRONY_OK;
}

/* ---- cost */

prony_status prn_cost_none(const prony_context *context, prony_cost *cost)
{
    (void)context;
    (void)cost;
    return PRONY_OK;
}

prony_status prn_check_tensor(const prony_context *context, size_t input)
{
    const prony_value *in = prn_input(context, input);
    if (!in || in->kind == PRONY_TENSOR) return PRONY_OK;
    return prony_fail(context, PRONY_UNSUPPORTED, "input %zu is a %s; only tensors are supported here", input,
                      in->kind == PRONY_SEQUENCE ? "sequence" : "optional");
}

prony_status prn_prepared_keep(const prony_context *context, const void *problem, size_t bytes, prn_prepared *out)
{
    out->state = prn_alloc(bytes);
    if (!out->state) return prn_no_memory(context->error);
    memcpy(out->state, problem, bytes);
    return PRONY_OK;
}

void prn_cost_fact(prony_cost *cost, const char *key, int64_t value)
{
    if (cost->fact_count < PRONY_MAX_FACTS) cost->facts[cost->fact_count] = (prony_fact){key, value};
    cost->fact_count++;
}

prony_status prn_cost_facts_check(const prony_context *context, prony_cost *cost)
{
    const uint32_t count = cost->fact_count;
    if (count <= PRONY_MAX_FACTS) return PRONY_OK;
    cost->fact_count = 0;
    return prony_fail(context, PRONY_LIMIT, "%u facts of its cost; at most %d are possible", (unsigned)count,
                      PRONY_MAX_FACTS);
}

static prony_status cost_overflow(const prony_context *context)
{
    return prony_fail(context, PRONY_LIMIT, "the operation count does not fit into 64 bits");
}

static prony_status count_operations(const prony_context *context, prony_cost *cost, bool is_float, uint64_t count,
                                     uint64_t per_element, uint64_t special_per_element)
{
    uint64_t *total = is_float ? &cost->flops : &cost->int_ops;
    uint64_t operations, special;
    if (!prn_mul_u64(&operations, count, per_element) || !prn_add_u64(total, *total, operations) ||
        !prn_mul_u64(&special, count, special_per_element)) {
        return cost_overflow(context);
    }
    if (is_float && !prn_add_u64(&cost->special, cost->special, special)) return cost_overflow(context);
    return PRONY_OK;
}

prony_status prn_cost_elementwise(const prony_context *context, prony_cost *cost, uint64_t count, uint64_t per_element,
                                  uint64_t special_per_element)
{
    const prony_value *in = prn_input(context, 0), *out = prn_output(context, 0);
    bool is_float = (in && prn_dtype_is_float(in->dtype)) || (out && prn_dtype_is_float(out->dtype));
    return count_operations(context, cost, is_float, count, per_element, special_per_element);
}

prony_status prn_cost_floats(const prony_context *context, prony_cost *cost, uint64_t count, uint64_t per_element,
                             uint64_t special_per_element)
{
    return count_operations(context, cost, true, count, per_element, special_per_element);
}

prony_status prn_cost_macs(const prony_context *context, prony_cost *cost, uint64_t macs, bool integer)
{
    uint64_t *total = integer ? &cost->int_ops : &cost->flops;
    uint64_t operations;
    if (!prn_mul_u64(&operations, macs, 2) || !prn_add_u64(total, *total, operations) ||
        !prn_add_u64(&cost->macs, cost->macs, macs) || !prn_add_u64(&cost->madds, cost->madds, macs)) {
        return cost_overflow(context);
    }
    return PRONY_OK;
}

bool prn_cost_add(prony_cost *to, const prony_cost *from)
{
    return prn_add_u64(&to->macs, to->macs, from->macs) && prn_add_u64(&to->madds, to->madds, from->madds) &&
           prn_add_u64(&to->flops, to->flops, from->flops) && prn_add_u64(&to->special, to->special, from->special) &&
           prn_add_u64(&to->int_ops, to->int_ops, from->int_ops) &&
           prn_add_u64(&to->bytes_read, to->bytes_read, from->bytes_read) &&
           prn_add_u64(&to->bytes_written, to->bytes_written, from->bytes_written) &&
           prn_add_u64(&to->parameters, to->parameters, from->parameters);
}

static bool add_times(uint64_t *to, uint64_t from, uint64_t times)
{
    uint64_t product;
    return prn_mul_u64(&product, from, times) && prn_add_u64(to, *to, product);
}

bool prn_cost_add_times(prony_cost *to, const prony_cost *from, uint64_t times)
{
    return add_times(&to->macs, from->macs, times) && add_times(&to->madds, from->madds, times) &&
           add_times(&to->flops, from->flops, times) && add_times(&to->special, from->special, times) &&
           add_times(&to->int_ops, from->int_ops, times) && add_times(&to->bytes_read, from->bytes_read, times) &&
           add_times(&to->bytes_written, from->bytes_written, times) &&
           add_times(&to->parameters, from->parameters, times);
}

/* ---- shape inference */

void prn_set_output(const prony_context *context, size_t i, prony_dtype dtype, const prony_shape *shape)
{
    prony_value *out = prn_output(context, i);
    if (!out) return;
    out->kind = PRONY_TENSOR;
    out->dtype = dtype;
    out->shape = *shape;
}

prony_status prn_infer_same(const prony_context *context)
{
    prn_set_output(context, 0, context->inputs[0]->dtype, &context->inputs[0]->shape);
    return PRONY_OK;
}

prony_status prn_infer_broadcast(const prony_context *context)
{
    const prony_value *first = context->inputs[0];
    prony_shape shape = first->shape;
    for (size_t i = 1; i < context->input_count; i++) {
        const prony_value *in = context->inputs[i];
        char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
        if (!in) continue;
        if (in->dtype != first->dtype) {
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s but input 0 is %s", i,
                              prn_value_text(in, right), prn_value_text(first, left));
        }
        prony_shape merged;
        if (!prn_shape_broadcast(&merged, &shape, &in->shape)) {
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu of shape %s does not broadcast with %s", i,
                              prn_shape_text(&in->shape, right), prn_shape_text(&shape, left));
        }
        shape = merged;
    }
    prn_set_output(context, 0, first->dtype, &shape);
    return PRONY_OK;
}

/* ---- checks */

prony_status prn_check_type(const prony_context *context, size_t input, uint32_t types)
{
    const prony_value *in = prn_input(context, input);
    if (!in || types == PRN_TYPE_ANY) return PRONY_OK;
    if (in->kind == PRONY_TENSOR && in->dtype < PRONY_DTYPE_COUNT && (types & PRN_TYPE(in->dtype))) return PRONY_OK;
    char wanted[256] = "", came[PRN_SHAPE_TEXT_BYTES];
    size_t used = 0;
    for (int dtype = 1; dtype < PRONY_DTYPE_COUNT && used < sizeof wanted; dtype++) {
        if (!(types & PRN_TYPE(dtype))) continue;
        int wrote = snprintf(wanted + used, sizeof wanted - used, "%s%s", used ? ", " : "",
                             prony_dtype_name((prony_dtype)dtype));
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted a tensor of %s", input,
                      in->kind == PRONY_TENSOR ? prn_value_text(in, came) : "no tensor", wanted);
}

prony_status prn_check_rank(const prony_context *context, size_t input, int min_rank, int max_rank)
{
    const prony_value *in = prn_input(context, input);
    if (!in || (in->shape.rank >= min_rank && in->shape.rank <= max_rank)) return PRONY_OK;
    char came[PRN_SHAPE_TEXT_BYTES];
    if (min_rank == max_rank) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted rank %d", input,
                          prn_value_text(in, came), min_rank);
    }
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted rank %d to %d", input,
                      prn_value_text(in, came), min_rank, max_rank);
}

/* Reads an input of int32 or int64 numbers, at most `capacity`; `known` is false while its data is missing. An absent
 * input has count 0. */
prony_status prn_input_ints(const prony_context *context, size_t input, int64_t *out, size_t capacity, size_t *count,
                            bool *known)
{
    const prony_value *in = prn_input(context, input);
    *count = 0;
    *known = true;
    if (!in) return PRONY_OK;
    PRN_TRY(prn_check_type(context, input, PRN_TYPE(PRONY_INT32) | PRN_TYPE(PRONY_INT64)));
    int64_t elements = prony_shape_numel(&in->shape);
    if (elements < 0) {
        *known = false;
        return PRONY_OK;
    }
    if ((uint64_t)elements > capacity) {
        return prony_fail(context, PRONY_LIMIT, "input %zu has %lld elements, wanted at most %zu", input,
                          (long long)elements, capacity);
    }
    *count = (size_t)elements;
    *known = in->data || elements == 0;
    if (!*known) return PRONY_OK;
    for (size_t i = 0; i < *count; i++) {
        out[i] = in->dtype == PRONY_INT64 ? ((const int64_t *)in->data)[i] : ((const int32_t *)in->data)[i];
    }
    return PRONY_OK;
}
