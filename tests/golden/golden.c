/*
 * Golden cases: golden DIR... runs every .dlc file in DIR. A case is a graph or a module between comments:
 *
 * - "# run: cse,dce": the passes, in order
 * - "# target: sm_80": what for, if not x86-64-v3
 * - "# fusion: none": the strategy, if not greedy
 * - "# rewrite: split=4": what the pass rewrite does, if not what estimates say
 * - "# precision: bf16": what contractions of weights multiply, if not what they are of
 * - one sentence that says what must hold, then the graph
 * - "# expect:" and behind it the whole text after the last pass; or, on this line, one of
 * - "# expect: no change": the text is the input's, and no pass says it changed anything
 * - "# expect: rules a b": the rules of simplify that fired, in order
 * - "# expect: group(%a, %b)": the fusion groups in the order they run, with their nodes' results
 * - "# expect: arena ...": the arena's bytes and where each value lies
 * - "# expect: error TEXT": some message contains TEXT
 *
 * A module that comes out reads back as the same text. For every case and every pass over graphs alone, two laws are checked as well: a pass that
 * reports no change left the text as it was (and the reverse), and running it again changes
 * nothing. In the folder simplify every rule must fire somewhere. DLC_BLESS=1 rewrites expectations
 * that do not hold.
 */
#include "base/file.h"
#include "passes/fuse/fuse.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *path;
    const char *passes;   /* of "# run:" */
    const char *fusion;   /* of "# fusion:", or greedy */
    const char *rewrite;  /* of "# rewrite:", or NULL */
    const char *precision; /* of "# precision:", or NULL */
    const char *target;   /* of "# target:", or x86-64-v3 */
    const char *input;    /* everything before "# expect" */
    const char *summary;  /* rest of the "# expect:" line, blanks trimmed */
    const char *expected; /* lines after it */
} golden;

typedef struct {
    dlc_arena *arena, *scratch;
    dlc_diag diag;
    dlc_graph *graph;
    dlc_pass_ctx ctx;
    char *text; /* of the last dump */
    uint32_t changes, total_changes;
} session;

static const char *const graph_passes[] = {"dce", "integers", "const_fold", "simplify", "cse", "layout", NULL};

static const struct {
    const char *pass, *name;
} all_rules[] = {
#define DLC_RULE(name, op, class_, algebra) {"simplify", #name},
#include "passes/simplify/simplify_rules.def"
#undef DLC_RULE
#define DLC_RULE(name, op, class_, algebra) {"integers", #name},
#include "passes/simplify/integer_rules.def"
#undef DLC_RULE
};
enum { NRULES = sizeof all_rules / sizeof *all_rules };

static char *trimmed(dlc_arena *arena, const char *from, size_t n)
{
    while (n && strchr(" \t\r\n", *from))
        from++, n--;
    while (n && strchr(" \t\r\n", from[n - 1]))
        n--;
    return dlc_arena_strndup(arena, from, n);
}

/* The rest of the first line that begins with `mark`; *after: the line behind it. NULL: no such
 * line. */
static char *marked_line(dlc_arena *arena, const char *text, const char *mark, const char **start,
                         const char **after)
{
    for (const char *line = text; line && *line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, mark, strlen(mark)))
            continue;
        const char *end = strchr(line, '\n');
        end = end ? end : line + strlen(line);
        *start = line;
        *after = *end ? end + 1 : end;
        return trimmed(arena, line + strlen(mark), (size_t)(end - line) - strlen(mark));
    }
    return NULL;
}

