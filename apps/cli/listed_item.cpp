// Lines of lists, and the options that items have of their own.
#include "listed_item.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "core/json.h"
#include "core/json_writer.h"
#include "fovea/error.h"
#include "inputs.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr const char* kKwargs = "mm_processor_kwargs";

/// JSON that is there already.
struct JsonText {
  std::string_view text;
  void append_to(std::string& out) const { out += text; }
};

/// In the order of names, so that equal values have equal texts.
std::string text_of(const JsonView& value) {
  std::string text;
  value.append_to(text, JsonView::Members::kByName);
  return text;
}

JsonDocument parse_object(std::string_view text, const std::string& name) {
  // In the order in which a line says it: a second meaning of a key would be one too many.
  JsonDocument document = JsonDocument::parse(text, name, DuplicateKeys::kReject);
  if (!document.root().is_object()) {
    throw Error(ErrorCode::kInvalidArgument,
                name + ": expected a JSON object, got " + document.root().summary());
  }
  return document;
}

/// Runs what reads JSON. What is wrong with a line is wrong with what the caller gave.
template <class Read>
auto as_argument(const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptData) throw;
    throw Error(ErrorCode::kInvalidArgument, error.what());
  }
}

[[noreturn]] void refuse(const JsonView& value, const std::string& expected) {
  throw Error(ErrorCode::kInvalidArgument,
              value.path() + ": expected " + expected + ", got " + value.summary());
}

double positive(const JsonView& value) {
  const double number = value.is_number() ? value.as_number() : 0;
  if (number <= 0) refuse(value, "a number above 0");
  return number;
}

std::string object_text(const JsonView& value) {
  if (!value.is_object()) refuse(value, "an object");
  return value.num_members() == 0 ? std::string() : text_of(value);
}

void take_member(std::string_view key, const JsonView& value, ListedItem& item) {
  if (key == "image" || key == "video") {
    if (!item.path.empty()) refuse(value, "either image or video, once");
    if (!value.is_string() || value.as_text().empty()) refuse(value, "a path");
    item.path = value.as_string();
    item.modality = key == "image" ? Modality::kImage : Modality::kVideo;
  } else if (key == "fps") {
    item.fps = positive(value);
  } else if (key == kKwargs) {
    item.mm_processor_kwargs = object_text(value);
  } else {
    throw Error(ErrorCode::kInvalidArgument,
                value.path() + ": no such member; expected image or video, fps and " + kKwargs);
  }
}

ListedItem item_of_object(std::string_view line, const std::string& place) {
  const JsonDocument document = parse_object(line, place);
  const JsonView root = document.root();
  ListedItem item{.is_exact = true};
  for (std::size_t i = 0; i < root.num_members(); ++i) {
    if (!root.member(i).is_null()) take_member(root.key(i), root.member(i), item);
  }
  if (item.path.empty()) {
    throw Error(ErrorCode::kInvalidArgument, place + ": expected image or video with a path");
  }
  if (item.fps && item.modality == Modality::kImage) {
    throw Error(ErrorCode::kInvalidArgument, place + ": fps: an image has none");
  }
  return item;
}

std::string placed_path(const std::string& list, std::string_view path) {
  if (is_url(path)) return std::string(path);
  return (std::filesystem::path(list).parent_path() / path).string();
}

using Members = std::map<std::string, std::string, std::less<>>;

/// The options of a processor by what they are of.
struct Kwargs {
  Members of_both;
  Members of_own;      ///< in images_kwargs, or videos_kwargs, whichever the item is of
  std::string others;  ///< the object of the other modality; empty: none
};

const char* object_of(Modality modality) {
  return modality == Modality::kImage ? "images_kwargs" : "videos_kwargs";
}

