//===- Communication.cpp - collectives by size, alone and beside computation -----------===//

#include "tools/tessera-calibrate/Communication.h"

#include <atomic>
#include <numeric>
#include <thread>

namespace tessera::calibrate {

namespace {
using artifact::CollectiveKind;

class CommunicationMeasurement {
public:
  CommunicationMeasurement(int rank, const Options &options, Lockstep &lockstep, const cpu::Team &team,
                           Communicator &communicator)
      : rank(rank), lockstep(lockstep), team(team), communicator(communicator), group(options.ranks),
        largest(options.quick ? 1 << 16 : 1 << 24), input(static_cast<size_t>(largest), 0.5F),
        output(static_cast<size_t>(largest)) {
    std::iota(group.begin(), group.end(), 0);
  }

  void collectives(Measurements &result) {
    for (int kind = 0; kind < 5; ++kind) {
      CollectiveSample &sample = result.collectives[static_cast<size_t>(kind)];
      const auto which = static_cast<CollectiveKind>(kind);
      sample.latency = lockstep.time(rank, [&] { run(which, lockstep.numRanks()); });
      for (int64_t whole = 1 << 12; whole <= largest; whole *= 4) {
        const double seconds = lockstep.time(rank, [&] { run(which, whole); });
        addRate(sample.bandwidth, wireBytes(which, whole), seconds, sample.latency, whole * 4 > largest);
      }
    }
  }

  /// A loop of kernels on the rank's team, and a loop of gathers on another thread, alone and together.
  void overlap(Measurements &result) {
    const int64_t elements = largest / 16, whole = largest / 4;
    std::vector<float> values(static_cast<size_t>(elements), 1.0F);
    auto kernel = [&] {
      float *data = values.data();
      team.run(elements, 1024, [data](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          for (int repeat = 0; repeat < 16; ++repeat)
            data[i] = data[i] * 0.999F + 0.001F;
      });
    };
    const double computeOnce = lockstep.time(rank, kernel);
    const double gatherOnce = lockstep.time(rank, [&] { run(CollectiveKind::AllGather, whole); });
    const auto kernels = static_cast<int64_t>(std::max(4.0, 0.05 / computeOnce));
    const auto gathers = static_cast<int64_t>(std::max(1.0, static_cast<double>(kernels) * computeOnce / gatherOnce));
    std::vector<double> computeRates, gatherRates;
    for (int repeat = 0; repeat < 5; ++repeat) {
      double gatherSeconds = 0;
      lockstep.meet();
      const double begin = now();
      std::thread stream([&] {
        for (int64_t i = 0; i < gathers; ++i)
          run(CollectiveKind::AllGather, whole);
        gatherSeconds = now() - begin;
      });
      for (int64_t i = 0; i < kernels; ++i)
        kernel();
      double computeSeconds = now() - begin;
      stream.join();
      computeSeconds = lockstep.agree(rank, computeSeconds);
      gatherSeconds = lockstep.agree(rank, gatherSeconds);
      // Until the first of the two ends both were under way; what is left of the other then runs alone.
      const double computeAlone = static_cast<double>(kernels) * computeOnce,
                   gatherAlone = static_cast<double>(gathers) * gatherOnce,
                   together = std::min(computeSeconds, gatherSeconds);
      computeRates.push_back((computeAlone - (computeSeconds - together)) / together);
      gatherRates.push_back((gatherAlone - (gatherSeconds - together)) / together);
    }
    result.overlapCompute = std::clamp(median(computeRates), 0.05, 1.0);
    result.overlapCommunication = std::clamp(median(gatherRates), 0.05, 1.0);
  }

  Status takeFailure() { return failure; }

private:
  /// `whole`: elements of the gathered result, or of one rank's operand. A multiple of the number of ranks is taken.
  void run(CollectiveKind kind, int64_t whole) {
    const int64_t ranks = lockstep.numRanks();
    CollectiveCall call;
    call.kind = kind;
    call.group = &group;
    call.input = input.data();
    call.output = output.data();
    call.elements = whole / ranks * (kind == CollectiveKind::AllGather ? 1 : ranks);
    call.shift = 1;
    call.channel = 1;
    call.info.label = "calibration";
    if (Status status = communicator.run(call); !status.isOk() && failure.isOk())
      failure = status;
  }

  double wireBytes(CollectiveKind kind, int64_t whole) const {
    const auto ranks = static_cast<double>(lockstep.numRanks());
    const double bytes = 4 * static_cast<double>(whole), others = (ranks - 1) / ranks;
    if (kind == CollectiveKind::AllReduce)
      return 2 * others * bytes;
    return kind == CollectiveKind::Permute ? bytes : others * bytes;
  }

  const int rank;
  Lockstep &lockstep;
  const cpu::Team &team;
  Communicator &communicator;
  std::vector<int> group;
  const int64_t largest; ///< elements
  std::vector<float> input, output;
  Status failure;
};
} // namespace

Status measureCommunication(int rank, const Options &options, Lockstep &lockstep, const cpu::Team &team,
                            Communicator &communicator, Measurements &result) {
  if (options.ranks == 1)
    return Status::ok();
  CommunicationMeasurement measurement(rank, options, lockstep, team, communicator);
  measurement.collectives(result);
  if (options.cpuTime) {
    // Seconds of computing say nothing about waiting. Twice the threads: those of computation and of communication.
    const bool shared = 2 * options.ranks * options.threads > static_cast<int>(std::thread::hardware_concurrency());
    result.overlapCompute = result.overlapCommunication = shared ? 0.5 : 1;
  } else {
    measurement.overlap(result);
  }
  return measurement.takeFailure();
}

} // namespace tessera::calibrate
