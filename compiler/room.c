/* Whether what is to be made can be written at all: weights in files with holes cost nobody anything, but reading and writing them does. */
#include "compiler/driver.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

/* Weights that somebody reads; those of one place in a file are counted each. */
static uint64_t weight_bytes(const dlc_graph *graph)
{
    uint64_t sum = 0;
    for (const dlc_node *node = graph->first; node; node = node->next)
        if (node->op == DLC_OP_CONSTANT && node->outputs[0]->uses)
            sum += node->outputs[0]->data->size_bytes;
    return sum;
}

static int free_bytes(const char *path, uint64_t *bytes)
{
    char folder[PATH_MAX];
    struct statvfs room;
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (statvfs(folder, &room) != 0)
        return 0; /* who opens the file tells why */
    *bytes = (uint64_t)room.f_bavail * room.f_frsize;
    return 1;
}

dlc_status dlc_model_check_room(dlc_model *model, const char *path)
{
    enum { FOLDED = 4 }; /* what passes and common constants make smaller by more is rare */
    uint64_t bytes = model->graph ? weight_bytes(model->graph) : 0, room;
    if (!path || !free_bytes(path, &room) || bytes / FOLDED <= room)
        return DLC_OK;
    return dlc_diag_fail(&model->diag, DLC_IO, path, "the model's weights take %" PRIu64 " MiB; %" PRIu64 " MiB are free there",
                         bytes >> 20, room >> 20);
}
