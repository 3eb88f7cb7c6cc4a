// `https://`, or `http://` to this machine or a private network: a name of one label, as containers have them, a name below
// a domain that is for private use alone, or an IP address, which `URL` has brought into its normal form.
const safeOrigin =
  /^https:|^http:\/\/([^.:]+|.+\.(local(host)?|internal|lan|home\.arpa)|(0|10|127|169\.254|172\.(1[6-9]|2\d|3[01])|192\.168)\.[\d.]+|\[(::1]|f[cde]\w\w:.*))(:\d+)?$/;

/** How a wrong URL looks, and the form that it must have. The first that fits counts. */
const mistakes = [
  [/^["']/, "without quotes around it"],
  [/^rediss?:/i, "the REST API's https://host; for the Redis protocol there is redlock-edge/sockets"],
  [/^(?!https?:)/i, "https://host (or http://host, on this machine)"],
  [
    /(?:)/,
    "the REST API's https://host, without credentials, path and query: Upstash runs a path as a command (a gateway's: basePath)",
  ],
] as const;

/**
 * Where a URL and the options lead to: `href`, where commands are sent to, and `name`, the host and the base path, which tell
 * endpoints apart.
 *
 * @param name names the URL in errors, which do not repeat it: it may be a token, or have one in it
 * @param path the path that the URL must have
 * @throws TypeError
 */
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
