/* The helpers everything rests on: arenas, vectors, text, diagnostics, files that are whole or
 * absent. */
#include "base/budget.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"
#include "base/table.h"
#include "base/text.h"
#include "base/vec.h"

#include <check.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static dlc_arena *arena;

static void setup(void)
{
    arena = dlc_arena_create(0);
}

static void teardown(void)
{
    dlc_arena_destroy(arena);
}

START_TEST(arenas_align_zero_and_release)
{
    for (size_t align = 1; align <= 4096; align *= 2) {
        unsigned char *bytes = dlc_arena_alloc(arena, 100, align);
        ck_assert_uint_eq((uintptr_t)bytes % align, 0);
        for (int i = 0; i < 100; i++)
            ck_assert_uint_eq(bytes[i], 0);
        memset(bytes, 0xff, 100);
    }
    dlc_mark mark = dlc_arena_mark(arena);
    size_t before = dlc_arena_bytes(arena);
    unsigned char *first = dlc_arena_alloc(arena, 64, 1);
    memset(first, 1, 64);
    dlc_arena_alloc(arena, 10 << 20, 16);
    ck_assert_uint_gt(dlc_arena_bytes(arena), before);
    dlc_arena_release(arena, mark);
    ck_assert_uint_eq(dlc_arena_bytes(arena), before);
    unsigned char *again = dlc_arena_alloc(arena, 64, 1);
    ck_assert_ptr_eq(again, first);
    ck_assert_uint_eq(again[63], 0);
    ck_assert_str_eq(dlc_arena_printf(arena, "%s %d", "seven", 7), "seven 7");
}
END_TEST

/* What was put down in a file reads as before, through the same pointer; a mark takes bulk back as it does the rest. */
START_TEST(bulk_memory_settles)
{
    enum { NBLOCKS = 20, BYTES = (5 << 20) + 3 };
    dlc_budget budget = {0}, *before = dlc_budget_use(&budget);
    dlc_arena *own = dlc_arena_create(0);
    dlc_mark mark = dlc_arena_mark(own);
    unsigned char *blocks[NBLOCKS];
    for (int i = 0; i < NBLOCKS; i++) {
        blocks[i] = dlc_arena_bulk(own, BYTES);
        ck_assert(blocks[i][0] == 0 && blocks[i][BYTES - 1] == 0 && (uintptr_t)blocks[i] % 64 == 0);
        memset(blocks[i], i + 1, BYTES);
        dlc_arena_settle(own, blocks[i]);
    }
    ck_assert_uint_lt(budget.bytes, (size_t)NBLOCKS * BYTES); /* 64 MiB of them stayed */
    dlc_budget_read((size_t)1 << 30);                         /* lets go of all that can be read again */
    for (int i = 0; i < NBLOCKS; i++)
        ck_assert(blocks[i][0] == i + 1 && blocks[i][BYTES / 2] == i + 1 && blocks[i][BYTES - 1] == i + 1);
    dlc_arena_release(own, mark);
    ck_assert_uint_eq(budget.bytes, 0);
    ck_assert_ptr_null(budget.spans);
    unsigned char *small = dlc_arena_bulk(own, 100);
    dlc_arena_settle(own, small);
    ck_assert_uint_eq(small[99], 0);
    dlc_arena_destroy(own);
    dlc_budget_use(before);
}
END_TEST

static jmp_buf escape;
static size_t refused_bytes;
static int refused_over_budget;

static void leave(void *user, size_t size_bytes, int over_budget)
{
    (void)user;
    refused_bytes = size_bytes;
    refused_over_budget = over_budget;
    longjmp(escape, 1);
}

