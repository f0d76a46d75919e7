//===- Program.h - an exported program, as read -----------------*- C++ -*-===//
//
// What a file of `torch.export.save` says, as plain data: the graph with its operators, the roles of inputs and
// outputs, ranges of symbolic sizes, and where each weight lies. Names follow torch/_export/serde/schema.py.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_PROGRAM_H
#define TESSERA_FRONTENDS_PT2_PROGRAM_H

#include "frontends/pt2/Expression.h"
#include "frontends/pt2/TreeSpec.h"

#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tessera::pt2 {

/// Element types, with the numbers of the schema.
enum class ScalarType {
  Unknown = 0,
  Byte = 1,
  Char = 2,
  Short = 3,
  Int = 4,
  Long = 5,
  Half = 6,
  Float = 7,
  Double = 8,
  ComplexHalf = 9,
  ComplexFloat = 10,
  ComplexDouble = 11,
  Bool = 12,
  BFloat16 = 13,
  UInt16 = 28,
  Float8E4M3FN = 29,
  Float8E5M2 = 30,
  Float8E4M3FNUZ = 31,
  Float8E5M2FNUZ = 32,
  Float8E8M0FNU = 33,
  UInt32 = 34,
  UInt64 = 35,
};

enum class Layout { Unknown = 0, SparseCoo, SparseCsr, SparseCsc, SparseBsr, SparseBsc, Mkldnn, Strided };
enum class MemoryFormat { Unknown = 0, Contiguous, ChannelsLast, ChannelsLast3d, Preserve };

/// As PyTorch prints it, for messages: "float32", "bfloat16".
const char *scalarTypeName(ScalarType type);
/// Bytes of an element; 0 if unknown.
int64_t scalarTypeBytes(ScalarType type);

/// `type` is "cpu" or "cuda".
struct Device {
  std::string type;
  std::optional<int64_t> index;
};

/// A size: a number, or an expression in the program's symbols with the value that it had while exporting.
struct SymInt {
  std::string expression;                 // as in Python: "2*s0"; empty: a number
  int64_t value = 0;                      // the number, or the hint
  bool hasHint = true;                    // false: an expression without a hint
  std::shared_ptr<const Expression> tree; // of the expression; null if its text is not understood

  bool isConstant() const { return expression.empty(); }
  /// The symbol if it is nothing else ("s0"), else "".
  std::string symbol() const { return tree ? tree->symbol : ""; }
  /// Its value if symbols have these values; nothing if that is not known.
  std::optional<int64_t> evaluate(const std::map<std::string, int64_t> &symbols) const {
    return isConstant() ? std::optional(value) : tree ? tree->evaluate(symbols) : std::nullopt;
  }
};
/// The same for a float, and a bool (0 or 1).
struct SymFloat {
  std::string expression;
  double value = 0;
  bool hasHint = true;
};
struct SymBool {
  std::string expression;
  bool value = false;
  bool hasHint = true;
};

struct TensorMeta {
  ScalarType dtype = ScalarType::Unknown;
  std::vector<SymInt> sizes;
  std::vector<SymInt> strides; // as many as sizes
  SymInt storageOffset;
  bool requiresGrad = false;
  Device device;
  Layout layout = Layout::Strided;
};

struct Graph;

// The alternatives of Argument. Each is a type of its own, so that std::visit and std::get name what they mean.

struct NoneArg {};
struct TensorArg {
  std::string name; // a key of Graph::tensors
};
/// In a list of optional tensors: no value is None.
using OptionalTensorArg = std::optional<TensorArg>;
/// A size that an earlier node gave (a key of Graph::symInts), or a number.
struct SymIntArg {
  std::string name; // empty: a number
  int64_t value = 0;
};
struct SymFloatArg {
  std::string name;
  double value = 0;
};
struct SymBoolArg {
  std::string name;
  bool value = false;
};
/// The body of a higher order operator.
struct GraphArg {
  std::string name;
  std::shared_ptr<Graph> graph; // never null
};
struct CustomObjectArg {
  std::string name, className;
};
/// An operator as an argument, such as "torch.ops.aten.add.Tensor".
struct OperatorArg {
  std::string target;
};
struct DictEntry;
struct DictArg {
  std::vector<DictEntry> entries; // in the order of the file
};

