// BLAKE3. Bytes are cut into chunks of 1024, whose hashes are the leaves of a binary tree; a chunk
// is a chain of blocks of 64, and a parent one block of its children's hashes.
#include "core/blake3.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace fovea {
namespace {

using Value = std::array<std::uint32_t, 8>;  // a chaining value
using Block = std::array<std::uint32_t, 16>;

constexpr std::size_t kBlockBytes = 64, kChunkBytes = 1024;

enum Flag : std::uint32_t { kChunkStart = 1, kChunkEnd = 2, kParent = 4, kRoot = 8 };

// Table 1 of the source: those of SHA-256.
constexpr Value kInitial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
// Table 2.
constexpr std::array<std::size_t, 16> kPermutation = {2, 6,  3,  10, 7, 0,  4,  13,
                                                      1, 11, 12, 5,  9, 14, 15, 8};

/// The arguments of the compression function.
struct Node {
  Value value = kInitial;
  Block block{};
  std::uint64_t chunk = 0;
  std::uint32_t num_bytes = kBlockBytes;
  std::uint32_t flags = 0;
};

void mix(Block& state, const std::array<std::size_t, 4>& at, std::uint32_t x, std::uint32_t y) {
  auto& [a, b, c, d] = at;
  state[a] += state[b] + x;
  state[d] = std::rotr(state[d] ^ state[a], 16);
  state[c] += state[d];
  state[b] = std::rotr(state[b] ^ state[c], 12);
  state[a] += state[b] + y;
  state[d] = std::rotr(state[d] ^ state[a], 8);
  state[c] += state[d];
  state[b] = std::rotr(state[b] ^ state[c], 7);
}

/// One round: the columns of the state as a matrix of 4 x 4, then its diagonals.
void mix_all(Block& state, const Block& m) {
  for (std::size_t i = 0; i < 4; ++i) {
    mix(state, {i, 4 + i, 8 + i, 12 + i}, m[2 * i], m[2 * i + 1]);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    mix(state, {i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4}, m[8 + 2 * i], m[9 + 2 * i]);
  }
}

Value compress(const Node& node) {
  Block state{};
  std::ranges::copy(node.value, state.begin());
  std::copy_n(kInitial.begin(), 4, state.begin() + 8);
  state[12] = static_cast<std::uint32_t>(node.chunk);
  state[13] = static_cast<std::uint32_t>(node.chunk >> 32U);
  state[14] = node.num_bytes;
  state[15] = node.flags;
  Block message = node.block;
  for (int round = 0; round < 7; ++round) {
    if (round > 0) {
      const Block before = message;
      for (std::size_t i = 0; i < 16; ++i) message[i] = before[kPermutation[i]];
    }
    mix_all(state, message);
  }
  Value value{};
  for (std::size_t i = 0; i < 8; ++i) value[i] = state[i] ^ state[i + 8];
  return value;
}

/// At most 64 bytes as little-endian words, zeros behind them.
Block block_of(std::string_view bytes) {
  Block block{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    block[i / 4] |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << 8 * (i % 4);
  }
  return block;
}

/// The last block of a chunk, those before it compressed.
Node chunk_node(std::string_view bytes, std::uint64_t chunk) {
  Node node{.chunk = chunk, .flags = kChunkStart};
  while (bytes.size() > kBlockBytes) {
    node.block = block_of(bytes.substr(0, kBlockBytes));
    node.value = compress(node);
    node.flags = 0;
    bytes.remove_prefix(kBlockBytes);
  }
  node.block = block_of(bytes);
  node.num_bytes = static_cast<std::uint32_t>(bytes.size());
  node.flags |= kChunkEnd;
  return node;
}

/// The top of the tree over bytes that begin with the given chunk. On the left there are as many
/// whole chunks as the largest power of two that leaves something on the right.
Node tree_node(std::string_view bytes, std::uint64_t chunk) {
  if (bytes.size() <= kChunkBytes) return chunk_node(bytes, chunk);
  const std::size_t left = std::bit_floor((bytes.size() - 1) / kChunkBytes);
  Node parent{.flags = kParent};
  const Value first = compress(tree_node(bytes.substr(0, left * kChunkBytes), chunk));
  const Value second = compress(tree_node(bytes.substr(left * kChunkBytes), chunk + left));
  std::ranges::copy(first, parent.block.begin());
  std::ranges::copy(second, parent.block.begin() + first.size());
  return parent;
}

}  // namespace

std::array<std::byte, 32> blake3(std::string_view bytes) {
  Node root = tree_node(bytes, 0);
  root.flags |= kRoot;
  const Value value = compress(root);
  std::array<std::byte, 32> digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::byte>(value[i / 4] >> 8 * (i % 4));
  }
  return digest;
}

}  // namespace fovea
