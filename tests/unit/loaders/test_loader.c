/* The loader on sound models: every field arrives, names are resolved and nodes ordered, weights stay in the file. */
#include "failure_trace.h"
#include "tests/support/loader_checks.h"
#include "tests/support/model_walk.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static prn_model_file *must_open(const char *path)
{
    prn_model_file *file = NULL;
    prony_error error = {0};
    if (prn_model_open(&file, path, NULL, false, &error) != PRONY_OK) fail_msg("%s", error.message);
    return file;
}

static const prn_attr *attr_of(const prn_model_node *node, const char *name)
{
    const prn_attr *attr = prn_attr_find(&node->attributes, name);
    if (!attr) fail_msg("no attribute %s", name);
    return attr;
}

/* ---- models of others ---- */

static void test_every_real_model_loads(void **state)
{
    (void)state;
    skip_without_test_data();
    glob_t found;
    assert_int_equal(glob(TEST_DATA "/*/test_*/model.onnx", 0, NULL, &found), 0);
    size_t nodes = 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        SCENARIO(i);
        prn_model_file *file = must_open(found.gl_pathv[i]);
        assert_string_equal(file->name, found.gl_pathv[i]);
        (void)model_walk(file);
        nodes += file->graph.node_count;
        prn_model_close(file);
    }
    assert_true(found.gl_pathc > 1000 && nodes > found.gl_pathc);
    globfree(&found);
}

static void test_real_fields(void **state)
{
    (void)state;
    skip_without_test_data();
    prn_model_file *file = must_open(TEST_DATA "/node/test_conv_with_strides_padding/model.onnx");
    assert_in_range(file->ir_version, 6, 99); /* ONNX writes its cases anew for each release */
    assert_in_range(prn_model_opset(file, "ai.onnx"), 11, 999);
    assert_int_equal(prn_model_opset(file, "com.example"), 0);
    assert_string_equal(file->producer, "backend-test");
    assert_int_equal(file->graph.node_count, 1);
    assert_string_equal(file->graph.nodes[0].op_type, "Conv");
    const prn_attr *pads = attr_of(&file->graph.nodes[0], "pads");
    assert_int_equal(pads->type, PRN_ATTR_INTS);
    assert_int_equal(pads->count, 4);
    for (size_t i = 0; i < 4; i++) assert_int_equal(pads->ints[i], 1);
    prn_model_close(file);

    file = must_open(TEST_DATA "/node/test_if/model.onnx");
    const prn_attr *branch = attr_of(&file->graph.nodes[0], "then_branch");
    assert_int_equal(branch->type, PRN_ATTR_GRAPH);
    assert_ptr_equal(branch->graph->parent, &file->graph);
    assert_string_equal(branch->graph->nodes[0].op_type, "Constant");
    prn_model_close(file);

    file = must_open(TEST_DATA "/pytorch-operator/test_operator_conv/model.onnx");
    assert_int_equal(file->ir_version, 3);
    assert_int_equal(file->graph.initializer_count, 1);
    assert_string_equal(file->graph.initializers[0].name, "1");
    assert_int_equal(file->graph.input_count, 1);
    assert_string_equal(file->graph.inputs[0].name, "0");
    prn_model_close(file);
}

/* ---- fields ---- */

