const everywhere =
  "In Express: app.post(path, idempotentExpress({ redlock }), handler); in Nest: consumer.apply(idempotentExpress({ redlock })).forRoutes(…); in Fastify: app.register(idempotentFastify({ redlock })); in Hono: app.post(path, idempotent({ redlock }), handler)";

/**
 * In Express and Fastify the third argument takes the error, because thrown there it could end the process. Hono has
 * none.
 */
export function refuseMount(mistake: string, callback: unknown, remedy: string = everywhere): void {
  const error = new TypeError(`${mistake}. ${remedy}`);
  if (typeof callback !== "function") throw error;
  callback(error);
}

/** Refuses a framework's arguments in place of options, and returns true if it did. */
export function refuseUncalled(what: string, more: readonly unknown[], remedy?: string): boolean {
  const [next, callback] = more;
  const isMounted = typeof next === "function" || typeof callback === "function";
  if (isMounted) refuseMount(`${what} was mounted without being called`, callback, remedy);
  return isMounted;
}
