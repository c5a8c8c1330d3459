/* Operators written in Python: prony._prony.Registry, and what of a node their functions see. The adapters in
 * prony/operators.py give every function one form:
 *
 *   infer(node, inputs, outputs) -> [(type, shape or None)]   inputs: (type, shape, array or None), None where omitted
 *   cost(node, inputs, outputs) -> {count: number}            outputs: (type, shape)
 *   run(node, inputs, outputs) -> [array]                     inputs as for infer, with every array
 *
 * Every array is a copy of the engine's bytes. A traceback, a closure or another session may keep one, while the engine
 * writes other values over its own bytes with the next step and unmaps them with the plan. */
#include "py_prony.h"

#include <stdlib.h>
#include <string.h>

typedef struct definition {
    struct definition *next;
    struct registry *registry;
    PyObject *infer, *cost, *run;
} definition;

typedef struct registry {
    PyObject_HEAD prony_registry *registry;
    definition *definitions;
    PyObject *raised; /* by one of the functions since it was last taken; NULL: nothing */
    uint32_t mark;
} registry;

PyTypeObject *pyp_registry_type;
static PyTypeObject *node_type;

/* ---- nodes ---- */

typedef struct node_view {
    PyObject_HEAD const prony_context *context; /* NULL: the call is over */
} node_view;

static const prony_node *py_operators_node_of(node_view *self)
{
    if (self->context) return self->context->node;
    PyErr_SetString(PyExc_RuntimeError, "the node is not valid any more: its call has ended");
    return NULL;
}

/* The attribute of this name in the Python type of its kind, or `otherwise`. Every result is a copy: the node is valid
 * during its call only. Bytes of a string that are not UTF-8 survive as surrogates. */
static PyObject *node_get(node_view *self, PyObject *args)
{
    const char *name;
    PyObject *otherwise = Py_None, *list;
    const prony_node *node = py_operators_node_of(self);
    int64_t integer;
    float real;
    prony_string text;
    const int64_t *integers;
    const float *reals;
    size_t count;
    const prony_value *tensor;
    if (!node || !PyArg_ParseTuple(args, "s|O", &name, &otherwise)) return NULL;
    if (prony_node_int(node, name, &integer)) return PyLong_FromLongLong(integer);
    if (prony_node_float(node, name, &real)) return PyFloat_FromDouble((double)real);
    if (prony_node_string(node, name, &text))
        return PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.size, "surrogateescape");
    if (prony_node_tensor(node, name, &tensor)) return pyp_value_to(tensor);
    bool whole = prony_node_ints(node, name, &integers, &count);
    if (!whole && !prony_node_floats(node, name, &reals, &count)) {
        Py_INCREF(otherwise);
        return otherwise;
    }
    list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *item = whole ? PyLong_FromLongLong(integers[i]) : PyFloat_FromDouble((double)reals[i]);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) != 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *node_cancelled(node_view *self, PyObject *unused)
{
    (void)unused;
    return py_operators_node_of(self) ? PyBool_FromLong(prony_cancelled(self->context)) : NULL;
}

static PyObject *node_text(node_view *self, void *which)
{
    const prony_node *node = py_operators_node_of(self);
    if (!node) return NULL;
    const char *text = *(const char *)which == 'n'   ? node->name
                       : *(const char *)which == 'd' ? node->domain
                                                     : node->op_type;
    return PyUnicode_FromString(text);
}

static PyObject *node_number(node_view *self, void *which)
{
    const prony_node *node = py_operators_node_of(self);
    if (!node) return NULL;
    return PyLong_FromLongLong(*(const char *)which == 'o' ? node->opset : self->context->threads);
}

