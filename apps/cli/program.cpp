// The command line as a whole: verbs, complaints about what was typed, exit codes.
#include "program.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "errors.h"
#include "flags/removed_flags.h"
#include "fovea/error.h"
#include "fovea/version.h"
#include "help.h"
#include "report/text.h"
#include "vllm/translation.h"

namespace fovea::cli {
namespace {

/// As many as the terminal has, within what is easily read.
std::size_t help_columns() {
  constexpr std::size_t kMost = 120;
  return std::min(terminal_columns(STDOUT_FILENO), kMost);
}

void add_verbs(CLI::App& app, Program& program) {
  app.formatter(std::make_shared<HelpFormatter>(help_columns()));
  app.set_help_flag("-h,--help", "Print this");
  app.set_help_all_flag("--help-all", "Print this with flags that are seldom changed");
  app.require_subcommand(1);
  app.set_version_flag("-V,--version", std::string("fovea ") + version(), "Print the version");
  app.footer(
      "fovea VERB --help explains a verb. Results go to stdout, messages to stderr.\n"
      "Exit codes: 0 ok, 1 failure, 2 wrong usage.\n\n"
      "Example:\n"
      "  fovea encode ./Qwen3-VL photo.jpg -o rows.safetensors");
  add_encode(app, program);
  add_manifest(app, program);
  add_pull(app, program);
  add_plan(app, program);
  add_inspect(app, program);
  add_verify(app, program);
  add_serve(app, program);
  add_proxy(app, program);
  add_bench(app, program);
  add_env(app, program);
  add_version(app, program);
  for (CLI::App* verb : app.get_subcommands({})) verb->group("Verbs");
}

/// Lets --token_budgets stand for --token-budgets: flags of this program hold no underscores.
/// Values after '=' and arguments after "--" are left alone.
void dash_flag_names(std::vector<std::string>& arguments) {
  for (std::string& argument : arguments) {
    if (argument == "--") return;
    if (!argument.starts_with("--")) continue;
    const auto end = argument.begin() +
                     static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size()));
    std::replace(argument.begin(), end, '_', '-');
  }
}

/// The innermost verb that was recognised.
CLI::App* chosen_verb(CLI::App& app) {
  CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  return verb;
}

/// The verb that the first words name.
CLI::App* named_verb(CLI::App& app, const std::vector<std::string>& arguments) {
  CLI::App* verb = &app;
  for (const std::string& word : arguments) {
    const std::vector<CLI::App*> verbs = verb->get_subcommands({});
    const auto next = std::ranges::find(verbs, word, &CLI::App::get_name);
    if (next == verbs.end()) break;
    verb = *next;
  }
  return verb;
}

/// "fovea bench latency": how the user calls the verb.
std::string full_name(const CLI::App* verb) {
  const CLI::App* parent = verb->get_parent();
  return parent == nullptr ? verb->get_name() : full_name(parent) + " " + verb->get_name();
}

std::vector<std::string> flag_names(const CLI::App* verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> verb_names(const CLI::App* app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app->get_subcommands({})) names.push_back(verb->get_name());
  return names;
}

/// The first required argument or flag that was not given.
std::optional<std::string> missing_argument(const CLI::App& verb) {
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_required() && option->count() == 0) {
      return option->get_positional() ? option->get_name(/*positional=*/true) : option->get_name();
    }
  }
  return std::nullopt;
}

std::string with_hint(const std::string& complaint, const std::string& typed,
                      const std::vector<std::string>& candidates) {
  const std::optional<std::string> nearest = nearest_name(typed, candidates);
  return nearest ? complaint + "; did you mean " + *nearest + "?" : complaint;
}

std::string unknown_flag(const std::string& typed, const CLI::App* verb) {
  const std::string complaint = "unknown flag " + typed;
  if (const RemovedFlag* const removed = find_removed_flag(typed)) {
    return complaint + "; " + std::string(removed->instead);
  }
  return with_hint(complaint, typed, flag_names(verb));
}

/// The flag of one value that was given several.
std::optional<std::string> repeated_flag(const CLI::App& verb) {
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_positional() || option->get_items_expected_max() != 1) continue;
    if (option->count() > 1) {
      return option->get_name() + ": given " +
             (option->count() == 2 ? "twice" : std::to_string(option->count()) + " times") +
             ", expected once";
    }
  }
  return std::nullopt;
}

/// A complaint about a word that the verb does not know, absent if it knows all.
std::optional<std::string> unknown_word(const CLI::App* verb) {
  const std::vector<std::string> unknown = verb->remaining();
  if (unknown.empty()) return std::nullopt;
  const std::string typed = unknown.front().substr(0, unknown.front().find('='));
  if (typed.starts_with('-')) return unknown_flag(typed, verb);
  if (!verb->get_subcommands({}).empty()) {
    return with_hint("unknown verb \"" + typed + "\"", typed, verb_names(verb));
  }
  return "unexpected argument \"" + typed + "\"";
}

