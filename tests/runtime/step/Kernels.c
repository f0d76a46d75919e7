// Kernels.c - kernels with the interface of generated ones, for tests of the executor.
//
// Beside each is the number of its buffers.
#include <stdint.h>

// buffers: x, y; y[i] = x[i] + i
const uint32_t add_index_buffers = 2;
void add_index(void *const *buffers, int64_t begin, int64_t end) {
  const float *x = buffers[0];
  float *y = buffers[1];
  for (int64_t i = begin; i < end; ++i)
    y[i] = x[i] + (float)i;
}

// buffers: x; each element once more
const uint32_t increment_buffers = 1;
void increment(void *const *buffers, int64_t begin, int64_t end) {
  float *x = buffers[0];
  for (int64_t i = begin; i < end; ++i)
    x[i] += 1;
}

// buffers: x, total; total[0] += x[0]
const uint32_t accumulate_buffers = 2;
void accumulate(void *const *buffers, int64_t begin, int64_t end) {
  (void)begin;
  (void)end;
  *(float *)buffers[1] += *(const float *)buffers[0];
}

// buffers: x [rows, 4], y [rows], w [4], sums [5]: this rank's share of the mean loss of 8 rows, and of its gradient
const uint32_t least_squares_buffers = 4;
void least_squares(void *const *buffers, int64_t begin, int64_t end) {
  const float *x = buffers[0], *y = buffers[1], *w = buffers[2];
  float *sums = buffers[3];
  for (int i = 0; i < 5; ++i)
    sums[i] = 0;
  for (int64_t row = begin; row < end; ++row) {
    float error = -y[row];
    for (int i = 0; i < 4; ++i)
      error += x[row * 4 + i] * w[i];
    sums[0] += error * error / 8;
    for (int i = 0; i < 4; ++i)
      sums[1 + i] += 2 * error * x[row * 4 + i] / 8;
  }
}

// buffers: w, gradient, lr
const uint32_t descend_buffers = 3;
void descend(void *const *buffers, int64_t begin, int64_t end) {
  float *w = buffers[0];
  const float *gradient = buffers[1], *lr = buffers[2];
  for (int64_t i = begin; i < end; ++i)
    w[i] -= *lr * gradient[i];
}

// no number
void silent(void *const *buffers, int64_t begin, int64_t end) {
  (void)buffers;
  (void)begin;
  (void)end;
}
