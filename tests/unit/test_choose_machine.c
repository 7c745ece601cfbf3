/* Choices that follow a machine's facts: its caches, their rates, its cores' steps. */
#include "tests/unit/chosen.h"

/* The product of `rows` rows of 64 by 64 x 256, stored as the type. */
static dlc_chooser chooser_of(const dlc_target *target, int rows, const char *type, dlc_arena *arena)
{
    dlc_chooser c = {0};
    dlc_diag diag;
    dlc_kernel *kernel;
    const char *text = dlc_arena_printf(arena,
                                        "kernel @f(x: f32[%d,64], w: f32[64,256]@const) -> (y: %s[%d,256]) {\n  axis i=%d, j=256, k=64\n"
                                        "  s[i,j] = sum(k) x[i, k] * w[k, j]\n  a[i,j] = %s(s) -> y[i, j]\n}\n",
                                        rows, type, rows, rows, type);
    dlc_diag_init(&diag, arena);
    ck_assert_int_eq(dlc_kernel_parse(text, arena, &diag, &kernel), DLC_OK);
    dlc_choose_facts(&c, kernel, target, arena);
    return c;
}

/* The target on a machine of its own, which starts as the target's is, and an L2 of so many bytes. */
static dlc_target on_machine(const char *name, int64_t l2_bytes, dlc_machine *machine)
{
    dlc_target target = *dlc_target_find(name);
    *machine = *target.machine;
    target.machine = machine;
    target.l2_bytes = l2_bytes;
    return target;
}

/* The schedule that is chosen has this part, or not. */
static void expect_chosen(const dlc_target *target, const char *kernel_text, const char *part, int is_there)
{
    dlc_arena *arena = dlc_arena_create(0);
    const char *text = chosen_on(target, kernel_text, arena);
    ck_assert_msg(!strstr(text, part) == !is_there, "L3 of %g bytes/us: %s", target->machine->l3_bytes_per_us, text);
    dlc_arena_destroy(arena);
}

/* Where vectors take two steps and a burst of stores waits, short products go by tiles of one vector. */
START_TEST(vectors_follow_the_machine)
{
    const dlc_target *target = dlc_target_find("x86-64-v4");
    const int64_t heights[DLC_MOST_VECTORS + 1] = {0, 14, 14, 9, 6};
    const double size[] = {3136, 128, 24}, deep[] = {3136, 128, 1024};
    dlc_machine machine = *target->machine;
    dlc_target other = *target;
    machine.sum_latency = 2;
    machine.element_loads = 20;
    machine.tile_cycles = 0;
    machine.burst_cycles = 3;
    other.machine = &machine;
    dlc_arena *arena = dlc_arena_create(0);
    dlc_chooser usual = chooser_of(target, 3136, "f32", arena), fitted = chooser_of(&other, 3136, "f32", arena);
    ck_assert_int_eq(dlc_choose_vectors(&usual, 0, DLC_DOT_FMA, DLC_F32, size, heights, 2), 2);
    ck_assert_int_eq(dlc_choose_vectors(&fitted, 0, DLC_DOT_FMA, DLC_F32, size, heights, 2), 1);
    ck_assert_int_eq(dlc_choose_vectors(&fitted, 0, DLC_DOT_FMA, DLC_F32, deep, heights, 2), 2);
    dlc_arena_destroy(arena);
}
END_TEST

/* Sums of a long tile are stored in one burst: short products go by lower tiles, where estimates were fitted. */
START_TEST(heights_follow_the_machine)
{
    const double size[] = {3136, 256, 64}, deep[] = {3136, 256, 4096};
    dlc_target other = *dlc_target_find("x86-64-v4+vnni");
    dlc_machine machine = *other.machine;
    machine.sum_latency = 2;
    machine.element_loads = 20;
    machine.tile_cycles = 0;
    machine.burst_cycles = 3;
    other.machine = &machine;
    dlc_arena *arena = dlc_arena_create(0);
    dlc_chooser c = chooser_of(&other, 3136, "i32", arena);
    ck_assert_int_eq(dlc_choose_height(&c, 0, DLC_DOT_VPDPBUSD, DLC_I32, size, 14, 2), 14);
    machine.fitted = 1;
    ck_assert_int_eq(dlc_choose_height(&c, 0, DLC_DOT_VPDPBUSD, DLC_I32, size, 14, 2), 7);
    ck_assert_int_eq(dlc_choose_height(&c, 0, DLC_DOT_VPDPBUSD, DLC_I32, deep, 14, 2), 14);
    dlc_arena_destroy(arena);
}
END_TEST

