/* prony._prony.Session: its life, its lock, its inputs. Inputs are bound where they lie and their buffers held until
 * others are bound. A thread takes the session's lock before anything else, so that several may call one session: they
 * take turns. */
#include "py_prony.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject *pyp_session_type;

/* ---- one thread at a time ---- */

static int closed(const pyp_session *self)
{
    if (self->session) return 0;
    PyObject *type = pyp_helper("errors", "ClosedError");
    if (type) PyErr_SetString(type, "the session is closed");
    Py_XDECREF(type);
    return -1;
}

static int wait_for_lock(pyp_session *self)
{
    PyLockStatus status;
    do {
        Py_BEGIN_ALLOW_THREADS status = PyThread_acquire_lock_timed(self->lock, -1, 1);
        Py_END_ALLOW_THREADS if (status == PY_LOCK_INTR && PyErr_CheckSignals() != 0) return -1;
    } while (status != PY_LOCK_ACQUIRED);
    return 0;
}

int pyp_session_enter(pyp_session *self)
{
    unsigned long here = PyThread_get_thread_ident();
    if (pyp_check_process() != 0 || closed(self) != 0) return -1;
    if (!PyThread_acquire_lock(self->lock, NOWAIT_LOCK)) {
        if (self->owner == here)
            return pyp_raise(PRONY_BUSY,
                             "the session is running: an operator or callback of its own run may not call it"),
                   -1;
        if (wait_for_lock(self) != 0) return -1;
    }
    self->owner = here;
    if (closed(self) == 0) return 0;
    pyp_session_leave(self);
    return -1;
}

void pyp_session_leave(pyp_session *self)
{
    self->owner = 0;
    PyThread_release_lock(self->lock);
}

/* ---- life ---- */

static bool name_ports(pyp_session *self)
{
    const prony_model *model = self->model->model;
    self->input_count = prony_model_input_count(model);
    self->output_count = prony_model_output_count(model);
    self->optional_count = prony_model_optional_input_count(model);
    self->inputs = calloc(self->input_count + self->optional_count + 1, sizeof *self->inputs);
    self->outputs = calloc(self->output_count + 1, sizeof *self->outputs);
    if (!self->inputs || !self->outputs) return PyErr_NoMemory(), false;
    for (size_t i = 0; i < self->input_count + self->optional_count; i++) {
        const bool optional = i >= self->input_count;
        self->inputs[i].port =
            optional ? prony_model_optional_input(model, i - self->input_count) : prony_model_input(model, i);
        self->inputs[i].name = PyUnicode_InternFromString(self->inputs[i].port->name);
        if (!self->inputs[i].name) return false;
    }
    for (size_t k = 0; k < self->output_count; k++)
        if (!(self->outputs[k].name = PyUnicode_InternFromString(prony_model_output(model, k)->name))) return false;
    return true;
}

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *model, *options;
    prony_error error = PYP_ERROR_INIT;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "O!O", pyp_model_type, &model, &options) || pyp_check_process() != 0) return NULL;
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    pyp_session *self = (pyp_session *)make(type, 0);
    if (!self) return NULL;
    Py_INCREF(model);
    self->model = (pyp_model *)model;
    self->mark = pyp_process_mark();
    self->lock = PyThread_allocate_lock();
    if (!self->lock) PyErr_NoMemory();
    if (!self->lock || !name_ports(self)) return Py_DECREF(self), NULL;
    pyp_options o;
    prony_status status = PRONY_INTERNAL;
    if (pyp_options_from(&o, options) == 0) {
        pyp_process_used();
        Py_BEGIN_ALLOW_THREADS status = prony_session_create(&self->session, self->model->model, &o.session, &error);
        Py_END_ALLOW_THREADS if (status != PRONY_OK) pyp_fail(&error, self->model->registry);
    }
    pyp_options_release(&o);
    if (status != PRONY_OK) Py_CLEAR(self);
    return (PyObject *)self;
}

static void py_session_let_go(pyp_session *self)
{
    prony_session *session = self->session;
    bool ours = self->mark == pyp_process_mark();
    if (session && ours) pyp_generators_let_go(self);
    self->session = NULL;
    if (session && ours) {
        Py_BEGIN_ALLOW_THREADS prony_session_release(session);
        Py_END_ALLOW_THREADS
    }
    for (size_t i = 0; self->inputs && i < self->input_count + self->optional_count; i++)
        if (self->inputs[i].view.obj) PyBuffer_Release(&self->inputs[i].view);
}

