//===- Arrays.cpp - arrays with a leading axis of samples ----------------------------===//

#include "runtime/base/Fingerprint.h"
#include "runtime/base/Log.h"
#include "runtime/data/Samples.h"
#include "runtime/state/Safetensors.h"

#include <algorithm>
#include <filesystem>

namespace tessera {

namespace {

class ArraySamples : public SampleSource {
public:
  ArraySamples(std::string path, const std::vector<BatchSpec> &specs, std::vector<ArrayEntry> arrays,
               std::vector<std::shared_ptr<const void>> storage)
      : path(std::move(path)), specs(specs), arrays(std::move(arrays)), storage(std::move(storage)) {}

  uint64_t samples() const override {
    for (size_t tensor = 0; tensor < specs.size(); ++tensor)
      if (!specs[tensor].isShared())
        return arrays[tensor].shape[0];
    return 1;
  }

  Status read(uint64_t index, std::span<uint8_t *const> targets, std::span<const ElementRanges> wanted) override {
    for (size_t tensor = 0; tensor < specs.size(); ++tensor) {
      const ElementRanges &ranges = wanted[tensor];
      for (size_t next = 0; targets[tensor] && next < ranges.size();) {
        const size_t first = next++;
        while (next < ranges.size() && (ranges[next].begin - ranges[next - 1].end) * width(tensor) <= readAlongBytes)
          ++next;
        TESSERA_RETURN_IF_ERROR(
            readRanges(index, tensor, std::span(ranges).subspan(first, next - first), targets[tensor]));
      }
    }
    return Status::ok();
  }

  std::string describe(uint64_t index, size_t tensor, int64_t element) const override {
    const std::string sample = specs[tensor].isShared() ? "" : " of sample " + std::to_string(index);
    return "element " + std::to_string(element) + sample + " of array '" + specs[tensor].name + "' in '" + path + "'";
  }

  std::string format() const override { return "arrays"; }

  Result<std::string> fingerprint() override {
    Fingerprint result;
    std::vector<ByteRange> contents;
    for (size_t tensor = 0; tensor < specs.size(); ++tensor) {
      result.add(specs[tensor].name);
      result.add(static_cast<uint64_t>(arrays[tensor].dtype));
      result.add(shapeToString(arrays[tensor].shape));
      contents.push_back(arrays[tensor].bytes);
    }
    TESSERA_RETURN_IF_ERROR(result.addContent(contents, fingerprintBytes));
    return result.text();
  }

private:
  /// What lies between two ranges and is no longer is read with them: the page is read in any case, and one call is
  /// cheaper than two.
  static constexpr int64_t readAlongBytes = 4096;

  int64_t width(size_t tensor) const { return static_cast<int64_t>(elementBytes(arrays[tensor].dtype)); }

  /// All of `ranges` with one read.
  Status readRanges(uint64_t index, size_t tensor, std::span<const ElementRange> ranges, uint8_t *target) {
    const BatchSpec &spec = specs[tensor];
    const int64_t begin = ranges.front().begin, elements = ranges.back().end - begin;
    const uint64_t stored = spec.sampleBytes() / elementBytes(spec.dtype) * width(tensor);
    buffer.resize(elements * width(tensor));
    TESSERA_RETURN_IF_ERROR(arrays[tensor].bytes.read((spec.isShared() ? 0 : index * stored) + begin * width(tensor),
                                                      buffer.data(), buffer.size()));
    for (ElementRange range : ranges) {
      Status status =
          convertElements(arrays[tensor].dtype, buffer.data() + (range.begin - begin) * width(tensor), spec.dtype,
                          target + range.begin * elementBytes(spec.dtype), range.size(), range.begin);
      if (!status.isOk())
        return status.withContext("sample " + std::to_string(index) + " of array '" + spec.name + "' in '" + path +
                                  "'");
    }
    return Status::ok();
  }

