/* Images as inputs: equal to Pillow and torchvision on the same files (tests/data/images), normalisation and layout,
 * refusals, and files that lie, end early or are damaged. */
#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "loaders/images/image.h"
#include "prony.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER PRN_SOURCE_DIR "/tests/data/images/"

#if defined(PRN_HAVE_PNG) && defined(PRN_HAVE_JPEG) && defined(PRN_HAVE_ZLIB)

static prony_value_info port_of(prony_dtype dtype, int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (prony_value_info){.name = "x", .dtype = dtype, .shape = {rank, {a, b, c, d}}};
}

static prony_value *load(const char *file, const prony_value_info *port, const char *spec)
{
    char path[512];
    prony_error error = {0};
    prony_value *value = NULL;
    prony_image_options options;
    snprintf(path, sizeof path, FOLDER "%s", file);
    if (prony_image_options_parse(&options, spec, &error) != PRONY_OK ||
        prony_image_load(&value, path, port, &options, &error) != PRONY_OK)
        fail_msg("%s, %s: %s", file, spec, error.message);
    return value;
}

static prony_status refuse(const char *file, const prony_value_info *port, const char *spec, const char *word)
{
    char path[512];
    prony_error error = {0};
    prony_value *value = NULL;
    prony_image_options options;
    snprintf(path, sizeof path, FOLDER "%s", file);
    prony_status status = prony_image_options_parse(&options, spec, &error);
    if (status == PRONY_OK) status = prony_image_load(&value, path, port, &options, &error);
    if (status == PRONY_OK || value) fail_msg("%s, %s: accepted", file, spec);
    if (!strstr(error.message, word)) fail_msg("%s, %s: '%s' has no '%s'", file, spec, error.message, word);
    return status;
}

static double at(const prony_value *value, int64_t i)
{
    return value->dtype == PRONY_UINT8 ? ((const uint8_t *)value->data)[i] : (double)((const float *)value->data)[i];
}

/* Decoding and resizing agree with Pillow bit for bit. For JPEG this holds with the library of this Pillow build;
 * other libraries may round one level apart. */
