#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/call_bounds.h"
#include "fovea/engine.h"
#include "fovea/media.h"

namespace fovea::cli {

/// One INPUT, --video or --pixel-values of the command line.
struct InputArgument {
  Modality modality = Modality::kImage;
  std::string text;
  bool pixel_values = false;  ///< a file of them; it says itself whether they are of videos
};

/// The flags that name images, videos and pixel values.
struct InputFlags {
  std::vector<std::string> images;
  std::vector<std::string> videos;
  std::vector<std::string> pixel_values;
  double fps = 2.0;
  std::string mm_processor_kwargs;      ///< of all items, but those of pixel values
  std::vector<InputArgument> in_order;  ///< all, as they stand on the command line
};

/// Adds INPUT..., --video, --pixel-values, --fps and --mm-processor-kwargs. `flags.in_order` is
/// filled when the verb has been parsed.
void add_input_flags(CLI::App& verb, InputFlags& flags);

/// Adds --mm-processor-kwargs.
void add_item_options(CLI::App& verb, std::string& mm_processor_kwargs);

/// An item to encode, or why there is none.
struct Input {
  MediaItem item;
  std::optional<Error> error;
};

/// Makes items of arguments, in order. An image argument is a file, a directory (its images_in(),
/// sorted by name), a pattern with * ? [ ] (its matches sorted by name), or @FILE (one
/// argument per line, relative ones from the folder of FILE; blanks around a line, empty lines and
/// lines that begin with # do not count). A name that exists is taken literally whatever characters
/// it holds. A file of pixel values gives all its items. Image files are not opened here.
///
/// An argument that yields nothing becomes one Input with an error: kNotFound for a directory
/// without images, a pattern without matches, a URL, or a list or video that does not exist, and
/// what pixel_values_file() throws. A line of a list that yields nothing is one Input as well,
/// whose error begins with FILE:LINE; the other lines give their items. For the whole list there is
/// one Input with kInvalidArgument if it names more than a million files, or if its directories and
/// patterns have more entries together, and with what ends a search by `bounds`.
/// @throws UsageError for "-".
[[nodiscard]] std::vector<Input> expand_inputs(std::span<const InputArgument> arguments, double fps,
                                               const CallBounds& bounds = {});

/// The files that one image argument names, which is no @FILE.
/// @throws as expand_inputs() says of such an argument.
[[nodiscard]] std::vector<std::string> image_files(const std::string& argument,
                                                   const CallBounds& bounds);

/// Whether an image argument is @FILE, and no file of that name is there.
[[nodiscard]] bool is_list(const std::string& argument);

/// Returns the path that a line of the file `list` names; absent if it is empty or a comment.
/// @param number of the line. A UTF-8 byte order mark is no part of line 1.
[[nodiscard]] std::optional<std::string> listed_path(const std::string& list, std::string_view line,
                                                     std::int64_t number);

/// @throws Error of the first input that has one.
void require_all(std::span<const Input> inputs);

/// Whether a text begins as http:, https:, file: and data: URLs do.
[[nodiscard]] bool is_url(std::string_view text);

/// The files that a run reads, which no output may replace: those in the directory `model`, those
/// of `inputs`, and what `arguments` name, lists included.
[[nodiscard]] std::vector<std::string> files_read(const std::string& model,
                                                  std::span<const InputArgument> arguments = {},
                                                  std::span<const Input> inputs = {});

/// Encodes inputs; the result has one Embedding per input, failed ones included.
/// @throws Error of the first failing item unless options.on_error is kSkip.
[[nodiscard]] std::vector<Embedding> encode_inputs(Engine& engine, std::span<const Input> inputs,
                                                   const EncodeOptions& options);

}  // namespace fovea::cli
