//===- TokenSamples.cpp - windows of tokens as samples ------------------------------===//

#include "runtime/data/Samples.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <utility>

namespace tessera {

namespace {

class TokenSamples : public SampleSource {
public:
  /// How a batch tensor is filled.
  enum class Fill { Tokens, Shifted, Positions, Documents, Ones };

  TokenSamples(std::unique_ptr<TokenSource> source, const std::vector<BatchSpec> &specs, std::vector<Fill> fills,
               int64_t length, int64_t endOfDocument)
      : source(std::move(source)), specs(specs), fills(std::move(fills)), length(length), endOfDocument(endOfDocument),
        window(length + 1), positions(length), documents(length) {
    std::iota(positions.begin(), positions.end(), 0);
  }

  uint64_t samples() const override { return source->tokens() < 2 ? 0 : (source->tokens() - 1) / length; }

  Status read(uint64_t index, std::span<uint8_t *const> targets, std::span<const ElementRanges> wanted) override {
    ElementRanges tokens;
    for (size_t tensor = 0; tensor < specs.size(); ++tensor)
      for (ElementRange range : targets[tensor] ? wanted[tensor] : ElementRanges())
        tokens.push_back(tokensFor(fills[tensor], range));
    for (ElementRange range : unionOf(std::move(tokens)))
      TESSERA_RETURN_IF_ERROR(source->read(index * length + range.begin, range.size(), window.data() + range.begin));
    if (endOfDocument >= 0)
      countDocuments();
    for (size_t tensor = 0; tensor < specs.size(); ++tensor)
      for (ElementRange range : targets[tensor] ? wanted[tensor] : ElementRanges())
        for (int64_t i = range.begin; i < range.end; ++i)
          store(specs[tensor].dtype, targets[tensor], i, valueOf(fills[tensor], i));
    return Status::ok();
  }

  std::string describe(uint64_t index, size_t tensor, int64_t element) const override {
    return source->describe(index * length + element + (fills[tensor] == Fill::Shifted));
  }

  std::string format() const override { return source->format(); }

  Result<std::string> fingerprint() override { return source->fingerprint(); }

  Result<double> unigramEntropy() override { return source->unigramEntropy(); }

private:
  /// The tokens of the window that elements of an entry are made of. Those of an entry that depends on all tokens
  /// before them are [0, end): they are read on every rank that has any of its later elements.
  ElementRange tokensFor(Fill fill, ElementRange elements) const {
    switch (fill) {
    case Fill::Tokens:
      return elements;
    case Fill::Shifted:
      return {elements.begin + 1, elements.end + 1};
    case Fill::Positions:
      return {0, endOfDocument >= 0 ? elements.end : 0};
    case Fill::Documents:
      return {0, elements.end};
    case Fill::Ones:
      break;
    }
    return {0, 0};
  }

  /// Numbers the documents of the window, and the tokens of each, as far as it has been read from its first token on.
  void countDocuments() {
    int64_t position = 0, document = 0;
    for (int64_t i = 0; i < length; ++i) {
      positions[i] = position++;
      documents[i] = document;
      if (window[i] == endOfDocument) {
        position = 0;
        ++document;
      }
    }
  }

  /// The value of an element whose tokens are in `window`.
  int64_t valueOf(Fill fill, int64_t i) const {
    switch (fill) {
    case Fill::Tokens:
      return window[i];
    case Fill::Shifted:
      return window[i + 1];
    case Fill::Positions:
      return positions[i];
    case Fill::Documents:
      return documents[i];
    case Fill::Ones:
      return 1;
    }
    return 0;
  }

  static void store(DataType dtype, uint8_t *target, int64_t index, int64_t value) {
    if (dtype == DataType::I64) {
      std::memcpy(target + index * 8, &value, 8);
    } else if (dtype == DataType::I32) {
      auto narrow = static_cast<int32_t>(value);
      std::memcpy(target + index * 4, &narrow, 4);
    } else if (dtype == DataType::F32) {
      auto number = static_cast<float>(value);
      std::memcpy(target + index * 4, &number, 4);
    } else {
      target[index] = static_cast<uint8_t>(value);
    }
  }

