// Calls what an exported project registers, for tests: every function with a C interface over dims.
#include <cstdint>
#include <cstring>

#include "register/op_def_registry.h"
#include "register/register.h"

#pragma GCC visibility push(default)

namespace {

const ops::OpDef* Find(const char* type) {
  const auto found = ops::Registry().find(type);
  return found == ops::Registry().end() ? nullptr : &found->second;
}

// dims: rank, then the dims, of one input after the other.
gert::Shape Next(const int64_t** dims) {
  gert::Shape shape;
  shape.SetDimNum(static_cast<size_t>(*(*dims)++));
  for (size_t i = 0; i < shape.GetDimNum(); ++i) {
    shape.SetDim(i, *(*dims)++);
  }
  return shape;
}

}  // namespace

extern "C" int64_t op_count() { return static_cast<int64_t>(ops::Registry().size()); }

extern "C" int64_t argument_type(const char* type, int32_t output, int32_t i) {
  const ops::OpDef* op = Find(type);
  const auto& names = output ? op->outputs : op->inputs;
  if (static_cast<size_t>(i) >= names.size()) {
    return -1;
  }
  const ops::OpParamDef& argument = op->arguments.at(names[i]);
  return argument.types.size() == 1 && argument.formats.size() == 1 ? argument.types[0] : -2;
}

extern "C" int64_t infers_type(const char* type, int32_t output) {
  gert::InferDataTypeContext context;
  Find(type)->types(&context);
  return context.types.at(output);
}

extern "C" int32_t is_for(const char* type, const char* soc) {
  const ops::OpAICoreDef& core = const_cast<ops::OpDef*>(Find(type))->AICore();
  return core.socs.size() == 1 && core.socs[0] == soc;
}

extern "C" int32_t parses(const char* type) {
  const auto& known = domi::OpRegistrationData::Known();
  return known.count(type) && known.at(type) == type;
}

extern "C" int32_t infer(const char* type, const int64_t* dims, int32_t outputs, int64_t* out) {
  const ops::OpDef* op = Find(type);
  gert::InferShapeContext context;
  for (size_t i = 0; i < op->inputs.size(); ++i) {
    context.inputs.push_back(Next(&dims));
  }
  context.outputs.resize(outputs);
  if (op->shapes(&context) != ge::GRAPH_SUCCESS) {
    return 1;
  }
  for (const gert::Shape& shape : context.outputs) {
    *out++ = static_cast<int64_t>(shape.GetDimNum());
    for (size_t i = 0; i < shape.GetDimNum(); ++i) {
      *out++ = shape.GetDim(i);
    }
  }
  return 0;
}

// numbers: block dim, tiling key, workspace without the library's part, bytes of tiling data, schedule mode.
extern "C" int32_t tiling(const char* type, const int64_t* dims, uint32_t cores, uint64_t ub,
                          uint64_t capacity, uint8_t* data, int64_t* numbers) {
  ops::OpDef* op = const_cast<ops::OpDef*>(Find(type));
  gert::TilingContext context;
  for (size_t i = 0; i < op->inputs.size(); ++i) {
    context.inputs.push_back(gert::StorageShape{Next(&dims)});
  }
  context.platform.cores = cores;
  context.platform.ub = ub;
  context.data.capacity = capacity;
  if (op->AICore().tiling(&context) != ge::GRAPH_SUCCESS) {
    return 1;
  }
  std::memcpy(data, context.data.bytes, context.data.size);
  numbers[0] = context.block_dim;
  numbers[1] = static_cast<int64_t>(context.tiling_key);
  numbers[2] = static_cast<int64_t>(context.workspaces.at(0)) - (16 << 20);
  numbers[3] = static_cast<int64_t>(context.data.size);
  numbers[4] = context.schedule_mode;
  return 0;
}
