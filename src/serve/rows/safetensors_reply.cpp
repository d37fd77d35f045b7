// Files of safetensors as replies.
#include "serve/rows/reply_formats.h"

#include <map>
#include <string>
#include <utility>

#include "fovea/row_formats.h"
#include "fovea/version.h"
#include "serve/rows/body_builder.h"
#include "serve/rows/item_json.h"

namespace fovea::serve {
namespace {

/// The tensors of a file, and what they refer to.
class TensorFile {
 public:
  /// `name`, and `name`.deepstack_<l> for the levels behind the first.
  void add_levels(const std::string& name, const std::vector<RowTensor>& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      add(stored(tensors[i], i == 0 ? name : name + ".deepstack_" + std::to_string(i - 1)),
          tensors[i].bytes);
    }
  }

  void add_numbers(std::string name, std::vector<std::int64_t> shape,
                   const std::vector<std::int64_t>& numbers) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(numbers));
    const BodyPart part = body_part(std::vector<std::byte>(bytes.begin(), bytes.end()));
    add({.name = std::move(name),
         .type = StoredType::kInt64,
         .shape = std::move(shape),
         .data = part.bytes},
        part);
  }

  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }
  [[nodiscard]] BodyBuilder& body() { return body_; }

 private:
  void add(StoredTensor tensor, const BodyPart& part) {
    body_.keep(part);
    tensors_.push_back(std::move(tensor));
  }

  std::vector<StoredTensor> tensors_;
  BodyBuilder body_;
};

/// item_<i>, item_<i>.deepstack_<l>, item_<i>.grid_thw, item_<i>.retained.
void add_item(const OutputOptions& options, const Embedding& item, std::size_t index,
              const std::vector<RowTensor>& tensors, TensorFile& file) {
  const std::string name = "item_" + std::to_string(index);
  file.add_levels(name, tensors);
  if (options.grid && item.grid_thw)
    file.add_numbers(name + ".grid_thw", {3}, {item.grid_thw->begin(), item.grid_thw->end()});
  if (item.retained) {
    file.add_numbers(name + ".retained", {static_cast<std::int64_t>(item.retained->size())},
                     *item.retained);
  }
}

/// One tensor with the rows of all; a vector is one row.
RowTensor joined(const std::vector<const RowTensor*>& tensors) {
  RowTensor all = *tensors.front();
  std::vector<std::byte> bytes;
  std::int64_t rows = 0;
  for (const RowTensor* tensor : tensors) {
    rows += tensor->shape.size() == 1 ? 1 : tensor->shape.front();
    if (tensors.size() > 1)
      bytes.insert(bytes.end(), tensor->bytes.bytes.begin(), tensor->bytes.bytes.end());
  }
  all.shape = {rows, all.shape.back()};
  if (tensors.size() > 1) all.bytes = body_part(std::move(bytes));
  return all;
}

/// image_embeds, image_embeds.deepstack_<l>, image_grid_thw; likewise of videos.
void add_modality(const OutputOptions& options, Modality modality,
                  const std::vector<EncodedItem>& items, const ItemTensors& tensors,
                  TensorFile& file) {
  std::vector<std::vector<const RowTensor*>> levels;
  std::vector<std::int64_t> grids;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Embedding& item = *items[i].embedding;
    if (item.modality != modality) continue;
    levels.resize(tensors[i].size());
    for (std::size_t level = 0; level < levels.size(); ++level)
      levels[level].push_back(&tensors[i][level]);
    if (item.grid_thw) grids.insert(grids.end(), item.grid_thw->begin(), item.grid_thw->end());
  }
  if (levels.empty()) return;
  std::vector<RowTensor> all;
  all.reserve(levels.size());
  for (const std::vector<const RowTensor*>& level : levels) all.push_back(joined(level));
  const std::string name = to_string(modality);
  const std::size_t count = levels.front().size();
  file.add_levels(name + "_embeds", all);
  if (options.grid && grids.size() == 3 * count)
    file.add_numbers(name + "_grid_thw", {static_cast<std::int64_t>(count), 3}, grids);
}

std::string items_text(const OutputOptions& options, const EncodeReplyHead& head,
                       const std::vector<EncodedItem>& items, const ItemTensors& tensors) {
  JsonArray list;
  for (std::size_t i = 0; i < items.size(); ++i)
    list.add(item_json(options, head, items[i], i, tensors[i].front()));
  return to_json_text(list);
}

}  // namespace

Reply safetensors_reply(const OutputOptions& options, const EncodeReplyHead& head,
                        const std::vector<EncodedItem>& items, const ItemTensors& tensors) {
  TensorFile file;
  if (options.naming == TensorNaming::kHf) {
    add_modality(options, Modality::kImage, items, tensors, file);
    add_modality(options, Modality::kVideo, items, tensors, file);
  } else {
    for (std::size_t i = 0; i < items.size(); ++i)
      add_item(options, *items[i].embedding, i, tensors[i], file);
  }
  const std::map<std::string, std::string> metadata{
      {"format", "pt"},
      {"fovea.version", version()},
      {"fovea.model", head.model},
      {"fovea.items", items_text(options, head, items, tensors)}};
  write_safetensors(file.tensors(), metadata, file.body().sink());
  return binary_reply(file.body(), head.room);
}

}  // namespace fovea::serve
