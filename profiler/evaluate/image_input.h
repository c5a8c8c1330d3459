/* What image functions share with datasets. */
#ifndef PRN_PROFILER_EVALUATE_IMAGE_INPUT_H
#define PRN_PROFILER_EVALUATE_IMAGE_INPUT_H

#include "base/alloc.h"
#include "loaders/images/image.h"

/* The options, or the defaults where they are NULL. */
const prony_image_options *prn_image_options_or_default(const prony_image_options *options);

#endif
