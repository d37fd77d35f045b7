#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fovea/media.h"

namespace fovea::cli {

/// What the items of a run have in common, but for those that say otherwise.
struct ItemDefaults {
  double fps = 2.0;                 ///< of videos
  std::string mm_processor_kwargs;  ///< JSON; empty: none
};

/// An item as a line of a list names it, or an argument of the command line.
struct ListedItem {
  Modality modality = Modality::kImage;
  std::string path;                 ///< as it is opened
  std::optional<double> fps;        ///< of a video, in the place of the run's
  std::string mm_processor_kwargs;  ///< of its own, JSON on one line; empty: none
  bool is_exact = false;            ///< the line is JSON: the path is that of one item

  /// What the line says of the item besides its path, JSON on one line: equal items of equal lines
  /// have equal texts. Empty for an item that has what all of its kind have.
  [[nodiscard]] std::string options() const;
};

/// "FILE:LINE", as messages name it.
[[nodiscard]] std::string place_of_line(const std::string& list, std::int64_t number);

/// Reads a line of the file `list`: a path, or a JSON object.
///
///   {"image": "a.png", "mm_processor_kwargs": {"max_pixels": 100352}}
///   {"video": "b.mp4", "fps": 1}
///
/// Blanks around it do not count, relative paths start at the folder of the list, and URLs stay as
/// they are.
/// @param number of the line. A UTF-8 byte order mark is no part of line 1.
/// @param plain the modality of lines that are a path.
/// @return absent if the line is empty or a comment.
/// @throws Error(kInvalidArgument) that names FILE:LINE and member for an object that is none of
/// these.
[[nodiscard]] std::optional<ListedItem> listed_item(const std::string& list, std::string_view line,
                                                    std::int64_t number,
                                                    Modality plain = Modality::kImage);

/// A JSON object on one line, its members in the order of their names: equal ones have equal texts.
/// Empty for one without members. @throws Error(kInvalidArgument) for another text, `name` in
/// front.
[[nodiscard]] std::string kwargs_text(std::string_view text, const std::string& name);

/// The item of a line. Nothing of an image is looked at.
/// @throws Error(kNotFound), Error(kIo) as video_path(), Error(kInvalidArgument) for options that
/// are no JSON object.
[[nodiscard]] MediaItem media_item(const ListedItem& listed, const ItemDefaults& defaults);

/// The options of an item of its own and those of all items together: its own come first, key by
/// key, whether they stand in `images_kwargs`, `videos_kwargs` or beside them.
/// @param own JSON object, or empty. @param common likewise.
/// @throws Error(kInvalidArgument) for another text, if both are given.
[[nodiscard]] std::string merged_kwargs(const std::string& own, const std::string& common,
                                        Modality modality);

}  // namespace fovea::cli
