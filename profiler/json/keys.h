/* Keys of a JSON document as tables. A row has a key's name, the struct field of its value, its condition and its
 * description. prn_keys_write, prn_keys_read, the schemas in docs/schemas and the columns of CSV follow from it.
 *
 *     static const prn_key page_keys[] = {
 * {"title", PRN_AT(page, title), PRN_ALWAYS, "The heading."},
 *         {"lines", PRN_AT(page, lines), PRN_IF_FROM_0, "Absent: not counted."},
 *         {0}};
 *
 * The order of the rows is that of the document. PRN_AT takes the key's type from the field's. A key that is more than
 * a field has functions in its row. */
#ifndef PRN_PROFILER_JSON_KEYS_H
#define PRN_PROFILER_JSON_KEYS_H

#include "profiler/json/json_read.h"
#include "profiler/json/json_write.h"
#include "prony_report.h"

#include <stddef.h>

typedef enum prn_key_type {
    PRN_KEY_STRING, /* const char * */
    PRN_KEY_CHARS,  /* char[size] */
    PRN_KEY_BOOL,
    PRN_KEY_INT,
    PRN_KEY_I64,
    PRN_KEY_U32,
    PRN_KEY_U64,
    PRN_KEY_DOUBLE,
    PRN_KEY_STRINGS, /* from here on pointers to arrays */
    PRN_KEY_I64S,
    PRN_KEY_U64S,
    PRN_KEY_U32S,
    PRN_KEY_DOUBLES,
    PRN_KEY_VALUES,  /* const prony_value *const *: shape and type of each, NULL allowed */
    PRN_KEY_ROWS,    /* of structs; the row names their keys */
    PRN_KEY_NUMBERS, /* of structs of a name and an int64_t: an object */
    PRN_KEY_TWO_I64,
    PRN_KEY_TWO_DOUBLES,
    PRN_KEY_OBJECT, /* a struct in the struct */
    PRN_KEY_SPLICE, /* a struct whose keys are inlined in the enclosing object; has no name */
    PRN_KEY_SHAPE,
    PRN_KEY_DTYPE,
    PRN_KEY_KIND,
    PRN_KEY_FACTS,    /* of a prony_cost */
    PRN_KEY_NAMES,    /* an object of strings; like the rest written and read by functions of the row */
    PRN_KEY_I64_SETS, /* an array of arrays of six integers */
    PRN_KEY_NULL
} prn_key_type;

/* Conditions under which a key is written. Reading a missing key gives the value that means "unknown". */
enum {
    PRN_ALWAYS,
    PRN_IF_SET,    /* a number above 0, text that is not empty, a list of some length, true */
    PRN_IF_FROM_0, /* unknown: -1 */
    PRN_IF_INDEX,  /* unknown: all bits set */
    PRN_IF_NUMBER, /* unknown: not a number */
    PRN_IF_FLAG,   /* the row's flag is true; reading sets the flag */
    PRN_IF_TOO,    /* as PRN_IF_FLAG, with the flag of an earlier key */
    PRN_IF_LIST,   /* the pointer to the list is not NULL */
    PRN_CONDITION = 7,

    PRN_OR_NULL = 8,            /* an unknown value is written as null; otherwise it is left out */
    PRN_LENIENT = 16,           /* optional when reading */
    PRN_OLD = 32 | PRN_LENIENT, /* missing in older documents, and not required by the schema */
    PRN_EMPTY = 64,             /* missing text reads as ""; otherwise as NULL */
    PRN_TRUE = 128,             /* a missing boolean reads as true */
    PRN_ROW_DIRECT = 256,       /* on one line */
    PRN_ROW_DIRECT_ROWS = 512,  /* each row on one line */
    PRN_COUNTED = 65536,        /* a list whose count an earlier key has read */
    PRN_ROOT = 131072,          /* the list's count is a field of the root */
    PRN_NULLS = 1024,           /* elements may be null: PRONY_NO_INDEX, NaN */
    PRN_SHARE = 2048,           /* 0 to 1 */
    PRN_LEAST_0 = 4096,         /* minimum in the schema */
    PRN_LEAST_1 = 8192,
    PRN_HASH = 16384,   /* 64 hexadecimal digits */
    PRN_DERIVED = 32768 /* written only; reading computes it from other keys */
};

