/* The only file that knows OpenBLAS, which is loaded by the first product that could use it, and stays.
 *
 * While it is loaded, and whenever another thread begins to call it, OpenBLAS maps buffers of 128 MiB and tries for
 * ever where the system gives none. So it is left alone where address space is bounded below ample_bytes() (`ulimit
 * -v`, `ulimit -d`, a kernel that does not overcommit), and processes without a float64 product never load it.
 *
 * Invariant: OpenBLAS never forks. Its OpenMP build runs serially where the calling thread's thread pool size is one,
 * which is set around each call and restored. Tiles are cut by shape alone, so the thread pool that works on them
 * changes no result. */
#include "ops/vendor/blas.h"

#ifdef PRN_HAVE_OPENBLAS
#include <cblas.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/integers.h"
#include "base/cpu/isa.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "base/os/text_file.h"

enum { BUILT_WITH_OPENMP = 2, TILE_ROWS = 128, TILE_COLUMNS = 256, TILE_DEPTH = 16384 };

static struct {
    __typeof__(cblas_dgemm) *dgemm;
    __typeof__(openblas_get_parallel) *get_parallel;
    __typeof__(openblas_get_config) *get_config;
} blas;
#define BUFFER_BYTES (UINT64_C(128) << 20)

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
enum { NOT_TRIED, LOADED, NOT_THERE };
static _Atomic int load_state = NOT_TRIED;

/* Address space so large that memory runs out long before: twice the machine's, and twice the buffers of as many
 * threads as it has processors. The rest of a smaller limit is not asked: other threads take of it while OpenBLAS
 * waits, and the kernel, and so a result's last bits, may not depend on how much that was. */
static uint64_t ample_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE),
               processors = sysconf(_SC_NPROCESSORS_CONF);
    if (pages <= 0 || size <= 0 || processors <= 0) return UINT64_MAX;
    return 2 * ((uint64_t)pages * (uint64_t)size + ((uint64_t)processors + 1) * BUFFER_BYTES);
}

static bool space_is_bounded(void)
{
    static const int kinds[] = {RLIMIT_AS, RLIMIT_DATA};
    struct rlimit limit;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (getrlimit(kinds[i], &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < ample_bytes())
            return true;
    }
    return false;
}

static bool never_overcommits(void)
{
    int64_t policy;
    return prn_text_read_int("/proc/sys/vm/overcommit_memory", &policy) && policy == 2;
}

/* Found where the build found it, so that another OpenBLAS which the system prefers is not taken; else by its name. */
static void blas_load(void)
{
    static const char *const names[] = {PRN_OPENBLAS_FOLDER "/" PRN_OPENBLAS_NAME, PRN_OPENBLAS_NAME};
    const bool strict = never_overcommits();
    void *library = NULL;
    for (size_t i = 0; i < 2 && !library && !strict; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library) {
        blas.dgemm = (__typeof__(blas.dgemm))dlsym(library, "cblas_dgemm");
        blas.get_parallel = (__typeof__(blas.get_parallel))dlsym(library, "openblas_get_parallel");
        blas.get_config = (__typeof__(blas.get_config))dlsym(library, "openblas_get_config");
    }
    bool whole = blas.dgemm && blas.get_parallel && blas.get_config;
    atomic_store(&load_state, whole ? LOADED : NOT_THERE);
}

/* Limits may have been set since it was loaded. */
static bool blas_is_there(void)
{
    if (space_is_bounded()) return false;
    pthread_once(&load_once, blas_load);
    return atomic_load(&load_state) == LOADED;
}

static bool processor_has(const char *feature)
{
    for (const char *const *f = prn_isa_features(); *f; f++) {
        if (strcmp(*f, feature) == 0) return true;
    }
    return false;
}

static bool is_capped(void)
{
    return (!prn_isa_has(PRN_HAS_AVX2) && processor_has("avx2")) ||
           (!prn_isa_has(PRN_HAS_AVX512) && processor_has("avx512f"));
}

/* A matrix as BLAS takes it: stored by rows, or transposed. false if neither. */
typedef struct operand {
    bool transposed;
    int64_t lead;
} operand;

static bool blas_operand_of(operand *out, int64_t rows, int64_t columns, int64_t row, int64_t col)
{
    if (columns == 1) col = 1;
    if (rows == 1 && col == 1) row = columns;
    if (rows == 1 && col != 1) row = 1;
    out->transposed = col != 1;
    out->lead = out->transposed ? col : row;
    const int64_t least = out->transposed ? rows : columns;
    return (col == 1 || row == 1) && out->lead >= (least > 1 ? least : 1) && out->lead <= INT_MAX;
}