static void test_ports(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_opset(m, "ai.onnx.ml", 2);
    mb_opset(m, "ai.onnx", 13);
    mb_input(m, "a", PRONY_FLOAT32, "N,3,?,-1");
    mb_input(m, "b", PRONY_INT64, "");
    mb_input(m, "c", PRONY_BOOL, NULL);
    mb_node(m, "Sum", "a b c", "d", "");
    mb_output(m, "d", PRONY_FLOAT64, "2,0");
    prn_model_file *file = must_load(m);
    const prn_graph *g = &file->graph;
    assert_int_equal(file->opset_count, 2);
    assert_int_equal(prn_model_opset(file, "ai.onnx.ml"), 2);
    assert_int_equal(g->input_count, 3);
    assert_int_equal(g->inputs[0].shape.rank, 4);
    const int64_t dims[] = {-1, 3, -1, -1};
    assert_memory_equal(g->inputs[0].shape.dim, dims, sizeof dims);
    assert_string_equal(g->inputs[0].dim_names[0], "N");
    for (int d = 1; d < 4; d++) assert_null(g->inputs[0].dim_names[d]);
    assert_int_equal(g->inputs[1].shape.rank, 0);
    assert_int_equal(g->inputs[1].dtype, PRONY_INT64);
    assert_int_equal(g->inputs[2].shape.rank, -1);
    assert_int_equal(g->outputs[0].shape.dim[1], 0);
    assert_int_equal(g->outputs[0].dtype, PRONY_FLOAT64);
    prn_model_close(file);
    mb_free(m);
}

/* optional(sequence(tensor(float16)[2])) as a port. */
static void test_nested_types(void **state)
{
    (void)state;
    mb_bytes port = {0}, type = {0}, inner = {0}, shape = {0}, dim = {0};
    mb_put_int(&dim, 1, 2);
    mb_put_message(&shape, 1, &dim);
    mb_put_int(&inner, 1, PRONY_FLOAT16);
    mb_put_message(&inner, 2, &shape);
    mb_put_message(&type, 1, &inner); /* tensor type */
    mb_put_message(&inner, 1, &type);
    mb_put_message(&type, 4, &inner); /* sequence type */
    mb_put_message(&inner, 1, &type);
    mb_put_message(&type, 9, &inner); /* optional type */
    mb_put_text(&port, 1, "x");
    mb_put_message(&port, 2, &type);
    model_builder *m = mb_begin(15);
    mb_put_message(mb_raw_graph(m), 11, &port);
    prn_model_file *file = must_load(m);
    assert_int_equal(file->graph.inputs[0].kind, PRONY_OPTIONAL);
    assert_int_equal(file->graph.inputs[0].dtype, PRONY_FLOAT16);
    assert_int_equal(file->graph.inputs[0].shape.dim[0], 2);
    prn_model_close(file);
    mb_free(m);
    mb_bytes *all[] = {&port, &type, &inner, &shape, &dim};
    for (size_t i = 0; i < 5; i++) mb_release(all[i]);
}

static void test_attributes(void **state)
{
    (void)state;
    const float tensor_data[] = {1.5f, -2};
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1");
    mb_node(m, "ai.onnx::Op", "x ? x ? ?", "y ?",
            "i=-7 f=0.25 s='text' ints=[1,-2,3] floats=[0.5,1e3] strings=['a','','bc'] none=[]");
    mb_tensor(m, "t", PRONY_FLOAT32, "2", tensor_data);
    mb_node_name(m, "node");
    mb_graph_begin(m, "g");
    mb_node(m, "Relu", "x", "r", "");
    mb_output(m, "r", PRONY_FLOAT32, NULL);
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    prn_model_file *file = must_load(m);
    const prn_model_node *node = &file->graph.nodes[0];
    assert_string_equal(node->name, "node");
    assert_string_equal(node->domain, "");
    assert_int_equal(node->input_count, 3);
    assert_string_equal(node->inputs[1], "");
    assert_int_equal(node->output_count, 2);
    assert_int_equal(attr_of(node, "i")->i, -7);
    assert_true(attr_of(node, "f")->f == 0.25f);
    assert_string_equal(attr_of(node, "s")->s.data, "text");
    assert_int_equal(attr_of(node, "s")->s.size, 4);
    const prn_attr *attr = attr_of(node, "ints");
    assert_int_equal(attr->count, 3);
    assert_int_equal(attr->ints[1], -2);
    attr = attr_of(node, "floats");
    assert_int_equal(attr->count, 2);
    assert_true(attr->floats[0] == 0.5f && attr->floats[1] == 1000.0f);
    attr = attr_of(node, "strings");
    assert_int_equal(attr->count, 3);
    assert_int_equal(attr->strings[1].size, 0);
    assert_string_equal(attr->strings[2].data, "bc");
    assert_int_equal(attr_of(node, "none")->type, PRN_ATTR_INTS);
    assert_int_equal(attr_of(node, "none")->count, 0);
    attr = attr_of(node, "t");
    assert_int_equal(attr->tensor->shape.dim[0], 2);
    assert_memory_equal(attr->tensor->data, tensor_data, sizeof tensor_data);
    assert_string_equal(attr_of(node, "g")->graph->outputs[0].name, "r");
    (void)model_walk(file);
    prn_model_close(file);
    mb_free(m);
}

