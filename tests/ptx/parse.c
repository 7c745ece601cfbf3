/*
 * PTX text to instructions. A statement ends at ';' (or is a label, a brace); registers of a
 * declaration %r<9> are numbered one after another, so an operand is an index.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/module.h"

enum { MAX_NAME = 96, MAX_STATEMENT = 1024 };

typedef struct {
    char name[MAX_NAME];
    uint32_t first,
        n; /* %name0 … : registers [first, first + n); n = 0: a register of just that name */
} registers;

typedef struct {
    char name[MAX_NAME];
    uint64_t value;
} symbol;

typedef struct {
    dlc_arena *arena;
    dlc_diag *diag;
    ptx_module *module;
    const char *at;
    uint32_t line, statement_line, unused; /* unused: of the next instruction */
    char statement[MAX_STATEMENT];
    dlc_vec(registers) registers;
    dlc_vec(symbol) params, variables, labels; /* value: offset, address, number of instruction */
    dlc_vec(symbol) jumps;                     /* bra's label; value: the instruction */
    int has_entry;
} parser;

static dlc_status fail(parser *p, const char *what)
{
    return dlc_diag_fail(p->diag, DLC_INVALID,
                         dlc_arena_printf(p->arena, "PTX line %u", p->statement_line), "%s: '%s'",
                         what, p->statement);
}

/* --- statements --- */

static void skip_blanks(parser *p)
{
    for (;;) {
        if (p->at[0] == '/' && p->at[1] == '/')
            p->at += strcspn(p->at, "\n");
        else if (!isspace((unsigned char)*p->at) || !*p->at)
            return;
        else
            p->line += *p->at++ == '\n';
    }
}

/* A header of an entry ends at ')', a label at ':', a brace stands alone. */
static int ends_statement(const char *text, uint32_t n)
{
    char c = text[n - 1];
    if (c == ';' || ((c == '{' || c == '}') && n == 1) || (c == ')' && strstr(text, ".entry")))
        return 1;
    if (c == ':' && *text != '.')
        return 1;
    return !strncmp(text, ".version", 8) || !strncmp(text, ".target", 7) ||
                   !strncmp(text, ".address_size", 13)
               ? c == '\n'
               : 0;
}

static dlc_status next(parser *p)
{
    uint32_t n = 0;
    skip_blanks(p);
    p->statement_line = p->line;
    p->statement[0] = 0;
    while (*p->at) {
        if (p->at[0] == '/' && p->at[1] == '/')
            p->at += strcspn(p->at, "\n");
        char c = *p->at;
        if (!c)
            break;
        p->at++;
        p->line += c == '\n';
        if (n + 2 > MAX_STATEMENT)
            return fail(p, "a statement too long");
        p->statement[n++] = c;
        p->statement[n] = 0;
        if (ends_statement(p->statement, n))
            break;
        if (isspace((unsigned char)c))
            p->statement[n - 1] = ' ';
    }
    if (n && (p->statement[n - 1] == ';' || p->statement[n - 1] == '\n'))
        p->statement[n - 1] = 0;
    return DLC_OK;
}

/* --- names --- */

static uint32_t find_register(const parser *p, const char *name)
{
    for (uint32_t i = p->registers.n; i-- > 0;) {
        const registers *r = &p->registers.data[i];
        size_t n = strlen(r->name);
        if (r->n == 0 ? !strcmp(r->name, name)
                      : !strncmp(r->name, name, n) && isdigit((unsigned char)name[n])) {
            char *end = NULL;
            unsigned long number = r->n ? strtoul(name + n, &end, 10) : 0;
            if (r->n == 0 || (!*end && number < r->n))
                return r->first + (uint32_t)number;
        }
    }
    return PTX_NO_REG;
}

static const symbol *find_symbol(const symbol *symbols, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(symbols[i].name, name))
            return &symbols[i];
    return NULL;
}

