import { expect, it } from "vitest";
import { memoryEndpoint } from "../../../../local/src/memory/index.ts";
import { Deadline } from "../../../../src/endpoints/deadline.ts";
import type { EndpointRequest } from "../../../../src/endpoints/endpoint-request.ts";
import { pubSub } from "../../../../src/lock/wake-up/pub-sub.ts";

/** Releases at an endpoint whose reply to the script is changed on its way. */
function release(change: (reply: [unknown, number]) => unknown) {
  const endpoint = memoryEndpoint();
  const call: EndpointRequest = {
    endpoint: {
      ...endpoint,
      name: "e",
      dialect: "redis",
      send: async (command, signal) => change((await endpoint.send(command, signal)) as [unknown, number]),
    },
    deadline: new Deadline(),
    cost: { requests: 0, commands: 0 },
  };
  return pubSub.publishingRelease("p", "lock", ["a", "b"])(call, { keys: ["k"], value: "tv" }, 0);
}

it.each<[string, (reply: [unknown, number]) => unknown]>([
  ["no list", () => "OK"],
  ["an object like a list", (reply) => ({ ...reply, length: 2 })],
  ["the reply of a release alone", ([reply]) => [reply]],
  ["more", (reply) => [...reply, 1]],
  ["no number", ([reply]) => [reply, "2"]],
  ["a fraction", ([reply]) => [reply, 0.5]],
  ["nothing", () => null],
])("takes no other reply: %s", async (_, change) => {
  await expect(release(change)).rejects.toThrow("unexpected reply to a script");
});