/* Lists of messages, a type, packed numbers, and a type that has to be inferred from the value. */
static void test_rarer_attributes(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_node(m, "Op", "", "y", "");
    mb_bytes attr = {0}, inner = {0}, type = {0}, *node = mb_raw_node(m);
    mb_put_text(&attr, 1, "tensors");
    for (int i = 0; i < 2; i++) {
        mb_put_int(&inner, 2, PRONY_INT32);
        mb_put_int(&inner, 5, 40 + i);
        mb_put_message(&attr, 10, &inner);
    }
    mb_put_int(&attr, 20, PRN_ATTR_TENSORS);
    mb_put_message(node, 5, &attr);

    mb_put_text(&attr, 1, "type");
    mb_put_int(&inner, 1, PRONY_UINT8);
    mb_put_message(&type, 1, &inner);
    mb_put_message(&attr, 14, &type);
    mb_put_int(&attr, 20, PRN_ATTR_TYPE_PROTO);
    mb_put_message(node, 5, &attr);

    mb_put_text(&attr, 1, "packed");
    mb_put_varint(&inner, 300);
    mb_put_varint(&inner, (uint64_t)-1);
    mb_put_message(&attr, 8, &inner);
    mb_put_int(&attr, 8, 5);
    mb_put_int(&attr, 20, PRN_ATTR_INTS);
    mb_put_message(node, 5, &attr);

    mb_put_text(&attr, 1, "untyped");
    mb_put_float(&attr, 2, 3.0f);
    mb_put_message(node, 5, &attr);

    mb_put_text(&attr, 1, "graphs");
    for (int i = 0; i < 2; i++) {
        mb_put_text(&inner, 2, i ? "second" : "first");
        mb_put_message(&attr, 11, &inner);
    }
    mb_put_int(&attr, 20, PRN_ATTR_GRAPHS);
    mb_put_message(node, 5, &attr);

    prn_model_file *file = must_load(m);
    const prn_model_node *op = &file->graph.nodes[0];
    const prn_attr *tensors = attr_of(op, "tensors");
    assert_int_equal(tensors->count, 2);
    assert_int_equal(*(const int32_t *)tensors->tensor[1].data, 41);
    assert_int_equal(attr_of(op, "type")->tensor->dtype, PRONY_UINT8);
    assert_null(attr_of(op, "type")->tensor->data);
    const prn_attr *packed = attr_of(op, "packed");
    assert_int_equal(packed->count, 3);
    assert_true(packed->ints[0] == 300 && packed->ints[1] == -1 && packed->ints[2] == 5);
    assert_int_equal(attr_of(op, "untyped")->type, PRN_ATTR_FLOAT);
    assert_int_equal(attr_of(op, "graphs")->count, 2);
    assert_string_equal(attr_of(op, "graphs")->graph[1].name, "second");
    prn_model_close(file);
    mb_release(&attr);
    mb_release(&inner);
    mb_release(&type);
    mb_free(m);
}

/* ---- names and order ---- */

