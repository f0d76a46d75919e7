//===- TokenSamples.cpp - windows of tokens as samples ------------------------------===//

#include "runtime/data/Samples.h"

#include <cstring>
#include <filesystem>

namespace tessera {

namespace {

class TokenSamples : public SampleSource {
public:
  /// How a batch tensor is filled.
  enum class Fill { Tokens, Shifted, Positions, Ones };

  TokenSamples(std::unique_ptr<TokenSource> source, const std::vector<BatchSpec> &specs, std::vector<Fill> fills,
               int64_t length)
      : source(std::move(source)), specs(specs), fills(std::move(fills)), length(length), window(length + 1) {}

  uint64_t samples() const override { return source->tokens() < 2 ? 0 : (source->tokens() - 1) / length; }

  Status read(uint64_t index, std::span<uint8_t *const> targets) override {
    TESSERA_RETURN_IF_ERROR(source->read(index * length, window.size(), window.data()));
    for (size_t tensor = 0; tensor < specs.size(); ++tensor)
      for (int64_t i = 0; targets[tensor] && i < length; ++i)
        store(specs[tensor].dtype, targets[tensor], i, valueOf(fills[tensor], i));
    return Status::ok();
  }

  std::string describe(uint64_t index, size_t tensor, int64_t element) const override {
    return source->describe(index * length + element + (fills[tensor] == Fill::Shifted));
  }

  std::string hint(uint64_t index, size_t tensor, int64_t element, int64_t value) const override {
    return source->hint(index * length + element + (fills[tensor] == Fill::Shifted), value);
  }

  Result<std::string> fingerprint() override { return source->fingerprint(); }

  Result<double> unigramEntropy() override { return source->unigramEntropy(); }

private:
  int64_t valueOf(Fill fill, int64_t i) const {
    switch (fill) {
    case Fill::Tokens:
      return window[i];
    case Fill::Shifted:
      return window[i + 1];
    case Fill::Positions:
      return i;
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
  std::vector<uint32_t> window;
};

} // namespace

Result<std::unique_ptr<SampleSource>> makeTokenSamples(std::unique_ptr<TokenSource> source,
                                                       const std::vector<BatchSpec> &specs) {
  using Fill = TokenSamples::Fill;
  std::vector<Fill> fills;
  int64_t length = 0;
  int inputs = 0, targets = 0;
  for (const BatchSpec &spec : specs) {
    std::vector<int64_t> shape = spec.sampleShape();
    bool isInteger = spec.dtype == DataType::I32 || spec.dtype == DataType::I64;
    bool isMask = spec.name == "attention_mask";
    if (spec.isShared() && (isMask || spec.name == "position_ids"))
      std::erase(shape, 1);
    if (shape.size() != 1 || shape[0] < 1 || (length != 0 && shape[0] != length) || (!isInteger && !isMask) ||
        (spec.isShared() && !isMask && spec.name != "position_ids"))
      return TESSERA_ERROR(InvalidArgument, "tokens of '" + source->path() + "' cannot fill '" + spec.name + "' (" +
                                                std::string(safetensorsName(spec.dtype)) + shapeToString(shape) +
                                                " per sample), expected integers [sequence]; give arrays (.npz or "
                                                ".safetensors) for this model");
    length = shape[0];
    if (spec.role == artifact::BatchRole::Target) {
      fills.push_back(Fill::Shifted);
      ++targets;
    } else if (isMask || spec.name == "position_ids") {
      fills.push_back(isMask ? Fill::Ones : Fill::Positions);
    } else {
      fills.push_back(Fill::Tokens);
      ++inputs;
    }
  }
  if (inputs != 1 || targets > 1)
    return TESSERA_ERROR(InvalidArgument, "tokens of '" + source->path() +
                                              "' fill one input and one target, but the "
                                              "model has " +
                                              std::to_string(inputs) + " and " + std::to_string(targets) +
                                              "; give arrays (.npz or .safetensors)");
  if (source->tokens() < static_cast<uint64_t>(length) + 1)
    return TESSERA_ERROR(InvalidArgument, "data '" + source->path() + "' is too short: it has " +
                                              std::to_string(source->tokens()) + " tokens, but one sample needs " +
                                              std::to_string(length + 1));
  return std::unique_ptr<SampleSource>(new TokenSamples(std::move(source), specs, std::move(fills), length));
}

Result<std::unique_ptr<SampleSource>> openSamples(const std::string &path, const std::vector<BatchSpec> &specs,
                                                  const DataOptions &options) {
  std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".npz" || ending == ".safetensors")
    return openArrays(path, specs);
  TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<TokenSource> source, TokenSource::open(path, options));
  return makeTokenSamples(std::move(source), specs);
}

} // namespace tessera