/* Arguments of the functions in rows. */
typedef struct prn_at {
    void *root;        /* the document's struct: prony_report, prony_study */
    void *row;         /* the struct that the table describes */
    const void *extra; /* data from the caller */
    bool detail;       /* prony_write_options.memory */
} prn_at;

#define PRN_NO_COUNT SIZE_MAX

typedef struct prn_key {
    const char *name;
    prn_key_type type;
    size_t offset, size; /* size: of the field or of a list's element; 0: nothing is read */
    size_t other;        /* offset of the list's count or of the flag; PRN_NO_COUNT: the list ends with NULL */
    const struct prn_key *keys;
    unsigned how;
    const char *about;                     /* the schema's description; NULL: none */
    const char *words;                     /* all possible texts, separated by '|'; NULL: any */
    size_t if_root, if_row;                /* PRN_FLAG: left out if the flag is false; 0: no condition */
    bool (*when)(const prn_at *at);        /* likewise */
    double (*figure)(const prn_at *at);    /* instead of the field; NaN: unknown */
    const char *(*word)(const prn_at *at); /* likewise; NULL or "": unknown */
    void (*write)(prn_json *json, const struct prn_key *key, const prn_at *at); /* replaces the function for `type` */
    void (*read)(prn_json_reader *reader, const prn_json_value *object, const struct prn_key *key, const prn_at *at);
} prn_key;

#define PRN_FIELD(T, f) (((T *)0)->f)
#define PRN_TYPE_OF(x)                                                                                                 \
    _Generic((x),                                                                                                      \
        const char *: PRN_KEY_STRING,                                                                                  \
        char *: PRN_KEY_CHARS,                                                                                         \
        bool: PRN_KEY_BOOL,                                                                                            \
        int: PRN_KEY_INT,                                                                                              \
        int64_t: PRN_KEY_I64,                                                                                          \
        uint32_t: PRN_KEY_U32,                                                                                         \
        uint64_t: PRN_KEY_U64,                                                                                         \
        double: PRN_KEY_DOUBLE,                                                                                        \
        const char *const *: PRN_KEY_STRINGS,                                                                          \
        int64_t *: PRN_KEY_I64S,                                                                                       \
        const uint64_t *: PRN_KEY_U64S,                                                                                \
        const int64_t *: PRN_KEY_I64S,                                                                                 \
        uint32_t *: PRN_KEY_U32S,                                                                                      \
        const uint32_t *: PRN_KEY_U32S,                                                                                \
        const double *: PRN_KEY_DOUBLES,                                                                               \
        const prony_value *const *: PRN_KEY_VALUES)

/* A boolean, for if_root and if_row. */
#define PRN_FLAG(T, f) (offsetof(T, f) + 1)

/* Initialisers of a row's type, field and keys; `how` comes next. */
#define PRN_PLACE(kind, place, bytes, more, table)                                                                     \
    .type = (kind), .offset = (place), .size = (bytes), .other = (more), .keys = (table)
/* A field; one with a flag; one of two numbers; a list; a list that NULL ends; a list of structs. */
#define PRN_WITH(T, f, flag)                                                                                           \
    PRN_PLACE(PRN_TYPE_OF(PRN_FIELD(T, f)), offsetof(T, f), sizeof PRN_FIELD(T, f), offsetof(T, flag), NULL)
#define PRN_AT(T, f) PRN_WITH(T, f, f)
#define PRN_TWO(T, f)                                                                                                  \
    PRN_PLACE(_Generic(PRN_FIELD(T, f)[0], int64_t: PRN_KEY_TWO_I64, double: PRN_KEY_TWO_DOUBLES), offsetof(T, f),     \
              sizeof PRN_FIELD(T, f), 0, NULL)
#define PRN_LIST(T, f, count)                                                                                          \
    PRN_PLACE(PRN_TYPE_OF(PRN_FIELD(T, f)), offsetof(T, f), sizeof *PRN_FIELD(T, f), offsetof(T, count), NULL)
#define PRN_NUMBERS(T, f, count)                                                                                       \
    PRN_PLACE(PRN_KEY_NUMBERS, offsetof(T, f), sizeof *PRN_FIELD(T, f), offsetof(T, count), NULL)
