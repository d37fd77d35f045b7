// The tower as a library that Fovea's program, server and Python package load:
//   fovea encode MODEL photo.jpg --tower ./libvit_tower.so -o rows.safetensors
#include <fovea/tower.h>

#include <memory>
#include <string>

#include "vit.h"

namespace {

std::unique_ptr<fovea::EncoderGraphModel> make(const std::string&, const fovea::MediaOptions&,
                                               fovea::TowerWeights& weights) {
  return std::make_unique<vit::Model>(weights);
}

constexpr fovea::TowerLibrary kTower{.name = "ExampleViT", .make = &make};

[[gnu::section(".note.fovea"), gnu::aligned(4), gnu::used]] constexpr fovea::PluginNote kNote =
    fovea::kTowerNote;

}  // namespace

extern "C" [[gnu::visibility("default")]] const fovea::TowerLibrary* fovea_tower() {
  return &kTower;
}
