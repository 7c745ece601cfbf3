/* Tensors of strings, whose elements are pointers: in memory, and as numpy has them in files, with a fixed number of characters of
 * four bytes each ("<U5") or of bytes ("|S5"), zeros behind the last. */
#include "cli/tensors.h"

#include <string.h>

size_t dlc_tensor_elems(const dlcrt_tensor *tensor)
{
    return tensor->size_bytes / dlc_dtype_bytes(tensor->dtype);
}

const char *dlc_tensor_string(const dlcrt_tensor *tensor, uint64_t i)
{
    const char *text;
    memcpy(&text, (const char *)tensor->data + i * sizeof text, sizeof text);
    return text;
}

void dlc_tensor_own_strings(dlcrt_tensor *tensor, dlc_arena *arena)
{
    for (size_t i = 0; dlc_is_text(tensor->dtype) && i < dlc_tensor_elems(tensor); i++)
        ((const char **)tensor->data)[i] = dlc_arena_strdup(arena, dlc_tensor_string(tensor, i));
}

/* --- characters --- */
/* The character at *text, and *text behind it; a byte that is no UTF-8 is U+FFFD. */
static uint32_t next_character(const char **text)
{
    const unsigned char *at = (const unsigned char *)*text;
    unsigned n = at[0] < 0x80 ? 1 : at[0] >> 5 == 6 ? 2 : at[0] >> 4 == 14 ? 3 : at[0] >> 3 == 30 ? 4 : 0;
    uint32_t code = n == 1 ? at[0] : at[0] & (0xffu >> (n + 1));
    for (unsigned i = 1; i < n; i++) {
        if (at[i] >> 6 != 2)
            n = 0;
        else
            code = code << 6 | (at[i] & 63u);
    }
    *text += n ? n : 1;
    return n ? code : 0xfffd;
}

static void add_character(dlc_str *out, uint32_t code)
{
    char bytes[4];
    unsigned n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (unsigned i = n; i-- > 1; code >>= 6)
        bytes[i] = (char)(0x80 | (code & 63));
    bytes[0] = (char)(n == 1 ? code : ((0xf00u >> n & 0xff) | code));
    dlc_str_addn(out, bytes, n);
}

/* --- numpy's form --- */
uint32_t dlc_strings_width(const dlcrt_tensor *tensor)
{
    uint32_t width = 1; /* numpy has no strings of none */
    for (size_t i = 0; i < dlc_tensor_elems(tensor); i++) {
        uint32_t n = 0;
        for (const char *text = dlc_tensor_string(tensor, i); *text; n++)
            (void)next_character(&text);
        width = n > width ? n : width;
    }
    return width;
}

void dlc_strings_pack(const dlcrt_tensor *tensor, dlc_str *out)
{
    uint32_t width = dlc_strings_width(tensor);
    for (size_t i = 0; i < dlc_tensor_elems(tensor); i++) {
        const char *text = dlc_tensor_string(tensor, i);
        for (uint32_t k = 0; k < width; k++) {
            uint32_t code = *text ? next_character(&text) : 0;
            const char bytes[4] = {(char)code, (char)(code >> 8), (char)(code >> 16), 0};
            dlc_str_addn(out, bytes, sizeof bytes);
        }
    }
}

static const char *unpack_one(const unsigned char *bytes, uint32_t unit, uint32_t width, dlc_arena *arena)
{
    dlc_str text = {0};
    while (width && !bytes[(width - 1) * unit] && (unit == 1 || (!bytes[(width - 1) * unit + 1] && !bytes[(width - 1) * unit + 2])))
        width--;
    for (uint32_t k = 0; k < width; k++) {
        const unsigned char *at = bytes + k * unit;
        uint32_t code = unit == 4 ? at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24 : at[0];
        if (unit == 1)
            dlc_str_addn(&text, (const char *)at, 1);
        else
            add_character(&text, code > 0x10ffff ? 0xfffd : code);
    }
    const char *result = dlc_arena_strdup(arena, dlc_str_text(&text));
    dlc_str_deinit(&text);
    return result;
}

void dlc_strings_unpack(const void *bytes, uint32_t unit, uint32_t width, size_t n, dlc_arena *arena, const char **texts)
{
    for (size_t i = 0; i < n; i++)
        texts[i] = unpack_one((const unsigned char *)bytes + i * unit * width, unit, width, arena);
}
