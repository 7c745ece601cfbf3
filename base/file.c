/*
 * Files. Output goes to a file without a name in the target's own folder, because rename() is
 * atomic only within a file system: whatever ends the process, nothing stays. When it is whole it
 * gets a temporary name and at once, with signals held back, its own. File systems that have no
 * files without a name give it the temporary one from the start. The folder is synced last, so that
 * a crash leaves either the old file or the new one.
 */
#include "base/file.h"
#include "base/budget.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static dlc_status io_failure(dlc_diag *diag, const char *path, const char *what)
{
    return dlc_diag_fail(diag, DLC_IO, path, "%s: %s", what, strerror(errno));
}

dlc_status dlc_map_fd(int fd, const char *path, dlc_map *map, dlc_diag *diag)
{
    *map = (dlc_map){0};
    struct stat info;
    if (fstat(fd, &info) != 0)
        return io_failure(diag, path, "its size is unknown");
    if (!S_ISREG(info.st_mode))
        return dlc_diag_fail(diag, DLC_IO, path, "is no regular file");
    if (info.st_size == 0)
        return DLC_OK;
    void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return io_failure(diag, path, "cannot be mapped");
    map->bytes = bytes;
    map->size_bytes = (size_t)info.st_size;
    map->span = dlc_budget_span(bytes, map->size_bytes);
    return DLC_OK;
}

dlc_status dlc_map_open(const char *path, dlc_map *map, dlc_diag *diag)
{
    *map = (dlc_map){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC |
                            O_NONBLOCK); /* a FIFO must not block us; it is refused below */
    if (fd < 0)
        return io_failure(diag, path, "cannot be opened");
    dlc_status status = dlc_map_fd(fd, path, map, diag);
    close(fd);
    return status;
}

void dlc_map_close(dlc_map *map)
{
    dlc_budget_drop_span(map->span);
    if (map->bytes)
        munmap((void *)(uintptr_t)map->bytes, map->size_bytes);
    *map = (dlc_map){0};
}

static void *checked(void *memory)
{
    if (!memory)
        dlc_out_of_memory(0, 0);
    return memory;
}

/* A new file `path`.tmp.PID.N: a name for the open file, or without one a file opened under it.
 * Returns its descriptor, or -1. */
static int name_temporary(dlc_output *output)
{
    char open_file[40];
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", output->fd);
    for (unsigned n = 0; n < 1000; n++) {
        if (asprintf(&output->temporary, "%s.tmp.%ld.%u", output->path, (long)getpid(), n) < 0)
            dlc_out_of_memory(0, 0);
        int fd = output->fd;
        if (fd < 0)
            fd = open(output->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0777);
        else if (linkat(AT_FDCWD, open_file, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW) != 0)
            fd = -1;
        if (fd >= 0)
            return fd;
        int reason = errno;
        free(output->temporary);
        output->temporary = NULL;
        errno = reason;
        if (reason != EEXIST)
            break;
    }
    return -1;
}

/* The folder a path is in, to be freed. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return checked(slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup("."));
}

/* Its mode is what the umask leaves of 0777, so commit knows the umask. */
static int open_new(dlc_output *output)
{
    char *folder = folder_of(output->path);
    int fd = access("/proc/self/fd", X_OK) ? -1 : open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0777);
    free(folder);
    return fd >= 0 ? fd : name_temporary(output);
}

dlc_status dlc_output_open(dlc_output *output, const char *path, dlc_diag *diag)
{
    *output = (dlc_output){.fd = -1};
    struct stat info;
    if (stat(path, &info) == 0 &&
        !S_ISREG(info.st_mode)) /* renaming over a device would replace it */
        return dlc_diag_fail(diag, DLC_IO, path, "exists and is no regular file");
    char *real =
        realpath(path, NULL); /* through a link, its target is replaced and the link stays */
    output->path = real ? real : checked(strdup(path));
    output->is_named = 1;
    output->fd = open_new(output);
    if (output->fd >= 0)
        return DLC_OK;
    dlc_status status = io_failure(diag, path, "no file can be made beside it");
    dlc_output_abandon(output);
    return status;
}

dlc_status dlc_output_take(dlc_output *output, int fd, dlc_diag *diag)
{
    *output = (dlc_output){.fd = dup(fd), .path = checked(strdup("the file given"))};
    if (output->fd >= 0)
        return DLC_OK;
    dlc_status status = io_failure(diag, output->path, "cannot be used");
    dlc_output_abandon(output);
    return status;
}

