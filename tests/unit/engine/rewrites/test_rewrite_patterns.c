/* Rewrites that recognise an operator written out in primitives, and those that share a common subexpression. Each
 * fires on every variant it knows and on nothing else. */
#include "failure_trace.h"
#include "model_run.h"
#include "engine/rewrites/rewrite.h"
#include "rewrite_check.h"

#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Constants by name: k3 k6 kone khalf ktwo sixth root (√2) root_half cube (0.044715) tanh_factor (√(2/π)) eps. */
static model_builder *pattern_model(const rc_step *steps)
{
    rc_seed(3);
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "2,3,8");
    rc_scalar(m, "k3", 3.0f);
    rc_scalar(m, "k6", 6.0f);
    rc_scalar(m, "zero", 0.0f);
    rc_scalar(m, "kone", 1.0f);
    rc_scalar(m, "khalf", 0.5f);
    rc_scalar(m, "ktwo", 2.0f);
    rc_scalar(m, "nearly_two", 2.000001f);
    rc_scalar(m, "sixth", 1.0f / 6.0f);
    rc_scalar(m, "root", 1.41421356f);
    rc_scalar(m, "root_half", 0.70710678f);
    rc_scalar(m, "cube", 0.044715f);
    rc_scalar(m, "tanh_factor", 0.79788456f);
    rc_scalar(m, "eps", 1e-5f);
    rc_weights(m, "gamma", "8");
    rc_weights(m, "beta", "1,1,8");
    rc_steps(m, steps);
    rc_output(m, "y");
    return m;
}

#define EXPECT_STEPS(wanted, ...) rc_expect(pattern_model((const rc_step[]){__VA_ARGS__, {0}}), wanted)

static void match_gated(void **state)
{
    (void)state;
    EXPECT_STEPS("SiLU", {"Sigmoid", "x", "s", 0}, {"Mul", "s x", "y", 0});
    EXPECT_STEPS("Sigmoid Mul", {"Sigmoid", "x", "s", 0}, {"Mul", "s s", "y", 0});
    EXPECT_STEPS("Sigmoid Exp Mul", {"Sigmoid", "x", "s", 0}, {"Exp", "x", "e", 0}, {"Mul", "s e", "y", 0});
    EXPECT_STEPS("Sigmoid Mul Mul", {"Sigmoid", "x", "s", 0}, {"Mul", "s x", "p", 0}, {"Mul", "p s", "y", 0});
    EXPECT_STEPS("HardSigmoid", {"Add", "x k3", "a", 0}, {"Clip", "a zero k6", "c", 0}, {"Div", "c k6", "y", 0});
    EXPECT_STEPS("HardSigmoid", {"Add", "k3 x", "a", 0}, {"Clip", "a zero k6", "c", 0}, {"Mul", "sixth c", "y", 0});
    EXPECT_STEPS("Add Clip Div", {"Add", "x k3", "a", 0}, {"Clip", "a zero k6", "c", 0}, {"Div", "c k3", "y", 0});
    EXPECT_STEPS("Add Clip Div", {"Add", "x k3", "a", 0}, {"Clip", "a kone k6", "c", 0}, {"Div", "c k6", "y", 0});
    EXPECT_STEPS("HardSwish", {"HardSigmoid", "x", "s", "alpha=0.16666667 beta=0.5"}, {"Mul", "x s", "y", 0});
    EXPECT_STEPS("HardSigmoid Mul", {"HardSigmoid", "x", "s", "alpha=0.2 beta=0.5"}, {"Mul", "x s", "y", 0});
    EXPECT_STEPS("HardSwish", {"Add", "x k3", "a", 0}, {"Clip", "a zero k6", "c", 0}, {"Mul", "x c", "p", 0},
                 {"Div", "p k6", "y", 0});
    EXPECT_STEPS("HardSwish", {"Add", "x k3", "a", 0}, {"Clip", "a zero k6", "c", 0}, {"Mul", "c sixth", "p", 0},
                 {"Mul", "p x", "y", 0});
    EXPECT_STEPS("Add Clip Mul Mul", {"Add", "x k3", "a", 0}, {"Clip", "a zero k6", "c", 0}, {"Mul", "x c", "p", 0},
                 {"Mul", "p khalf", "y", 0});
}

