/* prony._prony.Study: a thread-scaling study that is planned, measured in processes that the Python side starts, and
 * read. */
#include "py_prony.h"

#include <stdlib.h>
#include <string.h>

typedef struct study {
    PyObject_HEAD prony_study *study;
    PyObject *model;       /* may be NULL */
    prony_study_task task; /* that study_next gave */
    uint32_t mark;
} study;

PyTypeObject *pyp_study_type;

static PyObject *wrap(prony_study *handle, PyObject *model)
{
    PyObject *type = pyp_helper("study", "Study");
    allocfunc make = type ? (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc) : NULL;
    study *self = make ? (study *)make((PyTypeObject *)type, 0) : NULL;
    Py_XDECREF(type);
    if (!self) return prony_study_release(handle), NULL;
    self->study = handle;
    self->mark = pyp_process_mark();
    Py_XINCREF(self->model = model);
    return (PyObject *)self;
}

static void study_dealloc(PyObject *object)
{
    study *self = (study *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->mark == pyp_process_mark()) prony_study_release(self->study);
    Py_XDECREF(self->model);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyObject *study_load(PyObject *module, PyObject *args)
{
    PyObject *path;
    prony_error error = PYP_ERROR_INIT;
    prony_study *made = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) return NULL;
    prony_status status = prony_study_load(&made, PyBytes_AsString(path), NULL, &error);
    Py_DECREF(path);
    if (status == PRONY_OK) status = prony_study_analyse(made, &error);
    if (status == PRONY_OK) return wrap(made, NULL);
    prony_study_release(made);
    return pyp_fail(&error, NULL);
}

/* A list of numbers, in memory that the caller frees. */
static int py_study_numbers_of(PyObject *dict, const char *key, int64_t **out, size_t *count)
{
    PyObject *list = PyDict_GetItemString(dict, key);
    Py_ssize_t n = list && list != Py_None ? PySequence_Size(list) : 0;
    if (n < 0 || !(*out = calloc((size_t)n + 1, sizeof **out))) return n < 0 ? -1 : (PyErr_NoMemory(), -1);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        (*out)[i] = item ? PyLong_AsLongLong(item) : 0;
        Py_XDECREF(item);
        if (PyErr_Occurred()) return -1;
    }
    *count = (size_t)n;
    return 0;
}

/* The arrays of `options` are freed here: prony_study_create copies them. A Python exception goes before the library's
 * status. processes beyond an int become 0, the library's default. */
static PyObject *study_plan(PyObject *module, PyObject *args)
{
    PyObject *object, *session, *dict;
    prony_error error = PYP_ERROR_INIT;
    prony_study_options options = PRONY_STUDY_OPTIONS_INIT;
    int64_t *intra = NULL, *inter = NULL, *batches = NULL, seed = 0, processes = 0;
    prony_study *made = NULL;
    prony_status status = PRONY_INTERNAL;
    pyp_options o = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "O!OO!", pyp_model_type, &object, &session, &PyDict_Type, &dict) ||
        pyp_check_process() != 0)
        return NULL;
    if (pyp_options_from(&o, session) == 0 &&
        py_study_numbers_of(dict, "threads", &intra, &options.intra_op_count) == 0 &&
        py_study_numbers_of(dict, "inter_op", &inter, &options.inter_op_count) == 0 &&
        py_study_numbers_of(dict, "batches", &batches, &options.batch_count) == 0 &&
        pyp_get_bool(dict, "weak", &options.weak) == 0 && pyp_get_int(dict, "seed", &seed) == 0 &&
        pyp_get_int(dict, "processes", &processes) == 0 && pyp_get_int(dict, "runs", &options.runs) == 0 &&
        pyp_get_double(dict, "seconds", &options.seconds) == 0 &&
        pyp_get_int(dict, "warmup", &options.warmup_runs) == 0 &&
        pyp_get_double(dict, "budget", &options.budget_seconds) == 0) {
        options.intra_op = intra;
        options.inter_op = inter;
        options.batches = batches;
        options.seed = (uint64_t)seed;
        options.processes = processes > 0 && processes < 100000 ? (int)processes : 0;
        options.session = &o.session;
        Py_BEGIN_ALLOW_THREADS status = prony_study_create(&made, ((pyp_model *)object)->model, &options, &error);
        Py_END_ALLOW_THREADS
    }
    pyp_options_release(&o);
    free(intra);
    free(inter);
    free(batches);
    if (PyErr_Occurred()) return prony_study_release(made), NULL;
    return status == PRONY_OK ? wrap(made, object) : pyp_fail(&error, NULL);
}

