/* An operator that a user registered: test::Twice, y = 2 x of float32, which counts how often it was run. */
#ifndef PRN_TESTS_SUPPORT_TWICE_OPERATOR_H
#define PRN_TESTS_SUPPORT_TWICE_OPERATOR_H

#include "prony_operator.h"

extern int twice_calls;
/* A registry with it, which the caller releases. */
prony_registry *twice_registry(void);

#endif
