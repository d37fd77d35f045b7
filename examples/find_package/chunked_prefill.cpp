// A host engine in small: runs a prompt with images window by window, encodes an image when the
// first window needs a row of it, keeps its rows in an encoder cache, and writes them over the
// embeddings of the prompt's text, the deepstack levels beside them.
//
// usage: chunked_prefill MODEL IMAGE...
#include <fovea/fovea.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t kText = 5;           // tokens in front of each image, and at the end
constexpr std::int64_t kRowsPerMarker = 6;  // rows of an image between two tokens that have none
constexpr std::int64_t kWindow = 24;        // tokens that run in one step
constexpr float kTextValue = 0.5f;          // stands for the embeddings of text

/// Which positions of an image of `rows` rows take a row.
std::vector<bool> mask_of(std::int64_t rows) {
  std::vector<bool> mask;
  for (std::int64_t row = 1; row <= rows; ++row) {
    mask.push_back(true);
    if (row % kRowsPerMarker == 0) mask.push_back(false);
  }
  return mask;
}

class Host {
 public:
  Host(const std::string& model, std::span<char*> images) : engine_(fovea::Engine::load(model)) {
    std::int64_t largest = 0;
    for (char* const image : images) {
      // A host knows the rows of an image from its size, fovea::plan(); here it is encoded for
      // that.
      const auto rows = encode(image).rows;
      const std::vector<bool> mask = mask_of(rows);
      const auto length = static_cast<std::int64_t>(mask.size());
      prompt_.items.push_back({image, fovea::PlaceholderRange(length_ + kText, length, mask)});
      length_ = prompt_.items.back().placeholder.end();
      largest = std::max(largest, rows);
    }
    length_ += kText;
    cache_.emplace(largest);  // room for one image: the next one evicts the last
  }

  /// Runs the prompt. @return rows written over text.
  std::int64_t run() {
    std::int64_t merged = 0;
    for (std::int64_t computed = 0; computed < length_;) {
      const std::int64_t wanted = std::min(kWindow, length_ - computed);
      const fovea::WindowPlan plan = fovea::plan_window(
          *cache_, prompt_, {computed, computed + wanted}, {.compute_budget = cache_->capacity()});
      prepare(plan);
      merged += merge({computed, computed + plan.length});
      computed += plan.length;
      fovea::release_consumed(*cache_, prompt_, computed);
    }
    return merged;
  }

  [[nodiscard]] std::int64_t levels() const { return engine_.report().deepstack_levels; }

 private:
  fovea::Embedding encode(const std::string& file) {
    const std::vector<fovea::MediaItem> items{fovea::image_file(file)};
    return std::move(engine_.encode(items).front());
  }

  /// Deletes what was evicted and encodes what the window needs.
  void prepare(const fovea::WindowPlan& plan) {
    if (plan.conflict) throw std::runtime_error("one image has two numbers of rows");
    for (const std::size_t item : plan.local) cache_->allocate(prompt_, item);
    for (const std::size_t item : plan.duplicates) cache_->allocate(prompt_, item);
    for (const std::string& key : cache_->drain_evicted()) {
      std::printf("  evicted %s\n", key.c_str());
      rows_.erase(key);
    }
    for (const std::size_t item : plan.local) {
      const std::string& key = prompt_.items[item].key;
      rows_[key] = encode(key);
      std::printf("  encoded %s, %lld rows\n", key.c_str(),
                  static_cast<long long>(rows_[key].rows));
    }
  }

  /// Writes the rows of a window over the embeddings of its tokens.
  std::int64_t merge(fovea::IndexRange window) {
    const auto source = [&](const std::string& key) -> std::optional<fovea::RowsView> {
      const auto found = rows_.find(key);
      if (found == rows_.end()) return std::nullopt;
      const fovea::Embedding& rows = found->second;
      return fovea::RowsView{rows.data.data(), rows.rows, rows.width, rows.dtype};
    };
    const fovea::RequestWindow read{.request = &prompt_, .window = window};
    const fovea::GatheredRows gathered = fovea::gather_rows({&read, 1}, window.size(), source);

    const std::int64_t hidden = engine_.report().hidden;
    const std::int64_t levels = engine_.report().deepstack_levels;
    const auto elements = static_cast<std::size_t>(window.size() * hidden);
    std::vector<float> embeddings(elements, kTextValue);
    std::vector<float> deepstack(elements * static_cast<std::size_t>(levels));
    fovea::merge_rows(gathered, {.data = reinterpret_cast<std::byte*>(embeddings.data()),
                                 .positions = window.size(),
                                 .hidden = hidden,
                                 .deepstack = reinterpret_cast<std::byte*>(deepstack.data()),
                                 .levels = levels});
    // The decoder now runs over `embeddings`, and adds level k of `deepstack` behind its layer k.
    check(gathered, embeddings, deepstack);
    const std::int64_t merged = std::ranges::count(gathered.is_embed, true);
    std::printf("tokens %lld to %lld: %lld rows\n", static_cast<long long>(window.begin),
                static_cast<long long>(window.end), static_cast<long long>(merged));
    return merged;
  }

  /// Positions with a row have its main embedding and its deepstack levels; text has neither.
  void check(const fovea::GatheredRows& gathered, std::span<const float> embeddings,
             std::span<const float> deepstack) const {
    const auto hidden = static_cast<std::size_t>(engine_.report().hidden);
    const std::vector<float> text(hidden, kTextValue);
    const std::vector<float> nothing(hidden, 0.0f);
    std::vector<const float*> rows;  // one after the other
    for (const fovea::RowsView& view : gathered.rows) {
      for (std::int64_t row = 0; row < view.rows; ++row) {
        rows.push_back(reinterpret_cast<const float*>(view.data) + row * view.width);
      }
    }
    auto row = rows.begin();
    const std::size_t positions = gathered.is_embed.size();
    for (std::size_t position = 0; position < positions; ++position) {
      const float* const from = gathered.is_embed[position] ? *row++ : nullptr;
      const auto expect = [&](std::span<const float> part, const float* want) {
        if (std::ranges::equal(part, std::span(want, hidden))) return;
        throw std::runtime_error("position " + std::to_string(position) + " has another row");
      };
      expect(embeddings.subspan(position * hidden, hidden), from ? from : text.data());
      for (std::size_t level = 0; level * positions * hidden < deepstack.size(); ++level) {
        expect(deepstack.subspan((level * positions + position) * hidden, hidden),
               from ? from + (level + 1) * hidden : nothing.data());
      }
    }
  }

  fovea::Engine engine_;
  fovea::CacheRequest prompt_{"prompt", {}};
  std::int64_t length_ = 0;  // of the prompt
  std::optional<fovea::EncoderCache> cache_;
  std::map<std::string, fovea::Embedding> rows_;  // by key
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: chunked_prefill MODEL IMAGE...\n");
    return 2;
  }
  try {
    Host host(argv[1], {argv + 2, static_cast<std::size_t>(argc - 2)});
    const std::int64_t merged = host.run();
    std::printf("merged %lld rows, each with %lld deepstack levels\n",
                static_cast<long long>(merged), static_cast<long long>(host.levels()));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chunked_prefill: %s\n", error.what());
    return 1;
  }
}
