/* Packed weights are found by a typed key: two problems share a form only if every member of their keys is equal. */
#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "engine/bind/weight_cache.h"
#include "ops/pack_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const float source[64], other_source[64];
static const uint8_t zeros[] = {1, 2, 3}, other_zeros[] = {1, 2, 4};

static prony_status first_packing(const struct prony_context *context, void *argument, void *packed)
{
    (void)context, (void)argument, (void)packed;
    return PRONY_OK;
}

static prony_status second_packing(const struct prony_context *context, void *argument, void *packed)
{
    (void)context, (void)argument, (void)packed;
    return PRONY_INTERNAL;
}

static prn_pack_key whole_key(void)
{
    return (prn_pack_key){.build = first_packing,
                          .table = source,
                          .dtype = PRONY_FLOAT32,
                          .size = {3, 4, 5},
                          .constants = {source},
                          .detail = zeros,
                          .detail_bytes = sizeof zeros};
}

enum { FIELDS = 8 + PRN_PACK_SIZES + PRN_PACK_CONSTANTS };

/* The whole key with one member changed, by its number. */
static prn_pack_key changed_key(size_t field)
{
    prn_pack_key key = whole_key();
    if (field < PRN_PACK_SIZES) {
        key.size[field]++;
        return key;
    }
    field -= PRN_PACK_SIZES;
    if (field < PRN_PACK_CONSTANTS) {
        key.constants[field] = other_source;
        return key;
    }
    switch (field - PRN_PACK_CONSTANTS) {
    case 0:
        key.build = second_packing;
        break;
    case 1:
        key.table = other_source;
        break;
    case 2:
        key.dtype = PRONY_FLOAT64;
        break;
    case 3:
        key.detail = other_zeros;
        break;
    case 4:
        key.detail_bytes--;
        break;
    case 5:
        key.detail_bytes = 0;
        break;
    case 6:
        key.inner = second_packing;
        break;
    default:
        key.build = NULL;
        break;
    }
    return key;
}

static uint64_t hash_of(const prn_pack_key *key)
{
    prn_keyed_hash hash;
    prn_keyed_hash_init(&hash);
    prn_pack_key_hash(key, &hash);
    return prn_keyed_hash_end(&hash);
}

static void keys_that_differ_in_one_member_are_unequal(void **state)
{
    (void)state;
    const prn_pack_key key = whole_key(), same = whole_key();
    assert_true(prn_pack_key_same(&key, &same));
    assert_true(hash_of(&key) == hash_of(&same));
    for (size_t field = 0; field < FIELDS; field++) {
        SCENARIO(field);
        const prn_pack_key changed = changed_key(field);
        assert_false(prn_pack_key_same(&key, &changed));
        assert_false(prn_pack_key_same(&changed, &key));
        assert_true(hash_of(&key) != hash_of(&changed));
    }
}

static prony_status count_build(void *argument, void *data)
{
    int *builds = argument;
    *(int *)data = ++*builds;
    return PRONY_OK;
}

/* Each changed key, source or size gets a form of its own, and each key asked twice gets the first form again. */
static void problems_that_differ_in_one_member_do_not_share(void **state)
{
    (void)state;
    prony_error error = {0};
    prn_weight_cache *cache = NULL;
    prn_weight_cache_refs refs = {0};
    int builds = 0;
    assert_int_equal(prn_weight_cache_create(&cache, &error), PRONY_OK);
    for (int round = 0; round < 2; round++) {
        SCENARIO(round);
        for (size_t field = 0; field < FIELDS + 3; field++) {
            const void *packed = NULL;
            const prn_pack_key key = field < FIELDS ? changed_key(field) : whole_key();
            const prn_weight_cache_form form = {.source = field == FIELDS + 1 ? other_source : source,
                                                .key = &key,
                                                .bytes = field == FIELDS + 2 ? 64 : 32,
                                                .build = count_build,
                                                .argument = &builds};
            assert_int_equal(prn_weight_cache_get(cache, &refs, &form, &packed, &error), PRONY_OK);
            assert_int_equal(*(const int *)packed, (int)field + 1);
        }
    }
    assert_int_equal(builds, FIELDS + 3);
    prn_weight_cache_drop(cache, &refs);
    prn_weight_cache_release(cache);
}

/* The cache keeps a copy: the caller's detail may change after the call. */
static void the_cache_copies_the_detail(void **state)
{
    (void)state;
    prony_error error = {0};
    prn_weight_cache *cache = NULL;
    prn_weight_cache_refs refs = {0};
    int builds = 0;
    uint8_t detail[] = {7, 8};
    const prn_pack_key key = {.build = first_packing, .detail = detail, .detail_bytes = sizeof detail};
    const prn_weight_cache_form form = {
        .source = source, .key = &key, .bytes = 32, .build = count_build, .argument = &builds};
    const void *first = NULL, *second = NULL, *third = NULL;
    assert_int_equal(prn_weight_cache_create(&cache, &error), PRONY_OK);
    assert_int_equal(prn_weight_cache_get(cache, &refs, &form, &first, &error), PRONY_OK);
    detail[1] = 9;
    assert_int_equal(prn_weight_cache_get(cache, &refs, &form, &second, &error), PRONY_OK);
    detail[1] = 8;
    assert_int_equal(prn_weight_cache_get(cache, &refs, &form, &third, &error), PRONY_OK);
    assert_ptr_not_equal(first, second);
    assert_ptr_equal(first, third);
    prn_weight_cache_drop(cache, &refs);
    prn_weight_cache_release(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_that_differ_in_one_member_are_unequal),
        cmocka_unit_test(problems_that_differ_in_one_member_do_not_share),
        cmocka_unit_test(the_cache_copies_the_detail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
