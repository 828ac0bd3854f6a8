// Why: a generated kernel includes "kernel_operator.h", CANN's name. Put this directory on the include path
// and the same source compiles under g++ -std=c++17 against the host twin (see docs/twin.md); put CANN's
// there and it compiles for the device. On exit the namespace AscendC holds what generated kernels and
// autofuse/*.h use.
#pragma once
#include "include/twin/base.h"
#include "include/twin/tensor.h"
#include "include/twin/pipe.h"
#include "include/twin/calls.h"
#include "include/twin/vector.h"
#include "include/twin/move.h"
#include "include/twin/reduce.h"
#include "include/twin/advanced.h"
