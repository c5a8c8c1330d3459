/* Evaluation on labelled data: files, or arrays in memory; and a metric of the user's. */
#include "py_prony.h"

#include <stdlib.h>
#include <string.h>

typedef struct scorer {
    PyObject *score, *progress;
    prony_session *session;
    double sum;
    int64_t samples;
    PyObject *type, *value, *trace; /* what a callback raised */
} scorer;

static void keep_raised(scorer *s)
{
    if (s->type)
        PyErr_Clear();
    else
        PyErr_Fetch(&s->type, &s->value, &s->trace);
}

static prony_status stop_for(scorer *s, prony_error *error)
{
    keep_raised(s);
    if (error) *error = (prony_error){PRONY_INTERNAL, "the metric raised an exception"};
    return PRONY_INTERNAL;
}

static prony_status py_data_score(void *user, const prony_value *const *outputs, size_t count,
                                  const prony_value *labels, int64_t samples, prony_error *error)
{
    scorer *s = user;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *list = PyList_New((Py_ssize_t)count), *truth = list ? pyp_value_to(labels) : NULL, *made = NULL;
    for (size_t k = 0; truth && list && k < count; k++) {
        PyObject *array = pyp_value_to(outputs[k]);
        if (!array || PyList_SetItem(list, (Py_ssize_t)k, array) != 0) Py_CLEAR(list);
    }
    if (list && truth) made = PyObject_CallFunctionObjArgs(s->score, list, truth, NULL);
    double value = made ? PyFloat_AsDouble(made) : 0;
    Py_XDECREF(made);
    Py_XDECREF(truth);
    Py_XDECREF(list);
    prony_status status = PyErr_Occurred() ? stop_for(s, error) : PRONY_OK;
    s->sum += value * (double)samples;
    s->samples += samples;
    PyGILState_Release(gil);
    return status;
}

static prony_status mean_score(void *user, double *value, prony_error *error)
{
    (void)error;
    const scorer *s = user;
    *value = s->samples ? s->sum / (double)s->samples : 0;
    return PRONY_OK;
}

static void py_data_show_progress(void *user, int64_t done, int64_t samples)
{
    scorer *s = user;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *shown = s->type ? NULL : PyObject_CallFunction(s->progress, "LL", (long long)done, (long long)samples);
    if (!shown && !s->type) {
        keep_raised(s);
        prony_session_cancel(s->session);
    }
    Py_XDECREF(shown);
    PyGILState_Release(gil);
}

/* Arrays in memory: {name: array}, and labels (None for unlabelled data). */
static prony_status create_dataset(prony_dataset **out, const prony_model *model, PyObject *inputs, PyObject *labels,
                                   const prony_dataset_options *options, prony_error *error)
{
    size_t count = (size_t)PyDict_Size(inputs), made = 0;
    Py_ssize_t place = 0;
    PyObject *key, *array;
    const char **names = calloc(count + 1, sizeof *names);
    pyp_value *values = calloc(count + 2, sizeof *values);
    const prony_value **given = calloc(count + 1, sizeof *given);
    prony_status status = PRONY_OK;
    if (!names || !values || !given) PyErr_NoMemory();
    while (!PyErr_Occurred() && PyDict_Next(inputs, &place, &key, &array)) {
        prony_value_info port = {.name = (names[made] = PyUnicode_AsUTF8AndSize(key, NULL))};
        for (size_t i = 0; names[made] && i < prony_model_input_count(model); i++)
            if (strcmp(names[made], prony_model_input(model, i)->name) == 0)
                port.dtype = prony_model_input(model, i)->dtype;
        if (!names[made] || pyp_value_from(&values[made], array, &port) != 0) break;
        given[made] = &values[made].value;
        made++;
    }
    prony_value_info port = {.name = "labels"};
    const bool labelled = labels != Py_None || !options->unlabelled;
    if (!PyErr_Occurred() && (!labelled || pyp_value_from(&values[count], labels, &port) == 0))
        status = prony_dataset_create(out, model, names, given, count, labelled ? &values[count].value : NULL, options,
                                      error);
    for (size_t i = 0; values && i <= count; i++) pyp_value_release(&values[i]);
    free(names);
    free(values);
    free(given);
    return status;
}

