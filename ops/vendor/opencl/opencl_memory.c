/* Buffers of an OpenCL device by address, copies, and constants that plans share. */
#include "ops/device.h"
#include "ops/vendor/opencl/opencl.h"

#ifdef PRN_HAVE_OPENCL
#include "base/memory/alloc.h"
#include "ops/vendor/opencl/opencl_device.h"

#include <string.h>
#include <sys/mman.h>

/* ---- buffers ---- */

/* The first block behind `address`. */
static size_t block_above(const prn_device *d, const void *address)
{
    size_t low = 0, high = d->block_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if ((uintptr_t)d->blocks[middle].address <= (uintptr_t)address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

cl_mem prn_opencl_find(prn_device *d, const void *address, size_t *offset)
{
    cl_mem memory = NULL;
    pthread_mutex_lock(&d->lock);
    const size_t above = block_above(d, address);
    if (above > 0) {
        const opencl_block *b = &d->blocks[above - 1];
        *offset = (size_t)((const char *)address - (const char *)b->address);
        if (*offset < b->bytes) memory = b->memory;
    }
    pthread_mutex_unlock(&d->lock);
    return memory;
}

static bool block_add(prn_device *d, const opencl_block *block)
{
    if (!PRN_GROW(d->blocks, d->block_capacity, d->block_count + 1)) return false;
    const size_t at = block_above(d, block->address);
    memmove(&d->blocks[at + 1], &d->blocks[at], (d->block_count - at) * sizeof *d->blocks);
    d->blocks[at] = *block;
    d->block_count++;
    if (!block->counted) return true;
    d->use.buffers++;
    d->use.bytes += block->bytes;
    if (d->use.bytes > d->use.peak_bytes) d->use.peak_bytes = d->use.bytes;
    return true;
}

/* A buffer counts until the last of its blocks goes. Returns the bytes that count no more. */
static size_t block_uncount(prn_device *d, const opencl_block *gone)
{
    if (!gone->counted) return 0;
    for (size_t i = 0; i < d->block_count; i++) {
        if (d->blocks[i].memory != gone->memory) continue;
        d->blocks[i].counted = true;
        return 0;
    }
    d->use.buffers--;
    d->use.bytes -= gone->bytes;
    return gone->bytes;
}

/* A range of addresses for the block's buffer. The block's reference to the buffer is released after a failure. */
static void *block_map(prn_device *d, opencl_block *block)
{
    block->address = mmap(NULL, block->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block->address != MAP_FAILED) {
        pthread_mutex_lock(&d->lock);
        const bool added = block_add(d, block);
        pthread_mutex_unlock(&d->lock);
        if (added) return block->address;
        munmap(block->address, block->bytes);
    }
    prn_opencl.clReleaseMemObject(block->memory);
    return NULL;
}

/* The driver may refuse memory when a buffer is made, or when it is first written. */
static void count_refusal(prn_device *d)
{
    pthread_mutex_lock(&d->lock);
    d->use.refusals++;
    pthread_mutex_unlock(&d->lock);
}

static void *opencl_take(prn_device *d, size_t bytes)
{
    cl_int code = CL_SUCCESS;
    opencl_block block = {.bytes = bytes, .counted = true};
    block.memory = PRN_CL_NEW(code, clCreateBuffer, d->context, CL_MEM_READ_WRITE, bytes, NULL);
    if (code == CL_SUCCESS) return block_map(d, &block);
    count_refusal(d);
    return NULL;
}

/* Another address of the buffer that a block has. */
static void *opencl_alias(prn_device *d, const void *address, size_t bytes)
{
    size_t offset = 0;
    opencl_block block = {.bytes = bytes, .memory = prn_opencl_find(d, address, &offset)};
    if (!block.memory || prn_opencl.clRetainMemObject(block.memory) != CL_SUCCESS) return NULL;
    return block_map(d, &block);
}

/* Returns the bytes that the device has again. */
static size_t opencl_release(prn_device *d, void *address)
{
    pthread_mutex_lock(&d->lock);
    const size_t at = block_above(d, address) - 1;
    const opencl_block block = d->blocks[at];
    memmove(&d->blocks[at], &d->blocks[at + 1], (d->block_count - at - 1) * sizeof *d->blocks);
    d->block_count--;
    const size_t freed = block_uncount(d, &block);
    pthread_mutex_unlock(&d->lock);
    prn_opencl.clReleaseMemObject(block.memory);
    munmap(block.address, block.bytes);
    return freed;
}

static void opencl_give(prn_device *d, void *address)
{
    (void)opencl_release(d, address);
}

/* ---- copies ---- */

static prony_status end_copy(prn_device *d, cl_int code, const char *what, cl_event event, prn_device_step *step,
                             prony_error *error)
{
    PRN_TRY(prn_opencl_status(code, d->info.id, what, error));
    return event ? prn_opencl_timed(d, event, step, error) : PRONY_OK;
}

static prony_status opencl_copy_in(prn_device *d, void *to, const void *from, size_t bytes, prn_device_step *step,
                                   prony_error *error)
{
    size_t offset = 0;
    cl_event event = NULL, *timed = step && step->timed ? &event : NULL;
    cl_mem memory = prn_opencl_find(d, to, &offset);
    const cl_int code = PRN_CL(clEnqueueWriteBuffer, d->queue, memory, CL_TRUE, offset, bytes, from, 0, NULL, timed);
    if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES) count_refusal(d);
    return end_copy(d, code, "copying to the device", event, step, error);
}

static prony_status opencl_copy_out(prn_device *d, void *to, const void *from, size_t bytes, prn_device_step *step,
                                    prony_error *error)
{
    size_t offset = 0;
    cl_event event = NULL, *timed = step && step->timed ? &event : NULL;
    cl_mem memory = prn_opencl_find(d, from, &offset);
    const cl_int code = PRN_CL(clEnqueueReadBuffer, d->queue, memory, CL_TRUE, offset, bytes, to, 0, NULL, timed);
    return end_copy(d, code, "copying from the device", event, step, error);
}

const prn_memory_space prn_opencl_space = {"opencl", opencl_take, opencl_give, opencl_copy_in, opencl_copy_out};

/* ---- constants ---- */

/* Smaller constants are copied again: comparing takes longer. Chosen without measurement. */
enum { SHARED_BYTES = 64 << 10, COMPARED_BYTES = 1 << 20, SAMPLES = 64 };

/* Tells most different contents apart by a few of their bytes. */
static uint64_t sample_of(const void *data, size_t bytes)
{
    uint64_t sum = 0xcbf29ce484222325;
    const unsigned char *from = data;
    for (size_t i = 0; i < SAMPLES && bytes >= SHARED_BYTES; i++) {
        uint64_t word;
        memcpy(&word, from + (bytes - sizeof word) / (SAMPLES - 1) * i, sizeof word);
        sum = (sum ^ word) * 0x100000001b3;
    }
    return sum;
}

/* Reads the constant back, since the bytes that it was copied from may be gone. A failure: not equal. */
static bool equals_on_device(prn_device *d, const opencl_constant *constant, const void *data)
{
    bool equal = true;
    unsigned char *back = prn_alloc(COMPARED_BYTES);
    for (size_t at = 0; back && equal && at < constant->bytes; at += COMPARED_BYTES) {
        const size_t left = constant->bytes - at, part = left < COMPARED_BYTES ? left : COMPARED_BYTES;
        equal = opencl_copy_out(d, back, (const char *)constant->address + at, part, NULL, NULL) == PRONY_OK &&
                memcmp(back, (const char *)data + at, part) == 0;
    }
    prn_free(back);
    return back && equal;
}

/* The buffer of a constant with the same bytes, such as that of the same weight in another file, under an address of its
 * own. NULL: no constant has them. */
static void *share_constant(prn_device *d, const void *data, size_t bytes, uint64_t sample)
{
    for (size_t i = 0; bytes >= SHARED_BYTES && i < d->constant_count; i++) {
        const opencl_constant *c = &d->constants[i];
        if (c->bytes == bytes && c->sample == sample && equals_on_device(d, c, data))
            return opencl_alias(d, c->address, bytes);
    }
    return NULL;
}

static prony_status opencl_copy_constant(prn_device *d, const void *data, size_t bytes, void **out, prony_error *error)
{
    void *address = opencl_take(d, bytes);
    if (!address)
        return prn_fail(error, PRONY_OUT_OF_MEMORY, "%s: no room for a constant of %zu bytes", d->info.id, bytes);
    prony_status status = opencl_copy_in(d, address, data, bytes, NULL, error);
    if (status == PRONY_OK)
        *out = address;
    else
        opencl_give(d, address);
    return status;
}

static prony_status opencl_add_constant(prn_device *d, const void *source, const void *data, size_t bytes, void **out,
                                        prony_error *error)
{
    const uint64_t sample = sample_of(data, bytes);
    size_t copied = 0;
    if (!PRN_GROW(d->constants, d->constant_capacity, d->constant_count + 1)) return prn_no_memory(error);
    *out = share_constant(d, data, bytes, sample);
    if (!*out) {
        PRN_TRY(opencl_copy_constant(d, data, bytes, out, error));
        copied = bytes;
    }
    d->constants[d->constant_count++] = (opencl_constant){source, *out, 1, bytes, sample};
    pthread_mutex_lock(&d->lock);
    d->use.constant_bytes += copied;
    pthread_mutex_unlock(&d->lock);
    return PRONY_OK;
}

/* Invariant: a constant is known by its source; the bytes behind one source never change while it has users. */
prony_status prn_device_constant(prn_device *d, const void *source, const void *data, size_t bytes, void **out,
                                 prony_error *error)
{
    pthread_mutex_lock(&d->constant_lock); /* one copy at a time */
    prony_status status = PRONY_OK;
    *out = NULL;
    for (size_t i = 0; i < d->constant_count && !*out; i++) {
        if (d->constants[i].source != source) continue;
        d->constants[i].users++;
        *out = d->constants[i].address;
    }
    if (!*out) status = opencl_add_constant(d, source, data, bytes, out, error);
    pthread_mutex_unlock(&d->constant_lock);
    return status;
}

void prn_device_constant_drop(prn_device *d, void *constant)
{
    if (!constant) return;
    pthread_mutex_lock(&d->constant_lock);
    for (size_t i = 0; i < d->constant_count; i++) {
        if (d->constants[i].address != constant) continue;
        if (--d->constants[i].users == 0) {
            const size_t freed = opencl_release(d, constant);
            pthread_mutex_lock(&d->lock);
            d->use.constant_bytes -= freed;
            pthread_mutex_unlock(&d->lock);
            d->constants[i] = d->constants[--d->constant_count];
        }
        break;
    }
    pthread_mutex_unlock(&d->constant_lock);
}

bool prn_device_constant_known(prn_device *d, const void *source)
{
    bool known = false;
    pthread_mutex_lock(&d->constant_lock);
    for (size_t i = 0; i < d->constant_count && !known; i++) known = d->constants[i].source == source;
    pthread_mutex_unlock(&d->constant_lock);
    return known;
}
#else

prony_status prn_device_constant(prn_device *device, const void *source, const void *data, size_t bytes, void **out,
                                 prony_error *error)
{
    (void)device, (void)source, (void)data, (void)bytes;
    *out = NULL;
    return prn_fail(error, PRONY_UNSUPPORTED, "this build has no OpenCL");
}

void prn_device_constant_drop(prn_device *device, void *constant)
{
    (void)device, (void)constant;
}

bool prn_device_constant_known(prn_device *device, const void *source)
{
    (void)device, (void)source;
    return false;
}
#endif
