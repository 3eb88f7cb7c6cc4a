import {
  type Connection,
  type Method,
  type Methods,
  methodNames,
  type Outgoing,
  type Shadow,
} from "./shadow.ts";

/** The properties of a response that are its shadow's while it is held. */
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

/** The replacements of a response's own members. */
export interface Mask {
  /** The methods, as middleware further out has left them. */
  readonly original: Methods;
  /** The connection, where it is the response's turn. */
  socket(): Connection | null | undefined;
  /** Shows the response itself again. Its methods stay replaced, and are to pass calls on. */
  takeOff(): void;
}

/**
 * Lets `res` answer as its shadow, by properties of its own: frameworks and middleware have references to it.
 *
 * @param own the replacements of the shadow's methods
 * @param isPassing whether a method passes calls on: middleware within may have kept them
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
      // Node calls this one by way of the response: code that has replaced it within has been called.
      res.writeHead = original.writeHead;
    },
  };
}

/**
 * What Node's server finds at the connection while the handler's response is held: it would close the connection at its
 * shutdown, as idle, if the response said that it is finished.
 */
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

/** Shows the shadow's property. A value that Node's server sets meanwhile is there when it is undone. */
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
      // It is the property of a mask further out.
      else if (before) before.set?.(value);
      // Node 24 keeps the connection behind an accessor of the class.
      else Reflect.set(Reflect.getPrototypeOf(res)!, name, value, res);
    },
  });
  return () => {
    if (before) Object.defineProperty(res, name, before);
    // It is inherited.
    else Reflect.deleteProperty(res, name);
  };
}
