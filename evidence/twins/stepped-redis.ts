import { type Reply, ReplyError } from "../../local/src/memory/index.ts";
import { plainReply } from "../../local/src/rest/backend.ts";
import { withoutConditions, withoutDelex } from "../../local/src/rest/redis/conditions.ts";
import { RedisConnection } from "../../local/src/rest/redis/connection.ts";

// A redis-server whose clock the test moves. Redis itself has none that could be set: so each script and each command runs
// behind a few lines of Lua that put a number in place of TIME, and make each ms of a ttl a second of the server's. What
// passes while a step is executed is then less than a ms.

type Words = readonly (string | number)[];

/** Where the test's time is stored, in ms. No script has such a key. */
const clockKey = "the clock of the test";

/** Where is counted how many commands a script has called. */
const callsKey = "the calls of the test";

/** How many ms of the server are one of the test. */
const scale = 1_000;

/** Replaces `redis` by one with the test's clock. Whatever is no whole number is passed on, for Redis to refuse. */
const clock = `local redis = (function(server)
  local now = tonumber(server.call("GET", "${clockKey}"))
  local function scaled(word, from)
    local text = tostring(word)
    if not (string.find(text, "^-?[1-9]%d*$") or text == "0") then return word end
    return string.format("%.0f", (tonumber(text) - (from or 0)) * ${scale})
  end
  local function run(how, name, ...)
    local words, command = {...}, string.upper(tostring(name))
    if command == "TIME" then
      server.call("INCR", "${callsKey}")
      return {string.format("%.0f", math.floor(now / 1000)), string.format("%.0f", now % 1000 * 1000)}
    elseif command == "SET" then
      for i = 3, #words - 1 do
        if string.upper(tostring(words[i])) == "PX" then words[i + 1] = scaled(words[i + 1]) end
      end
    elseif command == "PEXPIRE" then
      words[2] = scaled(words[2])
    elseif command == "PEXPIREAT" and words[2] then
      local ms = scaled(words[2], now)
      if ms ~= words[2] then name, words[2] = "PEXPIRE", ms end
    end
    local reply = server.pcall(name, unpack(words))
    local failure = type(reply) == "table" and reply.err
    if not (failure and string.find(failure, "Unknown Redis command")) then server.call("INCR", "${callsKey}") end
    if failure and how == "call" then error(reply) end
    if command == "PTTL" and type(reply) == "number" and reply > 0 then return math.ceil(reply / ${scale}) end
    return reply
  end
  return setmetatable({
    call = function(...) return run("call", ...) end,
    pcall = function(...) return run("pcall", ...) end,
  }, {__index = server})
end)(redis)
`;

/** Moves the clock from where it is, and rounds all ttls: what passes within a step does not add up. */
const step = `local by = ARGV[1] - (redis.call("GET", "${clockKey}") or ARGV[1])
redis.call("SET", "${clockKey}", ARGV[1])
redis.call("SET", "${callsKey}", 0)
for _, key in ipairs(redis.call("KEYS", "*")) do
  local ttl = redis.call("PTTL", key)
  local ms = ttl < 1e15 and (math.ceil(ttl / ${scale}) - by) * ${scale} or ttl - by * ${scale}
  if ttl > 0 then redis.call("PEXPIRE", key, string.format("%.0f", ms)) end
end
return 1`;

const plain = "return redis.call(unpack(ARGV))";

/** A step took so long that the server's own time may have changed what it did: to be played again. */
export class Stalled extends Error {}

/** What a command has done: a reply or the text of an error, and the keys that are there after it. */
interface Step {
  readonly answer: Reply | ReplyError;
  readonly keys: readonly string[];
  /** How many commands a script has called. */
  readonly calls: number;
}

/** The channels that are listened to; the number of subscribers is in some replies. */
export const channels = ["heard", "channel"] as const;

