#include "serve/routes/output_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "serve/rows/rows_fixture.h"

namespace fovea::serve {
namespace {

using test::refusal;
using testing::HasSubstr;

OutputOptions read(const std::string& body, const std::string* accept = nullptr) {
  const SharedJson json = parse_json_object(body);
  return read_output(json->root().find("output"), accept);
}

/// With these members in `output`.
OutputOptions output(const std::string& members) { return read("{\"output\": {" + members + "}}"); }

TEST(ReadOutput, FollowsTheHeaderAcceptWithoutTheMember) {
  EXPECT_EQ(read("{}").format, ReplyFormat::kJson);
  const std::string safetensors = "text/plain, application/vnd.safetensors";
  EXPECT_EQ(read("{}", &safetensors).format, ReplyFormat::kSafetensors);
  EXPECT_EQ(read(R"({"output": {"format": "npy"}})", &safetensors).format, ReplyFormat::kNpy);
  const std::string other = "text/plain";
  EXPECT_EQ(read("{}", &other).format, ReplyFormat::kJson);
}

TEST(ReadOutput, ReadsEveryMember) {
  const OutputOptions options =
      output(R"("format": "raw", "dtype": "float16", "endianness": "big", "pooling": "max",
                "deepstack": "concat", "naming": "hf", "normalize": true,
                "include": ["timestamps", "part"])");
  EXPECT_EQ(options.format, ReplyFormat::kRaw);
  EXPECT_FALSE(options.dtype_is_auto);
  EXPECT_EQ(options.rows.type, ElementType::kFloat16);
  EXPECT_EQ(options.rows.order, ByteOrder::kBig);
  EXPECT_EQ(options.rows.pooling, Pooling::kMax);
  EXPECT_EQ(options.rows.deepstack, Deepstack::kConcat);
  EXPECT_EQ(options.naming, TensorNaming::kHf);
  EXPECT_TRUE(options.rows.normalize);
  EXPECT_FALSE(options.grid) << "include names all that is wanted";
  EXPECT_TRUE(options.timestamps);
  EXPECT_TRUE(options.part);
  EXPECT_FALSE(options.timings);
}

TEST(ReadOutput, MakesAVectorOfTheMainEmbeddingAlone) {
  EXPECT_EQ(output("").rows.deepstack, Deepstack::kConcat);
  EXPECT_EQ(output(R"("pooling": "mean")").rows.deepstack, Deepstack::kMain);
}

TEST(ReadOutput, NamesWhatItDoesNotKnow) {
  const auto refused = [](const char* members) { return refusal([&] { (void)output(members); }); };
  const ApiError format = refused(R"("format": "bmp")");
  EXPECT_EQ(format.param(), "output.format");
  EXPECT_THAT(format.what(), HasSubstr("json, base64, torch, npy, safetensors, raw, got \"bmp\""));
  EXPECT_EQ(refused(R"("dtype": "float8")").code(), "unsupported_dtype");
  EXPECT_EQ(refused(R"("pooling": "sum")").param(), "output.pooling");
  EXPECT_EQ(refused(R"("include": "grid")").param(), "output.include");
  EXPECT_EQ(refused(R"("include": [7])").param(), "output.include[0]");
  EXPECT_EQ(refused(R"("fromat": "npy")").code(), "unknown_field");
}

TEST(ChooseDtype, IsThatOfTheCheckpointWhereTheFormatHoldsIt) {
  const auto chosen = [](ReplyFormat format, RowDType checkpoint) {
    OutputOptions options{.format = format};
    choose_dtype(options, checkpoint);
    EXPECT_FALSE(options.dtype_is_auto);
    return options.rows.type;
  };
  EXPECT_EQ(chosen(ReplyFormat::kRaw, RowDType::kBFloat16), ElementType::kBFloat16);
  EXPECT_EQ(chosen(ReplyFormat::kJson, RowDType::kBFloat16), ElementType::kFloat32);
  EXPECT_EQ(chosen(ReplyFormat::kNpy, RowDType::kBFloat16), ElementType::kFloat32);
  EXPECT_EQ(chosen(ReplyFormat::kNpy, RowDType::kFloat16), ElementType::kFloat16);
  OutputOptions asked{.dtype_is_auto = false, .rows = {.type = ElementType::kFp8E4M3}};
  choose_dtype(asked, RowDType::kBFloat16);
  EXPECT_EQ(asked.rows.type, ElementType::kFp8E4M3);
}

TEST(DeepstackOf, LeavesTheLevelsOutOfVectors) {
  EXPECT_EQ(deepstack_of(std::nullopt, Pooling::kNone), Deepstack::kConcat);
  EXPECT_EQ(deepstack_of(std::nullopt, Pooling::kMean), Deepstack::kMain);
  EXPECT_EQ(deepstack_of("split", Pooling::kNone), Deepstack::kSplit);
  EXPECT_EQ(deepstack_of("concat", Pooling::kMean), Deepstack::kConcat);
}

}  // namespace
}  // namespace fovea::serve