static PyMethodDef node_methods[] = {
    {"get", (PyCFunction)(void (*)(void))node_get, METH_VARARGS,
     "get(name, default=None)\n--\n\nAn attribute of the node, or the default."},
    {"cancelled", (PyCFunction)(void (*)(void))node_cancelled, METH_NOARGS,
     "cancelled()\n--\n\nReturns True if the run was cancelled. Long loops should ask."},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef node_attributes[] = {
    {"name", (getter)(void (*)(void))node_text, NULL, "the node's name", (void *)(uintptr_t)"n"},
    {"domain", (getter)(void (*)(void))node_text, NULL, "\"\" is ai.onnx", (void *)(uintptr_t)"d"},
    {"op_type", (getter)(void (*)(void))node_text, NULL, "\"Conv\"", (void *)(uintptr_t)"t"},
    {"opset", (getter)(void (*)(void))node_number, NULL, "version of the domain", (void *)(uintptr_t)"o"},
    {"threads", (getter)(void (*)(void))node_number, NULL, "threads that a call may use", (void *)(uintptr_t)"t"},
    {NULL, NULL, NULL, NULL, NULL}};

static void node_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot node_slots[] = {
    {Py_tp_methods, node_methods},
    {Py_tp_getset, node_attributes},
    {Py_tp_dealloc, (void *)(uintptr_t)node_dealloc},
    {Py_tp_doc, (void *)(uintptr_t)"The node for which an operator's function is called."},
    {0, NULL}};
static PyType_Spec node_spec = {"prony._prony.Node", sizeof(node_view), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, node_slots};

/* ---- calls ---- */

/* One call of a Python function and the node that it is given. */
typedef struct call {
    const prony_context *context;
    definition *definition;
    node_view *node;
} call;

static PyObject *py_operators_describe(const prony_value *value, bool with_data)
{
    if (!value) Py_RETURN_NONE;
    PyObject *array = NULL;
    if (with_data && value->kind == PRONY_TENSOR && prony_shape_numel(&value->shape) >= 0 &&
        (value->data || prony_shape_numel(&value->shape) == 0)) {
        array = pyp_value_to(value);
        if (!array) return NULL;
    }
    PyObject *shape = pyp_shape_to(&value->shape);
    PyObject *tuple =
        shape ? Py_BuildValue("sOO", prony_dtype_name(value->dtype), shape, array ? array : Py_None) : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(array);
    return tuple;
}

static PyObject *describe_all(const prony_value *const *values, size_t count, bool with_data)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *item = py_operators_describe(values[i], with_data);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) != 0) Py_CLEAR(list);
    }
    return list;
}

static int call_begin(call *c, const prony_context *context)
{
    *c = (call){.context = context, .definition = context->user};
    c->node = PyObject_New(node_view, node_type);
    if (!c->node) return -1;
    c->node->context = context;
    return 0;
}

/* The exception becomes the message of the failure, and is kept for pyp_registry_take. */
static prony_status py_operators_failed(call *c)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace) PyException_SetTraceback(value, trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *words = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    PyObject *name = type ? PyObject_GetAttrString(type, "__name__") : NULL;
    const char *kind = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    prony_status status =
        prony_fail(c->context, PRONY_INTERNAL, "%s: %s", kind ? kind : "exception", words ? words : "");
    PyObject *before = c->definition->registry->raised;
    c->definition->registry->raised = value;
    Py_XDECREF(before);
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return status;
}

static prony_status call_end(call *c, PyObject *first, PyObject *second, PyObject *result, int taken)
{
    prony_status status = PRONY_OK;
    if (!result || taken != 0) status = py_operators_failed(c);
    Py_XDECREF(result);
    Py_XDECREF(first);
    Py_XDECREF(second);
    if (c->node) c->node->context = NULL;
    PyErr_Clear();
    Py_XDECREF((PyObject *)c->node);
    return status;
}

/* calls callable(node, first, second); gone: the registry was cleared by the garbage collector. */
static PyObject *call_function(call *c, PyObject *callable, PyObject *first, PyObject *second)
{
    if (!first || !second) return NULL;
    if (!callable) return PyErr_SetString(PyExc_RuntimeError, "the operator's registry was released"), NULL;
    return PyObject_CallFunctionObjArgs(callable, (PyObject *)c->node, first, second, NULL);
}

static int take_inferred(const prony_context *context, PyObject *list)
{
    for (size_t i = 0; i < context->output_count; i++) {
        if (!context->outputs[i]) continue;
        PyObject *item = PySequence_GetItem(list, (Py_ssize_t)i);
        PyObject *name = item ? PySequence_GetItem(item, 0) : NULL, *shape = name ? PySequence_GetItem(item, 1) : NULL;
        const char *text = shape ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
        int result = text ? pyp_shape_from(&context->outputs[i]->shape, shape) : -1;
        if (result == 0) context->outputs[i]->dtype = pyp_dtype_named(text);
        Py_XDECREF(shape);
        Py_XDECREF(name);
        Py_XDECREF(item);
        if (result != 0) return -1;
    }
    return 0;
}

static prony_status run_infer(const prony_context *context)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    call c;
    PyObject *inputs = NULL, *outputs = NULL, *result = NULL;
    if (call_begin(&c, context) == 0) {
        inputs = describe_all(context->inputs, context->input_count, true);
        outputs = inputs ? PyLong_FromSize_t(context->output_count) : NULL;
        result = call_function(&c, c.definition->infer, inputs, outputs);
    }
    prony_status status = call_end(&c, inputs, outputs, result, result ? take_inferred(context, result) : -1);
    PyGILState_Release(gil);
    return status;
}

