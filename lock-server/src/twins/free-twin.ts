import { type Twin, whole } from "./twin.ts";

/** The twin of `freeScript`, which says what it does. */
export const freeTwin: Twin = {
  sha: "79fc115568aafdf10c9e4434b6aba4df39ffb3f3",
  run({ call, keys, args }) {
    const shown = whole(args[2]!);
    const freed = Number(call("DEL", ...keys.slice(0, shown)));
    if (keys.length > shown) call("DEL", ...keys.slice(shown));
    return [freed > 0 ? args[1]! : 0];
  },
};
