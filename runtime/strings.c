/*
 * Strings and their numbers: a list one way, a hash table the other (one for those that stay, one that each run empties). Bytes
 * lie one behind the other in blocks, which later runs fill anew.
 */
#include "runtime/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct dlcrt_string_block {
    dlcrt_string_block *next;
    size_t size_bytes, used;
    char bytes[];
};

enum { LEAST_SLOTS = 64, LEAST_BLOCK = 4096 };

/* --- tables --- */
static uint64_t hash_of(const char *bytes, size_t n)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

static int is_same(const char *text, const char *bytes, size_t n)
{
    return strncmp(text, bytes, n) == 0 && !text[n];
}

/* The slot of the string, or the free one where it belongs. */
static uint32_t *slot_of(const dlcrt_strings *strings, const dlcrt_string_table *table, const char *bytes, size_t n)
{
    uint32_t at = (uint32_t)hash_of(bytes, n) & (table->cap - 1);
    while (table->slots[at] && !is_same(strings->all[table->slots[at] - 1], bytes, n))
        at = (at + 1) & (table->cap - 1);
    return &table->slots[at];
}

static uint32_t find(const dlcrt_strings *strings, const dlcrt_string_table *table, const char *bytes, size_t n)
{
    return table->cap ? *slot_of(strings, table, bytes, n) : 0;
}

static dlc_status grow_table(const dlcrt_strings *strings, dlcrt_string_table *table)
{
    dlcrt_string_table larger = {.n = table->n, .cap = table->cap ? table->cap * 2 : LEAST_SLOTS};
    larger.slots = dlcrt_alloc(larger.cap, sizeof *larger.slots);
    if (!larger.slots)
        return DLC_LIMIT;
    for (uint32_t i = 0; i < table->cap; i++) {
        const char *text = table->slots[i] ? strings->all[table->slots[i] - 1] : NULL;
        if (text)
            *slot_of(strings, &larger, text, strlen(text)) = table->slots[i];
    }
    free(table->slots);
    *table = larger;
    return DLC_OK;
}

/* Appends the string, whose bytes stay where they are. */
static dlc_status append(dlcrt_strings *strings, dlcrt_string_table *table, const char *text, size_t n)
{
    if (strings->n == INT32_MAX)
        return dlcrt_fail(DLC_LIMIT, "a run has more than 2^31 different strings");
    if (strings->n == strings->cap) {
        uint32_t cap = strings->cap ? strings->cap * 2 : LEAST_SLOTS;
        const char **all = realloc((void *)strings->all, cap * sizeof *all);
        if (!all)
            return dlcrt_no_memory(cap * sizeof *all);
        strings->all = all;
        strings->cap = cap;
    }
    if (2 * (table->n + 1) > table->cap)
        DLC_TRY(grow_table(strings, table));
    strings->all[strings->n++] = text;
    *slot_of(strings, table, text, n) = strings->n;
    table->n++;
    return DLC_OK;
}

dlc_status dlcrt_strings_fix(dlcrt_strings *strings, const char *text)
{
    DLC_TRY(append(strings, &strings->fixed, text, strlen(text)));
    strings->nfixed = strings->n;
    return DLC_OK;
}

void dlcrt_strings_reset(dlcrt_strings *strings)
{
    strings->n = strings->nfixed;
    strings->made.n = 0;
    if (strings->made.cap)
        memset(strings->made.slots, 0, strings->made.cap * sizeof *strings->made.slots);
    for (dlcrt_string_block *block = strings->first; block; block = block->next)
        block->used = 0;
    strings->current = strings->first;
}