static int py_operators_take_cost(PyObject *dict, prony_cost *cost)
{
    const struct {
        const char *key;
        uint64_t *to;
    } keys[] = {{"macs", &cost->macs},
                {"madds", &cost->madds},
                {"flops", &cost->flops},
                {"special", &cost->special},
                {"int_ops", &cost->int_ops},
                {"bytes_read", &cost->bytes_read},
                {"parameters", &cost->parameters},
                {"bytes_written", &cost->bytes_written}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int64_t number = -1;
        if (pyp_get_int(dict, keys[i].key, &number) != 0) return -1;
        if (number >= 0) *keys[i].to = (uint64_t)number;
    }
    return 0;
}

static prony_status run_cost(const prony_context *context, prony_cost *cost)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    call c;
    PyObject *inputs = NULL, *outputs = NULL, *result = NULL;
    if (call_begin(&c, context) == 0) {
        inputs = describe_all(context->inputs, context->input_count, false);
        outputs =
            inputs ? describe_all((const prony_value *const *)context->outputs, context->output_count, false) : NULL;
        result = call_function(&c, c.definition->cost, inputs, outputs);
    }
    prony_status status = call_end(&c, inputs, outputs, result, result ? py_operators_take_cost(result, cost) : -1);
    PyGILState_Release(gil);
    return status;
}

static int py_operators_take_output(prony_value *output, PyObject *array, size_t index)
{
    prony_value_info port = {.name = "result", .dtype = output->dtype, .shape = output->shape};
    pyp_value given;
    int result = pyp_value_from(&given, array, &port);
    size_t bytes = prony_dtype_bytes(output->dtype, prony_shape_numel(&output->shape));
    bool same = result == 0 && given.value.dtype == output->dtype && given.value.shape.rank == output->shape.rank;
    for (int d = 0; same && d < output->shape.rank; d++) same = given.value.shape.dim[d] == output->shape.dim[d];
    if (result == 0 && !same) {
        PyObject *wanted = pyp_shape_to(&output->shape), *got = wanted ? pyp_shape_to(&given.value.shape) : NULL;
        if (got)
            PyErr_Format(PyExc_ValueError, "run returned output %zu as %s%R; infer said %s%R", index,
                         prony_dtype_name(given.value.dtype), got, prony_dtype_name(output->dtype), wanted);
        Py_XDECREF(got);
        Py_XDECREF(wanted);
        result = -1;
    }
    if (result == 0 && output->dtype == PRONY_STRING) {
        PyErr_SetString(PyExc_TypeError, "operators in Python do not support outputs of text");
        result = -1;
    }
    if (result == 0 && bytes) memcpy(output->data, given.value.data, bytes);
    pyp_value_release(&given);
    return result;
}

static prony_status run_run(const prony_context *context)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    call c;
    PyObject *inputs = NULL, *outputs = NULL, *result = NULL;
    if (call_begin(&c, context) == 0) {
        inputs = describe_all(context->inputs, context->input_count, true);
        outputs = inputs ? PyLong_FromSize_t(context->output_count) : NULL;
        result = call_function(&c, c.definition->run, inputs, outputs);
    }
    int taken = result ? 0 : -1;
    for (size_t i = 0; taken == 0 && i < context->output_count; i++) {
        if (!context->outputs[i]) continue;
        PyObject *array = PySequence_GetItem(result, (Py_ssize_t)i);
        taken = array ? py_operators_take_output(context->outputs[i], array, i) : -1;
        Py_XDECREF(array);
    }
    prony_status status = call_end(&c, inputs, outputs, result, taken);
    PyGILState_Release(gil);
    return status;
}

/* ---- the registry ---- */

static PyObject *registry_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    prony_error error = PYP_ERROR_INIT;
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    registry *self = (registry *)make(type, 0);
    if (!self) return NULL;
    self->mark = pyp_process_mark();
    if (prony_registry_create(&self->registry, &error) == PRONY_OK) return (PyObject *)self;
    Py_DECREF(self);
    return pyp_fail(&error, NULL);
}

