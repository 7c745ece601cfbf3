/*
 * Requests that run together. Each input has one buffer, in which the rows of all requests stand one behind the other as they came,
 * so requests of equal shapes are one tensor already and nothing is copied twice; what padding fills up is copied once more.
 * All that follows needs only what any caller has: the descriptions of inputs and outputs, and dlcrt_context_run.
 */
#include "dlc/batch.h"
#include "runtime/device.h"

#include <stdlib.h>
#include <string.h>

/* What a request gave for an input. */
typedef struct {
    uint32_t is_given, rank;
    size_t at, size_bytes; /* in the input's buffer */
    int64_t dims[DLCRT_MAX_RANK];
} given;
typedef struct {
    dlc_status status;
    char *text; /* why it was refused; NULL: memory for that ran out, too */
    int64_t first, rows;
    uint32_t run;
    given *given; /* by input */
} request;
typedef struct {
    int64_t rows;
    void *kept;            /* copies of outputs, where another run followed */
    dlcrt_tensor *outputs; /* by output */
} run;

struct dlcrt_batch {
    dlcrt_context *context;
    uint32_t ninputs, noutputs;
    dlcrt_tensor_info *inputs, *outputs;
    const char *symbol; /* NULL: requests run one by one */
    int pads;
    dlcrt_memory *buffers; /* by input */
    size_t *filled;
    dlcrt_memory *padded; /* by input */
    dlcrt_memory cut;
    dlcrt_tensor *tensors; /* of the run under way, by input */
    request *requests;
    run *runs;
    uint32_t nrequests, nruns, capacity; /* of both lists */
    int has_run;
};

/* --- shapes --- */
static int is_of_name(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* How often the symbol stands in the brackets of a type; a symbol may be called f32. */
static int mentions(const char *type, const char *symbol)
{
    size_t length = strlen(symbol);
    int count = 0;
    for (const char *at = strchr(type, '['); at && length && (at = strstr(at, symbol)); at += length)
        count += !is_of_name(at[-1]) && !is_of_name(at[length]);
    return count;
}

/* Rows of requests are apart from each other only where nothing but the first dimension depends on how many there are. */
const char *dlcrt_executable_batch(const dlcrt_executable *executable)
{
    dlcrt_tensor_info info;
    const char *symbol = NULL;
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; (k ? dlcrt_executable_output : dlcrt_executable_input)(executable, i, &info); i++) {
            const char *name = info.rank ? info.dim_names[0] : NULL;
            if (!name || (symbol && strcmp(symbol, name) != 0) || mentions(info.type, name) != 1)
                return NULL;
            symbol = name;
        }
    return symbol;
}

static int64_t count_of(uint32_t rank, const int64_t *dims)
{
    int64_t count = 1;
    for (uint32_t d = 0; d < rank; d++)
        if (dims[d] < 0 || __builtin_mul_overflow(count, dims[d], &count))
            return -1;
    return count;
}

static int is_length(const dlcrt_batch *batch, const dlcrt_tensor_info *info, uint32_t d)
{
    return batch->pads && d && info->dim_names[d];
}

/* What the request has for a symbol; -1: no input has it. */
static int64_t value_of(const dlcrt_batch *batch, const request *of, const char *symbol)
{
    for (uint32_t i = 0; i < batch->ninputs; i++)
        for (uint32_t d = 0; d < of->given[i].rank; d++)
            if (batch->inputs[i].dim_names[d] && !strcmp(batch->inputs[i].dim_names[d], symbol))
                return of->given[i].dims[d];
    return -1;
}

/* Copies a box from one array into another; both start with it. */
static void copy_box(unsigned char *to, const int64_t *to_dims, const unsigned char *from, const int64_t *from_dims,
                     const int64_t *box, uint32_t rank, size_t size_bytes)
{
    if (rank <= 1) {
        memcpy(to, from, (rank ? (size_t)box[0] : 1) * size_bytes);
        return;
    }
    size_t to_step = size_bytes * (size_t)count_of(rank - 1, to_dims + 1);
    size_t from_step = size_bytes * (size_t)count_of(rank - 1, from_dims + 1);
    for (int64_t i = 0; i < box[0]; i++)
        copy_box(to + (size_t)i * to_step, to_dims + 1, from + (size_t)i * from_step, from_dims + 1, box + 1, rank - 1,
                 size_bytes);
}

