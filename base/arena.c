/* Bump allocation from a chain of blocks that double in size; a mark is a block and how much of it
 * was used. */
#include "base/budget.h"
#include "base/keep.h"
#include "base/text.h"
#include "base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct block {
    struct block *previous;
    size_t size_bytes, used;
    _Alignas(16) unsigned char bytes[];
} block;

/* Memory of its own from the system; of a file once it is settled. */
typedef struct bulk {
    struct bulk *previous;
    void *bytes;
    size_t size_bytes;
    int is_settled;
    dlc_file_span *span;
} bulk;

struct dlc_arena {
    block *last;
    block *spare; /* the largest that a release left, or NULL: trials that come and go ask the system for nothing */
    bulk *last_bulk;
    size_t budget_bytes, total_bytes;
    dlc_budget *budget; /* that it counts into, or NULL */
    dlc_arena *older, *newer; /* of the same budget */
    uint64_t number;
};

static DLC_THREAD_LOCAL dlc_oom_handler oom_handler;
static DLC_THREAD_LOCAL void *oom_user;

void dlc_arena_set_oom(dlc_oom_handler handler, void *user)
{
    oom_handler = handler;
    oom_user = user;
}

_Noreturn void dlc_out_of_memory(size_t size_bytes, int over_budget)
{
    if (oom_handler)
        oom_handler(oom_user, size_bytes, over_budget);
    if (over_budget == DLC_OUT_OF_TIME)
        fprintf(stderr, "dlc: the time set for this step is over\n");
    else
        fprintf(stderr, "dlc: out of memory: %zu bytes %s\n", size_bytes,
                over_budget ? "exceed the limit set for this step" : "could not be allocated");
    _exit(7);
}

static void enlist(dlc_arena *arena, dlc_budget *budget)
{
    arena->number = ++budget->narenas;
    arena->older = budget->newest;
    if (arena->older)
        arena->older->newer = arena;
    budget->newest = arena;
}

static void delist(dlc_arena *arena)
{
    if (arena->older)
        arena->older->newer = arena->newer;
    if (arena->newer)
        arena->newer->older = arena->older;
    else
        arena->budget->newest = arena->older;
}

void dlc_budget_drop(dlc_budget *budget, uint64_t narenas)
{
    while (budget->newest && budget->newest->number > narenas)
        dlc_arena_destroy(budget->newest);
}

dlc_arena *dlc_arena_create(size_t budget_bytes)
{
    dlc_arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        dlc_out_of_memory(sizeof *arena, 0);
    arena->budget_bytes = budget_bytes;
    arena->budget = dlc_budget_in_use();
    if (arena->budget)
        enlist(arena, arena->budget);
    return arena;
}

static void release_bulk(dlc_arena *arena, const bulk *until)
{
    while (arena->last_bulk && arena->last_bulk != until) {
        bulk *b = arena->last_bulk;
        arena->last_bulk = b->previous;
        if (!b->is_settled) {
            arena->total_bytes -= b->size_bytes;
            dlc_budget_give(arena->budget, b->size_bytes);
        }
        dlc_budget_drop_span(b->span);
        munmap(b->bytes, b->size_bytes);
        free(b);
    }
}

void dlc_arena_destroy(dlc_arena *arena)
{
    if (!arena)
        return;
    for (block *b = arena->last, *previous; b; b = previous) {
        previous = b->previous;
        free(b);
    }
    free(arena->spare);
    release_bulk(arena, NULL);
    dlc_budget_give(arena->budget, arena->total_bytes);
    if (arena->budget)
        delist(arena);
    free(arena);
}

/* Counts `size` more bytes, or as many as are needed where the arena's own budget has no more; does not return when it has less. */
static size_t take(dlc_arena *arena, size_t size, size_t need)
{
    if (arena->budget_bytes && arena->total_bytes + size > arena->budget_bytes) {
        size = need; /* the last blocks are exact, so the budget is met to the byte */
        if (need > arena->budget_bytes - (arena->total_bytes < arena->budget_bytes
                                              ? arena->total_bytes
                                              : arena->budget_bytes))
            dlc_out_of_memory(need, DLC_OUT_OF_ARENA);
    }
    dlc_budget_take(arena->budget, size);
    arena->total_bytes += size;
    return size;
}

