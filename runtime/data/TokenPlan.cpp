//===- TokenPlan.cpp - what tokens fill the tensors of a batch with ---------===//

#include "runtime/data/TokenPlan.h"

#include <algorithm>
#include <cstring>

namespace tessera {

/// Names of inputs that take the number of each token's document.
static bool countsDocuments(const std::string &name) {
  return name == "document_ids" || name == "segment_ids" || name == "seq_idx";
}

/// How many tokens the elements of a tensor may be: the bound of all, or the largest one of parts; -1: not known.
static int64_t tokensOf(const BatchSpec &spec) {
  int64_t bound = spec.indexBound;
  if (bound < 0)
    for (const IndexPart &part : spec.indexParts)
      bound = std::max(bound, part.bound);
  return bound;
}

Result<TokenPlan> TokenPlan::make(const std::string &path, const std::vector<BatchSpec> &specs, Documents documents) {
  TokenPlan plan;
  int inputs = 0, targets = 0;
  for (const BatchSpec &spec : specs) {
    std::vector<int64_t> shape = spec.sampleShape();
    const bool isInteger = spec.dtype == DataType::I32 || spec.dtype == DataType::I64;
    const bool isMask = spec.name == "attention_mask", isPosition = spec.name == "position_ids";
    if (spec.isShared() && (isMask || isPosition))
      std::erase(shape, 1);
    if (shape.size() != 1 || shape[0] < 1 || (plan.length != 0 && shape[0] != plan.length) ||
        !(isInteger || (isMask && canConvert(DataType::I64, spec.dtype))) ||
        (spec.isShared() && !isMask && !isPosition))
      return TESSERA_ERROR(InvalidArgument, "tokens of '" + path + "' cannot fill '" + spec.name + "' (" +
                                                std::string(safetensorsName(spec.dtype)) + shapeToString(shape) +
                                                " per sample), expected integers [sequence]; give arrays (.npz or "
                                                ".safetensors) for this model");
    plan.length = shape[0];
    bool isOfTokens = false;
    if (spec.role == artifact::BatchRole::Target) {
      plan.target = static_cast<int64_t>(plan.fills.size());
      plan.fills.push_back(TokenFill::Targets);
      isOfTokens = true;
      ++targets;
    } else if (isMask) {
      plan.fills.push_back(TokenFill::Mask);
    } else if (isPosition) {
      if (spec.isShared() && documents == Documents::EndToken)
        return TESSERA_ERROR(InvalidArgument,
                             "all samples share 'position_ids', but with --end-of-document each has its "
                             "own; export the model with position_ids [batch, sequence]");
      plan.fills.push_back(TokenFill::Positions);
      plan.tellsDocuments |= !spec.isShared();
    } else if (countsDocuments(spec.name)) {
      if (documents == Documents::Unknown)
        return TESSERA_ERROR(InvalidArgument, "'" + spec.name +
                                                  "' numbers documents: --end-of-document says which token "
                                                  "is the last one of a document; an input of another name takes "
                                                  "tokens");
      plan.fills.push_back(TokenFill::Documents);
      plan.tellsDocuments = true;
    } else {
      plan.fills.push_back(TokenFill::Tokens);
      isOfTokens = true;
      ++inputs;
    }
    if (const int64_t bound = tokensOf(spec);
        isOfTokens && bound >= 0 && (plan.vocabulary < 0 || bound < plan.vocabulary))
      plan.vocabulary = bound;
  }
  if (inputs != 1 || targets > 1)
    return TESSERA_ERROR(InvalidArgument, "tokens of '" + path +
                                              "' fill one input and one target, but the "
                                              "model has " +
                                              std::to_string(inputs) + " and " + std::to_string(targets) +
                                              "; give arrays (.npz or .safetensors)");
  return plan;
}

void storeInteger(DataType dtype, uint8_t *target, int64_t index, int64_t value) {
  if (dtype == DataType::I64) {
    std::memcpy(target + index * 8, &value, 8);
  } else if (dtype == DataType::I32) {
    auto narrow = static_cast<int32_t>(value);
    std::memcpy(target + index * 4, &narrow, 4);
  } else {
    (void)convertElements(DataType::I64, &value, dtype, target + index * elementBytes(dtype), 1); // counts fit
  }
}

} // namespace tessera
