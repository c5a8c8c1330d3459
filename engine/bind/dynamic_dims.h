/* A program that is bound and rewritten once while extents of its inputs change: what follows from them is inferred,
 * evaluated and counted again, in the file's order, on the nodes as they were bound; names, attributes, operators,
 * weights and rewrites stay.
 *
 * Rewrites looked at one set of extents, and must have found nothing that another one makes untrue. So the program is
 * bound at extents that occur nowhere else in it, and tried at second ones, which tells what changes:
 *
 *   - a constant that does has no data while the program is rewritten, so that nothing follows from it;
 *   - one that does not has to come out the same whenever extents change;
 *   - extents that were equal to one another at the first have to be equal again, and those that were equal to one that
 *   never
 *     changes (of a weight, say), equal to that: whatever a rewrite found to agree still does.
 *
 * Where that does not hold, and where a subgraph or an extent of 0 is met, the program does not fit, and the caller
 * binds another. One thread at a time. */
#ifndef PRN_ENGINE_BIND_DYNAMIC_DIMS_H
#define PRN_ENGINE_BIND_DYNAMIC_DIMS_H

#include "engine/bind/program.h"

typedef struct prn_dynamic_dims prn_dynamic_dims;

/* Of a program bound with `open` inputs, before it is rewritten: `second` are the inputs at other extents, each open
 * one other than before. *fits: false where the program cannot change its extents so; it is then good for nothing but
 * to be released, as after a failure. It is left without the data of constants that change, until prn_dynamic_dims_set. *out
 * is to be released, whatever comes of it, when the program has been; it borrows the program. */
PRN_MUST_USE prony_status prn_dynamic_dims_open(prn_dynamic_dims **out, prn_program *program, const prony_value *second,
                                                bool *fits, prony_error *error);
void prn_dynamic_dims_release(prn_dynamic_dims *extents);
/* After that: which values (fixed[value_count], zeroed) are constants that follow from the extents and came out the
 * same. Bound once more with them, what follows from them is as in any program: weights cut by numbers that follow from
 * shapes, say. */
void prn_dynamic_dims_fixed(const prn_dynamic_dims *extents, bool *fixed, bool *any);
/* Once, after it was rewritten; trims it too. */
PRN_MUST_USE prony_status prn_dynamic_dims_rewritten(prn_dynamic_dims *extents, bool *fits, prony_error *error);
/* Gives the inputs the shapes in `inputs` (one per graph input; types as bound). Unless *fits comes back true, and
 * after a failure, the program is of no extents at all until the next success. */
PRN_MUST_USE prony_status prn_dynamic_dims_set(prn_dynamic_dims *extents, const prony_value *inputs, bool *fits,
                                               prony_error *error);

#endif
