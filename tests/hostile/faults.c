/*
 * Preloaded into a program: the Nth call of a kind fails in its first process, or in those it forks (each goes on counting from
 * where its parent was). DLC_FAULT=KIND:N[:forked], KIND one of memory, io.
 * DLC_FAULT_PATHS=FILE: nothing fails; calls that come by a way (three callers) by which none came before get a line there:
 * KIND N first|forked.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* what is defined here stands before libc's */

enum { MEMORY, IO, NKINDS };
enum { OWN_FRAMES = 3, CALLERS = 3, NWAYS = 1 << 16 };

static const char *const kinds[NKINDS] = {"memory", "io"};
static unsigned long counts[NKINDS], fail_at;
static int fail_kind = -1, fails_forked, is_forked, ways_fd = -1;
static uint64_t ways[NWAYS]; /* met so far: hashes, by open addressing */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int is_looking;

static void note_fork(void)
{
    is_forked = 1;
}

static void read_fault(const char *what)
{
    for (int k = 0; what && k < NKINDS; k++) {
        size_t n = strlen(kinds[k]);
        if (strncmp(what, kinds[k], n) == 0 && what[n] == ':') {
            char *rest;
            fail_at = strtoul(what + n + 1, &rest, 10);
            fails_forked = *rest == ':';
            fail_kind = k;
        }
    }
}

__attribute__((constructor)) static void start(void)
{
    void *frames[2];
    const char *path = getenv("DLC_FAULT_PATHS");
    pthread_atfork(NULL, NULL, note_fork);
    (void)backtrace(frames, 2); /* loads what it needs */
    ways_fd = path ? openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    read_fault(getenv("DLC_FAULT"));
    memset(counts, 0, sizeof counts);
}

/* FNV-1a over the callers, behind this function, `fails` and libc's; the same in one process only. */
__attribute__((noinline)) static uint64_t way_here(int kind)
{
    void *frames[OWN_FRAMES + CALLERS];
    int n = backtrace(frames, OWN_FRAMES + CALLERS);
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)kind;
    for (int i = OWN_FRAMES; i < n; i++)
        hash = (hash ^ (uint64_t)(uintptr_t)frames[i]) * UINT64_C(0x100000001b3);
    return hash ? hash : 1;
}

static int is_new(uint64_t way)
{
    uint64_t at = (way >> 32) % NWAYS;
    pthread_mutex_lock(&lock);
    while (ways[at] && ways[at] != way)
        at = (at + 1) % NWAYS;
    int found = ways[at] == way;
    ways[at] = way;
    pthread_mutex_unlock(&lock);
    return !found;
}

static inline void note_way(int kind, unsigned long n)
{
    char line[64];
    if (is_looking)
        return;
    is_looking = 1;
    if (is_new(way_here(kind))) {
        int size = snprintf(line, sizeof line, "%s %lu %s\n", kinds[kind], n, is_forked ? "forked" : "first");
        (void)!write(ways_fd, line, (size_t)size);
    }
    is_looking = 0;
}

__attribute__((noinline)) static int fails(int kind)
{
    unsigned long n = __atomic_add_fetch(&counts[kind], 1, __ATOMIC_RELAXED);
    if (ways_fd >= 0)
        note_way(kind, n);
    if (kind != fail_kind || n != fail_at || is_forked != fails_forked)
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
    return fd > 2 && fd != ways_fd && fails(IO) ? -1 : next.function(fd, bytes, size);
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
