import { createRequire } from "node:module";

const { cache } = createRequire(import.meta.url);

/**
 * Forgets modules that are undefined. Miniflare leaves one behind, and Fastify looks through all for a plugin's name. Test files
 * share a process.
 */
export function forgetUndefinedModules(): void {
  for (const [name, module] of Object.entries(cache)) {
    if (module === undefined) Reflect.deleteProperty(cache, name);
  }
}
