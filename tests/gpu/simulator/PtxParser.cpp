//===- PtxParser.cpp - instructions of PTX, decoded --------------------------===//

#include "PtxParser.h"

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
      {"pred", 0},  {"b8", 1},   {"u8", 1},  {"s8", 1},  {"b16", 2}, {"u16", 2},    {"s16", 2},
      {"f16", 2},   {"bf16", 2}, {"b32", 4}, {"u32", 4}, {"s32", 4}, {"f32", 4},    {"bf16x2", 4},
      {"f16x2", 4}, {"b64", 8},  {"u64", 8}, {"s64", 8}, {"f64", 8}, {"e4m3x2", 2}, {"e5m2x2", 2}};
  auto found = widths.find(type);
  return found == widths.end() ? -1 : found->second;
}

namespace {

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
  bool isNarrow = last == 2 && types.front() == "f32";
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
  } else if (isNarrow) { // f32 of bf16 or f16 factors, or of a bf16 or f16 and an f32
    widths.result = 4;
    widths.sources = mnemonic.name == "fma" ? std::vector<uint32_t>{2, 2, 4} : std::vector<uint32_t>{2, 4};
  } else if (isWide) {
    widths.result = 2 * last;
    widths.sources = {last, last, 2 * last};
  }
  return widths;
}

} // namespace

Operand Parser::named(std::string_view name, uint32_t bytes) {
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

Operand Parser::operand(uint32_t bytes) {
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

/// A constant operand with another width.
Operand Parser::ofWidth(Operand operand, uint32_t bytes) {
  auto known = std::find_if(kernel.constants.begin(), kernel.constants.end(),
                            [&](const Constant &each) { return each.offset == operand.offset; });
  if (operand.bytes != bytes && known != kernel.constants.end()) {
    operand.offset = constant(known->value, bytes);
    operand.bytes = bytes;
  }
  return operand;
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
  } else if (name == "mma" || name == "ldmatrix") {
    matrix(mnemonic, built, whole);
  } else if (name == "cp") {
    copy(mnemonic, built, whole);
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
  auto first = std::find_if(parts.begin(), parts.end(),
                            [](const Operand &part) { return part.form != Operand::Form::Constant; });
  const uint32_t width = first == parts.end() ? std::max(bytes, 2U) : first->bytes; // no register is narrower
  for (size_t index = 0; index < parts.size(); ++index) {
    if (parts[index].form == Operand::Form::Constant)
      parts[index] = ofWidth(parts[index], width);
    else if (parts[index].bytes != width)
      fail("registers of several widths in a vector");
    built.vector[index] = parts[index].offset;
  }
  built.a = address.offset;
  built.hasWideAddress = address.bytes == 8;
  built.offset = address.displacement;
  built.cache = kernel.caches++;
  built.execute = selectMemory(mnemonic, built, width);
  if (!built.execute)
    fail("unknown instruction '" + whole + "'");
  emit(built);
}

void Parser::arithmetic(Mnemonic &mnemonic, Instruction &built, const std::string &whole) {
  const Widths widths = widthsOf(mnemonic);
  if (peek() == ";")
    fail("unknown instruction '" + whole + "'");
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
        built.vector[index] = ofWidth(parts[index], part).offset;
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

Module parsePtx(std::string_view text) { return Parser(text).parse(); }

} // namespace tessera::sim
