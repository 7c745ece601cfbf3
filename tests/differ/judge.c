/* Oracle and compiled code on the same inputs, several sizes each. */
#include "tests/differ/judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "dlc/dlc.h"
#include "ir/expr/expr.h"
#include "tests/differ/draws.h"
#include "tests/differ/place.h"

enum { MOST_TENSORS = 256, MOST_SIZES = 8, FEW_NOISY = 3, MANY_NOISY = 24 };

const char *const judge_names[] = {"agrees", "refused", "differs", "fails", "crashes"};

/* Sizes of symbols by the first line: "# seed 7 n=3,17 m=1,2". */
typedef struct {
    uint64_t seed;
    struct {
        char name[32];
        int64_t value[2];
    } row[MOST_SIZES];
    uint32_t n;
} sizes;

typedef struct {
    dlcrt_tensor in[MOST_TENSORS], out[MOST_TENSORS];
    uint32_t nin, nout;
    dlc_status status;
    char text[300]; /* why not */
} outcome;

typedef struct {
    const char *text;
    const way *way;
    judgement *j;
    sizes sizes;
    uint32_t run;
    dlc_model *model;       /* the oracle's */
    outcome wanted;
    double *moved[MOST_TENSORS]; /* by output: how far noise moves each element; infinite: it decides */
    double strength;        /* of noise, in units of the last place; 0: none, and nothing is rounded */
    draws noise;
} bench;

static void read_sizes(const char *text, sizes *s)
{
    *s = (sizes){.seed = 1};
    const char *at = strncmp(text, "# seed ", 7) ? "" : text + 7, *end = at + strcspn(at, "\n");
    if (at < end)
        s->seed = strtoull(at, NULL, 10);
    for (at += strcspn(at, " \n"); at < end && s->n < MOST_SIZES; at += strcspn(at, " \n")) {
        at += *at == ' ';
        if (sscanf(at, "%31[^= \n]=%" SCNd64 ",%" SCNd64, s->row[s->n].name, &s->row[s->n].value[0], &s->row[s->n].value[1]) == 3)
            s->n++;
    }
}

static void say(judgement *j, verdict v, const way *w, const char *format, ...)
{
    va_list args;
    int n = w ? snprintf(j->text, sizeof j->text, "%s, %s%s%s%s%s: ", w->target, w->fusion, w->rewrite ? ", rewrite " : "",
                         w->rewrite ? w->rewrite : "", w->winograd ? ", winograd " : "", w->winograd ? w->winograd : "")
              : 0;
    va_start(args, format);
    vsnprintf(j->text + n, sizeof j->text - (size_t)n, format, args);
    va_end(args);
    j->verdict = v;
}

/* --- inputs --- */

static dlc_scalar some_number(dlc_dtype dtype, int64_t below, draws *d, int has_specials)
{
    static const double specials[] = {NAN, INFINITY, -INFINITY, -0.0, 1e-40, 1e4};
    uint64_t bits = draws_bits(d);
    int64_t limit = below ? below : dtype == DLC_BOOL ? 2 : 24;
    dlc_scalar s = {.i = (int64_t)(bits >> 33) % limit};
    if (!below && !dlc_is_unsigned(dtype) && dtype != DLC_BOOL)
        s.i -= 12;
    if (!dlc_is_float(dtype))
        return s;
    double u = (double)(bits >> 11) * 0x1p-53;
    s.f = bits % 16 == 0 ? (double)(int64_t)(bits >> 60) - 4 : 4 * u - 2;
    if (has_specials && bits % 23 == 0)
        s.f = specials[(bits >> 8) % 6];
    s.f = dlc_round_to(dtype, s.f);
    return s;
}

static int64_t size_of(const bench *b, const char *name)
{
    for (uint32_t i = 0; name && i < b->sizes.n; i++)
        if (!strcmp(b->sizes.row[i].name, name))
            return b->sizes.row[i].value[b->run];
    return 2;
}