static _Noreturn void take_back(dlc_arena *arena, size_t size)
{
    arena->total_bytes -= size;
    dlc_budget_give(arena->budget, size);
    dlc_out_of_memory(size, DLC_OUT_OF_MEMORY);
}

static void push_block(dlc_arena *arena, block *b)
{
    b->previous = arena->last;
    b->used = 0;
    arena->last = b;
}

static void add_block(dlc_arena *arena, size_t need)
{
    if (arena->spare && arena->spare->size_bytes >= need) {
        push_block(arena, arena->spare);
        arena->spare = NULL;
        return;
    }
    size_t size = arena->last ? arena->last->size_bytes * 2 : 16 * 1024;
    if (size > ((size_t)1 << 24))
        size = (size_t)1 << 24;
    if (size < need)
        size = need;
    size = take(arena, size, need);
    block *b = size > SIZE_MAX - sizeof *b ? NULL : malloc(sizeof *b + size);
    if (!b)
        take_back(arena, size);
    b->size_bytes = size;
    push_block(arena, b);
}

void *dlc_arena_alloc(dlc_arena *arena, size_t size_bytes, size_t align_bytes)
{
    for (;;) {
        block *b = arena->last;
        if (b) {
            uintptr_t at = (uintptr_t)(b->bytes + b->used);
            size_t skip = (size_t)(-at & (align_bytes - 1));
            if (skip <= b->size_bytes - b->used && size_bytes <= b->size_bytes - b->used - skip) {
                void *result = b->bytes + b->used + skip;
                b->used += skip + size_bytes;
                return memset(result, 0, size_bytes);
            }
        }
        if (size_bytes > SIZE_MAX - align_bytes)
            dlc_out_of_memory(size_bytes, 0);
        add_block(arena, size_bytes + align_bytes);
    }
}

void *dlc_arena_array(dlc_arena *arena, size_t count, size_t size_bytes, size_t align_bytes)
{
    size_t total;
    if (!dlc_mul_size(count, size_bytes, &total))
        dlc_out_of_memory(SIZE_MAX, 0);
    return dlc_arena_alloc(arena, total, align_bytes);
}

char *dlc_arena_strndup(dlc_arena *arena, const char *text, size_t nchars)
{
    char *copy = dlc_arena_alloc(arena, nchars + 1, 1);
    memcpy(copy, text, nchars);
    return copy;
}

char *dlc_arena_strdup(dlc_arena *arena, const char *text)
{
    return dlc_arena_strndup(arena, text, strlen(text));
}

