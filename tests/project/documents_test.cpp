// Documents say what is there: links and paths lead somewhere, code blocks are compiled elsewhere,
// tables of measurements name their commit, every option, every benchmark and every architecture is
// described.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/option_table.h"
#include "models/registry.h"
#include "project/tree.h"

namespace fovea::test {
namespace {

/// Lines of a document outside fenced code blocks.
std::vector<std::string> prose_lines(const std::string& document) {
  std::vector<std::string> prose;
  bool fenced = false;
  for (const std::string& line : read_lines(document)) {
    if (line.starts_with("```")) {
      fenced = !fenced;
    } else if (!fenced) {
      prose.push_back(line);
    }
  }
  return prose;
}

/// Targets of all links of a document.
std::vector<std::string> links_of(const std::string& document) {
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  std::vector<std::string> targets;
  for (const std::string& line : prose_lines(document)) {
    for (std::sregex_iterator it(line.begin(), line.end(), link), end; it != end; ++it) {
      targets.push_back((*it)[1]);
    }
  }
  return targets;
}

bool is_external(const std::string& target) {
  return target.starts_with("https://") || target.starts_with("http://") ||
         target.starts_with("mailto:");
}

/// The anchor under which a heading can be linked: lower case, spaces as hyphens, punctuation gone.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading.substr(heading.find_first_not_of("# "))) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_') {
      anchor += static_cast<char>(std::tolower(byte));
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

std::set<std::string> anchors_of(const std::string& document) {
  std::set<std::string> anchors;
  for (const std::string& line : prose_lines(document)) {
    if (line.starts_with('#')) anchors.insert(anchor_of(line));
  }
  return anchors;
}

TEST(Documents, LinksAreRelativeAndLeadSomewhere) {
  namespace fs = std::filesystem;
  for (const std::string& document : files_below(".", {".md"})) {
    for (const std::string& target : links_of(document)) {
      if (is_external(target)) continue;
      const std::size_t hash = target.find('#');
      const std::string file = target.substr(0, hash);
      EXPECT_FALSE(file.starts_with('/')) << document << " links to " << target;
      const fs::path path =
          file.empty() ? fs::path(document) : fs::path(document).parent_path() / file;
      EXPECT_TRUE(fs::exists(source_root() / path)) << document << " links to " << target;
      if (hash == std::string::npos || path.extension() != ".md") continue;
      EXPECT_TRUE(anchors_of(path.lexically_normal().string()).contains(target.substr(hash + 1)))
          << document << " links to " << target;
    }
  }
}

TEST(Documents, PathsLeadSomewhere) {
  static const std::regex code(R"(`([^`]+)`)");
  static const std::regex path(
      R"((apps|bench|cmake|docs|examples|include|packaging|python|scripts|src|tests|tools))"
      R"(/[\w./-]*)");
  namespace fs = std::filesystem;
  for (const std::string& document : files_below(".", {".md"})) {
    // These name files of other projects, and files that were.
    if (document.starts_with("docs/reference/") || document == "CHANGELOG.md") continue;
    for (const std::string& line : prose_lines(document)) {
      for (std::sregex_iterator it(line.begin(), line.end(), code), end; it != end; ++it) {
        const std::string text = (*it)[1];
        if (!std::regex_match(text, path)) continue;
        const fs::path beside = fs::path(document).parent_path() / text;
        EXPECT_TRUE(fs::exists(source_root() / text) || fs::exists(source_root() / beside))
            << document << " names " << text;
      }
    }
  }
}

/// Every table of a document with the lines that introduce it: those since the last heading or the
/// end of the table before.
std::vector<std::string> introduced_tables(const std::string& document) {
  std::vector<std::string> tables;
  std::string open;
  bool inside = false;
  for (const std::string& line : prose_lines(document)) {
    const bool is_row = line.starts_with('|');
    if (inside && !is_row) tables.push_back(std::exchange(open, ""));
    if (line.starts_with('#')) open.clear();
    open.append(line).append("\n");
    inside = is_row;
  }
  if (inside) tables.push_back(open);
  return tables;
}

TEST(Documents, TablesOfMeasurementsNameTheirCommit) {
  static const std::regex commit(R"(\b[0-9a-f]{7}\b)");
  const std::vector<std::string> documents = files_below("docs/measurements", {".md"});
  EXPECT_FALSE(documents.empty());
  for (const std::string& document : documents) {
    const std::vector<std::string> tables = introduced_tables(document);
    EXPECT_FALSE(tables.empty()) << document;
    for (const std::string& table : tables) {
      EXPECT_TRUE(std::regex_search(table, commit)) << document << ":\n" << table;
    }
  }
}

std::string without_indent(const std::string& line) {
  const std::size_t start = line.find_first_not_of(" \t");
  return start == std::string::npos ? "" : line.substr(start);
}

/// Fenced blocks of a language, as lines without their indentation and without empty lines.
std::vector<std::vector<std::string>> code_blocks(const std::string& document,
                                                  const std::string& language) {
  std::vector<std::vector<std::string>> blocks;
  bool inside = false;
  for (const std::string& line : read_lines(document)) {
    if (line.starts_with("```")) {
      inside = !inside && line == "```" + language;
      if (inside) blocks.emplace_back();
    } else if (inside && !without_indent(line).empty()) {
      blocks.back().push_back(without_indent(line));
    }
  }
  return blocks;
}

/// Whether `block` appears in a file as consecutive lines, indentation and empty lines aside.
bool contains_block(const std::string& file, const std::vector<std::string>& block) {
  std::vector<std::string> lines;
  for (const std::string& line : read_lines(file)) {
    if (!without_indent(line).empty()) lines.push_back(without_indent(line));
  }
  return std::search(lines.begin(), lines.end(), block.begin(), block.end()) != lines.end();
}

TEST(Documents, CodeBlocksAreTakenFromCompiledFiles) {
  std::vector<std::string> sources = files_below("examples", {".cpp", ".txt"});
  const std::vector<std::string> headers = files_below("include", {".h"});
  sources.insert(sources.end(), headers.begin(), headers.end());
  for (const std::string document : {"README.md", "docs/cpp_api.md"}) {
    for (const std::string language : {"cpp", "cmake"}) {
      for (const std::vector<std::string>& block : code_blocks(document, language)) {
        EXPECT_TRUE(std::ranges::any_of(
            sources, [&](const std::string& file) { return contains_block(file, block); }))
            << document << ": no example contains the block that starts with\n"
            << block.at(0);
      }
    }
  }
}

/// Names of the data members that a header of plain structs declares.
std::vector<std::string> members_of(const std::string& header) {
  static const std::regex comment(R"(//[^\n]*)");
  static const std::regex forward_declaration(R"(class \w+;)");
  static const std::regex member(R"((\w+)(\[\d+\])?(\s*=[^;]*)?;)");
  std::string text = std::regex_replace(read_text(header), comment, "");
  text = std::regex_replace(text, forward_declaration, "");
  std::vector<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), member), end; it != end; ++it) {
    names.push_back((*it)[1]);
  }
  return names;
}

