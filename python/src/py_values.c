/* Python objects as values of the C library, and back. */
#include "py_prony.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct type_row {
    char code; /* of the struct module, with its size; 0: numpy has no such type, and `array` stands for it */
    const char *array;
} type_row;

// clang-format off
static const type_row type_rows[PRONY_DTYPE_COUNT] = {
    [PRONY_FLOAT32] = {'f', "float32"},      [PRONY_UINT8] = {'B', "uint8"},       [PRONY_INT8] = {'b', "int8"},
    [PRONY_UINT16] = {'H', "uint16"},        [PRONY_INT16] = {'h', "int16"},       [PRONY_INT32] = {'i', "int32"},
    [PRONY_INT64] = {'q', "int64"},          [PRONY_STRING] = {0, "object"},       [PRONY_BOOL] = {'?', "bool"},
    [PRONY_FLOAT16] = {'e', "float16"},      [PRONY_FLOAT64] = {'d', "float64"},   [PRONY_UINT32] = {'I', "uint32"},
    [PRONY_UINT64] = {'Q', "uint64"},        [PRONY_COMPLEX64] = {0, "complex64"}, [PRONY_COMPLEX128] = {0, "complex128"},
    [PRONY_BFLOAT16] = {0, "uint16"},        [PRONY_FLOAT8E4M3FN] = {0, "uint8"},  [PRONY_FLOAT8E4M3FNUZ] = {0, "uint8"},
    [PRONY_FLOAT8E5M2] = {0, "uint8"},       [PRONY_FLOAT8E5M2FNUZ] = {0, "uint8"}, [PRONY_UINT4] = {0, "uint8"},
    [PRONY_INT4] = {0, "int8"},              [PRONY_FLOAT4E2M1] = {0, "uint8"},    [PRONY_FLOAT8E8M0] = {0, "uint8"},
    [PRONY_UINT2] = {0, "uint8"},            [PRONY_INT2] = {0, "int8"},
};
// clang-format on

const char *pyp_array_type(prony_dtype dtype)
{
    return (unsigned)dtype < PRONY_DTYPE_COUNT && type_rows[dtype].array ? type_rows[dtype].array : "void";
}

prony_dtype pyp_dtype_named(const char *name)
{
    for (int i = 1; i < PRONY_DTYPE_COUNT; i++)
        if (strcmp(prony_dtype_name((prony_dtype)i), name) == 0) return (prony_dtype)i;
    return PRONY_UNDEFINED;
}

PyObject *pyp_helper(const char *module, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "prony.%s", module);
    PyObject *m = PyImport_ImportModule(path);
    PyObject *found = m ? PyObject_GetAttrString(m, name) : NULL;
    Py_XDECREF(m);
    return found;
}

/* ---- numpy ---- */

static PyObject *np_empty, *np_dtypes[PRONY_DTYPE_COUNT];

/* numpy is imported with the first array, so that importing the package does not wait for it. */
static int numpy_setup(void)
{
    if (np_empty) return 0;
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *dtype = numpy ? PyObject_GetAttrString(numpy, "dtype") : NULL;
    PyObject *empty = dtype ? PyObject_GetAttrString(numpy, "empty") : NULL;
    for (int i = 1; empty && i < PRONY_DTYPE_COUNT; i++)
        if (!np_dtypes[i] && !(np_dtypes[i] = PyObject_CallFunction(dtype, "s", pyp_array_type((prony_dtype)i)))) break;
    bool done = empty && np_dtypes[PRONY_DTYPE_COUNT - 1];
    if (done) Py_INCREF(np_empty = empty);
    Py_XDECREF(empty);
    Py_XDECREF(dtype);
    Py_XDECREF(numpy);
    return done ? 0 : -1;
}

PyObject *pyp_shape_to(const prony_shape *shape)
{
    if (shape->rank < 0) Py_RETURN_NONE;
    PyObject *tuple = PyTuple_New(shape->rank);
    for (int d = 0; tuple && d < shape->rank; d++) {
        PyObject *extent = PyLong_FromLongLong(shape->dim[d]);
        if (!extent || PyTuple_SetItem(tuple, d, extent) != 0) Py_CLEAR(tuple);
    }
    return tuple;
}

