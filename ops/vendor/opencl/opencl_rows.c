/* Implements opencl_rows.h. */
#include "ops/vendor/opencl/opencl_rows.h"

#ifdef PRN_HAVE_OPENCL
#include "ops/vendor/opencl/opencl_launch.h"

enum { GROUP = 128, AXES = 9, LOCAL_BYTES = 4096 };

/* As rows.cl has them. */
typedef struct lines {
    cl_uint rows, length, inner, parts, across;
} lines;

typedef struct norm {
    cl_uint run, period, skip_rows;
    cl_float epsilon;
} norm;

typedef struct axes {
    cl_int kept, reduced;
    cl_uint kept_extent[AXES], kept_stride[AXES], reduced_extent[AXES], reduced_stride[AXES];
} axes;

bool prn_opencl_rows_supported(const prony_context *context)
{
    return prn_opencl_takes(context, true) && prn_opencl_group_fits(context, GROUP, LOCAL_BYTES) &&
           context->input_count + context->output_count <= PRN_OPENCL_OPERANDS;
}

bool prn_opencl_reduce_supported(const prony_context *context)
{
    return prn_opencl_takes(context, false) && prn_opencl_group_fits(context, GROUP, LOCAL_BYTES);
}

/* The least power of two that is at least n, at most GROUP. */
static uint32_t parts_for(int64_t n)
{
    uint32_t parts = 1;
    while (parts < GROUP && parts < n) parts *= 2;
    return parts;
}

/* The division of rows among a group's items: `neighbours` rows lie beside each other; 1: elements of a row do. */
static lines lines_of(int64_t rows, int64_t length, int64_t inner, int64_t neighbours)
{
    lines p = {.rows = (cl_uint)rows, .length = (cl_uint)length, .inner = (cl_uint)inner, .across = neighbours > 1};
    const uint32_t most = GROUP / parts_for(neighbours), parts = parts_for(length);
    p.parts = parts < most ? parts : most;
    return p;
}

static void lines_launch(opencl_builder *b, const lines *p)
{
    const size_t each = GROUP / p->parts;
    prn_opencl_work(b, (p->rows + each - 1) / each * GROUP, 1, 1, GROUP, 1, 1);
}

/* A kernel of input 0 and output 0 in rows along `length`; the caller adds arguments and the work. */
static opencl_builder begin_lines(const prony_context *context, const opencl_defines *defines, const char *kernel,
                                  int64_t length, int64_t inner, lines *p)
{
    const int64_t count = prony_shape_numel(&context->inputs[0]->shape);
    opencl_builder b = prn_opencl_begin(context, 1);
    *p = lines_of(count / length, length, inner, inner);
    prn_opencl_launch(&b, &prn_opencl_rows, defines, kernel);
    prn_opencl_input(&b, 0, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, p, sizeof *p);
    lines_launch(&b, p);
    return b;
}

prony_status prn_opencl_softmax_prepare(const prony_context *context, prn_prepared *out, bool logarithm, int64_t length,
                                        int64_t inner)
{
    lines p;
    opencl_defines defines = {0};
    prn_opencl_define(&defines, "#define SOFTMAX\n%s", logarithm ? "#define LOGARITHM\n" : "");
    opencl_builder b = begin_lines(context, &defines, "softmax", length, inner, &p);
    return prn_opencl_end(&b, out);
}

prony_status prn_opencl_lp_norm_prepare(const prony_context *context, prn_prepared *out, int64_t p, int64_t length,
                                        int64_t inner)
{
    lines rows;
    opencl_defines defines = {0};
    prn_opencl_define(&defines, "#define LP %d\n", (int)p);
    opencl_builder b = begin_lines(context, &defines, "divide_by_length", length, inner, &rows);
    return prn_opencl_end(&b, out);
}

prony_status prn_opencl_arg_prepare(const prony_context *context, prn_prepared *out, int64_t length, int64_t inner,
                                    bool smallest, bool last)
{
    lines p;
    opencl_defines defines = {0};
    prn_opencl_define(&defines, "#define EXTREME (a %c b)\n", smallest ? '<' : '>');
    opencl_builder b = begin_lines(context, &defines, "extreme_index", length, inner, &p);
    prn_opencl_int(&b, last);
    return prn_opencl_end(&b, out);
}

/* ---- normalisations ---- */

static bool has_input(const prony_context *context, int input)
{
    return input >= 0 && prn_input(context, (size_t)input);
}

static bool has_output(const prony_context *context, int output)
{
    return output >= 0 && prn_output(context, (size_t)output);
}