void dlcrt_strings_free(dlcrt_strings *strings)
{
    for (dlcrt_string_block *block = strings->first, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    free((void *)strings->all);
    free(strings->fixed.slots);
    free(strings->made.slots);
    *strings = (dlcrt_strings){0};
}

size_t dlcrt_strings_bytes(const dlcrt_strings *strings)
{
    size_t total = strings->cap * sizeof *strings->all + (strings->fixed.cap + strings->made.cap) * sizeof(uint32_t);
    for (const dlcrt_string_block *block = strings->first; block; block = block->next)
        total += sizeof *block + block->size_bytes;
    return total;
}

/* --- strings of a run --- */
/* Room for n bytes: in the current block, one behind it that an earlier run made, or a new one. */
static dlc_status take_bytes(dlcrt_strings *strings, size_t n, char **bytes)
{
    dlcrt_string_block *block = strings->current;
    while (block && block->size_bytes - block->used < n)
        block = block->next;
    if (!block) {
        size_t size_bytes = strings->current ? strings->current->size_bytes * 2 : LEAST_BLOCK;
        size_bytes = size_bytes < n ? n : size_bytes;
        block = dlcrt_alloc(1, sizeof *block + size_bytes);
        if (!block)
            return DLC_LIMIT;
        block->size_bytes = size_bytes;
        dlcrt_string_block **end = &strings->first;
        while (*end)
            end = &(*end)->next;
        *end = block;
    }
    strings->current = block;
    *bytes = block->bytes + block->used;
    block->used += n;
    return DLC_OK;
}

dlc_status dlcrt_strings_add(dlcrt_strings *strings, const char *bytes, size_t n, int64_t *number)
{
    char *copy;
    *number = 0;
    if (!n)
        return DLC_OK;
    uint32_t found = find(strings, &strings->fixed, bytes, n);
    found = found ? found : find(strings, &strings->made, bytes, n);
    if (!found) {
        if (!strings->n) /* 0 is the empty string, whether the plan has it or not */
            DLC_TRY(dlcrt_strings_fix(strings, ""));
        DLC_TRY(take_bytes(strings, n + 1, &copy));
        memcpy(copy, bytes, n);
        copy[n] = '\0';
        DLC_TRY(append(strings, &strings->made, copy, n));
        found = strings->n;
    }
    *number = (int64_t)found - 1;
    return DLC_OK;
}

const char *dlcrt_strings_at(const dlcrt_strings *strings, int64_t number)
{
    if (!number)
        return "";
    return number > 0 && number < strings->n ? strings->all[number] : NULL;
}

/* --- a run's inputs and outputs --- */
static int is_text(const dlc_plan_tensor *tensors, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (dlc_is_text((dlc_dtype)tensors[i].dtype))
            return 1;
    return 0;
}

dlc_status dlcrt_strings_open(dlcrt_context *context)
{
    const dlc_plan *plan = context->plan;
    const uint32_t *texts = dlcrt_rows(plan, plan->texts);
    context->has_strings = is_text(dlcrt_rows(plan, plan->inputs), plan->inputs.count) ||
                           is_text(dlcrt_rows(plan, plan->outputs), plan->outputs.count) ||
                           is_text(dlcrt_rows(plan, plan->tensors), plan->tensors.count);
    for (uint32_t i = 0; context->has_strings && i < plan->texts.count; i++)
        DLC_TRY(dlcrt_strings_fix(&context->strings, dlcrt_string(plan, texts[i])));
    return DLC_OK;
}

static dlc_status take_input(dlcrt_context *context, uint32_t i, const char *name)
{
    const dlc_plan_tensor *input = (const dlc_plan_tensor *)dlcrt_rows(context->plan, context->plan->inputs) + i;
    size_t size_bytes = (size_t)context->cells[input->size_bytes];
    size_t n = 1; /* by its dimensions, as the caller has it */
    for (uint32_t d = 0; d < context->inputs[i]->rank; d++)
        n *= (size_t)context->inputs[i]->dims[d];
    if (n > size_bytes / sizeof(int64_t))
        return dlcrt_fail(DLC_INVALID, "input '%s' is larger than its buffer", name);
    DLC_TRY(dlcrt_context_grow(context, &context->numbers[i], size_bytes ? size_bytes : 1, 0));
    for (size_t k = 0; k < n; k++) {
        const char *text;
        int64_t number;
        memcpy(&text, (const char *)context->inputs[i]->data + k * sizeof text, sizeof text);
        if (!text)
            return dlcrt_fail(DLC_INVALID, "input '%s': element %zu is NULL, where a string is wanted", name, k);
        DLC_TRY(dlcrt_strings_add(&context->strings, text, strlen(text), &number));
        memcpy(context->numbers[i].bytes + k * sizeof number, &number, sizeof number);
    }
    return DLC_OK;
}

dlc_status dlcrt_strings_take(dlcrt_context *context)
{
    const dlc_plan_tensor *inputs = dlcrt_rows(context->plan, context->plan->inputs);
    if (!context->has_strings)
        return DLC_OK;
    dlcrt_strings_reset(&context->strings);
    for (uint32_t i = 0; i < context->plan->inputs.count; i++)
        if (dlc_is_text((dlc_dtype)inputs[i].dtype))
            DLC_TRY(take_input(context, i, dlcrt_string(context->plan, inputs[i].name)));
    return DLC_OK;
}

static dlc_status give_output(const dlcrt_context *context, const dlc_plan_tensor *output, char *data)
{
    size_t n = (size_t)context->cells[output->size_bytes] / sizeof(int64_t);
    for (size_t k = 0; k < n; k++) {
        int64_t number;
        memcpy(&number, data + k * sizeof number, sizeof number);
        const char *text = dlcrt_strings_at(&context->strings, number);
        if (!text)
            return dlcrt_fail(DLC_INVALID, "output '%s': element %zu is number %" PRId64 " of %" PRIu32 " strings",
                              dlcrt_string(context->plan, output->name), k, number, context->strings.n);
        memcpy(data + k * sizeof text, &text, sizeof text);
    }
    return DLC_OK;
}

dlc_status dlcrt_strings_give(dlcrt_context *context)
{
    const dlc_plan_tensor *outputs = dlcrt_rows(context->plan, context->plan->outputs);
    for (uint32_t i = 0; context->has_strings && i < context->plan->outputs.count; i++)
        if (dlc_is_text((dlc_dtype)outputs[i].dtype))
            DLC_TRY(give_output(context, &outputs[i], context->outputs[i]->data));
    return DLC_OK;
}
