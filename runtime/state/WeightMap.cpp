//===- WeightMap.cpp - where Hugging Face's files have parameters -----------===//

#include "runtime/state/WeightMap.h"

namespace tessera {

static std::string textOf(const flatbuffers::String *text) { return text ? text->str() : std::string(); }

static std::vector<std::string> textsOf(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> *texts) {
  std::vector<std::string> made;
  if (texts)
    for (const flatbuffers::String *text : *texts)
      made.push_back(text->str());
  return made;
}

WeightMap::WeightMap(const std::string &root, const std::string &prefix,
                     std::map<std::string, StoredParameter> parameters, std::vector<std::string> unread,
                     std::string refused)
    : root(root.empty() ? "" : root + "."), prefix(prefix.empty() ? "" : prefix + "."), reason(std::move(refused)),
      parameters(std::move(parameters)), unreadNames(std::move(unread)) {}

WeightMap WeightMap::of(const Artifact &artifact) {
  const artifact::WeightMap *map = artifact.package().weight_map();
  if (!map)
    return {};
  std::map<std::string, StoredParameter> parameters;
  if (map->parameters())
    for (const artifact::StoredParameter *parameter : *map->parameters()) {
      StoredParameter &stored = parameters[parameter->name()->str()];
      stored.others = textsOf(parameter->others());
      if (parameter->pieces())
        for (const artifact::WeightPiece *piece : *parameter->pieces())
          stored.pieces.push_back(WeightPiece::of(*piece));
    }
  return {textOf(map->root()), textOf(map->prefix()), std::move(parameters), textsOf(map->unread()),
          textOf(map->refused())};
}

std::string WeightMap::inModel(const std::string &parameter) const {
  return parameter.starts_with(root) ? parameter.substr(root.size()) : parameter;
}

StoredParameter WeightMap::stored(const std::string &parameter, const std::vector<int64_t> &shape) const {
  const auto found = parameters.find(parameter);
  StoredParameter made = found == parameters.end() ? StoredParameter() : found->second;
  if (made.pieces.empty())
    made.pieces.push_back(WeightPiece::whole(inModel(parameter), shape));
  return made;
}

std::vector<std::string> WeightMap::spellings(const std::string &tensor) const {
  if (prefix.empty())
    return {tensor};
  return {tensor, tensor.starts_with(prefix) ? tensor.substr(prefix.size()) : prefix + tensor};
}

} // namespace tessera
