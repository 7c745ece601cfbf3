/*
 * npz files: zip archives of npy files. Reading starts from the central directory at the end, as
 * zip wants; members are stored or deflated, sizes of 64 bits are read from the zip64 extra fields.
 * Written members are stored, with zip64 fields (as numpy writes them) so that size is no limit.
 * Dates are the format's zero: equal outputs are equal files.
 */
#include "cli/tensors.h"

#include "base/budget.h"
#include "base/file.h"
#include "base/table.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

enum {
    LOCAL = 0x04034b50,
    CENTRAL = 0x02014b50,
    END = 0x06054b50,
    END64 = 0x06064b50,
    LOCATOR64 = 0x07064b50,
    LOCAL_BYTES = 30,
    CENTRAL_BYTES = 46,
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR64_BYTES = 20,
    EXTRA64 = 1,
    STORED = 0,
    DEFLATED = 8,
    MAX_COMMENT = 65535,
    DATE_ZERO = 0x21
};

typedef struct {
    const char *path;
    const uint8_t *bytes;
    uint64_t size_bytes;
    dlc_arena *arena;
    dlc_diag *diag;
    dlc_table names;
    uint64_t packed_bytes, unpacked_bytes; /* of the members so far */
} archive;

typedef struct {
    const char *name;
    uint32_t crc;
    uint16_t flags, method;
    uint64_t packed_bytes, size_bytes, local_at;
} member;

static uint32_t u16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static uint32_t u32(const uint8_t *at)
{
    return u16(at) | u16(at + 2) << 16;
}

static uint64_t u64(const uint8_t *at)
{
    return u32(at) | (uint64_t)u32(at + 4) << 32;
}

static dlc_status damaged(archive *a, const char *what)
{
    return dlc_diag_fail(a->diag, DLC_INVALID, a->path, "is no npz file: %s", what);
}

/* `size_bytes` bytes at offset `at`, or NULL when they are not in the file. */
static const uint8_t *part(const archive *a, uint64_t at, uint64_t size_bytes)
{
    return at <= a->size_bytes && size_bytes <= a->size_bytes - at ? a->bytes + at : NULL;
}

/* ---- reading ---- */

static dlc_status find_directory(archive *a, uint64_t *at, uint64_t *count)
{
    if (a->size_bytes < END_BYTES)
        return damaged(a, "it is too short");
    uint64_t last = a->size_bytes - END_BYTES, first = last > MAX_COMMENT ? last - MAX_COMMENT : 0;
    uint64_t end = last + 1;
    while (end > first && u32(a->bytes + end - 1) != END)
        end--;
    if (end == first)
        return damaged(a, "it has no directory at its end");
    end--;
    *count = u16(a->bytes + end + 10);
    *at = u32(a->bytes + end + 16);
    const uint8_t *locator = end >= LOCATOR64_BYTES ? a->bytes + end - LOCATOR64_BYTES : NULL;
    if (!locator || u32(locator) != LOCATOR64)
        return DLC_OK;
    const uint8_t *end64 = part(a, u64(locator + 8), END64_BYTES);
    if (!end64 || u32(end64) != END64)
        return damaged(a, "its zip64 directory is damaged");
    *count = u64(end64 + 32);
    *at = u64(end64 + 48);
    return DLC_OK;
}

/* The zip64 field has a value for each of the three that is all ones, in this order. */
static void read_extra64(const uint8_t *extra, uint32_t extra_bytes, member *m)
{
    while (extra_bytes >= 4) {
        uint32_t id = u16(extra), n = u16(extra + 2);
        extra += 4;
        extra_bytes -= 4;
        if (n > extra_bytes)
            return;
        uint64_t *const fields[] = {&m->size_bytes, &m->packed_bytes, &m->local_at};
        for (uint32_t i = 0, at = 0; id == EXTRA64 && i < 3; i++)
            if (*fields[i] == UINT32_MAX && at + 8 <= n) {
                *fields[i] = u64(extra + at);
                at += 8;
            }
        extra += n;
        extra_bytes -= n;
    }
}

