/** Other packages' names, by the names here. */
const foreign: Readonly<Record<string, string>> = {
  every: "interval period",
  window: "interval period",
  ttl: "duration expire expiry expiresIn lease leaseTime lockTimeout px",
  lease: "ttl duration expiresIn lockTimeout",
  wait: "retry retries retryCount maxRetries attempts acquireTimeout waitTime",
  backoff: "retryDelay retryJitter retryInterval interval",
  autoExtend: "automaticExtensionThreshold refreshInterval watchdog",
  fencing: "fence",
  prefix: "keyPrefix namespace",
  limit: "permits max concurrency",
};

export function nameHere(given: string, names: readonly string[]): string | undefined {
  const here = Object.keys(foreign).filter((name) => names.includes(name));
  return here.find((name) => foreign[name]?.split(" ").includes(given));
}
