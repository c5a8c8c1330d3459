/* Files compiled into the command for the live page, each from its first byte up to, not including, its _end symbol,
 * where a NUL stands. */
#ifndef PRN_BENCH_SERVE_SERVE_ASSETS_H
#define PRN_BENCH_SERVE_SERVE_ASSETS_H

extern const char prn_live_page[], prn_live_page_end[];     /* live.html */
extern const char prn_live_style[], prn_live_style_end[];   /* the reports' page.css, and live.css */
extern const char prn_live_script[], prn_live_script_end[]; /* live.js */

#endif