static int read_golden(dlc_arena *arena, const char *path, golden *result)
{
    dlc_diag diag;
    dlc_map map;
    const char *start, *after;
    dlc_diag_init(&diag, arena);
    if (dlc_map_open(path, &map, &diag) != DLC_OK)
        return 0;
    const char *text = dlc_arena_strndup(arena, (const char *)map.bytes, map.size_bytes);
    dlc_map_close(&map);
    *result = (golden){.path = path, .input = text, .summary = "", .expected = ""};
    result->passes = marked_line(arena, text, "# run:", &start, &after);
    if (!result->passes) {
        printf("%s: there is no '# run:' line\n", path);
        return 0;
    }
    result->fusion = marked_line(arena, text, "# fusion:", &start, &after);
    if (!result->fusion)
        result->fusion = "greedy";
    result->rewrite = marked_line(arena, text, "# rewrite:", &start, &after);
    result->precision = marked_line(arena, text, "# precision:", &start, &after);
    result->target = marked_line(arena, text, "# target:", &start, &after);
    if (!result->target)
        result->target = "x86-64-v3";
    char *summary = marked_line(arena, text, "# expect:", &start, &after);
    if (summary) {
        result->input = dlc_arena_strndup(arena, text, (size_t)(start - text));
        result->summary = summary;
        result->expected = after;
    }
    return 1;
}

/* --- running --- */

static void keep_text(void *user, const char *pass, const char *text)
{
    session *s = user;
    (void)pass;
    free(s->text);
    s->text = strdup(text);
}

static void keep_changes(void *user, const char *pass, double seconds, uint32_t changes)
{
    session *s = user;
    (void)pass, (void)seconds;
    s->changes = changes;
    s->total_changes += changes;
}

static int open_session(session *s, const golden *g)
{
    *s = (session){.arena = dlc_arena_create(0), .scratch = dlc_arena_create(0)};
    dlc_diag_init(&s->diag, s->arena);
    s->ctx = (dlc_pass_ctx){.scratch = s->scratch,
                            .target = dlc_target_find(g->target),
                            .diag = &s->diag,
                            .fusion = g->fusion,
                            .rewrite = g->rewrite,
                            .precision = g->precision};
    if (strstr(g->input, "\nmodule ")) {
        dlc_module *module;
        const char *rest;
        if (dlc_module_parse(g->input, g->path, s->arena, &s->diag, &module) != DLC_OK)
            return 0;
        s->ctx.target = module->target;
        return dlc_pipeline_resume(&s->ctx, module, &rest) == DLC_OK;
    }
    if (dlc_graph_parse(g->input, g->path, s->arena, &s->diag, &s->graph) != DLC_OK ||
        dlc_graph_verify(s->graph, &s->diag) != DLC_OK)
        return 0;
    s->ctx.graph = s->graph;
    return 1;
}

static void close_session(session *s)
{
    free(s->text);
    dlc_arena_destroy(s->scratch);
    dlc_arena_destroy(s->arena);
}

static int run_one(session *s, const char *pass)
{
    dlc_pipeline_options options = {.passes = pass,
                                    .dump_after = pass,
                                    .dump = keep_text,
                                    .timing = keep_changes,
                                    .user = s,
                                    .verify_each = 1};
    return dlc_pipeline_run(&s->ctx, &options) == DLC_OK;
}

static char *graph_text(const dlc_graph *graph)
{
    dlc_str text = {0};
    dlc_graph_print(graph, &text);
    char *copy = strdup(dlc_str_text(&text));
    dlc_str_deinit(&text);
    return copy;
}

static int is_graph_pass(const char *pass)
{
    for (uint32_t i = 0; graph_passes[i]; i++)
        if (!strcmp(graph_passes[i], pass))
            return 1;
    return 0;
}

static int complain(const golden *g, const char *format, const char *what)
{
    printf("%s: ", g->path);
    printf(format, what);
    printf("\n");
    return 0;
}

