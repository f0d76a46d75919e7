//===- TargetFile.cpp - reads and checks target files ---------------------===//
//
// Every field is required, every number carries its source, and what the format does not know is an error: a misspelt
// field must not leave a default in force.
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/Target.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cmath>
#include <optional>

using namespace mlir;

namespace tessera::cost {

namespace {
constexpr int64_t kVersion = 1;

/// Where the files that ship with the compiler lie: beside its bin folder.
std::string shippedFolder() {
  static int anchor;
  llvm::SmallString<256> path(llvm::sys::fs::getMainExecutable(nullptr, &anchor));
  llvm::sys::path::remove_filename(path);
  llvm::sys::path::append(path, "..", "share", "tessera", "targets");
  llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
  return path.str().str();
}

/// Reads fields of a target file. After the first error everything reads as nothing, and the error stays.
class Reader {
public:
  Reader(StringRef file, Location loc) : file(file), loc(loc) {}
  bool failed() const { return hasFailed; }

  void fail(const Twine &message) {
    if (!hasFailed)
      emitError(loc) << file << ": " << message.str();
    hasFailed = true;
  }

  /// Reports fields that the format does not have.
  void only(const llvm::json::Object &object, const Twine &where, ArrayRef<StringRef> names) {
    SmallVector<StringRef> unknown;
    for (const auto &[name, value] : object)
      if (!llvm::is_contained(names, StringRef(name)))
        unknown.push_back(name);
    llvm::sort(unknown);
    if (!unknown.empty())
      fail(where + " has an unknown field '" + unknown.front() + "'");
  }

  const llvm::json::Object *object(const llvm::json::Object *parent, StringRef name, const Twine &where) {
    const llvm::json::Object *found = parent && !hasFailed ? parent->getObject(name) : nullptr;
    if (!found)
      fail(where + " needs an object '" + name + "'");
    return found;
  }

  std::string string(const llvm::json::Object *parent, StringRef name, const Twine &where) {
    auto found = parent && !hasFailed ? parent->getString(name) : std::nullopt;
    if (!found || found->empty()) {
      fail(where + " needs a text '" + name + "'");
      return "";
    }
    return found->str();
  }

  bool isPositive(std::optional<double> number) { return number && std::isfinite(*number) && *number > 0; }

  /// {"value": 3.35e12, "source": "…"} with a positive value, or from zero on.
  double quantity(const llvm::json::Object *parent, StringRef name, const Twine &where, bool zero = false) {
    const std::string path = (where + "." + name).str();
    const llvm::json::Object *found = object(parent, name, where);
    if (!found)
      return 1;
    only(*found, path, {"value", "unit", "source"});
    string(found, "source", path);
    auto value = found->getNumber("value");
    if (!isPositive(value) && !(zero && value && *value == 0)) {
      fail(path + ".value must be a " + (zero ? "number from 0 on" : "positive number"));
      return 1;
    }
    return *value;
  }

  double fraction(const llvm::json::Object *parent, StringRef name, const Twine &where) {
    const double value = quantity(parent, name, where);
    if (value > 1)
      fail(where + "." + name + ".value must be at most 1");
    return value;
  }

  std::vector<double> row(const llvm::json::Value &value, size_t columns, const Twine &where) {
    std::vector<double> numbers;
    if (const llvm::json::Array *array = value.getAsArray())
      for (const llvm::json::Value &element : *array)
        if (auto number = element.getAsNumber(); isPositive(number))
          numbers.push_back(*number);
    if (numbers.size() != columns || value.getAsArray()->size() != columns) {
      fail(where + ": each point needs " + Twine(columns) + " positive numbers");
      return std::vector<double>(columns, 1.0);
    }
    return numbers;
  }

  /// A quantity, or {"points": [[x, y], …], "source": "…"} with ascending x.
  Curve curve(const llvm::json::Object *parent, StringRef name, const Twine &where, bool isFraction = false) {
    const std::string path = (where + "." + name).str();
    const llvm::json::Object *found = object(parent, name, where);
    if (!found)
      return Curve(1.0);
    if (!found->get("points")) {
      const double value = quantity(parent, name, where);
      if (isFraction && value > 1)
        fail(path + ".value must be at most 1");
      return Curve(value);
    }
    only(*found, path, {"points", "unit", "source"});
    string(found, "source", path);
    std::vector<std::pair<double, double>> points;
    if (const llvm::json::Array *array = found->getArray("points"))
      for (const llvm::json::Value &value : *array) {
        std::vector<double> numbers = row(value, 2, path);
        if (!points.empty() && numbers[0] <= points.back().first)
          fail(path + ": points must ascend");
        if (isFraction && numbers[1] > 1)
          fail(path + ": the second number of a point must be at most 1");
        points.emplace_back(numbers[0], numbers[1]);
      }
    if (points.empty()) {
      fail(path + " needs points");
      return Curve(1.0);
    }
    return Curve(std::move(points));
  }

