/*
 * Schedules from text in place of chosen ones. A kernel of the text is one of the module's when both print the same with numbers
 * for names, the operands of float minima and maxima in one order: the schedule is for the module's kernel, so zeros' signs, in
 * which these differ, are the module's. A schedule speaks by the names of the text's kernel, so it is read for a copy of the
 * module's kernel that has those names, and gets the module's own names back.
 */
#include "passes/schedule/replay.h"

#include <inttypes.h>
#include <string.h>

#include "ir/kernel/algebra.h"

/* --- reading --- */

typedef struct {
    dlc_replay *replay;
    dlc_lexer lex;
    int is_module; /* lines that are no kernels are the module's */
} reader;

static int is_for(const reader *r, const char *schedule)
{
    const char *name = schedule + strlen("schedule"), *wanted = r->replay->target->name;
    name += strspn(name, " \t");
    return strcspn(name, " \t\n{") == strlen(wanted) && !strncmp(name, wanted, strlen(wanted));
}

/* Behind the closing brace of what begins at the present token. */
static void skip_schedule(dlc_lexer *lex)
{
    uint32_t depth = 0;
    while (lex->status == DLC_OK && lex->token.kind != DLC_TOKEN_END) {
        depth += (uint32_t)dlc_lexer_is(lex, "{");
        int is_last = dlc_lexer_is(lex, "}") && depth-- <= 1;
        dlc_lexer_advance(lex);
        if (is_last)
            return;
    }
    dlc_lexer_fail(lex, "the text ends within a schedule");
}

static dlc_expr order_operands(void *user, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    (void)user;
    if ((node->op != DLC_EXPR_MIN && node->op != DLC_EXPR_MAX) || dlc_expr_order(to, args[1], args[0]) >= 0)
        return 0;
    return dlc_expr2(to, (dlc_expr_op)node->op, args[1], args[0]);
}

/* Text that equal kernels share, whatever the names in them. */
static const char *identity_of(const dlc_kernel *kernel, dlc_arena *arena)
{
    dlc_kernel *ordered = dlc_kernel_clone(kernel, arena);
    dlc_expr *root;
    dlc_str text = {0};
    for (uint32_t s = 0; s < ordered->stages.n; s++)
        for (uint32_t i = 0; (root = dlc_stage_root(&ordered->stages.data[s], i)); i++)
            *root = dlc_expr_rewrite(ordered->pool, ordered->pool, *root, order_operands, NULL);
    dlc_kernel_print(ordered, 0, &text);
    const char *copy = dlc_arena_strdup(arena, dlc_str_text(&text));
    dlc_str_deinit(&text);
    return copy;
}

/* `kernel hash(0123456789abcdef)` or `kernel of "node"`: false when it is a kernel as such. */
static int read_reference(reader *r, dlc_given_schedule *row)
{
    int is_hash = dlc_lexer_next_is(&r->lex, "hash"), is_node = dlc_lexer_next_is(&r->lex, "of");
    if (!is_hash && !is_node)
        return 0;
    dlc_lexer_expect(&r->lex, "kernel");
    dlc_lexer_advance(&r->lex);
    if (is_hash) {
        row->hash = dlc_lexer_hash(&r->lex);
        row->name = dlc_arena_printf(r->replay->arena, "hash(%016" PRIx64 ")", row->hash);
    } else {
        row->name = row->node = dlc_lexer_name(&r->lex);
    }
    return 1;
}

static void read_kernel(reader *r)
{
    dlc_given_schedule row = {0};
    if (!read_reference(r, &row)) {
        row.kernel = dlc_kernel_parse_inside(&r->lex);
        if (r->lex.status == DLC_OK && dlc_kernel_verify(row.kernel, r->replay->diag) != DLC_OK)
            r->lex.status = r->replay->diag->status;
        if (r->lex.status != DLC_OK)
            return;
        row.name = row.kernel->name;
        row.identity = identity_of(row.kernel, r->replay->arena);
    }
    for (dlc_lexer_skip_lines(&r->lex); dlc_lexer_is(&r->lex, "schedule"); dlc_lexer_skip_lines(&r->lex)) {
        row.at = r->lex;
        row.is_for_target = (uint8_t)is_for(r, r->lex.token.start);
        dlc_vec_push(r->replay->arena, &r->replay->rows, row);
        skip_schedule(&r->lex);
    }
}

static int begins_with(const char *line, const char *word)
{
    return !strncmp(line, word, strlen(word)) && strchr(" \t@\"", line[strlen(word)]) != NULL;
}

/* A kernel begins a line; in a module other lines say what this is not about. */
static void read_line(reader *r, const char **at, uint32_t *line)
{
    const char *begin = *at;
    size_t blanks = strspn(begin, " \t"), length = strcspn(begin, "\n");
    if (begins_with(begin, "kernel")) {
        r->lex = (dlc_lexer){.at = begin, .line_start = begin, .line = *line, .file = r->replay->file,
                             .arena = r->replay->arena, .diag = r->replay->diag};
        dlc_lexer_start(&r->lex);
        read_kernel(r);
        *line = r->lex.token.line;
        *at = r->lex.token.start;
        return;
    }
    r->is_module |= begins_with(begin, "module");
    if (!r->is_module && blanks < length && begin[blanks] != '#') {
        r->lex.status = dlc_diag_fail(r->replay->diag, DLC_INVALID, r->replay->file,
                                      "line %u: a kernel is due, or the word 'module' of a printed module", *line);
        return;
    }
    *at += length + (begin[length] == '\n');
    *line += begin[length] == '\n';
}

