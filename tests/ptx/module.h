/* A parsed PTX module: what parse.c makes and interp.c runs. */
#ifndef DLC_TESTS_PTX_MODULE_H
#define DLC_TESTS_PTX_MODULE_H

#include "base/vec.h"
#include "tests/ptx/interp.h"

typedef enum {
#define PTX_OP(id, text, ndst, nsrc) PTX_##id,
#include "tests/ptx/opcodes.def"
#undef PTX_OP
    PTX_OP_COUNT
} ptx_op;

/* kind: 'b' bits, 'u', 's', 'f', 'p' predicate; 0: no type */
typedef struct {
    char kind;
    uint8_t bits;
} ptx_type;

typedef enum {
    PTX_NONE,
    PTX_REG,
    PTX_IMM,
    PTX_TID,
    PTX_CTAID,
    PTX_NTID,
    PTX_NCTAID,
    PTX_LANEID
} ptx_operand_kind;
/* An address is its register (or IMM) plus `offset`. */
typedef struct {
    uint8_t kind;
    uint32_t reg;
    uint64_t value;
    int64_t offset;
} ptx_operand;

typedef enum { PTX_GENERIC, PTX_PARAM, PTX_GLOBAL, PTX_SHARED, PTX_LOCAL } ptx_space;
typedef enum { PTX_LO, PTX_HI, PTX_WIDE } ptx_half;
typedef enum { PTX_EXACT, PTX_RN, PTX_RNI, PTX_RZI, PTX_RMI, PTX_RPI, PTX_RZ } ptx_rounding;
typedef enum {
    PTX_EQ,
    PTX_NE,
    PTX_LT,
    PTX_LE,
    PTX_GT,
    PTX_GE,
    PTX_EQU,
    PTX_NEU,
    PTX_LTU,
    PTX_LEU,
    PTX_GTU,
    PTX_GEU,
    PTX_NUM,
    PTX_NAN,
    PTX_COMPARE_COUNT
} ptx_compare;

enum { PTX_MAX_ELEMS = 4, PTX_NO_REG = 0xffffffffu };

typedef struct {
    uint8_t op, space, half, rounding, compare, is_warp, is_right, is_saturating, nelems;
    char combine; /* setp: 0, 'a'nd, 'o'r, 'x'or with src[2] */
    uint8_t has_not_third;
    ptx_type type, from; /* from: cvt */
    uint32_t guard;      /* predicate register or PTX_NO_REG */
    uint8_t guard_not;
    ptx_operand dst[PTX_MAX_ELEMS], src[5];
    ptx_operand elems[PTX_MAX_ELEMS]; /* st: what is stored */
    uint32_t target, line;
    uint32_t unused; /* ld: bytes of what is loaded that nobody uses, bit by byte (pragma
                        used_bytes_mask) */
} ptx_insn;

struct ptx_module {
    dlc_vec(ptx_insn) insns;
    uint32_t nregs, nparams, local_bytes;
};

/* Where a shared and a local variable begin; addresses below are never valid. */
enum { PTX_SHARED_BASE = 0x10000 };
#define PTX_LOCAL_BASE (UINT64_C(1) << 40)

#endif
