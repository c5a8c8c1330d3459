/* prony._prony.Generator: text generation over a session. The session knows its generators, since closing it releases
 * them first; a generator holds a reference to its session. Every call takes the session's lock. */
#include "py_prony.h"

#include "prony_generate.h"

#include <stdlib.h>
#include <string.h>

struct pyp_generator {
    PyObject_HEAD prony_generator *generator; /* NULL: the session was closed */
    pyp_session *session;
    pyp_generator *next; /* of the session */
};

/* Integers of a Python sequence; NULL with an exception, or *count 0 without one. */
static int64_t *py_generate_ids(PyObject *sequence, size_t *count)
{
    const Py_ssize_t length = PySequence_Size(sequence);
    if (length < 0) return NULL;
    int64_t *ids = malloc(((size_t)length + 1) * sizeof *ids);
    if (!ids) return PyErr_NoMemory(), NULL;
    for (Py_ssize_t k = 0; k < length; k++) {
        PyObject *item = PySequence_GetItem(sequence, k), *number = item ? PyNumber_Index(item) : NULL;
        ids[k] = number ? PyLong_AsLongLong(number) : -1;
        Py_XDECREF(item);
        Py_XDECREF(number);
        if (PyErr_Occurred()) return free(ids), NULL;
    }
    *count = (size_t)length;
    return ids;
}

/* ---- life ---- */

/* Arrays that the options borrow. */
typedef struct generate_given {
    int64_t *stops;
    prony_input_role *roles;
    prony_cache_names *caches;
} generate_given;

static void generate_given_release(generate_given *given)
{
    free(given->stops);
    free(given->roles);
    free(given->caches);
}

/* The dict of texts that option `key` holds: its pairs go to put(user, name, text). No option: nothing. */
static int generate_pairs(PyObject *dict, const char *key, size_t *count,
                          void (*put)(void *user, size_t at, const char *name, const char *text), void *user)
{
    PyObject *pairs = PyDict_GetItemString(dict, key), *name, *text;
    Py_ssize_t position = 0;
    *count = 0;
    if (!pairs || pairs == Py_None) return 0;
    while (PyDict_Next(pairs, &position, &name, &text)) {
        if (!PyUnicode_Check(name) || !PyUnicode_Check(text))
            return PyErr_Format(PyExc_TypeError, "%s must be a dict of names", key), -1;
        const char *first = PyUnicode_AsUTF8AndSize(name, NULL), *second = PyUnicode_AsUTF8AndSize(text, NULL);
        if (!first || !second) return -1;
        put(user, (*count)++, first, second);
    }
    return 0;
}

static void generate_put_role(void *user, size_t at, const char *role, const char *input)
{
    ((prony_input_role *)user)[at] = (prony_input_role){role, input};
}

static void generate_put_cache(void *user, size_t at, const char *past, const char *present)
{
    ((prony_cache_names *)user)[at] = (prony_cache_names){past, present};
}

static size_t generate_room(PyObject *dict, const char *key)
{
    PyObject *pairs = PyDict_GetItemString(dict, key);
    return pairs && PyDict_Check(pairs) ? (size_t)PyDict_Size(pairs) + 1 : 1;
}

/* `roles` {role: input}, where "logits" names an output, and `caches` {past: present}. */
static int generate_names(prony_generator_options *out, PyObject *dict, generate_given *given)
{
    size_t kept = 0;
    static const char *const keys[] = {"roles", "caches"};
    for (int k = 0; k < 2; k++) {
        PyObject *pairs = PyDict_GetItemString(dict, keys[k]);
        if (pairs && pairs != Py_None && !PyDict_Check(pairs))
            return PyErr_Format(PyExc_TypeError, "%s must be a dict of names", keys[k]), -1;
    }
    given->roles = calloc(generate_room(dict, "roles"), sizeof *given->roles);
    given->caches = calloc(generate_room(dict, "caches"), sizeof *given->caches);
    if (!given->roles || !given->caches) return PyErr_NoMemory(), -1;
    if (generate_pairs(dict, "roles", &out->role_count, generate_put_role, given->roles) != 0 ||
        generate_pairs(dict, "caches", &out->cache_count, generate_put_cache, given->caches) != 0)
        return -1;
    for (size_t k = 0; k < out->role_count; k++) {
        if (strcmp(given->roles[k].role, "logits") == 0)
            out->logits = given->roles[k].input;
        else
            given->roles[kept++] = given->roles[k];
    }
    out->role_count = kept;
    out->roles = given->roles;
    out->caches = given->caches;
    return 0;
}