static PyObject *session_close(pyp_session *self, PyObject *unused)
{
    (void)unused;
    if (!self->session) Py_RETURN_NONE;
    if (pyp_session_enter(self) != 0) return NULL;
    py_session_let_go(self);
    pyp_session_leave(self);
    Py_RETURN_NONE;
}

static int session_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT((PyObject *)((pyp_session *)object)->model);
    Py_VISIT(((pyp_session *)object)->on_sample);
    Py_VISIT(((pyp_session *)object)->on_alert);
    return 0;
}

/* Breaks the cycle of a session and callbacks that hold it. The model stays: other methods rely on it. */
static int session_clear(PyObject *object)
{
    Py_CLEAR(((pyp_session *)object)->on_sample);
    Py_CLEAR(((pyp_session *)object)->on_alert);
    return 0;
}

static void session_dealloc(PyObject *object)
{
    pyp_session *self = (pyp_session *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    py_session_let_go(self);
    (void)session_clear(object);
    for (size_t i = 0; self->inputs && i < self->input_count + self->optional_count; i++)
        Py_XDECREF(self->inputs[i].name);
    for (size_t k = 0; self->outputs && k < self->output_count; k++) Py_XDECREF(self->outputs[k].name);
    free(self->inputs);
    free(self->outputs);
    if (self->lock) PyThread_free_lock(self->lock);
    Py_XDECREF((PyObject *)self->model);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* ---- inputs ---- */

/* Text, lists, None: the library keeps a copy of its own. */
static int py_session_set_input(pyp_session *self, pyp_input *input, PyObject *object)
{
    prony_error error = PYP_ERROR_INIT;
    pyp_value given;
    int result = pyp_value_from(&given, object, input->port);
    if (result == 0) {
        bool numbers = given.value.kind == PRONY_TENSOR && given.value.dtype != PRONY_STRING && given.view_count == 1;
        prony_status status = numbers ? prony_session_bind_input(self->session, input->port->name, &given.value, &error)
                                      : prony_session_set_input(self->session, input->port->name, &given.value, &error);
        if (status != PRONY_OK) {
            pyp_fail(&error, self->model->registry);
            result = -1;
        } else {
            if (input->view.obj) PyBuffer_Release(&input->view);
            if (numbers) {
                input->view = given.views[0];
                given.view_count = 0;
            }
        }
    }
    pyp_value_release(&given);
    self->planned = input->bound = false;
    return result;
}

static int py_session_bind_input(pyp_session *self, pyp_input *input, PyObject *object)
{
    prony_error error = PYP_ERROR_INIT;
    Py_buffer view;
    prony_value value;
    int form = input->port->kind == PRONY_TENSOR && input->port->dtype != PRONY_STRING
                   ? pyp_tensor_view(object, &view, &value, input->port)
                   : 1;
    if (form != 0) return form < 0 ? -1 : py_session_set_input(self, input, object);
    if (prony_session_bind_input(self->session, input->port->name, &value, &error) != PRONY_OK) {
        PyBuffer_Release(&view);
        pyp_fail(&error, NULL);
        return -1;
    }
    if (input->view.obj) PyBuffer_Release(&input->view);
    input->view = view;
    if (!input->bound || input->dtype != value.dtype || !pyp_same_shape(&input->shape, &value.shape)) {
        input->bound = true;
        input->dtype = value.dtype;
        input->shape = value.shape;
        self->planned = false;
    }
    return 0;
}

/* InvalidArgument for the first name that the model does not know, else for the first input without an array: a wrong
 * name is both unknown and the cause of a missing one. */
static int wrong_names(pyp_session *self, PyObject *given)
{
    PyObject *list = PyList_New(0), *key, *value;
    Py_ssize_t place = 0;
    for (size_t i = 0; list && i < self->input_count + self->optional_count; i++)
        if (PyList_Append(list, self->inputs[i].name) != 0) Py_CLEAR(list);
    PyObject *text = list ? PyObject_Repr(list) : NULL;
    const char *names = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    while (names && PyDict_Next(given, &place, &key, &value)) {
        int known = PySequence_Contains(list, key);
        PyObject *shown = known == 0 ? PyObject_Repr(key) : NULL;
        const char *words = shown ? PyUnicode_AsUTF8AndSize(shown, NULL) : NULL;
        if (words) pyp_raise(PRONY_INVALID_ARGUMENT, "unknown input %s; the model's inputs are %s", words, names);
        Py_XDECREF(shown);
        if (known != 1) names = NULL;
    }
    for (size_t i = 0; names && i < self->input_count; i++)
        if (!PyDict_GetItemWithError(given, self->inputs[i].name) && !PyErr_Occurred()) {
            pyp_raise(PRONY_INVALID_ARGUMENT, "input '%s' is missing; the model's inputs are %s",
                      self->inputs[i].port->name, names);
            names = NULL;
        }
    Py_XDECREF(text);
    Py_XDECREF(list);
    return -1;
}

/* An optional input that is not given this time. */
static int take_default(pyp_session *self, pyp_input *input)
{
    prony_error error = PYP_ERROR_INIT;
    if (!input->bound) return 0;
    if (prony_session_reset_input(self->session, input->port->name, &error) != PRONY_OK)
        return pyp_fail(&error, self->model->registry), -1;
    if (input->view.obj) PyBuffer_Release(&input->view);
    input->bound = false;
    self->planned = false;
    return 0;
}

static int py_session_generate(pyp_session *self, uint64_t seed)
{
    prony_error error = PYP_ERROR_INIT;
    prony_status status;
    Py_BEGIN_ALLOW_THREADS status = prony_session_generate_inputs(self->session, seed, &error);
    Py_END_ALLOW_THREADS self->planned = false;
    if (status != PRONY_OK) pyp_fail(&error, self->model->registry);
    return status == PRONY_OK ? 0 : -1;
}

int pyp_session_bind(pyp_session *self, PyObject *inputs, uint64_t seed)
{
    if (inputs == Py_None) return py_session_generate(self, seed);
    if (!PyDict_Check(inputs)) return pyp_wrong_type("inputs", "a dict {name: array}", inputs), -1;
    Py_ssize_t known = 0;
    for (size_t i = 0; i < self->input_count + self->optional_count; i++) {
        PyObject *object = PyDict_GetItemWithError(inputs, self->inputs[i].name);
        if (!object && PyErr_Occurred()) return -1;
        if (!object && i < self->input_count) return wrong_names(self, inputs);
        if (!object && take_default(self, &self->inputs[i]) != 0) return -1;
        if (!object) continue;
        if (py_session_bind_input(self, &self->inputs[i], object) != 0) return -1;
        known++;
    }
    return PyDict_Size(inputs) == known ? 0 : wrong_names(self, inputs);
}

int pyp_session_bind_some(pyp_session *self, PyObject *inputs)
{
    Py_ssize_t known = 0;
    if (!PyDict_Check(inputs)) return pyp_wrong_type("inputs", "a dict {name: array}", inputs), -1;
    for (size_t i = 0; i < self->input_count + self->optional_count; i++) {
        PyObject *object = PyDict_GetItemWithError(inputs, self->inputs[i].name);
        if (!object && PyErr_Occurred()) return -1;
        if (!object) continue;
        if (py_session_bind_input(self, &self->inputs[i], object) != 0) return -1;
        known++;
    }
    return PyDict_Size(inputs) == known ? 0 : wrong_names(self, inputs);
}

/* ---- methods ---- */

/* Positional and named arguments come in one array, the positional ones first, and are read here: a call builds no
 * tuple and no dict. */
static PyObject *session_run(pyp_session *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const names[] = {"inputs", "outputs", "into"};
    PyObject *given[3] = {NULL, Py_None, Py_None};
    Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    if (count > 3)
        return PyErr_Format(PyExc_TypeError, "run() takes inputs, outputs and into, not %zd arguments", count);
    for (Py_ssize_t i = 0; i < count; i++) given[i] = args[i];
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *key = PyTuple_GetItem(keywords, i);
        int which = 0;
        while (which < 3 && PyUnicode_CompareWithASCIIString(key, names[which]) != 0) which++;
        if (which == 3)
            return PyErr_Format(PyExc_TypeError, "run(): unknown argument %R; wanted inputs, outputs or into", key);
        if (which < count) return PyErr_Format(PyExc_TypeError, "run(): argument %R is given twice", key);
        given[which] = args[count + i];
    }
    if (!given[0]) return PyErr_SetString(PyExc_TypeError, "run() needs inputs: a dict {name: array}"), NULL;
    if (!PyDict_Check(given[0]) && PyDict_Check(given[1]))
        return PyErr_SetString(
                   PyExc_TypeError,
                   "run() takes the inputs first: run({name: array}, outputs=None); for ONNX Runtime's order, "
                   "run(outputs, inputs), use prony.onnxruntime.InferenceSession"),
               NULL;
    if (!PyDict_Check(given[0])) return pyp_wrong_type("inputs", "a dict {name: array}", given[0]);
    if (pyp_session_enter(self) != 0) return NULL;
    PyObject *made = pyp_session_run(self, given[0], given[1], given[2] == Py_None ? NULL : given[2]);
    pyp_session_leave(self);
    return made;
}

static PyObject *session_prepare(pyp_session *self, PyObject *args)
{
    PyObject *inputs = Py_None;
    unsigned long long seed = 0;
    if (!PyArg_ParseTuple(args, "|OK", &inputs, &seed) || pyp_session_enter(self) != 0) return NULL;
    int done = pyp_session_bind(self, inputs, seed) == 0 ? pyp_session_plan(self) : -1;
    pyp_session_leave(self);
    if (done != 0) return NULL;
    Py_RETURN_NONE;
}

/* Methods that no run depends on: callable while another thread runs the session. */
static PyObject *session_cancel(pyp_session *self, PyObject *unused)
{
    (void)unused;
    if (pyp_check_process() != 0 || closed(self) != 0) return NULL;
    prony_session_cancel(self->session);
    Py_RETURN_NONE;
}

/* A request that came when the call it was meant for had ended. */
static PyObject *session_uncancel(pyp_session *self, PyObject *unused)
{
    (void)unused;
    if (!self->session) Py_RETURN_NONE;
    if (pyp_session_enter(self) != 0) return NULL;
    (void)!prony_session_uncancel(self->session, NULL);
    pyp_session_leave(self);
    Py_RETURN_NONE;
}

static PyObject *session_addresses(pyp_session *self, PyObject *unused)
{
    (void)unused;
    if (pyp_session_enter(self) != 0) return NULL;
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < self->input_count + self->output_count; i++) {
        bool in = i < self->input_count;
        const prony_value *value = in ? prony_session_input_value(self->session, i) : NULL;
        const void *address = in ? (value ? value->data : NULL) : self->outputs[i - self->input_count].address;
        PyObject *number = PyLong_FromVoidPtr((void *)(uintptr_t)address);
        PyObject *name = in ? self->inputs[i].name : self->outputs[i - self->input_count].name;
        if (!number || PyDict_SetItem(dict, name, number) != 0) Py_CLEAR(dict);
        Py_XDECREF(number);
    }
    pyp_session_leave(self);
    return dict;
}

