import type { TimelineEvent } from "./timeline.ts";

/**
 * The events that concern one key, and the keys that events name.
 *
 * What happens to a request names only the request: its key is that of its `sent`, or of its call.
 */
export function selectEvents(
  events: readonly TimelineEvent[],
  key?: string,
): { readonly events: readonly TimelineEvent[]; readonly keys: readonly string[] } {
  const keys = new Set<string>();
  const ofCall = new Map<string, string>();
  const ofRequest = new Map<string, string>();
  const known = events.map((event) => {
    const found =
      event.key ??
      (event.request === undefined ? undefined : ofRequest.get(event.request)) ??
      (event.call === undefined ? undefined : ofCall.get(event.call));
    if (found === undefined) return undefined;
    keys.add(found);
    if (event.call !== undefined) ofCall.set(event.call, found);
    if (event.request !== undefined) ofRequest.set(event.request, found);
    return found;
  });
  const always = ({ phase }: TimelineEvent, found: string | undefined) =>
    phase === "fault" || phase === "healed" || (phase === "violated" && found === undefined);
  return {
    keys: [...keys].sort(),
    events: key === undefined ? events : events.filter((e, at) => known[at] === key || always(e, known[at])),
  };
}
