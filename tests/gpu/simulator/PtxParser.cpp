//===- PtxParser.cpp - the text of PTX, decoded -----------------------------===//

#include "Ptx.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>

namespace tessera::sim {

bool Mnemonic::take(std::string_view modifier) {
  auto found = std::find(modifiers.begin(), modifiers.end(), modifier);
  if (found == modifiers.end())
    return false;
  modifiers.erase(found);
  return true;
}

int typeBytes(std::string_view type) {
  static const std::map<std::string_view, int> widths = {
      {"pred", 0},  {"b8", 1},   {"u8", 1},  {"s8", 1},  {"b16", 2}, {"u16", 2}, {"s16", 2},
      {"f16", 2},   {"bf16", 2}, {"b32", 4}, {"u32", 4}, {"s32", 4}, {"f32", 4}, {"bf16x2", 4},
      {"f16x2", 4}, {"b64", 8},  {"u64", 8}, {"s64", 8}, {"f64", 8}};
  auto found = widths.find(type);
  return found == widths.end() ? -1 : found->second;
}

namespace {

uint32_t alignUp(uint32_t value, uint32_t alignment) { return (value + alignment - 1) / alignment * alignment; }

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
  Operand named(std::string_view name, uint32_t bytes) {
    static const std::map<std::string_view, Special> known = {
        {"%tid.x", Special::TidX},     {"%tid.y", Special::TidY},     {"%tid.z", Special::TidZ},
        {"%ntid.x", Special::NtidX},   {"%ntid.y", Special::NtidY},   {"%ntid.z", Special::NtidZ},
        {"%ctaid.x", Special::CtaX},   {"%ctaid.y", Special::CtaY},   {"%ctaid.z", Special::CtaZ},
        {"%nctaid.x", Special::NctaX}, {"%nctaid.y", Special::NctaY}, {"%nctaid.z", Special::NctaZ},
        {"%laneid", Special::Lane}};
    Operand operand;
    operand.form = Operand::Form::Register;
    if (auto special = known.find(name); special != known.end()) {
      auto [made, isNew] = specials.try_emplace(special->second, 0);
      if (isNew) {
        made->second = newRegister(4);
        kernel.specials.emplace_back(special->second, made->second);
      }
      operand.offset = made->second;
      operand.bytes = 4;
      return operand;
    }
    operand.bytes = bytes ? bytes : 8;
    if (auto symbol = symbols.find(name); symbol != symbols.end()) {
      const Symbol &found = symbol->second;
      if (found.place == Symbol::Place::Register) {
        operand.offset = found.offset;
        operand.bytes = found.bytes;
      } else if (found.offset == ~0u) {
        operand.offset = constant(0, operand.bytes, -2);
      } else {
        operand.offset = constant(found.offset, operand.bytes);
      }
      return operand;
    }
    for (size_t index = 0; index < made.variables.size(); ++index)
      if (made.variables[index].name == name) {
        operand.offset = constant(0, operand.bytes, static_cast<int>(index));
        return operand;
      }
    fail("unknown name '" + std::string(name) + "'");
  }

  /// `bytes`: how wide an immediate is.
  Operand operand(uint32_t bytes) {
    Operand made;
    if (accept("{")) {
      made.form = Operand::Form::Vector;
      do
        made.parts.push_back(operand(bytes));
      while (accept(","));
      expect("}");
      return made;
    }
    if (accept("[")) {
      made.form = Operand::Form::Address;
      Operand base;
      if (std::isdigit(static_cast<unsigned char>(peek()[0])))
        base.offset = constant(0, 8), base.bytes = 8, made.displacement = integer();
      else
        base = named(next(), 8);
      made.offset = base.offset;
      made.bytes = base.bytes;
      if (accept("+"))
        made.displacement = integer();
      else if (peek() == "-")
        made.displacement = integer();
      expect("]");
      return made;
    }
    if (accept("!")) {
      made = operand(bytes);
      made.isNegated = true;
      return made;
    }
    if (accept("_")) {
      made.form = Operand::Form::Register;
      made.bytes = bytes;
      if (bytes > 4)
        made.offset = newRegister(bytes);
      return made;
    }
    std::string_view word = peek();
    bool isFloat =
        word.size() > 2 && word[0] == '0' && (word[1] == 'f' || word[1] == 'F' || word[1] == 'd' || word[1] == 'D');
    if (isFloat && (word.size() == 10 || word.size() == 18)) {
      next();
      uint64_t bits = 0;
      std::from_chars(word.data() + 2, word.data() + word.size(), bits, 16);
      made.form = Operand::Form::Constant;
      made.bytes = word.size() == 10 ? 4 : 8;
      made.offset = constant(bits, made.bytes);
      return made;
    }
    if (word == "-" || std::isdigit(static_cast<unsigned char>(word[0]))) {
      made.form = Operand::Form::Constant;
      made.bytes = bytes;
      made.offset = constant(static_cast<uint64_t>(integer()), bytes);
      return made;
    }
    next();
    made = named(word, bytes);
    if (accept("|")) {
      made.parts.push_back(named(next(), 0));
      made.form = Operand::Form::Pair;
    }
    return made;
  }

