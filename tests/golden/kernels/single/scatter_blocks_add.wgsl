// scatter_blocks_add: grid (13, 1, 1), writes b3, b4
@group(0) @binding(0) var<storage, read> b0: array<i32>;
@group(0) @binding(1) var<storage, read> b1: array<i32>;
@group(0) @binding(2) var<storage, read> b2: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> b4: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> fault: array<atomic<u32>>;
fn p_index_fault(i: i32, n: i32) -> i32 {
  if (atomicExchange(&fault[0], 1u) == 0u) {
    atomicStore(&fault[1], u32(i));
    atomicStore(&fault[2], u32(n));
  }
  return 0;
}
fn p_index_strict(i: i32, n: i32) -> i32 {
  if (i < 0 || i >= n) { return p_index_fault(i, n); }
  return i;
}
var<workgroup> number_of: array<u32, 10>;
var<workgroup> update_of: array<u32, 10>;
@compute @workgroup_size(16)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let block = group;
  let column = lane;
  for (var t = lane; t < 10u; t += 16u) {
    let after = block * 8u + t;
    number_of[t] = 4294967295u;
    update_of[t] = 0u;
    if (after > 0u && after <= 100u) {
      let position = after - 1u;
      let v1 = b0[position];
      let found = u32(v1);
      update_of[t] = found;
      let v2 = b1[found];
      let v3 = p_index_strict(v2, 4000);
      let v4 = u32(v3);
      number_of[t] = v4;
    }
  }
  workgroupBarrier();
  let n0 = number_of[0u];
  let n1 = number_of[1u];
  let n2 = number_of[2u];
  let n3 = number_of[3u];
  let n4 = number_of[4u];
  let n5 = number_of[5u];
  let n6 = number_of[6u];
  let n7 = number_of[7u];
  let n8 = number_of[8u];
  let n9 = number_of[9u];
  let u1 = update_of[1u];
  let q0 = b2[u1 * 16u + column];
  let v5 = q0.x;
  let v6 = q0.y;
  let v7 = q0.z;
  let v8 = q0.w;
  let u2 = update_of[2u];
  let q1 = b2[u2 * 16u + column];
  let v9 = q1.x;
  let v10 = q1.y;
  let v11 = q1.z;
  let v12 = q1.w;
  let u3 = update_of[3u];
  let q2 = b2[u3 * 16u + column];
  let v13 = q2.x;
  let v14 = q2.y;
  let v15 = q2.z;
  let v16 = q2.w;
  let u4 = update_of[4u];
  let q3 = b2[u4 * 16u + column];
  let v17 = q3.x;
  let v18 = q3.y;
  let v19 = q3.z;
  let v20 = q3.w;
  let u5 = update_of[5u];
  let q4 = b2[u5 * 16u + column];
  let v21 = q4.x;
  let v22 = q4.y;
  let v23 = q4.z;
  let v24 = q4.w;
  let u6 = update_of[6u];
  let q5 = b2[u6 * 16u + column];
  let v25 = q5.x;
  let v26 = q5.y;
  let v27 = q5.z;
  let v28 = q5.w;
  let u7 = update_of[7u];
  let q6 = b2[u7 * 16u + column];
  let v29 = q6.x;
  let v30 = q6.y;
  let v31 = q6.z;
  let v32 = q6.w;
  let u8 = update_of[8u];
  let q7 = b2[u8 * 16u + column];
  let v33 = q7.x;
  let v34 = q7.y;
  let v35 = q7.z;
  let v36 = q7.w;
  let row1 = min(n1, 3999u);
  let q8 = b3[row1 * 16u + column];
  let v37 = q8.x;
  let v38 = q8.y;
  let v39 = q8.z;
  let v40 = q8.w;
  let row2 = min(n2, 3999u);
  let q9 = b3[row2 * 16u + column];
  let v41 = q9.x;
  let v42 = q9.y;
  let v43 = q9.z;
  let v44 = q9.w;
  let row3 = min(n3, 3999u);
  let q10 = b3[row3 * 16u + column];
  let v45 = q10.x;
  let v46 = q10.y;
  let v47 = q10.z;
  let v48 = q10.w;
  let row4 = min(n4, 3999u);
  let q11 = b3[row4 * 16u + column];
  let v49 = q11.x;
  let v50 = q11.y;
  let v51 = q11.z;
  let v52 = q11.w;
  let row5 = min(n5, 3999u);
  let q12 = b3[row5 * 16u + column];
  let v53 = q12.x;
  let v54 = q12.y;
  let v55 = q12.z;
  let v56 = q12.w;
  let row6 = min(n6, 3999u);
  let q13 = b3[row6 * 16u + column];
  let v57 = q13.x;
  let v58 = q13.y;
  let v59 = q13.z;
  let v60 = q13.w;
  let row7 = min(n7, 3999u);
  let q14 = b3[row7 * 16u + column];
  let v61 = q14.x;
  let v62 = q14.y;
  let v63 = q14.z;
  let v64 = q14.w;
  let row8 = min(n8, 3999u);
  let q15 = b3[row8 * 16u + column];
  let v65 = q15.x;
  let v66 = q15.y;
  let v67 = q15.z;
  let v68 = q15.w;
  var acc69 = v5;
  var acc70 = v6;
  var acc71 = v7;
  var acc72 = v8;
  let carry = block * 2u;
  var from_left = select(0u, 1u, n0 == n1);
  if (n1 != n2 && n1 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc69, acc70, acc71, acc72);
    }
    else {
      b3[row1 * 16u + column] = vec4<f32>(v37 + acc69, v38 + acc70, v39 + acc71, v40 + acc72);
    }
    from_left = 0u;
  }
  let on2 = n2 == n1;
  acc69 = select(v9, acc69 + v9, on2);
  acc70 = select(v10, acc70 + v10, on2);
  acc71 = select(v11, acc71 + v11, on2);
  acc72 = select(v12, acc72 + v12, on2);
  if (n2 != n3 && n2 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc69, acc70, acc71, acc72);
    }
    else {
      b3[row2 * 16u + column] = vec4<f32>(v41 + acc69, v42 + acc70, v43 + acc71, v44 + acc72);
    }
    from_left = 0u;
  }
  let on3 = n3 == n2;
  acc69 = select(v13, acc69 + v13, on3);
  acc70 = select(v14, acc70 + v14, on3);
  acc71 = select(v15, acc71 + v15, on3);
  acc72 = select(v16, acc72 + v16, on3);
  if (n3 != n4 && n3 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc69, acc70, acc71, acc72);
    }
    else {
      b3[row3 * 16u + column] = vec4<f32>(v45 + acc69, v46 + acc70, v47 + acc71, v48 + acc72);
    }
    from_left = 0u;
  }
  let on4 = n4 == n3;
  acc69 = select(v17, acc69 + v17, on4);
  acc70 = select(v18, acc70 + v18, on4);
  acc71 = select(v19, acc71 + v19, on4);
  acc72 = select(v20, acc72 + v20, on4);
  if (n4 != n5 && n4 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc69, acc70, acc71, acc72);
    }
    else {
      b3[row4 * 16u + column] = vec4<f32>(v49 + acc69, v50 + acc70, v51 + acc71, v52 + acc72);
    }
    from_left = 0u;
  }
  let on5 = n5 == n4;
  acc69 = select(v21, acc69 + v21, on5);
  acc70 = select(v22, acc70 + v22, on5);
  acc71 = select(v23, acc71 + v23, on5);
  acc72 = select(v24, acc72 + v24, on5);
  if (n5 != n6 && n5 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc69, acc70, acc71, acc72);
    }
    else {
      b3[row5 * 16u + column] = vec4<f32>(v53 + acc69, v54 + acc70, v55 + acc71, v56 + acc72);
    }
    from_left = 0u;
  }
  let on6 = n6 == n5;
  acc69 = select(v25, acc69 + v25, on6);
  acc70 = select(v26, acc70 + v26, on6);
  acc71 = select(v27, acc71 + v27, on6);
  acc72 = select(v28, acc72 + v28, on6);
  if (n6 != n7 && n6 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc69, acc70, acc71, acc72);
    }
    else {
      b3[row6 * 16u + column] = vec4<f32>(v57 + acc69, v58 + acc70, v59 + acc71, v60 + acc72);
    }
    from_left = 0u;
  }
  let on7 = n7 == n6;
  acc69 = select(v29, acc69 + v29, on7);
  acc70 = select(v30, acc70 + v30, on7);
  acc71 = select(v31, acc71 + v31, on7);
  acc72 = select(v32, acc72 + v32, on7);
  if (n7 != n8 && n7 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc69, acc70, acc71, acc72);
    }
    else {
      b3[row7 * 16u + column] = vec4<f32>(v61 + acc69, v62 + acc70, v63 + acc71, v64 + acc72);
    }
    from_left = 0u;
  }
  let on8 = n8 == n7;
  acc69 = select(v33, acc69 + v33, on8);
  acc70 = select(v34, acc70 + v34, on8);
  acc71 = select(v35, acc71 + v35, on8);
  acc72 = select(v36, acc72 + v36, on8);
  if (n8 != n9 && n8 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc69, acc70, acc71, acc72);
    }
    else {
      b3[row8 * 16u + column] = vec4<f32>(v65 + acc69, v66 + acc70, v67 + acc71, v68 + acc72);
    }
    from_left = 0u;
  }
  if (n8 == n9 && n8 != 4294967295u) {
    let out = carry + (1u - from_left);
    b4[out * 16u + column] = vec4<f32>(acc69, acc70, acc71, acc72);
  }
}
