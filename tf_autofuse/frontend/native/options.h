// The switches that Python sets for the whole process.
#ifndef TF_AUTOFUSE_NATIVE_OPTIONS_H_
#define TF_AUTOFUSE_NATIVE_OPTIONS_H_

#include <atomic>

namespace autofuse {

struct Options {
  std::atomic<bool> strict{false};        // a failure of the plugin is an error of the session
  std::atomic<bool> dump{false};          // hand the graph before and after to Python
  std::atomic<bool> timing{false};        // count the kernels' run time
  std::atomic<bool> foreign_npu{false};   // a real npu_bridge is loaded: leave NpuOptimizer to it
  std::atomic<bool> allow_remote{false};  // fuse on other processes' devices too (they load the plugin)
};

// Never destroyed: sessions may outlive main().
inline Options& GlobalOptions() {
  static Options* options = new Options;
  return *options;
}

// The most bytes of freed tensors to keep, as Python says it for the graph that this thread is at.
inline unsigned long long& BytesToKeep() {
  thread_local unsigned long long bytes = 0;
  return bytes;
}

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_OPTIONS_H_
