/*
 * Expressions to the size program: a post-order walk with its own stack, one instruction per node,
 * equal instructions shared. What only constants feed is computed here, unless it passes 64 bits:
 * then the runtime must see it happen.
 */
#include "package/size.h"

#include <string.h>

#include "base/str.h"

/* Rows of size.def have the names of rows of expr.def. */
static const dlc_expr_op expr_of[DLC_SIZE_COUNT] = {
#define DLC_SIZE(id, text, nargs) [DLC_SIZE_##id] = DLC_EXPR_##id,
#include "dlc/size.def"
#undef DLC_SIZE
};

static const uint8_t nargs_of[DLC_SIZE_COUNT] = {
#define DLC_SIZE(id, text, nargs) nargs,
#include "dlc/size.def"
#undef DLC_SIZE
};

void dlc_size_init(dlc_size_program *program, const dlc_pool *module, const uint32_t *symbol_phase,
                   dlc_arena *arena)
{
    *program = (dlc_size_program){
        .arena = arena, .module = module, .symbol_phase = symbol_phase, .table_size = 64};
    program->table = dlc_new_array(arena, uint32_t, program->table_size);
}

static void fail(dlc_size_program *program, const char *what)
{
    if (!program->failure)
        program->failure = what;
}

static uint32_t *slot_of(const dlc_size_program *program, uint32_t *table, uint32_t size,
                         const dlc_size_inst *inst)
{
    uint32_t at = (uint32_t)dlc_hash(inst, sizeof *inst, 0) & (size - 1);
    while (table[at] && memcmp(&program->insts.data[table[at] - 1], inst, sizeof *inst) != 0)
        at = (at + 1) & (size - 1);
    return &table[at];
}

static void grow_table(dlc_size_program *program)
{
    uint32_t size = program->table_size * 2;
    uint32_t *table = dlc_new_array(program->arena, uint32_t, size);
    for (uint32_t i = 0; i < program->insts.n; i++)
        *slot_of(program, table, size, &program->insts.data[i]) = i + 1;
    program->table = table;
    program->table_size = size;
}

static uint32_t inst_phase(const dlc_size_program *program, const dlc_size_inst *inst)
{
    uint32_t phase = inst->op == DLC_SIZE_SYM ? program->symbol_phase[inst->args[0]] : 0;
    for (uint32_t i = 0; i < nargs_of[inst->op]; i++)
        if (program->phase.data[inst->args[i]] > phase)
            phase = program->phase.data[inst->args[i]];
    return phase;
}

static uint32_t intern(dlc_size_program *program, const dlc_size_inst *inst)
{
    uint32_t *slot = slot_of(program, program->table, program->table_size, inst);
    if (*slot)
        return *slot - 1;
    uint32_t phase = inst_phase(program, inst);
    if (phase == UINT32_MAX) {
        fail(program, "a size depends on a symbol that no step binds");
        phase = 0;
    }
    dlc_vec_push(program->arena, &program->insts, *inst);
    dlc_vec_push(program->arena, &program->phase, phase);
    *slot = program->insts.n;
    if (program->insts.n * 2 > program->table_size)
        grow_table(program);
    return program->insts.n - 1;
}

static uint32_t constant(dlc_size_program *program, dlc_dtype dtype, dlc_scalar value)
{
    dlc_size_inst inst = {.op = DLC_SIZE_CONST, .dtype = (uint8_t)dtype};
    memcpy(&inst.imm, &value, sizeof inst.imm);
    return intern(program, &inst);
}

uint32_t dlc_size_const(dlc_size_program *program, int64_t value)
{
    return constant(program, DLC_I64, (dlc_scalar){.i = value});
}

int dlc_size_is_const(const dlc_size_program *program, uint32_t cell, int64_t *value)
{
    *value = program->insts.data[cell].imm;
    return program->insts.data[cell].op == DLC_SIZE_CONST;
}

