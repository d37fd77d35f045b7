// GEMMs behind one function: measures what there is for a shape and remembers the best.
#include "ops/cuda/gemm/gemm.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/check.h"
#include "core/fnv1a.h"
#include "device/cuda/cuda_device.h"
#include "ops/cuda/gemm/choice_table.h"
#include "ops/cuda/gemm/cublaslt.h"
#include "ops/cuda/gemm/hopper/hopper_gemm.h"
#include "ops/cuda/gemm/timing.h"
#include "ops/cuda/gemm/unfused.h"

namespace fovea::cuda {

namespace {

constexpr std::size_t kMaxOwnCandidates = 12;
constexpr std::size_t kMaxLibraryCandidates = 16;
constexpr std::size_t kMaxCandidates = kMaxOwnCandidates + kMaxLibraryCandidates;
constexpr std::size_t kFinalists = 4;
/// How much slower than the library an own kernel may be measured and still be chosen: a node of
/// the library waits for its predecessor to end before it starts up.
constexpr float kOwnAdvantage = 1.02f;
/// How much slower than the fastest a candidate may look at first and still be measured again.
constexpr float kWorthASecondLook = 1.15f;
/// In so many rounds finalists take turns: clocks and power drift while they are measured.
constexpr int kRounds = 3;

/// Largest power of two up to 16 that divides every operand's address.
int common_alignment(const Gemm& gemm) {
  std::uintptr_t bits = 16;
  for (const std::byte* operand :
       {gemm.x, gemm.weight, gemm.bias, gemm.residual, static_cast<const std::byte*>(gemm.out)}) {
    bits |= reinterpret_cast<std::uintptr_t>(operand);
  }
  return 1 << std::countr_zero(bits);
}

GemmKey key_of(const Gemm& gemm) {
  return {.in_features = gemm.in_features,
          .out_features = gemm.out_features,
          .out_stride = gemm.out_stride,
          .activation = static_cast<int>(gemm.activation),
          .bias = gemm.bias != nullptr,
          .residual = gemm.residual != nullptr,
          .head_dim = head_dim_of(gemm),
          .format = static_cast<int>(gemm.format),
          .alignment = common_alignment(gemm),
          .rows = gemm.rows};
}

struct Timed {
  const GemmChoice* choice;
  float ms;
};
using WayOf = std::function<GemmStopwatch::Way(const GemmChoice&)>;

/// What a measured time counts for.
float penalty_of(const GemmChoice& choice) {
  return choice.way == GemmChoice::Way::kOwn ? 1.0f : kOwnAdvantage;
}

/// The candidates that are fastest at a glance, fastest first; none if all fail.
std::vector<Timed> finalists_of(GemmStopwatch& stopwatch, std::span<const GemmChoice> candidates,
                                const WayOf& way_of) {
  std::vector<Timed> timed;
  float shortest_ms = std::numeric_limits<float>::infinity();
  for (const GemmChoice& candidate : candidates) {
    const float ms = stopwatch.glance(way_of(candidate), shortest_ms) * penalty_of(candidate);
    timed.push_back({&candidate, ms});
    shortest_ms = std::min(shortest_ms, ms);
  }
  std::erase_if(timed, [&](const Timed& t) {
    return !std::isfinite(t.ms) || t.ms > kWorthASecondLook * shortest_ms;
  });
  std::ranges::stable_sort(timed, {}, &Timed::ms);
  timed.resize(std::min(timed.size(), kFinalists));
  return timed;
}

/// Times of the finalists, each relative to the fastest: medians over rounds in which they take
/// turns.
std::vector<float> relative_times(GemmStopwatch& stopwatch,
                                  std::span<const std::unique_ptr<RecordedGraph>> finalists) {
  std::vector<std::array<float, kRounds>> rounds(finalists.size());
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < finalists.size(); ++i)
      rounds[i][static_cast<std::size_t>(round)] = stopwatch.measure(*finalists[i]);
  }
  std::vector<float> medians;
  for (auto& times : rounds) {
    std::ranges::nth_element(times, times.begin() + kRounds / 2);
    medians.push_back(times[kRounds / 2]);
  }
  const float fastest = std::ranges::min(medians);
  for (float& ms : medians) ms /= fastest;
  return medians;
}

