/*
 * A backend of Triton Inference Server for executables of dlc: REPOSITORY/NAME/1/model.dlc is one, and tells its own configuration.
 * Where the first dimension of all inputs and outputs is the same symbol, requests are merged: put one behind the other, run once,
 * and the outputs cut. A merged run that is refused is done again one by one, so that only who is wrong is told.
 */
#include "triton.h"
#include <cjson/cJSON.h>
#include <dlc/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRY(call)                                                                                  \
    for (TRITONSERVER_Error *try_error = (call); try_error;)                                       \
    return try_error

#define TYPE(dlc, triton) [DLC_##dlc] = TRITONSERVER_TYPE_##triton
static const TRITONSERVER_DataType types[DLC_DTYPE_COUNT] = {
    TYPE(BOOL, BOOL), TYPE(U8, UINT8), TYPE(U16, UINT16), TYPE(U32, UINT32), TYPE(U64, UINT64), TYPE(I8, INT8), TYPE(I16, INT16),
    TYPE(I32, INT32), TYPE(I64, INT64), TYPE(F16, FP16), TYPE(F32, FP32), TYPE(F64, FP64), TYPE(BF16, BF16)};

typedef struct { char path[4096]; uint32_t threads; bool is_batched; } served;
typedef struct { char *data; size_t size_bytes; bool is_scalar; } merged;
typedef struct {
    dlcrt_executable *executable;
    dlcrt_context *context;
    uint32_t ninputs, noutputs;
    dlcrt_tensor *inputs, *outputs;
    merged *merged; /* of each input */
    bool is_batched;
    uint64_t times_ns[3]; /* of the run: begun, inputs are together, computed */
} runner;
typedef int describe(const dlcrt_executable *, uint32_t, dlcrt_tensor_info *);

static TRITONSERVER_Error *error_of(dlc_status status)
{
    return !status ? NULL : TRITONSERVER_ErrorNew(status == DLC_INVALID ? TRITONSERVER_ERROR_INVALID_ARG : TRITONSERVER_ERROR_UNAVAILABLE, dlcrt_last_error());
}
static TRITONSERVER_Error *refused(const char *text, const char *name)
{
    char line[512];
    snprintf(line, sizeof line, text, name);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, line);
}

/* Of the first dimension, where it is the same of all inputs and outputs; else NULL. */
static const char *batch_symbol(const dlcrt_executable *executable)
{
    dlcrt_tensor_info info;
    const char *symbol = NULL;
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; (k ? dlcrt_executable_output : dlcrt_executable_input)(executable, i, &info); symbol = info.dim_names[0], i++)
            if (!info.rank || !info.dim_names[0] || (symbol && strcmp(symbol, info.dim_names[0]) != 0))
                return NULL;
    return symbol;
}

/* Triton knows no tensors without dimensions: scalars are [1] there. */
static TRITONSERVER_Error *complete_tensors(cJSON *config, const char *key, describe *of, const dlcrt_executable *executable, bool is_batched)
{
    dlcrt_tensor_info info;
    char type[32];
    cJSON *list = cJSON_GetObjectItem(config, key);
    for (uint32_t i = 0, is_given = cJSON_GetArraySize(list) > 0; !is_given && of(executable, i, &info); i++) {
        cJSON *row = cJSON_CreateObject(), *dims = cJSON_AddArrayToObject(row, "dims");
        cJSON_AddItemToArray(list, row);
        if (!types[info.dtype])
            return refused("the server has no type for %s", info.type);
        snprintf(type, sizeof type, "TYPE_%s", TRITONSERVER_DataTypeString(types[info.dtype]));
        cJSON_AddStringToObject(row, "name", info.name);
        cJSON_AddStringToObject(row, "data_type", type);
        for (uint32_t d = is_batched; d < info.rank; d++)
            cJSON_AddItemToArray(dims, cJSON_CreateNumber((double)info.dims[d]));
        if (info.rank == is_batched) {
            cJSON_AddItemToArray(dims, cJSON_CreateNumber(1));
            if (is_batched)
                cJSON_AddArrayToObject(cJSON_AddObjectToObject(row, "reshape"), "shape");
        }
    }
    return NULL;
}

