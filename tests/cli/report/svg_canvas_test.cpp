#include "report/svg_canvas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fovea::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string document_of(const Canvas& canvas) { return canvas.document(100, 50, "title"); }

TEST(SvgCanvas, ADocumentHasASizeATitleAndAWhiteGround) {
  const std::string svg = document_of(Canvas());
  EXPECT_THAT(svg, StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" "
                              "height=\"50\" viewBox=\"0 0 100 50\""));
  EXPECT_THAT(svg, HasSubstr("<title>title</title>\n<rect width=\"100\" height=\"50\" "
                             "fill=\"#ffffff\"/>\n</svg>\n"));
}

TEST(SvgCanvas, ElementsStandInTheOrderOfTheCalls) {
  Canvas canvas;
  canvas.rect({1, 2}, 3, 4, "red");
  canvas.line({0, 0}, {5, 6}, "blue");
  EXPECT_THAT(document_of(canvas),
              HasSubstr("<rect x=\"1.0\" y=\"2.0\" width=\"3.0\" height=\"4.0\" fill=\"red\"/>\n"
                        "<line x1=\"0.0\" y1=\"0.0\" x2=\"5.0\" y2=\"6.0\" stroke=\"blue\"/>\n"));
}

TEST(SvgCanvas, TextsAndTooltipsAreEscaped) {
  Canvas canvas;
  canvas.text({0, 0}, "start", "<a&\"b\">\n");
  canvas.dot({0, 0}, "red", "1 < 2");
  EXPECT_THAT(document_of(canvas), HasSubstr(">&lt;a&amp;&quot;b&quot;&gt;?</text>"));
  EXPECT_THAT(document_of(canvas), HasSubstr("<title>1 &lt; 2</title></circle>"));
}

TEST(SvgCanvas, TextsAreUtf8WithoutWhatXmlForbids) {
  Canvas canvas;
  canvas.text({0, 0}, "start", "gr\xfc\xdf\uffff\u00e4");
  EXPECT_THAT(document_of(canvas), HasSubstr(">gr???\u00e4</text>"));
}

TEST(SvgCanvas, ThePaletteRepeatsAfterSix) {
  EXPECT_EQ(color_of(0), color_of(6));
  EXPECT_NE(color_of(0), color_of(5));
}

TEST(SvgCanvas, WidthsCountCharactersNotBytes) {
  EXPECT_DOUBLE_EQ(width_of("\xc3\xa4"), width_of("a"));  // one letter, two bytes
  EXPECT_DOUBLE_EQ(width_of("ab"), 2 * width_of("a"));
}

}  // namespace
}  // namespace fovea::cli
