//===- Note.cpp - what tessera.export notes beside a program --------------===//

#include "frontends/pt2/Errors.h"
#include "frontends/pt2/Parse.h"
#include "frontends/pt2/Reader.h"

#include <algorithm>

using llvm::Error;
using llvm::Expected;

namespace tessera::pt2 {

static std::vector<int64_t> parseNumbers(const Cursor &at) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < at.size() && !at.failed(); ++i) {
    const Cursor element = at.element(i);
    numbers.push_back(element.integer());
    if (!at.failed() && numbers.back() < 0)
      element.fail("expected a number of at least 0");
  }
  return numbers;
}

static int64_t parseOffset(const Cursor &at) {
  const int64_t offset = at.integer();
  if (!at.failed() && offset < 0)
    at.fail("expected a number of at least 0");
  return offset;
}

static WeightPiece parsePiece(const Cursor &at) {
  at.fields({"tensor", "shape", "sizes", "offset", "strides", "tensor_offset", "tensor_strides"});
  WeightPiece piece;
  piece.tensor = at.field("tensor").string();
  piece.shape = parseNumbers(at.field("shape"));
  piece.sizes = parseNumbers(at.field("sizes"));
  piece.offset = parseOffset(at.field("offset"));
  piece.strides = parseNumbers(at.field("strides"));
  piece.tensorOffset = parseOffset(at.field("tensor_offset"));
  piece.tensorStrides = parseNumbers(at.field("tensor_strides"));
  const size_t loops = piece.sizes.size();
  const bool isWhole = loops > 0 && piece.strides.size() == loops && piece.tensorStrides.size() == loops;
  if (!at.failed() && (!isWhole || std::count(piece.sizes.begin(), piece.sizes.end(), 0) > 0))
    at.fail("expected loops of sizes of at least 1, each with two strides");
  return piece;
}

static WeightMap parseWeightMap(const Cursor &at) {
  at.fields({"root", "prefix", "parameters", "unread", "refused"});
  WeightMap map;
  map.root = at.field("root").string();
  map.prefix = at.field("prefix").string();
  map.refused = at.field("refused").string();
  map.unread = parseStrings(at.field("unread"));
  const Cursor parameters = at.field("parameters");
  const size_t count = parameters.members();
  std::set<std::string> seen;
  for (size_t i = 0; i < count && !at.failed(); ++i) {
    const Cursor stored = parameters.member(i);
    stored.fields({"pieces", "others"});
    StoredParameter &parameter = map.parameters.emplace_back();
    parameter.name = parameters.memberName(i);
    parameter.others = parseStrings(stored.field("others"));
    const Cursor pieces = stored.field("pieces");
    for (size_t j = 0; j < pieces.size() && !at.failed(); ++j)
      parameter.pieces.push_back(parsePiece(pieces.element(j)));
    if (!seen.insert(parameter.name).second)
      parameters.fail("has '" + parameter.name + "' twice");
  }
  return map;
}

Error readNote(const Archive &archive, Program &program) {
  const std::string entry = "extra/tessera.json";
  if (!archive.has(entry))
    return Error::success();
  Expected<Json> json = readJson(archive, entry);
  if (!json)
    return json.takeError();
  Diagnostics log;
  const Cursor note(*json, log);
  note.fields({"mode", "evaluation_differs", "weights"});
  program.mode = note.field("mode").string();
  if (auto differs = note.optional("evaluation_differs"))
    program.evaluationDiffers = differs->string();
  if (auto weights = note.optional("weights"))
    program.weightMap = parseWeightMap(*weights);
  if (!log.failed() && program.mode != "training" && program.mode != "evaluation")
    note.field("mode").fail("expected \"training\" or \"evaluation\"");
  return log.failed() ? error("'" + archive.file() + "', entry '" + entry + "': " + log.error) : Error::success();
}

} // namespace tessera::pt2
