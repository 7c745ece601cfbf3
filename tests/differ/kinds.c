/* One random node of each kind; kinds.def says how often. */
#include "tests/differ/kinds.h"

#include <math.h>
#include <string.h>

/* --- maps --- */

typedef struct {
    dlc_opcode op;
    double (*size)(double);
} unary_row;

static double same(double x)
{
    return x;
}
static double one(double x)
{
    (void)x;
    return 1;
}
static double grown(double x)
{
    return exp(x);
}

static const unary_row unaries[] = {
    {DLC_OP_NEG, same},     {DLC_OP_ABS, same},     {DLC_OP_RELU, same},     {DLC_OP_TANH, one},     {DLC_OP_SIGMOID, one},
    {DLC_OP_ERF, one},      {DLC_OP_EXP, grown},    {DLC_OP_SIN, one},       {DLC_OP_COS, one},      {DLC_OP_FLOOR, same},
    {DLC_OP_CEIL, same},    {DLC_OP_ROUND, same},   {DLC_OP_SIGN, one},      {DLC_OP_SOFTPLUS, same}, {DLC_OP_SOFTSIGN, one},
    {DLC_OP_HARD_SWISH, same}, {DLC_OP_MISH, same}, {DLC_OP_SWISH, same},    {DLC_OP_GELU, same},    {DLC_OP_ATAN, same},
    {DLC_OP_ASINH, same},   {DLC_OP_SINH, grown},   {DLC_OP_COSH, grown},    {DLC_OP_RELU, same},    {DLC_OP_TANH, one},
    {DLC_OP_SIGMOID, one},  {DLC_OP_SQRT, same},    {DLC_OP_LOG, same},      {DLC_OP_TAN, same},
    {DLC_OP_ACOSH, same},   {DLC_OP_ASIN, same},    {DLC_OP_ATANH, same},    {DLC_OP_IS_NAN, one},   {DLC_OP_IS_INF, one},
};
static const struct {
    dlc_opcode op;
    double alpha, beta;
} scaled[] = {{DLC_OP_LEAKY_RELU, 0.1, 0},  {DLC_OP_ELU, 0.7, 0},          {DLC_OP_CELU, 0.7, 0}, {DLC_OP_THRESHOLDED_RELU, 0.3, 0},
              {DLC_OP_SOFT_CAP, 2, 0},      {DLC_OP_HARD_SIGMOID, 0.2, 0.5}, {DLC_OP_SHRINK, 0.1, 0.4}};

static int is_partial(dlc_opcode op) /* only defined for some numbers */
{
    return op == DLC_OP_SQRT || op == DLC_OP_LOG || op == DLC_OP_ACOSH;
}

static dlc_value *positive(make *m, dlc_value *x)
{
    return make_binary(m, DLC_OP_ADD, make_unary(m, DLC_OP_ABS, x), make_scalar(m, x->type.dtype, 1));
}

static void scaled_unary(make *m, item x)
{
    uint32_t k = one_of(m->from, sizeof scaled / sizeof *scaled);
    dlc_attr attrs[] = {dlc_attr_float(DLC_ATTR_ALPHA, scaled[k].alpha), dlc_attr_float(DLC_ATTR_BETA, scaled[k].beta)};
    make_tame(m, make_node(m, scaled[k].op, &x.value, 1, attrs, scaled[k].beta ? 2 : 1), x.size + 1);
}

void kind_unary(make *m)
{
    static const dlc_opcode integer[] = {DLC_OP_NEG, DLC_OP_ABS, DLC_OP_SIGN, DLC_OP_NOT, DLC_OP_RELU};
    item x = make_pick(m, chance(m->from, 85) ? WANT_FLOAT : WANT_ANY, 0, 5);
    if (!x.value)
        return;
    if (!dlc_is_float(x.value->type.dtype)) {
        make_keep(m, make_unary(m, integer[one_of(m->from, 5)], x.value), 1, 0);
        return;
    }
    if (chance(m->from, 15)) {
        scaled_unary(m, x);
        return;
    }
    const unary_row *row = &unaries[one_of(m->from, sizeof unaries / sizeof *unaries)];
    if (row->size == grown && x.size > 3)
        x.value = make_unary(m, DLC_OP_TANH, x.value), x.size = 1;
    if (is_partial(row->op) && !chance(m->from, 10))
        x.value = positive(m, x.value);
    if (x.value)
        make_keep(m, make_unary(m, row->op, x.value), row->size(x.size), 0);
}

