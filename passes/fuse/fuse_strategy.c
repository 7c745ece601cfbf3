/*
 * Which strategy decides: a built-in by name, a shared library by its path (include/dlc/fusion.h), or a plan: a JSON file that
 * names the groups,
 *     {"groups": [["conv1", "relu1"], ["fc", "softmax"]]}
 * by the nodes' names. All go through the same table, so a plan's merges are refused for the same reasons as anyone's.
 */
#include "base/near.h"
#include "base/file.h"
#include "passes/fuse/fuse_engine.h"

#include <cjson/cJSON.h>
#include <dlfcn.h>
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

/* --- plug-ins --- */

static dlc_status run_strategy(dlc_fusion *fusion, const dlc_fusion_strategy *strategy, const char *path)
{
    if (!strategy || !strategy->run)
        return dlc_diag_fail(fusion->diag, DLC_USAGE, path, "dlc_fusion_strategy_get gives no strategy");
    if (strategy->version < 1 || strategy->version > DLC_FUSION_VERSION)
        return dlc_diag_fail(fusion->diag, DLC_USAGE, path,
                             "the strategy was built for version %u of dlc/fusion.h; this compiler has %d",
                             strategy->version, DLC_FUSION_VERSION);
    int result = strategy->run(fusion->api, fusion);
    if (result != 0)
        return dlc_diag_fail(fusion->diag, DLC_USAGE, path, "strategy '%.100s' gave up with %d",
                             strategy->name ? strategy->name : "", result);
    return DLC_OK;
}

static dlc_status run_plugin(dlc_fusion *fusion, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return dlc_diag_fail(fusion->diag, DLC_USAGE, path, "%s", dlerror());
    const dlc_fusion_strategy *(*get)(void) = NULL;
    *(void **)&get = dlsym(library, "dlc_fusion_strategy_get");
    dlc_status status = get ? run_strategy(fusion, get(), path)
                            : dlc_diag_fail(fusion->diag, DLC_USAGE, path, "exports no dlc_fusion_strategy_get");
    dlclose(library);
    return status;
}

/* --- plans --- */

/* The node called so: by its result's name, or by the model's name for it (the last of the core nodes it became). */
static uint32_t find_node(const dlc_fusion *fusion, const char *name)
{
    uint32_t found = DLC_FUSION_NONE;
    for (uint32_t n = 0; n < fusion->nnodes; n++) {
        const dlc_node *node = fusion->nodes[n];
        if (!strcmp(dlc_fuse_result(node)->name, name))
            return n;
        if (node->origin && node->origin->name && !strcmp(node->origin->name, name))
            found = n;
    }
    return found;
}

/* All core nodes of one node of the model are wanted together. */
static void want(const dlc_fusion *fusion, uint32_t node, uint32_t number, uint32_t *wanted)
{
    const dlc_origin *origin = fusion->nodes[node]->origin;
    wanted[node] = number;
    for (uint32_t n = 0; n < fusion->nnodes && origin; n++)
        if (fusion->nodes[n]->origin == origin)
            wanted[n] = number;
}

static dlc_status read_group(dlc_fusion *fusion, const char *path, const cJSON *list, uint32_t number, uint32_t *wanted)
{
    const cJSON *item;
    if (!cJSON_IsArray(list))
        return dlc_diag_fail(fusion->diag, DLC_USAGE, path, "group %u is no list of node names", number);
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item))
            return dlc_diag_fail(fusion->diag, DLC_USAGE, path, "group %u holds something else than a name", number);
        uint32_t node = find_node(fusion, item->valuestring);
        if (node == DLC_FUSION_NONE)
            return dlc_diag_fail(fusion->diag, DLC_USAGE, path, "group %u: the graph has no node '%.100s'", number,
                                 item->valuestring);
        want(fusion, node, number, wanted);
    }
    return DLC_OK;
}

static dlc_status read_plan(dlc_fusion *fusion, const char *path, const cJSON *plan, uint32_t *wanted)
{
    const cJSON *groups = cJSON_GetObjectItemCaseSensitive(plan, "groups"), *list;
    uint32_t number = 0;
    if (!cJSON_IsArray(groups))
        return dlc_diag_fail(fusion->diag, DLC_USAGE, path, "a plan is {\"groups\": [[\"name\", …], …]}");
    cJSON_ArrayForEach(list, groups) DLC_TRY(read_group(fusion, path, list, ++number, wanted));
    return DLC_OK;
}

/* Merges along edges in topological order until nothing changes: a group's nodes may only connect through later merges. */
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

static dlc_status run_plan(dlc_fusion *fusion, const char *path)
{
    dlc_map map;
    DLC_TRY(dlc_map_open(path, &map, fusion->diag));
    cJSON *plan = cJSON_ParseWithLength((const char *)map.bytes, map.size_bytes);
    dlc_map_close(&map);
    if (!plan)
        return dlc_diag_fail(fusion->diag, DLC_USAGE, path, "not valid JSON");
    uint32_t *wanted = dlc_new_array(fusion->arena, uint32_t, fusion->nnodes + 1);
    dlc_status status = read_plan(fusion, path, plan, wanted);
    cJSON_Delete(plan);
    DLC_TRY(status);
    merge_wanted(fusion, wanted);
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
        return run_plugin(fusion, name);
    return ends_with(name, ".json") ? run_plan(fusion, name) : refuse_name(fusion, name);
}
