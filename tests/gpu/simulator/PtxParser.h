//===- PtxParser.h - reads PTX ----------------------------------------------===//

#ifndef TESSERA_TESTS_GPU_SIMULATOR_PTXPARSER_H
#define TESSERA_TESTS_GPU_SIMULATOR_PTXPARSER_H

#include "Ptx.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace tessera::sim {

inline uint32_t alignUp(uint32_t value, uint32_t alignment) { return (value + alignment - 1) / alignment * alignment; }

struct Operand {
  enum class Form { Register, Constant, Address, Vector, Label, Pair } form = Form::Constant;
  uint32_t offset = 0, bytes = 0; ///< of the register
  int64_t displacement = 0;       ///< of an address
  std::string label;
  std::vector<Operand> parts;
  bool isNegated = false;
};

class Parser {
public:
  explicit Parser(std::string_view text) : text(text) { split(); }

  Module parse() {
    while (at < tokens.size()) {
      std::string_view token = next();
      if (token == ".target") {
        made.target = std::string(next());
        while (accept(","))
          next();
      } else if (token == ".version" || token == ".address_size") {
        next();
      } else if (token == ".visible" || token == ".weak" || token == ".extern" || token == ".const") {
        continue;
      } else if (token == ".global") {
        variable();
      } else if (token == ".shared") {
        isExtern = tokens[at - 2].text == ".extern";
        shared(moduleShared, moduleSharedBytes);
      } else if (token == ".entry") {
        entry();
      } else if (token == ";" || token == ".pragma" || token.front() == '"') {
        continue;
      } else {
        fail("'" + std::string(token) + "' outside of a kernel");
      }
    }
    return std::move(made);
  }

private:
  struct Token {
    std::string_view text;
    uint32_t line;
  };
  struct Symbol {
    enum class Place { Register, Shared, Local, Parameter, Global } place;
    uint32_t offset = 0, bytes = 0;
  };

  [[noreturn]] void fail(const std::string &what) const {
    throw std::runtime_error("PTX line " + std::to_string(tokens[std::min(at, tokens.size() - 1)].line) + ": " + what);
  }

