/*
 * npy files: "\x93NUMPY", a version, a Python dictionary as text, the elements. The dictionary is
 * read by a scanner that knows its three keys in any order and refuses the rest.
 */
#include "cli/tensors.h"

#include "base/file.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

size_t dlc_tensor_bytes(dlc_dtype dtype, const int64_t *dims, uint32_t rank, int *overflow)
{
    size_t size_bytes = dlc_dtype_bytes(dtype);
    int is_empty = 0;
    *overflow = 0;
    for (uint32_t d = 0; d < rank; d++) {
        is_empty |= dims[d] == 0;
        *overflow |= dims[d] < 0 || !dlc_mul_size(size_bytes, (size_t)dims[d], &size_bytes);
    }
    if (is_empty)
        *overflow = 0;
    return is_empty || *overflow ? 0 : size_bytes;
}

typedef struct {
    const char *at, *end;
    const char *place;
    dlc_diag *diag;
    uint32_t unit, width; /* of strings: bytes of a character, and how many */
} scanner;

static dlc_status bad(scanner *s, const char *what)
{
    return dlc_diag_fail(s->diag, DLC_INVALID, s->place, "is no npy file: %s", what);
}

static void skip_blanks(scanner *s)
{
    while (s->at < s->end && dlc_is_space(*s->at))
        s->at++;
}

static int accept(scanner *s, const char *text)
{
    skip_blanks(s);
    size_t n = strlen(text);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, text, n) != 0)
        return 0;
    s->at += n;
    return 1;
}

static int scan_string(scanner *s, char *text, size_t size_bytes)
{
    skip_blanks(s);
    if (s->at == s->end || (*s->at != '\'' && *s->at != '"'))
        return 0;
    char quote = *s->at++;
    size_t n = 0;
    while (s->at < s->end && *s->at != quote && n + 1 < size_bytes)
        text[n++] = *s->at++;
    text[n] = 0;
    return s->at < s->end && *s->at++ == quote;
}

static int scan_int(scanner *s, int64_t *value)
{
    skip_blanks(s);
    const char *first = s->at;
    *value = 0;
    for (; s->at < s->end && dlc_is_digit(*s->at); s->at++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, *s->at - '0', value))
            return 0;
    return s->at > first;
}

static dlc_status scan_shape(scanner *s, dlcrt_tensor *tensor)
{
    if (!accept(s, "("))
        return bad(s, "its shape is no tuple");
    while (!accept(s, ")")) {
        if (tensor->rank == DLCRT_MAX_RANK)
            return dlc_diag_fail(s->diag, DLC_UNSUPPORTED, s->place, "has more than %d dimensions",
                                 DLCRT_MAX_RANK);
        if (!scan_int(s, &tensor->dims[tensor->rank]))
            return bad(s, "a dimension is no whole number");
        tensor->rank++;
        accept(s, ",");
    }
    return DLC_OK;
}

/* "<U5" or "|S5" */
static int scan_strings(scanner *s, const char *text)
{
    const char *at = text + 2;
    if ((text[0] != '<' && text[0] != '|') || (text[1] != 'U' && text[1] != 'S') || !dlc_is_digit(*at))
        return 0;
    s->unit = text[1] == 'U' ? 4 : 1;
    for (s->width = 0; dlc_is_digit(*at) && s->width < 1 << 20; at++)
        s->width = s->width * 10 + (uint32_t)(*at - '0');
    return !*at;
}

/* "<f4" and "|b1" as in dtype.def; "=" and single-byte orders are the same on the machines we run
 * on. */
static dlc_status scan_dtype(scanner *s, dlcrt_tensor *tensor)
{
    char text[16];
    if (!scan_string(s, text, sizeof text))
        return dlc_diag_fail(s->diag, DLC_UNSUPPORTED, s->place,
                             "its elements are records, where numbers are wanted");
    if (scan_strings(s, text)) {
        tensor->dtype = DLC_STR;
        return DLC_OK;
    }
    for (uint32_t i = 1; i < DLC_DTYPE_COUNT; i++) {
        const char *numpy = dlc_dtypes[i].numpy;
        if (dlc_is_text((dlc_dtype)i)) /* numpy's objects are programs */
            continue;
        int same_order = text[0] == numpy[0] || text[0] == '=' || dlc_dtypes[i].bits == 8;
        if (same_order && !strcmp(text + 1, numpy + 1)) {
            tensor->dtype = (dlc_dtype)i;
            return DLC_OK;
        }
    }
    return dlc_diag_fail(s->diag, DLC_UNSUPPORTED, s->place,
                         "its elements are '%s'; bool, integers, f16, f32 and f64 in little-endian "
                         "order and strings (<U…, |S…) are supported",
                         text);
}

static dlc_status scan_header(scanner *s, dlcrt_tensor *tensor, int *column_major)
{
    int seen = 0;
    char key[32];
    if (!accept(s, "{"))
        return bad(s, "its header is no dictionary");
    while (!accept(s, "}")) {
        if (!scan_string(s, key, sizeof key) || !accept(s, ":"))
            return bad(s, "its header is damaged");
        if (!strcmp(key, "descr")) {
            DLC_TRY(scan_dtype(s, tensor));
            seen |= 1;
        } else if (!strcmp(key, "fortran_order")) {
            *column_major = accept(s, "True");
            if (!*column_major && !accept(s, "False"))
                return bad(s, "fortran_order is neither True nor False");
            seen |= 2;
        } else if (!strcmp(key, "shape")) {
            DLC_TRY(scan_shape(s, tensor));
            seen |= 4;
        } else {
            return bad(s, "its header has an unknown key");
        }
        accept(s, ",");
    }
    return seen == 7 ? DLC_OK : bad(s, "its header lacks descr, fortran_order or shape");
}

