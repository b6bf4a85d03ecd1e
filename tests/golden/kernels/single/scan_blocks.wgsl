// scan_blocks_add: grid (4, 1, 1), writes b1
@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> b1: array<vec4<f32>>;
var<workgroup> folds0: array<f32, 512>;
var<workgroup> folds1: array<f32, 512>;
var<workgroup> folds2: array<f32, 512>;
var<workgroup> folds3: array<f32, 512>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  var carry = 0.0;
  for (var turn = 0u; turn < 2u; turn++) {
    let q0 = b0[group * 2048u + turn * 1024u + lane];
    let v1 = q0.x;
    let v2 = q0.y;
    let v3 = q0.z;
    let v4 = q0.w;
    let q1 = b0[group * 2048u + turn * 1024u + lane + 256u];
    let v5 = q1.x;
    let v6 = q1.y;
    let v7 = q1.z;
    let v8 = q1.w;
    let q2 = b0[group * 2048u + turn * 1024u + lane + 512u];
    let v9 = q2.x;
    let v10 = q2.y;
    let v11 = q2.z;
    let v12 = q2.w;
    let q3 = b0[group * 2048u + turn * 1024u + lane + 768u];
    let v13 = q3.x;
    let v14 = q3.y;
    let v15 = q3.z;
    let v16 = q3.w;
    let v17 = v1;
    let v18 = v17 + v2;
    let v19 = v18 + v3;
    let v20 = v19 + v4;
    var fold0 = v20;
    let v21 = v5;
    let v22 = v21 + v6;
    let v23 = v22 + v7;
    let v24 = v23 + v8;
    var fold1 = v24;
    let v25 = v9;
    let v26 = v25 + v10;
    let v27 = v26 + v11;
    let v28 = v27 + v12;
    var fold2 = v28;
    let v29 = v13;
    let v30 = v29 + v14;
    let v31 = v30 + v15;
    let v32 = v31 + v16;
    var fold3 = v32;
    folds0[lane] = fold0;
    folds1[lane] = fold1;
    folds2[lane] = fold2;
    folds3[lane] = fold3;
    workgroupBarrier();
    if (lane >= 1u) {
      fold0 = folds0[lane - 1u] + fold0;
      fold1 = folds1[lane - 1u] + fold1;
      fold2 = folds2[lane - 1u] + fold2;
      fold3 = folds3[lane - 1u] + fold3;
    }
    folds0[lane + 256u] = fold0;
    folds1[lane + 256u] = fold1;
    folds2[lane + 256u] = fold2;
    folds3[lane + 256u] = fold3;
    workgroupBarrier();
    if (lane >= 2u) {
      fold0 = folds0[lane + 254u] + fold0;
      fold1 = folds1[lane + 254u] + fold1;
      fold2 = folds2[lane + 254u] + fold2;
      fold3 = folds3[lane + 254u] + fold3;
    }
    folds0[lane] = fold0;
    folds1[lane] = fold1;
    folds2[lane] = fold2;
    folds3[lane] = fold3;
    workgroupBarrier();
    if (lane >= 4u) {
      fold0 = folds0[lane - 4u] + fold0;
      fold1 = folds1[lane - 4u] + fold1;
      fold2 = folds2[lane - 4u] + fold2;
      fold3 = folds3[lane - 4u] + fold3;
    }
    folds0[lane + 256u] = fold0;
    folds1[lane + 256u] = fold1;
    folds2[lane + 256u] = fold2;
    folds3[lane + 256u] = fold3;
    workgroupBarrier();
    if (lane >= 8u) {
      fold0 = folds0[lane + 248u] + fold0;
      fold1 = folds1[lane + 248u] + fold1;
      fold2 = folds2[lane + 248u] + fold2;
      fold3 = folds3[lane + 248u] + fold3;
    }
    folds0[lane] = fold0;
    folds1[lane] = fold1;
    folds2[lane] = fold2;
    folds3[lane] = fold3;
    workgroupBarrier();
    if (lane >= 16u) {
      fold0 = folds0[lane - 16u] + fold0;
      fold1 = folds1[lane - 16u] + fold1;
      fold2 = folds2[lane - 16u] + fold2;
      fold3 = folds3[lane - 16u] + fold3;
    }
    folds0[lane + 256u] = fold0;
    folds1[lane + 256u] = fold1;
    folds2[lane + 256u] = fold2;
    folds3[lane + 256u] = fold3;
    workgroupBarrier();
    if (lane >= 32u) {
      fold0 = folds0[lane + 224u] + fold0;
      fold1 = folds1[lane + 224u] + fold1;
      fold2 = folds2[lane + 224u] + fold2;
      fold3 = folds3[lane + 224u] + fold3;
    }
    folds0[lane] = fold0;
    folds1[lane] = fold1;
    folds2[lane] = fold2;
    folds3[lane] = fold3;
    workgroupBarrier();
    if (lane >= 64u) {
      fold0 = folds0[lane - 64u] + fold0;
      fold1 = folds1[lane - 64u] + fold1;
      fold2 = folds2[lane - 64u] + fold2;
      fold3 = folds3[lane - 64u] + fold3;
    }
    folds0[lane + 256u] = fold0;
    folds1[lane + 256u] = fold1;
    folds2[lane + 256u] = fold2;
    folds3[lane + 256u] = fold3;
    workgroupBarrier();
    if (lane >= 128u) {
      fold0 = folds0[lane + 128u] + fold0;
      fold1 = folds1[lane + 128u] + fold1;
      fold2 = folds2[lane + 128u] + fold2;
      fold3 = folds3[lane + 128u] + fold3;
    }
    folds0[lane] = fold0;
    folds1[lane] = fold1;
    folds2[lane] = fold2;
    folds3[lane] = fold3;
    workgroupBarrier();
    let v33 = folds0[255u];
    let v34 = folds1[255u];
    let v35 = folds2[255u];
    let v36 = folds3[255u];
    let v37 = select(0.0, folds0[max(lane, 1u) - 1u], lane > 0u);
    let v38 = carry + (v37 + v17);
    let v39 = carry + (v37 + v18);
    let v40 = carry + (v37 + v19);
    let v41 = carry + (v37 + v20);
    b1[group * 2048u + turn * 1024u + lane] = vec4<f32>(v38, v39, v40, v41);
    let v42 = v33;
    let v43 = select(v42, v42 + folds1[max(lane, 1u) - 1u], lane > 0u);
    let v44 = carry + (v43 + v21);
    let v45 = carry + (v43 + v22);
    let v46 = carry + (v43 + v23);
    let v47 = carry + (v43 + v24);
    b1[group * 2048u + turn * 1024u + lane + 256u] = vec4<f32>(v44, v45, v46, v47);
    let v48 = v42 + v34;
    let v49 = select(v48, v48 + folds2[max(lane, 1u) - 1u], lane > 0u);
    let v50 = carry + (v49 + v25);
    let v51 = carry + (v49 + v26);
    let v52 = carry + (v49 + v27);
    let v53 = carry + (v49 + v28);
    b1[group * 2048u + turn * 1024u + lane + 512u] = vec4<f32>(v50, v51, v52, v53);
    let v54 = v48 + v35;
    let v55 = select(v54, v54 + folds3[max(lane, 1u) - 1u], lane > 0u);
    let v56 = carry + (v55 + v29);
    let v57 = carry + (v55 + v30);
    let v58 = carry + (v55 + v31);
    let v59 = carry + (v55 + v32);
    b1[group * 2048u + turn * 1024u + lane + 768u] = vec4<f32>(v56, v57, v58, v59);
    let v60 = v54 + v36;
    carry = carry + v60;
    workgroupBarrier();
  }
}