/* Reads the dict into *out. Texts are borrowed from it; arrays belong to *own, which generate_given_release frees,
 * after a failure too. -1: a Python exception is set. The library checks the numbers' ranges. */
static int generate_options(prony_generator_options *out, PyObject *dict, generate_given *own)
{
    prony_sampling *s = &out->sampling;
    int64_t seed = 0;
    PyObject *given = PyDict_GetItemString(dict, "stop_ids");
    if (pyp_get_int(dict, "batch", &out->batch) != 0 || pyp_get_int(dict, "max_length", &out->max_length) != 0 ||
        pyp_get_int(dict, "chunk", &out->chunk) != 0 || pyp_get_double(dict, "temperature", &s->temperature) != 0 ||
        pyp_get_int(dict, "top_k", &s->top_k) != 0 || pyp_get_double(dict, "top_p", &s->top_p) != 0 ||
        pyp_get_double(dict, "min_p", &s->min_p) != 0 ||
        pyp_get_double(dict, "repetition_penalty", &s->repetition_penalty) != 0 ||
        pyp_get_int(dict, "seed", &seed) != 0 || pyp_get_text(dict, "input_ids", &out->input_ids) != 0 ||
        pyp_get_text(dict, "attention_mask", &out->attention_mask) != 0 ||
        pyp_get_text(dict, "position_ids", &out->position_ids) != 0 || pyp_get_text(dict, "logits", &out->logits) != 0)
        return -1;
    s->seed = (uint64_t)seed;
    const char *type = NULL;
    if (pyp_get_text(dict, "kv_cache", &type) != 0) return -1;
    if (type && strcmp(type, "fp16") == 0)
        out->cache_type = PRONY_CACHE_FP16;
    else if (type && strcmp(type, "int8") == 0)
        out->cache_type = PRONY_CACHE_INT8;
    else if (type && strcmp(type, "fp32") != 0)
        return PyErr_Format(PyExc_ValueError, "kv_cache must be 'fp32', 'fp16' or 'int8', not '%s'", type), -1;
    if (generate_names(out, dict, own) != 0) return -1;
    if (!given || given == Py_None) return 0;
    own->stops = py_generate_ids(given, &out->stop_count);
    out->stop_ids = own->stops;
    return own->stops ? 0 : -1;
}

/* The session's inputs and outputs are the generator's until a run binds others. */
static void generate_took_inputs(pyp_session *session)
{
    for (size_t i = 0; i < session->input_count + session->optional_count; i++) session->inputs[i].bound = false;
    session->planned = false;
}

/* The generator holds a reference to its session and joins its list under the session's lock, so closing the session
 * finds it. Until it joins, self->generator is NULL or released here, and Py_CLEAR frees a generator that the list does
 * not know. */
static PyObject *generator_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *session, *dict;
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    prony_error error = PYP_ERROR_INIT;
    generate_given given = {0};
    (void)keywords;
    if (!PyArg_ParseTuple(args, "O!O!", pyp_session_type, &session, &PyDict_Type, &dict)) return NULL;
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    pyp_generator *self = (pyp_generator *)make(type, 0);
    if (!self) return NULL;
    Py_INCREF(session);
    self->session = (pyp_session *)session;
    prony_status status = PRONY_INTERNAL;
    if (generate_options(&options, dict, &given) == 0 && pyp_session_enter(self->session) == 0) {
        status = prony_generator_create(&self->generator, self->session->session, &options, &error);
        PyObject *inputs = PyDict_GetItemString(dict, "inputs");
        if (status != PRONY_OK) {
            pyp_fail(&error, NULL);
        } else if (inputs && inputs != Py_None && pyp_session_bind_some(self->session, inputs) != 0) {
            prony_generator_release(self->generator);
            self->generator = NULL;
            status = PRONY_INVALID_ARGUMENT;
        } else {
            self->next = self->session->generators;
            self->session->generators = self;
        }
        pyp_session_leave(self->session);
    }
    generate_given_release(&given);
    if (status != PRONY_OK) Py_CLEAR(self);
    return (PyObject *)self;
}

