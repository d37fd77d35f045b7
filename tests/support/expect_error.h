#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fovea/error.h"

namespace fovea::test {

/// Expects that `action` throws fovea::Error with this code and a message that contains `part`.
template <class Action>
void expect_error(ErrorCode code, const std::string& part, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_STREQ(to_string(error.code()), to_string(code)) << error.what();
    EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
    return;
  }
  ADD_FAILURE() << "expected an error with \"" << part << '"';
}

}  // namespace fovea::test
