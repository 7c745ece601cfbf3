/* Memory of contexts: whole pages from the system. */
#include "runtime/device.h"

#include <sys/mman.h>

static size_t page_up(size_t size_bytes)
{
    return (size_bytes + 4095) / 4096 * 4096;
}

/* Pages of their own for so many bytes, or those there are with more behind them: nothing is copied or touched, however large they are. */
static unsigned char *map_pages(const dlcrt_memory *memory, size_t size_bytes, size_t keep_bytes)
{
    if (memory->bytes && keep_bytes)
        return mremap(memory->bytes, memory->size_bytes, size_bytes, MREMAP_MAYMOVE);
    return mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Keeps the first `keep_bytes`. Huge pages where the system gives them: an arena is walked from end
 * to end. */
dlc_status dlcrt_memory_grow(dlcrt_memory *memory, size_t size_bytes, size_t keep_bytes)
{
    if (size_bytes <= memory->size_bytes)
        return DLC_OK;
    const size_t huge = DLC_HUGE_PAGE;
    size_t rounded = size_bytes >= huge ? (size_bytes + huge - 1) / huge * huge : page_up(size_bytes);
    unsigned char *bytes = map_pages(memory, rounded, keep_bytes);
    if (bytes == MAP_FAILED)
        return dlcrt_no_memory(size_bytes);
    if (rounded >= huge)
        madvise(bytes, rounded, MADV_HUGEPAGE);
    if (memory->bytes && !keep_bytes)
        munmap(memory->bytes, memory->size_bytes);
    *memory = (dlcrt_memory){bytes, rounded};
    return DLC_OK;
}

dlc_status dlcrt_context_grow(dlcrt_context *context, dlcrt_memory *memory, size_t size_bytes, size_t keep_bytes)
{
    size_t before = memory->size_bytes, most = (size_t)context->max_mebibytes << 20, others = context->held_bytes - before;
    if (most && size_bytes > before && (others > most || size_bytes > most - others))
        return dlcrt_fail(DLC_LIMIT, "the run needs %zu bytes beside %zu it has; the limit is %u MiB", size_bytes, others,
                          context->max_mebibytes);
    DLC_TRY(dlcrt_memory_grow(memory, size_bytes, keep_bytes));
    context->held_bytes = others + memory->size_bytes;
    return DLC_OK;
}

void dlcrt_memory_free(dlcrt_memory *memory)
{
    if (memory->bytes)
        munmap(memory->bytes, memory->size_bytes);
    *memory = (dlcrt_memory){0};
}
