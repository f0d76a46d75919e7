//===- ExecBase.td - the exec dialect and its op class --------------------===//

#ifndef TESSERA_EXEC_BASE
#define TESSERA_EXEC_BASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::tessera::exec";
  let summary = "Fused kernels, planned buffers and the runtime's instructions";
  let useDefaultAttributePrinterParser = 1;
}

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

#endif // TESSERA_EXEC_BASE
