// Kernels.c - kernels with the interface of generated ones, for tests of the executor.
#include <stdint.h>

// buffers: x, y; y[i] = x[i] + i
void add_index(void *const *buffers, int64_t begin, int64_t end) {
  const float *x = buffers[0];
  float *y = buffers[1];
  for (int64_t i = begin; i < end; ++i)
    y[i] = x[i] + (float)i;
}

// buffers: x; each element once more
void increment(void *const *buffers, int64_t begin, int64_t end) {
  float *x = buffers[0];
  for (int64_t i = begin; i < end; ++i)
    x[i] += 1;
}

// buffers: x, total; total[0] += x[0]
void accumulate(void *const *buffers, int64_t begin, int64_t end) {
  (void)begin;
  (void)end;
  *(float *)buffers[1] += *(const float *)buffers[0];
}
