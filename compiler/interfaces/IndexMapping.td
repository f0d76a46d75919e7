//===- IndexMapping.td - ops whose result shows elements of their operand -===//

#ifndef TESSERA_INTERFACES_INDEX_MAPPING
#define TESSERA_INTERFACES_INDEX_MAPPING

include "mlir/IR/OpBase.td"

def IndexMappingOpInterface : OpInterface<"IndexMappingOpInterface"> {
  let cppNamespace = "::tessera";
  let description = [{
    An op that computes nothing: each element of its only result is an element of its first operand. What passes ask before
    they move, repeat or alias such an op are queries of which elements those are and of what decides it; no pass lists
    such ops by name. All of them but those that repeat elements, or whose place data decides, are strided views of memory.
  }];
  let methods = [
    InterfaceMethod<"Which elements of the operand the result has.", "::tessera::ElementMap", "getElementMap", (ins)>,
    InterfaceMethod<"What decides which element of the operand an element of the result is.",
      "::tessera::IndexSource", "getIndexSource", (ins), [{}], [{ return ::tessera::IndexSource::Static; }]>,
  ];
  let extraSharedClassDeclaration = [{
    /// The result is the operand; the op says something else (that optimization stops, that no gradient flows).
    bool isIdentity() { return $_op.getElementMap() == ::tessera::ElementMap::Identity; }
    /// Each element of the operand is there exactly once.
    bool isBijective() { return isIdentity() || $_op.getElementMap() == ::tessera::ElementMap::Permutation; }
    /// No element is there more than once.
    bool isInjective() { return $_op.getElementMap() != ::tessera::ElementMap::Repetition; }
    /// The attributes say which elements.
    bool isStatic() { return $_op.getIndexSource() == ::tessera::IndexSource::Static; }
    /// The same bytes of memory with other strides can be operand and result, on each rank.
    bool isMemoryView() { return isInjective() && $_op.getIndexSource() != ::tessera::IndexSource::Data; }
  }];
}

#endif // TESSERA_INTERFACES_INDEX_MAPPING
