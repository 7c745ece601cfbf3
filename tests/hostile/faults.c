/*
 * Preloaded into a program: the Nth call of a kind fails, once or from then on. DLC_FAULT=KIND:N[:always], KIND one of memory, io;
 * DLC_FAULT_COUNT=FILE: nothing fails, and how many calls of each kind the program's first process made is written there.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { MEMORY, IO, NKINDS };

static const char *const kinds[NKINDS] = {"memory", "io"};
static unsigned long counts[NKINDS], fail_at;
static int fail_kind = -1, is_sticky;
static pid_t first;
static const char *count_file;

__attribute__((constructor)) static void start(void)
{
    const char *what = getenv("DLC_FAULT");
    count_file = getenv("DLC_FAULT_COUNT");
    for (int k = 0; what && k < NKINDS; k++) {
        size_t n = strlen(kinds[k]);
        if (strncmp(what, kinds[k], n) == 0 && what[n] == ':') {
            char *rest;
            fail_at = strtoul(what + n + 1, &rest, 10);
            is_sticky = *rest == ':';
            fail_kind = k;
        }
    }
    first = getpid();
    memset(counts, 0, sizeof counts);
}

__attribute__((destructor)) static void finish(void)
{
    if (!count_file || getpid() != first)
        return;
    const unsigned long memory = counts[MEMORY], io = counts[IO];
    char text[64];
    int n = snprintf(text, sizeof text, "%lu %lu\n", memory, io);
    FILE *file = fopen(count_file, "w");
    if (file) {
        fwrite(text, 1, (size_t)n, file);
        fclose(file);
    }
}

static int fails(int kind)
{
    unsigned long n = __atomic_add_fetch(&counts[kind], 1, __ATOMIC_RELAXED);
    if (kind != fail_kind || (is_sticky ? n < fail_at : n != fail_at))
        return 0;
    errno = kind == MEMORY ? ENOMEM : ENOSPC;
    return 1;
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *bytes, size_t size);
void *__libc_memalign(size_t align, size_t size);

void *malloc(size_t size)
{
    return fails(MEMORY) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails(MEMORY) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *bytes, size_t size)
{
    return fails(MEMORY) ? NULL : __libc_realloc(bytes, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return fails(MEMORY) ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **result, size_t align, size_t size)
{
    if (fails(MEMORY))
        return ENOMEM;
    *result = __libc_memalign(align, size);
    return *result ? 0 : ENOMEM;
}

/* The function that this one stands before. A union, since ISO C has no cast between both kinds of pointer. */
#define NEXT(type, name)                                                                           \
    static union {                                                                                 \
        void *object;                                                                              \
        type function;                                                                             \
    } next;                                                                                        \
    if (!next.object)                                                                              \
        next.object = dlsym(RTLD_NEXT, name)

typedef void *(*map_fn)(void *, size_t, int, int, int, off_t);
void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    NEXT(map_fn, "mmap");
    return fails(MEMORY) ? (void *)(intptr_t)-1 : next.function(at, size, protection, flags, fd, offset);
}

typedef ssize_t (*write_fn)(int, const void *, size_t);
ssize_t write(int fd, const void *bytes, size_t size)
{
    NEXT(write_fn, "write");
    return fd > 2 && fails(IO) ? -1 : next.function(fd, bytes, size);
}

typedef ssize_t (*pwrite_fn)(int, const void *, size_t, off_t);
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    NEXT(pwrite_fn, "pwrite");
    return fails(IO) ? -1 : next.function(fd, bytes, size, offset);
}

typedef int (*fd_fn)(int);
int fsync(int fd)
{
    NEXT(fd_fn, "fsync");
    return fails(IO) ? -1 : next.function(fd);
}

typedef int (*truncate_fn)(int, off_t);
int ftruncate(int fd, off_t size)
{
    NEXT(truncate_fn, "ftruncate");
    return fails(IO) ? -1 : next.function(fd, size);
}

typedef int (*rename_fn)(const char *, const char *);
int rename(const char *from, const char *to)
{
    NEXT(rename_fn, "rename");
    return fails(IO) ? -1 : next.function(from, to);
}

typedef int (*renameat_fn)(int, const char *, int, const char *);
int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    NEXT(renameat_fn, "renameat");
    return fails(IO) ? -1 : next.function(from_folder, from, to_folder, to);
}

typedef int (*open_fn)(const char *, int, ...);
int open(const char *path, int flags, ...);
int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t); /* of no meaning where none was given */
    va_end(more);
    NEXT(open_fn, "open");
    return fails(IO) ? -1 : next.function(path, flags, mode);
}

typedef int (*openat_fn)(int, const char *, int, ...);
int openat(int folder, const char *path, int flags, ...);
int openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t);
    va_end(more);
    NEXT(openat_fn, "openat");
    return fails(IO) ? -1 : next.function(folder, path, flags, mode);
}
