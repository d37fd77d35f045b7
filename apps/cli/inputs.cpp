// From the command line's words to items, in the order they were written.
#include "inputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <sstream>

#include "errors.h"
#include "flags/cli11.h"
#include "flags/sizes.h"
#include "fovea/media_io.h"
#include "fovea/text.h"
#include "output_file.h"
#include "patterns.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;

/// Most files of a list: its lines may be patterns and directories.
constexpr std::size_t kMaxListedFiles = 1'000'000;

/// Most entries of their directories, whether they are images or not.
constexpr std::size_t kMaxListedEntries = 1'000'000;

/// Returns the files that a name stands for: itself, the images of a directory, or the matches of a
/// pattern.
std::vector<std::string> named_files(const std::string& name, PatternSearch& search) {
  std::error_code ignored;
  if (fs::is_directory(name, ignored)) {
    search.count_entries(name);
    return images_in(name);
  }
  if (fs::exists(name, ignored)) return {name};
  if (is_url(name)) {
    throw Error(ErrorCode::kNotFound, name + ": URLs are not read, expected a path");
  }
  if (is_pattern(name)) return search.files(name);
  return {name};  // the engine says what is wrong with it
}

Input failed_input(Modality modality, std::string name, Error error) {
  return {.item = {.modality = modality, .name = std::move(name)}, .error = std::move(error)};
}

/// Whether an error of a line ends the call.
bool ends_call(const Error& error) {
  using enum ErrorCode;
  return error.code() == kCancelled || error.code() == kDeadline || error.code() == kOutOfMemory;
}

/// The files of a line that is a path. @param argument of the list.
std::vector<ListedItem> items_of_line(const ListedItem& line, const InputArgument& argument,
                                      PatternSearch& search) {
  // A line of JSON, and one of a list of videos, name one item.
  if (argument.modality == Modality::kVideo || line.is_exact) return {line};
  std::vector<ListedItem> items;
  for (std::string& file : named_files(line.path, search)) {
    items.emplace_back().path = std::move(file);
  }
  return items;
}

/// The error with the place of its line in front.
Error placed(const std::string& place, const Error& error) {
  return {error.code(), place + ": " + error.what()};
}

/// The items that the lines of a list name; relative names start at its folder. A line that names
/// none becomes one input with an error.
std::vector<Input> listed_inputs(const InputArgument& argument, const ItemDefaults& defaults,
                                 const CallBounds& bounds) {
  const std::string list = argument.text.substr(1);
  std::vector<Input> inputs;
  PatternSearch search(bounds, kMaxListedEntries);
  std::istringstream stream(read_text_file(list, kMaxTextFileBytes));
  std::int64_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    const std::string place = place_of_line(list, ++number);
    std::optional<ListedItem> listed;
    try {
      listed = listed_item(list, line, number, argument.modality);
    } catch (const Error& error) {
      inputs.push_back(failed_input(argument.modality, place, error));
      continue;
    }
    if (!listed) continue;
    try {
      for (const ListedItem& item : items_of_line(*listed, argument, search)) {
        inputs.push_back({.item = media_item(item, defaults), .error = std::nullopt});
      }
    } catch (const Error& error) {
      if (ends_call(error) || search.is_exhausted()) throw placed(place, error);
      inputs.push_back(failed_input(listed->modality, listed->path, placed(place, error)));
    }
    if (inputs.size() > kMaxListedFiles) {
      throw placed(place, {ErrorCode::kInvalidArgument,
                           "expected at most " + counted(kMaxListedFiles, "file") + ", got more"});
    }
  }
  if (inputs.empty()) throw Error(ErrorCode::kNotFound, list + ": the list names no file");
  return inputs;
}

