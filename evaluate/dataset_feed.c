/* Batches of a dataset as a session's inputs. A feed owns a batch of each input that the data serve; samples of a batch
 * are decoded side by side on the session's threads, each into a place of its own, so that nothing depends on their
 * number. */
#include "evaluate/dataset.h"

#include "base/os/file.h"
#include "base/threads/parallel.h"
#include "base/shape.h"
#include "engine/session/session.h"
#include "loaders/tensors/tensor_file.h"

#include <stdio.h>
#include <string.h>

typedef struct feed_input {
    const prony_value_info *port;
    const prony_value *array; /* of all samples; NULL: files */
    bool images, whole;       /* whole: the input has no dimension for a batch */
    prn_image_target target;  /* of images */
    prony_value batch;
    size_t sample_bytes;
} feed_input;

struct prn_feed {
    const prony_dataset *data;
    feed_input *inputs;
    size_t count;
    int64_t batch;
    int threads;
    prony_error *errors; /* per place in the batch */
};

/* Filling an input from sample `first` on. */
typedef struct filling {
    const prn_feed *feed;
    feed_input *input;
    int64_t first;
} filling;

/* ---- samples ---- */

static prony_status with_file(prony_status status, const char *path, prony_error *error)
{
    if (status != PRONY_OK && status != PRONY_OUT_OF_MEMORY && error && !strstr(error->message, path))
        prn_error_prefix(error, "'%.400s'", path);
    return status;
}

static prony_status dataset_feed_decode(prn_image *out, const feed_input *in, const prony_dataset *data, int64_t index,
                                        prony_error *error)
{
    if (in->array) {
        prony_shape shape = in->array->shape;
        size_t bytes = prn_value_bytes(in->array) / (size_t)shape.dim[0];
        memmove(shape.dim, shape.dim + 1, sizeof *shape.dim * (PRONY_MAX_RANK - 1));
        shape.rank--;
        return prn_image_from_array(out, (const uint8_t *)in->array->data + (size_t)index * bytes, &shape, error);
    }
    prn_map map;
    const char *path = data->files[index];
    PRN_TRY(prn_map_open(&map, path, error));
    prony_status status = prn_image_decode(out, map.data, map.size, data->image.max_pixels, error);
    prn_map_close(&map);
    return with_file(status, path, error);
}

static prony_status put_image(const feed_input *in, const prony_dataset *data, int64_t place, int64_t index,
                              prony_error *error)
{
    prn_image image;
    prn_image_window window;
    prn_image_target target = in->target;
    PRN_TRY(dataset_feed_decode(&image, in, data, index, error));
    target.value.data = in->batch.data;
    prony_status status = prn_image_fit(&window, &target, &image, &data->image, error);
    if (status == PRONY_OK) status = prn_image_write(&target, place, &image, &window, &data->image, error);
    prn_image_free(&image);
    return in->array ? status : with_file(status, data->files[index], error);
}

/* A sample in a file may stand in a batch of one. */
static bool same_sample(const feed_input *in, const prony_value *value)
{
    int rank = in->batch.shape.rank - (in->whole ? 0 : 1), skip = value->shape.rank - rank;
    if (value->dtype != in->batch.dtype || (skip != 0 && skip != 1) || (skip == 1 && value->shape.dim[0] != 1))
        return false;
    for (int d = 0; d < rank; d++)
        if (value->shape.dim[d + skip] != in->batch.shape.dim[d + (in->whole ? 0 : 1)]) return false;
    return true;
}

static prony_status load_file(prony_value **out, const feed_input *in, const char *path, prony_error *error)
{
    PRN_TRY(prn_value_file_load(out, path, PRONY_TENSOR, error));
    prony_status status = prn_dataset_convert(*out, in->port, error);
    if (status == PRONY_OK && (*out)->dtype == PRONY_STRING) /* a batch would point into the file's value */
        status = prn_fail(error, PRONY_UNSUPPORTED, "text samples must be in one array (.npz), not one per file");
    if (status != PRONY_OK) prn_value_free(*out);
    return with_file(status, path, error);
}

static prony_status put_file(const feed_input *in, const char *path, int64_t place, prony_error *error)
{
    prony_value *value = NULL;
    PRN_TRY(load_file(&value, in, path, error));
    prony_status status = PRONY_OK;
    if (same_sample(in, value)) {
        memcpy((char *)in->batch.data + (size_t)place * in->sample_bytes, value->data, in->sample_bytes);
    } else {
        char text[PRN_SHAPE_TEXT_BYTES], want[PRN_SHAPE_TEXT_BYTES];
        status = prn_fail(error, PRONY_SHAPE_MISMATCH, "'%.400s' is %s, but the batches are %s", path,
                          prn_value_text(value, text), prn_value_text(&in->batch, want));
    }
    prn_value_free(value);
    return status;
}

