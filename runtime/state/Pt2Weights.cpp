//===- Pt2Weights.cpp - weights of an exported program of PyTorch -----------------===//
//
// What torch.export.save writes: a zip archive with tables (JSON) of weights and constants, and their storages as raw
// bytes. Reads values only: the program is the compiler's business. The archive is untrusted; nothing is unpickled.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/ZipFile.h"
#include "runtime/state/Weights.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

namespace tessera {

using TableJson = nlohmann::json;

static constexpr int64_t realFloat = 7, realDouble = 8, complexFloat = 10, complexDouble = 11; ///< of the format
static constexpr uint64_t maxTableBytes = 100'000'000;
/// Of all tensors that are not contiguous, besides the size of the file: dimensions can be repeated by stride 0.
static constexpr uint64_t maxRepeatedBytes = uint64_t{1} << 30;

namespace {

/// A tensor within its storage, in elements.
struct Layout {
  DataType dtype = DataType::F32;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;

  /// Complex numbers as pairs of real ones, a last dimension of size 2.
  void addParts();
  bool isContiguous() const;
  /// How many elements a storage must have for the tensor, which is not empty; nothing if out of range.
  std::optional<int64_t> storageElements() const;
};

class Pt2Reader {
public:
  Pt2Reader(const std::string &path, std::map<std::string, WeightEntry> &weights,
            std::vector<std::shared_ptr<const void>> &storage)
      : path(path), weights(weights), storage(storage) {}

  Status read();

private:
  Status checkFormat();
  Result<std::string> modelName() const;
  /// A small entry that says something about the archive.
  Status checkNote(const std::string &entry, const std::string &expected, bool isNeeded);
  Status readTable(const std::string &model, const std::string &kind);
  Status addTensor(const std::string &name, const TableJson &payload, const std::string &folder);
  Status addValues(const std::string &name, const Layout &layout, const std::string &entry);
  /// The tensor in row-major order, which is kept in memory; once for all names that share it.
  Result<ByteRange> gather(const Layout &layout, const std::string &entry, const ByteRange &bytes, uint64_t count);

  bool has(const std::string &entry) const { return zip.members().count(root + entry) != 0; }
  /// Says of an entry that its values are in a form that is not read.
  Status addUnreadable(const std::string &name, std::string reason) {
    weights[name] = {.problem = WeightProblem::Unreadable, .reason = std::move(reason)};
    return Status::ok();
  }
  Status invalid(const std::string &name, const std::string &reason) const {
    return TESSERA_ERROR(DataLoss, "'" + path + "': weight '" + name + "' " + reason);
  }

  const std::string &path;
  std::map<std::string, WeightEntry> &weights;
  std::vector<std::shared_ptr<const void>> &storage;
  ZipFile zip;
  std::string root; ///< The folder that all entries are in, with its slash.
  std::map<std::string, ByteRange> gathered;
  uint64_t gatheredBytes = 0;
};

} // namespace

/// Of PyTorch's ScalarType; none for types that programs do not have.
static std::optional<DataType> typeOf(int64_t scalarType) {
  static const std::map<int64_t, DataType> known = {
      {1, DataType::U8},    {2, DataType::I8},        {4, DataType::I32},     {5, DataType::I64},
      {6, DataType::F16},   {7, DataType::F32},       {8, DataType::F64},     {12, DataType::Bool},
      {13, DataType::BF16}, {29, DataType::F8E4M3FN}, {30, DataType::F8E5M2}, {33, DataType::F8E8M0FNU}};
  auto found = known.find(scalarType);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

/// Numbers beyond the range stay there, and are found to be out of it.
void Layout::addParts() {
  auto twice = [](int64_t &number) {
    if (__builtin_mul_overflow(number, int64_t{2}, &number))
      number = INT64_MAX;
  };
  std::for_each(strides.begin(), strides.end(), twice);
  twice(offset);
  sizes.push_back(2);
  strides.push_back(1);
}

bool Layout::isContiguous() const {
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i])
    if (sizes[i] != 1 && strides[i] != stride)
      return false;
  return true;
}

