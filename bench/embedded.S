/* The embedded default model and its held-back test data; bench/embedded.h declares the symbols. */
        .section .rodata

        .macro embed name, file
        .balign 64
        .globl \name
        .hidden \name
        .type \name, %object
\name:
        .incbin "\file"
\name\()_end:
        .globl \name\()_end
        .hidden \name\()_end
        .size \name, . - \name
        .byte 0
        .endm

        embed prn_digits_model, "digits.onnx"
        embed prn_digits_images, "digits_images.npy"
        embed prn_digits_labels, "digits_labels.npy"

        .section .note.GNU-stack, "", %progbits