/** A redis-server with a clock of the test's. */
export class SteppedRedis {
  readonly #connection: RedisConnection;
  /** Another one: a connection that listens does nothing else. */
  readonly #listener: RedisConnection;
  #messages: Reply[] = [];
  /** When the clock was moved. */
  #stepped = 0;
  #onMessage: () => void = () => undefined;
  /** Whether it has DELEX and SET … IFEQ. */
  readonly #isNative: boolean;

  private constructor(connection: RedisConnection, listener: RedisConnection, isNative: boolean) {
    this.#connection = connection;
    this.#listener = listener;
    this.#isNative = isNative;
    listener.listen(["SUBSCRIBE", ...channels], {
      receive: (reply) => {
        const push = plainReply(reply) as Reply[];
        if (push[0] === "message") this.#messages.push(push);
        this.#onMessage();
      },
      closed: () => undefined,
    });
  }

  /** @param url of a server that is nobody else's */
  static async open(url: string): Promise<SteppedRedis> {
    const [connection, listener] = [await RedisConnection.open(url), await RedisConnection.open(url)];
    const [known] = await connection.send([["COMMAND", "INFO", "DELEX"]]);
    const isNative = Array.isArray(known) && known[0] !== null;
    return new SteppedRedis(connection, listener, isNative);
  }

  /** Deletes all keys, all scripts that were sent, and what was heard. */
  async empty(): Promise<void> {
    await this.#connection.send([["FLUSHALL"], ["SCRIPT", "FLUSH"]]);
    await this.heard();
  }

  /** The messages since the last time. */
  async heard(): Promise<readonly Reply[]> {
    const end = ["message", channels[0], `end ${performance.now()}`];
    const hasEnded = () => this.#messages.some((message) => String(message) === String(end));
    const ended = new Promise<void>((resolve) => {
      this.#onMessage = () => hasEnded() && resolve();
    });
    for (let listeners = 0; listeners === 0; )
      [listeners] = (await this.#connection.send([["PUBLISH", ...end.slice(1)]])) as [number];
    await ended;
    return this.#messages.splice(0).slice(0, -1);
  }

  /** Executes a command of the dialect `redis-8.4` at a time in ms. */
  async play(now: number, command: Words): Promise<Step> {
    this.#stepped = performance.now();
    await this.#connection.send([["EVAL", step, 0, now].map(String)]);
    const [answer, calls, keys] = await this.execute([command, ["GET", callsKey], ["KEYS", "*"]]);
    const own = (keys as string[]).filter((key) => key !== clockKey && key !== callsKey);
    return { answer: answer!, calls: Number(calls), keys: own };
  }

  /** Executes commands at the time of the last step. */
  async execute(commands: readonly Words[]): Promise<readonly (Reply | ReplyError)[]> {
    const scripts = commands.map((command) => this.#asScript(command.map(String)));
    const replies = await this.#connection.send(scripts.map((script) => script.map(String)));
    if (performance.now() - this.#stepped > 0.8 * scale) throw new Stalled();
    return replies.map((reply) => (reply instanceof ReplyError ? withoutPlace(reply) : plainReply(reply)));
  }

  /** A command as a script: DELEX and SET … IFEQ as well, if the server does not have them. */
  #asScript(command: readonly string[]): Words {
    const name = command[0]!.toUpperCase();
    const emulated =
      name === "DELEX" ? withoutDelex(command) : name === "SET" ? withoutConditions(command) : command;
    const sent = this.#isNative ? command : emulated;
    const [, text, ...words] = sent[0] === "EVAL" ? sent : ["EVAL", plain, 0, ...sent];
    return ["EVAL", clock + text, ...words];
  }

  close(): void {
    this.#connection.close();
    this.#listener.close();
  }
}

/** The error without the script, and the line in it, that raised it. */
function withoutPlace({ message }: ReplyError): ReplyError {
  return new ReplyError(message.replace(/ script: [0-9a-f]{40}, on .*$/, ""));
}
