/* The files behind bench/serve/serve_assets.h. */
        .section .rodata

        .macro begin name
        .balign 16
        .globl \name
        .hidden \name
        .type \name, %object
\name:
        .endm

        .macro finish name
\name\()_end:
        .globl \name\()_end
        .hidden \name\()_end
        .size \name, . - \name
        .byte 0
        .endm

        begin serve_page_body
        .incbin "live.html"
        finish serve_page_body

        begin serve_page_style
        .incbin "page.css"
        .incbin "live.css"
        finish serve_page_style

        begin serve_page_script
        .incbin "live.js"
        finish serve_page_script

        .section .note.GNU-stack, "", %progbits
