/* Steps in plain C that are not in opaque.c. See dlc/opaque.def for what a row's functions do. */
#ifndef DLCRT_STEPS_H
#define DLCRT_STEPS_H

#include "runtime/internal.h"

/* --- topk.c --- */
dlc_status dlcrt_run_topk(const dlcrt_opaque_args *args);
/* --- suppress.c --- */
dlc_status dlcrt_run_suppress(const dlcrt_opaque_args *args);
/* --- text_steps.c --- */
dlc_status dlcrt_run_text_join(const dlcrt_opaque_args *args);
dlc_status dlcrt_count_text_split(const dlcrt_opaque_args *args, int64_t *symbol);
dlc_status dlcrt_run_text_split(const dlcrt_opaque_args *args);
dlc_status dlcrt_count_text_normalize(const dlcrt_opaque_args *args, int64_t *symbol);
dlc_status dlcrt_run_text_normalize(const dlcrt_opaque_args *args);
/* --- text_match.c --- */
dlc_status dlcrt_run_text_match(const dlcrt_opaque_args *args);
/* --- text_numbers.c --- */
dlc_status dlcrt_run_text_read(const dlcrt_opaque_args *args);
dlc_status dlcrt_run_text_write(const dlcrt_opaque_args *args);

/* Shared by these files. */
static inline int64_t dlcrt_operand_elems(const dlcrt_operand *operand)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < operand->rank; d++)
        n *= operand->dims[d];
    return n;
}
/* It has elements, and they lie nowhere. */
static inline int dlcrt_is_missing(const dlcrt_operand *operand)
{
    return !operand->data && dlcrt_operand_elems(operand) > 0;
}
/* Element i of strings; a number that is none is refused by the step's name. text_steps.c */
DLC_NODISCARD dlc_status dlcrt_string_of(const dlcrt_opaque_args *args, uint32_t operand, int64_t i, const char **text);
void dlcrt_number_set(const dlcrt_operand *operand, int64_t i, int64_t number);
/* The first operands are, in their order: s strings, i i64, b bool, others any; capitals may be outputs that nobody reads. Else they are
 * refused. */
DLC_NODISCARD dlc_status dlcrt_check_types(const dlcrt_opaque_args *args, const char *types);
/* Another number of elements than the first operand's: refused. */
DLC_NODISCARD dlc_status dlcrt_same_elems(const dlcrt_opaque_args *args, uint32_t operand);
/* The character at *text, and *text moved behind it; what is no UTF-8 counts byte by byte, as U+FFFD. */
uint32_t dlcrt_character(const char **text);

#endif