  // --- Tokens
  static bool isWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.' || c == '%';
  }
  void split() {
    uint32_t line = 1;
    for (size_t i = 0; i < text.size();) {
      char c = text[i];
      if (c == '\0')
        break;
      if (c == '\n')
        ++line;
      if (std::isspace(static_cast<unsigned char>(c))) {
        ++i;
      } else if (text.substr(i, 2) == "//") {
        while (i < text.size() && text[i] != '\n')
          ++i;
      } else if (c == '"') {
        size_t end = text.find('"', i + 1);
        tokens.push_back({text.substr(i, end + 1 - i), line});
        i = end + 1;
      } else if (isWord(c)) {
        size_t end = i;
        while (end < text.size() && (isWord(text[end]) || text.substr(end, 2) == "::"))
          end += text[end] == ':' ? 2 : 1;
        tokens.push_back({text.substr(i, end - i), line});
        i = end;
      } else {
        tokens.push_back({text.substr(i, 1), line});
        ++i;
      }
    }
  }
  std::string_view peek(size_t ahead = 0) const { return at + ahead < tokens.size() ? tokens[at + ahead].text : ""; }
  std::string_view next() {
    if (at >= tokens.size())
      throw std::runtime_error("PTX ends too early");
    return tokens[at++].text;
  }
  bool accept(std::string_view token) {
    if (peek() != token)
      return false;
    ++at;
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token))
      fail("expected '" + std::string(token) + "', got '" + std::string(peek()) + "'");
  }
  int64_t integer() {
    bool isNegative = accept("-");
    std::string_view word = next();
    uint64_t value = 0;
    int base = 10;
    if (word.size() > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X')) {
      base = 16;
      word.remove_prefix(2);
    }
    const char *end = word.data() + word.size();
    auto [stop, error] = std::from_chars(word.data(), end, value, base);
    if (error != std::errc() || (stop != end && std::string_view(stop, end) != "U"))
      fail("'" + std::string(word) + "' is no number");
    return static_cast<int64_t>(isNegative ? -value : value);
  }

  // --- Declarations
  uint32_t typeOfDeclaration() {
    int bytes = typeBytes(next().substr(1));
    if (bytes < 0)
      fail("unknown type");
    return static_cast<uint32_t>(bytes);
  }
  /// "name[n]", "name[]" or "name"; bytes of all elements.
  std::pair<std::string, uint32_t> declarator(uint32_t width) {
    std::string name(next());
    if (!accept("["))
      return {name, width};
    uint32_t count = peek() == "]" ? 0 : static_cast<uint32_t>(integer());
    expect("]");
    return {name, width * count};
  }
  uint32_t alignment() { return accept(".align") ? static_cast<uint32_t>(integer()) : 0; }

  void variable() {
    Variable declared;
    uint32_t align = alignment(), width = typeOfDeclaration();
    std::tie(declared.name, declared.bytes) = declarator(width);
    declared.alignment = std::max(align, width);
    if (accept("=")) {
      bool isList = accept("{");
      do {
        auto value = static_cast<uint64_t>(integer());
        for (uint32_t byte = 0; byte < width; ++byte)
          declared.data.push_back(static_cast<uint8_t>(value >> (8 * byte)));
      } while (isList && accept(","));
      if (isList)
        expect("}");
    }
    expect(";");
    made.variables.push_back(std::move(declared));
  }
  void shared(std::map<std::string, Symbol, std::less<>> &symbols, uint32_t &bytes) {
    uint32_t align = alignment(), width = typeOfDeclaration();
    auto [name, size] = declarator(width);
    expect(";");
    if (size == 0) { // the launch says how large it is; it lies behind all others
      symbols[name] = {Symbol::Place::Shared, ~0u, 0};
      return;
    }
    bytes = alignUp(bytes, std::max(align, width));
    symbols[name] = {Symbol::Place::Shared, bytes, size};
    bytes += size;
  }

  void entry() {
    kernel = Kernel();
    symbols = moduleShared;
    labels.clear();
    jumps.clear();
    constants.clear();
    specials.clear();
    kernel.sharedBytes = moduleSharedBytes;
    kernel.name = std::string(next());
    if (accept("("))
      while (!accept(")")) {
        accept(",");
        parameter();
      }
    while (peek() != "{") {
      std::string_view directive = next();
      if (directive == ".maxntid") {
        kernel.maxThreads = static_cast<uint32_t>(integer());
        while (accept(","))
          kernel.maxThreads *= static_cast<uint32_t>(integer());
      } else if (directive == ".minnctapersm" || directive == ".reqntid" || directive == ".maxnreg") {
        do
          integer();
        while (accept(","));
      } else {
        fail("unknown directive '" + std::string(directive) + "'");
      }
    }
    expect("{");
    kernel.registerBytes = 128; // a register for "_"
    body();
    if (kernel.code.empty() || kernel.code.back().kind != Kind::Return)
      emit(instructionOfKind(Kind::Return));
    for (auto &[index, label] : jumps) {
      auto found = labels.find(label);
      if (found == labels.end())
        fail("no label '" + label + "'");
      kernel.code[index].target = found->second;
    }
    // What lies behind the static shared memory is known now.
    kernel.sharedBytes = alignUp(kernel.sharedBytes, 16);
    for (Constant &constant : kernel.constants)
      if (constant.variable == -2)
        constant = {constant.offset, constant.bytes, constant.value + kernel.sharedBytes, -1};
    made.kernels[kernel.name] = std::move(kernel);
  }

  void parameter() {
    expect(".param");
    uint32_t align = alignment(), width = typeOfDeclaration();
    if (accept(".ptr")) {
      while (peek().substr(0, 1) == ".")
        if (next() == ".align")
          integer();
    }
    auto [name, bytes] = declarator(width);
    kernel.parameterBytes = alignUp(kernel.parameterBytes, std::max(align, width));
    kernel.parameters.push_back({kernel.parameterBytes, bytes});
    symbols[name] = {Symbol::Place::Parameter, kernel.parameterBytes, bytes};
    kernel.parameterBytes += bytes;
  }

  uint32_t newRegister(uint32_t bytes) {
    kernel.registerBytes = alignUp(kernel.registerBytes, 64);
    uint32_t offset = kernel.registerBytes;
    kernel.registerBytes += bytes == 0 ? 4 : bytes * warpSize;
    return offset;
  }

  void registers() {
    uint32_t bytes = typeOfDeclaration();
    do {
      std::string name(next());
      if (accept("<")) {
        int64_t count = integer();
        expect(">");
        for (int64_t number = 0; number < count; ++number)
          symbols[name + std::to_string(number)] = {Symbol::Place::Register, newRegister(bytes), bytes};
      } else {
        symbols[name] = {Symbol::Place::Register, newRegister(bytes), bytes};
      }
    } while (accept(","));
    expect(";");
  }

  // --- Instructions
  void body() {
    std::vector<std::map<std::string, Symbol, std::less<>>> outer;
    while (true) {
      if (accept("{")) {
        outer.push_back(symbols);
      } else if (accept("}")) {
        if (outer.empty())
          return;
        symbols = std::move(outer.back());
        outer.pop_back();
      } else if (accept(".reg")) {
        registers();
      } else if (accept(".shared")) {
        shared(symbols, kernel.sharedBytes);
      } else if (accept(".local")) {
        uint32_t align = alignment(), width = typeOfDeclaration();
        auto [name, bytes] = declarator(width);
        expect(";");
        kernel.localBytes = alignUp(kernel.localBytes, std::max(align, width));
        symbols[name] = {Symbol::Place::Local, kernel.localBytes, bytes};
        kernel.localBytes += bytes;
      } else if (accept(".pragma")) {
        next();
        expect(";");
      } else if (accept(";")) {
        continue;
      } else if (peek(1) == ":") {
        labels[std::string(next())] = static_cast<uint32_t>(kernel.code.size());
        expect(":");
      } else {
        instruction();
      }
    }
  }

  Instruction instructionOfKind(Kind kind) const {
    Instruction instruction;
    instruction.kind = kind;
    instruction.line = at < tokens.size() ? tokens[at].line : 0;
    return instruction;
  }
  void emit(const Instruction &instruction) { kernel.code.push_back(instruction); }

  /// The register that holds a constant for all lanes.
  uint32_t constant(uint64_t value, uint32_t bytes, int variable = -1) {
    auto [known, isNew] = constants.try_emplace({value, bytes, variable}, 0);
    if (isNew) {
      known->second = newRegister(bytes);
      kernel.constants.push_back({known->second, bytes, value, variable});
    }
    return known->second;
  }

  /// The value of a symbol as an operand: a register, or its address.
  Operand named(std::string_view name, uint32_t bytes);
  /// `bytes`: how wide an immediate is.
  Operand operand(uint32_t bytes);
  Operand ofWidth(Operand operand, uint32_t bytes);
  void instruction();
  void memory(Mnemonic &mnemonic, Instruction &built, bool isLoad, const std::string &whole);
  void matrix(Mnemonic &mnemonic, Instruction &built, const std::string &whole);
  void copy(Mnemonic &mnemonic, Instruction &built, const std::string &whole);
  void arithmetic(Mnemonic &mnemonic, Instruction &built, const std::string &whole);

  std::string_view text;
  std::vector<Token> tokens;
  size_t at = 0;
  bool isExtern = false;
  Module made;
  std::map<std::string, Symbol, std::less<>> moduleShared;
  uint32_t moduleSharedBytes = 0;

  // Of the kernel at hand.
  Kernel kernel;
  std::map<std::string, Symbol, std::less<>> symbols;
  std::map<std::string, uint32_t> labels;
  std::vector<std::pair<size_t, std::string>> jumps;
  std::map<std::tuple<uint64_t, uint32_t, int>, uint32_t> constants;
  std::map<Special, uint32_t> specials;
};

} // namespace tessera::sim

#endif // TESSERA_TESTS_GPU_SIMULATOR_PTXPARSER_H
