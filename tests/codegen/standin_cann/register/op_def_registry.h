// A stand-in for the headers of CANN that the host parts of exported operator projects include: only what
// they call, with CANN's names and types, and a registry that tests read. Nothing of CANN's own text.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fe {
class PlatFormInfos {
 public:
  uint64_t ub = 196352;
  uint32_t cores = 40;
};
}  // namespace fe

namespace ge {
using graphStatus = uint32_t;
constexpr graphStatus GRAPH_SUCCESS = 0;
constexpr graphStatus GRAPH_FAILED = 0xFFFFFFFF;
enum DataType {
  DT_FLOAT = 0, DT_FLOAT16 = 1, DT_INT8 = 2, DT_INT32 = 3, DT_UINT8 = 4, DT_INT16 = 6, DT_UINT16 = 7,
  DT_UINT32 = 8, DT_INT64 = 9, DT_UINT64 = 10, DT_DOUBLE = 11, DT_BOOL = 12, DT_BF16 = 27
};
enum Format { FORMAT_ND = 2 };
}  // namespace ge

namespace gert {
class Shape {
 public:
  size_t GetDimNum() const { return dims_.size(); }
  int64_t GetDim(size_t i) const { return dims_.at(i); }
  void SetDimNum(size_t n) { dims_.resize(n); }
  void SetDim(size_t i, int64_t dim) { dims_.at(i) = dim; }

 private:
  std::vector<int64_t> dims_;
};

class StorageShape {
 public:
  const Shape& GetStorageShape() const { return shape; }
  Shape shape;
};

class TilingData {
 public:
  void* GetData() { return bytes; }
  size_t GetCapacity() const { return capacity; }
  void SetDataSize(size_t size) { this->size = size; }
  alignas(8) unsigned char bytes[8192];
  size_t capacity = sizeof(bytes), size = 0;
};

class InferShapeContext {
 public:
  const Shape* GetInputShape(size_t i) const { return i < inputs.size() ? &inputs[i] : nullptr; }
  Shape* GetOutputShape(size_t i) { return i < outputs.size() ? &outputs[i] : nullptr; }
  std::vector<Shape> inputs, outputs;
};

class InferDataTypeContext {
 public:
  ge::graphStatus SetOutputDataType(size_t i, ge::DataType type) {
    types[i] = type;
    return ge::GRAPH_SUCCESS;
  }
  std::map<size_t, ge::DataType> types;
};

class TilingContext {
 public:
  const StorageShape* GetInputShape(size_t i) const { return i < inputs.size() ? &inputs[i] : nullptr; }
  fe::PlatFormInfos* GetPlatformInfo() { return &platform; }
  TilingData* GetRawTilingData() { return &data; }
  size_t* GetWorkspaceSizes(size_t count) {
    workspaces.resize(count);
    return workspaces.data();
  }
  ge::graphStatus SetBlockDim(uint32_t value) { block_dim = value; return ge::GRAPH_SUCCESS; }
  ge::graphStatus SetTilingKey(uint64_t value) { tiling_key = value; return ge::GRAPH_SUCCESS; }
  ge::graphStatus SetScheduleMode(uint32_t value) { schedule_mode = value; return ge::GRAPH_SUCCESS; }

  std::vector<StorageShape> inputs;
  fe::PlatFormInfos platform;
  TilingData data;
  std::vector<size_t> workspaces;
  uint32_t block_dim = 0, schedule_mode = 0;
  uint64_t tiling_key = ~uint64_t{0};
};
}  // namespace gert

namespace ops {
enum Option { REQUIRED };

class OpParamDef {
 public:
  OpParamDef& ParamType(Option) { return *this; }
  OpParamDef& DataType(std::vector<ge::DataType> types) { this->types = types; return *this; }
  OpParamDef& Format(std::vector<ge::Format> formats) { this->formats = formats; return *this; }
  OpParamDef& UnknownShapeFormat(std::vector<ge::Format>) { return *this; }
  std::vector<ge::DataType> types;
  std::vector<ge::Format> formats;
};

class OpAICoreDef {
 public:
  OpAICoreDef& SetTiling(ge::graphStatus (*function)(gert::TilingContext*)) {
    tiling = function;
    return *this;
  }
  void AddConfig(const char* soc) { socs.push_back(soc); }
  ge::graphStatus (*tiling)(gert::TilingContext*) = nullptr;
  std::vector<std::string> socs;
};

class OpDef {
 public:
  explicit OpDef(const char*) {}
  OpParamDef& Input(const char* name) { return Argument(name, &inputs); }
  OpParamDef& Output(const char* name) { return Argument(name, &outputs); }
  OpDef& SetInferShape(ge::graphStatus (*function)(gert::InferShapeContext*)) {
    shapes = function;
    return *this;
  }
  OpDef& SetInferDataType(ge::graphStatus (*function)(gert::InferDataTypeContext*)) {
    types = function;
    return *this;
  }
  OpAICoreDef& AICore() { return ai_core; }

  std::vector<std::string> inputs, outputs;
  std::map<std::string, OpParamDef> arguments;
  ge::graphStatus (*shapes)(gert::InferShapeContext*) = nullptr;
  ge::graphStatus (*types)(gert::InferDataTypeContext*) = nullptr;
  OpAICoreDef ai_core;

 private:
  OpParamDef& Argument(const char* name, std::vector<std::string>* names) {
    names->push_back(name);
    return arguments[name];
  }
};

inline std::map<std::string, OpDef>& Registry() {
  static std::map<std::string, OpDef> ops;
  return ops;
}

struct Registration {
  Registration(const char* name, const OpDef& op) { Registry().insert({name, op}); }
};
}  // namespace ops

#define OP_ADD(type) static const ::ops::Registration type##_registration(#type, type(#type))
