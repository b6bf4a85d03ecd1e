// attention: grid (2, 1, 1), writes b1
@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> b1: array<vec4<f32>>;
fn p_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn p_exp2(x: f32) -> f32 { return select(exp2(x), x, p_isnan(x)); }
var<workgroup> queries: array<array<vec4<f32>, 3>, 32>;
var<workgroup> keys: array<array<vec4<f32>, 3>, 32>;
var<workgroup> values: array<array<vec4<f32>, 3>, 32>;
var<workgroup> weights: array<array<vec4<f32>, 10>, 32>;
var<workgroup> folds: array<array<vec4<f32>, 2>, 32>;
@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let first = (0u - group / 2u) * 32u;
  let batch = group % 2u / 2u;
  let head = group % 2u;
  let x = lane % 8u;
  let y = lane / 8u;
  let v1 = y + 16u;
  let v2 = x + 8u;
  let v3 = x + 16u;
  let v4 = x + 24u;
  let v5 = x / 4u;
  let v6 = v2 / 4u;
  let v7 = v3 / 4u;
  let v8 = v4 / 4u;
  let v9 = x & 3u;
  let v10 = first + y;
  let v11 = first + v1;
  let v12 = min(x, 1u);
  {
    let v13 = lane / 2u;
    let v14 = lane % 2u;
    if (v13 < 32u) {
      let v15 = min(first + v13, 19u);
      let q0 = b0[head * 40u + v15 * 2u + v14];
      let v16 = q0.x;
      let v17 = q0.y;
      let v18 = q0.z;
      let v19 = q0.w;
      let v20 = vec4<f32>(v16, v17, v18, v19);
      queries[v13][v14] = v20;
    }
  }
  var v21 = vec4<f32>();
  var v22 = vec4<f32>();
  var v23 = (-2e+38);
  var v24 = (-2e+38);
  var v25 = 0.0;
  var v26 = 0.0;
  let end = min(first + 32u, 20u);
  for (var start = 0u; start < end; start += 32u) {
    workgroupBarrier();
    {
      let v27 = lane / 2u;
      let v28 = lane % 2u;
      if (v27 < 32u) {
        let v29 = min(start + v27, 19u);
        let q1 = b0[head * 40u + v29 * 2u + v28];
        let v30 = q1.x;
        let v31 = q1.y;
        let v32 = q1.z;
        let v33 = q1.w;
        let v34 = vec4<f32>(v30, v31, v32, v33);
        keys[v27][v28] = v34;
      }
    }
    {
      let v35 = lane / 2u;
      let v36 = lane % 2u;
      if (v35 < 32u) {
        let v37 = min(start + v35, 19u);
        let q2 = b0[head * 40u + v37 * 2u + v36];
        let v38 = q2.x;
        let v39 = q2.y;
        let v40 = q2.z;
        let v41 = q2.w;
        let v42 = vec4<f32>(v38, v39, v40, v41);
        values[v35][v36] = v42;
      }
    }
    workgroupBarrier();
    var v43 = f32();
    var v44 = f32();
    var v45 = f32();
    var v46 = f32();
    var v47 = f32();
    var v48 = f32();
    var v49 = f32();
    var v50 = f32();
    {
      let v51 = queries[y][0u];
      let v52 = queries[v1][0u];
      let v53 = keys[x][0u];
      let v54 = keys[v2][0u];
      let v55 = keys[v3][0u];
      let v56 = keys[v4][0u];
      v43 = fma(v51.x, v53.x, v43);
      v44 = fma(v51.x, v54.x, v44);
      v45 = fma(v51.x, v55.x, v45);
      v46 = fma(v51.x, v56.x, v46);
      v47 = fma(v52.x, v53.x, v47);
      v48 = fma(v52.x, v54.x, v48);
      v49 = fma(v52.x, v55.x, v49);
      v50 = fma(v52.x, v56.x, v50);
      v43 = fma(v51.y, v53.y, v43);
      v44 = fma(v51.y, v54.y, v44);
      v45 = fma(v51.y, v55.y, v45);
      v46 = fma(v51.y, v56.y, v46);
      v47 = fma(v52.y, v53.y, v47);
      v48 = fma(v52.y, v54.y, v48);
      v49 = fma(v52.y, v55.y, v49);
      v50 = fma(v52.y, v56.y, v50);
      v43 = fma(v51.z, v53.z, v43);
      v44 = fma(v51.z, v54.z, v44);
      v45 = fma(v51.z, v55.z, v45);
      v46 = fma(v51.z, v56.z, v46);
      v47 = fma(v52.z, v53.z, v47);
      v48 = fma(v52.z, v54.z, v48);
      v49 = fma(v52.z, v55.z, v49);
      v50 = fma(v52.z, v56.z, v50);
      v43 = fma(v51.w, v53.w, v43);
      v44 = fma(v51.w, v54.w, v44);
      v45 = fma(v51.w, v55.w, v45);
      v46 = fma(v51.w, v56.w, v46);
      v47 = fma(v52.w, v53.w, v47);
      v48 = fma(v52.w, v54.w, v48);
      v49 = fma(v52.w, v55.w, v49);
      v50 = fma(v52.w, v56.w, v50);
    }
    {
      let v57 = queries[y][1u];
      let v58 = queries[v1][1u];
      let v59 = keys[x][1u];
      let v60 = keys[v2][1u];
      let v61 = keys[v3][1u];
      let v62 = keys[v4][1u];
      v43 = fma(v57.x, v59.x, v43);
      v44 = fma(v57.x, v60.x, v44);
      v45 = fma(v57.x, v61.x, v45);
      v46 = fma(v57.x, v62.x, v46);
      v47 = fma(v58.x, v59.x, v47);
      v48 = fma(v58.x, v60.x, v48);
      v49 = fma(v58.x, v61.x, v49);
      v50 = fma(v58.x, v62.x, v50);
      v43 = fma(v57.y, v59.y, v43);
      v44 = fma(v57.y, v60.y, v44);
      v45 = fma(v57.y, v61.y, v45);
      v46 = fma(v57.y, v62.y, v46);
      v47 = fma(v58.y, v59.y, v47);
      v48 = fma(v58.y, v60.y, v48);
      v49 = fma(v58.y, v61.y, v49);
      v50 = fma(v58.y, v62.y, v50);
      v43 = fma(v57.z, v59.z, v43);
      v44 = fma(v57.z, v60.z, v44);
      v45 = fma(v57.z, v61.z, v45);
      v46 = fma(v57.z, v62.z, v46);
      v47 = fma(v58.z, v59.z, v47);
      v48 = fma(v58.z, v60.z, v48);
      v49 = fma(v58.z, v61.z, v49);
      v50 = fma(v58.z, v62.z, v50);
      v43 = fma(v57.w, v59.w, v43);
      v44 = fma(v57.w, v60.w, v44);
      v45 = fma(v57.w, v61.w, v45);
      v46 = fma(v57.w, v62.w, v46);
      v47 = fma(v58.w, v59.w, v47);
      v48 = fma(v58.w, v60.w, v48);
      v49 = fma(v58.w, v61.w, v49);
      v50 = fma(v58.w, v62.w, v50);
    }
    let v63 = start + x;
    let v64 = start + v2;
    let v65 = start + v3;
    let v66 = start + v4;
    v43 = v43 * 0.5100697232983947;
    v44 = v44 * 0.5100697232983947;
    v45 = v45 * 0.5100697232983947;
    v46 = v46 * 0.5100697232983947;
    v47 = v47 * 0.5100697232983947;
    v48 = v48 * 0.5100697232983947;
    v49 = v49 * 0.5100697232983947;
    v50 = v50 * 0.5100697232983947;
    if (start + 32u > first) {
      v43 = select((-3e+38), v43, v63 <= v10);
      v44 = select((-3e+38), v44, v64 <= v10);
      v45 = select((-3e+38), v45, v65 <= v10);
      v46 = select((-3e+38), v46, v66 <= v10);
      v47 = select((-3e+38), v47, v63 <= v11);
      v48 = select((-3e+38), v48, v64 <= v11);
      v49 = select((-3e+38), v49, v65 <= v11);
      v50 = select((-3e+38), v50, v66 <= v11);
    }
    if (start + 32u > 20u) {
      v43 = select((-3e+38), v43, v63 < 20u);
      v44 = select((-3e+38), v44, v64 < 20u);
      v45 = select((-3e+38), v45, v65 < 20u);
      v46 = select((-3e+38), v46, v66 < 20u);
      v47 = select((-3e+38), v47, v63 < 20u);
      v48 = select((-3e+38), v48, v64 < 20u);
      v49 = select((-3e+38), v49, v65 < 20u);
      v50 = select((-3e+38), v50, v66 < 20u);
    }
    var v67 = v43;
    var v68 = v47;
    v67 = max(v67, v44);
    v67 = max(v67, v45);
    v67 = max(v67, v46);
    v68 = max(v68, v48);
    v68 = max(v68, v49);
    v68 = max(v68, v50);
    folds[y][v5][v9] = v67;
    folds[v1][v5][v9] = v68;
    workgroupBarrier();
    let v69 = folds[y][0u];
    let v70 = folds[y][1u];
    v67 = max(max(max(max(max(max(max(v69.x, v69.y), v69.z), v69.w), v70.x), v70.y), v70.z), v70.w);
    let v71 = folds[v1][0u];
    let v72 = folds[v1][1u];
    v68 = max(max(max(max(max(max(max(v71.x, v71.y), v71.z), v71.w), v72.x), v72.y), v72.z), v72.w);
    let v73 = max(v23, v67);
    let v74 = p_exp2(v23 - v73);
    v23 = v73;
    v25 = v25 * v74;
    v21 = v21 * v74;
    v43 = p_exp2(v43 - v73);
    v25 += v43;
    weights[y][v5][v9] = v43;
    v44 = p_exp2(v44 - v73);
    v25 += v44;
    weights[y][v6][v9] = v44;
    v45 = p_exp2(v45 - v73);
    v25 += v45;
    weights[y][v7][v9] = v45;
    v46 = p_exp2(v46 - v73);
    v25 += v46;
    weights[y][v8][v9] = v46;
    let v75 = max(v24, v68);
    let v76 = p_exp2(v24 - v75);
    v24 = v75;
    v26 = v26 * v76;
    v22 = v22 * v76;
    v47 = p_exp2(v47 - v75);
    v26 += v47;
    weights[v1][v5][v9] = v47;
    v48 = p_exp2(v48 - v75);
    v26 += v48;
    weights[v1][v6][v9] = v48;
    v49 = p_exp2(v49 - v75);
    v26 += v49;
    weights[v1][v7][v9] = v49;
    v50 = p_exp2(v50 - v75);
    v26 += v50;
    weights[v1][v8][v9] = v50;
    workgroupBarrier();
    {
      let v77 = weights[y][0u];
      let v78 = weights[v1][0u];
      {
        let v79 = values[0u][v12];
        v21 = fma(vec4<f32>(v77.x), v79, v21);
        v22 = fma(vec4<f32>(v78.x), v79, v22);
      }
      {
        let v80 = values[1u][v12];
        v21 = fma(vec4<f32>(v77.y), v80, v21);
        v22 = fma(vec4<f32>(v78.y), v80, v22);
      }
      {
        let v81 = values[2u][v12];
        v21 = fma(vec4<f32>(v77.z), v81, v21);
        v22 = fma(vec4<f32>(v78.z), v81, v22);
      }
      {
        let v82 = values[3u][v12];
        v21 = fma(vec4<f32>(v77.w), v82, v21);
        v22 = fma(vec4<f32>(v78.w), v82, v22);
      }
    }
    {
      let v83 = weights[y][1u];
      let v84 = weights[v1][1u];
      {
        let v85 = values[4u][v12];
        v21 = fma(vec4<f32>(v83.x), v85, v21);
        v22 = fma(vec4<f32>(v84.x), v85, v22);
      }
      {
        let v86 = values[5u][v12];
        v21 = fma(vec4<f32>(v83.y), v86, v21);
        v22 = fma(vec4<f32>(v84.y), v86, v22);
      }
      {
        let v87 = values[6u][v12];
        v21 = fma(vec4<f32>(v83.z), v87, v21);
        v22 = fma(vec4<f32>(v84.z), v87, v22);
      }
      {
        let v88 = values[7u][v12];
        v21 = fma(vec4<f32>(v83.w), v88, v21);
        v22 = fma(vec4<f32>(v84.w), v88, v22);
      }
    }
    {
      let v89 = weights[y][2u];
      let v90 = weights[v1][2u];
      {
        let v91 = values[8u][v12];
        v21 = fma(vec4<f32>(v89.x), v91, v21);
        v22 = fma(vec4<f32>(v90.x), v91, v22);
      }
      {
        let v92 = values[9u][v12];
        v21 = fma(vec4<f32>(v89.y), v92, v21);
        v22 = fma(vec4<f32>(v90.y), v92, v22);
      }
      {
        let v93 = values[10u][v12];
        v21 = fma(vec4<f32>(v89.z), v93, v21);
        v22 = fma(vec4<f32>(v90.z), v93, v22);
      }
      {
        let v94 = values[11u][v12];
        v21 = fma(vec4<f32>(v89.w), v94, v21);
        v22 = fma(vec4<f32>(v90.w), v94, v22);
      }
    }
    {
      let v95 = weights[y][3u];
      let v96 = weights[v1][3u];
      {
        let v97 = values[12u][v12];
        v21 = fma(vec4<f32>(v95.x), v97, v21);
        v22 = fma(vec4<f32>(v96.x), v97, v22);
      }
      {
        let v98 = values[13u][v12];
        v21 = fma(vec4<f32>(v95.y), v98, v21);
        v22 = fma(vec4<f32>(v96.y), v98, v22);
      }
      {
        let v99 = values[14u][v12];
        v21 = fma(vec4<f32>(v95.z), v99, v21);
        v22 = fma(vec4<f32>(v96.z), v99, v22);
      }
      {
        let v100 = values[15u][v12];
        v21 = fma(vec4<f32>(v95.w), v100, v21);
        v22 = fma(vec4<f32>(v96.w), v100, v22);
      }
    }
    {
      let v101 = weights[y][4u];
      let v102 = weights[v1][4u];
      {
        let v103 = values[16u][v12];
        v21 = fma(vec4<f32>(v101.x), v103, v21);
        v22 = fma(vec4<f32>(v102.x), v103, v22);
      }
      {
        let v104 = values[17u][v12];
        v21 = fma(vec4<f32>(v101.y), v104, v21);
        v22 = fma(vec4<f32>(v102.y), v104, v22);
      }
      {
        let v105 = values[18u][v12];
        v21 = fma(vec4<f32>(v101.z), v105, v21);
        v22 = fma(vec4<f32>(v102.z), v105, v22);
      }
      {
        let v106 = values[19u][v12];
        v21 = fma(vec4<f32>(v101.w), v106, v21);
        v22 = fma(vec4<f32>(v102.w), v106, v22);
      }
    }
    {
      let v107 = weights[y][5u];
      let v108 = weights[v1][5u];
      {
        let v109 = values[20u][v12];
        v21 = fma(vec4<f32>(v107.x), v109, v21);
        v22 = fma(vec4<f32>(v108.x), v109, v22);
      }
      {
        let v110 = values[21u][v12];
        v21 = fma(vec4<f32>(v107.y), v110, v21);
        v22 = fma(vec4<f32>(v108.y), v110, v22);
      }
      {
        let v111 = values[22u][v12];
        v21 = fma(vec4<f32>(v107.z), v111, v21);
        v22 = fma(vec4<f32>(v108.z), v111, v22);
      }
      {
        let v112 = values[23u][v12];
        v21 = fma(vec4<f32>(v107.w), v112, v21);
        v22 = fma(vec4<f32>(v108.w), v112, v22);
      }
    }
    {
      let v113 = weights[y][6u];
      let v114 = weights[v1][6u];
      {
        let v115 = values[24u][v12];
        v21 = fma(vec4<f32>(v113.x), v115, v21);
        v22 = fma(vec4<f32>(v114.x), v115, v22);
      }
      {
        let v116 = values[25u][v12];
        v21 = fma(vec4<f32>(v113.y), v116, v21);
        v22 = fma(vec4<f32>(v114.y), v116, v22);
      }
      {
        let v117 = values[26u][v12];
        v21 = fma(vec4<f32>(v113.z), v117, v21);
        v22 = fma(vec4<f32>(v114.z), v117, v22);
      }
      {
        let v118 = values[27u][v12];
        v21 = fma(vec4<f32>(v113.w), v118, v21);
        v22 = fma(vec4<f32>(v114.w), v118, v22);
      }
    }
    {
      let v119 = weights[y][7u];
      let v120 = weights[v1][7u];
      {
        let v121 = values[28u][v12];
        v21 = fma(vec4<f32>(v119.x), v121, v21);
        v22 = fma(vec4<f32>(v120.x), v121, v22);
      }
      {
        let v122 = values[29u][v12];
        v21 = fma(vec4<f32>(v119.y), v122, v21);
        v22 = fma(vec4<f32>(v120.y), v122, v22);
      }
      {
        let v123 = values[30u][v12];
        v21 = fma(vec4<f32>(v119.z), v123, v21);
        v22 = fma(vec4<f32>(v120.z), v123, v22);
      }
      {
        let v124 = values[31u][v12];
        v21 = fma(vec4<f32>(v119.w), v124, v21);
        v22 = fma(vec4<f32>(v120.w), v124, v22);
      }
    }
  }
  folds[y][v5][v9] = v25;
  folds[v1][v5][v9] = v26;
  workgroupBarrier();
  let v125 = folds[y][0u];
  let v126 = folds[y][1u];
  v25 = v125.x + v125.y + v125.z + v125.w + v126.x + v126.y + v126.z + v126.w;
  let v127 = folds[v1][0u];
  let v128 = folds[v1][1u];
  v26 = v127.x + v127.y + v127.z + v127.w + v128.x + v128.y + v128.z + v128.w;
  let v129 = select(v25, 1.0, v25 == 0.0);
  if (v10 < 20u) {
    let v130 = v21 / v129;
    if (x < 2u) {
      let v131 = v130.x;
      let v132 = v130.y;
      let v133 = v130.z;
      let v134 = v130.w;
      b1[v10 * 4u + head * 2u + v12] = vec4<f32>(v131, v132, v133, v134);
    }
  }
  let v135 = select(v26, 1.0, v26 == 0.0);
  if (v11 < 20u) {
    let v136 = v22 / v135;
    if (x < 2u) {
      let v137 = v136.x;
      let v138 = v136.y;
      let v139 = v136.z;
      let v140 = v136.w;
      b1[v11 * 4u + head * 2u + v12] = vec4<f32>(v137, v138, v139, v140);
    }
  }
}
