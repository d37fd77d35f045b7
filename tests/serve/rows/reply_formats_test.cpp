#include "serve/rows/reply_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/row_formats.h"
#include "rows_fixture.h"
#include "serve/text/base64.h"
#include "support/json.h"
#include "support/sha256.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;

using test::item_of;
using test::numbers_of;
using test::refusal;
using test::text_of;
using testing::ElementsAre;
using testing::HasSubstr;
using Shape = std::vector<std::int64_t>;

EncodeReplyHead head_of(std::int64_t hidden) {
  EncodeReplyHead head;
  head.id = "enc-1";
  head.created = 1700000000;
  head.model = "m";
  head.hidden = hidden;
  return head;
}

OutputOptions output_of(ReplyFormat format, ElementType type = ElementType::kFloat32) {
  OutputOptions options;
  options.format = format;
  options.dtype_is_auto = false;
  options.rows.type = type;
  return options;
}

/// Two rows of two numbers of an image with a grid.
EncodedItem image(std::vector<float> numbers = {1, 2, 3, 4}, RowDType dtype = RowDType::kFloat32) {
  const auto item = item_of(2, std::move(numbers), dtype);
  item->grid_thw = {1, 2, 4};
  return {.embedding = item, .id = "", .uuid = ""};
}

EncodedItem video() {
  const auto item = item_of(1, {5, 6}, RowDType::kFloat32, "items[1].video");
  item->modality = Modality::kVideo;
  item->grid_thw = {2, 2, 2};
  item->timestamps = {0.25, 1.5};
  return {.embedding = item, .id = "", .uuid = "u-1"};
}

Json json_of(const Reply& reply) { return Json::parse(text_of(reply.body)); }

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::vector<std::uint8_t> decoded(const Json& text) {
  return from_base64(text.get<std::string>()).value();
}

TEST(EncodeReply, DescribesItemsInJson) {
  EncodedItem item = image();
  item.id = "x";
  const Reply reply = encode_reply(output_of(ReplyFormat::kJson), head_of(1), {item, video()});
  EXPECT_EQ(reply.content_type, "application/json");
  EXPECT_EQ(*find_header(reply.headers, "X-Fovea-Format"), "json");
  EXPECT_EQ(
      text_of(reply.body),
      R"({"id":"enc-1","object":"encoding.list","created":1700000000,"model":"m","data":[)"
      R"({"index":0,"id":"x","object":"encoding","modality":"image","num_embeds":2,"width":2,)"
      R"("hidden":1,"deepstack_levels":0,"dtype":"float32","shape":[2,2],"grid_thw":[1,2,4],)"
      R"("data":[[1,2],[3,4]]},)"
      R"({"index":1,"uuid":"u-1","object":"encoding","modality":"video","num_embeds":1,"width":2,)"
      R"("hidden":1,"deepstack_levels":0,"dtype":"float32","shape":[1,2],"grid_thw":[2,2,2],)"
      R"("data":[[5,6]]}],)"
      R"("usage":{"prompt_tokens":3,"total_tokens":3,"images":1,"videos":1}})");
}

TEST(EncodeReply, IncludesWhatIsAskedFor) {
  EncodedItem item = video();
  OutputOptions options = output_of(ReplyFormat::kBase64);
  options.grid = false;
  options.timestamps = true;
  options.timings = true;
  const auto embedding = std::make_shared<Embedding>(*item.embedding);
  embedding->key = "ab";
  embedding->times.encode_ms = 1.5;
  embedding->retained = {3};
  item.embedding = embedding;
  const Json entry = json_of(encode_reply(options, head_of(2), {item}))["data"][0];
  EXPECT_FALSE(entry.contains("grid_thw"));
  EXPECT_EQ(entry["timestamps"], Json::parse("[0.25,1.5]"));
  EXPECT_EQ(entry["timings_ms"]["encode"], 1.5);
  EXPECT_EQ(entry["key"], "ab");
  EXPECT_EQ(entry["retained"], Json::parse("[3]"));
  EXPECT_EQ(entry["data"], "AACgQAAAwEA=");
}

TEST(EncodeReply, SplitsLevelsInJson) {
  OutputOptions options = output_of(ReplyFormat::kJson);
  options.rows.deepstack = Deepstack::kSplit;
  const EncodedItem item{.embedding = item_of(2, {1, 2, 3, 4, 5, 6}), .id = "", .uuid = ""};
  const Json entry = json_of(encode_reply(options, head_of(1), {item}))["data"][0];
  EXPECT_EQ(entry["shape"], Json::parse("[2,1]"));
  EXPECT_EQ(entry["data"], Json::parse("[[1],[4]]"));
  EXPECT_EQ(entry["deepstack"], Json::parse("[[[2],[5]],[[3],[6]]]"));
}

