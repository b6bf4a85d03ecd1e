// rows_max_sum: grid (8, 1, 1), writes b1
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
  let wanted = group * 8u + lane / 8u;
  let inside = wanted < 64u;
  let row = min(wanted, 63u);
  let position = lane % 8u;
  var acc1 = (-p_inf());
  let q0 = b0[row * 32u + position];
  let v2 = q0.x;
  let v3 = q0.y;
  let v4 = q0.z;
  let v5 = q0.w;
  let q1 = b0[row * 32u + position + 8u];
  let v6 = q1.x;
  let v7 = q1.y;
  let v8 = q1.z;
  let v9 = q1.w;
  let q2 = b0[row * 32u + position + 16u];
  let v10 = q2.x;
  let v11 = q2.y;
  let v12 = q2.z;
  let v13 = q2.w;
  let q3 = b0[row * 32u + position + 24u];
  let v14 = q3.x;
  let v15 = q3.y;
  let v16 = q3.z;
  let v17 = q3.w;
  acc1 = p_max(acc1, v2);
  acc1 = p_max(acc1, v3);
  acc1 = p_max(acc1, v4);
  acc1 = p_max(acc1, v5);
  acc1 = p_max(acc1, v6);
  acc1 = p_max(acc1, v7);
  acc1 = p_max(acc1, v8);
  acc1 = p_max(acc1, v9);
  acc1 = p_max(acc1, v10);
  acc1 = p_max(acc1, v11);
  acc1 = p_max(acc1, v12);
  acc1 = p_max(acc1, v13);
  acc1 = p_max(acc1, v14);
  acc1 = p_max(acc1, v15);
  acc1 = p_max(acc1, v16);
  acc1 = p_max(acc1, v17);
  shared_f32_0[lane] = acc1;
  workgroupBarrier();
  for (var step = 4u; step > 0u; step >>= 1u) {
    if (position < step) {
      let v18 = shared_f32_0[lane + step * 1u];
      acc1 = p_max(acc1, v18);
      shared_f32_0[lane] = acc1;
    }
    workgroupBarrier();
  }
  acc1 = shared_f32_0[lane - position * 1u];
  workgroupBarrier();
  let v19 = acc1;
  var acc20 = 0.0;
  let v21 = (v2 - v19);
  let v22 = p_exp(v21);
  let v23 = (v3 - v19);
  let v24 = p_exp(v23);
  let v25 = (v4 - v19);
  let v26 = p_exp(v25);
  let v27 = (v5 - v19);
  let v28 = p_exp(v27);
  let v29 = (v6 - v19);
  let v30 = p_exp(v29);
  let v31 = (v7 - v19);
  let v32 = p_exp(v31);
  let v33 = (v8 - v19);
  let v34 = p_exp(v33);
  let v35 = (v9 - v19);
  let v36 = p_exp(v35);
  let v37 = (v10 - v19);
  let v38 = p_exp(v37);
  let v39 = (v11 - v19);
  let v40 = p_exp(v39);
  let v41 = (v12 - v19);
  let v42 = p_exp(v41);
  let v43 = (v13 - v19);
  let v44 = p_exp(v43);
  let v45 = (v14 - v19);
  let v46 = p_exp(v45);
  let v47 = (v15 - v19);
  let v48 = p_exp(v47);
  let v49 = (v16 - v19);
  let v50 = p_exp(v49);
  let v51 = (v17 - v19);
  let v52 = p_exp(v51);
  acc20 = (acc20 + (v22 + v24 + v26 + v28 + v30 + v32 + v34 + v36 + v38 + v40 + v42 + v44 + v46 + v48 + v50 + v52));
  shared_f32_0[lane] = acc20;
  workgroupBarrier();
  for (var step = 4u; step > 0u; step >>= 1u) {
    if (position < step) {
      let v53 = shared_f32_0[lane + step * 1u];
      acc20 = (acc20 + v53);
      shared_f32_0[lane] = acc20;
    }
    workgroupBarrier();
  }
  acc20 = shared_f32_0[lane - position * 1u];
  workgroupBarrier();
  let v54 = acc20;
  if (inside) {
    let v55 = (v22 / v54);
    let v56 = (v24 / v54);
    let v57 = (v26 / v54);
    let v58 = (v28 / v54);
    let v59 = (v30 / v54);
    let v60 = (v32 / v54);
    let v61 = (v34 / v54);
    let v62 = (v36 / v54);
    let v63 = (v38 / v54);
    let v64 = (v40 / v54);
    let v65 = (v42 / v54);
    let v66 = (v44 / v54);
    let v67 = (v46 / v54);
    let v68 = (v48 / v54);
    let v69 = (v50 / v54);
    let v70 = (v52 / v54);
    b1[row * 32u + position] = vec4<f32>(v55, v56, v57, v58);
    b1[row * 32u + position + 8u] = vec4<f32>(v59, v60, v61, v62);
    b1[row * 32u + position + 16u] = vec4<f32>(v63, v64, v65, v66);
    b1[row * 32u + position + 24u] = vec4<f32>(v67, v68, v69, v70);
  }
}