std::string identity_of(const SmPartition& sms) {
  cudaDeviceProp properties{};
  FOVEA_CUDA_CHECK(cudaGetDeviceProperties(&properties, sms.device_index()));
  return cat(properties.name, ", ", sms.num_sms(), " multiprocessors, ", software_versions());
}

std::string path_in(const std::string& cache_dir, const std::string& identity) {
  if (cache_dir.empty()) return "";
  return cat(cache_dir, "/gemm-", std::hex, fnv1a(identity), ".txt");
}

}  // namespace

Gemm gemm_of(const ops::LinearArgs& args, bool is_recorded) {
  const bool is_fp8 = args.weight.dtype == DType::kF8E4M3;
  return {.rows = args.x.shape[0],
          .in_features = args.weight.in_features,
          .out_features = args.weight.out_features,
          .x = args.x.data,
          .weight = args.weight.weight.data(),
          .bias = args.weight.has_bias ? args.weight.bias.data() : nullptr,
          .residual = args.residual.data,
          .activation = args.activation,
          .out = args.out.data + args.out_column * kBf16Bytes,
          .out_stride = args.out.shape[1],
          .live = args.rows.count,
          .is_recorded = is_recorded,
          .format = is_fp8 ? GemmFormat::kFp8 : GemmFormat::kBf16,
          .scales = {.weight = reinterpret_cast<const float*>(args.weight.scale.data()),
                     .largest_row = args.weight.largest_row,
                     .largest_bias = args.weight.largest_bias}};
}

GemmLibrary::GemmLibrary(const SmPartition& sms, const std::string& cache_dir,
                         bool has_hopper_kernels)
    : own_(has_hopper_kernels ? std::make_unique<const HopperGemm>(sms) : nullptr),
      num_sms_(sms.num_sms()) {
  const std::string identity = identity_of(sms);
  choices_ = std::make_unique<GemmChoiceTable>(path_in(cache_dir, identity), identity);
  const DeviceGuard guard(sms.device_index());
  cublasLtHandle_t handle = nullptr;
  FOVEA_CUDA_CHECK(cublasLtCreate(&handle));
  library_ = UniqueCublasLt(handle);
}

GemmLibrary::~GemmLibrary() = default;

bool GemmLibrary::has_own(const Gemm& gemm) const {
  return own_ != nullptr && HopperGemm::accepts(gemm);
}

namespace {

/// Whether only kernels of ours can compute it.
bool is_ours(const Gemm& gemm) { return gemm.heads != nullptr || gemm.format != GemmFormat::kBf16; }

}  // namespace

std::vector<GemmChoice> GemmLibrary::candidates(CudaStream& stream, const Gemm& gemm,
                                                std::size_t most) const {
  std::vector<GemmChoice> candidates;
  if (has_own(gemm)) {
    for (const HopperGemmPlan& plan : own_->candidates(gemm)) {
      if (candidates.size() == std::min(most, kMaxOwnCandidates)) break;
      candidates.push_back({.way = GemmChoice::Way::kOwn, .own = plan, .rows = gemm.rows});
    }
  }
  if (is_ours(gemm) || candidates.size() == most) return candidates;
  if (!CublasLtMatmul::has_epilogue(gemm)) {
    // One rounding more: only where there is no other way.
    if (candidates.empty())
      candidates.push_back({.way = GemmChoice::Way::kUnfused, .rows = gemm.rows});
    return candidates;
  }
  const std::size_t at_most = std::min(most - candidates.size(), kMaxLibraryCandidates);
  for (const cublasLtMatmulAlgo_t& algorithm :
       CublasLtMatmul(gemm, num_sms_)
           .candidates(library_.get(), common_alignment(gemm), stream.library_scratch().size(),
                       static_cast<int>(at_most))) {
    candidates.push_back(
        {.way = GemmChoice::Way::kLibrary, .algorithm = algorithm, .rows = gemm.rows});
  }
  FOVEA_CHECK(!candidates.empty(), kUnsupported, "cuBLASLt has no algorithm for a GEMM of ",
              gemm.rows, " x ", gemm.in_features, " by ", gemm.out_features, " x ",
              gemm.in_features);
  return candidates;
}

