/* From a status to an exception of prony.errors, and what a fork leaves behind. */
#include "py_prony.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static PyObject *classes; /* by status, prony.errors.BY_STATUS */
static PyObject *fork_error;
static atomic_uint process; /* counts the forks between the importing process and this one */
static uint32_t used_mark;  /* process + 1 that had sessions first; 0: none */

static void child_of_fork(void)
{
    atomic_fetch_add(&process, 1);
}

uint32_t pyp_process_mark(void)
{
    return atomic_load_explicit(&process, memory_order_relaxed);
}

void pyp_process_used(void)
{
    if (used_mark == 0) used_mark = pyp_process_mark() + 1;
}

int pyp_check_process(void)
{
    if (used_mark == 0 || used_mark == pyp_process_mark() + 1) return 0;
    PyErr_SetString(fork_error,
                    "this process was forked after Prony had sessions in its parent: their threads and locks are "
                    "not here; start processes with multiprocessing's 'spawn' or 'forkserver', or fork before the "
                    "first session");
    return -1;
}

int pyp_errors_setup(void)
{
    PyObject *module = PyImport_ImportModule("prony.errors");
    if (!module) return -1;
    classes = PyObject_GetAttrString(module, "BY_STATUS");
    fork_error = PyObject_GetAttrString(module, "ForkError");
    Py_DECREF(module);
    if (!classes || !fork_error) return -1;
    return pthread_atfork(NULL, NULL, child_of_fork) == 0 ? 0 : (PyErr_NoMemory(), -1);
}

static PyObject *py_errors_class_of(prony_status status)
{
    PyObject *key = PyLong_FromLong(status);
    PyObject *found = key ? PyObject_GetItem(classes, key) : NULL;
    Py_XDECREF(key);
    return found;
}

static PyObject *raise_text(prony_status status, const char *text, PyObject *cause)
{
    PyObject *type = py_errors_class_of(status);
    PyObject *message = type ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace") : NULL;
    PyObject *exception = message ? PyObject_CallFunctionObjArgs(type, message, NULL) : NULL;
    if (exception && cause) {
        Py_INCREF(cause);
        PyException_SetCause(exception, cause);
    }
    if (exception) PyErr_SetObject(type, exception);
    Py_XDECREF(exception);
    Py_XDECREF(message);
    Py_XDECREF(type);
    return NULL;
}

PyObject *pyp_fail(const prony_error *error, PyObject *operators)
{
    PyObject *cause = operators ? pyp_registry_take(operators) : NULL;
    const char *text = *error->message ? error->message : prony_status_text(error->status);
    /* KeyboardInterrupt and SystemExit end a program; as the cause of another exception they would not. */
    if (cause && !PyObject_IsInstance(cause, PyExc_Exception)) {
        PyErr_SetObject((PyObject *)Py_TYPE(cause), cause);
        Py_DECREF(cause);
        return NULL;
    }
    raise_text(error->status, text, cause);
    Py_XDECREF(cause);
    return NULL;
}

PyObject *pyp_wrong_type(const char *what, const char *wanted, PyObject *given)
{
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(given), "__name__");
    if (name) PyErr_Format(PyExc_TypeError, "%s: wanted %s, got %U", what, wanted, name);
    Py_XDECREF(name);
    return NULL;
}

PyObject *pyp_raise(prony_status status, const char *format, ...)
{
    char text[PRONY_ERROR_MESSAGE_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return raise_text(status, text, NULL);
}