int pyp_shape_from(prony_shape *out, PyObject *object)
{
    *out = (prony_shape){.rank = -1};
    if (object == Py_None) return 0;
    Py_ssize_t rank = PySequence_Size(object);
    if (rank < 0) return -1;
    if (rank > PRONY_MAX_RANK)
        return pyp_raise(PRONY_INVALID_ARGUMENT, "a shape has %zd dimensions; wanted at most %d", rank, PRONY_MAX_RANK),
               -1;
    for (Py_ssize_t d = 0; d < rank; d++) {
        PyObject *item = PySequence_GetItem(object, d);
        PyObject *number = item && item != Py_None ? PyNumber_Index(item) : NULL;
        out->dim[d] = item == Py_None ? -1 : number ? PyLong_AsLongLong(number) : -1;
        Py_XDECREF(number);
        Py_XDECREF(item);
        if (PyErr_Occurred()) return -1;
    }
    out->rank = (int32_t)rank;
    return 0;
}

PyObject *pyp_array_new(prony_dtype dtype, const prony_shape *shape)
{
    if (numpy_setup() != 0) return NULL;
    PyObject *extents = pyp_shape_to(shape);
    PyObject *array = extents ? PyObject_CallFunctionObjArgs(np_empty, extents, np_dtypes[dtype], NULL) : NULL;
    Py_XDECREF(extents);
    return array;
}

/* ---- tensors out of buffers ---- */

/* The type of a buffer's elements; PRONY_UNDEFINED: not a type of numbers. *swapped: of the other byte
 * order. */
static prony_dtype dtype_of(const char *format, Py_ssize_t size, bool *swapped)
{
    *swapped = false;
    if (!format) return PRONY_UINT8;
    if (*format == '>' || *format == '!') *swapped = size > 1;
    if (strchr("@=<>!", *format)) format++;
    if (*format == 'Z')
        return strcmp(format, "Zf") == 0   ? PRONY_COMPLEX64
               : strcmp(format, "Zd") == 0 ? PRONY_COMPLEX128
                                           : PRONY_UNDEFINED;
    if (!*format || format[1]) return PRONY_UNDEFINED;
    switch (*format) {
    case '?':
        return PRONY_BOOL;
    case 'e':
        return PRONY_FLOAT16;
    case 'f':
        return PRONY_FLOAT32;
    case 'd':
        return PRONY_FLOAT64;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
        return size == 1 ? PRONY_INT8 : size == 2 ? PRONY_INT16 : size == 4 ? PRONY_INT32 : PRONY_INT64;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
        return size == 1 ? PRONY_UINT8 : size == 2 ? PRONY_UINT16 : size == 4 ? PRONY_UINT32 : PRONY_UINT64;
    default:
        return PRONY_UNDEFINED;
    }
}

/* Elements that numpy has no type for come as the integers of their width. */
static bool stands_for(prony_dtype given, prony_dtype wanted)
{
    return wanted > PRONY_UNDEFINED && wanted < PRONY_DTYPE_COUNT && wanted != PRONY_STRING &&
           type_rows[wanted].code == 0 && strcmp(type_rows[wanted].array, prony_dtype_name(given)) == 0;
}

static bool contiguous(const Py_buffer *view)
{
    Py_ssize_t step = view->itemsize;
    if (!view->strides) return true;
    for (int d = view->ndim - 1; d >= 0; d--) {
        if (view->shape[d] == 0) return true;
        if (view->shape[d] != 1 && view->strides[d] != step) return false;
        step *= view->shape[d];
    }
    return true;
}

/* 0: *view is acquired and *value points into it, until the caller releases it. 1: nothing is held. Elements without a
 * numpy type (bfloat16, float8) are taken as integers of their width. Types narrower than a byte are not: numpy has a
 * byte for each, and the library packs them. */
