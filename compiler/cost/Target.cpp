//===- Target.cpp - rates of a machine, interpolated ----------------------===//

#include "compiler/cost/Target.h"

#include "compiler/dialect/train/Float8.h"

#include "mlir/IR/BuiltinTypes.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace tessera::cost {

double Curve::at(double x) const {
  if (x <= points.front().first)
    return points.front().second;
  if (x >= points.back().first)
    return points.back().second;
  auto right =
      std::upper_bound(points.begin(), points.end(), x, [](double at, const auto &point) { return at < point.first; });
  auto left = std::prev(right);
  const double part = std::log(x / left->first) / std::log(right->first / left->first);
  return left->second * std::pow(right->second / left->second, part);
}

StringRef dtypeName(Type elementType) {
  if (elementType.isBF16())
    return "bf16";
  if (elementType.isF16())
    return "fp16";
  if (train::isFloat8(elementType))
    return "fp8";
  return "fp32";
}

double Target::peak(Type elementType) const {
  auto entry = peakFlops.find(dtypeName(elementType));
  return (entry == peakFlops.end() ? peakFlops.find("fp32") : entry)->second;
}

double Target::gemmEfficiency(Type elementType, double m, double n, double k) const {
  auto entry = gemm.find(dtypeName(elementType));
  if (entry == gemm.end())
    entry = gemm.find("fp32");
  // Inverse-distance weights in the space of (log m, log n, log k): exact at the points, smooth between them.
  double weights = 0, sum = 0;
  for (const GemmPoint &point : entry->second) {
    const double dm = std::log2(m / point.m), dn = std::log2(n / point.n), dk = std::log2(k / point.k);
    const double squared = dm * dm + dn * dn + dk * dk;
    if (squared < 1e-6)
      return point.efficiency;
    const double weight = 1 / (squared * squared);
    weights += weight;
    sum += weight * point.efficiency;
  }
  return sum / weights;
}

} // namespace tessera::cost
