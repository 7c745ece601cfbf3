/* Modules as text: whatever is read is a module that passes its rules and reads back, or a message; bytes at random never more. */
#include "base/file.h"
#include "ir/module/module.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdlib.h>

static jmp_buf out_of_memory;
static const char folder[] = "tests/golden/module";

static void leave(void *user, size_t size_bytes, int over_budget)
{
    (void)user, (void)size_bytes, (void)over_budget;
    longjmp(out_of_memory, 1);
}

/* print(parse(text)) is stable, or there is a message. */
static void check_inside(const char *text, dlc_arena *arena)
{
    dlc_diag diag;
    dlc_module *module, *again;
    dlc_str once = {0}, twice = {0};
    dlc_diag_init(&diag, arena);
    if (dlc_module_parse(text, "m.dlc", arena, &diag, &module) != DLC_OK) {
        ck_assert_msg(diag.nmessages > 0, "refused without a message:\n%s", text);
    } else {
        dlc_module_print(module, &once);
        dlc_status status = dlc_module_parse(dlc_str_text(&once), "again.dlc", arena, &diag, &again);
        ck_assert_msg(status == DLC_OK, "%s: %s\n%s", diag.messages[0].place, diag.messages[0].text, dlc_str_text(&once));
        dlc_module_print(again, &twice);
        ck_assert_str_eq(dlc_str_text(&once), dlc_str_text(&twice));
    }
    dlc_str_deinit(&once);
    dlc_str_deinit(&twice);
}

/* A number that became large asks for much memory: that is refused, too. */
static void check(const char *text)
{
    dlc_arena *arena = dlc_arena_create((size_t)64 << 20);
    dlc_arena_set_oom(leave, NULL);
    if (!setjmp(out_of_memory))
        check_inside(text, arena);
    dlc_arena_set_oom(NULL, NULL);
    dlc_arena_destroy(arena);
}

/* The module in a golden case: behind its comments, up to what is expected. */
static char *module_text(const char *name)
{
    char path[512];
    dlc_map map;
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_assert_int_eq(dlc_map_open(path, &map, &diag), DLC_OK);
    char *text = strndup((const char *)map.bytes, map.size_bytes), *end = strstr(text, "\n# expect");
    dlc_map_close(&map);
    dlc_arena_destroy(arena);
    if (end)
        end[1] = 0;
    return text;
}

static void damage(char *text, uint32_t n)
{
    static const char marks[] = "()[]{}<>%@\"=:,.-> \n0129_afx";
    for (uint32_t i = 0, times = 1 + draw(4); i < times; i++) {
        uint32_t at = draw(n), other = draw(n), length = draw(12);
        if (draw(3) == 0 && at + length < n && other + length < n)
            memmove(text + at, text + other, length);
        else
            text[at] = marks[draw(sizeof marks - 1)];
    }
}

START_TEST(damaged_texts_are_refused_or_read)
{
    enum { TIMES = 400 };
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);
    ck_assert_int_gt(n, 4);
    for (int i = 0; i < n; i++) {
        if (strstr(entries[i]->d_name, ".dlc")) {
            char *text = module_text(entries[i]->d_name);
            for (int t = 0; t < TIMES; t++) {
                char *copy = strdup(text);
                damage(copy, (uint32_t)strlen(copy));
                check(copy);
                free(copy);
            }
            for (size_t cut = 0; cut < strlen(text); cut += 7) {
                char *copy = strndup(text, cut);
                check(copy);
                free(copy);
            }
            free(text);
        }
        free(entries[i]);
    }
    free(entries);
}
END_TEST