  std::unique_ptr<TokenSource> source;
  std::vector<BatchSpec> specs;
  std::vector<Fill> fills;
  int64_t length;
  int64_t endOfDocument;                     ///< -1: none
  std::vector<uint32_t> window;              ///< of the sample that is read; tokens that it does not need are of others
  std::vector<int64_t> positions, documents; ///< of the window's tokens, in their document and of it
};

/// Tokens that a window can hold.
constexpr int64_t kMostTokens = int64_t{1} << 32;

/// Names of inputs that take the number of each token's document.
bool countsDocuments(const std::string &name) {
  return name == "document_ids" || name == "segment_ids" || name == "seq_idx";
}

/// How many tokens the elements of a tensor may be: the bound of all, or the largest one of parts; -1: not known.
int64_t tokensOf(const BatchSpec &spec) {
  int64_t bound = spec.indexBound;
  if (bound < 0)
    for (const IndexPart &part : spec.indexParts)
      bound = std::max(bound, part.bound);
  return bound;
}

/// What the batch tensors of a model are filled with.
struct TokenPlan {
  std::vector<TokenSamples::Fill> fills;
  int64_t length = 0;      ///< of a sample
  int64_t vocabulary = -1; ///< -1: not known

  void limit(const BatchSpec &spec) {
    const int64_t bound = tokensOf(spec);
    if (bound >= 0 && (vocabulary < 0 || bound < vocabulary))
      vocabulary = bound;
  }
};

Result<TokenPlan> planTokens(const std::string &path, const std::vector<BatchSpec> &specs, int64_t endOfDocument) {
  using Fill = TokenSamples::Fill;
  TokenPlan plan;
  std::vector<Fill> &fills = plan.fills;
  int64_t &length = plan.length;
  int inputs = 0, targets = 0, followDocuments = 0;
  for (const BatchSpec &spec : specs) {
    std::vector<int64_t> shape = spec.sampleShape();
    bool isInteger = spec.dtype == DataType::I32 || spec.dtype == DataType::I64;
    bool isMask = spec.name == "attention_mask", isPosition = spec.name == "position_ids";
    if (spec.isShared() && (isMask || isPosition))
      std::erase(shape, 1);
    if (shape.size() != 1 || shape[0] < 1 || (length != 0 && shape[0] != length) || (!isInteger && !isMask) ||
        (spec.isShared() && !isMask && !isPosition))
      return TESSERA_ERROR(InvalidArgument, "tokens of '" + path + "' cannot fill '" + spec.name + "' (" +
                                                std::string(safetensorsName(spec.dtype)) + shapeToString(shape) +
                                                " per sample), expected integers [sequence]; give arrays (.npz or "
                                                ".safetensors) for this model");
    length = shape[0];
    if (spec.role == artifact::BatchRole::Target) {
      fills.push_back(Fill::Shifted);
      plan.limit(spec);
      ++targets;
    } else if (isMask) {
      fills.push_back(Fill::Ones);
    } else if (isPosition) {
      if (spec.isShared() && endOfDocument >= 0)
        return TESSERA_ERROR(InvalidArgument,
                             "all samples share 'position_ids', but with --end-of-document each has its "
                             "own; export the model with position_ids [batch, sequence]");
      fills.push_back(Fill::Positions);
      ++followDocuments;
    } else if (countsDocuments(spec.name)) {
      if (endOfDocument < 0)
        return TESSERA_ERROR(InvalidArgument, "'" + spec.name +
                                                  "' numbers documents: --end-of-document says which token "
                                                  "is the last one of a document; an input of another name takes "
                                                  "tokens");
      fills.push_back(Fill::Documents);
      ++followDocuments;
    } else {
      // The model has no token from the bound of its vocabulary on, and a window holds none of more bits.
      const int64_t bound = spec.indexBound >= 0 ? std::min(spec.indexBound, kMostTokens) : kMostTokens;
      if (endOfDocument >= bound)
        return TESSERA_ERROR(InvalidArgument, "--end-of-document is " + std::to_string(endOfDocument) +
                                                  ", but tokens of '" + spec.name + "' are in [0, " +
                                                  std::to_string(bound) + ")" +
                                                  (bound == spec.indexBound ? " (the model's vocabulary)" : ""));
      fills.push_back(Fill::Tokens);
      plan.limit(spec);
      ++inputs;
    }
  }
  if (inputs != 1 || targets > 1)
    return TESSERA_ERROR(InvalidArgument, "tokens of '" + path +
                                              "' fill one input and one target, but the "
                                              "model has " +
                                              std::to_string(inputs) + " and " + std::to_string(targets) +
                                              "; give arrays (.npz or .safetensors)");
  if (endOfDocument >= 0 && followDocuments == 0)
    return TESSERA_ERROR(InvalidArgument, "--end-of-document fills position_ids, document_ids, segment_ids or seq_idx, "
                                          "but the model has no such input");
  return plan;
}

} // namespace

Result<std::unique_ptr<SampleSource>> openSamples(const std::string &path, const std::vector<BatchSpec> &specs,
                                                  const DataOptions &options) {
  std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".npz" || ending == ".safetensors") {
    for (auto [isGiven, flag] : {std::pair{options.endOfDocument >= 0, "--end-of-document is for tokens"},
                                 {options.tokenBytes != 0, "--token-bytes is for tokens"},
                                 {options.readsBytes, "--tokenizer is for text"}})
      if (isGiven)
        return TESSERA_ERROR(InvalidArgument, std::string(flag) + ", and '" + path + "' holds arrays");
    return openArrays(path, specs);
  }
  TESSERA_ASSIGN_OR_RETURN(TokenPlan plan, planTokens(path, specs, options.endOfDocument));
  TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<TokenSource> source, TokenSource::open(path, options, plan.vocabulary));
  if (source->tokens() < static_cast<uint64_t>(plan.length) + 1)
    return TESSERA_ERROR(InvalidArgument, "data '" + path + "' is too short: it has " +
                                              std::to_string(source->tokens()) + " tokens, but one sample needs " +
                                              std::to_string(plan.length + 1));
  return std::unique_ptr<SampleSource>(
      new TokenSamples(std::move(source), specs, std::move(plan.fills), plan.length, options.endOfDocument));
}