Kwargs parse_kwargs(const std::string& text, Modality modality) {
  const JsonDocument document = parse_object(text, kKwargs);
  const std::string_view other =
      object_of(modality == Modality::kImage ? Modality::kVideo : Modality::kImage);
  const JsonView root = document.root();
  Kwargs kwargs;
  for (std::size_t i = 0; i < root.num_members(); ++i) {
    const JsonView value = root.member(i);
    if (root.key(i) == object_of(modality) && value.is_object()) {
      for (std::size_t k = 0; k < value.num_members(); ++k) {
        kwargs.of_own.emplace(value.key(k), text_of(value.member(k)));
      }
    } else if (root.key(i) == other) {
      kwargs.others = text_of(value);
    } else {
      kwargs.of_both.emplace(root.key(i), text_of(value));
    }
  }
  return kwargs;
}

std::string text_of_kwargs(const Kwargs& kwargs, Modality modality) {
  const auto object_from = [](const Members& members) {
    JsonObject object;
    for (const auto& [key, value] : members) object.set(key, JsonText{value});
    return object;
  };
  JsonObject object = object_from(kwargs.of_both);
  if (!kwargs.of_own.empty()) object.set(object_of(modality), object_from(kwargs.of_own));
  if (!kwargs.others.empty()) {
    object.set(object_of(modality == Modality::kImage ? Modality::kVideo : Modality::kImage),
               JsonText{kwargs.others});
  }
  return to_json_text(object);
}

}  // namespace

std::string ListedItem::options() const {
  JsonObject object;
  if (fps) object.set("fps", *fps);
  if (!mm_processor_kwargs.empty()) object.set(kKwargs, JsonText{mm_processor_kwargs});
  return object.empty() ? std::string() : to_json_text(object);
}

std::string place_of_line(const std::string& list, std::int64_t number) {
  return list + ":" + std::to_string(number);
}

std::optional<ListedItem> listed_item(const std::string& list, std::string_view line,
                                      std::int64_t number, Modality plain) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (number == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  constexpr const char* kBlanks = " \t\r";
  const std::size_t begin = std::min(line.find_first_not_of(kBlanks), line.size());
  line = line.substr(begin, line.find_last_not_of(kBlanks) + 1 - begin);
  if (line.empty() || line.front() == '#') return std::nullopt;
  const std::string place = place_of_line(list, number);
  ListedItem item{.modality = plain};
  if (line.front() == '{') {
    item = as_argument([&] { return item_of_object(line, place); });
  } else {
    item.path = line;
  }
  if (item.path.find('\0') != std::string::npos) {
    throw Error(ErrorCode::kInvalidArgument, place + ": expected a path, got " +
                                                 one_line(item.path) +
                                                 " with a null byte; lists are text in UTF-8");
  }
  item.path = placed_path(list, item.path);
  return item;
}

std::string kwargs_text(std::string_view text, const std::string& name) {
  return as_argument([&] { return object_text(parse_object(text, name).root()); });
}

MediaItem media_item(const ListedItem& listed, const ItemDefaults& defaults) {
  MediaItem item = listed.modality == Modality::kImage
                       ? image_file(listed.path)
                       : video_path(listed.path, listed.fps.value_or(defaults.fps));
  item.mm_processor_kwargs =
      merged_kwargs(listed.mm_processor_kwargs, defaults.mm_processor_kwargs, listed.modality);
  return item;
}

std::string merged_kwargs(const std::string& own, const std::string& common, Modality modality) {
  if (own.empty()) return common;
  if (common.empty()) return own;
  return as_argument([&] {
    Kwargs kwargs = parse_kwargs(own, modality);
    Kwargs more = parse_kwargs(common, modality);
    std::erase_if(more.of_own,
                  [&](const auto& member) { return kwargs.of_both.contains(member.first); });
    kwargs.of_own.merge(more.of_own);
    kwargs.of_both.merge(more.of_both);
    if (kwargs.others.empty()) kwargs.others = std::move(more.others);
    return text_of_kwargs(kwargs, modality);
  });
}

}  // namespace fovea::cli
