// attention_backward: grid (4, 1, 1), writes b4, b5, b6
@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b2: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> b3: array<f32>;
@group(0) @binding(4) var<storage, read_write> b4: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> b5: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> b6: array<vec4<f32>>;
fn p_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn p_exp2(x: f32) -> f32 { return select(exp2(x), x, p_isnan(x)); }
var<workgroup> weights: array<array<vec4<f32>, 10>, 32>;
var<workgroup> own: array<array<vec4<f32>, 3>, 32>;
var<workgroup> own_value: array<array<vec4<f32>, 3>, 32>;
var<workgroup> other: array<array<vec4<f32>, 3>, 32>;
var<workgroup> other_value: array<array<vec4<f32>, 3>, 32>;
var<workgroup> other_value_parts: array<array<vec4<f32>, 2>, 32>;
var<workgroup> own_value_parts: array<array<vec4<f32>, 2>, 32>;
@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
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
  if (group < 2u) {
    let first = group / 2u * 32u;
    let batch = group % 2u / 2u;
    let shared_head = group % 2u;
    {
      let v10 = lane / 2u;
      let v11 = lane % 2u;
      if (v10 < 32u) {
        let v12 = min(first + v10, 19u);
        let q0 = b0[shared_head * 40u + v12 * 2u + v11];
        let v13 = q0.x;
        let v14 = q0.y;
        let v15 = q0.z;
        let v16 = q0.w;
        let v17 = vec4<f32>(v13, v14, v15, v16);
        own[v10][v11] = v17;
      }
    }
    {
      let v18 = lane / 2u;
      let v19 = lane % 2u;
      if (v18 < 32u) {
        let v20 = min(first + v18, 19u);
        let q1 = b0[shared_head * 40u + v20 * 2u + v19];
        let v21 = q1.x;
        let v22 = q1.y;
        let v23 = q1.z;
        let v24 = q1.w;
        let v25 = vec4<f32>(v21, v22, v23, v24);
        own_value[v18][v19] = v25;
      }
    }
    let v26 = first + y;
    let v27 = first + v1;
    let v28 = min(x, 1u);
    let v29 = min(x, 1u);
    var v30 = vec4<f32>();
    var v31 = vec4<f32>();
    var v32 = vec4<f32>();
    var v33 = vec4<f32>();
    let v34 = first / 32u * 32u;
    for (var start = v34; start < 20u; start += 32u) {
      workgroupBarrier();
      {
        let v35 = lane / 2u;
        let v36 = lane % 2u;
        if (v35 < 32u) {
          let v37 = min(start + v35, 19u);
          let q2 = b0[shared_head * 40u + v37 * 2u + v36];
          let v38 = q2.x;
          let v39 = q2.y;
          let v40 = q2.z;
          let v41 = q2.w;
          let v42 = vec4<f32>(v38, v39, v40, v41);
          other[v35][v36] = v42;
        }
      }
      {
        let v43 = lane / 2u;
        let v44 = lane % 2u;
        if (v43 < 32u) {
          let v45 = min(start + v43, 19u);
          let q3 = b1[shared_head * 40u + v45 * 2u + v44];
          let v46 = q3.x;
          let v47 = q3.y;
          let v48 = q3.z;
          let v49 = q3.w;
          let v50 = vec4<f32>(v46, v47, v48, v49);
          other_value[v43][v44] = v50;
          let q4 = b2[v45 * 4u + shared_head * 2u + v44];
          let v51 = q4.x;
          let v52 = q4.y;
          let v53 = q4.z;
          let v54 = q4.w;
          other_value_parts[v43][v44 / 4u][v44 % 4u] = dot(v50, vec4<f32>(v51, v52, v53, v54));
        }
      }
      workgroupBarrier();
      var v55 = f32();
      var v56 = f32();
      var v57 = f32();
      var v58 = f32();
      var v59 = f32();
      var v60 = f32();
      var v61 = f32();
      var v62 = f32();
      var v63 = f32();
      var v64 = f32();
      var v65 = f32();
      var v66 = f32();
      var v67 = f32();
      var v68 = f32();
      var v69 = f32();
      var v70 = f32();
      {
        let v71 = own[y][0u];
        let v72 = own[v1][0u];
        let v73 = other[x][0u];
        let v74 = other[v2][0u];
        let v75 = other[v3][0u];
        let v76 = other[v4][0u];
        v55 = fma(v71.x, v73.x, v55);
        v56 = fma(v71.x, v74.x, v56);
        v57 = fma(v71.x, v75.x, v57);
        v58 = fma(v71.x, v76.x, v58);
        v59 = fma(v72.x, v73.x, v59);
        v60 = fma(v72.x, v74.x, v60);
        v61 = fma(v72.x, v75.x, v61);
        v62 = fma(v72.x, v76.x, v62);
        v55 = fma(v71.y, v73.y, v55);
        v56 = fma(v71.y, v74.y, v56);
        v57 = fma(v71.y, v75.y, v57);
        v58 = fma(v71.y, v76.y, v58);
        v59 = fma(v72.y, v73.y, v59);
        v60 = fma(v72.y, v74.y, v60);
        v61 = fma(v72.y, v75.y, v61);
        v62 = fma(v72.y, v76.y, v62);
        v55 = fma(v71.z, v73.z, v55);
        v56 = fma(v71.z, v74.z, v56);
        v57 = fma(v71.z, v75.z, v57);
        v58 = fma(v71.z, v76.z, v58);
        v59 = fma(v72.z, v73.z, v59);
        v60 = fma(v72.z, v74.z, v60);
        v61 = fma(v72.z, v75.z, v61);
        v62 = fma(v72.z, v76.z, v62);
        v55 = fma(v71.w, v73.w, v55);
        v56 = fma(v71.w, v74.w, v56);
        v57 = fma(v71.w, v75.w, v57);
        v58 = fma(v71.w, v76.w, v58);
        v59 = fma(v72.w, v73.w, v59);
        v60 = fma(v72.w, v74.w, v60);
        v61 = fma(v72.w, v75.w, v61);
        v62 = fma(v72.w, v76.w, v62);
      }
      {
        let v77 = own[y][1u];
        let v78 = own[v1][1u];
        let v79 = other[x][1u];
        let v80 = other[v2][1u];
        let v81 = other[v3][1u];
        let v82 = other[v4][1u];
        v55 = fma(v77.x, v79.x, v55);
        v56 = fma(v77.x, v80.x, v56);
        v57 = fma(v77.x, v81.x, v57);
        v58 = fma(v77.x, v82.x, v58);
        v59 = fma(v78.x, v79.x, v59);
        v60 = fma(v78.x, v80.x, v60);
        v61 = fma(v78.x, v81.x, v61);
        v62 = fma(v78.x, v82.x, v62);
        v55 = fma(v77.y, v79.y, v55);
        v56 = fma(v77.y, v80.y, v56);
        v57 = fma(v77.y, v81.y, v57);
        v58 = fma(v77.y, v82.y, v58);
        v59 = fma(v78.y, v79.y, v59);
        v60 = fma(v78.y, v80.y, v60);
        v61 = fma(v78.y, v81.y, v61);
        v62 = fma(v78.y, v82.y, v62);
        v55 = fma(v77.z, v79.z, v55);
        v56 = fma(v77.z, v80.z, v56);
        v57 = fma(v77.z, v81.z, v57);
        v58 = fma(v77.z, v82.z, v58);
        v59 = fma(v78.z, v79.z, v59);
        v60 = fma(v78.z, v80.z, v60);
        v61 = fma(v78.z, v81.z, v61);
        v62 = fma(v78.z, v82.z, v62);
        v55 = fma(v77.w, v79.w, v55);
        v56 = fma(v77.w, v80.w, v56);
        v57 = fma(v77.w, v81.w, v57);
        v58 = fma(v77.w, v82.w, v58);
        v59 = fma(v78.w, v79.w, v59);
        v60 = fma(v78.w, v80.w, v60);
        v61 = fma(v78.w, v81.w, v61);
        v62 = fma(v78.w, v82.w, v62);
      }
      {
        let v83 = own_value[y][0u];
        let v84 = own_value[v1][0u];
        let v85 = other_value[x][0u];
        let v86 = other_value[v2][0u];
        let v87 = other_value[v3][0u];
        let v88 = other_value[v4][0u];
        v63 = fma(v83.x, v85.x, v63);
        v64 = fma(v83.x, v86.x, v64);
        v65 = fma(v83.x, v87.x, v65);
        v66 = fma(v83.x, v88.x, v66);
        v67 = fma(v84.x, v85.x, v67);
        v68 = fma(v84.x, v86.x, v68);
        v69 = fma(v84.x, v87.x, v69);
        v70 = fma(v84.x, v88.x, v70);
        v63 = fma(v83.y, v85.y, v63);
        v64 = fma(v83.y, v86.y, v64);
        v65 = fma(v83.y, v87.y, v65);
        v66 = fma(v83.y, v88.y, v66);
        v67 = fma(v84.y, v85.y, v67);
        v68 = fma(v84.y, v86.y, v68);
        v69 = fma(v84.y, v87.y, v69);
        v70 = fma(v84.y, v88.y, v70);
        v63 = fma(v83.z, v85.z, v63);
        v64 = fma(v83.z, v86.z, v64);
        v65 = fma(v83.z, v87.z, v65);
        v66 = fma(v83.z, v88.z, v66);
        v67 = fma(v84.z, v85.z, v67);
        v68 = fma(v84.z, v86.z, v68);
        v69 = fma(v84.z, v87.z, v69);
        v70 = fma(v84.z, v88.z, v70);
        v63 = fma(v83.w, v85.w, v63);
        v64 = fma(v83.w, v86.w, v64);
        v65 = fma(v83.w, v87.w, v65);
        v66 = fma(v83.w, v88.w, v66);
        v67 = fma(v84.w, v85.w, v67);
        v68 = fma(v84.w, v86.w, v68);
        v69 = fma(v84.w, v87.w, v69);
        v70 = fma(v84.w, v88.w, v70);
      }
      {
        let v89 = own_value[y][1u];
        let v90 = own_value[v1][1u];
        let v91 = other_value[x][1u];
        let v92 = other_value[v2][1u];
        let v93 = other_value[v3][1u];
        let v94 = other_value[v4][1u];
        v63 = fma(v89.x, v91.x, v63);
        v64 = fma(v89.x, v92.x, v64);
        v65 = fma(v89.x, v93.x, v65);
        v66 = fma(v89.x, v94.x, v66);
        v67 = fma(v90.x, v91.x, v67);
        v68 = fma(v90.x, v92.x, v68);
        v69 = fma(v90.x, v93.x, v69);
        v70 = fma(v90.x, v94.x, v70);
        v63 = fma(v89.y, v91.y, v63);
        v64 = fma(v89.y, v92.y, v64);
        v65 = fma(v89.y, v93.y, v65);
        v66 = fma(v89.y, v94.y, v66);
        v67 = fma(v90.y, v91.y, v67);
        v68 = fma(v90.y, v92.y, v68);
        v69 = fma(v90.y, v93.y, v69);
        v70 = fma(v90.y, v94.y, v70);
        v63 = fma(v89.z, v91.z, v63);
        v64 = fma(v89.z, v92.z, v64);
        v65 = fma(v89.z, v93.z, v65);
        v66 = fma(v89.z, v94.z, v66);
        v67 = fma(v90.z, v91.z, v67);
        v68 = fma(v90.z, v92.z, v68);
        v69 = fma(v90.z, v93.z, v69);
        v70 = fma(v90.z, v94.z, v70);
        v63 = fma(v89.w, v91.w, v63);
        v64 = fma(v89.w, v92.w, v64);
        v65 = fma(v89.w, v93.w, v65);
        v66 = fma(v89.w, v94.w, v66);
        v67 = fma(v90.w, v91.w, v67);
        v68 = fma(v90.w, v92.w, v68);
        v69 = fma(v90.w, v93.w, v69);
        v70 = fma(v90.w, v94.w, v70);
      }
      let v95 = start + x;
      let v96 = min(v95, 19u);
      let v97 = other_value_parts[x][0u];
      let v98 = v97.x + v97.y;
      let v99 = b3[shared_head * 20u + v96];
      let v100 = select(0.0, select(0.0, p_exp2(v55 * 0.5100697232983947 - v99), v95 < 20u), v26 <= v95);
      v63 = v100 * (v63 - v98) * 0.35355339059327373;
      v55 = v100;
      let v101 = select(0.0, select(0.0, p_exp2(v59 * 0.5100697232983947 - v99), v95 < 20u), v27 <= v95);
      v67 = v101 * (v67 - v98) * 0.35355339059327373;
      v59 = v101;
      let v102 = start + v2;
      let v103 = min(v102, 19u);
      let v104 = other_value_parts[v2][0u];
      let v105 = v104.x + v104.y;
      let v106 = b3[shared_head * 20u + v103];
      let v107 = select(0.0, select(0.0, p_exp2(v56 * 0.5100697232983947 - v106), v102 < 20u), v26 <= v102);
      v64 = v107 * (v64 - v105) * 0.35355339059327373;
      v56 = v107;
      let v108 = select(0.0, select(0.0, p_exp2(v60 * 0.5100697232983947 - v106), v102 < 20u), v27 <= v102);
      v68 = v108 * (v68 - v105) * 0.35355339059327373;
      v60 = v108;
      let v109 = start + v3;
      let v110 = min(v109, 19u);
      let v111 = other_value_parts[v3][0u];
      let v112 = v111.x + v111.y;
      let v113 = b3[shared_head * 20u + v110];
      let v114 = select(0.0, select(0.0, p_exp2(v57 * 0.5100697232983947 - v113), v109 < 20u), v26 <= v109);
      v65 = v114 * (v65 - v112) * 0.35355339059327373;
      v57 = v114;
      let v115 = select(0.0, select(0.0, p_exp2(v61 * 0.5100697232983947 - v113), v109 < 20u), v27 <= v109);
      v69 = v115 * (v69 - v112) * 0.35355339059327373;
      v61 = v115;
      let v116 = start + v4;
      let v117 = min(v116, 19u);
      let v118 = other_value_parts[v4][0u];
      let v119 = v118.x + v118.y;
      let v120 = b3[shared_head * 20u + v117];
      let v121 = select(0.0, select(0.0, p_exp2(v58 * 0.5100697232983947 - v120), v116 < 20u), v26 <= v116);
      v66 = v121 * (v66 - v119) * 0.35355339059327373;
      v58 = v121;
      let v122 = select(0.0, select(0.0, p_exp2(v62 * 0.5100697232983947 - v120), v116 < 20u), v27 <= v116);
      v70 = v122 * (v70 - v119) * 0.35355339059327373;
      v62 = v122;
      weights[y][v5][v9] = v55;
      weights[y][v6][v9] = v56;
      weights[y][v7][v9] = v57;
      weights[y][v8][v9] = v58;
      weights[v1][v5][v9] = v59;
      weights[v1][v6][v9] = v60;
      weights[v1][v7][v9] = v61;
      weights[v1][v8][v9] = v62;
      workgroupBarrier();
      {
        let v123 = weights[y][0u];
        let v124 = weights[v1][0u];
        {
          let v125 = other_value[0u][v29];
          v32 = fma(vec4<f32>(v123.x), v125, v32);
          v33 = fma(vec4<f32>(v124.x), v125, v33);
        }
        {
          let v126 = other_value[1u][v29];
          v32 = fma(vec4<f32>(v123.y), v126, v32);
          v33 = fma(vec4<f32>(v124.y), v126, v33);
        }
        {
          let v127 = other_value[2u][v29];
          v32 = fma(vec4<f32>(v123.z), v127, v32);
          v33 = fma(vec4<f32>(v124.z), v127, v33);
        }
        {
          let v128 = other_value[3u][v29];
          v32 = fma(vec4<f32>(v123.w), v128, v32);
          v33 = fma(vec4<f32>(v124.w), v128, v33);
        }
      }
      {
        let v129 = weights[y][1u];
        let v130 = weights[v1][1u];
        {
          let v131 = other_value[4u][v29];
          v32 = fma(vec4<f32>(v129.x), v131, v32);
          v33 = fma(vec4<f32>(v130.x), v131, v33);
        }
        {
          let v132 = other_value[5u][v29];
          v32 = fma(vec4<f32>(v129.y), v132, v32);
          v33 = fma(vec4<f32>(v130.y), v132, v33);
        }
        {
          let v133 = other_value[6u][v29];
          v32 = fma(vec4<f32>(v129.z), v133, v32);
          v33 = fma(vec4<f32>(v130.z), v133, v33);
        }
        {
          let v134 = other_value[7u][v29];
          v32 = fma(vec4<f32>(v129.w), v134, v32);
          v33 = fma(vec4<f32>(v130.w), v134, v33);
        }
      }
      {
        let v135 = weights[y][2u];
        let v136 = weights[v1][2u];
        {
          let v137 = other_value[8u][v29];
          v32 = fma(vec4<f32>(v135.x), v137, v32);
          v33 = fma(vec4<f32>(v136.x), v137, v33);
        }
        {
          let v138 = other_value[9u][v29];
          v32 = fma(vec4<f32>(v135.y), v138, v32);
          v33 = fma(vec4<f32>(v136.y), v138, v33);
        }
        {
          let v139 = other_value[10u][v29];
          v32 = fma(vec4<f32>(v135.z), v139, v32);
          v33 = fma(vec4<f32>(v136.z), v139, v33);
        }
        {
          let v140 = other_value[11u][v29];
          v32 = fma(vec4<f32>(v135.w), v140, v32);
          v33 = fma(vec4<f32>(v136.w), v140, v33);
        }
      }
      {
        let v141 = weights[y][3u];
        let v142 = weights[v1][3u];
        {
          let v143 = other_value[12u][v29];
          v32 = fma(vec4<f32>(v141.x), v143, v32);
          v33 = fma(vec4<f32>(v142.x), v143, v33);
        }
        {
          let v144 = other_value[13u][v29];
          v32 = fma(vec4<f32>(v141.y), v144, v32);
          v33 = fma(vec4<f32>(v142.y), v144, v33);
        }
        {
          let v145 = other_value[14u][v29];
          v32 = fma(vec4<f32>(v141.z), v145, v32);
          v33 = fma(vec4<f32>(v142.z), v145, v33);
        }
        {
          let v146 = other_value[15u][v29];
          v32 = fma(vec4<f32>(v141.w), v146, v32);
          v33 = fma(vec4<f32>(v142.w), v146, v33);
        }
      }
      {
        let v147 = weights[y][4u];
        let v148 = weights[v1][4u];
        {
          let v149 = other_value[16u][v29];
          v32 = fma(vec4<f32>(v147.x), v149, v32);
          v33 = fma(vec4<f32>(v148.x), v149, v33);
        }
        {
          let v150 = other_value[17u][v29];
          v32 = fma(vec4<f32>(v147.y), v150, v32);
          v33 = fma(vec4<f32>(v148.y), v150, v33);
        }
        {
          let v151 = other_value[18u][v29];
          v32 = fma(vec4<f32>(v147.z), v151, v32);
          v33 = fma(vec4<f32>(v148.z), v151, v33);
        }
        {
          let v152 = other_value[19u][v29];
          v32 = fma(vec4<f32>(v147.w), v152, v32);
          v33 = fma(vec4<f32>(v148.w), v152, v33);
        }
      }
      {
        let v153 = weights[y][5u];
        let v154 = weights[v1][5u];
        {
          let v155 = other_value[20u][v29];
          v32 = fma(vec4<f32>(v153.x), v155, v32);
          v33 = fma(vec4<f32>(v154.x), v155, v33);
        }
        {
          let v156 = other_value[21u][v29];
          v32 = fma(vec4<f32>(v153.y), v156, v32);
          v33 = fma(vec4<f32>(v154.y), v156, v33);
        }
        {
          let v157 = other_value[22u][v29];
          v32 = fma(vec4<f32>(v153.z), v157, v32);
          v33 = fma(vec4<f32>(v154.z), v157, v33);
        }
        {
          let v158 = other_value[23u][v29];
          v32 = fma(vec4<f32>(v153.w), v158, v32);
          v33 = fma(vec4<f32>(v154.w), v158, v33);
        }
      }
      {
        let v159 = weights[y][6u];
        let v160 = weights[v1][6u];
        {
          let v161 = other_value[24u][v29];
          v32 = fma(vec4<f32>(v159.x), v161, v32);
          v33 = fma(vec4<f32>(v160.x), v161, v33);
        }
        {
          let v162 = other_value[25u][v29];
          v32 = fma(vec4<f32>(v159.y), v162, v32);
          v33 = fma(vec4<f32>(v160.y), v162, v33);
        }
        {
          let v163 = other_value[26u][v29];
          v32 = fma(vec4<f32>(v159.z), v163, v32);
          v33 = fma(vec4<f32>(v160.z), v163, v33);
        }
        {
          let v164 = other_value[27u][v29];
          v32 = fma(vec4<f32>(v159.w), v164, v32);
          v33 = fma(vec4<f32>(v160.w), v164, v33);
        }
      }
      {
        let v165 = weights[y][7u];
        let v166 = weights[v1][7u];
        {
          let v167 = other_value[28u][v29];
          v32 = fma(vec4<f32>(v165.x), v167, v32);
          v33 = fma(vec4<f32>(v166.x), v167, v33);
        }
        {
          let v168 = other_value[29u][v29];
          v32 = fma(vec4<f32>(v165.y), v168, v32);
          v33 = fma(vec4<f32>(v166.y), v168, v33);
        }
        {
          let v169 = other_value[30u][v29];
          v32 = fma(vec4<f32>(v165.z), v169, v32);
          v33 = fma(vec4<f32>(v166.z), v169, v33);
        }
        {
          let v170 = other_value[31u][v29];
          v32 = fma(vec4<f32>(v165.w), v170, v32);
          v33 = fma(vec4<f32>(v166.w), v170, v33);
        }
      }
      workgroupBarrier();
      weights[y][v5][v9] = v63;
      weights[y][v6][v9] = v64;
      weights[y][v7][v9] = v65;
      weights[y][v8][v9] = v66;
      weights[v1][v5][v9] = v67;
      weights[v1][v6][v9] = v68;
      weights[v1][v7][v9] = v69;
      weights[v1][v8][v9] = v70;
      workgroupBarrier();
      {
        let v171 = weights[y][0u];
        let v172 = weights[v1][0u];
        {
          let v173 = other[0u][v28];
          v30 = fma(vec4<f32>(v171.x), v173, v30);
          v31 = fma(vec4<f32>(v172.x), v173, v31);
        }
        {
          let v174 = other[1u][v28];
          v30 = fma(vec4<f32>(v171.y), v174, v30);
          v31 = fma(vec4<f32>(v172.y), v174, v31);
        }
        {
          let v175 = other[2u][v28];
          v30 = fma(vec4<f32>(v171.z), v175, v30);
          v31 = fma(vec4<f32>(v172.z), v175, v31);
        }
        {
          let v176 = other[3u][v28];
          v30 = fma(vec4<f32>(v171.w), v176, v30);
          v31 = fma(vec4<f32>(v172.w), v176, v31);
        }
      }
      {
        let v177 = weights[y][1u];
        let v178 = weights[v1][1u];
        {
          let v179 = other[4u][v28];
          v30 = fma(vec4<f32>(v177.x), v179, v30);
          v31 = fma(vec4<f32>(v178.x), v179, v31);
        }
        {
          let v180 = other[5u][v28];
          v30 = fma(vec4<f32>(v177.y), v180, v30);
          v31 = fma(vec4<f32>(v178.y), v180, v31);
        }
        {
          let v181 = other[6u][v28];
          v30 = fma(vec4<f32>(v177.z), v181, v30);
          v31 = fma(vec4<f32>(v178.z), v181, v31);
        }
        {
          let v182 = other[7u][v28];
          v30 = fma(vec4<f32>(v177.w), v182, v30);
          v31 = fma(vec4<f32>(v178.w), v182, v31);
        }
      }
      {
        let v183 = weights[y][2u];
        let v184 = weights[v1][2u];
        {
          let v185 = other[8u][v28];
          v30 = fma(vec4<f32>(v183.x), v185, v30);
          v31 = fma(vec4<f32>(v184.x), v185, v31);
        }
        {
          let v186 = other[9u][v28];
          v30 = fma(vec4<f32>(v183.y), v186, v30);
          v31 = fma(vec4<f32>(v184.y), v186, v31);
        }
        {
          let v187 = other[10u][v28];
          v30 = fma(vec4<f32>(v183.z), v187, v30);
          v31 = fma(vec4<f32>(v184.z), v187, v31);
        }
        {
          let v188 = other[11u][v28];
          v30 = fma(vec4<f32>(v183.w), v188, v30);
          v31 = fma(vec4<f32>(v184.w), v188, v31);
        }
      }
      {
        let v189 = weights[y][3u];
        let v190 = weights[v1][3u];
        {
          let v191 = other[12u][v28];
          v30 = fma(vec4<f32>(v189.x), v191, v30);
          v31 = fma(vec4<f32>(v190.x), v191, v31);
        }
        {
          let v192 = other[13u][v28];
          v30 = fma(vec4<f32>(v189.y), v192, v30);
          v31 = fma(vec4<f32>(v190.y), v192, v31);
        }
        {
          let v193 = other[14u][v28];
          v30 = fma(vec4<f32>(v189.z), v193, v30);
          v31 = fma(vec4<f32>(v190.z), v193, v31);
        }
        {
          let v194 = other[15u][v28];
          v30 = fma(vec4<f32>(v189.w), v194, v30);
          v31 = fma(vec4<f32>(v190.w), v194, v31);
        }
      }
      {
        let v195 = weights[y][4u];
        let v196 = weights[v1][4u];
        {
          let v197 = other[16u][v28];
          v30 = fma(vec4<f32>(v195.x), v197, v30);
          v31 = fma(vec4<f32>(v196.x), v197, v31);
        }
        {
          let v198 = other[17u][v28];
          v30 = fma(vec4<f32>(v195.y), v198, v30);
          v31 = fma(vec4<f32>(v196.y), v198, v31);
        }
        {
          let v199 = other[18u][v28];
          v30 = fma(vec4<f32>(v195.z), v199, v30);
          v31 = fma(vec4<f32>(v196.z), v199, v31);
        }
        {
          let v200 = other[19u][v28];
          v30 = fma(vec4<f32>(v195.w), v200, v30);
          v31 = fma(vec4<f32>(v196.w), v200, v31);
        }
      }
      {
        let v201 = weights[y][5u];
        let v202 = weights[v1][5u];
        {
          let v203 = other[20u][v28];
          v30 = fma(vec4<f32>(v201.x), v203, v30);
          v31 = fma(vec4<f32>(v202.x), v203, v31);
        }
        {
          let v204 = other[21u][v28];
          v30 = fma(vec4<f32>(v201.y), v204, v30);
          v31 = fma(vec4<f32>(v202.y), v204, v31);
        }
        {
          let v205 = other[22u][v28];
          v30 = fma(vec4<f32>(v201.z), v205, v30);
          v31 = fma(vec4<f32>(v202.z), v205, v31);
        }
        {
          let v206 = other[23u][v28];
          v30 = fma(vec4<f32>(v201.w), v206, v30);
          v31 = fma(vec4<f32>(v202.w), v206, v31);
        }
      }
      {
        let v207 = weights[y][6u];
        let v208 = weights[v1][6u];
        {
          let v209 = other[24u][v28];
          v30 = fma(vec4<f32>(v207.x), v209, v30);
          v31 = fma(vec4<f32>(v208.x), v209, v31);
        }
        {
          let v210 = other[25u][v28];
          v30 = fma(vec4<f32>(v207.y), v210, v30);
          v31 = fma(vec4<f32>(v208.y), v210, v31);
        }
        {
          let v211 = other[26u][v28];
          v30 = fma(vec4<f32>(v207.z), v211, v30);
          v31 = fma(vec4<f32>(v208.z), v211, v31);
        }
        {
          let v212 = other[27u][v28];
          v30 = fma(vec4<f32>(v207.w), v212, v30);
          v31 = fma(vec4<f32>(v208.w), v212, v31);
        }
      }
      {
        let v213 = weights[y][7u];
        let v214 = weights[v1][7u];
        {
          let v215 = other[28u][v28];
          v30 = fma(vec4<f32>(v213.x), v215, v30);
          v31 = fma(vec4<f32>(v214.x), v215, v31);
        }
        {
          let v216 = other[29u][v28];
          v30 = fma(vec4<f32>(v213.y), v216, v30);
          v31 = fma(vec4<f32>(v214.y), v216, v31);
        }
        {
          let v217 = other[30u][v28];
          v30 = fma(vec4<f32>(v213.z), v217, v30);
          v31 = fma(vec4<f32>(v214.z), v217, v31);
        }
        {
          let v218 = other[31u][v28];
          v30 = fma(vec4<f32>(v213.w), v218, v30);
          v31 = fma(vec4<f32>(v214.w), v218, v31);
        }
      }
    }
    if (v26 < 20u) {
      if (x < 2u) {
        let v219 = v30.x;
        let v220 = v30.y;
        let v221 = v30.z;
        let v222 = v30.w;
        b4[v26 * 4u + shared_head * 2u + v28] = vec4<f32>(v219, v220, v221, v222);
      }
      if (x < 2u) {
        let v223 = v32.x;
        let v224 = v32.y;
        let v225 = v32.z;
        let v226 = v32.w;
        b5[v26 * 4u + shared_head * 2u + v29] = vec4<f32>(v223, v224, v225, v226);
      }
    }
    if (v27 < 20u) {
      if (x < 2u) {
        let v227 = v31.x;
        let v228 = v31.y;
        let v229 = v31.z;
        let v230 = v31.w;
        b4[v27 * 4u + shared_head * 2u + v28] = vec4<f32>(v227, v228, v229, v230);
      }
      if (x < 2u) {
        let v231 = v33.x;
        let v232 = v33.y;
        let v233 = v33.z;
        let v234 = v33.w;
        b5[v27 * 4u + shared_head * 2u + v29] = vec4<f32>(v231, v232, v233, v234);
      }
    }
  }
  else {
    let v235 = group - 2u;
    let first = (0u - v235 / 2u) * 32u;
    let batch = v235 % 2u / 2u;
    let head = v235 % 2u;
    {
      let v236 = lane / 2u;
      let v237 = lane % 2u;
      if (v236 < 32u) {
        let v238 = min(first + v236, 19u);
        let q5 = b0[head * 40u + v238 * 2u + v237];
        let v239 = q5.x;
        let v240 = q5.y;
        let v241 = q5.z;
        let v242 = q5.w;
        let v243 = vec4<f32>(v239, v240, v241, v242);
        own[v236][v237] = v243;
      }
    }
    {
      let v244 = lane / 2u;
      let v245 = lane % 2u;
      if (v244 < 32u) {
        let v246 = min(first + v244, 19u);
        let q6 = b1[head * 40u + v246 * 2u + v245];
        let v247 = q6.x;
        let v248 = q6.y;
        let v249 = q6.z;
        let v250 = q6.w;
        let v251 = vec4<f32>(v247, v248, v249, v250);
        own_value[v244][v245] = v251;
        let q7 = b2[v246 * 4u + head * 2u + v245];
        let v252 = q7.x;
        let v253 = q7.y;
        let v254 = q7.z;
        let v255 = q7.w;
        own_value_parts[v244][v245 / 4u][v245 % 4u] = dot(v251, vec4<f32>(v252, v253, v254, v255));
      }
    }
    let v256 = first + y;
    let v257 = first + v1;
    workgroupBarrier();
    let v258 = min(v256, 19u);
    let v259 = own_value_parts[y][0u];
    let v260 = v259.x + v259.y;
    let v261 = b3[head * 20u + v258];
    let v262 = min(v257, 19u);
    let v263 = own_value_parts[v1][0u];
    let v264 = v263.x + v263.y;
    let v265 = b3[head * 20u + v262];
    let v266 = min(x, 1u);
    var v267 = vec4<f32>();
    var v268 = vec4<f32>();
    let end = min(first + 32u, 20u);
    for (var start = 0u; start < end; start += 32u) {
      workgroupBarrier();
      {
        let v269 = lane / 2u;
        let v270 = lane % 2u;
        if (v269 < 32u) {
          let v271 = min(start + v269, 19u);
          let q8 = b0[head * 40u + v271 * 2u + v270];
          let v272 = q8.x;
          let v273 = q8.y;
          let v274 = q8.z;
          let v275 = q8.w;
          let v276 = vec4<f32>(v272, v273, v274, v275);
          other[v269][v270] = v276;
        }
      }
      {
        let v277 = lane / 2u;
        let v278 = lane % 2u;
        if (v277 < 32u) {
          let v279 = min(start + v277, 19u);
          let q9 = b0[head * 40u + v279 * 2u + v278];
          let v280 = q9.x;
          let v281 = q9.y;
          let v282 = q9.z;
          let v283 = q9.w;
          let v284 = vec4<f32>(v280, v281, v282, v283);
          other_value[v277][v278] = v284;
        }
      }
      workgroupBarrier();
      var v285 = f32();
      var v286 = f32();
      var v287 = f32();
      var v288 = f32();
      var v289 = f32();
      var v290 = f32();
      var v291 = f32();
      var v292 = f32();
      var v293 = f32();
      var v294 = f32();
      var v295 = f32();
      var v296 = f32();
      var v297 = f32();
      var v298 = f32();
      var v299 = f32();
      var v300 = f32();
      {
        let v301 = own[y][0u];
        let v302 = own[v1][0u];
        let v303 = other[x][0u];
        let v304 = other[v2][0u];
        let v305 = other[v3][0u];
        let v306 = other[v4][0u];
        v285 = fma(v301.x, v303.x, v285);
        v286 = fma(v301.x, v304.x, v286);
        v287 = fma(v301.x, v305.x, v287);
        v288 = fma(v301.x, v306.x, v288);
        v289 = fma(v302.x, v303.x, v289);
        v290 = fma(v302.x, v304.x, v290);
        v291 = fma(v302.x, v305.x, v291);
        v292 = fma(v302.x, v306.x, v292);
        v285 = fma(v301.y, v303.y, v285);
        v286 = fma(v301.y, v304.y, v286);
        v287 = fma(v301.y, v305.y, v287);
        v288 = fma(v301.y, v306.y, v288);
        v289 = fma(v302.y, v303.y, v289);
        v290 = fma(v302.y, v304.y, v290);
        v291 = fma(v302.y, v305.y, v291);
        v292 = fma(v302.y, v306.y, v292);
        v285 = fma(v301.z, v303.z, v285);
        v286 = fma(v301.z, v304.z, v286);
        v287 = fma(v301.z, v305.z, v287);
        v288 = fma(v301.z, v306.z, v288);
        v289 = fma(v302.z, v303.z, v289);
        v290 = fma(v302.z, v304.z, v290);
        v291 = fma(v302.z, v305.z, v291);
        v292 = fma(v302.z, v306.z, v292);
        v285 = fma(v301.w, v303.w, v285);
        v286 = fma(v301.w, v304.w, v286);
        v287 = fma(v301.w, v305.w, v287);
        v288 = fma(v301.w, v306.w, v288);
        v289 = fma(v302.w, v303.w, v289);
        v290 = fma(v302.w, v304.w, v290);
        v291 = fma(v302.w, v305.w, v291);
        v292 = fma(v302.w, v306.w, v292);
      }
      {
        let v307 = own[y][1u];
        let v308 = own[v1][1u];
        let v309 = other[x][1u];
        let v310 = other[v2][1u];
        let v311 = other[v3][1u];
        let v312 = other[v4][1u];
        v285 = fma(v307.x, v309.x, v285);
        v286 = fma(v307.x, v310.x, v286);
        v287 = fma(v307.x, v311.x, v287);
        v288 = fma(v307.x, v312.x, v288);
        v289 = fma(v308.x, v309.x, v289);
        v290 = fma(v308.x, v310.x, v290);
        v291 = fma(v308.x, v311.x, v291);
        v292 = fma(v308.x, v312.x, v292);
        v285 = fma(v307.y, v309.y, v285);
        v286 = fma(v307.y, v310.y, v286);
        v287 = fma(v307.y, v311.y, v287);
        v288 = fma(v307.y, v312.y, v288);
        v289 = fma(v308.y, v309.y, v289);
        v290 = fma(v308.y, v310.y, v290);
        v291 = fma(v308.y, v311.y, v291);
        v292 = fma(v308.y, v312.y, v292);
        v285 = fma(v307.z, v309.z, v285);
        v286 = fma(v307.z, v310.z, v286);
        v287 = fma(v307.z, v311.z, v287);
        v288 = fma(v307.z, v312.z, v288);
        v289 = fma(v308.z, v309.z, v289);
        v290 = fma(v308.z, v310.z, v290);
        v291 = fma(v308.z, v311.z, v291);
        v292 = fma(v308.z, v312.z, v292);
        v285 = fma(v307.w, v309.w, v285);
        v286 = fma(v307.w, v310.w, v286);
        v287 = fma(v307.w, v311.w, v287);
        v288 = fma(v307.w, v312.w, v288);
        v289 = fma(v308.w, v309.w, v289);
        v290 = fma(v308.w, v310.w, v290);
        v291 = fma(v308.w, v311.w, v291);
        v292 = fma(v308.w, v312.w, v292);
      }
      {
        let v313 = own_value[y][0u];
        let v314 = own_value[v1][0u];
        let v315 = other_value[x][0u];
        let v316 = other_value[v2][0u];
        let v317 = other_value[v3][0u];
        let v318 = other_value[v4][0u];
        v293 = fma(v313.x, v315.x, v293);
        v294 = fma(v313.x, v316.x, v294);
        v295 = fma(v313.x, v317.x, v295);
        v296 = fma(v313.x, v318.x, v296);
        v297 = fma(v314.x, v315.x, v297);
        v298 = fma(v314.x, v316.x, v298);
        v299 = fma(v314.x, v317.x, v299);
        v300 = fma(v314.x, v318.x, v300);
        v293 = fma(v313.y, v315.y, v293);
        v294 = fma(v313.y, v316.y, v294);
        v295 = fma(v313.y, v317.y, v295);
        v296 = fma(v313.y, v318.y, v296);
        v297 = fma(v314.y, v315.y, v297);
        v298 = fma(v314.y, v316.y, v298);
        v299 = fma(v314.y, v317.y, v299);
        v300 = fma(v314.y, v318.y, v300);
        v293 = fma(v313.z, v315.z, v293);
        v294 = fma(v313.z, v316.z, v294);
        v295 = fma(v313.z, v317.z, v295);
        v296 = fma(v313.z, v318.z, v296);
        v297 = fma(v314.z, v315.z, v297);
        v298 = fma(v314.z, v316.z, v298);
        v299 = fma(v314.z, v317.z, v299);
        v300 = fma(v314.z, v318.z, v300);
        v293 = fma(v313.w, v315.w, v293);
        v294 = fma(v313.w, v316.w, v294);
        v295 = fma(v313.w, v317.w, v295);
        v296 = fma(v313.w, v318.w, v296);
        v297 = fma(v314.w, v315.w, v297);
        v298 = fma(v314.w, v316.w, v298);
        v299 = fma(v314.w, v317.w, v299);
        v300 = fma(v314.w, v318.w, v300);
      }
      {
        let v319 = own_value[y][1u];
        let v320 = own_value[v1][1u];
        let v321 = other_value[x][1u];
        let v322 = other_value[v2][1u];
        let v323 = other_value[v3][1u];
        let v324 = other_value[v4][1u];
        v293 = fma(v319.x, v321.x, v293);
        v294 = fma(v319.x, v322.x, v294);
        v295 = fma(v319.x, v323.x, v295);
        v296 = fma(v319.x, v324.x, v296);
        v297 = fma(v320.x, v321.x, v297);
        v298 = fma(v320.x, v322.x, v298);
        v299 = fma(v320.x, v323.x, v299);
        v300 = fma(v320.x, v324.x, v300);
        v293 = fma(v319.y, v321.y, v293);
        v294 = fma(v319.y, v322.y, v294);
        v295 = fma(v319.y, v323.y, v295);
        v296 = fma(v319.y, v324.y, v296);
        v297 = fma(v320.y, v321.y, v297);
        v298 = fma(v320.y, v322.y, v298);
        v299 = fma(v320.y, v323.y, v299);
        v300 = fma(v320.y, v324.y, v300);
        v293 = fma(v319.z, v321.z, v293);
        v294 = fma(v319.z, v322.z, v294);
        v295 = fma(v319.z, v323.z, v295);
        v296 = fma(v319.z, v324.z, v296);
        v297 = fma(v320.z, v321.z, v297);
        v298 = fma(v320.z, v322.z, v298);
        v299 = fma(v320.z, v323.z, v299);
        v300 = fma(v320.z, v324.z, v300);
        v293 = fma(v319.w, v321.w, v293);
        v294 = fma(v319.w, v322.w, v294);
        v295 = fma(v319.w, v323.w, v295);
        v296 = fma(v319.w, v324.w, v296);
        v297 = fma(v320.w, v321.w, v297);
        v298 = fma(v320.w, v322.w, v298);
        v299 = fma(v320.w, v323.w, v299);
        v300 = fma(v320.w, v324.w, v300);
      }
      let v325 = start + x;
      let v326 = select(0.0, select(0.0, p_exp2(v285 * 0.5100697232983947 - v261), v325 < 20u), v325 <= v256);
      v293 = v326 * (v293 - v260) * 0.35355339059327373;
      v285 = v326;
      let v327 = select(0.0, select(0.0, p_exp2(v289 * 0.5100697232983947 - v265), v325 < 20u), v325 <= v257);
      v297 = v327 * (v297 - v264) * 0.35355339059327373;
      v289 = v327;
      let v328 = start + v2;
      let v329 = select(0.0, select(0.0, p_exp2(v286 * 0.5100697232983947 - v261), v328 < 20u), v328 <= v256);
      v294 = v329 * (v294 - v260) * 0.35355339059327373;
      v286 = v329;
      let v330 = select(0.0, select(0.0, p_exp2(v290 * 0.5100697232983947 - v265), v328 < 20u), v328 <= v257);
      v298 = v330 * (v298 - v264) * 0.35355339059327373;
      v290 = v330;
      let v331 = start + v3;
      let v332 = select(0.0, select(0.0, p_exp2(v287 * 0.5100697232983947 - v261), v331 < 20u), v331 <= v256);
      v295 = v332 * (v295 - v260) * 0.35355339059327373;
      v287 = v332;
      let v333 = select(0.0, select(0.0, p_exp2(v291 * 0.5100697232983947 - v265), v331 < 20u), v331 <= v257);
      v299 = v333 * (v299 - v264) * 0.35355339059327373;
      v291 = v333;
      let v334 = start + v4;
      let v335 = select(0.0, select(0.0, p_exp2(v288 * 0.5100697232983947 - v261), v334 < 20u), v334 <= v256);
      v296 = v335 * (v296 - v260) * 0.35355339059327373;
      v288 = v335;
      let v336 = select(0.0, select(0.0, p_exp2(v292 * 0.5100697232983947 - v265), v334 < 20u), v334 <= v257);
      v300 = v336 * (v300 - v264) * 0.35355339059327373;
      v292 = v336;
      weights[y][v5][v9] = v293;
      weights[y][v6][v9] = v294;
      weights[y][v7][v9] = v295;
      weights[y][v8][v9] = v296;
      weights[v1][v5][v9] = v297;
      weights[v1][v6][v9] = v298;
      weights[v1][v7][v9] = v299;
      weights[v1][v8][v9] = v300;
      workgroupBarrier();
      {
        let v337 = weights[y][0u];
        let v338 = weights[v1][0u];
        {
          let v339 = other[0u][v266];
          v267 = fma(vec4<f32>(v337.x), v339, v267);
          v268 = fma(vec4<f32>(v338.x), v339, v268);
        }
        {
          let v340 = other[1u][v266];
          v267 = fma(vec4<f32>(v337.y), v340, v267);
          v268 = fma(vec4<f32>(v338.y), v340, v268);
        }
        {
          let v341 = other[2u][v266];
          v267 = fma(vec4<f32>(v337.z), v341, v267);
          v268 = fma(vec4<f32>(v338.z), v341, v268);
        }
        {
          let v342 = other[3u][v266];
          v267 = fma(vec4<f32>(v337.w), v342, v267);
          v268 = fma(vec4<f32>(v338.w), v342, v268);
        }
      }
      {
        let v343 = weights[y][1u];
        let v344 = weights[v1][1u];
        {
          let v345 = other[4u][v266];
          v267 = fma(vec4<f32>(v343.x), v345, v267);
          v268 = fma(vec4<f32>(v344.x), v345, v268);
        }
        {
          let v346 = other[5u][v266];
          v267 = fma(vec4<f32>(v343.y), v346, v267);
          v268 = fma(vec4<f32>(v344.y), v346, v268);
        }
        {
          let v347 = other[6u][v266];
          v267 = fma(vec4<f32>(v343.z), v347, v267);
          v268 = fma(vec4<f32>(v344.z), v347, v268);
        }
        {
          let v348 = other[7u][v266];
          v267 = fma(vec4<f32>(v343.w), v348, v267);
          v268 = fma(vec4<f32>(v344.w), v348, v268);
        }
      }
      {
        let v349 = weights[y][2u];
        let v350 = weights[v1][2u];
        {
          let v351 = other[8u][v266];
          v267 = fma(vec4<f32>(v349.x), v351, v267);
          v268 = fma(vec4<f32>(v350.x), v351, v268);
        }
        {
          let v352 = other[9u][v266];
          v267 = fma(vec4<f32>(v349.y), v352, v267);
          v268 = fma(vec4<f32>(v350.y), v352, v268);
        }
        {
          let v353 = other[10u][v266];
          v267 = fma(vec4<f32>(v349.z), v353, v267);
          v268 = fma(vec4<f32>(v350.z), v353, v268);
        }
        {
          let v354 = other[11u][v266];
          v267 = fma(vec4<f32>(v349.w), v354, v267);
          v268 = fma(vec4<f32>(v350.w), v354, v268);
        }
      }
      {
        let v355 = weights[y][3u];
        let v356 = weights[v1][3u];
        {
          let v357 = other[12u][v266];
          v267 = fma(vec4<f32>(v355.x), v357, v267);
          v268 = fma(vec4<f32>(v356.x), v357, v268);
        }
        {
          let v358 = other[13u][v266];
          v267 = fma(vec4<f32>(v355.y), v358, v267);
          v268 = fma(vec4<f32>(v356.y), v358, v268);
        }
        {
          let v359 = other[14u][v266];
          v267 = fma(vec4<f32>(v355.z), v359, v267);
          v268 = fma(vec4<f32>(v356.z), v359, v268);
        }
        {
          let v360 = other[15u][v266];
          v267 = fma(vec4<f32>(v355.w), v360, v267);
          v268 = fma(vec4<f32>(v356.w), v360, v268);
        }
      }
      {
        let v361 = weights[y][4u];
        let v362 = weights[v1][4u];
        {
          let v363 = other[16u][v266];
          v267 = fma(vec4<f32>(v361.x), v363, v267);
          v268 = fma(vec4<f32>(v362.x), v363, v268);
        }
        {
          let v364 = other[17u][v266];
          v267 = fma(vec4<f32>(v361.y), v364, v267);
          v268 = fma(vec4<f32>(v362.y), v364, v268);
        }
        {
          let v365 = other[18u][v266];
          v267 = fma(vec4<f32>(v361.z), v365, v267);
          v268 = fma(vec4<f32>(v362.z), v365, v268);
        }
        {
          let v366 = other[19u][v266];
          v267 = fma(vec4<f32>(v361.w), v366, v267);
          v268 = fma(vec4<f32>(v362.w), v366, v268);
        }
      }
      {
        let v367 = weights[y][5u];
        let v368 = weights[v1][5u];
        {
          let v369 = other[20u][v266];
          v267 = fma(vec4<f32>(v367.x), v369, v267);
          v268 = fma(vec4<f32>(v368.x), v369, v268);
        }
        {
          let v370 = other[21u][v266];
          v267 = fma(vec4<f32>(v367.y), v370, v267);
          v268 = fma(vec4<f32>(v368.y), v370, v268);
        }
        {
          let v371 = other[22u][v266];
          v267 = fma(vec4<f32>(v367.z), v371, v267);
          v268 = fma(vec4<f32>(v368.z), v371, v268);
        }
        {
          let v372 = other[23u][v266];
          v267 = fma(vec4<f32>(v367.w), v372, v267);
          v268 = fma(vec4<f32>(v368.w), v372, v268);
        }
      }
      {
        let v373 = weights[y][6u];
        let v374 = weights[v1][6u];
        {
          let v375 = other[24u][v266];
          v267 = fma(vec4<f32>(v373.x), v375, v267);
          v268 = fma(vec4<f32>(v374.x), v375, v268);
        }
        {
          let v376 = other[25u][v266];
          v267 = fma(vec4<f32>(v373.y), v376, v267);
          v268 = fma(vec4<f32>(v374.y), v376, v268);
        }
        {
          let v377 = other[26u][v266];
          v267 = fma(vec4<f32>(v373.z), v377, v267);
          v268 = fma(vec4<f32>(v374.z), v377, v268);
        }
        {
          let v378 = other[27u][v266];
          v267 = fma(vec4<f32>(v373.w), v378, v267);
          v268 = fma(vec4<f32>(v374.w), v378, v268);
        }
      }
      {
        let v379 = weights[y][7u];
        let v380 = weights[v1][7u];
        {
          let v381 = other[28u][v266];
          v267 = fma(vec4<f32>(v379.x), v381, v267);
          v268 = fma(vec4<f32>(v380.x), v381, v268);
        }
        {
          let v382 = other[29u][v266];
          v267 = fma(vec4<f32>(v379.y), v382, v267);
          v268 = fma(vec4<f32>(v380.y), v382, v268);
        }
        {
          let v383 = other[30u][v266];
          v267 = fma(vec4<f32>(v379.z), v383, v267);
          v268 = fma(vec4<f32>(v380.z), v383, v268);
        }
        {
          let v384 = other[31u][v266];
          v267 = fma(vec4<f32>(v379.w), v384, v267);
          v268 = fma(vec4<f32>(v380.w), v384, v268);
        }
      }
    }
    if (v256 < 20u) {
      if (x < 2u) {
        let v385 = v267.x;
        let v386 = v267.y;
        let v387 = v267.z;
        let v388 = v267.w;
        b6[v256 * 4u + head * 2u + v266] = vec4<f32>(v385, v386, v387, v388);
      }
    }
    if (v257 < 20u) {
      if (x < 2u) {
        let v389 = v268.x;
        let v390 = v268.y;
        let v391 = v268.z;
        let v392 = v268.w;
        b6[v257 * 4u + head * 2u + v266] = vec4<f32>(v389, v390, v391, v392);
      }
    }
  }
}
