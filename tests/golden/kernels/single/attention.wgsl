// attention: grid (6, 1, 1), writes b1
@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> b1: array<vec4<f32>>;
var<workgroup> queries: array<array<vec4<f32>, 3>, 8>;
var<workgroup> keys: array<array<vec4<f32>, 3>, 8>;
var<workgroup> values: array<array<vec4<f32>, 3>, 8>;
var<workgroup> weights: array<array<vec4<f32>, 4>, 8>;
var<workgroup> folds: array<array<vec4<f32>, 2>, 8>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let first = (2u - group / 2u) * 8u;
  let batch = group % 2u / 2u;
  let head = group % 2u;
  let x = lane % 8u;
  let y = lane / 8u;
  let v1 = x / 4u;
  let v2 = x & 3u;
  let v3 = first + y;
  let v4 = min(x, 1u);
  {
    let v5 = lane / 2u;
    let v6 = lane % 2u;
    if (v5 < 8u) {
      let v7 = min(first + v5, 19u);
      let q0 = b0[head * 40u + v7 * 2u + v6];
      let v8 = q0.x;
      let v9 = q0.y;
      let v10 = q0.z;
      let v11 = q0.w;
      queries[v5][v6] = vec4<f32>(v8, v9, v10, v11);
    }
  }
  var v12 = vec4<f32>();
  var v13 = (-2e+38);
  var v14 = 0.0;
  let end = min(first + 8u, 20u);
  for (var start = 0u; start < end; start += 8u) {
    workgroupBarrier();
    {
      let v15 = lane / 2u;
      let v16 = lane % 2u;
      if (v15 < 8u) {
        let v17 = min(start + v15, 19u);
        let q1 = b0[head * 40u + v17 * 2u + v16];
        let v18 = q1.x;
        let v19 = q1.y;
        let v20 = q1.z;
        let v21 = q1.w;
        keys[v15][v16] = vec4<f32>(v18, v19, v20, v21);
      }
    }
    {
      let v22 = lane / 2u;
      let v23 = lane % 2u;
      if (v22 < 8u) {
        let v24 = min(start + v22, 19u);
        let q2 = b0[head * 40u + v24 * 2u + v23];
        let v25 = q2.x;
        let v26 = q2.y;
        let v27 = q2.z;
        let v28 = q2.w;
        values[v22][v23] = vec4<f32>(v25, v26, v27, v28);
      }
    }
    workgroupBarrier();
    var v29 = f32();
    {
      let v30 = queries[y][0u];
      let v31 = keys[x][0u];
      v29 = fma(v30.x, v31.x, v29);
      v29 = fma(v30.y, v31.y, v29);
      v29 = fma(v30.z, v31.z, v29);
      v29 = fma(v30.w, v31.w, v29);
    }
    {
      let v32 = queries[y][1u];
      let v33 = keys[x][1u];
      v29 = fma(v32.x, v33.x, v29);
      v29 = fma(v32.y, v33.y, v29);
      v29 = fma(v32.z, v33.z, v29);
      v29 = fma(v32.w, v33.w, v29);
    }
    let v34 = start + x;
    v29 = v29 * 0.5100697232983947;
    if (start + 8u > first) {
      v29 = select((-3e+38), v29, v34 <= v3);
    }
    if (start + 8u > 20u) {
      v29 = select((-3e+38), v29, v34 < 20u);
    }
    var v35 = v29;
    folds[y][v1][v2] = v35;
    workgroupBarrier();
    let v36 = folds[y][0u];
    let v37 = folds[y][1u];
    v35 = max(max(max(max(max(max(max(v36.x, v36.y), v36.z), v36.w), v37.x), v37.y), v37.z), v37.w);
    let v38 = max(v13, v35);
    let v39 = exp2(v13 - v38);
    v13 = v38;
    v14 = v14 * v39;
    v12 = v12 * v39;
    v29 = exp2(v29 - v38);
    v14 += v29;
    weights[y][v1][v2] = v29;
    workgroupBarrier();
    {
      let v40 = weights[y][0u];
      {
        let v41 = values[0u][v4];
        v12 = fma(vec4<f32>(v40.x), v41, v12);
      }
      {
        let v42 = values[1u][v4];
        v12 = fma(vec4<f32>(v40.y), v42, v12);
      }
      {
        let v43 = values[2u][v4];
        v12 = fma(vec4<f32>(v40.z), v43, v12);
      }
      {
        let v44 = values[3u][v4];
        v12 = fma(vec4<f32>(v40.w), v44, v12);
      }
    }
    {
      let v45 = weights[y][1u];
      {
        let v46 = values[4u][v4];
        v12 = fma(vec4<f32>(v45.x), v46, v12);
      }
      {
        let v47 = values[5u][v4];
        v12 = fma(vec4<f32>(v45.y), v47, v12);
      }
      {
        let v48 = values[6u][v4];
        v12 = fma(vec4<f32>(v45.z), v48, v12);
      }
      {
        let v49 = values[7u][v4];
        v12 = fma(vec4<f32>(v45.w), v49, v12);
      }
    }
  }
  folds[y][v1][v2] = v14;
  workgroupBarrier();
  let v50 = folds[y][0u];
  let v51 = folds[y][1u];
  v14 = v50.x + v50.y + v50.z + v50.w + v51.x + v51.y + v51.z + v51.w;
  let v52 = select(1.0, v14, v14 != 0.0);
  if (v3 < 20u) {
    let v53 = v12 / v52;
    if (x < 2u) {
      let v54 = v53.x;
      let v55 = v53.y;
      let v56 = v53.z;
      let v57 = v53.w;
      b1[v3 * 4u + head * 2u + v4] = vec4<f32>(v54, v55, v56, v57);
    }
  }
}
