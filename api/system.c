/* The system part of a report: what is needed to repeat a measurement elsewhere. */
#include "api/report_build.h"
#include "base/isa.h"
#include "base/machine.h"
#include "ops/blas.h"
#include "ops/dnnl.h"
#include "prn_build_info.h"

#include <string.h>

prony_status prn_report_fill_system(prony_report *report, const prn_cpu_mask *mask, prony_error *error)
{
    prn_report_system *system = &report->system;
    prn_machine_read(&system->machine, mask);
    system->isa = prn_isa_features();
    system->isa_used = prn_isa_name(prn_isa_level());
    const char *dnnl = prn_dnnl_version(), *blas = prn_blas_version();
    system->libraries = prn_pool_printf(&report->pool, "%s%s%s%s%s", *dnnl ? "onednn " : "", dnnl,
                                        *dnnl && *blas ? ", " : "", *blas ? "openblas " : "", blas);
    if (!system->libraries) return prn_no_memory(error);
    system->git_commit = PRN_BUILD_GIT_COMMIT;
    system->compiler = PRN_BUILD_COMPILER;
    system->compiler_flags = PRN_BUILD_FLAGS;
    return PRONY_OK;
}
