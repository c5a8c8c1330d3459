/* Upper and lower case of UTF-8 text, one character at a time, by the C library's tables. */
#ifndef PRN_OPS_TEXT_TEXT_CASE_H
#define PRN_OPS_TEXT_TEXT_CASE_H

#include "prony.h"

typedef enum prn_case { PRN_CASE_AS_IS, PRN_CASE_LOWER, PRN_CASE_UPPER } prn_case;

typedef struct prn_case_table prn_case_table;

/* The tables of a locale such as "en_US.UTF-8"; NULL or one that is not installed: those of C.UTF-8, and where there is
 * not even that, ASCII. NULL: out of memory. */
prn_case_table *prn_case_table_open(const char *locale);
void prn_case_table_close(prn_case_table *table);

/* Writes the changed text to `to` unless that is NULL; the number of bytes it has. Bytes that are not UTF-8 stay. */
size_t prn_case_change(const prn_case_table *table, prony_string text, prn_case change, char *to);
/* True if two texts are the same but for case. */
bool prn_case_same(const prn_case_table *table, prony_string a, prony_string b);

#endif
