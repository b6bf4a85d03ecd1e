// scan_blocks_add: grid (32, 1, 1), writes b1
@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> b1: array<vec4<f32>>;
var<workgroup> folds0: array<f32, 512>;
var<workgroup> folds1: array<f32, 512>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let q0 = b0[group * 256u + lane];
  let v1 = q0.x;
  let v2 = q0.y;
  let v3 = q0.z;
  let v4 = q0.w;
  let end = (group % 8u) * 256u;
  var earlier = 0.0;
  for (var at = lane; at < end; at += 2048u) {
    let v5 = min(at + 0u, 2047u);
    let v6 = min(at + 256u, 2047u);
    let v7 = min(at + 512u, 2047u);
    let v8 = min(at + 768u, 2047u);
    let v9 = min(at + 1024u, 2047u);
    let v10 = min(at + 1280u, 2047u);
    let v11 = min(at + 1536u, 2047u);
    let v12 = min(at + 1792u, 2047u);
    let q1 = b0[(group / 8u) * 2048u + v5];
    let v13 = q1.x;
    let v14 = q1.y;
    let v15 = q1.z;
    let v16 = q1.w;
    let q2 = b0[(group / 8u) * 2048u + v6];
    let v17 = q2.x;
    let v18 = q2.y;
    let v19 = q2.z;
    let v20 = q2.w;
    let q3 = b0[(group / 8u) * 2048u + v7];
    let v21 = q3.x;
    let v22 = q3.y;
    let v23 = q3.z;
    let v24 = q3.w;
    let q4 = b0[(group / 8u) * 2048u + v8];
    let v25 = q4.x;
    let v26 = q4.y;
    let v27 = q4.z;
    let v28 = q4.w;
    let q5 = b0[(group / 8u) * 2048u + v9];
    let v29 = q5.x;
    let v30 = q5.y;
    let v31 = q5.z;
    let v32 = q5.w;
    let q6 = b0[(group / 8u) * 2048u + v10];
    let v33 = q6.x;
    let v34 = q6.y;
    let v35 = q6.z;
    let v36 = q6.w;
    let q7 = b0[(group / 8u) * 2048u + v11];
    let v37 = q7.x;
    let v38 = q7.y;
    let v39 = q7.z;
    let v40 = q7.w;
    let q8 = b0[(group / 8u) * 2048u + v12];
    let v41 = q8.x;
    let v42 = q8.y;
    let v43 = q8.z;
    let v44 = q8.w;
    let v45 = select(0.0, v13 + v14 + v15 + v16, at + 0u < end);
    let v46 = select(0.0, v17 + v18 + v19 + v20, at + 256u < end);
    let v47 = select(0.0, v21 + v22 + v23 + v24, at + 512u < end);
    let v48 = select(0.0, v25 + v26 + v27 + v28, at + 768u < end);
    let v49 = select(0.0, v29 + v30 + v31 + v32, at + 1024u < end);
    let v50 = select(0.0, v33 + v34 + v35 + v36, at + 1280u < end);
    let v51 = select(0.0, v37 + v38 + v39 + v40, at + 1536u < end);
    let v52 = select(0.0, v41 + v42 + v43 + v44, at + 1792u < end);
    earlier = earlier + (v45 + v46 + v47 + v48 + v49 + v50 + v51 + v52);
  }
  let v53 = v1;
  let v54 = v53 + v2;
  let v55 = v54 + v3;
  let v56 = v55 + v4;
  var fold0 = v56;
  folds0[lane] = earlier;
  folds1[lane] = fold0;
  workgroupBarrier();
  if (lane >= 1u) {
    earlier = folds0[lane - 1u] + earlier;
    fold0 = folds1[lane - 1u] + fold0;
  }
  folds0[lane + 256u] = earlier;
  folds1[lane + 256u] = fold0;
  workgroupBarrier();
  if (lane >= 2u) {
    earlier = folds0[lane + 254u] + earlier;
    fold0 = folds1[lane + 254u] + fold0;
  }
  folds0[lane] = earlier;
  folds1[lane] = fold0;
  workgroupBarrier();
  if (lane >= 4u) {
    earlier = folds0[lane - 4u] + earlier;
    fold0 = folds1[lane - 4u] + fold0;
  }
  folds0[lane + 256u] = earlier;
  folds1[lane + 256u] = fold0;
  workgroupBarrier();
  if (lane >= 8u) {
    earlier = folds0[lane + 248u] + earlier;
    fold0 = folds1[lane + 248u] + fold0;
  }
  folds0[lane] = earlier;
  folds1[lane] = fold0;
  workgroupBarrier();
  if (lane >= 16u) {
    earlier = folds0[lane - 16u] + earlier;
    fold0 = folds1[lane - 16u] + fold0;
  }
  folds0[lane + 256u] = earlier;
  folds1[lane + 256u] = fold0;
  workgroupBarrier();
  if (lane >= 32u) {
    earlier = folds0[lane + 224u] + earlier;
    fold0 = folds1[lane + 224u] + fold0;
  }
  folds0[lane] = earlier;
  folds1[lane] = fold0;
  workgroupBarrier();
  if (lane >= 64u) {
    earlier = folds0[lane - 64u] + earlier;
    fold0 = folds1[lane - 64u] + fold0;
  }
  folds0[lane + 256u] = earlier;
  folds1[lane + 256u] = fold0;
  workgroupBarrier();
  if (lane >= 128u) {
    earlier = folds0[lane + 128u] + earlier;
    fold0 = folds1[lane + 128u] + fold0;
  }
  folds0[lane] = earlier;
  folds1[lane] = fold0;
  workgroupBarrier();
  let v57 = folds0[255u];
  let v58 = folds1[255u];
  let v59 = select(0.0, folds1[max(lane, 1u) - 1u], lane > 0u);
  let v60 = v57 + (v59 + v53);
  let v61 = v57 + (v59 + v54);
  let v62 = v57 + (v59 + v55);
  let v63 = v57 + (v59 + v56);
  b1[group * 256u + lane] = vec4<f32>(v60, v61, v62, v63);
  let v64 = v58;
}