static PyObject *study_next(study *self, PyObject *unused)
{
    (void)unused;
    if (!prony_study_next(self->study, &self->task)) Py_RETURN_NONE;
    const prony_study_task *t = &self->task;
    return Py_BuildValue("{sn sn si sN si si sL ss sL sL sd}", "block", (Py_ssize_t)t->block, "configuration",
                         (Py_ssize_t)t->configuration, "process", t->process, "again", PyBool_FromLong(t->repeated),
                         "threads", t->intra_op_threads, "inter_op", t->inter_op_threads, "batch", (long long)t->batch,
                         "precision", t->precision, "runs", (long long)t->runs, "warmup", (long long)t->warmup_runs,
                         "seconds", t->seconds);
}

/* begin() before a process is started, add() when it has ended. */
static PyObject *machine_state(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    prony_machine_state state;
    prony_machine_state_read(&state);
    return PyBytes_FromStringAndSize((const char *)&state, sizeof state);
}

static PyObject *study_add(study *self, PyObject *args)
{
    prony_error error = PYP_ERROR_INIT;
    prony_study_process process = {0};
    const char *before, *after;
    Py_ssize_t size, before_size, after_size;
    long long cpu_ns;
    int refused;
    if (!PyArg_ParseTuple(args, "z#zpLy#y#", &process.sample, &size, &process.failure, &refused, &cpu_ns, &before,
                          &before_size, &after, &after_size))
        return NULL;
    if (before_size != sizeof process.before || after_size != sizeof process.after)
        return pyp_raise(PRONY_INVALID_ARGUMENT, "invalid state of the machine");
    memcpy(&process.before, before, sizeof process.before);
    memcpy(&process.after, after, sizeof process.after);
    process.sample_bytes = (size_t)size;
    process.refused = refused != 0;
    process.cpu_ns = cpu_ns;
    if (prony_study_add(self->study, &self->task, &process, &error) != PRONY_OK) return pyp_fail(&error, NULL);
    Py_RETURN_NONE;
}

static PyObject *study_analyse(study *self, PyObject *unused)
{
    (void)unused;
    prony_error error = PYP_ERROR_INIT;
    if (prony_study_analyse(self->study, &error) != PRONY_OK) return pyp_fail(&error, NULL);
    Py_RETURN_NONE;
}

static PyObject *study_progress(study *self, PyObject *unused)
{
    (void)unused;
    prony_study_progress p;
    prony_study_progress_of(self->study, &p);
    return Py_BuildValue("{sn sn sn sn sd}", "done", (Py_ssize_t)p.done, "planned", (Py_ssize_t)p.planned, "failed",
                         (Py_ssize_t)p.failed, "disturbed", (Py_ssize_t)p.disturbed, "seconds_left", p.seconds_left);
}

static PyObject *study_write(study *self, PyObject *args)
{
    const char *form, *chart = NULL;
    prony_error error = PYP_ERROR_INIT;
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    pyp_text text = {0};
    prony_status status;
    if (!PyArg_ParseTuple(args, "s|z", &form, &chart)) return NULL;
    prony_format format = *form == 'j'   ? PRONY_FORMAT_JSON
                          : *form == 'c' ? PRONY_FORMAT_CSV
                          : *form == 'h' ? PRONY_FORMAT_HTML
                          : *form == 's' ? PRONY_FORMAT_SVG
                                         : PRONY_FORMAT_TEXT;
    options.chart = chart;
    options.width = 110;
    status = prony_study_write(self->study, format, &options, pyp_text_write, &text, &error);
    return pyp_text_take(&text, status, &error);
}

