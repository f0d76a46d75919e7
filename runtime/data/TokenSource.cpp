//===- TokenSource.cpp - files as one long row of tokens -------------------------===//

#include "runtime/data/TokenSource.h"

#include "runtime/base/EvenBlocks.h"
#include "runtime/base/Fingerprint.h"
#include "runtime/base/Log.h"
#include "runtime/data/DataFolder.h"
#include "runtime/data/TokenWidth.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>

namespace fs = std::filesystem;

namespace tessera {

static constexpr size_t lineBlockBytes = 1 << 20;
static constexpr size_t headerBytes = 1024; // llm.c: 256 words

/// Files without header are sampled before anything is read: of many files less each.
static constexpr uint64_t sampledBytesOfAll = 16 << 20, mostSampledBytes = 256 << 10, leastSampledBytes = 4096;
/// A tokenizer of bytes has 256 tokens, and maybe some that stand for no byte.
static constexpr int64_t mostTokensOfBytes = 512;

Result<std::unique_ptr<TokenSource>> TokenSource::open(const std::string &path, const DataOptions &options,
                                                       int64_t vocabulary) {
  std::unique_ptr<TokenSource> source(new TokenSource);
  source->name = path;
  source->textField = options.textField;
  source->vocabulary = vocabulary;
  source->sampledBytes = mostSampledBytes;
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    return TESSERA_ERROR(NotFound, "no data at '" + path + "': no such file or directory");
  if (fs::is_directory(status))
    TESSERA_RETURN_IF_ERROR(source->addFolder(path, options));
  else
    TESSERA_RETURN_IF_ERROR(source->addPath(path, options));
  TESSERA_RETURN_IF_ERROR(source->checkOptions(options));
  return source;
}

Status TokenSource::checkOptions(const DataOptions &options) const {
  if (text && options.tokenBytes != 0)
    return TESSERA_ERROR(InvalidArgument, "--token-bytes is for files of tokens (.bin), and '" + name + "' is text");
  if (!text && options.readsBytes)
    return TESSERA_ERROR(InvalidArgument, "--tokenizer is for text, and '" + name + "' holds tokens");
  if (text && !options.readsBytes && vocabulary > mostTokensOfBytes)
    return TESSERA_ERROR(InvalidArgument,
                         "data '" + name + "' is text, which would be read as bytes (tokens 0 to 255), but the model " +
                             "has a vocabulary of " + std::to_string(vocabulary) +
                             ": give the tokens that its tokenizer makes of the text (a .bin file of uint16, uint32 or "
                             "int64), or --tokenizer bytes if bytes are what it is to learn");
  return Status::ok();
}

Status TokenSource::addFolder(const std::string &path, const DataOptions &options) {
  TESSERA_ASSIGN_OR_RETURN(DataFolder folder, DataFolder::find(path));
  if (folder.texts.empty() && folder.tokens.empty())
    return TESSERA_ERROR(InvalidArgument,
                         "folder '" + path + "' has no .txt, .json, .jsonl or .bin file" +
                             (folder.others ? " (" + std::to_string(folder.others) + " other files)" : ""));
  if (!folder.texts.empty() && !folder.tokens.empty())
    return TESSERA_ERROR(InvalidArgument, "folder '" + path + "' has both token files ('" + folder.tokens.front() +
                                              "') and text ('" + folder.texts.front() + "')");
  if (folder.others > 0)
    log::info("data '{}': {} files are not .txt, .json, .jsonl or .bin and are not read", path, folder.others);
  sampledBytes =
      std::clamp(sampledBytesOfAll / std::max<uint64_t>(folder.tokens.size(), 1), leastSampledBytes, mostSampledBytes);
  for (const std::string &file : folder.texts.empty() ? folder.tokens : folder.texts)
    TESSERA_RETURN_IF_ERROR(addPath(file, options));
  return Status::ok();
}

Status TokenSource::addPath(const std::string &path, const DataOptions &options) {
  auto file = static_cast<uint32_t>(files.size());
  TESSERA_ASSIGN_OR_RETURN(InputFile opened, InputFile::open(path));
  files.push_back(std::move(opened));
  std::string ending = fs::path(path).extension().string();
  text = isTextEnding(ending);
  if (ending == ".bin")
    return addTokens(file, options);
  if (ending == ".txt")
    return addText(file);
  if (ending == ".json")
    return addJson(file, options);
  if (ending == ".jsonl")
    return addJsonLines(file, options);
  return TESSERA_ERROR(InvalidArgument, "data '" + path +
                                            "' has an unknown ending, expected .txt, .json, .jsonl, .bin, "
                                            ".npz or .safetensors");
}

void TokenSource::addSegment(Segment segment) {
  if (segment.count == 0)
    return;
  segment.begin = total;
  total += segment.count;
  segments.push_back(segment);
}

TokenSource::Kind TokenSource::kindOf(int tokenBytes) {
  return tokenBytes == 2 ? Kind::Words16 : tokenBytes == 4 ? Kind::Words32 : Kind::Words64;
}

/// False if the file has none of the headers of llm.c: GPT-2 (uint16) and Llama 3 (uint32).
Result<bool> TokenSource::addWithHeader(uint32_t file, const DataOptions &options) {
  const InputFile &input = files[file];
  const std::string &path = input.path();
  uint32_t header[3] = {};
  if (input.size() >= sizeof(header))
    TESSERA_RETURN_IF_ERROR(input.read(0, header, sizeof(header)));
  if (std::memcmp(header, "\x93NUMPY", 6) == 0)
    return TESSERA_ERROR(InvalidArgument, "token file '" + path + "' is an array of NumPy (.npy), expected its bare " +
                                              "values: numpy.load('" + path + "').tofile('tokens.bin')");
  if (std::memcmp(header, "PK\x03\x04", 4) == 0)
    return TESSERA_ERROR(InvalidArgument,
                         "token file '" + path + "' is a zip archive (weights of PyTorch?), not tokens");
  const bool isLong = input.size() >= headerBytes;
  const bool isGpt2 = isLong && header[0] == 20240520, isLlama3 = isLong && header[0] == 20240801;
  if (!isGpt2 && !isLlama3)
    return false;
  const uint32_t version = isGpt2 ? 1 : 7;
  const int width = isGpt2 ? 2 : 4;
  if (header[1] != version)
    return TESSERA_ERROR(Unsupported, "token file '" + path + "' has version " + std::to_string(header[1]) +
                                          ", expected " + std::to_string(version));
  if (options.tokenBytes != 0 && options.tokenBytes != width)
    return TESSERA_ERROR(InvalidArgument, "token file '" + path + "' has tokens of " + std::to_string(width) +
                                              " bytes, as its header says, and not of " +
                                              std::to_string(options.tokenBytes) + " (--token-bytes)");
  const uint64_t stored = (input.size() - headerBytes) / width;
  if (header[2] > stored)
    return TESSERA_ERROR(DataLoss, "token file '" + path + "' says it has " + std::to_string(header[2]) +
                                       " tokens, but there are " + std::to_string(stored) + " (truncated?)");
  addFormat(width, "a header");
  addSegment({0, header[2], kindOf(width), file, headerBytes, uint64_t{header[2]} * width, 1});
  return true;
}

Status TokenSource::addTokens(uint32_t file, const DataOptions &options) {
  const InputFile input = files[file];
  TESSERA_ASSIGN_OR_RETURN(bool hasHeader, addWithHeader(file, options));
  if (hasHeader || input.size() == 0)
    return Status::ok();
  TESSERA_ASSIGN_OR_RETURN(TokenWidth width,
                           decideTokenWidth(input, {vocabulary, options.tokenBytes, plainBytes, sampledBytes}));
  if (plainBytes != 0 && plainBytes != width.bytes)
    return TESSERA_ERROR(InvalidArgument, "token files '" + firstPlain + "' and '" + input.path() +
                                              "' are of different types: " + tokenTypeName(plainBytes) + " and " +
                                              tokenTypeName(width.bytes) + " (by " + width.reason +
                                              "); convert one of them");
  if (plainBytes == 0)
    firstPlain = input.path();
  plainBytes = width.bytes;
  addFormat(width.bytes, width.reason);
  addSegment({0, input.size() / width.bytes, kindOf(width.bytes), file, 0, input.size(), 1});
  return Status::ok();
}

void TokenSource::addFormat(int tokenBytes, const std::string &reason) {
  std::string format = tokenTypeName(tokenBytes) + " tokens (by " + reason + ")";
  if (std::find(formats.begin(), formats.end(), format) == formats.end())
    formats.push_back(std::move(format));
}

std::string TokenSource::format() const {
  if (text)
    return "bytes of text";
  std::string all;
  for (const std::string &format : formats)
    all += (all.empty() ? "" : " and ") + format;
  return all;
}

Status TokenSource::addText(uint32_t file) {
  uint64_t bytes = files[file].size();
  if (bytes > 0)
    addSegment({0, bytes + 1, Kind::Bytes, file, 0, bytes, 1});
  return Status::ok();
}

Status TokenSource::addJson(uint32_t file, const DataOptions &options) {
  TESSERA_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, ByteRange(files[file], 0, files[file].size()).readAll());
  std::vector<std::string> texts;
  std::string problem;
  if (!jsonTexts(bytes, options.textField, texts, problem))
    return TESSERA_ERROR(InvalidArgument, "'" + files[file].path() + "': " + problem);
  for (size_t i = 0; i < texts.size(); ++i) {
    addSegment({0, texts[i].size() + 1, Kind::Memory, file, documents.size(), texts[i].size(), i + 1});
    documents.push_back(std::move(texts[i]));
  }
  return Status::ok();
}