static void match_gelu(void **state)
{
    (void)state;
    EXPECT_STEPS("Gelu", {"Div", "x root", "d", 0}, {"Erf", "d", "e", 0}, {"Add", "e kone", "a", 0},
                 {"Mul", "x a", "p", 0}, {"Mul", "p khalf", "y", 0});
    EXPECT_STEPS("Gelu", {"Mul", "x root_half", "d", 0}, {"Erf", "d", "e", 0}, {"Add", "kone e", "a", 0},
                 {"Mul", "khalf x", "h", 0}, {"Mul", "h a", "y", 0});
    EXPECT_STEPS("Gelu", {"Div", "x root", "d", 0}, {"Erf", "d", "e", 0}, {"Add", "e kone", "a", 0},
                 {"Div", "a ktwo", "h", 0}, {"Mul", "h x", "y", 0});
    EXPECT_STEPS("Div Erf Add Mul Mul", {"Div", "x ktwo", "d", 0}, {"Erf", "d", "e", 0}, {"Add", "e kone", "a", 0},
                 {"Mul", "x a", "p", 0}, {"Mul", "p khalf", "y", 0});
    EXPECT_STEPS("Div Erf Add Mul Mul", {"Div", "x root", "d", 0}, {"Erf", "d", "e", 0}, {"Add", "e kone", "a", 0},
                 {"Mul", "x a", "p", 0}, {"Mul", "p sixth", "y", 0});
    EXPECT_STEPS("Div Erf Add Mul Mul Add", {"Div", "x root", "d", 0}, {"Erf", "d", "e", 0}, {"Add", "e kone", "a", 0},
                 {"Mul", "x a", "p", 0}, {"Mul", "p khalf", "g", 0}, {"Add", "g e", "y", 0});
    EXPECT_STEPS("Gelu", {"Pow", "x k3", "c", 0}, {"Mul", "c cube", "d", 0}, {"Add", "x d", "a", 0},
                 {"Mul", "a tanh_factor", "u", 0}, {"Tanh", "u", "t", 0}, {"Add", "t kone", "g", 0},
                 {"Mul", "x g", "p", 0}, {"Mul", "p khalf", "y", 0});
    EXPECT_STEPS("Gelu", {"Mul", "x x", "q", 0}, {"Mul", "q cube", "d", 0}, {"Add", "d kone", "a", 0},
                 {"Mul", "x tanh_factor", "v", 0}, {"Mul", "v a", "u", 0}, {"Tanh", "u", "t", 0},
                 {"Add", "t kone", "g", 0}, {"Mul", "x khalf", "h", 0}, {"Mul", "h g", "y", 0});
}

