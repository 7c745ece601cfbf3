/*
 * RNN, GRU and LSTM: a loop over the sequence, however long it is. The products with the input are
 * one contraction over all steps, before it; each step adds the product with its state. Steps past
 * a sample's length keep the state and give zeros. A few steps are written one behind the other.
 * The quantised LSTM quantises the input once and each state as it comes; its weights are turned.
 */
#include "base/text.h"
#include "frontend/import_quant.h"
#include "frontend/regions.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_UNROLLED = 2, MAX_GATES = 4, MAX_ACTIVATIONS = 3 };
enum { RNN = 1, GRU = 3, LSTM = 4 }; /* the argument of the rows: gates per cell */

typedef struct {
    const char *name;
    double alpha, beta;
} activation;

typedef struct {
    int64_t kind, hidden, steps /* 0: a loop */, layout, input_forget, linear_before_reset;
    uint32_t ndirections;
    int first_is_reverse, has_clip, is_quantised;
    double clip;
    activation activations[2 * MAX_ACTIVATIONS];
    dlc_value *x, *lengths; /* x: [t, n, input] */
} recurrence;

/* --- activations --- */

static const struct {
    const char *name;
    uint8_t nparameters; /* alpha, then beta */
    double alpha, beta;
} known[] = {
    {"Relu", 0, 0, 0},
    {"Tanh", 0, 0, 0},
    {"Sigmoid", 0, 0, 0},
    {"Softsign", 0, 0, 0},
    {"Softplus", 0, 0, 0},
    {"Affine", 2, 1, 0},
    {"LeakyRelu", 1, 0.01f, 0},
    {"ThresholdedRelu", 1, 1, 0},
    {"ScaledTanh", 2, 1, 1},
    {"Elu", 1, 1, 0},
    {"HardSigmoid", 2, 0.2f, 0.5},
};
enum { NKNOWN = sizeof known / sizeof *known };

static dlc_value *activate(dlc_import *im, const recurrence *r, const activation *a, dlc_value *x)
{
    if (r->has_clip)
        x = f_clip(im, x, -r->clip, r->clip);
    const dlc_attr alpha = dlc_attr_float(DLC_ATTR_ALPHA, a->alpha),
                   beta = dlc_attr_float(DLC_ATTR_BETA, a->beta);
    if (strcmp(a->name, "Relu") == 0)
        return f_unary(im, DLC_OP_RELU, x);
    if (strcmp(a->name, "Tanh") == 0)
        return f_unary(im, DLC_OP_TANH, x);
    if (strcmp(a->name, "Sigmoid") == 0)
        return f_unary(im, DLC_OP_SIGMOID, x);
    if (strcmp(a->name, "Softsign") == 0)
        return f_unary(im, DLC_OP_SOFTSIGN, x);
    if (strcmp(a->name, "Softplus") == 0)
        return f_unary(im, DLC_OP_SOFTPLUS, x);
    if (strcmp(a->name, "Affine") == 0)
        return f_add(im, f_mul(im, x, f_like(im, x, a->alpha)), f_like(im, x, a->beta));
    if (strcmp(a->name, "ScaledTanh") == 0)
        return f_mul(im, f_unary(im, DLC_OP_TANH, f_mul(im, x, f_like(im, x, a->beta))),
                     f_like(im, x, a->alpha));
    if (strcmp(a->name, "HardSigmoid") == 0)
        return f_node(im, DLC_OP_HARD_SIGMOID, F_IN(x), F_ATTRS(alpha, beta));
    if (strcmp(a->name, "Elu") == 0)
        return f_node(im, DLC_OP_ELU, F_IN(x), F_ATTRS(alpha));
    if (strcmp(a->name, "ThresholdedRelu") == 0)
        return f_node(im, DLC_OP_THRESHOLDED_RELU, F_IN(x), F_ATTRS(alpha));
    return f_node(im, DLC_OP_LEAKY_RELU, F_IN(x), F_ATTRS(alpha));
}

