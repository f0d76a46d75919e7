//===- ExecOps.td - what the runtime executes -----------------------------===//

#ifndef TESSERA_EXEC_OPS
#define TESSERA_EXEC_OPS

include "compiler/dialect/train/TrainBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::tessera::exec";
  let summary = "Fused kernels, planned buffers and the runtime's instructions";
}

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

def Exec_YieldOp : Exec_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"FusionOp">]> {
  let summary = "Ends the body of a fusion";
  let arguments = (ins Variadic<Train_Tensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
  let builders = [OpBuilder<(ins), [{ /* nothing to yield */ }]>];
}

def Exec_FusionOp : Exec_Op<"fusion", [Pure, IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "A group of train ops that becomes one generated kernel";
  let description = [{
    The body holds `train` ops on its block arguments and yields the results. `kind` says how the kernel is made
    (elementwise, row reduction, column reduction, …). After outlining, `kernel` names the code that implements it.
  }];
  let arguments = (ins Variadic<Train_Tensor>:$operands, StrAttr:$kind, OptionalAttr<FlatSymbolRefAttr>:$kernel);
  let results = (outs Variadic<Train_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$kind ($kernel^)? `(` $operands `)` attr-dict `:` functional-type($operands, $results) $body";
}

#endif // TESSERA_EXEC_OPS
