/* Tables and lists of pairs on a prn_text. A table is walked twice, to measure and to write; cells are made each time.
 * Only the names of a narrowed column are kept, to be shortened together. */
#include "profiler/text/short_names.h"
#include "profiler/text/text_out.h"

#include <stdio.h>
#include <string.h>

typedef struct layout {
    int width[PRN_TABLE_COLUMNS]; /* 0: left out */
    int gap;
    uint32_t whole;                           /* bit c: column c is not narrowed */
    prn_short_names names[PRN_TABLE_COLUMNS]; /* count 0: the cells are shown as they are */
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
    if (!d->share || !l->width[column] || l->whole >> column & 1) return l->width[column];
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
    for (int c = table->column_count - 1; c >= 0 && narrowed_total(table, l, 0) > width; c--)
        if (table->minor >> c & 1) l->width[c] = 0;
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
    const bool whole = text->whole_names && prn_text_width(string) <= width;
    if (!whole) prn_text_shorten(shown, sizeof shown, string, width);
    prn_text_to(text, begin + (right ? width - prn_text_width(whole ? string : shown) : 0));
    prn_text_put(text, style, whole ? string : shown);
}

/* The names of a column, the footer aside, cut to its width. False: out of memory. */
static bool shorten_names(const prn_table *table, layout *l, int column)
{
    prn_cell cell;
    prn_bump pool = {0};
    const char **names = prn_calloc(table->rows + 1, sizeof *names);
    bool ok = names != NULL;
    for (size_t r = 0; ok && r < table->rows; r++) {
        const char *string = cell_string(table, r, column, &cell);
        names[r] = prn_bump_strndup(&pool, string, strlen(string));
        ok = names[r] != NULL;
    }
    if (ok) ok = prn_short_names_make(&l->names[column], names, table->rows, l->width[column]);
    prn_bump_release(&pool);
    prn_free(names);
    return ok;
}

static const char *shown_string(const prn_table *table, const layout *l, size_t row, int column, prn_cell *cell)
{
    const char *string = cell_string(table, row, column, cell);
    return row < l->names[column].count ? l->names[column].shown[row] : string;
}

static void put_left_out(prn_text *text, const char *title, const prn_short_names *names)
{
    char line[400], before[120], after[120];
    if (names->count == 0) return;
    if (strspn(names->before, "/._:") == strlen(names->before) && !*names->after) return;
    prn_text_shorten(before, sizeof before, names->before, 110);
    prn_text_shorten(after, sizeof after, names->after, 110);
    snprintf(line, sizeof line, "each %s %s%s%s%s%s", title, *before ? "begins with " : "", before,
             *before && *after ? " and " : "", *after ? "ends with " : "", after);
    prn_text_wrap(text, PRN_STYLE_DIM, 0, line);
}

static void put_rows(prn_text *text, const prn_table *table, const layout *l)
{
    prn_cell cell;
    for (size_t r = 0; r < table->rows + table->footer; r++) {
        for (int c = 0, begin = 0; c < table->column_count; c++) {
            if (!l->width[c]) continue;
            const char *string = shown_string(table, l, r, c, &cell);
            prn_style style = r == table->rows ? PRN_STYLE_BOLD : cell.style;
            put_aligned(text, style, string, begin, l->width[c], table->columns[c].right);
            begin += l->width[c] + l->gap;
        }
        prn_text_line(text);
    }
}

/* With whole names the table may exceed the terminal: text->width is widened while it is written, and restored. Names
 * of a narrowed column are shortened together, so they stay distinct; put_left_out says below the table what they have
 * in common. */
void prn_text_table(prn_text *text, const prn_table *table)
{
    layout l = {.whole = text->whole_names ? table->names : 0};
    int natural[PRN_TABLE_COLUMNS];
    const int width = text->width;
    text_table_measure(table, &l);
    memcpy(natural, l.width, sizeof natural);
    text_table_fit(table, &l, width);
    if (text->whole_names && total_width(table, &l, l.gap) > width) text->width = total_width(table, &l, l.gap);
    for (int c = 0; c < table->column_count; c++)
        if ((table->names >> c & 1) && l.width[c] && l.width[c] < natural[c] && !shorten_names(table, &l, c) &&
            text->status == PRONY_OK)
            text->status = prn_no_memory(text->error);
    if (text->status == PRONY_OK) {
        for (int c = 0, begin = 0; c < table->column_count; c++) {
            if (!l.width[c]) continue;
            put_aligned(text, PRN_STYLE_BOLD, table->columns[c].title, begin, l.width[c], table->columns[c].right);
            begin += l.width[c] + l.gap;
        }
        prn_text_line(text);
        put_rows(text, table, &l);
    }
    text->width = width;
    for (int c = 0; c < table->column_count; c++) {
        put_left_out(text, table->columns[c].title, &l.names[c]);
        prn_short_names_free(&l.names[c]);
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
