// map_take_copy: grid (3, 1, 1), writes b2
@group(0) @binding(0) var<storage, read> b0: array<i32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read_write> b2: array<f32>;
@group(0) @binding(3) var<storage, read_write> fault: array<atomic<u32>>;
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
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let i = group * 256u + lane;
  if (i >= 560u) { return; }
  let v1 = b0[(i / 16u)];
  let v2 = p_index_strict(v1, 100);
  let i3 = u32(v2);
  let v4 = b1[i3 * 16u + (i % 16u)];
  b2[i] = v4;
}
