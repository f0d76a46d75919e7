//===- PtxMatrix.cpp - matrices of a warp, and copies nobody waits for ------===//
//
// mma.sync.m16n8k16, ldmatrix and cp.async, by the layouts of PTX ISA 9.1, sections 9.7.14.5 and 9.7.9.25. The order in
// which a tensor core adds up is not documented; here it is that of k, rounded to f32 after each product.
//
//===----------------------------------------------------------------------===//

#include "PtxLanes.h"
#include "PtxParser.h"

#include <array>
#include <cstring>

namespace tessera::sim {
namespace {

float widenF16(uint16_t bits) {
  static const std::vector<float> all = [] {
    std::vector<float> made(1 << 16);
    for (uint32_t each = 0; each < made.size(); ++each)
      made[each] = F16::widen(static_cast<uint16_t>(each));
    return made;
  }();
  return all[bits];
}

/// i.registers: four of d, four of a, two of b, four of c.
template <auto Widen> void multiply(Warp &warp, const Instruction &i, uint32_t) {
  float a[16][16], b[16][8], c[16][8];
  for (int lane = 0; lane < warpSize; ++lane) {
    const int group = lane / 4, column = lane % 4 * 2;
    auto pair = [&](int index, float &first, float &second) {
      const uint32_t bits = warp.at<uint32_t>(i.registers[index])[lane];
      first = Widen(static_cast<uint16_t>(bits)), second = Widen(static_cast<uint16_t>(bits >> 16));
    };
    for (int part = 0; part < 4; ++part) {
      float *place = &a[group + part % 2 * 8][column + part / 2 * 8];
      pair(4 + part, place[0], place[1]);
    }
    for (int part = 0; part < 2; ++part)
      pair(8 + part, b[column + part * 8][group], b[column + part * 8 + 1][group]);
    for (int part = 0; part < 4; ++part)
      c[group + part / 2 * 8][column + part % 2] = warp.at<float>(i.registers[10 + part])[lane];
  }
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 16; ++k)
      for (int column = 0; column < 8; ++column)
        c[row][column] += a[row][k] * b[k][column];
  for (int lane = 0; lane < warpSize; ++lane)
    for (int part = 0; part < 4; ++part)
      warp.at<float>(i.registers[part])[lane] = c[lane / 4 + part / 2 * 8][lane % 4 * 2 + part % 2];
}

/// i.count matrices of 8 x 8, whose rows the addresses of eight lanes each name.
template <bool IsTransposed> void loadMatrices(Warp &warp, const Instruction &i, uint32_t) {
  std::array<std::array<uint16_t, 8>, warpSize> rows;
  for (int lane = 0; lane < 8 * i.count; ++lane) {
    const uint64_t address = warp.address(i, lane);
    if (address % 16 != 0)
      warp.fail(misaligned, "a row of a matrix at " + std::to_string(address) + " is no multiple of 16", i);
    std::memcpy(rows[lane].data(), warp.shared(address, 16, i, lane, false), 16);
  }
  for (int matrix = 0; matrix < i.count; ++matrix)
    for (int lane = 0; lane < warpSize; ++lane) {
      const int row = lane / 4, column = lane % 4 * 2;
      auto element = [&](int offset) -> uint32_t {
        return IsTransposed ? rows[8 * matrix + column + offset][row] : rows[8 * matrix + row][column + offset];
      };
      warp.at<uint32_t>(i.registers[matrix])[lane] = element(0) | element(1) << 16;
    }
}

/// The bytes arrive when they are waited for; until then the place is NaN. i.count bytes, of which `b` says how many
/// are read; the rest is 0.
void copyAsync(Warp &warp, const Instruction &i, uint32_t lanes) {
  for (; lanes; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const uint64_t to = i.choice ? warp.at<uint64_t>(i.d)[lane] : warp.at<uint32_t>(i.d)[lane];
    const uint64_t from = warp.address(i, lane);
    const uint32_t bytes = i.count, read = warp.at<uint32_t>(i.b)[lane];
    const uint64_t place = to + i.vector[0];
    if (place % bytes != 0 || from % bytes != 0)
      warp.fail(misaligned, "a copy of " + std::to_string(bytes) + " bytes that is not aligned", i);
    if (read > bytes)
      warp.fail(illegalAddress, "a copy reads " + std::to_string(read) + " of " + std::to_string(bytes) + " bytes", i);
    std::memset(warp.shared(place, bytes, i, lane, true), 0xff, bytes);
    const std::byte *source = read > 0 ? warp.global(from, read, i) : nullptr;
    warp.copies.push_back({lane, warp.committed[lane], place, bytes, read, source});
  }
}
void commit(Warp &warp, const Instruction &, uint32_t lanes) {
  forLanes(lanes, [&](int lane) { ++warp.committed[lane]; });
}
/// All but the last i.b groups of each thread arrive.
void await(Warp &warp, const Instruction &i, uint32_t lanes) {
  std::erase_if(warp.copies, [&](const AsyncCopy &copy) {
    if (!(lanes >> copy.lane & 1) || copy.group + i.b >= warp.committed[copy.lane])
      return false;
    std::byte *to = warp.shared(copy.to, copy.bytes, i, copy.lane, true);
    std::memset(to, 0, copy.bytes);
    if (copy.read > 0)
      std::memcpy(to, copy.from, copy.read);
    return true;
  });
}

} // namespace

