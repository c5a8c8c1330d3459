/* The sources behind ops/vendor/opencl/opencl_launch.h. */
#include "cmake/embed.inc"

        embed prn_cl_common, "common.cl"
        embed prn_cl_map, "map.cl"
        embed prn_cl_gemm, "gemm.cl"
        embed prn_cl_window, "window.cl"
        embed prn_cl_rows, "rows.cl"
        embed prn_cl_attention, "attention.cl"
        embed prn_cl_peaks, "peaks.cl"
        embed prn_cl_index, "index.cl"
        embed prn_cl_lowbit, "lowbit.cl"
        embed prn_cl_codes, "int8.cl"
        embed prn_cl_quantize, "quantize.cl"
