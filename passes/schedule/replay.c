/*
 * Schedules from text in place of chosen ones. Kernels are told by what they compute: those of the text and of the module are the
 * same when they print the same with numbers for names. A schedule speaks by the names of the text's kernel, so it is read for a
 * copy of the module's kernel that has those names, and gets the module's own names back.
 */
#include "passes/schedule/replay.h"

#include <string.h>

#include "ir/kernel/algebra.h"

/* --- reading --- */

typedef struct {
    const dlc_pass_ctx *ctx;
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

static void read_kernel(reader *r)
{
    dlc_kernel *kernel = dlc_kernel_parse_inside(&r->lex);
    if (r->lex.status == DLC_OK && dlc_kernel_verify(kernel, r->ctx->diag) != DLC_OK)
        r->lex.status = r->ctx->diag->status;
    for (dlc_lexer_skip_lines(&r->lex); dlc_lexer_is(&r->lex, "schedule"); dlc_lexer_skip_lines(&r->lex)) {
        dlc_given_schedule row = {.kernel = kernel, .hash = dlc_kernel_hash(kernel), .at = r->lex};
        if (is_for(r, r->lex.token.start))
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
        r->lex = (dlc_lexer){.at = begin, .line_start = begin, .line = *line, .file = r->ctx->schedules.file,
                             .arena = r->replay->arena, .diag = r->ctx->diag};
        dlc_lexer_start(&r->lex);
        read_kernel(r);
        *line = r->lex.token.line;
        *at = r->lex.token.start;
        return;
    }
    r->is_module |= begins_with(begin, "module");
    if (!r->is_module && blanks < length && begin[blanks] != '#') {
        r->lex.status = dlc_diag_fail(r->ctx->diag, DLC_INVALID, r->ctx->schedules.file,
                                      "line %u: a kernel is due, or the word 'module' of a printed module", *line);
        return;
    }
    *at += length + (begin[length] == '\n');
    *line += begin[length] == '\n';
}

dlc_status dlc_replay_read(const dlc_pass_ctx *ctx, dlc_replay *replay)
{
    reader r = {.ctx = ctx, .replay = replay};
    const char *at = ctx->schedules.text;
    uint32_t line = 1;
    *replay = (dlc_replay){.arena = ctx->module->arena, .target = ctx->target};
    while (at && *at && r.lex.status == DLC_OK)
        read_line(&r, &at, &line);
    return r.lex.status;
}

/* --- taking --- */

static int is_equal(const dlc_kernel *a, const dlc_kernel *b)
{
    dlc_str x = {0}, y = {0};
    dlc_kernel_print(a, 0, &x);
    dlc_kernel_print(b, 0, &y);
    int same = !strcmp(dlc_str_text(&x), dlc_str_text(&y)) && a->axes.n == b->axes.n && a->stages.n == b->stages.n;
    dlc_str_deinit(&x);
    dlc_str_deinit(&y);
    return same;
}

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

dlc_status dlc_replay_find(dlc_replay *replay, const dlc_kernel *kernel, dlc_schedule **schedule)
{
    uint64_t hash = replay->rows.n ? dlc_kernel_hash(kernel) : 0;
    *schedule = NULL;
    for (uint32_t i = 0; i < replay->rows.n; i++) {
        dlc_given_schedule *row = &replay->rows.data[i];
        if (row->hash != hash || !is_equal(row->kernel, kernel))
            continue;
        dlc_kernel *named = dlc_kernel_clone(kernel, replay->arena);
        dlc_lexer lex = row->at;
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

void dlc_replay_report(const dlc_replay *replay, const dlc_pass_ctx *ctx)
{
    enum { MOST_NAMED = 8 };
    dlc_str unused = {0};
    uint32_t ntaken = 0, nunused = 0;
    if (!ctx->schedules.text)
        return;
    for (uint32_t i = 0; i < replay->rows.n; i++) {
        const dlc_given_schedule *row = &replay->rows.data[i];
        ntaken += row->ntaken;
        if (!row->ntaken && nunused++ < MOST_NAMED)
            dlc_str_printf(&unused, "%s%s (line %u)", unused.n ? ", " : "", row->kernel->name, row->at.token.line);
    }
    (void)dlc_diag_fail(ctx->diag, DLC_OK, ctx->schedules.file, "%u of %u kernels have a schedule from here, for %s", ntaken,
                  ctx->module->kernels.n, replay->target->name);
    if (nunused)
        dlc_diag_detail(ctx->diag, "%u fit no kernel of the model, or come second: %s%s", nunused, dlc_str_text(&unused),
                        nunused > MOST_NAMED ? ", …" : "");
    dlc_str_deinit(&unused);
}