/* A value to stand beside x: of its shape, or of one that is broadcast to it. */
static item beside(make *m, dlc_value *x)
{
    dlc_type type = x->type;
    dlc_value *found = chance(m->from, 60) ? make_find(m, &type, x) : NULL;
    for (uint32_t i = 0; i < m->nitems; i++)
        if (found && m->items[i].value == found)
            return m->items[i];
    uint32_t cut = chance(m->from, 30) ? one_of(m->from, type.rank + 1u) : 0;
    for (uint32_t d = 0; d < type.rank; d++)
        if (chance(m->from, 15))
            type.dims[d] = make_int(m, 1);
    dlc_value *made = make_source(m, type.dtype, type.dims + cut, type.rank - cut, 0);
    return (item){made, 1.2, 0};
}

void kind_binary(make *m)
{
    static const dlc_opcode ops[] = {DLC_OP_ADD, DLC_OP_MUL, DLC_OP_SUB, DLC_OP_ADD, DLC_OP_MUL, DLC_OP_MIN,
                                     DLC_OP_MAX, DLC_OP_DIV, DLC_OP_POW, DLC_OP_MOD, DLC_OP_REM, DLC_OP_PRELU};
    item x = make_pick(m, chance(m->from, 80) ? WANT_FLOAT : WANT_NUM, 0, 5);
    if (!x.value)
        return;
    item y = beside(m, x.value);
    dlc_opcode op = ops[one_of(m->from, sizeof ops / sizeof *ops)];
    int divides = op == DLC_OP_DIV || op == DLC_OP_MOD || op == DLC_OP_REM;
    if (!y.value)
        return;
    if (divides && !chance(m->from, 8))
        y.value = positive(m, y.value);
    if (op == DLC_OP_POW) {
        static const double powers[] = {2, 3, 0.5, -1, 1.5, 0, 1};
        x.value = dlc_is_float(x.value->type.dtype) ? positive(m, x.value) : x.value;
        y.value = make_scalar(m, x.value ? x.value->type.dtype : DLC_F32, powers[one_of(m->from, 7)]);
    }
    if (!x.value || !y.value)
        return;
    int swaps = chance(m->from, 30) && !divides && op != DLC_OP_PRELU;
    dlc_value *z = swaps ? make_binary(m, op, y.value, x.value) : make_binary(m, op, x.value, y.value);
    make_tame(m, z, op == DLC_OP_MUL ? x.size * y.size : op == DLC_OP_POW ? x.size * x.size * x.size : x.size + y.size);
}

void kind_integer_binary(make *m)
{
    static const dlc_opcode ops[] = {DLC_OP_AND, DLC_OP_OR, DLC_OP_XOR, DLC_OP_SHL, DLC_OP_SHR,
                                     DLC_OP_ADD, DLC_OP_MUL, DLC_OP_SUB, DLC_OP_MIN, DLC_OP_MOD, DLC_OP_DIV};
    item x = make_pick(m, chance(m->from, 25) ? WANT_BOOL : WANT_INT, 0, 5);
    item y = x.value ? beside(m, x.value) : x;
    if (y.value)
        make_keep(m, make_binary(m, ops[one_of(m->from, 11)], x.value, y.value), 1, 0);
}

void kind_compare(make *m)
{
    static const dlc_opcode ops[] = {DLC_OP_LT, DLC_OP_LE, DLC_OP_EQ};
    item x = make_pick(m, WANT_NUM, 0, 5), y = x.value ? beside(m, x.value) : x;
    if (y.value)
        make_keep(m, make_binary(m, ops[one_of(m->from, 3)], x.value, y.value), 1, 0);
}

static dlc_value *condition_for(make *m, const dlc_type *type)
{
    dlc_type bools = *type;
    bools.dtype = DLC_BOOL;
    dlc_value *found = make_find(m, &bools, NULL);
    return found ? found : make_source(m, DLC_BOOL, bools.dims, bools.rank, 0);
}

