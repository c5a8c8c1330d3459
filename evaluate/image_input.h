/* Functions that images share with datasets. */
#ifndef PRN_EVALUATE_IMAGE_INPUT_H
#define PRN_EVALUATE_IMAGE_INPUT_H

#include "base/memory/alloc.h"
#include "loaders/images/image.h"

/* The options, or the defaults where they are NULL. */
PRN_MUST_USE prony_status prn_image_options_read(prony_image_options *own, const prony_image_options *given,
                                                 prony_error *error);

#endif
