#include "help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "flags/cli11.h"

namespace fovea::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Help : public ::testing::Test {
 protected:
  Help() { set_columns(80); }
  void set_columns(std::size_t columns) {
    app_.formatter(std::make_shared<HelpFormatter>(columns));
  }

  CLI::App app_{"Does things.", "tool"};
  std::string text_;
  bool switch_ = true;
};

TEST_F(Help, BeginsWithTheDescriptionAndHowToCallIt) {
  app_.add_option("MODEL,--model", text_)->type_name("")->required();
  app_.add_option("-o,--output", text_)->type_name("FILE")->required();
  EXPECT_THAT(app_.help(),
              StartsWith("Does things.\n\nUsage: tool MODEL --output FILE [flags]\n\n"));
}

TEST_F(Help, NamesAVerbWhereThereAreSome) {
  app_.add_subcommand("plan");
  EXPECT_THAT(app_.help(), HasSubstr("Usage: tool VERB [flags]\n"));
}

TEST_F(Help, ListsAPositionalWithALongNameOnce) {
  app_.add_option("MODEL,--model", text_, "Directory of the model")->type_name("");
  const std::string help = app_.help();
  EXPECT_THAT(help, HasSubstr("Arguments:\n  MODEL"));
  EXPECT_EQ(help.find("Directory of the model"), help.rfind("Directory of the model"));
}

TEST_F(Help, ShowsTypeDefaultAndWhatIsRequired) {
  text_ = "float32";
  app_.add_option("--dtype", text_, "Element type")->type_name("T")->capture_default_str();
  app_.add_option("-o,--output", text_, "Where it goes")->type_name("FILE")->required();
  const std::string help = app_.help();
  EXPECT_THAT(help, ::testing::ContainsRegex("  --dtype T +Element type \\(default: float32\\)\n"));
  EXPECT_THAT(help, ::testing::ContainsRegex("  -o, --output FILE +Where it goes \\(required\\)"));
}

TEST_F(Help, ShowsBothNamesOfASwitchWithoutTheirValues) {
  app_.add_flag("--table,!--no-table", switch_, "Print a table");
  EXPECT_THAT(app_.help(), HasSubstr("  --table, --no-table "));
  EXPECT_THAT(app_.help(), Not(HasSubstr("{false}")));
}

TEST_F(Help, BreaksLinesBetweenWordsWhereTheTerminalEnds) {
  app_.add_option("--size", text_, "Alpha beta gamma delta epsilon zeta eta theta iota kappa")
      ->default_str("8 MiB");
  EXPECT_THAT(app_.help(), HasSubstr("--size TEXT                       "
                                     "Alpha beta gamma delta epsilon zeta eta\n"
                                     "                                    "
                                     "theta iota kappa (default: 8 MiB)\n"));
  set_columns(40);
  EXPECT_THAT(app_.help(), HasSubstr("  --size TEXT\n"
                                     "        Alpha beta gamma delta epsilon\n"
                                     "        zeta eta theta iota kappa\n"
                                     "        (default: 8 MiB)\n"));
}

TEST_F(Help, BreaksProseAndLeavesExamplesAlone) {
  set_columns(20);
  app_.footer("Items are counted\nin order.\n\nExample:\n  tool a-file another-file -o third-file");
  EXPECT_THAT(app_.help(), HasSubstr("\nItems are counted in\norder.\n\nExample:\n"
                                     "  tool a-file another-file -o third-file\n"));
}

TEST_F(Help, FlagsThatAreSeldomChangedAreOfTheLongHelp) {
  app_.add_option("--size", text_)->group("Limits");
  app_.add_option("--patience", text_)->group(seldom("Limits"));
  EXPECT_THAT(app_.help(), HasSubstr("Limits:\n  --size"));
  EXPECT_THAT(app_.help(), HasSubstr("\n--help-all shows 1 more flag.\n"));
  EXPECT_THAT(app_.help(), Not(HasSubstr("--patience")));
  const std::string all = app_.help("", CLI::AppFormatMode::All);
  EXPECT_THAT(all, HasSubstr("Limits:\n  --size"));
  EXPECT_THAT(all, HasSubstr("Limits, seldom changed:\n  --patience"));
  EXPECT_THAT(all, Not(HasSubstr("--help-all shows")));
}

}  // namespace
}  // namespace fovea::cli
