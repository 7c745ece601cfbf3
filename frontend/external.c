/*
 * External data: files named by the model. A model is not trusted, so a location is opened strictly
 * beneath the model's folder and through no link: by openat2 where the kernel has it, else
 * component by component with O_NOFOLLOW. Only with a folder the user names may links be followed,
 * and then the real file must lie beneath that folder.
 */
#include "frontend/model.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

static dlc_status refuse(dlc_onnx *model, dlc_status status, const char *place,
                         const char *location, const char *why)
{
    return dlc_diag_fail(model->diag, status, place, "external data '%.200s': %s", location, why);
}

/* Relative, no empty, "." or ".." component. */
static int is_plain_path(const char *path)
{
    if (!*path || *path == '/')
        return 0;
    for (const char *at = path; *at;) {
        size_t n = strcspn(at, "/");
        if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
            return 0;
        at += n;
        if (*at && !*++at)
            return 0; /* ends in a slash */
    }
    return 1;
}

static const char *skip_here(const char *path)
{
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    return path;
}

static int open_by_component(int folder, const char *path)
{
    int at = dup(folder);
    while (at >= 0) {
        size_t n = strcspn(path, "/");
        char name[256];
        if (n >= sizeof name) {
            close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, path, n);
        name[n] = 0;
        int is_last = path[n] == 0;
        int next = openat(at, name,
                          is_last ? OPEN_FLAGS | O_NOFOLLOW
                                  : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int reason = errno;
        close(at);
        errno = reason;
        if (is_last)
            return next;
        at = next;
        path += n + 1;
    }
    return -1;
}

static int open_beneath(int folder, const char *path)
{
    struct open_how how = {.flags = OPEN_FLAGS,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    long fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL))
        return (int)fd;
    return open_by_component(folder, path);
}

/* The path of the real file below `root`, or NULL: a link leads out of it. */
static char *below(const char *root, const char *folder, const char *location, dlc_arena *arena)
{
    char *real_root = realpath(root, NULL);
    char *real =
        real_root ? realpath(dlc_arena_printf(arena, "%s/%s", folder, location), NULL) : NULL;
    char *result = NULL;
    size_t n = real ? strlen(real_root) : 0;
    if (real && strncmp(real, real_root, n) == 0 && real[n] == '/')
        result = dlc_arena_strdup(arena, real + n + 1);
    free(real);
    free(real_root);
    return result;
}

static dlc_status open_location(dlc_onnx *model, const char *location, const char *place, int *fd)
{
    const char *root = model->folder, *path = skip_here(location);
    if (!root)
        return refuse(model, DLC_UNSUPPORTED, place, location,
                      "a model in memory has no folder to look in");
    if (!is_plain_path(path))
        return refuse(model, DLC_INVALID, place, location, "is no path beneath the model's folder");
    if (model->symlink_dir) {
        const char *real = below(model->symlink_dir, root, path, model->arena);
        if (real) {
            root = model->symlink_dir;
            path = real;
        }
    }
    int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    *fd = folder < 0 ? -1 : open_beneath(folder, path);
    int reason = errno;
    if (folder >= 0)
        close(folder);
    if (*fd >= 0)
        return DLC_OK;
    if (reason == ELOOP || reason == EXDEV)
        return refuse(model, DLC_INVALID, place, location, "a link on its path is not followed");
    return refuse(model, DLC_IO, place, location, strerror(reason));
}

static dlc_status map_location(dlc_onnx *model, const char *location, const char *place,
                               const dlc_map **map)
{
    for (uint32_t i = 0; i < model->externals.n; i++) {
        if (strcmp(model->externals.data[i].location, location) == 0) {
            *map = &model->externals.data[i].map;
            return DLC_OK;
        }
    }
    int fd = -1;
    DLC_TRY(open_location(model, location, place, &fd));
    dlc_external external = {.location = location};
    dlc_status status =
        dlc_map_fd(fd, dlc_arena_printf(model->arena, "%s: external data '%s'", place, location),
                   &external.map, model->diag);
    close(fd);
    DLC_TRY(status);
    dlc_vec_push(model->arena, &model->externals, external);
    *map = &model->externals.data[model->externals.n - 1].map;
    return DLC_OK;
}

dlc_status dlc_external_bytes(dlc_onnx *model, const char *location, uint64_t offset, uint64_t size,
                              const char *place, const uint8_t **bytes, size_t *size_bytes)
{
    const dlc_map *map;
    DLC_TRY(map_location(model, location, place, &map));
    if (offset > map->size_bytes || (size != UINT64_MAX && size > map->size_bytes - offset))
        return dlc_diag_fail(model->diag, DLC_INVALID, place,
                             "external data '%.200s': offset %" PRIu64 " and length %" PRIu64
                             " leave the file's %zu bytes",
                             location, offset, size, map->size_bytes);
    *bytes = map->bytes ? map->bytes + offset : (const uint8_t *)"";
    *size_bytes = size == UINT64_MAX ? map->size_bytes - (size_t)offset : (size_t)size;
    return DLC_OK;
}

const char *dlc_onnx_external(const dlc_onnx *model, uint32_t i, const void **bytes,
                              size_t *size_bytes)
{
    if (i >= model->externals.n)
        return NULL;
    const dlc_external *external = &model->externals.data[i];
    *bytes = external->map.bytes;
    *size_bytes = external->map.size_bytes;
    return dlc_arena_printf(model->arena, "%s/%s", model->folder, external->location);
}

void dlc_external_close(dlc_onnx *model)
{
    for (uint32_t i = 0; i < model->externals.n; i++)
        dlc_map_close(&model->externals.data[i].map);
    model->externals.n = 0;
}
