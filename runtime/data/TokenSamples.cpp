//===- TokenSamples.cpp - windows of tokens as samples ------------------------------===//

#include "runtime/data/Samples.h"
#include "runtime/data/TokenPlan.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tessera {

namespace {

class TokenSamples : public SampleSource {
public:
  TokenSamples(std::unique_ptr<TokenSource> source, const std::vector<BatchSpec> &specs, std::vector<TokenFill> fills,
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
          storeInteger(specs[tensor].dtype, targets[tensor], i, valueOf(fills[tensor], i));
    return Status::ok();
  }

  std::string describe(uint64_t index, size_t tensor, int64_t element) const override {
    return source->describe(index * length + element + (fills[tensor] == TokenFill::Targets));
  }

  std::string format() const override { return source->format(); }

  Result<std::string> fingerprint() override { return source->fingerprint(); }

  Result<double> unigramEntropy() override { return source->unigramEntropy(); }

private:
  /// The tokens of the window that elements of an entry are made of. Those of an entry that depends on all tokens
  /// before them are [0, end): they are read on every rank that has any of its later elements.
  ElementRange tokensFor(TokenFill fill, ElementRange elements) const {
    switch (fill) {
    case TokenFill::Tokens:
      return elements;
    case TokenFill::Targets:
      return {elements.begin + 1, elements.end + 1};
    case TokenFill::Positions:
      return {0, endOfDocument >= 0 ? elements.end : 0};
    case TokenFill::Documents:
      return {0, elements.end};
    case TokenFill::Mask:
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
  int64_t valueOf(TokenFill fill, int64_t i) const {
    switch (fill) {
    case TokenFill::Tokens:
      return window[i];
    case TokenFill::Targets:
      return window[i + 1];
    case TokenFill::Positions:
      return positions[i];
    case TokenFill::Documents:
      return documents[i];
    case TokenFill::Mask:
      return 1;
    }
    return 0;
  }

  std::unique_ptr<TokenSource> source;
  std::vector<BatchSpec> specs;
  std::vector<TokenFill> fills;
  int64_t length;
  int64_t endOfDocument;                     ///< -1: none
  std::vector<uint32_t> window;              ///< of the sample that is read; tokens that it does not need are of others
  std::vector<int64_t> positions, documents; ///< of the window's tokens, in their document and of it
};

/// Tokens that a window can hold.
constexpr int64_t kMostTokens = int64_t{1} << 32;

} // namespace

/// Why --end-of-document does not suit the model; empty: it does.
static std::string unsuitedEnd(int64_t endOfDocument, const TokenPlan &plan, const std::vector<BatchSpec> &specs) {
  for (size_t tensor = 0; tensor < specs.size(); ++tensor) {
    const BatchSpec &spec = specs[tensor];
    // The model has no token from the bound of its vocabulary on, and a window holds none of more bits.
    const int64_t bound = spec.indexBound >= 0 ? std::min(spec.indexBound, kMostTokens) : kMostTokens;
    if (plan.fills[tensor] == TokenFill::Tokens && endOfDocument >= bound)
      return "--end-of-document is " + std::to_string(endOfDocument) + ", but tokens of '" + spec.name +
             "' are in [0, " + std::to_string(bound) + ")" +
             (bound == spec.indexBound ? " (the model's vocabulary)" : "");
  }
  if (endOfDocument >= 0 && !plan.tellsDocuments)
    return "--end-of-document fills position_ids, document_ids, segment_ids or seq_idx, but the model has no such "
           "input";
  return "";
}

Result<std::unique_ptr<SampleSource>> openTokens(const std::string &path, const std::vector<BatchSpec> &specs,
                                                 const DataOptions &options) {
  TESSERA_ASSIGN_OR_RETURN(TokenPlan plan, TokenPlan::make(path, specs,
                                                           options.endOfDocument >= 0 ? TokenPlan::Documents::EndToken
                                                                                      : TokenPlan::Documents::Unknown));
  if (std::string problem = unsuitedEnd(options.endOfDocument, plan, specs); !problem.empty())
    return TESSERA_ERROR(InvalidArgument, problem);
  TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<TokenSource> source, TokenSource::open(path, options, plan.vocabulary));
  if (source->tokens() < static_cast<uint64_t>(plan.length) + 1)
    return TESSERA_ERROR(InvalidArgument, "data '" + path + "' is too short: it has " +
                                              std::to_string(source->tokens()) + " tokens, but one sample needs " +
                                              std::to_string(plan.length + 1));
  return std::unique_ptr<SampleSource>(
      new TokenSamples(std::move(source), specs, std::move(plan.fills), plan.length, options.endOfDocument));
}

} // namespace tessera