/* --- requests come --- */
static dlc_status refuse(request *of, dlc_status status)
{
    of->status = status;
    free(of->text);
    of->text = strdup(dlcrt_last_error());
    return status;
}

static dlc_status check_sizes(const dlcrt_batch *batch, const request *of)
{
    for (uint32_t i = 0; i < batch->ninputs; i++) {
        const given *input = &of->given[i];
        const dlcrt_tensor_info *info = &batch->inputs[i];
        if (!input->is_given)
            return dlcrt_fail(DLC_INVALID, "input '%s' is missing", info->name);
        int64_t need = count_of(input->rank, input->dims);
        if (need < 0 || __builtin_mul_overflow(need, (int64_t)dlc_dtype_bytes(info->dtype), &need))
            return dlcrt_fail(DLC_INVALID, "input '%s' has no possible shape", info->name);
        if (input->size_bytes != (size_t)need)
            return dlcrt_fail(DLC_INVALID, "input '%s': %zu bytes, wanted %lld for its shape", info->name, input->size_bytes,
                              (long long)need);
        for (uint32_t d = 0; d < input->rank && batch->symbol; d++)
            if (info->dim_names[d] && value_of(batch, of, info->dim_names[d]) != input->dims[d])
                return dlcrt_fail(DLC_INVALID, "input '%s': dimension %u is %lld, another input has %lld for %s", info->name, d,
                                  (long long)input->dims[d], (long long)value_of(batch, of, info->dim_names[d]),
                                  info->dim_names[d]);
    }
    return DLC_OK;
}

/* The last request is all there, or its rows are taken back. */
static void settle(dlcrt_batch *batch)
{
    request *last = batch->nrequests ? &batch->requests[batch->nrequests - 1] : NULL;
    if (!last)
        return;
    if (last->status == DLC_OK && check_sizes(batch, last) != DLC_OK)
        (void)refuse(last, DLC_INVALID);
    for (uint32_t i = 0; i < batch->ninputs && last->status != DLC_OK; i++)
        if (last->given[i].is_given)
            batch->filled[i] = last->given[i].at;
    last->rows = last->status ? 0 : batch->symbol ? last->given[0].dims[0] : 1;
}

static dlc_status grow(dlcrt_batch *batch)
{
    uint32_t capacity = batch->capacity ? 2 * batch->capacity : 16;
    request *requests = realloc(batch->requests, capacity * sizeof *requests);
    if (!requests)
        return dlcrt_no_memory(capacity * sizeof *requests);
    memset(requests + batch->capacity, 0, (capacity - batch->capacity) * sizeof *requests);
    batch->requests = requests;
    run *runs = realloc(batch->runs, capacity * sizeof *runs);
    if (!runs)
        return dlcrt_no_memory(capacity * sizeof *runs);
    memset(runs + batch->capacity, 0, (capacity - batch->capacity) * sizeof *runs);
    batch->runs = runs;
    batch->capacity = capacity;
    return DLC_OK;
}

/* Forgets the requests. */
static void clear(dlcrt_batch *batch)
{
    for (uint32_t r = 0; r < batch->nrequests; r++) {
        free(batch->requests[r].text);
        batch->requests[r].text = NULL;
    }
    for (uint32_t i = 0; i < batch->nruns; i++) {
        free(batch->runs[i].kept);
        batch->runs[i].kept = NULL;
    }
    batch->nrequests = batch->nruns = 0;
    batch->has_run = 0;
    if (batch->ninputs)
        memset(batch->filled, 0, batch->ninputs * sizeof *batch->filled);
}

dlc_status dlcrt_batch_begin(dlcrt_batch *batch)
{
    if (!batch)
        return dlcrt_fail(DLC_USAGE, "dlcrt_batch_begin: batch is NULL");
    if (batch->has_run)
        clear(batch);
    settle(batch);
    if (batch->nrequests == batch->capacity)
        DLC_TRY(grow(batch));
    request *next = &batch->requests[batch->nrequests];
    given *inputs = next->given ? next->given : dlcrt_alloc(batch->ninputs, sizeof *inputs);
    if (!inputs)
        return DLC_LIMIT;
    memset(inputs, 0, batch->ninputs * sizeof *inputs);
    *next = (request){.given = inputs};
    batch->nrequests++;
    return DLC_OK;
}

