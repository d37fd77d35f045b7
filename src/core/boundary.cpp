// The one place where exceptions of the standard library become ours.
#include "core/boundary.h"

#include <cxxabi.h>

#include <new>
#include <stdexcept>
#include <system_error>

#include "core/check.h"

namespace fovea {

namespace {

/// Made before main, because no message can be made where memory has run out. Copies share its
/// text.
const Error kNoMemory(ErrorCode::kOutOfMemory, "out of memory");

[[noreturn]] void fail(ErrorCode code, const char* reporter, const std::exception& exception) {
  try {
    throw Error(code, cat(reporter, exception.what()));
  } catch (const std::bad_alloc&) {
    throw Error(kNoMemory);
  }
}

}  // namespace

void rethrow_as_error() {
  try {
    throw;
  } catch (const ThrownByCaller& thrown) {
    std::rethrow_exception(thrown.exception);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw Error(kNoMemory);
  } catch (const std::length_error&) {  // larger than a vector can be
    throw Error(kNoMemory);
  } catch (const std::system_error& error) {
    fail(error.code() == std::errc::not_enough_memory ? ErrorCode::kOutOfMemory : ErrorCode::kIo,
         "the system reports: ", error);
  } catch (const std::exception& error) {
    fail(ErrorCode::kInternal, "unexpected exception: ", error);
  } catch (const abi::__forced_unwind&) {  // the thread is cancelled, which nothing may stop
    throw;
  } catch (...) {  // thrown by the tower of a library
    throw Error(ErrorCode::kInternal, "unexpected exception that is no std::exception");
  }
}

}  // namespace fovea
