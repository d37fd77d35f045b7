#include "report/table.h"

#include <gtest/gtest.h>

namespace fovea::cli {
namespace {

TEST(Table, AlignsNumbersRightAndTextLeft) {
  Table table({{"#"}, {"item", Table::Align::kLeft}, {"rows"}});
  table.add_row({"0", "a.png", "12"});
  table.add_row({"10", "long name.png", "1234"});
  EXPECT_EQ(table.text(),
            " #  item           rows\n"
            "--  -------------  ----\n"
            " 0  a.png            12\n"
            "10  long name.png  1234\n");
}

TEST(Table, PutsTotalsUnderARule) {
  Table table({{"n"}});
  table.add_row({"1"});
  table.add_rule();
  table.add_row({"100"});
  EXPECT_EQ(table.text(), "  n\n---\n  1\n---\n100\n");
}

TEST(Table, LeavesNoTrailingBlanks) {
  Table table({{"item", Table::Align::kLeft}, {"note", Table::Align::kLeft}});
  table.add_row({"a"});
  EXPECT_EQ(table.text(), "item  note\n----  ----\na\n");
}

TEST(Table, MeasuresCharactersNotBytes) {
  Table table({{"x"}, {"y"}});
  table.add_row({"äöü", "1"});
  EXPECT_EQ(table.text(), "  x  y\n---  -\näöü  1\n");
}

TEST(Table, BreaksTextOfTheLastColumn) {
  Table table({{"n"}, {"found", Table::Align::kLeft}});
  table.add_row({"1", "a few words"});
  table.add_row({"20", "averylongword and more"});
  EXPECT_EQ(table.text(10),
            " n  found\n"
            "--  -------------\n"
            " 1  a few\n"
            "    words\n"
            "20  averylongword\n"
            "    and\n"
            "    more\n");
  EXPECT_EQ(table.text(1), table.text(5)) << "a word a line";
  EXPECT_EQ(table.text(26), table.text());
}

TEST(Table, LeavesNumbersOfTheLastColumnWhole) {
  Table table({{"rows"}});
  table.add_row({"1 234"});
  EXPECT_EQ(table.text(2), table.text());
}

TEST(Table, WithoutRowsIsItsHeader) { EXPECT_EQ(Table({{"rows"}}).text(), "rows\n----\n"); }

}  // namespace
}  // namespace fovea::cli
