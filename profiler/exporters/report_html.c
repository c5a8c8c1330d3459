/* The report as one HTML file that needs no network: the page, its styles and scripts, the pictures of report_svg.c,
 * and the JSON report as its data. The page's scripts build the rest from that JSON, so the page can show every key,
 * and the JSON can be extracted from the page.
 *
 * Names from a model cannot end the data's element: every '<' is written as \u003c, which is valid in strings (JSON has
 * no '<' elsewhere). White space outside of strings is left out.
 */
#include "profiler/exporters/export_out.h"
#include "profiler/exporters/html_assets.h"
#include "profiler/exporters/html_tables.h"
#include "profiler/report/report.h"

#define PUT_ASSET(out, name) prn_out_bytes((out), prn_html_##name, (size_t)(prn_html_##name##_end - prn_html_##name))

typedef struct data_filter {
    prn_out *out;
    bool in_string, escaped;
} data_filter;

static int write_data(void *user, const char *data, size_t size)
{
    data_filter *filter = user;
    for (size_t i = 0; i < size; i++) {
        char c = data[i];
        if (filter->in_string) {
            if (!filter->escaped && c == '"') filter->in_string = false;
            filter->escaped = !filter->escaped && c == '\\';
        } else if (c == '"') {
            filter->in_string = true;
        } else if (c == ' ' || c == '\n') {
            continue;
        }
        if (c == '<')
            prn_out_text(filter->out, "\\u003c");
        else
            prn_out_bytes(filter->out, &c, 1);
    }
    return filter->out->status == PRONY_OK ? 0 : -1;
}

static int write_through(void *user, const char *data, size_t size)
{
    prn_out *out = user;
    prn_out_bytes(out, data, size);
    return out->status == PRONY_OK ? 0 : -1;
}

/* The plain tables come before the scripts, so that browsers without scripts show them. The JSON contains memory
 * details. */
prony_status prn_report_write_html(const prony_report *r, const prony_write_options *options, prony_write_fn write,
                                   void *user, prony_error *error)
{
    prn_out out;
    prn_out_begin(&out, write, user, error);
    data_filter filter = {.out = &out};
    prony_write_options all = *options;
    all.memory = true;
    prn_out_text(
        &out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
              "<meta name=\"generator\" content=\"prony " PRONY_VERSION "\">\n"
              "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
              "script-src 'unsafe-inline'; img-src data: blob:\">\n"
              "<link rel=\"icon\" href=\"data:,\">\n<title>");
    prn_out_xml(&out, r->model.name);
    prn_out_text(&out, "</title>\n<style>\n");
    PUT_ASSET(&out, style);
    prn_out_text(&out,
                 "</style>\n<noscript><style>.top, main { display: none; }</style></noscript>\n</head>\n<body>\n");
    PRN_TRY(prn_html_plain_tables(&out, r, error));
    PUT_ASSET(&out, page);
    prn_out_text(&out, "<section id=\"pictures\" class=\"grid plain\">\n");
    PRN_TRY(prn_report_write_pictures(r, &all, write_through, &out, error));
    prn_out_text(&out, "</section>\n<script type=\"application/json\" id=\"data\">");
    prony_status status = prn_report_write_json(r, &all, write_data, &filter, error);
    if (status != PRONY_OK) return out.status == PRONY_OK ? status : out.status;
    prn_out_text(&out, "</script>\n");
    prn_out_text(&out, "<script>\n");
    PUT_ASSET(&out, page_script);
    prn_out_text(&out, "</script>\n<script>\n");
    PUT_ASSET(&out, tables_script);
    prn_out_text(&out, "</script>\n</body>\n</html>\n");
    return prn_out_end(&out);
}
