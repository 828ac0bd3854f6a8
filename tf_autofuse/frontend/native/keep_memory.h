// Sessions whose CPU devices take the memory of large tensors from TensorMemory.
//
// A session that names the plugin in its config gets a CPU device that can do so; it does from the first
// graph on in which something was fused, for all ops, as a matrix product beside a fused op allocates as much
// as that. Other sessions, and a process that has chosen how memory is allocated, keep TensorFlow's device.
#ifndef TF_AUTOFUSE_NATIVE_KEEP_MEMORY_H_
#define TF_AUTOFUSE_NATIVE_KEEP_MEMORY_H_

#include "tensorflow/core/common_runtime/device_set.h"

namespace autofuse {

// The devices of this session that can, keep from now on at most so many bytes of freed memory (all sessions
// together; the latest limit counts). 0: they leave memory to malloc.
void KeepMemory(const tensorflow::DeviceSet& devices, tensorflow::uint64 limit);

// How many devices there are that can keep memory.
int KeepingDevices();

// The user's choice for malloc in this process, empty: none.
tensorflow::string ChosenMalloc();

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_KEEP_MEMORY_H_