void pyp_generators_let_go(pyp_session *session)
{
    while (session->generators) {
        pyp_generator *first = session->generators;
        session->generators = first->next;
        prony_generator_release(first->generator);
        first->generator = NULL;
    }
}

static void generator_dealloc(PyObject *object)
{
    pyp_generator *self = (pyp_generator *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->generator && pyp_session_enter(self->session) != 0) {
        PyErr_Clear(); /* its process was forked: nothing of it may be released here */
    } else if (self->generator) {
        pyp_generator **at = &self->session->generators;
        while (*at && *at != self) at = &(*at)->next;
        if (*at) *at = self->next;
        prony_generator_release(self->generator);
        pyp_session_leave(self->session);
    }
    Py_XDECREF((PyObject *)self->session);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* ---- calls ---- */

/* Takes the lock of a session that is open. */
static int generate_enter(pyp_generator *self)
{
    if (pyp_session_enter(self->session) != 0) return -1;
    generate_took_inputs(self->session);
    return 0;
}

static int generate_leave(pyp_generator *self, prony_status status, const prony_error *error, bool interrupted)
{
    if (interrupted && PyErr_CheckSignals() != 0)
        status = PRONY_CANCELLED; /* Python's exception is set */
    else if (status != PRONY_OK)
        pyp_fail(error, self->session->model->registry);
    pyp_session_leave(self->session);
    return status == PRONY_OK ? 0 : -1;
}

/* A list of sequences of ids. */
static PyObject *generator_prompt(pyp_generator *self, PyObject *args)
{
    PyObject *list;
    prony_error error = PYP_ERROR_INIT;
    prony_generator_info info;
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &list) || generate_enter(self) != 0) return NULL;
    prony_generator_get_info(self->generator, &info);
    size_t total = 0, *lengths = calloc((size_t)info.batch, sizeof *lengths);
    int64_t *ids = NULL;
    bool ok = lengths && PyList_Size(list) == info.batch;
    if (lengths && !ok)
        PyErr_Format(PyExc_ValueError, "%zd prompts for %lld sequences", PyList_Size(list), (long long)info.batch);
    for (Py_ssize_t b = 0; ok && b < info.batch; b++) {
        int64_t *some = py_generate_ids(PyList_GetItem(list, b), &lengths[b]);
        int64_t *grown = some ? realloc(ids, (total + lengths[b] + 1) * sizeof *ids) : NULL;
        if (some && !grown) PyErr_NoMemory();
        ok = grown != NULL;
        if (ok) {
            ids = grown;
            memcpy(ids + total, some, lengths[b] * sizeof *ids);
            total += lengths[b];
        }
        free(some);
    }
    int result = -1;
    if (!ok) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        pyp_session_leave(self->session);
    } else {
        prony_status status;
        pyp_guard guard;
        pyp_guard_begin(&guard, &self->session->session, 1);
        Py_BEGIN_ALLOW_THREADS status = prony_generator_prompt(self->generator, ids, lengths, &error);
        Py_END_ALLOW_THREADS result = generate_leave(self, status, &error, pyp_guard_end(&guard));
    }
    free(ids);
    free(lengths);
    if (result != 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *generator_next(pyp_generator *self, PyObject *unused)
{
    prony_error error = PYP_ERROR_INIT;
    prony_generator_info info;
    prony_status status;
    pyp_guard guard;
    bool done = false;
    (void)unused;
    if (generate_enter(self) != 0) return NULL;
    prony_generator_get_info(self->generator, &info);
    int64_t *ids = calloc((size_t)info.batch, sizeof *ids);
    if (!ids) return pyp_session_leave(self->session), PyErr_NoMemory();
    pyp_guard_begin(&guard, &self->session->session, 1);
    Py_BEGIN_ALLOW_THREADS status = prony_generator_next(self->generator, ids, &done, &error);
    Py_END_ALLOW_THREADS const int result = generate_leave(self, status, &error, pyp_guard_end(&guard));
    PyObject *list = result == 0 ? PyList_New((Py_ssize_t)info.batch) : NULL;
    for (Py_ssize_t b = 0; list && b < info.batch; b++) {
        PyObject *id = PyLong_FromLongLong(ids[b]);
        if (!id || PyList_SetItem(list, b, id) != 0) Py_CLEAR(list);
    }
    free(ids);
    return list ? Py_BuildValue("(NN)", list, PyBool_FromLong(done)) : NULL;
}

static PyObject *generator_rewind(pyp_generator *self, PyObject *args)
{
    long long length;
    prony_error error = PYP_ERROR_INIT;
    if (!PyArg_ParseTuple(args, "L", &length) || generate_enter(self) != 0) return NULL;
    const prony_status status = prony_generator_rewind(self->generator, length, &error);
    if (generate_leave(self, status, &error, false) != 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *generator_logits(pyp_generator *self, PyObject *args)
{
    long long sequence = 0;
    size_t count;
    if (!PyArg_ParseTuple(args, "|L", &sequence) || generate_enter(self) != 0) return NULL;
    const float *data = prony_generator_logits(self->generator, sequence, &count);
    const prony_value value = {.dtype = PRONY_FLOAT32, .shape = {1, {(int64_t)count}}, .data = (void *)(uintptr_t)data};
    PyObject *array = data ? pyp_value_to(&value) : Py_None;
    if (!data) Py_INCREF(Py_None);
    pyp_session_leave(self->session);
    return array;
}

static PyObject *generator_info(pyp_generator *self, PyObject *unused)
{
    static const char *const kinds[] = {"none", "growing", "shared"};
    prony_generator_info i;
    (void)unused;
    if (generate_enter(self) != 0) return NULL;
    prony_generator_get_info(self->generator, &i);
    PyObject *dict =
        Py_BuildValue("{ss ss sL sL sL sL sL sK sK sK sK sL}", "cache", kinds[i.kind], "convention", i.convention,
                      "batch", (long long)i.batch, "max_length", (long long)i.max_length, "length", (long long)i.length,
                      "computed", (long long)i.computed, "vocabulary", (long long)i.vocabulary, "cache_tensors",
                      (unsigned long long)i.cache_count, "cache_bytes", (unsigned long long)i.cache_bytes,
                      "cache_live_bytes", (unsigned long long)i.cache_live_bytes, "cache_copied_bytes",
                      (unsigned long long)i.cache_copied_bytes, "last_run_ns", (long long)i.last_run_ns);
    pyp_session_leave(self->session);
    return dict;
}

// clang-format off
static PyMethodDef generator_methods[] = {
    METHOD("_prompt", generator_prompt, METH_VARARGS, "_prompt(sequences)\n--\n\nAppends ids to every sequence, a list for each, and computes them."),
    METHOD("_next", generator_next, METH_NOARGS, "_next()\n--\n\n(ids, done): the next id of every sequence, and whether all have ended."),
    METHOD("rewind", generator_rewind, METH_VARARGS, "rewind(length)\n--\n\nKeeps the first `length` tokens of the longest sequence; 0: none."),
    METHOD("logits", generator_logits, METH_VARARGS, "logits(sequence=0)\n--\n\nfloat32 logits for the next id; None: nothing is computed."),
    METHOD("_info", generator_info, METH_NOARGS, "_info()\n--\n\nFigures, as of the last call."),
    {NULL, NULL, 0, NULL}};
// clang-format on
static PyType_Slot generator_slots[] = {{Py_tp_new, (void *)(uintptr_t)generator_new},
                                        {Py_tp_methods, generator_methods},
                                        {Py_tp_dealloc, (void *)(uintptr_t)generator_dealloc},
                                        {Py_tp_doc, (void *)(uintptr_t)"Text generation over a session."},
                                        {0, NULL}};
static PyType_Spec generator_spec = {"prony._prony.Generator", sizeof(pyp_generator), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, generator_slots};

int pyp_add_generator(PyObject *module)
{
    return pyp_add_type(module, &generator_spec, "Generator") ? 0 : -1;
}
