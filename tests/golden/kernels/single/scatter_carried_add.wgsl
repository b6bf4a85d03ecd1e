// scatter_carried_add: grid (13, 1, 1), writes b3
@group(0) @binding(0) var<storage, read> b0: array<i32>;
@group(0) @binding(1) var<storage, read> b1: array<u32>;
@group(0) @binding(2) var<storage, read> b2: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<f32>>;
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
  let row = v2;
  let next_at = last + 1u;
  let v3 = b0[next_at];
  let next_of = u32(v3);
  let v4 = b1[next_of];
  let next = v4;
  if (next != row) { return; }
  if (block > 0u) {
    let first_at = block * 8u;
    let v5 = b0[first_at];
    let first_of = u32(v5);
    let v6 = b1[first_of];
    let first = v6;
    if (first == row) {
      let previous_at = block * 8u - 1u;
      let v7 = b0[previous_at];
      let previous_of = u32(v7);
      let v8 = b1[previous_of];
      let previous = v8;
      if (previous == row) { return; }
    }
  }
  var low = block + 1u;
  var high = 13u;
  while (low + 1u < high) {
    let half = (low + high) / 2u;
    let at_half_at = half * 8u;
    let v9 = b0[at_half_at];
    let at_half_of = u32(v9);
    let v10 = b1[at_half_of];
    let at_half = v10;
    if (at_half == row) {
      low = half;
    }
    else {
      high = half;
    }
  }
  let out = block * 2u + 1u;
  let q0 = b2[out * 16u + column];
  let v11 = q0.x;
  let v12 = q0.y;
  let v13 = q0.z;
  let v14 = q0.w;
  var acc15 = v11;
  var acc16 = v12;
  var acc17 = v13;
  var acc18 = v14;
  var at = block + 1u;
  while (at + 8u <= low + 1u) {
    let in0 = (at + 0u) * 2u;
    let q1 = b2[in0 * 16u + column];
    let v19 = q1.x;
    let v20 = q1.y;
    let v21 = q1.z;
    let v22 = q1.w;
    let in1 = (at + 1u) * 2u;
    let q2 = b2[in1 * 16u + column];
    let v23 = q2.x;
    let v24 = q2.y;
    let v25 = q2.z;
    let v26 = q2.w;
    let in2 = (at + 2u) * 2u;
    let q3 = b2[in2 * 16u + column];
    let v27 = q3.x;
    let v28 = q3.y;
    let v29 = q3.z;
    let v30 = q3.w;
    let in3 = (at + 3u) * 2u;
    let q4 = b2[in3 * 16u + column];
    let v31 = q4.x;
    let v32 = q4.y;
    let v33 = q4.z;
    let v34 = q4.w;
    let in4 = (at + 4u) * 2u;
    let q5 = b2[in4 * 16u + column];
    let v35 = q5.x;
    let v36 = q5.y;
    let v37 = q5.z;
    let v38 = q5.w;
    let in5 = (at + 5u) * 2u;
    let q6 = b2[in5 * 16u + column];
    let v39 = q6.x;
    let v40 = q6.y;
    let v41 = q6.z;
    let v42 = q6.w;
    let in6 = (at + 6u) * 2u;
    let q7 = b2[in6 * 16u + column];
    let v43 = q7.x;
    let v44 = q7.y;
    let v45 = q7.z;
    let v46 = q7.w;
    let in7 = (at + 7u) * 2u;
    let q8 = b2[in7 * 16u + column];
    let v47 = q8.x;
    let v48 = q8.y;
    let v49 = q8.z;
    let v50 = q8.w;
    acc15 = acc15 + v19;
    acc16 = acc16 + v20;
    acc17 = acc17 + v21;
    acc18 = acc18 + v22;
    acc15 = acc15 + v23;
    acc16 = acc16 + v24;
    acc17 = acc17 + v25;
    acc18 = acc18 + v26;
    acc15 = acc15 + v27;
    acc16 = acc16 + v28;
    acc17 = acc17 + v29;
    acc18 = acc18 + v30;
    acc15 = acc15 + v31;
    acc16 = acc16 + v32;
    acc17 = acc17 + v33;
    acc18 = acc18 + v34;
    acc15 = acc15 + v35;
    acc16 = acc16 + v36;
    acc17 = acc17 + v37;
    acc18 = acc18 + v38;
    acc15 = acc15 + v39;
    acc16 = acc16 + v40;
    acc17 = acc17 + v41;
    acc18 = acc18 + v42;
    acc15 = acc15 + v43;
    acc16 = acc16 + v44;
    acc17 = acc17 + v45;
    acc18 = acc18 + v46;
    acc15 = acc15 + v47;
    acc16 = acc16 + v48;
    acc17 = acc17 + v49;
    acc18 = acc18 + v50;
    at += 8u;
  }
  while (at <= low) {
    let in_ = at * 2u;
    let q9 = b2[in_ * 16u + column];
    let v51 = q9.x;
    let v52 = q9.y;
    let v53 = q9.z;
    let v54 = q9.w;
    acc15 = acc15 + v51;
    acc16 = acc16 + v52;
    acc17 = acc17 + v53;
    acc18 = acc18 + v54;
    at++;
  }
  let held = min(row, 3999u);
  let q10 = b3[held * 16u + column];
  let v55 = q10.x;
  let v56 = q10.y;
  let v57 = q10.z;
  let v58 = q10.w;
  b3[held * 16u + column] = vec4<f32>(v55 + acc15, v56 + acc16, v57 + acc17, v58 + acc18);
}
