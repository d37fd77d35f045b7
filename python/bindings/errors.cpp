#include "errors.h"

#include <nanobind/stl/string.h>

#include <array>
#include <exception>
#include <string>

#include "paths.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

void translate(const std::exception_ptr& thrown, void* /*unused*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    PyErr_SetObject(error_type().ptr(), error_object(error).ptr());
  }
}

ErrorCode code_named(const std::string& name) {
  constexpr std::array kCodes{ErrorCode::kInvalidArgument, ErrorCode::kCorruptData,
                              ErrorCode::kNotFound,        ErrorCode::kUnsupported,
                              ErrorCode::kOutOfMemory,     ErrorCode::kUnavailable,
                              ErrorCode::kDevice,          ErrorCode::kIo,
                              ErrorCode::kCancelled,       ErrorCode::kDeadline};
  for (const ErrorCode code : kCodes) {
    if (name == to_string(code)) return code;
  }
  return ErrorCode::kInternal;
}

}  // namespace

nb::object error_type() { return nb::module_::import_("fovea_encoder._error").attr("Error"); }

void translate_errors() { nb::register_exception_translator(translate); }

nb::object error_object(const Error& error) {
  // A message may hold bytes of a file name that are no UTF-8.
  return error_type()(printable_text(error.what()), to_string(error.code()));
}

Error error_from(nb::handle error) {
  return Error(code_named(nb::cast<std::string>(error.attr("code"))), file_path(nb::str(error)));
}

}  // namespace fovea::python
