/* A compiled pattern: instructions of an automaton, which regex_parse.c writes and regex.c follows.
 *
 *   a|b   SPLIT L1 L2; L1: a; JUMP end; L2: b          a*   L: SPLIT body end; body; JUMP L
 *
 * Jumps are relative, so that a copy of some instructions needs no fixing. */
#ifndef PRN_OPS_TEXT_REGEX_PROGRAM_H
#define PRN_OPS_TEXT_REGEX_PROGRAM_H

#include "base/status.h"

enum { PRN_REGEX_LAST = 0x10ffff }; /* code point */

enum { PRN_REGEX_CLASS, PRN_REGEX_SPLIT, PRN_REGEX_JUMP, PRN_REGEX_ASSERT, PRN_REGEX_MATCH };
enum {
    PRN_REGEX_TEXT_BEGIN,
    PRN_REGEX_TEXT_END,
    PRN_REGEX_LINE_BEGIN,
    PRN_REGEX_LINE_END,
    PRN_REGEX_BOUNDARY,
    PRN_REGEX_NO_BOUNDARY
};

typedef struct prn_regex_instruction {
    uint8_t code, negated;
    uint16_t what; /* PRN_REGEX_ASSERT */
    int32_t a, b;  /* SPLIT: two relative targets; JUMP: one; CLASS: first range and number of ranges */
} prn_regex_instruction;

typedef struct prn_regex_range {
    uint32_t low, high;
} prn_regex_range;

struct prn_regex {
    prn_regex_instruction *program;
    size_t size, capacity;
    prn_regex_range *ranges;
    size_t range_count, range_capacity;
};

/* The code point at text[*at], which moves behind it; a byte that is not UTF-8 is above all code points. */
uint32_t prn_regex_next(const char *text, size_t size, size_t *at);
bool prn_regex_is_word(uint32_t c);

#endif
