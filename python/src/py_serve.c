/* Serving: prony._prony.Batcher, and watching the runs of a session. Both call Python from threads that the library
 * runs on, which take the GIL for it; no call into the library that may wait for such a thread keeps the GIL. */
#include "py_prony.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- monitor ---- */

/* Calls `function` with `argument` (taken). An exception cannot end the run: it is reported and dropped. */
static void call_back(PyObject *function, PyObject *argument)
{
    PyObject *done = argument ? PyObject_CallFunctionObjArgs(function, argument, NULL) : NULL;
    if (!done) PyErr_WriteUnraisable(function);
    Py_XDECREF(done);
    Py_XDECREF(argument);
}

static PyObject *sample_operators(const prony_sample *sample)
{
    PyObject *list = PyList_New((Py_ssize_t)sample->operator_count);
    for (size_t i = 0; list && i < sample->operator_count; i++) {
        const prony_sample_row *row = &sample->operators[i];
        PyObject *made = Py_BuildValue("{sI ss ss ss sL}", "index", (unsigned)row->index, "name", row->name, "op",
                                       row->op, "kernel", row->kernel, "time_ns", (long long)row->time_ns);
        if (!made || PyList_SetItem(list, (Py_ssize_t)i, made) != 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *sample_to(const prony_sample *sample)
{
    const prony_time_stats *latency = &sample->latency;
    PyObject *operators = sample_operators(sample);
    if (!operators) return NULL;
    return Py_BuildValue("{sK sL s{sK sL sL sL sL sL} sN sK sK sd}", "run", (unsigned long long)sample->run,
                         "latency_ns", (long long)sample->latency_ns, "latency", "count",
                         (unsigned long long)latency->count, "mean_ns", (long long)latency->mean_ns, "median_ns",
                         (long long)latency->median_ns, "min_ns", (long long)latency->min_ns, "max_ns",
                         (long long)latency->max_ns, "std_ns", (long long)latency->std_ns, "operators", operators,
                         "arena_bytes", (unsigned long long)sample->arena_bytes, "resident_bytes",
                         (unsigned long long)sample->resident_bytes, "overhead", sample->overhead);
}

static void on_sample(void *user, const prony_sample *sample)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *function = ((pyp_session *)user)->on_sample;
    Py_XINCREF(function);
    if (function) call_back(function, sample_to(sample));
    Py_XDECREF(function);
    PyGILState_Release(gil);
}

static void on_alert(void *user, const prony_alert *alert)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *function = ((pyp_session *)user)->on_alert;
    Py_XINCREF(function);
    if (function)
        call_back(function,
                  Py_BuildValue("{ss sK sK sK}", "kind", alert->kind == PRONY_ALERT_LATENCY ? "latency" : "memory",
                                "run", (unsigned long long)alert->run, "value", (unsigned long long)alert->value,
                                "threshold", (unsigned long long)alert->threshold));
    Py_XDECREF(function);
    PyGILState_Release(gil);
}

/* The functions change after the library took the new options. The former ones are released last, because destructors
 * may run any Python code. on_sample takes a reference under the GIL, so a call in progress keeps its function. */
PyObject *pyp_session_monitor(pyp_session *self, PyObject *args)
{
    unsigned long long every, memory;
    long long latency;
    PyObject *sample, *alert;
    prony_error error = PYP_ERROR_INIT;
    if (!PyArg_ParseTuple(args, "KLKOO", &every, &latency, &memory, &sample, &alert)) return NULL;
    if (pyp_session_enter(self) != 0) return NULL;
    prony_monitor_options options = PRONY_MONITOR_OPTIONS_INIT;
    options.every = every;
    options.latency_above_ns = latency;
    options.memory_above_bytes = memory;
    options.sample = on_sample;
    options.alert = on_alert;
    options.user = self;
    prony_status status = prony_session_monitor(self->session, every ? &options : NULL, &error);
    if (status == PRONY_OK) {
        PyObject *former_sample = self->on_sample, *former_alert = self->on_alert;
        Py_INCREF(self->on_sample = sample);
        Py_INCREF(self->on_alert = alert);
        if (!every) {
            Py_CLEAR(self->on_sample);
            Py_CLEAR(self->on_alert);
        }
        Py_XDECREF(former_sample);
        Py_XDECREF(former_alert);
    }
    pyp_session_leave(self);
    if (status != PRONY_OK) return pyp_fail(&error, NULL);
    Py_RETURN_NONE;
}

/* ---- batcher ---- */

static PyTypeObject *batcher_type;

typedef struct pyp_batcher {
    PyObject_HEAD prony_batcher *batcher; /* NULL: closed */
    pyp_model *model;
    Py_ssize_t inside; /* calls that use `batcher` without the GIL */
    uint32_t mark;
} pyp_batcher;

static _Thread_local bool answering; /* this thread calls a `done` function: it may not wait for the batcher */

/* A request on its way: what the library borrows until the answer. */
typedef struct request {
    PyObject *done; /* callable */
    pyp_model *model;
    size_t count;
    pyp_value *values;
    const prony_value **inputs;
} request;

static void request_free(request *r)
{
    for (size_t i = 0; r->values && i < r->count; i++) pyp_value_release(&r->values[i]);
    free(r->values);
    free((void *)r->inputs);
    Py_XDECREF(r->done);
    Py_XDECREF((PyObject *)r->model);
    free(r);
}

/* Refuses names that are not inputs of the model. */
static int known_names(const prony_model *model, PyObject *inputs)
{
    Py_ssize_t place = 0;
    PyObject *key, *value;
    while (PyDict_Next(inputs, &place, &key, &value)) {
        size_t i = 0, count = prony_model_input_count(model);
        if (!PyUnicode_Check(key)) return pyp_wrong_type("inputs", "names as str", key), -1;
        const char *given = PyUnicode_AsUTF8AndSize(key, NULL);
        if (!given) return -1;
        while (i < count && strcmp(given, prony_model_input(model, i)->name) != 0) i++;
        if (i < count) continue;
        PyObject *list = PyList_New(0);
        for (i = 0; list && i < count; i++) {
            PyObject *name = PyUnicode_FromString(prony_model_input(model, i)->name);
            if (!name || PyList_Append(list, name) != 0) Py_CLEAR(list);
            Py_XDECREF(name);
        }
        PyObject *text = list ? PyUnicode_FromFormat("unknown input %R; the model's inputs are %R", key, list) : NULL;
        const char *words = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
        if (words) pyp_raise(PRONY_INVALID_ARGUMENT, "%s", words);
        Py_XDECREF(text);
        Py_XDECREF(list);
        return -1;
    }
    return 0;
}

/* The inputs of a dict {name: array}, all of them, in the model's order. NULL with an exception. */
static request *request_new(pyp_model *model, PyObject *inputs, PyObject *done)
{
    if (known_names(model->model, inputs) != 0) return NULL;
    request *r = calloc(1, sizeof *r);
    if (!r) return PyErr_NoMemory(), NULL;
    r->count = prony_model_input_count(model->model);
    Py_INCREF(r->done = done);
    Py_INCREF((PyObject *)(r->model = model));
    r->values = calloc(r->count + 1, sizeof *r->values);
    r->inputs = calloc(r->count + 1, sizeof *r->inputs);
    if (!r->values || !r->inputs) return PyErr_NoMemory(), request_free(r), NULL;
    for (size_t i = 0; i < r->count; i++) {
        const prony_value_info *port = prony_model_input(model->model, i);
        PyObject *object = PyDict_GetItemString(inputs, port->name);
        if (!object || pyp_value_from(&r->values[i], object, port) != 0) {
            if (!object && !PyErr_Occurred()) pyp_raise(PRONY_INVALID_ARGUMENT, "input '%s' is missing", port->name);
            request_free(r);
            return NULL;
        }
        r->inputs[i] = &r->values[i].value;
    }
    return r;
}

static PyObject *outputs_to(const pyp_model *model, const prony_batch_result *result)
{
    PyObject *dict = PyDict_New();
    for (size_t k = 0; dict && k < result->output_count; k++) {
        PyObject *array = pyp_value_to(result->outputs[k]);
        if (!array || PyDict_SetItemString(dict, prony_model_output(model->model, k)->name, array) != 0) Py_CLEAR(dict);
        Py_XDECREF(array);
    }
    return dict;
}

/* Calls done(status, message, outputs, batch, queue_ns, run_ns) on a thread of the library. */
static void on_done(void *user, const prony_batch_result *result)
{
    request *r = user;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *outputs = result->status == PRONY_OK ? outputs_to(r->model, result) : (Py_INCREF(Py_None), Py_None);
    const char *message = *result->message ? result->message : prony_status_text(result->status);
    PyObject *text = outputs ? PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace") : NULL;
    PyObject *called = NULL;
    const bool was_answering = answering; /* `done` may submit, and be refused at once */
    answering = true;
    if (text)
        called = PyObject_CallFunction(r->done, "iOOLLL", (int)result->status, text, outputs, (long long)result->batch,
                                       (long long)(result->started_ns - result->submitted_ns),
                                       (long long)(result->finished_ns - result->started_ns));
    else { /* out of memory: the caller waits for an answer all the same */
        PyErr_WriteUnraisable(r->done);
        called = PyObject_CallFunction(r->done, "isOiii", (int)PRONY_OUT_OF_MEMORY, "out of memory", Py_None, 0, 0, 0);
    }
    if (!called) PyErr_WriteUnraisable(r->done);
    Py_XDECREF(called);
    Py_XDECREF(text);
    Py_XDECREF(outputs);
    request_free(r);
    answering = was_answering;
    PyGILState_Release(gil);
}

static int batcher_closed(const pyp_batcher *self)
{
    if (self->batcher) return 0;
    PyObject *type = pyp_helper("errors", "ClosedError");
    if (type) PyErr_SetString(type, "the batcher is closed");
    Py_XDECREF(type);
    return -1;
}

/* The batcher holds a reference to its model. Creation plans and may take long, so it releases the GIL; the new object
 * is not visible to other threads yet. The mark lets a forked child leave the batcher's threads alone. */
static PyObject *batcher_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *model, *session;
    int sessions;
    long long max_batch, max_wait;
    unsigned long long max_queue;
    prony_error error = PYP_ERROR_INIT;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "O!OiLLK", pyp_model_type, &model, &session, &sessions, &max_batch, &max_wait,
                          &max_queue) ||
        pyp_check_process() != 0)
        return NULL;
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    pyp_batcher *self = (pyp_batcher *)make(type, 0);
    if (!self) return NULL;
    Py_INCREF(model);
    self->model = (pyp_model *)model;
    self->mark = pyp_process_mark();
    prony_batcher_options options = PRONY_BATCHER_OPTIONS_INIT;
    options.sessions = sessions;
    options.max_batch = max_batch;
    options.max_wait_ns = max_wait;
    options.max_queue = (size_t)max_queue;
    pyp_options o;
    prony_status status = PRONY_INTERNAL;
    if (pyp_options_from(&o, session) == 0) {
        pyp_process_used();
        Py_BEGIN_ALLOW_THREADS status =
            prony_batcher_create(&self->batcher, self->model->model, &o.session, &options, &error);
        Py_END_ALLOW_THREADS if (status != PRONY_OK) pyp_fail(&error, self->model->registry);
    }
    pyp_options_release(&o);
    if (status != PRONY_OK) Py_CLEAR(self);
    return (PyObject *)self;
}