std::optional<int64_t> Layout::storageElements() const {
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t step;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last))
      return std::nullopt;
  }
  // Room for the bytes of an element.
  return last < INT64_MAX / 16 ? std::optional(last + 1) : std::nullopt;
}

/// A number that is not negative, as {"as_int": 3}; false for expressions.
static bool readNumber(const TableJson &json, int64_t &value) {
  if (!json.is_object())
    return false;
  auto number = json.find("as_int");
  if (number == json.end() || !number->is_number_unsigned() || number->get<uint64_t>() > uint64_t{INT64_MAX})
    return false;
  value = number->get<int64_t>();
  return true;
}

static bool readNumbers(const TableJson &meta, const char *field, std::vector<int64_t> &values) {
  auto list = meta.find(field);
  if (list == meta.end() || !list->is_array())
    return false;
  return std::all_of(list->begin(), list->end(),
                     [&](const TableJson &each) { return readNumber(each, values.emplace_back()); });
}

/// Copies a strided tensor, which is not empty, to row-major order.
static void copyStrided(const Layout &layout, const uint8_t *source, uint8_t *target) {
  const size_t width = elementBytes(layout.dtype);
  // The innermost dimensions that are contiguous are copied at once.
  size_t outer = layout.sizes.size();
  int64_t run = 1;
  while (outer > 0 && (layout.strides[outer - 1] == run || layout.sizes[outer - 1] == 1))
    run *= layout.sizes[--outer];
  std::vector<int64_t> index(outer, 0);
  int64_t at = layout.offset;
  for (;;) {
    std::memcpy(target, source + at * width, run * width);
    target += run * width;
    size_t dimension = outer;
    for (; dimension > 0; --dimension) {
      const size_t i = dimension - 1;
      at += layout.strides[i];
      if (++index[i] < layout.sizes[i])
        break;
      at -= layout.strides[i] * layout.sizes[i];
      index[i] = 0;
    }
    if (dimension == 0)
      return;
  }
}

Status Pt2Reader::read() {
  TESSERA_ASSIGN_OR_RETURN(zip, ZipFile::open(path));
  TESSERA_RETURN_IF_ERROR(checkFormat());
  TESSERA_ASSIGN_OR_RETURN(std::string model, modelName());
  TESSERA_RETURN_IF_ERROR(readTable(model, "weights"));
  return readTable(model, "constants");
}

Status Pt2Reader::checkFormat() {
  if (!zip.members().empty()) {
    const std::string &first = zip.members().begin()->first;
    root = first.substr(0, first.find('/') + 1);
  }
  for (const auto &[name, member] : zip.members())
    if (!name.starts_with(root))
      return TESSERA_ERROR(DataLoss, "'" + path + "' has entries outside the folder '" + root +
                                         "', expected one folder as torch.export.save writes it");
  if (!has("archive_format"))
    return TESSERA_ERROR(DataLoss, "'" + path +
                                       "' is a zip archive without the entry archive_format: expected what "
                                       "torch.export.save of PyTorch 2.9 or newer writes, not torch.save");
  TESSERA_RETURN_IF_ERROR(checkNote("archive_format", "pt2", /*isNeeded=*/true));
  TESSERA_RETURN_IF_ERROR(checkNote("archive_version", "0", /*isNeeded=*/false));
  return checkNote("byteorder", "little", /*isNeeded=*/false);
}

Status Pt2Reader::checkNote(const std::string &entry, const std::string &expected, bool isNeeded) {
  if (!isNeeded && !has(entry))
    return Status::ok();
  TESSERA_ASSIGN_OR_RETURN(std::vector<uint8_t> text, zip.read(root + entry, maxTableBytes));
  if (std::string(text.begin(), text.end()) == expected)
    return Status::ok();
  constexpr size_t shown = 40;
  text.resize(std::min(text.size(), shown));
  return TESSERA_ERROR(Unsupported, "'" + path + "' has the " + entry + " '" + std::string(text.begin(), text.end()) +
                                        "', expected '" + expected + "'");
}

