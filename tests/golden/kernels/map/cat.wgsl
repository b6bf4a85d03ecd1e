// map_cat: grid (1, 1, 1), writes b3
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read> b2: array<f32>;
@group(0) @binding(3) var<storage, read_write> b3: array<f32>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let i = group * 256u + lane;
  if (i >= 40u) { return; }
  var v1: f32;
  if ((i / 4u) < 3u) {
    let v2 = b0[i];
    v1 = v2;
  }
  else if ((i / 4u) < 8u) {
    let v3 = b1[i - 12u];
    v1 = v3;
  }
  else if ((i / 4u) < 10u) {
    let v4 = b2[i - 32u];
    v1 = v4;
  }
  b3[i] = v1;
}
