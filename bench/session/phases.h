/* Phases around a run: image files become inputs before it, the best classes are read after it. */
#ifndef PRN_BENCH_SESSION_PHASES_H
#define PRN_BENCH_SESSION_PHASES_H

#include "bench/command.h"

/* Zero-initialise. */
typedef struct phases {
    const options *o;
    const prony_model *model;
    prony_class_row *rows; /* topk per sample */
    size_t *found;         /* rows per sample */
    int64_t samples;
    prony_label_row *labels;
    size_t label_count;
} phases;

/* Puts callbacks into *profile: before a run if an input is an image file, after it with --topk. Reads --labels. */
int phases_begin(phases *p, const options *o, const prony_model *model, prony_profile_options *profile);
/* The best classes of the last run. */
void phases_print(const phases *p);
void phases_end(phases *p);

#endif
