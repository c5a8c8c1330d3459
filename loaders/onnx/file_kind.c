/* Implements file_kind.h. Runs only after a failed read, so that no model is refused for looking like another file. */
#define _GNU_SOURCE /* memmem */
#include "loaders/onnx/file_kind.h"
#include "loaders/onnx/wire.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAGIC(bytes) bytes, sizeof bytes - 1

typedef struct kind {
    size_t offset;
    const char *magic;
    size_t magic_size;
    const char *what, *advice;
} kind;

static const kind kinds[] = {
    {0, MAGIC("\x1f\x8b"), "compressed by gzip", "unpack it first (gunzip)"},
    {0, MAGIC("BZh"), "compressed by bzip2", "unpack it first (bunzip2)"},
    {0,
     MAGIC("\xfd"
           "7zXZ"),
     "compressed by xz", "unpack it first (unxz)"},
    {0, MAGIC("\x28\xb5\x2f\xfd"), "compressed by zstd", "unpack it first (unzstd)"},
    {0, MAGIC("7z\xbc\xaf"), "a 7-Zip archive", "unpack it first"},
    {257, MAGIC("ustar"), "a tar archive", "unpack it first (tar xf)"},
    {4, MAGIC("TFL3"), "a TensorFlow Lite model",
     "convert it: python -m tf2onnx.convert --tflite FILE --output model.onnx"},
    {4, MAGIC("ORTM"), "a model in ONNX Runtime's own format (.ort)", "use the .onnx file that it was made from"},
    {0, MAGIC("GGUF"), "a GGUF file of weights for llama.cpp", "export the model to ONNX from its framework"},
    {0, MAGIC("\x89HDF\r\n"), "an HDF5 file, as Keras saves models",
     "load it in Keras and export it: python -m tf2onnx.convert, or model.export(format=\"onnx\")"},
    {0, MAGIC("\x93NUMPY"), "a NumPy array", "arrays are inputs: prony run MODEL -i NAME=FILE.npy"},
    {0, MAGIC("\x89PNG\r\n"), "a PNG image", "images are inputs: prony run MODEL -i NAME=FILE.png"},
    {0, MAGIC("\xff\xd8\xff"), "a JPEG image", "images are inputs: prony run MODEL -i NAME=FILE.jpg"},
    {0,
     MAGIC("\x7f"
           "ELF"),
     "a program or library", "give the .onnx file"},
    {0, MAGIC("7767517\n"), "the text of an ncnn model", "use the ONNX file that it was made from"},
    {0, MAGIC("%PDF"), "a PDF document", "give the .onnx file"},
};

static bool contains(const char *data, size_t size, const char *text)
{
    return memmem(data, size, text, strlen(text)) != NULL;
}

static bool begins(const char *data, size_t size, const char *text)
{
    return size >= strlen(text) && strncasecmp(data, text, strlen(text)) == 0;
}

static bool ends(const char *name, const char *ending)
{
    size_t a = strlen(name), b = strlen(ending);
    return a >= b && strcasecmp(name + a - b, ending) == 0;
}

bool prn_file_is_lfs_pointer(const void *data, size_t size)
{
    return begins(data, size, "version https://git-lfs.github.com/");
}

static bool is_text(const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)data[i];
        if (c < 0x20 ? !isspace(c) : c == 0x7f) return false;
    }
    return size > 0;
}

static const kind *zip_kind(const char *head, size_t size)
{
    static const kind torch = {0, NULL, 0, "a PyTorch file (.pt, .pth)",
                               "load it in PyTorch and call torch.onnx.export(model, inputs, \"model.onnx\")"};
    static const kind keras = {0, NULL, 0, "a Keras file",
                               "load it in Keras and call model.export(\"model.onnx\", format=\"onnx\")"};
    static const kind arrays = {0, NULL, 0, "an .npz archive of arrays",
                                "arrays are inputs: prony run MODEL -i NAME=FILE.npz"};
    static const kind zip = {0, NULL, 0, "a zip archive", "unpack it first, and give the .onnx file in it"};
    if (contains(head, size, "data.pkl") || contains(head, size, "constants.pkl") || contains(head, size, ".data/"))
        return &torch;
    if (contains(head, size, "metadata.json") && contains(head, size, "keras")) return &keras;
    return contains(head, size, ".npy") ? &arrays : &zip;
}

static const kind *text_kind(const char *head, size_t size)
{
    static const kind report = {
        0, NULL, 0, "a report of Prony",
        "prony inspect, compare, check, metrics and recommend read a report; this command needs a model"};
    static const kind json = {0, NULL, 0, "JSON", "it describes a model at most; give the .onnx file"};
    static const kind html = {0, NULL, 0, "a web page",
                              "the link leads to a page about the file; use the link to the file itself (\"raw\", "
                              "\"download\", \"resolve\")"};
    static const kind openvino = {0, NULL, 0, "an OpenVINO model (.xml)", "use the ONNX file that it was made from"};
    static const kind text = {0, NULL, 0, "text", "give the .onnx file"};
    const char *at = head;
    size_t left = size;
    if (left >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) at += 3, left -= 3;
    while (left && isspace((unsigned char)*at)) at++, left--;
    if (begins(at, left, "<!doctype html") || begins(at, left, "<html")) return &html;
    if (begins(at, left, "<?xml") && contains(at, left, "<net")) return &openvino;
    if (left && (*at == '{' || *at == '[') && is_text(at, left))
        return contains(at, left, "\"prony.") ? &report : &json;
    return is_text(at, left) ? &text : NULL;
}

