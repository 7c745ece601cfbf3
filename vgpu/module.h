/* A parsed PTX module: what parse.c makes, decode.c prepares and launch.c runs. */
#ifndef DLC_VGPU_MODULE_H
#define DLC_VGPU_MODULE_H

#include "base/diag.h"
#include "base/vec.h"

typedef enum {
#define PTX_OP(id, text, ndst, nsrc, kind) PTX_##id,
#include "vgpu/opcodes.def"
#undef PTX_OP
    PTX_OP_COUNT
} ptx_op;

/* Special registers: by their place here, then by axis x, y, z. */
typedef enum { PTX_TID, PTX_NTID, PTX_CTAID, PTX_NCTAID, PTX_LANEID, PTX_WARPID } ptx_special;
enum { PTX_SPECIALS = 4 * 3 + 2 };

/* kind: 'b' bits, 'u', 's', 'f', 'p' predicate; 0: no type */
typedef struct {
    char kind;
    uint8_t bits;
} ptx_type;

/* PTX_SPECIAL: `reg` is its number among PTX_SPECIALS. */
typedef enum { PTX_NONE, PTX_REG, PTX_IMM, PTX_SPECIAL } ptx_operand_kind;
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
/* What an instruction of several is: of shuffles which lane, of atomics what happens, of
 * asynchronous copies and products of a group of warps which step. */
typedef enum {
    PTX_PLAIN,
    PTX_IDX,
    PTX_UP,
    PTX_DOWN,
    PTX_BFLY,
    PTX_ADDS,
    PTX_MINS,
    PTX_MAXS,
    PTX_EXCH,
    PTX_CAS,
    PTX_ANDS,
    PTX_ORS,
    PTX_ARRIVE,
    PTX_COMMIT_GROUP,
    PTX_WAIT_GROUP,
    PTX_WAIT_ALL,
    PTX_FENCES,
    PTX_MULTIPLIES
} ptx_mode;

/* What products of matrices are made of, in the order of ptx_matrix_types (vgpu/parse.c). */
typedef enum { PTX_F32, PTX_S32, PTX_F16, PTX_BF16, PTX_TF32, PTX_S8, PTX_U8 } ptx_element;

enum { PTX_SAID_SYNC = 1, PTX_SAID_ALIGNED = 2, PTX_SAID_ROW = 4, PTX_SAID_COL = 8 };

/* mma has three vectors of sources: one after the other. */
enum { PTX_MAX_ELEMS = 4, PTX_MAX_SOURCES = 10, PTX_NO_REG = 0xffffffffu };

typedef struct {
    uint8_t op, space, half, rounding, compare, mode, is_warp, is_right, is_saturating, nelems,
        nsrc;
    uint8_t is_noncoherent;
    uint8_t is_of_proxies; /* fence: what was stored is there for products of warps, too */
    uint8_t is_transposed; /* ldmatrix */
    uint8_t depth;         /* mma: of 16 x depth by depth x 8 */
    uint8_t said;          /* PTX_SAID_…: words without which ptxas takes no product of matrices */
    uint8_t nsaid;         /* ld, st, ldmatrix: how many elements or matrices the opcode speaks of; 0: one */
    uint8_t elements[4], nelements; /* mma: ptx_element of the result, of the factors, of what is added */
    char combine; /* setp: 0, 'a'nd, 'o'r, 'x'or with src[2] */
    uint8_t has_not_third;
    ptx_type type, from; /* from: cvt */
    uint32_t guard;      /* predicate register or PTX_NO_REG */
    uint8_t guard_not;
    ptx_operand dst[PTX_MAX_ELEMS], src[PTX_MAX_SOURCES];
    ptx_operand elems[PTX_MAX_ELEMS]; /* st: what is stored; mov: what becomes one register */
    uint8_t npacked;                  /* mov: how many these are */
    uint32_t valid;                   /* shfl: the second destination, a predicate, or PTX_NO_REG */
    uint32_t target, line;
    ptx_operand *sums; /* wgmma: a lane's part of the result, which is added to: nsums of them */
    uint8_t nsums;
    uint32_t unused; /* ld: bytes of what is loaded that nobody uses, bit by byte (pragma
                        used_bytes_mask) */
} ptx_insn;

/* An entry. */
typedef struct {
    const char *name;
    dlc_vec(ptx_insn) insns;
    dlc_vec(uint8_t) widths;  /* by register: bytes of a lane, 4 or 8; 0: a predicate */
    dlc_vec(uint32_t) params; /* by parameter: its place in the block of parameters */
    uint32_t param_bytes, local_bytes, max_threads; /* max_threads 0: not said */
} ptx_function;

typedef struct {
    dlc_vec(ptx_function) functions;
    uint32_t version, target; /* 90: PTX 9.0; 75: sm_75 */
    int is_specific;          /* sm_90a: for this target alone */
    uint32_t shared_bytes;    /* of fixed size */
} ptx_module;

/* Where shared variables of dynamic and of fixed size and local ones begin; addresses below are
 * never valid. */
enum { PTX_SHARED_BASE = 0x10000, PTX_FIXED_SHARED_BASE = 0x200000 };
#define PTX_LOCAL_BASE (UINT64_C(1) << 40)

/* Memory of the arena; the text is not kept. DLC_INVALID names the line and what is not understood.
 */
DLC_NODISCARD dlc_status ptx_parse(const char *text, dlc_arena *arena, dlc_diag *diag,
                                   ptx_module **module);

#endif
