/*
 * Which strategy decides: a built-in by name, a shared library by its path (include/dlc/fusion.h), or a plan: a JSON file that
 * names the groups,
 *     {"groups": [["conv1", "relu1"], ["%fc", "%softmax"]]}
 * by the model's names of nodes, each of which may have become several, or, behind %, by the name of one node's result in
 * the text form, as `dlc inspect --json` has them. A group that is legal as a whole is made at once, so that a plan's result
 * does not depend on the order of merges; of others the merges go through the same table as anyone's, and are refused for the
 * same reasons. What stays apart is told.
 */
#include "base/near.h"
#include "base/file.h"
#include "base/table.h"
#include "base/text.h"
#include "passes/fuse/fuse_engine.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(const dlc_fusion_api *api, dlc_fusion *fusion);
} built_in[] = {
#define DLC_FUSION(name, help) {#name, dlc_fusion_run_##name},
#include "passes/fuse/fusion.def"
#undef DLC_FUSION
};
enum { BUILT_IN_COUNT = sizeof built_in / sizeof *built_in };

static int ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* --- plans --- */

typedef struct {
    dlc_fusion *fusion;
    const char *path;
    uint32_t *wanted;    /* by handle: the group it is to be in; 0: none */
    uint32_t *said;      /* the group that names it itself */
    uint32_t *before;    /* the node before of the same origin, handle + 1; 0: none */
    uint32_t ngroups;
    dlc_table by_result; /* handle + 1 */
    dlc_table by_origin; /* the last one's handle + 1 */
} fusion_plan;

static uint32_t find(const dlc_table *table, const char *name)
{
    void **item = dlc_table_find(table, name);
    return item ? (uint32_t)(uintptr_t)*item - 1 : DLC_FUSION_NONE;
}

/* The node called so: by its result's name, or by the model's name for it (the last of the core nodes it became). */
static uint32_t find_node(const fusion_plan *p, const char *name)
{
    uint32_t node = find(&p->by_result, *name == '%' ? name + 1 : name);
    return node != DLC_FUSION_NONE || *name == '%' ? node : find(&p->by_origin, name);
}

/* All core nodes of one node of the model are wanted together, but for those that are named themselves. */
static void want(fusion_plan *p, uint32_t node, uint32_t number)
{
    const dlc_origin *origin = p->fusion->nodes[node]->origin;
    if (!origin || !origin->name)
        return;
    for (uint32_t n = find(&p->by_origin, origin->name) + 1; n; n = p->before[n - 1])
        if (p->fusion->nodes[n - 1]->origin == origin && !p->said[n - 1])
            p->wanted[n - 1] = number;
}

static dlc_status read_name(fusion_plan *p, const char *name, uint32_t number)
{
    dlc_fusion *fusion = p->fusion;
    uint32_t node = find_node(p, name);
    if (node == DLC_FUSION_NONE)
        return dlc_diag_fail(fusion->diag, DLC_USAGE, p->path, "group %u: the graph has no node '%.100s'", number, name);
    if (p->said[node])
        return dlc_diag_fail(fusion->diag, DLC_USAGE, p->path, "node '%.100s' is named in group %u and again in group %u", name,
                             p->said[node], number);
    if (*name != '%')
        want(p, node, number);
    p->said[node] = p->wanted[node] = number;
    return DLC_OK;
}

static dlc_status read_group(fusion_plan *p, const cJSON *list, uint32_t number)
{
    const cJSON *item;
    if (!cJSON_IsArray(list))
        return dlc_diag_fail(p->fusion->diag, DLC_USAGE, p->path, "group %u is no list of node names", number);
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item))
            return dlc_diag_fail(p->fusion->diag, DLC_USAGE, p->path, "group %u holds something else than a name", number);
        DLC_TRY(read_name(p, item->valuestring, number));
    }
    return DLC_OK;
}

static dlc_status read_plan(fusion_plan *p, const cJSON *plan)
{
    const cJSON *groups = cJSON_GetObjectItemCaseSensitive(plan, "groups"), *list;
    if (!cJSON_IsArray(groups))
        return dlc_diag_fail(p->fusion->diag, DLC_USAGE, p->path, "a plan is {\"groups\": [[\"name\", …], …]}");
    cJSON_ArrayForEach(list, groups) DLC_TRY(read_group(p, list, ++p->ngroups));
    return DLC_OK;
}

