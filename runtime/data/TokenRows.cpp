//===- TokenRows.cpp - rows of documents as samples --------------------------===//
//
// A row is some pieces of documents. The target of a token is the next one in the file, if the mask counts it: that of
// the first token of a document never counts, so documents of a row do not meet.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/EvenBlocks.h"
#include "runtime/base/Fingerprint.h"
#include "runtime/data/TokenPlan.h"
#include "runtime/data/TokenizedData.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <unordered_map>

namespace fs = std::filesystem;

namespace tessera {

namespace {

/// The tokens of all shards as one row, and whether each counts as a target.
class TokenStore {
public:
  static Result<TokenStore> open(const TokenizedData &data);

  uint64_t tokens() const { return begins.back(); }
  /// `count` tokens from `begin` on; behind the last one there are none.
  Status readTokens(uint64_t begin, uint64_t count, uint32_t *target);
  /// The same of the mask, a byte for each token.
  Status readMask(uint64_t begin, uint64_t count, uint8_t *target);
  std::span<const ByteRange> content() const { return files; }

private:
  /// Calls `read(shard, first, count, done)` for the part in each shard.
  template <typename Read> Status forShards(uint64_t begin, uint64_t count, Read read);

  int tokenBytes = 2;
  std::vector<uint64_t> begins = {0}; ///< of each shard, in tokens; one more for the end
  std::vector<ByteRange> files;       ///< of each shard tokens and mask
  std::vector<uint8_t> bytes;
};

class TokenRows : public SampleSource {
public:
  static Result<std::unique_ptr<SampleSource>> open(const TokenizedData &data, const std::string &split,
                                                    const std::vector<BatchSpec> &specs);

  uint64_t samples() const override { return counts.rows; }
  Status read(uint64_t index, std::span<uint8_t *const> targets, std::span<const ElementRanges> wanted) override;
  std::string describe(uint64_t index, size_t tensor, int64_t element) const override;
  std::string format() const override {
    return fmt::format("split '{}', {} positions ({}{}) of uint{} tokens", split, data.sequence, data.packing,
                       counts.pieces > counts.rows ? documentsText() : "", 8 * data.tokenBytes);
  }
  Result<std::string> fingerprint() override;
  Result<double> unigramEntropy() override;

private:
  struct Piece {
    uint64_t begin, count;
  };
  static constexpr uint64_t headerWords = 5;

  TokenRows(const TokenizedData &data, std::string split, const std::vector<BatchSpec> &specs)
      : data(data), split(std::move(split)), counts(data.splits.at(this->split)), specs(specs) {}

  std::string rowsPath() const { return (fs::path(data.folder) / (split + ".rows")).string(); }
  /// ", documents told apart by 'position_ids'": what the model is taken to do with that input.
  std::string documentsText() const {
    for (size_t tensor = 0; tensor < specs.size(); ++tensor)
      if (plan.fills[tensor] == TokenFill::Documents ||
          (plan.fills[tensor] == TokenFill::Positions && !specs[tensor].isShared()))
        return ", documents told apart by '" + specs[tensor].name + "'";
    return ", documents see each other";
  }
  Status openFile();
  Status readPieces(uint64_t index);
  /// Tokens, targets, positions and documents of the elements in `needed`, of the row whose pieces were read.
  Status readElements(ElementRange needed);
  int64_t valueOf(TokenFill fill, int64_t element) const;

  TokenizedData data;
  std::string split;
  TokenizedData::Split counts;
  std::vector<BatchSpec> specs;
  TokenPlan plan;
  TokenStore store;
  ByteRange rows;
  int64_t ignoreIndex = 0;