Result<std::string> Pt2Reader::modelName() const {
  const std::string prefix = root + "models/", suffix = ".json";
  std::vector<std::string> names;
  for (const auto &[name, member] : zip.members())
    if (name.starts_with(prefix) && name.ends_with(suffix) && name.size() > prefix.size() + suffix.size())
      names.push_back(name.substr(prefix.size(), name.size() - prefix.size() - suffix.size()));
  if (names.size() == 1)
    return names[0];
  if (names.empty())
    return TESSERA_ERROR(DataLoss, "'" + path + "' holds no exported program (it has no entry models/….json)");
  return TESSERA_ERROR(Unsupported, "'" + path + "' holds " + std::to_string(names.size()) + " models ('" + names[0] +
                                        "', '" + names[1] + "'…), expected one");
}

/// Parses without exceptions; a name given twice makes the result invalid, too.
static TableJson parseTable(const std::vector<uint8_t> &text, std::string &duplicate) {
  std::set<std::string> seen;
  TableJson::parser_callback_t callback = [&](int depth, TableJson::parse_event_t event, TableJson &value) {
    if (event == TableJson::parse_event_t::key && depth <= 2 &&
        !seen.insert(std::to_string(depth) + value.get_ref<const std::string &>()).second)
      duplicate = value.get_ref<const std::string &>();
    return true;
  };
  return TableJson::parse(text.begin(), text.end(), callback, /*allow_exceptions=*/false);
}

Status Pt2Reader::readTable(const std::string &model, const std::string &kind) {
  const std::string folder = "data/" + kind + "/", entry = folder + model + "_" + kind + "_config.json";
  const std::string where = "'" + path + "': the table '" + entry + "'";
  if (!has(entry) && has(folder + model + ".pt"))
    return TESSERA_ERROR(Unsupported, "'" + path + "' holds its " + kind +
                                          " pickled, as PyTorch 2.8 wrote them: save it again with torch.export.save "
                                          "of PyTorch 2.9 or newer");
  if (!has(entry))
    return TESSERA_ERROR(DataLoss, where + " is missing");
  TESSERA_ASSIGN_OR_RETURN(std::vector<uint8_t> text, zip.read(root + entry, maxTableBytes));
  std::string duplicate;
  const TableJson table = parseTable(text, duplicate);
  if (!table.is_object() || !table.contains("config") || !table["config"].is_object())
    return TESSERA_ERROR(DataLoss, where + " is not a JSON object with a 'config'");
  if (!duplicate.empty())
    return TESSERA_ERROR(DataLoss, where + " has '" + duplicate + "' twice");
  for (const auto &[name, payload] : table["config"].items())
    TESSERA_RETURN_IF_ERROR(addTensor(name, payload, folder));
  return Status::ok();
}

Status Pt2Reader::addTensor(const std::string &name, const TableJson &payload, const std::string &folder) {
  if (weights.count(name))
    return invalid(name, "is a constant, too");
  if (!payload.is_object())
    return invalid(name, "has a description that is not an object");
  auto file = payload.find("path_name"), pickled = payload.find("use_pickle"), meta = payload.find("tensor_meta");
  if (file == payload.end() || !file->is_string() || pickled == payload.end() || !pickled->is_boolean())
    return invalid(name, "has no path_name or use_pickle");
  if (pickled->get<bool>())
    return addUnreadable(name, "is pickled, which is not read: it is a tensor subclass or no tensor");
  if (meta == payload.end() || !meta->is_object())
    return invalid(name, "has no tensor_meta");
  Layout layout;
  auto type = meta->find("dtype"), kind = meta->find("layout"), offset = meta->find("storage_offset");
  if (type == meta->end() || !type->is_number_unsigned() || kind == meta->end() || !kind->is_number_unsigned())
    return invalid(name, "has no dtype or layout");
  constexpr uint64_t strided = 7;
  if (kind->get<uint64_t>() != strided)
    return addUnreadable(name, "is not a dense tensor");
  if (!readNumbers(*meta, "sizes", layout.sizes) || !readNumbers(*meta, "strides", layout.strides) ||
      layout.sizes.size() != layout.strides.size() || offset == meta->end() || !readNumber(*offset, layout.offset))
    return invalid(name, "has sizes, strides or an offset that are not lists of numbers, or not as many of each");
  auto scalarType = type->get<int64_t>();
  if (scalarType == complexFloat || scalarType == complexDouble) {
    scalarType = scalarType == complexFloat ? realFloat : realDouble; // of the parts
    layout.addParts();
  }
  std::optional<DataType> dtype = typeOf(scalarType);
  if (!dtype)
    return addUnreadable(name, "has the type " + std::to_string(type->get<int64_t>()) +
                                   " of PyTorch, which programs do not have");
  layout.dtype = *dtype;
  return addValues(name, layout, root + folder + file->get<std::string>());
}

