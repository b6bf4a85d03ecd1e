// map_add: grid (64, 1, 1), writes b3
@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b2: array<f32>;
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let i = group * 256u + lane;
  if (i >= 16384u) { return; }
  let q0 = b0[i];
  let v1 = q0.x;
  let q1 = b1[(i % 32u)];
  let v2 = q1.x;
  let v3 = (v1 * v2);
  let v4 = b2[(i / 32u)];
  let v5 = (v3 + v4);
  let v6 = q0.y;
  let v7 = q1.y;
  let v8 = (v6 * v7);
  let v9 = (v8 + v4);
  let v10 = q0.z;
  let v11 = q1.z;
  let v12 = (v10 * v11);
  let v13 = (v12 + v4);
  let v14 = q0.w;
  let v15 = q1.w;
  let v16 = (v14 * v15);
  let v17 = (v16 + v4);
  b3[i] = vec4<f32>(v5, v9, v13, v17);
}