/// Lists keep their kind even if empty, and `int` is not `SymIntArg`: the file says which it is.
struct Argument {
  std::variant<NoneArg, TensorArg, std::vector<TensorArg>, OptionalTensorArg, std::vector<OptionalTensorArg>,
               std::vector<std::vector<TensorArg>>, int64_t, std::vector<int64_t>, std::vector<std::vector<int64_t>>,
               double, std::vector<double>, std::vector<std::vector<double>>, bool, std::vector<bool>, std::string,
               std::vector<std::string>, SymIntArg, std::vector<SymIntArg>, SymFloatArg, std::vector<SymFloatArg>,
               SymBoolArg, std::vector<SymBoolArg>, ScalarType, MemoryFormat, Layout, Device, OperatorArg, GraphArg,
               CustomObjectArg, std::complex<double>, DictArg>
      value;

  /// The value if it is a T, else null.
  template <typename T> const T *as() const { return std::get_if<T>(&value); }
  bool isNone() const { return std::holds_alternative<NoneArg>(value); }
};

struct DictEntry {
  std::string name;
  Argument argument;
};

/// Calls `visit(std::string &)` for each name of a value that an argument has.
template <typename Visit> struct NameVisitor {
  Visit visit;

  void operator()(TensorArg &tensor) { visit(tensor.name); }
  void operator()(SymIntArg &size) { named(size.name); }
  void operator()(SymFloatArg &number) { named(number.name); }
  void operator()(SymBoolArg &flag) { named(flag.name); }
  void operator()(OptionalTensorArg &tensor) {
    if (tensor)
      visit(tensor->name);
  }
  template <typename T> void operator()(std::vector<T> &list) {
    if constexpr (!std::is_arithmetic_v<T> && !std::is_same_v<T, std::string>)
      for (T &element : list)
        (*this)(element);
  }
  void operator()(DictArg &dictionary) {
    for (DictEntry &entry : dictionary.entries)
      std::visit(*this, entry.argument.value);
  }
  template <typename T> void operator()(T &) {}

private:
  void named(std::string &name) {
    if (!name.empty())
      visit(name);
  }
};

template <typename Visit> void eachName(Argument &argument, Visit visit) {
  std::visit(NameVisitor<Visit>{visit}, argument.value);
}
/// The same of one that stays as it is: `visit(const std::string &)`.
template <typename Visit> void eachName(const Argument &argument, Visit visit) {
  eachName(const_cast<Argument &>(argument), [&](const std::string &name) { visit(name); });
}

/// The names that an argument or an output refers to, one for each element of a list; an empty one is None or a number.
/// Lists of lists and dictionaries are left out.
std::vector<std::string> namesOf(const Argument &argument);

/// What kind of argument it is, for messages: "tensor", "list of int".
const char *argumentKind(const Argument &argument);

struct NamedArgument {
  enum class Kind { Unknown = 0, Positional = 1, Keyword = 2 };

  std::string name; // of the operator's schema: "input", "weight"
  Argument argument;
  Kind kind = Kind::Unknown;
};

/// A module that a node was called in.
struct ModuleFrame {
  std::string path;      // full name from the root: "blocks.0.mlp"; empty for the root
  std::string className; // "torch.nn.modules.linear.Linear"
  int64_t call = 0;      // how often the module was called before
};

/// The innermost line of the user's code that a node comes from.
struct SourceLine {
  std::string file, function, text; // text: the line of code, as in the stack trace; may be empty
  int64_t line = 0;
};

struct Node {
  std::string target; // "torch.ops.aten.linear.default"
  std::string name;   // of the node in FX; may be empty
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;    // tensors, lists of tensors, none, sym ints...
  std::vector<ModuleFrame> modules; // outermost (the root) first
  std::optional<SourceLine> source;
  std::string stackTrace;                      // the whole text
  std::map<std::string, std::string> metadata; // the rest, unparsed
  bool singleTensorReturn = false;             // of a higher order operator: one tensor, not a list of one
  std::optional<int64_t> draw;                 // of one that draws random numbers: its number among those
  bool wasInPlace = false;                     // its result is rounded to the type of the tensor that it changed
  std::string refusal;                         // why it was not replaced by what can be imported; may be empty

  /// The input of this name, or null.
  const Argument *input(const std::string &inputName) const {
    for (const NamedArgument &argument : inputs)
      if (argument.name == inputName)
        return &argument.argument;
    return nullptr;
  }
};