/* What is legal as a whole is judged as that: trials of its parts may be refused, and come to more than a group may cost. */
static void merge_whole(fusion_plan *p)
{
    dlc_fusion *fusion = p->fusion;
    dlc_ids *members = dlc_new_array(fusion->arena, dlc_ids, p->ngroups + 1);
    for (uint32_t n = 0; n < fusion->nnodes; n++)
        if (p->wanted[n])
            dlc_vec_push(fusion->arena, &members[p->wanted[n]], n);
    for (uint32_t g = 1; g <= p->ngroups; g++)
        if (members[g].n > 1)
            fusion->merge_set(fusion, &members[g], 0);
}

/* What is left merges along edges in topological order until nothing changes: nodes may only connect through later merges. */
static void merge_wanted(dlc_fusion *fusion, const uint32_t *wanted)
{
    const dlc_fusion_api *api = fusion->api;
    for (int again = 1; again;) {
        again = 0;
        for (uint32_t node = 0; node < fusion->nnodes; node++)
            for (uint32_t i = 0; wanted[node] && i < api->producer_count(fusion, node); i++) {
                uint32_t producer = api->producer(fusion, node, i);
                if (producer == DLC_FUSION_NONE || wanted[producer] != wanted[node] ||
                    api->group_of(fusion, producer) == api->group_of(fusion, node))
                    continue;
                again |= api->merge(fusion, producer, node);
            }
    }
}

/* Why a node's group is apart from the rest of what the plan puts together: the verdict on an edge between them, if there is one. */
static const char *reason_apart(dlc_fusion *fusion, const uint32_t *wanted, uint32_t node)
{
    for (uint32_t e = 0; e < fusion->first_edge[fusion->nnodes]; e++) {
        const dlc_fusion_edge *edge = &fusion->edges[e];
        uint32_t from = fusion->group[edge->from], to = fusion->group[edge->to];
        dlc_fusion_trial trial;
        if (wanted[edge->from] != wanted[node] || wanted[edge->to] != wanted[node] || from == to ||
            (from != fusion->group[node] && to != fusion->group[node]))
            continue;
        fusion->api->try_merge(fusion, edge->from, edge->to, &trial);
        return trial.text;
    }
    return "nothing leads from one to the other";
}

/* A group that could not be made whole is told once. */
static void tell_apart(fusion_plan *p)
{
    dlc_fusion *fusion = p->fusion;
    uint32_t *first = dlc_new_array(fusion->arena, uint32_t, fusion->nnodes + 1); /* by group of the plan: handle + 1 */
    uint8_t *is_told = dlc_new_array(fusion->arena, uint8_t, fusion->nnodes + 1);
    for (uint32_t n = 0; n < fusion->nnodes; n++) {
        uint32_t number = p->wanted[n];
        if (!number || number > fusion->nnodes || is_told[number])
            continue;
        if (!first[number])
            first[number] = n + 1;
        else if (fusion->group[first[number] - 1] != fusion->group[n]) {
            (void)dlc_diag_fail(fusion->diag, DLC_OK, p->path, "group %u: '%.100s' and '%.100s' stay apart: %s", number,
                                dlc_fuse_result(fusion->nodes[first[number] - 1])->name,
                                dlc_fuse_result(fusion->nodes[n])->name, reason_apart(fusion, p->wanted, n));
            is_told[number] = 1;
        }
    }
}

static void index_nodes(fusion_plan *p)
{
    for (uint32_t n = 0; n < p->fusion->nnodes; n++) {
        const dlc_node *node = p->fusion->nodes[n];
        void *here = (void *)(uintptr_t)(n + 1);
        int is_new;
        *dlc_table_insert(&p->by_result, p->fusion->arena, dlc_fuse_result(node)->name, &is_new) = here;
        if (!node->origin || !node->origin->name)
            continue;
        void **last = dlc_table_insert(&p->by_origin, p->fusion->arena, node->origin->name, &is_new);
        p->before[n] = (uint32_t)(uintptr_t)*last;
        *last = here;
    }
}

