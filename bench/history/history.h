/* --history FILE.db: keeps runs in a SQLite file, and reads them back. docs/reference/history.md describes the file. */
#ifndef PRN_BENCH_HISTORY_HISTORY_H
#define PRN_BENCH_HISTORY_HISTORY_H

#include "bench/command.h"
#include "prony_history.h"

/* EXIT_USAGE after a message if this build cannot keep a history; EXIT_DONE otherwise. */
int history_refuse(const options *o);

/* ---- keep.c: after a measurement. All return `code`. If it is EXIT_DONE and the history cannot be written, they
 * return EXIT_FAILED: a verdict wins. A message names the file. Without --history they do nothing. The report itself is
 * written before. ---- */

int history_keep_report(const options *o, const prony_report *report, int code);
int history_keep_study(const options *o, const prony_study *study, int code);
/* A JSON document of the command: a report, matrix, evaluations, load or study. */
int history_keep_document(const options *o, const char *json, size_t size, int code);
/* The commit of runs that do not name theirs: --commit, or that of the working folder's git repository; "": none. */
void history_commit(const options *o, char text[72]);

/* ---- store.c ---- */

typedef struct history_store history_store;

/* Opens a history to write; creates it if it does not exist. Messages name the file. */
int store_open(history_store **out, const options *o, const char *file);
/* As above to read alone: the file must exist, and may be read-only. */
int store_open_to_read(history_store **out, const options *o, const char *file);
/* NULL is accepted. */
void store_close(history_store *store);

/* Rows that one call stored and skipped: a run that the file has already. */
typedef struct store_count {
    size_t stored, known;
} store_count;
/* Stores all runs in one transaction, with the options' label, and removes runs older than --history-keep. `commit`: of
 * runs that do not name theirs. */
int store_add(history_store *store, const prony_history *runs, const char *commit, store_count *count);

/* The rows to read: everything, unless a member restricts it. */
typedef struct store_wanted {
    const char *model;
    const char *metric; /* key */
    bool layers;
} store_wanted;
int store_read(history_store *store, prony_history *to, const store_wanted *wanted);

/* ---- project_commit.c ---- */

/* The commit that the working folder has checked out, read from .git without running git: 40 or 64 hexadecimal digits.
 * "": no repository. */
void project_commit(char text[72]);

#endif
