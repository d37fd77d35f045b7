// The linear layer on the CPU as a fraction of the multiply-add peak, next to oneDNN and libxsmm
// where they are installed. All contenders take turns in one process, the best turn counts, and the
// peak is measured in the same run, at the beginning and at the end. "bf16" and "f32" are how
// weights are stored for products in f32, "in bf16" multiplies bf16.
//
//   fovea_bench_linear [--threads 1,4] [--rows 64,256,1024] [--seconds 0.2] [--cold-mb 128]
//
// Weights are taken in turn from as many copies as fill --cold-mb, because a tower reads every
// weight once per pass: a benchmark that repeats one layer would find it in the cache.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "fovea/tower/ops/linear.h"
#include "ops/cpu/cpu_kernels.h"
#include "peers/gemm_peers.h"

namespace fovea::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  std::vector<std::int64_t> threads{1, 4};
  std::vector<std::int64_t> rows{64, 256, 1024};
  double seconds = 0.2;  ///< per contender and case
  double cold_mb = 128;
};

struct LayerShape {
  std::int64_t in_features;
  std::int64_t out_features;
};

/// Qwen3-VL-2B: qkv, projection, MLP, mergers, patch embedding; the 30B tower; one tiny layer.
constexpr LayerShape kShapes[] = {{1024, 3072}, {1024, 1024}, {1024, 4096}, {4096, 1024},
                                  {4096, 4096}, {4096, 2048}, {1536, 1024}, {1152, 3456},
                                  {1152, 4304}, {4304, 1152}, {144, 432}};

std::vector<float> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> values(static_cast<std::size_t>(count));
  std::ranges::generate(values, [&] { return uniform(generator); });
  return values;
}

/// Our linear layer with weights from a checkpoint in `dtype`.
GemmRun prepare_fovea(const GemmProblem& problem, std::size_t copies, Device& device,
                      Stream& stream, DType dtype, ops::Activation activation, bool residual) {
  const Shape shape{problem.out_features, problem.in_features};
  std::vector<std::byte> stored(static_cast<std::size_t>(shape.elements()) * size_of(dtype));
  narrow_from_f32(problem.weight, dtype, stored.data(), static_cast<std::size_t>(shape.elements()));
  const auto packed = std::make_shared<std::vector<ops::PackedLinear>>();
  for (std::size_t i = 0; i < copies; ++i) {
    packed->push_back(ops::pack_linear(
        device, {stored.data(), dtype, shape},
        {reinterpret_cast<const std::byte*>(problem.bias), DType::kF32, {problem.out_features}}));
  }
  const auto arguments = [=](std::size_t index) -> ops::LinearArgs {
    const TensorView out{reinterpret_cast<std::byte*>(problem.out),
                         DType::kF32,
                         {problem.rows, problem.out_features}};
    return {.x = {reinterpret_cast<const std::byte*>(problem.x),
                  DType::kF32,
                  {problem.rows, problem.in_features}},
            .weight = (*packed)[index],
            .activation = activation,
            .residual = residual ? ConstTensorView(out) : ConstTensorView{},
            .out = out};
  };
  const std::size_t workspace = device.kernels().linear_workspace(arguments(0));
  const auto memory = std::make_shared<Buffer>(device.allocate(workspace + Arena::kAlignment));
  return [=, &device, &stream](std::size_t index) {
    Arena arena(memory->data(), memory->bytes());
    device.kernels().linear({.stream = stream, .arena = arena, .is_recorded = false},
                            arguments(index));
  };
}

struct Contender {
  std::string name;
  std::size_t copies;
  GemmRun run;
  std::size_t next = 0;
  double best_gflops = 0;

  /// Some milliseconds of calls, each with other weights than the one before. The pause lets the
  /// threads of the contender before fall asleep, the first call wakes those of this one.
  void take_turn(double gflop_per_call, int calls) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    run(next++ % copies);
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < calls; ++i) run(next++ % copies);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best_gflops = std::max(best_gflops, gflop_per_call * calls / seconds);
  }
};

struct Row {
  std::string name;
  std::vector<double> gflops;
};

class Table {
 public:
  Table(const Settings& settings, int threads)
      : settings_(settings),
        kernels_(make_cpu_kernels(detect_cpu_isa(), threads)),
        device_(make_cpu_device(threads, *kernels_)),
        stream_(device_->create_stream()),
        bf16_kernels_(make_cpu_kernels(detect_cpu_isa(), threads, DType::kBF16)),
        bf16_device_(make_cpu_device(threads, *bf16_kernels_)),
        bf16_stream_(bf16_device_->create_stream()),
        pool_(threads) {}

  void measure() {
    constexpr double kPeakSeconds = 0.5;
    peak_ = cpu::fma_peak_gflops(pool_.size(), kPeakSeconds);
    bf16_peak_ = cpu::bf16_peak_gflops(pool_.size(), kPeakSeconds).value_or(0);
    for (const LayerShape& shape : kShapes)
      for (const std::int64_t rows : settings_.rows) measure_case(shape, rows);
    peak_ = std::max(peak_, cpu::fma_peak_gflops(pool_.size(), kPeakSeconds));
    bf16_peak_ =
        std::max(bf16_peak_, cpu::bf16_peak_gflops(pool_.size(), kPeakSeconds).value_or(0));
  }

