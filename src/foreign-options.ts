/** What options are called in other packages, by their names here. */
const foreign: Readonly<Record<string, string>> = {
  ttl: "duration expire expiry expiresIn lease leaseTime lockTimeout px",
  lease: "ttl duration expiresIn lockTimeout",
  wait: "retries retryCount maxRetries attempts acquireTimeout waitTime",
  backoff: "retryDelay retryJitter retryInterval interval",
  autoExtend: "automaticExtensionThreshold refreshInterval watchdog",
  fencing: "fence",
  prefix: "keyPrefix namespace",
  limit: "permits max concurrency",
};

/** The one of these names that another package calls so. */
export function nameHere(given: string, names: readonly string[]): string | undefined {
  return names.find((name) => foreign[name]?.split(" ").includes(given));
}
