/*
 * Objects of kernels, kept from one compilation to the next: a model compiled again after a change has most of its kernels made
 * already, and LLVM is most of what compiling takes. A kernel is found by LLVM's bitcode before any pass, all of it and not a hash
 * alone, beside a line that says what else LLVM's answer depends on; so nothing that a model says makes another's code its own, and
 * the bytes of an executable are what they were without the folder.
 *
 *   SLOT       four hexadecimal digits of a hash: head, line, bitcode, object
 *   SLOT.new   being written; whole, it takes the other's place
 *
 * A slot holds what came last, so the folder is bounded without anybody counting: 65536 files of 256 KB at most, 8 KB as a rule. Files
 * are not synced to disk: what is damaged has another checksum, and is made anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "codegen/cpu/cache.h"

enum { MOST_BYTES = 1 << 18, SLOT_CHARS = 16, STALE_SECONDS = 60 };

typedef struct {
    char magic[8];
    uint64_t about_bytes, key_bytes, object_bytes, checksum; /* of the object */
} head;
static const char magic[8] = {'d', 'l', 'c', 'k', 'e', 'r', 'n', '1'};

/* LLVM's library by its file: a distribution mends it without another version. */
static void describe(dlc_cpu_cache *cache, const dlc_target *target)
{
    unsigned major, minor, patch;
    const char *path = dlc_llvm_file();
    struct stat file = {0};
    LLVMGetVersion(&major, &minor, &patch);
    if (path)
        (void)!stat(path, &file);
    snprintf(cache->about, sizeof cache->about, "LLVM %u.%u.%u, %jd bytes of %jd.%09ld; %s %s\n", major, minor, patch,
             (intmax_t)file.st_size, (intmax_t)file.st_mtim.tv_sec, file.st_mtim.tv_nsec, target->triple, target->cpu);
}

dlc_status dlc_cpu_cache_open(dlc_cpu_cache *cache, const dlc_target *target, dlc_diag *diag)
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
    if (info.st_uid == geteuid() && !(info.st_mode & (S_IWGRP | S_IWOTH))) {
        describe(cache, target);
        return DLC_OK;
    }
    dlc_cpu_cache_close(cache);
    return dlc_diag_fail(diag, DLC_USAGE, path, "DLC_KERNEL_CACHE names a folder that others may write, and what they write would be "
                         "run; make it this user's own, and chmod go-w");
}

void dlc_cpu_cache_close(dlc_cpu_cache *cache)
{
    if (cache->folder >= 0)
        close(cache->folder);
    cache->folder = -1;
}

LLVMMemoryBufferRef dlc_cpu_cache_key(const dlc_cpu_cache *cache, LLVMModuleRef llvm)
{
    return cache->folder < 0 ? NULL : LLVMWriteBitcodeToMemoryBuffer(llvm);
}

static void slot_of(const dlc_cpu_cache *cache, LLVMMemoryBufferRef key, const char *ending, char *name)
{
    uint64_t hash = dlc_hash_bulk(LLVMGetBufferStart(key), LLVMGetBufferSize(key), dlc_hash(cache->about, strlen(cache->about), 0));
    snprintf(name, SLOT_CHARS, "%04x%s", (unsigned)(hash >> 48), ending);
}

/* The whole file, as far as it is one of this folder's; NULL otherwise. */
static char *read_slot(const dlc_cpu_cache *cache, const char *name, size_t *size_bytes)
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

/* The object in a slot's bytes, where they are of this key and whole. */
static const char *object_in(const dlc_cpu_cache *cache, LLVMMemoryBufferRef key, const char *bytes, size_t size_bytes, size_t *object_bytes)
{
    head h;
    size_t nabout = strlen(cache->about), nkey = LLVMGetBufferSize(key), before = sizeof h + nabout + nkey;
    memcpy(&h, bytes, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) || h.about_bytes != nabout || h.key_bytes != nkey || size_bytes <= before ||
        h.object_bytes != size_bytes - before)
        return NULL;
    if (memcmp(bytes + sizeof h, cache->about, nabout) || memcmp(bytes + sizeof h + nabout, LLVMGetBufferStart(key), nkey))
        return NULL;
    *object_bytes = size_bytes - before;
    return dlc_hash_bulk(bytes + before, *object_bytes, 0) == h.checksum ? bytes + before : NULL;
}

LLVMMemoryBufferRef dlc_cpu_cache_find(const dlc_cpu_cache *cache, LLVMMemoryBufferRef key)
{
    char name[SLOT_CHARS];
    size_t size_bytes = 0, object_bytes = 0;
    slot_of(cache, key, "", name);
    char *bytes = read_slot(cache, name, &size_bytes);
    const char *object = bytes ? object_in(cache, key, bytes, size_bytes, &object_bytes) : NULL;
    LLVMMemoryBufferRef result = object ? LLVMCreateMemoryBufferWithMemoryRangeCopy(object, object_bytes, "object") : NULL;
    free(bytes);
    return result;
}

/* A file of this name that nobody else writes: one that somebody left who was ended is removed, for the next. */
static int begin(const dlc_cpu_cache *cache, const char *name)
{
    struct stat info;
    int fd = openat(cache->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST && !fstatat(cache->folder, name, &info, AT_SYMLINK_NOFOLLOW) &&
        info.st_mtime + STALE_SECONDS < time(NULL))
        unlinkat(cache->folder, name, 0);
    return fd;
}

void dlc_cpu_cache_add(const dlc_cpu_cache *cache, LLVMMemoryBufferRef key, LLVMMemoryBufferRef object)
{
    char name[SLOT_CHARS], whole[SLOT_CHARS];
    size_t nabout = strlen(cache->about), nkey = LLVMGetBufferSize(key), nobject = LLVMGetBufferSize(object);
    size_t size_bytes = sizeof(head) + nabout + nkey + nobject;
    char *bytes = size_bytes <= MOST_BYTES ? malloc(size_bytes) : NULL;
    if (!bytes)
        return;
    head h = {.about_bytes = nabout, .key_bytes = nkey, .object_bytes = nobject, .checksum = dlc_hash_bulk(LLVMGetBufferStart(object), nobject, 0)};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(bytes, &h, sizeof h);
    memcpy(bytes + sizeof h, cache->about, nabout);
    memcpy(bytes + sizeof h + nabout, LLVMGetBufferStart(key), nkey);
    memcpy(bytes + sizeof h + nabout + nkey, LLVMGetBufferStart(object), nobject);
    slot_of(cache, key, ".new", name);
    slot_of(cache, key, "", whole);
    int fd = begin(cache, name);
    if (fd >= 0) {
        int is_whole = write(fd, bytes, size_bytes) == (ssize_t)size_bytes;
        if (close(fd) || !is_whole || renameat(cache->folder, name, cache->folder, whole))
            unlinkat(cache->folder, name, 0);
    }
    free(bytes);
}