std::vector<Input> inputs_of(const InputArgument& argument, const ItemDefaults& defaults,
                             const CallBounds& bounds) {
  if (is_list(argument.text) && !argument.pixel_values) {
    return listed_inputs(argument, defaults, bounds);
  }
  std::vector<Input> inputs;
  if (argument.pixel_values) {
    for (MediaItem& item : pixel_values_file(argument.text)) {
      item.mm_processor_kwargs = defaults.mm_processor_kwargs;
      inputs.push_back({.item = std::move(item), .error = std::nullopt});
    }
  } else if (argument.modality == Modality::kVideo) {
    const ListedItem video{.modality = Modality::kVideo, .path = argument.text};
    inputs.push_back({.item = media_item(video, defaults), .error = std::nullopt});
  } else {
    for (std::string& file : image_files(argument.text, bounds)) {
      const ListedItem image{.path = std::move(file)};
      inputs.push_back({.item = media_item(image, defaults), .error = std::nullopt});
    }
  }
  return inputs;
}

/// A flag that names inputs, and what it has named so far.
struct NamedInputs {
  const CLI::Option* option;
  const std::vector<std::string>* values;
  InputArgument argument;  ///< but for the text
  std::size_t next = 0;
};

/// Reads the order of positionals and flags back from the parser.
std::vector<InputArgument> arguments_in_order(const CLI::App& verb,
                                              std::vector<NamedInputs> flags) {
  std::vector<InputArgument> arguments;
  for (const CLI::Option* option : verb.parse_order()) {
    for (NamedInputs& flag : flags) {
      if (option != flag.option || flag.next >= flag.values->size()) continue;
      arguments.push_back(flag.argument);
      arguments.back().text = (*flag.values)[flag.next++];
    }
  }
  return arguments;
}

}  // namespace

void add_input_flags(CLI::App& verb, InputFlags& flags) {
  CLI::Option* images =
      verb.add_option("INPUT", flags.images,
                      "Image, directory, pattern or @list; items are numbered in order")
          ->type_name("");
  CLI::Option* videos =
      verb.add_option("--video", flags.videos,
                      "Video file, or directory of frames sorted by name; may be repeated")
          ->type_name("PATH")
          ->allow_extra_args(false)
          ->group("Input");
  CLI::Option* pixel_values = verb.add_option("--pixel-values", flags.pixel_values,
                                              "Safetensors file with a processor's "
                                              "pixel_values[_videos] and grids; may be repeated")
                                  ->type_name("FILE")
                                  ->allow_extra_args(false)
                                  ->group("Input");
  CLI::Option* fps =
      verb.add_option(
              "--fps", flags.items.fps,
              "Frames per second to take from video files, and rate of the frames in directories")
          ->type_name("F")
          ->check(check([](const std::string& text) {
            double value = 0;
            const bool positive = CLI::detail::lexical_cast(text, value) && value > 0;
            return positive && std::isfinite(value)
                       ? std::string()
                       : "expected a number above 0, got \"" + text + "\"";
          }))
          ->capture_default_str()
          ->group("Input");
  add_item_options(verb, flags.items.mm_processor_kwargs);
  add_json(verb, "--media-io-kwargs", flags.media_io_kwargs,
           R"(How media are read, as vLLM has it: '{"video": {"fps": 1}}' is --fps 1)")
      ->group(seldom("Input"));
  verb.parse_complete_callback([&verb, &flags, images, videos, pixel_values, fps] {
    flags.has_fps = fps->count() > 0;
    flags.in_order = arguments_in_order(
        verb, {{images, &flags.images, {}},
               {videos, &flags.videos, {.modality = Modality::kVideo, .text = {}}},
               {pixel_values, &flags.pixel_values, {.text = {}, .pixel_values = true}}});
    if (flags.in_order.empty()) {
      throw UsageError("expected at least one INPUT, --video or --pixel-values, got none");
    }
  });
}

void add_item_options(CLI::App& verb, std::string& mm_processor_kwargs) {
  add_json(verb, "--mm-processor-kwargs", mm_processor_kwargs,
           "Options of the checkpoint's processor in the place of those of its files, as in "
           R"('{"max_pixels": 100352}'; `fovea inspect` lists those that the model takes)")
      ->check(check([](const std::string& text) {
        try {
          (void)kwargs_text(text, "JSON");
        } catch (const Error& error) {
          return std::string(error.what());
        }
        return std::string();
      }))
      ->group("Input");
}

