import { encodeBytes } from "../src/webhooks/custom/index.ts";
import { html, type Markup } from "./page/html.ts";
import type { DeliveryRow } from "./rows.ts";

/** Everything about a sample follows from its id, so that sending it again needs no memory. */
const sampleId = /^evt_sample_([0-9a-f]{4})[0-9a-f]{12}$/;

/**
 * A new id of a sample.
 *
 * @example
 * newSampleId(); // "evt_sample_1f0c…"
 */
export function newSampleId(): string {
  return `evt_sample_${encodeBytes(crypto.getRandomValues(new Uint8Array(8)), "hex")}`;
}

/**
 * Whether {@link newSampleId} could have made it.
 *
 * @example
 * isSampleId("evt_1"); // false
 */
export function isSampleId(id: string): boolean {
  return sampleId.test(id);
}

/**
 * An event of Stripe, `invoice.paid`, as a request: signed now with this secret.
 *
 * @param id as {@link newSampleId} makes it
 *
 * @example
 * const request = await sampleRequest(new URL("http://127.0.0.1:8787/webhooks/stripe"), newSampleId(), secret);
 */
export async function sampleRequest(url: URL, id: string, secret: string): Promise<Request> {
  const [, invoice] = sampleId.exec(id) ?? [];
  const body = JSON.stringify({
    id,
    object: "event",
    type: "invoice.paid",
    data: { object: { id: `in_${invoice}`, object: "invoice" } },
  });
  const seconds = Math.floor(Date.now() / 1_000);
  const signature = await hmac(secret, `${seconds}.${body}`);
  return new Request(url, {
    method: "POST",
    headers: { "content-type": "application/json", "stripe-signature": `t=${seconds},v1=${signature}` },
    body,
  });
}

/**
 * The page's buttons. The newest sample is the one that is sent again.
 *
 * @param deliveries newest first
 *
 * @example
 * const app = createApp({ tryIt: sampleButtons });
 */
export function sampleButtons(deliveries: readonly DeliveryRow[]): Markup {
  const last = deliveries.find(({ delivery }) => delivery !== null && isSampleId(delivery))?.delivery;
  return html`<form method="post" action="/samples">
<ul class="buttons">
<li><button id="send-signed" name="send" value="signed">Send a signed webhook</button>
<span>A new invoice is paid. It takes effect.</span></li>
<li><button id="send-again" name="send" value="again" ${last ? undefined : html`disabled`}>Send it again, five times</button>
<span>${last ? "All at once: no copy has a second effect." : "Send one first."}</span></li>
<li><button id="send-forged" name="send" value="forged">Send a forged one</button>
<span>Signed with another secret: it is refused.</span></li>
</ul>
${last ? html`<input type="hidden" name="id" value="${last}">` : undefined}
</form>`;
}

async function hmac(secret: string, text: string): Promise<string> {
  const bytes = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes.encode(secret), algorithm, false, ["sign"]);
  return encodeBytes(new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes.encode(text))), "hex");
}