static dlc_status find(const dlcrt_tensor_info *infos, uint32_t count, const char *what, const char *name, uint32_t *position)
{
    for (uint32_t i = 0; name && i < count; i++)
        if (!strcmp(infos[i].name, name))
            return *position = i, DLC_OK;
    if (name)
        return dlcrt_fail(DLC_INVALID, "no %s is called '%s'", what, name);
    return *position < count ? DLC_OK : dlcrt_fail(DLC_INVALID, "there is no %s %u; the model has %u", what, *position, count);
}

static dlc_status check_tensor(const dlcrt_tensor_info *info, const dlcrt_tensor *tensor, uint32_t rank)
{
    if (tensor->dtype != info->dtype)
        return dlcrt_fail(DLC_INVALID, "input '%s': dtype %s, wanted %s", info->name,
                          tensor->dtype < DLC_DTYPE_COUNT ? dlc_dtypes[tensor->dtype].text : "unknown", info->type);
    if (rank != info->rank)
        return dlcrt_fail(DLC_INVALID, "input '%s': rank %u, wanted %s", info->name, tensor->rank, info->type);
    if (tensor->on_device)
        return dlcrt_fail(DLC_INVALID, "input '%s' is memory of a device", info->name);
    if (!tensor->data && tensor->size_bytes)
        return dlcrt_fail(DLC_INVALID, "input '%s': data is NULL, wanted %zu bytes", info->name, tensor->size_bytes);
    return DLC_OK;
}

static dlc_status add_piece(dlcrt_batch *batch, request *of, uint32_t position, const dlcrt_tensor *tensor)
{
    DLC_TRY(find(batch->inputs, batch->ninputs, "input", tensor->name, &position));
    const dlcrt_tensor_info *info = &batch->inputs[position];
    given *to = &of->given[position];
    dlcrt_memory *buffer = &batch->buffers[position];
    size_t *filled = &batch->filled[position], size_bytes = tensor->size_bytes;
    uint32_t rank = !info->rank && tensor->rank == 1 && tensor->dims[0] == 1 ? 0 : tensor->rank;
    DLC_TRY(check_tensor(info, tensor, rank));
    if (!to->is_given) {
        *to = (given){.is_given = 1, .rank = rank, .at = *filled};
        memcpy(to->dims, tensor->dims, sizeof to->dims);
    }
    size_t need = *filled + size_bytes;
    if (need >= buffer->size_bytes)
        DLC_TRY(dlcrt_memory_grow(buffer, 2 * need + 1, *filled));
    if (size_bytes)
        memcpy(buffer->bytes + *filled, tensor->data, size_bytes);
    *filled = need;
    to->size_bytes += size_bytes;
    return DLC_OK;
}

dlc_status dlcrt_batch_input(dlcrt_batch *batch, uint32_t position, const dlcrt_tensor *tensor)
{
    if (!batch)
        return dlcrt_fail(DLC_USAGE, "dlcrt_batch_input: batch is NULL");
    if (!batch->nrequests || batch->has_run)
        return dlcrt_fail(DLC_USAGE, "no request was begun");
    request *last = &batch->requests[batch->nrequests - 1];
    dlc_status status = tensor ? add_piece(batch, last, position, tensor)
                               : dlcrt_fail(DLC_USAGE, "dlcrt_batch_input: tensor is NULL");
    return status ? refuse(last, status) : DLC_OK;
}

/* --- they run --- */
/* Whether requests a and b can be rows of one run. */
static int is_alike(const dlcrt_batch *batch, const request *a, const request *b)
{
    for (uint32_t i = 0; i < batch->ninputs; i++)
        for (uint32_t d = 1; d < batch->inputs[i].rank; d++)
            if (a->given[i].dims[d] != b->given[i].dims[d] && !is_length(batch, &batch->inputs[i], d))
                return 0;
    return 1;
}

