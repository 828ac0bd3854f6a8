// What the native side tells the user: one line on stderr, whatever TensorFlow's log level is. Who calls it
// sees to it that the same thing is said once.
#ifndef TF_AUTOFUSE_NATIVE_WARNING_H_
#define TF_AUTOFUSE_NATIVE_WARNING_H_

#include <cstdio>
#include <string>

namespace autofuse {

// One write, so that lines of several threads don't mix.
inline void Warn(const std::string& text) {
  const std::string line = "tf_autofuse: " + text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_WARNING_H_
