/* A program that is bound and rewritten once and then runs with other extents of its inputs. Shapes, constants and
 * costs that follow from the extents are computed again, in the file's order, on the nodes as they were bound. Names,
 * attributes, operators, weights and rewrites stay.
 *
 * Rewrites saw one set of extents; their conclusions must hold for every other set too. So the program is bound at
 * extents that occur nowhere else in it, and tried at second ones to find out what changes:
 *
 *   - a constant that does has no data while the program is rewritten, so that nothing follows from it;
 *   - one that does not has to come out the same whenever extents change;
 *   - extents that were equal to one another at the first have to be equal again, and those that were equal to one
 *     that never changes (of a weight, say), equal to that: whatever a rewrite found to agree still does.
 *
 * The program does not fit if one of these conditions fails, or if it has a subgraph or an extent of 0. The caller then
 * binds another one. One thread at a time. */
#ifndef PRN_ENGINE_BIND_DYNAMIC_DIMS_H
#define PRN_ENGINE_BIND_DYNAMIC_DIMS_H

#include "engine/bind/program.h"

typedef struct prn_dynamic_dims prn_dynamic_dims;

/* Takes a program bound with `open` inputs, before it is rewritten. `second`: the inputs at other extents; each open
 * extent differs from the first. *fits is false if the program cannot change its extents in this way; it can then only
 * be released, as after a failure. Constants that change have no data until prn_dynamic_dims_set. *out borrows the
 * program; the caller releases it after the program, also after a failure. */
PRN_MUST_USE prony_status prn_dynamic_dims_open(prn_dynamic_dims **out, prn_program *program, const prony_value *second,
                                                bool *fits, prony_error *error);
void prn_dynamic_dims_release(prn_dynamic_dims *extents);
/* After that: marks in fixed[value_count] (zeroed) the constants that follow from the extents but came out the same. A
 * second bind with these marks treats them as ordinary constants: weights cut by numbers that follow from shapes, for
 * example. */
void prn_dynamic_dims_fixed(const prn_dynamic_dims *extents, bool *fixed, bool *any);
/* Called once, after the program was rewritten; also trims it. */
PRN_MUST_USE prony_status prn_dynamic_dims_rewritten(prn_dynamic_dims *extents, bool *fits, prony_error *error);
/* Gives the inputs the shapes in `inputs` (one per graph input; types as bound). If *fits is false, or after a failure,
 * the program cannot run until the next success. */
PRN_MUST_USE prony_status prn_dynamic_dims_set(prn_dynamic_dims *extents, const prony_value *inputs, bool *fits,
                                               prony_error *error);

#endif
