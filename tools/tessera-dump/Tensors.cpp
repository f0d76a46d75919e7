//===- Tensors.cpp - what the model file's tensors are in the step ------------------------===//

#include "tools/tessera-dump/Dump.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::dump {

std::string tensorRoleName(artifact::TensorRole role) {
  switch (role) {
  case artifact::TensorRole::Parameter:
    return "param";
  case artifact::TensorRole::Frozen:
    return "frozen";
  case artifact::TensorRole::Constant:
    return "constant";
  case artifact::TensorRole::Unused:
    return "unused";
  case artifact::TensorRole::Buffer:
    return "buffer";
  }
  return "?";
}

Json tensorsJson(const Artifact &artifact) {
  Json list = Json::array();
  if (!artifact.package().tensors())
    return list;
  for (const artifact::ModelTensor *tensor : *artifact.package().tensors()) {
    Json shape = Json::array();
    if (tensor->shape())
      for (int64_t size : *tensor->shape())
        shape.push_back(size);
    list.push_back({{"name", tensor->name()->str()},
                    {"role", tensorRoleName(tensor->role())},
                    {"dtype", tensor->dtype()->str()},
                    {"shape", std::move(shape)},
                    {"reason", tensor->reason() ? tensor->reason()->str() : ""}});
  }
  return list;
}

std::string tensorsText(const Artifact &artifact) {
  const Json list = tensorsJson(artifact);
  std::string text = "tensors of the model file, and who decided what they are\n";
  size_t width = 0;
  for (const Json &tensor : list)
    width = std::max(width, tensor["name"].get_ref<const std::string &>().size());
  for (const Json &tensor : list)
    text += fmt::format("  {:<9} {:<{}}  {}{}  {}\n", tensor["role"].get<std::string>(),
                        tensor["name"].get<std::string>(), width, tensor["dtype"].get<std::string>(),
                        tensor["shape"].dump(), tensor["reason"].get<std::string>());
  if (list.empty())
    text += "  none: the artifact was compiled from IR\n";
  return text;
}

} // namespace tessera::dump