void kind_where(make *m)
{
    item x = make_pick(m, WANT_ANY, 0, 5);
    if (!x.value)
        return;
    if (chance(m->from, 30) && x.value->type.dtype != DLC_BOOL) { /* clip */
        dlc_dtype t = x.value->type.dtype;
        dlc_value *in[] = {x.value, chance(m->from, 70) ? make_scalar(m, t, 0) : NULL, make_scalar(m, t, 6)};
        make_keep(m, make_node(m, DLC_OP_CLIP, in, 3, NULL, 0), x.size, x.value->type.dtype == DLC_F32 || !in[1] ? 0 : 7);
        return;
    }
    item y = beside(m, x.value);
    dlc_value *in[] = {condition_for(m, &x.value->type), x.value, y.value};
    if (in[0] && in[2])
        make_keep(m, make_node(m, DLC_OP_WHERE, in, 3, NULL, 0), x.size + y.size, 0);
}

void kind_cast(make *m)
{
    static const dlc_dtype codes[] = {DLC_F8E4M3FN, DLC_F8E5M2};
    item x = make_pick(m, WANT_ANY, 0, 5);
    if (!x.value)
        return;
    if (dlc_is_float(x.value->type.dtype) && chance(m->from, 12)) { /* through a narrow type */
        dlc_value *narrow = make_cast(m, make_cast(m, x.value, DLC_F32), codes[one_of(m->from, 2)]);
        make_keep(m, narrow ? make_cast(m, narrow, DLC_F32) : NULL, x.size, 0);
        return;
    }
    dlc_dtype to = chance(m->from, 50) ? make_float_dtype(m) : chance(m->from, 15) ? DLC_BOOL : make_int_dtype(m);
    dlc_attr attrs[] = {dlc_attr_int(DLC_ATTR_DTYPE, to), dlc_attr_int(DLC_ATTR_SATURATE, 1)};
    int saturates = dlc_is_int(to) && (dlc_is_float(x.value->type.dtype) || chance(m->from, 30));
    if (to != x.value->type.dtype)
        make_tame(m, make_node(m, DLC_OP_CAST, &x.value, 1, attrs, saturates ? 2 : 1), dlc_is_float(x.value->type.dtype) ? x.size : 200);
}

/* --- reductions and running sums --- */

static dlc_attr some_axes(make *m, uint32_t rank)
{
    int64_t axes[DLC_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t d = 0; d < rank; d++)
        if (chance(m->from, 45))
            axes[n++] = d;
    if (!n)
        axes[n++] = one_of(m->from, 2) ? rank - 1 : 0;
    return dlc_attr_ints(m->graph, DLC_ATTR_AXES, axes, n);
}

void kind_reduce(make *m)
{
    static const dlc_opcode ops[] = {DLC_OP_REDUCE_SUM, DLC_OP_REDUCE_MEAN, DLC_OP_REDUCE_MAX, DLC_OP_REDUCE_MIN, DLC_OP_REDUCE_SUM,
                                     DLC_OP_REDUCE_PROD};
    item x = make_pick(m, chance(m->from, 80) ? WANT_FLOAT : WANT_ANY, 1, 5);
    dlc_opcode op = ops[one_of(m->from, 6)];
    if (!x.value)
        return;
    dlc_attr attrs[] = {some_axes(m, x.value->type.rank), dlc_attr_int(DLC_ATTR_KEEPDIMS, one_of(m->from, 2))};
    double n = op == DLC_OP_REDUCE_SUM ? (double)make_elems(m, &x.value->type) : op == DLC_OP_REDUCE_PROD ? 2000 : 1;
    if (op == DLC_OP_REDUCE_PROD && dlc_is_float(x.value->type.dtype))
        x.value = make_unary(m, DLC_OP_SIGMOID, x.value), n = 1;
    if (x.value)
        make_tame(m, make_node(m, op, &x.value, 1, attrs, 2), x.size * sqrt(n));
}

void kind_arg_reduce(make *m)
{
    item x = make_pick(m, WANT_NUM, 1, 4);
    if (!x.value)
        return;
    dlc_attr attrs[] = {dlc_attr_int(DLC_ATTR_AXIS, one_of(m->from, x.value->type.rank)),
                        dlc_attr_int(DLC_ATTR_KEEPDIMS, one_of(m->from, 2)), dlc_attr_int(DLC_ATTR_LAST, one_of(m->from, 2))};
    make_keep(m, make_node(m, chance(m->from, 50) ? DLC_OP_ARGMAX : DLC_OP_ARGMIN, &x.value, 1, attrs, 3), 1, 0);
}

