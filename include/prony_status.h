/* Failures of functions: statuses and messages. Conventions: prony.h, which includes it. */
#ifndef PRONY_STATUS_H
#define PRONY_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PRONY_API __attribute__((visibility("default")))
#define PRONY_MUST_USE __attribute__((warn_unused_result))
#else
#define PRONY_API
#define PRONY_MUST_USE
#endif

/* For the PRONY_*_INIT macros: every field of `type` is zero, which means its default, but for struct_size and, with
 * PRONY_INIT_WITH, one field. C++ before C++20 has no designated initialisers. */
#ifdef __cplusplus
#define PRONY_INIT_WITH(type, field, number)                                                                           \
    []() {                                                                                                             \
        type prony_options_ = type();                                                                                  \
        prony_options_.struct_size = sizeof(type);                                                                     \
        prony_options_.field = (number);                                                                               \
        return prony_options_;                                                                                         \
    }()
#define PRONY_INIT(type) PRONY_INIT_WITH(type, struct_size, sizeof(type))
#else
#define PRONY_INIT_WITH(type, field, number) {.struct_size = sizeof(type), .field = (number)}
#define PRONY_INIT(type) {.struct_size = sizeof(type)}
#endif

/* X(name, text) for every status; PRONY_OK is zero. */
#define PRONY_STATUS_LIST(X)                                                                                           \
    X(PRONY_OK, "ok")                                                                                                  \
    X(PRONY_OUT_OF_MEMORY, "out of memory")                                                                            \
    X(PRONY_INVALID_ARGUMENT, "invalid argument")                                                                      \
    X(PRONY_IO_ERROR, "input/output error")                                                                            \
    X(PRONY_INVALID_MODEL, "invalid model")                                                                            \
    X(PRONY_UNSUPPORTED, "unsupported")                                                                                \
    X(PRONY_SHAPE_MISMATCH, "shape or type mismatch")                                                                  \
    X(PRONY_OUT_OF_RANGE, "value out of range")                                                                        \
    X(PRONY_BUSY, "session is already running")                                                                        \
    X(PRONY_LIMIT, "limit exceeded")                                                                                   \
    X(PRONY_INTERNAL, "internal error")                                                                                \
    X(PRONY_CANCELLED, "cancelled")                                                                                    \
    X(PRONY_NEEDS_DIMENSION, "a free dimension needs a value")

typedef enum prony_status {
#define PRONY_STATUS_ENUM(name, text) name,
    PRONY_STATUS_LIST(PRONY_STATUS_ENUM)
#undef PRONY_STATUS_ENUM
} prony_status;

#define PRONY_ERROR_MESSAGE_BYTES 1024

/* Filled on failure only; `message` is always NUL-terminated. Zero-initialise it. */
typedef struct prony_error {
    prony_status status;
    char message[PRONY_ERROR_MESSAGE_BYTES];
} prony_error;

/* The status in words, "invalid model". Static; an unknown number is "unknown status". */
PRONY_API const char *prony_status_text(prony_status status);

#ifdef __cplusplus
}
#endif
#endif
