//===- main.cpp - tessera-dump: shows what is in an artifact -----------------------------===//

#include "tools/common/CommandLine.h"
#include "tools/tessera-dump/Dump.h"

#include <filesystem>
#include <functional>
#include <iostream>

using namespace tessera;

namespace {

/// One part of the output, chosen by a flag.
struct Section {
  const char *flag, *name, *help;
  std::function<std::string(const Artifact &, size_t program)> text;
  std::function<dump::Json(const Artifact &, size_t program)> json;
  bool chosen = false;
};

int fail(const Status &status) {
  std::cerr << "tessera-dump: error: " << status.toString() << "\n";
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  int top = 0;
  /// Of what does not depend on the program.
  auto ofAll = [](auto *function) {
    return [function](const Artifact &artifact, size_t) { return function(artifact); };
  };
  Section sections[] = {
      {"--summary", "summary", "What the artifact is, in one screen (the default)", ofAll(dump::summaryText),
       ofAll(dump::summaryJson)},
      {"--memory", "memory", "Planned memory by class, arena and slot, with lifetimes",
       [&top](const Artifact &artifact, size_t program) {
         return top > 0 ? dump::memoryText(artifact, program, 0) + "\n" + dump::largestText(artifact, program, top)
                        : dump::memoryText(artifact, program);
       },
       dump::memoryJson},
      {"--schedule", "schedule",
       "The instructions with streams, events and sources; why attention over sequence axes is as it is",
       dump::scheduleText, dump::scheduleJson},
      {"--collectives", "collectives", "What is communicated: bytes, groups, labels", dump::collectivesText,
       dump::collectivesJson},
      {"--state", "state", "Parameters and optimizer state: units, shapes, initialisers", ofAll(dump::stateText),
       ofAll(dump::stateJson)},
      {"--tensors", "tensors", "The model file's tensors: what each is in the step, and who decided so",
       ofAll(dump::tensorsText), ofAll(dump::tensorsJson)},
      {"--precision", "precision", "What each product of the model is computed in, and why (--precision fp8)",
       ofAll(dump::precisionText), ofAll(dump::precisionJson)},
      {"--kernels", "kernels", "Generated kernels and code objects", ofAll(dump::kernelsText),
       ofAll(dump::kernelsJson)}};

  CLI::App app{"Shows what is in an artifact", "tessera-dump"};
  app.set_version_flag("--version", TESSERA_VERSION);
  app.footer("Example: tessera-dump gpt.tessera --memory --collectives");
  std::string path, phase, codePath, programName;
  bool asJson = false;
  app.add_option("artifact", path, "The .tessera file")->required();
  for (Section &section : sections)
    app.add_flag(section.flag, section.chosen, section.help);
  app.add_option("--program", programName,
                 "The program that memory, schedule and collectives are shown of (default: the training)");
  app.add_option("--top", top,
                 "With --memory: this many of the largest slots that are live at the peak, and not all slots")
      ->needs("--memory")
      ->check([](const std::string &number) {
        return std::atoi(number.c_str()) < 1 ? "expected a number of at least 1" : "";
      });
  app.add_option("--ir", phase, "The IR of a phase, e.g. shard (needs an artifact made with --embed-ir)");
  app.add_option("--write-code", codePath, "Writes the generated code to this file");
  app.add_flag("--json", asJson, "The chosen sections as one JSON object");
  if (std::optional<int> status = readCommandLine(app, argc, argv))
    return *status;

  auto artifact = Artifact::open(path);
  if (!artifact.isOk())
    return fail(artifact.status());
  size_t program = trainingProgram;
  if (!programName.empty()) {
    std::string known;
    for (program = 0; program < (*artifact)->numPrograms(); ++program) {
      std::string name = (*artifact)->program(program).name()->str();
      if (name == programName)
        break;
      known += (known.empty() ? "'" : ", '") + name + "'";
    }
    if (program == (*artifact)->numPrograms())
      return fail(TESSERA_ERROR(NotFound, "'" + path + "' has no program '" + programName + "'; it has " + known));
  }
  bool anyChosen = !phase.empty() || !codePath.empty();
  for (const Section &section : sections)
    anyChosen |= section.chosen;
  sections[0].chosen |= !anyChosen;

  std::error_code unknown;
  if (!codePath.empty() && std::filesystem::equivalent(path, codePath, unknown))
    return fail(
        TESSERA_ERROR(InvalidArgument, "--write-code: '" + codePath + "' is the artifact, and would be replaced"));
  if (!codePath.empty())
    if (Status status = dump::writeCode(**artifact, codePath); !status.isOk())
      return fail(status);
  dump::Json json = dump::Json::object();
  bool first = true;
  for (const Section &section : sections) {
    if (!section.chosen)
      continue;
    if (asJson && section.name == std::string_view("schedule"))
      if (dump::Json sequence = dump::sequenceJson(**artifact); !sequence.is_null())
        json["sequence"] = std::move(sequence);
    if (asJson)
      json[section.name] = section.json(**artifact, program);
    else
      std::cout << (first ? "" : "\n") << section.text(**artifact, program);
    first = false;
  }
  if (!phase.empty()) {
    auto ir = dump::phaseIr(**artifact, phase);
    if (!ir.isOk())
      return fail(ir.status());
    if (asJson)
      json["ir"] = {{phase, *ir}};
    else
      std::cout << *ir;
  }
  if (asJson)
    std::cout << json.dump(1, ' ', false, dump::Json::error_handler_t::replace) << "\n";
  std::cout.flush();
  if (!std::cout)
    return fail(TESSERA_ERROR(IoError, "cannot write the output"));
  return 0;
}