void kind_running(make *m)
{
    item x = make_pick(m, WANT_NUM, 1, 4);
    if (!x.value)
        return;
    dlc_attr attrs[] = {dlc_attr_int(DLC_ATTR_AXIS, one_of(m->from, x.value->type.rank)),
                        dlc_attr_int(DLC_ATTR_EXCLUSIVE, one_of(m->from, 2)), dlc_attr_int(DLC_ATTR_REVERSE, one_of(m->from, 2))};
    int is_prod = chance(m->from, 20);
    make_tame(m, make_node(m, is_prod ? DLC_OP_CUMPROD : DLC_OP_CUMSUM, &x.value, 1, attrs, 3), is_prod ? 3000 : x.size * 17);
}

/* --- contractions --- */

static dlc_expr drawn_int(make *m, const uint8_t *sizes, uint32_t n)
{
    return make_int(m, sizes[one_of(m->from, n)]);
}

static const uint8_t columns[] = {1, 2, 3, 4, 7, 8, 16, 17, 32, 33};

static void integer_matmul(make *m, item x, dlc_expr k)
{
    dlc_attr attr = dlc_attr_int(DLC_ATTR_DTYPE, DLC_I32);
    dlc_attr to = dlc_attr_int(DLC_ATTR_DTYPE, chance(m->from, 50) ? DLC_U8 : DLC_I8);
    dlc_value *a = make_node(m, DLC_OP_CAST, &x.value, 1, (dlc_attr[]){to, dlc_attr_int(DLC_ATTR_SATURATE, 1)}, 2);
    dlc_value *b = make_source(m, chance(m->from, 60) ? DLC_I8 : DLC_U8, (dlc_expr[]){k, drawn_int(m, columns, 10)}, 2, 0);
    make_keep(m, a && b ? make_node(m, DLC_OP_MATMUL, (dlc_value *[]){a, b}, 2, &attr, 1) : NULL, 1000, 0);
}

void kind_matmul(make *m)
{
    item x = make_pick(m, chance(m->from, 80) ? WANT_FLOAT : WANT_NUM, 2, 4);
    if (!x.value)
        return;
    uint32_t rank = x.value->type.rank;
    dlc_expr k = x.value->type.dims[rank - 1], dims[DLC_MAX_RANK];
    if (chance(m->from, 12)) {
        integer_matmul(m, x, k);
        return;
    }
    uint32_t of = chance(m->from, 65) ? 2 : rank;
    memcpy(dims, x.value->type.dims, of * sizeof *dims);
    dims[of - 2] = k;
    dims[of - 1] = drawn_int(m, columns, 10);
    dlc_value *y = make_source(m, x.value->type.dtype, dims, of, 0);
    make_tame(m, y ? make_binary(m, DLC_OP_MATMUL, x.value, y) : NULL, x.size * 4);
}

void kind_einsum(make *m)
{
    static const struct {
        const char *equation;
        uint8_t rank[2];
    } rows[] = {{"abk,kc->acb", {3, 2}}, {"ab,b->a", {2, 1}}, {"abc,abd->acd", {3, 3}}, {"ab->ba", {2, 0}}, {"ab,cb->ac", {2, 2}},
                {"abc->b", {3, 0}},      {"a,b->ab", {1, 1}}, {"bhid,bhjd->bhij", {4, 4}}};
    uint32_t r = one_of(m->from, sizeof rows / sizeof *rows), n = 0;
    const char *comma = strchr(rows[r].equation, ',');
    item x = make_pick(m, WANT_FLOAT, rows[r].rank[0], rows[r].rank[0]);
    dlc_expr dims[DLC_MAX_RANK];
    if (!x.value)
        return;
    for (const char *at = comma ? comma + 1 : ""; *at && *at != '-'; at++, n++) {
        const char *in_x = memchr(rows[r].equation, *at, (size_t)(comma - rows[r].equation));
        dims[n] = in_x ? x.value->type.dims[in_x - rows[r].equation] : drawn_int(m, columns, 10);
    }
    dlc_value *in[] = {x.value, comma ? make_source(m, x.value->type.dtype, dims, n, 0) : NULL};
    dlc_attr attr = dlc_attr_text(DLC_ATTR_EQUATION, rows[r].equation);
    if (!comma || in[1])
        make_tame(m, make_node(m, DLC_OP_EINSUM, in, comma ? 2 : 1, &attr, 1), x.size * 4);
}

