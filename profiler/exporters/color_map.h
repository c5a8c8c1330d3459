/* The level of a row on the colour map, and its colour: its share of the measured time, or of the FLOPs if nothing was
 * measured.
 */
#ifndef PRN_PROFILER_EXPORTERS_COLOR_MAP_H
#define PRN_PROFILER_EXPORTERS_COLOR_MAP_H

#include "profiler/report/report.h"

#include <stdio.h>

#define PRN_COLOR_BYTES 8
typedef char prn_color[PRN_COLOR_BYTES]; /* "#rrggbb" */

static inline double prn_color_map_layer(const prony_report *report, const prony_layer_row *layer)
{
    if (prn_report_stamped(report)) return layer->measured ? layer->share : 0;
    return report->totals.cost.flops ? (double)layer->cost.flops / (double)report->totals.cost.flops : 0;
}

static inline double prn_color_map_max(const prony_report *report)
{
    double most = 0;
    for (size_t i = 0; i < report->layer_count; i++) {
        double heat = prn_color_map_layer(report, &report->layers[i]);
        if (heat > most) most = heat;
    }
    return most;
}

/* From a pale yellow (0) over orange to a dark red (1); dark text is readable on the first half, white on the rest. */
static inline const char *prn_color_map_color(prn_color color, double level)
{
    static const unsigned char stops[][3] = {
        {255, 250, 235}, {254, 217, 142}, {254, 153, 41}, {217, 95, 14}, {140, 45, 4}};
    level = level < 0 ? 0 : level > 1 ? 1 : level;
    unsigned stop = level >= 1 ? 3 : (unsigned)(level * 4);
    double part = level * 4 - stop;
    unsigned rgb[3];
    for (int c = 0; c < 3; c++)
        rgb[c] = (unsigned)(stops[stop][c] + part * (stops[stop + 1][c] - stops[stop][c])) & 255;
    snprintf(color, PRN_COLOR_BYTES, "#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
    return color;
}

typedef struct prn_hot_layer {
    double heat;
    uint32_t layer;
} prn_hot_layer;

/* Every layer, the hottest first, equals in the model's order; NULL: out of memory. The caller releases it by prn_free.
 */
prn_hot_layer *prn_hottest_layers(const prony_report *report, size_t *count);

#endif
