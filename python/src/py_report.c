/* prony._prony.Report: a report of the library; and profiles, which make them. */
#include "py_prony.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject *pyp_report_type;

PyObject *pyp_report_wrap(prony_report *report)
{
    PyObject *type = pyp_helper("report", "Report");
    allocfunc make = type ? (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc) : NULL;
    pyp_report *self = make ? (pyp_report *)make((PyTypeObject *)type, 0) : NULL;
    Py_XDECREF(type);
    if (!self) {
        prony_report_release(report);
        return NULL;
    }
    self->report = report;
    self->mark = pyp_process_mark();
    return (PyObject *)self;
}

static void report_dealloc(PyObject *object)
{
    pyp_report *self = (pyp_report *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->mark == pyp_process_mark()) prony_report_release(self->report);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* ---- forms ---- */

static int py_report_form_of(prony_format *out, const char *name)
{
    static const char *const names[] = {"text", "json", "csv", "latex", "trace", "folded", "dot", "svg", "html"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return *out = (prony_format)i, 0;
    return pyp_raise(PRONY_INVALID_ARGUMENT,
                     "unknown format '%s'; wanted text, json, csv, latex, trace, folded, dot, svg or html", name),
           -1;
}

static int write_options_of(prony_write_options *out, PyObject *dict)
{
    int64_t width = 0, levels = 0;
    if (pyp_get_int(dict, "width", &width) != 0 || pyp_get_int(dict, "levels", &levels) != 0 ||
        pyp_get_int(dict, "top", &out->top) != 0 || pyp_get_text(dict, "sort", &out->sort) != 0 ||
        pyp_get_text(dict, "filter", &out->filter) != 0 || pyp_get_bool(dict, "memory", &out->memory) != 0 ||
        pyp_get_text(dict, "chart", &out->chart) != 0 || pyp_get_bool(dict, "all", &out->all) != 0 ||
        pyp_get_int(dict, "module_depth", &out->module_depth) != 0 || pyp_get_bool(dict, "color", &out->color) != 0)
        return -1;
    out->width = width > 0 && width < 10000 ? (int)width : 0;
    out->levels = levels > 0 ? (unsigned)levels : 0;
    return 0;
}

static PyObject *report_write(pyp_report *self, PyObject *args)
{
    const char *form;
    PyObject *dict;
    prony_format format;
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    prony_error error = PYP_ERROR_INIT;
    pyp_text text = {0};
    prony_status status;
    if (!PyArg_ParseTuple(args, "sO", &form, &dict) || py_report_form_of(&format, form) != 0 ||
        write_options_of(&options, dict) != 0)
        return NULL;
    status = prony_report_write(self->report, format, &options, pyp_text_write, &text, &error);
    return pyp_text_take(&text, status, &error);
}

static PyObject *report_save(pyp_report *self, PyObject *args)
{
    const char *form;
    PyObject *dict, *path;
    prony_format format;
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    prony_error error = PYP_ERROR_INIT;
    prony_status status;
    if (!PyArg_ParseTuple(args, "O&sO", PyUnicode_FSConverter, &path, &form, &dict)) return NULL;
    if (py_report_form_of(&format, form) != 0 || write_options_of(&options, dict) != 0) return Py_DECREF(path), NULL;
    const char *file = PyBytes_AsString(path);
    status = prony_report_save(self->report, format, &options, file, &error);
    Py_DECREF(path);
    if (status != PRONY_OK) return pyp_fail(&error, NULL);
    Py_RETURN_NONE;
}

static PyObject *report_count(pyp_report *self, PyObject *args)
{
    const char *preset;
    prony_error error = PYP_ERROR_INIT;
    if (!PyArg_ParseTuple(args, "z", &preset)) return NULL;
    if (prony_report_set_count(self->report, preset, &error) != PRONY_OK) return pyp_fail(&error, NULL);
    Py_RETURN_NONE;
}

static PyObject *report_samples(pyp_report *self, PyObject *args)
{
    Py_ssize_t layer;
    if (!PyArg_ParseTuple(args, "n", &layer)) return NULL;
    size_t count = layer < 0 ? 0 : prony_report_layer_samples(self->report, (size_t)layer, NULL, 0);
    int64_t *samples = malloc((count + 1) * sizeof *samples);
    if (!samples) return PyErr_NoMemory();
    if (count) prony_report_layer_samples(self->report, (size_t)layer, samples, count);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(samples[i]);
        if (!number || PyList_SetItem(list, (Py_ssize_t)i, number) != 0) Py_CLEAR(list);
    }
    free(samples);
    return list;
}

static PyObject *report_metrics(pyp_report *self, PyObject *unused)
{
    (void)unused;
    prony_error error = PYP_ERROR_INIT;
    prony_metrics *metrics = NULL;
    pyp_text text = {0};
    prony_status status = prony_metrics_create(&metrics, &error);
    if (status == PRONY_OK)
        status = prony_metrics_write(metrics, self->report, NULL, true, PRONY_FORMAT_JSON, NULL, pyp_text_write, &text,
                                     &error);
    prony_metrics_release(metrics);
    return pyp_text_take(&text, status, &error);
}

static PyObject *report_types(pyp_report *self, PyObject *unused)
{
    (void)unused;
    prony_error error = PYP_ERROR_INIT;
    prony_type_row *rows = NULL;
    size_t count = 0;
    if (prony_report_types(&rows, &count, self->report, &error) != PRONY_OK) return pyp_fail(&error, NULL);
    bool timed = prony_report_latency(self->report) != NULL;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        const prony_type_row *r = &rows[i];
        PyObject *time = timed ? PyLong_FromLongLong(r->time_ns) : Py_BuildValue("");
        PyObject *row = Py_BuildValue("{ss sK sK sK sK sN sd sd}", "op", r->op, "count", (unsigned long long)r->count,
                                      "macs", (unsigned long long)r->macs, "flops", (unsigned long long)r->flops,
                                      "parameters", (unsigned long long)r->parameters, "time_ns", time, "share",
                                      r->share, "cumulative", r->cumulative);
        if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) != 0) Py_CLEAR(list);
    }
    prony_rows_release(rows);
    return list;
}