static dlc_status read_entry(archive *a, uint64_t *at, member *m)
{
    const uint8_t *row = part(a, *at, CENTRAL_BYTES);
    if (!row || u32(row) != CENTRAL)
        return damaged(a, "its directory is damaged");
    uint32_t name_bytes = u16(row + 28), extra_bytes = u16(row + 30), comment_bytes = u16(row + 32);
    const uint8_t *name =
        part(a, *at + CENTRAL_BYTES, (uint64_t)name_bytes + extra_bytes + comment_bytes);
    if (!name)
        return damaged(a, "its directory is damaged");
    *m = (member){.name = dlc_arena_strndup(a->arena, (const char *)name, name_bytes),
                  .crc = u32(row + 16),
                  .flags = (uint16_t)u16(row + 8),
                  .method = (uint16_t)u16(row + 10),
                  .packed_bytes = u32(row + 20),
                  .size_bytes = u32(row + 24),
                  .local_at = u32(row + 42)};
    read_extra64(name + name_bytes, extra_bytes, m);
    *at += CENTRAL_BYTES + (uint64_t)name_bytes + extra_bytes + comment_bytes;
    return DLC_OK;
}

/* zlib counts in 32 bits: both ends are fed in pieces. */
static int inflate_all(const uint8_t *packed, uint64_t packed_bytes, uint8_t *bytes,
                       uint64_t size_bytes)
{
    enum { PIECE = 1 << 30 };
    z_stream z = {0};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return 0;
    int code = Z_OK;
    uint64_t in = 0, out = 0;
    while (code == Z_OK) {
        uInt give = (uInt)(packed_bytes - in < PIECE ? packed_bytes - in : PIECE);
        uInt room = (uInt)(size_bytes - out < PIECE ? size_bytes - out : PIECE);
        z.next_in = (Bytef *)(uintptr_t)(packed + in);
        z.avail_in = give;
        z.next_out = bytes + out;
        z.avail_out = room;
        code = inflate(&z, Z_NO_FLUSH);
        in += give - z.avail_in;
        out += room - z.avail_out;
    }
    inflateEnd(&z);
    return code == Z_STREAM_END && out == size_bytes;
}

static uint32_t checksum(uint32_t crc, const void *bytes, uint64_t size_bytes)
{
    return (uint32_t)crc32_z(crc, bytes, size_bytes);
}

/* The member's bytes: in the file if stored, in the arena if deflated. */
static dlc_status unpack(archive *a, const member *m, const uint8_t **bytes)
{
    const uint8_t *local = part(a, m->local_at, LOCAL_BYTES);
    if (!local || u32(local) != LOCAL)
        return damaged(a, "a member's header is damaged");
    const uint8_t *packed =
        part(a, m->local_at + LOCAL_BYTES + u16(local + 26) + u16(local + 28), m->packed_bytes);
    if (!packed)
        return damaged(a, "a member ends behind the file");
    if (m->flags & 1)
        return dlc_diag_fail(a->diag, DLC_UNSUPPORTED, a->path, "member '%s' is encrypted",
                             m->name);
    if (m->method != STORED && m->method != DEFLATED)
        return dlc_diag_fail(
            a->diag, DLC_UNSUPPORTED, a->path,
            "member '%s' is packed by method %u; stored (0) and deflated (8) members are supported",
            m->name, m->method);
    *bytes = packed;
    int ok = m->method == STORED ? m->size_bytes == m->packed_bytes
                                 : m->size_bytes / 1100 <= m->packed_bytes;
    if (ok && m->method ==
                  DEFLATED) { /* deflate packs 1032 to 1 at best, so the size above is believable */
        uint8_t *out = dlc_arena_alloc(a->arena, m->size_bytes ? m->size_bytes : 1, 64);
        ok = inflate_all(packed, m->packed_bytes, out, m->size_bytes);
        *bytes = out;
    }
    if (!ok || checksum(0, *bytes, m->size_bytes) != m->crc)
        return dlc_diag_fail(a->diag, DLC_INVALID, a->path, "member '%s' is damaged", m->name);
    return DLC_OK;
}

