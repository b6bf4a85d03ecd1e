// rows_max_sum: grid (16, 1, 1), writes b1
@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> b1: array<vec4<f32>>;
fn p_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn p_exp(x: f32) -> f32 { return select(exp(x), x, p_isnan(x)); }
var<private> p_bits: vec2u = vec2u(0x7f800000u, 0x7fc00000u);
fn p_inf() -> f32 { return bitcast<f32>(p_bits.x); }
fn p_max(a: f32, b: f32) -> f32 {
  return select(select(max(a, b), b, p_isnan(b)), a, p_isnan(a));
}
var<workgroup> shared_f32_0: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let wanted = group * 4u + lane / 16u;
  let inside = wanted < 64u;
  let row = min(wanted, 63u);
  let position = lane % 16u;
  var acc1 = (-p_inf());
  let q0 = b0[row * 32u + position];
  let v2 = q0.x;
  let v3 = q0.y;
  let v4 = q0.z;
  let v5 = q0.w;
  let q1 = b0[row * 32u + position + 16u];
  let v6 = q1.x;
  let v7 = q1.y;
  let v8 = q1.z;
  let v9 = q1.w;
  acc1 = p_max(acc1, v2);
  acc1 = p_max(acc1, v3);
  acc1 = p_max(acc1, v4);
  acc1 = p_max(acc1, v5);
  acc1 = p_max(acc1, v6);
  acc1 = p_max(acc1, v7);
  acc1 = p_max(acc1, v8);
  acc1 = p_max(acc1, v9);
  shared_f32_0[lane] = acc1;
  workgroupBarrier();
  for (var step = 8u; step > 0u; step >>= 1u) {
    if (position < step) {
      let v10 = shared_f32_0[lane + step * 1u];
      acc1 = p_max(acc1, v10);
      shared_f32_0[lane] = acc1;
    }
    workgroupBarrier();
  }
  acc1 = shared_f32_0[lane - position * 1u];
  workgroupBarrier();
  let v11 = acc1;
  var acc12 = 0.0;
  let v13 = (v2 - v11);
  let v14 = p_exp(v13);
  let v15 = (v3 - v11);
  let v16 = p_exp(v15);
  let v17 = (v4 - v11);
  let v18 = p_exp(v17);
  let v19 = (v5 - v11);
  let v20 = p_exp(v19);
  let v21 = (v6 - v11);
  let v22 = p_exp(v21);
  let v23 = (v7 - v11);
  let v24 = p_exp(v23);
  let v25 = (v8 - v11);
  let v26 = p_exp(v25);
  let v27 = (v9 - v11);
  let v28 = p_exp(v27);
  acc12 = (acc12 + (v14 + v16 + v18 + v20 + v22 + v24 + v26 + v28));
  shared_f32_0[lane] = acc12;
  workgroupBarrier();
  for (var step = 8u; step > 0u; step >>= 1u) {
    if (position < step) {
      let v29 = shared_f32_0[lane + step * 1u];
      acc12 = (acc12 + v29);
      shared_f32_0[lane] = acc12;
    }
    workgroupBarrier();
  }
  acc12 = shared_f32_0[lane - position * 1u];
  workgroupBarrier();
  let v30 = acc12;
  if (inside) {
    let v31 = (v14 / v30);
    let v32 = (v16 / v30);
    let v33 = (v18 / v30);
    let v34 = (v20 / v30);
    let v35 = (v22 / v30);
    let v36 = (v24 / v30);
    let v37 = (v26 / v30);
    let v38 = (v28 / v30);
    b1[row * 32u + position] = vec4<f32>(v31, v32, v33, v34);
    b1[row * 32u + position + 16u] = vec4<f32>(v35, v36, v37, v38);
  }
}