static dlc_status write_through(dlc_output *output, const char *bytes, size_t size_bytes, dlc_diag *diag)
{
    while (size_bytes) {
        size_t part = size_bytes < ((size_t)1 << 30) ? size_bytes : (size_t)1 << 30;
        ssize_t n = write(output->fd, bytes, part);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return io_failure(diag, output->path, "cannot be written");
        bytes += n;
        size_bytes -= (size_t)n;
        output->written_bytes += (uint64_t)n;
    }
    return DLC_OK;
}

dlc_status dlc_output_flush(dlc_output *output, dlc_diag *diag)
{
    size_t n = output->nheld;
    output->nheld = 0;
    return write_through(output, output->held, n, diag);
}

/* Holds what there is room for in the block that the file is at. */
static size_t hold(dlc_output *output, const void *bytes, size_t size_bytes)
{
    size_t room = output->block_bytes - (size_t)((output->written_bytes + output->nheld) % output->block_bytes);
    size_t n = size_bytes < room ? size_bytes : room;
    if (!output->held)
        output->held = checked(malloc(output->block_bytes));
    memcpy(output->held + output->nheld, bytes, n);
    output->nheld += n;
    return n;
}

static dlc_status write_blocks(dlc_output *output, const char *bytes, size_t size_bytes, dlc_diag *diag)
{
    const size_t block = output->block_bytes;
    while (size_bytes) {
        int is_whole = !output->nheld && output->written_bytes % block == 0 && size_bytes >= block;
        size_t n = is_whole ? size_bytes / block * block : hold(output, bytes, size_bytes);
        if (is_whole)
            DLC_TRY(write_through(output, bytes, n, diag));
        else if ((output->written_bytes + output->nheld) % block == 0)
            DLC_TRY(dlc_output_flush(output, diag));
        bytes += n;
        size_bytes -= n;
    }
    return DLC_OK;
}

dlc_status dlc_output_write(dlc_output *output, const void *bytes, size_t size_bytes, dlc_diag *diag)
{
    return output->block_bytes ? write_blocks(output, bytes, size_bytes, diag) : write_through(output, bytes, size_bytes, diag);
}

/* Makes the rename last. A folder that cannot be opened for reading is no failure: the file itself
 * is whole. */
static int sync_folder(const char *path)
{
    char *folder = folder_of(path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0)
        return 1;
    int done = fsync(fd) == 0 || errno == EINVAL || errno == EROFS;
    close(fd);
    return done;
}

/* The file takes its place; no signal comes while it has another name. */
static int take_place(dlc_output *output)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int done = (output->temporary || name_temporary(output) >= 0) &&
               rename(output->temporary, output->path) == 0;
    int reason = errno;
    if (!done && output->temporary)
        unlink(output->temporary);
    free(output->temporary);
    output->temporary = NULL;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = reason;
    return done;
}

dlc_status dlc_output_commit(dlc_output *output, unsigned mode, dlc_diag *diag)
{
    struct stat info;
    DLC_TRY(dlc_output_flush(output, diag));
    if (!output->is_named) {
        dlc_output_abandon(output);
        return DLC_OK;
    }
    if (fstat(output->fd, &info) != 0 || fchmod(output->fd, info.st_mode & mode) != 0 ||
        (!output->is_temporary && fsync(output->fd) != 0))
        return io_failure(diag, output->path, "cannot be completed");
    if (!take_place(output))
        return io_failure(diag, output->path, "cannot be replaced");
    dlc_status status = DLC_OK;
    if (!output->is_temporary && !sync_folder(output->path))
        status = io_failure(diag, output->path, "its folder cannot be synced");
    dlc_output_abandon(output);
    return status;
}

void dlc_output_abandon(dlc_output *output)
{
    if (output->fd >= 0)
        close(output->fd);
    if (output->temporary)
        unlink(output->temporary);
    free(output->temporary);
    free(output->path);
    free(output->held);
    *output = (dlc_output){.fd = -1};
}

dlc_status dlc_output_try(const char *path, dlc_diag *diag)
{
    dlc_output output;
    DLC_TRY(dlc_output_open(&output, path, diag));
    dlc_output_abandon(&output);
    return DLC_OK;
}

dlc_status dlc_output_whole(const char *path, const void *bytes, size_t size_bytes, dlc_diag *diag)
{
    dlc_output output;
    dlc_status status = dlc_output_open(&output, path, diag);
    if (status != DLC_OK)
        return status;
    status = dlc_output_write(&output, bytes, size_bytes, diag);
    if (status == DLC_OK)
        status = dlc_output_commit(&output, 0666, diag);
    if (status != DLC_OK)
        dlc_output_abandon(&output);
    return status;
}

int dlc_is_one_file(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && S_ISREG(one.st_mode) && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

void dlc_make_folders(const char *path)
{
    char *copy = checked(strdup(path));
    for (char *slash = *copy ? strchr(copy + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(copy, 0777);
        *slash = '/';
    }
    free(copy);
}
