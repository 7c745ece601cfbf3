/*
 * Expressions taken to another pool, where axes, symbols and sources have other numbers. Each is taken there once, whatever root it
 * belongs to. One in which no number changes is there what it was; the rest is built anew, since terms and factors stand in an order
 * that the numbers have a part in.
 */
#include "ir/expr/build.h"

typedef struct {
    dlc_expr to; /* 0: not taken yet */
    uint8_t is_same, is_wanted;
} move;

struct dlc_mover {
    dlc_pool *to;
    const dlc_pool *from;
    dlc_numbers numbers;
    move *moves; /* by id */
};

dlc_mover *dlc_mover_create(dlc_arena *arena, dlc_pool *to, const dlc_pool *from, const dlc_numbers *numbers)
{
    dlc_mover *mover = dlc_new(arena, dlc_mover);
    *mover = (dlc_mover){to, from, *numbers, dlc_new_array(arena, move, from->nodes.n)};
    return mover;
}

static uint32_t new_number(const dlc_numbers *numbers, const dlc_expr_node *node)
{
    uint32_t old = node->imm.id;
    switch (node->op) {
    case DLC_EXPR_AXIS:
        return numbers->axes[old];
    case DLC_EXPR_SYM:
        return numbers->symbols[old];
    case DLC_EXPR_LOAD:
        return DLC_SOURCE_IS_STAGE(old) ? DLC_STAGE_SOURCE(numbers->stages[DLC_SOURCE_INDEX(old)]) : numbers->buffers[old];
    default:
        return old;
    }
}

static void move_node(dlc_mover *mover, dlc_expr id)
{
    dlc_expr_node node = *dlc_node_of(mover->from, id);
    dlc_expr args[UINT8_MAX];
    uint32_t number = new_number(&mover->numbers, &node);
    int is_same = number == node.imm.id;
    for (uint32_t i = 0; i < node.nargs; i++) {
        dlc_expr arg = dlc_arg(mover->from, id, i);
        args[i] = mover->moves[arg].to;
        is_same &= !arg || mover->moves[arg].is_same;
    }
    if (number != node.imm.id)
        node.imm.i = number;
    mover->moves[id] = (move){is_same ? dlc_pool_intern(mover->to, &node, args) : dlc_pool_rebuild(mover->to, &node, args), (uint8_t)is_same, 0};
}

dlc_expr dlc_expr_move(dlc_mover *mover, dlc_expr root)
{
    move *moves = mover->moves;
    dlc_expr lowest = root;
    if (!root || moves[root].to)
        return moves[root].to;
    moves[root].is_wanted = 1;
    for (dlc_expr id = root; id >= lowest; id--)
        for (uint32_t i = 0; moves[id].is_wanted && i < dlc_node_of(mover->from, id)->nargs; i++) {
            dlc_expr arg = dlc_arg(mover->from, id, i);
            if (!arg || moves[arg].to)
                continue;
            moves[arg].is_wanted = 1;
            lowest = arg < lowest ? arg : lowest;
        }
    for (dlc_expr id = lowest; id <= root; id++)
        if (moves[id].is_wanted)
            move_node(mover, id);
    return moves[root].to;
}
