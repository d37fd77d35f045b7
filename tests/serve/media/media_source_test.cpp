#include "serve/media/media_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string_view>

#include "core/budget.h"
#include "serve/api_error.h"
#include "serve/text/base64.h"
#include "serve/text/url.h"
#include "support/expect_error.h"
#include "support/local_server.h"
#include "support/temporary_directory.h"

namespace fovea::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A text that outlives all references.
std::string_view kept(std::string text) {
  static std::deque<std::string> texts;
  return texts.emplace_back(std::move(text));
}

MediaReference reference(std::string url, Modality modality = Modality::kImage) {
  MediaReference made;
  made.modality = modality;
  made.url = kept(std::move(url));
  made.param = "items[0].image";
  return made;
}

std::string data_url(std::string_view bytes) {
  return "data:image/png;base64," + to_base64(std::as_bytes(std::span(bytes)));
}

std::string content(const MediaItem& item) {
  return {item.content().begin(), item.content().end()};
}

std::vector<std::string> frame_texts(const MediaItem& item) {
  std::vector<std::string> texts;
  for (const MediaBytes& frame : std::get<EncodedFrames>(item.source).frames) {
    texts.emplace_back(frame.view().begin(), frame.view().end());
  }
  return texts;
}

/// What resolve() hands over; it must not need threads. @throws what it fails with.
ResolvedMedia resolved(const std::vector<MediaReference>& references,
                       const MediaSourceOptions& options = {}) {
  MediaSource source(options);
  int calls = 0;
  ResolvedMedia result;
  std::exception_ptr failure;
  source.resolve(references, {}, "", [&](ResolvedMedia media, const std::exception_ptr& error) {
    ++calls;
    result = std::move(media);
    failure = error;
  });
  EXPECT_EQ(calls, 1);
  if (failure) std::rethrow_exception(failure);
  return result;
}

void expect_refusal(int status, const std::string& code, const std::string& part,
                    const MediaReference& reference, const MediaSourceOptions& options = {}) {
  try {
    (void)resolved({reference}, options);
    ADD_FAILURE() << "expected " << code;
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), status);
    EXPECT_EQ(error.code(), code);
    EXPECT_EQ(error.param(), reference.param);
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

TEST(MediaSource, DecodesDataUrlsAndBareBase64) {
  const ResolvedMedia media = resolved({reference(data_url("one")), reference("dHdv")});
  ASSERT_EQ(media.items.size(), 2U);
  EXPECT_EQ(content(media.items[0]), "one");
  EXPECT_EQ(content(media.items[1]), "two");
  EXPECT_EQ(media.items[0].name, "items[0].image");
  EXPECT_EQ(media.items[0].modality, Modality::kImage);
  EXPECT_EQ(media.counts.data_bytes, 6);
  EXPECT_EQ(media.counts.body_bytes, 0);
}

TEST(MediaSource, KeepsTheRateOfVideos) {
  MediaReference video = reference(data_url("film"), Modality::kVideo);
  video.fps = 4.0;
  const ResolvedMedia media = resolved({video});
  EXPECT_EQ(media.items[0].modality, Modality::kVideo);
  EXPECT_EQ(media.items[0].fps, 4.0);
}

TEST(MediaSource, RefersToTheBytesOfTheRequest) {
  for (const Modality modality : {Modality::kImage, Modality::kVideo}) {
    auto body = std::make_shared<const BodyBytes>("xxxxx");
    MediaReference part = reference("", modality);
    part.bytes = std::span(*body).first(3);
    part.owner = body;
    const ResolvedMedia media = resolved({part});
    EXPECT_EQ(media.items[0].content().data(), body->data());
    EXPECT_EQ(content(media.items[0]), "xxx");
    EXPECT_EQ(media.counts.body_bytes, 3);
    part.owner.reset();
    EXPECT_EQ(body.use_count(), 2);  // here, and with the item
  }
}

MediaReference frames(std::vector<std::string> urls) {
  MediaReference made = reference("", Modality::kVideo);
  for (std::string& url : urls) made.frames.push_back(kept(std::move(url)));
  made.fps = 4.0;
  made.param = "items[1].frames";
  return made;
}

TEST(MediaSource, JoinsFramesToAVideo) {
  const ResolvedMedia media =
      resolved({reference(data_url("one")), frames({data_url("two"), "dGhyZWU="}),
                reference(data_url("four"))});
  ASSERT_EQ(media.items.size(), 3U);
  EXPECT_EQ(content(media.items[0]), "one");
  const MediaItem& video = media.items[1];
  EXPECT_EQ(video.modality, Modality::kVideo);
  EXPECT_EQ(video.name, "items[1].frames");
  EXPECT_EQ(video.fps, 4.0);
  EXPECT_THAT(frame_texts(video), ElementsAre("two", "three"));
  EXPECT_EQ(content(media.items[2]), "four");
  EXPECT_EQ(media.counts.data_bytes, 15);
}

