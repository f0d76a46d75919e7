//===- Weights.cpp - where weights lie, and their bytes -------------------===//

#include "frontends/pt2/Errors.h"
#include "frontends/pt2/Parse.h"
#include "frontends/pt2/Reader.h"

#include <cstring>

using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace tessera::pt2 {

namespace {
/// A weight that is larger than what it is read from (a dimension repeated by stride 0) may have so many bytes.
constexpr uint64_t kMaxRepeatedBytes = uint64_t{1} << 30;

/// Sizes of a weight worked out; all in elements.
struct Extent {
  uint64_t elements = 0; // of the tensor
  uint64_t storage = 0;  // that the storage must have
};

/// None if a number does not fit.
std::optional<Extent> extentOf(const Weight &weight) {
  Extent extent;
  uint64_t elements = 1;
  for (int64_t size : weight.sizes)
    if (size == 0)
      return extent;
  uint64_t last = weight.storageOffset;
  for (size_t i = 0; i < weight.sizes.size(); ++i) {
    const uint64_t size = weight.sizes[i], stride = weight.strides[i];
    uint64_t step = 0;
    if (__builtin_mul_overflow(elements, size, &elements) || __builtin_mul_overflow(size - 1, stride, &step) ||
        __builtin_add_overflow(last, step, &last))
      return std::nullopt;
  }
  // Room for multiplying by the bytes of an element, and for signed arithmetic.
  if (elements > (uint64_t{1} << 56) || last > (uint64_t{1} << 56))
    return std::nullopt;
  return Extent{elements, last + 1};
}

bool isContiguous(const Weight &weight) {
  int64_t stride = 1;
  for (size_t i = weight.sizes.size(); i-- > 0;) {
    if (weight.sizes[i] != 1 && weight.strides[i] != stride)
      return false;
    stride *= weight.sizes[i];
  }
  return true;
}

int64_t constantSize(const Cursor &at, const SymInt &size, const char *what) {
  if (!size.isConstant())
    at.fail(std::string("expected a number as ") + what + ", found the expression '" + size.expression + "'");
  else if (size.value < 0)
    at.fail(std::string("has the negative ") + what + " " + std::to_string(size.value));
  return size.value;
}

/// One PayloadMeta. `folder` ends in a slash.
Weight parseWeight(const Cursor &at, const std::string &name, StringRef folder) {
  at.fields({"path_name", "is_param", "use_pickle", "tensor_meta"});
  Weight weight;
  weight.path = folder.str() + at.field("path_name").string();
  weight.isParameter = at.field("is_param").boolean();
  const auto tensor = at.optional("tensor_meta");
  if (at.field("use_pickle").boolean()) {
    at.fail(tensor ? "'" + name + "' is a tensor subclass, which is pickled: this reader does not unpickle"
                   : "'" + name +
                         "' is a custom object (a random generator, perhaps), which is pickled: this reader does not "
                         "unpickle");
    return weight;
  }
  if (!tensor) {
    at.fail("field 'tensor_meta' is missing");
    return weight;
  }
  const TensorMeta meta = parseTensorMeta(*tensor);
  if (at.failed())
    return weight;
  weight.dtype = meta.dtype;
  if (scalarTypeBytes(meta.dtype) == 0)
    tensor->fail("has no scalar type");
  if (meta.layout != Layout::Strided)
    tensor->fail("'" + name + "' is not strided");
  for (const SymInt &size : meta.sizes)
    weight.sizes.push_back(constantSize(*tensor, size, "size"));
  // Without a strided layout there may be fewer strides, but that has failed above.
  for (const SymInt &stride : meta.strides)
    weight.strides.push_back(constantSize(*tensor, stride, "stride"));
  weight.storageOffset = constantSize(*tensor, meta.storageOffset, "storage offset");
  return weight;
}

/// Compares a weight with its entry of the archive.
void checkEntry(const Cursor &at, const Archive &archive, const std::string &name, Weight &weight) {
  const std::optional<uint64_t> bytes = archive.size(weight.path);
  if (!bytes)
    return at.fail("the archive has no entry '" + weight.path + "' for '" + name + "'");
  const std::optional<Extent> extent = extentOf(weight);
  if (!extent)
    return at.fail("the sizes of '" + name + "' are out of range");
  weight.hasData = *bytes > 0 || extent->elements == 0;
  if (!weight.hasData)
    return;
  const uint64_t element = scalarTypeBytes(weight.dtype);
  const uint64_t needed = extent->storage * element;
  if (*bytes < needed || *bytes % element != 0)
    return at.fail("entry '" + weight.path + "' has " + std::to_string(*bytes) + " bytes, expected " +
                   std::to_string(needed) + " for '" + name + "', " + scalarTypeName(weight.dtype));
  if (extent->elements * element > std::max(*bytes, kMaxRepeatedBytes))
    return at.fail("'" + name + "' has " + std::to_string(extent->elements) + " elements of an entry of " +
                   std::to_string(*bytes) + " bytes");
}

/// Reads one of the two tables of an archive.
Error readTable(const Archive &archive, Program &program, StringRef kind, Diagnostics &log) {
  const std::string folder = ("data/" + kind + "/").str();
  const std::string entry = (folder + program.modelName + "_" + kind + "_config.json").str();
  const std::string where = "'" + archive.file() + "', entry '" + entry + "': ";
  if (!archive.has(entry)) {
    const std::string legacy = folder + program.modelName + ".pt";
    if (archive.has(legacy))
      return error("'" + archive.file() + "' holds its " + kind + " pickled ('" + legacy +
                   "'), as PyTorch 2.8 wrote them: save it again with a newer torch.export.save");
    return error("'" + archive.file() + "' has no entry '" + entry + "'");
  }
  Expected<Json> json = readJson(archive, entry);
  if (!json)
    return json.takeError();
  const Cursor root(*json, log);
  root.fields({"config"});
  const Cursor config = root.field("config");
  const size_t count = config.members();
  for (size_t i = 0; i < count && !log.failed(); ++i) {
    const std::string &name = config.memberName(i);
    const Cursor at = config.member(i);
    Weight weight = parseWeight(at, name, folder);
    if (!log.failed())
      checkEntry(at, archive, name, weight);
    if (!log.failed() && !program.weights.emplace(name, std::move(weight)).second)
      at.fail("'" + name + "' is both a weight and a constant");
  }
  return log.failed() ? error(where + log.error) : Error::success();
}

/// Copies a strided tensor to row-major order. `storage` was checked to hold it.
void gather(const Weight &weight, const char *storage, char *out) {
  const size_t rank = weight.sizes.size(), element = scalarTypeBytes(weight.dtype);
  // The innermost dimensions that are contiguous are copied at once.
  size_t outer = rank;
  int64_t run = 1;
  while (outer > 0 && (weight.strides[outer - 1] == run || weight.sizes[outer - 1] == 1))
    run *= weight.sizes[--outer];
  std::vector<uint64_t> index(outer, 0);
  uint64_t at = weight.storageOffset; // wraps where the stride of a dimension of size 1 is large
  for (;;) {
    std::memcpy(out, storage + at * element, run * element);
    out += run * element;
    size_t dim = outer;
    for (; dim > 0; --dim) {
      const uint64_t stride = weight.strides[dim - 1], size = weight.sizes[dim - 1];
      at += stride;
      if (++index[dim - 1] < size)
        break;
      at -= stride * size;
      index[dim - 1] = 0;
    }
    if (dim == 0)
      return;
  }
}
} // namespace

Error readWeightTable(const Archive &archive, Program &program) {
  Diagnostics log;
  log.unknownFields = program.schemaMinor > kSchemaMinor;
  for (const char *kind : {"weights", "constants"})
    if (Error failed = readTable(archive, program, kind, log))
      return failed;
  std::map<std::string, std::vector<std::string>> sharing;
  for (const auto &[name, weight] : program.weights)
    if (weight.hasData)
      sharing[weight.path].push_back(name);
  for (auto &[path, names] : sharing)
    if (names.size() > 1)
      program.tied.push_back(std::move(names));
  program.warnings.insert(program.warnings.end(), log.warnings.begin(), log.warnings.end());
  return Error::success();
}

Expected<std::vector<char>> readWeight(const Archive &archive, const Program &program, StringRef name) {
  try {
    auto found = program.weights.find(name.str());
    if (found == program.weights.end())
      return error("'" + archive.file() + "' has no weight '" + name + "'");
    const Weight &weight = found->second;
    if (!weight.hasData)
      return error("'" + archive.file() + "' has no values of '" + name +
                   "': it was exported with fake tensors, so weights must come from elsewhere");
    const std::optional<Extent> extent = extentOf(weight);
    if (!extent || weight.sizes.size() != weight.strides.size() || scalarTypeBytes(weight.dtype) == 0)
      return error("the sizes of '" + name + "' are out of range");
    if (extent->elements == 0)
      return std::vector<char>();
    Expected<std::vector<char>> storage = archive.read(weight.path);
    if (!storage)
      return storage.takeError();
    const uint64_t element = scalarTypeBytes(weight.dtype);
    if (storage->size() < extent->storage * element)
      return error("'" + archive.file() + "', entry '" + weight.path + "' is too short for '" + name + "'");
    if (weight.storageOffset == 0 && isContiguous(weight)) {
      storage->resize(extent->elements * element);
      return storage;
    }
    std::vector<char> values(extent->elements * element);
    gather(weight, storage->data(), values.data());
    return values;
  } catch (const std::exception &what) {
    return error("cannot read '" + name + "' of '" + archive.file() + "': " + what.what());
  }
}

Expected<std::vector<char>> readWeight(const Program &program, StringRef name) {
  Expected<Archive> archive = Archive::open(program.file);
  if (!archive)
    return archive.takeError();
  return readWeight(*archive, program, name);
}

} // namespace tessera::pt2
