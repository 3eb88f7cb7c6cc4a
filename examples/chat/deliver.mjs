// Delivers a message, two more during its answer, and one of them again. It is the bot, too, which answers the first message
// when all are delivered.

import { on, once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";

const { WEBHOOK_URL = "http://localhost:8787", WEBHOOK_TOKEN = "dev", BOT_PORT = "8788" } = process.env;
const thread = crypto.randomUUID();

const bot = createServer(async (incoming, outgoing) => {
  const message = await text(incoming);
  console.log(`the bot begins:   ${message}`);
  if (message === "one") await once(bot, "delivered");
  console.log(`the bot answered: ${message}`);
  outgoing.writeHead(204).end();
  bot.emit("answered", message);
});
bot.listen(Number(BOT_PORT));
await once(bot, "listening");

/** @param {string} message */
async function deliver(message) {
  const { status } = await fetch(`${WEBHOOK_URL}/webhook`, {
    method: "POST",
    headers: { authorization: `Bearer ${WEBHOOK_TOKEN}` },
    body: JSON.stringify({ id: `${thread}:${message}`, thread, text: message }),
  });
  console.log(`delivered, ${status}:   ${message}`);
}

async function lastAnswer() {
  for await (const [message] of on(bot, "answered")) if (message === "three") return;
}

const last = lastAnswer();
await deliver("one");
await deliver("two");
await deliver("three");
await deliver("two");
bot.emit("delivered");
await last;
bot.close();
