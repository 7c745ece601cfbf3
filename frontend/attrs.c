/* Attributes of the node being imported. Whoever reads one marks it; what nobody read is unknown
 * and refused by name. */
#include "frontend/import_steps.h"

#include <inttypes.h>
#include <string.h>

typedef Onnx__AttributeProto attribute_proto;

enum {
    KIND_FLOAT = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT,
    KIND_INT = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT,
    KIND_STRING = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING,
    KIND_FLOATS = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS,
    KIND_INTS = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS,
    KIND_STRINGS = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS
};

static const char *const kinds[] = {"UNDEFINED",      "FLOAT",      "INT",        "STRING",
                                    "TENSOR",         "GRAPH",      "FLOATS",     "INTS",
                                    "STRINGS",        "TENSORS",    "GRAPHS",     "SPARSE_TENSOR",
                                    "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};

static const char *kind_name(int kind)
{
    return kind >= 0 && kind < (int)(sizeof kinds / sizeof *kinds) ? kinds[kind] : "unknown";
}

/* An attribute that refers to one of the function's call is that one, under its own name; NULL: the
 * call has none. */
static const attribute_proto *resolve(const dlc_body *body, const attribute_proto *proto)
{
    if (!proto->ref_attr_name || !*proto->ref_attr_name)
        return proto;
    for (uint32_t i = 0; i < body->attributes.n; i++) {
        if (strcmp(body->attributes.data[i].name, proto->ref_attr_name) == 0)
            return body->attributes.data[i].proto;
    }
    return NULL;
}

static dlc_onnx_attribute *find(dlc_import *im, const char *name)
{
    for (uint32_t i = 0; i < im->attributes.n; i++) {
        if (strcmp(im->attributes.data[i].name, name) == 0)
            return &im->attributes.data[i];
    }
    return NULL;
}

void im_rename(dlc_import *im, const char *attribute, const char *name)
{
    dlc_onnx_attribute *found = find(im, attribute);
    if (found)
        found->name = name;
}

/* How many of its value fields are there; a repeated field is one. */
static unsigned count_values(const attribute_proto *proto)
{
    return (unsigned)(proto->has_f != 0) + (proto->has_i != 0) + (proto->has_s != 0) +
           (proto->t != NULL) + (proto->g != NULL) + (proto->sparse_tensor != NULL) +
           (proto->tp != NULL) + (proto->n_floats > 0) + (proto->n_ints > 0) +
           (proto->n_strings > 0) + (proto->n_tensors > 0) + (proto->n_graphs > 0) +
           (proto->n_sparse_tensors > 0) + (proto->n_type_protos > 0);
}

/* Only a function's body refers to attributes of its call. */
static int is_astray(const dlc_import *im, const dlc_body *body, const attribute_proto *proto)
{
    return proto->ref_attr_name && *proto->ref_attr_name && body->opsets == &im->opsets;
}

void im_read_attributes(dlc_import *im, const dlc_body *body)
{
    enum { MOST = 512 }; /* each is looked for among all */
    const Onnx__NodeProto *node = im->node;
    im->attributes.n = 0; /* the array is used again: what must outlive the node is copied */
    if (node->n_attribute > MOST) {
        im_fail(im, DLC_LIMIT, "it has %zu attributes; up to %d are possible", node->n_attribute, MOST);
        return;
    }
    for (size_t i = 0; i < node->n_attribute; i++) {
        const char *name = node->attribute[i]->name;
        const attribute_proto *proto = resolve(body, node->attribute[i]);
        if (!name || !*name)
            im_fail(im, DLC_INVALID, "attribute %zu has no name", i);
        else if (find(im, name))
            im_fail(im, DLC_INVALID, "attribute '%s' is given twice", name);
        else if (is_astray(im, body, node->attribute[i]))
            im_fail(im, DLC_INVALID,
                    "attribute '%s' refers to attribute '%s' of a function's call; the node is in no function",
                    name, node->attribute[i]->ref_attr_name);
        else if (proto && count_values(proto) > 1)
            im_fail(im, DLC_INVALID, "attribute '%s' has values of %u kinds; it can have one", name,
                    count_values(proto));
        else if (proto)
            dlc_vec_push(im->arena, &im->attributes, ((dlc_onnx_attribute){name, proto, 0}));
    }
}

int im_has(dlc_import *im, const char *name)
{
    return find(im, name) != NULL;
}

const attribute_proto *im_attribute(dlc_import *im, const char *name)
{
    dlc_onnx_attribute *attribute = find(im, name);
    if (!attribute)
        return NULL;
    attribute->is_read = 1;
    return attribute->proto;
}

/* The attribute if it is there and of this kind. Models of IR 1 state no kind. */
static const attribute_proto *of_kind(dlc_import *im, const char *name, int kind)
{
    const attribute_proto *proto = im_attribute(im, name);
    int found = proto && proto->has_type ? (int)proto->type : kind;
    if (!proto || found == kind)
        return proto;
    im_fail(im, DLC_INVALID, "attribute '%s' is of kind %s where %s is wanted", name,
            kind_name(found), kind_name(kind));
    return NULL;
}

int64_t im_int(dlc_import *im, const char *name, int64_t otherwise)
{
    const attribute_proto *proto = of_kind(im, name, KIND_INT);
    return proto ? proto->i : otherwise;
}

double im_float(dlc_import *im, const char *name, double otherwise)
{
    const attribute_proto *proto = of_kind(im, name, KIND_FLOAT);
    return proto ? (double)proto->f : otherwise;
}

static const char *text_of(dlc_import *im, const char *name, const ProtobufCBinaryData *bytes)
{
    if (!memchr(bytes->data ? (const char *)bytes->data : "", 0, bytes->len))
        return dlc_arena_strndup(im->arena, bytes->data ? (const char *)bytes->data : "",
                                 bytes->len);
    im_fail(im, DLC_INVALID, "attribute '%s' holds a NUL", name);
    return "";
}

const char *im_text(dlc_import *im, const char *name, const char *otherwise)
{
    const attribute_proto *proto = of_kind(im, name, KIND_STRING);
    return proto ? text_of(im, name, &proto->s) : otherwise;
}

const int64_t *im_ints(dlc_import *im, const char *name, uint32_t *n)
{
    static const int64_t none;
    const attribute_proto *proto = of_kind(im, name, KIND_INTS);
    *n = proto && proto->n_ints < UINT32_MAX ? (uint32_t)proto->n_ints : 0;
    return !proto ? NULL : *n ? proto->ints : &none;
}

const float *im_floats(dlc_import *im, const char *name, uint32_t *n)
{
    static const float none;
    const attribute_proto *proto = of_kind(im, name, KIND_FLOATS);
    *n = proto && proto->n_floats < UINT32_MAX ? (uint32_t)proto->n_floats : 0;
    return !proto ? NULL : *n ? proto->floats : &none;
}

const char **im_texts(dlc_import *im, const char *name, uint32_t *n)
{
    const attribute_proto *proto = of_kind(im, name, KIND_STRINGS);
    *n = 0;
    if (!proto)
        return NULL;
    const char **texts = dlc_new_array(im->arena, const char *, proto->n_strings + 1);
    for (; *n < proto->n_strings; ++*n)
        texts[*n] = text_of(im, name, &proto->strings[*n]);
    return texts;
}

static int is_choice(const char *choices, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = choices; *at;) {
        size_t span = strcspn(at, "|");
        if (span == n && memcmp(at, word, n) == 0)
            return 1;
        at += span + (at[span] == '|');
    }
    return 0;
}

const char *im_choice(dlc_import *im, const char *name, const char *otherwise, const char *choices)
{
    const char *word = im_text(im, name, otherwise);
    if (is_choice(choices, word))
        return word;
    im_fail(im, DLC_UNSUPPORTED, "attribute '%s' is '%.100s'; supported: %s", name, word, choices);
    return NULL;
}

int im_only(dlc_import *im, const char *name, int64_t otherwise, int64_t only)
{
    int64_t value = im_int(im, name, otherwise);
    if (value == only)
        return 1;
    im_fail(im, DLC_UNSUPPORTED, "attribute '%s' is %" PRId64 "; supported: %" PRId64, name, value,
            only);
    return 0;
}
