#pragma once

#include <locale>

namespace fovea::test {

/// Gives the process a locale that writes 1234.5 as 1.234,5, as a host program of many countries
/// does, until the end of a test.
class GroupedLocale {
 public:
  GroupedLocale() : before_(std::locale::global(std::locale(std::locale(), new Digits))) {}
  ~GroupedLocale() { std::locale::global(before_); }
  GroupedLocale(const GroupedLocale&) = delete;
  GroupedLocale& operator=(const GroupedLocale&) = delete;

 private:
  struct Digits : std::numpunct<char> {
    [[nodiscard]] char do_decimal_point() const override { return ','; }
    [[nodiscard]] char do_thousands_sep() const override { return '.'; }
    [[nodiscard]] std::string do_grouping() const override { return "\3"; }
  };

  std::locale before_;
};

}  // namespace fovea::test
