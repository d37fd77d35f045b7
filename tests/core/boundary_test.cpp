#include "core/boundary.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "core/check.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

/// What leaves a public function in which `exception` is thrown.
template <class Exception>
[[noreturn]] void throw_out(const Exception& exception) try {
  throw exception;
} catch (...) {
  rethrow_as_error();
}

template <class Exception>
void expect_becomes(const Exception& exception, ErrorCode code, const std::string& message) {
  test::expect_error(code, message, [&] { throw_out(exception); });
}

TEST(RethrowAsError, TranslatesWhatOthersThrow) {
  expect_becomes(std::bad_alloc(), ErrorCode::kOutOfMemory, "out of memory");
  expect_becomes(std::length_error("vector"), ErrorCode::kOutOfMemory, "out of memory");
  expect_becomes(std::system_error(std::make_error_code(std::errc::not_enough_memory)),
                 ErrorCode::kOutOfMemory, "the system reports: ");
  expect_becomes(
      std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again), "thread"),
      ErrorCode::kIo, "the system reports: thread");
  expect_becomes(std::filesystem::filesystem_error("a", std::make_error_code(std::errc::io_error)),
                 ErrorCode::kIo, "the system reports: ");
  expect_becomes(std::out_of_range("at"), ErrorCode::kInternal, "unexpected exception: at");
  expect_becomes(42, ErrorCode::kInternal, "unexpected exception that is no std::exception");
}

TEST(RethrowAsError, LetsErrorsPass) {
  expect_becomes(Error(ErrorCode::kNotFound, "nowhere"), ErrorCode::kNotFound, "nowhere");
}

TEST(CallBack, LetsWhatTheCallerThrowsPassAsItIs) {
  const auto call = [](const auto& exception) {
    try {
      call_back([&](int) { throw exception; }, 1);
    } catch (...) {
      rethrow_as_error();
    }
  };
  EXPECT_THROW(call(std::bad_alloc()), std::bad_alloc);
  EXPECT_THROW(call(std::out_of_range("mine")), std::out_of_range);
  EXPECT_THROW(call(7), int);
  EXPECT_THROW(call(Error(ErrorCode::kCancelled, "enough")), Error);
}

TEST(CallBack, RefusesAFunctionThatIsNone) {
  test::expect_error(ErrorCode::kInvalidArgument, "expected a function, got none",
                     [] { call_back(std::function<void()>()); });
}

TEST(CallBack, ReturnsWhatTheFunctionReturns) {
  EXPECT_EQ(call_back([](int a, int b) { return a + b; }, 2, 3), 5);
}

}  // namespace
}  // namespace fovea
