// From the files of a directory to a model, for every family alike. ModelFamily::make runs once to
// check and once to load, with the same list of tensors.
#include "models/load_model.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/check.h"
#include "fovea/tower/models/tower_library.h"
#include "models/common/weight_loader.h"

namespace fovea {

namespace {

/// "model.safetensors", or "3 files" of an index.
std::string files_text(const checkpoint::WeightSource& weights) {
  std::set<std::string_view> files;
  for (const std::string& name : weights.names()) files.insert(weights.file_of(name));
  return files.size() == 1 ? std::string(*files.begin()) : cat(files.size(), " files");
}

/// How a checkpoint names the tower's tensors.
common::WeightNames weight_names(const ModelFamily& family,
                                 const checkpoint::WeightSource& weights) {
  if (family.library != nullptr) return "";
  if (weights.is_dummy()) return cat("model.", family.anchor_folder);
  for (const common::OtherNames& other : family.other_names) {
    auto prefix = checkpoint::find_prefix(weights, other.anchor_folder, other.anchor_tensor);
    if (prefix) return {std::move(*prefix), other.renamed};
  }
  auto prefix = checkpoint::find_prefix(weights, family.anchor_folder, family.anchor_tensor);
  if (!prefix && family.other_folder) {
    prefix = checkpoint::find_prefix(weights, *family.other_folder, family.anchor_tensor);
  }
  FOVEA_CHECK(prefix.has_value(), kNotFound, weights.directory(),
              ": checkpoint holds no vision tower: none of the ", weights.names().size(),
              " tensors in ", files_text(weights), " ends with \"", family.anchor_folder,
              family.anchor_tensor, "\"");
  return std::move(*prefix);
}

/// The families whose models make vectors, for messages.
std::string vector_families() {
  std::string names;
  std::string_view last;
  for (const ModelFamily* family : model_families()) {
    if (family->make_vectors == nullptr || family->name == last) continue;
    names += cat(names.empty() ? "" : ", ", family->name);
    last = family->name;
  }
  return names;
}

std::unique_ptr<EncoderGraphModel> make_of_library(const TowerLibrary& library,
                                                   const checkpoint::HfConfig& files,
                                                   const MediaOptions& media,
                                                   common::WeightLoader& loader) {
  TowerWeights weights(loader);
  auto model = library.make(files.directory, media, weights);
  FOVEA_CHECK(model != nullptr, kInternal, files.tower, ": made no model");
  const GraphSpec& spec = model->graph_spec();
  FOVEA_CHECK(!spec.modalities.empty(), kInternal, files.tower,
              ": the tower takes neither images nor videos");
  FOVEA_CHECK(spec.main_width >= 1 && spec.out_width >= 1 && spec.out_width % spec.main_width == 0,
              kInternal, files.tower, ": expected rows of whole embeddings, got ", spec.out_width,
              " columns for one of ", spec.main_width);
  return model;
}

std::unique_ptr<EncoderGraphModel> make(const ModelFamily& family,
                                        const checkpoint::HfConfig& files,
                                        const MediaOptions& media, common::WeightLoader& loader,
                                        TowerOutput output) {
  if (output == TowerOutput::kRows) {
    return family.library == nullptr ? family.make(files, media, loader)
                                     : make_of_library(*family.library, files, media, loader);
  }
  FOVEA_CHECK(family.make_vectors != nullptr, kUnsupported, "vectors: family ", family.name,
              " makes rows for a language model, and no vector of an image; families that do are ",
              vector_families());
  return family.make_vectors(files, media, loader, output);
}

/// "size, fps", or "none".
std::string listed(std::span<const std::string_view> keys) {
  std::string text;
  for (const std::string_view key : keys) text += cat(text.empty() ? "" : ", ", key);
  return text.empty() ? "none" : text;
}

ModelReport describe(const ModelFamily& family, const checkpoint::HfConfig& files,
                     const EncoderGraphModel& model, const common::WeightLoader& checker) {
  const GraphSpec& spec = model.graph_spec();
  const auto takes = [&](Modality modality) {
    return std::ranges::find(spec.modalities, modality) != spec.modalities.end();
  };
  ModelReport report;
  report.architecture = known_architecture(files);
  report.family = family.name;
  report.hidden = spec.main_width;
  report.deepstack_levels = spec.out_width / spec.main_width - 1;
  report.width = spec.out_width;
  report.images = takes(Modality::kImage);
  report.videos = takes(Modality::kVideo);
  // Encoders for retrieval make their vectors themselves.
  if (family.make_vectors == nullptr) report.embedding_file = files.embedding_file().value_or("");
  report.facts = model.facts();
  report.facts.emplace_back("options of an image", listed(family.item_options.image));
  report.facts.emplace_back("options of a video", listed(family.item_options.video));
  report.tensors = checker.report();
  report.parameters = checker.parameters();
  report.bfloat16_tolerance = family.bfloat16_tolerance;
  return report;
}

}  // namespace

std::unique_ptr<EncoderGraphModel> plan_model(const checkpoint::HfConfig& files,
                                              const MediaOptions& media, TowerOutput output) {
  return check_model(files, media, checkpoint::WeightSource::dummy(0), output).planner;
}

CheckedModel check_model(const checkpoint::HfConfig& files, const MediaOptions& media,
                         const checkpoint::WeightSource& weights, TowerOutput output) {
  const ModelFamily family = family_of(files);
  common::WeightLoader checker(weights, weight_names(family, weights));
  CheckedModel checked{.planner = make(family, files, media, checker, output), .report = {}};
  checked.report = describe(family, files, *checked.planner, checker);
  return checked;
}

void throw_if_incomplete(const ModelReport& report, const checkpoint::HfConfig& files,
                         const checkpoint::WeightSource& weights) {
  constexpr std::size_t kNamed = 3;
  std::string list;
  std::size_t count = 0;
  for (const TensorReport& tensor : report.tensors) {
    if (tensor.problem.empty()) continue;
    if (count < kNamed) list += cat(count == 0 ? "" : "; ", tensor.name, " ", tensor.problem);
    ++count;
  }
  if (count > kNamed) list += cat(" and ", count - kNamed, " more");
  if (count > kNamed && weights.is_stored()) {
    list += cat("; `fovea inspect ", weights.directory(), "` lists them");
  }
  const std::optional<std::string> quantization = files.quantization();
  FOVEA_CHECK(count == 0 || !quantization, kUnsupported, weights.directory(),
              ": the tower is quantised (", quantization.value_or(""),
              "), expected one in BF16, F16, F32, or F8_E4M3 with scales: ", count, " of ",
              report.tensors.size(), " tensors are missing or misshapen: ", list);
  FOVEA_CHECK(count == 0, kNotFound, weights.directory(),
              ": checkpoint does not fit its config.json: ", count, " of ", report.tensors.size(),
              " tensors are missing or misshapen: ", list);
}

std::unique_ptr<EncoderGraphModel> load_model(const checkpoint::HfConfig& files,
                                              const MediaOptions& media,
                                              const checkpoint::WeightSource& weights,
                                              Device& device, Stream& stream,
                                              const QuantizationPlan& plan, TowerOutput output) {
  const ModelFamily family = family_of(files);
  common::WeightLoader loader(weights, weight_names(family, weights), device, stream, plan);
  return make(family, files, media, loader, output);
}

}  // namespace fovea
