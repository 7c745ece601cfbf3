/* Contractions: MatMul, Gemm, Einsum. */
#include "base/text.h"
#include "frontend/import.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* numpy's: a vector on either side gets a dimension of 1, which the result loses again. */
void import_mat_mul(dlc_import *im)
{
    dlc_value *a = im_in(im, 0), *b = im_in(im, 1);
    uint32_t rank_a = im_rank(a), rank_b = im_rank(b);
    if (!rank_a || !rank_b) {
        im_fail(im, DLC_INVALID, "an input is a scalar");
        return;
    }
    dlc_value *y = f_matmul(im, rank_a == 1 ? f_insert_axis(im, a, 0) : a,
                            rank_b == 1 ? f_insert_axis(im, b, 1) : b);
    if (rank_b == 1)
        y = y ? f_drop_axis(im, y, im_rank(y) - 1) : NULL;
    if (rank_a == 1)
        y = y ? f_drop_axis(im, y, im_rank(y) - (rank_b == 1 ? 1 : 2)) : NULL;
    im->out[0] = y;
}

static dlc_value *scaled(dlc_import *im, dlc_value *x, double factor)
{
    if (!x || factor == 1)
        return x;
    if (dlc_is_float(x->type.dtype) || factor == rint(factor))
        return f_mul(im, x, f_like(im, x, factor));
    im_fail(im, DLC_UNSUPPORTED, "a factor of %g for %s; integers want whole factors", factor,
            dlc_dtypes[x->type.dtype].text);
    return NULL;
}

void import_gemm(dlc_import *im)
{
    double alpha = im_float(im, "alpha", 1), beta = im_float(im, "beta", 1);
    int64_t trans_a = im_int(im, "transA", 0), trans_b = im_int(im, "transB", 0);
    dlc_value *a = im_in(im, 0), *b = im_in(im, 1), *c = im_in(im, 2);
    if (im_rank(a) != 2 || im_rank(b) != 2) {
        im_fail(im, DLC_INVALID,
                "inputs have ranks %" PRIu32 " and %" PRIu32 "; matrices are wanted", im_rank(a),
                im_rank(b));
        return;
    }
    dlc_value *product =
        f_matmul(im, trans_a ? f_swap_last(im, a) : a, trans_b ? f_swap_last(im, b) : b);
    product = scaled(im, product, alpha);
    im->out[0] = c && beta != 0 ? f_add(im, product, scaled(im, c, beta)) : product;
    if (product)
        im_keeps_shape(im, im->out[0], product);
}

/* --- Einsum: to the core operator's form, explicit and without spaces or ellipsis --- */

typedef struct {
    char text[256];
    uint32_t n;
    uint8_t is_used[128];
    char ellipsis[DLC_MAX_RANK + 1]; /* letters that stand for "..." */
    uint32_t nellipsis;
    int has_ellipsis;
} equation;

static int strip(dlc_import *im, const char *source, equation *e)
{
    for (const char *at = source; *at; at++) {
        if (*at == ' ')
            continue;
        if (e->n + 1 >= sizeof e->text || !(dlc_is_alpha(*at) || strchr(",.->", *at))) {
            im_fail(im, DLC_INVALID, "equation '%.100s' %s", source,
                    e->n + 1 >= sizeof e->text ? "is too long"
                                               : "has a character that is no letter");
            return 0;
        }
        e->text[e->n++] = *at;
        e->is_used[(unsigned char)*at] = 1;
    }
    e->text[e->n] = 0;
    return 1;
}

/* Length of the term at `at`, and how many of its characters are letters; -1 when it is malformed.
 */
static int term_letters(const char *at, size_t span, int *has_ellipsis)
{
    int letters = 0;
    *has_ellipsis = 0;
    for (size_t i = 0; i < span; i++) {
        if (dlc_is_alpha(at[i])) {
            letters++;
        } else if (strncmp(at + i, "...", 3) == 0 && !*has_ellipsis && i + 3 <= span) {
            *has_ellipsis = 1;
            i += 2;
        } else {
            return -1;
        }
    }
    return letters;
}