/* The runtime watches sums and products of i64 for overflow. */
static int passes_64_bits(const dlc_size_inst *inst, const dlc_scalar *args)
{
    int64_t result;
    if (inst->dtype != DLC_I64)
        return 0;
    switch (inst->op) {
    case DLC_SIZE_ADD:
        return __builtin_add_overflow(args[0].i, args[1].i, &result);
    case DLC_SIZE_SUB:
        return __builtin_sub_overflow(args[0].i, args[1].i, &result);
    case DLC_SIZE_MUL:
        return __builtin_mul_overflow(args[0].i, args[1].i, &result);
    case DLC_SIZE_NEG:
    case DLC_SIZE_ABS:
        return args[0].i == INT64_MIN;
    default:
        return 0;
    }
}

static int is_compare(unsigned op)
{
    return op == DLC_SIZE_LT || op == DLC_SIZE_LE || op == DLC_SIZE_EQ || op == DLC_SIZE_NE;
}

static int is_cast(unsigned op)
{
    return op == DLC_SIZE_CAST || op == DLC_SIZE_CAST_SAT;
}

/* An instruction over cells; a constant when all of them are. */
static uint32_t add_inst(dlc_size_program *program, const dlc_size_inst *inst)
{
    dlc_scalar args[3] = {{0}};
    int is_const = nargs_of[inst->op] > 0;
    for (uint32_t i = 0; i < nargs_of[inst->op]; i++) {
        const dlc_size_inst *arg = &program->insts.data[inst->args[i]];
        is_const &= arg->op == DLC_SIZE_CONST;
        memcpy(&args[i], &arg->imm, sizeof args[i]);
    }
    if (!is_const || passes_64_bits(inst, args))
        return intern(program, inst);
    dlc_dtype from = is_cast(inst->op) ? (dlc_dtype)inst->imm : (dlc_dtype)inst->dtype;
    dlc_dtype to = is_compare(inst->op) ? DLC_BOOL : (dlc_dtype)inst->dtype;
    return constant(program, to, dlc_scalar_apply(expr_of[inst->op], from, to, args));
}

/* x * 1, x + 0 and floordiv by 1 are x: most sizes are products with few real factors. */
static int is_neutral(const dlc_size_program *program, dlc_size_op op, uint32_t cell)
{
    int64_t value, neutral = op == DLC_SIZE_ADD || op == DLC_SIZE_SUB ? 0 : 1;
    return dlc_size_is_const(program, cell, &value) && value == neutral;
}

uint32_t dlc_size_op2(dlc_size_program *program, dlc_size_op op, uint32_t a, uint32_t b)
{
    int is_commutative = op == DLC_SIZE_ADD || op == DLC_SIZE_MUL;
    if ((is_commutative || op == DLC_SIZE_SUB || op == DLC_SIZE_FLOORDIV) &&
        is_neutral(program, op, b))
        return a;
    if (is_commutative && is_neutral(program, op, a))
        return b;
    if (is_commutative && a > b)
        return dlc_size_op2(program, op, b, a);
    return add_inst(program, &(dlc_size_inst){.op = (uint8_t)op, .dtype = DLC_I64, .args = {a, b}});
}

/* --- expressions --- */
static int size_op_of(dlc_expr_op op)
{
    for (int i = 0; i < DLC_SIZE_COUNT; i++)
        if (expr_of[i] == op)
            return i;
    return -1;
}

static int is_size_type(dlc_dtype dtype)
{
    return dtype == DLC_BOOL || dlc_is_int(dtype) || dtype == DLC_F32 || dtype == DLC_F64;
}

