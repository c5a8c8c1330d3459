/* Regular expressions in the syntax of RE2, matched against whole strings.
 *
 * Supported: literals, escapes (\n \t \r \f \v \a \xHH \x{H..} \0oo, \Q..\E, and any escaped punctuation), `.`, classes
 * [a-z] [^a-z] with \d \D \w \W \s \S and [:alpha:] and its like in them, ^ $ \A \z \b \B, groups ( ) (?: ) (?P<name>
 * ), flags (?i) (?s) (?m) also for one group, | and the repetitions * + ? {m} {m,} {m,n}, greedy or not (a whole match
 * does not tell). Text is UTF-8; a byte outside UTF-8 stands for itself. Refused by name: back references and
 * look-around, which RE2 has not either, and Unicode classes \p, which it has.
 *
 * A pattern becomes a program whose states are followed all at once: the time is text times program, whatever the
 * pattern. */
#ifndef PRN_OPS_TEXT_REGEX_H
#define PRN_OPS_TEXT_REGEX_H

#include "base/status.h"

typedef struct prn_regex prn_regex;

/* Error messages name the place in the pattern. */
PRN_MUST_USE prony_status prn_regex_compile(prn_regex **out, const char *pattern, size_t size, prony_error *error);
void prn_regex_release(prn_regex *regex);
/* Working space of one match. */
size_t prn_regex_scratch(const prn_regex *regex);
bool prn_regex_matches(const prn_regex *regex, const char *text, size_t size, void *scratch);

#endif
