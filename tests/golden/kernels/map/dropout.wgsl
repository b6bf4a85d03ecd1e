// map_random_bits_where: grid (32, 1, 1), writes b1
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read_write> b1: array<f32>;
@group(0) @binding(2) var<uniform> numbers: array<vec4<u32>, 1>;
fn p_mulhi(a: u32, b: u32) -> u32 {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let left = (a >> 16u) * (b & 0xffffu);
  let right = (a & 0xffffu) * (b >> 16u);
  let middle = (low >> 16u) + (left & 0xffffu) + (right & 0xffffu);
  return (a >> 16u) * (b >> 16u) + (left >> 16u) + (right >> 16u) + (middle >> 16u);
}
fn p_philox4(block: u32, k0: u32, k1: u32, stream: u32, draw: u32) -> vec4u {
  var x = vec4u(block, draw, stream, 0u);
  var k = vec2u(k0, k1);
  x = vec4u(p_mulhi(0xcd9e8d57u, x.z) ^ x.y ^ k.x, 0xcd9e8d57u * x.z, p_mulhi(0xd2511f53u, x.x) ^ x.w ^ k.y, 0xd2511f53u * x.x);
  k += vec2u(0x9e3779b9u, 0xbb67ae85u);
  x = vec4u(p_mulhi(0xcd9e8d57u, x.z) ^ x.y ^ k.x, 0xcd9e8d57u * x.z, p_mulhi(0xd2511f53u, x.x) ^ x.w ^ k.y, 0xd2511f53u * x.x);
  k += vec2u(0x9e3779b9u, 0xbb67ae85u);
  x = vec4u(p_mulhi(0xcd9e8d57u, x.z) ^ x.y ^ k.x, 0xcd9e8d57u * x.z, p_mulhi(0xd2511f53u, x.x) ^ x.w ^ k.y, 0xd2511f53u * x.x);
  k += vec2u(0x9e3779b9u, 0xbb67ae85u);
  x = vec4u(p_mulhi(0xcd9e8d57u, x.z) ^ x.y ^ k.x, 0xcd9e8d57u * x.z, p_mulhi(0xd2511f53u, x.x) ^ x.w ^ k.y, 0xd2511f53u * x.x);
  k += vec2u(0x9e3779b9u, 0xbb67ae85u);
  x = vec4u(p_mulhi(0xcd9e8d57u, x.z) ^ x.y ^ k.x, 0xcd9e8d57u * x.z, p_mulhi(0xd2511f53u, x.x) ^ x.w ^ k.y, 0xd2511f53u * x.x);
  k += vec2u(0x9e3779b9u, 0xbb67ae85u);
  x = vec4u(p_mulhi(0xcd9e8d57u, x.z) ^ x.y ^ k.x, 0xcd9e8d57u * x.z, p_mulhi(0xd2511f53u, x.x) ^ x.w ^ k.y, 0xd2511f53u * x.x);
  k += vec2u(0x9e3779b9u, 0xbb67ae85u);
  x = vec4u(p_mulhi(0xcd9e8d57u, x.z) ^ x.y ^ k.x, 0xcd9e8d57u * x.z, p_mulhi(0xd2511f53u, x.x) ^ x.w ^ k.y, 0xd2511f53u * x.x);
  k += vec2u(0x9e3779b9u, 0xbb67ae85u);
  x = vec4u(p_mulhi(0xcd9e8d57u, x.z) ^ x.y ^ k.x, 0xcd9e8d57u * x.z, p_mulhi(0xd2511f53u, x.x) ^ x.w ^ k.y, 0xd2511f53u * x.x);
  k += vec2u(0x9e3779b9u, 0xbb67ae85u);
  x = vec4u(p_mulhi(0xcd9e8d57u, x.z) ^ x.y ^ k.x, 0xcd9e8d57u * x.z, p_mulhi(0xd2511f53u, x.x) ^ x.w ^ k.y, 0xd2511f53u * x.x);
  k += vec2u(0x9e3779b9u, 0xbb67ae85u);
  x = vec4u(p_mulhi(0xcd9e8d57u, x.z) ^ x.y ^ k.x, 0xcd9e8d57u * x.z, p_mulhi(0xd2511f53u, x.x) ^ x.w ^ k.y, 0xd2511f53u * x.x);
  return x;
}
fn p_philox(i: u32, k0: u32, k1: u32, stream: u32, draw: u32) -> u32 {
  return p_philox4(i / 4u, k0, k1, stream, draw)[i % 4u];
}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let i = group * 256u + lane;
  if (i >= 8192u) { return; }
  let v1 = p_philox(i, numbers[0u].x, numbers[0u].y, numbers[0u].z, numbers[0u].w);
  let v2 = u32(v1 >= 1073741824u);
  let v3 = b0[i];
  let v4 = (v3 * 1.3333333730697632);
  let v5 = select(0.0, v4, v2 != 0u);
  b1[i] = v5;
}