static void fill(const bench *b, const dlcrt_tensor_info *info, dlcrt_tensor *t)
{
    const char *suffix = strstr(info->name, "_u");
    int64_t below = suffix ? strtoll(suffix + 2, NULL, 10) : 0;
    draws d = {.state = b->sizes.seed * 1000 + b->run};
    size_t n = 1, size = dlc_dtype_bytes(info->dtype);
    *t = (dlcrt_tensor){.name = info->name, .dtype = info->dtype, .rank = info->rank};
    for (uint32_t i = 0; i < info->rank; i++) {
        t->dims[i] = info->dims[i] < 0 ? size_of(b, info->dim_names[i]) : info->dims[i];
        n *= (size_t)t->dims[i];
    }
    for (const char *c = info->name; *c; c++)
        d.state = d.state * 131 + (uint8_t)*c;
    t->data = malloc(n * size + 1);
    t->size_bytes = n * size;
    for (size_t i = 0; i < n; i++)
        dlc_scalar_write(info->dtype, (char *)t->data + i * size, some_number(info->dtype, below, &d, b->sizes.seed % 10 == 3));
}

static void free_tensors(dlcrt_tensor *tensors, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        free(tensors[i].data);
}

/* --- the oracle --- */

/* What is right to the last bit, or only moves elements. */
static const char *const exact[] = {
    "input", "neg", "abs", "sign", "relu", "floor", "ceil", "round", "min", "max", "clip", "where", "cast", "bitcast",
    "reshape", "transpose", "expand", "slice", "concat", "pad", "tile", "gather", "state", "final", "stack", "either",
    "topk", "symbols", "trilu", "one_hot", "reduce_min", "reduce_max", "max_pool", "gather_elements", "gather_nd",
    "reverse_sequence", NULL};

/* Whose error is a part of the largest element, not of each: terms may cancel. */
static const char *const sums[] = {"reduce_sum", "reduce_mean", "matmul", "conv", "conv_transpose", "einsum", "cumsum",
                                   "avg_pool", "resize", "grid_sample", "scatter_elements", NULL};

/* Whose tail towards 0 is a difference of numbers near 1: the last place of those decides whether it is 0. */
static const char *const tails[] = {"gelu", NULL};
enum { TAIL_PLACES = 64 };

/* What squares numbers on its way: where the square has no normal number of the type, the root of it may be 0. */
static const char *const squares[] = {"lp_pool", NULL};

static double least_normal(dlc_dtype dtype)
{
    return dtype == DLC_F16 ? 0x1p-14 : dtype == DLC_F64 ? 0x1p-1022 : 0x1p-126;
}

static int is_one_of(const char *const *names, const char *does)
{
    while (*names && strcmp(*names, does) != 0)
        names++;
    return *names != NULL;
}

static void move(void *user, const dlc_watched *seen)
{
    bench *b = user;
    double most = 0, place = last_place(seen->dtype) * b->strength;
    if (!seen->wide || b->strength == 0)
        return;
    int adds_up = is_one_of(sums, seen->does);
    for (size_t i = 0; i < seen->nelems; i++)
        if (isfinite(seen->wide[i]) && fabs(seen->wide[i]) > most)
            most = fabs(seen->wide[i]);
    for (size_t i = 0; i < seen->nelems; i++) {
        int is_tail = is_one_of(tails, seen->does) && fabs(seen->wide[i]) < TAIL_PLACES * last_place(seen->dtype) * most;
        double scale = adds_up || is_tail ? most : fabs(seen->wide[i]), u = (double)(draws_bits(&b->noise) >> 11) * 0x1p-52 - 1;
        if (!is_one_of(exact, seen->does))
            seen->wide[i] += u * place * scale;
        if (is_one_of(squares, seen->does) && seen->wide[i] * seen->wide[i] < least_normal(seen->dtype) && u < 0)
            seen->wide[i] = 0;
        seen->wide[i] = dlc_round_to(seen->dtype, seen->wide[i]);
    }
}

static void last_message(const dlc_model *model, char *text, size_t size)
{
    dlc_model_note note;
    *text = 0;
    for (uint32_t i = 0; dlc_model_message(model, i, &note); i++)
        if (note.status != DLC_OK)
            snprintf(text, size, "%s%s%s", note.place ? note.place : "", note.place && *note.place ? ": " : "", note.text);
}