static int find_activation(const char *name)
{
    for (int k = 0; k < NKNOWN; k++) {
        if (dlc_text_same_letters(known[k].name, name))
            return k;
    }
    return -1;
}

/* Alphas and betas are handed out in order, to the activations that have such a parameter. */
static void read_activations(dlc_import *im, recurrence *r)
{
    static const char *const usual[5][MAX_ACTIVATIONS] = {
        [RNN] = {"Tanh"}, [GRU] = {"Sigmoid", "Tanh"}, [LSTM] = {"Sigmoid", "Tanh", "Tanh"}};
    uint32_t per = r->kind == RNN   ? 1
                   : r->kind == GRU ? 2
                                    : 3,
             n, nalpha, nbeta, alpha_at = 0, beta_at = 0;
    const char **names = im_texts(im, "activations", &n);
    const float *alphas = im_floats(im, "activation_alpha", &nalpha),
                *betas = im_floats(im, "activation_beta", &nbeta);
    if (names && n != per * r->ndirections) {
        /* the default attribute value of RNN names one for each of two directions */
        if (n < per * r->ndirections)
            im_fail(im, DLC_INVALID, "%" PRIu32 " activations; %" PRIu32 " are wanted", n,
                    per * r->ndirections);
        n = per * r->ndirections;
    }
    for (uint32_t i = 0; i < per * r->ndirections && im_ok(im); i++) {
        int k = find_activation(names ? names[i] : usual[r->kind][i % per]);
        if (k < 0) {
            im_fail(im, DLC_UNSUPPORTED, "activation '%.100s' is unknown", names[i]);
            return;
        }
        r->activations[i] = (activation){known[k].name, known[k].alpha, known[k].beta};
        if (known[k].nparameters > 0 && alphas && alpha_at < nalpha)
            r->activations[i].alpha = alphas[alpha_at++];
        if (known[k].nparameters > 1 && betas && beta_at < nbeta)
            r->activations[i].beta = betas[beta_at++];
    }
}

/* --- reading --- */

static dlc_value *with_layout(dlc_import *im, const recurrence *r, dlc_value *v)
{
    static const uint8_t swap[3] = {1, 0, 2};
    return v && r->layout ? f_transpose(im, v, swap) : v;
}

static void check_rank(dlc_import *im, uint32_t input, uint32_t rank)
{
    if (im_in(im, input) && im_rank(im_in(im, input)) != rank)
        im_fail(im, DLC_INVALID, "input %" PRIu32 " has rank %" PRIu32 "; %" PRIu32 " is wanted",
                input, im_rank(im_in(im, input)), rank);
}

static void check_size(dlc_import *im, uint32_t input, uint32_t axis, int64_t size,
                       const char *what)
{
    if (im_in(im, input))
        im_same_dim(im, im_in(im, input)->type.dims[axis], im_i64(im, size), what);
}

/* Scales and zero points of a quantised recurrence: of each direction, or of each of its columns. */
static void check_scales(dlc_import *im, const recurrence *r)
{
    for (uint32_t input = 8; input < 12 && im_ok(im); input++) {
        if (!im_in(im, input))
            im_fail(im, DLC_INVALID, "input %" PRIu32 ", a scale or zero point, is absent", input);
        else if (im_rank(im_in(im, input)) == 2)
            check_size(im, input, 1, r->kind * r->hidden, "scales or zero points of a direction");
        else
            check_rank(im, input, 1);
        if (im_ok(im))
            check_size(im, input, 0, r->ndirections, "directions");
    }
}

