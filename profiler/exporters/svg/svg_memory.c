/* Memory over one run: live bytes of the arena per step, and below it the arena's map, where each buffer is a rectangle
 * from its first to its last step and from its first to its last byte. The map needs the events (record_memory). */
#include "profiler/exporters/svg/report_svg.h"

#include <string.h>

enum { LEFT = 90, RIGHT = 930, TOP = 80, LIVE_BOTTOM = 300, MAP_TOP = 370, MAP_BOTTOM = 640 };

/* Draws live bytes as steps, and as dashed lines the arena's size and the lower bound of any plan. */
static void draw_live(prn_out *out, const prony_report *r, const prn_axis *x)
{
    const prony_memory_report *m = &r->memory;
    double most = (double)(m->planned_bytes > m->peak_live_bytes ? m->planned_bytes : m->peak_live_bytes);
    prn_axis y = {.low = 0, .high = most > 0 ? most * 1.08 : 1, .from = LIVE_BOTTOM, .to = TOP, .binary = true};
    prn_number_text number;
    char label[80];
    const double planned = prn_axis_at(&y, (double)m->planned_bytes),
                 bound = prn_axis_at(&y, (double)m->lower_bound_bytes);
    prn_svg_axis_y(out, &y, LEFT, RIGHT, prn_tick_bytes, "live bytes");
    prn_svg_axis_x(out, x, TOP, LIVE_BOTTOM, prn_tick_count, "step");
    prn_svg_plot_begin(out, x, TOP, LIVE_BOTTOM);
    prn_out_text(out, "<path fill=\"" PRN_SVG_BLUE "\" fill-opacity=\"0.35\" stroke=\"" PRN_SVG_BLUE "\" d=\"");
    prn_svg_point(out, 'M', x->from, LIVE_BOTTOM);
    for (size_t i = 0; i < m->timeline_count; i++) {
        double at = prn_axis_at(&y, (double)m->timeline[i].live_bytes);
        prn_svg_point(out, 'L', prn_axis_at(x, m->timeline[i].step), at);
        prn_svg_point(out, 'L', prn_axis_at(x, (double)m->timeline[i].step + 1), at);
    }
    prn_svg_point(out, 'L', x->to, LIVE_BOTTOM);
    prn_out_text(out, "Z\"/>\n");
    prn_svg_plot_end(out);
    prn_svg_line(out, LEFT, planned, RIGHT, planned, PRN_SVG_RED, 1.2, true);
    snprintf(label, sizeof label, "arena %s", prn_number_bytes(number, (double)m->planned_bytes, 4, " "));
    prn_svg_text(out, RIGHT - 4, planned - 5, PRN_ANCHOR_END, 11, PRN_SVG_RED, label);
    prn_svg_line(out, LEFT, bound, RIGHT, bound, PRN_SVG_GREEN, 1.2, true);
    snprintf(label, sizeof label, "lower bound %s", prn_number_bytes(number, (double)m->lower_bound_bytes, 4, " "));
    prn_svg_text(out, LEFT + 4, bound - 5, PRN_ANCHOR_START, 11, PRN_SVG_GREEN, label);
}

/* Every allocation in the event list has a release: `open` holds unreleased ones, hashed by offset. */
typedef struct open_block {
    const prony_memory_event *event;
    size_t block; /* position among the allocations */
    bool used;
} open_block;

static void draw_block(prn_out *out, const prn_axis *x, const prn_axis *y, const prony_memory_event *e, size_t block,
                       uint32_t last)
{
    prn_number_text bytes;
    char tip[256];
    bool scratch = e->tag && strcmp(e->tag, "scratch") == 0;
    if ((double)last + 1 > x->high) last = (uint32_t)x->high - 1; /* outputs live beyond the last step */
    double left = prn_axis_at(x, e->step), right = prn_axis_at(x, (double)last + 1);
    double top = prn_axis_at(y, (double)(e->offset_bytes + e->given_bytes)),
           bottom = prn_axis_at(y, (double)e->offset_bytes);
    snprintf(tip, sizeof tip, "%.120s (%.20s): %s, steps %u - %u", e->owner ? e->owner : "", e->tag ? e->tag : "",
             prn_number_bytes(bytes, (double)e->given_bytes, 4, " "), e->step, last);
    prn_svg_rect(out, left, top, right - left, bottom - top,
                 scratch                                    ? PRN_SVG_ORANGE
                 : e->tag && strcmp(e->tag, "dynamic") == 0 ? PRN_SVG_GREEN
                                                            : PRN_SVG_BLUE,
                 &(prn_svg_mark){tip, "block", block});
}

