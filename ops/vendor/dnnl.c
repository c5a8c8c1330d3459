/* oneDNN 2.6 to 3.x: the process's engine. dnnl*.c are the files that know its API; dnnl_problem.c puts a convolution
 * in its terms, dnnl_conv.c is the kernel. The engine object lives as long as the process. */
#include "ops/vendor/dnnl.h"

#ifndef PRN_HAVE_DNNL
const char *prn_dnnl_version(void)
{
    return "";
}
#else

#include "base/cpu/isa.h"
#include "ops/vendor/dnnl_guard.h"
#include "ops/vendor/dnnl_problem.h"

#include <pthread.h>
#include <stdio.h>

enum { MOST_CACHED = 64 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine; /* NULL: not usable */
static char version_text[32];

static dnnl_status_t create_engine(void *unused)
{
    (void)unused;
    if (!prn_isa_has(PRN_HAS_AVX512 | PRN_HAS_AMX)) {
        /* Refused if the program used oneDNN before: then what it uses must lie within our cap anyway. */
        dnnl_cpu_isa_t cap = prn_isa_has(PRN_HAS_AVX512) ? dnnl_cpu_isa_avx512_core_bf16 : dnnl_cpu_isa_avx2;
        if (dnnl_set_max_cpu_isa(cap) != dnnl_success && ((unsigned)dnnl_get_effective_cpu_isa() & ~(unsigned)cap))
            return dnnl_unimplemented;
    }
    /* Each new shape leaves primitives of some 40 KiB in oneDNN's cache, 1024 of them by default. Plans hold what they
     * use themselves. */
    (void)dnnl_set_primitive_cache_capacity(MOST_CACHED);
    return dnnl_engine_create(&engine, dnnl_cpu, 0);
}

static void dnnl_start(void)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(version_text, sizeof version_text, "%d.%d.%d", version->major, version->minor, version->patch);
    if (!prn_isa_has(PRN_HAS_AVX2)) return;
    if (prn_dnnl_guarded_creation(create_engine, NULL) != dnnl_success) engine = NULL;
}

dnnl_engine_t prn_dnnl_engine(void)
{
    pthread_once(&once, dnnl_start);
    return engine;
}

const char *prn_dnnl_version(void)
{
    pthread_once(&once, dnnl_start);
    return version_text;
}

prony_status prn_dnnl_failed(const prony_context *context, dnnl_status_t status, const char *what)
{
    if (status == dnnl_out_of_memory)
        return prony_fail(context, PRONY_OUT_OF_MEMORY, "oneDNN: %s: out of memory", what);
    return prony_fail(context, PRONY_INTERNAL, "oneDNN: %s: status %d", what, (int)status);
}

#endif