/// Calls `visit(begin, end, offset)` for each line of a file, which is read block by block; the last one may have no
/// line feed. Ends with the first error of `visit`.
template <typename Visit> static Status forEachLine(const InputFile &file, Visit visit) {
  std::vector<char> block(std::min<uint64_t>(lineBlockBytes, file.size()));
  std::string open; // the begin of a line that goes on in the next block
  uint64_t lineOffset = 0;
  for (uint64_t offset = 0; offset < file.size(); offset += block.size()) {
    size_t count = std::min<uint64_t>(block.size(), file.size() - offset);
    TESSERA_RETURN_IF_ERROR(file.read(offset, block.data(), count));
    const char *begin = block.data(), *end = begin + count;
    while (const char *stop =
               begin == end ? nullptr : static_cast<const char *>(std::memchr(begin, '\n', end - begin))) {
      if (open.empty()) {
        TESSERA_RETURN_IF_ERROR(visit(begin, stop, lineOffset));
      } else {
        open.append(begin, stop);
        TESSERA_RETURN_IF_ERROR(visit(open.data(), open.data() + open.size(), lineOffset));
        open.clear();
      }
      begin = stop + 1;
      lineOffset = offset + (begin - block.data());
    }
    open.append(begin, end);
  }
  return open.empty() ? Status::ok() : visit(open.data(), open.data() + open.size(), lineOffset);
}

