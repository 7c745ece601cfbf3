/* libFuzzer entry: any bytes as an npz file, an npy file, a TensorProto: tensors whose every byte can be read, or refused. */
#include "cli/tensors.h"
#include "dlc/dlc.h"
#include "tests/fuzz/entry.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile double sum;

static void read_through(const dlcrt_tensor *tensor)
{
    uint32_t element_bytes = dlc_dtype_bytes(tensor->dtype);
    if (!element_bytes)
        abort();
    for (size_t i = 0; i < tensor->size_bytes / element_bytes; i++)
        sum += dlc_tensor_element(tensor, i);
}

static void read_npz(const uint8_t *bytes, size_t size_bytes, dlc_arena *arena, dlc_diag *diag)
{
    static int fd = -1;
    char path[32];
    dlc_tensors tensors = {0};
    fd = fd < 0 ? memfd_create("npz", MFD_CLOEXEC) : fd;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, size_bytes, 0) != (ssize_t)size_bytes)
        abort();
    if (dlc_npz_read(path, arena, diag, &tensors) == DLC_OK)
        for (uint32_t i = 0; i < tensors.n; i++)
            read_through(&tensors.data[i]);
}

static void read_proto(const uint8_t *bytes, size_t size_bytes)
{
    dlcrt_tensor tensor = {0};
    char message[400];
    if (dlc_tensor_parse(bytes, size_bytes, &tensor, message, sizeof message) == DLC_OK)
        read_through(&tensor);
    dlc_tensor_release(&tensor);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    dlc_arena *arena = dlc_arena_create((size_t)128 << 20);
    dlc_diag diag;
    dlcrt_tensor tensor;
    jmp_buf out_of_memory;
    dlc_diag_init(&diag, arena);
    if (setjmp(out_of_memory) == 0) {
        dlc_arena_set_oom(leave, &out_of_memory);
        if (size_bytes && bytes[0] == 'P')
            read_npz(bytes, size_bytes, arena, &diag);
        else if (dlc_npy_parse(bytes, size_bytes, "fuzz.npy", arena, &diag, &tensor) == DLC_OK)
            read_through(&tensor);
    }
    dlc_arena_set_oom(NULL, NULL);
    dlc_arena_destroy(arena);
    if (size_bytes && bytes[0] != 'P')
        read_proto(bytes, size_bytes);
    return 0;
}
