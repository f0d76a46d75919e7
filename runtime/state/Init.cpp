//===- Init.cpp - seeded initial values ----------------------------------------===//
//
// Logarithm, sine and cosine are polynomials written out here instead of calls of libm: their results are then the same
// on every machine, and the compiler vectorises them. The file is built without contraction to fused multiply-adds.
//
//===----------------------------------------------------------------------===//

#include "runtime/state/Init.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {

PhiloxKey parameterKey(uint64_t seed, std::string_view name) {
  uint64_t hash = XXH64(name.data(), name.size(), seed);
  return {static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32)};
}

static constexpr int64_t blocksPerChunk = 256; // of four elements

/// Natural logarithm of x in [2^-24, 1]; the polynomial is Cephes' logf (relative error 1e-7).
static inline float logarithm(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  float exponent = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126);
  float m = std::bit_cast<float>((bits & 0x007fffffu) | 0x3f000000u); // [0.5, 1)
  bool low = m < 0.707106781186547524f;
  exponent = low ? exponent - 1.0f : exponent;
  m = low ? m + m - 1.0f : m - 1.0f;
  float z = m * m;
  float y = 7.0376836292e-2f;
  y = y * m - 1.1514610310e-1f;
  y = y * m + 1.1676998740e-1f;
  y = y * m - 1.2420140846e-1f;
  y = y * m + 1.4249322787e-1f;
  y = y * m - 1.6668057665e-1f;
  y = y * m + 2.0000714765e-1f;
  y = y * m - 2.4999993993e-1f;
  y = y * m + 3.3333331174e-1f;
  y = y * m * z - 2.12194440e-4f * exponent - 0.5f * z;
  return m + y + 0.693359375f * exponent;
}

