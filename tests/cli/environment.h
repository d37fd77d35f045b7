#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace fovea::test {

/// An environment variable, which has its own value again, or none, when this ends.
class Variable {
 public:
  explicit Variable(const char* name) : name_(name) {
    if (const char* const value = std::getenv(name)) before_ = value;
  }
  Variable(const char* name, const std::string& value) : Variable(name) { set(value); }
  ~Variable() { set(before_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  void set(const std::optional<std::string>& value) const {
    value ? ::setenv(name_, value->c_str(), 1) : ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace fovea::test
