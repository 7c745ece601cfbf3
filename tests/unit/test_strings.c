/* Strings of a run and the steps that make them, against results written out by hand. */
#include <check.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/import_string.h"
#include "runtime/internal.h"
#include "tests/unit/suite.h"

static dlcrt_strings strings;

static void teardown(void)
{
    dlcrt_strings_free(&strings);
}

static int64_t number(const char *text)
{
    int64_t result;
    ck_assert_int_eq(dlcrt_strings_add(&strings, text, strlen(text), &result), DLC_OK);
    return result;
}

static const char *text_of(int64_t of)
{
    const char *text = dlcrt_strings_at(&strings, of);
    return text ? text : "(none)";
}

static dlcrt_operand list_of(dlc_dtype dtype, void *data, int64_t n)
{
    return (dlcrt_operand){.data = data, .dtype = dtype, .rank = 1, .dims = {n}};
}

/* --- the table --- */
START_TEST(equal_strings_have_one_number)
{
    char text[32];
    ck_assert_int_eq(dlcrt_strings_fix(&strings, ""), DLC_OK);
    ck_assert_int_eq(dlcrt_strings_fix(&strings, "fixed"), DLC_OK);
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(number(""), 0);
        ck_assert_int_eq(number("fixed"), 1);
        for (int i = 0; i < 5000; i++) {
            snprintf(text, sizeof text, "s%d", i);
            ck_assert_int_eq(number(text), i + 2);
            ck_assert_str_eq(text_of(i + 2), text);
        }
        ck_assert_int_eq(number("s4999"), 5001);
        ck_assert_ptr_null(dlcrt_strings_at(&strings, 5002));
        ck_assert_ptr_null(dlcrt_strings_at(&strings, -1));
        dlcrt_strings_reset(&strings);
        ck_assert_ptr_null(dlcrt_strings_at(&strings, 2));
        ck_assert_str_eq(text_of(1), "fixed");
    }
    ck_assert_str_eq(text_of(0), "");
}
END_TEST

START_TEST(long_strings_and_none_before)
{
    size_t n = 100000;
    char *text = malloc(n + 1);
    memset(text, 'x', n);
    text[n] = '\0';
    int64_t first = number(text), second = number("y");
    ck_assert_int_eq(first, 1); /* 0 is the empty string even where nobody brought it */
    ck_assert_str_eq(text_of(first), text);
    ck_assert_str_eq(text_of(second), "y");
    ck_assert_str_eq(text_of(0), "");
    free(text);
}
END_TEST

/* --- joining and splitting --- */
START_TEST(strings_are_joined)
{
    int64_t x[2] = {number("ab"), 0}, y[2] = {number("é"), number("z")}, z[2];
    dlcrt_operand operands[3] = {list_of(DLC_STR, x, 2), list_of(DLC_STR, y, 2), list_of(DLC_STR, z, 2)};
    dlcrt_opaque_args args = {operands, NULL, "join", &strings, NULL};
    ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_TEXT_JOIN].run(&args), DLC_OK);
    ck_assert_str_eq(text_of(z[0]), "abé");
    ck_assert_int_eq(z[1], y[1]);
    x[1] = 77;
    ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_TEXT_JOIN].run(&args), DLC_INVALID);
    ck_assert_str_eq(dlcrt_last_error(), "node 'join': input 0: element 1 is number 77 of 5 strings");
}
END_TEST

static const struct {
    const char *text, *delimiter;
    int64_t most;
    const char *parts; /* with | behind each */
} splits[] = {
    {"a.b.c", ".", -1, "a|b|c|"},
    {"a.b.c", ".", 1, "a|b.c|"},
    {"a.b.c", ".", 0, "a.b.c|"},
    {".a..b.", ".", -1, "|a||b||"},
    {"", ".", -1, "|"},
    {"a<>b<>", "<>", -1, "a|b||"},
    {"a<b", "<>", -1, "a<b|"},
    {" a \t b\n", "", -1, "a|b|"},
    {" a  b c ", "", 1, "a|b c |"},
    {" a b ", "", 0, "a b |"},
    {"", "", -1, ""},
    {"  ", "", -1, ""},
    {"a\u00a0b\u3000c", "", -1, "a|b|c|"},
};

