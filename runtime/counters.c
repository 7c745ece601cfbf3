/* Counters of executables as text. Runs add to them without a lock, so the lines of one text may be a run apart. */
#include <inttypes.h>
#include <string.h>

#include "runtime/internal.h"
#include "runtime/steps.h"

static const char *const status_names[DLCRT_NSTATUSES] = {
    [DLC_OK] = "ok",
    [DLC_INVALID] = "invalid",
    [DLC_USAGE] = "usage",
    [DLC_UNSUPPORTED] = "unsupported",
    [DLC_MISMATCH] = "mismatch",
    [DLC_IO] = "io",
    [DLC_NO_DEVICE] = "no_device",
    [DLC_LIMIT] = "limit",
    [DLC_CANCELLED] = "cancelled",
    [DLCRT_NSTATUSES - 1] = "internal",
};

typedef enum { TIME, ACTIVE, CONTEXTS, WEIGHTS, NROWS } row_id;

static const struct {
    const char *name, *type, *help;
} rows[NROWS] = {
    [TIME] = {"dlc_run_seconds_total", "counter", "Seconds that runs took, one after another."},
    [ACTIVE] = {"dlc_runs_active", "gauge", "Runs under way."},
    [CONTEXTS] = {"dlc_contexts", "gauge", "Contexts, each for one run at a time."},
    [WEIGHTS] = {"dlc_weights_bytes", "gauge", "Bytes of weights, mapped from the file and shared."},
};

typedef struct {
    uint64_t nended[DLCRT_NSTATUSES], of[NROWS]; /* time in nanoseconds */
} counts;

typedef struct {
    const dlcrt_executable *const *executables;
    uint32_t n;
    dlcrt_text *out;
} printer;

/* The same series. */
static int is_alike(const dlcrt_executable *a, const dlcrt_executable *b)
{
    return b && a->content == b->content && !strcmp(a->name, b->name) &&
           !strcmp(dlcrt_string(a->plan, a->plan->model), dlcrt_string(b->plan, b->plan->model));
}

static int is_first(const printer *p, uint32_t i)
{
    const dlcrt_executable *executable = p->executables[i];
    for (uint32_t j = 0; executable && j < i; j++)
        if (is_alike(executable, p->executables[j]))
            return 0;
    return executable != NULL;
}

static counts counts_of(const printer *p, const dlcrt_executable *like)
{
    counts sum = {0};
    for (uint32_t i = 0; i < p->n; i++) {
        const dlcrt_executable *executable = p->executables[i];
        if (!is_alike(like, executable))
            continue;
        for (uint32_t s = 0; s < DLCRT_NSTATUSES; s++)
            sum.nended[s] += atomic_load_explicit(&executable->counters.nended[s], memory_order_relaxed);
        sum.of[TIME] += atomic_load_explicit(&executable->counters.time_ns, memory_order_relaxed);
        sum.of[ACTIVE] += atomic_load_explicit(&executable->counters.nactive, memory_order_relaxed);
        sum.of[CONTEXTS] += atomic_load_explicit(&executable->users, memory_order_relaxed) - 1;
        sum.of[WEIGHTS] = executable->image.entry->constants_bytes;
    }
    return sum;
}

/* A label's value is UTF-8; backslash, quote and line feed are written as two characters. A file may have any bytes for a name:
 * those that are no UTF-8 become \xNN, so that files stay apart and the rest of the text is read. */
static void add_value(dlcrt_text *out, const char *value)
{
    while (*value) {
        const char *at = value;
        int is_none = dlcrt_character(&value) == 0xfffd && value == at + 1;
        if (is_none)
            dlcrt_text_add(out, "\\\\x%02x", (unsigned char)*at);
        else if (*at == '\n')
            dlcrt_text_add(out, "\\n");
        else
            dlcrt_text_add(out, "%s%.*s", *at == '\\' || *at == '"' ? "\\" : "", (int)(value - at), at);
    }
}

static void add_labels(const printer *p, const char *name, const dlcrt_executable *of, const char *status)
{
    dlcrt_text_add(p->out, "%s{model=\"", name);
    add_value(p->out, dlcrt_string(of->plan, of->plan->model));
    dlcrt_text_add(p->out, "\",file=\"");
    add_value(p->out, of->name);
    if (of->content)
        dlcrt_text_add(p->out, " %016" PRIx64, of->content);
    dlcrt_text_add(p->out, status ? "\",status=\"%s\"} " : "\"} ", status);
}

static void add_head(const printer *p, const char *name, const char *type, const char *help)
{
    dlcrt_text_add(p->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_runs(const printer *p)
{
    add_head(p, "dlc_runs_total", "counter", "Runs that ended, by status.");
    for (uint32_t i = 0; i < p->n; i++) {
        if (!is_first(p, i))
            continue;
        counts sum = counts_of(p, p->executables[i]);
        for (uint32_t s = 0; s < DLCRT_NSTATUSES; s++) {
            if (s != DLC_OK && !sum.nended[s])
                continue;
            add_labels(p, "dlc_runs_total", p->executables[i], status_names[s]);
            dlcrt_text_add(p->out, "%" PRIu64 "\n", sum.nended[s]);
        }
    }
}

static void print_row(const printer *p, row_id row)
{
    enum { NS = 1000000000 };
    add_head(p, rows[row].name, rows[row].type, rows[row].help);
    for (uint32_t i = 0; i < p->n; i++) {
        if (!is_first(p, i))
            continue;
        counts sum = counts_of(p, p->executables[i]);
        add_labels(p, rows[row].name, p->executables[i], NULL);
        if (row == TIME) /* not as a float: its point is the locale's */
            dlcrt_text_add(p->out, "%" PRIu64 ".%09" PRIu64 "\n", sum.of[row] / NS, sum.of[row] % NS);
        else
            dlcrt_text_add(p->out, "%" PRIu64 "\n", sum.of[row]);
    }
}

size_t dlcrt_counters_print(const dlcrt_executable *const *executables, uint32_t nexecutables, char *text, size_t size_bytes)
{
    size_bytes = text ? size_bytes : 0;
    if (size_bytes)
        text[0] = '\0';
    dlcrt_text out = {text, size_bytes, 0};
    printer p = {executables, executables ? nexecutables : 0, &out};
    print_runs(&p);
    for (row_id row = 0; row < NROWS; row++)
        print_row(&p, row);
    return out.n;
}
