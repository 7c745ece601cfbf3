/*
 * classify MODEL.so: recognises a digit with a compiled model; all that a program needs of libdlcrt.
 *
 *   dlc compile models/digits.onnx -o digits.so
 *   cc classify.c $(pkg-config --cflags --libs dlcrt) -o classify && ./classify digits.so
 */
#include <dlc/runtime.h>
#include <stdio.h>

#include "drawing.h"

static int failed(const char *what)
{
    fprintf(stderr, "classify: %s: %s\n", what, dlcrt_last_error());
    return 1;
}

/* All threads share an executable; each thread that runs it has a context of its own. */
static int classify(dlcrt_executable *model)
{
    dlcrt_context *context;
    if (dlcrt_context_create(model, NULL, &context) != DLC_OK)
        return failed("no context");
    dlcrt_tensor input = {.name = "image", .data = (void *)drawing, .dtype = DLC_F32, .rank = 4, .dims = {1, 1, 8, 8}};
    dlcrt_tensor output = {.name = "logits"}; /* no data: the run sets it to memory of the context */
    int code = 0;
    if (dlcrt_context_run(context, &input, 1, &output, 1) != DLC_OK)
        code = failed("no result");
    else
        printf("it is a %d\n", largest(output.data));
    dlcrt_context_destroy(context);
    return code;
}

int main(int argc, char **argv)
{
    dlcrt_executable *model;
    if (argc != 2) {
        fprintf(stderr, "usage: classify MODEL.so\n");
        return 2;
    }
    if (dlcrt_executable_open(argv[1], &model) != DLC_OK)
        return failed("no model");
    int code = classify(model);
    dlcrt_executable_close(model);
    return code;
}
