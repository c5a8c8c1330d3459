/* The parts of engine/bind/dynamic_dims.c: the walk's nodes, and the classes of equal extents. */
#ifndef PRN_ENGINE_BIND_DYNAMIC_DIMS_PARTS_H
#define PRN_ENGINE_BIND_DYNAMIC_DIMS_PARTS_H

#include "engine/bind/bind_pass.h"

typedef struct prn_dynamic_dims prn_dynamic_dims;

enum { PRN_PATTERN_VISITED = 63 }; /* the bit of a node that was inferred; nodes of so many outputs share it */

typedef struct prn_walked {
    prn_node_def node; /* as it was bound */
    uint32_t layer;
    uint32_t next;       /* the next congruent node, which takes this one's results; PRN_NO_NODE: the last */
    uint32_t members;    /* congruent nodes behind this one, and itself */
    bool follows;        /* another node leads it */
    uint64_t pattern;    /* of its outputs, those that the last walk moved (bit k), and PRN_PATTERN_VISITED; 0: none */
    prony_shape *shapes; /* of its outputs at the first extents; while the program is opened */
    uint32_t *forms;     /* type and rank of each output, and the classes of its extents behind them */
} prn_walked;

/* Extents that are always equal to one another. */
typedef struct prn_extent_class {
    int64_t first, second; /* at the extents that it was opened with */
    int64_t now, before;   /* of this walk and of the one before */
    uint64_t walk;         /* the last one that met it */
    size_t met, members;   /* its extents: met in that walk, and all */
} prn_extent_class;

/* Elements of a constant that changes. */
typedef struct prn_own_data {
    uint32_t value;
    uint32_t shape_of; /* the elements are the extents of this value; PRN_NO_VALUE: a walked node makes them */
    void *data;
    size_t bytes; /* of those that a congruent node gave it; 0: of others */
} prn_own_data;

struct prn_dynamic_dims {
    prn_program *program;
    prn_walked *nodes;
    size_t count, capacity;
    prn_extent_class *classes;
    size_t class_count, class_capacity;
    prn_own_data *own;
    size_t own_count, own_capacity, next_own;
    uint32_t *input_forms; /* as `forms`, of all inputs */
    size_t bound_values;   /* values of the program before it was rewritten */
    uint32_t *own_at;      /* by value: index of `own`; once the program is rewritten */
    bool settled;          /* the last walk finished: nodes whose inputs have not moved since keep their results */
    uint64_t walks;
    uint32_t *changed; /* classes that this walk changed */
    size_t changed_count, changed_capacity;
    bool *moved, *reaching; /* by input: its shape moved in this walk, and in the one that `reached` is of */
    uint32_t *reached;      /* nodes that these inputs reach, without those that follow; NULL: not known */
    uint32_t *active;       /* those of them that the last walk inferred */
    size_t reached_count, active_count;
};

/* ---- dynamic_dims_forms.c */

/* Notes the forms of inputs and outputs: `inputs` has their first shapes, the program the second ones. *fits false: an
 * equal extent became another number. */
PRN_MUST_USE prony_status prn_dim_classes_note(prn_dynamic_dims *x, prn_program *p, const prony_shape *inputs,
                                               bool *fits, prony_error *error);
/* Links congruent nodes, at the second extents, when forms are noted. */
PRN_MUST_USE prony_status prn_dim_classes_link(prn_dynamic_dims *x, prn_program *p, prony_error *error);
/* true: the value, and all values that congruent nodes make like it, has its noted form with the classes' current
 * extents. */
bool prn_dim_classes_keep_form(prn_dynamic_dims *x, const uint32_t **forms, const prony_value *value, size_t members);
/* true: a class that this walk changed has no extent that the walk has not met, which still is what it was. */
bool prn_dim_classes_complete(const prn_dynamic_dims *x);

/* ---- dynamic_dims_walk.c */

/* Takes all values to the extents of `inputs`. `learning`: the second extents, while the program is opened. */
PRN_MUST_USE prony_status prn_dynamic_dims_walk(prn_dynamic_dims *x, prn_program *p, const prony_value *inputs,
                                                bool learning, bool *fits, prony_error *error);
/* The value's elements change: they are the extents of `shape_of`, or (PRN_NO_VALUE) made by a walked node. */
PRN_MUST_USE prony_status prn_dynamic_dims_add_own(prn_dynamic_dims *x, prn_program *p, uint32_t value,
                                                   uint32_t shape_of, prony_error *error);
/* Takes over `data` as the constant's elements. */
void prn_dynamic_dims_set_own(prn_program *p, prn_own_data *own, void *data);

#endif