bool GemmLibrary::fits(CudaStream& stream, const Gemm& gemm, const GemmChoice& choice) const {
  if (choice.way == GemmChoice::Way::kOwn) return own_ != nullptr;
  if (choice.way == GemmChoice::Way::kUnfused) return true;
  if (is_ours(gemm)) return false;
  // An algorithm chosen for another row count may demand what this one does not have.
  return choice.rows == gemm.rows ||
         CublasLtMatmul(gemm, num_sms_)
             .accepts(library_.get(), choice.algorithm, stream.library_scratch().size());
}

GemmChoice GemmLibrary::choose(CudaStream& stream, const Gemm& gemm) {
  const GemmKey key = key_of(gemm);
  const auto is_fit = [&](const GemmChoice& choice) { return fits(stream, gemm, choice); };
  if (!gemm.is_recorded || stream.is_capturing()) {
    const auto cost = [&](const GemmChoice& choice) -> std::optional<double> {
      if (choice.way != GemmChoice::Way::kOwn) return std::nullopt;
      return own_->cycles(gemm, choice.own);
    };
    const auto guess = [&] { return candidates(stream, gemm, 1).front(); };
    return choices_->take(key, {.fits = is_fit, .cost = cost, .guess = guess});
  }
  const std::optional<GemmChoice> known = choices_->find(key);
  if (known && is_fit(*known)) return *known;
  const std::vector<GemmChoice> possible = candidates(stream, gemm, kMaxCandidates);
  if (possible.size() == 1) return possible.front();
  const GemmChoice choice = fastest(stream, gemm, possible);
  choices_->keep(key, choice);
  return choice;
}

GemmChoice GemmLibrary::fastest(CudaStream& stream, const Gemm& gemm,
                                std::span<const GemmChoice> candidates) {
  GemmChoice promising = candidates.front();
  promising.is_measured = false;
  GemmStopwatch stopwatch(stream, gemm);
  if (!stopwatch.is_ready()) return promising;
  const auto way_of = [&](const GemmChoice& choice) {
    return [this, &stream, &choice](const Gemm& trial) { run(stream, trial, choice); };
  };
  std::vector<Timed> finalists = finalists_of(stopwatch, candidates, way_of);
  if (finalists.empty()) return promising;
  if (finalists.size() == 1) return *finalists.front().choice;
  std::vector<std::unique_ptr<RecordedGraph>> recorded;
  for (const Timed& finalist : finalists)
    recorded.push_back(stopwatch.record(way_of(*finalist.choice)));
  const std::vector<float> times = relative_times(stopwatch, recorded);
  for (std::size_t i = 0; i < finalists.size(); ++i)
    finalists[i].ms = times[i] * penalty_of(*finalists[i].choice);
  return *std::ranges::min(finalists, {}, &Timed::ms).choice;
}

void GemmLibrary::run(CudaStream& stream, const Gemm& gemm, const GemmChoice& choice) {
  switch (choice.way) {
    case GemmChoice::Way::kOwn: return own_->run(stream, gemm, choice.own);
    case GemmChoice::Way::kLibrary:
      return CublasLtMatmul(gemm, num_sms_).run(library_.get(), gemm, choice.algorithm, stream);
    case GemmChoice::Way::kUnfused:
      return run_unfused(stream, gemm, num_sms_, [&](const Gemm& plain) { run(stream, plain); });
  }
}

void GemmLibrary::run(CudaStream& stream, const Gemm& gemm) {
  const DeviceGuard guard(stream.device_index());
  run(stream, gemm, choose(stream, gemm));
}

}  // namespace fovea::cuda
