//===- Mixture.cpp - samples of several data sets, by weights ----------------===//

#include "runtime/base/Fingerprint.h"
#include "runtime/data/TokenizedData.h"

#include <fmt/format.h>

namespace tessera {

namespace {

/// The samples of all sources behind one another; which one comes when is the order's business.
class Mixture : public SampleSource {
public:
  Mixture(std::vector<std::unique_ptr<SampleSource>> sources, const TokenizedData &data)
      : sources(std::move(sources)), data(data) {}

  uint64_t samples() const override {
    uint64_t all = 0;
    for (const auto &source : sources)
      all += source->samples();
    return all;
  }

  std::vector<SamplePart> parts() const override {
    std::vector<SamplePart> parts;
    for (size_t index = 0; index < sources.size(); ++index)
      parts.push_back({sources[index]->samples(), data.mixture[index].weight});
    return parts;
  }

  Status read(uint64_t index, std::span<uint8_t *const> targets, std::span<const ElementRanges> wanted) override {
    const auto [source, inside] = find(index);
    return sources[source]->read(inside, targets, wanted);
  }

  std::string describe(uint64_t index, size_t tensor, int64_t element) const override {
    const auto [source, inside] = find(index);
    return sources[source]->describe(inside, tensor, element);
  }

  std::string format() const override {
    std::string text = "a mixture";
    for (size_t index = 0; index < sources.size(); ++index)
      text += fmt::format("{}{:.4g} of '{}' ({} samples of {})", index ? ", " : ": ", data.mixture[index].weight,
                          data.mixture[index].folder, sources[index]->samples(), sources[index]->format());
    return text;
  }

  Result<std::string> fingerprint() override {
    Fingerprint all;
    for (size_t index = 0; index < sources.size(); ++index) {
      TESSERA_ASSIGN_OR_RETURN(std::string one, sources[index]->fingerprint());
      all.add(one);
      all.add(&data.mixture[index].weight, sizeof(double));
    }
    return all.text();
  }

private:
  std::pair<size_t, uint64_t> find(uint64_t index) const {
    size_t source = 0;
    for (; index >= sources[source]->samples(); ++source)
      index -= sources[source]->samples();
    return {source, index};
  }

  std::vector<std::unique_ptr<SampleSource>> sources;
  TokenizedData data;
};

} // namespace

Result<std::unique_ptr<SampleSource>> openMixture(const TokenizedData &data, const std::vector<BatchSpec> &specs,
                                                  const DataOptions &options) {
  if (options.isEvaluation)
    return TESSERA_ERROR(InvalidArgument, "'" + data.folder +
                                              "' is a mixture, and is not evaluated as one: evaluate one "
                                              "of its sources");
  std::vector<std::unique_ptr<SampleSource>> sources;
  for (const TokenizedData::Source &source : data.mixture) {
    TESSERA_ASSIGN_OR_RETURN(std::optional<TokenizedData> folder, TokenizedData::read(source.folder));
    if (!folder || !folder->mixture.empty())
      return TESSERA_ERROR(InvalidArgument, "'" + source.folder + "', a source of the mixture '" + data.folder +
                                                "', is not a folder of \"python -m tessera data build\"");
    if (source.weight < 1e-6)
      return TESSERA_ERROR(InvalidArgument, "the weight of '" + source.folder + "' in the mixture '" + data.folder +
                                                "' is less than a millionth");
    TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<SampleSource> opened, openRows(*folder, "", specs, options));
    sources.push_back(std::move(opened));
  }
  return std::unique_ptr<SampleSource>(new Mixture(std::move(sources), data));
}

} // namespace tessera
