/* ImageDecoder: the bytes of an image file to [height, width, channels] of uint8, red first, blue first or grey. Bytes
 * that cannot be read give no pixels, as the specification wants; a format that this build does not know is refused by
 * name. */
#include "base/threads/cancel.h"
#include "base/threads/parallel.h"
#include "ops/op.h"

#include <string.h>

typedef struct decoder_params {
    const char *pixel_format;
} decoder_params;

typedef enum pixel_format { FORMAT_RGB, FORMAT_BGR, FORMAT_GREY, FORMATS } pixel_format;

static pixel_format format_of(const prony_context *context)
{
    static const char *const names[FORMATS] = {"RGB", "BGR", "Grayscale"};
    int format = 0;
    while (format < FORMATS && strcmp(((const decoder_params *)context->params)->pixel_format, names[format]) != 0)
        format++;
    return (pixel_format)format;
}

static prony_status image_decoder_check(const prony_context *context)
{
    if (format_of(context) != FORMATS) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "pixel_format is '%s', wanted RGB, BGR or Grayscale",
                      ((const decoder_params *)context->params)->pixel_format);
}

static prony_status image_decoder_infer(const prony_context *context)
{
    const prony_shape open = prn_shape_unknown();
    PRN_TRY(prn_check_type(context, 0, PRN_TYPE(PRONY_UINT8)));
    PRN_TRY(prn_check_rank(context, 0, 1, 1));
    prn_set_output(context, 0, PRONY_UINT8, &open);
    return PRONY_OK;
}

typedef struct decoder_job {
    prn_pixels image;
    pixel_format format;
    uint8_t *y;
} decoder_job;

/* Grey by the weights of ITU-R 601-2 in 16 bits, 0.299, 0.587 and 0.114. */
static uint8_t image_decoder_grey_of(const uint8_t *rgb)
{
    return (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
}

static void image_decoder_convert_rows(void *argument, int64_t begin, int64_t end)
{
    const decoder_job *job = argument;
    const int from = job->image.channels, to = job->format == FORMAT_GREY ? 1 : 3,
              last = job->format == FORMAT_BGR ? 2 : 0;
    for (int64_t row = begin; row < end && !prn_cancelled(); row++) {
        const uint8_t *x = job->image.data + row * job->image.width * from;
        uint8_t *y = job->y + row * job->image.width * to;
        for (int64_t i = 0; i < job->image.width; i++, x += from, y += to) {
            if (to == 1) {
                y[0] = from == 1 ? x[0] : image_decoder_grey_of(x);
            } else {
                for (int c = 0; c < 3; c++) y[c] = from == 1 ? x[0] : x[last ? 2 - c : c];
            }
        }
    }
}

static prony_status image_decoder_run(const prony_context *context)
{
    const prony_value *bytes = context->inputs[0];
    decoder_job job = {.format = format_of(context)};
    PRN_TRY(
        context->services->image_decode(context, bytes->data, (size_t)prony_shape_numel(&bytes->shape), &job.image));
    context->outputs[0]->shape =
        (prony_shape){3, {job.image.height, job.image.width, job.format == FORMAT_GREY ? 1 : 3}};
    const prony_status status = context->services->output_alloc(context, 0);
    job.y = context->outputs[0]->data;
    if (status == PRONY_OK && job.image.data)
        prn_parallel_items(context->threads, job.image.height, 8 * job.image.height * job.image.width,
                           image_decoder_convert_rows, &job);
    context->services->image_drop(&job.image);
    return status;
}

static const prn_param params[] = {PRN_STRING(decoder_params, pixel_format, "RGB"), {0}};
static const prn_kernel kernels[] = {
    {.name = "image_decoder_reference", .backend = "reference", .run = image_decoder_run}, {0}};

// clang-format off
const prn_op prn_ops_image_decoder[] = {
    {.name = "ImageDecoder", .since_opset = 20, .inputs = {1, 1}, .flags = PRN_OP_DATA_SHAPE, .params = params,
     .params_bytes = sizeof(decoder_params), .check = image_decoder_check, .infer = image_decoder_infer, .cost = prn_cost_none,
     .cost_text = "0", .kernels = kernels},
    {0}};
// clang-format on