static void match_layer_norm(void **state)
{
    (void)state;
    EXPECT_STEPS("LayerNormalization", {"ReduceMean", "x", "m", "axes=[-1]"}, {"Sub", "x m", "d", 0},
                 {"Pow", "d ktwo", "q", 0}, {"ReduceMean", "q", "v", "axes=[2]"}, {"Add", "v eps", "a", 0},
                 {"Sqrt", "a", "s", 0}, {"Div", "d s", "n", 0}, {"Mul", "n gamma", "g", 0}, {"Add", "beta g", "y", 0});
    EXPECT_STEPS("LayerNormalization", {"ReduceMean", "x", "m", "axes=[-1]"}, {"Sub", "x m", "d", 0},
                 {"Mul", "d d", "q", 0}, {"ReduceMean", "q", "v", "axes=[-1]"}, {"Add", "eps v", "a", 0},
                 {"Sqrt", "a", "s", 0}, {"Div", "d s", "y", 0});
    /* Two equal deviations become one. */
    EXPECT_STEPS("LayerNormalization", {"ReduceMean", "x", "m", "axes=[-1]"}, {"Sub", "x m", "d", 0},
                 {"Sub", "x m", "d2", 0}, {"Mul", "d d", "q", 0}, {"ReduceMean", "q", "v", "axes=[-1]"},
                 {"Add", "eps v", "a", 0}, {"Sqrt", "a", "s", 0}, {"Div", "d2 s", "y", 0});
    /* Another axis; another power. */
    EXPECT_STEPS("ReduceMean Sub Mul ReduceMean Add Sqrt Div", {"ReduceMean", "x", "m", "axes=[1]"},
                 {"Sub", "x m", "d", 0}, {"Mul", "d d", "q", 0}, {"ReduceMean", "q", "v", "axes=[1]"},
                 {"Add", "eps v", "a", 0}, {"Sqrt", "a", "s", 0}, {"Div", "d s", "y", 0});
    EXPECT_STEPS("ReduceMean Sub Abs Pow ReduceMean Add Sqrt Div", {"ReduceMean", "x", "m", "axes=[-1]"},
                 {"Sub", "x m", "d", 0}, {"Abs", "d", "b", 0}, {"Pow", "b k3", "q", 0},
                 {"ReduceMean", "q", "v", "axes=[-1]"}, {"Add", "eps v", "a", 0}, {"Sqrt", "a", "s", 0},
                 {"Div", "d s", "y", 0});
    /* Nearly a square. */
    EXPECT_STEPS("ReduceMean Sub Abs Pow ReduceMean Add Sqrt Div", {"ReduceMean", "x", "m", "axes=[-1]"},
                 {"Sub", "x m", "d", 0}, {"Abs", "d", "b", 0}, {"Pow", "b nearly_two", "q", 0},
                 {"ReduceMean", "q", "v", "axes=[-1]"}, {"Add", "v eps", "a", 0}, {"Sqrt", "a", "s", 0},
                 {"Div", "d s", "y", 0});
    /* The scale was set already. */
    EXPECT_STEPS("LayerNormalization Mul", {"LayerNormalization", "x gamma", "n", "axis=-1"},
                 {"Mul", "n gamma", "y", 0});
    EXPECT_STEPS("LayerNormalization", {"LayerNormalization", "x gamma", "n", "axis=-1"}, {"Add", "n beta", "y", 0});
}

/* x [2, 12, 3, 5] as three groups of channels. */
static model_builder *group_model(const rc_step *steps)
{
    static const int64_t groups[] = {0, 3, -1}, back[] = {2, 12, 3, 5}, mixed[] = {1, 6, -1};
    const float ones[] = {1.0f, 1.0f, 1.0f}, zeros[] = {0.0f, 0.0f, 0.0f}, six[] = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f},
                none[6] = {0.0f};
    rc_seed(7);
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "2,12,3,5");
    rc_ints(m, "groups", "3", groups);
    rc_ints(m, "back", "4", back);
    rc_ints(m, "mixed", "3", mixed);
    mb_initializer(m, "ones", PRONY_FLOAT32, "3", ones);
    mb_initializer(m, "zeros", PRONY_FLOAT32, "3", zeros);
    mb_initializer(m, "six", PRONY_FLOAT32, "6", six);
    mb_initializer(m, "none", PRONY_FLOAT32, "6", none);
    rc_weights(m, "some", "3");
    rc_weights(m, "gamma", "12,1,1");
    rc_weights(m, "beta", "1,12,1,1");
    rc_weights(m, "row", "5");
    rc_steps(m, steps);
    rc_output(m, "y");
    return m;
}

#define EXPECT_GROUPS(wanted, ...) rc_expect(group_model((const rc_step[]){__VA_ARGS__, {0}}), wanted)

