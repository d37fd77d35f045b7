// Matrix products behind one function: measures what there is for a shape and remembers the best.
#include "ops/cuda/gemm.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "core/check.h"
#include "ops/cuda/gemm_choices.h"
#include "ops/cuda/gemm_hopper.h"
#include "ops/cuda/gemm_product.h"
#include "ops/cuda/gemm_timing.h"

namespace fovea::cuda {

namespace {

constexpr int kMaxCandidates = 16;  // of the library
constexpr std::size_t kMaxOwnCandidates = 10;
/// How much slower than the library an own kernel may be measured and still be chosen: it leaves
/// out rows that are not live.
constexpr float kOwnAdvantage = 1.02f;
constexpr std::int64_t kSmallestClass = 64;

/// Rows rounded up to a multiple of an eighth of their octave, at least 64.
std::int64_t rows_class(std::int64_t rows) {
  const auto octave = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(rows, 1))));
  const std::int64_t step = std::max(kSmallestClass, octave / 16);
  return (rows + step - 1) / step * step;
}

/// Largest power of two up to 16 that divides every operand's address.
int common_alignment(const Gemm& gemm) {
  std::uintptr_t bits = 16;
  for (const std::byte* operand :
       {gemm.x, gemm.weight, gemm.bias, gemm.residual, static_cast<const std::byte*>(gemm.out)}) {
    bits |= reinterpret_cast<std::uintptr_t>(operand);
  }
  return 1 << std::countr_zero(bits);
}

std::string identity_of(int device_index) {
  cudaDeviceProp properties{};
  FOVEA_CUDA_CHECK(cudaGetDeviceProperties(&properties, device_index));
  return cat(properties.name, ", ", properties.multiProcessorCount, " multiprocessors, cuBLASLt ",
             cublasLtGetVersion());
}

}  // namespace

GemmLibrary::GemmLibrary(int device_index, std::string choices_path)
    : own_(std::make_unique<const HopperGemm>(device_index)),
      identity_(identity_of(device_index)),
      choices_path_(std::move(choices_path)),
      choices_(load_gemm_choices(choices_path_, identity_)) {
  const DeviceGuard guard(device_index);
  cublasLtHandle_t handle = nullptr;
  FOVEA_CUDA_CHECK(cublasLtCreate(&handle));
  library_ = UniqueCublasLt(handle);
}

GemmLibrary::~GemmLibrary() = default;

bool GemmLibrary::accepts(const Gemm& gemm) {
  return GemmProduct::has_epilogue(gemm) || HopperGemm::accepts(gemm);
}

std::optional<GemmChoice> GemmLibrary::find(const GemmKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = choices_.find(key);
  if (found == choices_.end()) return std::nullopt;
  return found->second;
}

void GemmLibrary::keep(const GemmKey& key, const GemmChoice& choice) {
  const std::scoped_lock lock(mutex_);
  choices_[key] = choice;
  save_gemm_choices(choices_path_, identity_, choices_);
}

GemmChoice GemmLibrary::choose(CudaStream& stream, const Gemm& gemm, const GemmKey& key) {
  std::vector<GemmChoice> candidates;
  if (HopperGemm::accepts(gemm)) {
    for (const HopperGemmPlan& plan : own_->candidates(gemm)) {
      if (candidates.size() == kMaxOwnCandidates) break;
      candidates.push_back({.own = plan, .rows = gemm.rows});
    }
  }
  if (GemmProduct::has_epilogue(gemm)) {
    const GemmProduct product(gemm);
    const std::size_t scratch = stream.library_scratch().size();
    for (const cublasLtMatmulAlgo_t& algorithm :
         product.candidates(library_.get(), key.alignment, scratch, kMaxCandidates)) {
      candidates.push_back({.algorithm = algorithm, .rows = gemm.rows});
    }
  }
  FOVEA_CHECK(!candidates.empty(), kUnsupported, "cuBLASLt has no algorithm for a product of ",
              gemm.rows, " x ", gemm.in_features, " by ", gemm.out_features, " x ",
              gemm.in_features);
  if (candidates.size() == 1 || stream.is_capturing()) return candidates.front();
  const GemmChoice choice = fastest(stream, gemm, candidates);
  keep(key, choice);
  return choice;
}

GemmChoice GemmLibrary::fastest(CudaStream& stream, const Gemm& gemm,
                                std::span<const GemmChoice> candidates) const {
  GemmStopwatch stopwatch(stream, gemm);
  if (!stopwatch.is_ready()) return candidates.front();
  const GemmChoice* fastest = &candidates.front();
  float shortest_ms = std::numeric_limits<float>::infinity();
  for (const GemmChoice& candidate : candidates) {
    float ms =
        stopwatch.measure([&](const Gemm& trial) { run(stream, trial, candidate); }, shortest_ms);
    if (candidate.own.kernel == nullptr) ms *= kOwnAdvantage;
    if (ms < shortest_ms) {
      shortest_ms = ms;
      fastest = &candidate;
    }
  }
  return *fastest;
}

void GemmLibrary::run(CudaStream& stream, const Gemm& gemm, const GemmChoice& choice) const {
  if (choice.own.kernel != nullptr) return own_->run(stream, gemm, choice.own);
  GemmProduct(gemm).run(library_.get(), gemm, choice.algorithm, stream);
}

void GemmLibrary::run(CudaStream& stream, const Gemm& gemm) {
  const DeviceGuard guard(stream.device_index());
  const GemmKey key{.rows_class = rows_class(gemm.rows),
                    .in_features = gemm.in_features,
                    .out_features = gemm.out_features,
                    .out_stride = gemm.out_stride,
                    .activation = static_cast<int>(gemm.activation),
                    .bias = gemm.bias != nullptr,
                    .residual = gemm.residual != nullptr,
                    .alignment = common_alignment(gemm)};
  std::optional<GemmChoice> choice = find(key);
  // An algorithm chosen for another row count of the class may demand what this one does not have.
  if (choice && choice->own.kernel == nullptr && choice->rows != gemm.rows &&
      !GemmProduct(gemm).accepts(library_.get(), choice->algorithm,
                                 stream.library_scratch().size())) {
    choice.reset();
  }
  if (!choice) choice = choose(stream, gemm, key);
  run(stream, gemm, *choice);
}

}  // namespace fovea::cuda
