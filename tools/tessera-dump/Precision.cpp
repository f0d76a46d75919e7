//===- Precision.cpp - what the products of the model are computed in ---------------------===//

#include "tools/tessera-dump/Dump.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::dump {

static std::string textOf(const flatbuffers::String *text) { return text ? text->str() : ""; }

/// The precision that the artifact was compiled with.
static std::string precisionOf(const Artifact &artifact) {
  if (const auto *model = artifact.package().model())
    for (const artifact::KeyValue *entry : *model)
      if (entry->key()->str() == "precision")
        return entry->value()->str();
  return "?";
}

Json precisionJson(const Artifact &artifact) {
  Json list = Json::array();
  if (const auto *products = artifact.package().products())
    for (const artifact::Product *product : *products)
      list.push_back({{"name", textOf(product->name())},
                      {"weight", textOf(product->weight())},
                      {"inputs", product->inputs()},
                      {"outputs", product->outputs()},
                      {"output", textOf(product->output())},
                      {"input_grad", textOf(product->input_grad())},
                      {"weight_grad", textOf(product->weight_grad())},
                      {"reason", textOf(product->reason())}});
  return {{"precision", precisionOf(artifact)}, {"products", std::move(list)}};
}

std::string precisionText(const Artifact &artifact) {
  const Json json = precisionJson(artifact), &list = json["products"];
  std::string text = "products of the model, precision " + precisionOf(artifact) + "\n";
  if (list.empty())
    return text + "  not listed: only --precision fp8 chooses product by product\n";
  size_t width = 0;
  auto nameOf = [](const Json &product) {
    const std::string weight = product["weight"];
    return weight.empty() ? product["name"].get<std::string>() : weight;
  };
  for (const Json &product : list)
    width = std::max(width, nameOf(product).size());
  for (const Json &product : list) {
    const std::string output = product["output"], reason = product["reason"];
    const std::string size = product["inputs"] == 0 ? ""
                                                    : fmt::format("{} -> {}", product["inputs"].get<int64_t>(),
                                                                  product["outputs"].get<int64_t>());
    text += fmt::format("  {:<{}}  {:<15}  ", nameOf(product), width, size);
    if (reason.empty())
      text += fmt::format("{}; input gradient {}; weight gradient {}\n", output,
                          product["input_grad"].get<std::string>(), product["weight_grad"].get<std::string>());
    else
      text += fmt::format("{}: {}\n", output, reason);
  }
  return text;
}

} // namespace tessera::dump
