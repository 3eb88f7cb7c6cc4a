import {
  type Connection,
  type Method,
  type Methods,
  methodNames,
  type Outgoing,
  type Shadow,
} from "./shadow.ts";

const stateNames = [
  "_closed",
  "_header",
  "closed",
  "connection",
  "destroyed",
  "errored",
  "finished",
  "headersSent",
  "socket",
  "writableEnded",
  "writableFinished",
  "writableLength",
  "writableNeedDrain",
] as const;

export interface Mask {
  /** As middleware further out has left them. */
  readonly original: Methods;
  socket(): Connection | null | undefined;
  takeOff(): void;
}

/**
 * Lets `res` answer as its shadow.
 *
 * @param isPassing the method passes calls on, because middleware within may have kept it
 */
export function maskWith(
  res: Outgoing,
  shadow: Shadow,
  own: Partial<Methods>,
  isPassing: (name: string) => boolean,
): Mask {
  let { socket } = res;
  const standIn = standInFor(res, () => socket);
  const original = replaceMethods(res, shadow, own, isPassing);
  const undo = stateNames.map((name) =>
    replaceState(res, shadow, name, (value) => {
      // Node sets it when it is the response's turn.
      if (name === "socket") socket = value as Connection;
      standIn.begin();
    }),
  );
  return {
    original,
    socket: () => socket,
    takeOff() {
      standIn.end();
      for (const each of undo) each();
      // Node calls this one through the response, after replacements further in.
      res.writeHead = original.writeHead;
    },
  };
}

/** At its shutdown, Node's server would close a connection whose response is finished. */
function standInFor(res: Outgoing, socketOf: () => Connection | null | undefined) {
  const unfinished = new Proxy(res, {
    get: (_, name) => (name === "finished" ? false : Reflect.get(res, name)),
  });
  const replace = (one: Outgoing, other: Outgoing) => {
    const socket = socketOf();
    if (socket?._httpMessage === one) socket._httpMessage = other;
  };
  const begin = () => replace(res, unfinished);
  begin();
  return { begin, end: () => replace(unfinished, res) };
}

function replaceMethods(
  res: Outgoing,
  { response, methods }: Shadow,
  own: Partial<Methods>,
  isPassing: (name: string) => boolean,
): Methods {
  const original = {} as Methods;
  for (const name of methodNames) {
    const passed = res[name];
    // HTTP/2 has not all of them.
    if (!passed) continue;
    original[name] = passed;
    const held: Method = own[name] ?? ((...given) => methods[name].apply(response, given));
    res[name] = (...given) => {
      if (isPassing(name)) return passed.apply(res, given);
      const result = held(...given);
      return result === response ? res : result;
    };
  }
  return original;
}

/** A value that Node's server sets meanwhile is there when it is undone. */
function replaceState(
  res: Outgoing,
  { response }: Shadow,
  name: string,
  onSet: (value: unknown) => void,
): () => void {
  const before = Object.getOwnPropertyDescriptor(res, name);
  Object.defineProperty(res, name, {
    configurable: true,
    get: () => Reflect.get(response, name),
    set(value) {
      onSet(value);
      if (before && "value" in before) before.value = value;
      // Of a mask further out.
      else if (before) before.set?.(value);
      // Node 24 keeps the connection behind an accessor of the class.
      else Reflect.set(Reflect.getPrototypeOf(res)!, name, value, res);
    },
  });
  return () => {
    if (before) Object.defineProperty(res, name, before);
    else Reflect.deleteProperty(res, name);
  };
}