static void like_pillow(void **state)
{
    (void)state;
    static const struct {
        const char *file, *variant, *spec;
        int64_t channels, rows, columns;
        double limit;
    } cases[] = {
        {"rgb.png", "", "resize=none", 3, -1, -1, 0},
        {"grey.png", "", "resize=none", 3, -1, -1, 0},
        {"bits.png", "", "resize=none", 3, -1, -1, 0},
        {"palette.png", "", "resize=none", 3, -1, -1, 0},
        {"rgba.png", "", "resize=none", 3, -1, -1, 0},
        {"grey_alpha.png", "", "resize=none", 3, -1, -1, 0},
        {"rgb16.png", "", "resize=none", 3, -1, -1, 0},
        {"grey16.png", "", "resize=none", 3, -1, -1, 0},
        {"interlaced.png", "", "resize=none", 3, -1, -1, 0},
        {"rgb.jpg", "", "resize=none", 3, -1, -1, 1},
        {"progressive.jpg", "", "resize=none", 3, -1, -1, 1},
        {"grey.jpg", "", "resize=none", 3, -1, -1, 1},
        {"cmyk.jpg", "", "resize=none", 3, -1, -1, 1},
        {"rgb.png", ":shorter", "resize=16,crop=11x14", 3, -1, -1, 0},
        {"rgb.png", ":shorter", "resize=16", 3, 11, 14, 0},
        {"rgb.png", ":exact", "resize=13x8", 3, -1, -1, 0},
        {"rgb.png", ":exact", "resize=fit", 3, 13, 8, 0},
        {"rgb.png", ":larger", "resize=31x90", 3, -1, -1, 0},
        {"rgb.png", ":bicubic", "resize=50x12,filter=bicubic", 3, -1, -1, 0},
        {"rgb.png", ":crop", "resize=none,crop=20", 3, -1, -1, 0},
        {"rgb.png", ":grey", "resize=10x10", 1, -1, -1, 0},
        {"rgb.jpg", ":shorter", "resize=16,crop=11x14", 3, -1, -1, 1},
        {"rgb.jpg", ":exact", "resize=13x8", 3, -1, -1, 1},
        {"rgb.jpg", ":larger", "resize=31x90", 3, -1, -1, 1},
        {"rgb.jpg", ":bicubic", "resize=50x12,filter=bicubic", 3, -1, -1, 1},
        {"rgb.jpg", ":crop", "resize=none,crop=20", 3, -1, -1, 1},
        {"rgb.jpg", ":grey", "resize=10x10", 1, -1, -1, 1},
        {"rgb.png", ":imagenet", "imagenet", 3, 14, 14, 1e-6},
        {"rgb.png", ":imagenet", "resize=16,crop=14,normalize=imagenet", 3, -1, -1, 1e-6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        SCENARIO_NAMED(i, cases[i].file);
        char name[64];
        prony_error error = {0};
        prony_value *expected = NULL;
        snprintf(name, sizeof name, "%s%s", cases[i].file, cases[i].variant);
        if (prony_value_load_array(&expected, FOLDER "expected.npz", name, &error) != PRONY_OK)
            fail_msg("%s", error.message);
        prony_value_info port = port_of(expected->dtype, 4, 1, cases[i].channels, cases[i].rows, cases[i].columns);
        prony_value *value = load(cases[i].file, &port, cases[i].spec);
        assert_memory_equal(&value->shape.dim, &expected->shape.dim, 4 * sizeof(int64_t));
        for (int64_t k = 0; k < prony_shape_numel(&value->shape); k++)
            if (!(fabs(at(value, k) - at(expected, k)) <= cases[i].limit))
                fail_msg("%s (%s): element %lld is %g, not %g", name, cases[i].spec, (long long)k, at(value, k),
                         at(expected, k));
        prony_value_release(value);
        prony_value_release(expected);
    }
}

static void normalisation_and_layout(void **state)
{
    (void)state;
    prony_value_info bytes = port_of(PRONY_UINT8, 4, 1, 3, 29, 37), floats = port_of(PRONY_FLOAT32, 4, -1, 3, 29, 37),
                     last = port_of(PRONY_FLOAT32, 4, 2, 29, 37, 3), plain = port_of(PRONY_FLOAT64, 3, 3, 29, 37, 0);
    prony_value *raw = load("rgb.png", &bytes, "resize=none");
    static const struct {
        const char *spec;
        float scale, shift; /* of v / 255 */
    } ranges[] = {{"normalize=0..1", 1, 0},       {"0..1", 1, 0},         {"-1..1", 2, -1},
                  {"normalize=0..255", 255, 0},   {"mean=0.5", 1, -0.5f}, {"std=0.25:0.25:0.25", 4, 0},
                  {"mean=0.25,std=0.5", 2, -0.5f}};
    const int64_t pixels = 29 * 37;
    for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++) {
        SCENARIO_NAMED(r, ranges[r].spec);
        prony_value *value = load("rgb.png", &floats, ranges[r].spec);
        assert_int_equal(value->shape.dim[0], 1);
        for (int64_t k = 0; k < 3 * pixels; k++) {
            double want = at(raw, k) / 255 * (double)ranges[r].scale + (double)ranges[r].shift;
            if (fabs(at(value, k) - want) > 1e-5 * (double)ranges[r].scale)
                fail_msg("%s: %g, not %g", ranges[r].spec, at(value, k), want);
        }
        prony_value_release(value);
    }
    /* Channels last and reversed, and a batch of two that the model fixes. */
    prony_value *value = load("rgb.png", &last, "0..255,channels=bgr");
    for (int64_t k = 0; k < pixels; k++)
        for (int64_t c = 0; c < 3; c++) {
            assert_true(at(value, 3 * k + c) == at(raw, (2 - c) * pixels + k));
            assert_true(at(value, 3 * (pixels + k) + c) == at(raw, (2 - c) * pixels + k));
        }
    prony_value_release(value);
    value = load("rgb.png", &plain, "0..255"); /* without a batch */
    assert_int_equal(value->shape.rank, 3);
    for (int64_t k = 0; k < 3 * pixels; k++) assert_true(((const double *)value->data)[k] == at(raw, k));
    prony_value_release(value);
    prony_value_info free_port = port_of(PRONY_UINT8, 4, -1, -1, -1, -1);
    value = load("grey.png", &free_port, "layout=nhwc");
    assert_int_equal(value->shape.dim[1], 29);
    assert_int_equal(value->shape.dim[3], 3);
    prony_value_release(value);
    value = load("rgb.png", &free_port, "imagenet,normalize=0..255"); /* a free crop is 224 x 224 */
    assert_int_equal(value->shape.dim[2], 224);
    prony_value_release(value);
    prony_value_release(raw);
}