static void check_inputs(dlc_import *im, recurrence *r)
{
    static const uint8_t ranks[8] = {3, 3, 3, 2, 1, 3, 3, 2};
    const uint32_t gates = r->is_quantised ? 2 : 1; /* the axis of its weights */
    for (uint32_t i = 0; i < im->nin && i < 8; i++)
        check_rank(im, i, ranks[i]);
    if (!im_ok(im))
        return;
    int64_t hidden_given = im_int(im, "hidden_size", 0);
    if (!im_is_const(im, im_in(im, 2)->type.dims[3 - gates], &r->hidden) || r->hidden < 1)
        im_fail(im, DLC_UNSUPPORTED, "the hidden size must be known");
    else if (hidden_given && hidden_given != r->hidden)
        im_fail(im, DLC_INVALID, "hidden_size is %" PRId64 "; the weights have %" PRId64,
                hidden_given, r->hidden);
    for (uint32_t i = 1; i < 4 && im_ok(im); i++)
        check_size(im, i, 0, r->ndirections, "directions");
    for (uint32_t i = 1; i < 3 && im_ok(im); i++)
        check_size(im, i, gates, r->kind * r->hidden, "gates times the hidden size");
    if (im_ok(im))
        check_size(im, 3, 1, 2 * r->kind * r->hidden, "biases");
    if (im_ok(im) && r->kind == LSTM)
        check_size(im, 7, 1, 3 * r->hidden, "peepholes");
    if (im_ok(im) && r->kind == LSTM)
        check_size(im, 7, 0, r->ndirections, "directions of the peepholes");
    if (im_ok(im) && r->is_quantised)
        check_scales(im, r);
}

/* What would be broadcast instead of being refused: a length per sample, states [d, n, hidden], in
 * the layout that x has. */
static void check_states(dlc_import *im, const recurrence *r)
{
    dlc_expr batch = r->x->type.dims[1];
    const dlc_expr sizes[3] = {im_i64(im, r->ndirections), batch, im_i64(im, r->hidden)};
    static const char *const whats[3] = {"directions of an initial state",
                                         "the batch of an initial state",
                                         "the hidden size of an initial state"};
    if (r->lengths)
        im_same_dim(im, r->lengths->type.dims[0], batch, "sequence_lens and the batch");
    for (uint32_t input = 5; input < 7; input++) {
        const dlc_value *state = im_in(im, input);
        for (uint32_t i = 0; state && im_ok(im) && i < 3; i++)
            im_same_dim(im, state->type.dims[r->layout && i < 2 ? 1 - i : i], sizes[i], whats[i]);
    }
}

static int read_recurrence(dlc_import *im, recurrence *r)
{
    *r = (recurrence){.kind = im->row->argument, .is_quantised = im->row->inputs_max > 8};
    const char *direction = im_choice(im, "direction", "forward", "forward|reverse|bidirectional");
    r->ndirections = direction && direction[0] == 'b' ? 2 : 1;
    r->first_is_reverse = direction && direction[0] == 'r';
    r->has_clip = im_has(im, "clip");
    r->clip = im_float(im, "clip", 0);
    r->layout = im->opset >= 14 ? im_int(im, "layout", 0) : 0;
    if (r->layout != 0 && r->layout != 1)
        im_fail(im, DLC_INVALID, "layout is %" PRId64 "; 0 or 1 is possible", r->layout);
    if (r->kind == LSTM)
        r->input_forget = im_int(im, "input_forget", 0);
    if (r->kind == GRU)
        r->linear_before_reset = im_int(im, "linear_before_reset", 0);
    read_activations(im, r);
    check_inputs(im, r);
    if (!im_ok(im))
        return 0;
    r->x = with_layout(im, r, im_in(im, 0));
    r->lengths = im_in(im, 4);
    if (!r->x)
        return 0;
    if (!im_is_const(im, r->x->type.dims[0], &r->steps) || r->steps > MOST_UNROLLED)
        r->steps = 0;
    check_states(im, r);
    return im_ok(im);
}

/* --- one direction --- */

typedef struct {
    const recurrence *r;
    const activation *activations;
    dlc_value *xw;          /* [t, n, gates * hidden], biases added as far as they may be */
    dlc_value *rt;          /* [hidden, gates * hidden] */
    dlc_value *r_scale, *r_zero; /* of rt, where it is quantised */
    dlc_value *rt_zr, *rt_h; /* GRU: its first two gates, and the hidden one */
    dlc_value *r_bias_h;    /* GRU: of the hidden gate, kept apart */
    dlc_value *peephole[3]; /* i, o, f */
    dlc_value *h, *c;       /* state: [n, hidden] */
} direction;

