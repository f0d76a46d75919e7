//===- TokenSource.h - files as one long row of tokens ---------------------------===//
//
// Token files (.bin) and text (.txt, .json, .jsonl, or folders of them) look alike: tokens at positions 0 … tokens().
// Text is read as bytes (vocabulary 256) and every document ends with the byte 0, which text never has. Files are
// indexed and then read where a window needs them, never loaded whole, except .json. See docs/data.md.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DATA_TOKENSOURCE_H
#define TESSERA_RUNTIME_DATA_TOKENSOURCE_H

#include "runtime/base/InputFile.h"

#include <memory>
#include <string>
#include <vector>

namespace tessera {

struct DataOptions {
  std::string textField = "text"; ///< The field of a JSON document that holds its text.
  int tokenBytes = 0;             ///< Of a .bin file without header: 2, 4 or 8; 0: see TokenWidth.h.
  int64_t endOfDocument = -1;     ///< The token that is the last one of a document; -1: a window counts as one.
  bool readsBytes = false;        ///< Text is read as bytes, whatever the vocabulary of the model.
  bool isEvaluation = false;      ///< Of a folder with splits: not the one to train on.
};

class TokenSource {
public:
  /// A file, or a folder read recursively in the order of the paths. `vocabulary`: how many tokens the model has, -1 if
  /// that is not known. Errors: of reading; files that are no tokens of this vocabulary (see TokenWidth.h); text for a
  /// model of far more tokens than bytes, unless the options want it; options that are for other data.
  static Result<std::unique_ptr<TokenSource>> open(const std::string &path, const DataOptions &options = {},
                                                   int64_t vocabulary = -1);

  uint64_t tokens() const { return total; }
  bool isText() const { return text; }
  const std::string &path() const { return name; }
  /// "bytes of text", "uint32 tokens (by values)": how the files are read, and why.
  std::string format() const;
  /// Reads `count` tokens from `position` on. Not for several threads at once.
  Status read(uint64_t position, size_t count, uint32_t *target);
  /// "token 17 of 'a.bin'", "byte 5 of document 3 of 'b.jsonl'": where a token comes from.
  std::string describe(uint64_t position) const;
  /// 16 digits that tell other tokens apart: of the lengths of all documents and files in order, and of the tokens, at
  /// most a million of them in blocks at even distances. The same for the same data under any path. Errors: of reading.
  Result<std::string> fingerprint();

  /// Entropy in nats of the distribution of single tokens, over at most `limit` tokens that are spread evenly: what a
  /// model reaches that knows only how frequent each token is.
  Result<double> unigramEntropy(uint64_t limit = 4'000'000);

private:
  enum class Kind { Words16, Words32, Words64, Bytes, JsonLine, Memory };
  /// A run of tokens in one place: a token file or a document.
  struct Segment {
    uint64_t begin, count; ///< In tokens.
    Kind kind;
    uint32_t file;
    uint64_t offset, length; ///< In bytes of the file; for Memory: offset is an index into `documents`.
    uint64_t number;         ///< Of the document in its file, from 1.
  };

  static Kind kindOf(int tokenBytes);
  Status checkOptions(const DataOptions &options) const;
  Status addPath(const std::string &path, const DataOptions &options);
  Status addFolder(const std::string &path, const DataOptions &options);
  Status addTokens(uint32_t file, const DataOptions &options);
  Result<bool> addWithHeader(uint32_t file, const DataOptions &options);
  void addFormat(int tokenBytes, const std::string &reason);
  Status addText(uint32_t file);
  Status addJson(uint32_t file, const DataOptions &options);
  Status addJsonLines(uint32_t file, const DataOptions &options);
  void addSegment(Segment segment);
  Status readJsonLine(size_t index);
  Status readSegment(size_t index, uint64_t first, size_t count, uint32_t *target);
  Status readWords64(const Segment &segment, uint64_t first, size_t count, uint32_t *target);
  const Segment &segmentAt(uint64_t position) const;

  std::string name, textField;
  bool text = false;
  int64_t vocabulary = -1;
  std::vector<std::string> formats; ///< Of files of tokens, each once.
  int plainBytes = 0;               ///< Per token of the files without header; 0: there are none yet.
  std::string firstPlain;           ///< The path of the first of them.
  uint64_t sampledBytes = 0;        ///< Of each of them, at most.
  uint64_t total = 0;
  std::vector<InputFile> files;
  std::vector<Segment> segments;
  std::vector<std::string> documents; ///< Of .json files.
  size_t cachedSegment = SIZE_MAX;
  std::string cachedLine; ///< The text of the JSON line `cachedSegment`.
  std::vector<uint8_t> buffer;
};

/// The entropy in nats of a distribution, from how often each value was seen.
double entropyOf(const std::vector<uint64_t> &counts);

/// The text of a JSON document: a string, or the field of an object. On failure `problem` says why.
bool jsonText(const char *begin, const char *end, const std::string &field, std::string &text, std::string &problem);
/// The texts of a .json file: one document, or an array of them.
bool jsonTexts(ByteSpan bytes, const std::string &field, std::vector<std::string> &texts, std::string &problem);

} // namespace tessera

#endif // TESSERA_RUNTIME_DATA_TOKENSOURCE_H