static void what_is_refused(void **state)
{
    (void)state;
    prony_value_info any = port_of(PRONY_FLOAT32, 4, -1, 3, -1, -1), fixed = port_of(PRONY_FLOAT32, 4, 1, 3, 20, 20),
                     grey = port_of(PRONY_FLOAT32, 4, 1, 1, 20, 20), five = port_of(PRONY_FLOAT32, 4, 1, 5, 20, 20),
                     flat = port_of(PRONY_FLOAT32, 2, 1, 784, 0, 0), whole = port_of(PRONY_INT64, 4, 1, 3, 20, 20),
                     bytes = port_of(PRONY_UINT8, 4, 1, 3, 20, 20);
    static const char *const specs[] = {"",          "resize",       "resize=",       "resize=0",       "resize=-4",
                                        "crop=8x",   "crop=8x8x8",   "crop=99999999", "normalize=2",    "mean=1:2",
                                        "std=0",     "std=nan",      "mean=1:2:3:4",  "filter=nearest", "channels=grb",
                                        "layout=hw", "resize=none,", "colour=red",    "crop=5,,crop=5"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        assert_int_equal(refuse("rgb.png", &any, specs[i], strcmp(specs[i], "std=0") ? "'" : "std 0"),
                         PRONY_INVALID_ARGUMENT);
    assert_int_equal(refuse("rgb.png", &fixed, "resize=none,crop=30", "smaller than the crop of 30 x 30"),
                     PRONY_SHAPE_MISMATCH);
    assert_int_equal(refuse("rgb.png", &fixed, "crop=10", "10 high and 10 wide"), PRONY_SHAPE_MISMATCH);
    assert_int_equal(refuse("rgb.png", &five, "0..1", "channels"), PRONY_SHAPE_MISMATCH);
    assert_int_equal(refuse("rgb.png", &flat, "0..1", "3 or 4 dimensions"), PRONY_SHAPE_MISMATCH);
    assert_int_equal(refuse("rgb.png", &whole, "0..1", "int64"), PRONY_SHAPE_MISMATCH);
    assert_int_equal(refuse("rgb.png", &bytes, "-1..1", "integers"), PRONY_SHAPE_MISMATCH);
    assert_int_equal(refuse("rgb.png", &grey, "imagenet", "three channels"), PRONY_SHAPE_MISMATCH);
    assert_int_equal(refuse("none.png", &any, "0..1", "none.png"), PRONY_IO_ERROR);
    assert_int_equal(refuse("make_images.py", &any, "0..1", "not a PNG or JPEG"), PRONY_INVALID_ARGUMENT);
    assert_int_equal(refuse("rgb.png", &any, "resize=65536", "65536"), PRONY_LIMIT);
}

/* ---- damage ---- */

static uint8_t *read_file(const char *file, size_t *size)
{
    char path[512];
    snprintf(path, sizeof path, FOLDER "%s", file);
    FILE *from = fopen(path, "rb");
    assert_non_null(from);
    uint8_t *data = malloc(1 << 16);
    assert_non_null(data);
    *size = fread(data, 1, 1 << 16, from);
    fclose(from);
    return data;
}

static prony_status decode(const uint8_t *data, size_t size, uint64_t max_pixels, prony_error *error)
{
    prony_value_info port = port_of(PRONY_UINT8, 4, 1, 3, -1, -1);
    prony_image_options options = PRONY_IMAGE_OPTIONS_INIT;
    prony_value *value = NULL;
    options.max_pixels = max_pixels;
    memset(error, 0, sizeof *error);
    uint8_t *exact = malloc(size ? size : 1); /* so that reading beyond its end is seen */
    assert_non_null(exact);
    memcpy(exact, data, size);
    prony_status status = prony_image_load_memory(&value, "an image", exact, size, &port, &options, error);
    assert_true((status == PRONY_OK) == (value != NULL));
    if (status != PRONY_OK) assert_non_null(strstr(error->message, "an image"));
    prony_value_release(value);
    free(exact);
    return status;
}

static const char *const files[] = {"rgb.png",         "grey.png",  "bits.png",   "palette.png",    "rgba.png",
                                    "grey_alpha.png",  "rgb16.png", "grey16.png", "interlaced.png", "rgb.jpg",
                                    "progressive.jpg", "grey.jpg",  "cmyk.jpg"};

static void files_cut_short(void **state)
{
    (void)state;
    prony_error error;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        SCENARIO_NAMED(f, files[f]);
        size_t size;
        uint8_t *data = read_file(files[f], &size);
        assert_int_equal(decode(data, size, 0, &error), PRONY_OK);
        for (size_t length = 0; length < size - 32; length += 1 + length / 64)
            if (decode(data, length, 0, &error) != PRONY_INVALID_ARGUMENT)
                fail_msg("%s cut to %zu of %zu bytes: %s", files[f], length, size, error.message);
        free(data);
    }
}

