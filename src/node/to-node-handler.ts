import { unshared } from "../bytes.ts";
import { checkInteger, checkNames, checkType } from "../check.ts";
import { problem, problemResponse } from "../http/problem.ts";
import { sendWhole } from "./exchange.ts";
import { bodyOf, isRead, type NodeRequest, type NodeResponse, requestOf } from "./message.ts";

/** Options of {@link toNodeHandler}. */
export interface NodeHandlerOptions {
  /**
   * The most bytes that a request's body may have, else 413: an integer from 0 to 2^31. Default 26 214 400 (25 MiB), the
   * most that a sender of webhooks documents; what the handler reads has limits of its own.
   */
  readonly maxRequestBody?: number | undefined;
}

/** A listener of `node:http`, and a handler of Express; with `next`, errors are passed on. */
export type NodeListener = (
  req: NodeRequest,
  res: NodeResponse,
  next?: (error?: unknown) => void,
) => Promise<void>;

const names: Readonly<Record<keyof NodeHandlerOptions, 1>> = { maxRequestBody: 1 };

/**
 * Makes a listener for `node:http`, or a handler for Express, of a function that takes a `Request`. Bodies are streamed in
 * both directions; a client that goes away aborts `request.signal`. It needs the package `@remix-run/node-fetch-server`, an
 * optional peer.
 *
 * Mount it before body parsers, or behind `express.raw`: the handler gets the bytes that were sent.
 *
 * The handler's errors are passed to `next`; without one, they are written to the console and answered with 500.
 *
 * @throws TypeError | RangeError at once when an argument is wrong
 *
 * @example
 * const handler = (request: Request) => withIdempotency(request, pay, { redlock });
 * createServer(toNodeHandler(handler)).listen(3000);
 */
export function toNodeHandler(
  handler: (request: Request) => Response | Promise<Response>,
  options: NodeHandlerOptions = {},
): NodeListener {
  checkType("handler", handler, "function");
  const { maxRequestBody = 26_214_400 } = checkNames("toNodeHandler", options, names);
  const cap = checkInteger("maxRequestBody", maxRequestBody, 0, 2 ** 31);
  return async function listener(req, res, next) {
    try {
      await answer(handler, cap, req, res);
    } catch (error) {
      if (next) return next(error);
      console.error(error);
      // What was sent already cannot be taken back: the client must not take it for whole.
      if (res.headersSent) res.destroy();
      else sendWhole(res, new Response(null, { status: Object(error).status ?? 500 }), undefined);
    }
  };
}

async function answer(
  handler: (request: Request) => Response | Promise<Response>,
  cap: number,
  req: NodeRequest,
  res: NodeResponse,
): Promise<void> {
  const { sendResponse } = await converter();
  let isTooLarge = Number(req.headers["content-length"]) > cap;
  const tooLarge = () => {
    isTooLarge = true;
    return new RangeError(`the body has more than ${cap} bytes`);
  };
  let response: Response | undefined;
  try {
    if (!isTooLarge) response = await handler(await requestWithin(cap, tooLarge, req, res));
  } catch (error) {
    if (!isTooLarge) throw error;
  }
  response ??= problemResponse(problem("BODY_TOO_LARGE"));
  // The rest of the request is not read.
  if (isTooLarge) res.setHeader("connection", "close");
  // A stream that nobody reads must not keep its source open.
  if (res.destroyed) await response.body?.cancel();
  else await sendResponse(res as never, response);
}

/** The request, with a body that fails behind `cap` bytes. */
async function requestWithin(
  cap: number,
  tooLarge: () => Error,
  req: NodeRequest,
  res: NodeResponse,
): Promise<Request> {
  if (/^(GET|HEAD)$/.test(req.method ?? "GET")) return requestOf(req, res);
  if (isRead(req)) {
    const body = await bodyOf(req, cap, true);
    if (!body) throw tooLarge();
    return new Request(requestOf(req, res), { body: unshared(body) });
  }
  const { createRequest } = await converter();
  const { headers, url, signal, method } = requestOf(req, res);
  const { body } = createRequest(req as never, res as never);
  let length = 0;
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      length += chunk.length;
      if (length > cap) throw tooLarge();
      controller.enqueue(chunk);
    },
  });
  const init = { method, headers, signal, body: body!.pipeThrough(limit), duplex: "half" };
  return new Request(url, init);
}

/** Loads the peer when it is first needed: others use this entry without it. */
async function converter(): Promise<typeof import("@remix-run/node-fetch-server")> {
  try {
    return await import("@remix-run/node-fetch-server");
  } catch (cause) {
    throw new Error("toNodeHandler needs a package: npm install @remix-run/node-fetch-server", { cause });
  }
}
