/* A backend of Triton Inference Server: REPOSITORY/NAME/1/model.dlc is an executable of dlc, which tells its own configuration.
 * Which of the server's requests run together, and which are refused, is the business of dlc/batch.h. */
#include "triton.h"
#include <cjson/cJSON.h>
#include <dlc/batch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call) for (TRITONSERVER_Error *try_error = (call); try_error;) return try_error
typedef struct { dlcrt_executable *executable; dlcrt_batch_options options; } served;
typedef int describe(const dlcrt_executable *, uint32_t, dlcrt_tensor_info *);

static TRITONSERVER_Error *error_of(dlc_status status)
{
    TRITONSERVER_Error_Code code = status == DLC_INVALID ? TRITONSERVER_ERROR_INVALID_ARG : TRITONSERVER_ERROR_UNAVAILABLE;
    return status ? TRITONSERVER_ErrorNew(code, dlcrt_last_error()) : NULL;
}

/* Triton knows no tensors without dimensions: scalars are [1] there. */
static TRITONSERVER_Error *complete_tensors(cJSON *list, const served *self, describe *of)
{
    bool is_batched = !self->options.is_apart, is_given = cJSON_GetArraySize(list) > 0;
    dlcrt_tensor_info info;
    char text[128];
    for (uint32_t i = 0; !is_given && of(self->executable, i, &info); i++) {
        const char *name = dlc_is_text(info.dtype) ? "" : dlc_dtypes[info.dtype].served;
        snprintf(text, sizeof text, *name ? "TYPE_%s" : "the server has no type for %s", *name ? name : info.type);
        if (!*name)
            return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, text);
        cJSON *row = cJSON_CreateObject(), *dims = cJSON_AddArrayToObject(row, "dims");
        cJSON_AddItemToArray(list, row);
        cJSON_AddStringToObject(row, "name", info.name);
        cJSON_AddStringToObject(row, "data_type", text);
        for (uint32_t d = is_batched; d < info.rank || d == is_batched; d++)
            cJSON_AddItemToArray(dims, cJSON_CreateNumber(d < info.rank ? (double)info.dims[d] : 1));
        if (is_batched && info.rank == 1)
            cJSON_AddArrayToObject(cJSON_AddObjectToObject(row, "reshape"), "shape");
    }
    return NULL;
}

static TRITONSERVER_Error *complete(TRITONBACKEND_Model *model, cJSON *config, served *self)
{
    bool has_inputs = cJSON_GetArraySize(cJSON_GetObjectItem(config, "input")) > 0;
    if (self->options.is_apart && dlcrt_executable_batch(self->executable) && !has_inputs) {
        cJSON_SetNumberValue(cJSON_GetObjectItem(config, "max_batch_size"), 64);
        self->options.is_apart = 0;
    }
    bool is_chosen = cJSON_GetObjectItem(config, "dynamic_batching") || cJSON_GetObjectItem(config, "sequence_batching");
    if (!self->options.is_apart && !is_chosen)
        cJSON_AddObjectToObject(config, "dynamic_batching");
    TRY(complete_tensors(cJSON_GetObjectItem(config, "input"), self, dlcrt_executable_input));
    TRY(complete_tensors(cJSON_GetObjectItem(config, "output"), self, dlcrt_executable_output));
    char *text = cJSON_PrintUnformatted(config);
    TRITONSERVER_Message *message = NULL;
    TRITONSERVER_Error *error = TRITONSERVER_MessageNewFromSerializedJson(&message, text, strlen(text));
    error = error ? error : TRITONBACKEND_ModelSetConfig(model, 1, message);
    TRITONSERVER_MessageDelete(message);
    free(text);
    return error;
}

static const char *parameter(const cJSON *config, const char *name)
{
    const cJSON *row = cJSON_GetObjectItem(cJSON_GetObjectItem(config, "parameters"), name);
    return cJSON_GetStringValue(cJSON_GetObjectItem(row, "string_value"));
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    TRITONBACKEND_ArtifactType type;
    TRITONSERVER_Message *message;
    const char *folder, *text;
    char path[4096];
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
    const char *file = cJSON_GetStringValue(cJSON_GetObjectItem(config, "default_model_filename"));
    const char *threads = parameter(config, "threads"), *pads = parameter(config, "pads");
    self->options = (dlcrt_batch_options){.threads = threads ? (uint32_t)atoi(threads) : 0, .pads = pads && !strcmp(pads, "true")};
    self->options.is_apart = cJSON_GetNumberValue(cJSON_GetObjectItem(config, "max_batch_size")) <= 0;
    snprintf(path, sizeof path, "%s/%llu/%s", folder, (unsigned long long)version, file && *file ? file : "model.dlc");
    dlcrt_executable_options options = {.path = path, .device = parameter(config, "device")};
    TRITONSERVER_Error *error = error_of(dlcrt_executable_open_with(&options, &self->executable));
    if (!error && !self->options.is_apart && !dlcrt_executable_batch(self->executable))
        error = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "max_batch_size is set, and there is no batch dimension");
    error = error || !is_wanted ? error : complete(model, config, self);
    cJSON_Delete(config);
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    void *self = NULL;
    TRY(TRITONBACKEND_ModelState(model, &self));
    dlcrt_executable_close(((served *)self)->executable);
    free(self);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    TRITONBACKEND_Model *model;
    void *of = NULL;
    dlcrt_batch *batch;
    TRY(TRITONBACKEND_ModelInstanceModel(instance, &model));
    TRY(TRITONBACKEND_ModelState(model, &of));
    TRY(error_of(dlcrt_batch_create(((served *)of)->executable, &((served *)of)->options, &batch)));
    return TRITONBACKEND_ModelInstanceSetState(instance, batch);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    void *batch = NULL;
    TRY(TRITONBACKEND_ModelInstanceState(instance, &batch));
    dlcrt_batch_destroy(batch);
    return NULL;
}