static PyObject *report_critical_path(pyp_report *self, PyObject *unused)
{
    (void)unused;
    prony_error error = PYP_ERROR_INIT;
    uint32_t *operators = NULL;
    size_t count = 0;
    int64_t time_ns = 0;
    if (prony_report_critical_path(&operators, &count, &time_ns, self->report, &error) != PRONY_OK)
        return pyp_fail(&error, NULL);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLong(operators[i]);
        if (!number || PyList_SetItem(list, (Py_ssize_t)i, number) != 0) Py_CLEAR(list);
    }
    prony_rows_release(operators);
    return list ? Py_BuildValue("(NL)", list, (long long)time_ns) : NULL;
}

static PyObject *report_load(PyObject *module, PyObject *args)
{
    const char *name, *data;
    Py_ssize_t size;
    prony_error error = PYP_ERROR_INIT;
    prony_report *report = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "sy#", &name, &data, &size)) return NULL;
    if (prony_report_load_memory(&report, name, data, (size_t)size, &error) != PRONY_OK) return pyp_fail(&error, NULL);
    return pyp_report_wrap(report);
}

/* ---- profiles ---- */

typedef struct progress {
    PyObject *callable;
    prony_session *const *sessions;
    size_t count;
    bool raised; /* the exception is kept in these three */
    PyObject *type, *value, *trace;
} progress;

static void py_report_show_progress(void *user, int64_t runs, double seconds, double error)
{
    progress *p = user;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *done = p->raised ? NULL : PyObject_CallFunction(p->callable, "Ldd", (long long)runs, seconds, error);
    if (!done && !p->raised) {
        PyErr_Fetch(&p->type, &p->value, &p->trace);
        p->raised = true;
        for (size_t i = 0; i < p->count; i++) prony_session_cancel(p->sessions[i]);
    }
    Py_XDECREF(done);
    PyGILState_Release(gil);
}

static int profile_options_of(prony_profile_options *out, PyObject *dict, progress *p)
{
    PyObject *callable = PyDict_GetItemString(dict, "progress");
    if (callable && callable != Py_None) {
        p->callable = callable;
        out->progress = py_report_show_progress;
        out->progress_user = p;
    }
    return pyp_get_int(dict, "warmup", &out->warmup_runs) != 0 || pyp_get_int(dict, "runs", &out->runs) != 0 ||
                   pyp_get_double(dict, "seconds", &out->max_seconds) != 0 ||
                   pyp_get_bool(dict, "keep_samples", &out->keep_samples) != 0 ||
                   pyp_get_bool(dict, "trace_threads", &out->trace_threads) != 0 ||
                   pyp_get_bool(dict, "measure_cost", &out->measure_cost) != 0 ||
                   pyp_get_bool(dict, "count_hardware", &out->count_hardware) != 0
               ? -1
               : 0;
}

/* Sessions that this thread has entered. */
typedef struct entered {
    pyp_session **all;
    prony_session **handles;
    size_t count, held;
} entered;

static void leave_all(entered *e)
{
    for (size_t i = e->held; i-- > 0;) pyp_session_leave(e->all[i]);
    free(e->all);
    free(e->handles);
}

static int py_report_by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)*(pyp_session *const *)a, y = (uintptr_t)*(pyp_session *const *)b;
    return x < y ? -1 : x > y;
}

/* In the order of their addresses, so that two callers never wait for one another. */
static int enter_all(entered *e, PyObject *list)
{
    Py_ssize_t count = PyList_Size(list);
    if (count < 1) return PyErr_Occurred() ? -1 : (pyp_raise(PRONY_INVALID_ARGUMENT, "no session to profile"), -1);
    *e =
        (entered){malloc((size_t)count * sizeof *e->all), malloc((size_t)count * sizeof *e->handles), (size_t)count, 0};
    if (!e->all || !e->handles) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (!PyObject_TypeCheck(item, pyp_session_type)) return pyp_wrong_type("sessions", "a prony.Session", item), -1;
        e->all[i] = (pyp_session *)item;
    }
    qsort(e->all, e->count, sizeof *e->all, py_report_by_address);
    for (; e->held < e->count; e->held++)
        if (pyp_session_enter(e->all[e->held]) != 0) return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        e->all[i]->planned = false;
        e->handles[i] = ((pyp_session *)PyList_GetItem(list, i))->session;
    }
    return 0;
}

