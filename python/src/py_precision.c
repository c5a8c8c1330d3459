/* Quantizing a model, and the errors of a session's run beside its reference. */
#include "py_prony.h"

#include "prony_quantize.h"

#include <stdlib.h>

/* ---- quantized models ---- */

typedef struct quantizing {
    prony_model *model, *made;
    prony_dataset *data;
    prony_calibration *calibration;
} quantizing;

/* Ranges from a file that was kept, or from data; kept at `keep` (may be NULL). Without the GIL. */
static prony_status py_precision_find_ranges(quantizing *q, const char *from, const char *keep,
                                             const prony_calibrate_options *options, prony_error *error)
{
    if (from) return prony_calibration_load(&q->calibration, from, error);
    if (!q->data) return PRONY_OK;
    prony_status status = prony_calibrate(&q->calibration, q->model, q->data, options, error);
    return status == PRONY_OK && keep ? prony_calibration_save(q->calibration, keep, error) : status;
}

static PyObject *py_precision_rows_of(const prony_model *made)
{
    const prony_quantized_row *rows;
    const size_t count = prony_model_quantized_layers(made, &rows);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *row = Py_BuildValue("{ss ss sO sd sz}", "name", rows[i].name, "op", rows[i].op, "quantized",
                                      rows[i].quantized ? Py_True : Py_False, "error", rows[i].error, "reason",
                                      prony_model_float_reason(made, i));
        if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) != 0) Py_CLEAR(list);
    }
    return list;
}

/* (model, data, path, options, session options): data is None, a path or a dict of arrays. */
static PyObject *py_precision_quantize(PyObject *module, PyObject *args)
{
    PyObject *object, *data, *path, *dict, *session_options, *list = NULL;
    prony_error error = PYP_ERROR_INIT;
    prony_image_options image = PRONY_IMAGE_OPTIONS_INIT;
    prony_dataset_options open = PRONY_DATASET_OPTIONS_INIT;
    prony_calibrate_options calibrate = PRONY_CALIBRATE_OPTIONS_INIT;
    prony_quantize_options options = PRONY_QUANTIZE_OPTIONS_INIT;
    const char *method = NULL, *image_text = NULL, *from = NULL, *keep = NULL;
    pyp_options o;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!OO&O!O", pyp_model_type, &object, &data, PyUnicode_FSConverter, &path, &PyDict_Type,
                          &dict, &session_options))
        return NULL;
    pyp_model *model = (pyp_model *)object;
    quantizing q = {.model = model->model};
    if (pyp_options_from(&o, session_options) != 0 || pyp_check_process() != 0 ||
        pyp_get_text(dict, "method", &method) != 0 || pyp_get_text(dict, "preprocess", &image_text) != 0 ||
        pyp_get_text(dict, "calibration", &from) != 0 || pyp_get_text(dict, "keep", &keep) != 0 ||
        pyp_get_double(dict, "keep_accuracy", &options.keep_accuracy) != 0 ||
        pyp_get_bool(dict, "power_of_two", &options.power_of_two) != 0)
        goto end;
    if (method && !prony_calibration_method_find(&calibrate.method, method)) {
        pyp_raise(PRONY_INVALID_ARGUMENT, "unknown method '%.40s'; wanted minmax, percentile or entropy", method);
        goto end;
    }
    if (image_text && prony_image_options_parse(&image, image_text, &error) != PRONY_OK) {
        pyp_fail(&error, NULL);
        goto end;
    }
    if (image_text) open.image = &image;
    open.unlabelled = true;
    if (data != Py_None && pyp_dataset_open(&q.data, model, data, Py_None, &open, &error) != 0) goto end;
    calibrate.session = options.session = &o.session;
    const char *file = PyBytes_AsString(path);
    prony_status status;
    Py_BEGIN_ALLOW_THREADS status = py_precision_find_ranges(&q, from, keep, &calibrate, &error);
    options.calibration = q.calibration;
    options.data = q.data;
    if (status == PRONY_OK) status = prony_model_quantize(&q.made, q.model, &options, &error);
    if (status == PRONY_OK) status = prony_model_save(q.made, file, prony_model_is_external(q.model), &error);
    Py_END_ALLOW_THREADS if (status != PRONY_OK) pyp_fail(&error, model->registry);
    else list = py_precision_rows_of(q.made);
end:
    pyp_options_release(&o);
    prony_calibration_release(q.calibration);
    prony_dataset_release(q.data);
    prony_model_release(q.made);
    Py_DECREF(path);
    return list;
}

