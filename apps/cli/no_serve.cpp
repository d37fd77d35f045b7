// fovea serve in a build without Boost or libcurl.
#include "program.h"

#include "fovea/error.h"

namespace fovea::cli {

void add_serve(CLI::App& app, Program& program) {
  CLI::App* verb = app.add_subcommand("serve", "Encode over HTTP (not in this build)");
  verb->allow_extras();
  verb->callback([&program] {
    program.action = []() -> int {
      throw Error(ErrorCode::kUnsupported,
                  "this program was built without the server; install libboost-dev and "
                  "libcurl4-openssl-dev (scripts/setup does) and build it again");
    };
  });
}

}  // namespace fovea::cli
