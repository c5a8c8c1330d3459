/* Hashes of names in a file: no choice of names puts them into one slot, and one process does not know the key of
 * another. */
#include "base/hash/keyed_hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *self;

static uint64_t of_another_process(void)
{
    char command[4096];
    unsigned long long hash = 0;
    snprintf(command, sizeof command, "'%s' --hash", self);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%llx", &hash), 1);
    assert_int_equal(pclose(pipe), 0);
    return hash;
}

static void each_process_has_a_key_of_its_own(void **state)
{
    (void)state;
    const uint64_t own = prn_hash_text("name"), other = of_another_process();
    assert_true(own == prn_hash_text("name"));
    assert_true(own != other);
    assert_true(other != of_another_process());
}

enum { NAMES = 4096, SLOTS = 8192, LENGTH = 8 };

/* The former hash of names, which anybody can compute. */
static uint64_t without_key(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 31;
}

/* Names that a file could hold: all of them in slot 0 of a table that hashes without a key. */
static void names_chosen_to_collide_are_spread(void **state)
{
    (void)state;
    static uint16_t filled[SLOTS];
    int found = 0, most = 0;
    for (uint64_t number = 0; found < NAMES; number++) {
        char name[LENGTH + 1];
        for (int i = 0; i < LENGTH; i++) name[i] = (char)('a' + (number >> (4 * i) & 15));
        name[LENGTH] = '\0';
        if (without_key(name) % SLOTS != 0) continue;
        found++;
        const int count = ++filled[prn_hash_text(name) % SLOTS];
        if (count > most) most = count;
    }
    assert_true(most < 16); /* for 4096 names in 8192 slots the chance of 16 or more in one is below 1e-14 */
}

static void pieces_and_lengths_count(void **state)
{
    (void)state;
    static const uint8_t bytes[24];
    prn_keyed_hash one, two;
    for (size_t a = 0; a < sizeof bytes; a++) assert_true(prn_hash_bytes(bytes, a) != prn_hash_bytes(bytes, a + 1));
    prn_keyed_hash_init(&one);
    prn_keyed_hash_init(&two);
    prn_keyed_hash_text(&one, "ab");
    prn_keyed_hash_text(&one, "c");
    prn_keyed_hash_text(&two, "a");
    prn_keyed_hash_text(&two, "bc");
    assert_true(prn_keyed_hash_end(&one) != prn_keyed_hash_end(&two));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_process_has_a_key_of_its_own),
                                       cmocka_unit_test(names_chosen_to_collide_are_spread),
                                       cmocka_unit_test(pieces_and_lengths_count)};
    self = argv[0];
    if (argc > 1 && strcmp(argv[1], "--hash") == 0)
        return printf("%llx\n", (unsigned long long)prn_hash_text("name")) < 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
