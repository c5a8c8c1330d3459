/* The last run of a sharded model: a lane a rank, a bar for each pass of a micro-batch, and a line for each message
 * from its sending to the reader's lane. */
#include "profiler/exporters/svg/report_svg.h"

#include <string.h>

enum { WIDTH = 860, LEFT = 150, RIGHT = 830, TOP = 70, LANE = 46, BAR = 22, MOST_MESSAGES = 400 };

static const char *pass_color(uint32_t micro_batch)
{
    static const char *const own[] = {PRN_SVG_BLUE, PRN_SVG_ORANGE, PRN_SVG_GREEN, "#8250df"};
    return own[micro_batch % (sizeof own / sizeof *own)];
}

static double lane_top(size_t rank)
{
    return TOP + (double)LANE * (double)rank;
}

static void draw_pass(prn_out *out, const prn_axis *x, const prony_pipeline_event *e)
{
    const bool computes = strcmp(e->kind, "compute") == 0;
    const double from = prn_axis_at(x, (double)e->start_ns), to = prn_axis_at(x, (double)e->end_ns);
    prn_number_text time;
    char tip[200];
    snprintf(tip, sizeof tip, "rank %u, micro-batch %u: %.20s %s", e->rank, e->micro_batch, e->kind,
             prn_number_time(time, e->end_ns - e->start_ns, 3, " "));
    prn_svg_rect(out, from, lane_top(e->rank), to - from > 0.5 ? to - from : 0.5, BAR,
                 computes ? pass_color(e->micro_batch) : PRN_SVG_FAINT, PRN_SVG_TIP(tip));
}

/* The end of the receive that belongs to a send; the send's own end, within the picture, where there is none. */
static double arrival(const prn_axis *x, const prony_report *r, const prony_pipeline_event *send)
{
    for (size_t i = 0; i < r->pipeline_event_count; i++) {
        const prony_pipeline_event *e = &r->pipeline_events[i];
        if (e->rank == send->peer && e->peer == send->rank && e->micro_batch == send->micro_batch && e->tensor &&
            strcmp(e->kind, "receive") == 0 && strcmp(e->tensor, send->tensor) == 0)
            return (double)e->end_ns;
    }
    return (double)send->end_ns < x->high ? (double)send->end_ns : x->high;
}

static void draw_message(prn_out *out, const prn_axis *x, const prony_report *r, const prony_pipeline_event *e)
{
    if (strcmp(e->kind, "send") != 0 || e->peer >= r->rank_count) return;
    const bool down = e->peer > e->rank;
    prn_svg_line(out, prn_axis_at(x, (double)e->start_ns), lane_top(e->rank) + (down ? BAR : 0),
                 prn_axis_at(x, arrival(x, r, e)), lane_top(e->peer) + (down ? 0 : BAR), PRN_SVG_GREY, 1, false);
}

/* Passes alone set the scale of time: a message ends with its reader's pass. Clocks are moved to rank 0's, so times may
 * be negative. At most MOST_MESSAGES lines are drawn, so that the bars stay visible; chosen without measurement. */
prony_status prn_svg_pipeline(prn_out *out, const prony_report *r, prony_error *error)
{
    (void)error;
    double low = 0, high = 1;
    size_t messages = 0;
    for (size_t i = 0; i < r->pipeline_event_count; i++) {
        const prony_pipeline_event *e = &r->pipeline_events[i];
        if ((double)e->end_ns > high && !e->tensor) high = (double)e->end_ns;
        if ((double)e->start_ns < low && !e->tensor) low = (double)e->start_ns;
    }
    const double bottom = lane_top(r->rank_count);
    const prn_axis x = {low, high, LEFT, RIGHT, false, false};
    char note[200], name[100];
    snprintf(note, sizeof note, "the last run; a colour a micro-batch, light: waiting; ranks wait %.1f %% of the time",
             100 * r->pipeline.bubble_share);
    prn_svg_begin(out, WIDTH, bottom + 50, "Pipeline", note);
    prn_svg_axis_x(out, &x, TOP - 6, bottom, prn_tick_time, "time on rank 0's clock");
    for (size_t k = 0; k < r->rank_count; k++) {
        snprintf(name, sizeof name, "rank %zu, %.60s", k, r->ranks[k].node);
        prn_svg_text_fit(out, LEFT - 8, lane_top(k) + 15, PRN_ANCHOR_END, 11, PRN_SVG_INK, name, LEFT - 16);
    }
    for (size_t i = 0; i < r->pipeline_event_count; i++) {
        const prony_pipeline_event *e = &r->pipeline_events[i];
        if (e->rank >= r->rank_count) continue;
        if (!e->tensor)
            draw_pass(out, &x, e);
        else if (messages++ < MOST_MESSAGES)
            draw_message(out, &x, r, e);
    }
    prn_svg_end(out);
    return PRONY_OK;
}