static PyObject *study_save(study *self, PyObject *args)
{
    PyObject *path;
    prony_error error = PYP_ERROR_INIT;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) return NULL;
    prony_status status = prony_study_save(self->study, PRONY_FORMAT_JSON, NULL, PyBytes_AsString(path), &error);
    Py_DECREF(path);
    if (status != PRONY_OK) return pyp_fail(&error, NULL);
    Py_RETURN_NONE;
}

static PyObject *study_compare(study *self, PyObject *earlier)
{
    prony_error error = PYP_ERROR_INIT;
    size_t different = 0;
    if (!PyObject_TypeCheck(earlier, pyp_study_type)) return pyp_wrong_type("earlier", "a prony.Study", earlier);
    if (prony_study_compare(self->study, ((study *)earlier)->study, &different, &error) != PRONY_OK)
        return pyp_fail(&error, NULL);
    return PyLong_FromSize_t(different);
}

static PyObject *study_sample(PyObject *module, PyObject *args)
{
    PyObject *latency, *operators;
    prony_error error = PYP_ERROR_INIT;
    pyp_text text = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O", pyp_report_type, &latency, &operators)) return NULL;
    const prony_report *second = operators != Py_None && PyObject_TypeCheck(operators, pyp_report_type)
                                     ? ((pyp_report *)operators)->report
                                     : NULL;
    prony_status status =
        prony_study_sample_write(((pyp_report *)latency)->report, second, pyp_text_write, &text, &error);
    return pyp_text_take(&text, status, &error);
}

static PyMethodDef study_methods[] = {
    METHOD("_next", study_next, METH_NOARGS, "_next()\n--\n\nReturns the next task; None: the study is complete."),
    METHOD("_add", study_add, METH_VARARGS,
           "_add(sample, failure, refused, cpu_ns, before, after)\n--\n\nAdds the results of a process."),
    METHOD("_analyse", study_analyse, METH_NOARGS, "_analyse()\n--\n\nAnalyses the measurements so far."),
    METHOD("_progress", study_progress, METH_NOARGS, "_progress()\n--\n\nReturns the progress."),
    METHOD("_write", study_write, METH_VARARGS,
           "_write(form, chart=None)\n--\n\nReturns the study in a format, as text."),
    METHOD("_save", study_save, METH_VARARGS, "_save(path)\n--\n\nThe study as a file."),
    METHOD("_compare", study_compare, METH_O,
           "_compare(earlier)\n--\n\nReturns the number of configurations that differ."),
    {NULL, NULL, 0, NULL}};
static PyType_Slot study_slots[] = {{Py_tp_methods, study_methods},
                                    {Py_tp_dealloc, (void *)(uintptr_t)study_dealloc},
                                    {Py_tp_doc, (void *)(uintptr_t)"A thread-scaling study."},
                                    {0, NULL}};
static PyType_Spec study_spec = {"prony._prony.Study", sizeof(study), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 study_slots};

static PyMethodDef functions[] = {
    METHOD("load_study", study_load, METH_VARARGS, "load_study(path)\n--\n\nA study from its file."),
    METHOD("plan_study", study_plan, METH_VARARGS,
           "plan_study(model, session, options)\n--\n\nA study to be measured."),
    METHOD("study_sample", study_sample, METH_VARARGS,
           "study_sample(latency, operators)\n--\n\nReturns the sample of a process of a study."),
    METHOD("machine_state", machine_state, METH_NOARGS,
           "machine_state()\n--\n\nThe machine at this moment, for Study._add."),
    {NULL, NULL, 0, NULL}};

int pyp_add_study(PyObject *module)
{
    pyp_study_type = pyp_add_type(module, &study_spec, "Study");
    return pyp_study_type ? PyModule_AddFunctions(module, functions) : -1;
}
