import { render } from "lit-html";
import type { PageState } from "../state.ts";
import { ask, forgetToken, TokenRefused, takeToken } from "./access.ts";
import { type PageActions, view } from "./view.ts";
import { summary } from "./words.ts";

// The page of `redis-rest-local`.

const main = document.querySelector<HTMLElement>("#page")!;
const status = document.querySelector("#summary")!;

function say(text: string, bad = false): void {
  status.textContent = text;
  status.className = bad ? "bad" : "";
}

/** Shows the state, again and again, until it cannot be read. */
async function follow(token: string): Promise<never> {
  let state: PageState | undefined;
  let shown: PageActions = {
    failure: "",
    search: "",
    onSearch: (search) => change({ search }),
    send(endpoint, action, body) {
      change({ failure: "" });
      ask(token, `/api/endpoints/${endpoint}/${action}`, { method: "POST", body }).catch((error: Error) =>
        change({ failure: `That failed: ${error.message}` }),
      );
    },
  };
  function change(parts: Partial<PageActions>): void {
    shown = { ...shown, ...parts };
    if (!state) return;
    const { text, bad } = summary(state);
    say(text, bad);
    render(view(state, shown), main);
  }
  for (;;) {
    state = (await (await ask(token, "/api/state")).json()) as PageState;
    change({});
    await pause(250);
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function run(): Promise<void> {
  const token = takeToken();
  while (token !== undefined) {
    try {
      await follow(token);
    } catch (error) {
      if (error instanceof TokenRefused) break;
      say(`No connection: ${(error as Error).message}. Trying again …`, true);
    }
    await pause(1_000);
  }
  forgetToken();
  const found =
    token === undefined ? "This page needs a token." : "This token is not that of these endpoints.";
  say(`${found} Open the address that redis-rest-local has printed: the token is in it.`, true);
}

// The address with the token was opened in the same tab.
addEventListener("hashchange", () => location.reload());
void run();
