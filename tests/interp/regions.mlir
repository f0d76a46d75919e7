// RUN: tessera-interp %s

func.func @accumulate() {
  %x = train.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %ten = train.constant dense<10.0> : tensor<2xf32>
  %sum, %count = train.accumulate %x {count = 3 : i64} : (tensor<3x2xf32>) -> (tensor<2xf32>, tensor<i64>) {
  ^bb0(%i: tensor<i64>, %micro: tensor<2xf32>):
    %y = train.add %micro, %ten : tensor<2xf32>
    train.yield %y, %i : tensor<2xf32>, tensor<i64>
  }
  %sum_e = train.constant dense<[39.0, 42.0]> : tensor<2xf32>
  check.expect_eq %sum, %sum_e : tensor<2xf32>
  %count_e = train.constant dense<3> : tensor<i64>
  check.expect_eq %count, %count_e : tensor<i64>
  return
}

// What is carried begins as the operand; the rest is added up.
func.func @carried() {
  %x = train.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %b = train.constant dense<10.0> : tensor<f32>
  %sum, %last = train.accumulate %x, %b {carried = 1 : i64, count = 3 : i64} : (tensor<3xf32>, tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  ^bb0(%i: tensor<i64>, %micro: tensor<f32>, %before: tensor<f32>):
    %next = train.mul %micro, %before : tensor<f32>
    train.yield %before, %next : tensor<f32>, tensor<f32>
  }
  %sum_e = train.constant dense<40.0> : tensor<f32>
  check.expect_eq %sum, %sum_e : tensor<f32>
  %last_e = train.constant dense<60.0> : tensor<f32>
  check.expect_eq %last, %last_e : tensor<f32>
  return
}

func.func @fusion() {
  %x = train.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %y = exec.fusion "elementwise" (%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
    %square = train.mul %a, %a : tensor<2xf32>
    exec.yield %square : tensor<2xf32>
  }
  %y_e = train.constant dense<[1.0, 4.0]> : tensor<2xf32>
  check.expect_eq %y, %y_e : tensor<2xf32>
  return
}

// acc = 2 * acc + micro
func.func @repeat() {
  %x = train.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %zero = train.constant dense<1.0> : tensor<f32>
  %y = exec.repeat count = 3 batch(%x) init(%zero) : (tensor<3xf32>, tensor<f32>) -> tensor<f32> {
  ^bb0(%i: tensor<i64>, %micro: tensor<f32>, %acc: tensor<f32>):
    %twice = train.add %acc, %acc : tensor<f32>
    %next = train.add %twice, %micro : tensor<f32>
    exec.yield %next : tensor<f32>
  }
  %y_e = train.constant dense<19.0> : tensor<f32>
  check.expect_eq %y, %y_e : tensor<f32>
  return
}