static TRITONSERVER_Error *complete(cJSON *config, const dlcrt_executable *executable, served *self)
{
    if (!self->is_batched && batch_symbol(executable) && !cJSON_GetArraySize(cJSON_GetObjectItem(config, "input"))) {
        cJSON_SetNumberValue(cJSON_GetObjectItem(config, "max_batch_size"), 64);
        self->is_batched = true;
    }
    if (self->is_batched && !cJSON_GetObjectItem(config, "dynamic_batching") && !cJSON_GetObjectItem(config, "sequence_batching"))
        cJSON_AddObjectToObject(config, "dynamic_batching");
    TRY(complete_tensors(config, "input", dlcrt_executable_input, executable, self->is_batched));
    return complete_tensors(config, "output", dlcrt_executable_output, executable, self->is_batched);
}

static TRITONSERVER_Error *set_up(cJSON *config, const char *folder, uint64_t version, bool is_complete, served *self)
{
    const char *file = cJSON_GetStringValue(cJSON_GetObjectItem(config, "default_model_filename"));
    const cJSON *threads = cJSON_GetObjectItem(cJSON_GetObjectItem(config, "parameters"), "threads");
    dlcrt_executable *executable;
    snprintf(self->path, sizeof self->path, "%s/%llu/%s", folder, (unsigned long long)version, file && *file ? file : "model.dlc");
    if ((threads = cJSON_GetObjectItem(threads, "string_value")))
        self->threads = (uint32_t)strtoul(cJSON_GetStringValue(threads), NULL, 10);
    self->is_batched = cJSON_GetNumberValue(cJSON_GetObjectItem(config, "max_batch_size")) > 0;
    TRY(error_of(dlcrt_executable_open_with(&(dlcrt_executable_options){.path = self->path, .device = "none"}, &executable)));
    TRITONSERVER_Error *error = NULL;
    if (self->is_batched && !batch_symbol(executable))
        error = refused("max_batch_size is set; in %s the first dimensions of inputs and outputs are not one symbol", "model.dlc");
    else if (!is_complete)
        error = complete(config, executable, self);
    dlcrt_executable_close(executable);
    return error;
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Puts a request's input behind those of the requests before it. */
static TRITONSERVER_Error *add_input(TRITONBACKEND_Request *request, dlcrt_tensor *tensor, merged *to, bool is_first)
{
    TRITONBACKEND_Input *input;
    TRITONSERVER_DataType type;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    const int64_t *dims;
    uint32_t rank, nbuffers;
    uint64_t size_bytes;
    int64_t memory_id = 0;
    const void *data;
    TRY(TRITONBACKEND_RequestInput(request, tensor->name, &input));
    TRY(TRITONBACKEND_InputProperties(input, NULL, &type, &dims, &rank, &size_bytes, &nbuffers));
    if (type != types[tensor->dtype] || rank > DLCRT_MAX_RANK ||
        (!is_first && (rank != tensor->rank || memcmp(dims + 1, tensor->dims + 1, (rank - 1) * sizeof *dims) != 0)))
        return refused("input '%s' has another type, number of dimensions or, of the requests it is merged with, shape", tensor->name);
    int64_t rows = is_first || !rank ? 0 : tensor->dims[0];
    memcpy(tensor->dims, dims, rank * sizeof *dims);
    tensor->dims[0] += rows;
    tensor->rank = to->is_scalar && rank == 1 && dims[0] == 1 ? 0 : rank;
    tensor->size_bytes = is_first ? 0 : tensor->size_bytes;
    if (tensor->size_bytes + size_bytes > to->size_bytes) {
        to->data = realloc(to->data, to->size_bytes = 2 * (tensor->size_bytes + size_bytes));
        if (!to->data && (to->size_bytes = 0, true))
            return refused("memory for input '%s' of all requests ran out", tensor->name);
    }
    tensor->data = to->data;
    for (uint32_t i = 0; i < nbuffers; i++, tensor->size_bytes += size_bytes) {
        TRY(TRITONBACKEND_InputBuffer(input, i, &data, &size_bytes, &memory, &memory_id));
        if (memory == TRITONSERVER_MEMORY_GPU)
            return refused("input '%s' is in a GPU's memory", tensor->name);
        memcpy(to->data + tensor->size_bytes, data, size_bytes);
    }
    return NULL;
}

static TRITONSERVER_Error *put_output(const dlcrt_tensor *tensor, TRITONBACKEND_Response *response, int64_t first, int64_t rows, int64_t total)
{
    TRITONBACKEND_Output *output;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t dims[DLCRT_MAX_RANK], memory_id = 0;
    size_t row_bytes = total ? tensor->size_bytes / (size_t)total : 0;
    void *data;
    memcpy(dims, tensor->dims, sizeof dims);
    dims[0] = rows == total ? dims[0] : rows;
    dims[0] = tensor->rank ? dims[0] : 1;
    TRY(TRITONBACKEND_ResponseOutput(response, &output, tensor->name, types[tensor->dtype], dims, tensor->rank ? tensor->rank : 1));
    TRY(TRITONBACKEND_OutputBuffer(output, &data, row_bytes * (size_t)rows, &memory, &memory_id));
    if (memory == TRITONSERVER_MEMORY_GPU)
        return refused("output '%s' is wanted in a GPU's memory", tensor->name);
    memcpy(data, (char *)tensor->data + row_bytes * (size_t)first, row_bytes * (size_t)rows);
    return NULL;
}

/* Answers with those rows of the outputs that are the request's own, or with the error, which it takes. It is counted before it is
 * sent: who reads an answer finds it in the statistics. */
static void answer(runner *self, TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request, int64_t first, int64_t rows, int64_t total,
                   TRITONSERVER_Error *error)
{
    TRITONBACKEND_Response *response = NULL;
    uint32_t wanted = 0;
    const char *name;
    const uint64_t *times = self->times_ns;
    TRITONSERVER_Error *unsent = TRITONBACKEND_ResponseNew(&response, request);
    if (!error && !unsent)
        error = TRITONBACKEND_RequestOutputCount(request, &wanted);
    for (uint32_t i = 0; i < wanted && !error; i++) {
        error = TRITONBACKEND_RequestOutputName(request, i, &name);
        for (uint32_t j = 0; j < self->noutputs && !error; j++)
            if (!strcmp(self->outputs[j].name, name))
                error = put_output(&self->outputs[j], response, first, rows, total);
    }
    TRITONBACKEND_ModelInstanceReportStatistics(instance, request, !error && !unsent, times[0], times[1], times[2], now_ns());
    if (!unsent)
        unsent = TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error);
    TRITONSERVER_ErrorDelete(error);
    TRITONSERVER_ErrorDelete(unsent);
    TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL);
}

