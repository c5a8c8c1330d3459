/* Zip archives of arrays, by their central directory: members stored or deflated, zip64 included; encrypted and split
 * ones are refused. The file stays mapped while the archive is open; names are copied into a pool. Nothing in it is
 * trusted: every offset and size is checked against the file, and a size against what deflate can give at most.
 * libzip would replace 120 lines by 90 of error and size checks, allocate outside of budgets, copy stored arrays, and
 * leave builds without it no .npz at all. */
#include "loaders/tensors/npz.h"

#include "base/memory/alloc.h"
#include "base/os/file.h"
#include "loaders/onnx/owned_value.h"
#include "loaders/tensors/inflate.h"

#include <stdio.h>
#include <string.h>

enum {
    END_BYTES = 22, /* end of central directory, without its comment */
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    ENTRY_BYTES = 46, /* of the central directory, without name, extra fields and comment */
    LOCAL_BYTES = 30,
    LONGEST_COMMENT = 65535,
    STORED = 0,
    DEFLATED = 8
};

typedef struct member {
    const char *name;
    uint64_t stored_bytes, bytes, offset; /* offset of the local header */
    uint32_t crc;
    unsigned method, flags;
} member;

struct prn_npz {
    prn_map map;
    prn_bump pool;
    const char *path;
    member *members;
    size_t count;
};

static uint64_t npz_get(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
    return value;
}

static prony_status damaged(prony_error *error, const char *what)
{
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "damaged .npz archive: %s", what);
}

/* ---- the directory ---- */

typedef struct directory {
    uint64_t count, bytes, offset;
} directory;

static prony_status find_directory64(directory *out, const prn_npz *npz, size_t end, prony_error *error)
{
    const uint8_t *data = npz->map.data;
    if (end < LOCATOR_BYTES || npz_get(data + end - LOCATOR_BYTES, 4) != 0x07064b50) return PRONY_OK;
    uint64_t at = npz_get(data + end - LOCATOR_BYTES + 8, 8);
    if (at > npz->map.size || npz->map.size - at < END64_BYTES || npz_get(data + at, 4) != 0x06064b50)
        return damaged(error, "its zip64 directory cannot be found");
    *out = (directory){npz_get(data + at + 32, 8), npz_get(data + at + 40, 8), npz_get(data + at + 48, 8)};
    return PRONY_OK;
}

static prony_status find_directory(directory *out, const prn_npz *npz, prony_error *error)
{
    const uint8_t *data = npz->map.data;
    size_t size = npz->map.size;
    if (size < END_BYTES) return prn_fail(error, PRONY_INVALID_ARGUMENT, "not an .npz archive");
    size_t end = size - END_BYTES, first = end > LONGEST_COMMENT ? end - LONGEST_COMMENT : 0;
    while (npz_get(data + end, 4) != 0x06054b50) {
        if (end == first) return prn_fail(error, PRONY_INVALID_ARGUMENT, "not an .npz archive, or cut short");
        end--;
    }
    *out = (directory){npz_get(data + end + 10, 2), npz_get(data + end + 12, 4), npz_get(data + end + 16, 4)};
    PRN_TRY(find_directory64(out, npz, end, error));
    if (out->offset > size || out->bytes > size - out->offset || out->count > out->bytes / ENTRY_BYTES)
        return damaged(error, "its directory reaches past the end of the file");
    return PRONY_OK;
}

/* Sizes that do not fit 32 bits stand in an extra field, in this order. */
static bool read_zip64(member *m, const uint8_t *extra, size_t size)
{
    uint64_t *const fields[] = {&m->bytes, &m->stored_bytes, &m->offset};
    while (size >= 4) {
        size_t length = (size_t)npz_get(extra + 2, 2), used = 0;
        if (length > size - 4) return false;
        for (int i = 0; i < 3 && npz_get(extra, 2) == 1; i++) {
            if (*fields[i] != UINT32_MAX) continue;
            if (used + 8 > length) return false;
            *fields[i] = npz_get(extra + 4 + used, 8);
            used += 8;
        }
        extra += 4 + length;
        size -= 4 + length;
    }
    return true;
}

static prony_status read_entry(prn_npz *npz, const uint8_t *at, size_t left, size_t *taken, prony_error *error)
{
    if (left < ENTRY_BYTES || npz_get(at, 4) != 0x02014b50)
        return damaged(error, "an entry of its directory is invalid");
    size_t name = (size_t)npz_get(at + 28, 2), extra = (size_t)npz_get(at + 30, 2);
    *taken = ENTRY_BYTES + name + extra + (size_t)npz_get(at + 32, 2);
    if (*taken > left) return damaged(error, "an entry of its directory is cut short");
    member m = {.flags = (unsigned)npz_get(at + 8, 2),
                .method = (unsigned)npz_get(at + 10, 2),
                .crc = (uint32_t)npz_get(at + 16, 4),
                .stored_bytes = npz_get(at + 20, 4),
                .bytes = npz_get(at + 24, 4),
                .offset = npz_get(at + 42, 4)};
    const char *text = (const char *)at + ENTRY_BYTES;
    if (name <= 4 || memcmp(text + name - 4, ".npy", 4) != 0) return PRONY_OK;
    if (!read_zip64(&m, at + ENTRY_BYTES + name, extra)) return damaged(error, "an extra field is cut short");
    m.name = prn_bump_strndup(&npz->pool, text, name - 4);
    if (!m.name) return prn_no_memory(error);
    npz->members[npz->count++] = m;
    return PRONY_OK;
}

