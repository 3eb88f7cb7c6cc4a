import type { Command, Endpoint } from "../../../src/endpoints/endpoint.ts";
import { EndpointError, type EndpointErrorKind } from "../../../src/errors.ts";
import { type Reply, ReplyError } from "../../../src/testing/index.ts";
import type { Process } from "./process.ts";
import { nonceOf, type Request, readRequest } from "./request.ts";
import type { Server } from "./server.ts";
import { isGranted, type Wire } from "./wire.ts";
import type { World } from "./world.ts";

/** What a client is told. */
type Answer = { readonly reply: Reply } | { readonly error: EndpointError };

/** The longest word of a command that servers take: beyond every script, below what some runs return. */
const longestWord = 20_000;

/**
 * The way from one process to one server, with everything that the weather does to messages on it.
 *
 * @param exactReplies false: through a client in between that sends again what failed, as the Upstash SDK does
 */
export function link(
  world: World,
  wire: Wire,
  process: Process,
  server: Server,
  exactReplies: boolean,
): Endpoint {
  const { name, dialect } = server;
  const longestDelay = world.keeps("bounded delay") ? 50_000 : Number.POSITIVE_INFINITY;
  let serial = 0;
  let newest = 0;

  function failed(kind: EndpointErrorKind, message: string): Answer {
    return { error: new EndpointError(name, kind, message) };
  }

  /** How long a message takes. */
  function delay(): number {
    const { latency, tail, tailLength } = world.weather;
    const late = world.draw.chance(tail) ? world.draw.between(0, tailLength) : 0;
    return Math.min(world.draw.between(...latency) + late + server.slowness, longestDelay);
  }

  function after(ms: number, what: () => void): void {
    world.scheduler.at(world.now + ms, what);
  }

  /** One message to the server and its answer back; `answer` may never be called, or after `isOpen` has ended. */
  function transmit(command: Command, isOpen: () => boolean, answer: (answer: Answer) => void): void {
    const { weather, draw } = world;
    serial += 1;
    const number = serial;
    const toProcess = (what: Answer, ms: number) =>
      after(ms, () => {
        if (!process.alive) return;
        if (!isOpen()) world.count("reply late");
        process.deliver(() => answer(what));
      });

    const arrive = (copy: number) => {
      if (isCut()) return;
      if (!server.up) {
        toProcess(failed("network", "connection refused"), delay());
        return;
      }
      if (server.silent) {
        world.count("request to a silent endpoint");
        return;
      }
      if (number < newest) world.count("request overtaken");
      newest = Math.max(newest, number);
      if (copy > 0) world.count("request executed again");
      if (!isOpen()) world.count("request late");
      const executed = execute(command, copy);
      world.trace(
        () =>
          `${process.name}>${name} ${String(command[0])} ${command[1]} ${command.length > 5 ? command.at(-5) : ""} = ${JSON.stringify(executed)}`,
      );
      if (copy === 0 && draw.chance(weather.duplicate)) {
        after(draw.between(0, draw.chance(0.5) ? 20 : 2_000), () => arrive(1));
      }
      if (draw.chance(weather.loseReply)) {
        world.count("reply lost");
        return;
      }
      if (draw.chance(weather.reset)) {
        world.count("connection reset after execution");
        return toProcess(failed("network", "connection reset"), delay());
      }

      toProcess(executed, delay());
    };

    if (isCut()) {
      world.count("request into a cut link");
      if (world.cuts.get(`${process.name}>${name}`) === "refused") {
        toProcess(failed("network", "connection refused"), delay());
      }
      return;
    }
    if (draw.chance(weather.loseRequest)) {
      world.count("request lost");
      return;
    }
    if (draw.chance(weather.httpError)) {
      world.count("http error");
      toProcess(failed("http", "HTTP 503"), delay());
      return;
    }
    if (draw.chance(weather.reset / 2)) {
      world.count("connection reset before execution");
      toProcess(failed("network", "connection reset"), delay());
      return;
    }
    after(delay(), () => arrive(0));
  }

  function execute(command: Command, copy: number): Answer {
    world.count("executions");
    if (command.some((word) => typeof word === "string" && word.length > longestWord)) {
      world.count("request too large");
      wire.refusedForSize(process, server, command);
      return failed("redis", `HTTP 400, ERR max request size exceeded. Limit: ${longestWord} bytes`);
    }
    const request = readRequest(command);
    const takes = request.operation === "acquire" || request.operation === "restore";
    const stood = takes ? timeLeft(request) : 0;
    try {
      const reply = server.execute(command);
      if (stood > 0 && timeLeft(request) < stood) {
        world.violate(
          "validity is honest",
          `${name} shortened ${request.keys} for a take of ${process.name}`,
        );
      }
      const granted = isGranted(request, command, reply);
      wire.executed(process, server, request, granted, copy);
      if (request.operation === "acquire" && !granted && request.from === 1) checkRefusal(request, command);
      return { reply };
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error;
      return failed("redis", `Redis refused: ${error.message}`);
    }
  }

  /** ms for which the keys, or the member in them, stand at least; 0 when one is not there. */
  function timeLeft({ keys, value, isMember }: Request): number {
    if (isMember) return Math.max(0, deadlineOf(keys[0]!, value) - server.time());
    return Math.max(0, Math.min(...keys.map((key) => Number(server.execute(["PTTL", key])))));
  }

  /** Whoever repeats a request must not be refused because of it: then nobody gives back what it took. */
  function checkRefusal(request: Request, command: Command): void {
    const { keys, value, isMember } = request;
    const stands = isMember
      ? timeLeft(request) > 0
      : keys.every((key) => server.execute(["GET", key]) === value);
    // What was put back is a lock that is held: its release frees it everywhere, whatever its late take was told.
    if (!stands || wire.isRestored(nonceOf(value), server)) return;
    // A plain command cannot tell; it is for where nobody repeats requests.
    const needs = command[0] === "SET" && exactReplies ? (["single execution"] as const) : [];
    world.violate("refusals are true", `${name} refused ${keys} to ${process.name} because of itself`, needs);
  }

  /** Until when a member stands, by the server's clock in ms; 0 when it does not. */
  function deadlineOf(key: string, member: string): number {
    return Number(server.execute(["ZSCORE", key, member]) ?? 0);
  }

  function isCut(): boolean {
    return world.cuts.has(`${process.name}>${name}`);
  }

  function send(command: Command, signal: AbortSignal): Promise<unknown> {
    const request = readRequest(command);
    wire.sent(process, server, request, command);
    world.count("requests");
    return new Promise((resolve, reject) => {
      let open = true;
      const settle = (settled: () => void) => {
        if (!open) return;
        open = false;
        signal.removeEventListener("abort", abandon);
        settled();
      };
      const abandon = () => settle(() => reject(new EndpointError(name, "timeout", "no answer in time")));
      if (signal.aborted) return abandon();
      signal.addEventListener("abort", abandon);
      let retries = exactReplies ? 0 : 2;
      const attempt = () =>
        transmit(
          command,
          () => open,
          (answer) => {
            if (!open) return;
            if ("reply" in answer) {
              wire.answered(process, server, request, isGranted(request, command, answer.reply));
              world.trace(
                () =>
                  `${process.name}<${name} ${request.operation} ${request.value.slice(0, 8)} ${JSON.stringify(answer.reply)}`,
              );
              settle(() => resolve(answer.reply));
            } else if (answer.error.kind === "network" && retries > 0) {
              retries -= 1;
              world.count("request sent again by the client in between");
              process.timer(20, () => open && attempt());
            } else settle(() => reject(answer.error));
          },
        );
      attempt();
    });
  }

  // Left out, not false: that is how an endpoint of unknown nature looks.
  return exactReplies ? { name, dialect, exactReplies, send } : { name, dialect, send };
}