static void copy_outputs(dlcrt_tensor *outputs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        void *copy = malloc(outputs[i].size_bytes + 1);
        if (outputs[i].size_bytes)
            memcpy(copy, outputs[i].data, outputs[i].size_bytes);
        outputs[i].data = copy;
    }
}

static void ask_oracle(bench *b, double strength, uint64_t seed, outcome *o)
{
    b->strength = strength;
    b->noise = (draws){.state = seed};
    dlc_model_watch(b->model, strength > 0 ? move : NULL, b);
    memset(o->out, 0, sizeof o->out);
    o->status = dlc_model_interpret(b->model, b->wanted.in, b->wanted.nin, o->out, o->nout);
    if (o->status == DLC_OK)
        copy_outputs(o->out, o->nout);
    else
        last_message(b->model, o->text, sizeof o->text);
}

static size_t elems_of(const dlcrt_tensor *t)
{
    return t->size_bytes / dlc_dtype_bytes(t->dtype);
}

static int same_dims(const dlcrt_tensor *a, const dlcrt_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}

static double element(const dlcrt_tensor *t, size_t i)
{
    dlc_scalar s = dlc_scalar_read(t->dtype, (const char *)t->data + i * dlc_dtype_bytes(t->dtype));
    return dlc_is_float(t->dtype) ? s.f : (double)s.i;
}

/* How far apart two elements are; infinite where one is no number, or they are integers that differ. */
static double distance(const dlcrt_tensor *a, const dlcrt_tensor *b, size_t i)
{
    uint32_t size = dlc_dtype_bytes(a->dtype);
    if (!memcmp((const char *)a->data + i * size, (const char *)b->data + i * size, size))
        return 0;
    double x = element(a, i), y = element(b, i);
    if (!dlc_is_float(a->dtype))
        return INFINITY;
    if (x == y || (isnan(x) && isnan(y)))
        return 0;
    return isfinite(x) && isfinite(y) ? fabs(x - y) : INFINITY;
}

/* One more noisy run. */
static void learn_noise(bench *b, double strength, uint64_t seed)
{
    outcome noisy = {.nout = b->wanted.nout};
    ask_oracle(b, strength, seed, &noisy);
    for (uint32_t o = 0; o < b->wanted.nout; o++) {
        const dlcrt_tensor *a = &b->wanted.out[o], *c = &noisy.out[o];
        int fits = noisy.status == DLC_OK && same_dims(a, c);
        for (size_t i = 0, n = elems_of(a); i < n; i++)
            b->moved[o][i] = fmax(b->moved[o][i], fits ? distance(a, c, i) : INFINITY);
    }
    if (noisy.status == DLC_OK)
        free_tensors(noisy.out, noisy.nout);
}

/* --- compiled code --- */

static dlc_status run_compiled(bench *b, dlcrt_executable *executable, outcome *o)
{
    dlcrt_context *context = NULL;
    dlcrt_context_options options = {.threads = b->run ? 2 : 1, .poison = 1};
    o->status = dlcrt_context_create(executable, &options, &context);
    for (int again = 0; again < 2 && o->status == DLC_OK; again++) { /* a second run finds what the first left behind */
        memset(o->out, 0, sizeof o->out);
        o->status = dlcrt_context_run(context, b->wanted.in, b->wanted.nin, o->out, o->nout);
    }
    if (o->status == DLC_OK)
        copy_outputs(o->out, o->nout);
    else
        snprintf(o->text, sizeof o->text, "%s", dlcrt_last_error());
    dlcrt_context_destroy(context);
    return o->status;
}

/* The element that is too far away; false: none. */
static int find_wrong(bench *b, const outcome *o, uint32_t output, size_t *at)
{
    const dlcrt_tensor *got = &o->out[output], *want = &b->wanted.out[output];
    double mean = 0, place = dlc_is_float(want->dtype) ? last_place(want->dtype) : 0;
    size_t n = elems_of(want), counted = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(b->moved[output][i]))
            mean += b->moved[output][i], counted++;
    mean = counted ? mean / (double)counted : 0;
    for (*at = 0; *at < n; ++*at) {
        double moved = b->moved[output][*at], limit = 16 * moved + 4 * mean + 8 * place * fmax(1, fabs(element(want, *at)));
        b->j->nelems += isfinite(moved);
        b->j->nskipped += !isfinite(moved);
        if (isfinite(moved) && distance(got, want, *at) > limit)
            return 1;
    }
    return 0;
}

