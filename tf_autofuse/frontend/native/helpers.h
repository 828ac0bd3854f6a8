// The threads that help a calling thread with the blocks of its launch.
//
// Not the session's intra-op pool: a task handed to it wakes one thread while another one, that still looks
// for work, takes it, and on few cores the woken one then runs in the caller's place. Here a launch takes the
// threads that are free and wakes these alone; one that has just worked looks out for the next launch for
// some microseconds, giving way to any thread that wants its core, before it sleeps.
#ifndef TF_AUTOFUSE_NATIVE_HELPERS_H_
#define TF_AUTOFUSE_NATIVE_HELPERS_H_

namespace autofuse {

// Work that any number of threads may do at once, each until nothing is left.
class SharedWork {
 public:
  virtual void Work() = 0;

 protected:
  ~SharedWork() = default;
};

// Does `work` on the calling thread and on up to `threads - 1` helpers that are free, with the calling
// thread's floating-point mode. On return nobody is in `work`; a helper that has not begun by then does not.
void WorkTogether(SharedWork* work, int threads);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_HELPERS_H_
