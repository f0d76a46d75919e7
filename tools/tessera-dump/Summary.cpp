//===- Summary.cpp - what an artifact is, in one screen --------------------------------===//

#include "runtime/artifact/LearningRate.h"
#include "runtime/telemetry/MemoryPlan.h"
#include "tools/tessera-dump/Dump.h"

#include <fmt/format.h>

#include <map>

namespace tessera::dump {

using artifact::MemoryClass;

static Json keyValues(const flatbuffers::Vector<flatbuffers::Offset<artifact::KeyValue>> *entries) {
  Json json = Json::object();
  if (entries)
    for (const artifact::KeyValue *entry : *entries)
      json[entry->key()->str()] = entry->value()->str();
  return json;
}

/// Elements of the parameters themselves, without the padding of units.
static int64_t countParameters(const artifact::Package &package, artifact::StateRole role, size_t &tensors) {
  int64_t total = 0;
  if (!package.state())
    return 0;
  for (const artifact::StateTensor *state : *package.state()) {
    if (state->role() != role)
      continue;
    if (!state->segments() || state->segments()->size() == 0) {
      total += state->elements();
      ++tensors;
      continue;
    }
    for (const artifact::Segment *segment : *state->segments()) {
      int64_t elements = 1;
      if (segment->shape())
        for (int64_t size : *segment->shape())
          elements *= size;
      // A parameter in parts is listed once for each.
      total += elements / std::max<int64_t>(segment->parts(), 1);
      tensors += segment->part() == 0;
    }
  }
  return total;
}

/// Null if the step takes no learning rate.
static Json learningRateJson(const artifact::LearningRate *stored) {
  if (!stored)
    return nullptr;
  artifact::LearningRateT rate;
  stored->UnPackTo(&rate);
  return {{"kind", rate.kind}, {"peak", rate.peak}, {"lowest", rate.lowest}, {"course", describeParts(rate)}};
}

static const char *dimName(artifact::DimRole role) {
  switch (role) {
  case artifact::DimRole::Sample:
    return "sample";
  case artifact::DimRole::Position:
    return "position";
  case artifact::DimRole::MicroBatch:
    return "micro_batch";
  case artifact::DimRole::None:
    return "none";
  }
  return "?";
}

Json summaryJson(const Artifact &artifact) {
  const artifact::Package &package = artifact.package();
  MemoryPlan plan = memoryPlan(package, artifact.training());
  Json mesh = Json::object(), roles = Json::object();
  for (const Mesh::Axis &axis : artifact.mesh().axes) {
    mesh[axis.name] = axis.size;
    roles[axis.name] = toString(axis.role);
  }
  size_t tensors = 0, frozenTensors = 0, units = 0;
  int64_t parameters = countParameters(package, artifact::StateRole::Parameter, tensors);
  int64_t frozen = countParameters(package, artifact::StateRole::Frozen, frozenTensors);
  int64_t constants = 0, constantTensors = 0;
  for (const Json &tensor : tensorsJson(artifact))
    if (tensor["role"] == "constant") {
      double elements = 1; // of an untrusted file: sizes may be anything
      for (const Json &size : tensor["shape"])
        elements *= size.get<double>();
      constants += elements >= 0 && elements < 0x1p56 ? static_cast<int64_t>(elements) : 0;
      ++constantTensors;
    }
  if (package.state())
    for (const artifact::StateTensor *state : *package.state())
      units += state->role() == artifact::StateRole::Parameter;
  Json instructions = Json::object();
  std::map<std::string, int64_t> kinds;
  for (const FlatInstruction &entry : flatten(artifact.training()))
    ++kinds[kindOf(*entry.instruction)];
  for (const auto &[kind, count] : kinds)
    instructions[kind] = count;
  Json programs = Json::object();
  for (size_t number = 0; number < artifact.numPrograms(); ++number) {
    const artifact::Program &program = artifact.program(number);
    programs[program.name()->str()] = {{"kind", number == trainingProgram ? "train" : "evaluate"},
                                       {"instructions", flatten(program).size()},
                                       {"peak", memoryPlan(package, program).peakBytes}};
  }
  Json classes = Json::object();
  for (size_t i = 0; i < numMemoryClasses; ++i)
    classes[std::string(toString(static_cast<MemoryClass>(i)))] = plan.bytesAtPeak[i];
  uint64_t codeBytes = 0;
  if (package.code_objects())
    for (const artifact::CodeObject *code : *package.code_objects())
      codeBytes += code->data()->size();
  Json batch = Json::array();
  if (artifact.training().batch())
    for (const artifact::BatchTensor *tensor : *artifact.training().batch()) {
      Json entry = {{"name", tensor->name()->str()},
                    {"role", tensor->role() == artifact::BatchRole::Input ? "input" : "target"},
                    {"dtype", dtypeName(tensor->dtype())},
                    {"shape", Json::array()}};
      if (tensor->global_shape())
        for (int64_t size : *tensor->global_shape())
          entry["shape"].push_back(size);
      entry["dims"] = Json::array();
      for (uint32_t dim = 0; tensor->dims() && dim < tensor->dims()->size(); ++dim)
        entry["dims"].push_back(dimName(tensor->dims()->GetEnum<artifact::DimRole>(dim)));
      for (uint32_t number = 0; tensor->splits() && number < tensor->splits()->size(); ++number) {
        const artifact::DimSplit &split = *tensor->splits()->Get(number);
        Json axes = Json::array();
        for (const flatbuffers::String *axis : *package.groups()->Get(split.group())->axes())
          axes.push_back(axis->str());
        entry["splits"].push_back({{"dim", split.dim()},
                                   {"axes", std::move(axes)},
                                   {"order", split.order() == artifact::SplitOrder::Zigzag ? "zigzag" : "contiguous"}});
      }
      if (tensor->index_bound() >= 0)
        entry["index_bound"] = tensor->index_bound();
      if (tensor->has_runs())
        entry["has_runs"] = true;
      for (uint32_t part = 0; tensor->index_parts() && part < tensor->index_parts()->size(); ++part) {
        const artifact::IndexPart &stored = *tensor->index_parts()->Get(part);
        Json box = {{"bound", stored.bound()}, {"starts", Json::array()}, {"limits", Json::array()}};
        for (uint32_t dim = 0; stored.starts() && dim < stored.starts()->size(); ++dim)
          box["starts"].push_back(stored.starts()->Get(dim));
        for (uint32_t dim = 0; stored.limits() && dim < stored.limits()->size(); ++dim)
          box["limits"].push_back(stored.limits()->Get(dim));
        entry["index_parts"].push_back(std::move(box));
      }
      batch.push_back(std::move(entry));
    }
  Json phases = Json::array();
  if (package.ir())
    for (const artifact::PhaseIr *ir : *package.ir())
      phases.push_back(ir->phase()->str());
  Json modelFile;
  if (const artifact::ModelFile *file = package.model_file())
    modelFile = {{"path", file->path()->str()},
                 {"from_artifact", file->from_artifact()->str()},
                 {"content", file->content()->str()}};
  return {{"producer", package.producer() ? package.producer()->str() : ""},
          {"target", package.target()->str()},
          {"fingerprint", fmt::format("{:016x}", package.fingerprint())},
          {"collective_hash", fmt::format("{:016x}", artifact.training().collective_hash())},
          {"programs", std::move(programs)},
          {"mesh", std::move(mesh)},
          {"mesh_roles", std::move(roles)},
          {"ranks", artifact.numRanks()},
          {"model", keyValues(package.model())},
          {"optimizer", keyValues(package.optimizer())},
          {"learning_rate", learningRateJson(package.learning_rate())},
          {"model_file", std::move(modelFile)},
          {"parameters", parameters},
          {"parameter_tensors", tensors},
          {"units", units},
          {"frozen", frozen},
          {"frozen_tensors", frozenTensors},
          {"constants", constants},
          {"constant_tensors", constantTensors},
          {"batch", std::move(batch)},
          {"memory_per_rank",
           {{"reserved", plan.arenaBytes}, {"peak", plan.peakBytes}, {"by_class_at_peak", std::move(classes)}}},
          {"instructions", std::move(instructions)},
          {"kernels", package.kernels() ? package.kernels()->size() : 0},
          {"code_bytes", codeBytes},
          {"embedded_ir", std::move(phases)}};
}

static std::string join(const Json &object, const char *separator, const char *assign) {
  std::string text;
  for (const auto &[key, value] : object.items()) {
    if (!text.empty())
      text += separator;
    text += key + assign + (value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

/// "tokens i64[8,256] below 256, position over seq (zigzag)".
static std::string batchText(const Json &entry) {
  std::string text = fmt::format("{} {}{}", entry["name"].get<std::string>(), entry["dtype"].get<std::string>(),
                                 entry["shape"].dump());
  if (entry.contains("index_bound"))
    text += " below " + entry["index_bound"].dump();
  if (entry.contains("has_runs"))
    text += ", equal ones side by side";
  if (!entry.contains("splits"))
    return text;
  for (const Json &split : entry["splits"]) {
    std::string axes;
    for (const Json &axis : split["axes"])
      axes += (axes.empty() ? "" : "+") + axis.get<std::string>();
    const bool isZigzag = split["order"] == "zigzag";
    text += fmt::format(", {} over {}{}", entry["dims"][split["dim"].get<size_t>()].get<std::string>(), axes,
                        isZigzag ? " (zigzag)" : "");
  }
  return text;
}

std::string summaryText(const Artifact &artifact) {
  Json json = summaryJson(artifact);
  const Json &memory = json["memory_per_rank"];
  std::string text = fmt::format("{}\n", artifact.path());
  auto line = [&](const char *name, const std::string &value) {
    if (!value.empty())
      text += fmt::format("  {:<14} {}\n", name, value);
  };
  line("producer", json["producer"].get<std::string>());
  // A CPU's list of features is long: the JSON has it.
  std::string target = json["target"].get<std::string>();
  line("target", target.substr(0, target.find(':', target.find(':') + 1)));
  line("mesh", fmt::format("{}: {} ranks", artifact.mesh().toString(), artifact.numRanks()));
  line("model", join(json["model"], ", ", "="));
  line("optimizer", join(json["optimizer"], ", ", "="));
  if (const Json &rate = json["learning_rate"]; !rate.is_null())
    line("learning rate", fmt::format("{}, peak {}, lowest {}: {}", rate["kind"].get<std::string>(),
                                      rate["peak"].dump(), rate["lowest"].dump(), rate["course"].get<std::string>()));
  std::string parameters = fmt::format("{} in {} tensors, {} units", json["parameters"].get<int64_t>(),
                                       json["parameter_tensors"].get<int64_t>(), json["units"].get<int64_t>());
  for (const char *what : {"frozen", "constant"})
    if (int64_t count = json[fmt::format("{}_tensors", what)].get<int64_t>(); count > 0)
      parameters += fmt::format(
          "; {} {} in {}", json[what == std::string("frozen") ? "frozen" : "constants"].get<int64_t>(), what, count);
  line("parameters", parameters);
  const Json &file = json["model_file"];
  line("initial values", file.is_null() ? "by rule: the model file has none"
                                        : fmt::format("of '{}' (content {})", file["path"].get<std::string>(),
                                                      file["content"].get<std::string>()));
  for (const Json &entry : json["batch"])
    line(entry["role"].get_ref<const std::string &>().c_str(), batchText(entry));
  if (json["programs"].size() > 1)
    for (const auto &[name, program] : json["programs"].items())
      line("program", fmt::format("{} ({}): {} instructions, {} at the peak", name, program["kind"].get<std::string>(),
                                  program["instructions"].get<size_t>(), formatBytes(program["peak"].get<uint64_t>())));
  line("instructions", join(json["instructions"], ", ", " "));
  line("kernels",
       fmt::format("{}, code {}", json["kernels"].get<int64_t>(), formatBytes(json["code_bytes"].get<uint64_t>())));
  line("embedded IR", json["embedded_ir"].empty() ? "none" : json["embedded_ir"].dump());
  line("fingerprint", json["fingerprint"].get<std::string>());
  text += fmt::format("  memory per rank: {} reserved, {} at the peak\n",
                      formatBytes(memory["reserved"].get<uint64_t>()), formatBytes(memory["peak"].get<uint64_t>()));
  for (const auto &[name, bytes] : memory["by_class_at_peak"].items())
    text += fmt::format("    {:<14} {:>12}\n", name, formatBytes(bytes.get<uint64_t>()));
  return text;
}

Result<std::string> phaseIr(const Artifact &artifact, const std::string &phase) {
  std::string known;
  if (const auto *phases = artifact.package().ir())
    for (const artifact::PhaseIr *ir : *phases) {
      if (ir->phase()->str() == phase)
        return ir->text()->str();
      known += (known.empty() ? "" : ", ") + ir->phase()->str();
    }
  return TESSERA_ERROR(NotFound, "'" + artifact.path() + "' has no IR of phase '" + phase + "'" +
                                     (known.empty() ? "; compile with --embed-ir" : "; it has " + known));
}

} // namespace tessera::dump
