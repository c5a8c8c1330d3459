/* A program that is bound and rewritten once while extents of its inputs change: what follows from them is inferred, evaluated and
 * counted again, in the file's order, on the nodes as they were bound; names, attributes, operators, weights and rewrites stay.
 *
 * Rewrites looked at one set of extents, and must have found nothing that another one makes untrue. So the program is bound at
 * extents that occur nowhere else in it, and tried at second ones, which tells what changes:
 *
 *   - a constant that does has no data while the program is rewritten, so that nothing follows from it;
 *   - one that does not has to come out the same whenever extents change;
 *   - extents that were equal to one another at the first have to be equal again, and those that were equal to one that never
 *     changes (of a weight, say), equal to that: whatever a rewrite found to agree still does.
 *
 * Where that does not hold, and where a subgraph or an extent of 0 is met, the program does not fit, and the caller binds another.
 * Ownership: the program owns it. One thread at a time. */
#ifndef PRN_ENGINE_BIND_EXTENTS_H
#define PRN_ENGINE_BIND_EXTENTS_H

#include "engine/bind/program.h"

typedef struct prn_extents prn_extents;

/* Once, of a program bound with `open` inputs, before it is rewritten: `second` are the inputs at other extents, each open one other
 * than before. *fits: false where the program cannot change its extents so; it is then good for nothing but to be released, as after
 * a failure. It is left without the data of constants that change, until prn_extents_set. */
PRN_MUST_USE prony_status prn_extents_open(prn_program *program, const prony_value *second, bool *fits, prony_error *error);
/* After that: which values (fixed[value_count], zeroed) are constants that follow from the extents and came out the same. Bound once
 * more with them, what follows from them is as in any program: weights cut by numbers that follow from shapes, say. */
void prn_extents_fixed(const prn_program *program, bool *fixed, bool *any);
/* Once, after it was rewritten. */
PRN_MUST_USE prony_status prn_extents_rewritten(prn_program *program, bool *fits, prony_error *error);
/* Gives the inputs the shapes in `inputs` (one per graph input; types as bound). Unless *fits comes back true, and after a failure, the
 * program is of no extents at all until the next success. */
PRN_MUST_USE prony_status prn_extents_set(prn_program *program, const prony_value *inputs, bool *fits, prony_error *error);

/* Adds the reads that prn_extents_set makes; `uses` as in prn_program_count_uses. */
void prn_extents_count_uses(const prn_program *program, uint32_t *uses);
void prn_extents_release(prn_extents *extents);

#endif
