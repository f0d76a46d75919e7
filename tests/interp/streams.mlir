// RUN: tessera-interp %s --function=ordered > %t.issued
// RUN: tessera-interp %s --function=ordered --streams=compute-first | diff - %t.issued
// RUN: tessera-interp %s --function=ordered --streams=compute-last | diff - %t.issued
// RUN: FileCheck %s --input-file=%t.issued --check-prefix=ORDERED
// RUN: tessera-interp %s --function=late | FileCheck %s --check-prefix=ISSUED
// RUN: tessera-interp %s --function=late --streams=compute-first | FileCheck %s --check-prefix=FIRST
// RUN: tessera-interp %s --function=early --streams=compute-last | FileCheck %s --check-prefix=LAST
// RUN: not tessera-interp %s --function=unrecorded 2>&1 | FileCheck %s --check-prefix=UNRECORDED

// With its events, a program gives the same in every order.
// ORDERED: out: tensor<2xf32> = [1, 1]
exec.program @ordered {
  exec.arena @state state bytes 128
  %a.slot = exec.slot "a" in @state workspace at 0 : memref<8xi8>
  %b.slot = exec.slot "b" in @state workspace at 64 : memref<8xi8>
  %a = exec.buffer %a.slot + 0 : memref<8xi8> to memref<2xf32>
  %b = exec.buffer %b.slot + 0 : memref<8xi8> to memref<2xf32>
  exec.loop 2 {
    exec.fill %a with 1.0 : memref<2xf32>
    exec.record 0
    exec.wait 0 {stream = 3 : i64}
    exec.copy %a -> %b {stream = 3 : i64} : memref<2xf32> -> memref<2xf32>
    exec.record 1 {stream = 3 : i64}
    exec.wait 1
    exec.fill %a with 2.0 : memref<2xf32>
  }
  exec.result %b {train.role = "output", train.name = "out"} : memref<2xf32>
}

// Nothing waits for the copy, so that what it reads may be overwritten before.
// ISSUED: out: tensor<2xf32> = [1, 1]
// FIRST: out: tensor<2xf32> = [2, 2]
exec.program @late {
  exec.arena @state state bytes 128
  %a.slot = exec.slot "a" in @state workspace at 0 : memref<8xi8>
  %b.slot = exec.slot "b" in @state workspace at 64 : memref<8xi8>
  %a = exec.buffer %a.slot + 0 : memref<8xi8> to memref<2xf32>
  %b = exec.buffer %b.slot + 0 : memref<8xi8> to memref<2xf32>
  exec.fill %a with 1.0 : memref<2xf32>
  exec.record 0
  exec.wait 0 {stream = 3 : i64}
  exec.copy %a -> %b {stream = 3 : i64} : memref<2xf32> -> memref<2xf32>
  exec.fill %a with 2.0 : memref<2xf32>
  exec.result %b {train.role = "output", train.name = "out"} : memref<2xf32>
}

// The copy waits for nothing, so that what it reads may not have been written.
// LAST: out: tensor<2xf32> = [{{-?}}nan, {{-?}}nan]
exec.program @early {
  exec.arena @state state bytes 128
  %a.slot = exec.slot "a" in @state workspace at 0 : memref<8xi8>
  %b.slot = exec.slot "b" in @state workspace at 64 : memref<8xi8>
  %a = exec.buffer %a.slot + 0 : memref<8xi8> to memref<2xf32>
  %b = exec.buffer %b.slot + 0 : memref<8xi8> to memref<2xf32>
  exec.fill %a with 1.0 : memref<2xf32>
  exec.copy %a -> %b {stream = 3 : i64} : memref<2xf32> -> memref<2xf32>
  exec.record 1 {stream = 3 : i64}
  exec.wait 1
  exec.result %b {train.role = "output", train.name = "out"} : memref<2xf32>
}

// UNRECORDED: error: event 7 has not been recorded before
exec.program @unrecorded {
  exec.arena @state state bytes 64
  exec.wait 7
}