TEST(EncodeReply, WritesArchivesOfTorch) {
  const auto rows = item_of(2, {0, 0, 0, 0, 0, 0}, RowDType::kBFloat16);
  rows->grid_thw = {1, 52, 92};
  const Json entry =
      json_of(encode_reply(output_of(ReplyFormat::kTorch, ElementType::kBFloat16), head_of(3),
                           {{.embedding = rows, .id = "", .uuid = ""}}))["data"][0];
  EXPECT_EQ(fovea::test::sha256_hex(decoded(entry["data"])),
            "d5d71fd9c496900e6e1a2e6f3d55f7790f6ebe6a2fa39f4a14dcaaa6cf52ae15");
  EXPECT_EQ(fovea::test::sha256_hex(decoded(entry["grid_thw_torch"])),
            "3c33cb3d5a3efc9ad9fd4572f83e6e530a8ddc3196dfc673f7a9cf14e025d015");
}

TEST(EncodeReply, GivesTheTimesOfVideosWithTorch) {
  const OutputOptions options = output_of(ReplyFormat::kTorch);
  EXPECT_TRUE(
      json_of(encode_reply(options, head_of(2), {video()}))["data"][0].contains("timestamps"));
}

TEST(EncodeReply, IncludesAFinishedPart) {
  OutputOptions options = output_of(ReplyFormat::kTorch);
  options.part = true;
  const Json data = json_of(encode_reply(options, head_of(2), {image(), video()}))["data"];
  const Json& first = data[0]["part"];
  EXPECT_EQ(first["type"], "image_embeds");
  EXPECT_EQ(first["image_embeds"]["image_embeds"], data[0]["data"]);
  EXPECT_EQ(first["image_embeds"]["image_grid_thw"], data[0]["grid_thw_torch"]);
  EXPECT_FALSE(first.contains("uuid"));
  const Json& second = data[1]["part"];
  EXPECT_EQ(second["type"], "video_embeds");
  EXPECT_EQ(second["video_embeds"]["video_embeds"], data[1]["data"]);
  EXPECT_EQ(second["video_embeds"]["timestamps"], Json::parse("[0.25,1.5]"));
  EXPECT_EQ(second["uuid"], "u-1");
}

TEST(EncodeReply, HasATensorAloneInAPartWithoutAGrid) {
  OutputOptions options = output_of(ReplyFormat::kTorch);
  options.part = true;
  const Json entry = json_of(encode_reply(
      options, head_of(2), {{.embedding = item_of(1, {1, 2}), .id = "", .uuid = ""}}))["data"][0];
  EXPECT_EQ(entry["part"]["image_embeds"], entry["data"]);
}

TEST(EncodeReply, RefersToRowsInSafetensors) {
  const EncodedItem item = image({1, 2, 3, 4}, RowDType::kBFloat16);
  const Reply reply = encode_reply(output_of(ReplyFormat::kSafetensors, ElementType::kBFloat16),
                                   head_of(2), {item});
  EXPECT_EQ(reply.content_type, "application/octet-stream");
  EXPECT_EQ(reply.body.back().bytes.data(), item.embedding->data.data());
  const std::string file = text_of(reply.body);
  const std::vector<StoredTensor> tensors = read_safetensors(bytes_of(file), "reply");
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].name, "item_0.grid_thw");
  EXPECT_EQ(tensors[1].name, "item_0");
  EXPECT_EQ(tensors[1].type, StoredType::kBFloat16);
  EXPECT_EQ(tensors[1].shape, (Shape{2, 2}));
  EXPECT_TRUE(std::ranges::equal(tensors[1].data, item.embedding->data));
}

TEST(EncodeReply, DescribesItemsInTheMetadataOfSafetensors) {
  const std::string file = text_of(
      encode_reply(output_of(ReplyFormat::kSafetensors), head_of(2), {image(), video()}).body);
  const auto length =
      static_cast<unsigned char>(file[0]) + 256U * static_cast<unsigned char>(file[1]);
  const Json metadata = Json::parse(file.substr(8, length))["__metadata__"];
  EXPECT_EQ(metadata["format"], "pt");
  EXPECT_EQ(metadata["fovea.model"], "m");
  const Json items = Json::parse(metadata["fovea.items"].get<std::string>());
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[1]["shape"], Json::parse("[1,2]"));
  EXPECT_FALSE(items[1].contains("data"));
}

