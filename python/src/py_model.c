/* prony._prony.Model: a loaded file, and questions to it that run nothing. */
#include "py_prony.h"

#include <string.h>

PyTypeObject *pyp_model_type;

/* From memory, the library borrows the bytes unless `copy` is set: self->bytes keeps them alive. The registry is kept
 * alive too, since the model calls its functions. Loading releases the GIL; `text` and `data` point into objects that
 * this call holds. */
static PyObject *model_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"source", "name", "operators", "copy", "memory_limit", "data_folder", NULL};
    PyObject *source, *operators = Py_None, *path = NULL;
    const char *name = "model", *folder = NULL;
    int copy = 0;
    long long limit = 0;
    prony_error error = PYP_ERROR_INIT;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|sOpLz", names, &source, &name, &operators, &copy, &limit,
                                     &folder))
        return NULL;
    if (operators != Py_None && !PyObject_TypeCheck(operators, pyp_registry_type))
        return pyp_wrong_type("operators", "a prony.Registry", operators);
    if (limit < 0) return pyp_raise(PRONY_INVALID_ARGUMENT, "memory_limit: %lld bytes", limit);
    if (pyp_check_process() != 0) return NULL;
    bool memory = PyBytes_Check(source);
    if (!memory && !(path = pyp_path(source))) return NULL;
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    pyp_model *self = (pyp_model *)make(type, 0);
    if (!self) return Py_XDECREF(path), NULL;
    self->mark = pyp_process_mark();
    prony_model_options options = PRONY_MODEL_OPTIONS_INIT;
    options.copy = copy != 0;
    options.memory_limit_bytes = (uint64_t)limit;
    options.data_folder = folder;
    if (operators != Py_None) {
        Py_INCREF(self->registry = operators);
        options.registry = pyp_registry_handle(operators);
    }
    if (memory) Py_INCREF(self->bytes = source);
    const char *text = memory ? name : PyBytes_AsString(path), *data = memory ? PyBytes_AsString(source) : NULL;
    size_t size = memory ? (size_t)PyBytes_Size(source) : 0;
    prony_status status;
    Py_BEGIN_ALLOW_THREADS status = memory ? prony_model_load_memory(&self->model, text, data, size, &options, &error)
                                           : prony_model_load(&self->model, text, &options, &error);
    Py_END_ALLOW_THREADS Py_XDECREF(path);
    if (status == PRONY_OK) return (PyObject *)self;
    pyp_fail(&error, self->registry);
    Py_DECREF(self);
    return NULL;
}

static int model_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((pyp_model *)object)->registry);
    return 0;
}

static void model_dealloc(PyObject *object)
{
    pyp_model *self = (pyp_model *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->mark == pyp_process_mark()) prony_model_release(self->model);
    Py_XDECREF(self->registry);
    Py_XDECREF(self->bytes);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* (name, kind, type, shape with None for what is free, names of dimensions) */
static PyObject *port_row(const prony_value_info *port)
{
    static const char *const kinds[] = {"tensor", "sequence", "optional"};
    int rank = port->shape.rank < 0 ? 0 : port->shape.rank;
    PyObject *shape = PyTuple_New(rank), *names = PyTuple_New(rank);
    for (int d = 0; shape && names && d < rank; d++) {
        PyObject *extent = port->shape.dim[d] < 0 ? Py_BuildValue("") : PyLong_FromLongLong(port->shape.dim[d]);
        PyObject *symbol = Py_BuildValue("z", port->dim_names[d]);
        if (!extent || PyTuple_SetItem(shape, d, extent) != 0) Py_CLEAR(shape);
        if (!symbol || PyTuple_SetItem(names, d, symbol) != 0) Py_CLEAR(names);
    }
    PyObject *known = port->shape.rank < 0 ? Py_None : shape;
    PyObject *row = shape && names ? Py_BuildValue("sssOO", port->name, kinds[port->kind],
                                                   prony_dtype_name(port->dtype), known, names)
                                   : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(names);
    return row;
}

static PyObject *ports(const prony_model *model, size_t count,
                       const prony_value_info *(*at)(const prony_model *, size_t))
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *row = port_row(at(model, i));
        if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) != 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *model_inputs(pyp_model *self, void *unused)
{
    (void)unused;
    return ports(self->model, prony_model_input_count(self->model), prony_model_input);
}

static PyObject *model_optional_inputs(pyp_model *self, void *unused)
{
    (void)unused;
    return ports(self->model, prony_model_optional_input_count(self->model), prony_model_optional_input);
}

