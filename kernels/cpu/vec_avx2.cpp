#include "kernels/cpu/vec.h"

#define SLUICE_VEC_TABLE vec_fns_avx2
#include "kernels/cpu/vec_body.h"