TEST(EncodeReply, NamesSplitTensorsAndKeptRows) {
  OutputOptions options = output_of(ReplyFormat::kSafetensors);
  options.rows.deepstack = Deepstack::kSplit;
  options.grid = false;
  const auto item = item_of(1, {1, 2, 3});
  item->retained = {7};
  const std::string file =
      text_of(encode_reply(options, head_of(1), {{.embedding = item, .id = "", .uuid = ""}}).body);
  std::vector<std::string> names;
  for (const StoredTensor& tensor : read_safetensors(bytes_of(file), "reply"))
    names.push_back(tensor.name);
  EXPECT_THAT(names,
              ElementsAre("item_0.retained", "item_0", "item_0.deepstack_0", "item_0.deepstack_1"));
}

TEST(EncodeReply, JoinsTheItemsOfAModality) {
  OutputOptions options = output_of(ReplyFormat::kSafetensors);
  options.naming = TensorNaming::kHf;
  const std::string file =
      text_of(encode_reply(options, head_of(2), {image(), video(), image({7, 8, 9, 10})}).body);
  std::map<std::string, StoredTensor> tensors;
  for (StoredTensor& tensor : read_safetensors(bytes_of(file), "reply"))
    tensors[tensor.name] = tensor;
  ASSERT_EQ(tensors.size(), 4U);
  EXPECT_EQ(tensors["image_embeds"].shape, (Shape{4, 2}));
  const RowTensor rows{.shape = {4, 2}, .bytes = {tensors["image_embeds"].data, nullptr}};
  EXPECT_THAT(numbers_of(rows), ElementsAre(1, 2, 3, 4, 7, 8, 9, 10));
  EXPECT_EQ(tensors["image_grid_thw"].shape, (Shape{2, 3}));
  EXPECT_EQ(tensors["video_embeds"].shape, (Shape{1, 2}));
  EXPECT_EQ(tensors["video_grid_thw"].shape, (Shape{1, 3}));
}

TEST(EncodeReply, JoinsPooledVectorsAsRows) {
  OutputOptions options = output_of(ReplyFormat::kSafetensors);
  options.naming = TensorNaming::kHf;
  options.rows.pooling = Pooling::kMean;
  for (const std::size_t count : {1U, 2U}) {
    const std::string file =
        text_of(encode_reply(options, head_of(2), std::vector<EncodedItem>(count, image())).body);
    EXPECT_EQ(read_safetensors(bytes_of(file), "reply").back().shape,
              (Shape{static_cast<std::int64_t>(count), 2}));
  }
}

TEST(EncodeReply, WritesNpyOfOneItem) {
  const EncodedItem item = image();
  const Reply reply = encode_reply(output_of(ReplyFormat::kNpy), head_of(2), {item});
  EXPECT_EQ(reply.body.back().bytes.data(), item.embedding->data.data());
  const std::string file = text_of(reply.body);
  EXPECT_EQ(read_npy(bytes_of(file), "reply").shape, (Shape{2, 2}));
}

TEST(EncodeReply, SendsRawElementsWithMetadata) {
  const EncodedItem item = image();
  const Reply reply = encode_reply(output_of(ReplyFormat::kRaw), head_of(2), {item, video()});
  EXPECT_EQ(reply.body[0].bytes.data(), item.embedding->data.data());
  EXPECT_EQ(reply.size(), 24U);
  const Json metadata = Json::parse(*find_header(reply.headers, "metadata"));
  EXPECT_EQ(metadata["data"][1]["start"], 16);
  EXPECT_EQ(metadata["data"][1]["shape"], Json::parse("[1,2]"));
  EXPECT_EQ(metadata["data"][1]["endianness"], "little");
}

TEST(EncodeReply, RefusesWhatDoesNotFit) {
  EncodeReplyHead small = head_of(2);
  small.max_json_values = 3;
  const ApiError values =
      refusal([&] { (void)encode_reply(output_of(ReplyFormat::kJson), small, {image()}); });
  EXPECT_EQ(values.code(), "response_too_large_for_json");
  EXPECT_THAT(values.what(), HasSubstr("ask for output.format safetensors"));
  const ApiError header = refusal([&] {
    (void)encode_reply(output_of(ReplyFormat::kRaw), small, std::vector<EncodedItem>(90, image()));
  });
  EXPECT_EQ(header.code(), "metadata_header_too_large");
  EXPECT_THAT(header.what(), HasSubstr("ask for output.format safetensors"));
}