/* Parts of lines that L2 does not hold are stored in shorter bursts. */
START_TEST(heights_follow_the_results)
{
    const double size[] = {3136, 256, 64};
    dlc_target other = *dlc_target_find("x86-64-v4+bf16");
    dlc_machine machine = *other.machine;
    machine.sum_latency = 2;
    machine.tile_cycles = 0;
    machine.burst_cycles = 3;
    machine.fitted = 1;
    other.machine = &machine;
    dlc_arena *arena = dlc_arena_create(0);
    dlc_chooser many = chooser_of(&other, 31360, "bf16", arena), few = chooser_of(&other, 31, "bf16", arena);
    dlc_chooser wide = chooser_of(&other, 31360, "f32", arena);
    ck_assert_int_eq(dlc_choose_height(&many, 0, DLC_DOT_VDPBF16PS, DLC_F32, size, 12, 1), 6);
    ck_assert_int_eq(dlc_choose_height(&few, 0, DLC_DOT_VDPBF16PS, DLC_F32, size, 12, 1), 12);
    ck_assert_int_eq(dlc_choose_height(&wide, 0, DLC_DOT_VDPBF16PS, DLC_F32, size, 12, 1), 12);
    dlc_arena_destroy(arena);
}
END_TEST

/* Weights that one row reads come by panels of a line side by side, or, where the machine follows one stream best, of a tile together. */
START_TEST(streams_follow_the_machine)
{
    static const char kernel_text[] = "kernel @f(x: f32[4096], w: f32[4096,4096]@const) -> (y: f32[4096]) {\n"
                                      "  axis j=4096, k=4096\n  y[j] = sum(k) x[k] * w[k, j]\n}\n";
    dlc_arena *arena = dlc_arena_create(0);
    dlc_target other = *dlc_target_find("x86-64-v4");
    dlc_machine machine = *other.machine;
    dlc_kernel *kernel;
    dlc_reason reason;
    const char *detail, *text;
    for (int streams = 0; streams < 2; streams++) {
        machine.streams = streams;
        other.machine = &machine;
        text = text_of(schedule_on(&other, kernel_text, arena, &kernel, &reason, &detail), arena);
        ck_assert_msg(strstr(text, streams ? "[j/32, k, j%32]" : "[j/16, k, j%16]") != NULL, "%s", text);
        ck_assert_msg(strstr(text, streams ? "par j:32 {" : "par j:128 {") != NULL, "%s", text);
    }
    dlc_arena_destroy(arena);
}
END_TEST

/* Rows that L2 does not hold go by blocks of K where L3 is slow beside the products. */
START_TEST(long_rows_follow_the_machine)
{
    static const char kernel_text[] = "kernel @f(x: f32[197,3072], w: f32[3072,768]@const, b: f32[768]@const) -> (y: f32[197,768]) {\n"
                                      "  axis i=197, j=768, k=3072\n  s[i,j] = sum(k) x[i, k] * w[k, j]\n  y[i,j] = s + b[j]\n}\n";
    dlc_machine machine;
    dlc_target other = on_machine("x86-64-v4", 2 << 20, &machine);
    machine.cycles_per_us = 2680;
    for (int is_slow = 0; is_slow < 2; is_slow++) {
        machine.l3_bytes_per_us = is_slow ? 20000 : 200000;
        expect_chosen(&other, kernel_text, "for k:768, j:32, i:8 {\n      s = dot fma i x j over [k:128] in scratch ahead 1 via L2", is_slow);
    }
}
END_TEST

