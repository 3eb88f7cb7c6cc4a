// Mistakes where middleware is mounted: without being called, or in a framework that it is not for.

const everywhere =
  "In Express: app.use(idempotentExpress({ redlock })); in Fastify: app.register(idempotentFastify({ redlock })); in Hono: app.use(idempotent({ redlock }))";

/**
 * Refuses middleware that was mounted in a wrong way.
 *
 * @param callback the third argument: Express and Fastify take errors there. Thrown at Fastify's `register`, or by a promise
 * in Express 4, they would end the process. Hono gives none
 * @throws TypeError where there is no callback
 */
export function refuseMount(mistake: string, callback: unknown, remedy: string = everywhere): void {
  const error = new TypeError(`${mistake}. ${remedy}`);
  if (typeof callback !== "function") throw error;
  callback(error);
}

/**
 * Refuses a framework's own arguments in place of options.
 *
 * @param more the arguments behind the options
 * @returns whether it has refused them
 * @throws TypeError in Hono
 */
export function refuseUncalled(what: string, more: readonly unknown[], remedy?: string): boolean {
  const [next, callback] = more;
  const isMounted = typeof next === "function" || typeof callback === "function";
  if (isMounted) refuseMount(`${what} was mounted without being called`, callback, remedy);
  return isMounted;
}
