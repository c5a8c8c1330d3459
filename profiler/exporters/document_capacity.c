/* The chart of prony.capacity/1: the largest rate that keeps the bound over the number of processors, and the wanted
 * rate. */
#include "profiler/exporters/document_capacity.h"

#include <math.h>

enum {
    CHART_WIDTH = 900,
    CHART_HEIGHT = 260,
    CHART_LEFT = 80,
    CHART_BOTTOM = 36,
    CHART_TOP = 12,
    CHART_RIGHT = 150,
    TICKS = 4
};

typedef struct capacity_chart {
    prn_out *out;
    double most_cores, most_rate;
} capacity_chart;

static double chart_x(const capacity_chart *c, double cores)
{
    double part = c->most_cores > 1 ? (cores - 1) / (c->most_cores - 1) : 0.5;
    return CHART_LEFT + part * (CHART_WIDTH - CHART_LEFT - CHART_RIGHT);
}

static double chart_y(const capacity_chart *c, double rate)
{
    return CHART_HEIGHT - CHART_BOTTOM - rate / c->most_rate * (CHART_HEIGHT - CHART_BOTTOM - CHART_TOP);
}

/* A round number of which TICKS reach `most`. */
static double chart_step(double most)
{
    double power = pow(10, floor(log10(most / TICKS)));
    for (int i = 0; i < 3; i++)
        if ((double[]){1, 2, 5}[i] * power * TICKS >= most) return (double[]){1, 2, 5}[i] * power;
    return 10 * power;
}

static void chart_axes(const capacity_chart *c, double step)
{
    for (int i = 0; i <= TICKS; i++) {
        double y = chart_y(c, step * i);
        prn_out_format(c->out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" style=\"stroke:var(--line)\"/>",
                       CHART_LEFT, CHART_WIDTH - CHART_RIGHT, y, y);
        prn_out_format(c->out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", CHART_LEFT - 8, y + 4,
                       step * i);
    }
    prn_out_format(c->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">processors</text>\n",
                   (CHART_LEFT + CHART_WIDTH - CHART_RIGHT) / 2, CHART_HEIGHT - 2);
}

static void chart_points(prn_document *d, const capacity_chart *c, const prn_document_rows *rows)
{
    double cores, rate, labelled = -1e9;
    prn_out_text(c->out, "<polyline style=\"fill:none;stroke:var(--accent);stroke-width:2\" points=\"");
    for (size_t i = 0; i < rows->count; i++)
        if (prn_document_number(d, rows->rows[i], "cores", &cores) &&
            prn_document_number(d, rows->rows[i], "largest_rate", &rate))
            prn_out_format(c->out, "%.1f,%.1f ", chart_x(c, cores), chart_y(c, rate));
    prn_out_text(c->out, "\"/>\n");
    for (size_t i = 0; i < rows->count; i++) {
        if (!prn_document_number(d, rows->rows[i], "cores", &cores) ||
            !prn_document_number(d, rows->rows[i], "largest_rate", &rate))
            continue;
        double x = chart_x(c, cores);
        prn_out_format(c->out,
                       "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" style=\"fill:var(--accent)\"><title>%g processors: "
                       "%.5g/s</title></circle>",
                       x, chart_y(c, rate), cores, rate);
        if (x - labelled < 24) continue;
        labelled = x;
        prn_out_format(c->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", x,
                       CHART_HEIGHT - CHART_BOTTOM + 16, cores);
    }
}

/* Draws nothing without a wanted rate or rows. The axis of rates begins at 0, covers the wanted rate too, and ends
 * after TICKS whole steps. */
void prn_document_capacity_chart(prn_document *d, const prn_document_rows *rows, prn_out *out)
{
    capacity_chart c = {.out = out};
    double cores, rate, wanted;
    for (size_t i = 0; i < rows->count; i++) {
        if (prn_document_number(d, rows->rows[i], "cores", &cores) && cores > c.most_cores) c.most_cores = cores;
        if (prn_document_number(d, rows->rows[i], "largest_rate", &rate) && rate > c.most_rate) c.most_rate = rate;
    }
    if (!prn_document_number(d, NULL, "config.rate", &wanted) || !rows->count) return;
    if (wanted > c.most_rate) c.most_rate = wanted;
    if (!(c.most_rate > 0) || !isfinite(c.most_rate)) return;
    double step = chart_step(c.most_rate);
    c.most_rate = step * TICKS;
    prn_out_format(
        out,
        "<div class=\"panel wide\"><h2>Requests per second that keep the bound</h2><svg viewBox=\"0 0 %d %d\" "
        "style=\"width:100%%;max-width:%dpx;font-size:12px;fill:var(--soft)\" role=\"img\">\n",
        CHART_WIDTH, CHART_HEIGHT, CHART_WIDTH);
    chart_axes(&c, step);
    chart_points(d, &c, rows);
    double y = chart_y(&c, wanted);
    prn_out_format(out,
                   "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" "
                   "style=\"stroke:var(--time);stroke-width:2;stroke-dasharray:6 4\"/>",
                   CHART_LEFT, CHART_WIDTH - CHART_RIGHT, y, y);
    prn_out_format(out, "<text x=\"%d\" y=\"%.1f\">wanted %g/s</text>\n</svg></div>\n", CHART_WIDTH - CHART_RIGHT + 6,
                   y + 4, wanted);
}
