// sort_block: grid (6, 1, 1), writes b1
@group(0) @binding(0) var<storage, read> b0: array<u32>;
@group(0) @binding(1) var<storage, read_write> b1: array<i32>;
var<workgroup> keys_of: array<u32, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let row = group / 2u;
  let first = group % 2u * 256u;
  let count = min(256u, 500u - first);
  for (var k = lane; k < count; k += 256u) {
    let column = first + k;
    let v1 = b0[row * 500u + column];
    keys_of[k] = v1;
  }
  workgroupBarrier();
  for (var own = lane; own < count; own += 256u) {
    let key = keys_of[own];
    var rank = first;
    for (var k = 0u; k < count; k++) {
      rank += select(0u, 1u, keys_of[k] < key || (keys_of[k] == key && k < own));
    }
    b1[row * 500u + rank] = i32(first + own);
  }
}