void check_item_options(const Engine& engine, const std::string& mm_processor_kwargs) {
  try {
    engine.check_item_options(Modality::kImage, mm_processor_kwargs);
  } catch (const Error& error) {
    throw UsageError(std::string("--mm-processor-kwargs: ") + error.what());
  }
}

bool is_url(std::string_view text) {
  constexpr std::array<std::string_view, 4> kBeginnings{"http://", "https://", "file://", "data:"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

std::vector<std::string> image_files(const std::string& argument, const CallBounds& bounds) {
  std::error_code ignored;
  if (argument == "-" && !fs::exists(argument, ignored)) {
    throw UsageError("INPUT: stdin is not read, expected a path; ./- is a file named -");
  }
  PatternSearch search(bounds, std::numeric_limits<std::size_t>::max());
  return named_files(argument, search);
}

bool is_list(const std::string& argument) {
  std::error_code ignored;
  return argument.starts_with('@') && !fs::exists(argument, ignored);
}

ItemDefaults item_defaults(const InputFlags& flags, const MediaOptions& media) {
  ItemDefaults defaults = flags.items;
  if (flags.media_io_kwargs.empty()) return defaults;
  try {
    const MediaIo io = read_media_io_kwargs(flags.media_io_kwargs, "--media-io-kwargs", media);
    if (io.fps && flags.has_fps && *io.fps != defaults.fps) {
      throw UsageError("--media-io-kwargs: video.fps and --fps differ; expected one of them");
    }
    defaults.fps = io.fps.value_or(defaults.fps);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
  return defaults;
}

std::vector<Input> expand_inputs(std::span<const InputArgument> arguments,
                                 const ItemDefaults& defaults, const CallBounds& bounds) {
  std::vector<Input> inputs;
  for (const InputArgument& argument : arguments) {
    try {
      std::ranges::move(inputs_of(argument, defaults, bounds), std::back_inserter(inputs));
    } catch (const Error& error) {
      // How many items a list has that cannot be read is not known.
      if (is_list(argument.text) && !argument.pixel_values) throw;
      inputs.push_back(failed_input(argument.modality, argument.text, error));
    }
  }
  return inputs;
}

void require_all(std::span<const Input> inputs) {
  for (const Input& input : inputs) {
    if (input.error) throw *input.error;
  }
}

std::vector<std::string> files_read(const std::string& model,
                                    std::span<const InputArgument> arguments,
                                    std::span<const Input> inputs) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(model, ignored)) {
    files.push_back(entry.path().string());
  }
  for (const InputArgument& argument : arguments) {
    files.push_back(argument.text);
    if (argument.text.starts_with('@')) files.push_back(argument.text.substr(1));
  }
  for (const Input& input : inputs) {
    std::ranges::copy(input.item.paths(), std::back_inserter(files));
  }
  return files;
}

std::vector<std::string> files_read_for_sizes(const std::string& model, const std::string& sizes) {
  std::vector<std::string> files = files_read(model);
  std::ranges::move(files_of_sizes(sizes), std::back_inserter(files));
  return files;
}

std::vector<Embedding> encode_inputs(Engine& engine, std::span<const Input> inputs,
                                     const EncodeOptions& options) {
  std::vector<MediaItem> items;
  for (const Input& input : inputs) {
    if (!input.error) items.push_back(input.item);
  }
  std::vector<Embedding> encoded = engine.encode(items, options);

  std::vector<Embedding> result;
  auto next = encoded.begin();
  for (const Input& input : inputs) {
    if (input.error) {
      Embedding failed;
      failed.name = input.item.name;
      failed.modality = input.item.modality;
      failed.dtype = options.dtype;
      failed.error = input.error;
      result.push_back(std::move(failed));
    } else {
      result.push_back(std::move(*next++));
    }
  }
  return result;
}

}  // namespace fovea::cli
