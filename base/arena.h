/*
 * Memory by lifetime: a chain of blocks, freed together or back to a mark.
 * Allocations are zeroed and never fail towards the caller: out of memory, or past the arena's budget, the process-wide
 * handler runs, which must not return (the compiler's driver leaves by longjmp; the default prints one line and exits 7).
 * One thread per arena.
 */
#ifndef DLC_BASE_ARENA_H
#define DLC_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Of a few bytes, which are there when a library has been opened: for other variables of threads the dynamic linker finds memory at
 * their first use, and ends the process where there is none. */
#define DLC_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

typedef struct dlc_arena dlc_arena;
typedef struct {
    void *block;
    size_t used;
    void *bulk;
} dlc_mark;

dlc_arena *dlc_arena_create(size_t budget_bytes); /* 0: no budget */
void dlc_arena_destroy(dlc_arena *arena);         /* NULL is fine */
void *dlc_arena_alloc(dlc_arena *arena, size_t size_bytes, size_t align_bytes);
/* count * size_bytes with overflow checked */
void *dlc_arena_array(dlc_arena *arena, size_t count, size_t size_bytes, size_t align_bytes);
char *dlc_arena_strdup(dlc_arena *arena, const char *text);
char *dlc_arena_strndup(dlc_arena *arena, const char *text, size_t nchars);
char *dlc_arena_printf(dlc_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *dlc_arena_vprintf(dlc_arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0), nonnull(2)));
/* The one text behind the other: as "%s%s", which libc measures letter by letter, and names of nested calls are long. */
char *dlc_arena_join(dlc_arena *arena, const char *first, const char *second);
void *dlc_arena_copy(dlc_arena *arena, const void *bytes, size_t size_bytes); /* aligned to 16 */
/* For what may be large and is written once, as a constant: zeroed, aligned to 64. */
void *dlc_arena_bulk(dlc_arena *arena, size_t size_bytes);
/* It is written: where there is much of it, the system keeps it in a file without a name, in TMPDIR. The pointer stays good. */
void dlc_arena_settle(dlc_arena *arena, void *bulk);
dlc_mark dlc_arena_mark(dlc_arena *arena);
void dlc_arena_release(dlc_arena *arena, dlc_mark mark);
size_t dlc_arena_bytes(const dlc_arena *arena);

/* A name in a line or a row of a table: line feeds and tabs become \uXXXX, too, so that no name can forge a row. Of the arena, if it is
 * not the name itself. */
const char *dlc_arena_line(dlc_arena *arena, const char *name);

/* Called with the size that could not be had and who refused it. */
enum { DLC_OUT_OF_MEMORY, DLC_OUT_OF_ARENA, DLC_OUT_OF_BUDGET, DLC_OUT_OF_TIME }; /* the system, the arena's budget, base/budget.h */
typedef void (*dlc_oom_handler)(void *user, size_t size_bytes, int over_budget);
void dlc_arena_set_oom(dlc_oom_handler handler, void *user); /* per thread; NULL restores the default */
/* For memory that is no arena's (string builders): runs the handler as an arena would. */
_Noreturn void dlc_out_of_memory(size_t size_bytes, int over_budget);

#define dlc_new(arena, type) ((type *)dlc_arena_alloc((arena), sizeof(type), _Alignof(type)))
#define dlc_new_array(arena, type, count)                                                          \
    ((type *)dlc_arena_array((arena), (count), sizeof(type), _Alignof(type)))

/* Overflow-checked size arithmetic: the only way to size anything from a model. Return 0 on overflow, else 1. */
static inline int dlc_mul_size(size_t a, size_t b, size_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}

static inline int dlc_add_size(size_t a, size_t b, size_t *result)
{
    return !__builtin_add_overflow(a, b, result);
}

static inline int dlc_mul_i64(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}

#endif
