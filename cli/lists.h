/* Sequences and optionals of test data: which of a model's inputs and outputs are some, and the
 * tensors in their files. */
#ifndef DLC_CLI_LISTS_H
#define DLC_CLI_LISTS_H

#include "cli/tensors.h"

typedef struct {
    const char *name;
    int is_list;
} dlc_port;
typedef dlc_vec(dlc_port) dlc_ports;

/* The inputs and outputs of an ONNX file, in its order. */
DLC_NODISCARD dlc_status dlc_ports_read(const char *path, dlc_arena *arena, dlc_diag *diag,
                                        dlc_ports *inputs, dlc_ports *outputs);
/* The tensors of a SequenceProto or OptionalProto file, called NAME[0], NAME[1], …. */
DLC_NODISCARD dlc_status dlc_list_read(const char *path, const char *name, dlc_arena *arena,
                                       dlc_diag *diag, dlc_tensors *tensors);

#endif
