// See op_def_registry.h. Registrations of TensorFlow ops, kept by name.
#pragma once
#include <map>
#include <string>

namespace domi {
enum FrameworkType { CAFFE = 0, TENSORFLOW = 3 };
struct Operator;
inline int AutoMappingByOpFn(const Operator&, Operator&) { return 0; }

class OpRegistrationData {
 public:
  explicit OpRegistrationData(const char* type) : type_(type) {}
  OpRegistrationData& FrameworkType(domi::FrameworkType framework) { framework_ = framework; return *this; }
  OpRegistrationData& OriginOpType(const char* type) {
    if (framework_ == TENSORFLOW) {
      Known()[type] = type_;
    }
    return *this;
  }
  OpRegistrationData& ParseParamsByOperatorFn(int (*)(const Operator&, Operator&)) { return *this; }
  static std::map<std::string, std::string>& Known() {
    static std::map<std::string, std::string> ops;
    return ops;
  }

 private:
  std::string type_;
  domi::FrameworkType framework_ = CAFFE;
};
}  // namespace domi

#define AUTOFUSE_JOIN_(a, b) a##b
#define AUTOFUSE_JOIN(a, b) AUTOFUSE_JOIN_(a, b)
#define REGISTER_CUSTOM_OP(type) \
  static const ::domi::OpRegistrationData AUTOFUSE_JOIN(registration_, __COUNTER__) = \
      ::domi::OpRegistrationData(type)
