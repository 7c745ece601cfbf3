/*
 * What the backend uses of the C interface of Triton Inference Server, backend version 1: functions of the server that loads it,
 * and at the end those that the server calls. With TRITON_HEADERS defined the server's own headers are taken instead; they are
 * written for C++ and want these type names.
 */
#ifndef DLC_SERVING_TRITON_H
#define DLC_SERVING_TRITON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRITON_TYPES(row)                                                                          \
    row(TRITONSERVER_Error) row(TRITONSERVER_Message) row(TRITONBACKEND_Backend)                   \
    row(TRITONBACKEND_BackendAttribute) row(TRITONBACKEND_Batcher) row(TRITONBACKEND_Input)        \
    row(TRITONBACKEND_MemoryManager) row(TRITONBACKEND_Model) row(TRITONBACKEND_ModelInstance)     \
    row(TRITONBACKEND_ModelInstanceResponseStatistics) row(TRITONBACKEND_Output)                   \
    row(TRITONBACKEND_Request) row(TRITONBACKEND_Response) row(TRITONBACKEND_ResponseFactory)      \
    row(TRITONBACKEND_State) row(TRITONSERVER_BufferAttributes)                                    \
    row(TRITONSERVER_InferenceTrace) row(TRITONSERVER_Server)
#define TRITON_TYPE(name) typedef struct name name;
TRITON_TYPES(TRITON_TYPE)
#undef TRITON_TYPE

#ifdef TRITON_HEADERS
#define _COMPILING_TRITONBACKEND
#include <triton/core/tritonbackend.h>
#else

#define TRITONSERVER_RESPONSE_COMPLETE_FINAL 1
#define TRITONSERVER_REQUEST_RELEASE_ALL 1

typedef enum { TRITONSERVER_TYPE_INVALID } TRITONSERVER_DataType; /* known by their names */
typedef enum { TRITONSERVER_MEMORY_CPU, TRITONSERVER_MEMORY_CPU_PINNED, TRITONSERVER_MEMORY_GPU } TRITONSERVER_MemoryType;
typedef enum { TRITONBACKEND_ARTIFACT_FILESYSTEM } TRITONBACKEND_ArtifactType;
typedef enum {
    TRITONSERVER_ERROR_UNKNOWN,
    TRITONSERVER_ERROR_INTERNAL,
    TRITONSERVER_ERROR_NOT_FOUND,
    TRITONSERVER_ERROR_INVALID_ARG,
    TRITONSERVER_ERROR_UNAVAILABLE,
    TRITONSERVER_ERROR_UNSUPPORTED
} TRITONSERVER_Error_Code;

TRITONSERVER_Error *TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char *text);
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error *error);
const char *TRITONSERVER_DataTypeString(TRITONSERVER_DataType type);
TRITONSERVER_DataType TRITONSERVER_StringToDataType(const char *name);
TRITONSERVER_Error *TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message **message, const char *text, size_t size_bytes);
TRITONSERVER_Error *TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *message, const char **text, size_t *size_bytes);
TRITONSERVER_Error *TRITONSERVER_MessageDelete(TRITONSERVER_Message *message);

TRITONSERVER_Error *TRITONBACKEND_ModelRepository(TRITONBACKEND_Model *model, TRITONBACKEND_ArtifactType *type, const char **location);
TRITONSERVER_Error *TRITONBACKEND_ModelVersion(TRITONBACKEND_Model *model, uint64_t *version);
TRITONSERVER_Error *TRITONBACKEND_ModelConfig(TRITONBACKEND_Model *model, uint32_t version, TRITONSERVER_Message **config);
TRITONSERVER_Error *TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model *model, uint32_t version, TRITONSERVER_Message *config);
TRITONSERVER_Error *TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model *model, bool *is_wanted);
TRITONSERVER_Error *TRITONBACKEND_ModelState(TRITONBACKEND_Model *model, void **state);
TRITONSERVER_Error *TRITONBACKEND_ModelSetState(TRITONBACKEND_Model *model, void *state);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Model **model);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance *instance, void **state);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance *instance, void *state);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportStatistics(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request,
    bool is_right, uint64_t begin_ns, uint64_t compute_begin_ns, uint64_t compute_end_ns, uint64_t end_ns);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportBatchStatistics(TRITONBACKEND_ModelInstance *instance, uint64_t batch,
    uint64_t begin_ns, uint64_t compute_begin_ns, uint64_t compute_end_ns, uint64_t end_ns);
TRITONSERVER_Error *TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request *request, uint32_t *count);
TRITONSERVER_Error *TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request *request, uint32_t i, TRITONBACKEND_Input **input);
TRITONSERVER_Error *TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request *request, uint32_t *count);
TRITONSERVER_Error *TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *request, uint32_t i, const char **name);
TRITONSERVER_Error *TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *request, uint32_t flags);
TRITONSERVER_Error *TRITONBACKEND_InputProperties(TRITONBACKEND_Input *input, const char **name, TRITONSERVER_DataType *type,
    const int64_t **dims, uint32_t *rank, uint64_t *size_bytes, uint32_t *nbuffers);
TRITONSERVER_Error *TRITONBACKEND_InputBuffer(TRITONBACKEND_Input *input, uint32_t i, const void **data, uint64_t *size_bytes,
    TRITONSERVER_MemoryType *memory, int64_t *memory_id);
TRITONSERVER_Error *TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **response, TRITONBACKEND_Request *request);
TRITONSERVER_Error *TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response *response, TRITONBACKEND_Output **output, const char *name,
    TRITONSERVER_DataType type, const int64_t *dims, uint32_t rank);
TRITONSERVER_Error *TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output *output, void **data, uint64_t size_bytes,
    TRITONSERVER_MemoryType *memory, int64_t *memory_id);
TRITONSERVER_Error *TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *response, uint32_t flags, TRITONSERVER_Error *error);

#define TRITONBACKEND_ISPEC __attribute__((visibility("default")))
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model);
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model);
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance);
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance);
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count);
#endif
#endif
