/* Comparison, thresholds, advice, this machine: each as the JSON that the library writes, and as its text. */
#include "py_prony.h"

#include <stdlib.h>

static prony_report *report_of(PyObject *object)
{
    if (PyObject_TypeCheck(object, pyp_report_type)) return ((pyp_report *)object)->report;
    pyp_wrong_type("report", "a prony.Report", object);
    return NULL;
}

/* (json, text) */
static PyObject *both(pyp_text *json, pyp_text *text, prony_status status, const prony_error *error)
{
    PyObject *first = pyp_text_take(json, status, error);
    PyObject *second = first ? pyp_text_take(text, status, error) : NULL;
    if (!first) free(text->data);
    PyObject *pair = second ? PyTuple_Pack(2, first, second) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    return pair;
}

static PyObject *py_judge_compare(PyObject *module, PyObject *args)
{
    PyObject *first, *second, *dict;
    prony_error error = PYP_ERROR_INIT;
    prony_comparison *made = NULL;
    prony_compare_options options = PRONY_COMPARE_OPTIONS_INIT;
    prony_write_options write = PRONY_WRITE_OPTIONS_INIT;
    pyp_text json = {0}, text = {0};
    prony_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO!", &first, &second, &PyDict_Type, &dict)) return NULL;
    const prony_report *a = report_of(first), *b = a ? report_of(second) : NULL;
    if (!b || pyp_get_double(dict, "noise", &options.noise) != 0 ||
        pyp_get_text(dict, "first_name", &options.first_name) != 0 ||
        pyp_get_text(dict, "second_name", &options.second_name) != 0 ||
        pyp_get_text(dict, "keys", &options.keys) != 0 || pyp_get_bool(dict, "ignore_load", &options.ignore_load) != 0)
        return NULL;
    status = prony_compare(&made, a, b, &options, &error);
    if (status == PRONY_OK)
        status = prony_comparison_write(made, PRONY_FORMAT_JSON, NULL, pyp_text_write, &json, &error);
    write.width = 110;
    if (status == PRONY_OK)
        status = prony_comparison_write(made, PRONY_FORMAT_TEXT, &write, pyp_text_write, &text, &error);
    prony_comparison_release(made);
    return both(&json, &text, status, &error);
}

/* (json, text) of the thresholds' verdicts. A Python exception from an argument goes before the status of the library.
 * Arrays have one element more than asked for, since calloc(0) may be NULL. */
static PyObject *py_judge_check(PyObject *module, PyObject *args)
{
    PyObject *report, *list;
    const char *target;
    prony_error error = PYP_ERROR_INIT;
    prony_metrics *metrics = NULL;
    pyp_text json = {0}, text = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!s", &report, &PyList_Type, &list, &target)) return NULL;
    const prony_report *r = report_of(report);
    size_t count = (size_t)PyList_Size(list);
    prony_threshold *thresholds = calloc(count + 1, sizeof *thresholds);
    prony_check_row *rows = calloc(count + 1, sizeof *rows);
    prony_status status = !r || !thresholds || !rows ? PRONY_OUT_OF_MEMORY : prony_metrics_create(&metrics, &error);
    if (!thresholds || !rows) PyErr_NoMemory();
    for (size_t i = 0; status == PRONY_OK && i < count; i++) {
        const char *words = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, (Py_ssize_t)i), NULL);
        status = words ? prony_threshold_parse(&thresholds[i], metrics, words, &error) : PRONY_INVALID_ARGUMENT;
    }
    if (status == PRONY_OK) status = prony_check(rows, r, metrics, thresholds, count, &error);
    if (status == PRONY_OK)
        status = prony_check_write(rows, count, target, PRONY_FORMAT_JSON, NULL, pyp_text_write, &json, &error);
    if (status == PRONY_OK)
        status = prony_check_write(rows, count, target, PRONY_FORMAT_TEXT, NULL, pyp_text_write, &text, &error);
    prony_metrics_release(metrics);
    free(thresholds);
    free(rows);
    if (PyErr_Occurred()) return free(json.data), free(text.data), NULL;
    return both(&json, &text, status, &error);
}

/* (json, text) of the advice on a report, from reports of variants. The text is 110 columns wide; chosen without
 * measurement. The reports are borrowed from the list, which the caller holds. */
static PyObject *recommend(PyObject *module, PyObject *args)
{
    PyObject *report, *list;
    const char *target;
    prony_error error = PYP_ERROR_INIT;
    prony_advice *rows = NULL;
    size_t advised = 0;
    pyp_text json = {0}, text = {0};
    prony_write_options write = PRONY_WRITE_OPTIONS_INIT;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!s", &report, &PyList_Type, &list, &target)) return NULL;
    const prony_report *r = report_of(report);
    size_t count = (size_t)PyList_Size(list);
    const prony_report **variants = calloc(count + 1, sizeof *variants);
    if (!variants) PyErr_NoMemory();
    for (size_t i = 0; variants && !PyErr_Occurred() && i < count; i++)
        variants[i] = report_of(PyList_GetItem(list, (Py_ssize_t)i));
    if (PyErr_Occurred()) return free(variants), NULL;
    prony_status status = prony_recommend(&rows, &advised, r, variants, count, &error);
    write.width = 110;
    if (status == PRONY_OK)
        status = prony_advice_write(rows, advised, target, PRONY_FORMAT_JSON, NULL, pyp_text_write, &json, &error);
    if (status == PRONY_OK)
        status = prony_advice_write(rows, advised, target, PRONY_FORMAT_TEXT, &write, pyp_text_write, &text, &error);
    prony_rows_release(rows);
    free(variants);
    return both(&json, &text, status, &error);
}

static PyObject *machine(PyObject *module, PyObject *args)
{
    int measure, keep, threads;
    double seconds;
    prony_error error = PYP_ERROR_INIT;
    prony_machine *made = NULL;
    prony_machine_options options = PRONY_MACHINE_OPTIONS_INIT;
    prony_status status;
    pyp_text json = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "ppid", &measure, &keep, &threads, &seconds) || pyp_check_process() != 0) return NULL;
    options.threads = threads;
    options.seconds = seconds;
    if (measure) pyp_process_used();
    Py_BEGIN_ALLOW_THREADS status =
        measure ? prony_machine_measure(&made, &options, &error) : prony_machine_load(&made, &error);
    if (status == PRONY_OK && measure && keep) status = prony_machine_save(made, &error);
    if (status == PRONY_OK && made) status = prony_machine_write(made, pyp_text_write, &json, &error);
    Py_END_ALLOW_THREADS bool none = !made && status == PRONY_OK;
    prony_machine_release(made);
    if (none) Py_RETURN_NONE;
    return pyp_text_take(&json, status, &error);
}

PyMethodDef pyp_judge_functions[] = {
    METHOD("compare", py_judge_compare, METH_VARARGS,
           "compare(first, second, options)\n--\n\nTwo reports: (JSON, text)."),
    METHOD("check", py_judge_check, METH_VARARGS, "check(report, thresholds, target)\n--\n\nThresholds: (JSON, text)."),
    METHOD("recommend", recommend, METH_VARARGS, "recommend(report, variants, target)\n--\n\nAdvice: (JSON, text)."),
    METHOD("machine", machine, METH_VARARGS,
           "machine(measure, keep, threads, seconds)\n--\n\nThis machine's peaks as JSON; None: nothing is kept."),
    {NULL, NULL, 0, NULL}};