int pyp_tensor_view(PyObject *object, Py_buffer *view, prony_value *value, const prony_value_info *port)
{
    bool swapped;
    if (!PyObject_CheckBuffer(object)) return 1;
    if (PyObject_GetBuffer(object, view, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
        PyErr_Clear(); /* elements that the protocol has no name for; the helper says what they are */
        return 1;
    }
    prony_dtype dtype = dtype_of(view->format, view->itemsize, &swapped);
    if (dtype == PRONY_UNDEFINED || view->ndim > PRONY_MAX_RANK || swapped || !contiguous(view)) {
        PyBuffer_Release(view);
        return 1;
    }
    prony_dtype wanted = port ? port->dtype : PRONY_UNDEFINED;
    if (dtype != wanted && stands_for(dtype, wanted)) {
        if (prony_dtype_bytes(wanted, 2) < 2) { /* packed: not a view */
            PyBuffer_Release(view);
            return 1;
        }
        dtype = wanted;
    }
    value->kind = PRONY_TENSOR;
    value->dtype = dtype;
    value->shape.rank = view->ndim;
    for (int d = 0; d < view->ndim; d++) value->shape.dim[d] = view->shape[d];
    value->data = view->buf;
    value->items = NULL;
    value->count = 0;
    value->layout = 0;
    return 0;
}

/* ---- any object ---- */

static void *py_values_block(pyp_value *out, size_t count, size_t size)
{
    void **grown = realloc(out->blocks, (out->block_count + 1) * sizeof *grown);
    if (!grown) return PyErr_NoMemory();
    out->blocks = grown;
    void *made = calloc(count ? count : 1, size);
    if (!made) return PyErr_NoMemory();
    return out->blocks[out->block_count++] = made;
}

static int py_values_fill(pyp_value *out, prony_value *value, PyObject *object, const prony_value_info *port);

static int py_values_keep(pyp_value *out, PyObject *object)
{
    if (!out->objects && !(out->objects = PyList_New(0))) return -1;
    return PyList_Append(out->objects, object);
}

/* Text: a list of bytes objects beside the shape. */
static int py_values_fill_text(pyp_value *out, prony_value *value, PyObject *shape, PyObject *list)
{
    Py_ssize_t count = PyList_Size(list);
    prony_string *elements = count < 0 ? NULL : py_values_block(out, (size_t)count, sizeof *elements);
    if (!elements || pyp_shape_from(&value->shape, shape) != 0) return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        char *data;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyList_GetItem(list, i), &data, &size) != 0) return -1;
        elements[i] = (prony_string){data, (size_t)size};
    }
    value->dtype = PRONY_STRING;
    value->data = elements;
    return 0;
}

static int fill_items(pyp_value *out, prony_value *value, PyObject *list, prony_kind kind, const prony_value_info *port)
{
    prony_value_info inner = port ? *port : (prony_value_info){.name = "value"};
    Py_ssize_t count = PyList_Size(list);
    if (count < 0 || !(value->items = py_values_block(out, (size_t)count, sizeof *value->items))) return -1;
    value->kind = kind;
    value->dtype = inner.dtype;
    value->shape = (prony_shape){.rank = -1};
    value->count = (size_t)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyList_GetItem(list, i);
        inner.kind = kind == PRONY_OPTIONAL && PyList_Check(item) ? PRONY_SEQUENCE : PRONY_TENSOR;
        if (py_values_fill(out, &value->items[i], item, &inner) != 0) return -1;
    }
    return 0;
}

/* Two or four narrow integers share a byte, low bits first. */
static int fill_packed(pyp_value *out, prony_value *value, PyObject *array, prony_dtype dtype)
{
    Py_buffer view;
    if (PyObject_GetBuffer(array, &view, PyBUF_STRIDES | PyBUF_FORMAT) != 0) return -1;
    unsigned bits = dtype == PRONY_UINT2 || dtype == PRONY_INT2 ? 2 : 4, per_byte = 8 / bits, mask = (1u << bits) - 1;
    unsigned char *packed = py_values_block(out, prony_dtype_bytes(dtype, view.len), 1);
    value->dtype = dtype;
    value->data = packed;
    value->shape.rank = view.ndim;
    for (int d = 0; d < view.ndim; d++) value->shape.dim[d] = view.shape[d];
    for (Py_ssize_t i = 0; packed && i < view.len; i++)
        packed[(size_t)i / per_byte] |=
            (unsigned char)((((const unsigned char *)view.buf)[i] & mask) << ((size_t)i % per_byte * bits));
    PyBuffer_Release(&view);
    return packed ? 0 : -1;
}

/* Fills *value, whose memory *out owns: buffers in `views`, Python objects in `objects`, the rest in `blocks`. -1: an
 * exception is set, and pyp_value_release frees what there is. Arrays are taken without a call of Python; other objects
 * go to prony._arrays.prepare, which answers (form, ...). */
