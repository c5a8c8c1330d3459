/* The files behind profiler/exporters/html_assets.h. PRN_CHART_LIBRARY is the path of Chart.js, where the build found it. */
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

        .macro embed name, file
        begin \name
        .incbin "\file"
        finish \name
        .endm

        embed prn_html_page, "page.html"
        embed prn_html_style, "page.css"
        begin prn_html_page_script
        .incbin "page.js"
        .incbin "page_summary.js"
        .incbin "pictures.js"
        .incbin "pictures_memory.js"
        .incbin "pictures_modules.js"
        .incbin "bars.js"
        .incbin "explorer.js"
        .incbin "graph_layout.js"
        .incbin "graph.js"
        .incbin "timeline.js"
        .incbin "accuracy.js"
        finish prn_html_page_script

        begin prn_html_charts_script
        .incbin "charts.js"
        .incbin "charts_modules.js"
        finish prn_html_charts_script

        begin prn_html_tables_script
        .incbin "table_columns.js"
        .incbin "table_row.js"
        .incbin "tables.js"
        .incbin "print.js"
        finish prn_html_tables_script

        begin prn_html_chart_library
#ifdef PRN_CHART_LIBRARY
        .incbin PRN_CHART_LIBRARY
#endif
        finish prn_html_chart_library

        .balign 8
        .globl prn_html_chart_library_bytes
        .hidden prn_html_chart_library_bytes
        .type prn_html_chart_library_bytes, %object
        .size prn_html_chart_library_bytes, 8
prn_html_chart_library_bytes:
        .quad prn_html_chart_library_end - prn_html_chart_library

        .section .note.GNU-stack, "", %progbits
