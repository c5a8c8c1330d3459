/* Fills one cell of a table: numbers in three digits with their unit, "-" for unknown ones. */
#ifndef PRN_PROFILER_EXPORTERS_TEXT_CELL_H
#define PRN_PROFILER_EXPORTERS_TEXT_CELL_H

#include "profiler/text/text_out.h"

#define PRN_CELL_BAR_COLUMNS 20

void prn_cell_count(prn_cell *cell, uint64_t value);
void prn_cell_bytes(prn_cell *cell, uint64_t value);
void prn_cell_index(prn_cell *cell, uint64_t value);
void prn_cell_time(prn_cell *cell, int64_t ns);
/* "~0.2ms": an estimate with so many significant digits. */
void prn_cell_about_time(prn_cell *cell, int64_t ns, int digits);
void prn_cell_about_percent(prn_cell *cell, double share, int digits);
/* Coloured from 5 % and from 20 % on. */
void prn_cell_percent(prn_cell *cell, double share);
/* "-" without FLOPs or time. */
void prn_cell_gflops(prn_cell *cell, uint64_t flops, int64_t ns);
/* `full` fills the bar. */
void prn_cell_bar(prn_cell *cell, double value, double full);
/* "1x64x112x112", "?" where unknown; NULL: unknown. */
void prn_cell_shape(prn_cell *cell, const prony_value *value);

#endif
