/* The extension module prony._prony: Python objects around the handles of the C library. Only what Python's stable ABI
 * has is used; numpy is reached by the buffer protocol and by calling numpy.empty, so neither is a header of the build.
 *
 * Conventions: functions that give a new reference or an int (0, or -1 with an exception set), as Python's own. Calls
 * that may bind, plan, run or measure release the GIL, since custom operators take it again. */
#ifndef PYP_EXTENSION_H
#define PYP_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "prony.h"
#include "prony_judge.h"
#include "prony_data.h"
#include "prony_operator.h"
#include "prony_serve.h"

/* ---- py_errors.c ---- */

#define PYP_ERROR_INIT {PRONY_OK, {0}}

/* Sets the exception of prony.errors for the status; NULL. `operators` (may be NULL) may hold the exception that a
 * Python operator raised meanwhile, which becomes the cause. */
PyObject *pyp_fail(const prony_error *error, PyObject *operators);
/* An exception of the class for `status` with a message of this module's. NULL. */
PyObject *pyp_raise(prony_status status, const char *format, ...);
/* TypeError "WHAT: wanted WANTED, got TYPE", with the type's name alone: an array would fill the screen. NULL. */
PyObject *pyp_wrong_type(const char *what, const char *wanted, PyObject *given);
/* Refuses a process that was forked after sessions had threads in its parent. */
int pyp_check_process(void);
/* Marks an object with the process that made it. An object of another process is not released here. */
uint32_t pyp_process_mark(void);
/* Records that this process has threads and locks, which a fork does not copy. */
void pyp_process_used(void);
int pyp_errors_setup(void);

/* ---- py_values.c ---- */

/* The pieces of a tensor, sequence or optional, held while the C library reads it. */
typedef struct pyp_value {
    prony_value value;
    Py_buffer *views;
    size_t view_count;
    PyObject *objects; /* list; NULL: none */
    void **blocks;
    size_t block_count;
} pyp_value;

/* The buffer of an array whose elements lie one behind the other, as a tensor that an input of `port` takes; 1: it has
 * none (not contiguous, text, no buffer at all), *view is not set, no exception. */
int pyp_tensor_view(PyObject *object, Py_buffer *view, prony_value *value, const prony_value_info *port);
/* Any Python object as a value for `port`; copies where it has to. Released by pyp_value_release, also after a
 * failure. */
int pyp_value_from(pyp_value *out, PyObject *object, const prony_value_info *port);
void pyp_value_release(pyp_value *value);
/* An array (list, None) of its own with the elements of the value. */
PyObject *pyp_value_to(const prony_value *value);
/* numpy.empty of type and shape; elements that numpy has no type for are the integers of their width. */
PyObject *pyp_array_new(prony_dtype dtype, const prony_shape *shape);
/* The name under which numpy gets elements of the type: "float32", "uint16" for bfloat16, "object" for text. */
const char *pyp_array_type(prony_dtype dtype);
PyObject *pyp_shape_to(const prony_shape *shape);
int pyp_shape_from(prony_shape *out, PyObject *object);
prony_dtype pyp_dtype_named(const char *name);
/* An attribute of the module prony.`module`. */
PyObject *pyp_helper(const char *module, const char *name);

/* ---- py_options.c ---- */

typedef struct pyp_options {
    prony_session_options session;
    prony_dim *dims, *max_dims;
    prony_named_shape *shapes;
    PyObject *held; /* list of what names are borrowed from */
} pyp_options;
/* From a dict of threads, inter_op, precision, affinity, dims, max_dims, shapes, batch, rewrites, reuse, profiled,
 * memory, max_loop_trips, memory_limit, helped, ask; None: the defaults. Released also after a failure. */
int pyp_options_from(pyp_options *out, PyObject *dict);
void pyp_options_release(pyp_options *options);
/* Entries of a dict; the default where the key is missing or None. -1 with an exception for the wrong type. */
int pyp_get_int(PyObject *dict, const char *key, int64_t *out);
int pyp_get_double(PyObject *dict, const char *key, double *out);
int pyp_get_bool(PyObject *dict, const char *key, bool *out);
int pyp_get_text(PyObject *dict, const char *key, const char **out);
/* The bytes of a path (str, bytes or os.PathLike) as a bytes object. */
PyObject *pyp_path(PyObject *object);

/* ---- py_interrupt.c ---- */

/* A scope in which Ctrl-C cancels sessions. It works on the main thread; elsewhere it does nothing. */
typedef struct pyp_guard {
    bool set;
    prony_session *const *sessions;
    size_t count;
} pyp_guard;
void pyp_guard_begin(pyp_guard *guard, prony_session *const *sessions, size_t count);
/* Returns true if Ctrl-C was pressed. */
bool pyp_guard_end(pyp_guard *guard);