static prony_status read_directory(prn_npz *npz, prony_error *error)
{
    directory dir = {0};
    PRN_TRY(find_directory(&dir, npz, error));
    npz->members = prn_bump_alloc(&npz->pool, (size_t)dir.count + 1, sizeof *npz->members);
    if (!npz->members) return prn_no_memory(error);
    const uint8_t *at = npz->map.data + dir.offset;
    size_t left = (size_t)dir.bytes, taken = 0;
    for (uint64_t i = 0; i < dir.count; i++, at += taken, left -= taken)
        PRN_TRY(read_entry(npz, at, left, &taken, error));
    return PRONY_OK;
}

prony_status prn_npz_open(prn_npz **out, const char *path, prony_error *error)
{
    prn_npz *npz = prn_calloc(1, sizeof *npz);
    if (!npz) return prn_no_memory(error);
    prony_status status = prn_map_open(&npz->map, path, error);
    if (status == PRONY_OK) {
        npz->path = prn_bump_strndup(&npz->pool, path, strlen(path));
        status = npz->path ? read_directory(npz, error) : prn_no_memory(error);
        if (status != PRONY_OK) prn_error_prefix(error, "'%.400s'", path);
    }
    if (status == PRONY_OK)
        *out = npz;
    else
        prn_npz_close(npz);
    return status;
}

void prn_npz_close(prn_npz *npz)
{
    if (!npz) return;
    prn_map_close(&npz->map);
    prn_bump_release(&npz->pool);
    prn_free(npz);
}

size_t prn_npz_count(const prn_npz *npz)
{
    return npz->count;
}

const char *prn_npz_name(const prn_npz *npz, size_t index)
{
    return npz->members[index].name;
}

/* ---- arrays ---- */

/* The stored bytes of a member, without its local header. */
static prony_status find_data(const uint8_t **out, const prn_npz *npz, const member *m, prony_error *error)
{
    size_t size = npz->map.size;
    if (m->flags & 1) return prn_fail(error, PRONY_UNSUPPORTED, "it is encrypted");
    if (m->offset > size || size - m->offset < LOCAL_BYTES || npz_get(npz->map.data + m->offset, 4) != 0x04034b50)
        return damaged(error, "its data cannot be found");
    const uint8_t *local = npz->map.data + m->offset;
    uint64_t begin = m->offset + LOCAL_BYTES + npz_get(local + 26, 2) + npz_get(local + 28, 2);
    if (begin > size || m->stored_bytes > size - begin)
        return damaged(error, "its data reach past the end of the file");
    *out = npz->map.data + begin;
    return PRONY_OK;
}

static prony_status npz_parse(prony_value *out, const uint8_t *data, size_t size, uint32_t crc, prony_error *error)
{
    if (!prn_crc_matches(data, size, crc)) return damaged(error, "its checksum does not match its bytes");
    return prn_npy_parse(out, data, size, error);
}

static prony_status read_deflated(prony_value *out, const member *m, const uint8_t *data, prony_error *error)
{
    if (m->bytes / PRN_INFLATE_RATIO > m->stored_bytes)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%llu bytes cannot hold the declared %llu",
                        (unsigned long long)m->stored_bytes, (unsigned long long)m->bytes);
    uint8_t *plain = prn_alloc((size_t)m->bytes + 1);
    if (!plain) return prn_no_memory(error);
    prony_status status = prn_inflate(plain, (size_t)m->bytes, data, (size_t)m->stored_bytes, error);
    if (status == PRONY_OK) status = npz_parse(out, plain, (size_t)m->bytes, m->crc, error);
    prn_free(plain);
    return status;
}

static prony_status read_member(prony_value *out, const prn_npz *npz, const member *m, prony_error *error)
{
    const uint8_t *data = NULL;
    PRN_TRY(find_data(&data, npz, m, error));
    if (m->method == DEFLATED) return read_deflated(out, m, data, error);
    if (m->method != STORED)
        return prn_fail(error, PRONY_UNSUPPORTED,
                        "compression method %u is not supported; stored and deflated arrays are", m->method);
    if (m->stored_bytes != m->bytes) return damaged(error, "a stored array has two sizes");
    return npz_parse(out, data, (size_t)m->bytes, m->crc, error);
}

prony_status prn_npz_read(prony_value **out, const prn_npz *npz, size_t index, prony_error *error)
{
    const member *m = &npz->members[index];
    prony_value *value = prn_calloc(1, sizeof *value);
    prony_status status = value ? read_member(value, npz, m, error) : prn_no_memory(error);
    if (status == PRONY_OK) {
        *out = value;
    } else {
        prn_value_free(value);
        prn_error_prefix(error, "'%.400s', array '%.100s'", npz->path, m->name);
    }
    return status;
}

static prony_status find_array(size_t *out, const prn_npz *npz, const char *name, prony_error *error)
{
    char names[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < npz->count; i++) {
        if (name ? strcmp(npz->members[i].name, name) == 0 : npz->count == 1) {
            *out = i;
            return PRONY_OK;
        }
        if (used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s'%s'", i ? ", " : "", npz->members[i].name);
    }
    const char *held = npz->count ? names : "none";
    if (name)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "'%.400s': unknown array '%.100s'; it has %s", npz->path, name,
                        held);
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "'%.400s': wanted one array; it has %s", npz->path, held);
}

prony_status prn_npz_load(prony_value **out, const char *path, const char *name, prony_error *error)
{
    prn_npz *npz;
    size_t index;
    *out = NULL;
    PRN_TRY(prn_npz_open(&npz, path, error));
    if (name && npz->count == 1 && strcmp(name, npz->members[0].name) != 0 &&
        strcmp(npz->members[0].name, "arr_0") == 0)
        name = NULL; /* numpy.savez(file, x) gives no name of its own */
    prony_status status = find_array(&index, npz, name, error);
    if (status == PRONY_OK) status = prn_npz_read(out, npz, index, error);
    prn_npz_close(npz);
    return status;
}
