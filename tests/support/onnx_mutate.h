/* Mutates protobuf messages for fuzzing: the results still parse, so they pass the reader. */
#ifndef PRN_TESTS_SUPPORT_ONNX_MUTATE_H
#define PRN_TESTS_SUPPORT_ONNX_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Changes, drops, doubles or exchanges one field of the message, at any depth, in place; returns the new size, at most
 * `most`, or 0 if it is not a message or no change fits. */
size_t onnx_mutate(uint8_t *data, size_t size, size_t most, unsigned seed);

#endif
