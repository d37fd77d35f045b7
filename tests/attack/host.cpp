// A program that uses the library as a careless one would. usage: fovea_attack_host CASE MODEL
// [OUT] Ends like the program `fovea`: a line on stdout and 0, or an error line and 1.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <locale>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "fovea/fovea.h"

namespace {

using fovea::Engine;
using fovea::MediaItem;

Engine load(const std::string& model) {
  return Engine::load(model, {.device = "cpu", .num_threads = 2});
}

MediaItem noise(std::int64_t width_px, std::int64_t height_px) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(3 * width_px * height_px));
  std::minstd_rand random(1);
  for (std::uint8_t& value : pixels) value = static_cast<std::uint8_t>(random() >> 8);
  return fovea::image_rgb(std::move(pixels), width_px, height_px, "noise");
}

/// Runs actions that must all throw fovea::Error: another exception ends this program.
std::string refusals(const std::vector<std::function<void()>>& actions) {
  int refused = 0;
  for (const std::function<void()>& action : actions) {
    try {
      action();
    } catch (const fovea::Error&) {
      ++refused;
    }
  }
  return std::to_string(refused) + " refused";
}

/// Numbers as German programs write them.
struct Grouping : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  char do_decimal_point() const override { return ','; }
  std::string do_grouping() const override { return "\3"; }
};

std::string locale(const std::string& model, const std::string& out) {
  std::locale::global(std::locale(std::locale::classic(), new Grouping));
  Engine engine = load(model);
  fovea::save_safetensors(out, engine.encode(std::vector<MediaItem>(1200, noise(64, 64))), {});
  std::ifstream file(out, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const bool grouped = bytes.find("item_1.199") != std::string::npos;
  if (grouped || bytes.find("\"item_1199\"") == std::string::npos)
    throw std::runtime_error("the names of tensors follow the locale");
  return "1200 items";
}

std::string no_paths(const std::string& model, const std::string&) {
  Engine engine = load(model);
  const auto encode = [&](fovea::Modality modality, const MediaItem::Source& source) {
    const MediaItem item{.modality = modality, .source = source};
    return [&engine, item] { (void)engine.encode(std::vector{item}); };
  };
  return refusals({encode(fovea::Modality::kImage, fovea::EncodedFile{}),
                   encode(fovea::Modality::kVideo, fovea::EncodedFile{}),
                   encode(fovea::Modality::kVideo, fovea::FrameFiles{})});
}

/// Numbers that no memory holds, and sizes that no file has.
std::string too_much(const std::string& model, const std::string&) {
  constexpr std::int64_t kHuge = INT64_MAX;
  Engine engine = load(model);
  return refusals({
      [&] {
        (void)fovea::time_tower(engine, {.count = std::int64_t{1} << 62, .patches = 64}, 1, 1);
      },
      [&] { (void)fovea::time_tower(engine, {.patches = kHuge}, 1, 1); },
      [&] { (void)fovea::time_tower(engine, {.patches = 64, .num_frames = kHuge}, 1, 1); },
      [&] {
        (void)fovea::plan(model, std::vector<fovea::ItemSize>{{kHuge, kHuge, kHuge}});
      },
      [&] { (void)fovea::gather_rows({}, -1, [](const std::string&) { return std::nullopt; }); },
      [&] { (void)fovea::gather_rows({}, kHuge, [](const std::string&) { return std::nullopt; }); },
      [&] { fovea::EncoderCache(1).allocate({}, 1); },
  });
}

/// Rows of weights that are denormal numbers.
std::string denormal(const std::string& model, const std::string&) {
  Engine engine = load(model);
  const fovea::Embedding item = engine.encode(std::vector{noise(512, 512)}).front();
  for (std::int64_t row = 0; row < item.rows; ++row) {
    for (std::int64_t column = 0; column < item.width; ++column) {
      if (item.at(row, column) != 0) throw std::runtime_error("rows of denormal numbers");
    }
  }
  return "rows of zeros";
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::string (*)(const std::string&, const std::string&)> cases{
      {"locale", locale}, {"no_paths", no_paths}, {"too_much", too_much}, {"denormal", denormal}};
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const std::string text = cases.at(words.at(0))(words.at(1), words.size() > 2 ? words[2] : "");
    return std::puts(text.c_str()) < 0;
  } catch (const fovea::Error& error) {
    std::fprintf(stderr, "fovea: error: %s\n", error.what());
    return 1;
  } catch (const std::exception& other) {
    std::fprintf(stderr, "not a fovea::Error: %s\n", other.what());
    return 3;
  }
}
