/*
 * The list of what does not pass may only shrink: a case that does worse than its line, or has
 * none, is a failure; one that passes must leave the list.
 */
#include "cli/tests_list.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const outcome_texts[] = {"PASS", "FAIL", "UNSUPPORTED", "RANDOM"};

typedef struct {
    const char *name;
    dlc_outcome outcome;
} line;
typedef dlc_vec(line) lines;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const line *)a)->name, ((const line *)b)->name);
}

static dlc_status parse_line(dlc_cli *cli, const char *path, const char *text, size_t n,
                             lines *list)
{
    size_t end = 0;
    while (end < n && text[end] != '#')
        end++;
    while (end && (text[end - 1] == ' ' || text[end - 1] == '\t' || text[end - 1] == '\r'))
        end--;
    if (!end)
        return DLC_OK;
    char *copy = dlc_arena_strndup(cli->arena, text, end), *blank = strchr(copy, ' ');
    line row = {.name = copy};
    for (int i = DLC_OUTCOME_FAIL; blank && i < DLC_OUTCOME_COUNT; i++)
        if (!strcmp(blank + 1, outcome_texts[i]))
            row.outcome = (dlc_outcome)i;
    if (row.outcome == DLC_OUTCOME_PASS)
        return dlc_diag_fail(&cli->diag, DLC_INVALID, path,
                             "has the line '%s', where NAME FAIL, NAME UNSUPPORTED or NAME RANDOM is wanted",
                             copy);
    *blank = 0;
    dlc_vec_push(cli->arena, list, row);
    return DLC_OK;
}

static dlc_status read_list(dlc_cli *cli, const char *path, lines *list)
{
    dlc_map map;
    DLC_TRY(dlc_map_open(path, &map, &cli->diag));
    dlc_status status = DLC_OK;
    for (size_t at = 0; at < map.size_bytes && status == DLC_OK;) {
        const char *text = (const char *)map.bytes + at,
                   *end = memchr(text, '\n', map.size_bytes - at);
        size_t n = end ? (size_t)(end - text) : map.size_bytes - at;
        status = parse_line(cli, path, text, n, list);
        at += n + 1;
    }
    dlc_map_close(&map);
    if (list->n)
        qsort(list->data, list->n, sizeof *list->data, by_name);
    return status;
}

static const line *find_line(const lines *list, const char *name)
{
    line key = {.name = name};
    return list->n ? bsearch(&key, list->data, list->n, sizeof key, by_name) : NULL;
}

/* The cases of `old` (all, when there is none) that still do not pass. */
static dlc_status write_list(dlc_cli *cli, const char *path, const dlc_results *results,
                             const lines *old)
{
    dlc_str text = {0};
    dlc_str_add(
        &text,
        "# Cases that do not pass yet. `dlc test --list` keeps it honest: it may only shrink.\n");
    for (uint32_t i = 0; i < results->n; i++) {
        const dlc_result *result = &results->data[i];
        if (result->outcome != DLC_OUTCOME_PASS && (!old || find_line(old, result->name)))
            dlc_str_printf(&text, "%s %s\n", result->name, outcome_texts[result->outcome]);
    }
    dlc_status status = dlc_output_whole(path, text.data, text.n, &cli->diag);
    dlc_str_deinit(&text);
    return status;
}

/* Worse than the list says. */
static dlc_status check_result(dlc_cli *cli, const dlc_result *result, const line *row)
{
    if (result->outcome == DLC_OUTCOME_PASS ||
        (row && (row->outcome == result->outcome || row->outcome == DLC_OUTCOME_FAIL)))
        return DLC_OK;
    return dlc_diag_fail(&cli->diag, DLC_MISMATCH, cli->args.list,
                         "%s is %s, where %s is expected: %s", result->name,
                         outcome_texts[result->outcome], row ? outcome_texts[row->outcome] : "PASS",
                         result->why);
}

/* Lines of cases that pass by now: one message for all. */
static dlc_status check_stale(dlc_cli *cli, const dlc_results *results, const lines *list)
{
    enum { MOST_NAMED = 8 };
    const char *names = "";
    uint32_t n = 0;
    for (uint32_t i = 0; i < results->n; i++) {
        const dlc_result *result = &results->data[i];
        if (result->outcome != DLC_OUTCOME_PASS || !find_line(list, result->name))
            continue;
        if (n++ < MOST_NAMED)
            names = dlc_arena_printf(cli->arena, "%s%s%s", names, *names ? ", " : "", result->name);
    }
    if (!n || cli->args.update)
        return DLC_OK;
    return dlc_diag_fail(&cli->diag, DLC_MISMATCH, cli->args.list,
                         "%u of its cases pass now and must leave it (--update does that): %s%s", n,
                         names, n > MOST_NAMED ? ", …" : "");
}

static dlc_status check_list(dlc_cli *cli, const dlc_results *results)
{
    const char *path = cli->args.list;
    lines list = {0};
    if (cli->args.update && access(path, F_OK) != 0)
        return write_list(cli, path, results, NULL);
    DLC_TRY(read_list(cli, path, &list));
    dlc_status status = check_stale(cli, results, &list);
    for (uint32_t i = 0; i < results->n; i++) {
        const dlc_result *result = &results->data[i];
        dlc_status one = check_result(cli, result, find_line(&list, result->name));
        status = status == DLC_OK ? one : status;
    }
    if (cli->args.update)
        DLC_TRY(write_list(cli, path, results, &list));
    return status;
}

static void add_json(dlc_cli *cli, const dlc_results *results)
{
    cJSON *cases = cJSON_AddArrayToObject(cli->json, "cases");
    for (uint32_t i = 0; i < results->n; i++) {
        const dlc_result *result = &results->data[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", result->name);
        cJSON_AddStringToObject(row, "outcome", outcome_texts[result->outcome]);
        if (*result->why)
            cJSON_AddStringToObject(row, "why", result->why);
        cJSON_AddNumberToObject(row, "seconds", result->seconds);
        cJSON_AddItemToArray(cases, row);
    }
}

dlc_status dlc_results_report(dlc_cli *cli, const dlc_results *results, double seconds)
{
    uint32_t counts[DLC_OUTCOME_COUNT] = {0};
    for (uint32_t i = 0; i < results->n; i++)
        counts[results->data[i].outcome]++;
    dlc_say(cli, "%u PASS, %u FAIL, %u UNSUPPORTED", counts[DLC_OUTCOME_PASS],
            counts[DLC_OUTCOME_FAIL], counts[DLC_OUTCOME_UNSUPPORTED]);
    if (counts[DLC_OUTCOME_RANDOM])
        dlc_say(cli, ", %u RANDOM", counts[DLC_OUTCOME_RANDOM]);
    dlc_say(cli, " of %u in %.1f s\n", results->n, seconds);
    cJSON_AddNumberToObject(cli->json, "pass", counts[DLC_OUTCOME_PASS]);
    cJSON_AddNumberToObject(cli->json, "fail", counts[DLC_OUTCOME_FAIL]);
    cJSON_AddNumberToObject(cli->json, "unsupported", counts[DLC_OUTCOME_UNSUPPORTED]);
    add_json(cli, results);
    if (cli->args.list)
        return check_list(cli, results);
    return counts[DLC_OUTCOME_FAIL] ? DLC_MISMATCH : DLC_OK;
}