  /// Fractions of the peak of float32; the last line holds their geometric means.
  void print() const {
    std::printf("%s, %d threads, multiply-add peak %.1f GFLOP/s, weights cold in %.0f MB\n",
                device_->properties().description.c_str(), pool_.size(), peak_, settings_.cold_mb);
    if (bf16_peak_ > 0) std::printf("peak of vdpbf16ps %.1f GFLOP/s\n", bf16_peak_);
    std::printf("%-20s %9s", "rows x in x out", "GFLOP/s");
    for (const std::string& name : names_) std::printf(" %9s", name.c_str());
    std::vector<double> logarithms(names_.size(), 0.0);
    for (const Row& row : rows_) {
      std::printf("\n%-20s %9.1f", row.name.c_str(), row.gflops.front());
      for (std::size_t i = 0; i < names_.size(); ++i) {
        std::printf(" %9.3f", row.gflops[i] / peak_);
        logarithms[i] += std::log(row.gflops[i] / peak_);
      }
    }
    std::printf("\n%-30s", "geometric mean");
    for (const double sum : logarithms)
      std::printf(" %9.3f", std::exp(sum / static_cast<double>(rows_.size())));
    std::printf("\n\n");
  }

 private:
  std::vector<Contender> contenders(const GemmProblem& problem) {
    const double weights = static_cast<double>(problem.in_features * problem.out_features);
    const auto copies = [&](double bytes_per_weight) {
      return static_cast<std::size_t>(
          std::max(1.0, settings_.cold_mb * 1e6 / (weights * bytes_per_weight)));
    };
    std::vector<Contender> all;
    const auto add = [&](const char* name, DType dtype, ops::Activation activation, bool residual) {
      const std::size_t count = copies(static_cast<double>(size_of(dtype)));
      all.push_back(
          {name, count,
           prepare_fovea(problem, count, *device_, *stream_, dtype, activation, residual)});
    };
    add("bf16", DType::kBF16, ops::Activation::kNone, false);
    add("+gelu", DType::kBF16, ops::Activation::kGeluTanh, false);
    add("+residual", DType::kBF16, ops::Activation::kNone, true);
    add("f32", DType::kF32, ops::Activation::kNone, false);
    all.push_back({"in bf16", copies(2),
                   prepare_fovea(problem, copies(2), *bf16_device_, *bf16_stream_, DType::kBF16,
                                 ops::Activation::kNone, false)});
    for (const GemmPeer& peer : gemm_peers())
      all.push_back({peer.name, copies(4), peer.prepare(problem, copies(4), pool_)});
    return all;
  }

  void measure_case(const LayerShape& shape, std::int64_t rows) {
    constexpr double kTurnSeconds = 3e-3;
    const std::vector<float> x = random_values(rows * shape.in_features, 1);
    const std::vector<float> weight = random_values(shape.in_features * shape.out_features, 2);
    const std::vector<float> bias = random_values(shape.out_features, 3);
    std::vector<float> out(static_cast<std::size_t>(rows * shape.out_features));
    std::vector<Contender> all = contenders({rows, shape.in_features, shape.out_features, x.data(),
                                             weight.data(), bias.data(), out.data()});
    const double gflop = 2e-9 * static_cast<double>(rows * shape.in_features * shape.out_features);
    const int calls = std::max(1, static_cast<int>(kTurnSeconds * peak_ / gflop));
    const Clock::time_point begin = Clock::now();
    const std::chrono::duration<double> budget(settings_.seconds * static_cast<double>(all.size()));
    do {
      std::ranges::fill(out, 0.0f);  // a residual that grows would end in infinities
      for (Contender& contender : all) contender.take_turn(gflop, calls);
    } while (Clock::now() - begin < budget);

    Row row{std::to_string(rows) + " x " + std::to_string(shape.in_features) + " x " +
                std::to_string(shape.out_features),
            {}};
    names_.clear();
    for (const Contender& contender : all) {
      names_.push_back(contender.name);
      row.gflops.push_back(contender.best_gflops);
    }
    rows_.push_back(std::move(row));
  }

  Settings settings_;
  std::unique_ptr<Kernels> kernels_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernels> bf16_kernels_;
  std::unique_ptr<Device> bf16_device_;
  std::unique_ptr<Stream> bf16_stream_;
  ThreadPool pool_;  // of the peers
  double peak_ = 0;
  double bf16_peak_ = 0;  // 0 without the instruction
  std::vector<std::string> names_;
  std::vector<Row> rows_;
};

std::vector<std::int64_t> parse_list(const std::string& text) {
  std::vector<std::int64_t> values;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) values.push_back(std::stoll(item));
  return values;
}

Settings parse(int argc, char** argv) {
  Settings settings;
  const std::map<std::string, std::function<void(const std::string&)>> flags{
      {"--threads", [&](const std::string& value) { settings.threads = parse_list(value); }},
      {"--rows", [&](const std::string& value) { settings.rows = parse_list(value); }},
      {"--seconds", [&](const std::string& value) { settings.seconds = std::stod(value); }},
      {"--cold-mb", [&](const std::string& value) { settings.cold_mb = std::stod(value); }}};
  for (int i = 1; i < argc; i += 2) {
    const auto flag = flags.find(argv[i]);
    if (flag == flags.end() || i + 1 == argc) {
      std::fprintf(stderr,
                   "usage: %s [--threads 1,4] [--rows 64,256] [--seconds S] [--cold-mb MB]\n",
                   argv[0]);
      std::exit(2);
    }
    flag->second(argv[i + 1]);
  }
  return settings;
}

}  // namespace
}  // namespace fovea::bench

int main(int argc, char** argv) {
  const fovea::bench::Settings settings = fovea::bench::parse(argc, argv);
  for (const std::int64_t threads : settings.threads) {
    fovea::bench::Table table(settings, static_cast<int>(threads));
    table.measure();
    table.print();
  }
}
