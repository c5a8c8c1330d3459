/* Rows of tests/operators/cases/FAMILY.inc: one operator on small inputs, run by every kernel that supports it.
 *
 *   CASE("Conv", 13, "kernel_shape=[3,3] pads=[1,1,1,1]", "f32[1,3,8,8] !f32[4,3,3,3] !f32[4]")
 *   REFUSED("Concat", 13, "axis=5", "f32[2,3] f32[2,3]")     infer (or the attribute check) must say no
 *
 * Operator: "domain::Name" outside of ai.onnx.
 * Attributes, separated by spaces: name=1, name=1.0 (a float has . or e, or is inf or nan), name='text', name=[1,2],
 *   name=[1.0,2.0], name=['a','b'], name=f32[2]={1,2} (a tensor).
 * Inputs, separated by spaces: dtype[dims] with f32 f64 f16 bf16 i8 u8 i16 u16 i32 u32 i64 u64 bool i4 u4 i2 u2 f4e2m1
 *   f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0. `!` before it: the
 *   value is a constant; ={v,v,…} after it: the data; ~lo:hi after it: the range of random data; @nan (@inf) after
 *   that: some of the elements; `?`: omitted.
 * `->n` at the end of the inputs asks for n outputs; the default is max(1, the operator's minimum).
 */
#ifndef PRN_TESTS_SUPPORT_OP_CASES_H
#define PRN_TESTS_SUPPORT_OP_CASES_H

#include "base/memory/alloc.h"
#include "ops/op.h"

#define OP_CASE_MAX_VALUES 64

typedef struct op_case {
    const char *file;
    int line;
    bool refused;
    const char *op, *attributes, *inputs;
    int64_t opset;
} op_case;

/* Owns everything of the cases of one test run. Zero-initialise it. */
typedef struct op_case_list {
    prn_bump pool;
    op_case *items;
    size_t count, capacity;
} op_case_list;

/* Reads every *.inc in the folders of `folder`. false: `message` has the fault and its position. */
bool op_cases_load(op_case_list *list, const char *folder, char *message, size_t message_bytes);
void op_cases_release(op_case_list *list);

/* A parsed row: the node with its attributes and plain input values with data. */
typedef struct op_case_node {
    prn_bump pool;
    prony_node node;
    prn_attr_list attributes;
    prony_value values[OP_CASE_MAX_VALUES];
    bool constant[OP_CASE_MAX_VALUES];
    const prony_value *inputs[OP_CASE_MAX_VALUES];
    size_t input_count;
    size_t output_count; /* 0: not stated */
} op_case_node;

bool op_case_parse(op_case_node *out, const op_case *row, char *message, size_t message_bytes);
void op_case_node_release(op_case_node *node);
/* A separate block for `bytes` bytes (so that the address sanitizer sees every overrun), owned by the pool's user. */
void *op_case_bytes(size_t bytes);
double op_case_get(const prony_value *value, int64_t index);
/* Fills a tensor with random elements between lo and hi, the same for the same seed. */
void op_case_fill(prony_value *value, double lo, double hi, uint64_t seed);

/* Runs the row through infer, cost and every kernel. false: `message` has the difference. */
bool op_case_run(const op_case *row, char *message, size_t message_bytes);

/* The same for an arbitrary row: a refusal by attributes, infer or the reference kernel is not a failure. */
typedef enum op_case_outcome { OP_CASE_PASSED, OP_CASE_REFUSED, OP_CASE_FAILED } op_case_outcome;
op_case_outcome op_case_try_any(const op_case *row, char *message, size_t message_bytes);

#endif
