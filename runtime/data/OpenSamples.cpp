//===- OpenSamples.cpp - which kind of data a path names ---------------------===//

#include "runtime/data/Samples.h"
#include "runtime/data/TokenPlan.h"
#include "runtime/data/TokenizedData.h"

#include <filesystem>
#include <fmt/format.h>

namespace fs = std::filesystem;

namespace tessera {

/// Flags that are for other data are errors.
static Status refuseFlags(const std::string &path, const std::string &kind, const DataOptions &options) {
  for (auto [isGiven, flag] : {std::pair{options.endOfDocument >= 0, "--end-of-document is for tokens"},
                               {options.tokenBytes != 0, "--token-bytes is for tokens"},
                               {options.readsBytes, "--tokenizer is for text"}})
    if (isGiven)
      return TESSERA_ERROR(InvalidArgument, fmt::format("{}, and '{}' holds {}", flag, path, kind));
  return Status::ok();
}

Result<std::unique_ptr<SampleSource>> openSamples(const std::string &path, const std::vector<BatchSpec> &specs,
                                                  const DataOptions &options) {
  const std::string ending = fs::path(path).extension().string();
  if (ending == ".npz" || ending == ".safetensors") {
    TESSERA_RETURN_IF_ERROR(refuseFlags(path, "arrays", options));
    return openArrays(path, specs);
  }
  const bool isSplit = ending == ".rows";
  TESSERA_ASSIGN_OR_RETURN(std::optional<TokenizedData> data,
                           TokenizedData::read(isSplit ? fs::path(path).parent_path().string() : path));
  if (isSplit && (!data || !data->mixture.empty()))
    return TESSERA_ERROR(InvalidArgument, "'" + path + "' lies in no folder of \"python -m tessera data build\"");
  if (!data)
    return openTokens(path, specs, options);
  TESSERA_RETURN_IF_ERROR(refuseFlags(path, "rows that know their documents", options));
  if (!data->mixture.empty())
    return openMixture(*data, specs, options);
  return openRows(*data, isSplit ? fs::path(path).stem().string() : "", specs, options);
}

std::string describeWantedData(const std::vector<BatchSpec> &specs) {
  std::string text, arrays;
  Result<TokenPlan> plan = TokenPlan::make("", specs, TokenPlan::Documents::Rows);
  if (plan.isOk())
    text =
        "tokens, " + std::to_string(plan->length + 1) + " for a sample" +
        (plan->vocabulary >= 0 ? " and below " + std::to_string(plan->vocabulary) : "") +
        ": --data tokens.bin, text that is read as bytes: --data text/, or rows of a tokenizer: python -m tessera data "
        "build\nor ";
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