/* cells[]: of the operands, by expression, + 1. symbols NULL: the module's own. */
static uint32_t add_node(dlc_size_program *program, const dlc_pool *pool, dlc_expr expr,
                         const uint32_t *cells, const uint32_t *symbols)
{
    const dlc_expr_node *node = dlc_node_of(pool, expr);
    int op = size_op_of((dlc_expr_op)node->op);
    if (op < 0 || !is_size_type((dlc_dtype)node->dtype)) {
        fail(program, op < 0 ? dlc_exprs[node->op].text : dlc_dtypes[node->dtype].text);
        return dlc_size_const(program, 0);
    }
    if (op == DLC_SIZE_SYM && symbols)
        return symbols[node->imm.id];
    dlc_size_inst inst = {.op = (uint8_t)op, .dtype = node->dtype};
    if (op == DLC_SIZE_SYM)
        inst.args[0] = node->imm.id;
    if (op == DLC_SIZE_CONST)
        inst.imm = node->imm.i;
    for (uint32_t i = 0; i < node->nargs; i++)
        inst.args[i] = cells[dlc_arg(pool, expr, i)] - 1;
    if (is_compare(inst.op))
        inst.dtype = dlc_node_of(pool, dlc_arg(pool, expr, 0))->dtype;
    if (is_cast(inst.op))
        inst.imm = dlc_node_of(pool, dlc_arg(pool, expr, 0))->dtype;
    return op == DLC_SIZE_CONST || op == DLC_SIZE_SYM ? intern(program, &inst)
                                                      : add_inst(program, &inst);
}

static uint32_t walk(dlc_size_program *program, const dlc_pool *pool, dlc_expr root,
                     uint32_t *cells, const uint32_t *symbols)
{
    dlc_ids stack = {0};
    dlc_vec_push(program->arena, &stack, root);
    while (stack.n) {
        dlc_expr expr = stack.data[stack.n - 1];
        const dlc_expr_node *node = dlc_node_of(pool, expr);
        uint32_t depth = stack.n;
        int is_leaf =
            node->op == DLC_EXPR_LOAD; /* refused by add_node; its operands may be absent */
        for (uint32_t i = 0; !cells[expr] && !is_leaf && i < node->nargs; i++)
            if (!cells[dlc_arg(pool, expr, i)])
                dlc_vec_push(program->arena, &stack, dlc_arg(pool, expr, i));
        if (stack.n > depth)
            continue;
        if (!cells[expr])
            cells[expr] = add_node(program, pool, expr, cells, symbols) + 1;
        stack.n--;
    }
    return cells[root] - 1;
}

uint32_t dlc_size_module(dlc_size_program *program, dlc_expr expr)
{
    if (expr >= program->nmodule) {
        uint32_t n = program->module->nodes.n * 2;
        uint32_t *cells = dlc_new_array(program->arena, uint32_t, n);
        if (program->nmodule)
            memcpy(cells, program->of_module, program->nmodule * sizeof *cells);
        program->of_module = cells;
        program->nmodule = n;
    }
    return walk(program, program->module, expr, program->of_module, NULL);
}

uint32_t dlc_size_expr(dlc_size_program *program, const dlc_pool *pool, dlc_expr expr,
                       const uint32_t *symbols)
{
    uint32_t *cells = dlc_new_array(program->arena, uint32_t, (size_t)expr + 1);
    return walk(program, pool, expr, cells, symbols);
}

uint32_t *dlc_size_finish(dlc_size_program *program, uint32_t nphases, uint32_t *counts)
{
    uint32_t n = program->insts.n, at = 0;
    uint32_t *number = dlc_new_array(program->arena, uint32_t, n);
    dlc_size_inst *ordered = dlc_new_array(program->arena, dlc_size_inst, n);
    for (uint32_t phase = 0; phase < nphases; phase++) {
        uint32_t begin = at;
        for (uint32_t i = 0; i < n; i++) {
            if (program->phase.data[i] != phase)
                continue;
            dlc_size_inst *inst = &ordered[at];
            *inst = program->insts.data[i];
            for (uint32_t k = 0; k < nargs_of[inst->op]; k++)
                inst->args[k] = number[inst->args[k]];
            number[i] = at++;
        }
        counts[phase] = at - begin;
    }
    program->insts.data = ordered;
    return number;
}
