/* The table of devices, what options name of it, and which of an executable's plans is taken on
 * this machine. */
#include "runtime/device.h"

#include <stdlib.h>
#include <string.h>

const dlcrt_device_row *const dlcrt_devices[DLC_DEVICE_COUNT] = {
#define DLC_DEVICE(id, number, text) [number] = &dlcrt_device_##id,
#include "dlc/device.def"
#undef DLC_DEVICE
};

/* --- what was asked for --- */

/* "cpu, cuda and cuda:N" */
static void list_devices(dlcrt_text *out)
{
    uint32_t n = DLC_DEVICE_COUNT, last = n - 1;
    for (uint32_t i = 0; i < n; i++) {
        int is_many = !dlcrt_devices[i]->is_host;
        dlcrt_text_add(out, "%s%s",
                       !i                      ? ""
                       : i == last && !is_many ? " and "
                                               : ", ",
                       dlcrt_devices[i]->text);
        if (is_many)
            dlcrt_text_add(out, "%s%s:N", i == last ? " and " : ", ", dlcrt_devices[i]->text);
    }
}

/* "cuda" or, of devices that are many, "cuda:1". */
static int reads_as(const dlcrt_device_row *row, const char *text, int *ordinal)
{
    size_t n = strlen(row->text);
    char *end;
    *ordinal = -1;
    if (strncmp(text, row->text, n) != 0)
        return 0;
    if (!text[n])
        return 1;
    if (row->is_host || text[n] != ':' || text[n + 1] < '0' || text[n + 1] > '9')
        return 0;
    long number = strtol(text + n + 1, &end, 10);
    *ordinal = (int)number;
    return !*end && number < 1000;
}

dlc_status dlcrt_wish_read(const char *text, dlcrt_wish *wish)
{
    *wish = (dlcrt_wish){.device = DLC_DEVICE_COUNT, .ordinal = -1};
    if (!text || !*text)
        return DLC_OK;
    wish->is_none = !strcmp(text, "none");
    for (uint32_t i = 0; !wish->is_none && wish->device == DLC_DEVICE_COUNT; i++) {
        char names[128] = "";
        dlcrt_text all = {names, sizeof names, 0};
        if (i == DLC_DEVICE_COUNT) {
            list_devices(&all);
            return dlcrt_fail(DLC_USAGE, "there is no device '%s'; there are %s", text, names);
        }
        if (reads_as(dlcrt_devices[i], text, &wish->ordinal))
            wish->device = i;
    }
    return DLC_OK;
}

static int is_wanted(const dlcrt_wish *wish, uint32_t device)
{
    return !wish->is_none && (wish->device == DLC_DEVICE_COUNT || wish->device == device);
}

dlc_status dlcrt_device_describe(const char *text, dlcrt_device_info *info)
{
    dlcrt_device device = {0};
    dlcrt_wish wish;
    dlc_status status = DLC_NO_DEVICE;
    if (!text || !info)
        return dlcrt_fail(DLC_USAGE, "dlcrt_device_describe: %s is NULL", info ? "device" : "info");
    DLC_TRY(dlcrt_wish_read(text, &wish));
    for (uint32_t i = 0; status && i < DLC_DEVICE_COUNT; i++)
        if (!dlcrt_devices[i]->is_host && is_wanted(&wish, i))
            status = dlcrt_devices[i]->find(wish.ordinal, &device);
        else if (is_wanted(&wish, i) && wish.device == i)
            return dlcrt_fail(DLC_USAGE, "'%s' is the processor this runs on, no device beside it",
                              text);
    if (status)
        return status;
    *info =
        (dlcrt_device_info){.ordinal = (uint32_t)device.ordinal, .capability = device.capability};
    memcpy(info->name, device.name, sizeof info->name);
    return DLC_OK;
}

/* --- the choice --- */

/* With one plan the reason alone; with several what the executable holds, too. */
static dlc_status refuse(const char *name, const dlc_executable *executable, const char *reason)
{
    char held[512] = "", why[512] = "";
    dlcrt_text text = {held, sizeof held, 0}, copied = {why, sizeof why, 0};
    size_t n = strlen(name);
    for (uint32_t i = 0; i < executable->nplans; i++)
        dlcrt_text_add(&text, "%s%s", i ? " and " : "",
                       dlcrt_string(executable->plans[i].plan, executable->plans[i].plan->target));
    if (!strncmp(reason, name, n) && !strncmp(reason + n, ": ", 2))
        reason += n + 2;
    dlcrt_text_add(&copied, "%s", reason);
    if (executable->nplans == 1 && !strncmp(why, "made for ", 9))
        return dlcrt_fail(DLC_NO_DEVICE, "%s: %s", name, why);
    return dlcrt_fail(DLC_NO_DEVICE, "%s: holds plans for %s; none of them runs here: %s", name,
                      held, *why ? why : "there is none for the device that was asked for");
}

/* A device is looked for only where a plan needs it; without one the others are still there. */
static void find_devices(const dlc_executable *executable, const dlcrt_wish *wish,
                         dlcrt_device *found)
{
    for (uint32_t i = 0; i < executable->nplans; i++) {
        uint32_t device = executable->plans[i].plan->device;
        if (is_wanted(wish, device) && !found[device].row &&
            dlcrt_devices[device]->find(wish->ordinal, &found[device]))
            found[device] = (dlcrt_device){0};
    }
}

static dlc_status take_best(const dlcrt_image *image, const char *name, const dlcrt_wish *wish,
                            uint64_t passed, const dlc_plan_entry **result, dlcrt_device *device)
{
    const dlc_executable *executable = image->entry;
    dlcrt_device found[DLC_DEVICE_COUNT] = {0};
    uint32_t best = 0;
    char reason[512] = "", unfit[512] = "";
    dlcrt_text text = {reason, sizeof reason, 0}, passed_over = {unfit, sizeof unfit, 0};
    (void)dlcrt_fail(DLC_OK, "%s", "");
    find_devices(executable, wish, found);
    for (uint32_t i = 0; i < executable->nplans; i++) {
        dlcrt_candidate one = {name, image, &executable->plans[i]};
        const dlcrt_device *on = &found[one.entry->plan->device];
        int is_passed = i < 64 && passed >> i & 1;
        uint32_t rank = on->row && !is_passed ? on->row->rank(&one, on) : 0;
        if (!rank && on->row && !on->row->is_host && !is_passed)
            dlcrt_text_add(&passed_over, "%s%s", *unfit ? "; " : "", dlcrt_last_error());
        if (rank <= best)
            continue;
        best = rank;
        *result = one.entry;
        *device = *on;
    }
    if (best && device->row->is_host)
        memcpy(device->passed, unfit, sizeof unfit);
    dlcrt_text_add(&text, "%s", dlcrt_last_error());
    return best ? DLC_OK : refuse(name, executable, reason);
}

dlc_status dlcrt_choose(const dlcrt_image *image, const char *name, const dlcrt_wish *wish,
                        uint32_t number, uint64_t passed, const dlc_plan_entry **result,
                        dlcrt_device *device)
{
    DLC_TRY(dlcrt_cpu_check());
    if (!wish->is_none)
        return take_best(image, name, wish, passed, result, device);
    if (number >= image->entry->nplans)
        return dlcrt_fail(DLC_USAGE, "%s: has no plan %u; it holds %u", name, number,
                          image->entry->nplans);
    *result = &image->entry->plans[number];
    *device = (dlcrt_device){.row = &dlcrt_device_CPU,
                             .text = "none"}; /* sizes are the same on the host */
    return DLC_OK;
}
