//===- State.cpp - units, parameters, kernels and code ------------------------------------===//

#include "runtime/base/File.h"
#include "runtime/state/StateView.h"
#include "runtime/telemetry/MemoryPlan.h"
#include "tools/tessera-dump/Dump.h"

#include <fmt/format.h>

#include <map>

namespace tessera::dump {

static std::string initText(const artifact::Init *init) {
  if (!init)
    return "";
  switch (init->kind()) {
  case artifact::InitKind::Constant:
    return fmt::format("constant {}", init->a());
  case artifact::InitKind::Normal:
    return fmt::format("normal {} {}", init->a(), init->b());
  case artifact::InitKind::Uniform:
    return fmt::format("uniform {} {}", init->a(), init->b());
  }
  return "";
}

Json stateJson(const Artifact &artifact) {
  Json list = Json::array();
  if (!artifact.package().state())
    return list;
  for (const artifact::StateTensor *state : *artifact.package().state()) {
    Json segments = Json::array();
    if (state->segments())
      for (const artifact::Segment *segment : *state->segments()) {
        Json shape = Json::array();
        if (segment->shape())
          for (int64_t size : *segment->shape())
            shape.push_back(size);
        segments.push_back({{"name", segment->name()->str()},
                            {"shape", std::move(shape)},
                            {"offset", segment->offset()},
                            {"init", initText(segment->init())}});
        if (segment->split_dim() >= 0)
          segments.back()["part"] = {
              {"dim", segment->split_dim()}, {"count", segment->parts()}, {"index", segment->part()}};
      }
    list.push_back({{"name", state->name()->str()},
                    {"role", toString(StateKind(state->role(), state->state() ? state->state()->str() : ""))},
                    {"dtype", dtypeName(state->dtype())},
                    {"elements", state->elements()},
                    {"shards", artifact.groupSize(state->shard_group())},
                    {"segments", std::move(segments)}});
  }
  return list;
}

std::string stateText(const Artifact &artifact) {
  std::string text = "state (units and the parameters in them)\n";
  for (const Json &unit : stateJson(artifact)) {
    int64_t shards = unit["shards"].get<int64_t>();
    text += fmt::format(
        "  {:<10} {:<32} {}[{}]{}\n", unit["role"].get<std::string>(), unit["name"].get<std::string>(),
        unit["dtype"].get<std::string>(), unit["elements"].get<int64_t>(),
        shards > 1 ? fmt::format(", {} on each of {} ranks", unit["elements"].get<int64_t>() / shards, shards) : "");
    if (unit["role"] != "parameter" && unit["role"] != "frozen")
      continue;
    for (const Json &segment : unit["segments"]) {
      std::string name = segment["name"].get<std::string>();
      if (segment.contains("part"))
        name += fmt::format(", part {} of {} along {}", segment["part"]["index"].get<int>(),
                            segment["part"]["count"].get<int>(), segment["part"]["dim"].get<int>());
      text += fmt::format("    {:>12} {:<48} {:<16} {}\n", segment["offset"].get<int64_t>(), name,
                          segment["shape"].dump(), segment["init"].get<std::string>());
    }
  }
  return text;
}

Json kernelsJson(const Artifact &artifact) {
  const artifact::Package &package = artifact.package();
  std::map<uint32_t, int64_t> launches;
  for (const FlatInstruction &entry : flatten(artifact.training()))
    if (const artifact::Launch *launch = entry.instruction->operation_as_Launch())
      launches[launch->kernel()] += entry.iterations;
  Json kernels = Json::array(), objects = Json::array();
  if (package.kernels())
    for (uint32_t i = 0; i < package.kernels()->size(); ++i) {
      const artifact::Kernel &kernel = *package.kernels()->Get(i);
      Json entry = {{"symbol", kernel.symbol()->str()},
                    {"code_object", kernel.code_object()},
                    {"launches_per_step", launches[i]}};
      if (kernel.blocks() > 0) {
        entry["blocks"] = kernel.blocks();
        entry["threads"] = {kernel.threads_x(), kernel.threads_y()};
      }
      kernels.push_back(std::move(entry));
    }
  if (package.code_objects())
    for (const artifact::CodeObject *code : *package.code_objects())
      objects.push_back({{"format", artifact::EnumNameCodeFormat(code->format())},
                         {"target", code->target()->str()},
                         {"bytes", code->data()->size()}});
  return {{"kernels", std::move(kernels)}, {"code_objects", std::move(objects)}};
}

std::string kernelsText(const Artifact &artifact) {
  Json json = kernelsJson(artifact);
  std::string text = "kernels (launches in a step, symbol)\n";
  for (const Json &kernel : json["kernels"]) {
    std::string size;
    if (kernel.contains("blocks"))
      size = fmt::format("  {} blocks of {} x {} threads", kernel["blocks"].get<uint32_t>(),
                         kernel["threads"][0].get<uint32_t>(), kernel["threads"][1].get<uint32_t>());
    text += fmt::format("  {:>8} {}{}\n", kernel["launches_per_step"].get<int64_t>(),
                        kernel["symbol"].get<std::string>(), size);
  }
  text += "code objects\n";
  for (const Json &object : json["code_objects"])
    text += fmt::format("  {} for {}, {}\n", object["format"].get<std::string>(), object["target"].get<std::string>(),
                        formatBytes(object["bytes"].get<uint64_t>()));
  return text;
}

Status writeCode(const Artifact &artifact, const std::string &path) {
  const auto *objects = artifact.package().code_objects();
  if (!objects || objects->size() == 0)
    return TESSERA_ERROR(NotFound, "'" + artifact.path() + "' has no code objects");
  for (uint32_t i = 0; i < objects->size(); ++i) {
    const auto *data = objects->Get(i)->data();
    std::string target = objects->size() == 1 ? path : path + "." + std::to_string(i);
    TESSERA_RETURN_IF_ERROR(writeFileAtomically(target, {reinterpret_cast<const char *>(data->data()), data->size()}));
  }
  return Status::ok();
}

} // namespace tessera::dump