static symbol named(const char *name, uint64_t value)
{
    symbol s = {.value = value};
    snprintf(s.name, sizeof s.name, "%.*s", MAX_NAME - 1, name);
    return s;
}

static ptx_type type_of(const char *word)
{
    char *end;
    ptx_type none = {0, 0};
    if (!strcmp(word, "pred"))
        return (ptx_type){'p', 1};
    if (!strchr("busf", word[0]) || !isdigit((unsigned char)word[1]))
        return none;
    unsigned long bits = strtoul(word + 1, &end, 10);
    return *end || bits > 64 ? none : (ptx_type){word[0], (uint8_t)bits};
}

/* --- declarations --- */

static dlc_status declare_registers(parser *p)
{
    char *rest = NULL, *word = strtok_r(p->statement, " \t,", &rest);
    for (word = strtok_r(NULL, " \t,", &rest); word; word = strtok_r(NULL, " \t,", &rest)) {
        registers r = {.first = p->module->nregs};
        if (*word == '.')
            continue;
        char *angle = strchr(word, '<');
        r.n = angle ? (uint32_t)strtoul(angle + 1, NULL, 10) : 0;
        memcpy(r.name, word, angle ? (size_t)(angle - word) : strnlen(word, MAX_NAME - 1));
        p->module->nregs += r.n ? r.n : 1;
        dlc_vec_push(p->arena, &p->registers, r);
    }
    return DLC_OK;
}

/* `.extern .shared .align 16 .b8 NAME[]`, `.local .align 4 .b8 NAME[64]` */
static dlc_status declare_variable(parser *p, int is_local)
{
    char *bracket = strchr(p->statement, '['), *name = bracket;
    if (!bracket)
        return fail(p, "a variable that is no array");
    while (name > p->statement && !isspace((unsigned char)name[-1]))
        name--;
    uint64_t bytes = strtoull(bracket + 1, NULL, 10);
    *bracket = 0;
    if (is_local && p->module->local_bytes)
        return fail(p, "a second local array");
    if (!is_local && bytes)
        return fail(p, "shared memory of fixed size");
    if (is_local)
        p->module->local_bytes = (uint32_t)bytes;
    dlc_vec_push(p->arena, &p->variables, named(name, is_local ? PTX_LOCAL_BASE : PTX_SHARED_BASE));
    return DLC_OK;
}

static dlc_status declare_entry(parser *p)
{
    if (p->has_entry)
        return fail(p, "a second entry");
    p->has_entry = 1;
    char *open = strchr(p->statement, '('), *rest = NULL;
    for (char *word = strtok_r(open + 1, " ,)", &rest); word; word = strtok_r(NULL, " ,)", &rest)) {
        if (!strcmp(word, ".param"))
            continue;
        if (*word == '.' && strcmp(word, ".u64") && strcmp(word, ".b64"))
            return fail(p, "a parameter that has not 64 bits");
        if (*word != '.')
            dlc_vec_push(p->arena, &p->params, named(word, 8ull * p->module->nparams++));
    }
    return DLC_OK;
}