static void match_group_norm(void **state)
{
    (void)state;
    EXPECT_GROUPS("GroupNormalization", {"Reshape", "x groups", "g", 0},
                  {"InstanceNormalization", "g ones zeros", "n", "epsilon=0.001"}, {"Reshape", "n back", "r", 0},
                  {"Mul", "r gamma", "s", 0}, {"Add", "beta s", "y", 0});
    EXPECT_GROUPS("GroupNormalization[relu]", {"Reshape", "x groups", "g", 0},
                  {"InstanceNormalization", "g ones zeros", "n", 0}, {"Reshape", "n back", "r", 0},
                  {"Mul", "r gamma", "s", 0}, {"Add", "beta s", "t", 0}, {"Relu", "t", "y", 0});
    /* No shift; a shift first; a factor for each column. */
    EXPECT_GROUPS("GroupNormalization", {"Reshape", "x groups", "g", 0},
                  {"InstanceNormalization", "g ones zeros", "n", 0}, {"Reshape", "n back", "r", 0},
                  {"Mul", "gamma r", "y", 0});
    EXPECT_GROUPS("GroupNormalization Mul", {"Reshape", "x groups", "g", 0},
                  {"InstanceNormalization", "g ones zeros", "n", 0}, {"Reshape", "n back", "r", 0},
                  {"Add", "r beta", "s", 0}, {"Mul", "s gamma", "y", 0});
    EXPECT_GROUPS("GroupNormalization Mul", {"Reshape", "x groups", "g", 0},
                  {"InstanceNormalization", "g ones zeros", "n", 0}, {"Reshape", "n back", "r", 0},
                  {"Mul", "r row", "y", 0});
    /* Groups with factors of their own; images that are taken together; groups that have another reader. */
    EXPECT_GROUPS("Reshape InstanceNormalization Reshape", {"Reshape", "x groups", "g", 0},
                  {"InstanceNormalization", "g some zeros", "n", 0}, {"Reshape", "n back", "y", 0});
    EXPECT_GROUPS("Reshape InstanceNormalization Reshape", {"Reshape", "x groups", "g", 0},
                  {"InstanceNormalization", "g ones some", "n", 0}, {"Reshape", "n back", "y", 0});
    EXPECT_GROUPS("Reshape InstanceNormalization Reshape", {"Reshape", "x mixed", "g", 0},
                  {"InstanceNormalization", "g six none", "n", 0}, {"Reshape", "n back", "y", 0});
    EXPECT_GROUPS("Reshape InstanceNormalization[add] Reshape", {"Reshape", "x groups", "g", 0},
                  {"InstanceNormalization", "g ones zeros", "n", 0}, {"Add", "n g", "a", 0},
                  {"Reshape", "a back", "y", 0});
}

/* x [2, 5, 12] as three heads of 4 for q, k and v; opset 17 with a mask [2, 1, 1, 5]. */
static model_builder *attention_model(const rc_step *steps)
{
    static const int64_t split[] = {2, 5, 3, 4}, joined[] = {2, 5, 12}, windows[] = {1, 2, 3, 5, 5},
                         heads[] = {2, 3, 5, 5};
    rc_seed(5);
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "2,5,12");
    mb_input(m, "mask", PRONY_FLOAT32, "2,1,1,5");
    rc_ints(m, "split", "4", split);
    rc_ints(m, "joined", "3", joined);
    rc_ints(m, "windows", "5", windows);
    rc_ints(m, "heads", "4", heads);
    rc_weights(m, "bias", "1,3,5,5");
    rc_weights(m, "shift", "1,2,1,5,5");
    rc_scalar(m, "half", 0.5f);
    rc_scalar(m, "two", 2.0f);
    rc_scalar(m, "low", -3.4e38f);
    rc_scalar(m, "nothing", 0.0f);
    rc_scalar(m, "tiny", 1e-30f);
    for (const char *name = "qkv"; *name; name++) {
        char weight[] = {'w', *name, 0}, from[] = {'x', ' ', 'w', *name, 0}, flat[] = {'f', *name, 0};
        char reshape[] = {'f', *name, ' ', 's', 'p', 'l', 'i', 't', 0}, to[] = {*name, 0};
        rc_weights_in(m, weight, "12,12", -0.3f, 0.3f);
        mb_node(m, "MatMul", from, flat, "");
        mb_node(m, "Reshape", reshape, to, "");
    }
    rc_steps(m, steps);
    rc_output(m, "y");
    return m;
}

#define EXPECT_ATTENTION(wanted, ...)                                                                                  \
    rc_expect(attention_model((const rc_step[]){__VA_ARGS__, {0}}),                                                    \
              "MatMul Reshape MatMul Reshape MatMul Reshape " wanted)
#define HEADS                                                                                                          \
    {"Transpose", "q", "qt", "perm=[0,2,1,3]"}, {"Transpose", "k", "kt", "perm=[0,2,3,1]"},                            \
        {"Transpose", "v", "vt", "perm=[0,2,1,3]"}
