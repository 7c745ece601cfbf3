/*
 * A bound model: each resource alone would take so long, and the longest of these times is the
 * kernel's. Cycles are those of the multiprocessor with most blocks; a wave is as many blocks as
 * all of them hold at once. It is not calibrated on a GPU.
 */
#include "vgpu/predict.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

const char *const vgpu_bounds[VGPU_BOUND_COUNT] = {
#define VGPU_BOUND(id, text) text,
#include "vgpu/bounds.def"
#undef VGPU_BOUND
};

vgpu_gpu vgpu_gpus[VGPU_GPU_COUNT] = {
#define VGPU_GPU(id, ...) {__VA_ARGS__, {0}},
#include "vgpu/gpus.def"
#undef VGPU_GPU
};

const vgpu_gpu *vgpu_gpu_find(int capability)
{
    const vgpu_gpu *best = &vgpu_gpus[0];
    for (int i = 0; i < VGPU_GPU_COUNT; i++)
        if (vgpu_gpus[i].capability <= capability && vgpu_gpus[i].capability > best->capability)
            best = &vgpu_gpus[i];
    return best;
}

/* --- what was measured --- */
enum { LONGEST_LINE = 256 };

/* The row that a line's name or capability is of; NULL: neither says. */
static vgpu_gpu *row_of(const char *line)
{
    for (int i = 0; !strncmp(line, "name ", 5) && i < VGPU_GPU_COUNT; i++)
        if (strstr(line, vgpu_gpus[i].name))
            return &vgpu_gpus[i];
    for (int i = 0; !strncmp(line, "capability ", 11) && i < VGPU_GPU_COUNT; i++)
        if (dlc_text_double(line + 11, NULL) == vgpu_gpus[i].capability)
            return &vgpu_gpus[i];
    return NULL;
}

static void set_figure(vgpu_gpu *gpu, const char *line)
{
    const struct {
        const char *name;
        double *to;
        int *whole;
    } figures[] = {{"sms ", NULL, &gpu->sms},
                   {"ghz ", &gpu->ghz, NULL},
                   {"shared_kib ", NULL, &gpu->shared_kib},
                   {"block_kib ", NULL, &gpu->block_kib},
                   {"threads ", NULL, &gpu->threads},
                   {"node_us ", &gpu->node_us, NULL},
                   {"load_cycles ", &gpu->load_cycles, NULL},
                   {"products_f16 ", &gpu->products, NULL},
                   {"memory_gbs ", &gpu->memory_gbs, NULL},
                   {"l2_gbs ", &gpu->l2_gbs, NULL}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        size_t n = strlen(figures[i].name);
        double value = strncmp(line, figures[i].name, n) ? 0 : dlc_text_double(line + n, NULL);
        if (value > 0 && value < 1e9 && figures[i].to)
            *figures[i].to = value;
        if (value >= 1 && value < 1e6 && figures[i].whole)
            *figures[i].whole = (int)value;
    }
}

/* "scale_BOUND NUMBER" */
static void set_scale(vgpu_gpu *gpu, const char *line)
{
    for (int i = 0; !strncmp(line, "scale_", 6) && i < VGPU_BOUND_COUNT; i++) {
        size_t n = strlen(vgpu_bounds[i]);
        double value = strncmp(line + 6, vgpu_bounds[i], n) || line[6 + n] != ' ' ? 0 : dlc_text_double(line + 6 + n + 1, NULL);
        if (value > 0.01 && value < 100)
            gpu->scale[i] = value;
    }
}

int vgpu_calibrate(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[LONGEST_LINE];
    vgpu_gpu *gpu = NULL;
    while (file && !gpu && fgets(line, sizeof line, file))
        gpu = row_of(line);
    if (gpu)
        rewind(file);
    while (gpu && fgets(line, sizeof line, file)) {
        set_figure(gpu, line);
        set_scale(gpu, line);
    }
    if (file)
        fclose(file);
    return gpu != NULL;
}

