/* The rows of kinds.def as functions. */
#ifndef DLC_TESTS_DIFFER_KINDS_H
#define DLC_TESTS_DIFFER_KINDS_H

#include "tests/differ/make.h"

#define MAKE_KIND(weight, name) void kind_##name(make *m);
#include "tests/differ/kinds.def"
#undef MAKE_KIND

#endif
