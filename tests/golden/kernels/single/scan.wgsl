// scan_add: grid (5, 1, 1), writes b1
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read_write> b1: array<f32>;
var<workgroup> folds: array<f32, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let start = lane * 2u;
  let end = min(start + 2u, 300u);
  var fold = 0.0;
  for (var column = start; column < end; column++) {
    let v1 = b0[group * 300u + column];
    if (column == start) {
      fold = v1;
    }
    else {
      fold = fold + v1;
    }
  }
  folds[lane] = fold;
  workgroupBarrier();
  for (var step = 1u; step < 256u; step <<= 1u) {
    var joined = folds[lane];
    if (step <= lane && start < end) {
      joined = folds[lane - step] + joined;
    }
    workgroupBarrier();
    folds[lane] = joined;
    workgroupBarrier();
  }
  var total = folds[max(lane, 1u) - 1u];
  for (var column = start; column < end; column++) {
    let v2 = b0[group * 300u + column];
    if (column == 0u) {
      total = v2;
    }
    else {
      total = total + v2;
    }
    b1[group * 300u + column] = total;
  }
}
