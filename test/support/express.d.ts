// Express has no types of its own; users install `@types/express`. Here is what the pages use of it.

declare module "express" {
  import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";

  interface Reply extends ServerResponse {
    json(value: unknown): Reply;
    status(status: number): Reply;
  }
  // biome-ignore lint/suspicious/noExplicitAny: as `@types/express` has it
  interface Request<Body = any> extends IncomingMessage, Express.Request {
    readonly body: Body;
  }
  type Next = (error?: unknown) => void;
  type Handler<Body> = (req: Request<Body>, res: Reply, next: Next) => unknown;
  interface App extends RequestListener {
    // The type of a route's body comes from all its handlers.
    // biome-ignore lint/suspicious/noExplicitAny: as `@types/express` has it
    post<Body = any>(path: string, ...handlers: Handler<Body>[]): App;
    use(...handlers: Handler<unknown>[]): App;
    listen(port: number): unknown;
  }
  type Parser = (req: IncomingMessage, res: ServerResponse, next: Next) => void;
  const express: { (): App; json(options?: { readonly limit: string }): Parser };
  export default express;
}

declare module "express4";
declare module "cors";
declare module "compression";
declare module "compression-1.7";
declare module "express-session";
declare module "morgan";
declare module "multer";
