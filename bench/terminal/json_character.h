/* The characters of JSON strings, for all writers of the command. */
#ifndef PRN_BENCH_TERMINAL_JSON_CHARACTER_H
#define PRN_BENCH_TERMINAL_JSON_CHARACTER_H

#include <stddef.h>

enum { JSON_ESCAPE = 8 };

/* Bytes of the UTF-8 character that `text` begins with, at least 1 and at most `size`. *escape stands for the character
 * in a JSON string; "": the character stands for itself. Invalid UTF-8 becomes U+FFFD, byte by byte. '<' is escaped, so
 * that the string is valid inside a <script> element. Text that ends with NUL may give any `size` of 4 or more. */
size_t json_character(const char *text, size_t size, char escape[JSON_ESCAPE]);

#endif