static TRITONSERVER_Error *add(dlcrt_batch *batch, TRITONBACKEND_Request *request)
{
    uint32_t ninputs, npieces;
    TRY(TRITONBACKEND_RequestInputCount(request, &ninputs));
    for (uint32_t i = 0; i < ninputs; i++) {
        dlcrt_tensor tensor = {0};
        TRITONBACKEND_Input *input;
        TRITONSERVER_DataType type;
        const int64_t *dims;
        TRY(TRITONBACKEND_RequestInputByIndex(request, i, &input));
        TRY(TRITONBACKEND_InputProperties(input, &tensor.name, &type, &dims, &tensor.rank, NULL, &npieces));
        tensor.dtype = dlcrt_dtype_served(TRITONSERVER_DataTypeString(type));
        memcpy(tensor.dims, dims, (tensor.rank < DLCRT_MAX_RANK ? tensor.rank : DLCRT_MAX_RANK) * sizeof *dims);
        for (uint32_t p = 0; p < npieces || !p; p++) { /* what is empty has no pieces */
            TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
            if (npieces)
                TRY(TRITONBACKEND_InputBuffer(input, p, (const void **)&tensor.data, &tensor.size_bytes, &memory, &(int64_t){0}));
            tensor.on_device = memory == TRITONSERVER_MEMORY_GPU;
            TRY(error_of(dlcrt_batch_input(batch, i, &tensor)));
        }
    }
    return NULL;
}

static TRITONSERVER_Error *answer(dlcrt_batch *batch, uint32_t number, TRITONBACKEND_Request *request, TRITONBACKEND_Response *to)
{
    uint32_t wanted;
    TRY(TRITONBACKEND_RequestOutputCount(request, &wanted));
    for (uint32_t i = 0; i < wanted; i++) {
        dlcrt_tensor tensor = {0};
        TRITONBACKEND_Output *output;
        TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
        void *data;
        TRY(TRITONBACKEND_RequestOutputName(request, i, &tensor.name));
        TRY(error_of(dlcrt_batch_output(batch, number, 0, &tensor)));
        TRITONSERVER_DataType type = TRITONSERVER_StringToDataType(dlc_dtypes[tensor.dtype].served);
        TRY(TRITONBACKEND_ResponseOutput(to, &output, tensor.name, type, tensor.dims, tensor.rank ? tensor.rank : 1));
        TRY(TRITONBACKEND_OutputBuffer(output, &data, tensor.size_bytes, &memory, &(int64_t){0}));
        if (memory == TRITONSERVER_MEMORY_GPU)
            return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "an output is wanted in a GPU's memory");
        memcpy(data, tensor.data, tensor.size_bytes);
    }
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests,
                                                       const uint32_t count)
{
    void *batch = NULL;
    TRITONBACKEND_Response *response;
    uint64_t begin = dlcrt_now_ns();
    TRY(TRITONBACKEND_ModelInstanceState(instance, &batch));
    for (uint32_t r = 0; r < count && !dlcrt_batch_begin(batch); r++) /* none behind one without a number: all would shift */
        TRITONSERVER_ErrorDelete(add(batch, requests[r])); /* its outputs will be refused */
    uint64_t ready = dlcrt_now_ns();
    dlcrt_batch_run(batch);
    uint64_t done = dlcrt_now_ns();
    for (int64_t i = 0, rows; (rows = dlcrt_batch_rows(batch, (uint32_t)i)) >= 0; i++)
        TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, (uint64_t)rows, begin, ready, done, done);
    for (uint32_t r = 0; r < count; r++) { /* counts before it sends: who reads an answer finds it in the statistics */
        TRITONSERVER_Error *unsent = TRITONBACKEND_ResponseNew(&response, requests[r]);
        TRITONSERVER_Error *error = unsent ? NULL : answer(batch, r, requests[r], response);
        TRITONBACKEND_ModelInstanceReportStatistics(instance, requests[r], !error && !unsent, begin, ready, done, dlcrt_now_ns());
        if (!unsent)
            unsent = TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error);
        TRITONSERVER_ErrorDelete(error);
        TRITONSERVER_ErrorDelete(unsent);
        TRITONBACKEND_RequestRelease(requests[r], TRITONSERVER_REQUEST_RELEASE_ALL);
    }
    return NULL;
}