/* (model, path, options): weights in blocks of 4 or 8 bits. */
static PyObject *py_precision_quantize_weights(PyObject *module, PyObject *args)
{
    PyObject *object, *path, *dict, *list = NULL;
    prony_error error = PYP_ERROR_INIT;
    prony_weights_options options = PRONY_WEIGHTS_OPTIONS_INIT;
    prony_model *made = NULL;
    int64_t bits = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O&O!", pyp_model_type, &object, PyUnicode_FSConverter, &path, &PyDict_Type, &dict))
        return NULL;
    pyp_model *model = (pyp_model *)object;
    if (pyp_check_process() == 0 && pyp_get_int(dict, "bits", &bits) == 0 &&
        pyp_get_int(dict, "block", &options.block) == 0 &&
        pyp_get_bool(dict, "zero_points", &options.zero_points) == 0 &&
        pyp_get_bool(dict, "search_scales", &options.search_scales) == 0) {
        const char *file = PyBytes_AsString(path);
        prony_status status;
        options.bits = bits < 0 || bits > 64 ? -1 : (int)bits;
        Py_BEGIN_ALLOW_THREADS status = prony_model_quantize_weights(&made, model->model, &options, &error);
        if (status == PRONY_OK) status = prony_model_save(made, file, prony_model_is_external(model->model), &error);
        Py_END_ALLOW_THREADS if (status != PRONY_OK) pyp_fail(&error, model->registry);
        else list = py_precision_rows_of(made);
    }
    prony_model_release(made);
    Py_DECREF(path);
    return list;
}

/* ---- accuracy ---- */

typedef struct given {
    prony_accuracy_expected *rows;
    pyp_value *values;
    size_t count;
} given;

static void given_release(given *g)
{
    for (size_t i = 0; g->values && i < g->count; i++) pyp_value_release(&g->values[i]);
    free(g->values);
    free(g->rows);
}

static int given_from(given *g, const pyp_session *session, PyObject *dict)
{
    const prony_model *model = session->model->model;
    const size_t room = (size_t)PyDict_Size(dict) + 1;
    Py_ssize_t place = 0;
    PyObject *key, *array;
    *g = (given){.rows = calloc(room, sizeof *g->rows), .values = calloc(room, sizeof *g->values)};
    if (!g->rows || !g->values) return PyErr_NoMemory(), -1;
    while (PyDict_Next(dict, &place, &key, &array)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        prony_value_info port = {.name = name};
        if (!name) return -1;
        for (size_t k = 0; k < prony_model_output_count(model); k++)
            if (PyUnicode_CompareWithASCIIString(key, prony_model_output(model, k)->name) == 0)
                port.dtype = prony_model_output(model, k)->dtype;
        if (pyp_value_from(&g->values[g->count], array, &port) != 0) return pyp_value_release(&g->values[g->count]), -1;
        g->rows[g->count] =
            (prony_accuracy_expected){.output = name, .value = &g->values[g->count].value, .source = "against"};
        g->count++;
    }
    return 0;
}

/* (report, session, options): samples, tolerance, reference (Model), against {output: array}, outputs_only. */
static PyObject *accuracy(PyObject *module, PyObject *args)
{
    PyObject *report, *object, *dict;
    prony_error error = PYP_ERROR_INIT;
    prony_accuracy_options options = PRONY_ACCURACY_OPTIONS_INIT;
    given g = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!", pyp_report_type, &report, pyp_session_type, &object, &PyDict_Type, &dict))
        return NULL;
    if (pyp_get_int(dict, "samples", &options.samples) != 0 ||
        pyp_get_double(dict, "tolerance", &options.tolerance) != 0 ||
        pyp_get_bool(dict, "outputs_only", &options.outputs_only) != 0)
        return NULL;
    PyObject *reference = PyDict_GetItemString(dict, "reference"), *against = PyDict_GetItemString(dict, "against");
    if (reference && reference != Py_None && !PyObject_TypeCheck(reference, pyp_model_type))
        return pyp_wrong_type("reference", "a prony.Model", reference);
    if (reference && reference != Py_None) options.model = ((pyp_model *)reference)->model;
    pyp_session *session = (pyp_session *)object;
    if (pyp_session_enter(session) != 0) return NULL;
    if (against && against != Py_None && given_from(&g, session, against) != 0) {
        given_release(&g);
        pyp_session_leave(session);
        return NULL;
    }
    options.against = g.rows;
    options.against_count = g.count;
    prony_status status;
    pyp_guard guard;
    pyp_guard_begin(&guard, &session->session, 1);
    Py_BEGIN_ALLOW_THREADS status =
        prony_session_accuracy(((pyp_report *)report)->report, session->session, &options, &error);
    Py_END_ALLOW_THREADS const bool pressed = pyp_guard_end(&guard);
    given_release(&g);
    pyp_session_leave(session);
    if (pressed && PyErr_CheckSignals() != 0) return NULL;
    if (status != PRONY_OK) return pyp_fail(&error, session->model->registry);
    Py_RETURN_NONE;
}

PyMethodDef pyp_precision_functions[] = {
    METHOD("quantize_weights", py_precision_quantize_weights, METH_VARARGS,
           "(model, path, options): writes a model with weights in blocks, and returns the rows of its layers."),
    METHOD("quantize", py_precision_quantize, METH_VARARGS,
           "quantize(model, data, path, options, session_options)\n--\n\nWrites the quantized model; returns rows of "
           "its layers."),
    METHOD("accuracy", accuracy, METH_VARARGS,
           "accuracy(report, session, options)\n--\n\nAdds measured errors to the report."),
    {NULL, NULL, 0, NULL}};
