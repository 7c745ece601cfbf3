/*
 * libFuzzer entry: an executable with some bytes changed, and every checksum that the file leads to made right. It is refused, or
 * opens, tells of itself and goes; its code, which would be believed, is not run.
 */
#include <elf.h>
#include <stddef.h>

#include "tests/fuzz/forge.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static unsigned char *file;
static size_t file_bytes;
static int fd = -1;

static void make_file(void)
{
    dlc_model *model;
    const char *text = forge_models[0];
    dlc_options options = {.target = "native", .jobs = 1, .tuned = "", .is_temporary = 1};
    fd = memfd_create("loaded", MFD_CLOEXEC);
    forge_need(dlc_model_open_bytes(text, strlen(text), "loaded.dlc", &options, &model) == DLC_OK);
    forge_need(dlc_model_write_fd(model, "so", fd, "loaded") == DLC_OK);
    dlc_model_close(model);
    file_bytes = (size_t)lseek(fd, 0, SEEK_END);
    file = malloc(file_bytes);
    forge_need(pread(fd, file, file_bytes, 0) == (ssize_t)file_bytes);
}

/* The bytes of [address, address + n) of the image, or NULL. */
static unsigned char *at_address(unsigned char *image, uint64_t address, uint64_t n)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr s;
        if (header->e_phoff > file_bytes || header->e_phoff + (i + 1) * sizeof s > file_bytes)
            return NULL;
        memcpy(&s, image + header->e_phoff + i * sizeof s, sizeof s);
        uint64_t into = address - s.p_vaddr;
        if (s.p_type == PT_LOAD && address >= s.p_vaddr && into <= s.p_filesz && n <= s.p_filesz - into &&
            s.p_offset <= file_bytes && into <= file_bytes - s.p_offset && n <= file_bytes - s.p_offset - into)
            return image + s.p_offset + into;
    }
    return NULL;
}

static void seal(unsigned char *image)
{
    dlc_seal s;
    const size_t head = offsetof(dlc_seal, abi_version);
    unsigned char *at = at_address(image, ((const Elf64_Ehdr *)image)->e_entry, sizeof s);
    if (!at)
        return;
    memcpy(&s, at, sizeof s);
    for (uint32_t i = 0; i < DLC_SEAL_COUNT; i++) {
        const unsigned char *part = at_address(image, s.parts[i].address, s.parts[i].size_bytes);
        if (part)
            s.parts[i].checksum = dlc_checksum(part, s.parts[i].size_bytes);
    }
    s.checksum = dlc_checksum((char *)&s + head, sizeof s - head);
    memcpy(at, &s, sizeof s);
}

/* Of each 8 bytes: a place, a width, and what is put there. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    dlcrt_executable *executable;
    char text[4096];
    if (!file)
        make_file();
    unsigned char *image = malloc(file_bytes);
    memcpy(image, file, file_bytes);
    for (size_t at = 0; at + 8 <= size_bytes; at += 8) {
        size_t place = (size_t)(bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16) % (file_bytes - 8);
        memcpy(image + place, bytes + at + 4, 1 + bytes[at + 3] % 4);
    }
    seal(image);
    forge_need(pwrite(fd, image, file_bytes, 0) == (ssize_t)file_bytes);
    if (dlcrt_executable_open_fd(fd, &executable) == DLC_OK) {
        (void)dlcrt_executable_print(executable, text, sizeof text);
        (void)!dlcrt_executable_verify(executable);
        dlcrt_executable_close(executable);
    }
    free(image);
    return 0;
}
