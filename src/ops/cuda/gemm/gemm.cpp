// Matrix products behind one function: measures what there is for a shape and remembers the best.
#include "ops/cuda/gemm/gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/check.h"
#include "core/fnv1a.h"
#include "device/cuda/cuda_device.h"
#include "ops/cuda/gemm/choices.h"
#include "ops/cuda/gemm/cublaslt.h"
#include "ops/cuda/gemm/hopper/hopper_gemm.h"
#include "ops/cuda/gemm/timing.h"
#include "ops/cuda/gemm/unfused.h"

namespace fovea::cuda {

namespace {

constexpr std::int64_t kElementBytes = 2;  // bf16
constexpr int kMaxCandidates = 16;         // of the library
constexpr std::size_t kMaxOwnCandidates = 12;
constexpr std::size_t kFinalists = 4;
/// How much slower than the library an own kernel may be measured and still be chosen: it leaves
/// out rows that are not live.
constexpr float kOwnAdvantage = 1.02f;
constexpr std::int64_t kSmallestClass = 64;
/// Between two writes of the file of choices: measuring one takes less time than a write may.
constexpr std::chrono::seconds kSaveInterval{2};

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

GemmKey key_of(const Gemm& gemm, std::int64_t rows, bool is_class) {
  return {.rows = rows,
          .is_class = is_class,
          .in_features = gemm.in_features,
          .out_features = gemm.out_features,
          .out_stride = gemm.out_stride,
          .activation = static_cast<int>(gemm.activation),
          .bias = gemm.bias != nullptr,
          .residual = gemm.residual != nullptr,
          .head_dim = head_dim_of(gemm),
          .alignment = common_alignment(gemm)};
}

std::string identity_of(int device_index) {
  cudaDeviceProp properties{};
  FOVEA_CUDA_CHECK(cudaGetDeviceProperties(&properties, device_index));
  return cat(properties.name, ", ", properties.multiProcessorCount, " multiprocessors, ",
             software_versions());
}

std::string path_in(const std::string& cache_dir, const std::string& identity) {
  if (cache_dir.empty()) return "";
  return cat(cache_dir, "/gemm-", std::hex, fnv1a(identity), ".txt");
}

}  // namespace

Gemm gemm_of(const ops::LinearArgs& args, bool is_recorded) {
  return {.rows = args.x.shape[0],
          .in_features = args.weight.in_features,
          .out_features = args.weight.out_features,
          .x = args.x.data,
          .weight = args.weight.weight.data(),
          .bias = args.weight.has_bias ? args.weight.bias.data() : nullptr,
          .residual = args.residual.data,
          .activation = args.activation,
          .out = args.out.data + args.out_column * kElementBytes,
          .out_stride = args.out.shape[1],
          .live = args.rows.count,
          .is_recorded = is_recorded};
}

GemmLibrary::GemmLibrary(int device_index, const std::string& cache_dir)
    : own_(std::make_unique<const HopperGemm>(device_index)),
      identity_(identity_of(device_index)),
      choices_path_(path_in(cache_dir, identity_)),
      choices_(load_gemm_choices(choices_path_, identity_)) {
  const DeviceGuard guard(device_index);
  cublasLtHandle_t handle = nullptr;
  FOVEA_CUDA_CHECK(cublasLtCreate(&handle));
  library_ = UniqueCublasLt(handle);
  FOVEA_CUDA_CHECK(
      cudaDeviceGetAttribute(&num_multiprocessors_, cudaDevAttrMultiProcessorCount, device_index));
}

GemmLibrary::~GemmLibrary() {
  if (is_saved_) return;
  try {
    save_gemm_choices(choices_path_, identity_, choices_);
  } catch (...) {
    return;  // what was measured will be measured again
  }
}

std::optional<GemmChoice> GemmLibrary::find(const GemmKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = choices_.find(key);
  if (found == choices_.end()) return std::nullopt;
  return found->second;
}

void GemmLibrary::keep(const GemmKey& key, const GemmChoice& choice) {
  std::map<GemmKey, GemmChoice> known;
  {
    const std::scoped_lock lock(mutex_);
    choices_[key] = choice;
    is_saved_ = false;
    const auto now = std::chrono::steady_clock::now();
    if (now - saved_at_ < kSaveInterval) return;
    known = choices_;
    is_saved_ = true;
    saved_at_ = now;
  }
  save_gemm_choices(choices_path_, identity_, known);  // products of other threads do not wait
}

std::vector<GemmChoice> GemmLibrary::candidates(CudaStream& stream, const Gemm& gemm) const {
  std::vector<GemmChoice> candidates;
  if (HopperGemm::accepts(gemm)) {
    for (const HopperGemmPlan& plan : own_->candidates(gemm)) {
      if (candidates.size() == kMaxOwnCandidates) break;
      candidates.push_back({.way = GemmChoice::Way::kOwn, .own = plan, .rows = gemm.rows});
    }
  }
  if (gemm.attention != nullptr) return candidates;
  if (!GemmProduct::has_epilogue(gemm)) {
    // One rounding more: only where there is no other way.
    if (candidates.empty())
      candidates.push_back({.way = GemmChoice::Way::kUnfused, .rows = gemm.rows});
    return candidates;
  }
  for (const cublasLtMatmulAlgo_t& algorithm :
       GemmProduct(gemm).candidates(library_.get(), common_alignment(gemm),
                                    stream.library_scratch().size(), kMaxCandidates)) {
    candidates.push_back(
        {.way = GemmChoice::Way::kLibrary, .algorithm = algorithm, .rows = gemm.rows});
  }
  FOVEA_CHECK(!candidates.empty(), kUnsupported, "cuBLASLt has no algorithm for a product of ",
              gemm.rows, " x ", gemm.in_features, " by ", gemm.out_features, " x ",
              gemm.in_features);
  return candidates;
}

GemmChoice GemmLibrary::choose(CudaStream& stream, const Gemm& gemm) {
  // An algorithm chosen for another row count of the class may demand what this one does not have.
  const auto find_fitting = [&](const GemmKey& key) {
    std::optional<GemmChoice> choice = find(key);
    const bool fits =
        choice && (choice->way != GemmChoice::Way::kLibrary || choice->rows == gemm.rows ||
                   GemmProduct(gemm).accepts(library_.get(), choice->algorithm,
                                             stream.library_scratch().size()));
    return fits ? choice : std::nullopt;
  };
  const GemmKey very_key = key_of(gemm, gemm.rows, false);
  const GemmKey class_key = key_of(gemm, rows_class(gemm.rows), true);
  if (const auto known = find_fitting(very_key)) return *known;
  const bool may_measure = !stream.is_capturing();
  const std::optional<GemmChoice> of_class = find_fitting(class_key);
  if (of_class && !(gemm.is_recorded && may_measure)) return *of_class;
  const std::vector<GemmChoice> possible = candidates(stream, gemm);
  if (possible.size() == 1 || !may_measure) return possible.front();
  const GemmChoice choice = fastest(stream, gemm, possible);
  keep(very_key, choice);
  if (!of_class) keep(class_key, choice);
  return choice;
}

GemmChoice GemmLibrary::fastest(CudaStream& stream, const Gemm& gemm,
                                std::span<const GemmChoice> candidates) {
  struct Timed {
    const GemmChoice* choice;
    float ms;
  };
  GemmChoice promising = candidates.front();
  promising.is_measured = false;
  GemmStopwatch stopwatch(stream, gemm);
  if (!stopwatch.is_ready()) return promising;
  const auto measure = [&](const GemmChoice& choice, float give_up_ms) {
    const float ms =
        stopwatch.measure([&](const Gemm& trial) { run(stream, trial, choice); }, give_up_ms);
    return choice.way == GemmChoice::Way::kOwn ? ms : ms * kOwnAdvantage;
  };
  std::vector<Timed> timed;
  float shortest_ms = std::numeric_limits<float>::infinity();
  for (const GemmChoice& candidate : candidates) {
    timed.push_back({&candidate, measure(candidate, shortest_ms)});
    shortest_ms = std::min(shortest_ms, timed.back().ms);
  }
  // The first were measured while the clocks were still rising: the best compete once more.
  std::ranges::stable_sort(timed, {}, &Timed::ms);
  timed.resize(std::min(timed.size(), kFinalists));
  for (Timed& finalist : timed) finalist.ms = measure(*finalist.choice, finalist.ms);
  const Timed& best = *std::ranges::min_element(timed, {}, &Timed::ms);
  return std::isfinite(best.ms) ? *best.choice : promising;
}

void GemmLibrary::run(CudaStream& stream, const Gemm& gemm, const GemmChoice& choice) {
  switch (choice.way) {
    case GemmChoice::Way::kOwn: return own_->run(stream, gemm, choice.own);
    case GemmChoice::Way::kLibrary:
      return GemmProduct(gemm).run(library_.get(), gemm, choice.algorithm, stream);
    case GemmChoice::Way::kUnfused:
      return run_unfused(stream, gemm, num_multiprocessors_,
                         [&](const Gemm& plain) { run(stream, plain); });
  }
}

void GemmLibrary::run(CudaStream& stream, const Gemm& gemm) {
  const DeviceGuard guard(stream.device_index());
  run(stream, gemm, choose(stream, gemm));
}

}  // namespace fovea::cuda