START_TEST(strings_are_split_as_python_does)
{
    int64_t x[1] = {number(splits[_i].text)}, delimiter = number(splits[_i].delimiter), parts[8], count = -1, width;
    dlcrt_operand operands[4] = {list_of(DLC_STR, x, 1), list_of(DLC_STR, &delimiter, 1), list_of(DLC_STR, parts, 0),
                                 list_of(DLC_I64, &count, 1)};
    dlcrt_opaque_args args = {operands, &splits[_i].most, "split", &strings, NULL};
    char found[64] = "";
    ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_TEXT_SPLIT].count(&args, &width), DLC_OK);
    operands[2] = (dlcrt_operand){.data = parts, .dtype = DLC_STR, .rank = 2, .dims = {1, width + 1}};
    ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_TEXT_SPLIT].run(&args), DLC_OK);
    ck_assert_int_eq(count, width);
    for (int64_t i = 0; i < count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s|", text_of(parts[i]));
    ck_assert_str_eq(found, splits[_i].parts);
    ck_assert_int_eq(parts[width], 0);
}
END_TEST

/* --- stop words and cases --- */
static const struct {
    const char *words[4], *stop[2];
    int64_t attrs[2]; /* case, exact */
    const char *kept;
} normals[] = {
    {{"Monday", "tuesday"}, {"monday"}, {0, 0}, "tuesday|"},
    {{"Monday", "tuesday"}, {"monday"}, {0, 1}, "Monday|tuesday|"},
    {{"Monday", "Ärger", "ǆ"}, {NULL}, {1, 0}, "monday|ärger|ǆ|"},
    {{"Straße", "ärger", "πя"}, {NULL}, {2, 0}, "STRAßE|ÄRGER|ΠЯ|"},
    {{"É"}, {"é"}, {2, 0}, "|"},
    {{NULL}, {"x"}, {2, 0}, "|"},
    {{"a\xff"}, {NULL}, {2, 1}, "A\xff|"},
};

START_TEST(stop_words_go_and_letters_change)
{
    int64_t words[4], stop[2], kept[4], n = 0, nstop = 0, count;
    char found[64] = "";
    for (; n < 4 && normals[_i].words[n]; n++)
        words[n] = number(normals[_i].words[n]);
    for (; nstop < 2 && normals[_i].stop[nstop]; nstop++)
        stop[nstop] = number(normals[_i].stop[nstop]);
    dlcrt_operand operands[3] = {list_of(DLC_STR, words, n), list_of(DLC_STR, stop, nstop), list_of(DLC_STR, kept, 0)};
    dlcrt_opaque_args args = {operands, normals[_i].attrs, "normal", &strings, NULL};
    ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_TEXT_NORMALIZE].count(&args, &count), DLC_OK);
    operands[2].dims[0] = count;
    ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_TEXT_NORMALIZE].run(&args), DLC_OK);
    for (int64_t i = 0; i < count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s|", text_of(kept[i]));
    ck_assert_str_eq(found, normals[_i].kept);
}
END_TEST

