/*
 * PTX text to instructions. A statement ends at ';' (or is a label, a brace); registers of a
 * declaration %r<9> are numbered one after another, so an operand is an index.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/module.h"

enum { MAX_NAME = 96, MAX_STATEMENT = 1 << 17, GROUP_OPERANDS = 8 };

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
    ptx_function *function; /* the newest entry */
    const char *at;
    uint32_t line, statement_line, unused; /* unused: of the next instruction */
    char statement[MAX_STATEMENT];
    dlc_vec(registers) registers;
    dlc_vec(symbol) params, variables, labels; /* value: offset, address, number of instruction */
    dlc_vec(symbol) jumps;                     /* bra's label; value: the instruction */
} parser;

static dlc_status fail(parser *p, const char *what)
{
    return dlc_diag_fail(p->diag, DLC_INVALID,
                         dlc_arena_printf(p->arena, "PTX line %u", p->statement_line), "%s: '%.200s'",
                         what, p->statement);
}

/* --- statements --- */

/* dlc's own comment (codegen/ptx/object.c) is what the pragma of the same name is to newer drivers. */
static void skip_comment(parser *p)
{
    if (sscanf(p->at, "// used_bytes_mask %u", &p->unused) == 1)
        p->unused = ~p->unused;
    p->at += strcspn(p->at, "\n");
}

static void skip_blanks(parser *p)
{
    for (;;) {
        if (p->at[0] == '/' && p->at[1] == '/')
            skip_comment(p);
        else if (!isspace((unsigned char)*p->at) || !*p->at)
            return;
        else
            p->line += *p->at++ == '\n';
    }
}

