/* prony_top_classes and prony_labels_load: the best classes of an output, and what they are called. */
#include "evaluate/class_scores.h"

#include "base/shape.h"
#include "loaders/label_file.h"
#include "base/memory/row_block.h"
#include "prony_data.h"

#include <math.h>
#include <string.h>

prony_status prn_scores_of(prn_scores *out, const prony_value *value, int64_t batch, prony_error *error)
{
    prony_shape shape = value->shape;
    char text[PRN_SHAPE_TEXT_BYTES];
    bool numbers = value->dtype == PRONY_FLOAT32 || value->dtype == PRONY_FLOAT64 || value->dtype == PRONY_FLOAT16 ||
                   value->dtype == PRONY_INT64 || value->dtype == PRONY_INT32 || value->dtype == PRONY_UINT8 ||
                   value->dtype == PRONY_INT8;
    while (shape.rank > 1 && shape.dim[shape.rank - 1] == 1) shape.rank--;
    while (shape.rank > 2 && shape.dim[1] == 1) { /* [N, 1, classes] */
        for (int d = 1; d + 1 < shape.rank; d++) shape.dim[d] = shape.dim[d + 1];
        shape.rank--;
    }
    *out = (prn_scores){.value = value, .samples = 1, .classes = 1};
    bool table = shape.rank == 2, row = shape.rank == 1;
    if (table) {
        out->samples = shape.dim[0];
        out->classes = shape.dim[1];
    } else if (row) {
        bool samples = value->shape.rank > 1 || (batch > 0 && shape.dim[0] == batch);
        *(samples ? &out->samples : &out->classes) = shape.dim[0];
    }
    if (value->kind == PRONY_TENSOR && numbers && value->data && (table || row) && out->classes > 0 &&
        (batch == 0 || out->samples == batch))
        return PRONY_OK;
    return prn_fail(error, PRONY_SHAPE_MISMATCH, "the output is %s, wanted class scores [N, classes]",
                    prn_value_text(value, text));
}

/* Half precision as a number. */
static double from_half(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                  : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                 : ldexp(fraction, -24);
    return bits & 0x8000 ? -size : size;
}

double prn_score_at(const prn_scores *scores, int64_t sample, int64_t class_index)
{
    const void *data = scores->value->data;
    size_t at = (size_t)(sample * scores->classes + class_index);
    switch (scores->value->dtype) {
    case PRONY_FLOAT32:
        return (double)((const float *)data)[at];
    case PRONY_FLOAT64:
        return ((const double *)data)[at];
    case PRONY_FLOAT16:
        return from_half(((const uint16_t *)data)[at]);
    case PRONY_INT64:
        return (double)((const int64_t *)data)[at];
    case PRONY_INT32:
        return (double)((const int32_t *)data)[at];
    case PRONY_INT8:
        return (double)((const int8_t *)data)[at];
    default:
        return (double)((const uint8_t *)data)[at];
    }
}

static bool class_scores_comes_before(double a, int64_t a_index, double b, int64_t b_index)
{
    if (isnan(a) || isnan(b)) return isnan(b) && (!isnan(a) || a_index < b_index);
    return a > b || (a == b && a_index < b_index);
}

int64_t prn_score_rank(const prn_scores *scores, int64_t sample, int64_t class_index)
{
    double own = prn_score_at(scores, sample, class_index);
    int64_t before = 0;
    if (isnan(own)) return scores->classes;
    for (int64_t c = 0; c < scores->classes; c++)
        before += class_scores_comes_before(prn_score_at(scores, sample, c), c, own, class_index);
    return before;
}

/* The scores of a sample as probabilities: what they are multiplied with after `shift`, exponentiated unless they are
 * probabilities already. */
typedef struct softmax {
    bool already;
    double shift, sum;
} softmax;

static softmax class_scores_softmax_of(const prn_scores *scores, int64_t sample)
{
    softmax s = {.already = true, .shift = -INFINITY};
    double sum = 0;
    for (int64_t c = 0; c < scores->classes; c++) {
        double score = prn_score_at(scores, sample, c);
        if (!(score >= 0 && score <= 1)) s.already = false;
        if (score > s.shift) s.shift = score;
        sum += score;
    }
    if (!(fabs(sum - 1) <= 1e-3)) s.already = false;
    for (int64_t c = 0; c < scores->classes; c++) s.sum += exp(prn_score_at(scores, sample, c) - s.shift);
    return s;
}

prony_status prony_top_classes(prony_class_row *rows, size_t capacity, size_t *count, const prony_value *value,
                               int64_t sample, prony_error *error)
{
    prn_scores scores;
    if (!count || !value || (capacity && !rows))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_top_classes: an argument is NULL");
    PRN_TRY(prn_scores_of(&scores, value, 0, error));
    if (sample < 0 || sample >= scores.samples)
        return prn_fail(error, PRONY_OUT_OF_RANGE, "sample %lld is out of range: there are %lld", (long long)sample,
                        (long long)scores.samples);
    softmax s = class_scores_softmax_of(&scores, sample);
    *count = 0;
    for (int64_t c = 0; c < scores.classes && capacity; c++) {
        double score = prn_score_at(&scores, sample, c);
        size_t at = *count;
        while (at > 0 && class_scores_comes_before(score, c, rows[at - 1].score, rows[at - 1].index)) at--;
        if (at == capacity) continue;
        if (*count < capacity) ++*count;
        memmove(rows + at + 1, rows + at, (*count - at - 1) * sizeof *rows);
        rows[at] = (prony_class_row){c, score, s.already ? score : exp(score - s.shift) / s.sum};
    }
    return PRONY_OK;
}

prony_status prony_labels_load(prony_label_row **rows, size_t *count, const char *path, prony_error *error)
{
    prn_bump pool = {0};
    prn_text_lines text;
    if (!rows || !count || !path)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_labels_load: an argument is NULL");
    prony_status status = prn_text_lines_read(&text, &pool, path, error);
    prony_label_row *made = status == PRONY_OK ? prn_rows_create(text.count, sizeof *made) : NULL;
    if (status == PRONY_OK && !made) status = prn_no_memory(error);
    for (size_t i = 0; status == PRONY_OK && i < text.count; i++) {
        made[i].name = prn_rows_text(made, text.lines[i]);
        if (!made[i].name) status = prn_no_memory(error);
    }
    if (status == PRONY_OK) {
        *rows = made;
        *count = text.count;
    } else {
        prony_rows_release(made);
    }
    prn_bump_release(&pool);
    return status;
}
