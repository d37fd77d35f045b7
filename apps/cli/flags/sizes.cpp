// Sizes on the command line.
#include "flags/sizes.h"

#include <sstream>
#include <string_view>

#include "errors.h"
#include "flags/parse.h"
#include "fovea/text.h"
#include "output_file.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

/// One side or frame count out of `size`, which is named in the complaint.
std::int64_t number_in(std::string_view part, const std::string& size) {
  return parse_whole(part, 1, "size \"" + one_line(size) + "\"");
}

/// The file's text with comments gone and line breaks as commas.
std::string list_in_file(const std::string& path) {
  std::istringstream stream(read_text_file(path, kMaxTextFileBytes));
  std::string list;
  for (std::string line; std::getline(stream, line);) {
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r,") == std::string::npos) continue;
    list += (list.empty() ? "" : ",") + line;
  }
  return list;
}

}  // namespace

ItemSize parse_size(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == 'x') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  const bool video = parts.size() == 3 && parts[2].ends_with('f');
  if (parts.size() != 2 && !video) {
    throw UsageError("size \"" + one_line(text) +
                     "\": expected WIDTHxHEIGHT or WIDTHxHEIGHTxFRAMESf, such as 640x480 or "
                     "1024x1024x8f");
  }
  ItemSize size{.width_px = number_in(parts[0], text), .height_px = number_in(parts[1], text)};
  if (video) {
    size.num_frames = number_in(parts[2].substr(0, parts[2].size() - 1), text);
    size.modality = Modality::kVideo;
  }
  return size;
}

std::vector<std::string> files_of_sizes(const std::string& text) {
  if (!text.starts_with('@')) return {};
  return {text.substr(1)};
}

std::vector<ItemSize> parse_sizes(const std::string& text) {
  const std::vector<std::string> files = files_of_sizes(text);
  const std::string list = files.empty() ? text : list_in_file(files.front());
  std::vector<ItemSize> sizes;
  for (const std::string& part : split_commas(list)) sizes.push_back(parse_size(part));
  return sizes;
}

void check_sizes(const std::string& model, std::span<const ItemSize> sizes, EngineOptions options) {
  options.log = nullptr;  // warnings about the model appear when it is loaded
  (void)plan(model, sizes, options);
}

std::string to_text(const ItemSize& size) {
  const std::string image = size_text(size.width_px, size.height_px);
  return size.modality == Modality::kImage && size.num_frames == 1
             ? image
             : image + "x" + std::to_string(size.num_frames) + "f";
}

}  // namespace fovea::cli
