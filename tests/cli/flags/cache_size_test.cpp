// Sizes of the encoder cache as the user writes them.
#include "flags/cache_size.h"

#include <gtest/gtest.h>

#include "cli/expect_usage_error.h"

namespace fovea::cli {
namespace {

std::int64_t bytes_of(std::string_view text) { return parse_bytes(text, "--flag"); }

TEST(CacheSize, WithASuffixIsBytes) {
  EXPECT_EQ(bytes_of("100B"), 100);
  EXPECT_EQ(bytes_of("2K"), 2'000);
  EXPECT_EQ(bytes_of("512M"), 512'000'000);
  EXPECT_EQ(bytes_of("1.5Gi"), 1'610'612'736);
  EXPECT_EQ(bytes_of("64MiB"), 67'108'864);
  EXPECT_EQ(bytes_of("3 kib"), 3'072);
  EXPECT_EQ(bytes_of("0"), 0);
}

TEST(CacheSize, RefusesWhatIsNoSize) {
  for (const std::string text :
       {"", "-1", "1.5", "16384", "M", "5X", "12MM", "1e3", "99999999999G"}) {
    test::expect_usage_error("--flag", [&] { (void)bytes_of(text); });
  }
}

TEST(CacheSize, IsShownAsTheDefaultThatItIs) {
  const auto shown = [](std::int64_t bytes) {
    CLI::App app;
    EngineOptions options{.encoder_cache_bytes = bytes};
    add_encoder_cache_size(app, options);
    return app.get_option("--encoder-cache-size")->get_default_str();
  };
  EXPECT_EQ(shown(std::int64_t{1} << 30), "1.0 GiB");
  EXPECT_EQ(shown(0), "0");
}

}  // namespace
}  // namespace fovea::cli
