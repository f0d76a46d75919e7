//===- Samples.h - data as numbered samples --------------------------------------===//
//
// A sample has one entry per batch tensor. Sources: windows of T+1 tokens for language models, arrays with a leading
// axis of samples for everything else.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DATA_SAMPLES_H
#define TESSERA_RUNTIME_DATA_SAMPLES_H

#include "runtime/data/BatchPart.h"
#include "runtime/data/SampleOrder.h"
#include "runtime/data/TokenSource.h"

#include <map>
#include <memory>
#include <span>

namespace tessera {

class SampleSource {
public:
  virtual ~SampleSource() = default;
  virtual uint64_t samples() const = 0;
  /// Samples that have a weight together; one part, unless the data are a mixture.
  virtual std::vector<SamplePart> parts() const { return {{samples(), 1}}; }
  /// Writes elements of the entries of sample `index`: for each batch tensor those in `wanted`, at their place in a
  /// target of `sampleBytes()`; nothing else of it. Reads no more of the data than they need. What is shared by all
  /// samples has the same entry in each; a null target is left out. One thread at a time.
  virtual Status read(uint64_t index, std::span<uint8_t *const> targets, std::span<const ElementRanges> wanted) = 0;
  /// Where an element of a sample comes from.
  virtual std::string describe(uint64_t index, size_t tensor, int64_t element) const = 0;
  /// How the data are read, for people: "bytes of text", "uint16 tokens (by …)", "arrays".
  virtual std::string format() const = 0;
  /// A number that tells other data apart: of the order and lengths of documents or arrays, and of their content, at
  /// most 4 MiB of it at even distances. The same for the same data under any path. Errors: of reading.
  virtual Result<std::string> fingerprint() = 0;
  /// In nats, if the data are tokens.
  virtual Result<double> unigramEntropy() { return TESSERA_ERROR(Unsupported, "the data are not tokens"); }
};

/// Opens what `path` names: .npz and .safetensors hold arrays, a folder of "python -m tessera data" rows of tokens (or
/// one of its files .rows: that split), everything else tokens.
///
/// Tokens are read in windows: sample i is made of tokens [iT, iT + T], the inputs are the first T and the targets the
/// last T. The program needs one integer input and one target of shape [T]; inputs called `position_ids` and
/// `attention_mask` are filled with 0 … T-1 and ones, also where samples share them. Where a token ends documents,
/// positions begin at 0 in each, and inputs called `document_ids`, `segment_ids` or `seq_idx` are filled with the
/// number of the document in the window; that there is neither is an error. The bounds of input and target are the
/// vocabulary that the tokens must suit (TokenSource::open).
Result<std::unique_ptr<SampleSource>> openSamples(const std::string &path, const std::vector<BatchSpec> &specs,
                                                  const DataOptions &options = {});

/// Samples from windows of a row of tokens.
Result<std::unique_ptr<SampleSource>> openTokens(const std::string &path, const std::vector<BatchSpec> &specs,
                                                 const DataOptions &options);

/// An array in a file or in memory.
struct ArrayEntry {
  DataType dtype = DataType::F32;
  std::vector<int64_t> shape;
  ByteRange bytes;
};
using ArrayMap = std::map<std::string, ArrayEntry>;

/// What a model trains on, in lines for people: whether tokens or text will do, and the arrays by name, type and shape.
std::string describeWantedData(const std::vector<BatchSpec> &specs);

/// The arrays of a .npz archive; their bytes lie in `storage`.
Status readNpz(const std::string &path, ArrayMap &arrays, std::vector<std::shared_ptr<const void>> &storage);
/// The shape, type and data of a .npy file in memory. Types that programs do not have are widened into `storage`.
Status parseNpy(const std::string &name, ByteSpan bytes, ArrayEntry &entry,
                std::vector<std::shared_ptr<const void>> &storage);

/// Samples from arrays: for each batch tensor one array of its name, with a leading axis of samples unless all share
/// it.
Result<std::unique_ptr<SampleSource>> openArrays(const std::string &path, const std::vector<BatchSpec> &specs);

} // namespace tessera

#endif // TESSERA_RUNTIME_DATA_SAMPLES_H
