#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "errors.h"

namespace fovea::test {

/// Expects that `action` throws cli::UsageError with a message that contains `part`.
template <class Action>
void expect_usage_error(const std::string& part, Action&& action) {
  try {
    action();
  } catch (const cli::UsageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
    return;
  }
  ADD_FAILURE() << "expected a usage error with \"" << part << '"';
}

}  // namespace fovea::test
