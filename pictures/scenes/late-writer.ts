import type { Client } from "../world/client.ts";
import { Contender } from "../world/contender.ts";
import type { World } from "../world/world.ts";
import type { Act, Scene } from "./scene.ts";

export const lateWriter: Scene = {
  name: "late-writer",
  title: "Ann's process freezes while she holds the lock, and writes after Bob got it.",
  clients: ["Ann", "Bob"],
  storage: "the ledger",
  acts: [act("Without a fence", false), act("With a fence", true)],
};

function act(title: string, fencing: boolean): Act {
  return {
    title,
    endpoints: 3,
    async play(world, clients) {
      const [ann, bob] = clients.map((client) => new Contender(client)) as [Contender, Contender];
      const write = ledgerIn(world);
      const first = await ann.acquire({ fencing });
      await world.time.sleep(300);
      ann.client.freeze();
      const second = await bob.acquire({ fencing });
      await write(bob.client, { turn: 2, fence: second!.fence });
      await world.time.sleep(500);
      ann.client.thaw();
      await write(ann.client, { turn: 1, fence: first!.fence });
      await second!.release();
    },
  };
}

interface Writer {
  /** 1 for the first holder of the lock, 2 for the second. The ledger does not know it. */
  readonly turn: number;
  readonly fence: number | undefined;
}

/** What the lock protects: a store that refuses a fence that is lower than the highest it has seen. */
function ledgerIn(world: World): (client: Client, writer: Writer) => Promise<void> {
  let highest = 0;
  let latest = 0;
  return (client, { turn, fence = 0 }) =>
    client.write("write", () => {
      if (fence < highest) {
        const detail = `${client.name} wrote with an older fence than its successor`;
        world.judge("upheld", `REFUSED ${fence} < ${highest}`, detail);
        return `refused: fence ${fence} is lower than ${highest}`;
      }
      highest = fence;
      if (turn < latest) {
        const detail = `${client.name} wrote after its hold had ended, over what its successor wrote`;
        world.judge("violated", "LATE WRITE", detail);
      }
      latest = turn;
      return undefined;
    });
}
