/* The life of one request between libmicrohttpd and the service. */
#ifndef PRN_BENCH_SERVE_HTTP_EXCHANGE_H
#define PRN_BENCH_SERVE_HTTP_EXCHANGE_H

#include "bench/serve/microhttpd_library.h"
#include "bench/serve/service.h"

enum MHD_Result exchange_handle(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                                const char *version, const char *data, size_t *data_size, void **state);
void exchange_completed(void *user, struct MHD_Connection *connection, void **state,
                        enum MHD_RequestTerminationCode code);

#endif
