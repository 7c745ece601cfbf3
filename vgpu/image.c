/* Code that a program gives the driver: PTX is taken as a driver of the version would, machine code
 * never, and each refusal has words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/device.h"

static const struct {
    int branch, version, ptx, capability;
} drivers[] = {
#define VGPU_DRIVER(branch, version, ptx, capability) {branch, version, ptx, capability},
#include "vgpu/drivers.def"
#undef VGPU_DRIVER
};

/* The newest PTX that a driver of this CUDA version knows. */
static int newest_ptx(int version)
{
    int ptx = drivers[0].ptx;
    for (unsigned i = 0; i < sizeof drivers / sizeof *drivers; i++)
        ptx = drivers[i].version <= version ? drivers[i].ptx : ptx;
    return ptx;
}

/* The CUDA that made a cubin. Files of the newer kind (ELF's OSABI) are CUDA 13's, and CUDA 12's for GPUs from sm_100 on;
 * a note in them says "release 12.9". */
static int major_of(const unsigned char *image)
{
    enum { OSABI = 7, NEWER_KIND = 0x41, SECTIONS_AT = 40 };
    static const char release[] = "release ";
    uint64_t size_bytes;
    memcpy(&size_bytes, image + SECTIONS_AT, sizeof size_bytes); /* sections' headers stand behind what they are of */
    const unsigned char *at = image[OSABI] == NEWER_KIND ? memmem(image, (size_t)size_bytes, release, sizeof release - 1) : NULL;
    return image[OSABI] != NEWER_KIND ? 12 : at ? atoi((const char *)at + sizeof release - 1) : 13;
}

static int refuse_machine_code(const unsigned char *image, char *log, size_t log_bytes)
{
    int major = major_of(image);
    if (vgpu_device.version < major * 1000)
        snprintf(log, log_bytes, "a cubin of CUDA %d; a driver of CUDA %d.%d does not load it",
                 major, vgpu_device.version / 1000, vgpu_device.version % 1000 / 10);
    else
        snprintf(
            log, log_bytes,
            "a cubin; the virtual GPU executes PTX alone. Compile for an older GPU than sm_%d, or "
            "make it a newer one (DLC_VGPU_ARCH)",
            vgpu_device.capability);
    return NO_BINARY_FOR_GPU;
}

static int refuse_version(const ptx_module *module, char *log, size_t log_bytes)
{
    unsigned newest = (unsigned)newest_ptx(vgpu_device.version);
    if (module->version > newest) {
        snprintf(log, log_bytes, "PTX %u.%u; a driver of CUDA %d.%d knows PTX up to %u.%u",
                 module->version / 10, module->version % 10, vgpu_device.version / 1000,
                 vgpu_device.version % 1000 / 10, newest / 10, newest % 10);
        return UNSUPPORTED_PTX;
    }
    unsigned here = (unsigned)vgpu_device.capability;
    if (module->target > here || (module->is_specific && module->target != here)) {
        snprintf(log, log_bytes, "PTX for sm_%u%s; this is sm_%u", module->target,
                 module->is_specific ? "a" : "", here);
        return NO_BINARY_FOR_GPU;
    }
    return 0;
}

static void add_functions(object *module)
{
    for (uint32_t i = 0; i < module->parsed->functions.n; i++) {
        function *f = vgpu_add(FUNCTION, 0);
        f->module = module;
        f->number = ++vgpu_device.nfunctions;
        f->shared_bytes = PLAIN_SHARED_BYTES;
        f->code = vgpu_decode(module->parsed, &module->parsed->functions.data[i], module->arena);
    }
}

int vgpu_load_image(object *module, const void *image, char *log, size_t log_bytes)
{
    static const unsigned char elf[] = "\x7f"
                                       "ELF",
                               fat[] = "\x50\xed\x55\xba";
    dlc_diag diag;
    module->image = image;
    if (vgpu_device.is_opaque) {
        function *f = vgpu_add(FUNCTION, 0);
        f->module = module;
        f->shared_bytes = PLAIN_SHARED_BYTES;
        return 0;
    }
    if (!memcmp(image, elf, 4))
        return refuse_machine_code(image, log, log_bytes);
    if (!memcmp(image, fat, 4)) {
        snprintf(log, log_bytes, "a fat binary; the virtual GPU takes PTX alone");
        return INVALID_IMAGE;
    }
    module->arena = dlc_arena_create(0);
    dlc_diag_init(&diag, module->arena);
    if (ptx_parse(image, module->arena, &diag, &module->parsed) != DLC_OK) {
        snprintf(log, log_bytes, "%s: %s", diag.messages[0].place, diag.messages[0].text);
        return INVALID_PTX;
    }
    int result = refuse_version(module->parsed, log, log_bytes);
    if (!result)
        add_functions(module);
    return result;
}

/* --- which driver, and which device --- */
int vgpu_driver_version(int branch)
{
    for (unsigned i = 0; i < sizeof drivers / sizeof *drivers; i++)
        if (drivers[i].branch == branch)
            return drivers[i].version;
    return 0;
}

int vgpu_newest_capability(int version)
{
    int capability = drivers[0].capability;
    for (unsigned i = 0; i < sizeof drivers / sizeof *drivers; i++)
        capability = drivers[i].version <= version ? drivers[i].capability : capability;
    return capability;
}