static dlc_status directive(parser *p)
{
    const char *text = p->statement;
    static const char *const ignored[] = {".version", ".target", ".address_size", ".maxntid",
                                          ".minnctapersm"};
    for (uint32_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (!strncmp(text, ignored[i], strlen(ignored[i])))
            return DLC_OK;
    if (sscanf(text, ".pragma \"used_bytes_mask %u", &p->unused) == 1) {
        p->unused = ~p->unused;
        return DLC_OK;
    }
    if (!strncmp(text, ".pragma \"nounroll\"", 18))
        return DLC_OK;
    if (strstr(text, ".entry"))
        return declare_entry(p);
    if (!strncmp(text, ".reg", 4))
        return declare_registers(p);
    if (!strncmp(text, ".extern .shared", 15))
        return declare_variable(p, 0);
    if (!strncmp(text, ".local", 6))
        return declare_variable(p, 1);
    return fail(p, "an unknown directive");
}

/* --- operands --- */

static dlc_status immediate(parser *p, const char *text, uint64_t *value)
{
    char *end;
    if (text[0] == '0' && strchr("fFdD", text[1]) && text[1])
        *value = strtoull(text + 2, &end, 16);
    else
        *value = *text == '-' ? (uint64_t)strtoll(text, &end, 0) : strtoull(text, &end, 0);
    if (*end == 'U')
        end++;
    return end == text || *end ? fail(p, "an operand that is not understood") : DLC_OK;
}

static const struct {
    const char *name;
    ptx_operand_kind kind;
} specials[] = {{"%tid.x", PTX_TID},
                {"%ctaid.x", PTX_CTAID},
                {"%ntid.x", PTX_NTID},
                {"%nctaid.x", PTX_NCTAID},
                {"%laneid", PTX_LANEID}};

static dlc_status simple_operand(parser *p, const char *text, ptx_operand *operand)
{
    const symbol *found;
    *operand = (ptx_operand){.kind = PTX_REG, .reg = find_register(p, text)};
    if (operand->reg != PTX_NO_REG)
        return DLC_OK;
    for (uint32_t i = 0; i < sizeof specials / sizeof *specials; i++)
        if (!strcmp(specials[i].name, text)) {
            operand->kind = (uint8_t)specials[i].kind;
            return DLC_OK;
        }
    operand->kind = PTX_IMM;
    found = find_symbol(p->variables.data, p->variables.n, text);
    found = found ? found : find_symbol(p->params.data, p->params.n, text);
    if (found) {
        operand->value = found->value;
        return DLC_OK;
    }
    return immediate(p, text, &operand->value);
}

static char *trimmed(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    for (size_t n = strlen(text); n && isspace((unsigned char)text[n - 1]); n--)
        text[n - 1] = 0;
    return text;
}

/* "[base+offset]", or any other operand. */
static dlc_status operand_of(parser *p, char *text, ptx_operand *operand)
{
    char *plus;
    text = trimmed(text);
    if (*text != '[')
        return simple_operand(p, text, operand);
    text[strcspn(text, "]")] = 0;
    text = trimmed(text + 1);
    plus = strchr(text, '+');
    int64_t offset = plus ? strtoll(plus + 1, NULL, 0) : 0;
    if (plus)
        *plus = 0;
    DLC_TRY(simple_operand(p, text, operand));
    operand->offset = offset;
    return DLC_OK;
}

static dlc_status vector_of(parser *p, char *text, ptx_operand *elems, uint8_t *n)
{
    char *rest = NULL;
    text = trimmed(text);
    *n = 0;
    if (*text != '{') {
        *n = 1;
        return operand_of(p, text, elems);
    }
    for (char *word = strtok_r(text, "{}, ", &rest); word; word = strtok_r(NULL, "{}, ", &rest)) {
        if (*n == PTX_MAX_ELEMS)
            return fail(p, "a vector of more than four");
        DLC_TRY(operand_of(p, word, &elems[(*n)++]));
    }
    return DLC_OK;
}

/* Splits at commas outside braces. */
static uint32_t split(char *text, char **parts, uint32_t max)
{
    uint32_t n = 0;
    int depth = 0;
    text = trimmed(text);
    if (!*text)
        return 0;
    parts[n++] = text;
    for (; *text; text++) {
        depth += (*text == '{') - (*text == '}');
        if (*text == ',' && !depth && n < max) {
            *text = 0;
            parts[n++] = text + 1;
        }
    }
    return n;
}

/* --- instructions --- */

static const struct {
    const char *text;
    uint8_t ndst, nsrc;
} ops[] = {
#define PTX_OP(id, text, ndst, nsrc) {text, ndst, nsrc},
#include "tests/ptx/opcodes.def"
#undef PTX_OP
};

static const char *const compares[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                       "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
static const char *const spaces[] = {"generic", "param", "global", "shared", "local"};
static const char *const roundings[] = {"exact", "rn", "rni", "rzi", "rmi", "rpi", "rz"};

static int find_word(const char *const *words, uint32_t n, const char *word)
{
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(words[i], word))
            return (int)i;
    return -1;
}

/* One of an opcode's words after the first; false when it means nothing here. */
static int modifier(ptx_insn *insn, const char *word)
{
    static const char *const halves[] = {"lo", "hi", "wide"};
    static const char *const nothing[] = {"to",   "uni", "sync", "idx", "volatile",
                                          "wrap", "v2",  "v4",   "nc"};
    int found;
    ptx_type type = type_of(word);
    if (type.kind) {
        *(insn->type.kind ? &insn->from : &insn->type) = type;
        return 1;
    }
    if ((found = find_word(halves, 3, word)) >= 0)
        insn->half = (uint8_t)found;
    else if ((found = find_word(spaces, 5, word)) >= 0)
        insn->space = (uint8_t)found;
    else if ((found = find_word(roundings, 7, word)) >= 0)
        insn->rounding = (uint8_t)found;
    else if (insn->op == PTX_SETP && (found = find_word(compares, PTX_COMPARE_COUNT, word)) >= 0)
        insn->compare = (uint8_t)found;
    else if (insn->op == PTX_SETP &&
             (!strcmp(word, "and") || !strcmp(word, "or") || !strcmp(word, "xor")))
        insn->combine = word[0];
    else if (insn->op == PTX_SHF && (!strcmp(word, "l") || !strcmp(word, "r")))
        insn->is_right = *word == 'r';
    else if (insn->op == PTX_BAR && !strcmp(word, "warp"))
        insn->is_warp = 1;
    else if (insn->op == PTX_CVT && !strcmp(word, "sat"))
        insn->is_saturating = 1;
    else
        return find_word(nothing, sizeof nothing / sizeof *nothing, word) >= 0;
    return 1;
}

/* Bits that ptxas or the device may choose. */
static int leaves_bits_open(const ptx_insn *insn)
{
    int is_open = insn->op == PTX_ADD || insn->op == PTX_SUB || insn->op == PTX_MUL ||
                  insn->op == PTX_DIV || insn->op == PTX_SQRT || insn->op == PTX_RCP ||
                  insn->op == PTX_FMA || insn->op == PTX_MAD;
    return is_open && insn->type.kind == 'f' && insn->rounding != PTX_RN;
}

static dlc_status opcode(parser *p, char *word, ptx_insn *insn)
{
    char *rest = NULL, *base = strtok_r(word, ".", &rest);
    uint32_t op = 0;
    while (op < PTX_OP_COUNT && (!base || strcmp(ops[op].text, base)))
        op++;
    if (op == PTX_OP_COUNT)
        return fail(p, dlc_arena_printf(p->arena, "unknown instruction %s", base ? base : ""));
    insn->op = (uint8_t)op;
    for (char *part = strtok_r(NULL, ".", &rest); part; part = strtok_r(NULL, ".", &rest))
        if (!modifier(insn, part))
            return fail(p, dlc_arena_printf(p->arena, "%s with unknown .%s", base, part));
    if (leaves_bits_open(insn))
        return fail(p, "arithmetic without .rn may be contracted");
    return DLC_OK;
}

static dlc_status guard(parser *p, char **text, ptx_insn *insn)
{
    insn->guard = PTX_NO_REG;
    if (**text != '@')
        return DLC_OK;
    char *name = *text + 1, *end = name + strcspn(name, " \t");
    *text = trimmed(*end ? end + 1 : end);
    *end = 0;
    insn->guard_not = *name == '!';
    insn->guard = find_register(p, name + insn->guard_not);
    return insn->guard == PTX_NO_REG ? fail(p, "an unknown guard") : DLC_OK;
}

static dlc_status sources(parser *p, ptx_insn *insn, char **parts, uint32_t n)
{
    uint32_t s = 0;
    for (uint32_t i = 0; i < n; i++) {
        char *text = trimmed(parts[i]);
        if (insn->op == PTX_ST && i == 1) {
            DLC_TRY(vector_of(p, text, insn->elems, &insn->nelems));
            continue;
        }
        if (insn->op == PTX_SETP && i == 2 && *text == '!') {
            insn->has_not_third = 1;
            text++;
        }
        DLC_TRY(operand_of(p, text, &insn->src[s++]));
    }
    return DLC_OK;
}

static dlc_status jump(parser *p, const char *label)
{
    dlc_vec_push(p->arena, &p->jumps, named(label, p->module->insns.n));
    return DLC_OK;
}

static dlc_status operands(parser *p, ptx_insn *insn, char *text)
{
    char *parts[8];
    uint32_t n = split(text, parts, 8), ndst = ops[insn->op].ndst, nsrc = ops[insn->op].nsrc;
    nsrc += insn->op == PTX_SETP && insn->combine;
    if (n != ndst + nsrc)
        return fail(p, dlc_arena_printf(p->arena, "%u operands", n));
    if (insn->op == PTX_BRA)
        return jump(p, trimmed(parts[0]));
    if (ndst && strchr(parts[0], '|'))
        return fail(p, "a second destination");
    insn->nelems = 1;
    if (ndst)
        DLC_TRY(vector_of(p, parts[0], insn->dst, &insn->nelems));
    for (uint32_t i = 0; ndst && i < insn->nelems; i++)
        if (insn->dst[i].kind != PTX_REG)
            return fail(p, "a destination that is no register");
    return sources(p, insn, parts + ndst, nsrc);
}

static dlc_status instruction(parser *p)
{
    char copy[MAX_STATEMENT];
    ptx_insn insn = {.line = p->statement_line, .unused = p->unused};
    p->unused = 0;
    strcpy(copy, p->statement);
    char *text = trimmed(copy);
    DLC_TRY(guard(p, &text, &insn));
    char *rest = text + strcspn(text, " \t"), *word = text;
    if (*rest)
        *rest++ = 0;
    DLC_TRY(opcode(p, word, &insn));
    DLC_TRY(operands(p, &insn, rest));
    dlc_vec_push(p->arena, &p->module->insns, insn);
    return DLC_OK;
}

static dlc_status statement(parser *p)
{
    size_t n = strlen(p->statement);
    if (!strcmp(p->statement, "{") || !strcmp(p->statement, "}") || !*trimmed(p->statement))
        return DLC_OK;
    if (*p->statement == '.')
        return directive(p);
    if (p->statement[n - 1] == ':') {
        p->statement[n - 1] = 0;
        dlc_vec_push(p->arena, &p->labels, named(p->statement, p->module->insns.n));
        return DLC_OK;
    }
    return instruction(p);
}

static dlc_status resolve_jumps(parser *p)
{
    for (uint32_t i = 0; i < p->jumps.n; i++) {
        const symbol *label = find_symbol(p->labels.data, p->labels.n, p->jumps.data[i].name);
        if (!label || label->value >= p->module->insns.n)
            return dlc_diag_fail(p->diag, DLC_INVALID, "PTX", "no label '%s'",
                                 p->jumps.data[i].name);
        p->module->insns.data[p->jumps.data[i].value].target = (uint32_t)label->value;
    }
    return p->has_entry && p->module->insns.n
               ? DLC_OK
               : dlc_diag_fail(p->diag, DLC_INVALID, "PTX", "there is no entry");
}

dlc_status ptx_parse(const char *text, dlc_arena *arena, dlc_diag *diag, ptx_module **module)
{
    parser *p = dlc_new(arena, parser);
    p->arena = arena;
    p->diag = diag;
    p->at = text;
    p->line = 1;
    p->module = dlc_new(arena, ptx_module);
    do {
        DLC_TRY(next(p));
        if (*p->statement)
            DLC_TRY(statement(p));
        skip_blanks(p);
    } while (*p->at);
    DLC_TRY(resolve_jumps(p));
    *module = p->module;
    return DLC_OK;
}
