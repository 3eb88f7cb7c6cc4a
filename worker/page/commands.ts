/** The URLs that senders with an example send to. A sender that is not set up has none. */
export type ExampleUrls = Readonly<Partial<Record<"github" | "standardWebhooks" | "stripe", string>>>;

/**
 * Examples that a shell can run, of the senders that have a URL.
 *
 * @example
 * for (const { title, command } of examples({ github: "http://127.0.0.1:8787/webhooks/github" })) …
 */
export function examples(urls: ExampleUrls): readonly { readonly title: string; readonly command: string }[] {
  const { github, standardWebhooks, stripe } = urls;
  return [
    ...(github === undefined ? [] : [{ title: "GitHub", command: githubCommand(github) }]),
    ...(standardWebhooks === undefined
      ? []
      : [{ title: "Standard Webhooks", command: standardWebhooksCommand(standardWebhooks) }]),
    ...(stripe === undefined ? [] : [{ title: "Stripe", command: stripeCommand(stripe) }]),
  ];
}

/**
 * Shell commands that send a webhook as GitHub does. They read the secret from `GITHUB_WEBHOOK_SECRET`.
 *
 * @example
 * console.log(githubCommand("http://127.0.0.1:8787/webhooks/github"));
 */
export function githubCommand(url: string): string {
  return `body='{"action":"opened","issue":{"number":42},"repository":{"full_name":"octo/demo"}}'
id=$(openssl rand -hex 16)
signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$GITHUB_WEBHOOK_SECRET" | sed 's/^.* //')
curl -i ${shellQuoted(url)} -H 'content-type: application/json' \\
  -H 'x-github-event: issues' -H "x-github-delivery: $id" \\
  -H "x-hub-signature-256: sha256=$signature" --data-binary "$body"`;
}

/**
 * Shell commands that send a Standard Webhook. They read the secret from `STANDARD_WEBHOOKS_SECRET`.
 *
 * @example
 * console.log(standardWebhooksCommand("http://127.0.0.1:8787/webhooks/standard"));
 */
export function standardWebhooksCommand(url: string): string {
  // openssl gets the key as hex, because its bytes may include zeros, which no argument can contain.
  return `body='{"type":"invoice.paid","data":{"id":"inv_42"}}'
id=msg_$(openssl rand -hex 16)
timestamp=$(date +%s)
key=$(printf %s "\${STANDARD_WEBHOOKS_SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \\n')
signature=$(printf %s "$id.$timestamp.$body" | \\
  openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)
curl -i ${shellQuoted(url)} -H 'content-type: application/json' \\
  -H "webhook-id: $id" -H "webhook-timestamp: $timestamp" \\
  -H "webhook-signature: v1,$signature" --data-binary "$body"`;
}

/**
 * Shell commands that send an event as Stripe does. They read the secret from `STRIPE_WEBHOOK_SECRET`.
 *
 * @example
 * console.log(stripeCommand("http://127.0.0.1:8787/webhooks/stripe"));
 */
export function stripeCommand(url: string): string {
  return `id=evt_$(openssl rand -hex 12)
body='{"id":"'$id'","type":"payment_intent.succeeded","data":{"object":{"id":"pi_42"}}}'
timestamp=$(date +%s)
signature=$(printf %s "$timestamp.$body" | openssl dgst -sha256 -hmac "$STRIPE_WEBHOOK_SECRET" | sed 's/^.* //')
curl -i ${shellQuoted(url)} -H 'content-type: application/json' \\
  -H "stripe-signature: t=$timestamp,v1=$signature" --data-binary "$body"`;
}

/** Quotes one word for a POSIX shell. A URL may contain `$` and `'`, and users run this text. */
function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
