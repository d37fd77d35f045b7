#pragma once

namespace fovea {

/// Version of the headers below fovea/tower, for those who write towers of their own. It is raised
/// by every change after which such a tower has to be compiled anew, and is independent of
/// fovea/version.h.
inline constexpr int kTowerVersion = 6;

/// Last argument of what every user of these headers calls: a tower that was compiled against
/// another version than the library's finds no such function, and does not link.
template <int kVersion>
struct TowerVersion {};

}  // namespace fovea
