/*
 * The compiler within a program that has set a locale with a decimal comma, or with letters beyond
 * ASCII: not a byte of what it writes differs, and it reads what it wrote. Where no such locale is
 * installed, localedef makes one in a temporary folder; where that is absent too, this is skipped.
 */
#include "base/arena.h"
#include "base/str.h"
#include "base/text.h"
#include "dlc/dlc.h"
#include "ir/kernel/kernel.h"

#include <check.h>
#include <ctype.h>
#include <ftw.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static char folder[] = "/tmp/dlc_locale.XXXXXX";

/* ---- locales ---- */

static int has_comma(void)
{
    return strcmp(localeconv()->decimal_point, ",") == 0;
}

static int has_latin_letters(void)
{
    return isalpha(0xe4) != 0;
}

static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "pl_PL.UTF-8",
                                     "ru_RU.UTF-8", "pt_BR.UTF-8", NULL};
static const char *const latins[] = {"de_DE.ISO-8859-1", "en_US.ISO-8859-1", "fr_FR.ISO-8859-1",
                                     NULL};

/* The first of `names` that is installed. */
static const char *first_with(const char *const *names, int (*has)(void))
{
    const char *found = NULL;
    for (; *names && !found; names++)
        if (setlocale(LC_ALL, *names) && has())
            found = *names;
    setlocale(LC_ALL, "C");
    return found;
}

static const char *comma, *latin; /* NULL: there is none */

static void find_locales(void)
{
    comma = first_with(commas, has_comma);
    latin = first_with(latins, has_latin_letters);
}

/* A locale "de_DE.UTF-8" from the C library's sources. */
static void make_locale(const char *name)
{
    char command[256];
    snprintf(command, sizeof command, "localedef -c -i %.5s -f %s %s/%s >/dev/null 2>&1", name,
             name + 6, folder, name);
    if (system(command) != 0)
        printf("localedef makes no %s, or warns\n", name);
}

static void make_locales(void)
{
    make_locale(commas[0]);
    make_locale(latins[0]);
    setenv("LOCPATH", folder, 1); /* hides those that are installed */
    find_locales();
    if (comma && latin)
        return;
    unsetenv("LOCPATH");
    find_locales();
}

static void enter(const char *name)
{
    ck_assert_ptr_nonnull(setlocale(LC_ALL, name));
}

static void leave(void)
{
    setlocale(LC_ALL, "C");
}

/* ---- base ---- */

static void check_numbers(void)
{
    static const char text[] = "-1.5e3;";
    dlc_arena *arena = dlc_arena_create(0);
    dlc_str str = {0};
    char *end;
    ck_assert_double_eq(dlc_text_double(text, &end), -1500);
    ck_assert_ptr_eq(end, text + 6);
    dlc_str_add_double(&str, 0.1);
    dlc_str_printf(&str, " %g", 2.5);
    ck_assert_str_eq(dlc_str_text(&str), "0.1 2.5");
    ck_assert_str_eq(dlc_arena_printf(arena, "%a %.3f", 1.5, 0.25), "0x1.8p+0 0.250");
    dlc_str_deinit(&str);
    dlc_arena_destroy(arena);
}

static void *check_on_thread(void *unused)
{
    check_numbers();
    return unused;
}

START_TEST(numbers_have_a_point)
{
    pthread_t thread;
    char own[8];
    enter(comma);
    check_numbers();
    ck_assert_int_eq(pthread_create(&thread, NULL, check_on_thread, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    snprintf(own, sizeof own, "%g", 0.5); /* the program's own texts stay as it wants them */
    ck_assert_str_eq(own, "0,5");
}
END_TEST

/* ---- the library ---- */

static const char numbers[] = "graph @numbers(%x: f32[n,4], %w: f64[3]) -> %y, %z {\n"
                              "  %c: f32[4] = const [0.1, 2.5, -1e-07, 0.333333343]\n"
                              "  %a: f32[n,4] = mul %x, %c\n"
                              "  %l: f32[n,4] = leaky_relu %a {alpha=0.01}\n"
                              "  %y: f32[n,4] = exp %l\n"
                              "  %d: f64[1] = const [0.7]\n"
                              "  %p: f64[3] = pow %w, %d\n"
                              "  %z: f64[3] = elu %p {alpha=1.75}\n"
                              "}\n";

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fputs(text, file) < 0, 0);
    fclose(file);
}

static void add_file(dlc_str *out, const char *path)
{
    char bytes[4096];
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, file)) > 0;)
        dlc_str_addn(out, bytes, n);
    fclose(file);
}

static void check_ok(const dlc_model *model, dlc_status status)
{
    dlc_model_note note = {.text = "no message"};
    if (status != DLC_OK)
        (void)dlc_model_message(model, 0, &note);
    ck_assert_msg(status == DLC_OK, "%s", note.text);
}

static dlc_model *open_model(const char *path, const dlc_options *options)
{
    dlc_model *model;
    dlc_status status = dlc_model_open(path, options, &model);
    check_ok(model, status);
    return model;
}

static void add_text(dlc_str *out, dlc_model *model, dlc_text_kind kind, const char *format)
{
    const char *text;
    check_ok(model, dlc_model_text(model, kind, format, &text));
    dlc_str_add(out, text);
}

static void add_artifact(dlc_str *out, const char *target, const char *kind)
{
    int is_gpu = strcmp(kind, "cu") == 0;
    dlc_options options = {.target = target, .emulate_gpu = is_gpu, .jobs = 2};
    dlc_model *model = open_model("numbers.dlc", &options);
    check_ok(model, dlc_model_write(model, kind, "artifact", "numbers"));
    add_file(out, "artifact");
    dlc_model_close(model);
}

