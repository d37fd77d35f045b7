#include "serve/http/message.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

TEST(Reply, CountsTheBytesOfAllParts) {
  Reply reply = text_reply(200, "text/plain", "hello");
  reply.body.push_back(body_part(std::vector<std::byte>(7)));
  EXPECT_EQ(reply.size(), 12U);
}

TEST(BodyPart, OwnsItsText) {
  BodyPart part = body_part(std::string("x"));
  const BodyPart copy = part;
  part = {};
  EXPECT_EQ(std::to_integer<char>(copy.bytes[0]), 'x');
}

}  // namespace
}  // namespace fovea::serve
