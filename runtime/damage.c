/*
 * Constants and binaries against their checksums. Opening an executable reads tables and code alone;
 * what may be a thousand times as large is read here, by the first run, and only the chunks that the
 * chosen plan uses: with plans for several targets most belong to the others. So no damaged byte is
 * computed with, and opening costs the same whatever the weights.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "dlc/checksum.h"
#include "runtime/internal.h"

enum { CHUNKS_AT_ONCE = 16 }; /* a megabyte: less is not worth a thread */

static uint64_t chunk_count(const dlcrt_image *image)
{
    return (image->constants.size_bytes + DLC_SEAL_CHUNK - 1) / DLC_SEAL_CHUNK;
}

static uint64_t chunk_bytes(const dlcrt_image *image, uint64_t chunk)
{
    uint64_t n = image->constants.size_bytes - chunk * DLC_SEAL_CHUNK;
    return n < DLC_SEAL_CHUNK ? n : DLC_SEAL_CHUNK;
}

static int is_whole(const dlcrt_image *image, uint64_t chunk)
{
    const unsigned char *bytes = image->base + image->constants.at + chunk * DLC_SEAL_CHUNK;
    return dlc_checksum(bytes, chunk_bytes(image, chunk)) == image->sums[chunk];
}

static dlc_status check_chunk(const dlcrt_executable *executable, uint64_t chunk)
{
    const dlcrt_image *image = &executable->image;
    uint64_t begin = chunk * DLC_SEAL_CHUNK, n = chunk_bytes(image, chunk);
    if (is_whole(image, chunk))
        return DLC_OK;
    return dlcrt_fail(DLC_INVALID,
                      "%s: damaged: bytes %" PRIu64 " to %" PRIu64
                      " of its constants do not match their checksum",
                      executable->name, begin, begin + n);
}

static dlc_status check_binaries(const dlcrt_executable *executable)
{
    const dlcrt_image *image = &executable->image;
    if (!image->binaries.size_bytes || dlc_checksum(image->base + image->binaries.at, image->binaries.size_bytes) ==
                                           image->binaries.checksum)
        return DLC_OK;
    return dlcrt_fail(DLC_INVALID, "%s: damaged: its binaries do not match their checksum", executable->name);
}

dlc_status dlcrt_executable_check_code(const dlcrt_executable *executable)
{
    return executable->image.base ? check_binaries(executable) : DLC_OK;
}

/* ---- what a plan reads ---- */

/* Marks the chunks of a reference; false: it lies outside what is sealed. */
static int mark(const dlcrt_executable *executable, const dlc_plan_ref *ref, unsigned char *is_used)
{
    const dlcrt_image *image = &executable->image;
    const dlc_size_inst *size =
        (const dlc_size_inst *)dlcrt_rows(executable->plan, executable->plan->insts) + ref->size_bytes;
    uint64_t begin = (uint64_t)(executable->constants - image->base) - image->constants.at + ref->offset;
    uint64_t all = image->constants.size_bytes;
    uint64_t n = size->op == DLC_SIZE_CONST && size->imm >= 0 ? (uint64_t)size->imm : all - begin;
    if (!n)
        return 1;
    if (begin > all || n > all - begin)
        return 0;
    for (uint64_t chunk = begin / DLC_SEAL_CHUNK; chunk <= (begin + n - 1) / DLC_SEAL_CHUNK; chunk++)
        is_used[chunk] = 1;
    return 1;
}

/* The job of a pool: sums of chunks [begin, end); *fault where one is wrong. */
static void sum_chunks(const dlc_kernel_args *args, int64_t begin, int64_t end)
{
    const dlcrt_image *image = args->buffers[0];
    const unsigned char *is_used = args->buffers[1];
    for (int64_t chunk = begin; chunk < end; chunk++)
        if (is_used[chunk] && !is_whole(image, (uint64_t)chunk))
            __atomic_store_n(args->fault, 1, __ATOMIC_RELAXED);
}

/* Which one is damaged is looked for only where one is. */
static dlc_status check_marked(const dlcrt_executable *executable, unsigned char *is_used, dlcrt_pool *pool)
{
    int64_t fault = !pool, n = (int64_t)chunk_count(&executable->image);
    void *const buffers[] = {(void *)&executable->image, is_used};
    dlcrt_job job = {.kernel = sum_chunks, .buffers = buffers, .fault = &fault};
    if (pool)
        dlcrt_pool_run(pool, &job, n, CHUNKS_AT_ONCE);
    for (int64_t chunk = 0; fault && chunk < n; chunk++)
        if (is_used[chunk])
            DLC_TRY(check_chunk(executable, (uint64_t)chunk));
    return DLC_OK;
}

static dlc_status check_used(const dlcrt_executable *executable, unsigned char *is_used, dlcrt_pool *pool)
{
    const dlc_plan *plan = executable->plan;
    const dlc_plan_ref *refs = dlcrt_rows(plan, plan->refs);
    for (uint32_t i = 0; i < plan->refs.count; i++)
        if (refs[i].place == DLC_REF_CONSTANT && !mark(executable, &refs[i], is_used))
            return dlcrt_fail(DLC_INVALID, "%s: damaged: a constant lies outside what is sealed", executable->name);
    DLC_TRY(check_marked(executable, is_used, pool));
    return plan->device == DLC_DEVICE_CPU ? DLC_OK : check_binaries(executable);
}

static dlc_status check_once(dlcrt_executable *executable, dlcrt_pool *pool)
{
    unsigned char *is_used = dlcrt_alloc(chunk_count(&executable->image) + 1, 1);
    if (!is_used)
        return DLC_LIMIT;
    dlc_status status = check_used(executable, is_used, pool);
    free(is_used);
    if (status == DLC_OK)
        atomic_store_explicit(&executable->is_whole, 1, memory_order_release);
    return status;
}

dlc_status dlcrt_executable_check(dlcrt_executable *executable, dlcrt_pool *pool)
{
    dlc_status status = DLC_OK;
    if (atomic_load_explicit(&executable->is_whole, memory_order_acquire))
        return DLC_OK;
    pthread_mutex_lock(&executable->lock);
    if (!atomic_load_explicit(&executable->is_whole, memory_order_relaxed))
        status = check_once(executable, pool);
    pthread_mutex_unlock(&executable->lock);
    return status;
}

dlc_status dlcrt_executable_verify(const dlcrt_executable *executable)
{
    if (!executable)
        return dlcrt_fail(DLC_USAGE, "dlcrt_executable_verify: executable is NULL");
    if (!executable->image.base)
        return DLC_OK;
    for (uint64_t chunk = 0; chunk < chunk_count(&executable->image); chunk++)
        DLC_TRY(check_chunk(executable, chunk));
    return check_binaries(executable);
}
