import { createElement as h, render, useState } from "hono/jsx/dom";
import type { PageState } from "../state.ts";
import { ask, forgetToken, keepToken, messages, TokenRefused, takeToken } from "./access.ts";
import { hashesOf } from "./hashes.ts";
import { type PageActions, view } from "./view.ts";
import { summary } from "./words.ts";

// The page of `redis-rest-local`.

/** Draws the page: changes only what differs from what was drawn before. */
let draw: (drawn: ReturnType<typeof h>) => void;

function Page(): ReturnType<typeof h> {
  const [drawn, setDrawn] = useState(h("div", null));
  draw = setDrawn;
  return drawn;
}

render(h(Page, null), document.querySelector<HTMLElement>("#page")!);

const status = document.querySelector("#summary")!;

function say(text: string, bad = false): void {
  status.textContent = text;
  status.className = bad ? "bad" : "";
}

/** Shows what arrives until the stream ends. */
async function follow(token: string): Promise<void> {
  let state: PageState | undefined;
  let shown: PageActions = {
    failure: "",
    search: "",
    hashes: [],
    async onSearch(search) {
      change({ search });
      const hashes = await hashesOf(search);
      if (shown.search === search) change({ hashes });
    },
    send(endpoint, action, method, body) {
      change({ failure: "" });
      ask(token, `/api/endpoints/${endpoint}/${action}`, { method, body }).catch((error: Error) =>
        change({ failure: `That failed: ${error.message}` }),
      );
    },
  };
  function change(parts: Partial<PageActions>): void {
    shown = { ...shown, ...parts };
    if (!state) return;
    const { text, bad } = summary(state);
    say(text, bad);
    draw(view(state, shown));
  }
  for await (const next of messages<PageState>(token, "/api/live")) {
    state = next;
    change({});
  }
}

/** Asks for the token, and says where it is. */
function askForToken(refused: boolean): Promise<string> {
  say(
    refused ? "This token is not the one of these endpoints." : "This page needs the endpoints' token.",
    refused,
  );
  const code = (text: string) => h("code", null, text);
  return new Promise((resolve) => {
    const onSubmit = (event: Event) => {
      event.preventDefault();
      const { value } = document.querySelector<HTMLInputElement>("#token")!;
      if (value !== "") resolve(value.trim());
    };
    const gate = h(
      "div",
      { class: "gate" },
      h(
        "p",
        null,
        "Open the address that ",
        code("redis-rest-local"),
        " has printed: the token is in it, after ",
        code("#token="),
        ". It is also the value of ",
        code("UPSTASH_REDIS_REST_TOKEN_1"),
        ". The page keeps it until this tab is closed, and sends it to this machine only.",
      ),
      h(
        "form",
        { onSubmit },
        h("label", { for: "token" }, "Token"),
        h("input", { id: "token", type: "password", autocomplete: "off", autofocus: true }),
        h("button", null, "Open"),
      ),
    );
    draw(gate);
  });
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function run(): Promise<never> {
  let token = takeToken() ?? (await askForToken(false));
  keepToken(token);
  for (;;) {
    try {
      await follow(token);
      say("The endpoints have ended. Waiting for them …", true);
    } catch (error) {
      if (error instanceof TokenRefused) {
        forgetToken();
        token = await askForToken(true);
        keepToken(token);
        continue;
      }
      say(`No connection: ${(error as Error).message}. Trying again …`, true);
    }
    await pause(1_000);
  }
}

void run();