static int find_any_wrong(bench *b, const outcome *o, uint32_t *output, size_t *at)
{
    for (*output = 0; *output < o->nout; ++*output)
        if (find_wrong(b, o, *output, at))
            return 1;
    return 0;
}

static void compare(bench *b, const outcome *o)
{
    uint32_t output;
    size_t at;
    for (uint32_t i = 0; i < o->nout; i++)
        if (!same_dims(&o->out[i], &b->wanted.out[i])) {
            for (int k = 0; k < MANY_NOISY; k++)
                learn_noise(b, 8, 900u + (uint64_t)k);
            if (elems_of(&b->wanted.out[i]) && isfinite(b->moved[i][0]))
                say(b->j, JUDGE_DIFFERS, b->way, "run %u, output %u has another shape", b->run, i);
            return;
        }
    if (!find_any_wrong(b, o, &output, &at))
        return;
    for (int k = 0; k < MANY_NOISY; k++)
        learn_noise(b, k % 2 ? 2 : 16, 100u + (uint64_t)k);
    if (find_any_wrong(b, o, &output, &at))
        say(b->j, JUDGE_DIFFERS, b->way, "run %u, output '%s' [%zu] = %.9g, not %.9g (noise moves it by %.3g)", b->run,
            b->wanted.out[output].name ? b->wanted.out[output].name : "", at, element(&o->out[output], at),
            element(&b->wanted.out[output], at), b->moved[output][at]);
}

/* Whether noise too makes the oracle refuse, or run. */
static int is_undecided(bench *b)
{
    for (uint64_t k = 0; k < MANY_NOISY; k++) {
        outcome noisy = {.nout = b->wanted.nout};
        ask_oracle(b, 4, 500 + k, &noisy);
        if (noisy.status == DLC_OK)
            free_tensors(noisy.out, noisy.nout);
        if ((noisy.status == DLC_OK) != (b->wanted.status == DLC_OK))
            return 1;
    }
    return 0;
}

static void judge_run(bench *b, dlcrt_executable *executable)
{
    outcome o = {.nout = b->wanted.nout};
    run_compiled(b, executable, &o);
    if ((o.status == DLC_OK) != (b->wanted.status == DLC_OK)) {
        if (!is_undecided(b))
            say(b->j, JUDGE_FAILS, b->way, "run %u: it %s%s, the oracle %s%s", b->run, o.status ? "says " : "runs",
                o.status ? o.text : "", b->wanted.status ? "says " : "runs", b->wanted.status ? b->wanted.text : "");
    } else if (o.status == DLC_OK) {
        compare(b, &o);
    } else if (o.status != b->wanted.status) {
        say(b->j, JUDGE_FAILS, b->way, "run %u: it ends with status %d (%s), the oracle with %d (%s)", b->run, o.status, o.text,
            b->wanted.status, b->wanted.text);
    }
    if (o.status == DLC_OK)
        free_tensors(o.out, o.nout);
}

static dlc_status compile(bench *b, dlc_model **model, int fd)
{
    const way *w = b->way;
    dlc_options options = {.target = w->target, .fusion = w->fusion, .rewrite = w->rewrite, .winograd = w->winograd, .jobs = 1,
                           .tuned = "", .is_temporary = 1, .emulate_gpu = !strncmp(w->target, "sm_", 3)};
    dlc_status status = dlc_model_open_bytes(b->text, strlen(b->text), "case.dlc", &options, model);
    return status == DLC_OK ? dlc_model_write_fd(*model, "so", fd, "case") : status;
}

/* --- one size --- */

static void ask_for_all(bench *b)
{
    dlcrt_tensor_info info;
    outcome *w = &b->wanted;
    *w = (outcome){0};
    while (w->nin < MOST_TENSORS && dlc_model_input(b->model, w->nin, &info)) {
        fill(b, &info, &w->in[w->nin]);
        w->nin++;
    }
    while (w->nout < MOST_TENSORS && dlc_model_output(b->model, w->nout, &info))
        w->nout++;
    ask_oracle(b, 0, 0, w);
    for (uint32_t o = 0; w->status == DLC_OK && o < w->nout; o++)
        b->moved[o] = calloc(elems_of(&w->out[o]) + 1, sizeof(double));
    for (uint64_t k = 0; w->status == DLC_OK && k < FEW_NOISY; k++)
        learn_noise(b, k ? 2 : 1e-9, k + 1);
}