/* The input's rows of requests [first, end), all of the longest one's lengths. */
static dlc_status pad_input(dlcrt_batch *batch, uint32_t i, uint32_t first, uint32_t end, dlcrt_tensor *tensor)
{
    size_t size_bytes = dlc_dtype_bytes(tensor->dtype);
    int64_t need = count_of(tensor->rank, tensor->dims), done = 0, row = count_of(tensor->rank - 1, tensor->dims + 1);
    if (need < 0 || __builtin_mul_overflow(need, (int64_t)size_bytes, &need))
        return dlcrt_fail(DLC_LIMIT, "input '%s' of all requests is too large", batch->inputs[i].name);
    DLC_TRY(dlcrt_memory_grow(&batch->padded[i], (size_t)need + 1, 0));
    memset(batch->padded[i].bytes, 0, (size_t)need);
    for (uint32_t r = first; r < end; r++) {
        const request *from = &batch->requests[r];
        if (from->status)
            continue;
        const given *of = &from->given[i];
        if (of->size_bytes) /* rows of nothing may be very many */
            copy_box(batch->padded[i].bytes + (size_t)(done * row) * size_bytes, tensor->dims, batch->buffers[i].bytes + of->at,
                     of->dims, of->dims, tensor->rank, size_bytes);
        done += from->rows;
    }
    tensor->data = batch->padded[i].bytes;
    return DLC_OK;
}

static dlc_status gather(dlcrt_batch *batch, uint32_t first, uint32_t end, int64_t rows)
{
    for (uint32_t i = 0; i < batch->ninputs; i++) {
        const given *of = &batch->requests[first].given[i];
        dlcrt_tensor *tensor = &batch->tensors[i];
        int is_even = 1;
        *tensor = (dlcrt_tensor){.data = batch->buffers[i].bytes + of->at, .dtype = batch->inputs[i].dtype, .rank = of->rank};
        memcpy(tensor->dims, of->dims, sizeof of->dims);
        for (uint32_t r = first; r < end; r++)
            for (uint32_t d = 1; d < of->rank && !batch->requests[r].status; d++) {
                int64_t dim = batch->requests[r].given[i].dims[d];
                is_even &= dim == of->dims[d];
                tensor->dims[d] = dim > tensor->dims[d] ? dim : tensor->dims[d];
            }
        if (batch->symbol)
            tensor->dims[0] = rows;
        if (!is_even)
            DLC_TRY(pad_input(batch, i, first, end, tensor));
    }
    return DLC_OK;
}

/* The context's memory is the next run's: its outputs are copied. */
static dlc_status keep_outputs(const dlcrt_batch *batch, run *of)
{
    size_t size_bytes = 0;
    for (uint32_t i = 0; i < batch->noutputs; i++)
        size_bytes += of->outputs[i].size_bytes;
    unsigned char *to = of->kept = dlcrt_alloc(size_bytes, 1);
    if (!to)
        return DLC_LIMIT;
    for (uint32_t i = 0; i < batch->noutputs; to += of->outputs[i++].size_bytes) {
        if (of->outputs[i].size_bytes)
            memcpy(to, of->outputs[i].data, of->outputs[i].size_bytes);
        of->outputs[i].data = to;
    }
    return DLC_OK;
}

static dlc_status run_once(dlcrt_batch *batch, uint32_t first, uint32_t end, int64_t rows, int is_last)
{
    run *next = &batch->runs[batch->nruns];
    free(next->kept);
    *next = (run){.rows = rows, .outputs = next->outputs ? next->outputs : dlcrt_alloc(batch->noutputs, sizeof *next->outputs)};
    if (!next->outputs)
        return DLC_LIMIT;
    memset(next->outputs, 0, batch->noutputs * sizeof *next->outputs);
    DLC_TRY(gather(batch, first, end, rows));
    DLC_TRY(dlcrt_context_run(batch->context, batch->tensors, batch->ninputs, next->outputs, batch->noutputs));
    return is_last ? DLC_OK : keep_outputs(batch, next);
}

