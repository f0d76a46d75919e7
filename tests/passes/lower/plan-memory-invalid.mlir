// RUN: tessera-opt %s --pass-pipeline='builtin.module(exec.program(plan-memory))' -split-input-file -verify-diagnostics

// Values of the whole model have no limit, what a rank stores has: offsets are numbers of 64 bits.
exec.program @slots {
  exec.arena @state state bytes 0
  exec.arena @activations activations bytes 0
  %a = exec.slot "a" in @activations activations : memref<27021597764222976xi8>
  // expected-error@+1 {{values of a rank are more than 2^56 bytes together, too many to plan; the largest so far has 54043195528445952 bytes}}
  %b = exec.slot "b" in @activations activations : memref<54043195528445952xi8>
  %c = exec.slot "c" in @state activations : memref<27021597764222976xi8>
}

// -----

exec.program @slot {
  exec.arena @activations activations bytes 0
  // expected-error@+1 {{more than 2^56 bytes together}}
  %a = exec.slot "a" in @activations activations : memref<9223372036854775807xi8>
}