  // Of the row that was read last.
  std::vector<Piece> pieces;
  std::vector<int64_t> tokens, targets, positions, documents; ///< of each position; padding is a document, too
  int64_t filled = 0;                                         ///< positions before the padding
  std::vector<uint32_t> readTokens;
  std::vector<uint8_t> readMask;
};

} // namespace

Result<TokenStore> TokenStore::open(const TokenizedData &data) {
  TokenStore store;
  store.tokenBytes = data.tokenBytes;
  for (const TokenizedData::Shard &shard : data.shards) {
    const std::string base = (fs::path(data.folder) / "tokens" / shard.name).string();
    for (auto [ending, size] :
         {std::pair{".tokens", shard.tokens * data.tokenBytes}, {".mask", (shard.tokens + 7) / 8}}) {
      TESSERA_ASSIGN_OR_RETURN(InputFile file, InputFile::open(base + ending));
      if (file.size() != size)
        return TESSERA_ERROR(DataLoss, "'" + base + ending + "' has " + std::to_string(file.size()) +
                                           " bytes, but the manifest of '" + data.folder + "' says " +
                                           std::to_string(size) + ": a copy that was cut off, or of another build");
      store.files.emplace_back(file, 0, size);
    }
    store.begins.push_back(store.begins.back() + shard.tokens);
  }
  return store;
}

template <typename Read> Status TokenStore::forShards(uint64_t begin, uint64_t count, Read read) {
  size_t shard = std::upper_bound(begins.begin(), begins.end(), begin) - begins.begin() - 1;
  for (uint64_t done = 0; done < count; ++shard) {
    const uint64_t part = std::min(count - done, begins[shard + 1] - begin - done);
    if (part > 0)
      TESSERA_RETURN_IF_ERROR(read(shard, begin + done - begins[shard], part, done));
    done += part;
  }
  return Status::ok();
}

Status TokenStore::readTokens(uint64_t begin, uint64_t count, uint32_t *target) {
  return forShards(begin, count, [&](size_t shard, uint64_t first, uint64_t part, uint64_t done) {
    bytes.resize(part * tokenBytes);
    TESSERA_RETURN_IF_ERROR(files[2 * shard].read(first * tokenBytes, bytes.data(), bytes.size()));
    for (uint64_t i = 0; i < part; ++i) {
      uint32_t token = 0;
      std::memcpy(&token, bytes.data() + i * tokenBytes, tokenBytes);
      target[done + i] = token;
    }
    return Status::ok();
  });
}

Status TokenStore::readMask(uint64_t begin, uint64_t count, uint8_t *target) {
  return forShards(begin, count, [&](size_t shard, uint64_t first, uint64_t part, uint64_t done) {
    bytes.resize((first + part + 7) / 8 - first / 8);
    TESSERA_RETURN_IF_ERROR(files[2 * shard + 1].read(first / 8, bytes.data(), bytes.size()));
    for (uint64_t i = 0; i < part; ++i)
      target[done + i] = bytes[(first % 8 + i) / 8] >> ((first + i) % 8) & 1;
    return Status::ok();
  });
}

/// Why rows of this split do not suit the model; empty: they do.
static std::string misfit(const TokenizedData &data, const TokenizedData::Split &split, const TokenPlan &plan,
                          const std::vector<BatchSpec> &specs) {
  const std::string rows = "rows of '" + data.folder + "' ";
  if (static_cast<int64_t>(data.sequence) != plan.length)
    return rows + "have " + std::to_string(data.sequence) + " positions, but the model has " +
           std::to_string(plan.length) + ": compile it with --seq " + std::to_string(data.sequence) +
           ", or build the data with --seq " + std::to_string(plan.length);
  if (plan.vocabulary >= 0 && static_cast<int64_t>(data.largestToken) >= plan.vocabulary)
    return "'" + data.folder + "' has tokens up to " + std::to_string(data.largestToken) +
           ", but the model's vocabulary is " + std::to_string(plan.vocabulary) +
           ": it is of another tokenizer, or its embeddings were not resized";
  if (plan.vocabulary >= 0 && static_cast<int64_t>(data.paddingToken) >= plan.vocabulary && data.packing != "windows")
    return "the padding token of '" + data.folder + "' is " + std::to_string(data.paddingToken) +
           ", but the model's vocabulary is " + std::to_string(plan.vocabulary);
  for (size_t tensor = 0; tensor < specs.size(); ++tensor)
    if (const auto longest = static_cast<int64_t>(std::min(data.longestDocument, data.sequence));
        plan.fills[tensor] == TokenFill::Positions && !specs[tensor].isShared() && specs[tensor].indexBound >= 0 &&
        longest > specs[tensor].indexBound)
      return "'" + data.folder + "' has documents of " + std::to_string(longest) +
             " tokens in a row, but the model has " + std::to_string(specs[tensor].indexBound) +
             " positions: build the data with --seq " + std::to_string(specs[tensor].indexBound);
  if (plan.target < 0)
    return rows + "say which tokens count as targets, and the model, which computes its loss from the tokens itself, "
                  "has no input for that: export its logits (--loss cross-entropy)";
  if (specs[plan.target].ignoreIndex == std::numeric_limits<int64_t>::min())
    return rows + "have positions without a target, and the loss of the model counts every one: a cross-entropy with "
                  "an --ignore-index leaves them out";
  if (data.packing == "best-fit" && split.pieces > split.rows && !plan.tellsDocuments)
    return rows + "hold several documents, and the model does not tell them apart: it has no input position_ids "
                  "[batch, sequence] (nor document_ids, segment_ids, seq_idx); export it with positions "
                  "(\"python -m tessera build\" and export --documents do), or build the data with --pack none (a "
                  "document a row) or --pack windows (documents that see each other)";
  return "";
}

Result<std::unique_ptr<SampleSource>> TokenRows::open(const TokenizedData &data, const std::string &split,
                                                      const std::vector<BatchSpec> &specs) {
  std::unique_ptr<TokenRows> made(new TokenRows(data, split, specs));
  TESSERA_ASSIGN_OR_RETURN(made->plan, TokenPlan::make(data.folder, specs, TokenPlan::Documents::Rows));
  if (std::string problem = misfit(data, made->counts, made->plan, specs); !problem.empty())
    return TESSERA_ERROR(InvalidArgument, problem);
  if (made->counts.rows == 0)
    return TESSERA_ERROR(InvalidArgument, "split '" + split + "' of '" + data.folder + "' has no rows");
  made->ignoreIndex = specs[made->plan.target].ignoreIndex;
  TESSERA_ASSIGN_OR_RETURN(made->store, TokenStore::open(data));
  TESSERA_RETURN_IF_ERROR(made->openFile());
  for (auto *values : {&made->tokens, &made->targets, &made->positions, &made->documents})
    values->resize(data.sequence);
  return std::unique_ptr<SampleSource>(std::move(made));
}

Status TokenRows::openFile() {
  TESSERA_ASSIGN_OR_RETURN(InputFile file, InputFile::open(rowsPath()));
  std::array<uint64_t, headerWords> header = {};
  const uint64_t size = sizeof(header) + (counts.rows + 1) * 8 + counts.pieces * sizeof(Piece);
  if (file.size() == size)
    TESSERA_RETURN_IF_ERROR(file.read(0, header.data(), sizeof(header)));
  if (std::memcmp(header.data(), "TSSRROWS", 8) != 0 || header[1] != 1 || header[2] != counts.rows ||
      header[3] != counts.pieces || header[4] != data.sequence)
    return TESSERA_ERROR(DataLoss, "'" + rowsPath() + "' is not what the manifest of '" + data.folder +
                                       "' says: a copy that was cut off, or of another build");
  rows = ByteRange(file, sizeof(header), size - sizeof(header));
  return Status::ok();
}

Status TokenRows::readPieces(uint64_t index) {
  uint64_t bounds[2];
  TESSERA_RETURN_IF_ERROR(rows.read(index * 8, bounds, sizeof(bounds)));
  auto corrupted = [&](const std::string &what) {
    return TESSERA_ERROR(DataLoss, "row " + std::to_string(index) + " of '" + rowsPath() + "' " + what);
  };
  if (bounds[0] >= bounds[1] || bounds[1] > counts.pieces || bounds[1] - bounds[0] > data.sequence)
    return corrupted("has no valid pieces");
  pieces.resize(bounds[1] - bounds[0]);
  TESSERA_RETURN_IF_ERROR(
      rows.read((counts.rows + 1) * 8 + bounds[0] * sizeof(Piece), pieces.data(), pieces.size() * sizeof(Piece)));
  filled = 0;
  for (const Piece &piece : pieces) {
    if (piece.count < 1 || piece.count > data.sequence || piece.begin >= store.tokens() ||
        piece.count > store.tokens() - piece.begin)
      return corrupted("has a piece outside of the tokens");
    filled += static_cast<int64_t>(piece.count);
  }
  if (filled > static_cast<int64_t>(data.sequence))
    return corrupted("has more tokens than positions");
  return Status::ok();
}

Status TokenRows::readElements(ElementRange needed) {
  int64_t first = 0; // position of the piece
  for (size_t number = 0; number <= pieces.size(); ++number) {
    const bool isPadding = number == pieces.size();
    const int64_t count = isPadding ? plan.length - first : static_cast<int64_t>(pieces[number].count);
    const int64_t begin = std::max(first, needed.begin), end = std::min(first + count, needed.end);
    if (begin < end) {
      if (isPadding) // as if each place of it began a document: so it needs no position that documents do not
        std::fill(positions.begin() + begin, positions.begin() + end, 0);
      else
        std::iota(positions.begin() + begin, positions.begin() + end, begin - first);
      std::fill(documents.begin() + begin, documents.begin() + end, static_cast<int64_t>(number));
      if (isPadding) {
        std::fill(tokens.begin() + begin, tokens.begin() + end, static_cast<int64_t>(data.paddingToken));
        std::fill(targets.begin() + begin, targets.begin() + end, ignoreIndex);
      } else {
        // The target of the last token is the one behind it, unless that would be behind all.
        const uint64_t from = pieces[number].begin + (begin - first);
        const uint64_t tokensHere = std::min<uint64_t>(end - begin + 1, store.tokens() - from);
        readTokens.assign(end - begin + 1, 0);
        readMask.assign(end - begin + 1, 0);
        TESSERA_RETURN_IF_ERROR(store.readTokens(from, tokensHere, readTokens.data()));
        TESSERA_RETURN_IF_ERROR(store.readMask(from, tokensHere, readMask.data()));
        for (int64_t i = 0; i < end - begin; ++i) {
          tokens[begin + i] = readTokens[i];
          targets[begin + i] = readMask[i + 1] ? readTokens[i + 1] : ignoreIndex;
        }
      }
    }
    first += count;
  }
  return Status::ok();
}

int64_t TokenRows::valueOf(TokenFill fill, int64_t element) const {
  switch (fill) {
  case TokenFill::Tokens:
    return tokens[element];
  case TokenFill::Targets:
    return targets[element];
  case TokenFill::Positions:
    return positions[element];
  case TokenFill::Documents:
    return documents[element];
  case TokenFill::Mask:
    return element < filled;
  }
  return 0;
}

Status TokenRows::read(uint64_t index, std::span<uint8_t *const> into, std::span<const ElementRanges> wanted) {
  TESSERA_RETURN_IF_ERROR(readPieces(index));
  ElementRanges needed;
  for (size_t tensor = 0; tensor < specs.size(); ++tensor)
    if (into[tensor] && !specs[tensor].isShared())
      needed.insert(needed.end(), wanted[tensor].begin(), wanted[tensor].end());
  for (ElementRange range : unionOf(std::move(needed)))
    TESSERA_RETURN_IF_ERROR(readElements(range));
  for (size_t tensor = 0; tensor < specs.size(); ++tensor)
    for (ElementRange range : into[tensor] ? wanted[tensor] : ElementRanges())
      for (int64_t i = range.begin; i < range.end; ++i) {
        // What all samples share knows nothing of a row: counted positions, and no padding.
        const int64_t shared = plan.fills[tensor] == TokenFill::Positions ? i : 1;
        storeInteger(specs[tensor].dtype, into[tensor], i,
                     specs[tensor].isShared() ? shared : valueOf(plan.fills[tensor], i));
      }
  return Status::ok();
}

std::string TokenRows::describe(uint64_t index, size_t tensor, int64_t element) const {
  return std::string(plan.fills[tensor] == TokenFill::Targets ? "the target of position " : "position ") +
         std::to_string(element) + " of row " + std::to_string(index) + " of '" + rowsPath() + "'";
}

Result<std::string> TokenRows::fingerprint() {
  Fingerprint fingerprint;
  for (uint64_t number : {data.sequence, counts.rows, counts.pieces, store.tokens(), data.paddingToken})
    fingerprint.add(number);
  std::vector<ByteRange> content(store.content().begin(), store.content().end());
  content.push_back(rows);
  TESSERA_RETURN_IF_ERROR(fingerprint.addContent(content, fingerprintBytes));
  return fingerprint.text();
}

/// Of the tokens that are targets in any split, in blocks that are spread evenly.
Result<double> TokenRows::unigramEntropy() {
  constexpr uint64_t block = 1 << 16, limit = 4'000'000;
  std::unordered_map<uint32_t, uint64_t> frequency;
  TESSERA_RETURN_IF_ERROR(forEvenBlocks(store.tokens(), block, limit, [&](uint64_t begin, uint64_t count) {
    readTokens.resize(count);
    readMask.resize(count);
    TESSERA_RETURN_IF_ERROR(store.readTokens(begin, count, readTokens.data()));
    TESSERA_RETURN_IF_ERROR(store.readMask(begin, count, readMask.data()));
    for (uint64_t i = 0; i < count; ++i)
      frequency[readTokens[i]] += readMask[i];
    return Status::ok();
  }));
  std::vector<uint64_t> counts;
  counts.reserve(frequency.size());
  for (const auto &[token, count] : frequency)
    counts.push_back(count);
  return entropyOf(counts);
}

static Result<std::string> chooseSplit(const TokenizedData &data, const std::string &wanted, bool isEvaluation) {
  std::string names;
  std::vector<std::string> others;
  for (const auto &[name, split] : data.splits) {
    names += (names.empty() ? "" : ", ") + name;
    if (name != "train")
      others.push_back(name);
  }
  auto has = [&](const std::string &name) { return data.splits.count(name) != 0; };
  if (!wanted.empty() && has(wanted))
    return wanted;
  if (wanted.empty() && !isEvaluation && has("train"))
    return std::string("train");
  if (wanted.empty() && isEvaluation && has("valid"))
    return std::string("valid");
  if (wanted.empty() && isEvaluation && others.size() == 1)
    return others.front();
  const std::string problem = !wanted.empty() ? "has no split '" + wanted + "'"
                              : !isEvaluation ? "has no split 'train'"
                              : others.empty()
                                  ? "has no split to evaluate: build the data with --split valid=2%"
                                  : "has several splits to evaluate: name one, as in '" +
                                        (fs::path(data.folder) / (others.front() + ".rows")).string() + "'";
  return TESSERA_ERROR(InvalidArgument, "'" + data.folder + "' " + problem + " (its splits: " + names + ")");
}

Result<std::unique_ptr<SampleSource>> openRows(const TokenizedData &data, const std::string &split,
                                               const std::vector<BatchSpec> &specs, const DataOptions &options) {
  TESSERA_ASSIGN_OR_RETURN(const std::string chosen, chooseSplit(data, split, options.isEvaluation));
  return TokenRows::open(data, chosen, specs);
}

} // namespace tessera