/* Requests [first, end), of which the first is whole, in one run, or where that is refused one by one. */
static void run_span(dlcrt_batch *batch, uint32_t first, uint32_t end, int is_last)
{
    int64_t rows = 0;
    int is_over = 0;
    uint32_t last = first;
    for (uint32_t r = first; r < end; r++) {
        batch->requests[r].first = rows;
        batch->requests[r].run = batch->nruns;
        is_over |= __builtin_add_overflow(rows, batch->requests[r].rows, &rows);
        last = batch->requests[r].status ? last : r;
    }
    dlc_status status = is_over ? DLC_LIMIT : run_once(batch, first, last + 1, rows, is_last);
    if (!status)
        batch->nruns++;
    else if (last == first)
        (void)refuse(&batch->requests[first], status);
    else
        for (uint32_t r = first; r <= last; r++)
            if (!batch->requests[r].status)
                run_span(batch, r, r + 1, is_last && r == last);
}

void dlcrt_batch_run(dlcrt_batch *batch)
{
    if (!batch || batch->has_run)
        return;
    settle(batch);
    batch->has_run = 1;
    for (uint32_t first = 0, end; first < batch->nrequests; first = end) {
        const request *one = &batch->requests[first];
        for (end = first + 1; end < batch->nrequests; end++) {
            const request *other = &batch->requests[end];
            if (!other->status && (one->status || !batch->symbol || !is_alike(batch, one, other)))
                break;
        }
        if (!one->status)
            run_span(batch, first, end, end == batch->nrequests);
    }
}

/* --- and are answered --- */
int64_t dlcrt_batch_rows(const dlcrt_batch *batch, uint32_t i)
{
    return batch && i < batch->nruns ? batch->runs[i].rows : -1;
}

/* An output's rows of the request, without what padding added. */
static dlc_status cut(dlcrt_batch *batch, const request *of, const dlcrt_tensor_info *info, dlcrt_tensor *tensor)
{
    int64_t dims[DLCRT_MAX_RANK];
    int is_longer = 0;
    memcpy(dims, tensor->dims, sizeof dims);
    for (uint32_t d = 1; d < tensor->rank; d++) {
        int64_t own = is_length(batch, info, d) ? value_of(batch, of, info->dim_names[d]) : -1;
        if (own < 0 || own >= dims[d])
            continue;
        tensor->dims[d] = own;
        is_longer = 1;
    }
    if (!is_longer || !tensor->size_bytes)
        return DLC_OK;
    size_t size_bytes = dlc_dtype_bytes(tensor->dtype), all = size_bytes * (size_t)count_of(tensor->rank, tensor->dims);
    DLC_TRY(dlcrt_memory_grow(&batch->cut, all + 1, 0));
    copy_box(batch->cut.bytes, tensor->dims, tensor->data, dims, tensor->dims, tensor->rank, size_bytes);
    tensor->data = batch->cut.bytes;
    tensor->size_bytes = all;
    return DLC_OK;
}

dlc_status dlcrt_batch_output(dlcrt_batch *batch, uint32_t number, uint32_t position, dlcrt_tensor *tensor)
{
    if (!batch || !tensor)
        return dlcrt_fail(DLC_USAGE, "dlcrt_batch_output: %s is NULL", batch ? "tensor" : "batch");
    if (number >= batch->nrequests)
        return dlcrt_fail(DLC_USAGE, "there is no request %u; the batch has %u", number, batch->nrequests);
    const request *of = &batch->requests[number];
    if (of->status)
        return dlcrt_fail(of->status, "%s", of->text ? of->text : "memory ran out");
    if (of->run >= batch->nruns)
        return dlcrt_fail(DLC_USAGE, "request %u has not run", number);
    DLC_TRY(find(batch->outputs, batch->noutputs, "output", tensor->name, &position));
    const run *from = &batch->runs[of->run];
    const char *name = tensor->name; /* the caller's stays: it asks with the tensor again */
    *tensor = from->outputs[position];
    tensor->name = name;
    if (!tensor->rank)
        tensor->dims[0] = 1;
    if (!batch->symbol)
        return DLC_OK;
    size_t row = from->rows ? tensor->size_bytes / (size_t)from->rows : 0;
    tensor->data = (unsigned char *)tensor->data + row * (size_t)of->first;
    tensor->size_bytes = row * (size_t)of->rows;
    tensor->dims[0] = of->rows;
    return cut(batch, of, &batch->outputs[position], tensor);
}

