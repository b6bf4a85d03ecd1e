// scatter_carried_add: grid (13, 1, 1), writes b3
@group(0) @binding(0) var<storage, read> b0: array<i32>;
@group(0) @binding(1) var<storage, read> b1: array<i32>;
@group(0) @binding(2) var<storage, read> b2: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> fault: array<atomic<u32>>;
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
@compute @workgroup_size(16)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let block = group;
  let column = lane;
  let last = block * 8u + 7u;
  if (last + 1u >= 100u) { return; }
  let row_at = last;
  let v1 = b0[row_at];
  let row_of = u32(v1);
  let v2 = b1[row_of];
  let v3 = p_index_strict(v2, 4000);
  let v4 = u32(v3);
  let row = v4;
  let next_at = last + 1u;
  let v5 = b0[next_at];
  let next_of = u32(v5);
  let v6 = b1[next_of];
  let v7 = p_index_strict(v6, 4000);
  let v8 = u32(v7);
  let next = v8;
  if (next != row) { return; }
  if (block > 0u) {
    let first_at = block * 8u;
    let v9 = b0[first_at];
    let first_of = u32(v9);
    let v10 = b1[first_of];
    let v11 = p_index_strict(v10, 4000);
    let v12 = u32(v11);
    let first = v12;
    if (first == row) {
      let previous_at = block * 8u - 1u;
      let v13 = b0[previous_at];
      let previous_of = u32(v13);
      let v14 = b1[previous_of];
      let v15 = p_index_strict(v14, 4000);
      let v16 = u32(v15);
      let previous = v16;
      if (previous == row) { return; }
    }
  }
  var low = block + 1u;
  var high = 13u;
  while (low + 1u < high) {
    let half = (low + high) / 2u;
    let at_half_at = half * 8u;
    let v17 = b0[at_half_at];
    let at_half_of = u32(v17);
    let v18 = b1[at_half_of];
    let v19 = p_index_strict(v18, 4000);
    let v20 = u32(v19);
    let at_half = v20;
    if (at_half == row) {
      low = half;
    }
    else {
      high = half;
    }
  }
  let out = block * 2u + 1u;
  let q0 = b2[out * 16u + column];
  let v21 = q0.x;
  let v22 = q0.y;
  let v23 = q0.z;
  let v24 = q0.w;
  var acc25 = v21;
  var acc26 = v22;
  var acc27 = v23;
  var acc28 = v24;
  var at = block + 1u;
  while (at + 8u <= low + 1u) {
    let in0 = (at + 0u) * 2u;
    let q1 = b2[in0 * 16u + column];
    let v29 = q1.x;
    let v30 = q1.y;
    let v31 = q1.z;
    let v32 = q1.w;
    let in1 = (at + 1u) * 2u;
    let q2 = b2[in1 * 16u + column];
    let v33 = q2.x;
    let v34 = q2.y;
    let v35 = q2.z;
    let v36 = q2.w;
    let in2 = (at + 2u) * 2u;
    let q3 = b2[in2 * 16u + column];
    let v37 = q3.x;
    let v38 = q3.y;
    let v39 = q3.z;
    let v40 = q3.w;
    let in3 = (at + 3u) * 2u;
    let q4 = b2[in3 * 16u + column];
    let v41 = q4.x;
    let v42 = q4.y;
    let v43 = q4.z;
    let v44 = q4.w;
    let in4 = (at + 4u) * 2u;
    let q5 = b2[in4 * 16u + column];
    let v45 = q5.x;
    let v46 = q5.y;
    let v47 = q5.z;
    let v48 = q5.w;
    let in5 = (at + 5u) * 2u;
    let q6 = b2[in5 * 16u + column];
    let v49 = q6.x;
    let v50 = q6.y;
    let v51 = q6.z;
    let v52 = q6.w;
    let in6 = (at + 6u) * 2u;
    let q7 = b2[in6 * 16u + column];
    let v53 = q7.x;
    let v54 = q7.y;
    let v55 = q7.z;
    let v56 = q7.w;
    let in7 = (at + 7u) * 2u;
    let q8 = b2[in7 * 16u + column];
    let v57 = q8.x;
    let v58 = q8.y;
    let v59 = q8.z;
    let v60 = q8.w;
    acc25 = acc25 + v29;
    acc26 = acc26 + v30;
    acc27 = acc27 + v31;
    acc28 = acc28 + v32;
    acc25 = acc25 + v33;
    acc26 = acc26 + v34;
    acc27 = acc27 + v35;
    acc28 = acc28 + v36;
    acc25 = acc25 + v37;
    acc26 = acc26 + v38;
    acc27 = acc27 + v39;
    acc28 = acc28 + v40;
    acc25 = acc25 + v41;
    acc26 = acc26 + v42;
    acc27 = acc27 + v43;
    acc28 = acc28 + v44;
    acc25 = acc25 + v45;
    acc26 = acc26 + v46;
    acc27 = acc27 + v47;
    acc28 = acc28 + v48;
    acc25 = acc25 + v49;
    acc26 = acc26 + v50;
    acc27 = acc27 + v51;
    acc28 = acc28 + v52;
    acc25 = acc25 + v53;
    acc26 = acc26 + v54;
    acc27 = acc27 + v55;
    acc28 = acc28 + v56;
    acc25 = acc25 + v57;
    acc26 = acc26 + v58;
    acc27 = acc27 + v59;
    acc28 = acc28 + v60;
    at += 8u;
  }
  while (at <= low) {
    let in_ = at * 2u;
    let q9 = b2[in_ * 16u + column];
    let v61 = q9.x;
    let v62 = q9.y;
    let v63 = q9.z;
    let v64 = q9.w;
    acc25 = acc25 + v61;
    acc26 = acc26 + v62;
    acc27 = acc27 + v63;
    acc28 = acc28 + v64;
    at++;
  }
  let q10 = b3[row * 16u + column];
  let v65 = q10.x;
  let v66 = q10.y;
  let v67 = q10.z;
  let v68 = q10.w;
  b3[row * 16u + column] = vec4<f32>(v65 + acc25, v66 + acc26, v67 + acc27, v68 + acc28);
}