struct Graph {
  std::vector<Argument> inputs, outputs;
  std::vector<Node> nodes; // in order of execution
  std::map<std::string, TensorMeta> tensors;
  std::map<std::string, SymInt> symInts;
  std::map<std::string, SymFloat> symFloats;
  std::map<std::string, SymBool> symBools;
  std::map<std::string, CustomObjectArg> customObjects;
  bool singleTensorReturn = false;
};

/// Drops the nodes that do not stay.
void keepNodes(std::vector<Node> &nodes, const std::vector<bool> &stays);
/// `stem` and the first number after `count` with which no value of the graph has that name; `count` becomes it.
std::string freshName(const Graph &graph, const std::string &stem, size_t &count);

struct InputSpec {
  enum class Kind { UserInput, Parameter, Buffer, TensorConstant, CustomObject, Token, ConstantInput };

  Kind kind = Kind::UserInput;
  Argument argument;      // the graph's input; for ConstantInput its value
  std::string name;       // of the graph's input, if it has one
  std::string target;     // full name of the parameter, buffer, constant or object; empty for user inputs
  bool persistent = true; // of a buffer
};

struct OutputSpec {
  enum class Kind {
    UserOutput,
    LossOutput,
    BufferMutation,
    ParameterMutation,
    UserInputMutation,
    GradientToParameter,
    GradientToUserInput,
    Token
  };

  Kind kind = Kind::UserOutput;
  Argument argument;  // the graph's output
  std::string name;   // of the value, if it has one
  std::string target; // full name of the buffer or parameter, or name of the user input; empty for outputs
};

/// In the order of the graph's inputs and outputs, as many as these.
struct Signature {
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
};

/// What a symbol may be; an end that is missing is open.
struct Range {
  std::optional<int64_t> min, max;
};

/// Where the bytes of a parameter, buffer or tensor constant lie in the archive.
struct Weight {
  std::string path;     // entry of the archive without its root folder: "data/weights/weight_0"
  bool hasData = false; // false: exported with fake tensors, the entry has no bytes
  bool isParameter = false;
  ScalarType dtype = ScalarType::Unknown;
  std::vector<int64_t> sizes, strides; // strides in elements
  int64_t storageOffset = 0;           // in elements

  /// Whether another one that shares its entry is the same tensor.
  bool isSame(const Weight &other) const {
    return dtype == other.dtype && sizes == other.sizes && strides == other.strides &&
           storageOffset == other.storageOffset;
  }
};

/// Elements of a parameter that files of Hugging Face have elsewhere: nested loops of `sizes` visit both.
struct WeightPiece {
  std::string tensor;
  std::vector<int64_t> shape, sizes, strides, tensorStrides;
  int64_t offset = 0, tensorOffset = 0;
};

/// A parameter that those files do not have as the tensor of its name. No pieces: they do, but others of other names.
struct StoredParameter {
  std::string name;
  std::vector<WeightPiece> pieces;
  std::vector<std::string> others; // names that it may have instead, as a whole
};

/// Which tensors of Hugging Face's files the parameters are; #train.weight_map describes the fields.
struct WeightMap {
  std::string root, prefix, refused;
  std::vector<StoredParameter> parameters;
  std::vector<std::string> unread;
};

struct Program {
  int64_t schemaMajor = 0, schemaMinor = 0;
  std::string torchVersion;
  std::string file;              // the archive
  std::string modelName;         // "model" unless told otherwise
  std::string mode;              // of the module, "training" or "evaluation"; empty: the file does not say
  std::string evaluationDiffers; // what the module computes otherwise in evaluation mode; empty: nothing that is known
  std::optional<WeightMap> weightMap;
  Graph graph;
  Signature signature;
  std::map<std::string, Range> ranges;   // of symbols: "s0"
  std::vector<std::string> guards;       // code of guards on inputs
  std::vector<std::string> verifiers;    // "TRAINING": as torch.export.export gives it; "ATEN": decomposed
  std::map<std::string, Weight> weights; // parameters, buffers and tensor constants, by full name
  /// Full names that share one entry, in groups of at least two. Not known of weights without data.
  std::vector<std::vector<std::string>> tied;
  std::string outSpec;               // how outputs are nested: JSON of torch.utils._pytree, see TreeSpec.h
  NamedTuples namedTuples;           // of outSpec
  std::vector<std::string> warnings; // such as: the schema's minor is newer than this reader
};

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_PROGRAM_H