TEST(MediaSource, SplitsAVideoThatIsASequenceOfJpegs) {
  const std::string url = "data:video/jpeg;base64,b25l,dHdv";
  const auto num_frames = [](const std::string& text) {
    return frame_texts(resolved({reference(text, Modality::kVideo)}).items[0]).size();
  };
  EXPECT_EQ(num_frames(url), 2U);
  EXPECT_EQ(num_frames("data:video/jpeg;base64,b25l"), 1U);
  expect_refusal(400, "invalid_value", "not valid base64", reference(url));
}

TEST(MediaSource, BoundsTheFramesOfARequest) {
  const std::string commas(2047, ',');
  std::vector<MediaReference> videos(
      4, reference("data:video/jpeg;base64,AAAA" + commas, Modality::kVideo));
  const auto code = [&] {
    try {
      (void)resolved(videos);
    } catch (const ApiError& error) {
      return error.code();
    }
    return std::string();
  };
  EXPECT_EQ(code(), "invalid_value");  // frames without bytes
  videos.push_back(frames({"AAAA"}));
  EXPECT_EQ(code(), "too_many_frames");
}

TEST(MediaSource, BoundsTheLengthOfUrls) {
  for (const char* scheme : {"http://a/", "https://a/", "file:///"}) {
    expect_refusal(400, "invalid_value", "a URL of at most 8192 bytes",
                   reference(scheme + std::string(kMaxUrlBytes, 'x')));
  }
}

TEST(MediaSource, NamesTheFrameThatIsWrong) {
  try {
    (void)resolved({frames({data_url("one"), "????"})});
    ADD_FAILURE() << "expected a refusal";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.code(), "invalid_value");
    EXPECT_EQ(error.param(), "items[1].frames[1]");
  }
  const MediaSourceOptions two{.max_frames = 2};
  EXPECT_EQ(resolved({frames({"b25l", "b25l"})}, two).items.size(), 1U);
  expect_refusal(422, "too_many_frames", "at most 2 frames, got 3",
                 frames({"b25l", "b25l", "b25l"}), two);
  MediaReference sequence = reference("data:video/jpeg;base64,b25l,dHdv,dHdv", Modality::kVideo);
  expect_refusal(422, "too_many_frames", "at most 2 frames, got 3", sequence, two);
}

TEST(MediaSource, ReadsFilesOfItsFolder) {
  const test::TemporaryDirectory folder;
  test::write_text(folder / "a.png", "picture");
  const ResolvedMedia media =
      resolved({reference("file://" + (folder / "a.png"))}, {.allowed_local_path = folder.path()});
  EXPECT_EQ(content(media.items[0]), "picture");
  EXPECT_EQ(media.counts.file_bytes, 7);
}

TEST(MediaSource, RefusesTextThatIsNoMedia) {
  for (const char* text : {"data:image/png,hello", "data:", "data:image/png;base64"}) {
    expect_refusal(400, "invalid_value", "data:<type>;base64", reference(text));
  }
  for (const char* text : {"data:;base64,????", "no base64", "Zh=="}) {
    expect_refusal(400, "invalid_value", "not valid base64", reference(text));
  }
  for (const char* text : {"data:;base64,Zm92\nZWE=", "Zm92\r\nZWE="}) {
    expect_refusal(400, "invalid_value", "line breaks", reference(text));
  }
  for (const char* text : {"/home/me/x.jpg", "x.png", "~/x", "a\\b"}) {
    expect_refusal(400, "invalid_value", "paths are not read", reference(text));
  }
  for (const char* text : {"ftp://a.b/c", "javascript:x", "s3://bucket/key"}) {
    expect_refusal(400, "invalid_value", text, reference(text));
  }
  expect_refusal(400, "invalid_value", "no bytes", reference("data:;base64,"));
  expect_refusal(400, "invalid_value", "no bytes", reference(""));
}

TEST(MediaSource, RefusesFilesWithoutAFolder) {
  expect_refusal(403, "local_media_forbidden", "reads no local files",
                 reference("file:///etc/passwd"));
}