int pyp_dataset_open(prony_dataset **out, const pyp_model *model, PyObject *data, PyObject *labels,
                     const prony_dataset_options *options, prony_error *error)
{
    prony_status status = PRONY_OK;
    if (PyDict_Check(data)) {
        status = create_dataset(out, model->model, data, labels, options, error);
    } else {
        PyObject *path = pyp_path(data);
        if (path) status = prony_dataset_open(out, PyBytes_AsString(path), model->model, options, error);
        Py_XDECREF(path);
    }
    if (!PyErr_Occurred() && status != PRONY_OK) pyp_fail(error, NULL);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *py_data_run(pyp_session *session, const prony_dataset *data, const prony_evaluate_options *options,
                             scorer *s)
{
    prony_error error = PYP_ERROR_INIT;
    prony_report *report = NULL;
    prony_status status;
    pyp_guard guard;
    s->session = session->session;
    session->planned = false;
    for (size_t i = 0; i < session->input_count; i++) session->inputs[i].bound = false;
    pyp_guard_begin(&guard, &s->session, 1);
    Py_BEGIN_ALLOW_THREADS status = prony_evaluate(&report, session->session, data, options, &error);
    Py_END_ALLOW_THREADS bool pressed = pyp_guard_end(&guard);
    if (s->type)
        PyErr_Restore(s->type, s->value, s->trace);
    else if (!(pressed && PyErr_CheckSignals() != 0) && status != PRONY_OK)
        pyp_fail(&error, session->model->registry);
    if (!PyErr_Occurred()) return pyp_report_wrap(report);
    prony_report_release(report);
    return NULL;
}

/* Texts in `open` and `options` are borrowed from `dict`, which the caller's arguments keep alive. The session's lock
 * is held for the whole evaluation, the opening of the data included. */
static PyObject *py_data_evaluate(PyObject *module, PyObject *args)
{
    PyObject *object, *data, *labels, *dict, *made = NULL;
    const char *image_text = NULL;
    prony_error error = PYP_ERROR_INIT;
    prony_dataset *dataset = NULL;
    prony_image_options image = PRONY_IMAGE_OPTIONS_INIT;
    prony_dataset_options open = PRONY_DATASET_OPTIONS_INIT;
    prony_evaluate_options options = PRONY_EVALUATE_OPTIONS_INIT;
    scorer s = {0};
    int64_t output = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!OOO!", pyp_session_type, &object, &data, &labels, &PyDict_Type, &dict)) return NULL;
    if (pyp_get_text(dict, "classes", &open.classes) != 0 || pyp_get_text(dict, "preprocess", &image_text) != 0 ||
        pyp_get_int(dict, "batch", &options.batch) != 0 || pyp_get_int(dict, "warmup", &options.warmup_runs) != 0 ||
        pyp_get_int(dict, "output", &output) != 0 || pyp_get_text(dict, "metric_name", &options.metric) != 0)
        return NULL;
    if (output < 0) return pyp_raise(PRONY_INVALID_ARGUMENT, "output %lld", (long long)output);
    if (image_text && prony_image_options_parse(&image, image_text, &error) != PRONY_OK) return pyp_fail(&error, NULL);
    if (image_text) open.image = &image;
    s.score = PyDict_GetItemString(dict, "metric");
    s.progress = PyDict_GetItemString(dict, "progress");
    options.output = (size_t)output;
    options.user = options.progress_user = &s;
    if (s.score && s.score != Py_None) options.score = py_data_score, options.value = mean_score;
    if (s.progress && s.progress != Py_None) options.progress = py_data_show_progress;
    pyp_session *session = (pyp_session *)object;
    if (pyp_session_enter(session) != 0) return NULL;
    if (pyp_dataset_open(&dataset, session->model, data, labels, &open, &error) == 0)
        made = py_data_run(session, dataset, &options, &s);
    prony_dataset_release(dataset);
    pyp_session_leave(session);
    return made;
}

PyMethodDef pyp_data_functions[] = {
    METHOD("evaluate", py_data_evaluate, METH_VARARGS,
           "evaluate(session, data, labels, options)\n--\n\nA report with the evaluation."),
    {NULL, NULL, 0, NULL}};
