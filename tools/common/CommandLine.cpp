//===- CommandLine.cpp - how all tools read their command line ----------------===//

#include "tools/common/CommandLine.h"

#include "runtime/base/Nearest.h"

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sys/ioctl.h>
#include <unistd.h>

namespace tessera {

/// The flags of a tool, with their dashes.
static std::vector<std::string> flagsOf(const CLI::App &app) {
  std::vector<std::string> flags;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      flags.push_back("--" + name);
  return flags;
}

/// What is wrong with the first word that the tool does not take. A flag explains the values that follow it.
static std::string describeUnknown(const CLI::App &app, const std::vector<std::string> &words) {
  auto isFlag = [](const std::string &word) {
    return word.size() > 1 && word[0] == '-' && (word[1] == '-' || std::isalpha(word[1]));
  };
  const auto flag = std::find_if(words.begin(), words.end(), isFlag);
  if (flag == words.end())
    return "'" + words.front() + "' is one word too many; a flag may be missing before it";
  constexpr size_t shown = 3;
  const std::vector<std::string> known = flagsOf(app);
  const std::string name = flag->substr(0, flag->find('='));
  std::string text = "unknown flag " + name, nearest;
  for (std::string_view each : nearestTo(name, {known.begin(), known.end()}, shown, 1 + name.size() / 4))
    nearest += (nearest.empty() ? "; nearest: " : ", ") + std::string(each);
  return text + (nearest.empty() ? "; --help lists those there are" : nearest);
}

void groupOptions(CLI::App &app, const std::string &group) {
  for (CLI::Option *option : app.get_options())
    if (option->get_group() == "Options" && !option->get_positional() && option != app.get_help_ptr() &&
        option != app.get_version_ptr())
      option->group(group);
}

int failUsage(const CLI::App &app, const std::string &message) {
  std::fprintf(stderr, "%s: error: %s\n", app.get_name().c_str(), message.c_str());
  return kUsageError;
}

/// Columns of the terminal: what it says, else the environment's COLUMNS, else 120.
static size_t terminalWidth() {
  constexpr size_t least = 60, usual = 120;
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return std::max<size_t>(size.ws_col, least);
  const char *columns = std::getenv("COLUMNS");
  const long given = columns ? std::strtol(columns, nullptr, 10) : 0;
  return given > 0 ? std::max(static_cast<size_t>(given), least) : usual;
}

/// With breaks between words, so that no line has more characters than `room`. Breaks that are there stay.
static std::string wrap(const std::string &text, size_t room) {
  std::string lines;
  size_t used = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const bool isFull = used > 0 && used + 1 + (end - begin) > room;
    if (used > 0)
      lines += isFull ? "\n" : " ";
    used = (isFull || used == 0 ? 0 : used + 1) + (end - begin);
    lines.append(text, begin, end - begin);
    if (end < text.size() && text[end] == '\n') {
      lines += "\n";
      used = 0;
    }
    begin = end + 1;
  }
  return lines;
}

namespace {
/// What is said of a tool and of its options is broken at the terminal's width.
class WrappingFormatter : public CLI::Formatter {
public:
  std::string make_option_desc(const CLI::Option *option) const override {
    constexpr size_t least = 20;
    const size_t left = get_column_width(), width = terminalWidth();
    return wrap(CLI::Formatter::make_option_desc(option), width > left + least ? width - left : least);
  }
  std::string make_description(const CLI::App *app) const override {
    const std::string text = CLI::Formatter::make_description(app);
    // Examples are indented, and stay as they are.
    return text.find("\n ") == std::string::npos ? wrap(text, terminalWidth()) : text;
  }
};
} // namespace

/// Whole numbers are decimal, also with zeros before them, where CLI11 takes 010 for 8.
static std::string dropZeros(std::string &text) {
  const size_t sign = text.starts_with("-") ? 1 : 0;
  const bool isDecimal = text.size() > sign && std::all_of(text.begin() + sign, text.end(),
                                                           [](unsigned char c) { return std::isdigit(c) != 0; });
  while (isDecimal && text.size() > sign + 1 && text[sign] == '0')
    text.erase(sign, 1);
  return "";
}

std::optional<int> readCommandLine(CLI::App &app, int argc, char **argv) {
  for (CLI::Option *option : app.get_options())
    if (option->get_type_name().find("INT") != std::string::npos)
      option->transform(CLI::Validator(dropZeros, ""));
  std::signal(SIGXFSZ, SIG_IGN); // a limit of file sizes is an error of the write
  auto formatter = std::make_shared<WrappingFormatter>();
  formatter->column_width(app.get_formatter()->get_column_width());
  app.formatter(formatter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError &) {
    return failUsage(app, describeUnknown(app, app.remaining()));
  } catch (const CLI::Success &information) {
    return app.exit(information);
  } catch (const CLI::ParseError &problem) {
    return failUsage(app, problem.what());
  }
  return std::nullopt;
}

} // namespace tessera
