/* Element types, shared by compiler, executable and runtime. Needs stdint.h alone. */
#ifndef DLC_DTYPE_H
#define DLC_DTYPE_H

#include <stdint.h>

typedef enum dlc_dtype {
#define DLC_DTYPE(id, text, bits, class_, onnx, numpy, served, ctype) DLC_##id,
#include "dlc/dtype.def"
#undef DLC_DTYPE
    DLC_DTYPE_COUNT
} dlc_dtype;

typedef enum { DLC_CLASS_NONE, DLC_CLASS_BOOL, DLC_CLASS_INT, DLC_CLASS_UINT, DLC_CLASS_FLOAT, DLC_CLASS_CODE, DLC_CLASS_TEXT } dlc_dtype_class;

typedef struct {
    const char *text;  /* spelling in the text form and in messages */
    uint8_t bits;      /* size of an element in a buffer */
    uint8_t class_;    /* dlc_dtype_class */
    uint8_t onnx;      /* TensorProto.DataType */
    const char *numpy; /* array-protocol type string */
    const char *served; /* name in the Open Inference Protocol; "": none */
    const char *ctype; /* spelling in generated C headers */
} dlc_dtype_info;

/* One static copy per user: the table is short, and runtime and compiler share no code. */
static const dlc_dtype_info dlc_dtypes[DLC_DTYPE_COUNT] = {
#define DLC_DTYPE(id, text, bits, class_, onnx, numpy, served, ctype)                                      \
    {text, bits, DLC_CLASS_##class_, onnx, numpy, served, ctype},
#include "dlc/dtype.def"
#undef DLC_DTYPE
};

/* The same of what is asked for most: without names, so most users need no copy of those. */
typedef struct {
    uint8_t bits, class_;
} dlc_dtype_kind;

static const dlc_dtype_kind dlc_dtype_kinds[DLC_DTYPE_COUNT] = {
#define DLC_DTYPE(id, text, bits, class_, onnx, numpy, served, ctype) {bits, DLC_CLASS_##class_},
#include "dlc/dtype.def"
#undef DLC_DTYPE
};

static inline uint32_t dlc_dtype_bytes(dlc_dtype dtype)
{
    return dlc_dtype_kinds[dtype].bits / 8;
}

static inline int dlc_is_float(dlc_dtype dtype)
{
    return dlc_dtype_kinds[dtype].class_ == DLC_CLASS_FLOAT;
}

/* true for signed and unsigned integers, not for bool */
static inline int dlc_is_int(dlc_dtype dtype)
{
    return dlc_dtype_kinds[dtype].class_ == DLC_CLASS_INT || dlc_dtype_kinds[dtype].class_ == DLC_CLASS_UINT;
}

static inline int dlc_is_unsigned(dlc_dtype dtype)
{
    return dlc_dtype_kinds[dtype].class_ == DLC_CLASS_UINT;
}

/* A narrow type: codes of a byte each, which only a cast computes with. */
static inline int dlc_is_code(dlc_dtype dtype)
{
    return dlc_dtype_kinds[dtype].class_ == DLC_CLASS_CODE;
}

/* Strings: they are moved, and compared as the numbers they are. */
static inline int dlc_is_text(dlc_dtype dtype)
{
    return dlc_dtype_kinds[dtype].class_ == DLC_CLASS_TEXT;
}

/* The least and the largest value of an integer type or bool; the latter as a bit pattern, for u64. */
static inline int64_t dlc_dtype_lowest(dlc_dtype dtype)
{
    return dlc_dtype_kinds[dtype].class_ == DLC_CLASS_INT ? (int64_t)(UINT64_MAX << (dlc_dtype_kinds[dtype].bits - 1)) : 0;
}

static inline uint64_t dlc_dtype_highest(dlc_dtype dtype)
{
    if (dtype == DLC_BOOL)
        return 1;
    return UINT64_MAX >> (64 - dlc_dtype_kinds[dtype].bits + (dlc_dtype_kinds[dtype].class_ == DLC_CLASS_INT));
}

#endif
