/* See html_page.h. The policy of the head lets no page run a script or load anything. */
#include "profiler/exporters/html_page.h"

#include "profiler/exporters/html_assets.h"

#include <prony.h>

void prn_page_begin(prn_out *out, const prn_page_head *page)
{
    prn_out_text(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta name=\"generator\" content=\"prony " PRONY_VERSION "\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                      "'unsafe-inline'\">\n<title>");
    prn_out_xml(out, page->title);
    prn_out_xml(out, page->name);
    prn_out_text(out, "</title>\n<style>\n");
    prn_out_bytes(out, prn_html_style, (size_t)(prn_html_style_end - prn_html_style));
    prn_out_text(out, page->style);
    prn_out_text(out, "</style>\n</head>\n<body>\n<header class=\"top\"><div class=\"who\"><h1>");
    prn_out_xml(out, page->heading ? page->heading : page->title);
    if (!page->heading) prn_out_xml(out, page->name);
    prn_out_text(out, "</h1>");
    if (page->subtitle) {
        prn_out_text(out, "<p id=\"subtitle\">");
        prn_out_xml(out, page->subtitle);
        prn_out_text(out, "</p>");
    }
    prn_out_text(out, "</div></header>\n<main>\n");
}
