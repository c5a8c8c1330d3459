/* The files behind profiler/exporters/html_assets.h. */
#include "cmake/embed.inc"

        embed prn_html_page, "page.html"
        embed prn_html_style, "page.css"
        begin prn_html_page_script
        .incbin "page.js"
        .incbin "page_summary.js"
        .incbin "pictures.js"
        .incbin "pictures_zoom.js"
        .incbin "pictures_memory.js"
        .incbin "pictures_modules.js"
        .incbin "bars.js"
        .incbin "explorer.js"
        .incbin "graph_layout.js"
        .incbin "graph.js"
        .incbin "timeline.js"
        .incbin "accuracy.js"
        finish prn_html_page_script

        begin prn_html_tables_script
        .incbin "table_columns.js"
        .incbin "table_row.js"
        .incbin "tables.js"
        .incbin "print.js"
        finish prn_html_tables_script