TEST(MediaSource, LimitsTheBytesOfEveryModality) {
  const test::TemporaryDirectory folder;
  test::write_text(folder / "five", "12345");
  const MediaSourceOptions options{
      .allowed_local_path = folder.path(), .max_image_bytes = 4, .max_video_bytes = 6};
  const std::string file = "file://" + (folder / "five");
  EXPECT_NO_THROW((void)resolved({reference(data_url("1234"))}, options));
  expect_refusal(422, "image_too_large", "--max-image-bytes", reference(data_url("12345")),
                 options);
  expect_refusal(422, "image_too_large", "more than 4 bytes", reference("MTIzNDU2Nzg5"), options);
  expect_refusal(422, "image_too_large", "", reference(file), options);
  EXPECT_NO_THROW((void)resolved({reference(file, Modality::kVideo)}, options));
  expect_refusal(422, "video_too_large", "--max-video-bytes",
                 reference(data_url("1234567"), Modality::kVideo), options);
  const auto body = std::make_shared<const BodyBytes>("xxxxx");
  MediaReference part = reference("");
  part.bytes = *body;
  part.owner = body;
  expect_refusal(422, "image_too_large", "", part, options);
}

TEST(MediaSource, LooksAtSizesBeforeItDecodes) {
  expect_refusal(422, "image_too_large", "", reference("data:;base64," + std::string(100, '!')),
                 {.max_image_bytes = 4});
}

TEST(MediaSource, FailsAsAWholeWithTheFirstThatFails) {
  MediaReference second = reference("!");
  second.param = "items[1].image";
  MediaReference third = reference("?");
  third.param = "items[2].image";
  try {
    (void)resolved({reference(data_url("fine")), second, third});
    ADD_FAILURE() << "expected a refusal";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.param(), "items[1].image");
  }
}

/// Resolves references that have to be fetched.
std::pair<ResolvedMedia, std::exception_ptr> fetched(const MediaSourceOptions& options,
                                                     const std::vector<MediaReference>& references,
                                                     const CallBounds& bounds = {}) {
  std::promise<std::pair<ResolvedMedia, std::exception_ptr>> result;
  MediaSource source(options);
  source.resolve(references, bounds, "client", [&](ResolvedMedia media, std::exception_ptr error) {
    result.set_value({std::move(media), std::move(error)});
  });
  return result.get_future().get();
}

MediaSourceOptions any(const test::LocalServer& server) {
  return {.policy = UrlPolicy::kAny, .allowed_ports = {server.port()}};
}

int status_of(const std::exception_ptr& error, const std::string& param) {
  try {
    if (error) std::rethrow_exception(error);
    return 200;
  } catch (const ApiError& refusal) {
    EXPECT_EQ(refusal.param(), param);
    return refusal.status();
  }
}

TEST(MediaSource, FetchesSomeAndDecodesOthers) {
  const test::LocalServer server([](int socket, const std::string& head) {
    test::send_text(socket, test::http_reply(200, head.substr(5, 5)));
  });
  const auto [media, error] =
      fetched(any(server), {reference(server.url("/first")), reference(data_url("second")),
                            reference(server.url("/third"), Modality::kVideo)});
  ASSERT_EQ(error, nullptr);
  ASSERT_EQ(media.items.size(), 3U);
  EXPECT_EQ(content(media.items[0]), "first");
  EXPECT_EQ(content(media.items[1]), "second");
  EXPECT_EQ(content(media.items[2]), "third");
  EXPECT_EQ(media.items[2].modality, Modality::kVideo);
  EXPECT_EQ(media.counts.http_bytes, 10);
  EXPECT_EQ(media.counts.data_bytes, 6);
  EXPECT_GT(media.counts.fetch_ms, 0);
}

TEST(MediaSource, EndsOtherFetchesWhenOneFails) {
  const test::LocalServer server([](int socket, const std::string& head) {
    if (head.starts_with("GET /missing")) {
      test::send_text(socket, test::http_reply(404, ""));
    } else {
      test::wait_for_close(socket);
    }
  });
  MediaSourceOptions options = any(server);
  options.image_timeout = std::chrono::hours(1);
  MediaReference missing = reference(server.url("/missing"));
  missing.param = "items[1].image";
  const auto [media, error] = fetched(options, {reference(server.url()), missing});
  EXPECT_EQ(status_of(error, "items[1].image"), 422);
  EXPECT_TRUE(media.items.empty());
}

TEST(MediaSource, RefusesFetchedMediaWithoutBytes) {
  const test::LocalServer server([](int socket, const std::string& /*head*/) {
    test::send_text(socket, test::http_reply(200, ""));
  });
  EXPECT_EQ(status_of(fetched(any(server), {reference(server.url())}).second, "items[0].image"),
            400);
}

