// A rank that comes to rank 0: hello, challenge, proof, proof.
#include "ranks/introduction.h"

#include "core/check.h"

namespace fovea::ranks {

namespace {

/// What rank 0 says next. @param kind what it has to be.
Letter hear(int socket, MessageKind kind, const RankOptions& options, Clock::time_point deadline) {
  Letter letter;
  Transfer transfer = receive_message(socket, letter.message, deadline);
  if (transfer == Transfer::kDone && letter.message.kind == MessageKind::kFail) {
    const std::optional<Error> failure = receive_failure(socket, letter.message, deadline);
    if (failure) throw Error(*failure);
  }
  if (transfer == Transfer::kDone) transfer = receive_all(socket, letter.bytes, deadline);
  FOVEA_CHECK(transfer != Transfer::kLate, kDeadline, "rank 0 did not say within ",
              options.time_limit.count(), " ms that the group is complete");
  FOVEA_CHECK(transfer == Transfer::kDone && letter.message.kind == kind, kUnavailable,
              "rank 0 has ended or left the group");
  return letter;
}

}  // namespace

void introduce(int socket, const RankOptions& options, const std::string& secret,
               Clock::time_point deadline) {
  Claim claim{.rank = options.rank, .size = options.size, .of_hub = {}, .of_rank = make_nonce()};
  const Letter hello{.message = {.rank = options.rank, .size = options.size},
                     .bytes = claim.of_rank};
  // What goes wrong is heard.
  (void)send_all(socket, bytes_of(hello), deadline);
  claim.of_hub = hear(socket, MessageKind::kChallenge, options, deadline).bytes;
  const Letter proof{.message = {.kind = MessageKind::kProof}, .bytes = prove(secret, claim)};
  (void)send_all(socket, bytes_of(proof), deadline);
  claim.side = Side::kHub;
  const Letter answer = hear(socket, MessageKind::kProof, options, deadline);
  FOVEA_CHECK(is_same(answer.bytes, prove(secret, claim)), kInvalidArgument, "whoever listens at ",
              options.rendezvous, " does not know the secret of this rank");
}

}  // namespace fovea::ranks