/* --- regular expressions --- */
static const struct {
    const char *pattern, *matching, *others; /* separated by | */
} expressions[] = {
    {"", "", "a"},
    {"abc", "abc", "ab|abcd|"},
    {"a*", "|a|aaaa", "b|ab"},
    {"a+b?", "a|aab|ab", "|b|abb"},
    {"(a|bc)*d", "d|ad|bcad|abcbcd", "bd|acd|"},
    {"a|b|cd|", "a|b|cd|", "c|ab"},
    {"(?:a|b)(?P<name>c|d)(?<other>e)", "ace|bde", "abe"},
    {"a{3}", "aaa", "aa|aaaa"},
    {"a{2,}", "aa|aaaaa", "a|"},
    {"(ab){1,2}c{0,1}", "ab|abab|ababc", "abababc|c"},
    {"x{0}y", "y", "xy"},
    {"a{,2}", "a{,2}", "aa"},
    {"(a*)*", "|aaa", "b"},
    {"(a?){3}a{3}", "aaa|aaaaaa", "aa|aaaaaaa"},
    {"(|a)+", "|a|aa", "b"},
    {"((a+b)+c)+", "abc|aababcabc", "abab|c"},
    {"[a-c\\d_]+", "abc_09", "abcd|"},
    {"[^a-c]", "d|é|\n", "a|b|dd"},
    {"[]a]", "]|a", "b"},
    {"[^]a]", "b", "]|a"},
    {"[a\\-z.]*", "a-z.", "b"},
    {"[a-]", "a|-", "b"},
    {"[[:alpha:][:^space:]]", "a|1", " "},
    {".", "a|é|☃", "\n|ab|"},
    {"\\d\\D\\w\\W\\s\\S", "1a_- x", "aaa- x"},
    {"^a$", "a", "ab"},
    {"a\\b.*", "a|a b", "ab"},
    {"a\\B.*", "ab", "a|a b"},
    {"\\Aab\\z", "ab", "abc"},
    {"\\x41\\x{1F600}\\t", "A😀\t", "A"},
    {"\\Qa.b*\\Ec", "a.b*c", "axbbc"},
    {"\\.\\*\\(\\)\\[\\]\\{\\}", ".*()[]{}", "a"},
    {"a*?b+?", "b|aabb", "a"},
    {"[a-zA-Z0-9_.+-]+@[a-zA-Z0-9-]+\\.[a-zA-Z0-9-.]+", "a.b@c-d.e.f", "a@b|@c.d"},
    {"[é-ü]+", "éü", "e"},
};

static int matches(const int64_t *program, uint32_t nrows, const char *text, size_t n)
{
    int64_t x;
    uint8_t result = 2;
    ck_assert_int_eq(dlcrt_strings_add(&strings, text, n, &x), DLC_OK);
    dlcrt_operand operands[3] = {list_of(DLC_STR, &x, 1),
                                 {.data = (void *)(uintptr_t)program, .dtype = DLC_I64, .rank = 2, .dims = {nrows, 3}},
                                 list_of(DLC_BOOL, &result, 1)};
    dlcrt_opaque_args args = {operands, NULL, "match", &strings, NULL};
    ck_assert_msg(dlcrt_opaques[DLC_OPAQUE_TEXT_MATCH].run(&args) == DLC_OK, "%s", dlcrt_last_error());
    return result;
}

static void check_all(const char *pattern, const int64_t *program, uint32_t nrows, const char *list, int wanted)
{
    for (const char *at = list;; at++) {
        size_t n = strcspn(at, "|");
        ck_assert_msg(matches(program, nrows, at, n) == wanted, "'%s': '%.*s' should %smatch", pattern, (int)n, at, wanted ? "" : "not ");
        at += n;
        if (!*at)
            return;
    }
}

START_TEST(whole_strings_match)
{
    const char *wrong;
    uint32_t nrows;
    dlc_arena *arena = dlc_arena_create(0);
    const int64_t *program = im_regex(arena, expressions[_i].pattern, &nrows, &wrong);
    ck_assert_msg(program != NULL, "%s: %s", expressions[_i].pattern, wrong);
    check_all(expressions[_i].pattern, program, nrows, expressions[_i].matching, 1);
    check_all(expressions[_i].pattern, program, nrows, expressions[_i].others, 0);
    dlc_arena_destroy(arena);
}
END_TEST

static const struct {
    const char *pattern, *wrong;
} refusals[] = {
    {"(a", "a group does not end"},         {"a)", "a group ends that does not begin"},
    {"[a", "a set of characters"},          {"*a", "repeats nothing"},
    {"a**", "repeats a repetition"},        {"a{3,2}", "the lower number first"},
    {"a{1001}", "0 to 1000 times"},         {"(?i)a", "flags and look-around"},
    {"(?=a)", "flags and look-around"},     {"(?<!a)b", "flags and look-around"},
    {"\\pL", "behind a backslash"},         {"(a)\\1", "behind a backslash"},
    {"[z-a]", "ends before it begins"},     {"\\x{110000}", "written wrongly"},
    {"\\", "behind a backslash"},           {"[[:nothing:]]", "is unknown"},
    {"((a{100}){100}){100}", "too long"},   {"\xff", "no UTF-8"},
    {"[\\", "behind a backslash"},          {"\\x{41", "written wrongly"},
};

