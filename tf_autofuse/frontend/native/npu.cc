#include "npu.h"

#include <dlfcn.h>

#include <atomic>
#include <mutex>
#include <set>

#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/strings/strcat.h"
#include "warning.h"

namespace autofuse {

using tensorflow::Status;
using tensorflow::errors::FailedPrecondition;
using tensorflow::errors::Internal;
using tensorflow::errors::NotFound;

namespace {

std::atomic<const Npu*> current{nullptr};

std::mutex warned_mu;
// Never destroyed: sessions may outlive main().
auto* warned = new std::set<std::string>;

bool First(const std::string& what) {
  std::lock_guard<std::mutex> lock(warned_mu);
  return warned->insert(what).second;
}

const char* Remedy(const std::string& call) {
  if (call == "aclrtMalloc" || call == "aclrtMallocHost") {
    return "leave more memory to this process (npu-smi info shows who uses the device)";
  }
  if (call == "aclrtBinaryLoadFromFile" || call == "aclrtBinaryGetFunction") {
    return "clear the kernel cache (python -m tf_autofuse cache clear), so that it is built again with this "
           "toolkit";
  }
  if (call == "enter" || call == "open") return "or run with AUTOFUSE_TARGET=host";
  return "see npu-smi info and the device's log (ASCEND_GLOBAL_LOG_LEVEL=1), or run with "
         "AUTOFUSE_TARGET=host";
}

}  // namespace

Status UseNpu(const std::string& runtime, const std::string& acl, int device) {
  // Kept as long as the process: tensors may live as long.
  void* library = dlopen(runtime.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return NotFound("the NPU runtime can't be loaded: ", reason == nullptr ? runtime.c_str() : reason);
  }
  Npu npu;
#define AUTOFUSE_NPU_FIND(type, name)                                                 \
  npu.name = reinterpret_cast<type>(dlsym(library, #name));                           \
  if (npu.name == nullptr) return NotFound("the NPU runtime ", runtime, " has no " #name);
  AUTOFUSE_NPU_FUNCTIONS(AUTOFUSE_NPU_FIND)
#undef AUTOFUSE_NPU_FIND
  if (npu.autofuse_npu_version() != AUTOFUSE_NPU_VERSION) {
    return FailedPrecondition("the NPU runtime ", runtime, " is of another version; clear the kernel cache");
  }
  AutofuseNpuError error = {};
  npu.handle = npu.autofuse_npu_open(acl.c_str(), device, &error);
  if (npu.handle == nullptr) return Internal(NpuErrorText(error));
  const Npu* known = current.load(std::memory_order_acquire);
  if (known == nullptr || known->handle != npu.handle) current.store(new Npu(npu), std::memory_order_release);
  return Status::OK();
}

const Npu* CurrentNpu() { return current.load(std::memory_order_acquire); }

std::string NpuErrorText(const AutofuseNpuError& error) {
  const std::string words = error.text;
  if (error.code == -1) return words;
  return tensorflow::strings::StrCat(error.call, " failed with code ", error.code, words.empty() ? "" : ": ",
                                     words);
}

void WarnOfNpu(const std::string& kernel, const std::string& node, const AutofuseNpuError& error) {
  if (!First(error.call)) return;
  Warn("kernel " + kernel + " (node " + node + ") did not run on the NPU: " + NpuErrorText(error) +
       "; its original ops ran instead, with TensorFlow's results. " + Remedy(error.call));
}

void WarnOfNpuSwitchedOff(const std::string& kernel, int failures) {
  if (!First("off " + kernel)) return;
  Warn(tensorflow::strings::StrCat("kernel ", kernel, " failed on the NPU ", failures,
                                   " times in a row: its original ops run for the rest of this session"));
}

void ForgetNpuWarnings() {
  std::lock_guard<std::mutex> lock(warned_mu);
  warned->clear();
}

}  // namespace autofuse