/// Says what is wrong with the command line. A word that no verb knows explains more than the
/// requirement that was missed because of it, so it comes first.
std::string usage_complaint(CLI::App& app, const CLI::ParseError& error) {
  CLI::App* verb = chosen_verb(app);
  if (const std::optional<std::string> unknown = unknown_word(verb)) return *unknown;
  if (!verb->get_subcommands({}).empty()) {
    return "expected a verb: one of " + join(verb_names(verb), ", ");
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch)) {
    if (const std::optional<std::string> repeated = repeated_flag(*verb)) return *repeated;
  }
  const bool incomplete = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  const std::optional<std::string> missing = missing_argument(*verb);
  return incomplete && missing ? *missing + " is required" : error.what();
}

/// A run of the program: what was typed, and who reads it.
struct Run {
  CLI::App& app;
  Program& program;
  Translation line = {};
};

/// Reports wrong usage of a verb, in the words that were typed.
int report_usage(Run& run, const CLI::App* verb, const std::string& complaint) {
  run.program.console.error(run.line.in_typed_words(complaint) + " (see " + full_name(verb) +
                            " --help)");
  return kExitUsage;
}

/// Results that could not be written to stdout are a failure. Where it is buffered line by line,
/// only stdout itself knows of a line that was lost.
void check_written() {
  std::cout.flush();
  if (!std::cout || std::ferror(stdout) != 0)
    throw Error(ErrorCode::kIo, "stdout: cannot write the results");
}

/// Leaves the line in `run`, in flags of this program. Returns an exit code if the run ends here.
std::optional<int> translate(Run& run, std::vector<std::string> arguments) {
  dash_flag_names(arguments);
  const CLI::App* const verb = named_verb(run.app, arguments);
  try {
    run.line = translate_vllm(std::move(arguments));
    return std::nullopt;
  } catch (const UsageError& error) {
    return report_usage(run, verb, error.what());
  }
}

/// Parses the line, of which the arguments are gone then, and, if that went well, leaves the action
/// in the program. Returns an exit code if the run ends here.
std::optional<int> parse(Run& run) {
  CLI::App& app = run.app;
  std::vector<std::string> arguments = std::move(run.line.arguments);
  std::reverse(arguments.begin(), arguments.end());  // the order this parser wants
  try {
    app.parse(std::move(arguments));
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
  } catch (const CLI::CallForAllHelp&) {
    std::cout << app.help("", CLI::AppFormatMode::All);
  } catch (const CLI::CallForVersion& version_text) {
    std::cout << version_text.what() << "\n";
  } catch (const CLI::ParseError& error) {
    return report_usage(run, chosen_verb(app), usage_complaint(app, error));
  } catch (const UsageError& error) {
    return report_usage(run, chosen_verb(app),
                        unknown_word(chosen_verb(app)).value_or(error.what()));
  }
  check_written();
  return kExitOk;
}

/// Runs the chosen verb.
int act(Run& run) try {
  for (const std::string& warning : run.line.warnings) run.program.console.warn(warning);
  const int code = run.program.action();
  check_written();
  return code;
} catch (const UsageError& error) {
  return report_usage(run, chosen_verb(run.app), error.what());
}

}  // namespace

int run_program(std::vector<std::string> arguments) {
  // A file beyond RLIMIT_FSIZE is then an error like a full disk, with a message.
  std::signal(SIGXFSZ, SIG_IGN);
  Program program;
  try {
    CLI::App app("Vision-encoder engine: images and videos in, rows of embeddings out.", "fovea");
    add_verbs(app, program);
    Run run{.app = app, .program = program};
    std::optional<int> code = translate(run, std::move(arguments));
    if (!code) code = parse(run);
    return code ? *code : act(run);
  } catch (const std::bad_alloc&) {
    program.console.error("out of memory");
  } catch (const std::exception& error) {
    program.console.error(error.what());
  }
  return kExitFailure;
}

LogLevel level_of(const std::string& name) {
  if (name == "trace" || name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  return name == "warning" ? LogLevel::kWarning : LogLevel::kError;
}

void add_console_flags(CLI::App& verb, Program& program) {
  verb.add_flag_callback(
          "-q,--quiet", [&program] { program.console.be_quiet(); },
          "No progress and no log lines on stderr")
      ->group("Messages");
  verb.add_option_function<std::string>(
          "--log-level",
          [&program](const std::string& name) { program.console.set_level(level_of(name)); },
          "Show log lines of the library on stderr from this level on")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error"}).description(""))
      ->type_name("trace|debug|info|warning|error")
      ->default_str("warning")
      ->group("Messages");
}

}  // namespace fovea::cli
