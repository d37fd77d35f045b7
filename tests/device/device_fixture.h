#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "support/devices.h"

namespace fovea::test {

/// A device of this machine with a stream.
class DeviceTest : public ::testing::TestWithParam<AvailableDevice> {
 protected:
  static constexpr std::size_t kBytes = 1000;

  [[nodiscard]] Device& device() { return *under_test_.device; }
  [[nodiscard]] Stream& stream() { return *stream_; }

  [[nodiscard]] std::vector<std::uint8_t> read(const Buffer& from) { return read(stream(), from); }
  [[nodiscard]] static std::vector<std::uint8_t> read(Stream& on, const Buffer& from) {
    std::vector<std::uint8_t> bytes(from.bytes());
    on.copy(reinterpret_cast<std::byte*>(bytes.data()), from.data(), bytes.size());
    on.synchronize();
    return bytes;
  }
  void write(const Buffer& to, const std::vector<std::uint8_t>& bytes) {
    stream().copy(to.data(), reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
    stream().synchronize();
  }
  /// 1, 2, 3, ... from `first`
  [[nodiscard]] static std::vector<std::uint8_t> counting(int first) {
    std::vector<std::uint8_t> bytes(kBytes);
    std::iota(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(first));
    return bytes;
  }

 private:
  DeviceUnderTest under_test_ = GetParam().make(2);
  std::unique_ptr<Stream> stream_ = under_test_.device->create_stream();
};

inline std::string device_name(const ::testing::TestParamInfo<AvailableDevice>& info) {
  return info.param.name;
}

}  // namespace fovea::test