/* A header's length in eight bytes, then JSON. */
static bool is_safetensors(const char *data, size_t size)
{
    uint64_t length = 0;
    if (size < 10) return false;
    memcpy(&length, data, sizeof length);
    return length >= 2 && length <= size - 8 && data[8] == '{' && data[9] == '"';
}

/* Recognises models of other frameworks by content or name; NULL: unknown. */
static const kind *model_kind(const char *name, const char *head, size_t size, size_t whole)
{
    static const kind safetensors = {
        0, NULL, 0, "a safetensors file, which holds only weights",
        "export the model to ONNX from its framework (optimum-cli export onnx, torch.onnx.export)"};
    static const kind pickle = {0, NULL, 0, "a Python pickle (PyTorch, scikit-learn)",
                                "load it in Python and export it: torch.onnx.export, or skl2onnx.to_onnx"};
    static const kind frozen = {
        0, NULL, 0, "a TensorFlow graph (frozen .pb)",
        "convert it: python -m tf2onnx.convert --graphdef FILE --output model.onnx --inputs X:0 --outputs Y:0"};
    static const kind saved = {
        0, NULL, 0, "a TensorFlow SavedModel",
        "convert its folder: python -m tf2onnx.convert --saved-model FOLDER --output model.onnx"};
    static const kind coreml = {0, NULL, 0, "a Core ML model", "export the model that it was made from to ONNX"};
    if (is_safetensors(head, whole)) return &safetensors;
    if (size > 2 && (unsigned char)head[0] == 0x80 && head[1] >= 2 && head[1] <= 5) return &pickle;
    if (ends(name, ".mlmodel") || contains(head, size, "com.apple.coreml") || contains(head, size, "coremltools"))
        return &coreml;
    if (ends(name, "saved_model.pb") ||
        (size > 3 && head[0] == 8 && head[1] == 1 && head[2] == 0x12 && contains(head, size, "serve")))
        return &saved;
    bool tensorflow =
        contains(head, size, "Placeholder") || contains(head, size, "Const") || contains(head, size, "VarHandleOp");
    return size && head[0] == 0x0a && tensorflow ? &frozen : NULL;
}

static const kind *find_kind(const char *name, const char *data, size_t size)
{
    size_t head = size < 4096 ? size : 4096;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const kind *k = &kinds[i];
        if (size >= k->offset + k->magic_size && memcmp(data + k->offset, k->magic, k->magic_size) == 0) return k;
    }
    if (begins(data, size, "PK\x03\x04")) return zip_kind(data, head);
    const kind *text = text_kind(data, head);
    return text ? text : model_kind(name, data, head, size);
}

static void explain_pointer(prony_error *error, const char *name, const char *data, size_t size)
{
    const char *line = memmem(data, size, "\nsize ", 6);
    unsigned long long bytes = 0;
    char of[64] = "";
    for (line = line ? line + 6 : data + size;
         line < data + size && isdigit((unsigned char)*line) && bytes < UINT64_MAX / 10; line++)
        bytes = bytes * 10 + (unsigned long long)(*line - '0');
    if (bytes) snprintf(of, sizeof of, " of %llu bytes", bytes);
    prn_fail(error, PRONY_INVALID_MODEL,
             "%.400s: is a Git LFS pointer instead of the model%s; fetch it: git lfs install, then git lfs pull", name,
             of);
}

/* Explains a truncated model: it ends inside of an outermost field. Names field and missing bytes. */
static bool explain_cut(prony_error *error, const char *name, const char *data, size_t size)
{
    prn_wire wire = prn_wire_make(data, size);
    prn_field field;
    size_t fields = 0;
    while (prn_wire_next(&wire, &field)) {
        if (field.number == 0 || field.number > 32) return false;
        fields++;
    }
    if (!wire.damage || !fields || data[0] != 8) return false;
    if (!strstr(wire.damage, "past the end") && !strstr(wire.damage, "truncated")) return false;
    prn_fail(error, PRONY_INVALID_MODEL,
             "%.400s: byte %zu, field %u: %s: the file ends after %zu bytes and is incomplete, perhaps from an "
             "interrupted download or copy; get it again",
             name, (size_t)(wire.damage_at - wire.origin), wire.damage_field, wire.damage, size);
    return true;
}

void prn_file_kind_explain(prony_error *error, const char *name, const void *data, size_t size)
{
    if (!error || error->status == PRONY_OUT_OF_MEMORY) return;
    if (size == 0) {
        prn_fail(error, PRONY_INVALID_MODEL, "%.400s: is empty (0 bytes); get it again", name);
        return;
    }
    if (prn_file_is_lfs_pointer(data, size)) {
        explain_pointer(error, name, data, size);
        return;
    }
    if (explain_cut(error, name, data, size)) return;
    const kind *k = find_kind(name, data, size);
    if (k) prn_fail(error, PRONY_INVALID_MODEL, "%.400s: is not an ONNX model but %s; %s", name, k->what, k->advice);
}