dlc_status dlc_replay_read(const char *file, const char *text, dlc_replay *replay)
{
    reader r = {.replay = replay};
    const char *at = text;
    uint32_t line = 1;
    replay->file = text ? file : NULL;
    while (at && *at && r.lex.status == DLC_OK)
        read_line(&r, &at, &line);
    return r.lex.status;
}

/* --- taking --- */

static void take_names(dlc_kernel *to, const dlc_kernel *from)
{
    to->name = from->name;
    for (uint32_t i = 0; i < from->axes.n; i++)
        to->axes.data[i].name = from->axes.data[i].name;
    for (uint32_t i = 0; i < from->buffers.n; i++)
        to->buffers.data[i].name = from->buffers.data[i].name;
    for (uint32_t i = 0; i < from->symbols.n; i++)
        to->symbols.data[i].name = from->symbols.data[i].name;
    for (uint32_t i = 0; i < from->stages.n; i++)
        to->stages.data[i].name = from->stages.data[i].name;
}

/* Kernel k computes something of the model's node. */
static int is_of_node(const dlc_module *module, uint32_t k, const char *node)
{
    for (uint32_t s = 0; s < module->steps.n; s++) {
        const dlc_step *step = &module->steps.data[s];
        for (uint32_t i = 0; step->kind == DLC_STEP_LAUNCH && step->kernel == k && i < step->nnodes; i++)
            if (!strcmp(step->nodes[i], node))
                return 1;
    }
    return 0;
}

typedef struct {
    const dlc_module *module;
    uint32_t k;
    const char *identity; /* once it is asked for */
} wanted;

static int is_wanted(dlc_replay *replay, const dlc_given_schedule *row, wanted *w)
{
    const dlc_module_kernel *kernel = &w->module->kernels.data[w->k];
    if (!row->is_for_target)
        return 0;
    if (!row->kernel)
        return row->node ? is_of_node(w->module, w->k, row->node) : row->hash == kernel->hash;
    if (!w->identity)
        w->identity = identity_of(kernel->kernel, replay->arena);
    return !strcmp(row->identity, w->identity);
}

dlc_status dlc_replay_find(dlc_replay *replay, const dlc_module *module, uint32_t k, dlc_schedule **schedule)
{
    const dlc_kernel *kernel = module->kernels.data[k].kernel;
    wanted w = {.module = module, .k = k};
    *schedule = NULL;
    for (uint32_t i = 0; i < replay->rows.n; i++) {
        dlc_given_schedule *row = &replay->rows.data[i];
        if (!is_wanted(replay, row, &w))
            continue;
        dlc_kernel *named = dlc_kernel_clone(kernel, replay->arena);
        dlc_lexer lex = row->at;
        if (row->kernel)
            take_names(named, row->kernel);
        *schedule = dlc_schedule_parse_inside(&lex, named, replay->target, replay->arena);
        if (!*schedule)
            return lex.status;
        take_names((*schedule)->kernel, kernel);
        row->ntaken++;
        return DLC_OK;
    }
    return DLC_OK;
}

/* --- telling --- */

/* Schedules that nobody took: "SENTENCE: conv (line 3), …". */
static void report_unused(const dlc_replay *replay, int is_for_target, const char *sentence)
{
    enum { MOST_NAMED = 8 };
    dlc_str unused = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < replay->rows.n; i++) {
        const dlc_given_schedule *row = &replay->rows.data[i];
        if (row->is_for_target == is_for_target && !row->ntaken && n++ < MOST_NAMED)
            dlc_str_printf(&unused, "%s%s (line %u)", unused.n ? ", " : "", row->name, row->at.token.line);
    }
    if (n)
        dlc_diag_detail(replay->diag, "%u %s: %s%s", n, sentence, dlc_str_text(&unused), n > MOST_NAMED ? ", …" : "");
    dlc_str_deinit(&unused);
}

uint32_t dlc_replay_ntaken(const dlc_replay *replay)
{
    uint32_t ntaken = 0;
    for (uint32_t i = 0; i < replay->rows.n; i++)
        ntaken += replay->rows.data[i].ntaken;
    return ntaken;
}

void dlc_replay_report(const dlc_replay *replay, const dlc_module *module)
{
    if (!replay->file)
        return;
    (void)dlc_diag_fail(replay->diag, DLC_OK, replay->file, "%u of %u kernels have a schedule from here, for %s",
                        dlc_replay_ntaken(replay), module->kernels.n, replay->target->name);
    report_unused(replay, 1, "fit no kernel of the model, or come second");
    report_unused(replay, 0, "for other targets");
}