#define JOIN {"Transpose", "o", "ot", "perm=[0,2,1,3]"}, {"Reshape", "ot joined", "y", 0}

/* Sums of constants; not if the sum of the two leaves the range of float32 and x plus both does not. */
static void merge_constant_sums(void **state)
{
    (void)state;
    static const struct {
        float value;
        const char *wanted;
    } of[] = {{1.0f, "Neg Add Tanh"}, {3.3e38f, "Neg Add Add Tanh"}};
    for (size_t i = 0; i < 2; i++) {
        SCENARIO(i);
        model_builder *m = mb_begin(17);
        const float same[2] = {of[i].value, of[i].value};
        rc_seed(9);
        mb_input(m, "x", PRONY_FLOAT32, "2,2");
        mb_initializer(m, "a", PRONY_FLOAT32, "2", same);
        mb_initializer(m, "b", PRONY_FLOAT32, "2,1", same);
        mb_node(m, "Neg", "x", "n", "");
        mb_node(m, "Add", "n a", "s", "");
        mb_node(m, "Add", "b s", "t", "");
        mb_node(m, "Tanh", "t", "y", "");
        rc_output(m, "y");
        rc_expect(m, of[i].wanted);
    }
}

/* Two constants of -0 leave -0 as it is: their sum is -0. */
static void constant_sums_keep_negative_zero(void **state)
{
    static const float zeros[4] = {-0.0f, -0.0f, -0.0f, -0.0f};
    (void)state;
    for (int bare = 0; bare < 2; bare++) {
        SCENARIO(bare);
        model_builder *m = mb_begin(17);
        mb_input(m, "x", PRONY_FLOAT32, "2,2");
        mb_initializer(m, "a", PRONY_FLOAT32, "2", zeros);
        mb_initializer(m, "b", PRONY_FLOAT32, "2,2", zeros);
        mb_node(m, "Add", "x a", "s", "");
        mb_node(m, "Add", "s b", "y", "");
        mb_output(m, "y", PRONY_FLOAT32, "2,2");
        model_run r = {.options = {.no_rewrites = bare}};
        mr_open(&r, m);
        mr_set(&r, "x", PRONY_FLOAT32, "2,2", zeros);
        const float *y = mr_run(&r, 0)->data;
        for (int i = 0; i < 4; i++) assert_true(signbit(y[i]) != 0);
        mr_close(&r);
    }
}

/* A query divided by 0 is infinite or NaN, whatever the attention makes of it. */
static void division_by_zero_stays(void **state)
{
    static const rc_step steps[] = {HEADS,
                                    {"Div", "qt nothing", "qs", 0},
                                    {"MatMul", "qs kt", "s", 0},
                                    {"Softmax", "s", "p", "axis=-1"},
                                    {"MatMul", "p vt", "o", 0},
                                    JOIN,
                                    {0}};
    static float x[120], mask[10];
    (void)state;
    for (int i = 0; i < 120; i++) x[i] = (float)(i % 7) - 3.0f;
    for (int bare = 0; bare < 2; bare++) {
        SCENARIO(bare);
        model_run r = {.options = {.no_rewrites = bare}};
        mr_open(&r, attention_model(steps));
        mr_set(&r, "x", PRONY_FLOAT32, "2,5,12", x);
        mr_set(&r, "mask", PRONY_FLOAT32, "2,1,1,5", mask);
        const float *y = mr_run(&r, 0)->data;
        for (int i = 0; i < 120; i++) assert_true(isnan(y[i]));
        mr_close(&r);
    }
}