static void dataset_feed_fill_place(void *argument, int64_t place)
{
    const filling *f = argument;
    const feed_input *in = f->input;
    const prony_dataset *data = f->feed->data;
    prony_error *error = &f->feed->errors[place];
    int64_t index = f->first + place;
    prony_status status = PRONY_OK;
    if (in->images && (in->array || prn_image_name(data->files[index])))
        status = put_image(in, data, place, index, error);
    else if (in->array)
        memcpy((char *)in->batch.data + (size_t)place * in->sample_bytes,
               (const char *)in->array->data + (size_t)index * in->sample_bytes, in->sample_bytes);
    else
        status = put_file(in, data->files[index], place, error);
    error->status = status;
}

prony_status prn_feed_bind(prn_feed *feed, prony_session *session, int64_t first, prony_error *error)
{
    int64_t left = feed->data->count - first, real = left < feed->batch ? left : feed->batch;
    for (size_t i = 0; i < feed->count; i++) {
        feed_input *in = &feed->inputs[i];
        filling f = {feed, in, first};
        prn_parallel_tasks(feed->threads, real, dataset_feed_fill_place, &f);
        for (int64_t place = 0; place < real; place++) {
            if (feed->errors[place].status == PRONY_OK) continue;
            if (error) *error = feed->errors[place];
            return feed->errors[place].status;
        }
        char *data = in->batch.data;
        for (int64_t place = real; place < feed->batch; place++)
            memcpy(data + (size_t)place * in->sample_bytes, data + (size_t)(real - 1) * in->sample_bytes,
                   in->sample_bytes);
        PRN_TRY(prony_session_set_input(session, in->port->name, &in->batch, error));
    }
    return PRONY_OK;
}

/* ---- creation ---- */

/* An input's shape by the session's options; the batch follows from all inputs together. */
static prony_status wanted_shape(prony_shape *out, const prony_value_info *port, const prony_session *session,
                                 prony_error *error)
{
    const char *file = session->model->file->name;
    prony_session_options options = session->options;
    prn_dims dims = {0};
    options.batch = 0;
    prony_status status = prn_port_given(port, &options, &dims, file, error);
    if (status == PRONY_OK) status = prn_port_fix(out, port, &options, &dims, file, error);
    prn_dims_free(&dims);
    return status;
}

/* Extents of one sample, from an array, an image or a .npy file; and whether the input takes it without a batch. */
static prony_status sample_shape(prony_shape *out, feed_input *in, const prony_dataset *data, prony_error *error)
{
    prony_value *value = NULL;
    const prony_shape *from = in->array ? &in->array->shape : NULL;
    int rank = in->port->shape.rank;
    if (!from) {
        PRN_TRY(load_file(&value, in, data->files[0], error));
        from = &value->shape;
    }
    *out = *from;
    bool counted = in->array || (from->rank == rank && rank > 0 && from->dim[0] == 1);
    if (counted) {
        memmove(out->dim, out->dim + 1, sizeof *out->dim * (PRONY_MAX_RANK - 1));
        out->rank--;
    }
    in->batch.dtype = value ? value->dtype : in->array->dtype;
    prn_value_free(value);
    in->whole = rank >= 0 && rank == out->rank;
    if (rank < 0 || in->whole || rank == out->rank + 1) return PRONY_OK;
    char text[PRN_SHAPE_TEXT_BYTES];
    return prn_fail(error, PRONY_SHAPE_MISMATCH, "samples are %s, but input '%s' has %d dimensions",
                    prn_shape_text(out, text), in->port->name, rank);
}

static prony_status agree_batch(int64_t *batch, const feed_input *in, int64_t fixed, int64_t asked, prony_error *error)
{
    if (in->whole) fixed = 1;
    if (fixed >= 0 && asked > 0 && asked != fixed)
        return prn_fail(error, PRONY_SHAPE_MISMATCH,
                        "input '%s' takes %lld sample%s per run, so batch %lld cannot be set", in->port->name,
                        (long long)fixed, fixed == 1 ? "" : "s", (long long)asked);
    if (fixed == 0 || (fixed > 0 && *batch > 0 && *batch != fixed))
        return prn_fail(error, PRONY_SHAPE_MISMATCH,
                        "input '%s' takes %lld samples per run, but other inputs take %lld", in->port->name,
                        (long long)fixed, (long long)*batch);
    if (fixed > 0) *batch = fixed;
    return PRONY_OK;
}

