#include "ranks/transport/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

namespace fovea::ranks {
namespace {

TEST(SharedMemory, IsTheSameForAllWhoMapIt) {
  const FileDescriptor memory = SharedMemory::create(3);
  const SharedMemory one(memory, 3);
  const SharedMemory other(memory, 3);
  one.piece(4, 2).front() = std::byte{7};
  EXPECT_EQ(other.piece(4, 2).front(), std::byte{7});
  EXPECT_EQ(other.piece(4, 2).size(), kPieceBytes);
}

TEST(SharedMemory, HasAPlaceForEveryRankOfTwoRounds) {
  const SharedMemory memory(SharedMemory::create(3), 3);
  std::set<std::byte*> places;
  for (std::uint64_t round = 0; round < 2; ++round) {
    for (int rank = 0; rank < 3; ++rank) places.insert(memory.piece(round, rank).data());
  }
  EXPECT_EQ(places.size(), 6U);
  EXPECT_EQ(memory.piece(0, 1).data(), memory.piece(2, 1).data());
}

TEST(SharedMemory, KeepsItsSize) {
  const FileDescriptor memory = SharedMemory::create(2);
  EXPECT_NE(ftruncate(memory.get(), 0), 0);
  EXPECT_NE(ftruncate(memory.get(), 1 << 30), 0);
}

}  // namespace
}  // namespace fovea::ranks