static void match_attention(void **state)
{
    (void)state;
    /* Scales whose product leaves float32's range stay where they are. */
    EXPECT_ATTENTION("Transpose Mul Attention Reshape", HEADS, {"Mul", "qt tiny", "qs", 0}, {"Mul", "kt tiny", "ks", 0},
                     {"MatMul", "qs ks", "s", 0}, {"Softmax", "s", "p", "axis=-1"}, {"MatMul", "p vt", "o", 0}, JOIN);
    EXPECT_ATTENTION("Attention Reshape", HEADS, {"MatMul", "qt kt", "s", 0}, {"Div", "s two", "c", 0},
                     {"Add", "c mask", "a", 0}, {"Softmax", "a", "p", "axis=-1"}, {"MatMul", "p vt", "o", 0}, JOIN);
    EXPECT_ATTENTION("Attention Reshape", HEADS, {"MatMul", "qt kt", "s", 0}, {"Add", "mask s", "a", 0},
                     {"Softmax", "a", "p", "axis=3"}, {"MatMul", "p vt", "o", 0}, JOIN);
    /* Scales before the product, on either side of a Transpose. */
    EXPECT_ATTENTION("Attention Reshape", {"Mul", "q half", "qs", 0}, {"Transpose", "qs", "qt", "perm=[0,2,1,3]"},
                     {"Transpose", "k", "ku", "perm=[0,2,1,3]"}, {"Transpose", "ku", "kv", "perm=[0,1,3,2]"},
                     {"Div", "kv two", "kt", 0}, {"Transpose", "v", "vt", "perm=[0,2,1,3]"},
                     {"MatMul", "qt kt", "s", 0}, {"Softmax", "s", "p", "axis=-1"}, {"MatMul", "p vt", "o", 0}, JOIN);
    /* The scale of v does not apply to the scores. */
    EXPECT_ATTENTION("Transpose Mul Attention Reshape", {"Transpose", "q", "qt", "perm=[0,2,1,3]"},
                     {"Transpose", "k", "kt", "perm=[0,2,3,1]"}, {"Transpose", "v", "vu", "perm=[0,2,1,3]"},
                     {"Mul", "vu half", "vt", 0}, {"MatMul", "qt kt", "s", 0}, {"Softmax", "s", "p", "axis=-1"},
                     {"MatMul", "p vt", "o", 0}, JOIN);
    /* A bias, and a mask that changes from window to window. */
    EXPECT_ATTENTION("Attention Reshape", HEADS, {"MatMul", "qt kt", "s", 0}, {"Add", "s bias", "a", 0},
                     {"Reshape", "a windows", "w", 0}, {"Add", "w shift", "b", 0}, {"Reshape", "b heads", "h", 0},
                     {"Softmax", "h", "p", "axis=-1"}, {"MatMul", "p vt", "o", 0}, JOIN);
    EXPECT_ATTENTION("Attention Reshape", HEADS, {"MatMul", "qt kt", "s", 0}, {"Add", "s bias", "a", 0},
                     {"Add", "bias a", "b", 0}, {"Softmax", "b", "p", "axis=-1"}, {"MatMul", "p vt", "o", 0}, JOIN);
    /* The biased scores have another reader. */
    EXPECT_ATTENTION("Transpose Transpose Transpose MatMul Add Add Softmax MatMul ReduceMean Add", HEADS,
                     {"MatMul", "qt kt", "s", 0}, {"Add", "s bias", "a", 0}, {"Add", "bias a", "b", 0},
                     {"Softmax", "b", "p", "axis=-1"}, {"MatMul", "p vt", "o", 0},
                     {"ReduceMean", "a", "m", "axes=[-1]"}, {"Add", "o m", "y", 0});
    /* A selection instead of an added mask, with either side filled; and a side that is not a number. */
    EXPECT_ATTENTION("Greater Attention Reshape", HEADS, {"Greater", "mask half", "b", 0}, {"MatMul", "qt kt", "s", 0},
                     {"Div", "s two", "c", 0}, {"Where", "b c low", "a", 0}, {"Softmax", "a", "p", "axis=-1"},
                     {"MatMul", "p vt", "o", 0}, JOIN);
    EXPECT_ATTENTION("Greater Attention Reshape", HEADS, {"Greater", "mask half", "b", 0}, {"MatMul", "qt kt", "s", 0},
                     {"Where", "b half s", "a", 0}, {"Softmax", "a", "p", "axis=-1"}, {"MatMul", "p vt", "o", 0}, JOIN);
    EXPECT_ATTENTION("Transpose Transpose Transpose Greater MatMul Where Softmax MatMul Transpose Reshape", HEADS,
                     {"Greater", "mask half", "b", 0}, {"MatMul", "qt kt", "s", 0}, {"Where", "b s mask", "a", 0},
                     {"Softmax", "a", "p", "axis=-1"}, {"MatMul", "p vt", "o", 0}, JOIN);
    /* The probabilities have another reader; the Softmax is over another axis. */
    EXPECT_ATTENTION("Transpose Transpose Transpose MatMul Softmax MatMul ReduceMean Add", HEADS,
                     {"MatMul", "qt kt", "s", 0}, {"Softmax", "s", "p", "axis=-1"}, {"MatMul", "p vt", "o", 0},
                     {"ReduceMean", "p", "m", "axes=[-1]"}, {"Add", "o m", "y", 0});
    EXPECT_ATTENTION("Transpose Transpose Transpose MatMul Softmax MatMul Transpose Reshape", HEADS,
                     {"MatMul", "qt kt", "s", 0}, {"Softmax", "s", "p", "axis=2"}, {"MatMul", "p vt", "o", 0}, JOIN);
}