static PyObject *registry_add(registry *self, PyObject *args)
{
    prony_error error = PYP_ERROR_INIT;
    prony_operator operator= PRONY_OPERATOR_INIT;
    long long since;
    PyObject *infer, *cost, *run;
    if (!PyArg_ParseTuple(args, "ssLOOO", &operator.domain, &operator.name, &since, &infer, &cost, &run)) return NULL;
    definition *made = calloc(1, sizeof *made);
    if (!made) return PyErr_NoMemory();
    operator.since_opset = since;
    operator.infer = run_infer;
    operator.cost = run_cost;
    operator.run = run_run;
    operator.user = made;
    if (prony_registry_add(self->registry, &operator, & error) != PRONY_OK) {
        free(made);
        return pyp_fail(&error, NULL);
    }
    Py_INCREF(made->infer = infer);
    Py_INCREF(made->cost = cost);
    Py_INCREF(made->run = run);
    made->registry = self;
    made->next = self->definitions;
    self->definitions = made;
    Py_RETURN_NONE;
}

static int registry_traverse(PyObject *object, visitproc visit, void *arg)
{
    registry *self = (registry *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->raised);
    for (definition *d = self->definitions; d; d = d->next) {
        Py_VISIT(d->infer);
        Py_VISIT(d->cost);
        Py_VISIT(d->run);
    }
    return 0;
}

static int registry_clear(PyObject *object)
{
    registry *self = (registry *)object;
    Py_CLEAR(self->raised);
    for (definition *d = self->definitions; d; d = d->next) {
        Py_CLEAR(d->infer);
        Py_CLEAR(d->cost);
        Py_CLEAR(d->run);
    }
    return 0;
}

static void registry_dealloc(PyObject *object)
{
    registry *self = (registry *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    registry_clear(object);
    if (self->mark == pyp_process_mark()) prony_registry_release(self->registry);
    for (definition *d = self->definitions, *next; d; d = next) {
        next = d->next;
        free(d);
    }
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

prony_registry *pyp_registry_handle(PyObject *object)
{
    return ((registry *)object)->registry;
}

PyObject *pyp_registry_take(PyObject *object)
{
    PyObject *raised = ((registry *)object)->raised;
    ((registry *)object)->raised = NULL;
    return raised;
}

static PyMethodDef registry_methods[] = {{"_add", (PyCFunction)(void (*)(void))registry_add, METH_VARARGS,
                                          "_add(domain, name, since, infer, cost, run)\n--\n\nDefines an operator."},
                                         {NULL, NULL, 0, NULL}};
static PyType_Slot registry_slots[] = {
    {Py_tp_new, (void *)(uintptr_t)registry_new},
    {Py_tp_methods, registry_methods},
    {Py_tp_traverse, (void *)(uintptr_t)registry_traverse},
    {Py_tp_clear, (void *)(uintptr_t)registry_clear},
    {Py_tp_dealloc, (void *)(uintptr_t)registry_dealloc},
    {Py_tp_doc, (void *)(uintptr_t)"Operators for models that are loaded with this registry."},
    {0, NULL}};
static PyType_Spec registry_spec = {"prony._prony.Registry", sizeof(registry), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, registry_slots};

PyTypeObject *pyp_add_type(PyObject *module, PyType_Spec *spec, const char *name)
{
    PyObject *type = PyType_FromSpec(spec);
    if (!type || PyModule_AddObjectRef(module, name, type) != 0) {
        Py_XDECREF(type);
        return NULL;
    }
    return (PyTypeObject *)type;
}

static PyObject *operator_row(const prony_operator_info *info)
{
    PyObject *kernels = PyList_New((Py_ssize_t)info->kernel_count);
    for (size_t i = 0; kernels && i < info->kernel_count; i++) {
        PyObject *name = PyUnicode_FromString(info->kernels[i]);
        if (!name || PyList_SetItem(kernels, (Py_ssize_t)i, name) != 0) Py_CLEAR(kernels);
    }
    if (!kernels) return NULL;
    return Py_BuildValue("{ss ss sL ss ss sN}", "domain", info->domain, "name", info->name, "since_opset",
                         (long long)info->since_opset, "types", info->types, "cost", info->cost, "kernels", kernels);
}

static PyObject *py_operators_list(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < prony_operator_count(); i++) {
        PyObject *row = operator_row(prony_operator_at(i));
        if (!row || PyList_Append(list, row) != 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyMethodDef functions[] = {
    {"operators", py_operators_list, METH_NOARGS, "operators()\n--\n\nThe built-in operators, as rows."},
    {NULL, NULL, 0, NULL}};

int pyp_add_operators(PyObject *module)
{
    node_type = pyp_add_type(module, &node_spec, "Node");
    pyp_registry_type = node_type ? pyp_add_type(module, &registry_spec, "Registry") : NULL;
    return pyp_registry_type ? PyModule_AddFunctions(module, functions) : -1;
}