static void run(runner *self, TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
    TRITONSERVER_Error *error = NULL;
    int64_t total = 0, *rows = calloc(count, sizeof *rows);
    uint64_t *times = self->times_ns;
    times[0] = now_ns();
    for (uint32_t r = 0; r < count && !error; r++) {
        for (uint32_t i = 0; i < self->ninputs && !error; i++)
            error = add_input(requests[r], &self->inputs[i], &self->merged[i], r == 0);
        rows[r] = (self->is_batched && !error ? self->inputs[0].dims[0] : 1) - total;
        total += rows[r];
    }
    for (uint32_t i = 0; i < self->noutputs; i++)
        self->outputs[i].data = NULL; /* memory of the context */
    times[1] = now_ns();
    if (!error)
        error = error_of(dlcrt_context_run(self->context, self->inputs, self->ninputs, self->outputs, self->noutputs));
    times[2] = now_ns();
    if (!error)
        TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, (uint64_t)total, times[0], times[1], times[2], times[2]);
    if (error && count > 1) {
        TRITONSERVER_ErrorDelete(error);
        for (uint32_t r = 0; r < count; r++)
            run(self, instance, &requests[r], 1);
    } else {
        for (int64_t r = 0, first = 0; r < count; first += rows[r++])
            answer(self, instance, requests[r], first, rows[r], total, error); /* an error has one request */
    }
    free(rows);
}

/* --- what the server calls --- */
TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
    uint32_t major, minor;
    (void)backend;
    TRY(TRITONBACKEND_ApiVersion(&major, &minor));
    return major == TRITONBACKEND_API_VERSION_MAJOR ? NULL : refused("%s: the server's interface for backends is not of version 1", "dlc");
}