std::string describeWantedData(const std::vector<BatchSpec> &specs) {
  std::string text, arrays;
  Result<TokenPlan> plan = planTokens("", specs, -1);
  if (!plan.isOk()) // documents that are counted want their last token
    plan = planTokens("", specs, 0);
  if (plan.isOk())
    text = "tokens, " + std::to_string(plan->length + 1) + " for a sample" +
           (plan->vocabulary >= 0 ? " and below " + std::to_string(plan->vocabulary) : "") +
           ": --data tokens.bin, or text that is read as bytes: --data text/\nor ";
  text += "arrays: --data data.npz or data.safetensors, with\n";
  for (const BatchSpec &spec : specs) {
    text +=
        "  " + spec.name + ": " + std::string(safetensorsName(spec.dtype)) + " [" + (spec.isShared() ? "" : "samples");
    bool isFirst = spec.isShared();
    for (int64_t size : spec.sampleShape()) {
      text += (isFirst ? "" : ", ") + std::to_string(size);
      isFirst = false;
    }
    text += "]";
    if (spec.indexBound >= 0)
      text += ", from 0 to " + std::to_string(spec.indexBound - 1);
    text += "\n";
    arrays += ", " + spec.name + "=…";
  }
  return text + "such as numpy.savez(\"data.npz\"" + arrays + ") makes";
}

} // namespace tessera
