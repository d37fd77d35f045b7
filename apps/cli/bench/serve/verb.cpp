// fovea bench serve: requests of one image each, as a server has them, by delay of the batcher.
#include <iostream>

#include "bench/bench.h"
#include "bench/serve/load.h"
#include "bench/synthetic.h"
#include "errors.h"
#include "flags/cli11.h"
#include "flags/flags.h"
#include "flags/parse.h"
#include "flags/sizes.h"
#include "fovea/version.h"
#include "inputs.h"
#include "output_file.h"
#include "program.h"
#include "progress.h"
#include "report/report_json.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr std::int64_t kMaxDelayUs = 60'000'000;

struct ServeFlags {
  EngineFlags engine;
  std::string sizes = "224x224";
  std::int64_t num_requests = 200;
  std::int64_t clients = 8;
  std::optional<double> rate;
  std::vector<std::int64_t> delays_us{0, 1000, 5000, 20'000};
  std::string output_json;
};

/// One image per request, the sizes in turn. Requests of one size share their bytes.
std::vector<MediaItem> make_requests(const ServeFlags& flags, std::span<const ItemSize> sizes) {
  Random random(flags.engine.options.seed);
  std::vector<std::shared_ptr<const std::vector<std::uint8_t>>> files;
  for (const ItemSize& size : sizes) {
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(3 * size.width_px * size.height_px));
    random.fill(rgb);
    files.push_back(std::make_shared<const std::vector<std::uint8_t>>(
        encode_png(rgb, size.width_px, size.height_px)));
  }
  std::vector<MediaItem> items;
  for (std::int64_t i = 0; i < flags.num_requests; ++i) {
    const auto place = static_cast<std::size_t>(i) % sizes.size();
    items.push_back(image_bytes({*files[place], files[place]}, to_text(sizes[place])));
  }
  return items;
}

std::vector<ItemSize> image_sizes(const ServeFlags& flags, const EngineOptions& options) {
  std::vector<ItemSize> sizes = parse_sizes(flags.sizes);
  for (const ItemSize& size : sizes) {
    if (size.modality == Modality::kVideo || size.num_frames != 1) {
      throw UsageError("--sizes: expected images, got " + to_text(size));
    }
  }
  check_sizes(flags.engine.model, sizes, options);
  return sizes;
}

std::vector<ServeResult> measure(const ServeFlags& flags, Engine& engine, const ServeLoad& load,
                                 Console& console) {
  Progress progress(console, "serving", std::ssize(flags.delays_us) + 3);
  engine.warm_up();
  (void)run_one_call(engine, load);
  progress.advance();
  std::vector<ServeResult> results;
  results.push_back({"one call", {}, run_one_call(engine, load)});
  progress.advance();
  if (!load.rate) results.push_back({"engine", {}, run_on_engine(engine, load)});
  progress.advance();
  for (const std::int64_t delay : flags.delays_us) {
    BatcherOptions options{.max_delay = std::chrono::microseconds(delay)};
    results.push_back({"batcher", delay, run_on_batcher(engine, load, options)});
    progress.advance();
  }
  return results;
}

int run_serve(const ServeFlags& flags, Console& console) {
  check_output_paths({flags.output_json}, files_read_for_sizes(flags.engine.model, flags.sizes));
  const EngineOptions options = engine_options(flags.engine, console);
  check_limits(flags.engine, options);
  const std::vector<ItemSize> sizes = image_sizes(flags, options);
  const std::vector<MediaItem> items = make_requests(flags, sizes);
  Engine engine = Engine::load(flags.engine.model, options);
  const ServeLoad load{.items = items,
                       .clients = flags.clients,
                       .rate = flags.rate,
                       .seed = flags.engine.options.seed};
  const std::vector<ServeResult> results = measure(flags, engine, load, console);
  if (!flags.output_json.empty()) {
    JsonObject json{{"benchmark", "serve"},           {"fovea_version", version()},
                    {"model", flags.engine.model},    {"device", engine.device()},
                    {"requests", flags.num_requests}, {"clients", flags.clients}};
    if (flags.rate) json.set("rate", *flags.rate);
    json.set("results", serve_json(results));
    write_text_file(flags.output_json, json_text(json));
  }
  std::cout << serve_table(results) << "\n"
            << counted(flags.num_requests, "request") << " of one image, "
            << (flags.rate ? fixed(*flags.rate, 1) + " per second"
                           : counted(flags.clients, "client"))
            << "\ndevice  " << engine.device() << "\n";
  return kExitOk;
}

void read_delays(const std::string& text, std::vector<std::int64_t>& delays_us) {
  delays_us.clear();
  for (const std::string& part : split_commas(text)) {
    delays_us.push_back(parse_whole(part, 0, "--max-delay", kMaxDelayUs));
  }
}

void read_rate(const std::string& text, std::optional<double>& rate) {
  rate = parse_number(text, "--rate");
  if (*rate < 1e-3 || *rate > 1e6) {
    throw UsageError("--rate: expected a number from 0.001 to 1000000, got \"" + one_line(text) +
                     "\"");
  }
}

void add_flags(CLI::App& verb, ServeFlags& flags) {
  add_model(verb, flags.engine);
  verb.add_option("--sizes", flags.sizes, "Images of the requests, in turn")
      ->type_name("WxH,...")
      ->capture_default_str()
      ->group(kBenchmarkGroup);
  add_positive(verb, "--num-requests", flags.num_requests, "Requests of one image", kMaxEqualItems)
      ->group(kBenchmarkGroup);
  add_positive(verb, "--clients", flags.clients,
               "Clients that send a request when they have the rows of their last", kMaxThreads)
      ->group(kBenchmarkGroup);
  verb.add_option_function<std::string>(
          "--rate", [&flags](const std::string& text) { read_rate(text, flags.rate); },
          "Instead of clients: requests per second, at random moments")
      ->type_name("NUMBER")
      ->group(kBenchmarkGroup);
  verb.add_option_function<std::string>(
          "--max-delay", [&flags](const std::string& text) { read_delays(text, flags.delays_us); },
          "Delays of the batcher to compare, in microseconds")
      ->type_name("N,N,...")
      ->default_str(join(flags.delays_us, ","))
      ->group(kBenchmarkGroup);
  add_output_file(verb, "--output-json", flags.output_json, "Write all figures as JSON");
  add_threads(verb, flags.engine);
  add_decode_processes(verb, flags.engine);
  add_engine_flags(verb, flags.engine);
}

constexpr VerbText kText{
    .name = "serve",
    .summary = "Requests of one image each, as a server has them, batched in memory",
    .footer =
        R"(Compares one call with all images, clients that call the engine themselves, and the batcher
with several delays. Nothing goes over a network.

Examples:
  fovea bench serve ./Qwen3-VL --clients 64 --output-json serve.json
  fovea bench serve ./Qwen3-VL --rate 50 --sizes 640x480,1024x768)",
};

}  // namespace

void add_bench_serve(CLI::App& bench, Program& program) {
  add_verb(bench, program, kText, add_flags, run_serve);
}

}  // namespace fovea::cli