Execute selectMatrix(Mnemonic &mnemonic, Instruction &instruction) {
  auto take = [&](std::initializer_list<const char *> all) {
    return std::all_of(all.begin(), all.end(), [&](const char *each) { return mnemonic.take(each); });
  };
  if (mnemonic.name == "mma") {
    if (instruction.registers.size() != 14 || !take({"sync", "aligned", "m16n8k16", "row", "col", "f32", "f32"}))
      return nullptr;
    return take({"bf16", "bf16"}) ? multiply<Bf16::widen> : take({"f16", "f16"}) ? multiply<widenF16> : nullptr;
  }
  if (mnemonic.name == "ldmatrix") {
    const size_t count = instruction.registers.size();
    instruction.count = static_cast<uint8_t>(count);
    if ((count != 1 && count != 2 && count != 4) || !mnemonic.take("x" + std::to_string(count)) ||
        !take({"sync", "aligned", "m8n8", "shared", "b16"}))
      return nullptr;
    return mnemonic.take("trans") ? loadMatrices<true> : loadMatrices<false>;
  }
  if (mnemonic.name != "cp" || !mnemonic.take("async"))
    return nullptr;
  if (mnemonic.take("commit_group"))
    return commit;
  if (mnemonic.take("wait_group"))
    return await;
  const uint32_t bytes = instruction.count;
  const bool isKnown =
      mnemonic.take("cg") ? bytes == 16 : mnemonic.take("ca") && (bytes == 4 || bytes == 8 || bytes == 16);
  return isKnown && take({"shared", "global"}) ? copyAsync : nullptr;
}

void Parser::matrix(Mnemonic &mnemonic, Instruction &built, const std::string &whole) {
  built.kind = Kind::Together;
  do {
    Operand given = operand(4);
    if (given.form == Operand::Form::Address) {
      built.a = given.offset;
      built.hasWideAddress = given.bytes == 8;
      built.offset = given.displacement;
    }
    for (const Operand &part : given.parts) {
      if (part.bytes != 4)
        fail("'" + whole + "' of registers that have not 32 bits");
      built.registers.push_back(part.offset);
    }
  } while (accept(","));
  built.execute = selectMatrix(mnemonic, built);
  if (!built.execute)
    fail("unknown instruction '" + whole + "'");
  emit(built);
}

/// cp.async: [to], [from], bytes and how many of them are read; or of groups.
void Parser::copy(Mnemonic &mnemonic, Instruction &built, const std::string &whole) {
  if (accept("[")) {
    --at;
    Operand to = operand(8);
    expect(",");
    Operand from = operand(8);
    expect(",");
    built.d = to.offset;
    built.choice = to.bytes == 8;
    built.vector[0] = static_cast<uint32_t>(to.displacement);
    built.a = from.offset;
    built.hasWideAddress = from.bytes == 8;
    built.offset = from.displacement;
    built.count = static_cast<uint8_t>(integer());
    built.b = accept(",") ? operand(4).offset : constant(built.count, 4);
    built.cache = kernel.caches++;
  } else if (peek() != ";") {
    built.b = static_cast<uint32_t>(integer());
  }
  built.execute = selectMatrix(mnemonic, built);
  if (!built.execute)
    fail("unknown instruction '" + whole + "'");
  emit(built);
}

} // namespace tessera::sim
