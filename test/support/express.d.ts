// Express has no types of its own; users install `@types/express`. Here is what the pages use of it.

declare module "express" {
  import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";

  interface Reply extends ServerResponse {
    json(value: unknown): Reply;
    status(status: number): Reply;
  }
  interface Request extends IncomingMessage, Express.Request {
    // biome-ignore lint/suspicious/noExplicitAny: as `@types/express` has it
    readonly body: any;
  }
  type Handler = (req: Request, res: Reply, next: (error?: unknown) => void) => unknown;
  interface App extends RequestListener {
    post(path: string, ...handlers: Handler[]): App;
    use(...handlers: Handler[]): App;
    listen(port: number): unknown;
  }
  const express: { (): App; json(options?: { readonly limit: string }): Handler };
  export default express;
}

declare module "express4";
declare module "cors";
declare module "compression";
declare module "compression-1.7";
declare module "express-session";
declare module "morgan";
declare module "multer";