static dlc_value *part(dlc_import *im, dlc_value *v, uint32_t axis, int64_t at, int64_t n)
{
    return f_slice(im, v, axis, im_i64(im, at), im_i64(im, n));
}

/* A constant's part is a constant at once: what is quantised is known as weights before anything is folded. */
static dlc_value *constant_part(dlc_import *im, const dlc_value *v, uint32_t d)
{
    int64_t n;
    dlc_type type = {.dtype = v->type.dtype, .rank = (uint8_t)(v->type.rank - 1)};
    memcpy(type.dims, v->type.dims + 1, type.rank * sizeof *type.dims);
    size_t bytes = dlc_type_elems(im->pool, &type, &n) ? (size_t)n * dlc_dtype_bytes(type.dtype) : SIZE_MAX;
    if (bytes > v->data->size_bytes / (d + 1u)) {
        im_fail(im, DLC_INVALID, "'%s' is of fewer directions than there are", v->name);
        return NULL;
    }
    return dlc_graph_constant(im->graph, v->name, &type, (const char *)v->data->bytes + d * bytes, bytes);
}

/* v[d, ...] */
static dlc_value *of_direction(dlc_import *im, dlc_value *v, uint32_t d)
{
    if (v && v->data && v->type.rank)
        return constant_part(im, v, d);
    return v ? f_drop_axis(im, part(im, v, 0, d, 1), 0) : NULL;
}

static dlc_value *initial(dlc_import *im, const recurrence *r, uint32_t input, uint32_t d)
{
    dlc_value *given = with_layout(im, r, im_in(im, input));
    if (given)
        return of_direction(im, given, d);
    const dlc_expr dims[2] = {r->x->type.dims[1], im_i64(im, r->hidden)};
    return f_expand(im, f_like(im, r->x, 0), dims, 2);
}

/* What biases may join the input's product: all but a GRU's recurrent one of the hidden gate. */
static void add_biases(dlc_import *im, direction *d, uint32_t index)
{
    const recurrence *r = d->r;
    int64_t n = r->kind * r->hidden;
    dlc_value *b = of_direction(im, im_in(im, 3), index);
    if (!b)
        return;
    dlc_value *wb = part(im, b, 0, 0, n), *rb = part(im, b, 0, n, n);
    if (r->kind == GRU) {
        d->r_bias_h = part(im, rb, 0, 2 * r->hidden, r->hidden);
        const dlc_expr dims[1] = {im_i64(im, r->hidden)};
        dlc_value *none = f_expand(im, f_like(im, b, 0), dims, 1);
        rb = f_concat(im, (dlc_value *[]){part(im, rb, 0, 0, 2 * r->hidden), none}, 2, 0);
    }
    d->xw = f_add(im, d->xw, f_add(im, wb, rb));
}

/* x times quantised weights [k, n]: x is quantised as it comes, by one scale for all of it. */
static dlc_value *quantised_product(dlc_import *im, dlc_value *x, dlc_value *w, dlc_value *scale, dlc_value *zero)
{
    dlc_value *q, *x_scale, *x_zero;
    im_quantise_dynamically(im, x, &q, &x_scale, &x_zero);
    dlc_value *sum = q && w ? im_integer_matmul(im, q, x_zero, w, zero) : NULL;
    return f_mul(im, f_cast(im, sum, x->type.dtype), f_mul(im, x_scale, im_as_scalar(im, scale)));
}

static void begin_products(dlc_import *im, direction *d, uint32_t index)
{
    dlc_value *w = of_direction(im, im_in(im, 1), index), *r = of_direction(im, im_in(im, 2), index);
    if (!d->r->is_quantised) {
        d->xw = f_matmul(im, d->r->x, f_swap_last(im, w));
        d->rt = f_swap_last(im, r);
        return;
    }
    d->xw = quantised_product(im, d->r->x, w, of_direction(im, im_in(im, 8), index), of_direction(im, im_in(im, 9), index));
    d->rt = r;
    d->r_scale = of_direction(im, im_in(im, 10), index);
    d->r_zero = of_direction(im, im_in(im, 11), index);
}

