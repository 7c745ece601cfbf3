/*
 * Objects of kernels, kept from one compilation to the next: a model compiled again after a change has most of its kernels made
 * already, and the compiler behind this one, LLVM or cc, is most of what compiling takes. A kernel is found by all that compiler reads, LLVM's
 * bitcode before any pass or C, and not by a hash alone, beside a line that says what else the answer depends on; so nothing that a model says
 * makes another's code its own, and the bytes of an executable are what they were without the folder.
 *
 *   SLOT       four hexadecimal digits of a hash: head, line, key, object
 *   SLOT.new   being written; whole, it takes the other's place
 *
 * A slot holds what came last, so the folder is bounded without anybody counting: 65536 files of 256 KB at most, 8 KB as a rule. Files
 * are not synced to disk: what is damaged has another checksum, and is made anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "codegen/cache.h"

enum { MOST_BYTES = 1 << 18, SLOT_CHARS = 16, STALE_SECONDS = 60 };

typedef struct {
    char magic[8];
    uint64_t about_bytes, key_bytes, object_bytes, checksum; /* of the object */
} head;
static const char magic[8] = {'d', 'l', 'c', 'k', 'e', 'r', 'n', '1'};

dlc_status dlc_code_cache_open(dlc_code_cache *cache, dlc_diag *diag)
{
    const char *path = getenv("DLC_KERNEL_CACHE");
    struct stat info;
    cache->folder = -1;
    if (!path || !*path)
        return DLC_OK;
    (void)!mkdir(path, 0700);
    cache->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cache->folder < 0 || fstat(cache->folder, &info))
        return dlc_diag_fail(diag, DLC_USAGE, path, "DLC_KERNEL_CACHE names no folder that can be opened: %s", strerror(errno));
    if (info.st_uid == geteuid() && !(info.st_mode & (S_IWGRP | S_IWOTH)))
        return DLC_OK;
    dlc_code_cache_close(cache);
    return dlc_diag_fail(diag, DLC_USAGE, path, "DLC_KERNEL_CACHE names a folder that others may write, and what they write would be "
                         "run; make it this user's own, and chmod go-w");
}

void dlc_code_cache_close(dlc_code_cache *cache)
{
    if (cache->folder >= 0)
        close(cache->folder);
    cache->folder = -1;
}

static void slot_of(const dlc_code_cache *cache, const void *key, size_t key_bytes, const char *ending, char *name)
{
    uint64_t hash = dlc_hash_bulk(key, key_bytes, dlc_hash(cache->about, strlen(cache->about), 0));
    snprintf(name, SLOT_CHARS, "%04x%s", (unsigned)(hash >> 48), ending);
}

/* The whole file, as far as it is one of this folder's; NULL otherwise. */
static char *read_slot(const dlc_code_cache *cache, const char *name, size_t *size_bytes)
{
    struct stat info;
    char *bytes = NULL;
    int fd = openat(cache->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (!fstat(fd, &info) && S_ISREG(info.st_mode) && info.st_size >= (off_t)sizeof(head) && info.st_size <= MOST_BYTES) {
        *size_bytes = (size_t)info.st_size;
        bytes = malloc(*size_bytes);
    }
    if (bytes && read(fd, bytes, *size_bytes) != (ssize_t)*size_bytes) {
        free(bytes);
        bytes = NULL;
    }
    close(fd);
    return bytes;
}

/* Where the object is in a slot's bytes, if they are of this key and whole; else NULL. */
static const char *object_in(const dlc_code_cache *cache, const void *key, size_t key_bytes, const char *bytes, size_t size_bytes,
                             size_t *object_bytes)
{
    head h;
    size_t nabout = strlen(cache->about), before = sizeof h + nabout + key_bytes;
    memcpy(&h, bytes, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) || h.about_bytes != nabout || h.key_bytes != key_bytes || size_bytes <= before ||
        h.object_bytes != size_bytes - before)
        return NULL;
    if (memcmp(bytes + sizeof h, cache->about, nabout) || memcmp(bytes + sizeof h + nabout, key, key_bytes))
        return NULL;
    *object_bytes = size_bytes - before;
    return dlc_hash_bulk(bytes + before, *object_bytes, 0) == h.checksum ? bytes + before : NULL;
}

char *dlc_code_cache_find(const dlc_code_cache *cache, const void *key, size_t key_bytes, size_t *size_bytes)
{
    char name[SLOT_CHARS];
    size_t slot_bytes = 0;
    slot_of(cache, key, key_bytes, "", name);
    char *bytes = read_slot(cache, name, &slot_bytes);
    const char *object = bytes ? object_in(cache, key, key_bytes, bytes, slot_bytes, size_bytes) : NULL;
    if (!object) {
        free(bytes);
        return NULL;
    }
    return memmove(bytes, object, *size_bytes);
}

/* A file of this name that nobody else writes: one that somebody left who was ended is removed, for the next. */
static int begin(const dlc_code_cache *cache, const char *name)
{
    struct stat info;
    int fd = openat(cache->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST && !fstatat(cache->folder, name, &info, AT_SYMLINK_NOFOLLOW) &&
        info.st_mtime + STALE_SECONDS < time(NULL))
        unlinkat(cache->folder, name, 0);
    return fd;
}

void dlc_code_cache_add(const dlc_code_cache *cache, const void *key, size_t key_bytes, const void *object, size_t object_bytes)
{
    char name[SLOT_CHARS], whole[SLOT_CHARS];
    size_t nabout = strlen(cache->about), size_bytes = sizeof(head) + nabout + key_bytes + object_bytes;
    char *bytes = size_bytes <= MOST_BYTES ? malloc(size_bytes) : NULL;
    if (!bytes)
        return;
    head h = {.about_bytes = nabout, .key_bytes = key_bytes, .object_bytes = object_bytes, .checksum = dlc_hash_bulk(object, object_bytes, 0)};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(bytes, &h, sizeof h);
    memcpy(bytes + sizeof h, cache->about, nabout);
    memcpy(bytes + sizeof h + nabout, key, key_bytes);
    memcpy(bytes + sizeof h + nabout + key_bytes, object, object_bytes);
    slot_of(cache, key, key_bytes, ".new", name);
    slot_of(cache, key, key_bytes, "", whole);
    int fd = begin(cache, name);
    if (fd >= 0) {
        int is_whole = write(fd, bytes, size_bytes) == (ssize_t)size_bytes;
        if (close(fd) || !is_whole || renameat(cache->folder, name, cache->folder, whole))
            unlinkat(cache->folder, name, 0);
    }
    free(bytes);
}
