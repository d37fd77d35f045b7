// cuBLASLt behind one function. In the library's column-major terms a row-major
// out[rows, n] = x[rows, k] weight[n, k]^T is D (n x rows) = op(A) B with A = weight (k x n,
// transposed) and B = x (k x rows): no operand is ever moved or transposed in memory.
#include "ops/cuda/gemm.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "core/check.h"
#include "ops/cuda/gemm_choices.h"
#include "ops/cuda/gemm_product.h"
#include "ops/cuda/gemm_timing.h"

namespace fovea::cuda {

namespace {

constexpr int kMaxCandidates = 24;
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
    : identity_(identity_of(device_index)),
      choices_path_(std::move(choices_path)),
      choices_(load_gemm_choices(choices_path_, identity_)) {
  const DeviceGuard guard(device_index);
  cublasLtHandle_t handle = nullptr;
  FOVEA_CUDA_CHECK(cublasLtCreate(&handle));
  library_ = UniqueCublasLt(handle);
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
  const GemmProduct product(gemm);
  const std::size_t scratch = stream.library_scratch().size();
  const std::vector<cublasLtMatmulAlgo_t> candidates =
      product.candidates(library_.get(), key.alignment, scratch, kMaxCandidates);
  FOVEA_CHECK(!candidates.empty(), kUnsupported, "cuBLASLt has no algorithm for a product of ",
              gemm.rows, " x ", gemm.in_features, " by ", gemm.out_features, " x ",
              gemm.in_features);
  if (candidates.size() == 1 || stream.is_capturing()) return {candidates.front(), gemm.rows};
  const GemmChoice choice{fastest_algorithm(library_.get(), stream, gemm, candidates), gemm.rows};
  keep(key, choice);
  return choice;
}

void GemmLibrary::run(CudaStream& stream, const Gemm& gemm) {
  const DeviceGuard guard(stream.device_index());
  const GemmProduct product(gemm);
  const GemmKey key{.rows_class = rows_class(gemm.rows),
                    .in_features = gemm.in_features,
                    .out_features = gemm.out_features,
                    .out_stride = gemm.out_stride,
                    .epilogue = product.epilogue(),
                    .residual = gemm.residual != nullptr,
                    .alignment = common_alignment(gemm)};
  std::optional<GemmChoice> choice = find(key);
  // A choice made for another row count of the class may demand what this one does not have.
  if (choice && choice->rows != gemm.rows &&
      !product.accepts(library_.get(), choice->algorithm, stream.library_scratch().size())) {
    choice.reset();
  }
  if (!choice) choice = choose(stream, gemm, key);
  product.run(library_.get(), gemm, choice->algorithm, stream);
}

}  // namespace fovea::cuda
