/* Writes the row's node, attributes and tensors as protobuf; runs it with the row's data. */
#include "tests/support/op_case_model.h"
#include "tests/support/model_builder.h"

#include "base/attr.h"
#include "prony_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_dims(const prony_shape *shape, char *text, size_t size)
{
    size_t used = 0;
    *text = '\0';
    for (int d = 0; d < shape->rank && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", d ? "," : "", (long long)shape->dim[d]);
}

static void put_list(mb_bytes *attr, const prn_attr *from)
{
    for (size_t i = 0; i < from->count; i++) {
        if (from->type == PRN_ATTR_FLOATS)
            mb_put_float(attr, 7, from->floats[i]);
        else if (from->type == PRN_ATTR_INTS)
            mb_put_int(attr, 8, from->ints[i]);
        else
            mb_put_bytes(attr, 9, from->strings[i].data, from->strings[i].size);
    }
}

static void put_attribute(model_builder *m, const prn_attr *from)
{
    mb_bytes attr = {0};
    if (from->type == PRN_ATTR_TENSOR) {
        char dims[PRONY_MAX_RANK * 24];
        write_dims(&from->tensor->shape, dims, sizeof dims);
        mb_tensor(m, from->name, from->tensor->dtype, dims, from->tensor->data);
        return;
    }
    mb_put_text(&attr, 1, from->name);
    if (from->type == PRN_ATTR_INT)
        mb_put_int(&attr, 3, from->i);
    else if (from->type == PRN_ATTR_FLOAT)
        mb_put_float(&attr, 2, from->f);
    else if (from->type == PRN_ATTR_STRING)
        mb_put_bytes(&attr, 4, from->s.data, from->s.size);
    else
        put_list(&attr, from);
    mb_put_int(&attr, 20, from->type);
    mb_put_message(mb_raw_node(m), 5, &attr);
    mb_release(&attr);
}

/* Strings are always inputs: the builder writes raw data. */
static bool is_constant(const op_case_node *row, size_t i, op_case_form form)
{
    if (row->inputs[i]->dtype == PRONY_STRING) return false;
    return form == OP_CASE_ALL_CONSTANT || (form == OP_CASE_AS_WRITTEN && row->constant[i]);
}

static size_t output_count(const op_case_node *row)
{
    const prn_op *op = prn_op_find(row->node.domain, row->node.op_type, row->node.opset);
    const int least = op ? prn_op_outputs(op).least : 1;
    return row->output_count ? row->output_count : least > 1 ? (size_t)least : 1;
}

static void append(char *text, size_t size, const char *item)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used ? " " : "", item);
}

static void put_input(model_builder *m, const char *name, const prony_value *value, op_case_form form)
{
    char dims[PRONY_MAX_RANK * 24];
    write_dims(&value->shape, dims, sizeof dims);
    if (form == OP_CASE_FREE_DIMS) {
        *dims = '\0';
        for (int d = 0; d < value->shape.rank; d++) strcat(dims, d ? ",?" : "?");
    }
    mb_input(m, name, value->dtype, form == OP_CASE_FREE_RANK ? NULL : dims);
}

uint8_t *op_case_model(const op_case_node *row, op_case_form form, size_t *size)
{
    char inputs[OP_CASE_MAX_VALUES * 6] = "", outputs[OP_CASE_MAX_VALUES * 6] = "", op[256], name[24];
    bool plain = !*row->node.domain;
    model_builder *m = mb_begin(plain ? row->node.opset : 17);
    if (!plain) mb_opset(m, row->node.domain, row->node.opset);
    for (size_t i = 0; i < row->input_count; i++) {
        const prony_value *value = row->inputs[i];
        snprintf(name, sizeof name, "x%zu", i);
        append(inputs, sizeof inputs, value ? name : "?");
        if (!value) continue;
        if (is_constant(row, i, form)) {
            char dims[PRONY_MAX_RANK * 24];
            write_dims(&value->shape, dims, sizeof dims);
            mb_initializer(m, name, value->dtype, dims, value->data);
        } else
            put_input(m, name, value, form);
    }
    for (size_t k = 0; k < output_count(row); k++) {
        snprintf(name, sizeof name, "y%zu", k);
        append(outputs, sizeof outputs, name);
        mb_output(m, name, PRONY_UNDEFINED, NULL);
    }
    snprintf(op, sizeof op, "%s%s%s", row->node.domain, plain ? "" : "::", row->node.op_type);
    mb_node(m, op, inputs, outputs, "");
    mb_node_name(m, OP_CASE_NODE_NAME);
    for (size_t a = 0; a < row->attributes.count; a++) put_attribute(m, &row->attributes.items[a]);
    const void *bytes = mb_finish(m, size);
    uint8_t *copy = malloc(*size);
    if (!copy) abort();
    memcpy(copy, bytes, *size);
    mb_free(m);
    return copy;
}