TEST(MediaSource, HasATimeForEveryModality) {
  const test::LocalServer server(
      [](int socket, const std::string& /*head*/) { test::wait_for_close(socket); });
  MediaSourceOptions options = any(server);
  const auto status = [&](Modality modality) {
    const auto result = fetched(options, {reference(server.url(), modality)});
    return status_of(result.second, "items[0].image");
  };
  options.image_timeout = std::chrono::milliseconds(20);
  options.video_timeout = std::chrono::hours(1);
  EXPECT_EQ(status(Modality::kImage), 504);
  std::swap(options.image_timeout, options.video_timeout);
  EXPECT_EQ(status(Modality::kVideo), 504);
}

TEST(MediaSource, EndsFetchesWhenTheClientLeaves) {
  std::stop_source client;
  const test::LocalServer server([&](int socket, const std::string& /*head*/) {
    client.request_stop();
    test::wait_for_close(socket);
  });
  const auto [media, error] =
      fetched(any(server), {reference(server.url())}, {.stop = client.get_token()});
  EXPECT_EQ(status_of(error, "items[0].image"), 499);
}

TEST(MediaSource, RefusesWhenTooManyFetchesWait) {
  const test::LocalServer server(
      [](int socket, const std::string& /*head*/) { test::wait_for_close(socket); });
  MediaSourceOptions options = any(server);
  options.max_fetches = 1;
  options.max_frames = 1;
  options.image_timeout = std::chrono::hours(1);
  const std::vector<MediaReference> references(1000, reference(server.url()));
  EXPECT_EQ(status_of(fetched(options, references).second, "items[0].image"), 429);
}

TEST(MediaSource, FetchesFrames) {
  const test::LocalServer server([](int socket, const std::string& head) {
    test::send_text(socket, test::http_reply(200, head.substr(5, 3)));
  });
  const auto [media, error] =
      fetched(any(server), {frames({server.url("/one"), "dHdv", server.url("/six")})});
  ASSERT_EQ(error, nullptr);
  ASSERT_EQ(media.items.size(), 1U);
  EXPECT_THAT(frame_texts(media.items[0]), ElementsAre("one", "two", "six"));
}

TEST(MediaSource, TellsWhereBytesCameFrom) {
  const test::LocalServer server([](int socket, const std::string& /*head*/) {
    test::send_text(socket, test::http_reply(200, "12345"));
  });
  MediaSourceOptions options = any(server);
  int calls = 0;
  MediaCounts seen;
  options.on_resolved = [&](const MediaCounts& counts) { seen = counts, ++calls; };
  (void)fetched(options, {reference(server.url()), reference("dHdv"), frames({"b25l", "b25l"})});
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(seen.http_bytes, 5);
  EXPECT_EQ(seen.data_bytes, 9);
  (void)fetched(options, {reference("????")});
  EXPECT_EQ(calls, 1);
}

TEST(MediaSource, HoldsRoomForWhatItHasFetched) {
  constexpr std::size_t kBody = std::size_t{1} << 20;
  const test::LocalServer server([](int socket, const std::string& /*head*/) {
    test::send_text(socket, test::http_reply(200, std::string(kBody, 'x')));
  });
  Budget budget(3 * kBody);
  MediaSourceOptions options = any(server);
  options.take_room = [&](std::size_t bytes) -> std::shared_ptr<void> {
    std::optional<Budget::Ticket> ticket = budget.try_take(bytes);
    return ticket ? std::make_shared<Budget::Ticket>(*std::move(ticket)) : nullptr;
  };
  auto [media, error] = fetched(options, {reference(server.url()), reference("dHdv")});
  ASSERT_EQ(error, nullptr);
  EXPECT_GE(budget.used(), kBody);
  EXPECT_LE(budget.used(), 2 * kBody);
  const MediaItem copy = media.items[0];
  media = {};
  EXPECT_GE(budget.used(), kBody) << "a copy still has the bytes";
  EXPECT_EQ(
      status_of(fetched(options, std::vector(3, reference(server.url()))).second, "items[0].image"),
      429);
}

TEST(MediaSource, FetchesNothingIfToldSo) {
  for (const char* url : {"http://127.0.0.1/", "HTTPS://example.org/a.png"}) {
    expect_refusal(403, "media_url_blocked", "--media-url-policy", reference(url),
                   {.policy = UrlPolicy::kNone});
  }
}

TEST(MediaSource, WantsDomainsInItsList) {
  test::expect_error(ErrorCode::kInvalidArgument, "https://a.b", [] {
    MediaSource({.policy = UrlPolicy::kAllowlist, .allowed_domains = {"https://a.b"}});
  });
}

}  // namespace
}  // namespace fovea::serve
