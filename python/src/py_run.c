/* A run of a session. Outputs whose type and shape the plan knows are made in new arrays, which the session forgets
 * when the run is over; the others are copied behind it. */
#include "py_prony.h"

#include <stdlib.h>
#include <string.h>

/* Number of outputs kept on the stack; more go to the heap. */
enum { FEW_OUTPUTS = 16 };

bool pyp_same_shape(const prony_shape *a, const prony_shape *b)
{
    return a->rank == b->rank && (a->rank <= 0 || memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0);
}

/* prepare or run, without the GIL. */
static int call_session(pyp_session *self, prony_status (*call)(prony_session *, prony_error *))
{
    prony_error error = PYP_ERROR_INIT;
    prony_status status;
    prony_session *session = self->session;
    pyp_guard guard;
    pyp_guard_begin(&guard, &session, 1);
    Py_BEGIN_ALLOW_THREADS status = call(session, &error);
    Py_END_ALLOW_THREADS if (pyp_guard_end(&guard) && PyErr_CheckSignals() != 0) status = PRONY_CANCELLED;
    if (status == PRONY_OK) return 0;
    self->planned = false;
    if (!PyErr_Occurred()) pyp_fail(&error, self->model->registry);
    return -1;
}

/* Elements that an array holds as the engine does. */
static bool py_run_plain(const prony_value *value)
{
    return value->kind == PRONY_TENSOR && value->dtype != PRONY_STRING && prony_dtype_bytes(value->dtype, 2) > 1;
}

int pyp_session_plan(pyp_session *self)
{
    prony_error error = PYP_ERROR_INIT;
    if (self->planned) return 0;
    if (call_session(self, prony_session_prepare) != 0) return -1;
    for (size_t k = 0; k < self->output_count; k++) {
        pyp_output *output = &self->outputs[k];
        if (prony_session_planned_output(self->session, k, &output->value, &error) != PRONY_OK)
            return pyp_fail(&error, NULL), -1;
        output->planned = py_run_plain(&output->value) && prony_shape_numel(&output->value.shape) >= 0;
    }
    self->planned = true;
    return 0;
}

/* The destination of one output of a run. */
typedef struct result {
    bool wanted;
    PyObject *array; /* receives the elements; NULL: they are copied after the run */
    Py_buffer view;  /* view of the array while its bytes are bound; obj NULL: none */
} result;

/* An array of the caller for an output. */
static int take_given(const pyp_session *self, size_t k, result *r, PyObject *array)
{
    const pyp_output *output = &self->outputs[k];
    const char *name = prony_model_output(self->model->model, k)->name;
    prony_value value;
    prony_value_info port = {.name = name, .dtype = output->value.dtype};
    int form = pyp_tensor_view(array, &r->view, &value, &port);
    if (form == 0 && r->view.readonly) {
        PyBuffer_Release(&r->view);
        form = 1;
    }
    if (form > 0)
        pyp_raise(PRONY_INVALID_ARGUMENT, "output '%s': a writable, contiguous array of %s is expected", name,
                  prony_dtype_name(output->value.dtype));
    if (form != 0) return r->view.obj = NULL, -1;
    if (value.dtype != output->value.dtype ||
        (output->planned && !pyp_same_shape(&value.shape, &output->value.shape))) {
        PyObject *wanted = pyp_shape_to(&output->value.shape), *got = wanted ? pyp_shape_to(&value.shape) : NULL;
        PyObject *text = got ? PyUnicode_FromFormat("%s%R; expected %s%R", prony_dtype_name(value.dtype), got,
                                                    prony_dtype_name(output->value.dtype), wanted)
                             : NULL;
        if (text) pyp_raise(PRONY_SHAPE_MISMATCH, "output '%s': %s", name, PyUnicode_AsUTF8AndSize(text, NULL));
        Py_XDECREF(text);
        Py_XDECREF(got);
        Py_XDECREF(wanted);
        PyBuffer_Release(&r->view);
        return -1;
    }
    Py_INCREF(r->array = array);
    return 0;
}

static int lend_output(pyp_session *self, size_t k, result *r, PyObject *into)
{
    prony_error error = PYP_ERROR_INIT;
    pyp_output *output = &self->outputs[k];
    PyObject *given = into ? PyDict_GetItemWithError(into, output->name) : NULL;
    r->wanted = true;
    if (given) {
        if (take_given(self, k, r, given) != 0) return -1;
    } else if (output->planned) {
        if (!(r->array = pyp_array_new(output->value.dtype, &output->value.shape))) return -1;
        if (PyObject_GetBuffer(r->array, &r->view, PyBUF_WRITABLE) != 0) return -1;
    }
    if (!r->view.obj || r->view.len == 0) return 0;
    if (prony_session_bind_output(self->session, k, r->view.buf, (size_t)r->view.len, &error) == PRONY_OK) return 0;
    pyp_fail(&error, NULL);
    return -1;
}