char *dlc_arena_vprintf(dlc_arena *arena, const char *format, va_list args)
{
    char some[256]; /* most texts are printed once */
    va_list again;
    va_copy(again, args);
    int n = dlc_text_vprint(some, sizeof some, format, args);
    char *text = dlc_arena_alloc(arena, (size_t)(n < 0 ? 0 : n) + 1, 1);
    if (n > 0 && (size_t)n < sizeof some)
        memcpy(text, some, (size_t)n + 1);
    else if (n > 0)
        dlc_text_vprint(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

char *dlc_arena_printf(dlc_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = dlc_arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

char *dlc_arena_join(dlc_arena *arena, const char *first, const char *second)
{
    size_t first_bytes = strlen(first), second_bytes = strlen(second);
    char *text = dlc_arena_alloc(arena, first_bytes + second_bytes + 1, 1);
    memcpy(text, first, first_bytes);
    memcpy(text + first_bytes, second, second_bytes + 1);
    return text;
}

void *dlc_arena_copy(dlc_arena *arena, const void *bytes, size_t size_bytes)
{
    void *copy = dlc_arena_alloc(arena, size_bytes, 16);
    if (size_bytes)
        memcpy(copy, bytes, size_bytes);
    return copy;
}

/* --- bulk --- */

enum {
    BULK_BYTES = 1 << 20,         /* at least, to have memory of its own */
    UNSETTLED_BYTES = 64 << 20    /* what stays in memory: small models make no files */
};

void *dlc_arena_bulk(dlc_arena *arena, size_t size_bytes)
{
    if (size_bytes < BULK_BYTES)
        return dlc_arena_alloc(arena, size_bytes, 64);
    (void)take(arena, size_bytes, size_bytes);
    bulk *b = malloc(sizeof *b);
    void *bytes = b ? mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    if (bytes == MAP_FAILED) {
        free(b);
        take_back(arena, size_bytes);
    }
    *b = (bulk){.previous = arena->last_bulk, .bytes = bytes, .size_bytes = size_bytes};
    arena->last_bulk = b;
    return bytes;
}

void dlc_arena_settle(dlc_arena *arena, void *bytes)
{
    bulk *b = arena->last_bulk;
    size_t unsettled = 0;
    for (const bulk *each = b; each; each = each->previous)
        unsettled += each->is_settled ? 0 : each->size_bytes;
    while (b && b->bytes != bytes)
        b = b->previous;
    if (!b || b->is_settled || unsettled <= UNSETTLED_BYTES || !dlc_file_keep(b->bytes, b->size_bytes))
        return;
    b->is_settled = 1;
    b->span = dlc_budget_span(b->bytes, b->size_bytes);
    arena->total_bytes -= b->size_bytes;
    dlc_budget_give(arena->budget, b->size_bytes);
}

dlc_mark dlc_arena_mark(dlc_arena *arena)
{
    return (dlc_mark){arena->last, arena->last ? arena->last->used : 0, arena->last_bulk};
}

/* Becomes the spare one if it is the larger of the two and not too large; the other goes. */
static void drop_block(dlc_arena *arena, block *b)
{
    enum { MOST_SPARE = 1 << 20 };
    if (b->size_bytes <= MOST_SPARE && (!arena->spare || arena->spare->size_bytes < b->size_bytes)) {
        block *smaller = arena->spare;
        arena->spare = b;
        b = smaller;
    }
    if (!b)
        return;
    arena->total_bytes -= b->size_bytes;
    dlc_budget_give(arena->budget, b->size_bytes);
    free(b);
}

void dlc_arena_release(dlc_arena *arena, dlc_mark mark)
{
    release_bulk(arena, mark.bulk);
    while (arena->last && arena->last != mark.block) {
        block *previous = arena->last->previous;
        drop_block(arena, arena->last);
        arena->last = previous;
    }
    if (arena->last)
        arena->last->used = mark.used;
}

size_t dlc_arena_bytes(const dlc_arena *arena)
{
    return arena->total_bytes;
}

void *dlc_vec_grow(dlc_arena *arena, void *data, uint32_t n, uint32_t *cap, size_t item_bytes)
{
    uint32_t wanted = *cap ? *cap * 2 : 8;
    if (wanted < *cap)
        dlc_out_of_memory(SIZE_MAX, 0);
    void *grown = dlc_arena_array(arena, wanted, item_bytes, 16);
    if (n)
        memcpy(grown, data, n * item_bytes);
    *cap = wanted;
    return grown;
}

const char *dlc_arena_line(dlc_arena *arena, const char *name)
{
    static const char hex[] = "0123456789abcdef";
    size_t nbytes = strlen(name) + 1, nsteered = 0;
    for (const char *at = name; *at; at++)
        nsteered += *at == '\n' || *at == '\t';
    if (!nsteered)
        return name;
    char *line = dlc_new_array(arena, char, nbytes + 5 * nsteered), *to = line;
    for (; *name; name++) {
        if (*name == '\n' || *name == '\t')
            to = mempcpy(mempcpy(to, "\\u000", 5), &hex[(int)*name], 1);
        else
            *to++ = *name;
    }
    return line;
}
