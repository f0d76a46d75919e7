//===- Mutation.h - which buffers a program changes in its forward pass --===//
//
// Programs change buffers in place: by operators whose names end in "_", and by
// batch normalisations in training mode. Here is found what is changed by which
// node, and who reads a view of a buffer after it has changed: the importer has
// values, not memory, and would give the old one.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_MUTATION_H
#define TESSERA_FRONTENDS_PT2_MUTATION_H

#include "frontends/pt2/Aliasing.h"
#include "frontends/pt2/Program.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

namespace tessera::pt2 {

class Mutations {
public:
  /// `isSkipped`: nodes that are not imported; `isByBatch`: normalisations that update their running statistics.
  void find(const Program &program, llvm::function_ref<bool(const Node &)> isSkipped,
            llvm::function_ref<bool(const Node &)> isByBatch);

  /// Whether a pass writes a buffer, by its name in the graph.
  bool isWritten(llvm::StringRef buffer) const { return changed.contains(buffer); }
  /// Whether it does, and the buffer has a value from one step to the next.
  bool isChanged(llvm::StringRef buffer) const { return changed.contains(buffer) && !isTemporary(buffer); }
  /// Whether a buffer is written in each pass before it is read, and not saved: no step sees the value of another.
  bool isTemporary(llvm::StringRef buffer) const { return temporary.contains(buffer); }
  /// How a buffer begins because of what it is used for; empty: as its values are.
  llvm::StringRef initOf(llvm::StringRef buffer) const { return initial.lookup(buffer); }
  /// The buffer that a name is the whole of; empty if it is none.
  llvm::StringRef bufferOf(llvm::StringRef name) const { return whole.lookup(name); }
  /// All names of a buffer.
  llvm::ArrayRef<std::string> namesOfBuffer(llvm::StringRef buffer) const;
  /// What an operator in place on a buffer stands for; nothing for any other node.
  std::optional<InPlaceFunction> functionOf(const Node &node) const;
  /// The buffer of which a node reads a view that is older than its last change; empty if it reads none.
  llvm::StringRef staleRead(const Node &node) const { return stale.lookup(&node); }
  bool isStaleOutput(llvm::StringRef name) const { return staleNames.contains(name); }

private:
  void add(const Node &node, const Graph &graph, bool isByBatch);
  void change(llvm::StringRef buffer);

  // Names of buffers are those in the program's signature.
  llvm::StringMap<llvm::StringRef> whole;          ///< names that are a buffer -> the buffer
  llvm::StringMap<std::vector<std::string>> views; ///< buffer -> names that may share its memory
  llvm::StringMap<std::vector<llvm::StringRef>> viewOf;
  llvm::StringMap<std::vector<std::string>> names; ///< buffer -> names that are it
  llvm::StringSet<> changed, temporary;            ///< the buffers that change
  llvm::StringMap<llvm::StringRef> initial;
  llvm::StringMap<llvm::StringRef> staleNames; ///< views that are older than a change -> the buffer
  llvm::DenseMap<const Node *, llvm::StringRef> stale;
};

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_MUTATION_H
