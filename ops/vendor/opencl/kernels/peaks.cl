/* The peaks of a device: multiply-adds without memory, and memory without arithmetic. */
#define CHAINS 8
#define STEPS 256

__kernel void flops(__global float *out, ulong out_at, float x)
{
    float8 sum[CHAINS];
    for (int c = 0; c < CHAINS; c++) sum[c] = (float8)((float)get_global_id(0) + (float)c);
    for (int s = 0; s < STEPS; s++)
        for (int c = 0; c < CHAINS; c++) sum[c] = fma(sum[c], (float8)x, (float8)0.5f);
    float8 all = sum[0];
    for (int c = 1; c < CHAINS; c++) all += sum[c];
    AT(float, out)[get_global_id(0)] = all.s0 + all.s1 + all.s2 + all.s3 + all.s4 + all.s5 + all.s6 + all.s7;
}

__kernel void stream(__global const float4 *in, ulong in_at, __global float4 *out, ulong out_at)
{
    AT(float4, out)[get_global_id(0)] = AT(const float4, in)[get_global_id(0)] * 1.5f;
}

__kernel void nothing(__global float *out, ulong out_at)
{
    if (get_global_id(0) == 0xffffffff) AT(float, out)[0] = 0.0f;
}
