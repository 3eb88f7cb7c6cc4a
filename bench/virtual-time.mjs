// A world in virtual time for benchmarks: clients and in-process endpoints with a given round trip between them. The same
// seed gives the same figures on any machine.
import { load } from "../tools/load.mjs";

const { memoryEndpoint, VirtualTime } = await load("local/src/memory/index.ts");

/** One world. Its time is independent of the machine's. */
export class VirtualWorld {
  /** Streams that all clients have opened. */
  streams = 0;
  #time;
  #servers;

  /**
   * @param seed an integer
   * @param roundTrips ms to each endpoint and back, on average
   */
  constructor(seed, roundTrips) {
    this.#time = new VirtualTime({ seed });
    this.#servers = roundTrips.map((roundTrip, index) => ({
      roundTrip,
      memory: memoryEndpoint({ name: `e${index}`, runtime: this.#time }),
    }));
  }

  /** Commands that all endpoints have executed, those of scripts included. */
  get billed() {
    const billed = this.#servers.flatMap(({ memory }) => memory.log.map(({ billed }) => billed));
    return billed.reduce((sum, each) => sum + each, 0);
  }

  get now() {
    return this.#time.elapsed;
  }

  random() {
    return this.#time.random();
  }

  /** The runtime of a client in this world. */
  runtime() {
    return { ...this.#time };
  }

  /** The endpoints for one client. Each direction takes half of the round trip ± 10 %. */
  endpoints() {
    return this.#servers.map(({ roundTrip, memory }) => {
      const { name, dialect, exactReplies } = memory;
      const travel = (then) => this.#time.timer((roundTrip / 2) * (0.9 + 0.2 * this.random()), then);
      const send = (command, signal) => {
        return new Promise((resolve, reject) => {
          const giveUp = () => reject(new Error("no answer in time"));
          if (signal.aborted) return giveUp();
          signal.addEventListener("abort", giveUp, { once: true });
          // Executed even if the client has given up by then.
          travel(() => {
            const reply = memory.send(command, new AbortController().signal);
            travel(() => {
              signal.removeEventListener("abort", giveUp);
              reply.then(resolve, reject);
            });
          });
        });
      };
      const subscribe = async (channel, signal) => {
        this.streams += 1;
        await new Promise((resolve) => travel(resolve));
        const events = (await memory.subscribe(channel, signal)).getReader();
        // Messages are read as they come, and each is on its way for as long as any reply.
        return new ReadableStream({
          async pull(controller) {
            const { value } = await events.read();
            if (value) await new Promise((resolve) => travel(resolve));
            if (value) controller.enqueue(value);
            else controller.close();
          },
          cancel: () => events.cancel(),
        });
      };
      return { name, dialect, exactReplies, send, subscribe };
    });
  }

  sleep(ms) {
    return this.#time.sleep(ms);
  }

  /** Advances time to `until`, or until `isOver` returns true. */
  async run(until, isOver = () => false) {
    while (!isOver() && (await this.#time.advanceToNext(until - this.now)));
    if (!isOver()) await this.#time.advance(until - this.now);
  }
}
