export type Method = (...given: unknown[]) => unknown;

export interface Connection {
  destroy: Method;
  write: Method;
  /** The response whose turn it is. */
  _httpMessage?: object | null;
}

/** Others end in these, or concern the connection. */
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
  /** HTTP/2. */
  readonly stream?: { readonly destroyed: boolean };
  emit: (event: string, ...given: unknown[]) => boolean;
  listenerCount(event: string): number;
  once(event: string, listener: () => void): unknown;
  removeAllListeners(event: string): unknown;
}

interface ServerResponse extends Methods {
  readonly finished: boolean;
  readonly writableNeedDrain: boolean;
  readonly statusMessage: string;
  socket: object;
  assignSocket(socket: object): void;
  on(event: string, listener: (error: Error) => void): unknown;
  /** Node's internals: the body is framed, and the head has gone to the socket. */
  chunkedEncoding: boolean;
  _headerSent: boolean;
}

interface Sink {
  readonly writableLength: number;
  emit(event: string): boolean;
  uncork(): void;
}

interface ResponseClass {
  new (request: object): ServerResponse;
  readonly prototype: Readonly<Methods>;
  /** Node's messages inherit the stream classes as statics. */
  readonly Writable: new (options: {
    readonly highWaterMark: number;
    write(chunk: Uint8Array, encoding: string, done: () => void): void;
  }) => Sink;
}

/** A response of Node that reaches no network. */
export interface Shadow {
  readonly response: ServerResponse;
  readonly methods: Readonly<Methods>;
  readonly sink: Sink;
}

interface SinkOwner {
  write(chunk: Uint8Array, done: () => void): void;
  destroy: Method;
  /** The real socket, for addresses and timeouts. */
  socket(): object | null | undefined;
}

/**
 * Makes the response that the handler writes to in place of `res`. Node decides about implicit headers, bodies, errors
 * and room, and the body is collected, as by Fastify's `inject`.
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
  // Corked, one turn's writes would wait in the sink, beyond the limit.
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
  // Middleware within may have replaced the method to add headers.
  response.writeHead = (...given) => res.writeHead(...given);
  return { response, methods: ServerResponse.prototype, sink };
}

export function headerNames(res: Methods): readonly string[] {
  return (res.getRawHeaderNames ?? res.getHeaderNames).call(res) as string[];
}

export function withDestroy(socket: Connection, destroy: Method): Connection {
  return new Proxy(socket, { get: (_, name) => (name === "destroy" ? destroy : bound(socket, name)) });
}

/** Node's sockets have private state. */
function bound(object: object | null | undefined, name: PropertyKey): unknown {
  const value = object && Reflect.get(object, name);
  return typeof value === "function" ? value.bind(object) : value;
}

/** Taken from the response, because the package also loads on platforms without `node:http`. */
function responseClass(res: object): ResponseClass {
  for (let proto = res; proto; proto = Object.getPrototypeOf(proto)) {
    if (proto.constructor.name === "ServerResponse") return proto.constructor as unknown as ResponseClass;
  }
  // HTTP/2's responses have another class.
  type Load = (name: string) => { ServerResponse: ResponseClass } | undefined;
  const { process } = globalThis as { process?: { getBuiltinModule?: Load } };
  const http = process?.getBuiltinModule?.("http");
  if (!http) throw new TypeError("responses of HTTP/2 need Node 20.16, or 22.3, or later");
  return http.ServerResponse;
}
