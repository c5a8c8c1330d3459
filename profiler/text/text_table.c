/* Tables and lists of pairs on a prn_text. A table is walked twice, to measure and to write; cells are made each time,
 * so nothing is allocated. */
#include "profiler/text/text_out.h"

#include <string.h>

typedef struct layout {
    int width[PRN_TABLE_COLUMNS]; /* 0: left out */
    int gap;
} layout;

static const char *cell_string(const prn_table *table, size_t row, int column, prn_cell *cell)
{
    cell->string = "";
    cell->style = PRN_STYLE_PLAIN;
    cell->own[0] = '\0';
    table->cell(table->user, row, column, cell);
    return cell->string;
}

static void text_table_measure(const prn_table *table, layout *l)
{
    prn_cell cell;
    size_t rows = table->rows + table->footer;
    for (int c = 0; c < table->column_count; c++) {
        l->width[c] = 0;
        if (table->hidden >> c & 1) continue;
        l->width[c] = prn_text_width(table->columns[c].title);
        for (size_t r = 0; r < rows; r++) {
            int width = prn_text_width(cell_string(table, r, c, &cell));
            if (width > l->width[c]) l->width[c] = width;
        }
    }
}

static int total_width(const prn_table *table, const layout *l, int gap)
{
    int total = -gap;
    for (int c = 0; c < table->column_count; c++)
        if (l->width[c]) total += l->width[c] + gap;
    return total;
}

/* Width of the narrowable columns at `share_unit` columns per share. */
static int text_table_narrowed(const prn_table *table, const layout *l, int column, int share_unit)
{
    const prn_column *d = &table->columns[column];
    if (!d->share || !l->width[column]) return l->width[column];
    int wanted = d->share * share_unit > d->least ? d->share * share_unit : d->least;
    return wanted < l->width[column] ? wanted : l->width[column];
}

static int narrowed_total(const prn_table *table, const layout *l, int share_unit)
{
    int total = -l->gap;
    for (int c = 0; c < table->column_count; c++)
        if (l->width[c]) total += text_table_narrowed(table, l, c, share_unit) + l->gap;
    return total;
}

#define COMFORT 8 /* columns per share that extra columns must leave */

static void text_table_fit(const prn_table *table, layout *l, int width)
{
    l->gap = 2;
    for (int c = table->column_count - 1; c >= 0 && narrowed_total(table, l, COMFORT) > width; c--)
        if (table->columns[c].extra) l->width[c] = 0;
    if (total_width(table, l, 2) > width) l->gap = narrowed_total(table, l, COMFORT) > width ? 1 : 2;
    int unit = 0;
    while (unit < width && narrowed_total(table, l, unit + 1) <= width) unit++;
    int used = narrowed_total(table, l, unit);
    for (int c = 0; c < table->column_count; c++) {
        int now = text_table_narrowed(table, l, c, unit), natural = l->width[c];
        int more = width - used < natural - now ? width - used : natural - now;
        if (more < 0) more = 0;
        l->width[c] = now + more;
        used += more;
    }
}

static void put_aligned(prn_text *text, prn_style style, const char *string, int begin, int width, bool right)
{
    char shown[512];
    prn_text_shorten(shown, sizeof shown, string, width);
    prn_text_to(text, begin + (right ? width - prn_text_width(shown) : 0));
    prn_text_put(text, style, shown);
}

void prn_text_table(prn_text *text, const prn_table *table)
{
    layout l;
    prn_cell cell;
    text_table_measure(table, &l);
    text_table_fit(table, &l, text->width);
    for (int c = 0, begin = 0; c < table->column_count; c++) {
        if (!l.width[c]) continue;
        put_aligned(text, PRN_STYLE_BOLD, table->columns[c].title, begin, l.width[c], table->columns[c].right);
        begin += l.width[c] + l.gap;
    }
    prn_text_line(text);
    for (size_t r = 0; r < table->rows + table->footer; r++) {
        for (int c = 0, begin = 0; c < table->column_count; c++) {
            if (!l.width[c]) continue;
            const char *string = cell_string(table, r, c, &cell);
            prn_style style = r == table->rows ? PRN_STYLE_BOLD : cell.style;
            put_aligned(text, style, string, begin, l.width[c], table->columns[c].right);
            begin += l.width[c] + l.gap;
        }
        prn_text_line(text);
    }
}

#define PAIR_INDENT 2
#define PAIR_GAP 2
#define PAIR_MARK 2 /* columns behind the value */

static int pair_columns(const prn_text *text)
{
    int columns = (text->width - PAIR_INDENT) / 38;
    return columns < 1 ? 1 : columns > 4 ? 4 : columns;
}

static int pair_width(const prn_text *text)
{
    int columns = pair_columns(text);
    int width = (text->width - PAIR_INDENT - PAIR_GAP * (columns - 1)) / columns;
    return width > 42 ? 42 : width;
}

int prn_text_pair_room(const prn_text *text, const char *label)
{
    return pair_width(text) - PAIR_MARK - 1 - prn_text_width(label);
}

void prn_text_pairs(prn_text *text, const prn_pair *pairs, size_t count)
{
    size_t columns = (size_t)pair_columns(text), lines = (count + columns - 1) / columns;
    int width = pair_width(text);
    for (size_t line = 0; line < lines; line++) {
        for (size_t c = 0; c < columns; c++) {
            if (c * lines + line >= count) break;
            const prn_pair *p = &pairs[c * lines + line];
            int begin = PAIR_INDENT + (int)c * (width + PAIR_GAP), end = begin + width - PAIR_MARK;
            prn_text_to(text, begin);
            prn_text_put(text, PRN_STYLE_PLAIN, p->label);
            int room = end - begin - prn_text_width(p->label) - 1;
            put_aligned(text, p->style, p->value, end - room, room, true);
            prn_text_put(text, p->style, p->mark);
        }
        prn_text_line(text);
    }
}
