/* The .cl files of ops/vendor/opencl/kernels/, embedded by opencl_sources.S. */
#ifndef PRN_OPS_VENDOR_OPENCL_SOURCES_H
#define PRN_OPS_VENDOR_OPENCL_SOURCES_H

typedef struct prn_opencl_source {
    const char *text, *end;
} prn_opencl_source;

extern const prn_opencl_source prn_opencl_common; /* stands before every other one */
extern const prn_opencl_source prn_opencl_map, prn_opencl_gemm, prn_opencl_window, prn_opencl_rows,
    prn_opencl_attention, prn_opencl_index, prn_opencl_lowbit, prn_opencl_codes, prn_opencl_quantize, prn_opencl_peaks;

#endif