/// Two standard normal values from two random words (Box-Muller).
static inline void boxMuller(uint32_t radiusBits, uint32_t angleBits, float &first, float &second) {
  float u = (static_cast<float>(radiusBits >> 8) + 1.0f) * 0x1p-24f; // (0, 1]
  float radius = std::sqrt(-2.0f * logarithm(u));
  // A full turn is 2^32: the nearest quarter turn, and the rest in [-pi/4, pi/4).
  uint32_t quarter = (angleBits + 0x20000000u) >> 30;
  float x = static_cast<float>(static_cast<int32_t>(angleBits - (quarter << 30))) * 1.46291807927e-9f; // pi / 2^31
  float z = x * x;
  float sine = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * x + x;
  float cosine =
      ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.0f;
  float s = quarter & 1 ? cosine : sine, c = quarter & 1 ? sine : cosine;
  first = radius * ((quarter + 1) & 2 ? -c : c);
  second = radius * (quarter & 2 ? -s : s);
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define TESSERA_WIDEST_VECTORS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TESSERA_WIDEST_VECTORS
#endif

/// Values of blocks [block, block + count), four each. The processor's widest vectors give the same values: nothing is
/// contracted or reassociated.
TESSERA_WIDEST_VECTORS
static void randomBlocks(const InitSpec &init, PhiloxKey key, int64_t block, int64_t count, float *values) {
  uint32_t words[4][blocksPerChunk];
  for (int64_t i = 0; i < count; ++i) {
    auto random = philox(static_cast<uint64_t>(block + i), key);
    for (int lane = 0; lane < 4; ++lane)
      words[lane][i] = random[lane];
  }
  auto a = static_cast<float>(init.a), b = static_cast<float>(init.b);
  if (init.kind == artifact::InitKind::Normal) {
    float lanes[4][blocksPerChunk];
    for (int64_t i = 0; i < count; ++i)
      boxMuller(words[0][i], words[1][i], lanes[0][i], lanes[1][i]);
    for (int64_t i = 0; i < count; ++i)
      boxMuller(words[2][i], words[3][i], lanes[2][i], lanes[3][i]);
    for (int64_t i = 0; i < count; ++i)
      for (int lane = 0; lane < 4; ++lane)
        values[4 * i + lane] = a + b * lanes[lane][i];
    return;
  }
  float largest = std::nextafter(b, a), width = b - a;
  for (int64_t i = 0; i < count; ++i)
    for (int lane = 0; lane < 4; ++lane) {
      float value = a + width * (static_cast<float>(words[lane][i] >> 8) * 0x1p-24f);
      values[4 * i + lane] = value >= b ? largest : value;
    }
}

void initialValues(const InitSpec &init, PhiloxKey key, int64_t begin, int64_t end, float *values) {
  if (init.kind == artifact::InitKind::Constant) {
    std::fill(values, values + (end - begin), static_cast<float>(init.a));
    return;
  }
  int64_t firstBlock = begin / 4, numBlocks = (end + 3) / 4 - firstBlock;
  int64_t numChunks = (numBlocks + blocksPerChunk - 1) / blocksPerChunk;
#pragma omp parallel for schedule(static) if (numChunks > 64)
  for (int64_t chunk = 0; chunk < numChunks; ++chunk) {
    int64_t block = firstBlock + chunk * blocksPerChunk;
    int64_t count = std::min(blocksPerChunk, firstBlock + numBlocks - block);
    float chunkValues[4 * blocksPerChunk];
    randomBlocks(init, key, block, count, chunkValues);
    int64_t from = std::max(begin, 4 * block), to = std::min(end, 4 * (block + count));
    std::copy(chunkValues + (from - 4 * block), chunkValues + (to - 4 * block), values + (from - begin));
  }
}

/// Integers begin with one number.
static Status initialiseIntegers(const StateView &view, const ParameterSegment &segment) {
  constexpr double largest = 0x1p53; // beyond, doubles skip some
  const InitSpec &init = *segment.init;
  if (init.kind != artifact::InitKind::Constant || !(std::abs(init.a) <= largest) || init.a != std::trunc(init.a))
    return TESSERA_ERROR(InvalidArgument, "'" + segment.name + "' holds integers, which begin with one integer each");
  const std::vector<int64_t> values(segment.elements, static_cast<int64_t>(init.a));
  auto [begin, end] = overlap(view, segment);
  return convertElements(DataType::I64, values.data(), view.dtype,
                         view.data + (begin - view.begin) * elementBytes(view.dtype), end - begin);
}

Status initialiseSegment(const StateView &view, const ParameterSegment &segment, uint64_t seed) {
  if (isInteger(view.dtype))
    return initialiseIntegers(view, segment);
  auto [begin, end] = overlap(view, segment);
  const PhiloxKey key = parameterKey(seed, segment.name);
  std::vector<float> values;
  return segment.forEachRun(begin, end, [&](const ElementRun &run) -> Status {
    const int64_t first = run.inParameter, last = run.inParameter + run.count;
    uint8_t *target = view.data + (run.inUnit - view.begin) * elementBytes(view.dtype);
    if (view.dtype == DataType::F32) {
      initialValues(*segment.init, key, first, last, reinterpret_cast<float *>(target));
      return Status::ok();
    }
    values.resize(run.count);
    initialValues(*segment.init, key, first, last, values.data());
    return roundElements(values.data(), view.dtype, target, run.count).withContext("parameter '" + segment.name + "'");
  });
}

/// The rank's threads share the work: optimizer states are large, and a run waits for this before its first step.
static void zero(uint8_t *data, size_t bytes) {
  constexpr size_t block = size_t{1} << 20;
  const auto blocks = static_cast<int64_t>((bytes + block - 1) / block);
#pragma omp parallel for schedule(static) if (blocks > 4)
  for (int64_t index = 0; index < blocks; ++index) {
    size_t begin = static_cast<size_t>(index) * block;
    std::memset(data + begin, 0, std::min(block, bytes - begin));
  }
}

void clearState(const RankState &views) {
  for (const StateView &view : views) {
    if (!view.kind.isOfModel()) {
      zero(view.data, view.localBytes());
      continue;
    }
    auto clear = [&](int64_t begin, int64_t end) {
      begin = std::max(begin, view.begin);
      end = std::min(end, view.end);
      if (begin < end)
        std::memset(view.data + (begin - view.begin) * elementBytes(view.dtype), 0,
                    (end - begin) * elementBytes(view.dtype));
    };
    int64_t covered = 0;
    for (const ParameterSegment &segment : view.segments) {
      clear(covered, segment.offset);
      covered = segment.end();
    }
    clear(covered, view.elements);
  }
}

Status initialiseState(const RankState &views, uint64_t seed, bool isZeroed) {
  std::string missing;
  for (const StateView &view : views)
    if (view.kind.isOfModel())
      for (const ParameterSegment *parameter : parametersOf(view))
        if (!parameter->init)
          missing += (missing.empty() ? "'" : ", '") + parameter->name + "'";
  if (!missing.empty())
    return TESSERA_ERROR(
        InvalidArgument,
        "these parameters have no rule for initial values (tessera-compile --init) and need weights: " + missing);
  if (!isZeroed)
    clearState(views);
  for (const StateView &view : views)
    if (view.kind.isOfModel())
      for (const ParameterSegment &segment : view.segments)
        TESSERA_RETURN_IF_ERROR(initialiseSegment(view, segment, seed));
  return startAverages(views);
}

Status startAverages(const RankState &views) {
  for (const StateView &average : views) {
    if (average.kind != StateRole::Average)
      continue;
    const auto parameter = std::find_if(views.begin(), views.end(), [&](const StateView &view) {
      return view.kind == StateRole::Parameter && view.unit == average.unit && view.begin == average.begin &&
             view.end == average.end && canConvert(view.dtype, average.dtype);
    });
    if (parameter == views.end())
      return TESSERA_ERROR(DataLoss,
                           "the average of '" + average.unit + "' has no parameter that is laid out as it is");
    TESSERA_RETURN_IF_ERROR(
        convertElements(parameter->dtype, parameter->data, average.dtype, average.data, average.end - average.begin));
  }
  return Status::ok();
}

} // namespace tessera
