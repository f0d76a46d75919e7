//===- Reader.cpp - reading exported programs -----------------------------===//

#include "frontends/pt2/Reader.h"

#include "frontends/pt2/Errors.h"
#include "frontends/pt2/Parse.h"

#include "llvm/ADT/StringExtras.h"

using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace tessera::pt2 {

namespace {
/// Which of an archive's programs is meant.
Expected<std::string> chooseModel(const Archive &archive, StringRef model) {
  const std::vector<std::string> models = archive.models();
  const std::string list = "'" + llvm::join(models, "', '") + "'";
  if (models.empty())
    return error("'" + archive.file() + "' holds no exported program (no entry models/<name>.json)" +
                 (archive.hasPrefix("data/aotinductor/")
                      ? "; it holds code compiled by AOTInductor, from which no program can be read"
                      : ""));
  if (!model.empty()) {
    if (!llvm::is_contained(models, model))
      return error("'" + archive.file() + "' holds no program '" + model + "'; it holds " + list);
    return model.str();
  }
  if (models.size() > 1)
    return error("'" + archive.file() + "' holds several programs, say which is meant: " + list);
  return models.front();
}

/// Reads the version before all else: fields of other majors would only confuse.
void parseVersion(const Cursor &at, Program &program) {
  const Cursor version = at.field("schema_version");
  program.schemaMajor = version.field("major").integer();
  program.schemaMinor = version.field("minor").integer();
  if (at.failed())
    return;
  const std::string found = std::to_string(program.schemaMajor) + "." + std::to_string(program.schemaMinor);
  const std::string known =
      std::to_string(kSchemaMajor) + ".0 to " + std::to_string(kSchemaMajor) + "." + std::to_string(kSchemaMinor);
  if (program.schemaMajor != kSchemaMajor || program.schemaMinor < 0)
    return version.fail("the schema is " + found + ", this reader knows " + known);
  if (program.schemaMinor > kSchemaMinor) {
    at.log().unknownFields = true;
    at.log().warn("the schema " + found + " is newer than this reader, which knows " + known +
                  ": fields that it does not know are ignored");
  }
  version.fields({"major", "minor"});
}

std::optional<int64_t> parseBound(const Cursor &at, StringRef name) {
  auto bound = at.optional(name);
  if (!bound)
    return std::nullopt;
  if (bound->isString("Infinity") || bound->isString("-Infinity"))
    return std::nullopt;
  return bound->integer();
}

void parseRanges(const Cursor &at, Program &program) {
  const size_t count = at.members();
  for (size_t i = 0; i < count && !at.failed(); ++i) {
    const Cursor entry = at.member(i);
    entry.fields({"min_val", "max_val"});
    Range range{parseBound(entry, "min_val"), parseBound(entry, "max_val")};
    if (range.min && range.max && *range.min > *range.max)
      entry.fail("the range is empty: " + std::to_string(*range.min) + " to " + std::to_string(*range.max));
    program.ranges.emplace(at.memberName(i), range);
  }
}

/// What is known of the call of the root module; of submodules nothing is used.
void parseModuleCalls(const Cursor &at, Program &program) {
  const size_t count = at.size();
  for (size_t i = 0; i < count && !at.failed(); ++i) {
    const Cursor entry = at.element(i);
    entry.fields({"fqn", "signature"});
    const bool isRoot = entry.field("fqn").string().empty();
    const auto signature = entry.optional("signature");
    if (at.failed() || !isRoot || !signature)
      continue;
    signature->fields({"inputs", "outputs", "in_spec", "out_spec", "forward_arg_names"});
    program.outSpec = signature->field("out_spec").string();
  }
}

void parseNamedTuples(const Cursor &at, Program &program) {
  const size_t count = at.members();
  for (size_t i = 0; i < count && !at.failed(); ++i) {
    const Cursor tuple = at.member(i);
    program.namedTuples.emplace(at.memberName(i), parseStrings(tuple.field("field_names")));
  }
}

void parseProgram(const Cursor &at, Program &program) {
  parseVersion(at, program);
  if (at.failed())
    return;
  at.fields({"graph_module", "opset_version", "range_constraints", "schema_version", "verifiers", "torch_version",
             "guards_code"});
  if (auto version = at.optional("torch_version"))
    program.torchVersion = version->string();
  const Cursor module = at.field("graph_module");
  module.fields({"graph", "signature", "module_call_graph", "metadata", "treespec_namedtuple_fields"});
  program.graph = parseGraph(module.field("graph"), 0);
  program.signature = parseSignature(module.field("signature"));
  parseModuleCalls(module.field("module_call_graph"), program);
  if (auto tuples = module.optional("treespec_namedtuple_fields"))
    parseNamedTuples(*tuples, program);
  parseRanges(at.field("range_constraints"), program);
  if (auto guards = at.optional("guards_code"))
    program.guards = parseStrings(*guards);
  if (auto verifiers = at.optional("verifiers"))
    program.verifiers = parseStrings(*verifiers);
}

Error readInto(const Archive &archive, StringRef model, Program &program) {
  Expected<std::string> chosen = chooseModel(archive, model);
  if (!chosen)
    return chosen.takeError();
  program.file = archive.file();
  program.modelName = *chosen;
  const std::string entry = "models/" + *chosen + ".json";
  const std::string where = "'" + archive.file() + "', entry '" + entry + "': ";
  Expected<Json> json = readJson(archive, entry);
  if (!json)
    return json.takeError();
  Diagnostics log;
  parseProgram(Cursor(*json, log), program);
  if (log.failed())
    return error(where + log.error);
  program.warnings = std::move(log.warnings);
  if (Error failed = readNote(archive, program))
    return failed;
  if (Error failed = readWeightTable(archive, program))
    return failed;
  if (Error failed = checkProgram(program))
    return error(where + toString(std::move(failed)));
  return Error::success();
}
} // namespace

std::vector<std::string> parseStrings(const Cursor &at) {
  std::vector<std::string> strings;
  const size_t count = at.size();
  for (size_t i = 0; i < count && !at.failed(); ++i)
    strings.push_back(at.element(i).string());
  return strings;
}

Expected<Json> readJson(const Archive &archive, StringRef entry) {
  Expected<std::string> text = archive.readText(entry);
  if (!text)
    return text.takeError();
  Expected<Json> json = parseJson(*text);
  if (!json)
    return error("'" + archive.file() + "', entry '" + entry.str() + "': " + toString(json.takeError()));
  return json;
}

Expected<Program> readProgram(const Archive &archive, StringRef model) {
  try {
    Program program;
    if (Error failed = readInto(archive, model, program))
      return failed;
    return program;
  } catch (const std::exception &what) {
    return error("cannot read '" + archive.file() + "': " + what.what());
  }
}

Expected<Program> readProgram(const std::string &path, StringRef model) {
  Expected<Archive> archive = Archive::open(path);
  if (!archive)
    return archive.takeError();
  return readProgram(*archive, model);
}

} // namespace tessera::pt2
