// attention_backward: grid (12, 1, 1), writes b4, b5, b6
@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b2: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> b3: array<f32>;
@group(0) @binding(4) var<storage, read_write> b4: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> b5: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> b6: array<vec4<f32>>;
fn p_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn p_exp2(x: f32) -> f32 { return select(exp2(x), x, p_isnan(x)); }
var<workgroup> weights: array<array<vec4<f32>, 4>, 8>;
var<workgroup> own: array<array<vec4<f32>, 3>, 8>;
var<workgroup> own_value: array<array<vec4<f32>, 3>, 8>;
var<workgroup> other: array<array<vec4<f32>, 3>, 8>;
var<workgroup> other_value: array<array<vec4<f32>, 3>, 8>;
var<workgroup> other_value_parts: array<array<vec4<f32>, 2>, 8>;
var<workgroup> own_value_parts: array<array<vec4<f32>, 2>, 8>;
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
        let v10 = vec4<f32>(v6, v7, v8, v9);
        own[v3][v4] = v10;
      }
    }
    {
      let v11 = lane / 2u;
      let v12 = lane % 2u;
      if (v11 < 8u) {
        let v13 = min(first + v11, 19u);
        let q1 = b0[shared_head * 40u + v13 * 2u + v12];
        let v14 = q1.x;
        let v15 = q1.y;
        let v16 = q1.z;
        let v17 = q1.w;
        let v18 = vec4<f32>(v14, v15, v16, v17);
        own_value[v11][v12] = v18;
      }
    }
    let v19 = first + y;
    let v20 = min(x, 1u);
    let v21 = min(x, 1u);
    var v22 = vec4<f32>();
    var v23 = vec4<f32>();
    let v24 = first / 8u * 8u;
    for (var start = v24; start < 20u; start += 8u) {
      workgroupBarrier();
      {
        let v25 = lane / 2u;
        let v26 = lane % 2u;
        if (v25 < 8u) {
          let v27 = min(start + v25, 19u);
          let q2 = b0[shared_head * 40u + v27 * 2u + v26];
          let v28 = q2.x;
          let v29 = q2.y;
          let v30 = q2.z;
          let v31 = q2.w;
          let v32 = vec4<f32>(v28, v29, v30, v31);
          other[v25][v26] = v32;
        }
      }
      {
        let v33 = lane / 2u;
        let v34 = lane % 2u;
        if (v33 < 8u) {
          let v35 = min(start + v33, 19u);
          let q3 = b1[shared_head * 40u + v35 * 2u + v34];
          let v36 = q3.x;
          let v37 = q3.y;
          let v38 = q3.z;
          let v39 = q3.w;
          let v40 = vec4<f32>(v36, v37, v38, v39);
          other_value[v33][v34] = v40;
          let q4 = b2[v35 * 4u + shared_head * 2u + v34];
          let v41 = q4.x;
          let v42 = q4.y;
          let v43 = q4.z;
          let v44 = q4.w;
          other_value_parts[v33][v34 / 4u][v34 % 4u] = dot(v40, vec4<f32>(v41, v42, v43, v44));
        }
      }
      workgroupBarrier();
      var v45 = f32();
      var v46 = f32();
      {
        let v47 = own[y][0u];
        let v48 = other[x][0u];
        v45 = fma(v47.x, v48.x, v45);
        v45 = fma(v47.y, v48.y, v45);
        v45 = fma(v47.z, v48.z, v45);
        v45 = fma(v47.w, v48.w, v45);
      }
      {
        let v49 = own[y][1u];
        let v50 = other[x][1u];
        v45 = fma(v49.x, v50.x, v45);
        v45 = fma(v49.y, v50.y, v45);
        v45 = fma(v49.z, v50.z, v45);
        v45 = fma(v49.w, v50.w, v45);
      }
      {
        let v51 = own_value[y][0u];
        let v52 = other_value[x][0u];
        v46 = fma(v51.x, v52.x, v46);
        v46 = fma(v51.y, v52.y, v46);
        v46 = fma(v51.z, v52.z, v46);
        v46 = fma(v51.w, v52.w, v46);
      }
      {
        let v53 = own_value[y][1u];
        let v54 = other_value[x][1u];
        v46 = fma(v53.x, v54.x, v46);
        v46 = fma(v53.y, v54.y, v46);
        v46 = fma(v53.z, v54.z, v46);
        v46 = fma(v53.w, v54.w, v46);
      }
      let v55 = start + x;
      let v56 = min(v55, 19u);
      let v57 = other_value_parts[x][0u];
      let v58 = v57.x + v57.y;
      let v59 = b3[shared_head * 20u + v56];
      let v60 = select(0.0, select(0.0, p_exp2(v45 * 0.5100697232983947 - v59), v55 < 20u), v19 <= v55);
      v46 = v60 * (v46 - v58) * 0.35355339059327373;
      v45 = v60;
      weights[y][v1][v2] = v45;
      workgroupBarrier();
      {
        let v61 = weights[y][0u];
        {
          let v62 = other_value[0u][v21];
          v23 = fma(vec4<f32>(v61.x), v62, v23);
        }
        {
          let v63 = other_value[1u][v21];
          v23 = fma(vec4<f32>(v61.y), v63, v23);
        }
        {
          let v64 = other_value[2u][v21];
          v23 = fma(vec4<f32>(v61.z), v64, v23);
        }
        {
          let v65 = other_value[3u][v21];
          v23 = fma(vec4<f32>(v61.w), v65, v23);
        }
      }
      {
        let v66 = weights[y][1u];
        {
          let v67 = other_value[4u][v21];
          v23 = fma(vec4<f32>(v66.x), v67, v23);
        }
        {
          let v68 = other_value[5u][v21];
          v23 = fma(vec4<f32>(v66.y), v68, v23);
        }
        {
          let v69 = other_value[6u][v21];
          v23 = fma(vec4<f32>(v66.z), v69, v23);
        }
        {
          let v70 = other_value[7u][v21];
          v23 = fma(vec4<f32>(v66.w), v70, v23);
        }
      }
      workgroupBarrier();
      weights[y][v1][v2] = v46;
      workgroupBarrier();
      {
        let v71 = weights[y][0u];
        {
          let v72 = other[0u][v20];
          v22 = fma(vec4<f32>(v71.x), v72, v22);
        }
        {
          let v73 = other[1u][v20];
          v22 = fma(vec4<f32>(v71.y), v73, v22);
        }
        {
          let v74 = other[2u][v20];
          v22 = fma(vec4<f32>(v71.z), v74, v22);
        }
        {
          let v75 = other[3u][v20];
          v22 = fma(vec4<f32>(v71.w), v75, v22);
        }
      }
      {
        let v76 = weights[y][1u];
        {
          let v77 = other[4u][v20];
          v22 = fma(vec4<f32>(v76.x), v77, v22);
        }
        {
          let v78 = other[5u][v20];
          v22 = fma(vec4<f32>(v76.y), v78, v22);
        }
        {
          let v79 = other[6u][v20];
          v22 = fma(vec4<f32>(v76.z), v79, v22);
        }
        {
          let v80 = other[7u][v20];
          v22 = fma(vec4<f32>(v76.w), v80, v22);
        }
      }
    }
    if (v19 < 20u) {
      if (x < 2u) {
        let v81 = v22.x;
        let v82 = v22.y;
        let v83 = v22.z;
        let v84 = v22.w;
        b4[v19 * 4u + shared_head * 2u + v20] = vec4<f32>(v81, v82, v83, v84);
      }
      if (x < 2u) {
        let v85 = v23.x;
        let v86 = v23.y;
        let v87 = v23.z;
        let v88 = v23.w;
        b5[v19 * 4u + shared_head * 2u + v21] = vec4<f32>(v85, v86, v87, v88);
      }
    }
  }
  else {
    let v89 = group - 6u;
    let first = (2u - v89 / 2u) * 8u;
    let batch = v89 % 2u / 2u;
    let head = v89 % 2u;
    {
      let v90 = lane / 2u;
      let v91 = lane % 2u;
      if (v90 < 8u) {
        let v92 = min(first + v90, 19u);
        let q5 = b0[head * 40u + v92 * 2u + v91];
        let v93 = q5.x;
        let v94 = q5.y;
        let v95 = q5.z;
        let v96 = q5.w;
        let v97 = vec4<f32>(v93, v94, v95, v96);
        own[v90][v91] = v97;
      }
    }
    {
      let v98 = lane / 2u;
      let v99 = lane % 2u;
      if (v98 < 8u) {
        let v100 = min(first + v98, 19u);
        let q6 = b1[head * 40u + v100 * 2u + v99];
        let v101 = q6.x;
        let v102 = q6.y;
        let v103 = q6.z;
        let v104 = q6.w;
        let v105 = vec4<f32>(v101, v102, v103, v104);
        own_value[v98][v99] = v105;
        let q7 = b2[v100 * 4u + head * 2u + v99];
        let v106 = q7.x;
        let v107 = q7.y;
        let v108 = q7.z;
        let v109 = q7.w;
        own_value_parts[v98][v99 / 4u][v99 % 4u] = dot(v105, vec4<f32>(v106, v107, v108, v109));
      }
    }
    let v110 = first + y;
    workgroupBarrier();
    let v111 = min(v110, 19u);
    let v112 = own_value_parts[y][0u];
    let v113 = v112.x + v112.y;
    let v114 = b3[head * 20u + v111];
    let v115 = min(x, 1u);
    var v116 = vec4<f32>();
    let end = min(first + 8u, 20u);
    for (var start = 0u; start < end; start += 8u) {
      workgroupBarrier();
      {
        let v117 = lane / 2u;
        let v118 = lane % 2u;
        if (v117 < 8u) {
          let v119 = min(start + v117, 19u);
          let q8 = b0[head * 40u + v119 * 2u + v118];
          let v120 = q8.x;
          let v121 = q8.y;
          let v122 = q8.z;
          let v123 = q8.w;
          let v124 = vec4<f32>(v120, v121, v122, v123);
          other[v117][v118] = v124;
        }
      }
      {
        let v125 = lane / 2u;
        let v126 = lane % 2u;
        if (v125 < 8u) {
          let v127 = min(start + v125, 19u);
          let q9 = b0[head * 40u + v127 * 2u + v126];
          let v128 = q9.x;
          let v129 = q9.y;
          let v130 = q9.z;
          let v131 = q9.w;
          let v132 = vec4<f32>(v128, v129, v130, v131);
          other_value[v125][v126] = v132;
        }
      }
      workgroupBarrier();
      var v133 = f32();
      var v134 = f32();
      {
        let v135 = own[y][0u];
        let v136 = other[x][0u];
        v133 = fma(v135.x, v136.x, v133);
        v133 = fma(v135.y, v136.y, v133);
        v133 = fma(v135.z, v136.z, v133);
        v133 = fma(v135.w, v136.w, v133);
      }
      {
        let v137 = own[y][1u];
        let v138 = other[x][1u];
        v133 = fma(v137.x, v138.x, v133);
        v133 = fma(v137.y, v138.y, v133);
        v133 = fma(v137.z, v138.z, v133);
        v133 = fma(v137.w, v138.w, v133);
      }
      {
        let v139 = own_value[y][0u];
        let v140 = other_value[x][0u];
        v134 = fma(v139.x, v140.x, v134);
        v134 = fma(v139.y, v140.y, v134);
        v134 = fma(v139.z, v140.z, v134);
        v134 = fma(v139.w, v140.w, v134);
      }
      {
        let v141 = own_value[y][1u];
        let v142 = other_value[x][1u];
        v134 = fma(v141.x, v142.x, v134);
        v134 = fma(v141.y, v142.y, v134);
        v134 = fma(v141.z, v142.z, v134);
        v134 = fma(v141.w, v142.w, v134);
      }
      let v143 = start + x;
      let v144 = select(0.0, select(0.0, p_exp2(v133 * 0.5100697232983947 - v114), v143 < 20u), v143 <= v110);
      v134 = v144 * (v134 - v113) * 0.35355339059327373;
      v133 = v144;
      weights[y][v1][v2] = v134;
      workgroupBarrier();
      {
        let v145 = weights[y][0u];
        {
          let v146 = other[0u][v115];
          v116 = fma(vec4<f32>(v145.x), v146, v116);
        }
        {
          let v147 = other[1u][v115];
          v116 = fma(vec4<f32>(v145.y), v147, v116);
        }
        {
          let v148 = other[2u][v115];
          v116 = fma(vec4<f32>(v145.z), v148, v116);
        }
        {
          let v149 = other[3u][v115];
          v116 = fma(vec4<f32>(v145.w), v149, v116);
        }
      }
      {
        let v150 = weights[y][1u];
        {
          let v151 = other[4u][v115];
          v116 = fma(vec4<f32>(v150.x), v151, v116);
        }
        {
          let v152 = other[5u][v115];
          v116 = fma(vec4<f32>(v150.y), v152, v116);
        }
        {
          let v153 = other[6u][v115];
          v116 = fma(vec4<f32>(v150.z), v153, v116);
        }
        {
          let v154 = other[7u][v115];
          v116 = fma(vec4<f32>(v150.w), v154, v116);
        }
      }
    }
    if (v110 < 20u) {
      if (x < 2u) {
        let v155 = v116.x;
        let v156 = v116.y;
        let v157 = v116.z;
        let v158 = v116.w;
        b6[v110 * 4u + head * 2u + v115] = vec4<f32>(v155, v156, v157, v158);
      }
    }
  }
}