START_TEST(other_expressions_are_refused)
{
    const char *wrong = "";
    uint32_t nrows;
    dlc_arena *arena = dlc_arena_create(0);
    ck_assert_msg(!im_regex(arena, refusals[_i].pattern, &nrows, &wrong), "%s", refusals[_i].pattern);
    ck_assert_msg(strstr(wrong, refusals[_i].wrong) != NULL, "%s: %s", refusals[_i].pattern, wrong);
    dlc_arena_destroy(arena);
}
END_TEST

/* A plan may hold anything: rows that lead out of the program are refused or match nothing. */
START_TEST(forged_programs_lead_nowhere)
{
    static const int64_t values[] = {-1, 0, 1, 2, 3, 4, 5, 1 << 20, INT64_MAX, INT64_MIN};
    enum { NVALUES = sizeof values / sizeof *values };
    int64_t program[6];
    uint8_t result;
    int64_t x = number("ab");
    for (int at = 0; at < 6; at++)
        for (int v = 0; v < NVALUES * NVALUES; v++) {
            const int64_t plain[6] = {DLC_MATCH_SET, 1, 1, DLC_MATCH_SPLIT, 0, 1};
            memcpy(program, plain, sizeof program);
            program[at] = values[v % NVALUES];
            program[(at + 1) % 6] = values[v / NVALUES];
            dlcrt_operand operands[3] = {list_of(DLC_STR, &x, 1), list_of(DLC_I64, program, 6), list_of(DLC_BOOL, &result, 1)};
            dlcrt_opaque_args args = {operands, NULL, "match", &strings, NULL};
            (void)!dlcrt_opaques[DLC_OPAQUE_TEXT_MATCH].run(&args);
        }
}
END_TEST

/* --- numbers --- */
static const struct {
    dlc_dtype dtype;
    double value;
    const char *text;
} written[] = {
    {DLC_F32, 0.039187793f, "0.039187793"},
    {DLC_F32, 0.1f, "0.1"},
    {DLC_F32, 1, "1.0"},
    {DLC_F32, -0.0f, "-0.0"},
    {DLC_F32, 1e-5f, "1e-05"},
    {DLC_F32, 1.5e-5f, "1.5e-05"},
    {DLC_F32, 0.0001f, "0.0001"},
    {DLC_F32, 1e16f, "1e+16"},
    {DLC_F32, 123456792.0f, "123456790.0"},
    {DLC_F32, FLT_MAX, "3.4028235e+38"},
    {DLC_F32, 0x1p-149f, "1e-45"},
    {DLC_F32, INFINITY, "inf"},
    {DLC_F32, -INFINITY, "-inf"},
    {DLC_F32, NAN, "nan"},
    {DLC_F64, 0.1, "0.1"},
    {DLC_F64, 1.0 / 3, "0.3333333333333333"},
    {DLC_F64, DBL_MAX, "1.7976931348623157e+308"},
    {DLC_F64, 5e-324, "5e-324"},
    {DLC_F64, 1e22, "1e+22"},
    {DLC_F64, 9007199254740993.0, "9007199254740992.0"},
};

START_TEST(floats_are_written_with_the_fewest_digits)
{
    float single = (float)written[_i].value;
    double wide = written[_i].value;
    int64_t result;
    dlcrt_operand operands[2] = {list_of(written[_i].dtype, written[_i].dtype == DLC_F32 ? (void *)&single : &wide, 1),
                                 list_of(DLC_STR, &result, 1)};
    dlcrt_opaque_args args = {operands, NULL, "write", &strings, NULL};
    ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_TEXT_WRITE].run(&args), DLC_OK);
    ck_assert_str_eq(text_of(result), written[_i].text);
}
END_TEST

