/** A method of Node's that is only passed on. */
export type Method = (...given: unknown[]) => unknown;

/** A connection of `node:net`. */
export interface Connection {
  destroy: Method;
  write: Method;
  /** The response whose turn it is. */
  _httpMessage?: object | null;
}

/** The methods of a response that act on its shadow while it is held. Other methods end in these, or concern the connection. */
export const methodNames = [
  "_writeRaw",
  "appendHeader",
  "cork",
  "destroy",
  "end",
  "flushHeaders",
  "getHeader",
  "getHeaderNames",
  "getHeaders",
  "getRawHeaderNames",
  "hasHeader",
  "removeHeader",
  "setHeader",
  "uncork",
  "write",
  "writeHead",
  "writeHeader",
] as const;

export type Methods = Record<(typeof methodNames)[number], Method>;

/** The used part of any response, and of its request. */
export interface Outgoing extends Methods {
  statusCode: number;
  statusMessage: string;
  readonly destroyed: boolean;
  readonly writableFinished: boolean;
  readonly req: {
    readonly method?: string;
    readonly httpVersion?: string;
    readonly readableEnded: boolean;
    socket?: Connection | null;
  };
  readonly socket?: Connection | null;
  /** HTTP/2: the stream that the response is written to. */
  readonly stream?: { readonly destroyed: boolean };
  emit: (event: string, ...given: unknown[]) => boolean;
  listenerCount(event: string): number;
  once(event: string, listener: () => void): unknown;
  removeAllListeners(event: string): unknown;
}

/** The used part of a `ServerResponse` of `node:http`. */
interface ServerResponse extends Methods {
  readonly finished: boolean;
  readonly writableNeedDrain: boolean;
  readonly statusMessage: string;
  socket: object;
  assignSocket(socket: object): void;
  on(event: string, listener: (error: Error) => void): unknown;
  /** Of Node's inside, as is the next one: the body is framed, and the head has gone to the socket. */
  chunkedEncoding: boolean;
  _headerSent: boolean;
}

/** A socket on which only a body arrives. */
interface Sink {
  readonly writableLength: number;
  emit(event: string): boolean;
  uncork(): void;
}

interface ResponseClass {
  new (request: object): ServerResponse;
  readonly prototype: Readonly<Methods>;
  /** Node's messages inherit from `Stream`, which has the other classes of streams as statics. */
  readonly Writable: new (options: {
    readonly highWaterMark: number;
    write(chunk: Uint8Array, encoding: string, done: () => void): void;
  }) => Sink;
}

/** A response of Node that reaches no network. */
export interface Shadow {
  readonly response: ServerResponse;
  /** Its methods, as Node has them. */
  readonly methods: Readonly<Methods>;
  readonly sink: Sink;
}

/** The messages and questions of a shadow's sink. */
interface SinkOwner {
  /** Gets the body's bytes in turn, the next ones after `done`. */
  write(chunk: Uint8Array, done: () => void): void;
  /** In place of the socket's method. */
  destroy: Method;
  /** The real socket: it knows addresses and timeouts, which a stream does not. */
  socket(): object | null | undefined;
}

/**
 * Makes a response that the handler writes to in place of `res`: Node makes a response's decisions (implicit headers, whether
 * there is a body, errors, room), and the body is collected, as by Fastify's `inject`. It begins with the headers of `res`, and
 * has its status.
 *
 * @param room how many bytes the writer may be ahead of `owner.write`
 */
export function shadowOf(res: Outgoing, room: number, owner: SinkOwner): Shadow {
  const ServerResponse = responseClass(res);
  const { method, httpVersion } = res.req;
  const httpVersionMinor = httpVersion === "1.0" ? 0 : 1;
  const response = new ServerResponse({ method, headers: {}, httpVersionMajor: 1, httpVersionMinor });
  const sink = new ServerResponse.Writable({
    highWaterMark: room,
    write: (chunk, _, done) => owner.write(chunk, done),
  });
  // Without `cork`: the writes of one turn would wait in the sink, beyond the limit of collected bytes.
  Object.assign(sink, { cork: () => undefined, destroy: owner.destroy });
  response.assignSocket(sink);
  response.socket = new Proxy(sink, {
    get: (_, name) => bound(name in sink || /^(_|Symbol)/.test(String(name)) ? sink : owner.socket(), name),
  });
  // Node keeps the headers of `writeHead` only beside others.
  response.setHeader("x", "");
  response.removeHeader("x");
  for (const name of headerNames(res)) response.setHeader(name, res.getHeader(name));
  // Frameworks and handlers set them at any time. HTTP/2 has no message.
  for (const name of ["statusCode", "statusMessage", "strictContentLength"]) {
    if (res.stream && name !== "statusCode") continue;
    const get = () => Reflect.get(res, name);
    Object.defineProperty(response, name, { get, set: (value) => Reflect.set(res, name, value) });
  }
  // By way of `res`: middleware within may have replaced the method once more, to add headers.
  response.writeHead = (...given) => res.writeHead(...given);
  return { response, methods: ServerResponse.prototype, sink };
}

/** The names of a response's headers as they were written, where Node keeps that. */
export function headerNames(res: Methods): readonly string[] {
  return (res.getRawHeaderNames ?? res.getHeaderNames).call(res) as string[];
}

/** A socket with another `destroy`. */
export function withDestroy(socket: Connection, destroy: Method): Connection {
  return new Proxy(socket, { get: (_, name) => (name === "destroy" ? destroy : bound(socket, name)) });
}

/** A property, read with its own object: Node's sockets have private state. */
function bound(object: object | null | undefined, name: PropertyKey): unknown {
  const value = object && Reflect.get(object, name);
  return typeof value === "function" ? value.bind(object) : value;
}

/** The class of `node:http`, taken from the response: the package is loaded even if there is no such module. */
function responseClass(res: object): ResponseClass {
  for (let proto = res; proto; proto = Object.getPrototypeOf(proto)) {
    if (proto.constructor.name === "ServerResponse") return proto.constructor as unknown as ResponseClass;
  }
  // Responses of HTTP/2 have another class.
  type Load = (name: string) => { ServerResponse: ResponseClass } | undefined;
  const { process } = globalThis as { process?: { getBuiltinModule?: Load } };
  const http = process?.getBuiltinModule?.("http");
  if (!http) throw new TypeError("responses of HTTP/2 need Node 20.16, or 22.3, or later");
  return http.ServerResponse;
}