  Links links(const llvm::json::Object *parent, StringRef name) {
    Links links;
    const std::string path = ("communication." + name).str();
    const llvm::json::Object *found = object(parent, name, "communication");
    if (!found)
      return links;
    only(*found, path, {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute"});
    for (size_t kind = 0; kind < kNumCollectives; ++kind) {
      const llvm::json::Object *link = object(found, kCollectiveNames[kind], path);
      const std::string where = path + "." + kCollectiveNames[kind];
      if (!link)
        return links;
      only(*link, where, {"latency", "hop_latency", "bandwidth"});
      links[kind].latency = quantity(link, "latency", where, /*zero=*/true);
      links[kind].hopLatency = quantity(link, "hop_latency", where, /*zero=*/true);
      links[kind].bandwidth = curve(link, "bandwidth", where);
    }
    return links;
  }

  void gemm(const llvm::json::Object *parent, Target &target) {
    const llvm::json::Object *found = object(parent, "gemm_efficiency", "the target");
    for (const auto &[dtype, rate] : target.peakFlops) {
      const std::string where = "gemm_efficiency." + dtype;
      const llvm::json::Object *table = object(found, dtype, "gemm_efficiency");
      if (!table)
        return;
      only(*table, where, {"points", "unit", "source"});
      string(table, "source", where);
      if (const llvm::json::Array *array = table->getArray("points"))
        for (const llvm::json::Value &value : *array) {
          std::vector<double> numbers = row(value, 4, where);
          if (numbers[3] > 1)
            fail(where + ": an efficiency must be at most 1");
          target.gemm[dtype].push_back({numbers[0], numbers[1], numbers[2], numbers[3]});
        }
      if (target.gemm[dtype].empty())
        fail(where + " needs points");
    }
    if (found)
      for (const auto &[dtype, value] : *found)
        if (!target.peakFlops.count(dtype.str()))
          fail("gemm_efficiency." + dtype.str() + " has no peak_flops");
  }

private:
  StringRef file;
  Location loc;
  bool hasFailed = false;
};

void readTarget(Reader &reader, const llvm::json::Object &root, Target &target) {
  const char *where = "the target";
  reader.only(root, where,
              {"format", "version", "name", "description", "kind", "architecture", "devices_per_node", "device_memory",
               "host_memory", "memory_bandwidth", "kernel_launch", "kernel_operations", "peak_flops", "gemm_efficiency",
               "attention_efficiency", "convolution_efficiency", "communication", "overlap"});
  if (reader.string(&root, "format", where) != "tessera-target")
    reader.fail("format must be 'tessera-target'");
  if (root.getInteger("version") != kVersion)
    reader.fail("version must be " + Twine(kVersion));
  target.name = reader.string(&root, "name", where);
  target.description = reader.string(&root, "description", where);
  target.kind = reader.string(&root, "kind", where);
  if (target.kind != "cpu" && target.kind != "cuda")
    reader.fail("kind must be 'cpu' or 'cuda', got '" + target.kind + "'");
  if (root.get("architecture")) {
    target.architecture = reader.string(&root, "architecture", where);
    if (target.kind != "cuda" || !StringRef(target.architecture).starts_with("sm_"))
      reader.fail("architecture must be that of a GPU, such as 'sm_90', got '" + target.architecture + "' for kind '" +
                  target.kind + "'");
  }
  const double devices = reader.quantity(&root, "devices_per_node", where);
  if (devices != std::floor(devices) || devices > 65536)
    reader.fail("devices_per_node.value must be a whole number up to 65536");
  target.devicesPerNode = static_cast<int64_t>(std::min(devices, 65536.0));
  target.deviceMemory = reader.quantity(&root, "device_memory", where);
  target.hostMemory = reader.quantity(&root, "host_memory", where);
  target.memoryBandwidth = reader.curve(&root, "memory_bandwidth", where);
  target.launchSeconds = reader.quantity(&root, "kernel_launch", where, /*zero=*/true);
  target.kernelOperations = reader.quantity(&root, "kernel_operations", where);
  if (const llvm::json::Object *peaks = reader.object(&root, "peak_flops", where)) {
    reader.only(*peaks, "peak_flops", {"fp32", "bf16", "fp16", "fp8"});
    for (const auto &[dtype, value] : *peaks)
      target.peakFlops[dtype.str()] = reader.quantity(peaks, dtype, "peak_flops");
    if (!peaks->get("fp32"))
      reader.fail("peak_flops needs fp32");
  }
  reader.gemm(&root, target);
  if (const llvm::json::Object *attention = reader.object(&root, "attention_efficiency", where)) {
    std::vector<std::pair<const char *, Curve *>> curves = {{"forward", &target.attentionForward},
                                                            {"backward", &target.attentionBackward}};
    if (target.kind == "cuda")
      curves.insert(curves.end(), {{"tensor_forward", &target.tensorForward},
                                   {"tensor_backward", &target.tensorBackward},
                                   {"scalar", &target.scalarAttention}});
    std::vector<StringRef> names;
    for (auto [name, curve] : curves)
      names.push_back(name);
    reader.only(*attention, "attention_efficiency", names);
    for (auto [name, curve] : curves)
      *curve = reader.curve(attention, name, "attention_efficiency", /*isFraction=*/true);
  }
  target.convolution = reader.fraction(&root, "convolution_efficiency", where);
  if (const llvm::json::Object *communication = reader.object(&root, "communication", where)) {
    reader.only(*communication, "communication", {"intra_node", "inter_node"});
    target.intraNode = reader.links(communication, "intra_node");
    target.interNode = reader.links(communication, "inter_node");
  }
  if (const llvm::json::Object *overlap = reader.object(&root, "overlap", where)) {
    reader.only(*overlap, "overlap", {"compute", "communication"});
    target.overlapCompute = reader.fraction(overlap, "compute", "overlap");
    target.overlapCommunication = reader.fraction(overlap, "communication", "overlap");
  }
}
} // namespace

std::vector<std::string> Target::shipped() {
  std::vector<std::string> names;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator entry(shippedFolder(), code), end; !code && entry != end;
       entry.increment(code))
    if (llvm::sys::path::extension(entry->path()) == ".json")
      names.push_back(llvm::sys::path::stem(entry->path()).str());
  std::sort(names.begin(), names.end());
  return names;
}

FailureOr<Target> Target::load(StringRef nameOrPath, Location loc) {
  llvm::SmallString<256> path(nameOrPath);
  if (!nameOrPath.ends_with(".json")) {
    std::vector<std::string> names = shipped();
    // A GPU's architecture stands for the machine that has it.
    const StringRef name = llvm::StringSwitch<StringRef>(nameOrPath)
                               .Case("cpu", "cpu-host")
                               .Case("sm_80", "a100x8")
                               .Case("sm_90", "h100x8")
                               .Case("sm_100", "b200x8")
                               .Default(nameOrPath);
    if (!llvm::is_contained(names, name)) {
      emitError(loc) << "unknown target '" << nameOrPath
                     << "', expected cpu, sm_80, sm_90, sm_100, a target file (*.json), or one of "
                     << llvm::join(names, ", ");
      return failure();
    }
    path = shippedFolder();
    llvm::sys::path::append(path, name + ".json");
  }
  if (llvm::sys::fs::exists(path) && !llvm::sys::fs::is_regular_file(path)) {
    emitError(loc) << path << ": not a regular file";
    return failure();
  }
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    emitError(loc) << path << ": " << buffer.getError().message();
    return failure();
  }
  constexpr size_t kMaxBrackets = 10000; // the parser recurses on them; a target has a hundred
  if ((*buffer)->getBuffer().count('[') + (*buffer)->getBuffer().count('{') > kMaxBrackets) {
    emitError(loc) << path << ": not a target file (more than " << kMaxBrackets << " brackets)";
    return failure();
  }
  auto json = llvm::json::parse((*buffer)->getBuffer());
  if (!json) {
    emitError(loc) << path << ": " << llvm::toString(json.takeError());
    return failure();
  }
  Reader reader(path, loc);
  Target target;
  if (const llvm::json::Object *root = json->getAsObject())
    readTarget(reader, *root, target);
  else
    reader.fail("expected a JSON object");
  if (reader.failed())
    return failure();
  return target;
}

} // namespace tessera::cost
