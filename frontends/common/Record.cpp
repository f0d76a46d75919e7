//===- Record.cpp - what whoever exported a model noted of it -------------===//

#include "frontends/common/Record.h"

#include "llvm/Support/JSON.h"

using llvm::Expected;
using llvm::StringRef;

namespace tessera::frontend {

llvm::Error malformedRecord(const llvm::Twine &what) {
  return llvm::createStringError(std::make_error_code(std::errc::invalid_argument),
                                 "the record of the model (metadata 'tessera') is malformed: " + what);
}

namespace {
constexpr int64_t kRecordVersion = 1;
constexpr int kDeepestBrackets = 64;
/// The parser recurses on brackets. Those in strings do not count.
bool isTooDeep(StringRef text) {
  int depth = 0;
  bool inString = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (inString && c == '\\')
      ++at; // what follows is escaped
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == '[' || c == '{') && ++depth > kDeepestBrackets)
      return true;
    else if (!inString && (c == ']' || c == '}'))
      --depth;
  }
  return false;
}

/// Reads the fields that parameters and buffers share. Every field has its type checked; unknown ones are skipped, so
/// that a newer exporter may add some that change no meaning.
llvm::Error readTensorEntry(const llvm::json::Value &value, RecordedTensor &tensor) {
  const llvm::json::Object *entry = value.getAsObject();
  const auto name = entry ? entry->getString("name") : std::nullopt;
  const llvm::json::Array *shape = entry ? entry->getArray("shape") : nullptr;
  if (!name || name->empty() || !shape)
    return malformedRecord("a tensor needs a name and a shape");
  tensor.name = name->str();
  for (const llvm::json::Value &size : *shape) {
    auto number = size.getAsInteger();
    if (!number || *number < 0)
      return malformedRecord("'" + *name + "' has a shape that is no shape");
    tensor.shape.push_back(*number);
  }
  if (!tensor.isParameter)
    return llvm::Error::success();
  const auto trained = entry->getBoolean("trained");
  if (!trained)
    return malformedRecord("parameter '" + *name + "' needs 'trained', true or false");
  tensor.trained = *trained;
  auto flag = [&](StringRef key, bool &target) {
    const llvm::json::Value *given = entry->get(key);
    const auto boolean = given ? given->getAsBoolean() : std::nullopt;
    target = boolean.value_or(false);
    return !given || boolean;
  };
  if (!flag("unused", tensor.unused))
    return malformedRecord("'unused' of '" + *name + "' is neither true nor false");
  if (const llvm::json::Value *index = entry->get("padding_idx")) {
    tensor.paddingIdx = index->getAsInteger();
    if (!tensor.paddingIdx || tensor.shape.empty() || *tensor.paddingIdx < 0 || *tensor.paddingIdx >= tensor.shape[0])
      return malformedRecord("'padding_idx' of '" + *name + "' is no row of it");
  }
  return llvm::Error::success();
}

llvm::Error readTensors(const llvm::json::Object &record, StringRef key, bool areParameters, ModelRecord &result) {
  const llvm::json::Array *list = record.getArray(key);
  if (!list)
    return malformedRecord("it has no list '" + key + "'");
  for (const llvm::json::Value &entry : *list) {
    RecordedTensor tensor;
    tensor.isParameter = areParameters;
    if (llvm::Error error = readTensorEntry(entry, tensor))
      return error;
    if (!result.byName.try_emplace(tensor.name, result.tensors.size()).second)
      return malformedRecord("'" + tensor.name + "' is listed twice");
    result.tensors.push_back(std::move(tensor));
  }
  return llvm::Error::success();
}

llvm::Error readNormalisations(const llvm::json::Object &record, ModelRecord &result) {
  const llvm::json::Array *list = record.getArray("batch_norm");
  if (!list)
    return malformedRecord("it has no list 'batch_norm'");
  for (const llvm::json::Value &value : *list) {
    const llvm::json::Object *entry = value.getAsObject();
    const auto mean = entry ? entry->getString("running_mean") : std::nullopt;
    const auto training = entry ? entry->getBoolean("training") : std::nullopt;
    if (!mean || !training)
      return malformedRecord("an entry of 'batch_norm' needs 'running_mean' and 'training'");
    if (auto [found, inserted] = result.batchNorms.try_emplace(*mean, *training);
        !inserted && found->second != *training)
      return malformedRecord("'" + *mean + "' is in 'batch_norm' twice, with and without 'training'");
  }
  return llvm::Error::success();
}

llvm::Error readDropouts(const llvm::json::Object &record, ModelRecord &result) {
  const llvm::json::Array *list = record.getArray("dropout");
  if (!list)
    return malformedRecord("it has no list 'dropout'");
  for (const llvm::json::Value &value : *list) {
    const llvm::json::Object *entry = value.getAsObject();
    const auto count = entry ? entry->getInteger("count") : std::nullopt;
    if (!count || *count < 1 || *count > (1 << 20))
      return malformedRecord("an entry of 'dropout' needs 'count', at least 1");
    result.activeDropouts += *count;
  }
  if (const llvm::json::Value *cleared = record.get("dropout_cleared")) {
    if (!cleared->getAsInteger() || *cleared->getAsInteger() < 0)
      return malformedRecord("'dropout_cleared' is no number of rates");
    result.clearedDropouts = *cleared->getAsInteger();
  }
  return llvm::Error::success();
}
} // namespace

Expected<ModelRecord> parseRecord(StringRef text) {
  if (isTooDeep(text))
    return malformedRecord("its brackets are nested deeper than " + llvm::Twine(kDeepestBrackets));
  Expected<llvm::json::Value> parsed = llvm::json::parse(text);
  if (!parsed)
    return malformedRecord(llvm::toString(parsed.takeError()));
  const llvm::json::Object *object = parsed->getAsObject();
  const auto version = object ? object->getInteger("version") : std::nullopt;
  if (!version)
    return malformedRecord("it has no version");
  if (*version != kRecordVersion)
    return malformedRecord("it has version " + llvm::Twine(*version) + ", this compiler reads " +
                           llvm::Twine(kRecordVersion));
  ModelRecord record;
  record.exporter = object->getString("exporter").value_or("").str();
  if (const llvm::json::Value *differs = object->get("evaluation_differs")) {
    if (!differs->getAsString())
      return malformedRecord("'evaluation_differs' is no text");
    record.evaluationDiffers = differs->getAsString()->str();
  }
  if (llvm::Error error = readTensors(*object, "parameters", true, record))
    return error;
  if (llvm::Error error = readTensors(*object, "buffers", false, record))
    return error;
  if (llvm::Error error = readNormalisations(*object, record))
    return error;
  if (llvm::Error error = readDropouts(*object, record))
    return error;
  return record;
}

} // namespace tessera::frontend
