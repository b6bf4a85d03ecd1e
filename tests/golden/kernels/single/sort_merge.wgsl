// sort_merge: grid (6, 1, 1), writes b2
@group(0) @binding(0) var<storage, read> b0: array<i32>;
@group(0) @binding(1) var<storage, read> b1: array<u32>;
@group(0) @binding(2) var<storage, read_write> b2: array<i32>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let i = group * 256u + lane;
  if (i >= 1500u) { return; }
  let row = i / 500u;
  let position = i % 500u;
  let start = position / 512u * 512u;
  let middle = min(start + 256u, 500u);
  let end = min(start + 512u, 500u);
  let v1 = b0[row * 500u + position];
  let own = u32(v1);
  let v2 = b1[row * 500u + own];
  let key = v2;
  let left = position < middle;
  var low = select(start, middle, left);
  var high = select(middle, end, left);
  let other = low;
  while (low < high) {
    let half = (low + high) / 2u;
    let v3 = b0[row * 500u + half];
    let there = u32(v3);
    let v4 = b1[row * 500u + there];
    let before = select(v4 <= key, v4 < key, left);
    if (before) {
      low = half + 1u;
    }
    else {
      high = half;
    }
  }
  let rank = start + (position - select(middle, start, left)) + (low - other);
  b2[row * 500u + rank] = i32(own);
}
