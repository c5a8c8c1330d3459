/* Files compiled into the command, each from its first byte up to, not including, its _end symbol: the digits model
 * (models/README.md), its held-back images and their labels, in the formats they have on disk. */
#ifndef PRN_BENCH_EMBEDDED_H
#define PRN_BENCH_EMBEDDED_H

#include <stdint.h>

extern const uint8_t prn_digits_model[], prn_digits_model_end[];   /* ONNX */
extern const uint8_t prn_digits_images[], prn_digits_images_end[]; /* .npy, uint8 [360, 1, 8, 8], pixels 0..16 */
extern const uint8_t prn_digits_labels[], prn_digits_labels_end[]; /* .npy, uint8 [360] */

#endif
