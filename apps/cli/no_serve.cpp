// fovea serve and fovea proxy in a build without Boost or libcurl.
#include "program.h"

#include "fovea/error.h"

namespace fovea::cli {
namespace {

void add_missing(CLI::App& app, Program& program, const char* name, const char* what) {
  CLI::App* verb = app.add_subcommand(name, what);
  verb->allow_extras();
  verb->callback([&program] {
    program.action = []() -> int {
      throw Error(ErrorCode::kUnsupported,
                  "this program was built without the server; install libboost-dev and "
                  "libcurl4-openssl-dev (scripts/setup does) and build it again");
    };
  });
}

}  // namespace

void add_serve(CLI::App& app, Program& program) {
  add_missing(app, program, "serve", "Encode over HTTP (not in this build)");
}

void add_proxy(CLI::App& app, Program& program) {
  add_missing(app, program, "proxy",
              "Encode the images of chats for language models (not in this build)");
}

}  // namespace fovea::cli
