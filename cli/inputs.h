/* What a model takes and gives, whoever runs it, and the tensors the command line names for it. */
#ifndef DLC_CLI_INPUTS_H
#define DLC_CLI_INPUTS_H

#include "cli/cli.h"
#include "cli/tensors.h"

typedef struct {
    dlcrt_tensor_info *inputs, *outputs;
    uint32_t ninputs, noutputs;
} dlc_signature;

dlc_signature dlc_signature_of_executable(const dlcrt_executable *executable, dlc_arena *arena);
dlc_signature dlc_signature_of_model(dlc_model *model, const dlc_library *library,
                                     dlc_arena *arena);

/*
 * The inputs in the model's order, from --inputs, --input and --shape. Without --inputs and --input
 * they are random (seed: their position), a dimension that nothing fixes being 1. Refuses missing
 * and unknown names.
 */
DLC_NODISCARD dlc_status dlc_gather_inputs(dlc_cli *cli, const dlc_signature *signature,
                                           const dlc_options *options, dlc_tensors *inputs);
/* Files of --expect: F.npz, or a.pb,b.npy,… in the order of the outputs; every tensor is named. */
DLC_NODISCARD dlc_status dlc_read_expected(dlc_cli *cli, const dlc_signature *signature,
                                           const char *files, dlc_tensors *expected);
/* A comma-separated list in the arena. */
dlc_texts dlc_split(dlc_arena *arena, const char *text);

#endif