static PyObject *batcher_submit(pyp_batcher *self, PyObject *args)
{
    PyObject *inputs, *done;
    prony_error error = PYP_ERROR_INIT;
    prony_status status;
    if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &inputs, &done) || pyp_check_process() != 0) return NULL;
    if (batcher_closed(self) != 0) return NULL;
    request *r = request_new(self->model, inputs, done);
    if (!r) return NULL;
    if (batcher_closed(self) != 0) return request_free(r), NULL; /* an array's own code may have run meanwhile */
    prony_batcher *batcher = self->batcher;
    self->inside++;
    Py_BEGIN_ALLOW_THREADS status = prony_batcher_submit(batcher, r->inputs, r->count, on_done, r, &error);
    Py_END_ALLOW_THREADS self->inside--;
    if (status != PRONY_OK) return request_free(r), pyp_fail(&error, NULL);
    Py_RETURN_NONE;
}

static void *release_batcher(void *batcher)
{
    prony_batcher_release(batcher);
    return NULL;
}

/* Waits for every request, the calls of other threads included. An answer that drops the last reference leaves waiting
 * to a thread of its own. */
static void batcher_end(pyp_batcher *self, bool drop)
{
    prony_batcher *batcher = self->batcher;
    self->batcher = NULL;
    if (!batcher || self->mark != pyp_process_mark()) return;
    Py_BEGIN_ALLOW_THREADS prony_batcher_close(batcher, drop);
    Py_END_ALLOW_THREADS while (self->inside) /* calls that took the handle before it was NULL */
    {
        Py_BEGIN_ALLOW_THREADS sched_yield();
        Py_END_ALLOW_THREADS
    }
    pthread_t thread;
    if (answering) {
        if (pthread_create(&thread, NULL, release_batcher, batcher) == 0) pthread_detach(thread);
        return;
    }
    Py_BEGIN_ALLOW_THREADS prony_batcher_release(batcher);
    Py_END_ALLOW_THREADS
}