static PyObject *wrap_all(prony_report **reports, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; i < count; i++) {
        PyObject *report = list ? pyp_report_wrap(reports[i]) : NULL;
        if (!list) prony_report_release(reports[i]);
        if (list && (!report || PyList_SetItem(list, (Py_ssize_t)i, report) != 0)) Py_CLEAR(list);
    }
    return list;
}

/* The sessions' locks are held by the caller. Order of failures: an exception of the progress function, Ctrl-C, the
 * library's status. Reports go to Python objects on success and are released otherwise; a NULL one may be released. */
static PyObject *profile_entered(entered *e, const prony_profile_options *options, progress *p)
{
    prony_error error = PYP_ERROR_INIT;
    prony_status status;
    prony_report **reports = calloc(e->count, sizeof *reports);
    pyp_guard guard;
    PyObject *made = NULL;
    if (!reports) return PyErr_NoMemory();
    p->sessions = e->handles;
    p->count = e->count;
    pyp_guard_begin(&guard, e->handles, e->count);
    Py_BEGIN_ALLOW_THREADS status = e->count == 1
                                        ? prony_session_profile(&reports[0], e->handles[0], options, &error)
                                        : prony_profile_interleaved(reports, e->handles, e->count, options, &error);
    Py_END_ALLOW_THREADS bool pressed = pyp_guard_end(&guard);
    if (p->raised)
        PyErr_Restore(p->type, p->value, p->trace);
    else if (pressed && PyErr_CheckSignals() != 0)
        status = PRONY_CANCELLED;
    else if (status != PRONY_OK)
        pyp_fail(&error, e->all[0]->model->registry);
    if (!PyErr_Occurred())
        made = wrap_all(reports, e->count);
    else
        for (size_t i = 0; i < e->count; i++) prony_report_release(reports[i]);
    free(reports);
    return made;
}

static PyObject *py_report_profile(PyObject *module, PyObject *args)
{
    PyObject *list, *dict, *made = NULL;
    prony_profile_options options = PRONY_PROFILE_OPTIONS_INIT;
    progress p = {0};
    entered e = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &list, &PyDict_Type, &dict) ||
        profile_options_of(&options, dict, &p) != 0)
        return NULL;
    if (enter_all(&e, list) == 0) made = profile_entered(&e, &options, &p);
    leave_all(&e);
    return made;
}

static PyObject *count_presets(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < prony_count_preset_count(); i++) {
        PyObject *name = PyUnicode_FromString(prony_count_preset_at(i)->name);
        if (!name || PyList_Append(list, name) != 0) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static PyMethodDef report_methods[] = {
    METHOD("_write", report_write, METH_VARARGS, "_write(form, options)\n--\n\nThe report in a form, as text."),
    METHOD("_save", report_save, METH_VARARGS, "_save(path, form, options)\n--\n\nThe report as a file."),
    METHOD("_set_count", report_count, METH_VARARGS, "_set_count(preset)\n--\n\nChooses a counting preset."),
    METHOD("_samples", report_samples, METH_VARARGS, "_samples(layer)\n--\n\nTimes of a layer, ns, run by run."),
    METHOD("_types", report_types, METH_NOARGS, "_types()\n--\n\nSums by operator type, as rows."),
    METHOD("_critical_path", report_critical_path, METH_NOARGS, "_critical_path()\n--\n\n(operators, ns)"),
    METHOD("_metrics", report_metrics, METH_NOARGS, "_metrics()\n--\n\nEvery metric as JSON."),
    {NULL, NULL, 0, NULL}};
static PyType_Slot report_slots[] = {{Py_tp_methods, report_methods},
                                     {Py_tp_dealloc, (void *)(uintptr_t)report_dealloc},
                                     {Py_tp_doc, (void *)(uintptr_t)"A report."},
                                     {0, NULL}};
static PyType_Spec report_spec = {"prony._prony.Report", sizeof(pyp_report), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  report_slots};

PyMethodDef pyp_profile_functions[] = {
    METHOD("profile", py_report_profile, METH_VARARGS,
           "profile(sessions, options)\n--\n\nReports of sessions measured side by side."),
    METHOD("load_report", report_load, METH_VARARGS, "load_report(name, data)\n--\n\nA report from its JSON."),
    METHOD("count_presets", count_presets, METH_NOARGS, "count_presets()\n--\n\nNames of the counting presets."),
    {NULL, NULL, 0, NULL}};

int pyp_add_report(PyObject *module)
{
    pyp_report_type = pyp_add_type(module, &report_spec, "Report");
    return pyp_report_type ? PyModule_AddFunctions(module, pyp_profile_functions) : -1;
}