static void copy_turned(char *to, const char *from, const dlcrt_tensor *tensor, size_t nelems)
{
    size_t element_bytes = dlc_dtype_bytes(tensor->dtype);
    int64_t index[DLCRT_MAX_RANK] = {0};
    for (size_t i = 0; i < nelems; i++) {
        size_t source = 0;
        for (uint32_t d = tensor->rank; d-- > 0;)
            source = source * (size_t)tensor->dims[d] + (size_t)index[d];
        memcpy(to + i * element_bytes, from + source * element_bytes, element_bytes);
        for (uint32_t d = tensor->rank; d-- > 0 && ++index[d] == tensor->dims[d];)
            index[d] = 0;
    }
}

static dlc_status read_prefix(scanner *s, const unsigned char *bytes, size_t size_bytes)
{
    if (size_bytes < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return bad(s, "it does not begin with \\x93NUMPY");
    size_t prefix = bytes[6] == 1 ? 10 : 12;
    if (bytes[6] < 1 || bytes[6] > 3 || size_bytes < prefix)
        return dlc_diag_fail(s->diag, DLC_UNSUPPORTED, s->place,
                             "is npy version %d; 1 to 3 are supported", bytes[6]);
    size_t header_bytes = bytes[8] | (size_t)bytes[9] << 8;
    if (prefix == 12)
        header_bytes |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (header_bytes > size_bytes - prefix)
        return bad(s, "its header ends behind the file");
    s->at = (const char *)bytes + prefix;
    s->end = s->at + header_bytes;
    return DLC_OK;
}

dlc_status dlc_npy_parse(const void *bytes, size_t size_bytes, const char *place, dlc_arena *arena,
                         dlc_diag *diag, dlcrt_tensor *tensor)
{
    scanner s = {.place = place, .diag = diag};
    int column_major = 0, overflow = 0;
    *tensor = (dlcrt_tensor){0};
    DLC_TRY(read_prefix(&s, bytes, size_bytes));
    DLC_TRY(scan_header(&s, tensor, &column_major));
    tensor->size_bytes = dlc_tensor_bytes(tensor->dtype, tensor->dims, tensor->rank, &overflow);
    size_t found = size_bytes - (size_t)(s.end - (const char *)bytes), wanted = tensor->size_bytes;
    if (dlc_is_text(tensor->dtype) && !dlc_mul_size(dlc_tensor_elems(tensor), (size_t)s.unit * s.width, &wanted))
        overflow = 1;
    if (overflow || found != wanted)
        return dlc_diag_fail(
            diag, DLC_INVALID, place, "holds %zu bytes of elements, where its shape asks for %s%zu",
            found, overflow ? "more than " : "", overflow ? SIZE_MAX : wanted);
    const char *elements = s.end;
    if (dlc_is_text(tensor->dtype)) {
        const char **texts = dlc_new_array(arena, const char *, dlc_tensor_elems(tensor) + 1);
        dlc_strings_unpack(s.end, s.unit, s.width, dlc_tensor_elems(tensor), arena, texts);
        elements = (const char *)texts;
        found = tensor->size_bytes;
    }
    tensor->data = dlc_arena_alloc(arena, found ? found : 1, 64);
    if (column_major && tensor->rank > 1)
        copy_turned(tensor->data, elements, tensor, found / dlc_dtype_bytes(tensor->dtype));
    else if (found)
        memcpy(tensor->data, elements, found);
    return DLC_OK;
}

dlc_status dlc_npy_read(const char *path, dlc_arena *arena, dlc_diag *diag, dlcrt_tensor *tensor)
{
    dlc_map map;
    DLC_TRY(dlc_map_open(path, &map, diag));
    dlc_status status = dlc_npy_parse(map.bytes, map.size_bytes, path, arena, diag, tensor);
    dlc_map_close(&map);
    return status;
}

void dlc_npy_header(const dlcrt_tensor *tensor, dlc_str *out)
{
    dlc_str text = {0};
    if (dlc_is_text(tensor->dtype))
        dlc_str_printf(&text, "{'descr': '<U%" PRIu32 "'", dlc_strings_width(tensor));
    else
        dlc_str_printf(&text, "{'descr': '%s'", dlc_dtypes[tensor->dtype].numpy);
    dlc_str_add(&text, ", 'fortran_order': False, 'shape': (");
    for (uint32_t d = 0; d < tensor->rank; d++)
        dlc_str_printf(&text, "%s%" PRId64, d ? ", " : "", tensor->dims[d]);
    dlc_str_add(&text, tensor->rank == 1 ? ",), }" : "), }");
    while ((10 + text.n + 1) % 64)
        dlc_str_add(&text, " ");
    dlc_str_add(&text, "\n");
    dlc_str_addn(out, "\x93NUMPY\x01\x00", 8);
    dlc_str_addn(out, (char[]){(char)(text.n & 255), (char)(text.n >> 8)}, 2);
    dlc_str_addn(out, text.data, text.n);
    dlc_str_deinit(&text);
}
