/*
 * Whole strings against a regular expression: the compiler makes a program of it (frontend/regex.c), and all ways through it go
 * forward together, one character of the string at a time (K. Thompson, Regular Expression Search Algorithm, 1968), so a string of
 * n characters takes n times the program's length at most, whatever the expression.
 */
#include "runtime/steps.h"

#include <inttypes.h>
#include <string.h>

/* A row of the program: an operation and its operands. */
typedef struct {
    int64_t op, a, b;
} row;

typedef struct {
    const dlcrt_opaque_args *args;
    const unsigned char *rows;
    int64_t nrows;
    uint32_t mark[DLC_MATCH_MOST]; /* the step that a row was last reached in */
    uint32_t step;
    uint16_t ways[2][DLC_MATCH_MOST], nways[2];
    uint16_t stack[2 * DLC_MATCH_MOST];
} matcher;

static row row_at(const matcher *m, int64_t i)
{
    row r;
    memcpy(&r, m->rows + i * (int64_t)sizeof r, sizeof r);
    return r;
}

static int is_word(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* Whether what must hold between two characters does; 0: there is none. */
static int holds(int64_t kind, uint32_t before, uint32_t behind)
{
    switch (kind) {
    case DLC_MATCH_BEGIN:
        return !before;
    case DLC_MATCH_END:
        return !behind;
    default:
        return (is_word(before) != is_word(behind)) == (kind == DLC_MATCH_EDGE);
    }
}

/* Adds the rows that wait for a character, reached from `start` without one. */
static dlc_status reach(matcher *m, int64_t start, int which, uint32_t before, uint32_t behind)
{
    uint32_t n = 0;
    m->stack[n++] = (uint16_t)start;
    while (n) {
        uint16_t at = m->stack[--n];
        if (m->mark[at] == m->step)
            continue;
        m->mark[at] = m->step;
        row r = row_at(m, at);
        int is_jump = r.op == DLC_MATCH_SPLIT || r.op == DLC_MATCH_ASSERT;
        int64_t other = r.op == DLC_MATCH_SPLIT ? r.b : at + 1;
        if (is_jump && (r.a < 0 || other < 0 || other >= m->nrows || (r.op == DLC_MATCH_SPLIT && r.a >= m->nrows)))
            return dlcrt_fail(DLC_INVALID, "node '%s': row %u of its expression leads nowhere", m->args->name, at);
        if (is_jump && (r.op == DLC_MATCH_SPLIT || holds(r.a, before, behind)))
            m->stack[n++] = (uint16_t)other;
        if (r.op == DLC_MATCH_SPLIT)
            m->stack[n++] = (uint16_t)r.a;
        if (!is_jump)
            m->ways[which][m->nways[which]++] = at;
    }
    return DLC_OK;
}

/* The set of row r, `b` ranges from row `a` on, has the character. */
static int has(const matcher *m, row r, uint32_t c)
{
    if (r.a < 0 || r.b < 0 || r.a > m->nrows || r.b > m->nrows - r.a)
        return 0;
    for (int64_t i = r.a; i < r.a + r.b; i++) {
        row range = row_at(m, i);
        if ((int64_t)c >= range.a && (int64_t)c <= range.b)
            return 1;
    }
    return 0;
}

static dlc_status go_on(matcher *m, int from, uint32_t c, uint32_t behind)
{
    m->nways[!from] = 0;
    m->step++;
    for (uint32_t i = 0; i < m->nways[from]; i++) {
        uint16_t at = m->ways[from][i];
        row r = row_at(m, at);
        if (r.op == DLC_MATCH_SET && at + 1 < m->nrows && has(m, r, c))
            DLC_TRY(reach(m, at + 1, !from, c, behind));
    }
    return DLC_OK;
}

static uint32_t peek(const char *text)
{
    return *text ? dlcrt_character(&text) : 0;
}

static dlc_status match(matcher *m, const char *text, uint8_t *result)
{
    int which = 0;
    m->nways[0] = 0;
    m->step++;
    DLC_TRY(reach(m, 0, which, 0, peek(text)));
    while (*text && m->nways[which]) {
        uint32_t c = dlcrt_character(&text);
        DLC_TRY(go_on(m, which, c, peek(text)));
        which = !which;
    }
    *result = 0;
    for (uint32_t i = 0; i < m->nways[which] && !*text; i++)
        *result |= row_at(m, m->ways[which][i]).op == DLC_MATCH_DONE;
    return DLC_OK;
}

/* inputs x, program i64[rows, 3]; output bool */
dlc_status dlcrt_run_text_match(const dlcrt_opaque_args *args)
{
    const dlcrt_operand *program = &args->operands[1], *result = &args->operands[2];
    matcher m = {.args = args, .rows = program->data, .nrows = dlcrt_operand_elems(program) / 3};
    if (m.nrows < 1 || m.nrows > DLC_MATCH_MOST)
        return dlcrt_fail(DLC_INVALID, "node '%s': its expression has %" PRId64 " rows; 1 to %d are possible", args->name,
                          m.nrows, DLC_MATCH_MOST);
    DLC_TRY(dlcrt_check_types(args, "sib"));
    DLC_TRY(dlcrt_same_elems(args, 2));
    for (int64_t i = 0, n = dlcrt_operand_elems(&args->operands[0]); i < n; i++) {
        const char *text;
        DLC_TRY(dlcrt_string_of(args, 0, i, &text));
        DLC_TRY(match(&m, text, (uint8_t *)result->data + i));
    }
    return DLC_OK;
}