static void damaged_bytes(void **state)
{
    (void)state;
    uint64_t random = 1;
    prony_error error;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        SCENARIO_NAMED(f, files[f]);
        size_t size;
        uint8_t *data = read_file(files[f], &size), *copy = malloc(size);
        assert_non_null(copy);
        for (int round = 0; round < 400; round++) {
            memcpy(copy, data, size);
            for (int change = 0; change <= round % 4; change++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                copy[(random >> 33) % size] = (uint8_t)(random >> 20);
            }
            prony_status status = decode(copy, size, 1 << 20, &error);
            assert_true(status == PRONY_OK || status == PRONY_INVALID_ARGUMENT || status == PRONY_LIMIT);
        }
        free(copy);
        free(data);
    }
}

static uint32_t crc_of(const uint8_t *data, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void put_big(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* IHDR's extents stand at byte 16, its checksum at 29. */
static void claim_png(uint8_t *data, uint32_t width, uint32_t height)
{
    put_big(data + 16, width);
    put_big(data + 20, height);
    put_big(data + 29, crc_of(data + 12, 17));
}

static void claim_jpeg(uint8_t *data, size_t size, uint16_t width, uint16_t height)
{
    for (size_t i = 2; i + 9 < size; i++) {
        if (data[i] != 0xff || (data[i + 1] != 0xc0 && data[i + 1] != 0xc2)) continue;
        data[i + 5] = (uint8_t)(height >> 8);
        data[i + 6] = (uint8_t)height;
        data[i + 7] = (uint8_t)(width >> 8);
        data[i + 8] = (uint8_t)width;
        return;
    }
    fail_msg("no frame");
}

/* The reader never allocates the size that these headers claim. */
static void headers_that_lie(void **state)
{
    (void)state;
    prony_error error;
    size_t size;
    uint8_t *data = read_file("rgb.png", &size);
    assert_int_equal(decode(data, size, 29 * 37, &error), PRONY_OK);
    assert_int_equal(decode(data, size, 29 * 37 - 1, &error), PRONY_LIMIT);
    static const uint32_t extents[][2] = {{20000, 20000}, {1000000, 1000000}, {0x7fffffff, 0x7fffffff}, {0, 5}, {5, 0}};
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++) {
        SCENARIO(i);
        claim_png(data, extents[i][0], extents[i][1]);
        assert_int_equal(decode(data, size, UINT64_MAX, &error), PRONY_INVALID_ARGUMENT);
    }
    free(data);
    for (int progressive = 0; progressive < 2; progressive++) {
        SCENARIO(progressive);
        data = read_file(progressive ? "progressive.jpg" : "rgb.jpg", &size);
        claim_jpeg(data, size, 65500, 65500);
        assert_int_equal(decode(data, size, UINT64_MAX, &error), PRONY_INVALID_ARGUMENT);
        assert_non_null(strstr(error.message, "65500 x 65500"));
        free(data);
    }
}

/* Chunks that are not part of the picture, and that unfold to any size, are skipped: they cost no heap call. */
static void text_is_not_unfolded(void **state)
{
    (void)state;
    enum { BEFORE = 33, TEXT = 24 }; /* signature and IHDR */
    static const uint8_t text[TEXT] = {0, 0,    0,    TEXT - 12, 'z',  'T', 'X', 't',  'k', 0,
                                       0, 0x78, 0x9c, 0x4b,      0x04, 0,   0,   0x62, 0,   0x62};
    prony_error error;
    size_t size;
    uint8_t *data = read_file("rgb.png", &size), *more = malloc(size + TEXT);
    assert_non_null(more);
    memcpy(more, data, BEFORE);
    memcpy(more + BEFORE, text, TEXT);
    put_big(more + BEFORE + TEXT - 4, crc_of(more + BEFORE + 4, TEXT - 8));
    memcpy(more + BEFORE + TEXT, data + BEFORE, size - BEFORE);
    uint64_t calls = prn_heap_calls();
    assert_int_equal(decode(data, size, 0, &error), PRONY_OK);
    uint64_t plain = prn_heap_calls() - calls;
    calls = prn_heap_calls();
    assert_int_equal(decode(more, size + TEXT, 0, &error), PRONY_OK);
    assert_int_equal(prn_heap_calls() - calls, plain);
    free(more);
    free(data);
}

/* Every scan of a progressive image costs a pass over all of it. */
static void too_many_scans(void **state)
{
    (void)state;
    prony_error error;
    size_t size, last = 0, used;
    uint8_t *data = read_file("progressive.jpg", &size), *many = malloc(1 << 20);
    assert_non_null(many);
    for (size_t i = 0; i + 1 < size; i++)
        if (data[i] == 0xff && data[i + 1] == 0xda) last = i;
    assert_true(last > 0);
    memcpy(many, data, used = size - 2);
    for (int scan = 0; scan < 200; scan++) {
        memcpy(many + used, data + last, size - 2 - last);
        used += size - 2 - last;
    }
    memcpy(many + used, data + size - 2, 2);
    assert_int_equal(decode(many, used + 2, 0, &error), PRONY_LIMIT);
    assert_non_null(strstr(error.message, "scans"));
    free(many);
    free(data);
}

/* libpng gets along without some of what it asks for: then the image comes out. */
static void memory_that_fails(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        SCENARIO_NAMED(f, files[f]);
        char path[512];
        uint64_t n = 1;
        snprintf(path, sizeof path, FOLDER "%s", files[f]);
        for (bool failed = true; failed; n++) {
            prony_error error = {0};
            prony_value *value = NULL;
            prony_value_info port = port_of(PRONY_FLOAT32, 4, 1, 1, 16, 16);
            prn_alloc_fail_at(n);
            prony_status status = prony_image_load(&value, path, &port, NULL, &error);
            failed = prn_alloc_failed();
            prn_alloc_fail_at(0);
            if (status != PRONY_OK && status != PRONY_OUT_OF_MEMORY) fail_msg("%s: %s", files[f], error.message);
            if (!failed) assert_int_equal(status, PRONY_OK);
            prony_value_release(value);
        }
        assert_true(n > 5);
    }
}