/* Runs a pass, and checks the two laws of passes over graphs. */
static int run_checked(const golden *g, session *s, const char *pass)
{
    int is_law_checked = is_graph_pass(pass), holds = 1;
    char *before = is_law_checked ? graph_text(s->graph) : NULL;
    if (!run_one(s, pass)) {
        free(before);
        return 0;
    }
    if (is_law_checked && !strcmp(before, s->text) != (s->changes == 0))
        holds = complain(g,
                         s->changes ? "pass '%s' reports changes but the text is the same"
                                    : "pass '%s' reports no change but the text differs",
                         pass);
    free(before);
    if (!is_law_checked)
        return 1;
    char *after = strdup(s->text);
    uint32_t total = s->total_changes, rules = s->ctx.rules.n;
    if (!run_one(s, pass) || s->changes || strcmp(after, s->text))
        holds = complain(g, "pass '%s' changes its own result", pass);
    s->total_changes = total;
    s->ctx.rules.n = rules;
    free(after);
    return holds;
}

static int run_passes(const golden *g, session *s)
{
    char *list = strdup(g->passes), *rest = list, *pass;
    int ran = 1;
    while (ran && (pass = strsep(&rest, ", ")))
        ran = !*pass || run_checked(g, s, pass);
    free(list);
    return ran;
}

/* --- comparing --- */

static char *messages_text(const dlc_diag *diag)
{
    dlc_str text = {0};
    for (uint32_t i = 0; i < diag->nmessages; i++)
        dlc_str_printf(&text, "%s%s%s\n", diag->messages[i].place ? diag->messages[i].place : "",
                       diag->messages[i].place && *diag->messages[i].place ? ": " : "",
                       diag->messages[i].text);
    char *copy = strdup(dlc_str_text(&text));
    dlc_str_deinit(&text);
    return copy;
}

static void add_groups(const dlc_groups *groups, dlc_str *text)
{
    for (uint32_t i = 0; groups && i < groups->ngroups; i++) {
        uint32_t g = groups->order[i];
        dlc_str_add(text, i ? " group(" : "group(");
        for (uint32_t m = 0; m < groups->members[g].n; m++)
            dlc_str_printf(text, "%s%%%s", m ? ", " : "",
                           groups->members[g].data[m]->outputs[0]->name);
        dlc_str_add(text, ")");
    }
}

static void add_arena(const dlc_module *module, dlc_str *text)
{
    dlc_str_add(text, "arena ");
    dlc_module_size_print(module, module->arena_bytes, text);
    for (uint32_t v = 0; v < module->values.n; v++) {
        const dlc_module_value *value = &module->values.data[v];
        if (value->role == DLC_VALUE_OUTPUT)
            dlc_str_printf(text, ", %%%s is output %u", value->name, value->index);
        if (!value->offset)
            continue;
        dlc_str_printf(text, ", %%%s at ", value->name);
        dlc_module_size_print(module, value->offset, text);
    }
}

static char *summary_of(const session *s, const char *kind)
{
    dlc_str text = {0};
    if (!strncmp(kind, "rules", 5)) {
        dlc_str_add(&text, "rules");
        for (uint32_t i = 0; i < s->ctx.rules.n; i++)
            dlc_str_printf(&text, " %s", s->ctx.rules.data[i].rule);
    } else if (!strncmp(kind, "group", 5)) {
        add_groups(s->ctx.groups, &text);
    } else if (!strncmp(kind, "arena", 5) && s->ctx.module && s->ctx.module->arena_bytes) {
        add_arena(s->ctx.module, &text);
    } else {
        dlc_str_add(&text, s->total_changes ? "changed" : "no change");
    }
    char *copy = strdup(dlc_str_text(&text));
    dlc_str_deinit(&text);
    return copy;
}

static void bless(const golden *g, const char *summary, const char *text)
{
    FILE *file = fopen(g->path, "w");
    if (!file)
        return;
    fprintf(file, "%s# expect:%s%s\n%s", g->input, *summary ? " " : "", summary, text);
    fclose(file);
    printf("%s: rewritten\n", g->path);
}

static int show_difference(const golden *g, const char *wanted, const char *found)
{
    printf("%s: wanted\n%s\nfound\n%s\n", g->path, wanted, found);
    return 0;
}

