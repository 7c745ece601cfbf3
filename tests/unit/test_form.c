/* What forms say of operators: one line of text each, the form of its last node. */
#include "ir/graph/form.h"
#include "tests/unit/small_graph.h"
#include "tests/unit/suite.h"

static const struct {
    const char *text, *form;
} cases[] = {
    {"in x 2,3; y = relu x", "map pointwise"},
    {"in x 2,3; in b 3; y = add x b", "map pointwise"},
    {"in x 2,3; in b 2,1; y = mul x b", "map pointwise"},
    {"in c:bool 2,3; in x 2,3; in z 3; y = where c x z", "map pointwise"},
    {"in x 2,3; const e scalar 2; y = pow x e", "map pointwise"},
    {"const x scalar 1; const z scalar 2; y = add x z", "map pointwise"},
    {"in x 2,3; y = swish x alpha=2", "map pointwise"},
    /* what steps, and what only bends */
    {"in x 2,3; y = round x", "map pointwise steps"},
    {"in x 2,3; y = sign x", "map pointwise steps"},
    {"in x:i64 2,3; y = sign x", "map pointwise"},
    {"in x 2,3; in b 3; y = lt x b", "map pointwise steps"},
    {"in x 2,3; y = is_nan x", "map pointwise steps"},
    {"in x 2,3; y = cast x dtype=4", "map pointwise steps"},
    {"in x 2,3; y = cast x dtype=10", "map pointwise"},
    {"in x 2,3; y = leaky_relu x alpha=0.1", "map pointwise"},
    {"in x 2,3; y = elu x alpha=1", "map pointwise"},
    {"in x 2,3; y = selu x alpha=1.5 gamma=1.1", "map pointwise"},
    {"in x 2,3; in s 3; y = prelu x s", "map pointwise"},
    {"in x 2,3; y = hard_swish x", "map pointwise"},
    {"in x 2,3; y = thresholded_relu x alpha=1", "map pointwise steps"},
    {"in x 2,3; y = shrink x alpha=0 beta=0.5", "map pointwise steps"},
    {"in x 2,3; y = shrink x alpha=0.5 beta=0.5", "map pointwise"},
    /* along an axis: not pointwise, whatever the rule of the result's type */
    {"in x 2,3; y = cumsum x axis=1", "order 0,1"},
    {"in x 2,3; y = cumsum x axis=0 reverse=1", "order 0,1"},
    {"in x 3,3; y = trilu x", "map order 0,1"},
    /* views */
    {"in x 2,3; y = transpose x perm=1,0", "map view order 1,0"},
    {"in x 1,3; y = transpose x perm=1,0", "map view order 1,0"},
    {"in x 2,3; y = reshape x dims=6", "map view"},
    {"in x 2,3; y = reshape x dims=2,3", "map view order 0,1"},
    {"in x 2,1; y = expand x dims=2,3", "map view"},
    {"in x 2,9; y = slice x starts=1,8 steps=1,-2 dims=1,3", "map view order 0,1"},
    {"in x 2,3; y = pad x pads=0,1,0,1", "map view guarded order 0,1"},
    {"in x 2,3; y = pad x pads=0,1,0,1 mode=edge", "map view order 0,1"},
    {"in x 2,3; y = tile x dims=4,3", "map view order 0,1"},
    {"in x 2,3; in z 2,4; y = concat x z axis=1", "map order 0,1"},
    /* data for indices */
    {"in x 4,3; in i:i64 5; y = gather x i axis=0", "map"},
    {"in x 4,3; in i:i64 4,3; y = gather_elements x i axis=0", "map"},
    {"in x 4,3; in i:i64 2,3; in u 2,3; y = scatter_elements x i u axis=0", "update"},
    {"in x 1,2,4,4; in g 1,3,3,2; y = grid_sample x g", "map steps"},
    /* what reduces */
    {"in x 2,3; in w 3,4; y = matmul x w", "contraction"},
    {"in x 1,3,8,8; in w 4,3,3,3; y = conv x w", "contraction"},
    {"in x 1,4,8,8; in w 4,1,3,3; y = conv x w group=4", "contraction"},
    {"in x 1,3,4,4; in w 3,5,2,2; y = conv_transpose x w", "contraction"},
    {"in x 1,3,2,2,3,3; y = col2im x dims=4,4 strides=1,1 dilations=1,1 pads=0,0,0,0", ""},
    {"in x 2,3; in w 3,4; y = einsum x w equation=ij,jk->ki", "contraction"},
    {"in x 2,3; y = einsum x equation=ij->ji", "map view order 1,0"},
    {"in x 2,3; in w 2,3; y = einsum x w equation=ij,ij->i", ""},
    {"in x 2,3; y = reduce_sum x axes=1", "reduction"},
    {"in x 2,3,4; y = reduce_mean x axes=0,2 keepdims=1", "reduction"},
    {"in x:f16 2,3; y = reduce_prod x axes=0", "reduction"},
    {"in x 2,3; y = argmax x axis=1", ""},
    {"in x 1,2,4,4; y = max_pool x kernel=2,2 strides=2,2", ""},
    {"in x 1,2,4,4; y = lp_pool x kernel=2,2 p=2", ""},
    {"in x 2,3; y = topk x axis=1 dims=2", ""},
};

