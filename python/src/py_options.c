/* Options of sessions, from a dict that the Python side has checked for names. */
#include "py_prony.h"

#include <stdlib.h>
#include <string.h>

/* Borrowed; NULL where the key is missing or None. */
static PyObject *py_options_entry(PyObject *dict, const char *key)
{
    PyObject *found = dict && dict != Py_None ? PyDict_GetItemString(dict, key) : NULL;
    return found == Py_None ? NULL : found;
}

int pyp_get_int(PyObject *dict, const char *key, int64_t *out)
{
    PyObject *found = py_options_entry(dict, key);
    PyObject *number = found ? PyNumber_Index(found) : NULL;
    if (number) *out = PyLong_AsLongLong(number);
    Py_XDECREF(number);
    if (!PyErr_Occurred()) return 0;
    PyErr_Clear();
    pyp_wrong_type(key, "a whole number of 64 bits", found);
    return -1;
}

int pyp_get_double(PyObject *dict, const char *key, double *out)
{
    PyObject *found = py_options_entry(dict, key);
    if (!found) return 0;
    *out = PyFloat_AsDouble(found);
    return PyErr_Occurred() ? -1 : 0;
}

int pyp_get_bool(PyObject *dict, const char *key, bool *out)
{
    PyObject *found = py_options_entry(dict, key);
    int truth = found ? PyObject_IsTrue(found) : *out;
    *out = truth > 0;
    return truth < 0 ? -1 : 0;
}

int pyp_get_text(PyObject *dict, const char *key, const char **out)
{
    PyObject *found = py_options_entry(dict, key);
    if (!found) return 0;
    if (!PyUnicode_Check(found)) return pyp_wrong_type(key, "a str", found), -1;
    *out = PyUnicode_AsUTF8AndSize(found, NULL);
    return *out ? 0 : -1;
}

PyObject *pyp_path(PyObject *object)
{
    PyObject *bytes = NULL;
    return PyUnicode_FSConverter(object, &bytes) ? bytes : NULL;
}

static int get_threads(PyObject *dict, const char *key, int *out)
{
    int64_t number = *out;
    if (pyp_get_int(dict, key, &number) != 0) return -1;
    if (number > INT32_MAX || number < INT32_MIN) number = INT32_MAX;
    *out = (int)number;
    return 0;
}

static const char *py_options_name_of(pyp_options *out, PyObject *key)
{
    if (!PyUnicode_Check(key)) {
        pyp_wrong_type("dims and shapes", "a name", key);
        return NULL;
    }
    return PyList_Append(out->held, key) == 0 ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
}

/* *list is the caller's to free, whatever comes of it. */
static int get_dims(pyp_options *out, const char *what, PyObject *dims, prony_dim **list, size_t *count)
{
    Py_ssize_t place = 0, n = 0;
    PyObject *key, *value;
    if (!PyDict_Check(dims)) return pyp_wrong_type(what, "a dict {name: number}", dims), -1;
    *list = calloc((size_t)PyDict_Size(dims) + 1, sizeof **list);
    if (!*list) return PyErr_NoMemory(), -1;
    for (; PyDict_Next(dims, &place, &key, &value); n++) {
        (*list)[n].name = py_options_name_of(out, key);
        PyObject *number = (*list)[n].name ? PyNumber_Index(value) : NULL;
        (*list)[n].value = number ? PyLong_AsLongLong(number) : -1;
        Py_XDECREF(number);
        if (PyErr_Occurred()) return -1;
    }
    *count = (size_t)n;
    return 0;
}

static int get_shapes(pyp_options *out, PyObject *shapes)
{
    Py_ssize_t place = 0, n = 0;
    PyObject *key, *value;
    if (!PyDict_Check(shapes)) return pyp_wrong_type("shapes", "a dict {name: shape}", shapes), -1;
    out->shapes = calloc((size_t)PyDict_Size(shapes) + 1, sizeof *out->shapes);
    if (!out->shapes) return PyErr_NoMemory(), -1;
    for (; PyDict_Next(shapes, &place, &key, &value); n++) {
        out->shapes[n].name = py_options_name_of(out, key);
        if (!out->shapes[n].name || pyp_shape_from(&out->shapes[n].shape, value) != 0) return -1;
    }
    out->session.shapes = out->shapes;
    out->session.shape_count = (size_t)n;
    return 0;
}

