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

        begin prn_live_page
        .incbin "live.html"
        finish prn_live_page

        begin prn_live_style
        .incbin "page.css"
        .incbin "live.css"
        finish prn_live_style

        begin prn_live_script
        .incbin "live.js"
        finish prn_live_script

        .section .note.GNU-stack, "", %progbits
