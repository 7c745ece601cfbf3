/* Labels for labels: LabelEncoder and CategoryMapper. Strings are looked up in a table by their numbers, other keys are compared with
 * each element. */
#include "frontend/import_ml.h"
#include "frontend/import_string.h"

#include <stdio.h>

/* Keys or values: strings, floats, integers, or a tensor; NULL: none. */
static dlc_value *encoder_list(dlc_import *im, const char *kind)
{
    uint32_t n = 0;
    char name[32];
    snprintf(name, sizeof name, "%s_strings", kind);
    const char **texts = im_texts(im, name, &n);
    if (texts && n)
        return im_strings(im, texts, n, 1);
    snprintf(name, sizeof name, "%s_floats", kind);
    const float *floats = im_floats(im, name, &n);
    if (floats && n)
        return f_floats(im, floats, n);
    snprintf(name, sizeof name, "%s_int64s", kind);
    const int64_t *ints = im_ints(im, name, &n);
    if (ints && n)
        return dlc_graph_ints(im->graph, ints, n);
    snprintf(name, sizeof name, "%s_tensor", kind);
    return im_has(im, name) ? im_tensor_attribute(im, name) : NULL;
}

static dlc_value *encoder_default(dlc_import *im, const dlc_value *values)
{
    double number = im_float(im, "default_float", -0.0);
    int64_t integer = im_int(im, "default_int64", -1);
    const char *text = im_text(im, "default_string", "_Unused");
    dlc_value *tensor = im_has(im, "default_tensor") ? im_tensor_attribute(im, "default_tensor") : NULL;
    if (tensor)
        return f_reshape(im, tensor, NULL, 0);
    if (dlc_is_text(values->type.dtype))
        return im_strings(im, &text, 1, 0);
    return f_like(im, values, dlc_is_float(values->type.dtype) ? number : (double)integer);
}

/* Element `which` of the values, or `other` where there are not as many. */
static dlc_value *value_at(dlc_import *im, dlc_value *values, dlc_value *other, dlc_value *which)
{
    const dlc_expr one[1] = {im_i64(im, 1)}, all[1] = {im_product(im, values->type.dims, im_rank(values))};
    dlc_value *parts[2] = {f_reshape(im, values, all, 1), f_reshape(im, other, one, 1)};
    return parts[0] && parts[1] && which ? f_gather(im, f_concat(im, parts, 2, 0), which, 0) : NULL;
}

static dlc_value *other_than(dlc_import *im, dlc_value *x, dlc_value *keys, dlc_value *values, dlc_value *other)
{
    dlc_value *same = ml_matches(im, x, f_cast(im, keys, x->type.dtype), im->opset >= 4);
    if (!same)
        return NULL;
    const uint32_t last = im_rank(same) - 1;
    const uint8_t axes[1] = {(uint8_t)last};
    dlc_value *which = f_node(im, DLC_OP_ARGMAX, F_IN(f_cast(im, same, DLC_I32)),
                              F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, last),
                                      dlc_attr_int(DLC_ATTR_KEEPDIMS, 0),
                                      dlc_attr_int(DLC_ATTR_LAST, 0)));
    dlc_value *is_any = f_reduce(im, DLC_OP_REDUCE_MAX, same, axes, 1, 0);
    return f_where(im, is_any, f_gather(im, values, which, 0), other);
}

/* The value of the first key that an element equals, else the default. */
void import_label_encoder(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *keys = encoder_list(im, "keys"), *values = encoder_list(im, "values");
    if (im_ok(im) && (!keys || !values))
        im_fail(im, DLC_INVALID, "names no keys or no values");
    else if (im_ok(im) && dlc_is_text(keys->type.dtype) != dlc_is_text(x->type.dtype))
        im_fail(im, DLC_INVALID, "the input is %s, and the keys are %s", dlc_dtypes[x->type.dtype].text, dlc_dtypes[keys->type.dtype].text);
    if (!im_ok(im) || !im_same_dim(im, im_product(im, keys->type.dims, im_rank(keys)), im_product(im, values->type.dims, im_rank(values)),
                                   "numbers of keys and values"))
        return;
    dlc_value *other = encoder_default(im, values);
    im->out[0] = !dlc_is_text(x->type.dtype) ? other_than(im, x, keys, values, other)
                                             : value_at(im, values, other, im_places(im, x, keys));
}

/* --- strings to numbers, or back --- */

/* Strings are looked up in `texts`, whose places have `numbers` (NULL: their own); numbers the other way. */
static void map_both_ways(dlc_import *im, const char **texts, const int64_t *numbers, uint32_t n)
{
    const int64_t other = im_int(im, "default_int64", -1);
    const char *other_text = im_text(im, "default_string", "_Unused");
    int64_t *places = dlc_new_array(im->arena, int64_t, n + 1u);
    for (uint32_t i = 0; i < n; i++)
        places[i] = numbers ? numbers[i] : i;
    dlc_value *x = im_in(im, 0), *words = im_strings(im, texts, n, 1), *values = dlc_graph_ints(im->graph, places, n);
    if (dlc_is_text(x->type.dtype))
        im->out[0] = value_at(im, values, f_scalar(im, DLC_I64, (double)other), im_places(im, x, words));
    else
        im->out[0] = other_than(im, f_cast(im, x, DLC_I64), values, words, im_strings(im, &other_text, 1, 0));
}

void import_label_encoder_1(dlc_import *im)
{
    uint32_t n = 0;
    const char **texts = im_texts(im, "classes_strings", &n);
    if (!texts || !n)
        im_fail(im, DLC_INVALID, "names no classes");
    if (im_ok(im))
        map_both_ways(im, texts, NULL, n);
}

void import_category_mapper(dlc_import *im)
{
    uint32_t n = 0, nnumbers = 0;
    const char **texts = im_texts(im, "cats_strings", &n);
    const int64_t *numbers = im_ints(im, "cats_int64s", &nnumbers);
    if (!texts || !numbers || !n || n != nnumbers)
        im_fail(im, DLC_INVALID, "names %u strings and %u numbers; as many of both are wanted", n, nnumbers);
    if (im_ok(im))
        map_both_ways(im, texts, numbers, n);
}