static PyObject *batcher_close(pyp_batcher *self, PyObject *args)
{
    int drop = 0;
    if (!PyArg_ParseTuple(args, "|p", &drop)) return NULL;
    if (answering) return pyp_raise(PRONY_BUSY, "a callback cannot close its batcher: it would wait for itself");
    batcher_end(self, drop != 0);
    Py_RETURN_NONE;
}

static PyObject *batcher_trial(pyp_batcher *self, void *unused)
{
    (void)unused;
    if (batcher_closed(self) != 0) return NULL;
    const prony_batch_trial trial = prony_batcher_trial(self->batcher);
    PyObject *sizes = PyList_New(trial.sizes_count);
    for (int i = 0; sizes && i < trial.sizes_count; i++) {
        PyObject *size = PyLong_FromLongLong(trial.sizes[i]);
        if (!size || PyList_SetItem(sizes, i, size) != 0) Py_CLEAR(sizes);
    }
    if (!sizes) return NULL;
    return Py_BuildValue("{sN sN sd sN si}", "known", PyBool_FromLong(trial.known), "identical",
                         PyBool_FromLong(trial.identical), "largest_difference", trial.largest, "sizes", sizes,
                         "threads", trial.threads);
}

static PyObject *batcher_is_closed(pyp_batcher *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(self->batcher == NULL);
}

