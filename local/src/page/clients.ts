// Who sends the requests. All clients have the same token, so they are told apart by connection, and by the random names
// that they send: only one client makes each. Idle connections end after 5 s, and a client with new ones looks like a new
// client. It is taken for one of the same kind that has been idle for so long, unless that one holds something: then a
// second client that waits for it is more likely.

/** What is known of a request's sender. */
export interface Sender {
  readonly connection: string;
  /** The header `User-Agent`. */
  readonly agent: string;
  readonly tokens: readonly string[];
}

interface Client {
  readonly kind: string;
  readonly name: string;
  readonly letter: string;
  seen: number;
  /** Whether many that seemed new were taken for it. */
  isCrowd: boolean;
}

const letters = "ABCDEFGH";
/** ms after which a client without requests has no connection: the default of Node's servers. */
const idle = 5_000;
const mostRemembered = 2_000;
/** So many clients of a kind may appear within `moment` ms; more are one, with a connection for each of its requests. */
const mostNewcomers = 5;
const moment = 3_000;

/** Names of clients: `node A`, `curl B`. With more than eight in a minute, each further one is `another client`. */
export class Clients {
  readonly #byConnection = new Map<string, Client>();
  readonly #byToken = new Map<string, Client>();
  #clients: Client[] = [];
  #newcomers: { client: Client; readonly since: number }[] = [];

  /**
   * The names of the senders of requests that arrived at about the same time.
   *
   * @param now ms
   * @param holding The clients that hold something.
   */
  namesOf(senders: readonly Sender[], now: number, holding: ReadonlySet<string>): string[] {
    // First those that are known: what they send may tell whose the other connections are.
    for (const { connection, tokens } of senders) {
      const known = this.#byConnection.get(connection);
      if (known) this.#remember(known, connection, tokens);
    }
    for (const sender of senders) {
      const client = this.#known(sender) ?? this.#idleOne(sender, now, holding) ?? this.#create(sender, now);
      client.seen = now;
      this.#remember(client, sender.connection, sender.tokens);
    }
    this.#joinNewcomers(now);
    return senders.map((sender) => this.nameOf(sender) ?? "");
  }

  /** The name of a sender that has been given one. */
  nameOf(sender: Sender): string | undefined {
    return this.#known(sender)?.name;
  }

  #known({ connection, tokens }: Sender): Client | undefined {
    const byToken = tokens.map((token) => this.#byToken.get(token)).find((client) => client !== undefined);
    return byToken ?? this.#byConnection.get(connection);
  }

  #idleOne({ agent }: Sender, now: number, holding: ReadonlySet<string>): Client | undefined {
    return this.#clients.find(
      ({ kind, name, seen }) => kind === kindOf(agent) && now - seen > idle && !holding.has(name),
    );
  }

  /** Takes many new clients of a kind for one: the one that was there before and is busy, if there is such a one. */
  #joinNewcomers(now: number): void {
    this.#newcomers = this.#newcomers.filter(({ since }) => now - since < moment);
    for (const kind of new Set(this.#newcomers.map(({ client }) => client.kind))) {
      const entries = this.#newcomers.filter(({ client }) => client.kind === kind);
      if (entries.length <= mostNewcomers) continue;
      const crowd = new Set(entries.map(({ client }) => client));
      const busy = this.#clients.find(
        (each) => each.kind === kind && now - each.seen < moment && !crowd.has(each),
      );
      const one = [...crowd].find(({ isCrowd }) => isCrowd) ?? busy ?? entries[0]!.client;
      one.isCrowd = true;
      one.seen = now;
      this.#clients = this.#clients.filter((each) => each === one || !crowd.has(each));
      for (const map of [this.#byConnection, this.#byToken]) {
        for (const [id, client] of map) if (crowd.has(client)) map.set(id, one);
      }
      for (const entry of entries) entry.client = one;
    }
  }

  /** The name of the client that made a random name. */
  nameOfToken(token: string): string | undefined {
    return this.#byToken.get(token)?.name;
  }

  #create({ agent }: Sender, now: number): Client {
    const kind = kindOf(agent);
    const used = new Set(this.#clients.filter(({ seen }) => now - seen < 60_000).map(({ letter }) => letter));
    const letter = [...letters].find((each) => !used.has(each));
    const name = letter === undefined ? "another client" : `${kind} ${letter}`;
    const created: Client = { kind, name, letter: letter ?? "", seen: now, isCrowd: false };
    this.#newcomers = [...this.#newcomers, { client: created, since: now }].slice(-mostRemembered);
    if (letter === undefined) return created;
    const replaced = this.#clients.find((client) => client.letter === letter);
    this.#clients = [...this.#clients.filter((client) => client !== replaced), created];
    for (const map of [this.#byConnection, this.#byToken]) {
      for (const [id, client] of map) if (client === replaced) map.delete(id);
    }
    return created;
  }

  #remember(client: Client, connection: string, tokens: readonly string[]): void {
    if (!this.#byConnection.has(connection)) remember(this.#byConnection, connection, client);
    // The first who sends a token has made it: one that is handed over belongs to two.
    for (const token of tokens) if (!this.#byToken.has(token)) remember(this.#byToken, token, client);
  }
}

const kindOf = (agent: string): string => /^[\w.-]{1,16}/.exec(agent)?.[0] ?? "client";

function remember(map: Map<string, Client>, id: string, client: Client): void {
  map.delete(id);
  map.set(id, client);
  const [oldest] = map.keys();
  if (map.size > mostRemembered && oldest !== undefined) map.delete(oldest);
}
