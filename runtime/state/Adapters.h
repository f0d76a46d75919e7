//===- Adapters.h - low-rank adapters: alone, or merged into their matrices ----===//
//
// A program that trains adapters holds frozen matrices W and pairs (A, B) that count as W + scale * (B A). What a run
// leaves is either the pairs, in the files that Hugging Face's PEFT reads, or the model with the pairs added.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STATE_ADAPTERS_H
#define TESSERA_RUNTIME_STATE_ADAPTERS_H

#include "runtime/state/Checkpoint.h"
#include "runtime/state/WeightMap.h"

#include <set>
#include <span>

namespace tessera {

/// The matrix `parameter` counts as `parameter + scale * (b a)`: a is [rank, inputs], b is [outputs, rank]; inputs is
/// dimension `inputDim` of the matrix.
struct Adapter {
  std::string parameter, a, b;
  int64_t rank = 0;
  int64_t inputDim = 1;
  double scale = 1;
};

/// Those of a program whose names and shapes fit its parameters (the reader has checked that).
std::vector<Adapter> adaptersOf(const Artifact &artifact);

/// The parameters that the adapters consist of: weights of the model alone do not have them.
std::set<std::string> namesOf(const std::vector<Adapter> &adapters);

/// What an adapter adds to its matrix: scale * (b a), in f64.
class AdapterProduct {
public:
  AdapterProduct(Adapter adapter, std::vector<double> a, std::vector<double> b)
      : adapter(std::move(adapter)), a(std::move(a)), b(std::move(b)) {}

  const std::string &parameter() const { return adapter.parameter; }
  /// Adds it to elements [first, first + values.size()) of the matrix, in row-major order.
  void addTo(std::span<double> values, int64_t first) const;

private:
  Adapter adapter;
  std::vector<double> a, b;
};

/// Those of all adapters, on every process: `ranks` are those of this one, `role` says which values. All processes call
/// it.
Result<std::vector<AdapterProduct>> gatherProducts(const Peers &peers, const std::vector<RankState> &ranks,
                                                   const std::vector<Adapter> &adapters, StateRole role);

/// What a folder of adapters says besides.
struct AdapterFolder {
  WeightMap map = {};    ///< The names of modules in the model.
  std::string base = ""; ///< The folder of the model; empty: not known.
  std::map<std::string, std::string> metadata = {};
};

/// Writes `adapter_model.safetensors` and `adapter_config.json` into `folder`, which is made: all that the program
/// trains, or the averages of it (`role`), under PEFT's names. The ranks given hold all of the state.
Status exportAdapters(const std::string &folder, const std::vector<RankState> &ranks,
                      const std::vector<Adapter> &adapters, const AdapterFolder &asFolder = {},
                      StateRole role = StateRole::Parameter);

/// Writes the model's parameters, trained and frozen, with each adapter added to its matrix: in f64, then rounded to
/// the matrix's type. Errors: IoError.
Status exportMerged(const std::string &path, const std::vector<RankState> &ranks, const std::vector<Adapter> &adapters,
                    const std::map<std::string, std::string> &metadata = {}, StateRole role = StateRole::Parameter);

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_ADAPTERS_H