  std::string path;
  std::vector<BatchSpec> specs;
  std::vector<ArrayEntry> arrays; ///< One per batch tensor.
  std::vector<std::shared_ptr<const void>> storage;
  std::vector<uint8_t> buffer; ///< What was read last, as the file has it.
};

} // namespace

static Status readSafetensorsArrays(const std::string &path, ArrayMap &arrays) {
  TESSERA_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(path));
  for (const auto &[name, entry] : file.tensors())
    if (entry.dtype)
      arrays[name] = {*entry.dtype, entry.shape, entry.bytes};
  return Status::ok();
}

/// Why `array` cannot fill `spec`; empty if it can. `numSamples` is -1 before the first array.
static std::string mismatch(const BatchSpec &spec, const ArrayEntry &array, int64_t &numSamples) {
  const size_t leading = spec.isShared() ? 0 : 1;
  std::vector<int64_t> wanted = spec.sampleShape();
  if (array.shape.size() != wanted.size() + leading ||
      !std::equal(wanted.begin(), wanted.end(), array.shape.begin() + static_cast<std::ptrdiff_t>(leading)))
    return "has shape " + shapeToString(array.shape) + ", expected " +
           (spec.isShared() ? "" : "a leading axis of samples and then ") + shapeToString(wanted) +
           (spec.role == artifact::BatchRole::Target && isInteger(spec.dtype) && wanted.size() > 1
                ? " (that of the logits without their last dimension, which counts classes; a model where dimension 1 "
                  "counts them returns logits.movedim(1, -1))"
                : "");
  if (!canConvert(array.dtype, spec.dtype))
    return "has type " + std::string(safetensorsName(array.dtype)) + ", expected " +
           std::string(safetensorsName(spec.dtype));
  if (spec.isShared())
    return "";
  if (numSamples >= 0 && array.shape[0] != numSamples)
    return "has " + std::to_string(array.shape[0]) + " samples, but the others have " + std::to_string(numSamples);
  numSamples = array.shape[0];
  return "";
}

/// "'a', 'b'": the names of the arrays, at most eight of them.
static std::string namesOf(const ArrayMap &arrays) {
  constexpr size_t most = 8;
  std::string names;
  size_t count = 0;
  for (const auto &[name, entry] : arrays)
    if (++count <= most)
      names += (names.empty() ? "'" : ", '") + name + "'";
  return count <= most ? names : names + ", … (" + std::to_string(count) + " in all)";
}

Result<std::unique_ptr<SampleSource>> openArrays(const std::string &path, const std::vector<BatchSpec> &specs) {
  if (specs.empty())
    return TESSERA_ERROR(InvalidArgument, "the model has no inputs that data '" + path + "' could fill");
  ArrayMap arrays;
  std::vector<std::shared_ptr<const void>> storage;
  if (std::filesystem::path(path).extension() == ".npz")
    TESSERA_RETURN_IF_ERROR(readNpz(path, arrays, storage));
  else
    TESSERA_RETURN_IF_ERROR(readSafetensorsArrays(path, arrays));

  std::vector<ArrayEntry> chosen;
  std::string problems;
  bool isMissing = false;
  int64_t numSamples = -1;
  for (const BatchSpec &spec : specs) {
    auto found = arrays.find(spec.name);
    std::string problem = found == arrays.end() ? "is missing" : mismatch(spec, found->second, numSamples);
    isMissing |= found == arrays.end();
    if (!problem.empty())
      problems += (problems.empty() ? "array '" : "; array '") + spec.name + "' " + problem;
    else
      chosen.push_back(found->second);
  }
  if (isMissing)
    problems += arrays.empty() ? "; it has no arrays" : "; it has " + namesOf(arrays);
  if (!problems.empty())
    return TESSERA_ERROR(InvalidArgument, "data '" + path + "' does not fit the model: " + problems);
  for (const BatchSpec &spec : specs)
    arrays.erase(spec.name);
  if (!arrays.empty())
    log::warn("data '{}': the model has no input for {}", path, namesOf(arrays));
  return std::unique_ptr<SampleSource>(new ArraySamples(path, specs, std::move(chosen), std::move(storage)));
}

} // namespace tessera
