// scatter_add: grid (1, 1, 1), writes b3
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<i32>;
@group(0) @binding(2) var<storage, read> b2: array<f32>;
@group(0) @binding(3) var<storage, read_write> b3: array<f32>;
var<workgroup> numbers_of: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let wanted = group * 64u + lane;
  let i = min(wanted, 39u);
  let v1 = i / 4u;
  let v3 = b0[i];
  var acc2 = v3;
  for (var first = 0u; first < 30u; first += 64u) {
    workgroupBarrier();
    if (first + lane < 30u) {
      let own = first + lane;
      let v4 = b1[own];
      numbers_of[lane] = u32(v4);
    }
    workgroupBarrier();
    let count = min(64u, 30u - first);
    for (var k = 0u; k < count; k++) {
      if (numbers_of[k] == v1) {
        let update = first + k;
        let v5 = b2[update * 4u + (i % 4u)];
        acc2 = acc2 + v5;
      }
    }
  }
  if (wanted < 40u) {
    b3[i] = acc2;
  }
}
