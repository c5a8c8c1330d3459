/* Plans of every length around the sizes that their list of steps grows by, with layouts that change on the way. */
#include "tests/model_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { CHANNELS = 16, POSITIONS = 16, LONGEST = 40 };

/* `count` times Neg, a convolution by the unit matrix, and a Transpose, which reads plain layout. */
static model_builder *chain(int count)
{
    static float unit[CHANNELS * CHANNELS];
    for (int c = 0; c < CHANNELS; c++) unit[c * CHANNELS + c] = 1;
    char from[16] = "x", to[16], inputs[32];
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,16,4,4");
    mb_initializer(m, "unit", PRONY_FLOAT32, "16,16,1,1", unit);
    for (int k = 0; k < count; k++) {
        snprintf(to, sizeof to, "n%d", k);
        mb_node(m, "Neg", from, to, "");
        memcpy(from, to, sizeof from);
    }
    snprintf(inputs, sizeof inputs, "%s unit", from);
    mb_node(m, "Conv", inputs, "c", "");
    mb_node(m, "Transpose", "c", "y", "perm=[0,2,3,1]");
    mb_output(m, "y", PRONY_FLOAT32, "1,4,4,16");
    return m;
}

static void reorders_come_in_at_any_length(void **state)
{
    (void)state;
    float x[CHANNELS * POSITIONS], wanted[CHANNELS * POSITIONS];
    for (int count = 0; count <= LONGEST; count++) {
        for (int c = 0; c < CHANNELS; c++)
            for (int p = 0; p < POSITIONS; p++) {
                x[c * POSITIONS + p] = (float)(c * POSITIONS + p + 1);
                wanted[p * CHANNELS + c] = count % 2 ? -x[c * POSITIONS + p] : x[c * POSITIONS + p];
            }
        model_run r = {0};
        mr_open(&r, chain(count));
        mr_set(&r, "x", PRONY_FLOAT32, "1,16,4,4", x);
        mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "1,4,4,16", wanted);
        mr_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reorders_come_in_at_any_length)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
