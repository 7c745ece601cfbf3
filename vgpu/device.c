/*
 * Objects and streams. A handle that is wrong, stale or released twice ends the process. Work is as
 * late as a driver may be: what goes into a stream is done when somebody waits for that stream, so
 * a result that is read too early is not there yet. A copy of host memory takes the bytes when it
 * is called and a copy to host memory waits, as for memory that is not page-locked. Memory that
 * queued work needs must not be freed.
 */
#include "vgpu/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MIB = 1 << 20, POISONED = 64 * MIB, POISON = 0xcb };

device vgpu_device = {.lock = PTHREAD_MUTEX_INITIALIZER,
                      .legacy = {.head.what = STREAM},
                      .orphans = {.head.what = STREAM}};

void vgpu_die(const char *what)
{
    fprintf(stderr, "virtual GPU: %s\n", what);
    abort();
}

/* --- memory: reserved, and there once it is touched, so that large allocations cost nothing --- */
static void *reserve(size_t size_bytes)
{
    void *at = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static size_t reserved_bytes(const object *o)
{
    return o->size_bytes + MIB; /* nothing lies right behind an allocation */
}

static int allocate(object *o)
{
    o->bytes = reserve(reserved_bytes(o));
    int is_watched = !vgpu_device.is_opaque && !vgpu_device.sample && o->what == MEMORY;
    o->written = is_watched ? reserve(reserved_bytes(o)) : NULL;
    if (!o->bytes || (!o->written && is_watched))
        return 0;
    if (o->size_bytes <= POISONED)
        memset(o->bytes, POISON, o->size_bytes);
    vgpu_memory_add(&vgpu_device.memory,
                    &(vgpu_region){.base = (uint64_t)(uintptr_t)o->bytes + vgpu_device.bias,
                                   .size_bytes = o->size_bytes,
                                   .bytes = o->bytes,
                                   .written = o->written,
                                   .is_writable = 1});
    return 1;
}

static void unmap(object *o)
{
    if (o->bytes)
        munmap(o->bytes, reserved_bytes(o));
    if (o->written)
        munmap(o->written, reserved_bytes(o));
}

unsigned char *vgpu_host(uint64_t at)
{
    return (unsigned char *)(uintptr_t)(at - vgpu_device.bias);
}

static int has_bytes(kind what)
{
    return what == MEMORY || what == HOST_MEMORY;
}

static int lies_in(uint64_t at, const object *o)
{
    uint64_t begin = (uint64_t)(uintptr_t)o->bytes + vgpu_device.bias;
    return has_bytes(o->what) && at >= begin && at < begin + o->size_bytes;
}

object *vgpu_holder(uint64_t at, size_t size_bytes)
{
    for (unsigned i = 0; i < vgpu_device.nobjects; i++) {
        object *o = vgpu_device.objects[i];
        uint64_t begin = (uint64_t)(uintptr_t)o->bytes + vgpu_device.bias;
        if (lies_in(at, o) && at + size_bytes <= begin + o->size_bytes)
            return o;
    }
    return NULL;
}

/* --- objects --- */
static size_t object_bytes(kind what)
{
    return what == GRAPH || what == EXEC ? sizeof(graph)
           : what == STREAM              ? sizeof(stream)
           : what == EVENT               ? sizeof(event)
           : what == FUNCTION            ? sizeof(function)
                                         : sizeof(object);
}

void *vgpu_add(kind what, size_t size_bytes)
{
    device *d = &vgpu_device;
    object *o = calloc(1, object_bytes(what));
    if (d->nobjects == d->capacity) {
        d->capacity = 2 * d->capacity + 64;
        d->objects = realloc(d->objects, d->capacity * sizeof(object *));
    }
    if (!o || !d->objects)
        vgpu_die("out of memory");
    o->what = what;
    o->size_bytes = size_bytes;
    if (has_bytes(what) && !allocate(o)) {
        unmap(o);
        free(o);
        return NULL;
    }
    d->objects[d->nobjects++] = o;
    d->nlive += what != FUNCTION;
    return o;
}

object *vgpu_find(void *handle, kind what)
{
    for (unsigned i = 0; i < vgpu_device.nobjects; i++)
        if (vgpu_device.objects[i] == handle && vgpu_device.objects[i]->what == what)
            return handle;
    vgpu_die("a handle that is not one");
}

stream *vgpu_stream(void *handle)
{
    static void *const legacy = (void *)1; /* CU_STREAM_LEGACY; NULL is the same stream */
    return !handle || handle == legacy ? &vgpu_device.legacy : (stream *)vgpu_find(handle, STREAM);
}

void vgpu_free_node(node *n)
{
    free(n->staged);
    free(n->parameters);
    free(n->after);
}

static void drop_functions(const object *module)
{
    for (unsigned i = vgpu_device.nobjects; i-- > 0;) {
        object *o = vgpu_device.objects[i];
        if (o->what == FUNCTION && ((function *)o)->module == module)
            vgpu_drop(o);
    }
}

static void free_parts(object *o)
{
    graph *g = (graph *)o;
    stream *s = (stream *)o;
    for (size_t i = 0; (o->what == GRAPH || o->what == EXEC) && i < g->nnodes; i++)
        vgpu_free_node(&g->nodes[i]);
    if (o->what == GRAPH || o->what == EXEC)
        free(g->nodes);
    for (size_t i = 0; o->what == STREAM && i < s->nqueued; i++)
        vgpu_free_node(&s->queue[i]);
    if (o->what == STREAM)
        free(s->queue);
    if (has_bytes(o->what)) {
        vgpu_memory_remove(&vgpu_device.memory, (uint64_t)(uintptr_t)o->bytes + vgpu_device.bias);
        unmap(o);
    }
    if (o->what == MODULE)
        dlc_arena_destroy(o->arena);
}

void vgpu_drop(object *o)
{
    device *d = &vgpu_device;
    unsigned i = 0;
    if (o->what == MODULE)
        drop_functions(o);
    while (d->objects[i] != o)
        i++;
    d->objects[i] = d->objects[--d->nobjects];
    d->nlive -= o->what != FUNCTION;
    free_parts(o);
    free(o);
}

/* --- what work needs --- */
static int needs(const node *n, const object *o)
{
    if (o->what == MODULE)
        return n->what == LAUNCH && n->kernel->module == o;
    int is_needed =
        n->what <= FILL && (lies_in(n->to, o) || (n->what == COPY && lies_in(n->from, o)));
    for (size_t at = 0; n->what == LAUNCH && at + 8 <= n->parameter_bytes; at += 8) {
        uint64_t parameter;
        memcpy(&parameter, n->parameters + at, sizeof parameter);
        is_needed |= lies_in(parameter, o);
    }
    return is_needed;
}

static void must_be_idle(const stream *s, const object *o)
{
    for (size_t i = 0; i < s->nqueued; i++)
        if (needs(&s->queue[i], o))
            vgpu_die("something is released that work in a stream still needs");
}

/* Who could not enter the context leaves what is in it to its end. */
static int was_locked_out(void)
{
    return vgpu_device.has_failed && !strcmp(vgpu_device.failing, "cuCtxPushCurrent_v2");
}

void vgpu_release(object *o)
{
    must_be_idle(&vgpu_device.legacy, o);
    must_be_idle(&vgpu_device.orphans, o);
    for (unsigned i = 0; i < vgpu_device.nobjects && !was_locked_out(); i++)
        if (vgpu_device.objects[i]->what == STREAM)
            must_be_idle((stream *)vgpu_device.objects[i], o);
    vgpu_drop(o);
}

/* --- streams --- */
static int fault(int number, const char *text)
{
    snprintf(vgpu_device.fault, sizeof vgpu_device.fault, "%s", text);
    fprintf(stderr, "virtual GPU: %s\n", text);
    return vgpu_device.sticky = number;
}

static vgpu_launch launch_of(const node *n, vgpu_counts *counts)
{
    vgpu_launch launch = {.shared_bytes = n->shared_bytes,
                          .parameters = n->parameters,
                          .memory = &vgpu_device.memory,
                          .is_backwards = vgpu_device.is_backwards,
                          .limit = vgpu_device.limit,
                          .counts = counts};
    memcpy(launch.grid, n->grid, sizeof launch.grid);
    memcpy(launch.block, n->block, sizeof launch.block);
    uint64_t nblocks = (uint64_t)n->grid[0] * n->grid[1] * n->grid[2];
    if (vgpu_device.sample && nblocks > vgpu_device.sample)
        launch.stride = (uint32_t)((nblocks + vgpu_device.sample - 1) / vgpu_device.sample);
    return launch;
}

static int execute_launch(stream *s, const node *n)
{
    const device *d = &vgpu_device;
    vgpu_bound bound;
    vgpu_counts counts = {0};
    if (!n->kernel->code) {
        if (d->kernels)
            d->kernels->launch(n->kernel->module->image, (const uint64_t *)(void *)n->parameters,
                               n->grid[0]);
        return 0;
    }
    vgpu_launch launch = launch_of(n, &counts);
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    int result = 0;
    if (vgpu_run(n->kernel->code, &launch, &diag) != DLC_OK)
        result =
            fault(launch.fault, dlc_arena_printf(arena, "kernel %s: %s", diag.messages[0].place,
                                                 diag.messages[0].text));
    dlc_arena_destroy(arena);
    vgpu_record_row *row =
        vgpu_record_find(&vgpu_device.records, n->kernel->number, n->kernel->code, &launch);
    vgpu_record_row once = *row;
    once.launches = 1;
    once.counts = counts;
    s->time_us += vgpu_predict(d->gpu, &once, &bound);
    row->launches++;
    vgpu_counts_add(&row->counts, &counts);
    return result;
}

static void mark(uint64_t to, const unsigned char *written, size_t size_bytes)
{
    const object *o = vgpu_holder(to, size_bytes);
    if (!o || !o->written)
        return;
    unsigned char *at = o->written + (vgpu_host(to) - o->bytes);
    if (written)
        memmove(at, written, size_bytes);
    else
        memset(at, 1, size_bytes);
}

/* A graph may outlive the memory that it was recorded with. */
static int is_there(const node *n)
{
    return vgpu_holder(n->to, n->size_bytes) &&
           (n->what == FILL || n->staged || vgpu_holder(n->from, n->size_bytes));
}

int vgpu_must_be_written(uint64_t from, size_t size_bytes)
{
    const object *o = vgpu_holder(from, size_bytes);
    char text[128];
    size_t unwritten = 0;
    for (size_t i = 0; o && o->written && i < size_bytes; i++)
        unwritten += !o->written[(size_t)(vgpu_host(from) - o->bytes) + i];
    if (!unwritten)
        return 0;
    snprintf(text, sizeof text, "of %zu bytes copied to the host nobody has written %zu", size_bytes, unwritten);
    return fault(VGPU_FAILED, text);
}

static int execute_copy(stream *s, const node *n)
{
    const object *to = vgpu_holder(n->to, n->size_bytes);
    if (to->what == HOST_MEMORY && !n->staged && vgpu_must_be_written(n->from, n->size_bytes))
        return vgpu_device.sticky;
    const object *from = n->staged ? NULL : vgpu_holder(n->from, n->size_bytes);
    memmove(vgpu_host(n->to), n->staged ? n->staged : vgpu_host(n->from), n->size_bytes);
    mark(n->to, from && from->written ? from->written + (vgpu_host(n->from) - from->bytes) : NULL,
         n->size_bytes);
    s->time_us += 1 + 2e-3 * (double)n->size_bytes / vgpu_device.gpu->memory_gbs;
    return 0;
}

static int execute(stream *s, const node *n)
{
    if (n->what <= FILL && !is_there(n))
        return fault(VGPU_BAD_ADDRESS, "a copy of memory that is no longer there");
    switch (n->what) {
    case LAUNCH:
        return execute_launch(s, n);
    case FILL:
        memset(vgpu_host(n->to), n->value, n->size_bytes);
        mark(n->to, NULL, n->size_bytes);
        return 0;
    case COPY:
        return execute_copy(s, n);
    case RECORD:
        n->event->time_us = s->time_us;
        return 0;
    default: /* AWAIT */
        if (!n->event->in)
            return 0;
        int result = vgpu_finish_until(n->event->in, n->sequence);
        s->time_us = n->event->time_us > s->time_us ? n->event->time_us : s->time_us;
        return result;
    }
}

int vgpu_finish_until(stream *s, uint64_t sequence)
{
    int result = vgpu_device.sticky;
    while (s->nqueued && s->ndone < sequence) {
        node n = s->queue[0];
        memmove(s->queue, s->queue + 1, --s->nqueued * sizeof *s->queue);
        s->ndone++;
        result = result ? result : execute(s, &n);
        vgpu_free_node(&n);
    }
    return result;
}

int vgpu_finish(stream *s)
{
    return vgpu_finish_until(s, UINT64_MAX);
}

/* The stream that is always there waits for those that are not apart from it, and they for it. */
static void order_with_legacy(stream *s)
{
    if (s != &vgpu_device.legacy) {
        if (!s->flags)
            vgpu_finish(&vgpu_device.legacy);
        return;
    }
    for (unsigned i = 0; i < vgpu_device.nobjects; i++)
        if (vgpu_device.objects[i]->what == STREAM && !((stream *)vgpu_device.objects[i])->flags)
            vgpu_finish((stream *)vgpu_device.objects[i]);
}

static void append(node **nodes, size_t *n, size_t *capacity, node added)
{
    if (*n == *capacity) {
        *capacity = 2 * *capacity + 16;
        *nodes = realloc(*nodes, *capacity * sizeof **nodes);
    }
    if (!*nodes)
        vgpu_die("out of memory");
    (*nodes)[(*n)++] = added;
}

uint64_t vgpu_add_node(graph *g, node n, const uint64_t *after, size_t nafter)
{
    n.id = ++vgpu_device.nnodes;
    n.after = calloc(nafter + 1, sizeof *n.after);
    if (!n.after)
        vgpu_die("out of memory");
    for (size_t i = 0; i < nafter; i++)
        n.after[i] = after[i];
    n.nafter = nafter;
    append(&g->nodes, &g->nnodes, &g->capacity, n);
    return n.id;
}

void vgpu_put(stream *s, node n)
{
    graph *g = s->recording;
    if (!g)
        order_with_legacy(s);
    if (g)
        (void)vgpu_add_node(g, n, g->nnodes ? &g->nodes[g->nnodes - 1].id : NULL, g->nnodes ? 1 : 0);
    else
        append(&s->queue, &s->nqueued, &s->capacity, n);
}

void vgpu_abandon(stream *s)
{
    stream *to = &vgpu_device.orphans;
    for (size_t i = 0; i < s->nqueued; i++)
        append(&to->queue, &to->nqueued, &to->capacity, s->queue[i]);
    s->nqueued = 0;
}

static void *copy_of(const void *bytes, size_t size_bytes)
{
    void *copy = bytes ? malloc(size_bytes + 1) : NULL;
    if (bytes && !copy)
        vgpu_die("out of memory");
    return copy ? memcpy(copy, bytes, size_bytes) : NULL;
}

node vgpu_copy_node(const node *n)
{
    node copy = *n;
    copy.parameters = copy_of(n->parameters, n->parameter_bytes);
    copy.after = copy_of(n->after, n->nafter * sizeof *n->after);
    return copy;
}