/* Operands in the order of the kernel's arguments; operands that the node lacks are left out. */
prony_status prn_opencl_norm_prepare(const prony_context *context, prn_prepared *out, const prn_opencl_norm *from)
{
    const int inputs[] = {0, from->skip, from->added, from->scale, from->bias};
    static const char *const input_names[] = {"NORM", "SKIP", "ADDED", "SCALE", "BIAS"};
    const int outputs[] = {0, from->mean_output, from->inverse_output, from->sum_output};
    static const char *const output_names[] = {"Y", "MEAN_OUT", "INVERSE_OUT", "SUM_OUT"};
    enum { INPUTS = sizeof inputs / sizeof *inputs, OUTPUTS = sizeof outputs / sizeof *outputs };
    const int64_t count = prony_shape_numel(&context->inputs[0]->shape);
    const lines p = lines_of(count / from->length, from->length, 1, 1);
    const norm n = {(cl_uint)from->run, (cl_uint)from->period, (cl_uint)(from->skip_rows > 0 ? from->skip_rows : 1),
                    from->epsilon};
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    for (int i = 0; i < INPUTS; i++)
        if (has_input(context, inputs[i])) prn_opencl_define(&defines, "#define %s\n", input_names[i]);
    for (int k = 0; k < OUTPUTS; k++)
        if (has_output(context, outputs[k])) prn_opencl_define(&defines, "#define %s\n", output_names[k]);
    if (from->rms) prn_opencl_define(&defines, "#define RMS\n");
    prn_opencl_define_finish(&defines, context);
    prn_opencl_launch(&b, &prn_opencl_rows, &defines, "normalise");
    for (int i = 0; i < INPUTS; i++)
        if (has_input(context, inputs[i])) prn_opencl_input(&b, (size_t)inputs[i], 0);
    for (int k = 0; k < OUTPUTS; k++)
        if (has_output(context, outputs[k])) prn_opencl_output(&b, (size_t)outputs[k], 0);
    prn_opencl_argument(&b, &p, sizeof p);
    prn_opencl_argument(&b, &n, sizeof n);
    prn_opencl_finish_operands(&b);
    lines_launch(&b, &p);
    return prn_opencl_end(&b, out);
}

prony_status prn_opencl_batch_norm_prepare(const prony_context *context, prn_prepared *out, int64_t run,
                                           int64_t channels, float epsilon)
{
    enum { ITEMS = 64 };
    const int64_t count = prony_shape_numel(&context->inputs[0]->shape);
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    prn_opencl_define(&defines, "#define BATCH_NORM\n");
    prn_opencl_launch(&b, &prn_opencl_rows, &defines, "batch_norm");
    for (size_t i = 0; i < 5; i++) prn_opencl_input(&b, i, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_int(&b, count);
    prn_opencl_int(&b, run);
    prn_opencl_int(&b, channels);
    prn_opencl_float(&b, epsilon);
    prn_opencl_work(&b, (size_t)count, 1, 1, ITEMS, 1, 1);
    return prn_opencl_end(&b, out);
}

/* ---- reductions ---- */

/* The kept axes number the rows, the reduced ones the elements of a row. Kept and reduced axes of a chain alternate, so
 * AXES of each are enough. */
static axes axes_of(const prony_context *context, const prn_chain *chain, lines *p)
{
    axes q = {0};
    int64_t rows = 1, length = 1, stride = prony_shape_numel(&context->inputs[0]->shape);
    for (int d = 0; d < chain->rank; d++) {
        stride /= chain->dim[d];
        if (chain->reduced[d]) {
            q.reduced_extent[q.reduced] = (cl_uint)chain->dim[d];
            q.reduced_stride[q.reduced++] = (cl_uint)stride;
            length *= chain->dim[d];
        } else {
            q.kept_extent[q.kept] = (cl_uint)chain->dim[d];
            q.kept_stride[q.kept++] = (cl_uint)stride;
            rows *= chain->dim[d];
        }
    }
    const bool across = chain->rank > 0 && !chain->reduced[chain->rank - 1];
    *p = lines_of(rows, length, 1, across ? chain->dim[chain->rank - 1] : 1);
    return q;
}

/* Launches a kernel of input 0 and output 0 over both kinds of axes. */
static prony_status launch_axes(const prony_context *context, prn_prepared *out, const prn_chain *chain,
                                const opencl_defines *defines, const char *kernel)
{
    lines p;
    const axes q = axes_of(context, chain, &p);
    opencl_builder b = prn_opencl_begin(context, 1);
    prn_opencl_launch(&b, &prn_opencl_rows, defines, kernel);
    prn_opencl_input(&b, 0, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, &p, sizeof p);
    prn_opencl_argument(&b, &q, sizeof q);
    lines_launch(&b, &p);
    return prn_opencl_end(&b, out);
}

prony_status prn_opencl_reduce_prepare(const prony_context *context, prn_prepared *out, const prn_opencl_fold *fold,
                                       const prn_chain *chain)
{
    opencl_defines defines = {0};
    prn_opencl_define(&defines, "#define START (%s)\n#define EACH (%s)\n#define RESULT (%s)\n", fold->start, fold->each,
                      fold->result);
    if (fold->combine) prn_opencl_define(&defines, "#define COMBINE (%s)\n", fold->combine);
    if (fold->top) prn_opencl_define(&defines, "#define TOP\n");
    return launch_axes(context, out, chain, &defines, "reduce");
}

prony_status prn_opencl_mvn_prepare(const prony_context *context, prn_prepared *out, const prn_chain *chain,
                                    bool divided)
{
    opencl_defines defines = {0};
    prn_opencl_define(&defines, "#define MVN %d\n", divided);
    return launch_axes(context, out, chain, &defines, "normalise_axes");
}

prony_status prn_opencl_lrn_prepare(const prony_context *context, prn_prepared *out, const prn_opencl_lrn *lrn)
{
    enum { ITEMS = 64 };
    const int64_t count = prony_shape_numel(&context->inputs[0]->shape),
                  ints[] = {count, lrn->channels, lrn->pixels, lrn->before, lrn->after};
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    prn_opencl_define(&defines, "#define LRN\n");
    prn_opencl_launch(&b, &prn_opencl_rows, &defines, "lrn");
    prn_opencl_input(&b, 0, 0);
    prn_opencl_output(&b, 0, 0);
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) prn_opencl_int(&b, ints[i]);
    prn_opencl_float(&b, lrn->bias);
    prn_opencl_float(&b, lrn->factor);
    prn_opencl_float(&b, lrn->beta);
    prn_opencl_work(&b, (size_t)count, 1, 1, ITEMS, 1, 1);
    return prn_opencl_end(&b, out);
}
#endif