/* Blocks of more of them meet all columns: columns come again for each, which takes less than rows that do. Threads have blocks enough. */
START_TEST(blocks_of_many_rows_meet_all_columns)
{
    static const struct {
        int rows, columns;
        const char *blocks;
    } cases[] = {{1024, 768, "par j:768, i:152, for k:1024, j:32, i:8"}, {384, 768, "par j:384, i:192, for k:768, j:32, i:8"},
                 {1024, 32000, "par j:512, i:256, for k:"}};
    dlc_machine machine;
    dlc_target other = on_machine("x86-64-v4", 2 << 20, &machine);
    machine.cycles_per_us = 2680;
    machine.l3_bytes_per_us = 20000;
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        int m = cases[i].rows, n = cases[i].columns;
        snprintf(text, sizeof text, "kernel @f(x: f32[%d,3072], w: f32[3072,%d]@const) -> (y: f32[%d,%d]) {\n  axis i=%d, j=%d, k=3072\n"
                                    "  s[i,j] = sum(k) x[i, k] * w[k, j] -> y[i, j]\n}\n", m, n, m, n, m, n);
        expect_chosen(&other, text, cases[i].blocks, 1);
    }
}
END_TEST

/* 3x3 windows over an image of bytes, with a border of a pixel; of `n` images, if that is a name. */
static const char *windows_of_bytes(char text[1024], const char *n, int h, int w, int ic, int oc)
{
    char batch[16], at[16], axis[16], of[16];
    snprintf(batch, sizeof batch, *n ? "%s," : "", n);
    snprintf(at, sizeof at, *n ? "b, " : "");
    snprintf(axis, sizeof axis, *n ? "b=%s, " : "", n);
    snprintf(of, sizeof of, *n ? "<%s>" : "", n);
    snprintf(text, 1024,
             "kernel @f%s(x: u8[%s%d,%d,%d], w: i8[%d,%d,3,3]@const) -> (y: i32[%s%d,%d,%d]) {\n"
             "  axis %soc=%d, oh=%d, ow=%d, ic=%d, kh=3, kw=3\n"
             "  s[%soc,oh,ow]: i32 = sum(ic,kh,kw) i32(w[oc, ic, kh, kw]) * i32(x[%soh + kh - 1, ow + kw - 1, ic if ow + kw < %d and "
             "1 <= ow + kw and 1 <= oh + kh and oh + kh < %d]) -> y[%soh, ow, oc]\n}\n",
             of, batch, h, w, ic, oc, ic, batch, h, w, oc, axis, oc, h, w, ic, at, at, w + 1, h + 1, at);
    return text;
}

/* Weights that L2 does not hold come by once for all rows, which are copied together, and not for each tile of them. */
START_TEST(copied_rows_share_far_columns)
{
    char text[1024];
    dlc_machine machine;
    dlc_target other = on_machine("x86-64-v4+vnni", 1 << 20, &machine);
    machine.l3_bytes_per_us = 20000;
    expect_chosen(&other, windows_of_bytes(text, "", 5, 5, 512, 512), "for oc:32, oh_ow:13 {\n      s = dot vpdpbusd", 1);
    other.l2_bytes = 8 << 20;
    expect_chosen(&other, text, "for oc:32 {\n      s = dot vpdpbusd", 1);
    other.l2_bytes = 1 << 20;
    machine.l3_bytes_per_us = 200000;
    expect_chosen(&other, text, "for oc:32 {\n      s = dot vpdpbusd", 1);
}
END_TEST

/* Lines of an image of bytes that are tiles: taps share the copied pixels and those in the border are left out; a unit has several lines for a
 * panel of columns, all of them where L2 does not hold the weights. Lines too short for a tile, or too long for L2, go by windows. */