static int batcher_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT((PyObject *)((pyp_batcher *)object)->model);
    return 0;
}

static void batcher_dealloc(PyObject *object)
{
    pyp_batcher *self = (pyp_batcher *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    batcher_end(self, true);
    Py_XDECREF((PyObject *)self->model);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

// clang-format off
static PyMethodDef batcher_methods[] = {
    METHOD("_submit", batcher_submit, METH_VARARGS,
           "_submit(inputs, done)\n--\n\nQueues a request; done(status, message, outputs, batch, queue_ns, run_ns) is called by a thread of the batcher."),
    METHOD("_close", batcher_close, METH_VARARGS, "_close(drop=False)\n--\n\nServes (drop: cancels) the waiting requests, and ends the threads."),
    {NULL, NULL, 0, NULL}};
static PyGetSetDef batcher_attributes[] = {
    {"closed", (getter)(void (*)(void))batcher_is_closed, NULL, "True after close()", NULL},
    {"trial", (getter)(void (*)(void))batcher_trial, NULL,
     "comparison of combined and single runs on generated inputs: known, identical, largest_difference, sizes, threads", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
// clang-format on
static PyType_Slot batcher_slots[] = {{Py_tp_new, (void *)(uintptr_t)batcher_new},
                                      {Py_tp_methods, batcher_methods},
                                      {Py_tp_getset, batcher_attributes},
                                      {Py_tp_traverse, (void *)(uintptr_t)batcher_traverse},
                                      {Py_tp_dealloc, (void *)(uintptr_t)batcher_dealloc},
                                      {Py_tp_doc, (void *)(uintptr_t)"Combines requests into runs."},
                                      {0, NULL}};
static PyType_Spec batcher_spec = {"prony._prony.Batcher", sizeof(pyp_batcher), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, batcher_slots};

int pyp_add_batcher(PyObject *module)
{
    batcher_type = pyp_add_type(module, &batcher_spec, "Batcher");
    return batcher_type ? 0 : -1;
}
