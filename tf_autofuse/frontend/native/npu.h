// The NPU of this process, as the op sees it: the functions of the NPU runtime (npu_kernels/runtime), which
// Python has built and opened.
//
// On entry of UseNpu the path of the runtime's library; from then on CurrentNpu gives the device to every
// thread, also after it has been closed (its calls then fail with a reason). Nothing here links to CANN.
#ifndef TF_AUTOFUSE_NATIVE_NPU_H_
#define TF_AUTOFUSE_NATIVE_NPU_H_

#include <string>

#include "npu_runtime.h"
#include "tensorflow/core/lib/core/status.h"

namespace autofuse {

struct Npu {
#define AUTOFUSE_NPU_POINTER(type, name) type name = nullptr;
  AUTOFUSE_NPU_FUNCTIONS(AUTOFUSE_NPU_POINTER)
#undef AUTOFUSE_NPU_POINTER
  AutofuseNpu* handle = nullptr;
};

// Errors: NotFound (the library, or a function of it), FailedPrecondition (another version), Internal (ACL's
// words).
tensorflow::Status UseNpu(const std::string& runtime, const std::string& acl, int device);

// Null: there is none. Stays valid until the process ends.
const Npu* CurrentNpu();

// An error in one line: the call, its code, ACL's own words.
std::string NpuErrorText(const AutofuseNpuError& error);

// Says what failed and what to do, once in this process for each function of ACL that failed.
void WarnOfNpu(const std::string& kernel, const std::string& node, const AutofuseNpuError& error);
// Says, once for each kernel, that its node does not try it again.
void WarnOfNpuSwitchedOff(const std::string& kernel, int failures);
// Everything may be said again.
void ForgetNpuWarnings();

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_NPU_H_
