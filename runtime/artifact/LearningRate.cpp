//===- LearningRate.cpp - the course of the learning rate --------------------===//

#include "runtime/artifact/LearningRate.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <sstream>
#include <utility>

namespace tessera {

using artifact::Curve;
using artifact::LearningRatePartT;
using artifact::LearningRateT;
using artifact::Level;

namespace {
/// A kind of schedule: how it goes on after the warm-up.
struct ScheduleKind {
  const char *name;
  Curve curve;     ///< to the end of the run; from the peak to the lowest level, if it is not constant
  bool hasPlateau; ///< the peak is kept until the last `decaySteps` steps, in which the curve is the one asked for
};
constexpr ScheduleKind kinds[] = {{"constant", Curve::Constant, false},
                                  {"linear", Curve::Linear, false},
                                  {"cosine", Curve::Cosine, false},
                                  {"inverse-sqrt", Curve::InverseSqrt, false},
                                  {"wsd", Curve::Linear, true}};

constexpr std::pair<const char *, Curve> curves[] = {
    {"linear", Curve::Linear}, {"cosine", Curve::Cosine}, {"1-sqrt", Curve::OneMinusSqrt}};

template <typename Table, typename Name> std::string namesOf(const Table &table, Name name) {
  std::string names;
  for (const auto &row : table)
    names += (names.empty() ? "" : ", ") + std::string(name(row));
  return names;
}

template <typename Table, typename Name>
auto findRow(const Table &table, const std::string &wanted, Name name) -> decltype(&table[0]) {
  for (const auto &row : table)
    if (name(row) == wanted)
      return &row;
  return nullptr;
}

std::string kindName(const ScheduleKind &kind) { return kind.name; }
std::string curveName(const std::pair<const char *, Curve> &curve) { return curve.first; }

void addPart(LearningRateT &rate, Curve curve, Level from, Level to, int64_t end, bool fromEnd) {
  auto part = std::make_unique<LearningRatePartT>();
  part->curve = curve;
  part->from = from;
  part->to = to;
  part->end = end;
  part->from_end = fromEnd;
  rate.parts.push_back(std::move(part));
}

bool isWarmup(const LearningRatePartT &part) {
  return part.curve == Curve::Linear && part.from == Level::Zero && part.to == Level::Peak && !part.from_end;
}
} // namespace

std::string scheduleKinds() { return namesOf(kinds, kindName); }
std::string decayCurves() { return namesOf(curves, curveName); }

std::string makeLearningRate(const ScheduleRequest &request, LearningRateT &made) {
  const auto *kind = findRow(kinds, request.kind, kindName);
  if (!kind)
    return "--schedule: unknown schedule '" + request.kind + "', expected one of " + scheduleKinds();
  const auto *decay = findRow(curves, request.decayCurve, curveName);
  if (!decay)
    return "--decay-curve: unknown curve '" + request.decayCurve + "', expected one of " + decayCurves();
  if (request.warmup < 0 || request.decaySteps < 0)
    return "--warmup and --decay-steps must not be negative";
  if (kind->hasPlateau != (request.decaySteps > 0))
    return kind->hasPlateau ? "--schedule " + request.kind + " needs --decay-steps: how many of the last steps decay"
                            : "--decay-steps is for a schedule with a plateau (wsd), not for " + request.kind;
  if (request.lowest != 0 && kind->curve == Curve::Constant)
    return "--min-lr is where a schedule ends, but the schedule is " + request.kind;
  if (request.lowest > request.peak) {
    std::ostringstream text;
    text << "--min-lr " << request.lowest << " is above --lr " << request.peak << ", where the schedule ends below it";
    return text.str();
  }
  made = LearningRateT();
  made.kind = kind->name;
  made.peak = request.peak;
  made.lowest = request.lowest;
  if (request.warmup > 0)
    addPart(made, Curve::Linear, Level::Zero, Level::Peak, request.warmup, false);
  if (kind->hasPlateau)
    addPart(made, Curve::Constant, Level::Peak, Level::Peak, request.decaySteps, true);
  const Curve last = kind->hasPlateau ? decay->second : kind->curve;
  addPart(made, last, Level::Peak, last == Curve::Constant ? Level::Peak : Level::Lowest, 0, true);
  return checkLearningRate(made);
}

ScheduleRequest requestOf(const LearningRateT &rate) {
  ScheduleRequest request{rate.kind, rate.peak, rate.lowest};
  if (!rate.parts.empty() && isWarmup(*rate.parts.front()))
    request.warmup = rate.parts.front()->end;
  const auto *kind = findRow(kinds, rate.kind, kindName);
  if (kind && kind->hasPlateau && rate.parts.size() >= 2) {
    request.decaySteps = rate.parts[rate.parts.size() - 2]->end;
    for (const auto &[name, curve] : curves)
      if (curve == rate.parts.back()->curve)
        request.decayCurve = name;
  }
  return request;
}

std::string checkLearningRate(const LearningRateT &rate) {
  constexpr size_t maxParts = 16;
  constexpr int64_t maxSteps = int64_t{1} << 53;
  for (double level : {rate.peak, rate.lowest})
    if (!std::isfinite(level) || level < 0)
      return "a learning rate of " + std::to_string(level);
  if (rate.parts.empty() || rate.parts.size() > maxParts)
    return std::to_string(rate.parts.size()) + " parts, expected 1 to " + std::to_string(maxParts);
  int64_t absolute = 0, toEnd = maxSteps;
  bool fromEnd = false;
  for (const auto &part : rate.parts) {
    if (part->curve < Curve::MIN || part->curve > Curve::MAX || part->from < Level::MIN || part->from > Level::MAX ||
        part->to < Level::MIN || part->to > Level::MAX)
      return "a part with an unknown curve or level";
    if (part->end < 0 || part->end > maxSteps)
      return "a part that ends at " + std::to_string(part->end);
    if ((fromEnd && !part->from_end) || part->end < (part->from_end ? 0 : absolute) ||
        (part->from_end && part->end > toEnd))
      return "parts that are not in order";
    fromEnd = part->from_end;
    (fromEnd ? toEnd : absolute) = part->end;
  }
  return "";
}

static double levelOf(const LearningRateT &rate, Level level) {
  return level == Level::Zero ? 0.0 : level == Level::Peak ? rate.peak : rate.lowest;
}

/// Within a part that goes from step `begin` to step `end`.
static double valueAt(const LearningRateT &rate, const LearningRatePartT &part, int64_t begin, int64_t end,
                      int64_t step) {
  const double a = levelOf(rate, part.from), b = levelOf(rate, part.to);
  if (part.curve == Curve::InverseSqrt) {
    const auto first = static_cast<double>(std::max<int64_t>(begin, 1));
    return std::max(b, a * std::sqrt(first / static_cast<double>(std::max<int64_t>(step, 1))));
  }
  if (part.curve == Curve::Constant || end <= begin)
    return a;
  const auto steps = static_cast<double>(end - begin), done = static_cast<double>(std::min(step, end) - begin);
  switch (part.curve) {
  case Curve::Linear:
    return (a * (steps - done) + b * done) / steps;
  case Curve::Cosine:
    return b + 0.5 * (a - b) * (1 + std::cos(std::numbers::pi * (done / steps)));
  case Curve::OneMinusSqrt:
    return b + (a - b) * (1 - std::sqrt(done / steps));
  case Curve::Constant:
  case Curve::InverseSqrt:
    break;
  }
  return a;
}

double learningRateAt(const LearningRateT &rate, int64_t step, int64_t totalSteps) {
  int64_t begin = 0;
  for (const auto &part : rate.parts) {
    const int64_t end = std::max(begin, part->from_end ? totalSteps - part->end : part->end);
    if (step < end || part == rate.parts.back())
      return valueAt(rate, *part, begin, end, step);
    begin = end;
  }
  return rate.peak;
}

std::string describeParts(const LearningRateT &rate) {
  static constexpr const char *curveNames[] = {"constant", "linear", "cosine", "inverse-sqrt", "1-sqrt"};
  static constexpr const char *levelNames[] = {"0", "peak", "lowest"};
  std::string text;
  for (const auto &part : rate.parts) {
    text += text.empty() ? "" : "; ";
    text +=
        std::string(curveNames[static_cast<size_t>(part->curve)]) + " " + levelNames[static_cast<size_t>(part->from)];
    if (part->curve != Curve::Constant)
      text += std::string(" to ") + levelNames[static_cast<size_t>(part->to)];
    if (!part->from_end)
      text += " before step " + std::to_string(part->end);
    else
      text += part->end > 0 ? " until " + std::to_string(part->end) + " steps before the end" : " until the end";
  }
  return text;
}

} // namespace tessera
