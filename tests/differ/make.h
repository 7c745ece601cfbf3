/*
 * Random valid graphs: nodes of all kinds over values that are there, inputs and constants where nothing fits, and regions. What an
 * operator refuses is not kept, so whatever ops.def admits can come. Numbers stay tame: where they would grow they are brought back.
 */
#ifndef DLC_TESTS_DIFFER_MAKE_H
#define DLC_TESTS_DIFFER_MAKE_H

#include "base/str.h"
#include "ir/graph/op.h"
#include "tests/differ/draws.h"

enum { MAKE_MOST_ITEMS = 400, MAKE_MOST_ELEMS = 4096 };

/* A value that nodes may read. */
typedef struct {
    dlc_value *value;
    double size;   /* of floats, about */
    int64_t below; /* integers from 0 to below - 1; 0: any */
} item;

typedef struct {
    draws *from;
    dlc_arena *arena;
    dlc_diag diag;
    dlc_graph *graph;
    item items[MAKE_MOST_ITEMS];
    uint32_t nitems, ninputs, nnodes;
    uint32_t first; /* item of the innermost region */
    uint32_t depth; /* of regions */
} make;

/* A graph as text, appended to out, with a first line that says with which sizes it is run. */
void make_graph(draws *from, uint32_t nnodes, dlc_str *out);

/* --- for what makes nodes --- */
dlc_expr make_int(make *m, int64_t value);
int64_t make_elems(const make *m, const dlc_type *type); /* when symbols are large */
item *make_keep(make *m, dlc_value *value, double size, int64_t below); /* NULL for NULL */
void make_tame(make *m, dlc_value *value, double size); /* the same, and brought back where numbers grow */
/* A node; NULL: it is refused, or too large. */
dlc_value *make_node(make *m, dlc_opcode op, dlc_value *const *inputs, uint32_t ninputs, const dlc_attr *attrs, uint32_t nattrs);
dlc_value *make_unary(make *m, dlc_opcode op, dlc_value *x);
dlc_value *make_binary(make *m, dlc_opcode op, dlc_value *a, dlc_value *b);
dlc_value *make_cast(make *m, dlc_value *x, dlc_dtype dtype);
dlc_value *make_reshape(make *m, dlc_value *x, const dlc_expr *dims, uint32_t rank);
dlc_value *make_scalar(make *m, dlc_dtype dtype, double value);
/* A new input, or a constant. below > 0: integers from 0 on. */
dlc_value *make_source(make *m, dlc_dtype dtype, const dlc_expr *dims, uint32_t rank, int64_t below);
dlc_value *make_input(make *m, dlc_dtype dtype, const dlc_expr *dims, uint32_t rank, int64_t below);
dlc_value *make_tensor(make *m, dlc_dtype dtype, uint32_t rank); /* of dimensions drawn */
dlc_dtype make_float_dtype(make *m);
dlc_dtype make_int_dtype(make *m);

typedef enum { WANT_FLOAT, WANT_INT, WANT_BOOL, WANT_NUM, WANT_ANY } make_want;
/* A value of rank lo to hi that can be seen, mostly a young one, or a new one. */
item make_pick(make *m, make_want want, uint32_t lo, uint32_t hi);
/* The same of one dtype and shape; NULL: there is none. */
dlc_value *make_find(make *m, const dlc_type *type, const dlc_value *other_than);
void make_step(make *m);    /* one more, of any kind */
void make_nodes(make *m, uint32_t n);

#endif
