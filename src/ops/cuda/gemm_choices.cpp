// A text file of measured choices:
//   fovea-gemm-choices 1
//   <identity of GPU and library>
//   <rows class> <k> <n> <out stride> <epilogue> <residual> <alignment> <rows> <8 words of hex>
// The eight words are the library's algorithm structure, which it documents as storable for the
// same library version; the identity line carries that version.
#include "ops/cuda/gemm_choices.h"

#include <sstream>

#include "core/check.h"
#include "core/file.h"

namespace fovea::cuda {

namespace {

constexpr const char* kHeader = "fovea-gemm-choices 1";
constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;

/// Reads one line; false at the end of the file or at damage.
bool read_choice(std::istream& in, GemmKey& key, GemmChoice& choice) {
  in >> std::dec >> key.rows_class >> key.in_features >> key.out_features >> key.out_stride >>
      key.epilogue >> key.residual >> key.alignment >> choice.rows >> std::hex;
  for (auto& word : choice.algorithm.data) in >> word;
  return static_cast<bool>(in);
}

}  // namespace

std::map<GemmKey, GemmChoice> load_gemm_choices(const std::string& path,
                                                const std::string& identity) {
  if (path.empty()) return {};
  std::string text;
  try {
    const auto bytes = read_file(path, kMaxFileBytes);
    text.assign(bytes.begin(), bytes.end());
  } catch (const Error&) {
    return {};
  }
  std::istringstream in(text);
  std::string line;
  if (!std::getline(in, line) || line != kHeader) return {};
  if (!std::getline(in, line) || line != identity) return {};
  std::map<GemmKey, GemmChoice> choices;
  GemmKey key{};
  GemmChoice choice{};
  while (read_choice(in, key, choice)) choices[key] = choice;
  return choices;
}

void save_gemm_choices(const std::string& path, const std::string& identity,
                       const std::map<GemmKey, GemmChoice>& choices) {
  if (path.empty()) return;
  std::ostringstream out;
  out << kHeader << '\n' << identity << '\n';
  for (const auto& [key, choice] : choices) {
    out << std::dec << key.rows_class << ' ' << key.in_features << ' ' << key.out_features << ' '
        << key.out_stride << ' ' << key.epilogue << ' ' << key.residual << ' ' << key.alignment
        << ' ' << choice.rows << std::hex;
    for (const auto word : choice.algorithm.data) out << ' ' << word;
    out << '\n';
  }
  const std::string text = out.str();
  try {
    AtomicFile file(path);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  } catch (const Error&) {
    return;  // see the header
  }
}

}  // namespace fovea::cuda