START_TEST(lines_of_bytes_share_pixels)
{
    char text[1024];
    const dlc_target *vnni = dlc_target_find("x86-64-v4+vnni");
    expect_chosen(vnni, windows_of_bytes(text, "", 14, 14, 256, 256), "[oh+kh, ow+kw, ic]", 1);
    expect_chosen(vnni, text, "par (oh, ow):98, oc:32 {\n    kept for oh_kh, ow_kw, lane ic:64 {", 1);
    expect_chosen(vnni, text, "for oh_ow:14 {\n      s = dot vpdpbusd oh_ow x oc over [kh, kw, ic] skip [kh] ", 1);
    expect_chosen(dlc_target_find("x86-64-v3"), text, "oh+kh", 0);
    expect_chosen(vnni, windows_of_bytes(text, "", 7, 7, 512, 512), "par (oh, ow):49, oc:32 {", 1);
    expect_chosen(vnni, text, "for oh_ow:7 {\n      s = dot vpdpbusd oh_ow x oc over [kh, kw, ic] skip [kh] ", 1);
    expect_chosen(vnni, windows_of_bytes(text, "", 28, 28, 64, 32), "par (oh, ow):56, oc:32 {", 1); /* units for threads */
    expect_chosen(vnni, windows_of_bytes(text, "n", 14, 14, 256, 256), "par b, (oh, ow):98, oc:32 {", 1);
    expect_chosen(vnni, windows_of_bytes(text, "", 28, 2800, 512, 32), "oh+kh", 0);
    expect_chosen(vnni, windows_of_bytes(text, "", 5, 5, 512, 512), "oh+kh", 0);
}
END_TEST

/* Bytes: a panel of columns meets a block of rows; all of them where columns are much more than rows and results. */
START_TEST(panels_of_bytes_meet_blocks_of_rows)
{
    static const char rows[] = "kernel @f(x: u8[196,256], w: i8[1024,256]@const) -> (y: u8[196,1024]) {\n  axis i=196, j=1024, k=256\n"
                               "  s[i,j] = sum(k) i32(x[i, k]) * i32(w[j, k])\n  y[i,j] = u8(s)\n}\n";
    static const char columns[] = "kernel @f(x: u8[49,2048], w: i8[512,2048]@const) -> (y: u8[49,512]) {\n  axis i=49, j=512, k=2048\n"
                                  "  s[i,j] = sum(k) i32(x[i, k]) * i32(w[j, k])\n  y[i,j] = u8(s)\n}\n";
    expect_chosen(dlc_target_find("x86-64-v4+vnni"), rows, "par i:98, j:128, for j:32, i:14 {", 1);
    expect_chosen(dlc_target_find("x86-64-v4+vnni"), columns, "par j:32, i:13 {", 1);
}
END_TEST

/* Three vectors of results that are bytes are stored apart: two or four are chosen, unless three alone leave no columns over; of words three stay. */
START_TEST(results_of_bytes_are_stored_together)
{
    static const char text[] = "kernel @f(x: u8[784,128], w: i8[%d,128]@const) -> (y: %s[784,%d]) {\n  axis i=784, j=%d, k=128\n"
                               "  s[i,j] = sum(k) i32(x[i, k]) * i32(w[j, k])\n  y[i,j] = %s(s)\n}\n";
    char bytes[512], exact[512], words[512];
    dlc_machine machine;
    dlc_target other = on_machine("x86-64-v4+vnni", 2 << 20, &machine);
    machine.fitted = 1;
    machine.sum_latency = 4;
    machine.element_loads = 1.76;
    machine.spread_cycles = 0.62;
    machine.tile_cycles = 0.55;
    machine.burst_cycles = 2.2;
    snprintf(bytes, sizeof bytes, text, 512, "u8", 512, 512, "u8");
    snprintf(exact, sizeof exact, text, 144, "u8", 144, 144, "u8");
    snprintf(words, sizeof words, text, 512, "i16", 512, 512, "i16");
    expect_chosen(&other, bytes, "[j/48, k/4", 0);
    expect_chosen(&other, exact, "[j/48, k/4", 1);
    expect_chosen(&other, words, "[j/48, k/4", 1);
}
END_TEST