#define PRN_NAMES(T, f) PRN_PLACE(PRN_KEY_STRINGS, offsetof(T, f), sizeof *PRN_FIELD(T, f), PRN_NO_COUNT, NULL)
#define PRN_ROWS(T, f, count, keys)                                                                                    \
    PRN_PLACE(PRN_KEY_ROWS, offsetof(T, f), sizeof *PRN_FIELD(T, f), offsetof(T, count), keys)
/* A struct in the struct; one with a flag; an object of fields of the struct itself; one with a flag. */
#define PRN_IN_WITH(T, f, flag, keys)                                                                                  \
    PRN_PLACE(PRN_KEY_OBJECT, offsetof(T, f), sizeof PRN_FIELD(T, f), offsetof(T, flag), keys)
#define PRN_IN(T, f, keys) PRN_IN_WITH(T, f, f, keys)
#define PRN_HERE(keys) PRN_PLACE(PRN_KEY_OBJECT, 0, 1, 0, keys)
#define PRN_HERE_WITH(T, flag, keys) PRN_PLACE(PRN_KEY_OBJECT, 0, 1, offsetof(T, flag), keys)
/* Whole rows: inline the keys of a nested struct, or of the struct itself, in the enclosing object. */
#define PRN_MORE(T, f, keys) "", PRN_PLACE(PRN_KEY_SPLICE, offsetof(T, f), sizeof PRN_FIELD(T, f), 0, keys)
#define PRN_MORE_HERE(keys) "", PRN_PLACE(PRN_KEY_SPLICE, 0, 1, 0, keys)
/* A field of another type; a key made, and if possible read, by functions of the row. */
#define PRN_AS(kind, T, f) PRN_PLACE(PRN_KEY_##kind, offsetof(T, f), sizeof PRN_FIELD(T, f), 0, NULL)
#define PRN_MADE(kind) PRN_PLACE(PRN_KEY_##kind, 0, 0, 0, NULL)
#define PRN_MADE_IN(T, f, keys) PRN_PLACE(PRN_KEY_ROWS, offsetof(T, f), 0, 0, keys)

static inline void *prn_key_field(const prn_key *key, const prn_at *at)
{
    return (char *)at->row + key->offset;
}

/* The value of an integer or boolean; saturates at INT64_MAX. */
int64_t prn_key_whole(const prn_key *key, const prn_at *at);
/* The length of a list. */
size_t prn_key_count(const prn_key *key, const prn_at *at);
/* true: if_root, if_row and when allow the key. */
bool prn_key_applies(const prn_key *key, const prn_at *at);
/* true: the key has a known value. */
bool prn_key_known(const prn_key *key, const prn_at *at);
/* Finds a key, also among inlined keys; then sets *at to their struct. NULL: no such key. */
const prn_key *prn_keys_find(const prn_key *keys, const char *name, prn_at *at);

/* Writes a whole document: {"schema": schema, ...}. */
PRN_MUST_USE prony_status prn_keys_write_document(const char *schema, const prn_key *keys, const prn_at *at,
                                                  prony_write_fn write, void *user, prony_error *error);
/* Writes the members of an open object. */
void prn_keys_write(prn_json *json, const prn_key *keys, const prn_at *at);
/* Writes one member. */
void prn_key_write(prn_json *json, const prn_key *key, const prn_at *at);

/* Reads members of `object` into at->row; NULL: a missing object, so every value is unknown. Strings and lists are
 * copied to the reader's pool. */
void prn_keys_read(prn_json_reader *reader, const prn_json_value *object, const prn_key *keys, const prn_at *at);
void prn_key_read(prn_json_reader *reader, const prn_json_value *object, const prn_key *key, const prn_at *at);
/* Extends the path in messages by "memory" or "layers[3]"; the caller keeps the result to restore it. */
typedef struct prn_where {
    size_t length;
} prn_where;
prn_where prn_json_enter(prn_json_reader *reader, const char *key, size_t index);
#define PRN_NO_ELEMENT SIZE_MAX
void prn_json_leave(prn_json_reader *reader, prn_where where);
/* Checks that the document's "schema" is `wanted`, such as "prony.report/1"; messages call the document `what`. */
void prn_json_check_schema(prn_json_reader *reader, const prn_json_value *root, const char *wanted, const char *what);

#endif
