import { withIdempotency } from "../src/http/index.ts";
import { standardWebhooks } from "../src/webhooks/index.ts";
import type { Client } from "./client.ts";
import type { Ledger } from "./ledger.ts";

const secret = "whsec_cGxheWdyb3VuZC1wbGF5Z3JvdW5kLXBsYXlncm91bmQ=";

/** One delivery, and what the function that got it answered. */
export interface Delivered {
  readonly id: string;
  readonly to: string;
  readonly status: number;
  /** Whether it was answered with the stored response of another. */
  readonly isReplayed: boolean;
}

/** A webhook's sender, and functions that handle its deliveries. Each delivery of one id is to act once. */
export class Shop {
  readonly deliveries: Delivered[] = [];
  /** How often the card of an id was charged. */
  readonly charges = new Map<string, number>();
  readonly #ledger: Ledger;
  #ids = 0;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** A new id. */
  newId(): string {
    this.#ids += 1;
    return `evt_${this.#ids}`;
  }

  get lastId(): string | undefined {
    return this.#ids > 0 ? `evt_${this.#ids}` : undefined;
  }

  /** Delivers to the function that runs in this client's process. */
  async deliver(id: string, client: Client): Promise<Delivered> {
    const { world } = client;
    client.doing = "begin";
    const call = world.newRequest();
    client.record({ phase: "called", operation: "delivery", call, key: "delivery", detail: id });
    world.computing.add(client.name);
    const request = await this.#request(id, client);
    const provider = standardWebhooks({ secret, now: () => signedTime(client) });
    let isReplayed = false;
    const response = await withIdempotency(request, () => this.#charge(id, client), {
      redlock: client.redlock(),
      provider,
      lease: 3_000,
      wait: 2_000,
      onEvent: ({ type }) => {
        if (type === "replayed") isReplayed = true;
      },
    }).finally(() => world.computing.delete(client.name));
    const outcome = response.ok ? "granted" : "held";
    client.record({
      phase: "returned",
      operation: "delivery",
      call,
      key: "delivery",
      outcome,
      detail: `${id}: HTTP ${response.status}${isReplayed ? ", from the stored response" : ""}`,
    });
    const delivered = { id, to: client.name, status: response.status, isReplayed };
    this.deliveries.push(delivered);
    return delivered;
  }

  async #charge(id: string, client: Client): Promise<Response> {
    await this.#ledger.write(client, `charge for ${id}`, { hold: Number.MAX_SAFE_INTEGER, fence: undefined });
    this.charges.set(id, (this.charges.get(id) ?? 0) + 1);
    client.world.computing.add(client.name);
    return Response.json({ charged: id });
  }

  async #request(id: string, client: Client): Promise<Request> {
    const body = JSON.stringify({ type: "payment.succeeded", id });
    const timestamp = String(Math.floor(signedTime(client) / 1_000));
    const signature = await sign(`${id}.${timestamp}.${body}`);
    const headers = {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": `v1,${signature}`,
    };
    return new Request("https://shop.example/webhooks", { method: "POST", headers, body });
  }
}

/** Senders sign the time, and no provider accepts one of 1970. */
function signedTime(client: Client): number {
  return Date.UTC(2026, 0, 1) + client.runtime.now();
}

async function sign(text: string): Promise<string> {
  const bytes = Uint8Array.from(atob(secret.slice("whsec_".length)), (character) => character.charCodeAt(0));
  const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const signature = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text));
  return btoa(String.fromCharCode(...new Uint8Array(signature)));
}