/* --- windows --- */

typedef struct {
    int64_t kernel[3], strides[3], dilations[3], pads[6];
} window;

static window some_window(make *m, uint32_t n)
{
    window w;
    int is_plain = chance(m->from, 40);
    for (uint32_t d = 0; d < n; d++) {
        w.kernel[d] = chance(m->from, 50) ? 3 : 1 + one_of(m->from, 4);
        w.strides[d] = is_plain || chance(m->from, 60) ? 1 : 1 + one_of(m->from, 3);
        w.dilations[d] = is_plain || chance(m->from, 75) ? 1 : 2;
        w.pads[d] = chance(m->from, 60) ? w.kernel[d] / 2 : one_of(m->from, (uint32_t)w.kernel[d]);
        w.pads[d + n] = chance(m->from, 70) ? w.pads[d] : one_of(m->from, (uint32_t)w.kernel[d]);
    }
    return w;
}

/* n,c,s… of 1 to 3 spatial dimensions. */
static item some_image(make *m)
{
    static const uint8_t channels[] = {1, 2, 3, 4, 6, 8, 16, 17, 32}, sizes[] = {1, 4, 5, 7, 8, 9, 12};
    item x = make_pick(m, WANT_FLOAT, 3, 5);
    if (x.value && chance(m->from, 65))
        return x;
    uint32_t n = chance(m->from, 65) ? 2 : 1 + one_of(m->from, 3);
    dlc_expr dims[5] = {make_int(m, 1 + one_of(m->from, 2)), drawn_int(m, channels, 9)};
    for (uint32_t d = 0; d < n; d++)
        dims[2 + d] = drawn_int(m, sizes, 7);
    if (m->graph->symbols.n && m->graph->symbols.data[0].bind == DLC_BIND_INPUT_DIM && chance(m->from, 25))
        dims[one_of(m->from, 2) * 2] = dlc_expr_sym(m->graph->pool, 0);
    dlc_value *made = make_input(m, make_float_dtype(m), dims, n + 2, 0);
    item *it = make_keep(m, made, 1, 0);
    return it ? *it : (item){0};
}

static uint32_t window_attrs(make *m, const window *w, uint32_t n, dlc_attr *attrs)
{
    attrs[0] = dlc_attr_ints(m->graph, DLC_ATTR_PADS, w->pads, 2 * n);
    attrs[1] = dlc_attr_ints(m->graph, DLC_ATTR_STRIDES, w->strides, n);
    attrs[2] = dlc_attr_ints(m->graph, DLC_ATTR_DILATIONS, w->dilations, n);
    return 3;
}

void kind_conv(make *m)
{
    static const uint8_t filters[] = {1, 2, 4, 8, 16, 17, 24, 32};
    item x = some_image(m);
    int64_t c;
    if (!x.value || !dlc_expr_is_int(m->graph->pool, x.value->type.dims[1], &c) || c < 1)
        return;
    uint32_t n = x.value->type.rank - 2u;
    window w = some_window(m, n);
    int64_t group = chance(m->from, 70) ? 1 : c % 2 == 0 && chance(m->from, 50) ? 2 : c;
    int64_t oc = group == 1 ? filters[one_of(m->from, 8)] : group * (1 + one_of(m->from, 2));
    dlc_expr dims[5] = {make_int(m, oc), make_int(m, c / group)};
    for (uint32_t d = 0; d < n; d++)
        dims[2 + d] = make_int(m, w.kernel[d]);
    dlc_attr attrs[4];
    uint32_t nattrs = window_attrs(m, &w, n, attrs);
    attrs[nattrs++] = dlc_attr_int(DLC_ATTR_GROUP, group);
    dlc_value *y = make_source(m, x.value->type.dtype, dims, n + 2, 0);
    y = y ? make_node(m, DLC_OP_CONV, (dlc_value *[]){x.value, y}, 2, attrs, nattrs) : NULL;
    if (y && chance(m->from, 50)) { /* a bias, or a residual of its shape */
        dlc_expr bias[5] = {make_int(m, oc), make_int(m, 1), make_int(m, 1), make_int(m, 1)};
        dlc_value *b = make_source(m, y->type.dtype, bias, n + 1, 0);
        y = b ? make_binary(m, DLC_OP_ADD, y, b) : y;
    }
    make_tame(m, y, x.size * 6);
}