static PyObject *model_outputs(pyp_model *self, void *unused)
{
    (void)unused;
    return ports(self->model, prony_model_output_count(self->model), prony_model_output);
}

static PyObject *model_inspect(pyp_model *self, PyObject *options)
{
    prony_error error = PYP_ERROR_INIT;
    prony_report *report = NULL;
    prony_status status;
    pyp_options o;
    if (pyp_check_process() != 0) return NULL;
    if (pyp_options_from(&o, options) != 0) return pyp_options_release(&o), NULL;
    Py_BEGIN_ALLOW_THREADS status = prony_inspect(&report, self->model, &o.session, &error);
    Py_END_ALLOW_THREADS pyp_options_release(&o);
    return status == PRONY_OK ? pyp_report_wrap(report) : pyp_fail(&error, self->registry);
}

static PyObject *model_free_dims(pyp_model *self, PyObject *options)
{
    prony_error error = PYP_ERROR_INIT;
    prony_free_dim *rows = NULL;
    size_t count = 0;
    prony_status status;
    pyp_options o;
    if (pyp_check_process() != 0) return NULL;
    if (pyp_options_from(&o, options) != 0) return pyp_options_release(&o), NULL;
    Py_BEGIN_ALLOW_THREADS status =
        prony_model_free_dims(&rows, &count, self->model, options == Py_None ? NULL : &o.session, &error);
    Py_END_ALLOW_THREADS pyp_options_release(&o);
    if (status != PRONY_OK) return pyp_fail(&error, self->registry);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *row = Py_BuildValue("{ss ss si sL ss sL}", "name", rows[i].name, "input", rows[i].input, "axis",
                                      rows[i].axis, "value", (long long)rows[i].value, "reason", rows[i].reason,
                                      "example", (long long)rows[i].example);
        if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) != 0) Py_CLEAR(list);
    }
    prony_rows_release(rows);
    return list;
}

/* ---- one call per question ---- */

static PyObject *py_model_layer_of(uint32_t layer)
{
    return layer == PRONY_NO_INDEX ? Py_BuildValue("") : PyLong_FromUnsignedLong(layer);
}

static PyObject *params_row(const void *rows, size_t i)
{
    const prony_params_row *r = (const prony_params_row *)rows + i;
    return Py_BuildValue("{sN ss ss ss sK sK sK sd}", "layer", py_model_layer_of(r->layer), "name", r->name, "op",
                         r->op, "types", r->types, "trainable", (unsigned long long)r->trainable, "buffers",
                         (unsigned long long)r->buffers, "bits", (unsigned long long)r->bits, "share", r->share);
}

static PyObject *ops_row(const void *rows, size_t i)
{
    const prony_ops_row *r = (const prony_ops_row *)rows + i;
    return Py_BuildValue("{sN ss ss sK sK sK sK sK sN sd}", "layer", py_model_layer_of(r->layer), "name", r->name, "op",
                         r->op, "macs", (unsigned long long)r->macs, "madds", (unsigned long long)r->madds, "flops",
                         (unsigned long long)r->flops, "special", (unsigned long long)r->special, "int_ops",
                         (unsigned long long)r->int_ops, "count",
                         r->counted ? PyLong_FromUnsignedLongLong(r->count) : Py_BuildValue(""), "share", r->share);
}

static PyObject *io_row(const void *rows, size_t i)
{
    const prony_io_row *r = (const prony_io_row *)rows + i;
    return Py_BuildValue("{sN ss ss sN sI ss sN sK sK}", "layer", py_model_layer_of(r->layer), "name", r->name, "op",
                         r->op, "output", PyBool_FromLong(r->output), "position", r->position, "type",
                         prony_dtype_name(r->dtype), "shape", pyp_shape_to(&r->shape), "elements",
                         (unsigned long long)r->elements, "bits", (unsigned long long)r->bits);
}

/* Rows of parameters ('p'), operations ('o') or input/output sizes ('i'), as a list of dicts. The counting runs without
 * the GIL. `params`, `ops` and `io` are typed pointers to the one array `rows`, which is freed here. */
