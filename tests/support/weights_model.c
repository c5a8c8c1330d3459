#include "tests/support/weights_model.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 96, WIDTH = 64, CHANNELS = 32, IMAGE = 16 * 6 * 6 };

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static float *floats(size_t count, uint32_t seed, float low, float high)
{
    float *data = malloc(count * sizeof *data);
    if (!data) abort();
    for (size_t i = 0; i < count; i++) data[i] = low + (high - low) * (float)next(&seed) / 16777216.0f;
    return data;
}

static void weights(model_builder *m, const char *name, const char *dims, size_t count, uint32_t seed, float low,
                    float high)
{
    float *data = floats(count, seed, low, high);
    mb_initializer(m, name, PRONY_FLOAT32, dims, data);
    free(data);
}

model_builder *weights_model(size_t shift)
{
    static const uint8_t padding[16];
    model_builder *m = mb_begin(17);
    char dims[8] = {(char)('0' + shift % 10), '\0'};
    mb_initializer(m, "padding", PRONY_UINT8, dims, padding);
    mb_input(m, "ids", PRONY_INT64, "N,4");
    mb_input(m, "image", PRONY_FLOAT32, "N,16,6,6");
    weights(m, "table", "96,64", ROWS * WIDTH, 1, -1, 1);
    weights(m, "same", "64,64", WIDTH * WIDTH, 2, -1, 1);
    weights(m, "kernel", "32,16,3,3", CHANNELS * 16 * 9, 3, -1, 1);
    weights(m, "point", "256,32,1,1", 256 * CHANNELS, 4, -1, 1);
    weights(m, "gamma", "32", CHANNELS, 5, 0.5f, 2);
    weights(m, "beta", "32", CHANNELS, 6, -1, 1);
    weights(m, "mean", "32", CHANNELS, 7, -1, 1);
    weights(m, "variance", "32", CHANNELS, 8, 0.5f, 2);
    weights(m, "columns", "64", WIDTH, 9, -2, 2);
    weights(m, "place", "1,96,64", ROWS * WIDTH, 10, -1, 1);
    /* Rows of the table, and its transpose as the last matrix, as language models have them. */
    mb_node(m, "Gather", "table ids", "rows", "");
    mb_node(m, "MatMul", "rows same", "r1", "");
    mb_node(m, "Mul", "r1 columns", "r2", "");
    mb_node(m, "Transpose", "same", "turned", "perm=[1,0]");
    mb_node(m, "MatMul", "r2 turned", "r3", "");
    mb_node(m, "Mul", "r3 columns", "r4", "");
    mb_node(m, "Transpose", "table", "head", "perm=[1,0]");
    mb_node(m, "MatMul", "r4 head", "scores", "");
    mb_output(m, "scores", PRONY_FLOAT32, "N,4,96");
    /* Scaled once by the statistics, and again. */
    mb_node(m, "Conv", "image kernel", "c1", "pads=[1,1,1,1]");
    mb_node(m, "BatchNormalization", "c1 gamma beta mean variance", "c2", "");
    mb_node(m, "Mul", "c2 half", "c3", "");
    const float half = 0.5f;
    mb_initializer(m, "half", PRONY_FLOAT32, "1,1,1", &half);
    mb_node(m, "Relu", "c3", "c4", "");
    mb_node(m, "Conv", "c4 point", "map", "");
    mb_output(m, "map", PRONY_FLOAT32, "N,256,6,6");
    /* Plain in a run, another shape of it in the same, and an output. */
    mb_node(m, "MatMul", "place same", "placed", "");
    mb_node(m, "Transpose", "scores", "upright", "perm=[0,2,1]");
    mb_node(m, "MatMul", "upright four", "wide", "");
    weights(m, "four", "4,64", 4 * WIDTH, 11, -1, 1);
    mb_node(m, "Add", "wide placed", "sum", "");
    mb_node(m, "Add", "sum place", "more", "");
    mb_output(m, "more", PRONY_FLOAT32, "N,96,64");
    mb_node(m, "Identity", "place", "kept", "");
    mb_output(m, "kept", PRONY_FLOAT32, "1,96,64");
    return m;
}

size_t weights_model_bytes(void)
{
    return sizeof(float) * (3 * ROWS * WIDTH + 2 * WIDTH * WIDTH + CHANNELS * 16 * 9 + 256 * CHANNELS);
}

int64_t *weights_model_ids(int64_t batch, uint32_t seed)
{
    int64_t *ids = malloc((size_t)batch * 4 * sizeof *ids);
    if (!ids) abort();
    for (int64_t i = 0; i < batch * 4; i++) ids[i] = next(&seed) % ROWS;
    return ids;
}

float *weights_model_image(int64_t batch, uint32_t seed)
{
    return floats((size_t)batch * IMAGE, seed, -1, 1);
}
