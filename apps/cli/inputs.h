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
#include "listed_item.h"

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
  ItemDefaults items;
  std::string media_io_kwargs;          ///< JSON of vLLM; empty: none
  bool has_fps = false;                 ///< whether --fps was given
  std::vector<InputArgument> in_order;  ///< all, as they stand on the command line
};

/// Adds INPUT..., --video, --pixel-values, --fps, --mm-processor-kwargs and --media-io-kwargs.
/// `flags.in_order` is filled when the verb has been parsed.
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
/// argument or JSON object per line, as listed_item() reads them). A video argument is a video
/// file, a directory of frames, or @FILE, whose lines are such paths or JSON objects. A name that
/// exists is taken literally whatever characters it holds. A file of pixel values gives all its
/// items. Image files are not opened here.
///
/// An argument that yields nothing becomes one Input with an error: kNotFound for a directory
/// without images, a pattern without matches, a URL, or a video that does not exist, and
/// what pixel_values_file() throws. A line of a list that yields nothing, or says nothing that can
/// be read, is one Input as well, whose error begins with FILE:LINE; the other lines give their
/// items.
/// @throws UsageError for "-". For a list Error(kNotFound), Error(kIo) if it cannot be read or
/// names nothing, Error(kInvalidArgument) if it names more than a million files, or if its
/// directories and patterns have more entries together, and what ends a search by `bounds`.
[[nodiscard]] std::vector<Input> expand_inputs(std::span<const InputArgument> arguments,
                                               const ItemDefaults& defaults,
                                               const CallBounds& bounds = {});

/// The files that one image argument names, which is no @FILE.
/// @throws as expand_inputs() says of such an argument.
[[nodiscard]] std::vector<std::string> image_files(const std::string& argument,
                                                   const CallBounds& bounds);

/// What all items of a run have: the flags together. @param media of the engine.
/// @throws UsageError for --media-io-kwargs that cannot be honoured or contradict --fps.
[[nodiscard]] ItemDefaults item_defaults(const InputFlags& flags, const MediaOptions& media);

/// Whether an argument is @FILE, and no file of that name is there.
[[nodiscard]] bool is_list(const std::string& argument);

/// @throws Error of the first input that has one.
void require_all(std::span<const Input> inputs);

/// Whether a text begins as http:, https:, file: and data: URLs do.
[[nodiscard]] bool is_url(std::string_view text);

/// The files that a run reads, which no output may replace: those in the directory `model`, those
/// of `inputs`, and what `arguments` name, lists included.
[[nodiscard]] std::vector<std::string> files_read(const std::string& model,
                                                  std::span<const InputArgument> arguments = {},
                                                  std::span<const Input> inputs = {});

/// The same of a run on images of the sizes that parse_sizes() reads from `sizes`.
[[nodiscard]] std::vector<std::string> files_read_for_sizes(const std::string& model,
                                                            const std::string& sizes);

/// Refuses options that no item of the model may have, before the first one is read.
/// @throws UsageError.
void check_item_options(const Engine& engine, const std::string& mm_processor_kwargs);

/// Encodes inputs; the result has one Embedding per input, failed ones included.
/// @throws Error of the first failing item unless options.on_error is kSkip.
[[nodiscard]] std::vector<Embedding> encode_inputs(Engine& engine, std::span<const Input> inputs,
                                                   const EncodeOptions& options);

}  // namespace fovea::cli
