/* The files behind bench/serve/serve_assets.h. */
#include "cmake/embed.inc"

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