/* Forms of a constant are found again, also after reading. */
START_TEST(forms_are_made_once)
{
    static const char text[] = "module @m for x86-64-v3 after lower {\n"
                               "  const %w: f32[3,40] = hash(00000000000000aa)\n"
                               "  const %w.packed: f32[3,40]@{1/32,0,1%32} of %w\n"
                               "}\n"
                               "steps {\n}\n";
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_module *module;
    dlc_diag_init(&diag, arena);
    ck_assert_int_eq(dlc_module_parse(text, "m.dlc", arena, &diag, &module), DLC_OK);
    dlc_buffer buffer = {.type = module->values.data[0].type, .layout = module->values.data[1].layout};
    ck_assert_uint_eq(dlc_module_pack(module, 0, module->pool, &buffer), 1);
    ck_assert_uint_eq(dlc_module_pack(module, 1, module->pool, &buffer), 1);
    buffer.layout.part[0].block = buffer.layout.part[2].block = 8;
    uint32_t made = dlc_module_pack(module, 1, module->pool, &buffer);
    ck_assert_uint_eq(made, 2);
    ck_assert_str_eq(module->values.data[made].name, "w.packed_2");
    ck_assert_uint_eq(dlc_module_pack(module, 0, module->pool, &buffer), made);
    ck_assert_uint_eq(dlc_module_pack(module, made, module->pool, &(dlc_buffer){.type = buffer.type}), 0);
    dlc_arena_destroy(arena);
}
END_TEST

/* Element at index[] of the module's value lies where its layout says; what is not in the tensor is zero. */
static void check_layout(dlc_module *module, uint32_t v, const float *from)
{
    const dlc_module_value *value = &module->values.data[v];
    const float *packed = dlc_module_bytes(module, v);
    size_t n = value->data.size_bytes / sizeof *packed, found = 0;
    double sum = 0, wanted = 0;
    for (int64_t i = 0; i < 3 * 40; i++) {
        dlc_expr index[2] = {dlc_expr_i64(module->pool, i / 40), dlc_expr_i64(module->pool, i % 40)};
        dlc_expr at = dlc_layout_offset(module->pool, &value->layout, 2, value->type.dims, index);
        ck_assert_float_eq(packed[dlc_expr_value(module->pool, at)], from[i]);
        wanted += from[i];
    }
    for (size_t i = 0; i < n; i++)
        sum += packed[i], found += packed[i] != 0;
    ck_assert_double_eq_tol(sum, wanted, 1e-4);
    ck_assert_uint_le(found, 3 * 40);
}

/* Any stretch of a packed constant by itself is that part of the whole. */
START_TEST(constants_are_packed_in_stretches)
{
    static const char text[] = "module @m for x86-64-v3 after lower {\n"
                               "  const %w: f32[3,40] = hash(00000000000000aa)\n"
                               "  const %a: f32[3,40]@{1/32,0,1%32} of %w\n"
                               "  const %b: f32[3,40]@{1,0} of %w\n"
                               "  const %c: f32[3,40]@{1/16,0/2,1%16,0%2} of %w\n"
                               "  const %d: f32[3,40]@{0/4,1/7,0%4,1%7} of %w\n"
                               "}\n"
                               "steps {\n}\n";
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_module *module;
    char part[8192];
    dlc_diag_init(&diag, arena);
    ck_assert_int_eq(dlc_module_parse(text, "m.dlc", arena, &diag, &module), DLC_OK);
    for (uint32_t v = 1; v < module->values.n; v++) {
        const dlc_module_value *value = &module->values.data[v];
        check_layout(module, v, module->values.data[0].data.bytes);
        for (size_t first = 0; first < value->data.size_bytes; first += 12)
            for (size_t n = 4; n <= value->data.size_bytes - first; n += 28) {
                dlc_packing_put(value->packing, first, n, part);
                ck_assert_mem_eq(part, (const char *)value->data.bytes + first, n);
            }
        for (uint32_t other = 1; other < module->values.n; other++)
            ck_assert_int_eq(dlc_packing_equal(value->packing, module->values.data[other].packing), other == v);
    }
    dlc_arena_destroy(arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("module");
    TCase *tcase = tcase_create("module");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, damaged_texts_are_refused_or_read);
    tcase_add_test(tcase, forms_are_made_once);
    tcase_add_test(tcase, constants_are_packed_in_stretches);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
