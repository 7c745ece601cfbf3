/* What tests of rows of dot.def share: modules compiled and run in a folder of their own, and factors before a page nobody may touch. */
#ifndef DLC_TESTS_UNIT_DOT_CASES_H
#define DLC_TESTS_UNIT_DOT_CASES_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"
#include "dlc/cpu.h"
#include "dlc/dlc.h"
#include "ir/schedule/schedule.h"
#include "tests/amx/emulate.h"
#include "tests/unit/suite.h"

enum { PAGE_BYTES = 65536 };

static char folder[64];

static inline void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/dlc_test_dots_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline const char *in_folder(const char *name)
{
    static char path[2][128];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static inline void teardown(void)
{
    unlink(in_folder("dot.dlc"));
    unlink(in_folder("dot.so"));
    rmdir(folder);
}

/* Compiled, or NULL and the message. */
static inline dlc_model *compiled(const char *text, const char *target, char *message, size_t size)
{
    FILE *file = fopen(in_folder("dot.dlc"), "w");
    ck_assert(file && fputs(text, file) >= 0 && !fclose(file));
    dlc_model *model;
    dlc_model_note note = {0};
    dlc_status status = dlc_model_open(in_folder("dot.dlc"), &(dlc_options){.target = target, .jobs = 1}, &model);
    if (status == DLC_OK)
        status = dlc_model_write(model, "so", in_folder("dot.so"), NULL);
    dlc_model_message(model, 0, &note);
    snprintf(message, size, "%s", note.text ? note.text : "");
    if (status == DLC_OK)
        return model;
    dlc_model_close(model);
    return NULL;
}

/* --- data --- */

/* Memory that ends at a page nobody may touch. Never given back: each test is a process. */
static inline void *guarded(size_t size_bytes)
{
    size_t inner = (size_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    char *bytes = mmap(NULL, inner + PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(bytes != MAP_FAILED);
    ck_assert_int_eq(mprotect(bytes, inner, PROT_READ | PROT_WRITE), 0);
    return bytes + inner - size_bytes;
}

static inline dlcrt_tensor tensor_of(const char *type, int d0, int d1, uint32_t seed)
{
    int is_bf16 = !strcmp(type, "bf16");
    dlcrt_tensor t = {.dtype = is_bf16 ? DLC_BF16 : !strcmp(type, "u8") ? DLC_U8 : DLC_I8, .rank = 2, .dims = {d0, d1}};
    size_t n = (size_t)d0 * (size_t)d1;
    t.data = guarded(n * (is_bf16 ? 2 : 1));
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        float value = (float)(int32_t)seed / 2147483648.0f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (is_bf16)
            ((uint16_t *)t.data)[i] = (uint16_t)(bits >> 16);
        else
            ((uint8_t *)t.data)[i] = (uint8_t)(seed >> 24);
    }
    return t;
}

/* Half to even, or cut. */
static uint16_t to_bf16(float value, int is_cut)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((is_cut ? bits : bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static inline float from_bf16(uint16_t half)
{
    float value;
    memcpy(&value, &(uint32_t){(uint32_t)half << 16}, sizeof value);
    return value;
}

/* Part p of an element: 0 behind what is not finite. What rounding could make infinite is cut. */
static uint16_t part_of(float value, int p)
{
    int is_cut = !(fabsf(value) < 0x1p127f);
    uint16_t part = to_bf16(value, is_cut);
    for (; p > 0; p--) {
        value = isfinite(value) ? value - from_bf16(part) : 0;
        part = to_bf16(value, is_cut);
    }
    return part;
}

/* Of a matrix: the parts of each row in turn, or in planes. */
static inline dlcrt_tensor in_parts(const float *values, int d0, int d1, int in_planes)
{
    dlcrt_tensor t = {.dtype = DLC_BF16, .rank = 3, .dims = {in_planes ? 3 : d0, in_planes ? d0 : 3, d1}};
    uint16_t *parts = t.data = guarded(sizeof *parts * 3 * (size_t)d0 * (size_t)d1);
    for (int i = 0; i < d0; i++)
        for (int p = 0; p < 3; p++)
            for (int k = 0; k < d1; k++)
                parts[(in_planes ? p * d0 + i : i * 3 + p) * d1 + k] = part_of(values[i * d1 + k], p);
    return t;
}

static inline float *random_floats(size_t n, uint32_t seed)
{
    float *values = guarded(sizeof *values * n);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(int32_t)seed / 2147483648.0f;
    }
    return values;
}

static inline double element(const dlcrt_tensor *t, int64_t at)
{
    uint32_t bits;
    float value;
    if (t->dtype == DLC_U8)
        return ((const uint8_t *)t->data)[at];
    if (t->dtype == DLC_I8)
        return ((const int8_t *)t->data)[at];
    bits = (uint32_t)((const uint16_t *)t->data)[at] << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* False when this machine cannot run it. */
static inline int run_once(const dlcrt_tensor *inputs, uint32_t n, dlcrt_tensor *y, const char *what)
{
    dlcrt_executable *executable;
    dlcrt_context *context;
    dlc_status status = dlcrt_executable_open(in_folder("dot.so"), &executable);
    if (status == DLC_NO_DEVICE)
        return 0;
    ck_assert_msg(status == DLC_OK, "%s: %s", what, dlcrt_last_error());
    ck_assert_int_eq(dlcrt_context_create(executable, NULL, &context), DLC_OK);
    ck_assert_int_eq(dlcrt_context_prepare(context, inputs, n), DLC_OK);
    y->size_bytes = dlcrt_context_output_bytes(context, 0);
    y->data = guarded(y->size_bytes);
    ck_assert_msg(dlcrt_context_run(context, inputs, n, y, 1) == DLC_OK, "%s: %s", what, dlcrt_last_error());
    dlcrt_context_destroy(context);
    dlcrt_executable_close(executable);
    return 1;
}

#endif
