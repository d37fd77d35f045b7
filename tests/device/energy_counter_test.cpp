// The energy counter of a GPU: figures where the driver has them, and no error where it has not.
#include "device/energy_counter.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <utility>

namespace fovea::test {
namespace {

constexpr const char* kGpu = "0000:01:00.0";
constexpr const char* kGpuWithoutCounter = "0000:02:00.0";

/// The stand-in for NVML and its strings.
class EnergyCounterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const handle = dlopen(FOVEA_TEST_FAKE_NVML, RTLD_NOW);
    ASSERT_NE(handle, nullptr) << dlerror();
    sessions = reinterpret_cast<int (*)()>(dlsym(handle, "fake_nvml_sessions"));
    set = reinterpret_cast<void (*)(unsigned long long, bool)>(dlsym(handle, "fake_nvml_set"));
    set(123'456, false);
  }

  int (*sessions)() = nullptr;
  void (*set)(unsigned long long millijoules, bool is_lost) = nullptr;
};

TEST_F(EnergyCounterTest, CountsJoulesFromItsBeginning) {
  const EnergyCounter counter(kGpu, FOVEA_TEST_FAKE_NVML);
  EXPECT_EQ(counter.joules(), 0.0);
  set(125'000, false);
  EXPECT_DOUBLE_EQ(counter.joules().value(), 1.544);
}

TEST_F(EnergyCounterTest, EndsItsSession) {
  {
    EnergyCounter counter(kGpu, FOVEA_TEST_FAKE_NVML);
    const EnergyCounter moved = std::move(counter);
    EXPECT_EQ(sessions(), 1);
    EXPECT_TRUE(moved.joules());
    const EnergyCounter other(kGpuWithoutCounter, FOVEA_TEST_FAKE_NVML);
    EXPECT_EQ(sessions(), 1);
  }
  EXPECT_EQ(sessions(), 0);
}

TEST_F(EnergyCounterTest, HasNoFiguresWhereThereAreNone) {
  EXPECT_FALSE(EnergyCounter("", FOVEA_TEST_FAKE_NVML).joules());
  EXPECT_FALSE(EnergyCounter("no such GPU", FOVEA_TEST_FAKE_NVML).joules());
  EXPECT_FALSE(EnergyCounter(kGpuWithoutCounter, FOVEA_TEST_FAKE_NVML).joules());
  EXPECT_FALSE(EnergyCounter(kGpu, "libfovea-no-such-library.so.1").joules());
  EXPECT_FALSE(EnergyCounter(kGpu, "libc.so.6").joules()) << "a library without the functions";
}

TEST_F(EnergyCounterTest, AGpuThatIsLostHasNoFiguresAnyMore) {
  const EnergyCounter counter(kGpu, FOVEA_TEST_FAKE_NVML);
  set(130'000, true);
  EXPECT_FALSE(counter.joules());
  set(1, false);
  EXPECT_FALSE(counter.joules()) << "a counter that began anew";
}

}  // namespace
}  // namespace fovea::test
