/* A recursive-descent parser that writes instructions as it goes. A repetition with bounds copies the instructions of
 * what it repeats. Program and class table only grow, with bounds; parsing depth is bounded too. */
#include "ops/text/regex.h"

#include "ops/text/regex_program.h"

#include "base/memory/alloc.h"

#include <string.h>

enum { MAX_INSTRUCTIONS = 10000, MAX_RANGES = 20000, MAX_REPEAT = 1000, MAX_DEPTH = 200 };
enum { FLAG_FOLD = 1, FLAG_DOT_ALL = 2, FLAG_LINES = 4 };

typedef struct parser {
    prn_regex *regex;
    const char *pattern;
    size_t size, at;
    unsigned flags;
    int depth;
    bool quoted; /* between \Q and \E, where every character stands for itself */
    prony_error *error;
} parser;

/* ---- writing ---- */

static prony_status bad(const parser *p, const char *what)
{
    return prn_fail(p->error, PRONY_INVALID_MODEL, "pattern '%.*s': %s at byte %zu",
                    (int)(p->size < 200 ? p->size : 200), p->pattern, what, p->at);
}

static prony_status emit(parser *p, prn_regex_instruction i)
{
    prn_regex *r = p->regex;
    if (r->size >= MAX_INSTRUCTIONS) return bad(p, "it is too large");
    if (!PRN_GROW(r->program, r->capacity, r->size + 1)) return prn_no_memory(p->error);
    r->program[r->size++] = i;
    return PRONY_OK;
}

/* Makes room for `count` instructions at `at`; nothing before refers to behind yet. */
static prony_status insert(parser *p, size_t at, size_t count)
{
    prn_regex *r = p->regex;
    size_t tail = r->size - at;
    for (size_t i = 0; i < count; i++) PRN_TRY(emit(p, (prn_regex_instruction){.code = PRN_REGEX_JUMP, .a = 1}));
    memmove(r->program + at + count, r->program + at, tail * sizeof *r->program);
    return PRONY_OK;
}

static prony_status add_range(parser *p, uint32_t low, uint32_t high)
{
    prn_regex *r = p->regex;
    if (r->range_count >= MAX_RANGES) return bad(p, "its classes are too large");
    if (!PRN_GROW(r->ranges, r->range_capacity, r->range_count + 1)) return prn_no_memory(p->error);
    r->ranges[r->range_count++] = (prn_regex_range){low, high};
    return PRONY_OK;
}

/* With (?i) letters of ASCII stand for both their forms. */
static prony_status add_folded(parser *p, uint32_t low, uint32_t high)
{
    PRN_TRY(add_range(p, low, high));
    if (!(p->flags & FLAG_FOLD)) return PRONY_OK;
    for (uint32_t base = 'A'; base <= 'a'; base += 'a' - 'A') {
        uint32_t from = low > base ? low : base, to = high < base + 25 ? high : base + 25;
        uint32_t other = base == 'A' ? 'a' : 'A';
        if (from <= to) PRN_TRY(add_range(p, from - base + other, to - base + other));
    }
    return PRONY_OK;
}

static prony_status end_class(parser *p, size_t first, bool negated)
{
    return emit(p, (prn_regex_instruction){.code = PRN_REGEX_CLASS,
                                           .negated = negated,
                                           .a = (int32_t)first,
                                           .b = (int32_t)(p->regex->range_count - first)});
}

/* ---- classes ---- */

static const struct {
    const char *name, *ranges; /* pairs of first and last */
} named_classes[] = {{"d", "09"},           {"w", "azAZ09__"},   {"s", "\t\n\f\r  "}, {"alnum", "azAZ09"},
                     {"alpha", "azAZ"},     {"ascii", "\1\x7f"}, {"blank", "\t\t  "}, {"cntrl", "\1\x1f\x7f\x7f"},
                     {"digit", "09"},       {"graph", "!~"},     {"lower", "az"},     {"print", " ~"},
                     {"punct", "!/:@[`{~"}, {"space", "\t\r  "}, {"upper", "AZ"},     {"word", "azAZ09__"},
                     {"xdigit", "09afAF"}};