static void test_initializer_that_is_an_input(void **state)
{
    (void)state;
    const float one = 1;
    model_builder *m = mb_begin(7);
    mb_input(m, "a", PRONY_FLOAT32, "");
    mb_input(m, "w", PRONY_FLOAT32, "");
    mb_input(m, "b", PRONY_FLOAT32, "");
    mb_initializer(m, "w", PRONY_FLOAT32, "", &one);
    mb_initializer(m, "v", PRONY_FLOAT32, "", &one);
    mb_node(m, "Sum", "a w b v", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "");
    prn_model_file *file = must_load(m);
    assert_int_equal(file->graph.input_count, 2);
    assert_string_equal(file->graph.inputs[0].name, "a");
    assert_string_equal(file->graph.inputs[1].name, "b");
    assert_int_equal(file->graph.initializer_count, 2);
    prn_model_close(file);
    mb_free(m);
}

static void assert_order(const prn_graph *graph, const char *ops)
{
    char text[64] = "";
    for (size_t i = 0; i < graph->node_count; i++) strcat(text, graph->nodes[i].op_type);
    assert_string_equal(text, ops);
}

static void test_nodes_are_sorted(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1");
    mb_node(m, "A", "c x", "a", "");
    mb_node(m, "B", "x", "b", "");
    mb_node(m, "C", "d", "c", "");
    mb_node(m, "D", "b", "d", "");
    mb_node(m, "E", "x", "e", "");
    mb_output(m, "a", PRONY_FLOAT32, "1");
    prn_model_file *file = must_load(m);
    assert_order(&file->graph, "BDCAE");
    assert_int_equal(file->graph.nodes[3].file_index, 0);
    prn_model_close(file);
    mb_free(m);
}

static void test_sorted_nodes_stay(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1");
    mb_node(m, "A", "x", "a", "");
    mb_node(m, "B", "x", "b", "");
    mb_node(m, "C", "b a", "c", "");
    mb_node(m, "D", "a c", "d", "");
    mb_output(m, "d", PRONY_FLOAT32, "1");
    prn_model_file *file = must_load(m);
    assert_order(&file->graph, "ABCD");
    prn_model_close(file);
    mb_free(m);
}

/* The If's inner graph uses "late", which a node behind the If makes: a dependency like any other. */
static void test_captured_names(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_BOOL, "");
    mb_node(m, "If", "x", "y", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "If", "x", "inner", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "Add", "late hidden", "z", "");
    mb_output(m, "z", PRONY_FLOAT32, NULL);
    mb_graph_end(m);
    mb_node(m, "Neg", "late", "hidden", "");
    mb_output(m, "inner", PRONY_FLOAT32, NULL);
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "Relu", "late", "x", ""); /* its x is another one */
    mb_output(m, "x", PRONY_FLOAT32, NULL);
    mb_graph_end(m);
    mb_node(m, "Late", "x", "late", "");
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    prn_model_file *file = must_load(m);
    assert_order(&file->graph, "LateIf");
    assert_int_equal(file->graph.captured_count, 0);
    const prn_model_node *outer = &file->graph.nodes[1];
    const prn_graph *then_graph = attr_of(outer, "then_branch")->graph;
    assert_order(then_graph, "NegIf");
    assert_int_equal(then_graph->captured_count, 2);
    assert_string_equal(then_graph->captured[0], "late");
    assert_string_equal(then_graph->captured[1], "x");
    const prn_graph *inner = attr_of(&then_graph->nodes[1], "then_branch")->graph;
    assert_int_equal(inner->captured_count, 2);
    assert_string_equal(inner->captured[0], "hidden");
    assert_string_equal(inner->captured[1], "late");
    assert_ptr_equal(inner->parent, then_graph);
    const prn_graph *else_graph = attr_of(outer, "else_branch")->graph;
    assert_int_equal(else_graph->captured_count, 1);
    (void)model_walk(file);
    prn_model_close(file);
    mb_free(m);
}