Status TokenSource::addJsonLines(uint32_t file, const DataOptions &options) {
  uint64_t number = 0;
  std::string line, problem;
  const InputFile input = files[file];
  return forEachLine(input, [&](const char *begin, const char *stop, uint64_t offset) -> Status {
    ++number;
    if (std::all_of(begin, stop, [](char c) { return c == ' ' || c == '\t' || c == '\r'; }))
      return Status::ok();
    if (!jsonText(begin, stop, options.textField, line, problem))
      return TESSERA_ERROR(InvalidArgument, "'" + input.path() + "': line " + std::to_string(number) + " " + problem);
    addSegment({0, line.size() + 1, Kind::JsonLine, file, offset, static_cast<uint64_t>(stop - begin), number});
    return Status::ok();
  });
}

const TokenSource::Segment &TokenSource::segmentAt(uint64_t position) const {
  auto after = std::upper_bound(segments.begin(), segments.end(), position,
                                [](uint64_t value, const Segment &segment) { return value < segment.begin; });
  return *std::prev(after);
}

Status TokenSource::read(uint64_t position, size_t count, uint32_t *target) {
  if (position > total || count > total - position)
    return TESSERA_ERROR(Internal, "tokens beyond the end of '" + name + "' were asked for");
  if (count == 0)
    return Status::ok();
  for (size_t index = &segmentAt(position) - segments.data(); count > 0; ++index) {
    const Segment &segment = segments[index];
    uint64_t first = position - segment.begin;
    size_t here = std::min<uint64_t>(count, segment.count - first);
    TESSERA_RETURN_IF_ERROR(readSegment(index, first, here, target));
    position += here;
    target += here;
    count -= here;
  }
  return Status::ok();
}

Status TokenSource::readSegment(size_t index, uint64_t first, size_t count, uint32_t *target) {
  const Segment &segment = segments[index];
  const InputFile &file = files[segment.file];
  if (segment.kind == Kind::Words64)
    return readWords64(segment, first, count, target);
  if (segment.kind == Kind::Words32)
    return file.read(segment.offset + first * 4, target, count * 4);
  if (segment.kind == Kind::Words16) {
    buffer.resize(count * 2);
    TESSERA_RETURN_IF_ERROR(file.read(segment.offset + first * 2, buffer.data(), buffer.size()));
    for (size_t i = 0; i < count; ++i)
      target[i] = buffer[2 * i] | buffer[2 * i + 1] << 8;
    return Status::ok();
  }
  // The last token of a document is not in it.
  size_t stored = std::min<uint64_t>(count, segment.count - 1 - first);
  const uint8_t *bytes = nullptr;
  if (segment.kind == Kind::Bytes) {
    buffer.resize(stored);
    TESSERA_RETURN_IF_ERROR(file.read(segment.offset + first, buffer.data(), stored));
    bytes = buffer.data();
  } else if (segment.kind == Kind::JsonLine) {
    TESSERA_RETURN_IF_ERROR(readJsonLine(index));
    bytes = reinterpret_cast<const uint8_t *>(cachedLine.data()) + first;
  } else {
    bytes = reinterpret_cast<const uint8_t *>(documents[segment.offset].data()) + first;
  }
  for (size_t i = 0; i < count; ++i)
    target[i] = i < stored ? bytes[i] : 0;
  return Status::ok();
}