TEST(EncodeReply, HoldsItsRoomUntilThePartsAreGone) {
  for (const ReplyFormat format : {ReplyFormat::kJson, ReplyFormat::kSafetensors}) {
    const auto room = std::make_shared<int>();
    EncodeReplyHead head = head_of(2);
    head.room = room;
    Reply reply = encode_reply(output_of(format), head, {image()});
    head.room.reset();
    EXPECT_GT(room.use_count(), 1);
    reply = {};
    EXPECT_EQ(room.use_count(), 1);
  }
}

struct Contradiction {
  const char* name;
  OutputOptions options;
  std::size_t items;
  const char* code;
  const char* param;
};

TEST(CheckOutput, RefusesWhatFormatsCannotHold) {
  const auto with = [](ReplyFormat format, ElementType type, auto change) {
    OutputOptions options = output_of(format, type);
    change(options);
    return options;
  };
  const auto nothing = [](OutputOptions&) {};
  const auto big = [](OutputOptions& options) { options.rows.order = ByteOrder::kBig; };
  const auto split = [](OutputOptions& options) { options.rows.deepstack = Deepstack::kSplit; };
  const auto part = [](OutputOptions& options) { options.part = true; };
  const auto pooled_part = [](OutputOptions& options) {
    options.part = true;
    options.rows.pooling = Pooling::kMean;
  };
  using enum ReplyFormat;
  using enum ElementType;
  const std::vector<Contradiction> contradictions{
      {"json bf16", with(kJson, kBFloat16, nothing), 1, "unsupported_dtype", "output.dtype"},
      {"npy bf16", with(kNpy, kBFloat16, nothing), 1, "unsupported_dtype", "output.dtype"},
      {"torch fp8", with(kTorch, kFp8E4M3, nothing), 1, "unsupported_dtype", "output.dtype"},
      {"st fp8", with(kSafetensors, kFp8E5M2, nothing), 1, "unsupported_dtype", "output.dtype"},
      {"json big", with(kJson, kFloat32, big), 1, "invalid_value", "output.endianness"},
      {"st big", with(kSafetensors, kFloat32, big), 1, "invalid_value", "output.endianness"},
      {"raw split", with(kRaw, kFloat32, split), 1, "invalid_value", "output.deepstack"},
      {"npy split", with(kNpy, kFloat32, split), 1, "invalid_value", "output.deepstack"},
      {"npy two", with(kNpy, kFloat32, nothing), 2, "invalid_value", "output.format"},
      {"raw part", with(kRaw, kFloat32, part), 1, "invalid_value", "output.include"},
      {"pooled part", with(kTorch, kFloat32, pooled_part), 1, "invalid_value", "output.include"},
  };
  for (const Contradiction& wrong : contradictions) {
    const ApiError error = refusal([&] { check_output(wrong.options, wrong.items); });
    EXPECT_EQ(error.status(), 400) << wrong.name;
    EXPECT_EQ(error.code(), wrong.code) << wrong.name;
    EXPECT_EQ(error.param(), wrong.param) << wrong.name;
  }
  EXPECT_NO_THROW(check_output(with(kRaw, kFp8E4M3, big), 2));
  EXPECT_NO_THROW(check_output(with(kBase64, kBFloat16, split), 2));
  EXPECT_NO_THROW(check_output(with(kNpy, kFloat16, nothing), 1));
  EXPECT_NO_THROW(check_output(with(kTorch, kBFloat16, part), 2));
}

TEST(ReplyFactor, CountsCopies) {
  EXPECT_EQ(reply_factor(output_of(ReplyFormat::kSafetensors)), 0);
  EXPECT_DOUBLE_EQ(reply_factor(output_of(ReplyFormat::kBase64)), 8.0 / 3);
  EXPECT_GT(reply_factor(output_of(ReplyFormat::kTorch)), 2);
  EXPECT_GE(reply_factor(output_of(ReplyFormat::kJson)), 4);
  OutputOptions options = output_of(ReplyFormat::kRaw);
  options.rows.normalize = true;
  EXPECT_EQ(reply_factor(options), 1);
  options.format = ReplyFormat::kSafetensors;
  options.naming = TensorNaming::kHf;
  EXPECT_EQ(reply_factor(options), 2);
  options.rows.pooling = Pooling::kMean;
  EXPECT_EQ(reply_factor(options), 0);
  EXPECT_GT(reply_factor([] {
              OutputOptions part = output_of(ReplyFormat::kTorch);
              part.part = true;
              return part;
            }()),
            4);
}

}  // namespace
}  // namespace fovea::serve
