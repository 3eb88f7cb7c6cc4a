import type { Endpoint } from "../../../src/endpoints/endpoint.ts";
import { EndpointError } from "../../../src/errors.ts";
import type { Client } from "./client.ts";
import { createHttpLink } from "./http-link.ts";
import type { Answer } from "./store.ts";
import type { Server, World } from "./world.ts";

/** What kind of endpoint it looks like to the library. */
export type LinkOptions = Pick<Endpoint, "dialect" | "exactReplies"> & {
  /** Through the library's own HTTP endpoint. */
  readonly isHttp: boolean;
};

/** The endpoint through which a client reaches a server. Each request and each reply is a message of the world. */
export function createLink(
  world: World,
  client: Client,
  server: Server,
  { isHttp, ...options }: LinkOptions,
): Endpoint {
  const { name } = server;
  if (isHttp) return createHttpLink(world, client, { server, dialect: options.dialect });
  return {
    ...options,
    name,
    send: (command, signal) =>
      new Promise((resolve, reject) => {
        const failed = (kind: "timeout" | "network" | "redis", why: string) =>
          reject(new EndpointError(name, kind, why));
        if (signal.aborted) return failed("timeout", "no answer in time");
        const abandon = () => {
          message.isOpen = false;
          failed("timeout", "no answer in time");
        };
        const message = world.send(client, server, command, (answer: Answer) => {
          signal.removeEventListener("abort", abandon);
          if ("reply" in answer) resolve(answer.reply);
          else if (answer.refused === "away") failed("network", "connection refused");
          else failed("redis", `Redis refused: ${answer.refused}`);
        });
        signal.addEventListener("abort", abandon);
      }),
  };
}