Status Pt2Reader::addValues(const std::string &name, const Layout &layout, const std::string &entry) {
  const auto width = static_cast<int64_t>(elementBytes(layout.dtype));
  std::optional<int64_t> elements = checkedElements(layout.sizes, width);
  if (!elements)
    return invalid(name, "has an invalid shape, " + shapeToString(layout.sizes));
  WeightEntry weight{.dtype = layout.dtype, .shape = layout.sizes};
  const auto member = zip.members().find(entry);
  if (*elements > 0 && member != zip.members().end() && member->second.bytes == 0) {
    weight.problem = WeightProblem::Valueless;
    weight.reason = "has no values: the program was exported with fake tensors";
    weights.emplace(name, std::move(weight));
    return Status::ok();
  }
  Result<ByteRange> bytes = zip.locate(entry);
  if (bytes.status().code() == StatusCode::Unsupported)
    return addUnreadable(name, "cannot be read: " + bytes.status().message());
  if (!bytes.isOk())
    return bytes.status().withContext("weight '" + name + "'");
  if (*elements > 0) {
    std::optional<int64_t> needed = layout.storageElements();
    if (!needed || static_cast<uint64_t>(*needed * width) > bytes->size())
      return invalid(name, "of shape " + shapeToString(layout.sizes) + " does not fit the " +
                               std::to_string(bytes->size()) + " bytes of its entry '" + entry + "'");
    weight.checksum = member->second.checksum;
    if (layout.isContiguous()) {
      weight.bytes = bytes->part(layout.offset * width, *elements * width);
    } else {
      TESSERA_ASSIGN_OR_RETURN(weight.bytes, gather(layout, entry, *bytes, *elements * width));
    }
  }
  weights.emplace(name, std::move(weight));
  return Status::ok();
}

Result<ByteRange> Pt2Reader::gather(const Layout &layout, const std::string &entry, const ByteRange &bytes,
                                    uint64_t count) {
  std::string key = entry + " " + std::to_string(static_cast<int>(layout.dtype)) + " " + shapeToString(layout.sizes) +
                    shapeToString(layout.strides) + std::to_string(layout.offset);
  if (auto known = gathered.find(key); known != gathered.end())
    return known->second;
  const uint64_t limit = zip.archive().size() + maxRepeatedBytes;
  if (count > limit - gatheredBytes)
    return TESSERA_ERROR(Unsupported, "'" + path + "': weights that are not contiguous have more than " +
                                          std::to_string(limit) + " bytes; store them with contiguous()");
  gatheredBytes += count;
  TESSERA_ASSIGN_OR_RETURN(std::vector<uint8_t> whole, bytes.readAll());
  auto values = std::make_shared<std::vector<uint8_t>>(count);
  copyStrided(layout, whole.data(), values->data());
  storage.push_back(values);
  return gathered[key] = ByteRange(ByteSpan(*values));
}

Status readPt2Weights(const std::string &path, std::map<std::string, WeightEntry> &weights,
                      std::vector<std::shared_ptr<const void>> &storage) {
  return Pt2Reader(path, weights, storage).read();
}

} // namespace tessera
