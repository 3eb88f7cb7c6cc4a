import type { PageState } from "../state.ts";
import { ask, forgetToken, keepToken, messages, TokenRefused, takeToken } from "./access.ts";
import { endpointCard } from "./card.ts";
import { element, show } from "./dom.ts";
import { happenedPanel, locksPanel, type Panel, recordsPanel, requestsPanel, wrongPanel } from "./panels.ts";
import { summary } from "./words.ts";

// The page of `redis-rest-local`.

const page = document.querySelector("#page")!;
const status = document.querySelector("#summary")!;

function say(text: string, bad = false): void {
  status.textContent = text;
  status.className = bad ? "bad" : "";
}

function section(title: string, about: string) {
  const body = element("div", "");
  const note = element("small", "", about);
  return { root: element("section", "", element("h2", "", title, note), body), body, note };
}

/** A section with a table that can be searched. */
function listing(title: string) {
  const { root, body, note } = section(title, "");
  body.className = "scroll";
  body.tabIndex = 0;
  return {
    root,
    show(panel: Panel) {
      note.textContent = panel.note;
      show(body, panel.nodes);
    },
  };
}

/** The page of endpoints, from the first message on. */
class View {
  readonly #cards: readonly ReturnType<typeof endpointCard>[];
  readonly #failure = element("p", "bad");
  readonly #wrong = section("What is wrong", "");
  readonly #happened = section("Just now", "");
  readonly #locks = listing("Held now");
  readonly #records = listing("Idempotency records");
  readonly #requests = listing("Latest requests");
  readonly #search = element("input", "search");
  #state: PageState;

  constructor(token: string, state: PageState) {
    this.#state = state;
    const send = (path: string, method: string, body?: unknown) => {
      this.#failure.textContent = "";
      ask(token, path, { method, body }).catch((error: Error) => {
        this.#failure.textContent = `That failed: ${error.message}`;
      });
    };
    this.#cards = state.endpoints.map(({ name }, index) => {
      const path = `/api/endpoints/${index + 1}`;
      return endpointCard(name, {
        act: (action) => send(`${path}/${action}`, "POST"),
        fault: (method, rules) => send(`${path}/faults`, method, rules),
      });
    });
    this.#failure.id = "failure";
    this.#wrong.root.id = "wrong";
    this.#search.type = "search";
    this.#search.placeholder = "Search: a resource, holder, client, operation or result";
    this.#search.ariaLabel = "Search";
    this.#search.addEventListener("input", () => this.#list());
    page.replaceChildren(
      this.#failure,
      this.#wrong.root,
      this.#happened.root,
      element("div", "cards", ...this.#cards.map(({ root }) => root)),
      this.#search,
      this.#locks.root,
      this.#records.root,
      this.#requests.root,
    );
  }

  show(state: PageState): void {
    const { text, bad } = summary(state);
    say(text, bad);
    for (const [index, endpoint] of state.endpoints.entries()) this.#cards[index]?.update(endpoint);
    this.#state = state;
    const wrong = wrongPanel(state);
    this.#wrong.root.hidden = wrong.length === 0;
    show(this.#wrong.body, wrong);
    show(this.#happened.body, happenedPanel(state.happenings));
    this.#list();
  }

  #list(): void {
    const search = this.#search.value.trim();
    this.#locks.show(locksPanel(this.#state, search));
    this.#records.show(recordsPanel(this.#state, search));
    this.#requests.show(requestsPanel(this.#state, search));
  }
}

/** Shows what arrives until the stream ends. */
async function follow(token: string): Promise<void> {
  let view: View | undefined;
  for await (const state of messages<PageState>(token, "/api/live")) {
    view ??= new View(token, state);
    view.show(state);
  }
}

/** Asks for the token, and says where it is. */
function askForToken(refused: boolean): Promise<string> {
  say(
    refused ? "This token is not the one of these endpoints." : "This page needs the endpoints' token.",
    refused,
  );
  const input = element("input", "");
  input.type = "password";
  input.autocomplete = "off";
  input.id = "token";
  const label = element("label", "", "Token");
  label.htmlFor = "token";
  const open = element("button", "", "Open");
  const form = element("form", "", label, input, open);
  const about = element(
    "p",
    "",
    "Open the address that ",
    element("code", "", "redis-rest-local"),
    " has printed: the token is in it, after ",
    element("code", "", "#token="),
    ". It is also the value of ",
    element("code", "", "UPSTASH_REDIS_REST_TOKEN_1"),
    ". The page keeps it until this tab is closed, and sends it to this machine only.",
  );
  page.replaceChildren(element("div", "gate", about, form));
  input.focus();
  return new Promise((resolve) => {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (input.value !== "") resolve(input.value.trim());
    });
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
