// scatter_blocks_add: grid (13, 1, 1), writes b3, b4
@group(0) @binding(0) var<storage, read> b0: array<i32>;
@group(0) @binding(1) var<storage, read> b1: array<u32>;
@group(0) @binding(2) var<storage, read> b2: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> b4: array<vec4<f32>>;
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
      number_of[t] = v2;
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
  let v3 = q0.x;
  let v4 = q0.y;
  let v5 = q0.z;
  let v6 = q0.w;
  let u2 = update_of[2u];
  let q1 = b2[u2 * 16u + column];
  let v7 = q1.x;
  let v8 = q1.y;
  let v9 = q1.z;
  let v10 = q1.w;
  let u3 = update_of[3u];
  let q2 = b2[u3 * 16u + column];
  let v11 = q2.x;
  let v12 = q2.y;
  let v13 = q2.z;
  let v14 = q2.w;
  let u4 = update_of[4u];
  let q3 = b2[u4 * 16u + column];
  let v15 = q3.x;
  let v16 = q3.y;
  let v17 = q3.z;
  let v18 = q3.w;
  let u5 = update_of[5u];
  let q4 = b2[u5 * 16u + column];
  let v19 = q4.x;
  let v20 = q4.y;
  let v21 = q4.z;
  let v22 = q4.w;
  let u6 = update_of[6u];
  let q5 = b2[u6 * 16u + column];
  let v23 = q5.x;
  let v24 = q5.y;
  let v25 = q5.z;
  let v26 = q5.w;
  let u7 = update_of[7u];
  let q6 = b2[u7 * 16u + column];
  let v27 = q6.x;
  let v28 = q6.y;
  let v29 = q6.z;
  let v30 = q6.w;
  let u8 = update_of[8u];
  let q7 = b2[u8 * 16u + column];
  let v31 = q7.x;
  let v32 = q7.y;
  let v33 = q7.z;
  let v34 = q7.w;
  let row1 = min(n1, 3999u);
  let q8 = b3[row1 * 16u + column];
  let v35 = q8.x;
  let v36 = q8.y;
  let v37 = q8.z;
  let v38 = q8.w;
  let row2 = min(n2, 3999u);
  let q9 = b3[row2 * 16u + column];
  let v39 = q9.x;
  let v40 = q9.y;
  let v41 = q9.z;
  let v42 = q9.w;
  let row3 = min(n3, 3999u);
  let q10 = b3[row3 * 16u + column];
  let v43 = q10.x;
  let v44 = q10.y;
  let v45 = q10.z;
  let v46 = q10.w;
  let row4 = min(n4, 3999u);
  let q11 = b3[row4 * 16u + column];
  let v47 = q11.x;
  let v48 = q11.y;
  let v49 = q11.z;
  let v50 = q11.w;
  let row5 = min(n5, 3999u);
  let q12 = b3[row5 * 16u + column];
  let v51 = q12.x;
  let v52 = q12.y;
  let v53 = q12.z;
  let v54 = q12.w;
  let row6 = min(n6, 3999u);
  let q13 = b3[row6 * 16u + column];
  let v55 = q13.x;
  let v56 = q13.y;
  let v57 = q13.z;
  let v58 = q13.w;
  let row7 = min(n7, 3999u);
  let q14 = b3[row7 * 16u + column];
  let v59 = q14.x;
  let v60 = q14.y;
  let v61 = q14.z;
  let v62 = q14.w;
  let row8 = min(n8, 3999u);
  let q15 = b3[row8 * 16u + column];
  let v63 = q15.x;
  let v64 = q15.y;
  let v65 = q15.z;
  let v66 = q15.w;
  var acc67 = v3;
  var acc68 = v4;
  var acc69 = v5;
  var acc70 = v6;
  let carry = block * 2u;
  var from_left = select(0u, 1u, n0 == n1);
  if (n1 != n2 && n1 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc67, acc68, acc69, acc70);
    }
    else {
      b3[row1 * 16u + column] = vec4<f32>(v35 + acc67, v36 + acc68, v37 + acc69, v38 + acc70);
    }
    from_left = 0u;
  }
  let on2 = n2 == n1;
  acc67 = select(v7, acc67 + v7, on2);
  acc68 = select(v8, acc68 + v8, on2);
  acc69 = select(v9, acc69 + v9, on2);
  acc70 = select(v10, acc70 + v10, on2);
  if (n2 != n3 && n2 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc67, acc68, acc69, acc70);
    }
    else {
      b3[row2 * 16u + column] = vec4<f32>(v39 + acc67, v40 + acc68, v41 + acc69, v42 + acc70);
    }
    from_left = 0u;
  }
  let on3 = n3 == n2;
  acc67 = select(v11, acc67 + v11, on3);
  acc68 = select(v12, acc68 + v12, on3);
  acc69 = select(v13, acc69 + v13, on3);
  acc70 = select(v14, acc70 + v14, on3);
  if (n3 != n4 && n3 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc67, acc68, acc69, acc70);
    }
    else {
      b3[row3 * 16u + column] = vec4<f32>(v43 + acc67, v44 + acc68, v45 + acc69, v46 + acc70);
    }
    from_left = 0u;
  }
  let on4 = n4 == n3;
  acc67 = select(v15, acc67 + v15, on4);
  acc68 = select(v16, acc68 + v16, on4);
  acc69 = select(v17, acc69 + v17, on4);
  acc70 = select(v18, acc70 + v18, on4);
  if (n4 != n5 && n4 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc67, acc68, acc69, acc70);
    }
    else {
      b3[row4 * 16u + column] = vec4<f32>(v47 + acc67, v48 + acc68, v49 + acc69, v50 + acc70);
    }
    from_left = 0u;
  }
  let on5 = n5 == n4;
  acc67 = select(v19, acc67 + v19, on5);
  acc68 = select(v20, acc68 + v20, on5);
  acc69 = select(v21, acc69 + v21, on5);
  acc70 = select(v22, acc70 + v22, on5);
  if (n5 != n6 && n5 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc67, acc68, acc69, acc70);
    }
    else {
      b3[row5 * 16u + column] = vec4<f32>(v51 + acc67, v52 + acc68, v53 + acc69, v54 + acc70);
    }
    from_left = 0u;
  }
  let on6 = n6 == n5;
  acc67 = select(v23, acc67 + v23, on6);
  acc68 = select(v24, acc68 + v24, on6);
  acc69 = select(v25, acc69 + v25, on6);
  acc70 = select(v26, acc70 + v26, on6);
  if (n6 != n7 && n6 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc67, acc68, acc69, acc70);
    }
    else {
      b3[row6 * 16u + column] = vec4<f32>(v55 + acc67, v56 + acc68, v57 + acc69, v58 + acc70);
    }
    from_left = 0u;
  }
  let on7 = n7 == n6;
  acc67 = select(v27, acc67 + v27, on7);
  acc68 = select(v28, acc68 + v28, on7);
  acc69 = select(v29, acc69 + v29, on7);
  acc70 = select(v30, acc70 + v30, on7);
  if (n7 != n8 && n7 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc67, acc68, acc69, acc70);
    }
    else {
      b3[row7 * 16u + column] = vec4<f32>(v59 + acc67, v60 + acc68, v61 + acc69, v62 + acc70);
    }
    from_left = 0u;
  }
  let on8 = n8 == n7;
  acc67 = select(v31, acc67 + v31, on8);
  acc68 = select(v32, acc68 + v32, on8);
  acc69 = select(v33, acc69 + v33, on8);
  acc70 = select(v34, acc70 + v34, on8);
  if (n8 != n9 && n8 != 4294967295u) {
    if (from_left == 1u) {
      b4[carry * 16u + column] = vec4<f32>(acc67, acc68, acc69, acc70);
    }
    else {
      b3[row8 * 16u + column] = vec4<f32>(v63 + acc67, v64 + acc68, v65 + acc69, v66 + acc70);
    }
    from_left = 0u;
  }
  if (n8 == n9 && n8 != 4294967295u) {
    let out = carry + (1u - from_left);
    b4[out * 16u + column] = vec4<f32>(acc67, acc68, acc69, acc70);
  }
}
