/*
 * The driver's streams, captures, graphs and events. While a stream records, calls that might wait
 * for it are refused and end the recording: a global recording minds every thread, a thread's own
 * that thread alone, a relaxed one nobody.
 */
#include <stdlib.h>
#include <string.h>

#include "vgpu/device.h"

/* --- captures --- */
/* A call of this thread would disturb what the stream records. */
static int disturbs(const stream *s)
{
    int is_own = pthread_equal(s->owner, pthread_self());
    if (!s->recording || s->mode == CAPTURE_RELAXED || vgpu_capture_mode == CAPTURE_RELAXED)
        return 0;
    return is_own || (s->mode == CAPTURE_GLOBAL && vgpu_capture_mode == CAPTURE_GLOBAL);
}

int vgpu_unsafe(void)
{
    int is_disturbing = 0;
    for (unsigned i = 0; i < vgpu_device.nobjects; i++) {
        stream *s = (stream *)vgpu_device.objects[i];
        if (s->head.what != STREAM || !disturbs(s))
            continue;
        is_disturbing = 1;
        s->is_invalid = 1;
    }
    return is_disturbing ? CAPTURE_UNSUPPORTED : 0;
}

DRIVER(cuThreadExchangeStreamCaptureMode, int *mode)
{
    GUARD();
    ENTER();
    int before = vgpu_capture_mode;
    vgpu_capture_mode = *mode;
    *mode = before;
    return 0;
}

DRIVER(cuStreamIsCapturing, void *handle, int *status)
{
    GUARD();
    vgpu_needs_context();
    const stream *s = vgpu_stream(handle);
    ENTER();
    *status = s->recording ? (s->is_invalid ? 2 : 1) : 0;
    return 0;
}

DRIVER(cuStreamBeginCapture_v2, void *handle, int mode)
{
    GUARD();
    vgpu_needs_context();
    stream *s = vgpu_stream(handle);
    ENTER();
    if (mode < CAPTURE_GLOBAL || mode > CAPTURE_RELAXED || s == &vgpu_device.legacy || s->recording)
        return INVALID_VALUE;
    s->recording = vgpu_add(GRAPH, 0);
    s->mode = mode;
    s->is_invalid = 0;
    s->owner = pthread_self();
    return 0;
}

DRIVER(cuStreamEndCapture, void *handle, void **result)
{
    GUARD();
    vgpu_needs_context();
    stream *s = vgpu_stream(handle);
    graph *recorded = s->recording;
    *result = NULL;
    if (!recorded)
        return INVALID_VALUE;
    if (s->mode != CAPTURE_RELAXED && !pthread_equal(s->owner, pthread_self()))
        vgpu_die("a capture that another thread began");
    s->recording = NULL;
    int refused = vgpu_entry(__func__);
    refused = refused ? refused : s->is_invalid ? CAPTURE_INVALIDATED : 0;
    if (refused) {
        vgpu_drop(&recorded->head);
        return refused;
    }
    *result = recorded;
    return 0;
}

/* --- streams --- */
DRIVER(cuStreamCreate, void **handle, unsigned flags)
{
    GUARD();
    vgpu_needs_context();
    ENTER();
    stream *s = *handle = vgpu_add(STREAM, 0);
    s->flags = flags;
    return 0;
}

static void forget_events(const stream *s)
{
    for (unsigned i = 0; i < vgpu_device.nobjects; i++) {
        event *e = (event *)vgpu_device.objects[i];
        if (e->head.what == EVENT && e->in == s)
            e->in = NULL;
    }
}

DRIVER(cuStreamDestroy_v2, void *handle)
{
    GUARD();
    vgpu_needs_context();
    stream *s = (stream *)vgpu_find(handle, STREAM);
    vgpu_abandon(s);
    forget_events(s);
    vgpu_drop(&s->head);
    ENTER();
    return 0;
}

DRIVER(cuStreamSynchronize, void *handle)
{
    GUARD();
    vgpu_needs_context();
    stream *s = vgpu_stream(handle);
    s->is_invalid |= s->recording != NULL;
    if (s->recording)
        return CAPTURE_UNSUPPORTED;
    int result = vgpu_finish(s);
    ENTER();
    return result;
}

DRIVER(cuStreamQuery, void *handle)
{
    GUARD();
    vgpu_needs_context();
    const stream *s = vgpu_stream(handle);
    ENTER();
    return s->nqueued ? NOT_READY : 0;
}

DRIVER(cuCtxSynchronize, void)
{
    int result = 0;
    GUARD();
    vgpu_needs_context();
    SAFE();
    for (unsigned i = 0; i < vgpu_device.nobjects; i++)
        if (vgpu_device.objects[i]->what == STREAM && !result)
            result = vgpu_finish((stream *)vgpu_device.objects[i]);
    ENTER();
    result = result ? result : vgpu_finish(&vgpu_device.orphans);
    return result ? result : vgpu_finish(&vgpu_device.legacy);
}

/* --- events --- */
DRIVER(cuEventCreate, void **handle, unsigned flags)
{
    (void)flags;
    GUARD();
    vgpu_needs_context();
    ENTER();
    *handle = vgpu_add(EVENT, 0);
    return 0;
}

DRIVER(cuEventDestroy_v2, void *handle)
{
    GUARD();
    vgpu_needs_context();
    event *e = (event *)vgpu_find(handle, EVENT);
    if (e->in)
        vgpu_finish(e->in);
    vgpu_drop(&e->head);
    ENTER();
    return 0;
}

DRIVER(cuEventRecord, void *handle, void *of_stream)
{
    GUARD();
    vgpu_needs_context();
    stream *s = vgpu_stream(of_stream);
    event *e = (event *)vgpu_find(handle, EVENT);
    ENTER();
    vgpu_put(s, (node){.what = RECORD, .event = e});
    if (!s->recording) {
        e->in = s;
        e->sequence = s->ndone + s->nqueued;
    }
    return 0;
}

DRIVER(cuStreamWaitEvent, void *of_stream, void *handle, unsigned flags)
{
    (void)flags;
    GUARD();
    vgpu_needs_context();
    stream *s = vgpu_stream(of_stream);
    event *e = (event *)vgpu_find(handle, EVENT);
    ENTER();
    if (e->in && e->in != s)
        vgpu_put(s, (node){.what = AWAIT, .event = e, .sequence = e->sequence});
    return 0;
}

DRIVER(cuEventSynchronize, void *handle)
{
    GUARD();
    vgpu_needs_context();
    const event *e = (const event *)vgpu_find(handle, EVENT);
    ENTER();
    return e->in ? vgpu_finish_until(e->in, e->sequence) : 0;
}

DRIVER(cuEventQuery, void *handle)
{
    GUARD();
    vgpu_needs_context();
    SAFE();
    const event *e = (const event *)vgpu_find(handle, EVENT);
    ENTER();
    return e->in && e->in->ndone < e->sequence ? NOT_READY : 0;
}

/* As predicted for the device that this one stands for. */
DRIVER(cuEventElapsedTime, float *ms, void *from, void *to)
{
    GUARD();
    vgpu_needs_context();
    const event *a = (const event *)vgpu_find(from, EVENT),
                *b = (const event *)vgpu_find(to, EVENT);
    ENTER();
    if (!a->in || !b->in)
        return INVALID_HANDLE;
    if (a->in->ndone < a->sequence || b->in->ndone < b->sequence)
        return NOT_READY;
    *ms = (float)((b->time_us - a->time_us) / 1e3);
    return 0;
}