static direction begin(dlc_import *im, const recurrence *r, uint32_t index)
{
    uint32_t per = r->kind == RNN ? 1 : r->kind == GRU ? 2 : 3;
    direction d = {.r = r, .activations = r->activations + index * per};
    begin_products(im, &d, index);
    if (r->kind == GRU) {
        d.rt_zr = part(im, d.rt, 1, 0, 2 * r->hidden);
        d.rt_h = part(im, d.rt, 1, 2 * r->hidden, r->hidden);
    }
    add_biases(im, &d, index);
    dlc_value *p = r->kind == LSTM ? of_direction(im, im_in(im, 7), index) : NULL;
    for (int64_t i = 0; p && i < 3; i++)
        d.peephole[i] = part(im, p, 0, i * r->hidden, r->hidden);
    d.h = initial(im, r, 5, index);
    d.c = r->kind == LSTM ? initial(im, r, 6, index) : NULL;
    return d;
}

static dlc_value *gate(dlc_import *im, const direction *d, dlc_value *all, int64_t index)
{
    return part(im, all, 1, index * d->r->hidden, d->r->hidden);
}

static dlc_value *peep(dlc_import *im, const direction *d, dlc_value *sum, int which, dlc_value *c)
{
    return d->peephole[which] ? f_add(im, sum, f_mul(im, d->peephole[which], c)) : sum;
}

static void step_rnn(dlc_import *im, direction *d, dlc_value *xt)
{
    d->h = activate(im, d->r, &d->activations[0], f_add(im, xt, f_matmul(im, d->h, d->rt)));
}

static void step_lstm(dlc_import *im, direction *d, dlc_value *xt)
{
    const activation *a = d->activations;
    dlc_value *product = d->r_scale ? quantised_product(im, d->h, d->rt, d->r_scale, d->r_zero) : f_matmul(im, d->h, d->rt);
    dlc_value *all = f_add(im, xt, product);
    dlc_value *i = activate(im, d->r, &a[0], peep(im, d, gate(im, d, all, 0), 0, d->c));
    dlc_value *f = d->r->input_forget
                       ? f_sub(im, f_like(im, xt, 1), i)
                       : activate(im, d->r, &a[0], peep(im, d, gate(im, d, all, 2), 2, d->c));
    dlc_value *g = activate(im, d->r, &a[1], gate(im, d, all, 3));
    d->c = f_add(im, f_mul(im, f, d->c), f_mul(im, i, g));
    dlc_value *o = activate(im, d->r, &a[0], peep(im, d, gate(im, d, all, 1), 1, d->c));
    const recurrence unclipped = {.has_clip = 0};
    d->h = f_mul(im, o, activate(im, &unclipped, &a[2], d->c));
}

static void step_gru(dlc_import *im, direction *d, dlc_value *xt)
{
    const activation *a = d->activations;
    int64_t n = d->r->hidden;
    dlc_value *zr = f_add(im, part(im, xt, 1, 0, 2 * n), f_matmul(im, d->h, d->rt_zr));
    dlc_value *z = activate(im, d->r, &a[0], gate(im, d, zr, 0)),
              *reset = activate(im, d->r, &a[0], gate(im, d, zr, 1));
    dlc_value *product =
        f_matmul(im, d->r->linear_before_reset ? d->h : f_mul(im, reset, d->h), d->rt_h);
    if (d->r_bias_h)
        product = f_add(im, product, d->r_bias_h);
    if (d->r->linear_before_reset)
        product = f_mul(im, reset, product);
    dlc_value *candidate = activate(im, d->r, &a[1], f_add(im, gate(im, d, xt, 2), product));
    d->h = f_add(im, f_mul(im, f_sub(im, f_like(im, xt, 1), z), candidate), f_mul(im, z, d->h));
}

/* [n, 1]: does step t lie within the sample's length */
static dlc_value *is_within(dlc_import *im, const recurrence *r, dlc_expr t)
{
    dlc_value *lengths = f_insert_axis(im, r->lengths, 1);
    return lengths ? f_binary(im, DLC_OP_LT, f_dim(im, lengths->type.dtype, t), lengths) : NULL;
}