static int compare(const golden *g, session *s, int ran)
{
    const char *error = strncmp(g->summary, "error ", 6) ? NULL : g->summary + 6;
    if (error || !ran) {
        char *messages = messages_text(&s->diag);
        int holds = error && strstr(messages, error);
        if (!holds)
            show_difference(g, error ? error : "no message", messages);
        free(messages);
        return holds;
    }
    int is_summary = *g->summary != 0;
    char *found = is_summary ? summary_of(s, g->summary) : strdup(s->text ? s->text : "");
    const char *wanted = is_summary ? g->summary : g->expected;
    int holds = !strcmp(found, wanted);
    if (!holds && getenv("DLC_BLESS"))
        bless(g, is_summary ? found : "", is_summary ? "" : found);
    else if (!holds)
        show_difference(g, wanted, found);
    free(found);
    return holds;
}

/* parse(print(x)) = x */
static int reads_back(const golden *g, session *s)
{
    dlc_str before = {0}, after = {0};
    dlc_module *module;
    dlc_module_print(s->ctx.module, &before);
    int holds = 1;
    if (dlc_module_parse(dlc_str_text(&before), g->path, s->arena, &s->diag, &module) != DLC_OK) {
        char *messages = messages_text(&s->diag);
        holds = complain(g, "the module does not read back: %s", messages);
        free(messages);
    } else {
        dlc_module_print(module, &after);
        if (strcmp(dlc_str_text(&before), dlc_str_text(&after)) != 0)
            holds = show_difference(g, dlc_str_text(&before), dlc_str_text(&after));
    }
    dlc_str_deinit(&before);
    dlc_str_deinit(&after);
    return holds;
}

static void note_rules(const session *s, uint32_t *fired)
{
    for (uint32_t i = 0; i < s->ctx.rules.n; i++)
        for (uint32_t r = 0; r < NRULES; r++)
            fired[r] += !strcmp(all_rules[r].name, s->ctx.rules.data[i].rule);
}

static int run_case(const char *path, uint32_t *fired)
{
    dlc_arena *arena = dlc_arena_create(0);
    golden g;
    session s;
    int holds = 0;
    if (read_golden(arena, path, &g)) {
        int ran = open_session(&s, &g) && run_passes(&g, &s);
        holds = compare(&g, &s, ran);
        if (ran && s.ctx.facts & DLC_FACT_KERNELS)
            holds &= reads_back(&g, &s);
        note_rules(&s, fired);
        close_session(&s);
    }
    dlc_arena_destroy(arena);
    return holds;
}

/* --- folders --- */

static int is_case(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && !strcmp(dot, ".dlc");
}

/* Every rule of a pass has a case in its folder that fires. */
static int rules_that_never_fired(const char *folder, const uint32_t *fired)
{
    const char *slash = strrchr(folder, '/'), *pass = slash ? slash + 1 : folder;
    int nmissing = 0;
    for (uint32_t r = 0; r < NRULES; r++)
        if (!strcmp(all_rules[r].pass, pass) && !fired[r]) {
            printf("%s: no case fires rule '%s'\n", folder, all_rules[r].name);
            nmissing++;
        }
    return nmissing;
}

static int run_folder(const char *folder, int *ncases)
{
    uint32_t fired[NRULES] = {0};
    struct dirent **entries;
    int n = scandir(folder, &entries, is_case, alphasort), nfailed = 0;
    for (int i = 0; i < n; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s", folder, entries[i]->d_name) >= 0)
            nfailed += !run_case(path, fired);
        free(path);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    *ncases += n > 0 ? n : 0;
    return nfailed + rules_that_never_fired(folder, fired);
}

int main(int argc, char **argv)
{
    int ncases = 0, nfailed = 0;
    for (int i = 1; i < argc; i++)
        nfailed += run_folder(argv[i], &ncases);
    printf("%d cases, %d do not hold\n", ncases, nfailed);
    return nfailed || !ncases;
}
