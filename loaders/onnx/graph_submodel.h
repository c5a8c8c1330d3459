/* A part of a model's graph as an ONNX file of its own. */
#ifndef PRN_LOADERS_ONNX_GRAPH_SUBMODEL_H
#define PRN_LOADERS_ONNX_GRAPH_SUBMODEL_H

#include "loaders/onnx/model.h"

typedef struct prn_submodel {
    const char *const *from, *const *to; /* tensors; to_count 0: the graph's outputs */
    size_t from_count, to_count;
    /* Types of tensors `from`, in their order; NULL: not known. */
    const prony_value *const *values;
    /* Type and shape of a tensor that the file does not declare; rank -1 and PRONY_UNDEFINED: not known. */
    prony_status (*type_of)(void *user, const char *name, prony_value *out, prony_error *error);
    void *user;
} prn_submodel;

/* The bytes of a ModelProto; released by prn_free. External weights are included. */
PRN_MUST_USE prony_status prn_part_write(uint8_t **out, size_t *size, const prn_model_file *file,
                                         const prn_submodel *part, prony_error *error);

#endif
