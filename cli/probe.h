/* One trial of `dlc compare`: a model or a part of it, by compiled code or the interpreter, in a process of its own that may crash. */
#ifndef DLC_CLI_PROBE_H
#define DLC_CLI_PROBE_H

#include "cli/inputs.h"
#include "base/table.h"

enum { PROBE_MOST_ROWS = 65536 };

/* What is to be tried. Zero: the whole model as the command line says. */
typedef struct {
    uint32_t first, end; /* nodes; end 0: all, with the model's own outputs */
    int every;           /* all values are outputs */
    int is_interpreted;
    int is_plain;        /* no fusion, no rewrite, no schedules of the user's */
    const char *passes, *fusion, *rewrite, *winograd; /* NULL: the command line's */
} probe;

/* One value, found and wanted. */
typedef struct {
    char name[160], type[64];
    uint64_t nelems, noutside, at;
    double max_abs, max_rel, found, expected;
} probe_row;

typedef struct {
    dlc_status status; /* DLC_OK: it ran, right or not */
    uint32_t nrows, nwrong, first_wrong;
    char text[600]; /* why it did not run */
    probe_row rows[PROBE_MOST_ROWS];
} probe_result;

/* What is compared with what. */
typedef struct {
    dlc_cli *cli;
    const dlc_library *library;
    dlc_options options;
    const char *path;
    dlc_model *model;
    dlc_signature signature;
    dlc_tensors inputs, outputs;   /* outputs: the wanted ones, of the model */
    dlc_table values;              /* wanted values by name: dlcrt_tensor */
    int is_oracle;
    dlc_vec(dlc_model_node) nodes;
    probe_result *result;          /* of the newest probe; shared with its process */
    uint32_t nprobes;
} comparison;

/* The result is in c->result; false: it is right. A probe that does not run is wrong; DLC_USAGE and DLC_UNSUPPORTED say it cannot be. */
int probe_is_wrong(comparison *c, const probe *p);
const dlcrt_tensor *probe_value(const comparison *c, const char *name); /* wanted; NULL: not known */
/* Inputs of what is left of the model, from the wanted values; DLC_UNSUPPORTED: one is not known. */
dlc_status probe_inputs(comparison *c, dlc_model *model, dlc_tensors *inputs);
dlc_tolerance probe_tolerance(const dlc_cli *cli, const dlcrt_tensor *expected);

/* peer.c: outputs and as many values as have names there, from ONNX Runtime. */
dlc_status dlc_peer_values(comparison *c);

#endif
