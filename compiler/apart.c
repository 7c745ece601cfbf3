/* What is written is none of the files that the model was read from: a slip must not cost the user the model or its weights. */
#include "compiler/driver.h"

#include <string.h>

dlc_status dlc_model_check_apart(dlc_model *model, const char *path)
{
    const char *location, *from = model->path;
    if (!from || !path)
        return DLC_OK;
    if (dlc_is_one_file(path, from))
        return dlc_diag_fail(&model->diag, DLC_USAGE, path, "is the model itself%s%s%s; another file is wanted to write to",
                             strcmp(from, path) ? " ('" : "", strcmp(from, path) ? from : "", strcmp(from, path) ? "')" : "");
    const char *tensor = model->onnx ? dlc_onnx_holder(model->onnx, path, &location) : NULL;
    if (!tensor)
        return DLC_OK;
    return dlc_diag_fail(&model->diag, DLC_USAGE, path,
                         "is the external data '%.200s' of the model '%s' (tensor '%.200s'); another file is wanted to write to", location,
                         from, tensor);
}