/* t [2, 15, 12] and x [2, 12, 3, 5], each a view of the other's bytes in another layout. */
static model_builder *token_model(const rc_step *steps)
{
    static const int64_t image[] = {2, 12, 3, 5}, tokens[] = {2, 12, 15}, other[] = {2, 4, 9, 5},
                         joined[] = {1, 24, 15};
    rc_seed(11);
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "2,12,3,5");
    mb_input(m, "t", PRONY_FLOAT32, "2,15,12");
    rc_ints(m, "image", "4", image);
    rc_ints(m, "tokens", "3", tokens);
    rc_ints(m, "other", "4", other);
    rc_ints(m, "joined", "3", joined);
    rc_steps(m, steps);
    rc_output(m, "y");
    return m;
}

#define EXPECT_TOKENS(wanted, ...) rc_expect(token_model((const rc_step[]){__VA_ARGS__, {0}}), wanted)

static void channels_last(void **state)
{
    (void)state;
    EXPECT_TOKENS("Tanh Reshape Transpose Exp", {"Tanh", "t", "a", 0}, {"Transpose", "a", "b", "perm=[0,2,1]"},
                  {"Reshape", "b image", "c", 0}, {"Exp", "c", "y", 0});
    EXPECT_TOKENS("Tanh Transpose Reshape Exp", {"Tanh", "x", "a", 0}, {"Reshape", "a tokens", "b", 0},
                  {"Transpose", "b", "c", "perm=[0,2,1]"}, {"Exp", "c", "y", 0});
    /* Channels that are divided; images that are joined; another reader; another axis. */
    EXPECT_TOKENS("Tanh Transpose Reshape Exp", {"Tanh", "t", "a", 0}, {"Transpose", "a", "b", "perm=[0,2,1]"},
                  {"Reshape", "b other", "c", 0}, {"Exp", "c", "y", 0});
    EXPECT_TOKENS("Tanh Reshape Transpose Exp", {"Tanh", "x", "a", 0}, {"Reshape", "a joined", "b", 0},
                  {"Transpose", "b", "c", "perm=[0,2,1]"}, {"Exp", "c", "y", 0});
    EXPECT_TOKENS("Tanh Reshape Transpose Exp ReduceSum Add", {"Tanh", "x", "a", 0}, {"Reshape", "a tokens", "b", 0},
                  {"Transpose", "b", "c", "perm=[0,2,1]"}, {"Exp", "c", "e", 0}, {"ReduceSum", "b", "s", 0},
                  {"Add", "e s", "y", 0});
    EXPECT_TOKENS("Tanh Reshape Transpose Exp", {"Tanh", "x", "a", 0}, {"Reshape", "a tokens", "b", 0},
                  {"Transpose", "b", "c", "perm=[2,1,0]"}, {"Exp", "c", "y", 0});
}

