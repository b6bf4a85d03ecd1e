// rows_sum: grid (16, 1, 1), writes b3
@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b2: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<f32>>;
var<workgroup> shared_f32_0: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let wanted = group * 4u + lane / 16u;
  let inside = wanted < 64u;
  let row = min(wanted, 63u);
  let position = lane % 16u;
  var acc1 = 0.0;
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
  acc1 = (acc1 + (v2 + v3 + v4 + v5 + v6 + v7 + v8 + v9));
  shared_f32_0[lane] = acc1;
  workgroupBarrier();
  for (var step = 8u; step > 0u; step >>= 1u) {
    if (position < step) {
      let v10 = shared_f32_0[lane + step * 1u];
      acc1 = (acc1 + v10);
      shared_f32_0[lane] = acc1;
    }
    workgroupBarrier();
  }
  acc1 = shared_f32_0[lane - position * 1u];
  workgroupBarrier();
  let v11 = acc1;
  var acc12 = 0.0;
  let v13 = (v11 / 128.0);
  let v14 = (v2 - v13);
  let v15 = (v14 * v14);
  let v16 = (v3 - v13);
  let v17 = (v16 * v16);
  let v18 = (v4 - v13);
  let v19 = (v18 * v18);
  let v20 = (v5 - v13);
  let v21 = (v20 * v20);
  let v22 = (v6 - v13);
  let v23 = (v22 * v22);
  let v24 = (v7 - v13);
  let v25 = (v24 * v24);
  let v26 = (v8 - v13);
  let v27 = (v26 * v26);
  let v28 = (v9 - v13);
  let v29 = (v28 * v28);
  acc12 = (acc12 + (v15 + v17 + v19 + v21 + v23 + v25 + v27 + v29));
  shared_f32_0[lane] = acc12;
  workgroupBarrier();
  for (var step = 8u; step > 0u; step >>= 1u) {
    if (position < step) {
      let v30 = shared_f32_0[lane + step * 1u];
      acc12 = (acc12 + v30);
      shared_f32_0[lane] = acc12;
    }
    workgroupBarrier();
  }
  acc12 = shared_f32_0[lane - position * 1u];
  workgroupBarrier();
  let v31 = acc12;
  if (inside) {
    let v32 = (v31 / 128.0);
    let v33 = (v32 + 9.999999747378752e-06);
    let v34 = inverseSqrt(v33);
    let v35 = (v14 * v34);
    let q2 = b1[position];
    let v36 = q2.x;
    let v37 = (v35 * v36);
    let q3 = b2[position];
    let v38 = q3.x;
    let v39 = (v37 + v38);
    let v40 = (v16 * v34);
    let v41 = q2.y;
    let v42 = (v40 * v41);
    let v43 = q3.y;
    let v44 = (v42 + v43);
    let v45 = (v18 * v34);
    let v46 = q2.z;
    let v47 = (v45 * v46);
    let v48 = q3.z;
    let v49 = (v47 + v48);
    let v50 = (v20 * v34);
    let v51 = q2.w;
    let v52 = (v50 * v51);
    let v53 = q3.w;
    let v54 = (v52 + v53);
    let v55 = (v22 * v34);
    let q4 = b1[position + 16u];
    let v56 = q4.x;
    let v57 = (v55 * v56);
    let q5 = b2[position + 16u];
    let v58 = q5.x;
    let v59 = (v57 + v58);
    let v60 = (v24 * v34);
    let v61 = q4.y;
    let v62 = (v60 * v61);
    let v63 = q5.y;
    let v64 = (v62 + v63);
    let v65 = (v26 * v34);
    let v66 = q4.z;
    let v67 = (v65 * v66);
    let v68 = q5.z;
    let v69 = (v67 + v68);
    let v70 = (v28 * v34);
    let v71 = q4.w;
    let v72 = (v70 * v71);
    let v73 = q5.w;
    let v74 = (v72 + v73);
    b3[row * 32u + position] = vec4<f32>(v39, v44, v49, v54);
    b3[row * 32u + position + 16u] = vec4<f32>(v59, v64, v69, v74);
  }
}
