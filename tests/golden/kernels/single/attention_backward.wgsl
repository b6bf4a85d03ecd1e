// attention_backward: grid (12, 1, 1), writes b4, b5, b6
@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b2: array<f32>;
@group(0) @binding(3) var<storage, read> b3: array<f32>;
@group(0) @binding(4) var<storage, read_write> b4: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> b5: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> b6: array<vec4<f32>>;
var<workgroup> weights: array<array<vec4<f32>, 4>, 8>;
var<workgroup> own: array<array<vec4<f32>, 3>, 8>;
var<workgroup> own_value: array<array<vec4<f32>, 3>, 8>;
var<workgroup> other: array<array<vec4<f32>, 3>, 8>;
var<workgroup> other_value: array<array<vec4<f32>, 3>, 8>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let x = lane % 8u;
  let y = lane / 8u;
  let v1 = x / 4u;
  let v2 = x & 3u;
  if (group < 6u) {
    let first = group / 2u * 8u;
    let batch = group % 2u / 2u;
    let shared_head = group % 2u;
    {
      let v3 = lane / 2u;
      let v4 = lane % 2u;
      if (v3 < 8u) {
        let v5 = min(first + v3, 19u);
        let q0 = b0[shared_head * 40u + v5 * 2u + v4];
        let v6 = q0.x;
        let v7 = q0.y;
        let v8 = q0.z;
        let v9 = q0.w;
        own[v3][v4] = vec4<f32>(v6, v7, v8, v9);
      }
    }
    {
      let v10 = lane / 2u;
      let v11 = lane % 2u;
      if (v10 < 8u) {
        let v12 = min(first + v10, 19u);
        let q1 = b0[shared_head * 40u + v12 * 2u + v11];
        let v13 = q1.x;
        let v14 = q1.y;
        let v15 = q1.z;
        let v16 = q1.w;
        own_value[v10][v11] = vec4<f32>(v13, v14, v15, v16);
      }
    }
    let v17 = first + y;
    let v18 = min(x, 1u);
    let v19 = min(x, 1u);
    var v20 = vec4<f32>();
    var v21 = vec4<f32>();
    let v22 = first / 8u * 8u;
    for (var start = v22; start < 20u; start += 8u) {
      workgroupBarrier();
      {
        let v23 = lane / 2u;
        let v24 = lane % 2u;
        if (v23 < 8u) {
          let v25 = min(start + v23, 19u);
          let q2 = b0[shared_head * 40u + v25 * 2u + v24];
          let v26 = q2.x;
          let v27 = q2.y;
          let v28 = q2.z;
          let v29 = q2.w;
          other[v23][v24] = vec4<f32>(v26, v27, v28, v29);
        }
      }
      {
        let v30 = lane / 2u;
        let v31 = lane % 2u;
        if (v30 < 8u) {
          let v32 = min(start + v30, 19u);
          let q3 = b1[shared_head * 40u + v32 * 2u + v31];
          let v33 = q3.x;
          let v34 = q3.y;
          let v35 = q3.z;
          let v36 = q3.w;
          other_value[v30][v31] = vec4<f32>(v33, v34, v35, v36);
        }
      }
      workgroupBarrier();
      var v37 = f32();
      var v38 = f32();
      {
        let v39 = own[y][0u];
        let v40 = other[x][0u];
        v37 = fma(v39.x, v40.x, v37);
        v37 = fma(v39.y, v40.y, v37);
        v37 = fma(v39.z, v40.z, v37);
        v37 = fma(v39.w, v40.w, v37);
      }
      {
        let v41 = own[y][1u];
        let v42 = other[x][1u];
        v37 = fma(v41.x, v42.x, v37);
        v37 = fma(v41.y, v42.y, v37);
        v37 = fma(v41.z, v42.z, v37);
        v37 = fma(v41.w, v42.w, v37);
      }
      {
        let v43 = own_value[y][0u];
        let v44 = other_value[x][0u];
        v38 = fma(v43.x, v44.x, v38);
        v38 = fma(v43.y, v44.y, v38);
        v38 = fma(v43.z, v44.z, v38);
        v38 = fma(v43.w, v44.w, v38);
      }
      {
        let v45 = own_value[y][1u];
        let v46 = other_value[x][1u];
        v38 = fma(v45.x, v46.x, v38);
        v38 = fma(v45.y, v46.y, v38);
        v38 = fma(v45.z, v46.z, v38);
        v38 = fma(v45.w, v46.w, v38);
      }
      let v47 = start + x;
      let v48 = min(v47, 19u);
      let v49 = b2[shared_head * 20u + v48];
      let v50 = b3[shared_head * 20u + v48];
      let v51 = select(0.0, select(0.0, exp2(v37 * 0.5100697232983947 - v50), v47 < 20u), v17 <= v47);
      v38 = v51 * (v38 - v49) * 0.35355339059327373;
      v37 = v51;
      weights[y][v1][v2] = v37;
      workgroupBarrier();
      {
        let v52 = weights[y][0u];
        {
          let v53 = other_value[0u][v19];
          v21 = fma(vec4<f32>(v52.x), v53, v21);
        }
        {
          let v54 = other_value[1u][v19];
          v21 = fma(vec4<f32>(v52.y), v54, v21);
        }
        {
          let v55 = other_value[2u][v19];
          v21 = fma(vec4<f32>(v52.z), v55, v21);
        }
        {
          let v56 = other_value[3u][v19];
          v21 = fma(vec4<f32>(v52.w), v56, v21);
        }
      }
      {
        let v57 = weights[y][1u];
        {
          let v58 = other_value[4u][v19];
          v21 = fma(vec4<f32>(v57.x), v58, v21);
        }
        {
          let v59 = other_value[5u][v19];
          v21 = fma(vec4<f32>(v57.y), v59, v21);
        }
        {
          let v60 = other_value[6u][v19];
          v21 = fma(vec4<f32>(v57.z), v60, v21);
        }
        {
          let v61 = other_value[7u][v19];
          v21 = fma(vec4<f32>(v57.w), v61, v21);
        }
      }
      workgroupBarrier();
      weights[y][v1][v2] = v38;
      workgroupBarrier();
      {
        let v62 = weights[y][0u];
        {
          let v63 = other[0u][v18];
          v20 = fma(vec4<f32>(v62.x), v63, v20);
        }
        {
          let v64 = other[1u][v18];
          v20 = fma(vec4<f32>(v62.y), v64, v20);
        }
        {
          let v65 = other[2u][v18];
          v20 = fma(vec4<f32>(v62.z), v65, v20);
        }
        {
          let v66 = other[3u][v18];
          v20 = fma(vec4<f32>(v62.w), v66, v20);
        }
      }
      {
        let v67 = weights[y][1u];
        {
          let v68 = other[4u][v18];
          v20 = fma(vec4<f32>(v67.x), v68, v20);
        }
        {
          let v69 = other[5u][v18];
          v20 = fma(vec4<f32>(v67.y), v69, v20);
        }
        {
          let v70 = other[6u][v18];
          v20 = fma(vec4<f32>(v67.z), v70, v20);
        }
        {
          let v71 = other[7u][v18];
          v20 = fma(vec4<f32>(v67.w), v71, v20);
        }
      }
    }
    if (v17 < 20u) {
      if (x < 2u) {
        let v72 = v20.x;
        let v73 = v20.y;
        let v74 = v20.z;
        let v75 = v20.w;
        b4[v17 * 4u + shared_head * 2u + v18] = vec4<f32>(v72, v73, v74, v75);
      }
      if (x < 2u) {
        let v76 = v21.x;
        let v77 = v21.y;
        let v78 = v21.z;
        let v79 = v21.w;
        b5[v17 * 4u + shared_head * 2u + v19] = vec4<f32>(v76, v77, v78, v79);
      }
    }
  }
  else {
    let v80 = group - 6u;
    let first = (2u - v80 / 2u) * 8u;
    let batch = v80 % 2u / 2u;
    let head = v80 % 2u;
    {
      let v81 = lane / 2u;
      let v82 = lane % 2u;
      if (v81 < 8u) {
        let v83 = min(first + v81, 19u);
        let q4 = b0[head * 40u + v83 * 2u + v82];
        let v84 = q4.x;
        let v85 = q4.y;
        let v86 = q4.z;
        let v87 = q4.w;
        own[v81][v82] = vec4<f32>(v84, v85, v86, v87);
      }
    }
    {
      let v88 = lane / 2u;
      let v89 = lane % 2u;
      if (v88 < 8u) {
        let v90 = min(first + v88, 19u);
        let q5 = b1[head * 40u + v90 * 2u + v89];
        let v91 = q5.x;
        let v92 = q5.y;
        let v93 = q5.z;
        let v94 = q5.w;
        own_value[v88][v89] = vec4<f32>(v91, v92, v93, v94);
      }
    }
    let v95 = first + y;
    let v96 = min(v95, 19u);
    let v97 = b2[head * 20u + v96];
    let v98 = b3[head * 20u + v96];
    let v99 = min(x, 1u);
    var v100 = vec4<f32>();
    let end = min(first + 8u, 20u);
    for (var start = 0u; start < end; start += 8u) {
      workgroupBarrier();
      {
        let v101 = lane / 2u;
        let v102 = lane % 2u;
        if (v101 < 8u) {
          let v103 = min(start + v101, 19u);
          let q6 = b0[head * 40u + v103 * 2u + v102];
          let v104 = q6.x;
          let v105 = q6.y;
          let v106 = q6.z;
          let v107 = q6.w;
          other[v101][v102] = vec4<f32>(v104, v105, v106, v107);
        }
      }
      {
        let v108 = lane / 2u;
        let v109 = lane % 2u;
        if (v108 < 8u) {
          let v110 = min(start + v108, 19u);
          let q7 = b0[head * 40u + v110 * 2u + v109];
          let v111 = q7.x;
          let v112 = q7.y;
          let v113 = q7.z;
          let v114 = q7.w;
          other_value[v108][v109] = vec4<f32>(v111, v112, v113, v114);
        }
      }
      workgroupBarrier();
      var v115 = f32();
      var v116 = f32();
      {
        let v117 = own[y][0u];
        let v118 = other[x][0u];
        v115 = fma(v117.x, v118.x, v115);
        v115 = fma(v117.y, v118.y, v115);
        v115 = fma(v117.z, v118.z, v115);
        v115 = fma(v117.w, v118.w, v115);
      }
      {
        let v119 = own[y][1u];
        let v120 = other[x][1u];
        v115 = fma(v119.x, v120.x, v115);
        v115 = fma(v119.y, v120.y, v115);
        v115 = fma(v119.z, v120.z, v115);
        v115 = fma(v119.w, v120.w, v115);
      }
      {
        let v121 = own_value[y][0u];
        let v122 = other_value[x][0u];
        v116 = fma(v121.x, v122.x, v116);
        v116 = fma(v121.y, v122.y, v116);
        v116 = fma(v121.z, v122.z, v116);
        v116 = fma(v121.w, v122.w, v116);
      }
      {
        let v123 = own_value[y][1u];
        let v124 = other_value[x][1u];
        v116 = fma(v123.x, v124.x, v116);
        v116 = fma(v123.y, v124.y, v116);
        v116 = fma(v123.z, v124.z, v116);
        v116 = fma(v123.w, v124.w, v116);
      }
      let v125 = start + x;
      let v126 = select(0.0, select(0.0, exp2(v115 * 0.5100697232983947 - v98), v125 < 20u), v125 <= v95);
      v116 = v126 * (v116 - v97) * 0.35355339059327373;
      v115 = v126;
      weights[y][v1][v2] = v116;
      workgroupBarrier();
      {
        let v127 = weights[y][0u];
        {
          let v128 = other[0u][v99];
          v100 = fma(vec4<f32>(v127.x), v128, v100);
        }
        {
          let v129 = other[1u][v99];
          v100 = fma(vec4<f32>(v127.y), v129, v100);
        }
        {
          let v130 = other[2u][v99];
          v100 = fma(vec4<f32>(v127.z), v130, v100);
        }
        {
          let v131 = other[3u][v99];
          v100 = fma(vec4<f32>(v127.w), v131, v100);
        }
      }
      {
        let v132 = weights[y][1u];
        {
          let v133 = other[4u][v99];
          v100 = fma(vec4<f32>(v132.x), v133, v100);
        }
        {
          let v134 = other[5u][v99];
          v100 = fma(vec4<f32>(v132.y), v134, v100);
        }
        {
          let v135 = other[6u][v99];
          v100 = fma(vec4<f32>(v132.z), v135, v100);
        }
        {
          let v136 = other[7u][v99];
          v100 = fma(vec4<f32>(v132.w), v136, v100);
        }
      }
    }
    if (v95 < 20u) {
      if (x < 2u) {
        let v137 = v100.x;
        let v138 = v100.y;
        let v139 = v100.z;
        let v140 = v100.w;
        b6[v95 * 4u + head * 2u + v99] = vec4<f32>(v137, v138, v139, v140);
      }
    }
  }
}
