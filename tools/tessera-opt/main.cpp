//===- main.cpp - tessera-opt: runs passes on textual IR ------------------===//

#include "passes/Register.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tessera::registerAllDialects(registry);
  tessera::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv,
                                                  "Runs Tessera passes on textual IR\n\n"
                                                  "Example: tessera-opt step.mlir --canonicalize --cse\n",
                                                  registry));
}
