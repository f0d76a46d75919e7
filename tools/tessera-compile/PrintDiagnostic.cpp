//===- PrintDiagnostic.cpp - diagnostics as lines of the terminal ----------===//

#include "tools/tessera-compile/PrintDiagnostic.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

namespace {

/// A binary file has no lines: its location is line 0.
void printFile(llvm::raw_ostream &os, mlir::FileLineColLoc file) {
  os << file.getFilename().getValue() << ": ";
  if (file.getLine() > 0)
    os << file.getLine() << ":" << file.getColumn() << ": ";
}

/// The user's line that a node comes from, unless the text names it.
std::string lineOfSource(mlir::Location location, llvm::StringRef text) {
  auto node = location->findInstanceOf<mlir::NameLoc>();
  auto file = node ? node.getChildLoc()->findInstanceOf<mlir::FileLineColLoc>() : mlir::FileLineColLoc();
  if (!file || file.getLine() == 0)
    return "";
  const std::string where = file.getFilename().str() + ":" + std::to_string(file.getLine());
  return text.contains(where) ? "" : " (" + where + ")";
}

} // namespace

void tessera::printDiagnostic(mlir::Diagnostic &diagnostic, bool remarks) {
  llvm::raw_ostream &os = llvm::errs();
  const char *severity = "error";
  switch (diagnostic.getSeverity()) {
  case mlir::DiagnosticSeverity::Remark:
    if (!remarks)
      return;
    severity = "remark";
    break;
  case mlir::DiagnosticSeverity::Warning:
    severity = "warning";
    break;
  case mlir::DiagnosticSeverity::Note:
    severity = "note";
    break;
  case mlir::DiagnosticSeverity::Error:
    break;
  }
  os << "tessera-compile: " << severity << ": ";
  const std::string text = diagnostic.str();
  if (auto named = diagnostic.getLocation()->findInstanceOf<mlir::NameLoc>()) {
    const std::string where = "node '" + named.getName().str() + "': ";
    if (!llvm::StringRef(text).starts_with(where)) // the importer's report names its nodes itself
      os << where;
  } else if (auto file = diagnostic.getLocation()->findInstanceOf<mlir::FileLineColLoc>())
    printFile(os, file);
  os << text << lineOfSource(diagnostic.getLocation(), text) << "\n";
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    printDiagnostic(note, remarks);
}
