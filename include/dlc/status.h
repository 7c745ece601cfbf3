/* The result of every call that can fail. A value below 64 is also the exit status of the `dlc` program. */
#ifndef DLC_STATUS_H
#define DLC_STATUS_H

typedef enum dlc_status {
    DLC_OK = 0,
    DLC_INVALID = 1,     /* the model, executable or input is not what it claims to be */
    DLC_USAGE = 2,       /* the command line or an API call is wrong */
    DLC_UNSUPPORTED = 3, /* well formed, but not (yet) something dlc can do */
    DLC_MISMATCH = 4,    /* numbers differ from the expected ones */
    DLC_IO = 5,          /* a file could not be read or written */
    DLC_NO_DEVICE = 6,   /* the device or CPU feature asked for is not there */
    DLC_LIMIT = 7,       /* a resource limit (memory, nodes, depth) was reached */
    DLC_CANCELLED = 8,   /* dlcrt_context_cancel ended the run */
    DLC_INTERNAL = 70    /* a defect of dlc */
} dlc_status;

#define DLC_NODISCARD __attribute__((warn_unused_result))

/* Leaves the calling function with the status of `call` unless it is DLC_OK. */
#define DLC_TRY(call)                                                                              \
    do {                                                                                           \
        dlc_status dlc_try_status_ = (call);                                                       \
        if (dlc_try_status_ != DLC_OK)                                                             \
            return dlc_try_status_;                                                                \
    } while (0)

#endif
