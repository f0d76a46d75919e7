//===- PtxRun.cpp - runs the blocks of a kernel -----------------------------===//

#include "Ptx.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace tessera::sim {
namespace {

constexpr int launchTimeout = 702, launchFailed = 719;
/// Of one warp in one block; what needs more does not end.
constexpr uint64_t mostSteps = uint64_t{1} << 32;

class Runner {
public:
  Runner(const Launch &launch, const AddressSpace &memory, std::mt19937_64 &random)
      : launch(launch), kernel(*launch.kernel), random(random) {
    threads = launch.block[0] * launch.block[1] * launch.block[2];
    block.launch = &launch;
    block.memory = &memory;
    block.shared.resize(kernel.sharedBytes + launch.dynamicShared);
    block.windows.resize(kernel.caches);
    if (launch.findsRaces)
      block.shadows.resize(block.shared.size());
    warps.resize((threads + warpSize - 1) / warpSize);
    // Registers begin at cache lines, of which a value of all lanes needs one or two.
    size_t pitch = (kernel.registerBytes + 127) / 64 * 64;
    registers.resize(pitch * warps.size() + 64);
    auto *base = reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(registers.data()) + 63) / 64 * 64);
    locals.resize(static_cast<size_t>(kernel.localBytes) * warpSize * warps.size());
    for (size_t index = 0; index < warps.size(); ++index) {
      Warp &warp = warps[index];
      warp.block = &block;
      warp.registers = base + pitch * index;
      warp.locals = locals.data() + static_cast<size_t>(kernel.localBytes) * warpSize * index;
      warp.first = static_cast<uint32_t>(index) * warpSize;
      fillConstants(warp);
    }
  }

  void run() {
    std::vector<uint64_t> order(static_cast<uint64_t>(launch.grid[0]) * launch.grid[1] * launch.grid[2]);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    for (uint64_t index : order) {
      block.index[0] = static_cast<uint32_t>(index % launch.grid[0]);
      block.index[1] = static_cast<uint32_t>(index / launch.grid[0] % launch.grid[1]);
      block.index[2] = static_cast<uint32_t>(index / launch.grid[0] / launch.grid[1]);
      runBlock();
    }
  }