/* Members share no bytes, and what they unpack to is bounded by the file's size: else a small file could fill the memory. */
static dlc_status check_budget(archive *a, const member *m)
{
    const dlc_budget *set = dlc_budget_in_use();
    uint64_t most = (set ? set->most_bytes : dlc_memory_budget(a->size_bytes)) / 2; /* tensors are copies of it */
    if (m->packed_bytes > a->size_bytes - a->packed_bytes)
        return damaged(a, "its members overlap");
    a->packed_bytes += m->packed_bytes;
    if (m->method != DEFLATED)
        return DLC_OK;
    if (m->size_bytes > most - a->unpacked_bytes)
        return dlc_diag_fail(a->diag, DLC_LIMIT, a->path,
                             "member '%s' brings what is unpacked to more than %" PRIu64 " MiB, the limit for a file of %" PRIu64
                             " bytes; --max-memory sets another",
                             m->name, most >> 20, a->size_bytes);
    a->unpacked_bytes += m->size_bytes;
    return DLC_OK;
}

static dlc_status read_member(archive *a, member *m, dlc_tensors *tensors)
{
    size_t n = strlen(m->name);
    const uint8_t *bytes = NULL;
    if (n < 4 || strcmp(m->name + n - 4, ".npy") != 0)
        return dlc_diag_fail(a->diag, DLC_INVALID, a->path, "member '%s' is no .npy file", m->name);
    DLC_TRY(check_budget(a, m));
    DLC_TRY(unpack(a, m, &bytes));
    dlcrt_tensor tensor;
    const char *place = dlc_arena_printf(a->arena, "%s: %s", a->path, m->name);
    DLC_TRY(dlc_npy_parse(bytes, m->size_bytes, place, a->arena, a->diag, &tensor));
    tensor.name = dlc_arena_strndup(a->arena, m->name, n - 4);
    int is_new;
    (void)dlc_table_insert(&a->names, a->arena, tensor.name, &is_new);
    if (!is_new)
        return dlc_diag_fail(a->diag, DLC_INVALID, a->path, "has two members '%s'", m->name);
    dlc_vec_push(a->arena, tensors, tensor);
    return DLC_OK;
}

static dlc_status read_archive(archive *a, dlc_tensors *tensors)
{
    uint64_t at = 0, count = 0;
    DLC_TRY(find_directory(a, &at, &count));
    for (uint64_t i = 0; i < count; i++) {
        member m = {0};
        DLC_TRY(read_entry(a, &at, &m));
        DLC_TRY(read_member(a, &m, tensors));
    }
    return DLC_OK;
}

dlc_status dlc_npz_read(const char *path, dlc_arena *arena, dlc_diag *diag, dlc_tensors *tensors)
{
    dlc_map map;
    DLC_TRY(dlc_map_open(path, &map, diag));
    archive a = {.path = path, .bytes = map.bytes, .size_bytes = map.size_bytes, .arena = arena, .diag = diag};
    dlc_status status = read_archive(&a, tensors);
    dlc_map_close(&map);
    return status;
}

/* ---- writing ---- */

static void add16(dlc_str *out, uint32_t value)
{
    dlc_str_addn(out, (char[]){(char)value, (char)(value >> 8)}, 2);
}

static void add32(dlc_str *out, uint32_t value)
{
    add16(out, value & 0xffff);
    add16(out, value >> 16);
}

static void add64(dlc_str *out, uint64_t value)
{
    add32(out, (uint32_t)value);
    add32(out, (uint32_t)(value >> 32));
}

/* What local header and directory share: version, flags (names are UTF-8), method, date, CRC; sizes
 * are in the zip64 field. */
static void add_common(dlc_str *out, uint32_t crc, size_t name_bytes, uint32_t extra_bytes)
{
    add16(out, 45);
    add16(out, 0x800);
    add16(out, STORED);
    add16(out, 0);
    add16(out, DATE_ZERO);
    add32(out, crc);
    add32(out, UINT32_MAX);
    add32(out, UINT32_MAX);
    add16(out, (uint32_t)name_bytes);
    add16(out, extra_bytes);
}

static void add_local(dlc_str *out, const char *name, uint32_t crc, uint64_t size_bytes)
{
    add32(out, LOCAL);
    add_common(out, crc, strlen(name), 20);
    dlc_str_add(out, name);
    add16(out, EXTRA64);
    add16(out, 16);
    add64(out, size_bytes);
    add64(out, size_bytes);
}