START_TEST(budgets_and_overflow_end_in_the_handler)
{
    dlc_arena *small = dlc_arena_create(100000);
    dlc_arena_set_oom(leave, NULL);
    if (setjmp(escape) == 0) {
        dlc_arena_alloc(small, 90000, 1);
        dlc_arena_alloc(small, 20000, 1);
        ck_abort_msg("the budget was ignored");
    }
    ck_assert_int_eq(refused_over_budget, 1);
    if (setjmp(escape) == 0) {
        dlc_arena_array(small, SIZE_MAX / 2, 3, 1);
        ck_abort_msg("the overflow was ignored");
    }
    ck_assert_uint_eq(refused_bytes, SIZE_MAX);
    dlc_arena_set_oom(NULL, NULL);
    dlc_arena_destroy(small);
}
END_TEST

START_TEST(vectors_grow)
{
    dlc_vec(int) squares = {0};
    for (int i = 0; i < 1000; i++)
        dlc_vec_push(arena, &squares, i * i);
    ck_assert_uint_eq(squares.n, 1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(squares.data[i], i * i);
}
END_TEST

START_TEST(numbers_read_back)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.1, "0.1"},       {-0.0, "-0"},      {1e300, "1e+300"},   {1.0 / 3, "0.3333333333333333"},
        {5e-324, "5e-324"}, {INFINITY, "inf"}, {-INFINITY, "-inf"}, {NAN, "nan"},
        {768, "768"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dlc_str text = {0};
        dlc_str_add_double(&text, cases[i].value);
        ck_assert_str_eq(dlc_str_text(&text), cases[i].text);
        dlc_str_deinit(&text);
    }
}
END_TEST

/* Like the C library's in the locale "C", which this program has: tests/unit/test_locale.c has
 * others. */
START_TEST(characters_are_ascii)
{
    for (int c = 0; c < 256; c++) {
        int is_other = !!isalpha(c) != dlc_is_alpha(c) || !!isdigit(c) != dlc_is_digit(c) ||
                       !!isalnum(c) != dlc_is_alnum(c) || !!isxdigit(c) != dlc_is_xdigit(c) ||
                       !!isspace(c) != dlc_is_space(c) || !!isprint(c) != dlc_is_print(c);
        ck_assert_msg(!is_other, "%d is taken for something else", c);
        if (c > 127) {
            char negative = (char)c;
            ck_assert(!dlc_is_alnum(negative) && !dlc_is_space(negative) &&
                      !dlc_is_print(negative));
        }
    }
    ck_assert(dlc_text_same_letters("LeakyRelu", "LEAKYrELU"));
    ck_assert(dlc_text_same_letters("", ""));
    ck_assert(!dlc_text_same_letters("Relu", "Relu6"));
    ck_assert(!dlc_text_same_letters("Relu6", "Relu"));
    ck_assert(!dlc_text_same_letters("[", "{")); /* a bit apart, as letters are */
}
END_TEST

START_TEST(numbers_have_a_point)
{
    char text[8], *end;
    ck_assert_int_eq(dlc_text_print(text, sizeof text, "%a", 1.5), 8); /* cut, as snprintf does */
    ck_assert_str_eq(text, "0x1.8p+");
    ck_assert_int_eq(dlc_text_print(NULL, 0, "%.17g", 0.1), 19);
    ck_assert_double_eq(dlc_text_double("-2.5e-1,", &end), -0.25);
    ck_assert_str_eq(end, ",");
    ck_assert_double_eq(dlc_text_double("none", &end), 0);
    ck_assert_str_eq(end, "none");
}
END_TEST

START_TEST(text_is_built_and_quoted)
{
    dlc_str text = {0};
    ck_assert_str_eq(dlc_str_text(&text), "");
    for (int i = 0; i < 100; i++)
        dlc_str_printf(&text, "%d,", i);
    ck_assert_uint_eq(text.n, 290);
    dlc_str_deinit(&text);
    dlc_str_add_quoted(&text, "a\"b\\c\n\x01\xff");
    ck_assert_str_eq(dlc_str_text(&text), "\"a\\\"b\\\\c\\n\\x01\\xff\"");
    dlc_str_deinit(&text);
}
END_TEST