TRITONSERVER_Error *TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend, TRITONBACKEND_BackendAttribute *attribute)
{
    (void)backend;
    return TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(attribute, TRITONSERVER_INSTANCEGROUPKIND_CPU, 1, NULL, 0);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    TRITONBACKEND_ArtifactType type;
    TRITONSERVER_Message *message;
    const char *folder, *text;
    uint64_t version;
    size_t size_bytes;
    bool is_wanted;
    served *self = calloc(1, sizeof *self);
    TRY(TRITONBACKEND_ModelSetState(model, self));
    TRY(TRITONBACKEND_ModelRepository(model, &type, &folder));
    TRY(TRITONBACKEND_ModelVersion(model, &version));
    TRY(TRITONBACKEND_ModelAutoCompleteConfig(model, &is_wanted));
    TRY(TRITONBACKEND_ModelConfig(model, 1, &message));
    TRY(TRITONSERVER_MessageSerializeToJson(message, &text, &size_bytes));
    cJSON *config = cJSON_ParseWithLength(text, size_bytes);
    TRITONSERVER_MessageDelete(message);
    TRITONSERVER_Error *error = set_up(config, folder, version, !is_wanted, self);
    char *completed = cJSON_PrintUnformatted(config);
    if (!error && is_wanted && !(error = TRITONSERVER_MessageNewFromSerializedJson(&message, completed, strlen(completed)))) {
        error = TRITONBACKEND_ModelSetConfig(model, 1, message);
        TRITONSERVER_MessageDelete(message);
    }
    free(completed);
    cJSON_Delete(config);
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    void *self = NULL;
    TRY(TRITONBACKEND_ModelState(model, &self));
    free(self);
    return NULL;
}

static TRITONSERVER_Error *start(TRITONBACKEND_ModelInstance *instance, const served *model, runner *self)
{
    TRITONSERVER_InstanceGroupKind kind;
    int32_t id;
    char device[32] = "cpu";
    dlcrt_tensor_info info;
    TRY(TRITONBACKEND_ModelInstanceKind(instance, &kind));
    TRY(TRITONBACKEND_ModelInstanceDeviceId(instance, &id));
    if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
        snprintf(device, sizeof device, "cuda:%d", id);
    TRY(error_of(dlcrt_executable_open_with(&(dlcrt_executable_options){.path = model->path, .device = device}, &self->executable)));
    TRY(error_of(dlcrt_context_create(self->executable, &(dlcrt_context_options){.threads = model->threads}, &self->context)));
    self->is_batched = model->is_batched;
    self->ninputs = dlcrt_executable_ninputs(self->executable);
    self->noutputs = dlcrt_executable_noutputs(self->executable);
    self->merged = calloc(self->ninputs + 1, sizeof *self->merged);
    self->inputs = calloc(self->ninputs + self->noutputs + 1, sizeof *self->inputs);
    self->outputs = self->inputs + self->ninputs;
    for (uint32_t i = 0; dlcrt_executable_input(self->executable, i, &info); i++) {
        self->inputs[i] = (dlcrt_tensor){.name = info.name, .dtype = info.dtype};
        self->merged[i].is_scalar = !info.rank;
    }
    for (uint32_t i = 0; dlcrt_executable_output(self->executable, i, &info); i++)
        self->outputs[i].name = info.name;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    TRITONBACKEND_Model *model;
    void *of = NULL;
    runner *self = calloc(1, sizeof *self);
    TRY(TRITONBACKEND_ModelInstanceSetState(instance, self));
    TRY(TRITONBACKEND_ModelInstanceModel(instance, &model));
    TRY(TRITONBACKEND_ModelState(model, &of));
    return start(instance, of, self);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    void *state = NULL;
    TRY(TRITONBACKEND_ModelInstanceState(instance, &state));
    runner *self = state;
    for (uint32_t i = 0; i < self->ninputs; i++)
        free(self->merged[i].data);
    dlcrt_context_destroy(self->context);
    dlcrt_executable_close(self->executable);
    free(self->inputs);
    free(self->merged);
    free(self);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, const uint32_t count)
{
    void *self = NULL;
    TRY(TRITONBACKEND_ModelInstanceState(instance, &self));
    for (uint32_t r = 0, part = ((runner *)self)->is_batched ? count : 1; r < count; r += part)
        run(self, instance, &requests[r], part);
    return NULL;
}
