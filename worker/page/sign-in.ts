import { documentHead, html, type Markup } from "./html.ts";

/** What the page says to a stranger. */
export interface SignInData {
  /** Why nobody can sign in, and what the operator can do about it, with code in backticks; undefined if one can. */
  readonly closed?: string | undefined;
  /** Why the last attempt failed. */
  readonly refusal?: string | undefined;
}

/**
 * Renders what strangers get instead of the page: a form, or how to open it.
 *
 * @example
 * return c.html(signInPage({ refusal: "That is not the secret." }), 401);
 */
export function signInPage({ closed, refusal }: SignInData): string {
  return html`${documentHead(`redlock-edge: ${closed ? "closed" : "sign in"}`)}
<body class="sign-in">
<p class="brand">redlock-edge</p>
${
  closed
    ? html`<h1>This page is closed</h1>
<p>It shows what was delivered, so it needs a secret. ${closed.split("`").map(textOrCode)}</p>`
    : html`<h1>Sign in</h1>
<form method="post" action="/sign-in">
<p><label for="secret">The secret of this page, <code>JOURNAL_SECRET</code></label></p>
<p class="row"><input id="secret" name="secret" type="password" autocomplete="current-password" required autofocus
${refusal ? html`aria-invalid="true" aria-describedby="refusal"` : undefined}>
<button>Sign in</button></p>
${refusal ? html`<p id="refusal" class="failed" role="alert">${refusal}</p>` : undefined}
</form>`
}
</body>
</html>
`.text;
}

function textOrCode(part: string, index: number): Markup {
  return index % 2 === 0 ? html`${part}` : html`<code>${part}</code>`;
}