void kind_conv_transpose(make *m)
{
    item x = some_image(m);
    int64_t c;
    if (!x.value || !dlc_expr_is_int(m->graph->pool, x.value->type.dims[1], &c) || c < 1)
        return;
    uint32_t n = x.value->type.rank - 2u;
    window w = some_window(m, n);
    int64_t group = c % 2 == 0 && chance(m->from, 30) ? 2 : 1;
    dlc_expr dims[5] = {make_int(m, c), make_int(m, 1 + one_of(m->from, 4))};
    for (uint32_t d = 0; d < n; d++)
        dims[2 + d] = make_int(m, w.kernel[d]);
    dlc_attr attrs[4];
    uint32_t nattrs = window_attrs(m, &w, n, attrs);
    attrs[nattrs++] = dlc_attr_int(DLC_ATTR_GROUP, group);
    dlc_value *y = make_source(m, x.value->type.dtype, dims, n + 2, 0);
    make_tame(m, y ? make_node(m, DLC_OP_CONV_TRANSPOSE, (dlc_value *[]){x.value, y}, 2, attrs, nattrs) : NULL, x.size * 4);
}

void kind_pool(make *m)
{
    static const dlc_opcode ops[] = {DLC_OP_MAX_POOL, DLC_OP_AVG_POOL, DLC_OP_LP_POOL};
    item x = some_image(m);
    if (!x.value)
        return;
    uint32_t n = x.value->type.rank - 2u, k = one_of(m->from, 7) / 3;
    window w = some_window(m, n);
    dlc_attr attrs[6];
    uint32_t nattrs = window_attrs(m, &w, n, attrs);
    attrs[nattrs++] = dlc_attr_ints(m->graph, DLC_ATTR_KERNEL, w.kernel, n);
    if (ops[k] == DLC_OP_LP_POOL)
        attrs[nattrs++] = dlc_attr_int(DLC_ATTR_P, 2);
    if (ops[k] == DLC_OP_AVG_POOL)
        attrs[nattrs++] = dlc_attr_int(DLC_ATTR_COUNT_PAD, one_of(m->from, 2));
    make_keep(m, make_node(m, ops[k], &x.value, 1, attrs, nattrs), x.size, 0);
}

/* --- images --- */

void kind_resize(make *m)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coords[] = {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"};
    item x = some_image(m);
    dlc_expr dims[5];
    if (!x.value)
        return;
    memcpy(dims, x.value->type.dims, sizeof dims);
    for (uint32_t d = 2; d < x.value->type.rank; d++)
        dims[d] = chance(m->from, 50) ? dlc_muli(m->graph->pool, dims[d], 2) : make_int(m, 1 + one_of(m->from, 11));
    dlc_attr attrs[] = {dlc_attr_dims(DLC_ATTR_DIMS, dims, x.value->type.rank),
                        dlc_attr_text(DLC_ATTR_MODE, modes[x.value->type.rank == 4 ? one_of(m->from, 3) : one_of(m->from, 2)]),
                        dlc_attr_text(DLC_ATTR_COORD, coords[one_of(m->from, 4)])};
    make_keep(m, make_node(m, DLC_OP_RESIZE, &x.value, 1, attrs, 3), x.size * 2, 0);
}

void kind_grid_sample(make *m)
{
    static const char *const modes[] = {"linear", "nearest", "cubic"}, *const coords[] = {"zeros", "border", "reflection"};
    item x = some_image(m);
    if (!x.value || x.value->type.rank != 4)
        return;
    dlc_expr dims[4] = {x.value->type.dims[0], make_int(m, 1 + one_of(m->from, 5)), make_int(m, 1 + one_of(m->from, 5)), make_int(m, 2)};
    dlc_attr attrs[] = {dlc_attr_text(DLC_ATTR_MODE, modes[one_of(m->from, 3)]), dlc_attr_text(DLC_ATTR_COORD, coords[one_of(m->from, 3)]),
                        dlc_attr_int(DLC_ATTR_ALIGN_CORNERS, one_of(m->from, 2))};
    dlc_value *grid = make_source(m, x.value->type.dtype, dims, 4, 0);
    make_keep(m, grid ? make_node(m, DLC_OP_GRID_SAMPLE, (dlc_value *[]){x.value, grid}, 2, attrs, 3) : NULL, x.size * 2, 0);
}