/* JSON lets a number be too large and a key stand there twice, and every reader makes something else of it. */
static dlc_status check_json(const fusion_plan *p, const cJSON *json)
{
    dlc_table keys = {0};
    const cJSON *item;
    if (cJSON_IsNumber(json) && !isfinite(json->valuedouble))
        return dlc_diag_fail(p->fusion->diag, DLC_USAGE, p->path, "%s%.100s%s is a number larger than any", json->string ? "'" : "one value",
                             json->string ? json->string : "", json->string ? "'" : "");
    cJSON_ArrayForEach(item, json) /* members of an object as well; cJSON refuses what is nested deeper than 1000 */
    {
        int is_new = 1;
        if (item->string)
            (void)dlc_table_insert(&keys, p->fusion->arena, item->string, &is_new);
        if (!is_new)
            return dlc_diag_fail(p->fusion->diag, DLC_USAGE, p->path, "the key '%.100s' stands there twice", item->string);
        DLC_TRY(check_json(p, item));
    }
    return DLC_OK;
}

/* A NUL, which JSON writes as \u0000, would end a name before its end. */
static int has_nul(const char *text, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++) {
        if (text[i] != '\\')
            continue;
        i++; /* what it escapes, a backslash as well */
        if (n - i >= 5 && !memcmp(text + i, "u0000", 5))
            return 1;
    }
    return memchr(text, 0, n) != NULL;
}

static dlc_status parse(fusion_plan *p, cJSON **plan)
{
    dlc_map map;
    const char *end = NULL;
    DLC_TRY(dlc_map_open(p->path, &map, p->fusion->diag));
    const char *text = (const char *)map.bytes, *problem = NULL;
    *plan = cJSON_ParseWithLengthOpts(text, map.size_bytes, &end, 0);
    while (*plan && end < text + map.size_bytes && dlc_is_space((unsigned char)*end))
        end++;
    if (!*plan || end < text + map.size_bytes)
        problem = *plan ? "something stands behind the JSON" : "not valid JSON";
    else if (has_nul(text, map.size_bytes))
        problem = "a name holds the character 0";
    dlc_map_close(&map);
    return problem ? dlc_diag_fail(p->fusion->diag, DLC_USAGE, p->path, "%s", problem) : check_json(p, *plan);
}

static dlc_status run_plan(dlc_fusion *fusion, const char *path)
{
    fusion_plan p = {.fusion = fusion, .path = path};
    cJSON *plan = NULL;
    dlc_status parsed = parse(&p, &plan);
    if (parsed)
        cJSON_Delete(plan);
    DLC_TRY(parsed);
    p.before = dlc_new_array(fusion->arena, uint32_t, fusion->nnodes + 1);
    p.wanted = dlc_new_array(fusion->arena, uint32_t, fusion->nnodes + 1);
    p.said = dlc_new_array(fusion->arena, uint32_t, fusion->nnodes + 1);
    index_nodes(&p);
    dlc_status status = read_plan(&p, plan);
    cJSON_Delete(plan);
    DLC_TRY(status);
    merge_whole(&p);
    merge_wanted(fusion, p.wanted);
    tell_apart(&p);
    return DLC_OK;
}

static dlc_status refuse_name(dlc_fusion *fusion, const char *name)
{
    const char *names[BUILT_IN_COUNT];
    dlc_str list = {0};
    for (uint32_t i = 0; i < BUILT_IN_COUNT; i++) {
        names[i] = built_in[i].name;
        dlc_str_printf(&list, "%s, ", names[i]);
    }
    const char *near = dlc_nearest(name, names, BUILT_IN_COUNT);
    dlc_status status = dlc_diag_fail(
        fusion->diag, DLC_USAGE, NULL,
        "there is no fusion strategy '%.100s'%s%s%s; there are %sa shared library (./x.so) and a plan (x.json)", name,
        near ? "; '" : "", near ? near : "", near ? "' is near it" : "", dlc_str_text(&list));
    dlc_str_deinit(&list);
    return status;
}

dlc_status dlc_fusion_run(dlc_fusion *fusion, const char *name)
{
    for (uint32_t i = 0; i < BUILT_IN_COUNT; i++) {
        if (!strcmp(built_in[i].name, name)) {
            built_in[i].run(fusion->api, fusion);
            return DLC_OK;
        }
    }
    if (ends_with(name, ".so"))
        return dlc_fusion_run_plugin(fusion, name);
    return ends_with(name, ".json") ? run_plan(fusion, name) : refuse_name(fusion, name);
}
