// One launch: the blocks of a plan, phase by phase, on the calling thread or with helpers, as many threads
// in all as the session's intra-op pool has.
#ifndef TF_AUTOFUSE_NATIVE_LAUNCH_H_
#define TF_AUTOFUSE_NATIVE_LAUNCH_H_

#include <string>

#include "plan.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace autofuse {

// What a kernel's run_blocks gives, and every nonzero value but kRefusedValue: it broke a rule.
constexpr int32_t kDone = 0;
constexpr int32_t kRefusedValue = 2;

struct Launch {
  const Kernel* kernel;
  const Plan* plan;
  void* const* gm;
  void* workspace;
};

// Runs all blocks; a phase begins when all blocks of the one before have ended. Not kDone: `*error` is the
// text of the first failure; a broken rule hides a refused value. Blocks that had not begun then did not run.
int32_t RunLaunch(tensorflow::OpKernelContext* ctx, const Launch& launch, std::string* error);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_LAUNCH_H_
