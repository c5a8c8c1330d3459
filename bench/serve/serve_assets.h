/* Files compiled into the command for the live page, each from its first byte up to, not including, its _end symbol,
 * where a NUL stands. */
#ifndef PRN_BENCH_SERVE_SERVE_ASSETS_H
#define PRN_BENCH_SERVE_SERVE_ASSETS_H

extern const char serve_page_body[], serve_page_body_end[];     /* live.html */
extern const char serve_page_style[], serve_page_style_end[];   /* the reports' page.css, and live.css */
extern const char serve_page_script[], serve_page_script_end[]; /* live.js */

#endif