/* --- predictions --- */
static int is_alike(const vgpu_record_row *row, uint64_t key, const vgpu_launch *l)
{
    return row->key == key && !memcmp(row->grid, l->grid, sizeof row->grid) &&
           !memcmp(row->block, l->block, sizeof row->block) && row->shared_bytes == l->shared_bytes;
}

vgpu_record_row *vgpu_record_find(vgpu_record_table *table, uint64_t key, const vgpu_code *code,
                                  const vgpu_launch *launch)
{
    for (uint32_t i = 0; i < table->n; i++)
        if (is_alike(&table->rows[i], key, launch))
            return &table->rows[i];
    if (table->n == table->capacity) {
        table->capacity = 2 * table->capacity + 64;
        table->rows = realloc(table->rows, table->capacity * sizeof *table->rows);
    }
    if (!table->rows)
        dlc_out_of_memory(table->capacity * sizeof *table->rows, 0);
    vgpu_record_row *row = &table->rows[table->n++];
    *row = (vgpu_record_row){.key = key,
                             .shared_bytes = launch->shared_bytes,
                             .registers = code->live + 12 > 255 ? 255 : code->live + 12};
    snprintf(row->name, sizeof row->name, "%.80s#%llu", code->function->name,
             (unsigned long long)key);
    memcpy(row->grid, launch->grid, sizeof row->grid);
    memcpy(row->block, launch->block, sizeof row->block);
    return row;
}

