// A value that JSON would lose is refused, but not a value that JSON writes differently, such as a Date.

/** @throws TypeError when JSON would lose it or a part of it */
export function jsonOf(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  // First, because JSON.stringify refuses circles.
  const loss = lossIn(value);
  if (loss)
    throw new TypeError(`the result${loss}, which JSON would lose: return plain data, or pass a codec`);
  if (text === undefined) throw new TypeError(`the result has no JSON: it is a ${typeof value}`);
  return text;
}

function lossIn(value: unknown): string | undefined {
  const own = lossInItself(value);
  if (own || typeof value !== "object" || !value || hasJson(value)) return own;
  const isList = Array.isArray(value);
  for (const [name, inner] of Object.entries(value)) {
    // Methods are left out, but in an array a function would become null.
    const loss = typeof inner === "function" && !isList ? undefined : lossIn(inner);
    if (loss) return isList ? `[${name}]${loss}` : `.${name}${loss}`;
  }
  return undefined;
}

/** Apart from its members. */
export function lossInItself(value: unknown): string | undefined {
  // Node's Buffer has a toJSON. Other bytes have none.
  if (hasJson(value) && !ArrayBuffer.isView(value)) return undefined;
  switch (typeof value) {
    case "number":
      return Number.isFinite(value) ? undefined : ` is ${value}`;
    case "bigint":
    case "function":
    case "symbol":
      return ` is a ${typeof value}`;
    case "object":
      return value && isUnread(value) ? classOf(value) : undefined;
    default:
      return undefined;
  }
}

export function hasJson(value: unknown): value is { toJSON(): unknown } {
  return typeof (value as { readonly toJSON?: unknown } | null | undefined)?.toJSON === "function";
}

function isUnread(value: object): boolean {
  if (Array.isArray(value)) return false;
  const isEmpty = Object.keys(value).length === 0 && !isPlain(value);
  return (
    isEmpty ||
    ArrayBuffer.isView(value) ||
    value instanceof Map ||
    value instanceof Set ||
    value instanceof Error
  );
}

/** Of another realm too. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function classOf(value: object): string {
  return ` is of class ${value.constructor?.name || "(no name)"}`;
}
