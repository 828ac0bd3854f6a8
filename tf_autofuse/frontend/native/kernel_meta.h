// Kernel descriptions from Python.
#ifndef TF_AUTOFUSE_NATIVE_KERNEL_META_H_
#define TF_AUTOFUSE_NATIVE_KERNEL_META_H_

#include <string>

#include "kernel_registry.h"

namespace autofuse {

// Asks Python's resolver under the GIL. `*found` false: it has no kernel, or there is no resolver, or no
// Python.
tensorflow::Status ResolveKernel(const std::string& key, const std::string& asc_graph, bool* found,
                                 KernelMeta* meta);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_KERNEL_META_H_