/* A header of an entry ends at ')', a label at ':', a brace stands alone, some directives are lines. */
static int ends_statement(const char *text, uint32_t n)
{
    static const char *const lines[] = {".version", ".target", ".address_size", ".maxntid", ".minnctapersm", ".reqntid", ".maxnreg"};
    char c = text[n - 1];
    if (c == ';' || ((c == '{' || c == '}') && n == 1) || (c == ')' && strstr(text, ".entry")))
        return 1;
    if (c == ':' && *text != '.')
        return 1;
    for (uint32_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strncmp(text, lines[i], strlen(lines[i])))
            return c == '\n';
    return 0;
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

static char *trimmed(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    for (size_t n = strlen(text); n && isspace((unsigned char)text[n - 1]); n--)
        text[n - 1] = 0;
    return text;
}

static dlc_status declare_registers(parser *p)
{
    char *rest = NULL, *word = strtok_r(p->statement, " \t,", &rest);
    ptx_type type = {0, 0};
    if (!p->function)
        return fail(p, "registers outside an entry");
    for (word = strtok_r(NULL, " \t,", &rest); word; word = strtok_r(NULL, " \t,", &rest)) {
        registers r = {.first = p->function->widths.n};
        if (*word == '.') {
            type = type_of(word + 1);
            if (!type.kind)
                return fail(p, "registers of an unknown type");
            continue;
        }
        char *angle = strchr(word, '<');
        r.n = angle ? (uint32_t)strtoul(angle + 1, NULL, 10) : 0;
        memcpy(r.name, word, angle ? (size_t)(angle - word) : strnlen(word, MAX_NAME - 1));
        for (uint32_t i = 0; i < (r.n ? r.n : 1); i++)
            dlc_vec_push(p->arena, &p->function->widths,
                         (uint8_t)(type.kind == 'p' ? 0
                                   : type.bits > 32 ? 8
                                                    : 4));
        dlc_vec_push(p->arena, &p->registers, r);
    }
    return DLC_OK;
}

/* The next place for a variable of a space that has `bytes` already. */
static uint64_t place(const char *text, uint32_t *used, uint64_t bytes)
{
    const char *align = strstr(text, ".align");
    uint32_t to = align ? (uint32_t)strtoul(align + 6, NULL, 10) : 16;
    uint32_t at = (*used + to - 1) / to * to;
    *used = at + (uint32_t)bytes;
    return at;
}

/* `.extern .shared .align 16 .b8 NAME[]`, `.shared .align 4 .b8 NAME[64]`, `.local …` */
static dlc_status declare_variable(parser *p, int is_local)
{
    char *bracket = strchr(p->statement, '['), *name = bracket;
    if (!bracket || (is_local && !p->function))
        return fail(p, "a variable that is no array of an entry");
    while (name > p->statement && !isspace((unsigned char)name[-1]))
        name--;
    uint64_t bytes = strtoull(bracket + 1, NULL, 10), at = PTX_SHARED_BASE;
    ptx_type type = {'b', 8};
    *bracket = 0;
    for (const char *dot = strchr(p->statement, '.'); dot; dot = strchr(dot + 1, '.')) {
        char word[8] = "";
        snprintf(word, sizeof word, "%.*s", (int)strcspn(dot + 1, " \t") & 7, dot + 1);
        type = type_of(word).kind ? type_of(word) : type;
    }
    bytes *= type.bits / 8u;
    if (is_local)
        at = PTX_LOCAL_BASE + place(p->statement, &p->function->local_bytes, bytes);
    else if (bytes)
        at = PTX_FIXED_SHARED_BASE + place(p->statement, &p->module->shared_bytes, bytes);
    dlc_vec_push(p->arena, &p->variables, named(name, at));
    return DLC_OK;
}

static void declare_parameter(parser *p, const char *name, uint32_t bytes)
{
    ptx_function *f = p->function;
    uint32_t at = (f->param_bytes + bytes - 1) / bytes * bytes;
    dlc_vec_push(p->arena, &p->params, named(name, at));
    dlc_vec_push(p->arena, &f->params, at);
    f->param_bytes = at + bytes;
}

static dlc_status resolve_jumps(parser *p);

/* Names of registers, parameters and labels are an entry's own. */
static dlc_status declare_entry(parser *p)
{
    uint32_t bytes = 0;
    char *rest = NULL, *name = strstr(p->statement, ".entry") + 6, *open = strchr(name, '(');
    if (p->function)
        DLC_TRY(resolve_jumps(p));
    dlc_vec_push(p->arena, &p->module->functions, (ptx_function){0});
    p->function = &p->module->functions.data[p->module->functions.n - 1];
    p->params.n = p->registers.n = p->labels.n = 0;
    if (!open)
        return fail(p, "an entry without parameters");
    *open = 0;
    p->function->name = dlc_arena_strdup(p->arena, trimmed(name));
    for (char *word = strtok_r(open + 1, " ,)", &rest); word; word = strtok_r(NULL, " ,)", &rest)) {
        if (!strcmp(word, ".param") || !strcmp(word, ".ptr"))
            continue;
        if (!strcmp(word, ".align")) { /* of what it points to */
            (void)strtok_r(NULL, " ,)", &rest);
            continue;
        }
        if (*word == '.' && !type_of(word + 1).bits)
            return fail(p, "a parameter that is no number");
        if (*word == '.')
            bytes = type_of(word + 1).bits / 8u;
        else
            declare_parameter(p, word, bytes ? bytes : 8);
    }
    return DLC_OK;
}

static dlc_status declare_module(parser *p)
{
    unsigned major, minor;
    char last = 0;
    if (sscanf(p->statement, ".version %u.%u", &major, &minor) == 2)
        p->module->version = 10 * major + minor;
    if (sscanf(p->statement, ".target sm_%u%c", &p->module->target, &last) == 2)
        p->module->is_specific = last == 'a';
    return DLC_OK;
}

static dlc_status directive(parser *p)
{
    const char *text = p->statement;
    static const char *const ignored[] = {".address_size", ".minnctapersm", ".reqntid", ".maxnreg"};
    for (uint32_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (!strncmp(text, ignored[i], strlen(ignored[i])))
            return DLC_OK;
    if (!strncmp(text, ".version", 8) || !strncmp(text, ".target", 7))
        return declare_module(p);
    if (p->function && sscanf(text, ".maxntid %u", &p->function->max_threads) == 1)
        return DLC_OK;
    if (sscanf(text, ".pragma \"used_bytes_mask %u", &p->unused) == 1) {
        if (p->module->version < 83)
            return fail(p, "a pragma that PTX has from version 8.3 on");
        p->unused = ~p->unused;
        return DLC_OK;
    }
    if (!strncmp(text, ".pragma \"nounroll\"", 18))
        return DLC_OK;
    if (strstr(text, ".entry"))
        return declare_entry(p);
    if (!strncmp(text, ".reg", 4))
        return declare_registers(p);
    if (!strncmp(text, ".extern .shared", 15) || !strncmp(text, ".shared", 7))
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

/* The number of a special register among PTX_SPECIALS, or -1. */
static int find_special(const char *text)
{
    static const char *const axes[] = {"%tid.", "%ntid.", "%ctaid.", "%nctaid."};
    for (int i = 0; i < 4; i++) {
        size_t n = strlen(axes[i]);
        if (!strncmp(text, axes[i], n) && text[n] >= 'x' && text[n] <= 'z' && !text[n + 1])
            return 3 * i + text[n] - 'x';
    }
    return !strcmp(text, "%laneid") ? 12 : !strcmp(text, "%warpid") ? 13 : -1;
}

static dlc_status simple_operand(parser *p, const char *text, ptx_operand *operand)
{
    const symbol *found;
    *operand = (ptx_operand){.kind = PTX_REG, .reg = find_register(p, text)};
    if (operand->reg != PTX_NO_REG)
        return DLC_OK;
    int special = find_special(text);
    if (special >= 0) {
        *operand = (ptx_operand){.kind = PTX_SPECIAL, .reg = (uint32_t)special};
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
#define PTX_OP(id, text, ndst, nsrc, kind) {text, ndst, nsrc},
#include "vgpu/opcodes.def"
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

static const struct {
    const char *text;
    ptx_mode mode;
} modes[] = {{"idx", PTX_IDX},
             {"up", PTX_UP},
             {"down", PTX_DOWN},
             {"bfly", PTX_BFLY},
             {"add", PTX_ADDS},
             {"min", PTX_MINS},
             {"max", PTX_MAXS},
             {"exch", PTX_EXCH},
             {"cas", PTX_CAS},
             {"and", PTX_ANDS},
             {"or", PTX_ORS},
             {"arrive", PTX_ARRIVE},
             {"commit_group", PTX_COMMIT_GROUP},
             {"wait_group", PTX_WAIT_GROUP},
             {"wait_all", PTX_WAIT_ALL},
             {"fence", PTX_FENCES},
             {"mma_async", PTX_MULTIPLIES}};

/* Which of its kind; false when the word says nothing of that. */
static int find_mode(ptx_insn *insn, const char *word)
{
    int is_many = insn->op == PTX_SHFL || insn->op == PTX_ATOM || insn->op == PTX_RED ||
                  insn->op == PTX_CP || insn->op == PTX_BAR || insn->op == PTX_BARRIER ||
                  insn->op == PTX_WGMMA;
    for (uint32_t i = 0; is_many && i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(modes[i].text, word)) {
            insn->mode = (uint8_t)modes[i].mode;
            return 1;
        }
    return 0;
}

/* Words that name no difference here: caches, scopes, and orders as strong as the interpreter's. */
static int says_nothing(const ptx_insn *insn, const char *word)
{
    static const char *const nothing[] = {
        "to",  "uni",  "sync",    "volatile", "wrap",    "aligned", "async",
        "ca",  "cg",   "cs",      "lu",       "cv",      "wb",      "wt", "gpu",     "sys",
        "cta", "weak", "relaxed", "acquire",  "release", "acq_rel", "sc", "gl"};
    int is_memory = insn->op == PTX_LD || insn->op == PTX_ST || insn->op == PTX_CP;
    return find_word(nothing, sizeof nothing / sizeof *nothing, word) >= 0 ||
           (is_memory && (!strncmp(word, "L1::", 4) || !strncmp(word, "L2::", 4)));
}

/* In the order of PTX_SAID_…. */
static const char *const by_warp[] = {"sync", "aligned", "row", "col"};
static const char *const ptx_matrix_types[] = {"f32", "s32", "f16", "bf16", "tf32", "s8", "u8"};

/* Of a product of matrices: "m16n8k16", "row", "col", then four types. */
static int matrix_modifier(ptx_insn *insn, const char *word)
{
    unsigned depth;
    int n = 0, found = find_word(ptx_matrix_types, 7, word);
    if (found >= 0 && insn->nelements < 4) {
        insn->elements[insn->nelements++] = (uint8_t)found;
        return 1;
    }
    if (sscanf(word, "m16n8k%u%n", &depth, &n) == 1 && !word[n] && depth <= 32) {
        insn->depth = (uint8_t)depth;
        return 1;
    }
    return find_word(by_warp, 4, word) >= 0;
}

/* "m64n128k16", then three types. */
static int group_modifier(ptx_insn *insn, const char *word)
{
    unsigned columns;
    int n = 0, found = find_word(ptx_matrix_types, 7, word);
    if (found >= 0 && insn->nelements < 3) {
        insn->elements[insn->nelements++] = (uint8_t)found;
        return 1;
    }
    if (sscanf(word, "m64n%uk16%n", &columns, &n) != 1 || word[n] || columns % 8 || columns < 8 || columns > 256)
        return find_mode(insn, word) || !strcmp(word, "sync") || !strcmp(word, "aligned");
    insn->nsums = (uint8_t)(columns / 2);
    return 1;
}

/* Of matrices that are loaded: 8 x 8 of 16 bits, 1, 2 or 4 of them. */
static int is_matrix_word(ptx_insn *insn, const char *word)
{
    if (insn->op != PTX_LDMATRIX)
        return 0;
    if (!strcmp(word, "trans"))
        return insn->is_transposed = 1;
    if (*word == 'x' && word[1] && strchr("124", word[1]) && !word[2])
        return insn->nsaid = (uint8_t)(word[1] - '0');
    return !strcmp(word, "m8n8");
}

/* "v2" of what is loaded or stored; a word that products of matrices must have. */
static int note_word(ptx_insn *insn, const char *word)
{
    int found = find_word(by_warp, 4, word), is_access = insn->op == PTX_LD || insn->op == PTX_ST;
    if (is_access && *word == 'v' && (word[1] == '2' || word[1] == '4') && !word[2])
        return insn->nsaid = (uint8_t)(word[1] - '0');
    if (found >= 0) /* each once, in this order */
        insn->said = (uint8_t)(insn->said >> found ? UINT8_MAX : insn->said | 1u << found);
    return 0;
}

/* Products and loads of matrices say that a whole warp makes them, and products how factors lie; vectors have as many elements as the
 * opcode says. */
static const char *refuse_words(const ptx_insn *insn)
{
    enum { BY_WARP = PTX_SAID_SYNC | PTX_SAID_ALIGNED, OF_FACTORS = BY_WARP | PTX_SAID_ROW | PTX_SAID_COL };
    int is_access = insn->op == PTX_LD || insn->op == PTX_ST || insn->op == PTX_LDMATRIX;
    if (insn->op == PTX_MMA && insn->said != OF_FACTORS)
        return "mma is .sync.aligned, of .row and .col";
    if ((insn->op == PTX_LDMATRIX || insn->op == PTX_WGMMA) && insn->said != BY_WARP)
        return "matrices are .sync.aligned";
    if (is_access && insn->nelems != (insn->nsaid ? insn->nsaid : 1))
        return "a vector of another number of elements than the opcode says";
    return NULL;
}

/* One of an opcode's words after the first; false when it means nothing here. */
static int modifier(ptx_insn *insn, const char *word)
{
    static const char *const halves[] = {"lo", "hi", "wide"};
    int found;
    if (note_word(insn, word))
        return 1;
    if (insn->op == PTX_MMA)
        return matrix_modifier(insn, word);
    if (insn->op == PTX_WGMMA)
        return group_modifier(insn, word);
    if (insn->op == PTX_FENCE && !strcmp(word, "proxy"))
        return insn->is_of_proxies = 1;
    if (is_matrix_word(insn, word))
        return 1;
    ptx_type type = type_of(word);
    if (type.kind) {
        *(insn->type.kind ? &insn->from : &insn->type) = type;
        return 1;
    }
    if (find_mode(insn, word))
        return 1;
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
    else if (insn->op == PTX_LD && !strcmp(word, "nc"))
        insn->is_noncoherent = 1;
    else
        return says_nothing(insn, word);
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

/* A result and what is added of one type, factors of one that goes with it, in whole registers of a fragment. */
static int is_product(const ptx_insn *insn)
{
    static const uint8_t bits[] = {32, 32, 16, 16, 32, 8, 8};
    uint8_t a = insn->elements[1], b = insn->elements[2], sum = insn->elements[0];
    int is_integer = a == PTX_S8 || a == PTX_U8;
    if (insn->nelements != 4 || sum != insn->elements[3] || sum != (is_integer ? PTX_S32 : PTX_F32) || a < PTX_F16)
        return 0;
    int are_alike = is_integer ? b == PTX_S8 || b == PTX_U8 : a == b;
    uint32_t all = (uint32_t)insn->depth * bits[a];
    return are_alike && (all == 128 || all == 256);
}

/* Steps around the products of a group of warps; of products those of f16 or bf16 into f32. */
static const char *refuse_group(const parser *p, const ptx_insn *insn)
{
    int are_alike = insn->elements[1] == insn->elements[2];
    int is_known = insn->elements[0] == PTX_F32 && (insn->elements[1] == PTX_F16 || insn->elements[1] == PTX_BF16);
    if (p->module->target != 90 || !p->module->is_specific)
        return "a product of a group of warps, which needs sm_90a";
    if (insn->mode != PTX_MULTIPLIES)
        return insn->mode == PTX_FENCES || insn->mode == PTX_COMMIT_GROUP || insn->mode == PTX_WAIT_GROUP ? NULL : "wgmma that is not known";
    return insn->nsums && insn->nelements == 3 && are_alike && is_known ? NULL : "a product of a group of warps that is not known";
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
    if (insn->op == PTX_MMA && !is_product(insn))
        return fail(p, "a product of matrices that is not known");
    if (insn->op == PTX_MMA && p->module->target < 80)
        return fail(p, "a product of matrices that needs sm_80");
    if (insn->op == PTX_WGMMA && refuse_group(p, insn))
        return fail(p, refuse_group(p, insn));
    if (insn->is_of_proxies && p->module->target < 90)
        return fail(p, "a fence between proxies, which needs sm_90");
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
        if (insn->op == PTX_MOV && *text == '{') {
            DLC_TRY(vector_of(p, text, insn->elems, &insn->npacked));
            continue;
        }
        if (insn->op == PTX_MMA) {
            uint8_t had = 0;
            if (s + PTX_MAX_ELEMS > PTX_MAX_SOURCES + 2)
                return fail(p, "too many operands");
            DLC_TRY(vector_of(p, text, insn->elems, &had));
            for (uint8_t e = 0; e < had && s < PTX_MAX_SOURCES; e++)
                insn->src[s++] = insn->elems[e];
            memset(insn->elems, 0, sizeof insn->elems);
            continue;
        }
        if (insn->op == PTX_SETP && i == 2 && *text == '!') {
            insn->has_not_third = 1;
            text++;
        }
        DLC_TRY(operand_of(p, text, &insn->src[s++]));
    }
    insn->nsrc = (uint8_t)s;
    return DLC_OK;
}

static dlc_status jump(parser *p, const char *label)
{
    dlc_vec_push(p->arena, &p->jumps, named(label, p->function->insns.n));
    return DLC_OK;
}

/* How many sources an instruction may have beyond the table's. */
static uint32_t more_sources(const ptx_insn *insn)
{
    return insn->op == PTX_SETP   ? insn->combine != 0
           : insn->op == PTX_ATOM ? insn->mode == PTX_CAS
           : insn->op == PTX_CP   ? (insn->mode == PTX_PLAIN ? 4 : insn->mode == PTX_WAIT_GROUP)
           : insn->op == PTX_WGMMA
               ? (insn->mode == PTX_MULTIPLIES ? GROUP_OPERANDS : insn->mode == PTX_WAIT_GROUP)
                                  : insn->op == PTX_BAR || insn->op == PTX_BARRIER;
}

/* "%r1|%p1": shuffles say in a predicate whether the lane they read from is there. */
static dlc_status second_destination(parser *p, ptx_insn *insn, char *text)
{
    char *bar = strchr(text, '|');
    insn->valid = PTX_NO_REG;
    if (!bar)
        return DLC_OK;
    *bar = 0;
    insn->valid = find_register(p, trimmed(bar + 1));
    return insn->op == PTX_SHFL && insn->valid != PTX_NO_REG ? DLC_OK
                                                             : fail(p, "a second destination");
}

/* "{%f1, …}, a, b, p, 1, 1, 0, 1": the sums, where both factors lie, whether there is something to add to, their signs, and which
 * of them is transposed. */
static dlc_status group_operands(parser *p, ptx_insn *insn, char **parts, uint32_t n)
{
    char *rest = NULL;
    uint32_t nsums = 0;
    if (n != GROUP_OPERANDS || *trimmed(parts[0]) != '{')
        return fail(p, "a product of a group of warps whose factors do not both lie in shared memory");
    insn->sums = dlc_new_array(p->arena, ptx_operand, insn->nsums);
    for (char *word = strtok_r(parts[0], "{}, ", &rest); word; word = strtok_r(NULL, "{}, ", &rest), nsums++)
        if (nsums < insn->nsums)
            DLC_TRY(operand_of(p, word, &insn->sums[nsums]));
    for (uint32_t i = 0; i < nsums && i < insn->nsums; i++)
        if (insn->sums[i].kind != PTX_REG)
            return fail(p, "a destination that is no register");
    if (nsums != insn->nsums)
        return fail(p, "a product of a group of warps in too few or too many registers");
    insn->space = PTX_SHARED;
    for (uint32_t i = 1; i < n; i++)
        DLC_TRY(operand_of(p, parts[i], &insn->src[i - 1]));
    insn->nsrc = GROUP_OPERANDS - 1;
    if (insn->src[3].value != 1 || insn->src[4].value != 1)
        return fail(p, "factors whose sign changes");
    return DLC_OK;
}

static dlc_status operands(parser *p, ptx_insn *insn, char *text)
{
    char *parts[8];
    uint32_t n = split(text, parts, 8), ndst = ops[insn->op].ndst, nsrc = ops[insn->op].nsrc;
    if (n < ndst + nsrc || n > ndst + nsrc + more_sources(insn))
        return fail(p, dlc_arena_printf(p->arena, "%u operands", n));
    nsrc = n - ndst;
    if (insn->op == PTX_BRA)
        return jump(p, trimmed(parts[0]));
    insn->valid = PTX_NO_REG;
    if (insn->op == PTX_WGMMA && insn->mode == PTX_MULTIPLIES)
        return group_operands(p, insn, parts, n);
    if (ndst)
        DLC_TRY(second_destination(p, insn, parts[0]));
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
    if (refuse_words(&insn))
        return fail(p, refuse_words(&insn));
    dlc_vec_push(p->arena, &p->function->insns, insn);
    return DLC_OK;
}

static dlc_status statement(parser *p)
{
    size_t n = strlen(p->statement);
    if (!strcmp(p->statement, "{") || !strcmp(p->statement, "}") || !*trimmed(p->statement))
        return DLC_OK;
    if (*p->statement == '.')
        return directive(p);
    if (!p->function)
        return fail(p, "code outside an entry");
    if (p->statement[n - 1] == ':') {
        p->statement[n - 1] = 0;
        dlc_vec_push(p->arena, &p->labels, named(p->statement, p->function->insns.n));
        return DLC_OK;
    }
    return instruction(p);
}

/* Of the entry that ends. */
static dlc_status resolve_jumps(parser *p)
{
    for (uint32_t i = 0; i < p->jumps.n; i++) {
        const symbol *label = find_symbol(p->labels.data, p->labels.n, p->jumps.data[i].name);
        if (!label || label->value >= p->function->insns.n)
            return dlc_diag_fail(p->diag, DLC_INVALID, "PTX", "no label '%s'",
                                 p->jumps.data[i].name);
        p->function->insns.data[p->jumps.data[i].value].target = (uint32_t)label->value;
    }
    p->jumps.n = 0;
    return p->function && p->function->insns.n
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
