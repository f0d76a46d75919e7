"""Runs a kernel with a race in shared memory, which racecheck must find: each of two warps reads what the other one writes,
without a barrier. It is called as generated kernels are."""

import driver

SYMBOL = "k0_elementwise_planted_race"
PTX = """
.version 7.0
.target sm_80
.address_size 64

.visible .entry %s(.param .u64 out) {
  .reg .b32 %%r<6>;
  .reg .b64 %%rd<5>;
  .shared .align 4 .b8 words[256];
  ld.param.u64 %%rd1, [out];
  cvta.to.global.u64 %%rd2, %%rd1;
  mov.u32 %%r1, %%tid.x;
  shl.b32 %%r2, %%r1, 2;
  mov.u32 %%r3, words;
  add.s32 %%r4, %%r3, %%r2;
  st.shared.u32 [%%r4], %%r1;
  xor.b32 %%r4, %%r2, 128;
  add.s32 %%r5, %%r3, %%r4;
  ld.shared.u32 %%r1, [%%r5];
  mul.wide.u32 %%rd3, %%r2, 1;
  add.s64 %%rd4, %%rd2, %%rd3;
  st.global.u32 [%%rd4], %%r1;
  ret;
}
""" % SYMBOL


def main():
    gpu = driver.Driver()
    gpu.use_first_gpu()
    gpu.launch(gpu.load(PTX.encode() + b"\0"), SYMBOL, 1, 64, 1, [gpu.allocate(256)])


if __name__ == "__main__":
    main()