/* Every float of 16 bits reads back as itself from the digits written, and no shorter decimal does. */
START_TEST(halves_read_back)
{
    static const struct {
        uint16_t bits;
        const char *text;
    } halves[] = {{0x3c00, "1.0"}, {0x2e66, "0.1"}, {0x7bff, "65500.0"}, {0x0001, "6e-08"}, {0x3555, "0.3333"}, {0xfc00, "-inf"}, {0x0400, "6.104e-05"}};
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        uint16_t bits = halves[i].bits;
        int64_t result;
        dlcrt_operand operands[2] = {list_of(DLC_F16, &bits, 1), list_of(DLC_STR, &result, 1)};
        dlcrt_opaque_args args = {operands, NULL, "write", &strings, NULL};
        ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_TEXT_WRITE].run(&args), DLC_OK);
        ck_assert_str_eq(text_of(result), halves[i].text);
    }
}
END_TEST

static const struct {
    dlc_dtype dtype;
    const char *text;
    double value; /* NAN: nan */
    int is_refused;
} numerals[] = {
    {DLC_F32, "3.14", 3.14f, 0},
    {DLC_F64, "3.14", 3.14, 0},
    {DLC_F64, " -1E8\t", -1e8, 0},
    {DLC_F64, "+.5", 0.5, 0},
    {DLC_F64, "5.", 5, 0},
    {DLC_F64, "1e-400", 0, 0},
    {DLC_F64, "1e400", INFINITY, 0},
    {DLC_F64, "0.000000000000000000000000000000000001e36", 1, 0},
    {DLC_F64, "-INF", -INFINITY, 0},
    {DLC_F64, "NaN", NAN, 0},
    {DLC_F64, "Infinity", INFINITY, 0},
    {DLC_F64, "9007199254740993", 9007199254740992.0, 0},
    {DLC_F64, "1,5", 0, 1},
    {DLC_F64, "", 0, 1},
    {DLC_F64, ".", 0, 1},
    {DLC_F64, "1e", 0, 1},
    {DLC_F64, "0x10", 0, 1},
    {DLC_I64, "-42", -42, 0},
    {DLC_I8, "-128", -128, 0},
    {DLC_I8, "-129", 0, 1},
    {DLC_U8, "255", 255, 0},
    {DLC_U8, "256", 0, 1},
    {DLC_U8, "-1", 0, 1},
    {DLC_I64, "2.5", 0, 1},
    {DLC_I64, "99999999999999999999", 0, 1},
};

START_TEST(numbers_are_read)
{
    int64_t x = number(numerals[_i].text), bits = 0;
    dlc_dtype dtype = numerals[_i].dtype;
    dlcrt_operand operands[2] = {list_of(DLC_STR, &x, 1), list_of(dtype, &bits, 1)};
    dlcrt_opaque_args args = {operands, NULL, "read", &strings, NULL};
    dlc_status status = dlcrt_opaques[DLC_OPAQUE_TEXT_READ].run(&args);
    ck_assert_int_eq(status, numerals[_i].is_refused ? DLC_INVALID : DLC_OK);
    if (status)
        return;
    float single;
    double wide;
    memcpy(&single, &bits, sizeof single);
    memcpy(&wide, &bits, sizeof wide);
    double found = dtype == DLC_F32 ? (double)single : dtype == DLC_F64 ? wide : dtype == DLC_I8 ? (int8_t)bits : (double)bits;
    ck_assert_msg(found == numerals[_i].value || (isnan(found) && isnan(numerals[_i].value)), "%s: %g", numerals[_i].text, found);
}
END_TEST

#define LOOP(tests, test, rows) tcase_add_loop_test(tests, test, 0, sizeof(rows) / sizeof *(rows))

int main(void)
{
    Suite *suite = suite_create("strings");
    TCase *tests = tcase_create("strings");
    setlocale(LC_ALL, ""); /* no locale of the program has a say */
    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, equal_strings_have_one_number);
    tcase_add_test(tests, long_strings_and_none_before);
    tcase_add_test(tests, strings_are_joined);
    LOOP(tests, strings_are_split_as_python_does, splits);
    LOOP(tests, stop_words_go_and_letters_change, normals);
    LOOP(tests, whole_strings_match, expressions);
    LOOP(tests, other_expressions_are_refused, refusals);
    tcase_add_test(tests, forged_programs_lead_nowhere);
    LOOP(tests, floats_are_written_with_the_fewest_digits, written);
    tcase_add_test(tests, halves_read_back);
    LOOP(tests, numbers_are_read, numerals);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
