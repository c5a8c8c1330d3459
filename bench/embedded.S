/* The embedded default model and its held-back test data; bench/embedded.h declares the symbols. */
#include "cmake/embed.inc"

        embed prn_digits_model, "digits.onnx"
        embed prn_digits_images, "digits_images.npy"
        embed prn_digits_labels, "digits_labels.npy"