private:
  static void fill(Warp &warp, uint32_t offset, uint32_t bytes, uint64_t value) {
    for (int lane = 0; lane < warpSize; ++lane)
      std::memcpy(warp.registers + offset + static_cast<size_t>(lane) * bytes, &value, bytes);
  }
  void fillConstants(Warp &warp) {
    for (const Constant &constant : kernel.constants)
      if (constant.bytes == 0) // a predicate, of all lanes
        warp.predicate(constant.offset) = constant.value != 0 ? everyLane : 0;
      else
        fill(warp, constant.offset, constant.bytes,
             constant.value + (constant.variable >= 0 ? launch.variableAddresses[constant.variable] : 0));
    for (auto [special, offset] : kernel.specials)
      for (uint32_t lane = 0; lane < warpSize; ++lane) {
        uint32_t thread = warp.first + lane, x = thread % launch.block[0],
                 y = thread / launch.block[0] % launch.block[1], z = thread / launch.block[0] / launch.block[1];
        uint32_t values[] = {x,   y, z, launch.block[0], launch.block[1], launch.block[2],
                             0,   0, 0, launch.grid[0],  launch.grid[1],  launch.grid[2],
                             lane};
        warp.at<uint32_t>(offset)[lane] = values[static_cast<int>(special)];
      }
  }

  void runBlock() {
    std::fill(block.shared.begin(), block.shared.end(), std::byte{0xff}); // what nobody has written is NaN
    block.epoch += 2;
    for (Warp &warp : warps) {
      uint32_t count = std::min<uint32_t>(warpSize, threads - warp.first);
      warp.alive = count == warpSize ? everyLane : (1U << count) - 1;
      warp.groups.assign(1, {0, warp.alive, false});
      warp.atBarrier = false;
      warp.copies.clear();
      for (auto [special, offset] : kernel.specials)
        if (special >= Special::CtaX && special <= Special::CtaZ)
          fill(warp, offset, 4, block.index[static_cast<int>(special) - static_cast<int>(Special::CtaX)]);
    }
    std::vector<size_t> order(warps.size());
    std::iota(order.begin(), order.end(), 0);
    while (true) {
      std::shuffle(order.begin(), order.end(), random);
      for (size_t index : order)
        if (warps[index].alive)
          advance(warps[index]);
      bool anyAlive = false;
      for (Warp &warp : warps) {
        anyAlive |= warp.alive != 0;
        warp.atBarrier = false;
      }
      if (!anyAlive)
        return;
      ++block.epoch;
    }
  }

  /// Until all threads of the warp have ended or wait at a barrier.
  void advance(Warp &warp) {
    uint64_t steps = 0;
    while (warp.alive && !warp.atBarrier) {
      merge(warp);
      size_t chosen = warp.groups.size();
      for (size_t index = 0; index < warp.groups.size(); ++index)
        if (!warp.groups[index].waits &&
            (chosen == warp.groups.size() || warp.groups[index].at < warp.groups[chosen].at))
          chosen = index;
      if (chosen == warp.groups.size())
        warp.fail(launchFailed, "the threads of a warp wait at different places for each other",
                  kernel.code[warp.groups[0].at]);
      uint32_t limit = ~0u;
      for (size_t index = 0; index < warp.groups.size(); ++index)
        if (index != chosen)
          limit = std::min(limit, warp.groups[index].at > warp.groups[chosen].at ? warp.groups[index].at : ~0u);
      runGroup(warp, chosen, limit, steps);
    }
  }

  static void merge(Warp &warp) {
    auto &groups = warp.groups;
    for (size_t index = 0; index < groups.size(); ++index)
      for (size_t other = groups.size() - 1; other > index; --other)
        if (groups[other].at == groups[index].at) {
          groups[index].lanes |= groups[other].lanes;
          groups[index].waits = false;
          groups.erase(groups.begin() + static_cast<ptrdiff_t>(other));
        }
    std::erase_if(groups, [](const Group &group) { return group.lanes == 0; });
  }

  /// Until the group ends, splits, waits, or comes to where another one is.
  void runGroup(Warp &warp, size_t index, uint32_t limit, uint64_t &steps) {
    uint32_t at = warp.groups[index].at, lanes = warp.groups[index].lanes;
    const Instruction *code = kernel.code.data();
    while (true) {
      const Instruction &instruction = code[at];
      uint32_t taken = lanes;
      if (instruction.isGuarded) {
        uint32_t guard = warp.predicate(instruction.guard);
        taken &= instruction.isGuardNegated ? ~guard : guard;
      }
      if (++steps > mostSteps)
        warp.fail(launchTimeout, "the kernel does not end", instruction);
      switch (instruction.kind) {
      case Kind::Compute:
        if (taken)
          instruction.execute(warp, instruction, taken);
        ++at;
        break;
      case Kind::Branch:
        if (taken == lanes) {
          at = instruction.target;
          if (at <= limit && warp.groups.size() == 1)
            continue;
          warp.groups[index].at = at;
          return;
        }
        ++at;
        if (taken) {
          warp.groups[index] = {at, lanes & ~taken, false};
          warp.groups.push_back({instruction.target, taken, false});
          return;
        }
        break;
      case Kind::Return:
        warp.alive &= ~taken;
        warp.groups[index] = {at + 1, lanes & ~taken, false};
        if (lanes == taken)
          warp.groups.erase(warp.groups.begin() + static_cast<ptrdiff_t>(index));
        for (Group &group : warp.groups)
          group.waits = false;
        return;
      case Kind::Barrier:
      case Kind::Together:
        if (lanes != warp.alive) {
          warp.groups[index] = {at, lanes, true};
          return;
        }
        if (taken != lanes)
          warp.fail(launchFailed, "only some threads of a warp take part", instruction);
        ++at;
        if (instruction.kind == Kind::Together) {
          instruction.execute(warp, instruction, taken);
          break;
        }
        warp.groups[index] = {at, lanes, false};
        warp.atBarrier = true;
        return;
      }
      if (at >= limit) {
        warp.groups[index].at = at;
        return;
      }
    }
  }

  const Launch &launch;
  const Kernel &kernel;
  std::mt19937_64 &random;
  uint32_t threads = 0;
  Block block;
  std::vector<Warp> warps;
  std::vector<std::byte> registers, locals;
};

} // namespace

void runKernel(const Launch &launch, const AddressSpace &memory, std::mt19937_64 &random) {
  Runner(launch, memory, random).run();
}

} // namespace tessera::sim