/* --- what servers ask besides --- */
dlc_dtype dlcrt_dtype_served(const char *name)
{
    uint32_t dtype = name && *name ? DLC_DTYPE_COUNT - 1 : DLC_NONE;
    while (dtype && strcmp(dlc_dtypes[dtype].served, name) != 0)
        dtype--;
    return (dlc_dtype)dtype;
}

uint64_t dlcrt_now_ns(void)
{
    return (uint64_t)dlcrt_clock_ns();
}

/* --- batches --- */
static dlc_status check_model(const dlcrt_batch *batch)
{
    for (uint32_t i = 0; i < batch->ninputs + batch->noutputs; i++) {
        const dlcrt_tensor_info *info = &batch->inputs[i];
        if (dlc_is_text(info->dtype))
            return dlcrt_fail(DLC_UNSUPPORTED, "'%s' is of strings, which do not run in batches", info->name);
        for (uint32_t d = 1; d < info->rank && batch->pads && i >= batch->ninputs; d++)
            if (info->dims[d] < 0 && !info->dim_names[d])
                return dlcrt_fail(DLC_UNSUPPORTED, "output '%s' is %s: what padding adds to it cannot be cut off", info->name,
                                  info->type);
    }
    return DLC_OK;
}

static dlc_status fill(dlcrt_batch *batch, dlcrt_executable *executable, const dlcrt_batch_options *options)
{
    uint32_t n = batch->ninputs = dlcrt_executable_ninputs(executable);
    batch->noutputs = dlcrt_executable_noutputs(executable);
    if (!(batch->inputs = dlcrt_alloc(n + batch->noutputs, sizeof *batch->inputs)) ||
        !(batch->buffers = dlcrt_alloc(n, sizeof *batch->buffers)) || !(batch->filled = dlcrt_alloc(n, sizeof *batch->filled)) ||
        !(batch->padded = dlcrt_alloc(n, sizeof *batch->padded)) || !(batch->tensors = dlcrt_alloc(n, sizeof *batch->tensors)))
        return DLC_LIMIT;
    batch->outputs = batch->inputs + n;
    for (uint32_t i = 0; i < n; i++)
        dlcrt_executable_input(executable, i, &batch->inputs[i]);
    for (uint32_t i = 0; i < batch->noutputs; i++)
        dlcrt_executable_output(executable, i, &batch->outputs[i]);
    batch->symbol = n && !(options && options->is_apart) ? dlcrt_executable_batch(executable) : NULL;
    batch->pads = batch->symbol && options && options->pads;
    DLC_TRY(check_model(batch));
    return dlcrt_context_create(executable, &(dlcrt_context_options){.threads = options ? options->threads : 0}, &batch->context);
}

dlc_status dlcrt_batch_create(dlcrt_executable *executable, const dlcrt_batch_options *options, dlcrt_batch **result)
{
    if (!executable || !result)
        return dlcrt_fail(DLC_USAGE, "dlcrt_batch_create: %s is NULL", executable ? "result" : "executable");
    dlcrt_batch *batch = *result = dlcrt_alloc(1, sizeof *batch);
    if (!batch)
        return DLC_LIMIT;
    dlc_status status = fill(batch, executable, options);
    if (status) {
        dlcrt_batch_destroy(batch);
        *result = NULL;
    }
    return status;
}

dlcrt_context *dlcrt_batch_context(dlcrt_batch *batch)
{
    return batch ? batch->context : NULL;
}

void dlcrt_batch_destroy(dlcrt_batch *batch)
{
    if (!batch)
        return;
    for (uint32_t i = 0; i < batch->capacity; i++) {
        free(batch->requests[i].text);
        free(batch->requests[i].given);
        free(batch->runs[i].kept);
        free(batch->runs[i].outputs);
    }
    for (uint32_t i = 0; i < batch->ninputs; i++) {
        if (batch->buffers)
            dlcrt_memory_free(&batch->buffers[i]);
        if (batch->padded)
            dlcrt_memory_free(&batch->padded[i]);
    }
    dlcrt_memory_free(&batch->cut);
    dlcrt_context_destroy(batch->context);
    free(batch->requests);
    free(batch->runs);
    free(batch->inputs);
    free(batch->buffers);
    free(batch->filled);
    free(batch->padded);
    free(batch->tensors);
    free(batch);
}
