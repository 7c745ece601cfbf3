/* What importers need to know of strings: their numbers, and where one stands in a list of constants. */
#ifndef DLC_FRONTEND_IMPORT_STRING_H
#define DLC_FRONTEND_IMPORT_STRING_H

#include "frontend/import.h"

/* The numbers of strings, i64: equal where those are. Anything else is given back. */
dlc_value *im_numbers(dlc_import *im, dlc_value *x);
/*
 * For each string of x which of the constant strings `keys` it is, the first of equal ones; as many as there are: none. A table
 * from numbers to places, so it takes one load however many keys there are. NULL: keys is no constant of strings.
 */
dlc_value *im_places(dlc_import *im, dlc_value *x, const dlc_value *keys);
/* To strings, or from strings; NULL when reported. */
dlc_value *im_cast_strings(dlc_import *im, dlc_value *x, dlc_dtype dtype);

/* regex.c: the program of a text_match step (dlc/abi.h) for a regular expression as RE2 reads it; NULL and `wrong` where it is
 * none or has what is not supported. rows of three. */
const int64_t *im_regex(dlc_arena *arena, const char *pattern, uint32_t *nrows, const char **wrong);

#endif