static void share_subexpressions(void **state)
{
    (void)state;
    EXPECT_STEPS("Exp Add", {"Exp", "x", "a", 0}, {"Exp", "x", "b", 0}, {"Add", "a b", "y", 0});
    EXPECT_STEPS("LeakyRelu LeakyRelu Add", {"LeakyRelu", "x", "a", "alpha=0.1"}, {"LeakyRelu", "x", "b", "alpha=0.2"},
                 {"Add", "a b", "y", 0});
    EXPECT_STEPS("Sub Sub Mul", {"Sub", "x k3", "a", 0}, {"Sub", "k3 x", "b", 0}, {"Mul", "a b", "y", 0});
    /* Shapes that only a run knows: nodes that move data are shared; nodes that compute are not, since a run counts
     * each once. */
    EXPECT_STEPS("Exp NonZero Transpose Concat", {"Exp", "x", "e", 0}, {"NonZero", "e", "a", 0},
                 {"Transpose", "a", "p", 0}, {"NonZero", "e", "b", 0}, {"Transpose", "b", "q", 0},
                 {"Concat", "p q", "y", "axis=1"});
    EXPECT_STEPS("Exp NonZero Abs Abs Add", {"Exp", "x", "e", 0}, {"NonZero", "e", "a", 0}, {"Abs", "a", "p", 0},
                 {"Abs", "a", "q", 0}, {"Add", "p q", "y", 0});
}

/* Channels that are moved to the end, multiplied and moved back. */
static void expect_pointwise(const char *x, const char *w, bool biased, const char *first, const char *last,
                             const char *wanted)
{
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, x);
    rc_weights(m, "w", w);
    rc_weights(m, "b", "5");
    mb_node(m, "Transpose", "x", "t", first);
    mb_node(m, "MatMul", "t w", "p", "");
    if (biased) mb_node(m, "Add", "p b", "s", "");
    mb_node(m, "Transpose", biased ? "s" : "p", "y", last);
    rc_output(m, "y");
    rc_expect(m, wanted);
}

static void match_pointwise_conv(void **state)
{
    (void)state;
    expect_pointwise("2,4,6,7", "4,5", false, "perm=[0,2,3,1]", "perm=[0,3,1,2]", "Conv");
    expect_pointwise("2,4,6,7", "4,5", true, "perm=[0,2,3,1]", "perm=[0,3,1,2]", "Conv");
    expect_pointwise("1,16,2,3,4", "16,5", true, "perm=[0,2,3,4,1]", "perm=[0,4,1,2,3]", "Conv");
    expect_pointwise("2,17,6,7", "17,5", true, "perm=[0,2,3,1]", "perm=[0,3,1,2]", "Transpose MatMul Transpose");
    expect_pointwise("2,4,6,7", "4,5", true, "perm=[0,3,2,1]", "perm=[0,3,1,2]", "Transpose MatMul Transpose");
    expect_pointwise("2,4,6,7", "4,5", true, "perm=[0,2,3,1]", "perm=[0,3,2,1]", "Transpose MatMul Transpose");
    expect_pointwise("2,4,6", "4,5", true, "perm=[0,2,1]", "perm=[0,2,1]", "Transpose MatMul Transpose");
}

/* A convolution's window needs a place; a product of no rows does not. */
static void no_windows(void **state)
{
    (void)state;
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "2,4,0,7");
    rc_weights(m, "w", "4,5");
    mb_node(m, "Transpose", "x", "t", "perm=[0,2,3,1]");
    mb_node(m, "MatMul", "t w", "p", "");
    mb_node(m, "Transpose", "p", "y", "perm=[0,3,1,2]");
    rc_output(m, "y");
    rc_model l;
    rc_load(&l, m, NULL);
    prn_program *p;
    assert_int_equal(rc_bind(&l, &p), PRONY_OK);
    assert_int_equal(prn_program_rewrite(p, &l.error), PRONY_OK);
    char text[64];
    rc_describe(p, text, sizeof text);
    assert_string_equal(text, "Transpose MatMul Transpose");
    prn_program_release(p);
    rc_unload(&l);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(match_gated),
        cmocka_unit_test(no_windows),
        cmocka_unit_test(match_gelu),
        cmocka_unit_test(match_layer_norm),
        cmocka_unit_test(match_group_norm),
        cmocka_unit_test(channels_last),
        cmocka_unit_test(match_attention),
        cmocka_unit_test(division_by_zero_stays),
        cmocka_unit_test(constant_sums_keep_negative_zero),
        cmocka_unit_test(merge_constant_sums),
        cmocka_unit_test(share_subexpressions),
        cmocka_unit_test(match_pointwise_conv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
