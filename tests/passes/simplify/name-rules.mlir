// Rules for parameters by their names, as --init and --place take them: <regex>=<value>, of which the first that matches counts.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(assign-initializers{rules={^a\.=zeros},{weight$=constant:2},{a=normal:3}}))' | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(assign-initializers{rules={a.*=weight$=constant:4}}))' | FileCheck %s --check-prefix=LAST
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(assign-initializers{rules={weight=constant:5},{^a.weight$=constant:6}}))' 2>&1 | FileCheck %s --check-prefix=HIDDEN
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(assign-initializers{rules={^(?:a|b)\.w\w{2}ght$=constant:7}}))' | FileCheck %s --check-prefix=PERL
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(assign-initializers{rules={weight=zeros},{weights=zeros}}))' 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(assign-initializers{rules={weight=zeros},{weight}}))' 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(assign-initializers{rules={weight=zeros},{*a=zeros}}))' 2>&1 | FileCheck %s --check-prefix=REGEX
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(assign-initializers{rules={weight=zeros},{weight=}}))' 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: tessera-opt %s --place-parameters="rules={^a=1},{weight=0}" | FileCheck %s --check-prefix=PLACE
// RUN: not tessera-opt %s --place-parameters="rules={weight=0},{^a\.weight$=1}" 2>&1 | FileCheck %s --check-prefix=SHADOWED
// RUN: not tessera-opt %s --place-parameters="rules={weight=0},{weights=1}" 2>&1 | FileCheck %s --check-prefix=UNPLACED
// RUN: not tessera-opt %s --place-parameters="rules={weight}" 2>&1 | FileCheck %s --check-prefix=UNSAID

// A rule is looked for anywhere in a name; a later one that matches too says nothing.
// CHECK: train.init = "zeros", train.name = "a.weight"
// CHECK-SAME: train.init = "normal:3", train.name = "ba"
// CHECK-SAME: train.init = "constant:2", train.name = "a=b.weight"

// The value follows the last '='; before it the others are part of the regular expression.
// LAST: train.init = "normal:0.02", train.name = "a.weight"
// LAST-SAME: train.init = "zeros", train.name = "ba"
// LAST-SAME: train.init = "constant:4", train.name = "a=weight"

// A rule that never counts is a mistake.
// HIDDEN: error: --init: rules before it match all that is matched by '^a.weight$=constant:6'
// SHADOWED: error: --place: rules before it match all that is matched by '^a\.weight$=1'

// The dialect is RE2's: groups that capture nothing, classes as \w, repetitions.
// PERL: train.init = "constant:7", train.name = "a.weight"
// PERL-SAME: train.init = "zeros", train.name = "ba"
// PERL-SAME: train.init = "constant:7", train.name = "b.weight"

// PLACE: train.name = "a.weight", train.placement = #train.placement<dim = 1,
// PLACE: train.name = "b.weight", train.placement = #train.placement<dim = 0,

// NONE: error: --init: no parameter matches 'weights'; nearest: '
// UNPLACED: error: --place: no parameter matches 'weights'; nearest: '
// FORM: error: --init: expected <regex>=<initialiser>, got 'weight'
// UNSAID: error: --place: expected <regex>=<dimension> or <regex>=<dimension>:<axis>, got 'weight'
// REGEX: error: --init: '*a' is not a regular expression of RE2: no argument for repetition operator: *
// EMPTY: error: --init: expected <regex>=<initialiser>, an initialiser being {{.*}}, got 'weight='
module attributes {dist.mesh = #dist.mesh<tp = 2>} {
func.func @step(%a: tensor<4x4xf32> {train.role = "param", train.name = "a.weight"},
                %b: tensor<4xf32> {train.role = "param", train.name = "ba"},
                %c: tensor<4x4xf32> {train.role = "param", train.name = "a=b.weight"},
                %d: tensor<4x4xf32> {train.role = "param", train.name = "a=weight"},
                %e: tensor<4x4xf32> {train.role = "param", train.name = "b.weight"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4xf32> {train.role = "output"}) {
  return %x : tensor<4xf32>
}
}
