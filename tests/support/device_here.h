/* For tests of kernels on a device. */
#ifndef PRN_TESTS_SUPPORT_DEVICE_HERE_H
#define PRN_TESTS_SUPPORT_DEVICE_HERE_H

#include <stdbool.h>

/* true: this machine has a device. false: the reason was printed, and the caller skips. */
bool device_here(void);

#endif
