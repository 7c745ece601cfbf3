/* cJSON for reports: memory that is missing ends the work, as it does in arenas; what was built so far is lost with it. */
#ifndef DLC_COMPILER_JSON_H
#define DLC_COMPILER_JSON_H

#include "base/arena.h"

#include <cjson/cJSON.h>

static inline cJSON *dlc_json_made(cJSON *item)
{
    if (!item)
        dlc_out_of_memory(sizeof(cJSON), DLC_OUT_OF_MEMORY);
    return item;
}

static inline char *dlc_json_text(char *text)
{
    if (!text)
        dlc_out_of_memory(1, DLC_OUT_OF_MEMORY);
    return text;
}

#define cJSON_CreateObject() dlc_json_made(cJSON_CreateObject())
#define cJSON_CreateArray() dlc_json_made(cJSON_CreateArray())
#define cJSON_CreateString(text) dlc_json_made(cJSON_CreateString(text))
#define cJSON_AddObjectToObject(object, key) dlc_json_made(cJSON_AddObjectToObject(object, key))
#define cJSON_AddArrayToObject(object, key) dlc_json_made(cJSON_AddArrayToObject(object, key))
#define cJSON_AddBoolToObject(object, key, value) dlc_json_made(cJSON_AddBoolToObject(object, key, value))
#define cJSON_AddNumberToObject(object, key, value) dlc_json_made(cJSON_AddNumberToObject(object, key, value))
#define cJSON_AddStringToObject(object, key, value) dlc_json_made(cJSON_AddStringToObject(object, key, value))
#define cJSON_Print(json) dlc_json_text(cJSON_Print(json))

#endif
