/*
 * Regions by address, and pages of records that exist for as long as a launch touches them: reading
 * a gigabyte of weights costs nothing but for the pages that are read.
 */
#include "vgpu/memory.h"

#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
    if (!memory)
        dlc_out_of_memory(0, 0);
    return memory;
}

/* The number of regions that begin at or below the address. */
static uint32_t count_below(const vgpu_memory *memory, uint64_t address)
{
    uint32_t low = 0, high = memory->n;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (memory->regions[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

vgpu_region *vgpu_memory_find(const vgpu_memory *memory, uint64_t address)
{
    uint32_t n = count_below(memory, address);
    vgpu_region *region = n ? &memory->regions[n - 1] : NULL;
    return region && address - region->base < region->size_bytes ? region : NULL;
}

void vgpu_memory_add(vgpu_memory *memory, const vgpu_region *region)
{
    uint32_t at = count_below(memory, region->base);
    if (memory->n == memory->capacity) {
        memory->capacity = 2 * memory->capacity + 16;
        memory->regions =
            must(realloc(memory->regions, memory->capacity * sizeof *memory->regions));
    }
    memmove(&memory->regions[at + 1], &memory->regions[at],
            (memory->n - at) * sizeof *memory->regions);
    memory->n++;
    memory->regions[at] = *region;
    memory->regions[at].pages =
        must(calloc(region->size_bytes / VGPU_PAGE + 2, sizeof(vgpu_page *)));
}

void vgpu_memory_remove(vgpu_memory *memory, uint64_t base)
{
    uint32_t at = count_below(memory, base) - 1;
    vgpu_memory_forget(memory, NULL, NULL);
    free(memory->regions[at].pages);
    memmove(&memory->regions[at], &memory->regions[at + 1],
            (--memory->n - at) * sizeof *memory->regions);
}

static size_t records_of(int is_fine)
{
    return is_fine ? VGPU_PAGE : VGPU_WORDS;
}

static vgpu_page *new_page(vgpu_memory *memory, vgpu_page **slot, int is_fine)
{
    vgpu_page *page = memory->spare[is_fine];
    size_t bytes = sizeof *page + records_of(is_fine) * sizeof(vgpu_record);
    if (page)
        memory->spare[is_fine] = page->next;
    else
        page = must(malloc(bytes));
    memset(page, 0, bytes);
    page->is_fine = is_fine;
    page->slot = slot;
    page->next = memory->used;
    memory->used = *slot = page;
    return page;
}

/* A page of words becomes one of bytes; the old one stays in the list, without a place. */
static vgpu_page *refine(vgpu_memory *memory, vgpu_page *coarse)
{
    vgpu_page *fine = new_page(memory, coarse->slot, 1);
    for (uint32_t i = 0; i < VGPU_PAGE; i++)
        fine->records[i] = coarse->records[i / 4];
    memcpy(fine->read, coarse->read, sizeof fine->read);
    memcpy(fine->written, coarse->written, sizeof fine->written);
    memset(coarse->read, 0, sizeof coarse->read);
    memset(coarse->written, 0, sizeof coarse->written);
    coarse->slot = NULL;
    return fine;
}

vgpu_page *vgpu_memory_page(vgpu_memory *memory, vgpu_region *region, uint64_t offset,
                            int needs_bytes)
{
    vgpu_page **slot = &region->pages[offset / VGPU_PAGE];
    if (!*slot)
        return new_page(memory, slot, needs_bytes);
    return needs_bytes && !(*slot)->is_fine ? refine(memory, *slot) : *slot;
}

static uint64_t bytes_of(const uint64_t *sectors)
{
    return (uint64_t)VGPU_SECTOR *
           (uint64_t)(__builtin_popcountll(sectors[0]) + __builtin_popcountll(sectors[1]));
}

void vgpu_memory_forget(vgpu_memory *memory, uint64_t *read_bytes, uint64_t *written_bytes)
{
    for (vgpu_page *page = memory->used, *next; page; page = next) {
        next = page->next;
        if (page->slot)
            *page->slot = NULL;
        if (read_bytes)
            *read_bytes += bytes_of(page->read);
        if (written_bytes)
            *written_bytes += bytes_of(page->written);
        page->next = memory->spare[page->is_fine];
        memory->spare[page->is_fine] = page;
    }
    memory->used = NULL;
}

void vgpu_memory_deinit(vgpu_memory *memory)
{
    vgpu_memory_forget(memory, NULL, NULL);
    for (int i = 0; i < 2; i++)
        for (vgpu_page *page = memory->spare[i], *next; page; page = next) {
            next = page->next;
            free(page);
        }
    for (uint32_t i = 0; i < memory->n; i++)
        free(memory->regions[i].pages);
    free(memory->regions);
    *memory = (vgpu_memory){0};
}