static void add_graph(dlc_str *out, const char *passes)
{
    dlc_options options = {.target = "sm_75", .emulate_gpu = 1, .passes = passes};
    dlc_model *model = open_model("numbers.dlc", &options);
    add_text(out, model, DLC_TEXT_GRAPH, NULL);
    dlc_model_close(model);
}

/* Text of the graph after some passes; what is read from it has the same text. */
static void add_reread(dlc_str *out, const char *passes)
{
    dlc_str first = {0}, second = {0};
    add_graph(&first, passes);
    write_file("again.dlc", dlc_str_text(&first));
    dlc_model *model = open_model("again.dlc", NULL);
    add_text(&second, model, DLC_TEXT_IMPORTED, NULL);
    dlc_model_close(model);
    ck_assert_str_eq(dlc_str_text(&first), dlc_str_text(&second));
    dlc_str_add(out, dlc_str_text(&first));
    dlc_str_deinit(&first);
    dlc_str_deinit(&second);
}

/* The same for a kernel, whose texts are read by the lexer of ir/. */
static void add_kernel(dlc_str *out)
{
    static const char text[] = "kernel @half(x: f32[8]) -> (y: f32[8]) {\n"
                               "  axis i=8\n"
                               "  y[i] = x[i] * 0.5 + 2.5e-07\n"
                               "}\n";
    dlc_arena *arena = dlc_arena_create(0);
    dlc_kernel *kernel;
    dlc_diag diag;
    dlc_str printed = {0};
    dlc_diag_init(&diag, arena);
    dlc_status status = dlc_kernel_parse(text, arena, &diag, &kernel);
    ck_assert_msg(status == DLC_OK, "%s", status == DLC_OK ? "" : diag.messages[0].text);
    dlc_kernel_print(kernel, 1, &printed);
    ck_assert_str_eq(dlc_str_text(&printed), text);
    dlc_str_add(out, text);
    dlc_str_deinit(&printed);
    dlc_arena_destroy(arena);
}

/* Everything the library says and writes about a model. */
static dlc_str everything(void)
{
    static const char *const artifacts[][2] = {{"x86-64-v3", "ll"},
                                               {"x86-64-v3", "asm"},
                                               {"x86-64-v3", "o"},
                                               {"x86-64-v3", "h"},
                                               {"sm_75", "cu"}};
    dlc_str out = {0};
    write_file("numbers.dlc", numbers);
    add_reread(&out, "const_fold");
    add_reread(&out, "const_fold,simplify");
    add_graph(&out, "layout,fuse,lower,choose");
    add_kernel(&out);
    for (size_t i = 0; i < sizeof artifacts / sizeof *artifacts; i++)
        add_artifact(&out, artifacts[i][0], artifacts[i][1]);
    dlc_model *model = open_model("numbers.dlc", NULL);
    add_text(&out, model, DLC_TEXT_EXPLAIN, "text");
    add_text(&out, model, DLC_TEXT_EXPLAIN, "json");
    add_text(&out, model, DLC_TEXT_INSPECT, "text");
    add_text(&out, model, DLC_TEXT_INSPECT, "json");
    add_text(&out, model, DLC_TEXT_INSPECT, "dot");
    dlc_model_close(model);
    return out;
}

START_TEST(no_byte_differs)
{
    dlc_str plain = everything();
    enter(comma);
    dlc_str under_comma = everything();
    ck_assert_ptr_nonnull(strstr(dlc_str_text(&plain), "0.01"));
    for (size_t i = 0; i < plain.n && i < under_comma.n; i++)
        ck_assert_msg(plain.data[i] == under_comma.data[i], "\"%.60s\" became \"%.60s\"",
                      plain.data + (i < 20 ? 0 : i - 20), under_comma.data + (i < 20 ? 0 : i - 20));
    ck_assert_uint_eq(plain.n, under_comma.n);
    dlc_str_deinit(&plain);
    dlc_str_deinit(&under_comma);
}
END_TEST

START_TEST(equations_take_ascii_letters)
{
    dlc_model *model;
    dlc_model_note note;
    enter(latin);
    write_file("latin.dlc", "graph @latin(%x: f32[2,3]) -> %y {\n"
                            "  %y: f32[3] = einsum %x {equation=\"\\xe4j->j\"}\n"
                            "}\n");
    ck_assert_int_eq(dlc_model_open("latin.dlc", NULL, &model), DLC_INVALID);
    ck_assert(dlc_model_message(model, 0, &note));
    ck_assert_ptr_nonnull(strstr(note.text, "letters, ',' and \"->\" are possible"));
    dlc_model_close(model);
}
END_TEST

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info, (void)type, (void)place;
    return remove(path);
}

int main(void)
{
    enum { SKIPPED = 77 };
    if (!mkdtemp(folder) || chdir(folder))
        return 1;
    find_locales();
    if (!comma || !latin)
        make_locales();
    Suite *suite = suite_create("locale");
    TCase *tcase = tcase_create("host");
    tcase_set_timeout(tcase, 200);
    tcase_add_checked_fixture(tcase, NULL, leave);
    if (comma) {
        tcase_add_test(tcase, numbers_have_a_point);
        tcase_add_test(tcase, no_byte_differs);
    }
    if (latin)
        tcase_add_test(tcase, equations_take_ascii_letters);
    suite_add_tcase(suite, tcase);
    int failed = suite_run(suite);
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    if (!comma || !latin)
        printf("skipped in part: no locale %s is installed, and localedef makes none\n",
               comma ? "with Latin-1 letters" : "with a decimal comma");
    return failed ? 1 : !comma || !latin ? SKIPPED : 0;
}