/* ---- py_text.c ---- */

/* Bytes that the library writes piece by piece. */
typedef struct pyp_text {
    char *data;
    size_t size, room;
} pyp_text;
int pyp_text_write(void *text, const char *data, size_t size); /* prony_write_fn */
/* The text as str; takes its bytes. On a status other than PRONY_OK the exception. */
PyObject *pyp_text_take(pyp_text *text, prony_status status, const prony_error *error);

/* ---- objects ---- */

extern PyTypeObject *pyp_registry_type, *pyp_model_type, *pyp_session_type, *pyp_report_type, *pyp_study_type;

typedef struct pyp_model {
    PyObject_HEAD prony_model *model;
    PyObject *registry; /* may be NULL */
    PyObject *bytes;    /* that it was loaded from; may be NULL */
    uint32_t mark;
} pyp_model;

typedef struct pyp_report {
    PyObject_HEAD prony_report *report;
    uint32_t mark;
} pyp_report;

typedef struct pyp_input {
    PyObject *name;
    const prony_value_info *port;
    Py_buffer view; /* of the array that runs read; obj NULL: none */
    bool bound;     /* shape below is what the session has */
    prony_dtype dtype;
    prony_shape shape;
} pyp_input;

typedef struct pyp_output {
    PyObject *name;
    bool planned; /* type and shape below are those of the next run */
    prony_value value;
    const void *address; /* where the last run left its elements */
} pyp_output;

typedef struct pyp_generator pyp_generator; /* py_generate.c */

typedef struct pyp_session {
    PyObject_HEAD prony_session *session; /* NULL: closed */
    pyp_model *model;
    PyThread_type_lock lock;
    unsigned long owner; /* thread that holds the lock; 0: none */
    pyp_input *inputs;
    pyp_output *outputs;
    size_t input_count, output_count; /* inputs: those that must be given; optional ones stand behind them */
    size_t optional_count;
    PyObject *on_sample, *on_alert; /* callables of _monitor; may be NULL */
    pyp_generator *generators;      /* over it */
    bool planned;                   /* outputs' types and shapes are those of the inputs as they are bound */
    uint32_t mark;
} pyp_session;

/* The session for this thread alone until pyp_session_leave; waits for others, without the GIL. */
int pyp_session_enter(pyp_session *session);
void pyp_session_leave(pyp_session *session);
/* Binds the inputs of a dict {name: array}; None: those that were bound before, the others generated from the seed. */
int pyp_session_bind(pyp_session *session, PyObject *inputs, uint64_t seed);
/* Binds the inputs that the dict names, and no others. */
int pyp_session_bind_some(pyp_session *session, PyObject *inputs);
/* ---- py_run.c: of a session that this thread has entered */

/* Plans for the inputs as they are bound, and asks what outputs will be. */
int pyp_session_plan(pyp_session *session);
/* Session.run; names and into may be None and NULL. */
PyObject *pyp_session_run(pyp_session *session, PyObject *inputs, PyObject *names, PyObject *into);
bool pyp_same_shape(const prony_shape *a, const prony_shape *b);

/* ---- py_serve.c ---- */

/* Session._monitor. */
PyObject *pyp_session_monitor(pyp_session *self, PyObject *args);
int pyp_add_batcher(PyObject *module);

/* ---- py_generate.c ---- */

/* Releases what the session's generators hold; the objects stay, and refuse every call. */
void pyp_generators_let_go(pyp_session *session);
int pyp_add_generator(PyObject *module);

/* ---- py_data.c ---- */

/* Samples from a path, or a dict of arrays and their labels (None where options->unlabelled says so). 0, or -1 with an
 * exception. */
int pyp_dataset_open(prony_dataset **out, const pyp_model *model, PyObject *data, PyObject *labels,
                     const prony_dataset_options *options, prony_error *error);

/* ---- further objects ---- */

PyObject *pyp_report_wrap(prony_report *report);
prony_registry *pyp_registry_handle(PyObject *registry);
/* The exception that one of its operators raised, taken out; NULL: none. */
PyObject *pyp_registry_take(PyObject *registry);

int pyp_add_operators(PyObject *module);
int pyp_add_model(PyObject *module);
int pyp_add_session(PyObject *module);
int pyp_add_report(PyObject *module);
int pyp_add_study(PyObject *module);
extern PyMethodDef pyp_profile_functions[], pyp_judge_functions[], pyp_data_functions[], pyp_precision_functions[];

PyTypeObject *pyp_add_type(PyObject *module, PyType_Spec *spec, const char *name);

/* A row of a table of methods. */
#define METHOD(name, function, flags, text) {name, (PyCFunction)(void (*)(void))function, flags, text}

#endif