/* What is added to a tile of bytes is asked for while the one before is multiplied; of floats it is there in time. */
START_TEST(residuals_of_bytes_are_asked_for)
{
    static const char bytes[] = "kernel @f(x: u8[3136,64], w: i8[256,64]@const, r: u8[3136,256]) -> (y: u8[3136,256]) {\n"
                                "  axis i=3136, j=256, k=64\n  s[i,j] = sum(k) i32(x[i, k]) * i32(w[j, k])\n"
                                "  y[i,j] = u8(s + i32(r[i, j]))\n}\n";
    static const char floats[] = "kernel @f(x: f32[784,64], w: f32[256,64]@const, r: f32[784,256]) -> (y: f32[784,256]) {\n"
                                 "  axis i=784, j=256, k=64\n  s[i,j] = sum(k) x[i, k] * w[j, k]\n  y[i,j] = s + r[i, j]\n}\n";
    expect_chosen(dlc_target_find("x86-64-v4+vnni"), bytes, "y ahead 1 via L2", 1);
    expect_chosen(dlc_target_find("x86-64-v4+vnni"), floats, "y ahead", 0);
}
END_TEST

/* Windows of an image that L2 does not hold go along its rows, few at once, where L3 is slow; else by strips down the rows. */
START_TEST(far_windows_go_along_rows)
{
    static const char kernel_text[] = "kernel @f(x: f32[112,112,64], w: f32[64,3,3]@const) -> (y: f32[56,56,64]) {\n"
                                      "  axis oc=64, oh=56, ow=56, kh=3, kw=3\n"
                                      "  s[oc,oh,ow] = sum(kh,kw) w[oc, kh, kw] * x[oh * 2 + kh - 1, ow * 2 + kw - 1, oc if 1 <= oh * 2 + kh and "
                                      "1 <= ow * 2 + kw]\n  y[oc,oh,ow] = max(0.0, s) -> y[oh, ow, oc]\n}\n";
    static const char strips[] = "par ow:14, oh, lane oc:16, unroll ow", rows[] = "par oh, for ow:7, lane oc:16, unroll ow";
    dlc_machine machine;
    dlc_target other = on_machine("x86-64-v4", 2 << 20, &machine);
    machine.near_bytes_per_us = 120000;
    for (int i = 0; i < 4; i++) {
        static const int64_t l3[] = {20000, 100000, 0, 20000};
        machine.l3_bytes_per_us = (double)l3[i];
        other.l2_bytes = i == 3 ? 8 << 20 : 2 << 20;
        expect_chosen(&other, kernel_text, i ? strips : rows, 1);
    }
}
END_TEST