static size_t svg_memory_slot_of(const open_block *open, size_t slots, const prony_memory_event *e)
{
    size_t slot = (size_t)(e->offset_bytes * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (slots - 1);
    while (open[slot].used &&
           !(open[slot].event && open[slot].event->offset_bytes == e->offset_bytes &&
             open[slot].event->given_bytes == e->given_bytes && strcmp(open[slot].event->owner, e->owner) == 0))
        slot = (slot + 1) & (slots - 1);
    return slot;
}

/* Draws each block at its release, when both of its steps are known. The hash has at least twice as many slots as
 * events. */
static prony_status draw_map(prn_out *out, const prony_report *r, const prn_axis *x, prony_error *error)
{
    const prony_memory_report *m = &r->memory;
    size_t slots = 64;
    uint64_t end = m->planned_bytes;
    while (slots < 2 * m->event_count) slots *= 2;
    open_block *open = prn_calloc(slots, sizeof *open);
    if (!open) return prn_no_memory(error);
    for (size_t i = 0; i < m->event_count; i++)
        if (m->events[i].offset_bytes + m->events[i].given_bytes > end)
            end = m->events[i].offset_bytes + m->events[i].given_bytes;
    prn_axis y = {.low = 0, .high = end ? (double)end : 1, .from = MAP_BOTTOM, .to = MAP_TOP, .binary = true};
    prn_svg_axis_y(out, &y, LEFT, RIGHT, prn_tick_bytes,
                   "offset in the arena (blue: activations, orange: scratch, green: dynamic)");
    prn_svg_axis_x(out, x, MAP_TOP, MAP_BOTTOM, prn_tick_count, "step");
    prn_svg_plot_begin(out, x, MAP_TOP, MAP_BOTTOM);
    prn_out_text(out, "<g stroke=\"#ffffff\" stroke-width=\"0.5\">\n");
    size_t blocks = 0;
    for (size_t i = 0; i < m->event_count; i++) {
        const prony_memory_event *e = &m->events[i];
        size_t slot = svg_memory_slot_of(open, slots, e);
        if (!e->release) {
            open[slot] = (open_block){e, blocks++, true};
        } else if (open[slot].event) {
            draw_block(out, x, &y, open[slot].event, open[slot].block, e->step);
            open[slot].event = NULL;
        }
    }
    prn_out_text(out, "</g>\n");
    prn_svg_plot_end(out);
    prn_free(open);
    return PRONY_OK;
}

prony_status prn_svg_memory(prn_out *out, const prony_report *r, prony_error *error)
{
    const prony_memory_report *m = &r->memory;
    prn_number_text peak, average, bound;
    prn_axis x = {.low = 0, .high = (double)m->timeline[m->timeline_count - 1].step + 1, .from = LEFT, .to = RIGHT};
    char note[240];
    snprintf(note, sizeof note, "%.60s: peak %s, average %s, lower bound %s%s", prn_report_title(r),
             prn_number_bytes(peak, (double)m->peak_live_bytes, 4, " "),
             prn_number_bytes(average, (double)m->average_live_bytes, 4, " "),
             prn_number_bytes(bound, (double)m->lower_bound_bytes, 4, " "),
             m->event_count ? "" : ". No map: the arena's events were not recorded");
    prn_svg_begin(out, 960, m->event_count ? MAP_BOTTOM + 50 : LIVE_BOTTOM + 50, "Memory over one run", note);
    draw_live(out, r, &x);
    prony_status status = m->event_count ? draw_map(out, r, &x, error) : PRONY_OK;
    prn_svg_end(out);
    return status;
}