static bool blas_operands_of(const prn_matmul_desc *p, operand *a, operand *b)
{
    return blas_operand_of(a, p->m, p->k, p->rs_a, p->cs_a) && blas_operand_of(b, p->k, p->n, p->rs_b, p->cs_b);
}

bool prn_matmul_blas_supported(const prn_matmul_desc *p)
{
    operand a, b;
    return !is_capped() && p->k > 0 && p->m <= INT_MAX && p->n <= INT_MAX && p->rs_c <= INT_MAX && p->k <= INT_MAX &&
           blas_operands_of(p, &a, &b) && blas_is_there() && blas.get_parallel() == BUILT_WITH_OPENMP;
}

typedef struct blas_job {
    const prn_matmul_desc *product;
    operand a, b;
    int64_t row_tiles, column_tiles;
} blas_job;

static void blas_finish(const prn_matmul_desc *p, double *c, int64_t i0, int64_t rows, int64_t j0, int64_t columns)
{
    const double *bias = p->bias, alpha = (double)p->alpha, beta = (double)p->beta;
    for (int64_t i = 0; i < rows; i++, c += p->rs_c) {
        for (int64_t j = 0; j < columns; j++) {
            const double added = bias ? bias[(i0 + i) * p->bias_row + (j0 + j) * p->bias_col] : 0.0;
            c[j] = alpha * c[j] + beta * added;
        }
    }
}

static void blas_run_tile(void *argument, int64_t task)
{
    const blas_job *job = argument;
    const prn_matmul_desc *p = job->product;
    const int64_t tiles = job->row_tiles * job->column_tiles;
    const int64_t i0 = task % tiles / job->column_tiles * TILE_ROWS, j0 = task % job->column_tiles * TILE_COLUMNS;
    const int64_t rows = p->m - i0 < TILE_ROWS ? p->m - i0 : TILE_ROWS;
    const int64_t columns = p->n - j0 < TILE_COLUMNS ? p->n - j0 : TILE_COLUMNS;
    int64_t a, b, c;
    prn_matmul_offsets(p, task / tiles, &a, &b, &c);
    const double *x = (const double *)p->a + a + i0 * p->rs_a, *y = (const double *)p->b + b + j0 * p->cs_b;
    double *z = (double *)p->c + c + i0 * p->rs_c + j0;
    const int former = prn_openmp_limit(1);
    int64_t depth;
    for (int64_t k = 0; k < p->k && (k == 0 || !prn_cancelled()); k += depth) {
        depth = p->k - k < 2 * TILE_DEPTH ? p->k - k : TILE_DEPTH;
        blas.dgemm(CblasRowMajor, job->a.transposed ? CblasTrans : CblasNoTrans,
                   job->b.transposed ? CblasTrans : CblasNoTrans, (blasint)rows, (blasint)columns, (blasint)depth, 1.0,
                   x + k * p->cs_a, (blasint)job->a.lead, y + k * p->rs_b, (blasint)job->b.lead, k ? 1.0 : 0.0, z,
                   (blasint)p->rs_c);
    }
    prn_openmp_restore(former);
    if (p->bias || p->alpha != 1.0f) blas_finish(p, z, i0, rows, j0, columns);
}

prony_status prn_matmul_blas_run(const prony_context *context)
{
    const prn_matmul_desc product = prn_matmul_with_data(context);
    if (product.items == 0 || product.m == 0 || product.n == 0) return PRONY_OK;
    blas_job job = {.product = &product,
                    .row_tiles = prn_ceil_div(product.m, TILE_ROWS),
                    .column_tiles = prn_ceil_div(product.n, TILE_COLUMNS)};
    blas_operands_of(&product, &job.a, &job.b);
    prn_parallel_tasks(context->threads, product.items * job.row_tiles * job.column_tiles, blas_run_tile, &job);
    return PRONY_OK;
}

/* Both the header's and the library's read " OpenBLAS 0.3.21 …", with or without the first blank. */
const char *prn_blas_version(void)
{
    static _Thread_local char version[32];
    const int state = atomic_load(&load_state);
    const char *start = state == LOADED ? blas.get_config() : state == NOT_TRIED ? OPENBLAS_VERSION : "";
    start += strcspn(start, "0123456789");
    size_t size = strcspn(start, " ");
    if (size >= sizeof version) size = sizeof version - 1;
    memcpy(version, start, size);
    version[size] = 0;
    return version;
}
#else
const char *prn_blas_version(void)
{
    return "";
}
#endif