static PyObject *session_random(pyp_session *self, PyObject *unused)
{
    (void)unused;
    prony_error error = PYP_ERROR_INIT;
    if (pyp_session_enter(self) != 0) return NULL;
    PyObject *dict = PyDict_New();
    for (size_t k = 0; dict && k < self->output_count; k++) {
        bool random;
        prony_random_range range = {0};
        if (prony_session_output_random(self->session, k, &random, &range, &error) != PRONY_OK) {
            pyp_fail(&error, NULL);
            Py_CLEAR(dict);
            break;
        }
        PyObject *row = random ? Py_BuildValue("(ddN)", range.low, range.high, PyBool_FromLong(range.whole)) : NULL;
        if (random && (!row || PyDict_SetItem(dict, self->outputs[k].name, row) != 0)) Py_CLEAR(dict);
        Py_XDECREF(row);
    }
    pyp_session_leave(self);
    return dict;
}

static PyObject *session_closed(pyp_session *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(self->session == NULL);
}

static PyObject *session_count(pyp_session *self, void *which)
{
    if (closed(self) != 0) return NULL;
    return PyLong_FromLong(*(const char *)which == 't' ? prony_session_threads(self->session)
                                                       : prony_session_workers(self->session));
}

static PyObject *session_names(pyp_session *self, void *which)
{
    bool in = *(const char *)which == 'i';
    size_t count = in ? self->input_count : self->output_count;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *name = in ? self->inputs[i].name : self->outputs[i].name;
        Py_INCREF(name);
        if (PyList_SetItem(list, (Py_ssize_t)i, name) != 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *session_model(pyp_session *self, void *unused)
{
    (void)unused;
    Py_INCREF((PyObject *)self->model);
    return (PyObject *)self->model;
}

// clang-format off
static PyMethodDef session_methods[] = {
    METHOD("run", session_run, METH_FASTCALL | METH_KEYWORDS,
           "run(inputs, outputs=None, into=None)\n--\n\n"
           "Runs the model once: {name: array} in, {name: array} out.\n\n"
           "inputs: every input by its name, of the model's element type (no conversion) and native byte order. Contiguous arrays\n"
           "    are read in place, and held until the next call; others are copied. Objects with the buffer protocol or\n"
           "    DLPack are arrays; text is an array of str or bytes, a sequence a list, an empty optional None.\n"
           "outputs: names of the outputs to return; None: all.\n"
           "into: {name: array}, contiguous and writable, for outputs to write to; the other outputs get new arrays.\n\n"
           "The run releases the GIL. Threads that call one session take turns. Raises prony.Error and its classes."),
    METHOD("_prepare", session_prepare, METH_VARARGS, "_prepare(inputs=None, seed=0)\n--\n\nBinds (None: generates) inputs and plans."),
    METHOD("cancel", session_cancel, METH_NOARGS,
           "cancel()\n--\n\nCancels another thread's call of the session, or else the next call. That call raises prony.Cancelled."),
    METHOD("_uncancel", session_uncancel, METH_NOARGS, "_uncancel()\n--\n\nWithdraws a pending cancellation."),
    METHOD("close", session_close, METH_NOARGS, "close()\n--\n\nReleases threads, memory and held arrays. Later calls raise prony.ClosedError."),
    METHOD("_monitor", pyp_session_monitor, METH_VARARGS,
           "_monitor(every, latency_above_ns, memory_above_bytes, on_sample, on_alert)\n--\n\nMonitors runs; every=0 ends it."),
    METHOD("_addresses", session_addresses, METH_NOARGS,
           "_addresses()\n--\n\n{name: address} of the bytes that the last run read its inputs from and left its outputs in."),
    METHOD("_random", session_random, METH_NOARGS,
           "_random()\n--\n\n{output: (low, high, whole)} of the outputs that the last run drew at random."),
    {NULL, NULL, 0, NULL}};
static PyGetSetDef session_attributes[] = {
    {"closed", (getter)(void (*)(void))session_closed, NULL, "True after close()", NULL},
    {"model", (getter)(void (*)(void))session_model, NULL, "the session's model", NULL},
    {"threads", (getter)(void (*)(void))session_count, NULL, "threads inside an operator", (void *)(uintptr_t)"t"},
    {"workers", (getter)(void (*)(void))session_count, NULL, "workers that run operators side by side; 1 before the first run", (void *)(uintptr_t)"w"},
    {"input_names", (getter)(void (*)(void))session_names, NULL, "names of the inputs, in the model's order", (void *)(uintptr_t)"i"},
    {"output_names", (getter)(void (*)(void))session_names, NULL, "names of the outputs, in the model's order", (void *)(uintptr_t)"o"},
    {NULL, NULL, NULL, NULL, NULL}};
// clang-format on
static PyType_Slot session_slots[] = {{Py_tp_new, (void *)(uintptr_t)session_new},
                                      {Py_tp_methods, session_methods},
                                      {Py_tp_getset, session_attributes},
                                      {Py_tp_traverse, (void *)(uintptr_t)session_traverse},
                                      {Py_tp_clear, (void *)(uintptr_t)session_clear},
                                      {Py_tp_dealloc, (void *)(uintptr_t)session_dealloc},
                                      {Py_tp_doc, (void *)(uintptr_t)"A session of a model."},
                                      {0, NULL}};
static PyType_Spec session_spec = {"prony._prony.Session", sizeof(pyp_session), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, session_slots};

int pyp_add_session(PyObject *module)
{
    pyp_session_type = pyp_add_type(module, &session_spec, "Session");
    return pyp_session_type ? 0 : -1;
}
