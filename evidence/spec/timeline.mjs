// From a trace of evidence/spec/redlock.qnt to a timeline (playground/picture/timeline.ts): what changed from one state to the next.

/** The length of one tick in the picture, in ms. The steps of a tick share it. */
const tick = 40;
const key = "lock";
const database = "database";

/**
 * @param {string} itf a trace in the Informal Trace Format
 * @param {{ title: string, violated?: string }} about `violated`: the invariant that the last state breaks
 * @returns {object} a timeline
 */
export function timelineOf(itf, { title, violated }) {
  const states = JSON.parse(itf).states.map((state) => plain(state.s));
  const times = timesOf(states.map(({ now }) => now));
  const end = times.at(-1) + tick;
  const events = [];
  const names = { owners: {}, writes: 0 };
  for (const [index, next] of states.entries()) {
    const last = states[index - 1];
    if (!last) continue;
    const add = (phase, members, later = 0) => events.push({ time: times[index] + later, phase, ...members });
    for (const { nonce, client } of next.requests) names.owners[nonce] = client;
    addClients(last, next, add);
    addRequests(last, next, add);
    addEndpoints(last, next, add, names.owners);
    addWrites(last, next, add, { names, end });
  }
  if (violated) events.push({ time: times.at(-1) + tick / 8, phase: "violated", name: violated });
  const first = states[0];
  return {
    version: 1,
    title,
    clients: Object.keys(first.clients),
    endpoints: [...Object.keys(first.cells), ...(names.writes ? [database] : [])],
    from: 0,
    to: end,
    events: events.sort((one, other) => one.time - other.time),
  };
}

/** Numbers, arrays and objects instead of the format's. */
function plain(value) {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(plain);
  if ("#bigint" in value) return Number(value["#bigint"]);
  if ("#set" in value) return value["#set"].map(plain);
  if ("#map" in value) return Object.fromEntries(value["#map"].map(([name, item]) => [name, plain(item)]));
  if ("tag" in value) return value.tag;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plain(item)]));
}

const timeOf = (now) => (now - 1) * tick;

/** When each state begins: the steps of one tick are spread over it. */
function timesOf(clock) {
  return clock.map((now, index) => {
    const first = clock.indexOf(now);
    const count = clock.lastIndexOf(now) - first + 1;
    return timeOf(now) + ((index - first) * tick) / count;
  });
}

function addClients(last, next, add) {
  for (const [client, now] of Object.entries(next.clients)) {
    const before = last.clients[client];
    const isNew = now.phase !== before.phase;
    const about = { client, key, call: `${client}${now.nonce}` };
    const votes = Object.fromEntries(
      Object.entries(now.votes).map(([endpoint, vote]) => [endpoint, vote < 0 ? "held" : "granted"]),
    );
    if (isNew && now.phase === "Acquiring") add("called", { ...about, operation: "acquire" });
    if (isNew && now.phase === "Holding")
      add("returned", { ...about, operation: "acquire", outcome: "granted", votes, fence: now.fence });
    if (now.phase === "Holding" && (isNew || now.until !== before.until))
      add("valid", { client, key, fence: fenceOf(next, now.fence), until: timeOf(now.until) });
    if (!isNew || now.phase !== "Idle") continue;
    if (before.phase === "Holding") add("ended", { client, key });
    if (before.phase === "Acquiring" || before.phase === "Raising")
      add("returned", { ...about, operation: "acquire", outcome: "held", votes });
  }
}

/** Without fencing, nobody looks at the counters. */
const fenceOf = ({ world }, fence) => (world.fencing ? fence : undefined);

const nameOf = ({ op, endpoint, call }) => `${op} ${call} ${endpoint}`;

function operationOf({ op, ttl }) {
  return op === "Keep" && ttl === 0 ? "raise" : op.toLowerCase();
}

function addRequests(last, next, add) {
  const before = new Map(last.requests.map((request) => [nameOf(request), request]));
  const after = new Map(next.requests.map((request) => [nameOf(request), request]));
  for (const [request, sent] of after) {
    const { client, endpoint, nonce } = sent;
    if (!before.has(request))
      add("sent", {
        client,
        endpoint,
        request,
        operation: operationOf(sent),
        key,
        call: `${client}${nonce}`,
      });
  }
  for (const [request, sent] of before) {
    const again = after.get(request)?.again;
    if (after.has(request) && again === sent.again) continue;
    const { endpoint, client, nonce, op } = sent;
    const has = (state) => storedAt(state, endpoint) === nonce;
    const isGranted = op === "End" ? has(last) : has(next);
    const outcome = isGranted ? "granted" : op === "Claim" ? "held" : "gone";
    add("executed", { endpoint, request, outcome });
    const heard = ({ clients }) => JSON.stringify([clients[client].votes, clients[client].answers]);
    if (heard(last) !== heard(next)) add("answered", { client, request, outcome }, tick / 16);
  }
}

function storedAt({ cells, now }, endpoint) {
  const { value, until } = cells[endpoint];
  return now < until ? value : 0;
}

function addEndpoints(last, next, add, owners) {
  for (const [endpoint, cell] of Object.entries(next.cells)) {
    const before = last.cells[endpoint];
    const [had, has] = [storedAt(last, endpoint), storedAt(next, endpoint)];
    const isKept = next.now < before.until;
    if (had && had !== has && isKept) add("removed", { endpoint, key, holder: owners[had] });
    if (has && (had !== has || before.until !== cell.until || before.counter !== cell.counter)) {
      const until = timeOf(cell.until);
      add("stored", { endpoint, key, holder: owners[has], until, fence: fenceOf(next, cell.counter) });
    }
    if (cell.back === before.back) continue;
    const name = "memory lost";
    add("fault", { endpoint, name });
    add("healed", { endpoint, name }, Math.max(tick / 8, timeOf(cell.back) - timeOf(next.now)));
  }
}

function addWrites(last, next, add, { names, end }) {
  const includes = (list, { client, grant }) => list.some((w) => w.client === client && w.grant === grant);
  for (const { client, grant } of next.writes) {
    if (includes(last.writes, { client, grant })) continue;
    names.writes += 1;
    names[`${client} ${grant}`] = `write ${names.writes}`;
    const request = names[`${client} ${grant}`];
    add("sent", { client, endpoint: database, request, operation: "write", key: "data" });
  }
  for (const { client, grant, fence } of last.writes) {
    if (includes(next.writes, { client, grant })) continue;
    const isAccepted = next.ledger.length > last.ledger.length;
    const request = names[`${client} ${grant}`];
    add("executed", { endpoint: database, request, outcome: isAccepted ? "granted" : "held" });
    const holder = last.ledger.at(-1)?.client;
    if (!isAccepted) continue;
    if (holder) add("removed", { endpoint: database, key: "data", holder });
    add("stored", {
      endpoint: database,
      key: "data",
      holder: client,
      fence: fenceOf(next, fence),
      until: end + 100 * tick,
    });
  }
}
