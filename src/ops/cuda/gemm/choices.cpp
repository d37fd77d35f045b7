// A text file of measured choices:
//   fovea-gemm-choices 8
//   <identity of GPU and software>
//   <rows> <is class> <k> <n> <out stride> <activation> <bias> <residual> <head dim> <format>
//   <alignment> and then
//     own <splits> <name of the kernel>
//     library <8 words of hex>
//     unfused
// The eight words are the library's algorithm structure, which it documents as storable for the
// same library version; the identity line carries that version.
#include "ops/cuda/gemm/choice_table.h"

#include <locale>
#include <sstream>

#include "core/check.h"
#include "core/file.h"
#include "ops/cuda/gemm/hopper/hopper_gemm.h"

namespace fovea::cuda {

namespace {

using Way = GemmChoice::Way;

constexpr const char* kHeader = "fovea-gemm-choices 8";
constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;

/// Reads one line; false at damage or at a kernel that this build does not have.
bool read_choice(const std::string& line, GemmKey& key, GemmChoice& choice) {
  std::istringstream in(line);
  in.imbue(std::locale::classic());
  std::string kind;
  in >> key.rows >> key.in_features >> key.out_features >> key.out_stride >> key.activation >>
      key.bias >> key.residual >> key.head_dim >> key.format >> key.alignment >> kind;
  if (!in) return false;
  if (kind == "unfused") {
    choice = {.way = Way::kUnfused};
    return true;
  }
  if (kind == "own") {
    choice = {.way = Way::kOwn};
    std::string name;
    std::getline(in >> choice.own.splits >> std::ws, name);
    choice.own.kernel = HopperGemm::find_kernel(name);
    return in && HopperGemm::is_possible(choice.own, key);
  }
  choice = {.way = Way::kLibrary};  // of no rows yet: the library is asked before it is used
  in >> std::hex;
  for (auto& word : choice.algorithm.data) in >> word;
  return in && kind == "library";
}

void write_choice(std::ostream& out, const GemmKey& key, const GemmChoice& choice) {
  out << std::dec << key.rows << ' ' << key.in_features << ' ' << key.out_features << ' '
      << key.out_stride << ' ' << key.activation << ' ' << key.bias << ' ' << key.residual << ' '
      << key.head_dim << ' ' << key.format << ' ' << key.alignment;
  switch (choice.way) {
    case Way::kOwn: out << " own " << choice.own.splits << ' ' << choice.own.kernel->name; break;
    case Way::kLibrary:
      out << " library" << std::hex;
      for (const auto word : choice.algorithm.data) out << ' ' << word;
      break;
    case Way::kUnfused: out << " unfused"; break;
  }
  out << '\n';
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
  while (std::getline(in, line))
    if (read_choice(line, key, choice)) choices[key] = choice;
  return choices;
}

void save_gemm_choices(const std::string& path, const std::string& identity,
                       const std::map<GemmKey, GemmChoice>& choices) {
  if (path.empty()) return;
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << kHeader << '\n' << identity << '\n';
  for (const auto& [key, choice] : choices)
    if (choice.is_measured) write_choice(out, key, choice);
  try {
    replace_file(path, out.str());
  } catch (const Error&) {
    return;  // see the header
  }
}

}  // namespace fovea::cuda
