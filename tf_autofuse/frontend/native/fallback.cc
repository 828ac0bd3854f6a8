#include "fallback.h"

#include <string>

#include "edits.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/core/notification.h"

namespace autofuse {

using tensorflow::FunctionLibraryRuntime;
using tensorflow::Status;
using tensorflow::Tensor;

namespace {

// TensorFlow puts "{{function_node NAME}} " before an error out of a function. The user knows no such
// function.
Status WithoutFunctionName(const Status& status) {
  std::string text = status.error_message();
  const std::string mark = std::string("{{function_node ") + kFallbackPrefix;
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    size_t end = text.find("}}", at);
    if (end == std::string::npos) break;
    end += 2;
    if (end < text.size() && text[end] == ' ') ++end;
    text.erase(at, end - at);
  }
  return Status(status.code(), text);
}

}  // namespace

Status Fallback::Instantiate(FunctionLibraryRuntime* library, FunctionLibraryRuntime::Handle* handle) {
  std::lock_guard<std::mutex> lock(mu_);
  for (const auto& known : handles_) {
    if (known.first == library) {
      *handle = known.second;
      return Status::OK();
    }
  }
  TF_RETURN_IF_ERROR(
      library->Instantiate(function_.name(), tensorflow::AttrSlice(&function_.attr()), handle));
  handles_.push_back({library, *handle});
  return Status::OK();
}

Status Fallback::Run(tensorflow::OpKernelContext* ctx, const std::vector<Tensor>& arguments,
                     std::vector<Tensor>* results) {
  FunctionLibraryRuntime* library = ctx->function_library();
  if (library == nullptr) {
    return tensorflow::errors::FailedPrecondition("the original ops of ", ctx->op_kernel().name(),
                                                  " can't run here: there is no function library");
  }
  FunctionLibraryRuntime::Handle handle;
  TF_RETURN_IF_ERROR(Instantiate(library, &handle));

  std::function<void(std::function<void()>)> inline_runner = [](std::function<void()> closure) { closure(); };
  // A failing function cancels its manager; the step's own would mark the error as a mere consequence of
  // another one.
  tensorflow::CancellationManager cancellation;
  tensorflow::CancellationManager* outer = ctx->cancellation_manager();
  tensorflow::CancellationToken token = 0;
  if (outer != nullptr) {
    token = outer->get_cancellation_token();
    if (!outer->RegisterCallback(token, [&cancellation] { cancellation.StartCancel(); })) {
      return tensorflow::errors::Cancelled("the step was cancelled before ", ctx->op_kernel().name());
    }
  }
  FunctionLibraryRuntime::Options options;
  options.cancellation_manager = &cancellation;
  options.step_container = ctx->step_container();
  options.stats_collector = ctx->stats_collector();
  options.runner = &inline_runner;
  tensorflow::Notification done;
  Status status;
  library->Run(options, handle, arguments, results, [&status, &done](const Status& result) {
    status = result;
    done.Notify();
  });
  done.WaitForNotification();
  if (outer != nullptr) outer->DeregisterCallback(token);
  if (!status.ok()) return WithoutFunctionName(status);
  return Status::OK();
}

}  // namespace autofuse