static int py_run_choose(const pyp_session *self, result *results, PyObject *names)
{
    Py_ssize_t count = names == Py_None ? 0 : PySequence_Size(names);
    if (count < 0) return -1;
    for (size_t k = 0; k < self->output_count; k++) results[k].wanted = names == Py_None;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PySequence_GetItem(names, i);
        size_t k = 0;
        while (name && k < self->output_count && PyObject_RichCompareBool(self->outputs[k].name, name, Py_EQ) != 1) k++;
        PyObject *shown = name && k == self->output_count ? PyObject_Repr(name) : NULL;
        if (shown) pyp_raise(PRONY_INVALID_ARGUMENT, "unknown output %s", PyUnicode_AsUTF8AndSize(shown, NULL));
        Py_XDECREF(shown);
        Py_XDECREF(name);
        if (!name || k == self->output_count) return -1;
        results[k].wanted = true;
    }
    return 0;
}

static int known_outputs(const pyp_session *self, PyObject *into)
{
    Py_ssize_t place = 0;
    PyObject *key, *value;
    if (!PyDict_Check(into)) return pyp_wrong_type("into", "a dict {name: array}", into), -1;
    while (PyDict_Next(into, &place, &key, &value)) {
        size_t k = 0;
        while (k < self->output_count && PyObject_RichCompareBool(self->outputs[k].name, key, Py_EQ) != 1) k++;
        if (k < self->output_count) continue;
        PyObject *shown = PyObject_Repr(key);
        if (shown) pyp_raise(PRONY_INVALID_ARGUMENT, "into: unknown output %s", PyUnicode_AsUTF8AndSize(shown, NULL));
        Py_XDECREF(shown);
        return -1;
    }
    return 0;
}

/* {name: array} of the wanted outputs. An array that the run wrote into is passed on; another output is copied, because
 * the session's bytes change in its next run. An array whose output's shape was not planned may fit by size alone, so
 * the size is checked. `address` is noted for unwanted outputs too. */
static PyObject *py_run_collect(pyp_session *self, result *results)
{
    prony_error error = PYP_ERROR_INIT;
    PyObject *dict = PyDict_New();
    for (size_t k = 0; dict && k < self->output_count; k++) {
        const prony_value *value;
        if (prony_session_output(self->session, k, &value, &error) != PRONY_OK) {
            pyp_fail(&error, NULL);
            Py_CLEAR(dict);
            break;
        }
        self->outputs[k].address = value->kind == PRONY_TENSOR ? value->data : NULL;
        if (!results[k].wanted) continue;
        if (results[k].array && !self->outputs[k].planned &&
            prony_dtype_bytes(value->dtype, prony_shape_numel(&value->shape)) != (size_t)results[k].view.len) {
            pyp_raise(PRONY_SHAPE_MISMATCH, "output '%s': the run's shape differs from the array's",
                      prony_model_output(self->model->model, k)->name);
            Py_CLEAR(dict);
            break;
        }
        PyObject *array = results[k].array;
        if (array)
            Py_INCREF(array);
        else
            array = pyp_value_to(value);
        if (!array || PyDict_SetItem(dict, self->outputs[k].name, array) != 0) Py_CLEAR(dict);
        Py_XDECREF(array);
    }
    return dict;
}

static PyObject *run_bound(pyp_session *self, result *results, PyObject *names, PyObject *into)
{
    if (pyp_session_plan(self) != 0 || py_run_choose(self, results, names) != 0) return NULL;
    if (into && known_outputs(self, into) != 0) return NULL;
    for (size_t k = 0; k < self->output_count; k++)
        if (results[k].wanted && lend_output(self, k, &results[k], into) != 0) return NULL;
    if (call_session(self, prony_session_run) != 0) return NULL;
    return py_run_collect(self, results);
}

/* The session forgets the arrays before the caller gets them. */
static void give_up(pyp_session *self, result *results)
{
    for (size_t k = 0; k < self->output_count; k++) {
        if (results[k].view.obj) {
            if (results[k].view.len) (void)!prony_session_bind_output(self->session, k, NULL, 0, NULL);
            PyBuffer_Release(&results[k].view);
        }
        Py_XDECREF(results[k].array);
    }
}

PyObject *pyp_session_run(pyp_session *self, PyObject *inputs, PyObject *names, PyObject *into)
{
    result few[FEW_OUTPUTS], *results = few;
    if (pyp_session_bind(self, inputs, 0) != 0) return NULL;
    if (self->output_count > FEW_OUTPUTS && !(results = malloc(self->output_count * sizeof *results)))
        return PyErr_NoMemory();
    for (size_t k = 0; k < self->output_count; k++) {
        results[k].wanted = false;
        results[k].array = results[k].view.obj = NULL;
    }
    PyObject *made = run_bound(self, results, names, into);
    give_up(self, results);
    if (results != few) free(results);
    return made;
}
