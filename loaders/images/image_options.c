/* Options of preprocessing: parsed from text, and checked. */
#include "loaders/images/image.h"
#include "base/option_struct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_SIDE 65536

enum { WORD_BYTES = 64 };

static prony_status wrong(prony_error *error, const char *word, const char *expected)
{
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "'%s': %s", word, expected);
}

static bool parse_side(const char *text, char end, int64_t *out, const char **rest)
{
    char *stop;
    long long value = strtoll(text, &stop, 10);
    if (*text < '0' || *text > '9' || *stop != end || value < 1 || value > LARGEST_SIDE) return false;
    *out = value;
    if (rest) *rest = stop + 1;
    return true;
}

/* "HxW" */
static bool image_options_parse_size(const char *text, int64_t *height, int64_t *width)
{
    const char *rest;
    return parse_side(text, 'x', height, &rest) && parse_side(rest, '\0', width, NULL);
}

static prony_status parse_resize(prony_image_options *o, const char *value, const char *word, prony_error *error)
{
    if (strcmp(value, "fit") == 0) {
        o->resize = PRONY_IMAGE_RESIZE_FIT;
    } else if (strcmp(value, "none") == 0) {
        o->resize = PRONY_IMAGE_RESIZE_NONE;
    } else if (parse_side(value, '\0', &o->resize_height, NULL)) {
        o->resize = PRONY_IMAGE_RESIZE_SHORTER;
    } else if (image_options_parse_size(value, &o->resize_height, &o->resize_width)) {
        o->resize = PRONY_IMAGE_RESIZE_EXACT;
    } else {
        return wrong(error, word, "resize=N (shorter side), HEIGHTxWIDTH, fit or none");
    }
    return PRONY_OK;
}

static prony_status parse_crop(prony_image_options *o, const char *value, const char *word, prony_error *error)
{
    if (strcmp(value, "none") == 0) {
        o->crop_height = o->crop_width = 0;
    } else if (parse_side(value, '\0', &o->crop_height, NULL)) {
        o->crop_width = o->crop_height;
    } else if (!image_options_parse_size(value, &o->crop_height, &o->crop_width)) {
        return wrong(error, word, "crop=N, HEIGHTxWIDTH or none");
    }
    return PRONY_OK;
}

/* "0.5" for all channels, or "0.485:0.456:0.406". */
static bool parse_channels(float out[3], const char *text)
{
    int count = 0;
    for (const char *at = text; count < 3; at++) {
        char *end;
        out[count] = strtof(at, &end);
        if (end == at || !isfinite(out[count])) return false;
        count++;
        at = end;
        if (*at != ':') {
            if (*at || count == 2) return false;
            if (count == 1) out[1] = out[2] = out[0];
            return true;
        }
    }
    return false;
}

/* mean= and std= may be given alone: the other one is then 1 or 0. */
static prony_status parse_statistics(prony_image_options *o, bool mean, const char *value, const char *word,
                                     prony_error *error)
{
    if (o->normalize != PRONY_NORMALIZE_CUSTOM)
        for (int c = 0; c < 3; c++) o->mean[c] = 0, o->std[c] = 1;
    o->normalize = PRONY_NORMALIZE_CUSTOM;
    if (!parse_channels(mean ? o->mean : o->std, value))
        return wrong(error, word, "a number, or three such as 0.5:0.5:0.5");
    return PRONY_OK;
}

static const struct {
    const char *name;
    prony_image_normalize normalize;
} ranges[] = {{"0..1", PRONY_NORMALIZE_UNIT},
              {"-1..1", PRONY_NORMALIZE_SIGNED},
              {"0..255", PRONY_NORMALIZE_BYTES},
              {"imagenet", PRONY_NORMALIZE_IMAGENET}};

static bool parse_normalize(prony_image_options *o, const char *value)
{
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (strcmp(ranges[i].name, value) != 0) continue;
        o->normalize = ranges[i].normalize;
        return true;
    }
    return false;
}

static bool image_options_choose(const char *value, const char *no, const char *yes, bool *out)
{
    *out = strcmp(value, yes) == 0;
    return *out || strcmp(value, no) == 0;
}

