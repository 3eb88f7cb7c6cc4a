/**
 * Handle a request or a webhook once in Express, Fastify, Nest and `node:http`.
 *
 * @module redlock-edge/node
 */
export type { IdempotentRun } from "../http/serve.ts";
export type { IdempotentRequest, NodeOptions, NodeWebhookOptions } from "./exchange.ts";
export { idempotentExpress, type NodeMiddleware } from "./express.ts";
export {
  type FastifyLike,
  type FastifyPlugin,
  type FastifyRequestLike,
  idempotentFastify,
} from "./fastify.ts";
export type { NodeRequest, NodeResponse } from "./message.ts";