/* The first sample says what size the others have to be. */
static prony_status describe_images(feed_input *in, const prony_dataset *data, prony_error *error)
{
    prn_image image;
    prn_image_window window;
    PRN_TRY(dataset_feed_decode(&image, in, data, 0, error));
    prony_status status = prn_image_fit(&window, &in->target, &image, &data->image, error);
    prn_image_free(&image);
    return in->array ? status : with_file(status, data->files[0], error);
}

static prony_status dataset_feed_describe(feed_input *in, prn_feed *feed, prony_session *session, int64_t *batch,
                                          int64_t asked, prony_error *error)
{
    const prony_dataset *data = feed->data;
    prony_value_info port = *in->port;
    PRN_TRY(wanted_shape(&port.shape, in->port, session, error));
    int64_t fixed = port.shape.rank > 0 ? port.shape.dim[0] : -1;
    in->images = in->images || (!in->array && prn_image_name(data->files[0]));
    if (in->images) {
        PRN_TRY(prn_image_target_make(&in->target, &port, &data->image, error));
        in->whole = in->target.value.shape.rank == 3;
        PRN_TRY(describe_images(in, data, error));
        in->batch = in->target.value;
    } else {
        prony_shape sample;
        PRN_TRY(sample_shape(&sample, in, data, error));
        in->batch.shape = sample;
        if (!in->whole) {
            memmove(in->batch.shape.dim + 1, sample.dim, sizeof *sample.dim * (PRONY_MAX_RANK - 1));
            in->batch.shape.rank++;
        }
    }
    return agree_batch(batch, in, fixed, asked, error);
}

static prony_status dataset_feed_reserve(feed_input *in, int64_t batch, prony_error *error)
{
    if (!in->whole) in->batch.shape.dim[0] = batch;
    size_t bytes = prn_value_bytes(&in->batch);
    if (bytes == SIZE_MAX) return prn_fail(error, PRONY_LIMIT, "input '%s': a batch is too large", in->port->name);
    in->sample_bytes = bytes / (size_t)batch;
    in->batch.data = prn_alloc_aligned(64, bytes ? bytes : 1);
    return in->batch.data ? PRONY_OK : prn_no_memory(error);
}

static prony_status fill_feed(prn_feed *feed, prony_session *session, int64_t *batch, prony_error *error)
{
    const prony_dataset *data = feed->data;
    int64_t asked = *batch > 0 ? *batch : session->options.batch;
    *batch = 0;
    for (size_t i = 0; i < feed->count; i++) {
        feed_input *in = &feed->inputs[i];
        const prn_dataset_array *array = data->files ? NULL : &data->arrays[i];
        in->port = prony_model_input(session->model, array ? array->input : 0);
        in->array = array ? array->value : NULL;
        in->images = array && array->images;
        PRN_TRY(dataset_feed_describe(in, feed, session, batch, asked, error));
    }
    if (*batch == 0) *batch = asked > 0 ? asked : 1;
    feed->batch = *batch;
    for (size_t i = 0; i < feed->count; i++) PRN_TRY(dataset_feed_reserve(&feed->inputs[i], *batch, error));
    feed->errors = prn_calloc((size_t)*batch, sizeof *feed->errors);
    return feed->errors ? PRONY_OK : prn_no_memory(error);
}

prony_status prn_feed_create(prn_feed **out, const prony_dataset *data, prony_session *session, int64_t *batch,
                             prony_error *error)
{
    prn_feed *feed = prn_calloc(1, sizeof *feed);
    if (!feed) return prn_no_memory(error);
    feed->data = data;
    feed->threads = session->threads;
    feed->count = data->files ? 1 : data->array_count;
    feed->inputs = prn_calloc(feed->count, sizeof *feed->inputs);
    prony_status status = feed->inputs ? fill_feed(feed, session, batch, error) : prn_no_memory(error);
    if (status == PRONY_OK)
        *out = feed;
    else
        prn_feed_release(feed);
    return status;
}

void prn_feed_release(prn_feed *feed)
{
    if (!feed) return;
    for (size_t i = 0; feed->inputs && i < feed->count; i++) prn_free_aligned(feed->inputs[i].batch.data);
    prn_free(feed->inputs);
    prn_free(feed->errors);
    prn_free(feed);
}