START_TEST(tables_find_what_was_put_in)
{
    dlc_table table = {0};
    dlc_arena *own = dlc_arena_create(0);
    int is_new;
    ck_assert_ptr_null(dlc_table_find(&table, "a"));
    for (uintptr_t i = 0; i < 1000; i++) {
        *dlc_table_insert(&table, own, dlc_arena_printf(own, "name %d", (int)i), &is_new) = (void *)i;
        ck_assert_int_eq(is_new, 1);
    }
    for (uintptr_t i = 0; i < 1000; i++)
        ck_assert_ptr_eq(*dlc_table_find(&table, dlc_arena_printf(own, "name %d", (int)i)), (void *)i);
    ck_assert_ptr_eq(*dlc_table_insert(&table, own, "name 7", &is_new), (void *)7);
    ck_assert_int_eq(is_new, 0);
    ck_assert_ptr_null(dlc_table_find(&table, "name 1000"));
    dlc_arena_destroy(own);
}
END_TEST

START_TEST(hashes_are_stable)
{
    ck_assert_uint_eq(dlc_hash("", 0, 0), 0);
    uint64_t seven = dlc_hash("dlc-hash", 7, 1);
    ck_assert_uint_eq(seven, dlc_hash(&"xdlc-hash"[1], 7, 1));
    ck_assert_uint_ne(seven, dlc_hash("dlc-hash", 8, 1));
    ck_assert_uint_ne(seven, dlc_hash("dlc-hash", 7, 2));
}
END_TEST

START_TEST(diagnostics_keep_the_first_status)
{
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    dlc_diag_detail(&diag, "nothing to add to");
    char place[] = "here";
    ck_assert_int_eq(dlc_diag_fail(&diag, DLC_OK, NULL, "a note"), DLC_OK);
    ck_assert_int_eq(dlc_diag_fail(&diag, DLC_INVALID, place, "%d and %s", 3, "four"), DLC_INVALID);
    dlc_diag_detail(&diag, "input %d", 0);
    dlc_diag_detail(&diag, "input %d", 1);
    place[0] = 'X';
    for (int i = 0; i < 20; i++)
        dlc_diag_fail(&diag, DLC_UNSUPPORTED, "there", "more");
    ck_assert_uint_eq(diag.nmessages, 22);
    ck_assert_int_eq(diag.status, DLC_INVALID);
    ck_assert_str_eq(diag.messages[0].place, "");
    ck_assert_str_eq(diag.messages[1].place, "here");
    ck_assert_str_eq(diag.messages[1].text, "3 and four");
    ck_assert_str_eq(diag.messages[1].detail, "input 0\ninput 1");
}
END_TEST

/* --- files --- */

static char folder[] = "/tmp/dlc-test-base-XXXXXX";
static dlc_diag diag;

static void make_folder(void)
{
    setup();
    dlc_diag_init(&diag, arena);
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static int nentries(void)
{
    DIR *dir = opendir(folder);
    int n = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void remove_folder(void)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(folder);
    teardown();
}

static char *in_folder(const char *name)
{
    return dlc_arena_printf(arena, "%s/%s", folder, name);
}

static void write_file(const char *path, const char *text)
{
    dlc_output output;
    ck_assert_int_eq(dlc_output_open(&output, path, &diag), DLC_OK);
    ck_assert_int_eq(dlc_output_write(&output, text, strlen(text), &diag), DLC_OK);
    ck_assert_int_eq(dlc_output_commit(&output, 0644, &diag), DLC_OK);
}

static void check_file(const char *path, const char *text)
{
    dlc_map map;
    ck_assert_int_eq(dlc_map_open(path, &map, &diag), DLC_OK);
    ck_assert_uint_eq(map.size_bytes, strlen(text));
    ck_assert_int_eq(memcmp(map.bytes ? (const char *)map.bytes : "", text, map.size_bytes), 0);
    dlc_map_close(&map);
}

START_TEST(output_is_whole_or_absent)
{
    char *path = in_folder("model.so");
    umask(022);
    write_file(path, "first");
    check_file(path, "first");
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0644);
    dlc_output output;
    ck_assert_int_eq(dlc_output_open(&output, path, &diag), DLC_OK);
    ck_assert_int_eq(dlc_output_write(&output, "half", 4, &diag), DLC_OK);
    check_file(path, "first"); /* as long as nothing was committed */
    ck_assert_int_eq(nentries(), 1);
    dlc_output_abandon(&output);
    check_file(path, "first");
    ck_assert_int_eq(nentries(), 1);
    write_file(path, "second");
    check_file(path, "second");
    write_file(in_folder("empty"), "");
    check_file(in_folder("empty"), "");
    ck_assert_int_eq(nentries(), 2);
}
END_TEST

