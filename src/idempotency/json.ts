// What JSON does to results. What it writes differently is stored: a Date as a string, an object without its methods and
// its undefined properties, a hole in an array as null. What it would lose is not stored.

/** Text of JSON for a value. @throws TypeError where JSON has no text for it, or would lose a part of it */
export function jsonOf(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  // After the text: a circle has ended there.
  const loss = lossIn(value);
  if (loss)
    throw new TypeError(`the result${loss}, which JSON would lose: return plain data, or pass a codec`);
  if (text === undefined) throw new TypeError(`the result has no JSON: it is a ${typeof value}`);
  return text;
}

/** Where and what JSON would lose, as the end of a sentence; undefined: nothing. */
export function lossIn(value: unknown): string | undefined {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value) ? undefined : ` is ${value}`;
    case "function":
    case "symbol":
      return ` is a ${typeof value}`;
    case "object":
      return value ? lossInObject(value as Record<string, unknown>) : undefined;
    default:
      return undefined;
  }
}

function lossInObject(value: Record<string, unknown>): string | undefined {
  // Node's Buffer has a toJSON of its own; elsewhere the same bytes have none.
  if (ArrayBuffer.isView(value)) return classOf(value);
  // What the class itself says it is in JSON.
  if (typeof value.toJSON === "function") return undefined;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const loss = lossIn(value[index]);
      if (loss) return `[${index}]${loss}`;
    }
    return undefined;
  }
  const names = Object.keys(value);
  const isUnread = names.length === 0 && !isPlain(value);
  if (isUnread || value instanceof Map || value instanceof Set || value instanceof Error)
    return classOf(value);
  for (const name of names) {
    const property = value[name];
    const loss = typeof property === "function" ? undefined : lossIn(property);
    if (loss) return `.${name}${loss}`;
  }
  return undefined;
}

/** Whether it is of no class; also of another realm. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function classOf(value: object): string {
  return ` is of class ${value.constructor?.name || "(no name)"}`;
}
