// fovea pull: a model from the hub to this machine.
#include <iostream>

#include "errors.h"
#include "flags/cli11.h"
#include "flags/hub_model.h"
#include "fovea/hub.h"
#include "program.h"

namespace fovea::cli {
namespace {

struct PullFlags {
  std::string name;
  PullOptions options;
};

int run_pull(const PullFlags& flags, Console& console) {
  std::cout << pull_with_status(flags.name, flags.options, console) << "\n";
  return kExitOk;
}

std::string complaint_about_name(std::string& name) {
  if (is_hub_name(name)) return "";
  return "expected a name on the hub, <organisation>/<name>, got \"" + name + "\"";
}

void add_flags(CLI::App& verb, PullFlags& flags) {
  verb.add_option("NAME", flags.name, "Name on the hub: <organisation>/<name>")
      ->type_name("")
      ->check(check(complaint_about_name))
      ->required();
  verb.add_option("--revision", flags.options.revision, "Branch, tag or commit")
      ->type_name("REVISION")
      ->capture_default_str();
  verb.add_option("-o,--output", flags.options.output,
                  "Folder for the files; without it they go to the hub cache")
      ->type_name("DIR")
      ->check(named("folder"));
}

constexpr VerbText kPullText{
    .name = "pull",
    .summary = "Download what the encoder of a model needs",
    .footer =
        R"(Gets config.json, the files of the processor, and of the weights the shards with the vision tower.
What is there is kept, what was begun is continued, and each file is compared with its digest. The
directory is printed; every verb also takes NAME for it. The hub, its cache and a token are those of
HF_ENDPOINT, HF_HUB_CACHE, HF_HOME and HF_TOKEN.

Examples:
  fovea pull Qwen/Qwen3-VL-8B-Instruct
  fovea encode Qwen/Qwen3-VL-8B-Instruct photo.jpg -o rows.safetensors
  fovea pull Qwen/Qwen3-VL-8B-Instruct --revision main -o ./Qwen3-VL-8B-Instruct)",
};

}  // namespace

void add_pull(CLI::App& app, Program& program) {
  add_verb(app, program, kPullText, add_flags, run_pull);
}

}  // namespace fovea::cli