/* Whatever is written at once, the file grows by whole blocks until it is flushed. */
START_TEST(output_grows_by_blocks)
{
    static const char text[] = "one, two and three blocks of sixteen bytes each, and a bit more";
    const size_t parts[] = {3, 1, 12, 20, 2, 25}, flushed[] = {0, 0, 16, 32, 32, 0};
    char *path = in_folder("blocks");
    dlc_output output;
    ck_assert_int_eq(dlc_output_open(&output, path, &diag), DLC_OK);
    output.block_bytes = 16;
    size_t at = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; at += parts[i++]) {
        ck_assert_int_eq(dlc_output_write(&output, text + at, parts[i], &diag), DLC_OK);
        if (flushed[i])
            ck_assert_uint_eq((size_t)lseek(output.fd, 0, SEEK_END), flushed[i]);
        if (i == 4)
            ck_assert_int_eq(dlc_output_flush(&output, &diag), DLC_OK);
    }
    ck_assert_uint_eq(at, sizeof text - 1);
    ck_assert_int_eq(dlc_output_commit(&output, 0644, &diag), DLC_OK);
    check_file(path, text);
}
END_TEST

START_TEST(links_stay_and_devices_are_refused)
{
    char *path = in_folder("target"), *link = in_folder("link");
    write_file(path, "old");
    ck_assert_int_eq(symlink(path, link), 0);
    write_file(link, "new");
    struct stat info;
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    check_file(path, "new");
    dlc_output output;
    dlc_map map;
    ck_assert_int_eq(dlc_output_open(&output, "/dev/null", &diag), DLC_IO);
    ck_assert_str_eq(diag.messages[0].text, "exists and is no regular file");
    ck_assert_int_eq(dlc_output_open(&output, in_folder("no/such/folder"), &diag), DLC_IO);
    ck_assert_int_eq(dlc_map_open(in_folder("absent"), &map, &diag), DLC_IO);
    ck_assert_str_eq(diag.messages[2].text, "cannot be opened: No such file or directory");
    ck_assert_int_eq(dlc_map_open(folder, &map, &diag), DLC_IO);
    ck_assert_int_eq(mkfifo(in_folder("fifo"), 0600), 0);
    ck_assert_int_eq(dlc_map_open(in_folder("fifo"), &map, &diag), DLC_IO);
    ck_assert_str_eq(diag.messages[4].text, "is no regular file");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base");
    TCase *memory = tcase_create("memory");
    tcase_add_checked_fixture(memory, setup, teardown);
    tcase_add_test(memory, arenas_align_zero_and_release);
    tcase_add_test(memory, bulk_memory_settles);

    tcase_add_test(memory, budgets_and_overflow_end_in_the_handler);
    tcase_add_test(memory, vectors_grow);
    tcase_add_test(memory, numbers_read_back);
    tcase_add_test(memory, characters_are_ascii);
    tcase_add_test(memory, numbers_have_a_point);
    tcase_add_test(memory, text_is_built_and_quoted);
    tcase_add_test(memory, hashes_are_stable);
    tcase_add_test(memory, tables_find_what_was_put_in);
    tcase_add_test(memory, diagnostics_keep_the_first_status);
    suite_add_tcase(suite, memory);
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, make_folder, remove_folder);
    tcase_add_test(files, output_is_whole_or_absent);
    tcase_add_test(files, output_grows_by_blocks);
    tcase_add_test(files, links_stay_and_devices_are_refused);
    suite_add_tcase(suite, files);
    return suite_run(suite);
}