static void forget(bench *b)
{
    free_tensors(b->wanted.in, b->wanted.nin);
    if (b->wanted.status != DLC_OK)
        return;
    free_tensors(b->wanted.out, b->wanted.nout);
    for (uint32_t o = 0; o < b->wanted.nout; o++)
        free(b->moved[o]);
}

/* The compiler refuses: fine where the oracle refuses every run too, or where it says what it cannot do. */
static void judge_refusal(bench *b, dlc_status status, const char *text)
{
    if (status == DLC_UNSUPPORTED || status == DLC_LIMIT || (status == DLC_INVALID && b->wanted.status != DLC_OK))
        say(b->j, JUDGE_REFUSED, b->way, "%s", text);
    else
        say(b->j, JUDGE_FAILS, b->way, "compiling ends with status %d: %s", status, text);
}

static void judge_way(bench *b, const way *w)
{
    dlc_model *model = NULL;
    dlcrt_executable *executable = NULL;
    char text[300];
    int fd = memfd_create("case", MFD_CLOEXEC);
    b->way = w;
    dlc_status status = compile(b, &model, fd);
    last_message(model, text, sizeof text);
    dlc_model_close(model);
    dlc_status opened = status == DLC_OK ? dlcrt_executable_open_fd(fd, &executable) : DLC_OK;
    if (opened != DLC_OK && opened != DLC_NO_DEVICE)
        say(b->j, JUDGE_FAILS, w, "the executable is refused: %s", dlcrt_last_error());
    for (b->run = 0; b->run < (b->sizes.n ? 2 : 1) && b->j->verdict < JUDGE_DIFFERS && opened == DLC_OK; b->run++) {
        ask_for_all(b);
        if (status != DLC_OK)
            judge_refusal(b, status, text);
        else
            judge_run(b, executable);
        forget(b);
    }
    dlcrt_executable_close(executable);
    close(fd);
}

void judge_graph(const char *text, const way *ways, uint32_t nways, judgement *j)
{
    bench *b = calloc(1, sizeof *b);
    *j = (judgement){0};
    b->text = text;
    b->j = j;
    read_sizes(text, &b->sizes);
    const char *live;
    dlc_options options = {.target = "x86-64-v3", .passes = "dce"}; /* what nobody reads cannot be out of range */
    dlc_status status = dlc_model_open_bytes(text, strlen(text), "case.dlc", &options, &b->model);
    if (status == DLC_OK)
        status = dlc_model_text(b->model, DLC_TEXT_GRAPH, "text", &live);
    if (status != DLC_OK) {
        char why[300];
        last_message(b->model, why, sizeof why);
        say(j, status == DLC_UNSUPPORTED ? JUDGE_REFUSED : JUDGE_FAILS, NULL, "it is not read: %s", why);
    }
    for (uint32_t w = 0; w < nways && status == DLC_OK && j->verdict < JUDGE_DIFFERS; w++) {
        j->way = w;
        judge_way(b, &ways[w]);
    }
    dlc_model_close(b->model);
    free(b);
}

void judge_apart(const char *text, const way *ways, uint32_t nways, judgement *j)
{
    judgement *shared = mmap(NULL, sizeof *j, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        /* Of its own time: it may stand still while others measure. Who waits for nothing is ended as well. */
        setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = 60}, NULL);
        alarm(1200);
        judge_graph(text, ways, nways, shared);
        _exit(0);
    }
    waitpid(child, &status, 0);
    *j = *shared;
    if (WIFSIGNALED(status))
        say(j, JUDGE_CRASHES, &ways[j->way], "signal %d%s", WTERMSIG(status),
            WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGPROF ? ": it takes too long" : "");
    else if (WEXITSTATUS(status))
        say(j, JUDGE_CRASHES, &ways[j->way], "it ends with %d", WEXITSTATUS(status));
    munmap(shared, sizeof *j);
}
