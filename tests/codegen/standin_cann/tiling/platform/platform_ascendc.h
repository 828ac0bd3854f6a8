// See register/op_def_registry.h.
#pragma once
#include "register/op_def_registry.h"

namespace platform_ascendc {
enum class CoreMemType { L0_A, L0_B, L0_C, L1, L2, UB, HBM };

class PlatformAscendC {
 public:
  explicit PlatformAscendC(fe::PlatFormInfos* infos) : infos_(infos) {}
  uint32_t GetCoreNumAiv() const { return infos_->cores; }
  void GetCoreMemSize(const CoreMemType& type, uint64_t& size) const {
    size = type == CoreMemType::UB ? infos_->ub : 0;
  }
  uint32_t GetLibApiWorkSpaceSize() const { return 16u << 20; }

 private:
  fe::PlatFormInfos* infos_;
};
}  // namespace platform_ascendc