static void test_functions(void **state)
{
    (void)state;
    mb_bytes function = {0}, node = {0}, attr = {0}, opset = {0};
    mb_put_text(&function, 1, "Twice");
    mb_put_text(&function, 10, "custom");
    mb_put_text(&function, 13, "over");
    mb_put_text(&function, 4, "x");
    mb_put_text(&function, 5, "y");
    mb_put_text(&function, 6, "alpha");
    mb_put_text(&attr, 1, "beta");
    mb_put_float(&attr, 2, 2.0f);
    mb_put_int(&attr, 20, PRN_ATTR_FLOAT);
    mb_put_message(&function, 11, &attr);
    mb_put_text(&opset, 1, "");
    mb_put_int(&opset, 2, 18);
    mb_put_message(&function, 9, &opset);
    mb_put_text(&node, 1, "t");
    mb_put_text(&node, 2, "y");
    mb_put_text(&node, 4, "Second");
    mb_put_message(&function, 7, &node);
    mb_put_text(&node, 1, "x");
    mb_put_text(&node, 2, "t");
    mb_put_text(&node, 4, "First");
    mb_put_text(&attr, 1, "alpha");
    mb_put_text(&attr, 21, "alpha");
    mb_put_int(&attr, 20, PRN_ATTR_FLOAT);
    mb_put_message(&node, 5, &attr);
    mb_put_message(&function, 7, &node);

    model_builder *m = mb_begin(18);
    mb_put_message(mb_raw_model(m), 25, &function);
    mb_input(m, "a", PRONY_FLOAT32, "1");
    mb_node(m, "custom::Twice", "a", "b", "alpha=1.0");
    mb_output(m, "b", PRONY_FLOAT32, "1");
    prn_model_file *file = must_load(m);
    assert_int_equal(file->function_count, 1);
    const prn_function *f = &file->functions[0];
    assert_string_equal(f->domain, "custom");
    assert_string_equal(f->overload, "over");
    assert_int_equal(f->attribute_count, 1);
    assert_int_equal(f->attribute_defaults.count, 1);
    assert_int_equal(f->opsets[0].version, 18);
    assert_string_equal(f->nodes[0].op_type, "First");
    assert_string_equal(attr_of(&f->nodes[0], "alpha")->reference, "alpha");
    assert_string_equal(file->graph.nodes[0].domain, "custom");
    assert_null(attr_of(&file->graph.nodes[0], "alpha")->reference);
    (void)model_walk(file);
    prn_model_close(file);
    mb_free(m);
    mb_bytes *all[] = {&function, &node, &attr, &opset};
    for (size_t i = 0; i < 4; i++) mb_release(all[i]);
}

/* ---- large models ---- */

static long resident_bytes(void)
{
    long pages = 0, resident = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%ld %ld", &pages, &resident), 2);
    fclose(statm);
    return resident * sysconf(_SC_PAGESIZE);
}

static void test_weights_are_not_read(void **state)
{
    (void)state;
    enum { COUNT = 2, ELEMENTS = 1 << 23 };
    model_builder *m = mb_begin(13);
    float *zeros = calloc(ELEMENTS, sizeof *zeros);
    assert_non_null(zeros);
    for (int i = 0; i < COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        mb_initializer(m, name, PRONY_FLOAT32, "8388608", zeros);
    }
    free(zeros);
    size_t size;
    const void *data = mb_finish(m, &size);
    folder_make();
    folder_write("big.onnx", data, size);
    mb_free(m);
    long before = resident_bytes();
    prn_model_file *file = must_open(folder_path("big.onnx"));
    long grown = resident_bytes() - before;
    assert_int_equal(file->graph.initializer_count, COUNT);
    assert_int_equal(file->graph.initializers[COUNT - 1].bytes, ELEMENTS * sizeof *zeros);
    prn_model_close(file);
    folder_remove();
    /* A touched page may bring a whole huge page in. */
    if (grown > (long)(size / 4)) fail_msg("%ld bytes of %zu became resident", grown, size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_real_model_loads),
        cmocka_unit_test(test_real_fields),
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_nested_types),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_rarer_attributes),
        cmocka_unit_test(test_initializer_that_is_an_input),
        cmocka_unit_test(test_nodes_are_sorted),
        cmocka_unit_test(test_sorted_nodes_stay),
        cmocka_unit_test(test_captured_names),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_weights_are_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