/* One step; returns what it adds to Y, [n, hidden]. */
static dlc_value *step(dlc_import *im, direction *d, dlc_expr t)
{
    const recurrence *r = d->r;
    dlc_value *h = d->h, *c = d->c, *xt = f_drop_axis(im, f_slice(im, d->xw, 0, t, im_i64(im, 1)), 0);
    if (r->kind == LSTM)
        step_lstm(im, d, xt);
    else if (r->kind == GRU)
        step_gru(im, d, xt);
    else
        step_rnn(im, d, xt);
    if (!r->lengths)
        return d->h;
    dlc_value *within = is_within(im, r, t), *y = f_where(im, within, d->h, f_like(im, d->h, 0));
    d->h = f_where(im, within, d->h, h);
    d->c = c ? f_where(im, within, d->c, c) : NULL;
    return y;
}

/* Y of one direction: [t, n, hidden] */
static dlc_value *unroll(dlc_import *im, direction *d, int is_reverse)
{
    const recurrence *r = d->r;
    dlc_value **steps = dlc_new_array(im->arena, dlc_value *, (size_t)r->steps);
    for (int64_t k = 0; k < r->steps && im_ok(im); k++) {
        int64_t t = is_reverse ? r->steps - 1 - k : k;
        steps[t] = f_insert_axis(im, step(im, d, im_i64(im, t)), 0);
    }
    return im_ok(im) ? f_concat(im, steps, (uint32_t)r->steps, 0) : NULL;
}

static dlc_value *loop_over(dlc_import *im, direction *d, int is_reverse)
{
    dlc_expr n = d->r->x->type.dims[0];
    dlc_type type;
    im_loop loop;
    if (!im_loop_begin(im, &loop, n, 0))
        return NULL;
    dlc_value *h = d->h = f_state(im, &loop, d->h);
    dlc_value *c = d->c = d->c ? f_state(im, &loop, d->c) : NULL;
    dlc_value *y = step(im, d, is_reverse ? dlc_sub(im->pool, dlc_addi(im->pool, n, -1), loop.at) : loop.at);
    if (!y || !im_ok(im) || !im_loop_row(im, &loop, y, n, &type) || !im_loop_end(im, &loop))
        return NULL;
    d->h = f_final(im, &loop, h, d->h);
    d->c = c ? f_final(im, &loop, c, d->c) : NULL;
    return f_stack(im, &loop, y, &type, is_reverse);
}

static dlc_value *run(dlc_import *im, direction *d, int is_reverse)
{
    return f_insert_axis(im, d->r->steps ? unroll(im, d, is_reverse) : loop_over(im, d, is_reverse), 1);
}

void import_recurrent(dlc_import *im)
{
    static const uint8_t y_perm[4] = {2, 0, 1, 3};
    recurrence r;
    dlc_value *y[2] = {NULL, NULL}, *h[2] = {NULL, NULL}, *c[2] = {NULL, NULL};
    if (!read_recurrence(im, &r))
        return;
    for (uint32_t i = 0; i < r.ndirections && im_ok(im); i++) {
        direction d = begin(im, &r, i);
        y[i] = run(im, &d, i ? 1 : r.first_is_reverse);
        h[i] = f_insert_axis(im, d.h, 0);
        c[i] = d.c ? f_insert_axis(im, d.c, 0) : NULL;
    }
    if (!im_ok(im))
        return;
    dlc_value *all = f_concat(im, y, r.ndirections, 1);
    dlc_value *const outputs[3] = {
        all && r.layout ? f_transpose(im, all, y_perm) : all,
        with_layout(im, &r, f_concat(im, h, r.ndirections, 0)),
        r.kind == LSTM ? with_layout(im, &r, f_concat(im, c, r.ndirections, 0)) : NULL};
    for (uint32_t i = 0; i < im->nout; i++)
        im->out[i] = outputs[i];
}
