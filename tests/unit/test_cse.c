/* Large constants, of which cse looks at some bytes first: equal ones become one, and no others, wherever they differ. */
#include "tests/unit/small_graph.h"

/* Where the second differs from the first, of 16 KB; -1: nowhere. */
static const int places[] = {-1, 0, 255, 256, 2600, 8191, 8192, 8447, 8448, 16127, 16128, 16383};

START_TEST(large_constants_meet_when_all_bytes_are_equal)
{
    int at = places[_i];
    small_graph s = small_begin("in x 64,64; const a 64,64; const b 64,64; const c 64,64; const d 64,64; "
                                "e = add x a; f = mul e b; g = sub f c; h = max g d; out h");
    const char *names[] = {"a", "b", "c", "d"};
    char *bytes[4];
    for (int i = 0; i < 4; i++) {
        dlc_tensor *tensor = (dlc_tensor *)(uintptr_t)small_find(&s, names[i])->data;
        ck_assert_uint_eq(tensor->size_bytes, 16384);
        bytes[i] = memcpy(dlc_arena_alloc(s.arena, tensor->size_bytes, 64), i ? bytes[0] : tensor->bytes, tensor->size_bytes);
        tensor->bytes = bytes[i];
    }
    if (at >= 0)
        bytes[1][at] ^= 1, bytes[3][at] ^= 1;
    s.ctx = (dlc_pass_ctx){.graph = s.graph, .scratch = dlc_arena_create(0), .diag = s.diag};
    ck_assert_int_eq(dlc_pass_cse(&s.ctx), DLC_OK);
    dlc_arena_destroy(s.ctx.scratch);
    ck_assert_uint_eq(s.ctx.changes, at < 0 ? 3 : 2);
    ck_assert_ptr_eq(small_find(&s, "g")->def->inputs[1], small_find(&s, "a"));
    ck_assert_ptr_eq(small_find(&s, "h")->def->inputs[1], small_find(&s, at < 0 ? "a" : "b"));
    small_end(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cse");
    TCase *tcase = tcase_create("cse");
    tcase_add_loop_test(tcase, large_constants_meet_when_all_bytes_are_equal, 0, sizeof places / sizeof *places);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
