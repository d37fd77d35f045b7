// The notes of an ELF file, which the program headers list by place and size.
#include <elf.h>
#include <unistd.h>

#include <cstring>

#include "core/plugin/plugin.h"

namespace fovea {

namespace {

constexpr int kMaxNotes = 100;

template <class T>
bool read_at(const InputFile& file, std::uint64_t offset, T& value) {
  return pread(file.descriptor(), &value, sizeof value, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(sizeof value);
}

bool is_fovea(const PluginNote& note) {
  const PluginNote expected;
  return note.name_bytes == expected.name_bytes && note.build_bytes == expected.build_bytes &&
         note.type == expected.type && note.name == expected.name;
}

/// Name and content of a note are padded to the alignment of the segment, 4 or 8 bytes.
std::uint64_t padded(std::uint32_t bytes, std::uint64_t alignment) {
  const std::uint64_t step = alignment == 8 ? 8 : 4;
  return (bytes + step - 1) / step * step;
}

std::optional<PluginBuild> find_build(const InputFile& file, const Elf64_Phdr& segment) {
  std::uint64_t at = 0;
  for (int i = 0; i < kMaxNotes && at < segment.p_filesz; ++i) {
    PluginNote note;
    if (read_at(file, segment.p_offset + at, note) && is_fovea(note)) return note.build;
    Elf64_Nhdr header;
    if (!read_at(file, segment.p_offset + at, header)) return std::nullopt;
    at += sizeof header + padded(header.n_namesz, 4) + padded(header.n_descsz, segment.p_align);
  }
  return std::nullopt;
}

}  // namespace

std::optional<PluginBuild> read_plugin_build(const InputFile& file) {
  Elf64_Ehdr header;
  if (!read_at(file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    return std::nullopt;
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(file, header.e_phoff + i * sizeof segment, segment)) return std::nullopt;
    if (segment.p_type != PT_NOTE) continue;
    if (const auto build = find_build(file, segment)) return build;
  }
  return std::nullopt;
}

}  // namespace fovea
