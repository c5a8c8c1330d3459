/* The module prony._prony. */
#include "py_prony.h"

static PyObject *py_module_memory(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromUnsignedLongLong(prony_memory_in_use());
}

static PyObject *py_module_set_memory_limit(PyObject *module, PyObject *args)
{
    PyObject *given, *limit;
    (void)module;
    if (!PyArg_ParseTuple(args, "O", &given)) return NULL;
    limit = PyNumber_Index(given);
    if (!limit) return NULL;
    const long long bytes = PyLong_AsLongLong(limit);
    Py_DECREF(limit);
    if (bytes < 0) {
        PyErr_Clear(); /* -1 with OverflowError is a number beyond 64 bits */
        return pyp_raise(PRONY_INVALID_ARGUMENT, "memory limit: wanted a number of bytes from 0 to 2^63 - 1");
    }
    prony_memory_set_limit((uint64_t)bytes);
    Py_RETURN_NONE;
}

static PyObject *py_module_build(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    const prony_build *b = prony_build_info();
    return Py_BuildValue("{ss ss ss ss ss ss}", "version", b->version, "git_commit", b->git_commit, "compiler",
                         b->compiler, "compiler_flags", b->compiler_flags, "isa", b->isa, "libraries", b->libraries);
}

static PyMethodDef functions[] = {
    {"memory_in_use", py_module_memory, METH_NOARGS,
     "memory_in_use()\n--\n\nBytes of the heap that the library holds."},
    {"set_memory_limit", py_module_set_memory_limit, METH_VARARGS,
     "set_memory_limit(bytes)\n--\n\nBounds them; 0: no bound."},
    {"build", py_module_build, METH_NOARGS, "build()\n--\n\nVersion, compiler and libraries of what is running."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_prony", "The C library of Prony.", -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__prony(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module || pyp_errors_setup() != 0 || pyp_add_operators(module) != 0 || pyp_add_model(module) != 0 ||
        pyp_add_session(module) != 0 || pyp_add_report(module) != 0 || pyp_add_study(module) != 0 ||
        pyp_add_batcher(module) != 0 || pyp_add_generator(module) != 0 ||
        PyModule_AddFunctions(module, pyp_judge_functions) != 0 ||
        PyModule_AddFunctions(module, pyp_data_functions) != 0 ||
        PyModule_AddFunctions(module, pyp_precision_functions) != 0 ||
        PyModule_AddStringConstant(module, "version", prony_version()) != 0)
        Py_CLEAR(module);
    return module;
}