Status TokenSource::readWords64(const Segment &segment, uint64_t first, size_t count, uint32_t *target) {
  buffer.resize(count * sizeof(int64_t));
  TESSERA_RETURN_IF_ERROR(
      files[segment.file].read(segment.offset + first * sizeof(int64_t), buffer.data(), buffer.size()));
  for (size_t i = 0; i < count; ++i) {
    int64_t token;
    std::memcpy(&token, buffer.data() + i * sizeof(token), sizeof(token));
    if (token < 0 || token > UINT32_MAX)
      return TESSERA_ERROR(InvalidArgument, describe(segment.begin + first + i) + " is " + std::to_string(token) +
                                                ", which no vocabulary has; targets that do not count can be given in "
                                                "arrays (.npz or .safetensors)");
    target[i] = static_cast<uint32_t>(token);
  }
  return Status::ok();
}

/// Makes the text of a line the cached one.
Status TokenSource::readJsonLine(size_t index) {
  if (cachedSegment == index)
    return Status::ok();
  const Segment &segment = segments[index];
  buffer.resize(segment.length);
  TESSERA_RETURN_IF_ERROR(files[segment.file].read(segment.offset, buffer.data(), buffer.size()));
  std::string problem;
  const char *line = reinterpret_cast<const char *>(buffer.data());
  cachedSegment = SIZE_MAX;
  if (!jsonText(line, line + buffer.size(), textField, cachedLine, problem) || cachedLine.size() != segment.count - 1)
    return TESSERA_ERROR(DataLoss, "'" + files[segment.file].path() + "' has changed since it was opened");
  cachedSegment = index;
  return Status::ok();
}

std::string TokenSource::describe(uint64_t position) const {
  if (position >= total)
    return "the end of '" + name + "'";
  const Segment &segment = segmentAt(position);
  std::string offset = std::to_string(position - segment.begin), path = "'" + files[segment.file].path() + "'";
  if (segment.kind == Kind::Words16 || segment.kind == Kind::Words32 || segment.kind == Kind::Words64)
    return "token " + offset + " of " + path;
  std::string place = segment.kind == Kind::Bytes      ? ""
                      : segment.kind == Kind::JsonLine ? "line " + std::to_string(segment.number) + " of "
                                                       : "item " + std::to_string(segment.number) + " of ";
  return "byte " + offset + " of " + place + path;
}

Result<std::string> TokenSource::fingerprint() {
  constexpr uint64_t blockTokens = 1 << 14, limit = 1 << 20; // 4 MiB of uint32
  Fingerprint result;
  result.add(total);
  for (const Segment &segment : segments)
    result.add(segment.count);
  std::vector<uint32_t> block(blockTokens);
  TESSERA_RETURN_IF_ERROR(forEvenBlocks(total, blockTokens, limit, [&](uint64_t begin, uint64_t count) -> Status {
    TESSERA_RETURN_IF_ERROR(read(begin, count, block.data()));
    result.add(block.data(), count * sizeof(block[0]));
    return Status::ok();
  }));
  return result.text();
}

Result<double> TokenSource::unigramEntropy(uint64_t limit) {
  std::vector<uint64_t> counts(1 << 16);
  std::vector<uint32_t> tokens(1 << 16);
  // More tokens than that would be read before the first step: blocks at even distances stand for all.
  TESSERA_RETURN_IF_ERROR(forEvenBlocks(total, tokens.size(), limit, [&](uint64_t position, uint64_t here) -> Status {
    TESSERA_RETURN_IF_ERROR(read(position, here, tokens.data()));
    for (size_t i = 0; i < here; ++i) {
      if (tokens[i] >= counts.size()) {
        if (tokens[i] >= 1u << 24)
          return TESSERA_ERROR(InvalidArgument, describe(position + i) + " is " + std::to_string(tokens[i]) +
                                                    ", more than any vocabulary");
        counts.resize(std::max<size_t>(tokens[i] + 1, 2 * counts.size()));
      }
      ++counts[tokens[i]];
    }
    return Status::ok();
  }));
  return entropyOf(counts);
}

double entropyOf(const std::vector<uint64_t> &counts) {
  const auto all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), uint64_t{0}));
  double entropy = 0;
  for (uint64_t occurrences : counts)
    if (occurrences > 0) {
      const double probability = static_cast<double>(occurrences) / all;
      entropy -= probability * std::log(probability);
    }
  return entropy;
}

} // namespace tessera
