//===- Passes.td - passes of the simplify phase ------------------------------===//

#ifndef TESSERA_PASSES_SIMPLIFY
#define TESSERA_PASSES_SIMPLIFY

include "mlir/Pass/PassBase.td"

def AssignInitializers : Pass<"assign-initializers", "func::FuncOp"> {
  let summary = "Give every parameter an initialiser";
  let description = [{
    The artifact holds no weights. A parameter (role `param` or `frozen`) starts from a file given to `tessera-run`, or
    from its initialiser: a distribution whose value at an element depends on the seed, the parameter's name and the
    element's index only. This pass writes it as `train.init` on the argument.

    Precondition: arguments have `train.role` and `train.name`. Postcondition: every parameter has `train.init`, one of
    `zeros`, `constant:<a>`, `normal:<deviation>`, `uniform:<a>:<b>`.

    Without a matching rule, biases are 0, other vectors named weight, scale or gamma are 1, convolution filters are uniform in
    ±1/sqrt(fan-in), all else is normal with deviation 0.02.

    ```mlir
    // before
    %w: tensor<64x64xf32> {train.role = "param", train.name = "h.0.fc.weight"}
    // after
    %w: tensor<64x64xf32> {train.role = "param", train.name = "h.0.fc.weight", train.init = "normal:0.02"}
    ```
  }];
  let options = [ListOption<"rules", "rules", "std::string",
                            "<regex>=<initialiser>, in order; the first match wins">];
}

#endif // TESSERA_PASSES_SIMPLIFY
