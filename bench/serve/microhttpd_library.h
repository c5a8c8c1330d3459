/* libmicrohttpd, loaded by microhttpd_load. Linking it would load it, and all that it links (GnuTLS), at every
 * start. */
#ifndef PRN_BENCH_SERVE_MICROHTTPD_LIBRARY_H
#define PRN_BENCH_SERVE_MICROHTTPD_LIBRARY_H

#include <microhttpd.h>
#include <stdbool.h>

#define MICROHTTPD_FUNCTIONS(X)                                                                                        \
    X(MHD_add_response_header)                                                                                         \
    X(MHD_create_response_from_buffer)                                                                                 \
    X(MHD_create_response_from_callback)                                                                               \
    X(MHD_destroy_response)                                                                                            \
    X(MHD_get_connection_info)                                                                                         \
    X(MHD_get_connection_values)                                                                                       \
    X(MHD_is_feature_supported)                                                                                        \
    X(MHD_lookup_connection_value)                                                                                     \
    X(MHD_queue_response)                                                                                              \
    X(MHD_quiesce_daemon)                                                                                              \
    X(MHD_resume_connection)                                                                                           \
    X(MHD_start_daemon)                                                                                                \
    X(MHD_stop_daemon)                                                                                                 \
    X(MHD_suspend_connection)

#define X(function) __typeof__(function) *function;
typedef struct microhttpd_functions {
    MICROHTTPD_FUNCTIONS(X)
} microhttpd_functions;
#undef X
extern microhttpd_functions microhttpd;

/* Loads the library. false: *why says the reason; it is static. Not for several threads at once. */
bool microhttpd_load(const char **why);

#ifndef MICROHTTPD_NAMES /* calls go to the functions loaded */
#define MHD_add_response_header microhttpd.MHD_add_response_header
#define MHD_create_response_from_buffer microhttpd.MHD_create_response_from_buffer
#define MHD_create_response_from_callback microhttpd.MHD_create_response_from_callback
#define MHD_destroy_response microhttpd.MHD_destroy_response
#define MHD_get_connection_info microhttpd.MHD_get_connection_info
#define MHD_get_connection_values microhttpd.MHD_get_connection_values
#define MHD_is_feature_supported microhttpd.MHD_is_feature_supported
#define MHD_lookup_connection_value microhttpd.MHD_lookup_connection_value
#define MHD_queue_response microhttpd.MHD_queue_response
#define MHD_quiesce_daemon microhttpd.MHD_quiesce_daemon
#define MHD_resume_connection microhttpd.MHD_resume_connection
#define MHD_start_daemon microhttpd.MHD_start_daemon
#define MHD_stop_daemon microhttpd.MHD_stop_daemon
#define MHD_suspend_connection microhttpd.MHD_suspend_connection
#endif

#endif
