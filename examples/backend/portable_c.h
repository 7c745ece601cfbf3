/* Between the files of this plug-in: portable_c.c writes files, kernel.c kernels, expression.c what
 * they compute. */
#ifndef PORTABLE_C_H
#define PORTABLE_C_H

#include <dlc/backend.h>

enum { SCALAR = -1, UNREAD = -2 };

typedef struct {
    const dlc_backend_api *api;
    dlc_backend_module *module;
    dlc_backend_output *out;
    uint32_t kernel;
    uint8_t *is_open; /* by axis: a loop around all stages */
    uint32_t
        *places; /* by stage: byte of its array in the scratch; SCALAR; UNREAD: stored at most */
    uint32_t scratch_bytes;
    int depth; /* of indentation */
} writer;

extern const char prelude[]; /* what every file begins with */

/* --- kernel.c --- */
void print_kernel(writer *w);

/* --- expression.c --- */
const char *c_type(dlc_dtype dtype);
int plain(const char *text); /* may stand in a comment */
void print_float(const writer *w, dlc_dtype dtype, double value);
void print_int(const writer *w, int64_t value);
void mark_operands(const dlc_backend_expr *expr, uint8_t *marks);
/* The type of an expression's variable: of i64 that stay small, int32_t. */
const char *type_of(const writer *w, uint32_t expr);
/* "const T vN = …;" */
void print_definition(const writer *w, uint32_t expr);
/* "s3", or the element of stage 3's array at these indices (expressions; NULL: its own axes). */
void print_stage(const writer *w, uint32_t stage, uint32_t second, const uint32_t *indices);
/* As print_stage without indices, but the array's bytes: for the declaration. */
uint32_t stage_bytes(const writer *w, uint32_t stage);

#endif