static void add(dlc_str *text, int is_so, const char *word)
{
    if (is_so)
        dlc_str_printf(text, "%s%s", *dlc_str_text(text) ? " " : "", word);
}

static void add_order(dlc_str *text, const dlc_form *form, const dlc_value *input)
{
    uint8_t dims[DLC_MAX_RANK];
    if (form->is_pointwise || !dlc_form_order(form, input, dims))
        return;
    add(text, 1, "order ");
    for (uint8_t d = 0; d < input->type.rank; d++)
        dlc_str_printf(text, "%s%d", d ? "," : "", dims[d]);
}

START_TEST(a_form_is_read_off_the_meaning)
{
    small_graph s = small_begin(cases[_i].text);
    dlc_node *node = s.graph->last;
    dlc_form form = dlc_form_of(s.graph, node, s.arena);
    dlc_str text = {0};
    add(&text, form.is_map, "map");
    add(&text, form.is_pointwise, "pointwise");
    add(&text, form.is_view, "view");
    add(&text, form.is_guarded, "guarded");
    add(&text, form.is_contraction, "contraction");
    add(&text, form.is_reduction, "reduction");
    add(&text, form.has_update, "update");
    add(&text, form.has_steps, "steps");
    add_order(&text, &form, node->inputs[0]);
    ck_assert_msg(!strcmp(dlc_str_text(&text), cases[_i].form), "%s is: %s", cases[_i].text, dlc_str_text(&text));
    dlc_str_deinit(&text);
    small_end(&s);
}
END_TEST

/* Formulas of the last two nodes: whether the last is the one before over other inputs. */
static const struct {
    const char *text;
    int is_equal;
} pairs[] = {
    {"in x 2,3; in t 3,2; a = relu x; b = relu t", 1},
    {"in x 2,3; in t 3,2; a = relu x; b = exp t", 0},
    {"in x 2,3; in t 3,2; a = leaky_relu x alpha=1; b = leaky_relu t alpha=2", 0},
    {"in x 2,3; in z 2,3; in t 3,2; in u 3,2; a = sub x z; b = sub t u", 1},
    {"in x 2,3; in z 2,3; in t 3,2; a = sub x z; b = sub t t", 1},
    {"in x 2,3; in t 3,2; in u 3,2; a = add x x; b = add t u", 0},
    {"in x 2,3; in z 1,3; const c scalar 5; a = add x z; b = add x c", 1},
    {"in x 2,3,4; in t 4,3,2; a = reduce_mean x axes=1,2; b = reduce_mean t axes=0,1", 1},
    {"in x 2,3,4; in t 4,3,2; a = reduce_mean x axes=2; b = reduce_mean t axes=1", 0}, /* over 4, over 3 */
    {"in x n,m; in t m,n; a = reduce_mean x axes=1; b = reduce_mean t axes=0", 1},
    {"in x n,m; in t m,n; a = reduce_mean x axes=1; b = reduce_mean t axes=1", 0},
    {"in x 2,3; in t 3,2; a = reduce_sum x axes=1; b = reduce_max t axes=0", 0},
};

START_TEST(formulas_are_compared_without_their_places)
{
    small_graph s = small_begin(pairs[_i].text);
    dlc_form b = dlc_form_of(s.graph, s.graph->last, s.arena), a = dlc_form_of(s.graph, s.graph->last->prev, s.arena);
    ck_assert_msg(dlc_form_equal(&a, &b) == pairs[_i].is_equal, "%s", pairs[_i].text);
    small_end(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("form");
    TCase *tcase = tcase_create("form");
    tcase_add_loop_test(tcase, a_form_is_read_off_the_meaning, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(tcase, formulas_are_compared_without_their_places, 0, sizeof pairs / sizeof *pairs);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
