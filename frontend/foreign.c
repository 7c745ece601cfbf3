/* Files that are no ONNX models, recognised: who gives one is told what it is, not which field of a message it spoils. */
#include "frontend/model.h"

#include <string.h>

static const struct {
    size_t at;
    const char *bytes;
    size_t n;
    const char *text;
} kinds[] = {
#define DLC_FOREIGN(at, bytes, text) {at, bytes, sizeof(bytes) - 1, text},
#include "frontend/foreign.def"
#undef DLC_FOREIGN
};

/* A length of eight bytes, then JSON. */
static int is_safetensors(const uint8_t *bytes, size_t n)
{
    return n > 9 && !bytes[5] && !bytes[6] && !bytes[7] && bytes[8] == '{' && bytes[9] == '"';
}

/* A graph begins with a field 1 of bytes, which a model has as a number; a saved model has a version and a long message, where a model
 * of the first IR has its producer's name. */
static int is_tensorflow(const uint8_t *bytes, size_t n)
{
    if (n > 2 && bytes[0] == 0x0a)
        return 1;
    return n > 16 && memcmp(bytes, "\x08\x01\x12", 3) == 0 && (bytes[3] & 0x80) && memchr(bytes + 4, 0x0a, 4);
}

const char *dlc_onnx_foreign(const uint8_t *bytes, size_t n)
{
    if (!n)
        return "is empty";
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (n >= kinds[k].at + kinds[k].n && memcmp(bytes + kinds[k].at, kinds[k].bytes, kinds[k].n) == 0)
            return kinds[k].text;
    }
    if (is_safetensors(bytes, n))
        return "is a safetensors file: weights without a graph; an ONNX export of the model is wanted";
    if (is_tensorflow(bytes, n))
        return "is a TensorFlow graph or another message that is no ONNX model: convert it, as tf2onnx does";
    return NULL;
}