static int get_flags(prony_session_options *s, PyObject *dict)
{
    bool rewrites = true, reuse = true, profiled = true, helped = true, ask = false;
    if (pyp_get_bool(dict, "rewrites", &rewrites) != 0 || pyp_get_bool(dict, "reuse", &reuse) != 0 ||
        pyp_get_bool(dict, "profiled", &profiled) != 0 || pyp_get_bool(dict, "helped", &helped) != 0 ||
        pyp_get_bool(dict, "ask", &ask) != 0 || pyp_get_bool(dict, "memory", &s->record_memory) != 0)
        return -1;
    s->no_rewrites = !rewrites;
    s->no_reuse = !reuse;
    s->no_profile = !profiled;
    s->no_work_stealing = !helped;
    s->free_dims = ask ? PRONY_FREE_ASK : PRONY_FREE_ONE;
    return 0;
}

static int get_bytes(PyObject *dict, const char *key, uint64_t *out)
{
    int64_t bytes = 0;
    if (pyp_get_int(dict, key, &bytes) != 0) return -1;
    if (bytes < 0) return pyp_raise(PRONY_INVALID_ARGUMENT, "%s: %lld bytes", key, (long long)bytes), -1;
    *out = (uint64_t)bytes;
    return 0;
}

static int get_device_split(PyObject *dict, prony_device_split *out)
{
    static const char *const names[] = {
        [PRONY_DEVICE_SPLIT_AUTO] = "auto", [PRONY_DEVICE_SPLIT_MEMORY] = "memory", [PRONY_DEVICE_SPLIT_NONE] = "none"};
    const char *wanted = names[PRONY_DEVICE_SPLIT_AUTO];
    if (pyp_get_text(dict, "device_split", &wanted) != 0) return -1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(wanted, names[i]) != 0) continue;
        *out = (prony_device_split)i;
        return 0;
    }
    pyp_raise(PRONY_INVALID_ARGUMENT, "device_split: unknown '%s'; wanted auto, memory or none", wanted);
    return -1;
}

int pyp_options_from(pyp_options *out, PyObject *dict)
{
    *out = (pyp_options){.session = PRONY_SESSION_OPTIONS_INIT};
    prony_session_options *s = &out->session;
    if (dict != Py_None && !PyDict_Check(dict)) return pyp_wrong_type("options", "a dict", dict), -1;
    if (!(out->held = PyList_New(0))) return -1;
    if (get_threads(dict, "threads", &s->intra_op_threads) != 0 ||
        get_threads(dict, "inter_op", &s->inter_op_threads) != 0 ||
        pyp_get_text(dict, "precision", &s->precision) != 0 || pyp_get_text(dict, "affinity", &s->affinity) != 0 ||
        pyp_get_text(dict, "device", &s->device) != 0 || pyp_get_int(dict, "batch", &s->batch) != 0 ||
        pyp_get_int(dict, "max_loop_trips", &s->max_loop_trips) != 0 ||
        get_bytes(dict, "memory_limit", &s->memory_limit_bytes) != 0 ||
        get_bytes(dict, "device_memory_limit", &s->device_memory_limit_bytes) != 0 ||
        get_device_split(dict, &s->device_split) != 0 || get_flags(s, dict) != 0)
        return -1;
    PyObject *dims = py_options_entry(dict, "dims"), *most = py_options_entry(dict, "max_dims"),
             *shapes = py_options_entry(dict, "shapes");
    if (dims && get_dims(out, "dims", dims, &out->dims, &s->dim_count) != 0) return -1;
    if (most && get_dims(out, "max_dims", most, &out->max_dims, &s->max_dim_count) != 0) return -1;
    s->dims = out->dims;
    s->max_dims = out->max_dims;
    if (shapes && get_shapes(out, shapes) != 0) return -1;
    return 0;
}

void pyp_options_release(pyp_options *options)
{
    free(options->dims);
    free(options->max_dims);
    free(options->shapes);
    Py_XDECREF(options->held);
}
