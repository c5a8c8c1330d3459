/* Stands before every other source. An operand `p` is two arguments, its buffer and `p_at`, the byte offset in it. */
#define AT(type, p) ((__global type *)((__global const char *)(p) + p##_at))

#define tanhf tanh
#define expf exp
#define erff erf
#define RANKS 18

float post_ops_clamp_unit(float x)
{
    return x < 0.0f ? 0.0f : (x > 1.0f ? 1.0f : x);
}

float post_ops_sigmoid(float x)
{
    return 1.0f / (1.0f + exp(-x));
}

float softplus(float x)
{
    return x != x ? x : fmax(x, 0.0f) + log1p(exp(-fabs(x)));
}

/* The larger one; NaN is larger than everything. */
float larger(float a, float b)
{
    return b > a || b != b ? b : a;
}

float smaller(float a, float b)
{
    return b < a || b != b ? b : a;
}
