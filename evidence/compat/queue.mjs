import { Queue } from "@upstash/queue";
import { assert, fresh, sleep, until } from "./program.mjs";

export const cases = {
  async "messages arrive in the order in which they were sent, once"({ redis }) {
    const queue = new Queue({ redis, queueName: fresh() });
    for (const word of ["one", "two", "three"]) await queue.sendMessage({ word });
    const received = [];
    for (let count = 0; count < 3; count++) received.push((await queue.receiveMessage()).body.word);
    assert.deepEqual(received, ["one", "two", "three"]);
    assert.equal(await queue.receiveMessage(), null);
  },

  async "a message with a delay is there after it"({ redis }) {
    const options = { redis, queueName: fresh() };
    const sent = Date.now();
    await new Queue(options).sendMessage({ late: true }, 2_000);
    assert.equal(await new Queue(options).receiveMessage(), null);
    const { body } = await until(() => new Queue(options).receiveMessage(), "the message");
    assert.deepEqual(body, { late: true });
    assert.ok(Date.now() - sent >= 1_990);
  },

  async "a message that is not verified becomes visible again, and is gone once it is"({ redis }) {
    const options = {
      redis,
      queueName: fresh(),
      autoVerify: false,
      concurrencyLimit: 5,
      visibilityTimeout: 2_000,
    };
    const queue = new Queue(options);
    await queue.sendMessage({ word: "again" });
    const first = await queue.receiveMessage();
    assert.equal(await new Queue(options).receiveMessage(), null);
    await sleep(2_050);
    const second = await new Queue(options).receiveMessage();
    assert.deepEqual(second, first);
    assert.equal(await queue.verifyMessage(second.streamId), "VERIFIED");
    assert.equal(await queue.verifyMessage(second.streamId), "NOT VERIFIED");
    await sleep(2_050);
    assert.equal(await new Queue(options).receiveMessage(), null);
  },

  async "two receivers at the same time get different messages"({ redis }) {
    const queue = new Queue({ redis, queueName: fresh(), concurrencyLimit: 2 });
    await queue.sendMessage({ word: "one" });
    await queue.sendMessage({ word: "two" });
    const received = await Promise.all([queue.receiveMessage(), queue.receiveMessage()]);
    assert.deepEqual(received.map(({ body }) => body.word).sort(), ["one", "two"]);
  },

  async "a second receiver is refused without a limit of concurrency"({ redis }) {
    const queue = new Queue({ redis, queueName: fresh(), autoVerify: false });
    await queue.sendMessage({ word: "one" });
    await queue.receiveMessage();
    await assert.rejects(queue.receiveMessage(), /Cannot receive more than 1/);
  },

  // XREADGROUP with BLOCK, which Upstash's REST API does not have: docs of Upstash, "REST API", "Streams".
  async "receiveMessage(ms) is refused, as blocking commands are at Upstash"({ redis }) {
    const queue = new Queue({ redis, queueName: fresh() });
    await queue.sendMessage({ word: "one" });
    await assert.rejects(queue.receiveMessage(1_000), /Command is not available/);
  },
};
