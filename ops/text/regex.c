/* Follows all states of the automaton at once; regex_program.h says what it is made of. */
#include "ops/text/regex.h"

#include "ops/text/regex_program.h"

#include "base/memory/alloc.h"
#include "base/threads/cancel.h"

#include <string.h>

void prn_regex_release(prn_regex *regex)
{
    if (!regex) return;
    prn_free(regex->program);
    prn_free(regex->ranges);
    prn_free(regex);
}

/* ---- text ---- */

uint32_t prn_regex_next(const char *text, size_t size, size_t *at)
{
    const uint8_t *p = (const uint8_t *)text + *at;
    size_t left = size - *at, length = p[0] < 0x80       ? 1
                                       : p[0] >> 5 == 6  ? 2
                                       : p[0] >> 4 == 14 ? 3
                                       : p[0] >> 3 == 30 ? 4
                                                         : 0;
    uint32_t value = length <= 1 ? p[0] : p[0] & (0xffu >> (length + 1));
    if (length == 0 || length > left) {
        (*at)++;
        return PRN_REGEX_LAST + 1u + p[0];
    }
    for (size_t i = 1; i < length; i++) {
        if (p[i] >> 6 != 2) {
            (*at)++;
            return PRN_REGEX_LAST + 1u + p[0];
        }
        value = value << 6 | (p[i] & 0x3fu);
    }
    *at += length;
    return value;
}

bool prn_regex_is_word(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* ---- matching ---- */

/* States that are waiting for a character: a list, and a mark per instruction of the step that put it there. */
typedef struct states {
    uint32_t *list, *mark, *stack;
    size_t count;
} states;

typedef struct place {
    bool text_begin, text_end, line_begin, line_end, boundary;
} place;

size_t prn_regex_scratch(const prn_regex *regex)
{
    return (5 * regex->size + 8) * sizeof(uint32_t);
}

static bool holds(uint16_t what, const place *at)
{
    switch (what) {
    case PRN_REGEX_TEXT_BEGIN:
        return at->text_begin;
    case PRN_REGEX_TEXT_END:
        return at->text_end;
    case PRN_REGEX_LINE_BEGIN:
        return at->line_begin;
    case PRN_REGEX_LINE_END:
        return at->line_end;
    case PRN_REGEX_BOUNDARY:
        return at->boundary;
    default:
        return !at->boundary;
    }
}

/* Everything that state `start` leads to without reading. Each state is pushed at most twice per step, by a split. */
static void regex_follow(const prn_regex *regex, states *s, uint32_t start, const place *at, uint32_t step)
{
    size_t depth = 0;
    s->stack[depth++] = start;
    while (depth > 0) {
        uint32_t i = s->stack[--depth];
        const prn_regex_instruction *in = &regex->program[i];
        if (s->mark[i] == step) continue;
        s->mark[i] = step;
        if (in->code == PRN_REGEX_SPLIT) {
            s->stack[depth++] = i + (uint32_t)in->b;
            s->stack[depth++] = i + (uint32_t)in->a;
        } else if (in->code == PRN_REGEX_JUMP) {
            s->stack[depth++] = i + (uint32_t)in->a;
        } else if (in->code == PRN_REGEX_ASSERT) {
            if (holds(in->what, at)) s->stack[depth++] = i + 1;
        } else {
            s->list[s->count++] = i;
        }
    }
}

static bool regex_takes(const prn_regex *regex, const prn_regex_instruction *in, uint32_t c)
{
    bool found = false;
    for (int32_t k = 0; k < in->b && !found; k++) {
        const prn_regex_range *r = &regex->ranges[in->a + k];
        found = c >= r->low && c <= r->high;
    }
    return found != in->negated;
}

/* True if the whole text matches: all states advance together, character by character, so time is linear in text times
 * program. */
bool prn_regex_matches(const prn_regex *regex, const char *text, size_t size, void *scratch)
{
    uint32_t *room = scratch;
    size_t n = regex->size;
    uint32_t *lists[2] = {room, room + n};
    states s = {.mark = room + 2 * n, .stack = room + 3 * n};
    uint32_t step = 1, before = '\n';
    memset(s.mark, 0, n * sizeof *s.mark);
    for (size_t at = 0;; step++) {
        if (prn_cancelled_at(step)) return false;
        size_t next = at;
        bool end = at == size;
        uint32_t c = end ? '\n' : prn_regex_next(text, size, &next);
        place here = {at == 0, end, before == '\n', c == '\n',
                      (at > 0 && prn_regex_is_word(before)) != (!end && prn_regex_is_word(c))};
        const uint32_t *from = lists[(step + 1) % 2];
        size_t from_count = s.count;
        s.list = lists[step % 2];
        s.count = 0;
        if (step == 1) regex_follow(regex, &s, 0, &here, step);
        for (size_t k = 0; step > 1 && k < from_count; k++) regex_follow(regex, &s, from[k], &here, step);
        if (end) break;
        /* those that take the character go on behind themselves, at the next step's place */
        size_t kept = 0;
        for (size_t k = 0; k < s.count; k++) {
            const prn_regex_instruction *in = &regex->program[s.list[k]];
            if (in->code == PRN_REGEX_CLASS && regex_takes(regex, in, c)) s.list[kept++] = s.list[k] + 1;
        }
        s.count = kept;
        if (kept == 0) return false;
        before = c;
        at = next;
    }
    for (size_t k = 0; k < s.count; k++)
        if (regex->program[s.list[k]].code == PRN_REGEX_MATCH) return true;
    return false;
}