static int py_values_fill(pyp_value *out, prony_value *value, PyObject *object, const prony_value_info *port)
{
    Py_buffer *grown = realloc(out->views, (out->view_count + 1) * sizeof *grown);
    if (!grown) return PyErr_NoMemory(), -1;
    out->views = grown;
    prony_kind kind = port ? port->kind : PRONY_TENSOR;
    int result = kind == PRONY_TENSOR ? pyp_tensor_view(object, &out->views[out->view_count], value, port) : 1;
    if (result == 0) out->view_count++;
    if (result <= 0) return result;

    PyObject *helper = pyp_helper("_arrays", "prepare");
    PyObject *made = helper ? PyObject_CallFunction(helper, "Osis", object, port ? port->name : "value", (int)kind,
                                                    port ? prony_dtype_name(port->dtype) : "")
                            : NULL;
    Py_XDECREF(helper);
    if (!made || py_values_keep(out, made) != 0) {
        Py_XDECREF(made);
        return -1;
    }
    Py_DECREF(made); /* out->objects has it */
    PyObject *tag = PyTuple_GetItem(made, 0), *content = PyTuple_GetItem(made, 1);
    long form = tag ? PyLong_AsLong(tag) : -1;
    switch (form) {
    case 0:
        result = pyp_tensor_view(content, &out->views[out->view_count], value, port);
        break;
    case 1:
        return py_values_fill_text(out, value, PyTuple_GetItem(made, 2), content);
    case 2:
        return fill_items(out, value, content, PRONY_SEQUENCE, port);
    case 3:
        return fill_items(out, value, content, PRONY_OPTIONAL, port);
    case 4:
        return fill_packed(out, value, content, port->dtype);
    default:
        return -1;
    }
    if (result == 0) out->view_count++;
    if (result > 0)
        pyp_raise(PRONY_INVALID_ARGUMENT, "input '%s': not an array of numbers", port ? port->name : "value");
    return result == 0 ? 0 : -1;
}

int pyp_value_from(pyp_value *out, PyObject *object, const prony_value_info *port)
{
    *out = (pyp_value){0};
    return py_values_fill(out, &out->value, object, port);
}

void pyp_value_release(pyp_value *value)
{
    for (size_t i = 0; i < value->view_count; i++) PyBuffer_Release(&value->views[i]);
    for (size_t i = 0; i < value->block_count; i++) free(value->blocks[i]);
    free(value->views);
    free(value->blocks);
    Py_XDECREF(value->objects);
    *value = (pyp_value){0};
}

/* ---- and back ---- */

static PyObject *text_to(const prony_value *value, int64_t count)
{
    const prony_string *elements = value->data;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; list && i < count; i++) {
        PyObject *text = PyUnicode_DecodeUTF8(elements[i].data, (Py_ssize_t)elements[i].size, "surrogateescape");
        if (!text || PyList_SetItem(list, (Py_ssize_t)i, text) != 0) Py_CLEAR(list);
    }
    PyObject *shape = list ? pyp_shape_to(&value->shape) : NULL;
    PyObject *helper = shape ? pyp_helper("_arrays", "text_array") : NULL;
    PyObject *array = helper ? PyObject_CallFunctionObjArgs(helper, list, shape, NULL) : NULL;
    Py_XDECREF(helper);
    Py_XDECREF(shape);
    Py_XDECREF(list);
    return array;
}

static void py_values_unpack(unsigned char *to, const unsigned char *from, int64_t count, prony_dtype dtype)
{
    unsigned bits = dtype == PRONY_UINT2 || dtype == PRONY_INT2 ? 2 : 4, per_byte = 8 / bits, mask = (1u << bits) - 1;
    bool negative = dtype == PRONY_INT4 || dtype == PRONY_INT2;
    for (int64_t i = 0; i < count; i++) {
        unsigned element = from[(size_t)i / per_byte] >> ((size_t)i % per_byte * bits) & mask;
        to[i] = (unsigned char)(negative && element >> (bits - 1) ? element | ~mask : element);
    }
}

/* A new array, list or None with a copy of the value; NULL: an exception is set. Elements narrower than a byte are
 * unpacked to a byte each. An optional without a value is None. */
PyObject *pyp_value_to(const prony_value *value)
{
    if (value->kind != PRONY_TENSOR) {
        if (value->kind == PRONY_OPTIONAL && value->count == 0) Py_RETURN_NONE;
        if (value->kind == PRONY_OPTIONAL) return pyp_value_to(&value->items[0]);
        PyObject *list = PyList_New((Py_ssize_t)value->count);
        for (size_t i = 0; list && i < value->count; i++) {
            PyObject *item = pyp_value_to(&value->items[i]);
            if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) != 0) Py_CLEAR(list);
        }
        return list;
    }
    int64_t count = prony_shape_numel(&value->shape);
    if (value->dtype == PRONY_STRING) return text_to(value, count);
    PyObject *array = pyp_array_new(value->dtype, &value->shape);
    Py_buffer view;
    if (!array || count == 0) return array;
    if (PyObject_GetBuffer(array, &view, PyBUF_WRITABLE) != 0) {
        Py_DECREF(array);
        return NULL;
    }
    if (prony_dtype_bytes(value->dtype, 4) < 4)
        py_values_unpack(view.buf, value->data, count, value->dtype);
    else
        memcpy(view.buf, value->data, (size_t)view.len);
    PyBuffer_Release(&view);
    return array;
}
