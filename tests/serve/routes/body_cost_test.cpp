// What becomes of a body, and of one for which there is no memory. The limits are those of
// docs/security.md: memory of three times the body and 8 MiB, of which the body itself is one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <new>
#include <string>

#include "serve/api_error.h"
#include "serve/http/message.h"
#include "serve/media/media_source.h"
#include "serve/routes/cohere/embed_request.h"
#include "serve/routes/fovea/encode_request.h"
#include "serve/routes/kserve/infer_request.h"
#include "serve/routes/openai/embedding_request.h"
#include "support/allocations.h"

namespace fovea::serve {
namespace {

constexpr std::size_t kBodyBytes = 2'000'000;
constexpr std::size_t kMaxItems = 256;

SharedBytes bytes(const std::string& text) { return std::make_shared<const BodyBytes>(text); }

/// `head`, `piece` as often as a body has room for it, and `tail`.
std::string body_of(const std::string& head, const std::string& piece, const std::string& tail,
                    std::size_t size = kBodyBytes) {
  std::string text = head;
  while (text.size() + piece.size() + tail.size() <= size) text += piece;
  return text + tail;
}

std::string keys(std::size_t size) {
  std::string text = "{";
  for (std::size_t i = 0; text.size() < size; ++i) text += "\"" + std::to_string(i) + "\":0,";
  return text + "\"x\":0}";
}

void resolve(const std::vector<MediaReference>& media) {
  static MediaSource source{{.policy = UrlPolicy::kNone}};
  source.resolve(media, {}, "", [](const ResolvedMedia&, const std::exception_ptr&) {});
}

void encode(const std::string& type, const SharedBytes& body, const std::string& query = "") {
  Request request;
  request.query = query;
  request.headers.push_back({"Content-Type", type});
  request.body = body;
  const EncodeRequest read = read_encode_request(request, {.max_items = kMaxItems});
  std::vector<MediaReference> media;
  for (const EncodeItem& item : read.items) media.push_back(item.media);
  resolve(media);
}

using Reader = std::function<void(const SharedBytes&)>;

const Reader kEncode = [](const SharedBytes& body) { encode("application/json", body); };
const Reader kForm = [](const SharedBytes& body) {
  encode("multipart/form-data; boundary=b", body);
};
const Reader kEmbeddings = [](const SharedBytes& body) {
  const std::string_view text(reinterpret_cast<const char*>(body->data()), body->size());
  resolve(parse_embedding_request(parse_json_object(text, body), EmbeddingRoute::kPooling,
                                  {.max_items = kMaxItems})
              .media);
};
const Reader kEmbed = [](const SharedBytes& body) {
  const std::string_view text(reinterpret_cast<const char*>(body->data()), body->size());
  resolve(parse_embed_request(parse_json_object(text, body), kMaxItems).media);
};
const Reader kKserve = [](const SharedBytes& body) {
  resolve(parse_infer_request(body, std::nullopt, kMaxItems).media);
};

/// A form whose options are a text.
std::string form(const std::string& options) {
  return "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx\r\n"
         "--b\r\nContent-Disposition: form-data; name=\"options\"\r\n\r\n" +
         options + "\r\n--b--\r\n";
}

struct Body {
  const char* name;
  const Reader& read;
  std::string text;
};

std::vector<Body> hostile_bodies() {
  const std::string media = R"({"inputs":[{"name":"media","datatype":"BYTES","shape":[2],"data":[)";
  const std::string part = R"({"type":"image_url","image_url":"x"},)";
  return {
      {"zeros", kEncode, body_of(R"({"items":[)", "0,", "0]}")},
      {"empty objects", kEncode, body_of(R"({"items":[)", "{},", "0]}")},
      {"empty lists", kEncode, body_of(R"({"items":[)", "[],", "0]}")},
      {"empty texts", kEncode, body_of(R"({"items":[)", "\"\",", "0]}")},
      {"objects of one key", kEncode, body_of(R"({"items":[)", R"({"":0},)", "0]}")},
      {"nested lists", kEncode,
       body_of(R"({"items":[)", std::string(29, '[') + std::string(29, ']') + ",", "0]}")},
      {"keys", kEncode, keys(kBodyBytes)},
      {"keys below the limit", kEncode, keys(400'000)},
      {"zeros below the limit", kEncode, body_of(R"({"items":[)", "0,", "0]}", 195'000)},
      {"escaped texts", kEncode, body_of(R"({"items":[)", R"("\n",)", "0]}", 450'000)},
      {"long text", kEncode, body_of(R"({"items":[{"image":")", "AAAA", "\"}]}")},
      {"escaped text", kEncode, body_of(R"({"items":[{"image":")", "A\\/A", "\"}]}")},
      {"long URL", kEncode, body_of(R"({"items":[{"image":"http://a/)", "A", "\"}]}")},
      {"head of a data URL", kEncode,
       body_of(R"({"items":[{"image":"data:image/png;)", "A", ",\"}]}")},
      {"frames", kEncode, body_of(R"({"items":[{"frames":[)", "\"AAAA\",", "\"\"]}]}", 400'000)},
      {"frames of a text", kEncode,
       body_of(R"({"items":[{"video":"data:video/jpeg;base64,)", ",", "\"}]}")},
      {"frames of many texts", kEncode,
       body_of(R"({"items":[)",
               R"({"video":"data:video/jpeg;base64,)" + std::string(2000, ',') + "\"},",
               R"({"video":"x"}]})", 512'000)},
      {"parts", kEncode, body_of(R"({"messages":[{"content":[)", part, "0]}]}")},
      {"parts below the limit", kEncode,
       body_of(R"({"messages":[{"content":[)", part, "0]}]}", 600'000)},
      {"parts of text", kEncode,
       body_of(R"({"messages":[{"content":[)", R"({"text":""},)", "0]}]}", 350'000)},
      {"conversations", kEmbeddings, body_of(R"({"messages":[[])", ",[]", "]}", 250'000)},
      {"input", kEmbeddings,
       body_of(R"({"modality":"image","input":["x")", ",\"x\"", "]}", 350'000)},
      {"images", kEmbed, body_of(R"({"images":["x")", ",\"x\"", "]}", 350'000)},
      {"types", kEmbed,
       body_of(R"({"images":["x"],"embedding_types":["float")", ",\"float\"", "]}", 600'000)},
      {"tokens", kEmbeddings, body_of(R"({"input":[1)", ",1", "]}")},
      {"texts of KServe", kKserve, body_of(media, "\"x\",", "\"\"]}]}", 350'000)},
      {"outputs of KServe", kKserve,
       body_of(media + R"("a","b"]}],"outputs":[)", R"({"name":"grid_thw"},)", "0]}", 600'000)},
      {"options of a form", kForm, form(body_of(R"({"output":[)", "{},", "0]}"))},
      {"parts of a form", kForm,
       body_of("", "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx\r\n",
               "--b--\r\n")},
      {"headers of a part", kForm, body_of("--b\r\n", "A:b\r\n", "\r\n")},
      {"line ends", kForm, body_of("--b\r\n\r\n", "\r\n", "--b--")},
      {"almost boundaries", kForm, body_of("--b\r\n\r\n", "\r\n--b ", "--b--")},
  };
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Reads a body, whatever comes of it.
void read(const Reader& reader, const SharedBytes& body) {
  try {
    reader(body);
  } catch (const ApiError& error) {
    EXPECT_TRUE(error.status() == 400 || error.status() == 415 || error.status() == 422);
  }
}

TEST(BodyCost, IsBoundedByTheBytesOfTheBody) {
  for (const Body& body : hostile_bodies()) {
    SCOPED_TRACE(body.name);
    const SharedBytes text = bytes(body.text);
    const auto size = static_cast<std::int64_t>(text->size());
    const double begin = cpu_seconds();
    test::begin_peak();
    read(body.read, text);
    EXPECT_LE(test::peak_bytes(), 2 * size + (std::int64_t{8} << 20));
    // A tenth of that without sanitizers, on a machine with nothing else to do.
    EXPECT_LE(cpu_seconds() - begin, 1 + static_cast<double>(size) * 200e-9);
  }
}

TEST(BodyCost, OfABinaryTensorFollowsItsShape) {
  const std::string json =
      R"({"inputs":[{"name":"media","datatype":"BYTES","shape":[1],
          "parameters":{"binary_data_size":2000000}}]})";
  const SharedBytes body = bytes(json + std::string(kBodyBytes, '\0'));
  test::begin_peak();
  EXPECT_THROW((void)parse_infer_request(body, json.size(), kMaxItems), ApiError);
  EXPECT_LT(test::peak_bytes(), 100'000);
}

TEST(BodyCost, OfAQueryIsBounded) {
  const SharedBytes body = bytes("x");
  for (const char* piece : {"a&", "a=1&", "&", "a.b.c.d=1&", "%41=&"}) {
    test::begin_peak();
    const double begin = cpu_seconds();
    const std::string query = body_of("", piece, "", 60'000);
    read([&](const SharedBytes& item) { encode("image/png", item, query); }, body);
    EXPECT_LT(test::peak_bytes(), 1 << 20);
    EXPECT_LT(cpu_seconds() - begin, 0.5);
  }
}

TEST(BodyCost, WithoutMemoryEvenForTheErrorIsNoEndOfTheProcess) {
  RequestHead head;
  head.path = "/v1/encode";
  head.id = "a request";
  const auto make = [&] {
    const ApiError error(503, "out_of_memory", "the server is out of memory", "items[0].image");
    (void)error_reply(error, head);
  };
  EXPECT_GT(test::fail_each_allocation(make), 3);
}

/// A process that cannot allocate goes on: nothing of a body allocates where it must not fail.
TEST(BodyCost, WithoutMemoryIsOneFailedRequest) {
  const std::string piece =
      R"({"image":"AAAA","id":"a\n","uuid":"u","processor_kwargs":{"a":[{},[0]]}},)";
  const std::vector<Body> bodies = {
      {"items", kEncode, body_of(R"({"items":[)", piece, "0]}", 1000)},
      {"items and frames", kEncode, R"({"items":[{"image":"AAAA"},{"frames":["AAAA","AAAA"]}]})"},
      {"deep", kEncode, R"({"items":[[[[[{"a":[[[{"b":[0]}]]]}]]]]],"c":1})"},
      {"messages", kEmbeddings,
       R"({"messages":[{"content":[{"type":"image_url","image_url":{"url":"AAAA"},"uuid":"\u0041"}]}]})"},
      {"texts of KServe", kKserve,
       R"({"inputs":[{"name":"media","datatype":"BYTES","shape":[2],"data":["AAAA","AAAA"]}]})"},
      {"form", kForm, form(R"({"output":{"format":"npy","include":["grid"]}})")},
  };
  const SharedBytes item = bytes("x");
  EXPECT_GT(test::fail_each_allocation(
                [&] { encode("image/png", item, "output.format=npy&fps=1&id=a"); }),
            10);
  for (const Body& body : bodies) {
    SCOPED_TRACE(body.name);
    const SharedBytes text = bytes(body.text);
    EXPECT_GT(test::fail_each_allocation([&] { body.read(text); }), 10);
  }
}

}  // namespace
}  // namespace fovea::serve
