// Provenance can be looked up: a `Source:` comment that cites docs/reference names a page and a
// heading that exist, and none cites a document outside of the repository. Sources for GPUs and for
// hosts call things by the words of manuals and textbooks.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "project/tree.h"

namespace fovea::test {
namespace {

/// Text of a comment line without its slashes and indentation; empty for a line of code.
std::string comment_text(const std::string& line) {
  static const std::regex comment(R"(^\s*//+\s*(.*)$)");
  std::smatch match;
  return std::regex_match(line, match, comment) ? match[1].str() : "";
}

/// Comments of a file, the lines of each joined by spaces, because citations may wrap.
std::vector<std::string> comments_of(const std::string& file) {
  std::vector<std::string> comments;
  bool inside = false;
  for (const std::string& line : read_lines(file)) {
    const std::string text = comment_text(line);
    if (!text.empty() && inside) {
      comments.back().append(" ").append(text);
    } else if (!text.empty()) {
      comments.push_back(text);
    }
    inside = !text.empty();
  }
  return comments;
}

struct Citation {
  std::string page;                   ///< relative to the root of the tree
  std::vector<std::string> headings;  ///< in quotes after the page; may be none
};

/// What a comment cites of docs/reference: a page, then headings in quotes.
std::vector<Citation> citations_of(const std::string& comment) {
  static const std::regex citation(
      R"re((docs/reference/\w+\.md)((?:(?:, | and |, and )"[^"]+")*))re");
  static const std::regex quoted(R"re("([^"]+)")re");
  std::vector<Citation> citations;
  for (std::sregex_iterator it(comment.begin(), comment.end(), citation), end; it != end; ++it) {
    Citation& found = citations.emplace_back((*it)[1]);
    const std::string headings = (*it)[2];
    for (std::sregex_iterator heading(headings.begin(), headings.end(), quoted); heading != end;
         ++heading) {
      found.headings.push_back((*heading)[1]);
    }
  }
  return citations;
}

/// Headings of a page without their marks; none if there is no such page.
std::set<std::string> headings_of(const std::string& page) {
  std::set<std::string> headings;
  if (!std::filesystem::exists(source_root() / page)) return headings;
  for (const std::string& line : read_lines(page)) {
    if (line.starts_with('#')) headings.insert(line.substr(line.find_first_not_of("# ")));
  }
  return headings;
}

/// What is wrong with the provenance that a comment states, or "".
std::string objection(const std::string& comment) {
  if (comment.find("specification, section") != std::string::npos)
    return "cites a document that is not in the repository";
  for (const auto& [page, cited] : citations_of(comment)) {
    const std::set<std::string> headings = headings_of(page);
    if (headings.empty()) return page + " does not exist";
    const auto missing =
        std::ranges::find_if_not(cited, [&](const auto& name) { return headings.contains(name); });
    if (missing != cited.end()) return page + " has no heading \"" + *missing + "\"";
  }
  return "";
}

struct Word {
  std::regex banned;
  std::string instead;  ///< the word of NVIDIA's manuals, of CUTLASS, or of a textbook
};

Word word(const std::string& banned, const std::string& instead) {
  return {std::regex(banned, std::regex::optimize), instead};
}

/// Words that sources for GPUs, and the contracts they implement, do not use.
const std::vector<Word>& words_for_gpus() {
  static const std::vector<Word> words{
      word("[Tt]hread[ _]?[Bb]lock", "CTA"),
      word("(^|[^A-Za-z])[Mm]ultiprocessor", "SM"),
      word("(^|[^A-Za-z])([Bb]ring|[Bb]rought)", "load, prefetch or store"),
      word("(^|[^A-Za-z])[Uu]pcoming", "prefetch"),
      word("products?_(begin|commit|wait|start|add)", "wgmma fence, commit_group, wait_group, mma"),
      word("GemmProduct|before_product", "matmul"),
      word("(grow|shrink)_registers", "setmaxnreg"),
      word("matrix_unit", "fence.proxy.async"),
      word("Teamwork", "schedule"),
      word("[Ss]upplier", "producer")};
  return words;
}

/// Words that the CPU backend, its device and ranks do not use.
const std::vector<Word>& words_for_hosts() {
  static const std::vector<Word> words{
      word("(^|[^A-Za-z])[Ll]ea(f|ves of)([^A-Za-z]|$)", "unit or kernel of an instruction set"),
      word("[Ww]ide_?[Nn]umber|[Ww]ide number|num_wide|kMaxWide", "outlier"),
      word("(^|[^A-Za-z])([Pp]atience|k?Last_?[Ww]ords|k?First_?[Ww]ords|kGlance)", "timeout"),
      word("(^|[^A-Za-z])[Hh]ear(s|d)?([^A-Za-z]|$)", "receive"),
      word("(^|[^A-Za-z])([Tt]ells?|[Tt]old)([^A-Za-z]|$)", "send"),
      word("(^|[^A-Za-z])([Gg]uest|[Ll]etter|[Pp]arcel)", "connection or message"),
      word("(^|[^A-Za-z])([Ff]light|[Mm]ailbox|[Ss]lab)", "in-flight entry, queue or chunk"),
      word("(^|[^A-Za-z])([Ss]ome|[Nn]o)body|(^|[^A-Za-z])[Ww]hoever", "the subject by its name")};
  return words;
}

/// Words that rooms below the engine do not use, and comments that begin without a subject.
const std::vector<Word>& words_below_the_engine() {
  static const std::vector<Word> words{
      word("[Pp]oison", "to fill with NaN"),
      word("[Bb]lock_?[Ss]tack|(^|[^A-Za-z])[Ss]tacked", "fused weights, or a sequence of blocks"),
      word("models/blocks|(^|[^A-Za-z_])blocks::", "models/common"),
      word("(^|[^A-Za-z])([Ww]hoever|[Ss]omebody|[Nn]obody)($|[^A-Za-z])", "by its name"),
      word(R"(^\s*///? (What|Of) )", "a noun, as the subject of the comment")};
  return words;
}

/// What is wrong with the words of a line of code or comment, text in quotes aside, or "".
std::string objection_to_words(const std::string& line, const std::vector<Word>& words) {
  static const std::regex quoted(R"re("[^"]*")re");
  const std::string text = std::regex_replace(line, quoted, "");
  const auto found = std::ranges::find_if(
      words, [&](const Word& one) { return std::regex_search(text, one.banned); });
  return found == words.end() ? "" : "the word is: " + found->instead;
}

void expect_words(const std::vector<std::string>& folders, const std::vector<Word>& words) {
  int num_lines = 0;
  for (const std::string& folder : folders) {
    for (const std::string& file : files_below(folder, {".h", ".cpp", ".cu", ".cuh", ".md"})) {
      for (const std::string& line : read_lines(file)) {
        EXPECT_EQ(objection_to_words(line, words), "") << file << ": " << line;
        ++num_lines;
      }
    }
  }
  EXPECT_GT(num_lines, 1000);
}

TEST(SourceWords, AreThoseOfTheManualsInSourcesForGpus) {
  expect_words({"src/ops/cuda", "src/device", "include/fovea/tower/ops"}, words_for_gpus());
}

TEST(SourceWords, AreThoseOfTextbooksInSourcesForHosts) {
  expect_words({"src/ops/cpu", "src/device/cpu", "src/ranks"}, words_for_hosts());
}

TEST(SourceWords, HaveASubjectBelowTheEngine) {
  expect_words({"src/checkpoint", "src/core", "src/graph", "src/media", "src/models"},
               words_below_the_engine());
}

TEST(SourceWordsTable, AllowsNamesOfCudaAndQuotedText) {
  for (const char* line :
       {"cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device)",
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ctas, kernel, threads, bytes)",
        R"(cat(count, " multiprocessors"))", "/// One CTA per SM.", "float products[4];"}) {
    EXPECT_EQ(objection_to_words(line, words_for_gpus()), "") << line;
  }
  for (const char* line : {R"("whoever listens at ")", "TILELOADDT1, which leaves L1 to others",
                           "const __m256i wide = a;", "/// Sends the failure, and receives it."}) {
    EXPECT_EQ(objection_to_words(line, words_for_hosts()), "") << line;
  }
}

TEST(SourceWordsTable, RefusesCommentsWithoutASubject) {
  for (const char* line :
       {"/// What a header says.", "  // Of all paths.", "  memory.poison();",
        "loader.stacked(parts)", "/// Null: nobody waits.", "#include <models/blocks/layers.h>"}) {
    EXPECT_NE(objection_to_words(line, words_below_the_engine()), "") << line;
  }
  for (const char* line : {"/// The facts of a header.", "int w = 0;  // of all paths",
                           "for (const common::Block& block : w.blocks) {"}) {
    EXPECT_EQ(objection_to_words(line, words_below_the_engine()), "") << line;
  }
}

TEST(SourceWordsTable, RefusesWordsOfOurOwn) {
  for (const char* line :
       {"/// One thread block per SM.", "int thread_blocks;", "int num_multiprocessors;",
        "// a warp brings weights", "ptx::products_wait<0>(sums);", "class GemmProduct {",
        "ptx::grow_registers<240>();", "enum class Teamwork {", "int supplier(int i) const;"}) {
    EXPECT_NE(objection_to_words(line, words_for_gpus()), "") << line;
  }
  for (const char* line :
       {"// the leaf for AVX2", "/// Most wide numbers of a row.", "kLastWords{2}",
        "void hear() noexcept;", "tell({.kind = kLeave});", "Guest& guest", "// nobody waits"}) {
    EXPECT_NE(objection_to_words(line, words_for_hosts()), "") << line;
  }
}

TEST(SourceComments, CiteWhatExists) {
  int num_citations = 0;
  for (const std::string folder : {"apps", "include", "src"}) {
    for (const std::string& file : files_below(folder, {".h", ".cpp", ".cu", ".cuh"})) {
      for (const std::string& comment : comments_of(file)) {
        EXPECT_EQ(objection(comment), "") << file << ": " << comment;
        num_citations += static_cast<int>(citations_of(comment).size());
      }
    }
  }
  EXPECT_GT(num_citations, 10) << "citations are no longer understood by this test";
}

TEST(SourceCommentsTable, AllowsPagesHeadingsPapersAndUpstreamFiles) {
  for (const char* comment :
       {"Source: docs/reference/encoder_graphs.md.",
        R"(Source: docs/reference/encoder_graphs.md, "Greedy packing".)",
        R"(Source: docs/reference/encoder_graphs.md, "Greedy packing" and "Sequences".)",
        "Source: Dao, FlashAttention-2, arXiv:2307.08691, algorithm 1.",
        "Source: torch.nn.LayerNorm over the last axis."}) {
    EXPECT_EQ(objection(comment), "") << comment;
  }
}

TEST(SourceCommentsTable, RefusesWhatCannotBeLookedUp) {
  for (const char* comment :
       {"Source: encoder graph specification, section 3.",
        "Source: docs/reference/no_such_page.md.",
        R"(Source: docs/reference/encoder_graphs.md, "No such heading".)",
        R"(Source: docs/reference/encoder_graphs.md, "Greedy packing" and "No such heading".)"}) {
    EXPECT_NE(objection(comment), "") << comment;
  }
}

}  // namespace
}  // namespace fovea::test
