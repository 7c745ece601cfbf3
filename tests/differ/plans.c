/* The plan of a strategy, exported, read back and followed, gives the same executable, byte by byte. */
#include "tests/differ/judge.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dlc/dlc.h"

static dlc_status compile(const char *text, const char *fusion, int fd, const char *plan)
{
    dlc_options options = {.target = "x86-64-v3", .fusion = fusion, .jobs = 1, .tuned = "", .is_temporary = 1};
    dlc_model *model = NULL;
    const char *json = NULL;
    dlc_status status = dlc_model_open_bytes(text, strlen(text), "case.dlc", &options, &model);
    if (status == DLC_OK)
        status = dlc_model_write_fd(model, "so", fd, "case");
    if (status == DLC_OK && plan && (status = dlc_model_text(model, DLC_TEXT_INSPECT, "json", &json)) == DLC_OK) {
        FILE *file = fopen(plan, "w");
        if (!file || fputs(json, file) < 0 || fclose(file))
            status = DLC_IO;
    }
    dlc_model_close(model);
    return status;
}

static int same_bytes(int a, int b)
{
    struct stat first, second;
    if (fstat(a, &first) || fstat(b, &second) || first.st_size != second.st_size)
        return 0;
    size_t n = (size_t)first.st_size;
    void *x = mmap(NULL, n, PROT_READ, MAP_PRIVATE, a, 0), *y = mmap(NULL, n, PROT_READ, MAP_PRIVATE, b, 0);
    int equal = x != MAP_FAILED && y != MAP_FAILED && !memcmp(x, y, n);
    munmap(x, n);
    munmap(y, n);
    return equal;
}

void judge_plans(const char *text, const char *folder, judgement *j)
{
    static const char *const strategies[] = {"none", "pointwise", "greedy", WILD_STRATEGY};
    char plan[512];
    *j = (judgement){0};
    snprintf(plan, sizeof plan, "%s/plan-%d.json", folder, (int)getpid());
    for (int s = 0; s < 4 && j->verdict < JUDGE_DIFFERS; s++) {
        int wanted = memfd_create("wanted", MFD_CLOEXEC), found = memfd_create("found", MFD_CLOEXEC);
        dlc_status status = compile(text, strategies[s], wanted, plan);
        if (status != DLC_OK)
            j->verdict = JUDGE_REFUSED;
        else if ((status = compile(text, plan, found, NULL)) != DLC_OK || !same_bytes(wanted, found)) {
            j->verdict = JUDGE_DIFFERS;
            snprintf(j->text, sizeof j->text, "%s: its plan %s", strategies[s],
                     status ? "is refused" : "gives another executable");
        }
        close(wanted);
        close(found);
    }
    unlink(plan);
}