/* All fields but the last two are whole numbers, one after another. */
void vgpu_counts_add(vgpu_counts *sum, const vgpu_counts *counts)
{
    enum { NUMBERS = offsetof(vgpu_counts, chain) / sizeof(uint64_t) };
    uint64_t *to = &sum->blocks;
    const uint64_t *from = &counts->blocks;
    for (int i = 0; i < NUMBERS; i++)
        to[i] += from[i];
    sum->chain += counts->chain;
    sum->loads += counts->loads;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint32_t vgpu_resident(const vgpu_gpu *gpu, const vgpu_record_row *row)
{
    enum { RESERVED = 1024, REGISTERS = 65536 };
    uint32_t threads = (row->block[0] * row->block[1] * row->block[2] + 31) / 32 * 32;
    uint32_t by_shared = (uint32_t)gpu->shared_kib * 1024 / (row->shared_bytes + RESERVED);
    uint32_t by_registers = REGISTERS / (((row->registers + 7) / 8 * 8) * threads);
    uint32_t n = least(least((uint32_t)gpu->threads / threads, (uint32_t)gpu->blocks),
                       least(by_shared, by_registers));
    return n ? n : 1;
}

double vgpu_predict(const vgpu_gpu *gpu, const vgpu_record_row *row, vgpu_bound *bound)
{
    const vgpu_counts *c = &row->counts;
    double launches = (double)row->launches, blocks = (double)c->blocks / launches,
           hz = gpu->ghz * 1e3;
    double sms = gpu->sms, resident = vgpu_resident(gpu, row), times[VGPU_BOUND_COUNT] = {0};
    double busiest = (double)(uint64_t)((blocks + sms - 1) / sms);
    double waves = (double)(uint64_t)((blocks + sms * resident - 1) / (sms * resident));
    double of_busiest =
        c->blocks ? busiest / (double)c->blocks : 0; /* its share of what was counted */
    double sampled = c->sampled ? (double)c->sampled : 1;
    double sectors = (double)(c->load_sectors + c->store_sectors);
    times[VGPU_BY_LATENCY] =
        waves * (c->chain / sampled + c->loads / sampled * gpu->load_cycles) / hz;
    times[VGPU_BY_ISSUE] = of_busiest * (double)c->slots / 4 / hz;
    times[VGPU_BY_FLOATS] =
        of_busiest * (double)c->instructions[VGPU_FLOAT] * VGPU_LANES / gpu->lanes / hz;
    times[VGPU_BY_MATRICES] = gpu->products > 0 ? of_busiest * (double)c->products / gpu->products / hz : 0;
    times[VGPU_BY_SHARED] = of_busiest * (double)c->shared_wavefronts / hz;
    times[VGPU_BY_L1] = of_busiest * sectors / gpu->sectors / hz;
    times[VGPU_BY_L2] = sectors * VGPU_SECTOR / launches / gpu->l2_gbs * 1e-3;
    times[VGPU_BY_MEMORY] =
        (double)(c->bytes_read + c->bytes_written) / launches / gpu->memory_gbs * 1e-3;
    double longest = 0;
    *bound = VGPU_BY_LAUNCH;
    for (int i = 0; i < VGPU_BOUND_COUNT; i++) {
        if (times[i] > longest && times[i] > gpu->node_us)
            *bound = (vgpu_bound)i;
        longest = times[i] > longest ? times[i] : longest;
    }
    /* A scale is of whole predictions, by the bound that they name. */
    double by = gpu->scale[*bound];
    return (longest + gpu->node_us) * (by > 0 ? by : 1);
}

static int by_time(const void *a, const void *b)
{
    const vgpu_record_row *x = *(const vgpu_record_row *const *)a,
                          *y = *(const vgpu_record_row *const *)b;
    vgpu_bound bound;
    double of_x = vgpu_predict(&vgpu_gpus[0], x, &bound) * (double)x->launches;
    double of_y = vgpu_predict(&vgpu_gpus[0], y, &bound) * (double)y->launches;
    return of_x < of_y ? 1 : of_x > of_y ? -1 : strcmp(x->name, y->name);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static void print_row(const vgpu_record_row *row, FILE *to)
{
    const vgpu_counts *c = &row->counts;
    vgpu_bound bound;
    uint64_t all = 0, n = row->launches;
    for (int i = 0; i < VGPU_CLASS_COUNT; i++)
        all += c->instructions[i];
    fprintf(to, "%-32s\t%llu\t%llu\t%u\t%u\t%u\t%llu\t%.2f\t%.2f\t%.2f\t%llu\t%llu", row->name,
            (unsigned long long)n, (unsigned long long)(c->blocks / n),
            row->block[0] * row->block[1] * row->block[2], row->shared_bytes, row->registers,
            (unsigned long long)(c->slots / n), share(c->lanes, all * VGPU_LANES),
            share(c->load_sectors + c->store_sectors, c->load_requests + c->store_requests),
            share(c->shared_wavefronts, c->shared_ideal), (unsigned long long)(c->bytes_read / n),
            (unsigned long long)(c->bytes_written / n));
    for (int g = 0; g < VGPU_GPU_COUNT; g++) {
        double us = vgpu_predict(&vgpu_gpus[g], row, &bound);
        fprintf(to, "\t%.2f\t%s", us, vgpu_bounds[bound]);
    }
    for (int i = 0; i < VGPU_CLASS_COUNT; i++)
        fprintf(to, "\t%llu", (unsigned long long)(c->instructions[i] / n));
    fputc('\n', to);
}

void vgpu_report(const vgpu_record_table *table, FILE *to)
{
    const vgpu_record_row **rows = malloc((table->n + 1) * sizeof(vgpu_record_row *));
    fprintf(
        to,
        "kernel\tlaunches\tblocks\tthreads\tshared\tregisters\tslots\tlanes\tsectors\twavefronts\t"
        "read\twritten");
    for (int g = 0; g < VGPU_GPU_COUNT; g++)
        fprintf(to, "\t%s us\tbound", vgpu_gpus[g].name);
    for (int i = 0; i < VGPU_CLASS_COUNT; i++)
        fprintf(to, "\t%s", vgpu_classes[i].text);
    fputc('\n', to);
    for (uint32_t i = 0; rows && i < table->n; i++)
        rows[i] = &table->rows[i];
    if (rows)
        qsort(rows, table->n, sizeof *rows, by_time);
    for (uint32_t i = 0; rows && i < table->n; i++)
        print_row(rows[i], to);
    free(rows);
}
