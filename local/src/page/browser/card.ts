import type { FaultRule } from "../../faults/faults.ts";
import type { EndpointState } from "../state.ts";
import { button, element } from "./dom.ts";
import { isOn, others, switches, without } from "./switches.ts";
import { rate, ruleText } from "./words.ts";

/** What a card asks for. */
export interface CardActions {
  /** `stop`, `start` or `start-empty`. */
  act(action: string): void;
  fault(method: "POST" | "PUT", rules: readonly FaultRule[]): void;
}

/** One endpoint. It is built once, so that its switches keep the focus. */
export function endpointCard(name: string, actions: CardActions) {
  let rules: readonly FaultRule[] = [];
  const badge = element("span", "badge");
  const address = element("code", "soft");
  const counts = element("div", "counts");
  const other = element("div", "rules warn");
  const stop = button("Stop", () => actions.act("stop"));
  stop.title = "As a crash does: connections break, and the Redis that was started for it is killed";
  const start = button("Start", () => actions.act("start"));
  const empty = button("Start empty", () => actions.act("start-empty"));
  empty.title = "As a server without persistence after a crash: its data are lost";
  const boxes = switches.map((each) => {
    const box = element("input", "");
    box.type = "checkbox";
    box.setAttribute("role", "switch");
    box.addEventListener("change", () => {
      if (box.checked) actions.fault("POST", [each.rule]);
      else actions.fault("PUT", without(each, rules));
    });
    const label = element("label", "switch", box, each.label);
    label.title = `${each.about} (${each.rule.fault})`;
    return { box, label, each };
  });
  const legend = element("legend", "", "Faults: switch one on, and see what your program does");
  const clear = button("Remove", () =>
    actions.fault(
      "PUT",
      rules.filter((rule) => !others(rules).includes(rule)),
    ),
  );
  const root = element(
    "article",
    "card",
    element(
      "div",
      "card-head",
      element("h3", "", name),
      badge,
      element("div", "actions", stop, start, empty),
    ),
    address,
    counts,
    element("fieldset", "", legend, ...boxes.map(({ label }) => label)),
    other,
  );
  root.setAttribute("aria-label", name);
  return {
    root,
    update(state: EndpointState) {
      rules = state.faults;
      const faulty = state.status === "up" && rules.length > 0;
      root.dataset.status = state.status;
      root.toggleAttribute("data-faulty", faulty);
      badge.className = `badge ${faulty ? "faulty" : state.status}`;
      badge.textContent = statusText(state);
      address.textContent = state.url;
      stop.hidden = state.status === "stopped";
      start.hidden = state.status !== "stopped";
      empty.hidden = start.hidden || !state.canForget;
      counts.replaceChildren(...countParts(state));
      for (const { box, each } of boxes) box.checked = isOn(each, rules);
      const more = others(rules);
      other.replaceChildren(...(more.length > 0 ? [`also ${more.map(ruleText).join(", ")} `, clear] : []));
    },
  };
}

function statusText({ status, faults }: EndpointState): string {
  if (status === "stopped") return "stopped";
  if (status === "silent") return "its Redis does not answer";
  return faults.length > 0 ? `up, ${faults.length} fault${faults.length === 1 ? "" : "s"}` : "up";
}

function countParts({ requests, billed, requestsPerSecond, billedPerSecond }: EndpointState): Node[] {
  const part = (value: string, unit: string, total: string) =>
    element("span", "", element("b", "", value), ` ${unit} `, element("span", "soft", total));
  return [
    part(rate(requestsPerSecond), "requests/s", `${requests} in all`),
    part(rate(billedPerSecond), "billed commands/s", `${billed} in all`),
  ];
}
