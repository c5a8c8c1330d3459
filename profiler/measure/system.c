/* The system section of a report: facts needed to repeat a measurement elsewhere. */
#include "base/cpu/isa.h"
#include "base/cpu/machine.h"
#include "ops/vendor/blas.h"
#include "ops/vendor/dnnl.h"
#include "profiler/measure/report_build.h"
#include "prn_build_info.h"

#include <pthread.h>
#include <stdio.h>

/* Made once, because it does not change while the process runs. */
static prony_build build;
static char libraries[128];
static pthread_once_t build_once = PTHREAD_ONCE_INIT;

static void describe_build(void)
{
    const char *dnnl = prn_dnnl_version(), *blas = prn_blas_version();
    snprintf(libraries, sizeof libraries, "%s%s%s%s%s", *dnnl ? "onednn " : "", dnnl, *dnnl && *blas ? ", " : "",
             *blas ? "openblas " : "", blas);
    build = (prony_build){.version = PRONY_VERSION,
                          .git_commit = PRN_BUILD_GIT_COMMIT,
                          .compiler = PRN_BUILD_COMPILER,
                          .compiler_flags = PRN_BUILD_FLAGS,
                          .isa = prn_isa_name(),
                          .libraries = libraries,
                          .isa_names = prn_isa_set_names(),
                          .left_out = PRN_BUILD_LEFT_OUT};
}

const prony_build *prony_build_info(void)
{
    pthread_once(&build_once, describe_build);
    return &build;
}

void prn_report_fill_system(prony_report *report, const prn_cpu_mask *mask)
{
    prn_report_system *system = &report->system;
    const prony_build *info = prony_build_info();
    prn_now_utc(report->created);
    prn_machine_read(&system->machine, mask);
    system->isa = prn_isa_features();
    system->isa_used = info->isa;
    system->libraries = info->libraries;
    system->git_commit = info->git_commit;
    system->compiler = info->compiler;
    system->compiler_flags = info->compiler_flags;
}