/// Whether a document mentions a name as code.
bool mentions(const std::string& document, std::string_view name) {
  std::string quoted = "`";
  quoted.append(name).append("`");
  return read_text(document).find(quoted) != std::string::npos;
}

TEST(Documents, EveryArchitectureIsListed) {
  for (const ModelFamily* family : model_families()) {
    for (const std::string_view name : family->architectures) {
      EXPECT_TRUE(mentions("docs/models.md", name)) << name;
    }
  }
}

TEST(Documents, EveryFlagOfAnOptionIsDescribed) {
  const std::string page = read_text("docs/configuration.md");
  const EngineOptions options;
  for_each_option(options, [&](const auto& option, const auto& /*value*/) {
    EXPECT_NE(page.find("`" + flag_of(option)), std::string::npos) << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
  });
}

TEST(Documents, EveryOptionIsDescribed) {
  const std::vector<std::string> members = members_of("include/fovea/options.h");
  EXPECT_GE(members.size(), 20U) << "options.h is no longer understood by this test";
  for (const std::string& name : members) {
    EXPECT_TRUE(mentions("docs/configuration.md", name)) << name;
  }
}

TEST(Documents, EveryBenchmarkIsListed) {
  static const std::regex added(R"(add_bench_(\w+)\()");
  const std::vector<std::string> page = read_lines("docs/cli.md");
  const auto list = std::ranges::find_if(
      page, [](const std::string& line) { return line.starts_with("fovea bench "); });
  ASSERT_NE(list, page.end());
  const std::string source = read_text("apps/cli/bench/bench.cpp");
  const std::sregex_iterator first(source.begin(), source.end(), added);
  EXPECT_NE(first, std::sregex_iterator()) << "bench.cpp is no longer understood by this test";
  for (std::sregex_iterator it = first; it != std::sregex_iterator(); ++it) {
    std::string name = (*it)[1];
    std::ranges::replace(name, '_', '-');
    EXPECT_NE(list->find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace fovea::test
