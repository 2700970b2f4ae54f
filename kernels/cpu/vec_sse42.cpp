#include "kernels/cpu/vec.h"

#define SLUICE_VEC_TABLE vec_fns_sse42
#include "kernels/cpu/vec_body.h"
