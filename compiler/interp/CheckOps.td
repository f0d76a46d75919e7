//===- CheckOps.td - assertions that the interpreter evaluates ------------===//

#ifndef TESSERA_CHECK_OPS
#define TESSERA_CHECK_OPS

include "compiler/dialect/train/TrainBase.td"

def Check_Dialect : Dialect {
  let name = "check";
  let cppNamespace = "::tessera::check";
  let summary = "Assertions on values, for tests";
  let description = [{
    The ops of this dialect make a module test itself: `tessera-interp` evaluates the function and fails with a message at
    the first assertion that does not hold on some rank. They have no meaning to the compiler and must not reach lowering.
  }];
}

class Check_Op<string mnemonic, list<Trait> traits = []>
    : Op<Check_Dialect, mnemonic, !listconcat(traits, [SameTypeOperands])>;

def Check_ExpectEqOp : Check_Op<"expect_eq"> {
  let summary = "Fails unless both values are equal bit by bit (any two NaNs are equal)";
  let arguments = (ins Train_Tensor:$actual, Train_Tensor:$expected);
  let assemblyFormat = "$actual `,` $expected attr-dict `:` type($actual)";
}

def Check_ExpectCloseOp : Check_Op<"expect_close"> {
  let summary = "Fails unless `|actual - expected| <= atol + rtol * |expected|` for each element";
  let description = [{ Infinities must be equal; a NaN is close to a NaN only. }];
  let arguments = (ins Train_Tensor:$actual, Train_Tensor:$expected, DefaultValuedAttr<F64Attr, "1.0e-5">:$rtol,
                       DefaultValuedAttr<F64Attr, "1.0e-7">:$atol);
  let assemblyFormat = "$actual `,` $expected attr-dict `:` type($actual)";
}

#endif // TESSERA_CHECK_OPS
