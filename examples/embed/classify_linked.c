/*
 * classify_linked: the same with the model inside the program. The generated header declares digits_open and digits_run.
 *
 *   dlc compile models/digits.onnx --emit a,h -o digits.a
 *   cc -I. classify_linked.c digits.a $(pkg-config --cflags --libs dlcrt) -o classify_linked && ./classify_linked
 */
#include <stdio.h>

#include "digits.h"
#include "drawing.h"

int main(void)
{
    dlcrt_executable *model = NULL;
    dlcrt_context *context = NULL;
    float logits[10];
    int code = 0;
    if (digits_open(&model) == DLC_OK && dlcrt_context_create(model, NULL, &context) == DLC_OK &&
        digits_run(context, 1, &drawing[0][0], logits) == DLC_OK) {
        printf("it is a %d\n", largest(logits));
    } else {
        fprintf(stderr, "classify_linked: %s\n", dlcrt_last_error());
        code = 1;
    }
    dlcrt_context_destroy(context);
    dlcrt_executable_close(model);
    return code;
}