  void instruction();
  void memory(Mnemonic &mnemonic, Instruction &built, bool isLoad, const std::string &whole);
  void pack(Instruction &built, uint32_t bytes);
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

/// What an instruction's operands have for types, by its name.
struct Widths {
  uint32_t result = 4, immediate = 4;
  std::vector<uint32_t> sources; ///< by position; the rest are as `immediate`
  bool isSigned = false;         ///< the result, where its register is wider

  uint32_t source(size_t index) const { return index < sources.size() ? sources[index] : immediate; }
};

Widths widthsOf(const Mnemonic &mnemonic) {
  Widths widths;
  std::vector<std::string> types;
  for (const std::string &modifier : mnemonic.modifiers)
    if (typeBytes(modifier) >= 0)
      types.push_back(modifier);
  if (types.empty())
    return widths;
  auto last = static_cast<uint32_t>(typeBytes(types.back()));
  widths.result = widths.immediate = last;
  widths.isSigned = types.front()[0] == 's';
  bool isWide = std::find(mnemonic.modifiers.begin(), mnemonic.modifiers.end(), "wide") != mnemonic.modifiers.end();
  if (mnemonic.name == "cvt") {
    widths.result = static_cast<uint32_t>(typeBytes(types.front()));
  } else if (mnemonic.name == "setp") {
    widths.result = 0;
    widths.sources = {last, last, 0};
  } else if (mnemonic.name == "selp") {
    widths.sources = {last, last, 0};
  } else if (mnemonic.name == "shl" || mnemonic.name == "shr") {
    widths.sources = {last, 4};
  } else if (mnemonic.name == "bfe") {
    widths.sources = {last, 4, 4};
  } else if (mnemonic.name == "popc" || mnemonic.name == "clz" || mnemonic.name == "bfind") {
    widths.result = 4;
  } else if (mnemonic.name == "vote") {
    widths.result = last;
    widths.sources = {0, 4};
  } else if (isWide) {
    widths.result = 2 * last;
    widths.sources = {last, last, 2 * last};
  }
  return widths;
}

void Parser::instruction() {
  Instruction built = instructionOfKind(Kind::Compute);
  if (accept("@")) {
    built.isGuarded = true;
    built.isGuardNegated = accept("!");
    built.guard = named(next(), 0).offset;
  }
  built.line = tokens[std::min(at, tokens.size() - 1)].line;
  std::string whole(next());
  Mnemonic mnemonic;
  for (size_t begin = 0; begin <= whole.size();) {
    size_t end = std::min(whole.find('.', begin), whole.size());
    std::string part = whole.substr(begin, end - begin);
    if (begin == 0)
      mnemonic.name = part;
    else
      mnemonic.modifiers.push_back(part);
    begin = end + 1;
  }
  const std::string &name = mnemonic.name;
  if (name == "bra") {
    built.kind = Kind::Branch;
    mnemonic.take("uni");
    jumps.emplace_back(kernel.code.size(), std::string(next()));
    emit(built);
  } else if (name == "ret" || name == "exit") {
    built.kind = Kind::Return;
    mnemonic.take("uni");
    emit(built);
  } else if ((name == "bar" || name == "barrier") && mnemonic.take("sync")) {
    mnemonic.take("aligned");
    if (mnemonic.take("warp"))
      fail("unknown instruction '" + whole + "'");
    built.kind = Kind::Barrier;
    if (integer() != 0)
      fail("a barrier other than 0");
    emit(built);
  } else if (name == "ld" || name == "st") {
    memory(mnemonic, built, name == "ld", whole);
  } else {
    if (name == "shfl" || name == "vote")
      built.kind = Kind::Together;
    arithmetic(mnemonic, built, whole);
  }
  expect(";");
  if (!mnemonic.modifiers.empty())
    fail("unknown instruction '" + whole + "': ." + mnemonic.modifiers.front());
}

void Parser::memory(Mnemonic &mnemonic, Instruction &built, bool isLoad, const std::string &whole) {
  auto bytes = static_cast<uint32_t>(std::max(0, typeBytes(mnemonic.modifiers.back())));
  Operand value, address;
  if (isLoad) {
    value = operand(bytes);
    expect(",");
    address = operand(8);
  } else {
    address = operand(8);
    expect(",");
    value = operand(bytes);
  }
  if (address.form != Operand::Form::Address)
    fail("'" + whole + "' has no address");
  std::vector<Operand> parts = value.form == Operand::Form::Vector ? value.parts : std::vector<Operand>{value};
  if (parts.size() > 4)
    fail("a vector of " + std::to_string(parts.size()));
  built.count = static_cast<uint8_t>(parts.size());
  for (size_t index = 0; index < parts.size(); ++index) {
    if (parts[index].bytes != parts[0].bytes)
      fail("registers of several widths in a vector");
    built.vector[index] = parts[index].offset;
  }
  built.a = address.offset;
  built.hasWideAddress = address.bytes == 8;
  built.offset = address.displacement;
  built.cache = kernel.caches++;
  built.execute = selectMemory(mnemonic, built, parts[0].bytes);
  if (!built.execute)
    fail("unknown instruction '" + whole + "'");
  emit(built);
}

void Parser::arithmetic(Mnemonic &mnemonic, Instruction &built, const std::string &whole) {
  const Widths widths = widthsOf(mnemonic);
  std::vector<Operand> operands = {operand(widths.result)};
  while (accept(","))
    operands.push_back(operand(widths.source(operands.size() - 1)));
  if (operands.size() > 5)
    fail("'" + whole + "' has too many operands");

  Operand &result = operands[0];
  if (mnemonic.name == "mov" && operands.size() == 2 &&
      (result.form == Operand::Form::Vector || operands[1].form == Operand::Form::Vector)) {
    bool isUnpacked = result.form == Operand::Form::Vector;
    const std::vector<Operand> &parts = isUnpacked ? result.parts : operands[1].parts;
    built.count = static_cast<uint8_t>(parts.size());
    uint32_t part = widths.immediate / built.count;
    for (size_t index = 0; index < parts.size(); ++index) {
      built.vector[index] = parts[index].offset;
      if (parts[index].form == Operand::Form::Constant) // written with the width of the whole
        for (const Constant &known : std::vector<Constant>(kernel.constants))
          if (known.offset == parts[index].offset)
            built.vector[index] = constant(known.value, part);
    }
    built.a = built.d = isUnpacked ? operands[1].offset : result.offset;
    mnemonic.modifiers = {isUnpacked ? "unpack" : "pack", std::to_string(part), std::to_string(widths.immediate)};
  } else {
    uint32_t *places[] = {&built.d, &built.a, &built.b, &built.c, &built.e};
    for (size_t index = 0; index < operands.size(); ++index) {
      Operand &given = operands[index];
      *places[index] = given.offset;
      if (index == 0)
        continue;
      uint32_t wanted = widths.source(index - 1);
      if (given.isNegated || (wanted != given.bytes && wanted != 0)) {
        Instruction resized = built;
        resized.kind = Kind::Compute;
        Mnemonic how{"resize", {std::to_string(given.bytes), std::to_string(wanted)}};
        if (given.isNegated)
          how = {"not", {"pred"}};
        resized.a = given.offset;
        resized.d = *places[index] = newRegister(given.isNegated ? 0 : wanted);
        resized.execute = selectArithmetic(how, resized);
        emit(resized);
      }
    }
    if (result.form == Operand::Form::Pair)
      built.vector[0] = result.parts[0].offset, built.choice = 1;
    bool carries = std::find(mnemonic.modifiers.begin(), mnemonic.modifiers.end(), "cc") != mnemonic.modifiers.end() ||
                   mnemonic.name == "madc" || mnemonic.name == "addc" || mnemonic.name == "subc";
    if (carries)
      built.e =
          symbols.try_emplace("carry flag", Symbol{Symbol::Place::Register, newRegister(4), 4}).first->second.offset;
  }
  bool isWidened = result.form == Operand::Form::Register && result.bytes != widths.result && widths.result != 0 &&
                   mnemonic.modifiers.size() > 0 && mnemonic.modifiers[0] != "pack" &&
                   mnemonic.modifiers[0] != "unpack";
  if (isWidened)
    built.d = newRegister(widths.result);
  built.execute = selectArithmetic(mnemonic, built);
  if (!built.execute)
    fail("unknown instruction '" + whole + "'");
  emit(built);
  if (isWidened) {
    Instruction resized = built;
    resized.kind = Kind::Compute;
    Mnemonic how{"resize", {std::to_string(widths.result), std::to_string(result.bytes)}};
    if (widths.isSigned)
      how.modifiers.push_back("signed");
    resized.a = built.d;
    resized.d = result.offset;
    resized.execute = selectArithmetic(how, resized);
    emit(resized);
  }
}

} // namespace

Module parsePtx(std::string_view text) { return Parser(text).parse(); }

} // namespace tessera::sim