/* A window whose row, with sums and columns of neighbours, fits the registers is written out, as is one of few taps, or whose weights lanes bring. */
START_TEST(crowded_windows_go_row_by_row)
{
    static const struct {
        int taps, size, has_mean;
        const char *loops;
    } cases[] = {
        {5, 28, 1, "for ow:14, oh, unroll ow, for kh, unroll kw"},
        {5, 14, 1, "for ow:14, oh, unroll ow, kh, kw"},
        {3, 56, 1, "for ow:14, oh, unroll ow, kh, kw"},
        {5, 28, 0, "par ow:14, oh, lane oc:16, unroll ow {\n    unroll kh, kw"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dlc_arena *arena = dlc_arena_create(0);
        int k = cases[i].taps, n = cases[i].size, r = k / 2;
        const char *kernel = dlc_arena_printf(arena,
                                              "kernel @f(x: f32[%d,%d,64], w: f32[64,%d,%d]@const) -> (y: f32[%d,%d,64]%s) {\n"
                                              "  axis oc=64, oh=%d, ow=%d, kh=%d, kw=%d\n"
                                              "  s[oc,oh,ow] = sum(kh,kw) w[oc, kh, kw] * x[oh + kh - %d, ow + kw - %d, oc if %d <= oh + kh and "
                                              "oh + kh < %d and %d <= ow + kw and ow + kw < %d]\n  y[oc,oh,ow] = max(0.0, s) -> y[oh, ow, oc]\n%s}\n",
                                              n, n, k, k, n, n, cases[i].has_mean ? ", m: f32[64]" : "", n, n, k, k, r, r, r, n + r, r, n + r,
                                              cases[i].has_mean ? "  m[oc] = sum(oh,ow) y -> m[oc]\n" : "");
        const char *text = chosen_on(dlc_target_find("x86-64-v4"), kernel, arena);
        ck_assert_msg(strstr(text, cases[i].loops) != NULL, "%dx%d at %d: %s", k, k, n, text);
        dlc_arena_destroy(arena);
    }
}
END_TEST

/* And where L2 does not hold all copied rows beside a panel of theirs, a tap of the outermost axis after the other. */
START_TEST(long_copied_rows_go_by_taps)
{
    static const char kernel_text[] = "kernel @f(x: f32[7,7,512], w: f32[512,512,3,3]@const) -> (y: f32[7,7,512]) {\n"
                                      "  axis oc=512, oh=7, ow=7, ic=512, kh=3, kw=3\n"
                                      "  s[oc,oh,ow] = sum(ic,kh,kw) w[oc, ic, kh, kw] * x[oh + kh - 1, ow + kw - 1, ic if ow + kw < 8 and "
                                      "1 <= ow + kw and 1 <= oh + kh and oh + kh < 8] -> y[oh, ow, oc]\n}\n";
    dlc_machine machine;
    dlc_target other = on_machine("x86-64-v4", 2 << 20, &machine);
    machine.l3_bytes_per_us = 20000;
    expect_chosen(&other, kernel_text, "for kh, oc:32, oh_ow:13 {\n      s = dot fma oh_ow x oc over [kw, ic:64] in scratch ahead 1 via L2", 1);
}
END_TEST

/* The same of windows in place, where L2 holds the image and not much more than a panel. */
START_TEST(windows_of_a_near_image_go_by_taps)
{
    static const char kernel_text[] = "kernel @f(x: f32[9,9,2048], w: f32[512,2048,3,3]@const) -> (y: f32[7,7,512]) {\n"
                                      "  axis oc=512, oh=7, ow=7, ic=2048, kh=3, kw=3\n"
                                      "  s[oc,oh,ow] = sum(ic,kh,kw) w[oc, ic, kh, kw] * x[oh + kh, ow + kw, ic] -> y[oh, ow, oc]\n}\n";
    dlc_machine machine;
    dlc_target other = on_machine("x86-64-v4", 2 << 20, &machine);
    machine.l3_bytes_per_us = 20000;
    expect_chosen(&other, kernel_text, "for kh, oc:32, oh_ow:7 {\n    s = dot fma oh_ow x oc over [kw, ic:64] in scratch", 1);
    other.l2_bytes = 8 << 20; /* holds all */
    expect_chosen(&other, kernel_text, "for kh", 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("choose_machine");
    TCase *tcase = tcase_create("choose_machine");
    tcase_add_test(tcase, vectors_follow_the_machine);
    tcase_add_test(tcase, heights_follow_the_machine);
    tcase_add_test(tcase, heights_follow_the_results);
    tcase_add_test(tcase, streams_follow_the_machine);
    tcase_add_test(tcase, long_rows_follow_the_machine);
    tcase_add_test(tcase, blocks_of_many_rows_meet_all_columns);
    tcase_add_test(tcase, copied_rows_share_far_columns);
    tcase_add_test(tcase, lines_of_bytes_share_pixels);
    tcase_add_test(tcase, results_of_bytes_are_stored_together);
    tcase_add_test(tcase, residuals_of_bytes_are_asked_for);
    tcase_add_test(tcase, panels_of_bytes_meet_blocks_of_rows);
    tcase_add_test(tcase, far_windows_go_along_rows);
    tcase_add_test(tcase, crowded_windows_go_row_by_row);
    tcase_add_test(tcase, long_copied_rows_go_by_taps);
    tcase_add_test(tcase, windows_of_a_near_image_go_by_taps);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