/* How many dimensions "..." stands for, from the ranks of the operands. */
static int measure(dlc_import *im, equation *e)
{
    const char *at = e->text;
    for (uint32_t i = 0; i < im->nin; i++) {
        size_t span = strcspn(at, ",-");
        int has_ellipsis, letters = term_letters(at, span, &has_ellipsis);
        int spare = (int)im_rank(im->in[i]) - letters;
        int is_last = at[span] != ',';
        if (letters < 0 || spare < 0 || (spare && !has_ellipsis) || is_last != (i + 1 == im->nin)) {
            im_fail(im, DLC_INVALID,
                    "equation '%s' does not fit input %" PRIu32 " of rank %" PRIu32, e->text, i,
                    im_rank(im->in[i]));
            return 0;
        }
        if (has_ellipsis && (uint32_t)spare > e->nellipsis)
            e->nellipsis = (uint32_t)spare;
        e->has_ellipsis |= has_ellipsis;
        at += span + !is_last;
    }
    for (uint32_t k = 0, c = 'A'; k < e->nellipsis; c++) {
        if (dlc_is_alpha(c) && !e->is_used[c])
            e->ellipsis[k++] = (char)c;
        if (c >= 'z')
            break;
    }
    return strlen(e->ellipsis) == e->nellipsis;
}

typedef struct {
    char text[512];
    uint32_t n;
    int is_full;
} normal_form;

static void put(normal_form *out, char c)
{
    out->is_full |= out->n + 1 == sizeof out->text;
    if (!out->is_full)
        out->text[out->n++] = c;
    out->text[out->n] = 0;
}

/* Copies a term; "..." of an operand with fewer dimensions takes the last letters. */
static void put_term(normal_form *out, const equation *e, const char *at, size_t span,
                     uint32_t ellipsis)
{
    for (size_t i = 0; i < span; i++) {
        if (at[i] != '.') {
            put(out, at[i]);
            continue;
        }
        for (uint32_t k = e->nellipsis - ellipsis; k < e->nellipsis; k++)
            put(out, e->ellipsis[k]);
        i += 2;
    }
}

/* Without "->": the ellipsis, then the letters that occur once, in ASCII order. */
static void put_implicit(normal_form *out, const equation *e)
{
    int count[128] = {0};
    for (const char *at = e->text; *at; at++)
        count[(unsigned char)*at]++;
    for (uint32_t k = 0; k < e->nellipsis; k++)
        put(out, e->ellipsis[k]);
    for (int c = 'A'; c <= 'z'; c++) {
        if (dlc_is_alpha(c) && count[c] == 1)
            put(out, (char)c);
    }
}

void import_einsum(dlc_import *im)
{
    equation e = {.n = 0};
    normal_form out = {.n = 0};
    const char *source = im_text(im, "equation", "");
    if (!strip(im, source, &e) || !measure(im, &e))
        return;
    const char *at = e.text;
    for (uint32_t i = 0; i < im->nin; i++) {
        size_t span = strcspn(at, ",-");
        int has_ellipsis, letters = term_letters(at, span, &has_ellipsis);
        put_term(&out, &e, at, span, im_rank(im->in[i]) - (uint32_t)letters);
        put(&out, i + 1 < im->nin ? ',' : '-');
        at += span + (at[span] == ',');
    }
    put(&out, '>');
    int has_ellipsis;
    if (!*at)
        put_implicit(&out, &e);
    else if (strncmp(at, "->", 2) == 0 && term_letters(at + 2, strlen(at + 2), &has_ellipsis) >= 0)
        put_term(&out, &e, at + 2, strlen(at + 2), e.nellipsis);
    else
        im_fail(im, DLC_INVALID, "equation '%.100s' has a malformed output", source);
    if (out.is_full)
        im_fail(im, DLC_LIMIT, "equation '%.100s' has more than %zu characters written out", source,
                sizeof out.text - 1);
    if (im_ok(im))
        im->out[0] = f_node(im, DLC_OP_EINSUM, im->in, im->nin,
                            F_ATTRS(dlc_attr_text(DLC_ATTR_EQUATION, out.text)));
}
