// rows_sum: grid (32, 1, 1), writes b3
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read> b2: array<f32>;
@group(0) @binding(3) var<storage, read_write> b3: array<f32>;
var<workgroup> shared_f32_0: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let wanted = group * 2u + lane / 32u;
  let inside = wanted < 64u;
  let row = min(wanted, 63u);
  let position = lane % 32u;
  var acc1 = 0.0;
  for (var column = position; column < 128u; column += 32u) {
    let v2 = b0[row * 128u + column];
    acc1 = (acc1 + v2);
  }
  shared_f32_0[lane] = acc1;
  workgroupBarrier();
  for (var step = 16u; step > 0u; step >>= 1u) {
    if (position < step) {
      let v3 = shared_f32_0[lane + step * 1u];
      acc1 = (acc1 + v3);
      shared_f32_0[lane] = acc1;
    }
    workgroupBarrier();
  }
  acc1 = shared_f32_0[lane - position * 1u];
  workgroupBarrier();
  let v4 = acc1;
  var acc5 = 0.0;
  for (var column = position; column < 128u; column += 32u) {
    let v6 = b0[row * 128u + column];
    let v7 = (v4 / 128.0);
    let v8 = (v6 - v7);
    let v9 = (v8 * v8);
    acc5 = (acc5 + v9);
  }
  shared_f32_0[lane] = acc5;
  workgroupBarrier();
  for (var step = 16u; step > 0u; step >>= 1u) {
    if (position < step) {
      let v10 = shared_f32_0[lane + step * 1u];
      acc5 = (acc5 + v10);
      shared_f32_0[lane] = acc5;
    }
    workgroupBarrier();
  }
  acc5 = shared_f32_0[lane - position * 1u];
  workgroupBarrier();
  let v11 = acc5;
  if (inside) {
    for (var column = position; column < 128u; column += 32u) {
      let v12 = b0[row * 128u + column];
      let v13 = (v4 / 128.0);
      let v14 = (v12 - v13);
      let v15 = (v11 / 128.0);
      let v16 = (v15 + 9.999999747378752e-06);
      let v17 = inverseSqrt(v16);
      let v18 = (v14 * v17);
      let v19 = b1[column];
      let v20 = (v18 * v19);
      let v21 = b2[column];
      let v22 = (v20 + v21);
      b3[row * 128u + column] = v22;
    }
  }
}
