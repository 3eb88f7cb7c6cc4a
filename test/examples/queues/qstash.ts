import { createHash, createHmac, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { type RawReply, type RawRequest, startRawServer } from "../../support/raw-server.ts";
import type { StandIn } from "./kills.ts";

/** A stand-in that signs, delivers, retries and gives up as QStash documents it; its seconds are ms. */
export interface QStash extends StandIn {
  readonly env: Readonly<
    Record<"QSTASH_URL" | "QSTASH_TOKEN" | "QSTASH_CURRENT_SIGNING_KEY" | "QSTASH_NEXT_SIGNING_KEY", string>
  >;
  /** Whether it takes no messages. Default false. */
  down: boolean;
}

const maxRetries = 5;

export async function startQStash(): Promise<QStash> {
  const [token, current, next] = [randomUUID(), `sig_${randomUUID()}`, `sig_${randomUUID()}`];
  const stopped = new AbortController();

  function publish({ method, path, headers, body }: RawRequest): RawReply {
    const [, destination] = /^\/v2\/publish\/(.+)$/.exec(path) ?? [];
    if (method !== "POST" || !destination) return { status: 404 };
    if (headers.authorization !== `Bearer ${token}`) return { status: 401 };
    if (qstash.down) return { status: 500 };
    const messageId = `msg_${randomUUID()}`;
    for (let copy = 0; copy < qstash.copies; copy += 1) {
      // Stopped by the end of the test.
      keepDelivering(destination, messageId, body).catch(() => undefined);
    }
    return { status: 201, body: JSON.stringify({ messageId }) };
  }

  async function keepDelivering(url: string, id: string, body: string): Promise<void> {
    for (let retried = 0; retried <= maxRetries; retried += 1) {
      const headers = {
        "content-type": "application/json",
        "upstash-message-id": id,
        "upstash-retried": `${retried}`,
        "upstash-signature": signature(current, url, body),
      };
      const { signal } = stopped;
      const answer = await fetch(url, { method: "POST", headers, body, signal }).catch(() => undefined);
      if (answer?.ok) {
        qstash.acked += 1;
        return;
      }
      if (answer?.status === 489 && answer.headers.get("upstash-nonretryable-error") === "true") break;
      const asked = answer?.headers.get("retry-after");
      if (asked) qstash.postponed += 1;
      await sleep(asked ? Number(asked) : Math.E ** (2.5 * (retried + 1)), undefined, { signal });
    }
    qstash.dead += 1;
  }

  const server = await startRawServer(publish);
  onTestFinished(async () => {
    stopped.abort();
    await server.close();
  });
  const qstash = {
    acked: 0,
    dead: 0,
    postponed: 0,
    copies: 1,
    down: false,
    env: {
      QSTASH_URL: server.url,
      QSTASH_TOKEN: token,
      QSTASH_CURRENT_SIGNING_KEY: current,
      QSTASH_NEXT_SIGNING_KEY: next,
    },
  };
  return qstash;
}

/** A JWT with the body's hash. */
function signature(key: string, sub: string, body: string): string {
  const now = Math.floor(Date.now() / 1_000);
  const hash = `${createHash("sha256").update(body).digest("base64url")}=`;
  const times = { iat: now, nbf: now, exp: now + 300 };
  const claims = { iss: "Upstash", sub, ...times, jti: `jwt_${randomUUID()}`, body: hash };
  const parts = [{ alg: "HS256", typ: "JWT" }, claims];
  const signed = parts.map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
  return `${signed}.${createHmac("sha256", key).update(signed).digest("base64url")}`;
}
