// @ts-check
// Keeps the page up to date: asks for it again, and replaces the parts that changed. It asks only while the tab is
// visible, and a bounded number of times after the reader last did something.

/** Requests without anything that the reader does; then it pauses. About half an hour. */
const maxRequests = 400;
/** ms between two requests: soon after a change, and growing while nothing changes. */
const pauses = { first: 1_000, growth: 1.3, last: 5_000 };
/** ms. A request that takes longer counts as failed. */
const timeout = 10_000;

const state = {
  version: document.body.dataset.version ?? "",
  requestsLeft: maxRequests,
  pause: pauses.first,
  paused: false,
  /** The number of the newest request: an answer to an older one is out of date. */
  request: 0,
  /** Whether that request is under way. */
  asking: false,
  failed: false,
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer: undefined,
};

const line = /** @type {HTMLElement} */ (document.querySelector("#live"));
const words = /** @type {HTMLElement} */ (document.querySelector("#live-state"));
const button = /** @type {HTMLButtonElement} */ (document.querySelector("#live-switch"));

button.addEventListener("click", () => {
  state.paused = !state.paused;
  if (state.paused) schedule();
  else resume();
});
document.addEventListener("visibilitychange", () => (document.hidden ? schedule() : resume()));
document.addEventListener("submit", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  // To sign out leads to another page.
  if (!form.closest("[data-part]")) return;
  event.preventDefault();
  const data = new FormData(form, event.submitter);
  // The answer leads to the page, which shows what came of it.
  void ask(form.action, { method: "POST", body: new URLSearchParams(/** @type {any} */ (data)) });
});
button.hidden = false;
schedule();

/** Asks at once, and then as often as after the page was opened. */
function resume() {
  state.paused = false;
  state.requestsLeft = maxRequests;
  void ask(location.pathname, { headers: { "if-none-match": state.version } });
}

/** Plans the next request, if there is to be one, and says so. */
function schedule() {
  clearTimeout(state.timer);
  if (state.requestsLeft === 0) state.paused = true;
  if (!state.paused && !document.hidden) {
    state.timer = setTimeout(
      () => void ask(location.pathname, { headers: { "if-none-match": state.version } }),
      state.pause,
    );
  }
  say(words, state.paused ? "Paused" : state.failed ? "The Worker does not answer; trying again" : "Live");
  say(button, state.paused ? "Resume" : "Pause");
  line.dataset.state = state.paused ? "paused" : state.failed ? "failed" : "live";
}

/**
 * Requests the page once, and shows it if it is newer.
 *
 * @param {string} url
 * @param {RequestInit} init
 */
async function ask(url, init) {
  const pressed = init.method === "POST";
  if (state.asking && !pressed) return;
  clearTimeout(state.timer);
  state.request += 1;
  const number = state.request;
  state.asking = true;
  state.requestsLeft = pressed ? maxRequests : state.requestsLeft - 1;
  if (pressed) document.body.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(url, { ...init, cache: "no-store", signal: AbortSignal.timeout(timeout) });
    // The session has ended: the reload leads to the form.
    if (response.status === 401) location.reload();
    const changed = response.status !== 304;
    if (changed && !response.ok) throw new Error(`status ${response.status}`);
    const text = await response.text();
    if (number !== state.request) return;
    if (changed) show(new DOMParser().parseFromString(text, "text/html"));
    state.pause = changed || pressed ? pauses.first : Math.min(state.pause * pauses.growth, pauses.last);
    state.failed = false;
  } catch {
    if (number !== state.request) return;
    // The line at the top says so, and the next request tries again.
    state.pause = pauses.last;
    state.failed = true;
  } finally {
    if (number === state.request) {
      state.asking = false;
      document.body.removeAttribute("aria-busy");
      schedule();
    }
  }
}

/**
 * Replaces the parts that differ from those of `newer`. What the reader has opened stays open, and the focus stays.
 *
 * @param {Document} newer
 */
function show(newer) {
  for (const part of document.querySelectorAll("[data-part]")) {
    const next = newer.getElementById(part.id);
    if (!next || isSame(part, next)) continue;
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    for (const item of next.querySelectorAll("li[data-key]")) {
      const shown = find(part, "li", item);
      if (!shown || !isSame(shown, item)) item.classList.add("changed");
    }
    for (const open of part.querySelectorAll("details[open][data-key]")) {
      find(next, "details", open)?.setAttribute("open", "");
    }
    part.replaceChildren(...next.childNodes);
    if (focused instanceof HTMLElement) focusLike(focused, part);
  }
  state.version = newer.body.dataset.version ?? "";
}

/**
 * @param {Element} shown
 * @param {Element} next
 */
function isSame(shown, next) {
  const plain = /** @type {Element} */ (shown.cloneNode(true));
  for (const open of plain.querySelectorAll("[open]")) open.removeAttribute("open");
  for (const changed of plain.querySelectorAll(".changed")) changed.classList.remove("changed");
  return plain.innerHTML === next.innerHTML;
}

/**
 * The element of the same kind and key.
 *
 * @param {Element} within
 * @param {string} kind
 * @param {Element} like
 */
function find(within, kind, like) {
  const key = CSS.escape(/** @type {HTMLElement} */ (like).dataset.key ?? "");
  return within.querySelector(`${kind}[data-key="${key}"]`);
}

/**
 * Focuses what stands where the focused element stood.
 *
 * @param {HTMLElement} focused
 * @param {Element} part
 */
function focusLike(focused, part) {
  const details = focused.closest("details[data-key]");
  const same = focused.id
    ? document.getElementById(focused.id)
    : details && find(part, "details", details)?.querySelector("summary");
  same?.focus();
}

/**
 * Sets a text only where it changes: screen readers read changes.
 *
 * @param {HTMLElement} element
 * @param {string} text
 */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
