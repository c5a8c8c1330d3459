/* A user's operator: test::Twice, y = 2 x of float32. It counts its runs. */
#ifndef PRN_TESTS_SUPPORT_TWICE_OPERATOR_H
#define PRN_TESTS_SUPPORT_TWICE_OPERATOR_H

#include "prony_operator.h"

extern int twice_calls;
/* A registry with the operator. The caller releases it. */
prony_registry *twice_registry(void);

#endif
