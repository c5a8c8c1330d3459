/* Option structs of programs that were compiled with an older or a newer header. */
#include "base/option_struct.h"
#include "prony_judge.h"
#include "prony_serve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DIGITS PRN_SOURCE_DIR "/models/digits.onnx"

typedef struct sample {
    size_t struct_size;
    int first;
    int second;
    double added; /* by a later version */
} sample;

static void missing_fields_have_their_defaults(void **state)
{
    (void)state;
    prony_error error = {0};
    const sample given = {offsetof(sample, added), 7, 8, 99.0};
    sample own = {sizeof own, 1, 2, 3.0};
    assert_int_equal(prn_options_read(&own, sizeof own, &given, "sample", &error), PRONY_OK);
    assert_true(own.struct_size == sizeof own && own.first == 7 && own.second == 8 && own.added == 3.0);
    own = (sample){sizeof own, 1, 2, 3.0};
    assert_int_equal(prn_options_read(&own, sizeof own, NULL, "sample", &error), PRONY_OK);
    assert_true(own.first == 1 && own.second == 2 && own.added == 3.0);
}

static void unknown_fields_are_refused_if_set(void **state)
{
    (void)state;
    prony_error error = {0};
    struct {
        sample known;
        unsigned char beyond[8];
    } given = {{sizeof given, 7, 8, 9.0}, {0}};
    sample own = {sizeof own, 1, 2, 3.0};
    assert_int_equal(prn_options_read(&own, sizeof own, &given, "sample", &error), PRONY_OK);
    assert_true(own.struct_size == sizeof own && own.first == 7 && own.added == 9.0);
    given.beyond[3] = 1;
    own = (sample){sizeof own, 1, 2, 3.0};
    assert_int_equal(prn_options_read(&own, sizeof own, &given, "sample", &error), PRONY_UNSUPPORTED);
    assert_non_null(strstr(error.message, "sample: byte 27 is set"));
    assert_int_equal(own.first, 1);
    given.known.struct_size = 0;
    assert_int_equal(prn_options_read(&own, sizeof own, &given, "sample", &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "struct_size is not set"));
}

/* The shortest struct that a program can have: the size and one word; the library fills in the rest. The bytes
 * behind it belong to the caller: they are garbage here, and outside the allocation under a sanitizer. */
static void *shortest(void)
{
    size_t *given = malloc(2 * sizeof *given);
    assert_non_null(given);
    given[0] = 2 * sizeof *given;
    given[1] = 0;
    return given;
}

static void a_short_struct_serves_every_function(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_report *report = NULL, *again = NULL;
    prony_comparison *comparison = NULL;
    prony_batcher *batcher = NULL;
    prony_free_dim *dims = NULL;
    size_t count = 0;
    void *given = shortest();
    prony_profile_options runs = PRONY_PROFILE_OPTIONS_INIT;
    runs.runs = 2;
    assert_int_equal(prony_model_load(&model, DIGITS, given, &error), PRONY_OK);
    assert_int_equal(prony_session_create(&session, model, given, &error), PRONY_OK);
    assert_int_equal(prony_session_generate_inputs(session, 0, &error), PRONY_OK);
    assert_int_equal(prony_session_profile(&report, session, &runs, &error), PRONY_OK);
    assert_int_equal(prony_inspect(&again, model, given, &error), PRONY_OK);
    assert_int_equal(prony_model_free_dims(&dims, &count, model, given, &error), PRONY_OK);
    assert_int_equal(prony_compare(&comparison, report, report, given, &error), PRONY_OK);
    assert_int_equal(prony_batcher_create(&batcher, model, given, given, &error), PRONY_OK);
    prony_batcher_release(batcher);
    prony_comparison_release(comparison);
    prony_rows_release(dims);
    prony_report_release(again);
    prony_report_release(report);
    prony_session_release(session);
    prony_model_release(model);
    free(given);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(missing_fields_have_their_defaults),
                                       cmocka_unit_test(unknown_fields_are_refused_if_set),
                                       cmocka_unit_test(a_short_struct_serves_every_function)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
