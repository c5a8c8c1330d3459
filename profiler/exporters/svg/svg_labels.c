/* Implements svg_labels.h. Candidates lie in rings around the spot; those that overlap a label are dropped. Hidden
 * spots and distance decide among the rest. Cost: labels x candidates x (labels + spots). */
#include "profiler/exporters/svg/svg_labels.h"

#include "profiler/text/utf8.h"

#include <math.h>

#define WIDEST_CHARACTER 0.66 /* mean character width over the font's size, of the widest likely font */
#define HIDDEN_COST 14.0      /* hiding a spot costs as much as so many pixels of distance */
enum { RINGS = 9, RING_STEP = 14, DIRECTIONS = 16, MARGIN = 2 };

prn_box prn_label_box(const char *text, double size, double left, double baseline)
{
    double width = (double)prn_utf8_length(text) * size * WIDEST_CHARACTER;
    return (prn_box){left, baseline - size, left + width, baseline + 0.3 * size};
}

static bool boxes_meet(const prn_box *a, const prn_box *b)
{
    return a->left < b->right + MARGIN && b->left < a->right + MARGIN && a->top < b->bottom + MARGIN &&
           b->top < a->bottom + MARGIN;
}

static bool is_free(const prn_labels *labels, const prn_box *box)
{
    const prn_box *w = &labels->within;
    if (box->left < w->left || box->right > w->right || box->top < w->top || box->bottom > w->bottom) return false;
    for (size_t i = 0; i < labels->count; i++)
        if (boxes_meet(box, &labels->taken[i])) return false;
    return true;
}

bool prn_labels_take(prn_labels *labels, const prn_box *box)
{
    if (labels->count == PRN_MOST_LABELS || !is_free(labels, box)) return false;
    labels->taken[labels->count++] = *box;
    return true;
}

/* From a point to the nearest one of the box; 0 inside. */
static double svg_labels_distance(const prn_box *box, double x, double y, double *near_x, double *near_y)
{
    *near_x = fmin(fmax(x, box->left), box->right);
    *near_y = fmin(fmax(y, box->top), box->bottom);
    return hypot(x - *near_x, y - *near_y);
}

static double hidden_by(const prn_labels *labels, const prn_box *box)
{
    double cost = 0, x, y;
    for (size_t i = 0; i < labels->spot_count; i++) {
        const prn_spot *s = &labels->spots[i];
        if (svg_labels_distance(box, s->x, s->y, &x, &y) < s->radius) cost += HIDDEN_COST;
    }
    return cost;
}

/* A box of the size of `shape` that touches the ring in that direction. */
static prn_box svg_labels_beside(const prn_box *shape, const prn_spot *spot, double ring, int direction)
{
    double angle = 2 * 3.14159265358979 * direction / DIRECTIONS, width = shape->right - shape->left,
           height = shape->bottom - shape->top;
    double x = spot->x + cos(angle) * (ring + width / 2), y = spot->y + sin(angle) * (ring + height / 2);
    return (prn_box){x - width / 2, y - height / 2, x + width / 2, y + height / 2};
}

bool prn_labels_draw(prn_labels *labels, prn_out *out, const prn_spot *spot, double size, const char *color,
                     const char *text)
{
    prn_box shape = prn_label_box(text, size, 0, 0), best = {0, 0, 0, 0};
    double least = INFINITY, x, y;
    for (int ring = 0; ring < RINGS; ring++)
        for (int direction = 0; direction < DIRECTIONS; direction++) {
            prn_box box = svg_labels_beside(&shape, spot, spot->radius + 3 + ring * RING_STEP, direction);
            double cost = svg_labels_distance(&box, spot->x, spot->y, &x, &y);
            if (cost >= least || !is_free(labels, &box)) continue;
            cost += hidden_by(labels, &box);
            if (cost < least) {
                least = cost;
                best = box;
            }
        }
    if (!(least < INFINITY) || !prn_labels_take(labels, &best)) return false;
    if (svg_labels_distance(&best, spot->x, spot->y, &x, &y) > spot->radius + 6) {
        double part = spot->radius / hypot(x - spot->x, y - spot->y);
        prn_svg_line(out, spot->x + (x - spot->x) * part, spot->y + (y - spot->y) * part, x, y, PRN_SVG_GREY, 0.8,
                     false);
    }
    prn_svg_text(out, (best.left + best.right) / 2, best.bottom - 0.3 * size, PRN_ANCHOR_MIDDLE, size, color, text);
    return true;
}