static void add_central(dlc_str *out, const char *name, uint32_t crc, uint64_t size_bytes,
                        uint64_t local_at)
{
    add32(out, CENTRAL);
    add16(out, 45);
    add_common(out, crc, strlen(name), 28);
    add16(out, 0);          /* comment */
    add16(out, 0);          /* disk */
    add16(out, 0);          /* internal attributes */
    add32(out, 0);          /* external attributes */
    add32(out, UINT32_MAX); /* local header: in the field below */
    dlc_str_add(out, name);
    add16(out, EXTRA64);
    add16(out, 24);
    add64(out, size_bytes);
    add64(out, size_bytes);
    add64(out, local_at);
}

static void add_end(dlc_str *out, uint64_t count, uint64_t directory_bytes, uint64_t directory_at)
{
    uint64_t end64_at = directory_at + directory_bytes;
    add32(out, END64);
    add64(out, END64_BYTES - 12);
    add16(out, 45);
    add16(out, 45);
    add32(out, 0);
    add32(out, 0);
    add64(out, count);
    add64(out, count);
    add64(out, directory_bytes);
    add64(out, directory_at);
    add32(out, LOCATOR64);
    add32(out, 0);
    add64(out, end64_at);
    add32(out, 1);
    add32(out, END);
    add16(out, 0);
    add16(out, 0);
    add16(out, count < 0xffff ? (uint32_t)count : 0xffff);
    add16(out, count < 0xffff ? (uint32_t)count : 0xffff);
    add32(out, UINT32_MAX);
    add32(out, UINT32_MAX);
    add16(out, 0);
}

static dlc_status write_text(dlc_output *output, dlc_str *text, uint64_t *at, dlc_diag *diag)
{
    dlc_status status = dlc_output_write(output, text->data, text->n, diag);
    *at += text->n;
    dlc_str_deinit(text);
    *text = (dlc_str){0};
    return status;
}

static dlc_status write_member(dlc_output *output, const dlcrt_tensor *tensor, uint64_t *at,
                               dlc_str *directory, dlc_diag *diag)
{
    dlc_str header = {0}, local = {0}, name = {0}, strings = {0};
    const void *data = tensor->data;
    size_t data_bytes = tensor->size_bytes;
    dlc_str_printf(&name, "%s.npy", tensor->name);
    dlc_npy_header(tensor, &header);
    if (dlc_is_text(tensor->dtype)) {
        dlc_strings_pack(tensor, &strings);
        data = strings.data;
        data_bytes = strings.n;
    }
    uint64_t size_bytes = header.n + data_bytes;
    uint32_t crc = checksum(checksum(0, header.data, header.n), data, data_bytes);
    add_central(directory, name.data, crc, size_bytes, *at);
    add_local(&local, name.data, crc, size_bytes);
    dlc_str_addn(&local, header.data, header.n);
    dlc_status status =
        name.n > UINT16_MAX
            ? dlc_diag_fail(diag, DLC_INVALID, NULL, "an output's name is %zu bytes long", name.n)
            : write_text(output, &local, at, diag);
    if (status == DLC_OK && data_bytes)
        status = dlc_output_write(output, data, data_bytes, diag);
    *at += data_bytes;
    dlc_str_deinit(&strings);
    dlc_str_deinit(&header);
    dlc_str_deinit(&local);
    dlc_str_deinit(&name);
    return status;
}

static dlc_status write_archive(dlc_output *output, const dlc_tensors *tensors, dlc_str *directory,
                                dlc_diag *diag)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < tensors->n; i++)
        DLC_TRY(write_member(output, &tensors->data[i], &at, directory, diag));
    add_end(directory, tensors->n, directory->n, at);
    return write_text(output, directory, &at, diag);
}

dlc_status dlc_npz_write(const char *path, const dlc_tensors *tensors, dlc_diag *diag)
{
    dlc_output output;
    dlc_str directory = {0};
    DLC_TRY(dlc_output_open(&output, path, diag));
    dlc_status status = write_archive(&output, tensors, &directory, diag);
    dlc_str_deinit(&directory);
    if (status == DLC_OK)
        status = dlc_output_commit(&output, 0666, diag);
    if (status != DLC_OK)
        dlc_output_abandon(&output);
    return status;
}
