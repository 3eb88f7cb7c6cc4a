const multiplier = 0xc6a4a7935bd1e995n;

/** MurmurHash64A by Austin Appleby, with the seed of Redis's HyperLogLogs. `bytes` is a byte string. */
export function murmurHash(bytes: string): bigint {
  let hash = 0xadc83b19n ^ multiply(BigInt(bytes.length));
  const rest = bytes.length % 8;
  for (let at = 0; at < bytes.length - rest; at += 8) {
    hash = multiply(hash ^ multiply(mix(multiply(littleEndian(bytes.slice(at, at + 8))))));
  }
  if (rest > 0) hash = multiply(hash ^ littleEndian(bytes.slice(-rest)));
  return mix(multiply(mix(hash)));
}

function multiply(value: bigint): bigint {
  return BigInt.asUintN(64, value * multiplier);
}

function mix(value: bigint): bigint {
  return value ^ (value >> 47n);
}

function littleEndian(bytes: string): bigint {
  let value = 0n;
  for (let at = bytes.length - 1; at >= 0; at--) value = (value << 8n) | BigInt(bytes.charCodeAt(at));
  return value;
}
