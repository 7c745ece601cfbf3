/*
 * dlc doctor: whether everything that dlc rests on is there, a line each: the library, a compilation
 * and a run of a small model, the cache, threads, a GPU. What is missing but not needed is a note.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
    dlc_cli *cli;
    cJSON *rows;
    dlc_status worst; /* of what failed */
} doctor;

/* DLC_OK: fine; else why not, which ends the command with this status when it is needed. */
static void tell(doctor *d, const char *what, dlc_status status, int is_needed, const char *text)
{
    const char *verdict = status == DLC_OK ? "ok" : is_needed ? "missing" : "note";
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "what", what);
    cJSON_AddStringToObject(row, "verdict", verdict);
    cJSON_AddStringToObject(row, "text", text);
    cJSON_AddItemToArray(d->rows, row);
    dlc_say(d->cli, "%-8s %-10s %s\n", verdict, what, text);
    if (status != DLC_OK && is_needed && d->worst == DLC_OK)
        d->worst = dlc_diag_fail(&d->cli->diag, status, NULL, "%s: %s", what, text);
}

/* Lines "llvm: 19.1.7" of the library. */
static void tell_about(doctor *d, const char *lines)
{
    for (const char *end; (end = strchr(lines, '\n')); lines = end + 1) {
        const char *colon = strchr(lines, ':');
        if (!colon || colon > end)
            continue;
        tell(d, dlc_arena_strndup(d->cli->arena, lines, (size_t)(colon - lines)), DLC_OK, 0,
             dlc_arena_strndup(d->cli->arena, colon + 2, (size_t)(end - colon - 2)));
    }
}

/* ---- a compilation and a run ---- */

static dlc_status run_small(dlcrt_context *context, float *result)
{
    float x[4] = {1, 2, 3, 4};
    dlcrt_tensor in = {.data = x, .dtype = DLC_F32, .rank = 1, .dims = {4}}, out = {.data = result, .size_bytes = 16};
    return dlcrt_context_run(context, &in, 1, &out, 1);
}

static dlc_status open_and_run(int fd, uint32_t *threads, float *result)
{
    dlcrt_executable *executable = NULL;
    dlcrt_context *context = NULL;
    dlcrt_executable_options options = {.fd = fd, .device = "cpu"};
    dlc_status status = dlcrt_executable_open_with(&options, &executable);
    if (status == DLC_OK)
        status = dlcrt_context_create(executable, NULL, &context);
    if (status == DLC_OK)
        status = run_small(context, result);
    *threads = context ? dlcrt_context_threads(context) : 0;
    dlcrt_context_destroy(context);
    dlcrt_executable_close(executable);
    return status;
}

static dlc_status compile_small(const dlc_library *library, int fd)
{
    static const char text[] = "graph @small(%x: f32[4]) -> %y {\n  %y: f32[4] = add %x, %x\n}\n";
    dlc_model *model;
    dlc_status status = library->model_open_bytes(text, sizeof text - 1, "small", NULL, &model);
    if (status == DLC_OK)
        status = library->model_write_fd(model, "so", fd, "small");
    library->model_close(model);
    return status;
}

static void try_small(doctor *d, const dlc_library *library)
{
    float result[4] = {0};
    uint32_t threads = 0;
    int fd = memfd_create("small", MFD_CLOEXEC);
    dlc_status status = fd < 0 ? DLC_LIMIT : compile_small(library, fd);
    tell(d, "compile", status, 1, status == DLC_OK ? "a small model" : "a small model does not compile");
    if (status == DLC_OK) {
        status = open_and_run(fd, &threads, result);
        int is_right = result[0] == 2 && result[3] == 8;
        const char *text = dlc_arena_printf(d->cli->arena, "on %u thread%s", threads, threads == 1 ? "" : "s");
        tell(d, "run", status == DLC_OK && !is_right ? DLC_MISMATCH : status, 1,
             status != DLC_OK ? dlcrt_last_error() : is_right ? text : "its numbers are wrong");
    }
    if (fd >= 0)
        close(fd);
}

/* ---- around ---- */

static void look_at_cache(doctor *d, const dlc_library *library)
{
    const char *folder = library->cache_folder();
    char text[4200];
    int is_there = folder && access(folder, F_OK) == 0;
    int is_usable = is_there && access(folder, W_OK | X_OK) == 0;
    snprintf(text, sizeof text, "%s%s", folder ? folder : "there is no folder: DLC_CACHE_DIR, XDG_CACHE_HOME and HOME are not set",
             is_usable || !folder ? "" : is_there ? " cannot be written" : " is made when it is first needed");
    tell(d, "cache", is_usable || (folder && !is_there) ? DLC_OK : DLC_IO, 0, text);
}

static void look_at_gpu(doctor *d)
{
    dlcrt_device_info info;
    dlc_status status = dlcrt_device_describe("cuda", &info);
    const char *text = status == DLC_OK ? dlc_arena_printf(d->cli->arena, "%s, sm_%u", info.name, info.capability)
                                        : dlcrt_last_error();
    tell(d, "gpu", status, 0, text);
}

dlc_status dlc_cmd_doctor(dlc_cli *cli)
{
    const dlc_library *library;
    doctor d = {.cli = cli};
    cli->json = cJSON_CreateObject();
    d.rows = cJSON_AddArrayToObject(cli->json, "checks");
    tell(&d, "runtime", DLC_OK, 1, dlcrt_version());
    DLC_TRY(dlc_library_load(&library, &cli->diag));
    tell(&d, "compiler", strcmp(library->version(), dlcrt_version()) ? DLC_USAGE : DLC_OK, 1, library->version());
    tell_about(&d, library->about());
    try_small(&d, library);
    look_at_cache(&d, library);
    look_at_gpu(&d);
    return d.worst;
}