static unsigned sum_bytes(const prony_value *value)
{
    unsigned sum = 0;
    for (size_t i = 0; i < value->count && value->kind != PRONY_TENSOR; i++) sum += sum_bytes(&value->items[i]);
    int64_t count = value->kind == PRONY_TENSOR ? prony_shape_numel(&value->shape) : 0;
    if (count < 0) abort();
    size_t bytes = value->dtype == PRONY_STRING ? 0 : prony_dtype_bytes(value->dtype, count);
    for (size_t i = 0; i < bytes; i++) sum += ((const uint8_t *)value->data)[i];
    for (int64_t i = 0; i < count && value->dtype == PRONY_STRING; i++) {
        const prony_string *text = (const prony_string *)value->data + i;
        for (size_t k = 0; k < text->size; k++) sum += (unsigned char)text->data[k];
    }
    return sum;
}

static void read_bytes(void *argument, size_t output, const prony_value *value)
{
    static volatile unsigned sink;
    (void)argument;
    (void)output;
    sink = sink + sum_bytes(value);
}

static prony_status run(prony_session *session, const op_case_node *row, op_case_form form,
                        void (*see)(void *argument, size_t output, const prony_value *value), void *argument,
                        prony_error *error)
{
    for (size_t i = 0; i < row->input_count; i++) {
        char name[24];
        snprintf(name, sizeof name, "x%zu", i);
        if (!row->inputs[i] || is_constant(row, i, form)) continue;
        prony_status status = prony_session_set_input(session, name, row->inputs[i], error);
        if (status != PRONY_OK) return status;
    }
    prony_status status = prony_session_run(session, error);
    for (size_t k = 0; status == PRONY_OK && k < output_count(row); k++) {
        const prony_value *value = NULL;
        status = prony_session_output(session, k, &value, error);
        if (status == PRONY_OK) see(argument, k, value);
    }
    return status;
}

prony_status op_case_try(const op_case_node *row, op_case_form form, prony_error *error)
{
    return op_case_show(row, form, read_bytes, NULL, error);
}

static int swallow(void *user, const char *data, size_t size)
{
    unsigned *sum = user;
    for (size_t i = 0; i < size; i++) *sum += (unsigned char)data[i];
    return 0;
}

/* Computing the cost may be refused; the run then gives the reason. */
static prony_status inspect(prony_model *model, prony_error *error)
{
    static volatile unsigned sink;
    unsigned sum = 0;
    prony_report *report = NULL;
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    prony_session_options threads = PRONY_SESSION_OPTIONS_INIT;
    threads.intra_op_threads = 1; /* counting the machine's cores would take longer than most cases */
    prony_status status = prony_inspect(&report, model, &threads, error);
    if (status != PRONY_OK) return status == PRONY_INTERNAL ? status : PRONY_OK;
    const prony_cost *cost = &prony_report_totals(report)->cost;
    if (cost->bytes_written < UINT32_MAX &&
        (cost->flops > INT64_MAX || cost->int_ops > INT64_MAX || cost->bytes_read > INT64_MAX))
        abort();
    status = prony_report_write(report, PRONY_FORMAT_TEXT, &options, swallow, &sum, error);
    if (status == PRONY_OK) status = prony_report_write(report, PRONY_FORMAT_JSON, &options, swallow, &sum, error);
    prony_report_release(report);
    sink = sink + sum;
    return status == PRONY_OUT_OF_RANGE ? PRONY_OK : status; /* JSON has no integers beyond 2^53 */
}

prony_status op_case_show(const op_case_node *row, op_case_form form,
                          void (*see)(void *argument, size_t output, const prony_value *value), void *argument,
                          prony_error *error)
{
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    size_t size;
    uint8_t *bytes = op_case_model(row, form, &size);
    options.intra_op_threads = 1;
    options.max_loop_trips = 1000;
    options.memory_limit_bytes = (uint64_t)64 << 20;
    prony_status status = prony_model_load_memory(&model, "case", bytes, size, NULL, error);
    if (status == PRONY_OK) status = inspect(model, error);
    if (status == PRONY_OK) status = prony_session_create(&session, model, &options, error);
    if (status == PRONY_OK) status = run(session, row, form, see, argument, error);
    prony_session_release(session);
    prony_model_release(model);
    free(bytes);
    return status;
}
