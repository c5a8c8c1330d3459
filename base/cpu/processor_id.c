#include "base/cpu/processor_id.h"

#include "base/os/text_file.h"

#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define FNV_BASIS 2166136261U
#define FNV_PRIME 16777619U
/* Enough to visit each entry of the tables of known processors, 2^11 mantissas at most. */
enum { PROBES = 4096 };

static uint32_t checksum(uint32_t sum, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    /* The analyzer does not know vector intrinsics. */
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    for (size_t i = 0; i < size; i++) sum = (sum ^ bytes[i]) * FNV_PRIME;
    return sum;
}

uint32_t prn_processor_approximations(void)
{
#if defined(__x86_64__)
    uint32_t sum = FNV_BASIS;
    for (int i = 0; i < PROBES; i++) {
        const __m128 x = _mm_set_ss(1.0F + 3.0F * (float)i / PROBES);
        const float results[2] = {_mm_cvtss_f32(_mm_rcp_ss(x)), _mm_cvtss_f32(_mm_rsqrt_ss(x))};
        sum = checksum(sum, results, sizeof results);
    }
    return sum;
#else
    return 0;
#endif
}

/* ---- /proc/cpuinfo ---- */

enum { FAMILY, MODEL, STEPPING, MICROCODE, REVISION, PARTS, FLAGS = PARTS, KINDS };

/* The identity field on a line; KINDS: none. */
static int processor_id_kind_of(const char *line, size_t length)
{
    static const struct {
        const char *key;
        int kind;
    } keys[] = {{"cpu family", FAMILY},   {"model", MODEL},          {"stepping", STEPPING},
                {"microcode", MICROCODE}, {"flags", FLAGS},          {"CPU implementer", FAMILY},
                {"CPU part", MODEL},      {"CPU variant", STEPPING}, {"CPU revision", REVISION},
                {"Features", FLAGS}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strlen(keys[i].key) == length && memcmp(line, keys[i].key, length) == 0) return keys[i].kind;
    return KINDS;
}

/* Joins the first processor's lines. Only letters, digits and dots stand between the dashes, so that the text can be
 * part of a file's name. */
void prn_processor_id_of(char out[PRN_PROCESSOR_ID_BYTES], const char *cpuinfo, const prn_machine *machine,
                         uint32_t approximations)
{
    char parts[PARTS][16] = {"", "", "", "", ""};
    uint32_t sum = checksum(FNV_BASIS, &approximations, sizeof approximations);
    bool flags = false;
    prn_lines lines;
    if (prn_lines_open(&lines, cpuinfo)) {
        for (char *line; (line = prn_lines_next(&lines));) {
            char *colon = strchr(line, ':');
            size_t length = colon ? (size_t)(colon - line) : 0, used = 0;
            while (length && (line[length - 1] == ' ' || line[length - 1] == '\t')) length--;
            const int kind = length ? processor_id_kind_of(line, length) : KINDS;
            if (kind == KINDS || (kind < PARTS && parts[kind][0]) || (kind == FLAGS && flags)) continue;
            if (kind == FLAGS) {
                sum = checksum(sum, colon, strlen(colon));
                flags = true;
                continue;
            }
            for (const char *at = colon + 1; *at && used + 1 < sizeof parts[kind]; at++)
                if ((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z'))
                    parts[kind][used++] = *at;
        }
        prn_lines_close(&lines);
    }
    for (int i = 0; i < machine->cache_count; i++) {
        const prn_cache_level *cache = &machine->caches[i];
        sum = checksum(sum, &cache->level, sizeof cache->level);
        sum = checksum(sum, cache->type, strlen(cache->type));
        sum = checksum(sum, &cache->bytes, sizeof cache->bytes);
    }
    for (int i = 0; i < REVISION; i++)
        if (!parts[i][0]) strcpy(parts[i], "x");
    snprintf(out, PRN_PROCESSOR_ID_BYTES, "%s-%s-%s%s%s-%s-%dc-%08x", parts[FAMILY], parts[MODEL], parts[STEPPING],
             parts[REVISION][0] ? "." : "", parts[REVISION], parts[MICROCODE], machine->cpu_count, (unsigned)sum);
}

void prn_processor_id(char out[PRN_PROCESSOR_ID_BYTES], const prn_machine *machine)
{
    prn_processor_id_of(out, "/proc/cpuinfo", machine, prn_processor_approximations());
}