static void formats(void **state)
{
    (void)state;
    assert_string_equal(prony_image_formats(), "PNG, JPEG");
    assert_true(prony_image_is_file("a/b.PNG") && prony_image_is_file("x.jpeg") && prony_image_is_file("x.y.JPG"));
    assert_false(prony_image_is_file("png") || prony_image_is_file("x.npy") || prony_image_is_file("x.png.npy"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(like_pillow),     cmocka_unit_test(normalisation_and_layout),
        cmocka_unit_test(what_is_refused), cmocka_unit_test(files_cut_short),
        cmocka_unit_test(damaged_bytes),   cmocka_unit_test(headers_that_lie),
        cmocka_unit_test(too_many_scans),  cmocka_unit_test(memory_that_fails),
        cmocka_unit_test(formats),         cmocka_unit_test(text_is_not_unfolded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

/* Formats that are not built in are refused by name. */
static void says_what_is_missing(void **state)
{
    (void)state;
    static const struct {
        const char *file, *format, *option;
    } images[] = {{"rgb.png", "PNG", "PRONY_PNG"}, {"rgb.jpg", "JPEG", "PRONY_JPEG"}};
    prony_value_info port = {.name = "x", .dtype = PRONY_FLOAT32, .shape = {4, {1, 3, 8, 8}}};
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
        SCENARIO_NAMED(i, images[i].file);
        char path[512];
        prony_error error = {0};
        prony_value *value = NULL;
        snprintf(path, sizeof path, FOLDER "%s", images[i].file);
        prony_status status = prony_image_load(&value, path, &port, NULL, &error);
        if (strstr(prony_image_formats(), images[i].format)) {
            assert_int_equal(status, PRONY_OK);
        } else {
            assert_int_equal(status, PRONY_UNSUPPORTED);
            assert_non_null(strstr(error.message, images[i].option));
        }
        prony_value_release(value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(says_what_is_missing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
