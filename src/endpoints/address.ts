// `http://` only to this machine or a private network: a name of one label, as containers have, a private domain or an
// IP address.
const safeOrigin =
  /^https:|^http:\/\/([^.:]+|.+\.(local(host)?|internal|lan|home\.arpa)|(0|10|127|169\.254|172\.(1[6-9]|2\d|3[01])|192\.168)\.[\d.]+|\[(::1]|f[cde]\w\w:.*))(:\d+)?$/;

/** The first that fits counts. */
const mistakes = [
  [/^["']/, "without quotes around it"],
  [/^rediss?:/i, "the REST API's https://host; for the Redis protocol there is redlock-edge/sockets"],
  [/^(?!https?:)/i, "https://host (or http://host, on this machine)"],
  [
    /(?:)/,
    "the REST API's https://host, without credentials, path and query: Upstash runs a path as a command (a gateway's: basePath)",
  ],
] as const;

/** @param name for errors, which do not repeat the URL, because it may contain a token */
export function addressOf(
  name: string,
  url: string,
  options: { readonly basePath?: string | undefined; readonly allowInsecure?: boolean | undefined },
  path = "/",
): { readonly href: string; readonly name: string } {
  const { basePath, allowInsecure } = options;
  let parsed: Partial<URL> = {};
  try {
    parsed = new URL(url);
  } catch {
    // Refused below.
  }
  const { href, origin = "" } = parsed;
  if (!/^http/.test(origin) || href !== origin + path) {
    const [, remedy] = mistakes.find(([form]) => form.test(url))!;
    throw new TypeError(`${name} must be ${remedy}`);
  }
  if (!/^(\/[\w-][\w.-]*)+\/?$/.test(basePath ?? "/a")) {
    throw new TypeError('basePath must be a path such as "/redis"');
  }
  if (allowInsecure !== true && !safeOrigin.test(origin)) {
    throw new TypeError(`${name} must be https://, or all can read the token (see allowInsecure)`);
  }
  const address = origin + (basePath ?? "/");
  return { href: address, name: address.replace(/^\w+:\/\/|\/$/g, "") };
}