/* Sets one option from KEY=VALUE or a bare normalisation. Messages quote the whole word, which parsing splits. */
static prony_status parse_word(prony_image_options *o, char *word, prony_error *error)
{
    char whole[WORD_BYTES];
    bool flag = false;
    char *value = strchr(word, '=');
    memcpy(whole, word, strlen(word) + 1);
    if (!value) {
        if (!parse_normalize(o, word)) return wrong(error, whole, "wanted KEY=VALUE, imagenet, 0..1, -1..1 or 0..255");
        if (o->normalize == PRONY_NORMALIZE_IMAGENET) o->resize = PRONY_IMAGE_RESIZE_MARGIN;
        return PRONY_OK;
    }
    *value++ = '\0';
    if (strcmp(word, "resize") == 0) return parse_resize(o, value, whole, error);
    if (strcmp(word, "crop") == 0) return parse_crop(o, value, whole, error);
    if (strcmp(word, "mean") == 0) return parse_statistics(o, true, value, whole, error);
    if (strcmp(word, "std") == 0) return parse_statistics(o, false, value, whole, error);
    if (strcmp(word, "normalize") == 0)
        return parse_normalize(o, value) ? PRONY_OK : wrong(error, whole, "normalize=0..1, -1..1, 0..255 or imagenet");
    if (strcmp(word, "filter") == 0)
        return image_options_choose(value, "bilinear", "bicubic", &o->bicubic)
                   ? PRONY_OK
                   : wrong(error, whole, "filter=bilinear or bicubic");
    if (strcmp(word, "channels") == 0)
        return image_options_choose(value, "rgb", "bgr", &o->bgr) ? PRONY_OK
                                                                  : wrong(error, whole, "channels=rgb or bgr");
    if (strcmp(word, "layout") == 0) {
        bool known = image_options_choose(value, "nchw", "nhwc", &flag);
        o->layout = flag ? PRONY_LAYOUT_NHWC : PRONY_LAYOUT_NCHW;
        return known ? PRONY_OK : wrong(error, whole, "layout=nchw or nhwc");
    }
    return wrong(error, whole, "unknown key; known: resize, crop, filter, normalize, mean, std, channels and layout");
}

prony_status prony_image_options_parse(prony_image_options *out, const char *text, prony_error *error)
{
    prony_image_options options = PRONY_IMAGE_OPTIONS_INIT;
    if (!out || !text) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_image_options_parse: an argument is NULL");
    for (const char *at = text;; at++) {
        char word[WORD_BYTES];
        size_t length = strcspn(at, ",");
        if (length >= sizeof word) return wrong(error, text, "a word is too long");
        memcpy(word, at, length);
        word[length] = '\0';
        PRN_TRY(parse_word(&options, word, error));
        at += length;
        if (!*at) break;
    }
    PRN_TRY(prn_image_options_check(&options, error));
    *out = options;
    return PRONY_OK;
}

prony_status prn_image_options_check(const prony_image_options *o, prony_error *error)
{
    bool sized = o->resize == PRONY_IMAGE_RESIZE_SHORTER || o->resize == PRONY_IMAGE_RESIZE_EXACT;
    if (o->resize < PRONY_IMAGE_RESIZE_FIT || o->resize > PRONY_IMAGE_RESIZE_MARGIN ||
        (sized && (o->resize_height < 1 || o->resize_height > LARGEST_SIDE)) ||
        (o->resize == PRONY_IMAGE_RESIZE_EXACT && (o->resize_width < 1 || o->resize_width > LARGEST_SIDE)))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "image options: resize to %lld x %lld",
                        (long long)o->resize_height, (long long)o->resize_width);
    if (o->crop_height < 0 || o->crop_width < 0 || o->crop_height > LARGEST_SIDE || o->crop_width > LARGEST_SIDE ||
        (o->crop_height == 0) != (o->crop_width == 0))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "image options: crop to %lld x %lld", (long long)o->crop_height,
                        (long long)o->crop_width);
    if (o->normalize < PRONY_NORMALIZE_DEFAULT || o->normalize > PRONY_NORMALIZE_CUSTOM ||
        o->layout < PRONY_LAYOUT_AUTO || o->layout > PRONY_LAYOUT_NHWC)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "image options: unknown normalisation or layout");
    for (int c = 0; c < 3 && o->normalize == PRONY_NORMALIZE_CUSTOM; c++)
        if (!isfinite(o->mean[c]) || !isfinite(o->std[c]) || o->std[c] == 0)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "image options: mean %g and std %g of channel %d",
                            (double)o->mean[c], (double)o->std[c], c);
    return PRONY_OK;
}
