// attention: grid (6, 1, 1), writes b1
@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> b1: array<vec4<f32>>;
fn p_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn p_exp2(x: f32) -> f32 { return select(exp2(x), x, p_isnan(x)); }
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
      let v12 = vec4<f32>(v8, v9, v10, v11);
      queries[v5][v6] = v12;
    }
  }
  var v13 = vec4<f32>();
  var v14 = (-2e+38);
  var v15 = 0.0;
  let end = min(first + 8u, 20u);
  for (var start = 0u; start < end; start += 8u) {
    workgroupBarrier();
    {
      let v16 = lane / 2u;
      let v17 = lane % 2u;
      if (v16 < 8u) {
        let v18 = min(start + v16, 19u);
        let q1 = b0[head * 40u + v18 * 2u + v17];
        let v19 = q1.x;
        let v20 = q1.y;
        let v21 = q1.z;
        let v22 = q1.w;
        let v23 = vec4<f32>(v19, v20, v21, v22);
        keys[v16][v17] = v23;
      }
    }
    {
      let v24 = lane / 2u;
      let v25 = lane % 2u;
      if (v24 < 8u) {
        let v26 = min(start + v24, 19u);
        let q2 = b0[head * 40u + v26 * 2u + v25];
        let v27 = q2.x;
        let v28 = q2.y;
        let v29 = q2.z;
        let v30 = q2.w;
        let v31 = vec4<f32>(v27, v28, v29, v30);
        values[v24][v25] = v31;
      }
    }
    workgroupBarrier();
    var v32 = f32();
    {
      let v33 = queries[y][0u];
      let v34 = keys[x][0u];
      v32 = fma(v33.x, v34.x, v32);
      v32 = fma(v33.y, v34.y, v32);
      v32 = fma(v33.z, v34.z, v32);
      v32 = fma(v33.w, v34.w, v32);
    }
    {
      let v35 = queries[y][1u];
      let v36 = keys[x][1u];
      v32 = fma(v35.x, v36.x, v32);
      v32 = fma(v35.y, v36.y, v32);
      v32 = fma(v35.z, v36.z, v32);
      v32 = fma(v35.w, v36.w, v32);
    }
    let v37 = start + x;
    v32 = v32 * 0.5100697232983947;
    if (start + 8u > first) {
      v32 = select((-3e+38), v32, v37 <= v3);
    }
    if (start + 8u > 20u) {
      v32 = select((-3e+38), v32, v37 < 20u);
    }
    var v38 = v32;
    folds[y][v1][v2] = v38;
    workgroupBarrier();
    let v39 = folds[y][0u];
    let v40 = folds[y][1u];
    v38 = max(max(max(max(max(max(max(v39.x, v39.y), v39.z), v39.w), v40.x), v40.y), v40.z), v40.w);
    let v41 = max(v14, v38);
    let v42 = p_exp2(v14 - v41);
    v14 = v41;
    v15 = v15 * v42;
    v13 = v13 * v42;
    v32 = p_exp2(v32 - v41);
    v15 += v32;
    weights[y][v1][v2] = v32;
    workgroupBarrier();
    {
      let v43 = weights[y][0u];
      {
        let v44 = values[0u][v4];
        v13 = fma(vec4<f32>(v43.x), v44, v13);
      }
      {
        let v45 = values[1u][v4];
        v13 = fma(vec4<f32>(v43.y), v45, v13);
      }
      {
        let v46 = values[2u][v4];
        v13 = fma(vec4<f32>(v43.z), v46, v13);
      }
      {
        let v47 = values[3u][v4];
        v13 = fma(vec4<f32>(v43.w), v47, v13);
      }
    }
    {
      let v48 = weights[y][1u];
      {
        let v49 = values[4u][v4];
        v13 = fma(vec4<f32>(v48.x), v49, v13);
      }
      {
        let v50 = values[5u][v4];
        v13 = fma(vec4<f32>(v48.y), v50, v13);
      }
      {
        let v51 = values[6u][v4];
        v13 = fma(vec4<f32>(v48.z), v51, v13);
      }
      {
        let v52 = values[7u][v4];
        v13 = fma(vec4<f32>(v48.w), v52, v13);
      }
    }
  }
  folds[y][v1][v2] = v15;
  workgroupBarrier();
  let v53 = folds[y][0u];
  let v54 = folds[y][1u];
  v15 = v53.x + v53.y + v53.z + v53.w + v54.x + v54.y + v54.z + v54.w;
  let v55 = select(v15, 1.0, v15 == 0.0);
  if (v3 < 20u) {
    let v56 = v13 / v55;
    if (x < 2u) {
      let v57 = v56.x;
      let v58 = v56.y;
      let v59 = v56.z;
      let v60 = v56.w;
      b1[v3 * 4u + head * 2u + v4] = vec4<f32>(v57, v58, v59, v60);
    }
  }
}