static PyObject *model_rows(pyp_model *self, PyObject *args)
{
    const char *what, *preset = NULL;
    PyObject *options;
    pyp_options o;
    prony_error error = PYP_ERROR_INIT;
    prony_status status;
    void *rows = NULL;
    size_t count = 0;
    if (!PyArg_ParseTuple(args, "sO|z", &what, &options, &preset) || pyp_check_process() != 0) return NULL;
    if (pyp_options_from(&o, options) != 0) return pyp_options_release(&o), NULL;
    prony_params_row *params = NULL;
    prony_ops_row *ops = NULL;
    prony_io_row *io = NULL;
    PyObject *(*row)(const void *, size_t) = *what == 'p' ? params_row : *what == 'o' ? ops_row : io_row;
    Py_BEGIN_ALLOW_THREADS status = *what == 'p' ? prony_count_params(&params, &count, self->model, &o.session, &error)
                                    : *what == 'o'
                                        ? prony_estimate_ops(&ops, &count, self->model, &o.session, preset, &error)
                                        : prony_trace_io_sizes(&io, &count, self->model, &o.session, &error);
    Py_END_ALLOW_THREADS rows = *what == 'p' ? (void *)params : *what == 'o' ? (void *)ops : (void *)io;
    pyp_options_release(&o);
    if (status != PRONY_OK) return pyp_fail(&error, self->registry);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *item = row(rows, i);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) != 0) Py_CLEAR(list);
    }
    prony_rows_release(rows);
    return list;
}

/* ---- parts ---- */

/* Names at one end of a part; their pointers lie on the stack. */
enum { PART_MOST = 64 };

static int names_of(const char **to, size_t *count, PyObject *list)
{
    Py_ssize_t n = PyList_Size(list);
    if (n < 0) return -1;
    if (n > PART_MOST) return pyp_raise(PRONY_INVALID_ARGUMENT, "a part has more than %d tensors", PART_MOST), -1;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!(to[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL))) return -1;
    *count = (size_t)n;
    return 0;
}

static PyObject *model_extract(pyp_model *self, PyObject *args)
{
    PyObject *from, *to, *path, *options;
    const char *from_names[PART_MOST], *to_names[PART_MOST];
    prony_error error = PYP_ERROR_INIT;
    prony_submodel part = PRONY_SUBMODEL_INIT;
    prony_status status;
    pyp_options o;
    if (!PyArg_ParseTuple(args, "OOO&O", &from, &to, PyUnicode_FSConverter, &path, &options)) return NULL;
    if (names_of(from_names, &part.from_count, from) != 0 || names_of(to_names, &part.to_count, to) != 0 ||
        pyp_check_process() != 0)
        return Py_DECREF(path), NULL;
    if (pyp_options_from(&o, options) != 0) return pyp_options_release(&o), Py_DECREF(path), NULL;
    part.from = from_names;
    part.to = to_names;
    part.options = &o.session;
    const char *file = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS status = prony_model_extract_save(self->model, &part, file, &error);
    Py_END_ALLOW_THREADS pyp_options_release(&o);
    Py_DECREF(path);
    if (status != PRONY_OK) return pyp_fail(&error, self->registry);
    Py_RETURN_NONE;
}

static PyMethodDef model_methods[] = {
    METHOD("_inspect", model_inspect, METH_O, "_inspect(options)\n--\n\nThe static report."),
    METHOD("_free_dims", model_free_dims, METH_O, "_free_dims(options)\n--\n\nRows of free dimensions."),
    METHOD("_rows", model_rows, METH_VARARGS,
           "_rows(what, options, preset=None)\n--\n\nRows of 'params', 'ops' or 'io'."),
    METHOD("_extract", model_extract, METH_VARARGS, "_extract(from, to, path, options)\n--\n\nSaves a part."),
    {NULL, NULL, 0, NULL}};
static PyGetSetDef model_attributes[] = {
    {"_inputs", (getter)(void (*)(void))model_inputs, NULL, "(name, kind, type, shape, names of dimensions) per input",
     NULL},
    {"_optional_inputs", (getter)(void (*)(void))model_optional_inputs, NULL, "as of inputs", NULL},
    {"_outputs", (getter)(void (*)(void))model_outputs, NULL, "as of inputs", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot model_slots[] = {{Py_tp_new, (void *)(uintptr_t)model_new},
                                    {Py_tp_methods, model_methods},
                                    {Py_tp_getset, model_attributes},
                                    {Py_tp_traverse, (void *)(uintptr_t)model_traverse},
                                    {Py_tp_dealloc, (void *)(uintptr_t)model_dealloc},
                                    {Py_tp_doc, (void *)(uintptr_t)"A loaded model."},
                                    {0, NULL}};
static PyType_Spec model_spec = {"prony._prony.Model", sizeof(pyp_model), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, model_slots};

int pyp_add_model(PyObject *module)
{
    pyp_model_type = pyp_add_type(module, &model_spec, "Model");
    return pyp_model_type ? 0 : -1;
}