static prony_status regex_parse_add_named(parser *p, const char *name, size_t length, bool negated)
{
    for (size_t k = 0; k < sizeof named_classes / sizeof *named_classes; k++) {
        if (strlen(named_classes[k].name) != length || memcmp(named_classes[k].name, name, length) != 0) continue;
        const uint8_t *pairs = (const uint8_t *)named_classes[k].ranges;
        bool in[128] = {false};
        for (; *pairs; pairs += 2)
            for (unsigned c = pairs[0]; c <= pairs[1]; c++) in[c] = true;
        if (strcmp(named_classes[k].name, "ascii") == 0 || strcmp(named_classes[k].name, "cntrl") == 0) in[0] = true;
        for (unsigned c = 0, end; c < 128; c = end) {
            end = c + 1;
            if (in[c] == negated) continue;
            while (end < 128 && in[end] == in[c]) end++;
            PRN_TRY(add_folded(p, c, end - 1));
        }
        return negated ? add_range(p, 128, PRN_REGEX_LAST + 256) : PRONY_OK;
    }
    return bad(p, "an unknown class");
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static prony_status hex_escape(parser *p, uint32_t *out)
{
    bool braces = p->at < p->size && p->pattern[p->at] == '{';
    uint32_t value = 0;
    int digits = 0;
    if (braces) p->at++;
    while (p->at < p->size && hex_digit(p->pattern[p->at]) >= 0 && (braces ? value <= PRN_REGEX_LAST : digits < 2)) {
        value = value << 4 | (uint32_t)hex_digit(p->pattern[p->at++]);
        digits++;
    }
    if (digits == 0 || value > PRN_REGEX_LAST || (!braces && digits != 2)) return bad(p, "a wrong \\x");
    if (braces && (p->at >= p->size || p->pattern[p->at++] != '}')) return bad(p, "a wrong \\x{");
    *out = value;
    return PRONY_OK;
}

/* Behind a backslash, if it stands for one character. */
static prony_status escaped_character(parser *p, uint32_t *out)
{
    static const char names[] = "ntrfva", values[] = "\n\t\r\f\v\a";
    uint32_t c = prn_regex_next(p->pattern, p->size, &p->at);
    const char *found = c && c < 128 ? strchr(names, (int)c) : NULL;
    *out = c;
    if (found) {
        *out = (uint32_t)values[found - names];
    } else if (c == 'x') {
        PRN_TRY(hex_escape(p, out));
    } else if (c == '0') {
        *out = 0;
        for (int i = 0; i < 2 && p->at < p->size && p->pattern[p->at] >= '0' && p->pattern[p->at] <= '7'; i++)
            *out = *out * 8 + (uint32_t)(p->pattern[p->at++] - '0');
    } else if (prn_regex_is_word(c) && c != '_') {
        return bad(p, "an escape that is not supported");
    }
    return PRONY_OK;
}

/* \d, \w, \s and their opposites; false if the escape at hand is another. */
static bool is_class_escape(const parser *p)
{
    return p->at < p->size && memchr("dDwWsS", p->pattern[p->at], 6);
}

static prony_status class_escape(parser *p)
{
    char name = p->pattern[p->at++], lower = (char)(name | 0x20);
    return regex_parse_add_named(p, &lower, 1, name != lower);
}

static prony_status bracket_name(parser *p, bool *done)
{
    *done = p->size - p->at >= 2 && memcmp(p->pattern + p->at, "[:", 2) == 0;
    if (!*done) return PRONY_OK;
    size_t begin = p->at + 2;
    bool negated = begin < p->size && p->pattern[begin] == '^';
    begin += negated;
    size_t end = begin;
    while (end + 1 < p->size && memcmp(p->pattern + end, ":]", 2) != 0) end++;
    if (end + 1 >= p->size) return bad(p, "an open [:");
    PRN_TRY(regex_parse_add_named(p, p->pattern + begin, end - begin, negated));
    p->at = end + 2;
    return PRONY_OK;
}

static prony_status bracket_character(parser *p, uint32_t *out)
{
    if (p->pattern[p->at] != '\\') {
        *out = prn_regex_next(p->pattern, p->size, &p->at);
        return PRONY_OK;
    }
    if (++p->at >= p->size) return bad(p, "a lone backslash");
    return escaped_character(p, out);
}

/* A bracket expression behind its '[': characters, ranges, names and escapes become ranges of one class. A ']'
 * in front is a character. */
static prony_status parse_bracket(parser *p)
{
    size_t first = p->regex->range_count;
    bool negated = p->at < p->size && p->pattern[p->at] == '^';
    p->at += negated;
    for (bool begin = true;; begin = false) {
        bool done;
        uint32_t low, high;
        if (p->at >= p->size) return bad(p, "an open [");
        if (p->pattern[p->at] == ']' && !begin) break;
        PRN_TRY(bracket_name(p, &done));
        if (done) continue;
        if (p->pattern[p->at] == '\\' && p->at + 1 < p->size && memchr("dDwWsS", p->pattern[p->at + 1], 6)) {
            p->at++;
            PRN_TRY(class_escape(p));
            continue;
        }
        PRN_TRY(bracket_character(p, &low));
        high = low;
        if (p->size - p->at >= 2 && p->pattern[p->at] == '-' && p->pattern[p->at + 1] != ']') {
            p->at++;
            PRN_TRY(bracket_character(p, &high));
            if (high < low) return bad(p, "a range that runs backwards");
        }
        PRN_TRY(add_folded(p, low, high));
    }
    p->at++;
    return end_class(p, first, negated);
}

/* ---- expressions ---- */

static prony_status parse_alternatives(parser *p);

static prony_status parse_escape(parser *p)
{
    static const char asserts[] = "AzbB";
    static const uint16_t kinds[] = {PRN_REGEX_TEXT_BEGIN, PRN_REGEX_TEXT_END, PRN_REGEX_BOUNDARY,
                                     PRN_REGEX_NO_BOUNDARY};
    if (p->at >= p->size) return bad(p, "a lone backslash");
    const char *found = p->pattern[p->at] ? strchr(asserts, p->pattern[p->at]) : NULL;
    if (found) {
        p->at++;
        return emit(p, (prn_regex_instruction){.code = PRN_REGEX_ASSERT, .what = kinds[found - asserts]});
    }
    size_t first = p->regex->range_count;
    if (is_class_escape(p)) {
        PRN_TRY(class_escape(p));
        return end_class(p, first, false);
    }
    uint32_t c;
    PRN_TRY(escaped_character(p, &c));
    PRN_TRY(add_folded(p, c, c));
    return end_class(p, first, false);
}

/* Behind "(?": flags, a group's name, or nothing that needs keeping. *group: a body follows, up to the bracket. */
static prony_status parse_group_head(parser *p, bool *group)
{
    *group = true;
    bool named = p->size - p->at >= 2 && (memcmp(p->pattern + p->at, "P<", 2) == 0 || p->pattern[p->at] == '<');
    if (named) {
        const char *end = memchr(p->pattern + p->at, '>', p->size - p->at);
        size_t name = p->at + (p->pattern[p->at] == 'P' ? 2 : 1);
        if (!end || !prn_regex_is_word((uint8_t)p->pattern[name]))
            return bad(p, "look-around, or a group without a name,");
        p->at = (size_t)(end - p->pattern) + 1;
        return PRONY_OK;
    }
    bool off = false;
    for (; p->at < p->size; p->at++) {
        static const char letters[] = "isU-m:)";
        static const unsigned bits[] = {FLAG_FOLD, FLAG_DOT_ALL, 0, 0, FLAG_LINES};
        const char *found = p->pattern[p->at] ? strchr(letters, p->pattern[p->at]) : NULL;
        if (!found) return bad(p, "a group of an unknown kind");
        if (*found == ':' || *found == ')') {
            *group = *found == ':';
            p->at += *group;
            return PRONY_OK;
        }
        if (*found == '-')
            off = true;
        else if (off)
            p->flags &= ~bits[found - letters];
        else
            p->flags |= bits[found - letters];
    }
    return bad(p, "an open (");
}

/* Behind "(". Flags set inside of a group end with it; those of "(?i)" stay. */
static prony_status parse_group(parser *p)
{
    unsigned flags = p->flags;
    bool group = true;
    if (++p->depth > MAX_DEPTH) return bad(p, "groups nested too deep");
    if (p->at < p->size && p->pattern[p->at] == '?') {
        p->at++;
        PRN_TRY(parse_group_head(p, &group));
    }
    if (group) {
        PRN_TRY(parse_alternatives(p));
        p->flags = flags;
    }
    if (p->at >= p->size || p->pattern[p->at] != ')') return bad(p, "an open (");
    p->at++;
    p->depth--;
    return PRONY_OK;
}

/* One atom: a group, a class, an escape, an assertion or a character. */
static prony_status parse_atom(parser *p)
{
    size_t first = p->regex->range_count;
    uint32_t c = prn_regex_next(p->pattern, p->size, &p->at);
    switch (c) {
    case '(':
        return parse_group(p);
    case '[':
        return parse_bracket(p);
    case '\\':
        return parse_escape(p);
    case '*':
    case '+':
    case '?':
        return bad(p, "a repetition of nothing");
    case '.':
        if (!(p->flags & FLAG_DOT_ALL)) PRN_TRY(add_range(p, '\n', '\n'));
        return end_class(p, first, true);
    case '^':
        return emit(
            p, (prn_regex_instruction){.code = PRN_REGEX_ASSERT,
                                       .what = p->flags & FLAG_LINES ? PRN_REGEX_LINE_BEGIN : PRN_REGEX_TEXT_BEGIN});
    case '$':
        return emit(p,
                    (prn_regex_instruction){.code = PRN_REGEX_ASSERT,
                                            .what = p->flags & FLAG_LINES ? PRN_REGEX_LINE_END : PRN_REGEX_TEXT_END});
    default:
        PRN_TRY(add_folded(p, c, c));
        return end_class(p, first, false);
    }
}

/* {m}, {m,} and {m,n}; anything else in braces is text. */
static bool parse_bounds(parser *p, int *least, int *most)
{
    size_t at = p->at + 1;
    int value[2] = {-1, -1}, k = 0;
    for (; at < p->size && p->pattern[at] != '}'; at++) {
        char c = p->pattern[at];
        if (c == ',' && k == 0 && value[0] >= 0)
            k = 1;
        else if (c >= '0' && c <= '9' && value[k] <= MAX_REPEAT)
            value[k] = (value[k] < 0 ? 0 : value[k] * 10) + (c - '0');
        else
            return false;
    }
    if (at >= p->size || value[0] < 0) return false;
    *least = value[0];
    *most = k == 0 ? value[0] : value[1];
    p->at = at + 1;
    return true;
}

/* The instructions [begin, begin + length) once more at the end. */
static prony_status regex_parse_copy(parser *p, size_t begin, size_t length)
{
    for (size_t i = 0; i < length; i++) PRN_TRY(emit(p, p->regex->program[begin + i]));
    return PRONY_OK;
}

/* Turns the atom that starts at `begin` into `least` to `most` (-1: any number) of it. */
static prony_status regex_parse_repeat(parser *p, size_t begin, int least, int most)
{
    prn_regex *r = p->regex;
    size_t length = r->size - begin;
    if (least > MAX_REPEAT || most > MAX_REPEAT || (most >= 0 && most < least)) return bad(p, "bounds of a repetition");
    if (most == 0) {
        r->size = begin;
        return PRONY_OK;
    }
    for (int i = 1; i < least; i++) PRN_TRY(regex_parse_copy(p, begin, length));
    if (most < 0) {
        /* one more, which may be passed by and may come again: the last copy loops, or the only one if none is
         * needed */
        size_t last = r->size - length;
        if (least == 0) PRN_TRY(insert(p, last, 1));
        PRN_TRY(emit(p, (prn_regex_instruction){.code = PRN_REGEX_SPLIT, .a = -(int32_t)length, .b = 1}));
        if (least == 0)
            r->program[last] = (prn_regex_instruction){.code = PRN_REGEX_SPLIT, .a = 1, .b = (int32_t)length + 2};
        return PRONY_OK;
    }
    for (int i = least > 1 ? least : 1; i < most; i++) {
        PRN_TRY(emit(p, (prn_regex_instruction){.code = PRN_REGEX_SPLIT, .a = 1, .b = (int32_t)length + 1}));
        PRN_TRY(regex_parse_copy(p, begin, length));
    }
    if (least > 0) return PRONY_OK;
    PRN_TRY(insert(p, begin, 1));
    r->program[begin] = (prn_regex_instruction){.code = PRN_REGEX_SPLIT, .a = 1, .b = (int32_t)(r->size - begin)};
    return PRONY_OK;
}

static prony_status parse_repetitions(parser *p, size_t begin)
{
    while (p->at < p->size) {
        int least = 0, most = -1;
        char c = p->pattern[p->at];
        if (c == '{') {
            if (!parse_bounds(p, &least, &most)) return PRONY_OK;
        } else if (c == '*' || c == '+' || c == '?') {
            least = c == '+';
            most = c == '?' ? 1 : -1;
            p->at++;
        } else {
            return PRONY_OK;
        }
        if (p->at < p->size && p->pattern[p->at] == '?') p->at++;
        PRN_TRY(regex_parse_repeat(p, begin, least, most));
    }
    return PRONY_OK;
}

static prony_status parse_quoted(parser *p)
{
    size_t first = p->regex->range_count;
    uint32_t c = prn_regex_next(p->pattern, p->size, &p->at);
    PRN_TRY(add_folded(p, c, c));
    return end_class(p, first, false);
}

/* Moves past the mark that begins or ends a quotation, if it stands here. */
static bool quotation_mark(parser *p)
{
    const char letter = p->quoted ? 'E' : 'Q';
    if (p->size - p->at < 2 || p->pattern[p->at] != '\\' || p->pattern[p->at + 1] != letter) return false;
    p->quoted = !p->quoted;
    p->at += 2;
    return true;
}

static prony_status parse_sequence(parser *p)
{
    while (p->at < p->size && (p->quoted || (p->pattern[p->at] != '|' && p->pattern[p->at] != ')'))) {
        if (quotation_mark(p)) continue;
        size_t begin = p->regex->size;
        PRN_TRY(p->quoted ? parse_quoted(p) : parse_atom(p));
        if (p->quoted && !quotation_mark(p)) continue;
        PRN_TRY(parse_repetitions(p, begin));
    }
    return PRONY_OK;
}

/* The alternatives so far stand at [begin, end); each further one is put behind them. */
static prony_status parse_alternatives(parser *p)
{
    size_t begin = p->regex->size;
    PRN_TRY(parse_sequence(p));
    while (p->at < p->size && p->pattern[p->at] == '|') {
        p->at++;
        PRN_TRY(insert(p, begin, 1));
        size_t jump = p->regex->size;
        PRN_TRY(emit(p, (prn_regex_instruction){.code = PRN_REGEX_JUMP}));
        p->regex->program[begin] =
            (prn_regex_instruction){.code = PRN_REGEX_SPLIT, .a = 1, .b = (int32_t)(jump + 1 - begin)};
        PRN_TRY(parse_sequence(p));
        p->regex->program[jump].a = (int32_t)(p->regex->size - jump);
    }
    return PRONY_OK;
}

prony_status prn_regex_compile(prn_regex **out, const char *pattern, size_t size, prony_error *error)
{
    prn_regex *regex = prn_calloc(1, sizeof *regex);
    if (!regex) return prn_no_memory(error);
    parser p = {.regex = regex, .pattern = pattern, .size = size, .error = error};
    prony_status status = parse_alternatives(&p);
    if (status == PRONY_OK && p.at < size) status = bad(&p, "a ) without a (");
    if (status == PRONY_OK) status = emit(&p, (prn_regex_instruction){.code = PRN_REGEX_MATCH});
    if (status == PRONY_OK)
        *out = regex;
    else
        prn_regex_release(regex);
    return status;
}
