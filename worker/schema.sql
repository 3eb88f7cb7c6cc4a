-- The Worker's tables in D1 (SQLite). Every statement can be repeated. Comments contain no semicolons.
--
-- All times are ms since 1970. All fences are fencing tokens of the lock on the entity: positive integers that strictly
-- increase with every acquisition, independent of holders and clocks.

-- The inbox of redlock-edge/inbox: `d1Schema` is these five statements, and a test compares them. A row for each
-- delivery that is done, the highest fence that has written to each entity, and its highest version, unused here.
--
-- Both rows are written in the same batch (one transaction) as the effect. So a delivery has its effect once, whatever
-- becomes of the Worker or of Redis: a second insertion of its key undoes the whole batch. And a holder that was paused
-- until another one had the lock is harmless: its late write carries a lower fence, which undoes its batch, too.
CREATE TABLE IF NOT EXISTS redlock_inbox (
  key TEXT NOT NULL PRIMARY KEY,
  at INTEGER NOT NULL DEFAULT (unixepoch() * 1000)
) STRICT;

CREATE TABLE IF NOT EXISTS redlock_fences (
  entity TEXT NOT NULL PRIMARY KEY,
  fence INTEGER NOT NULL,
  at INTEGER NOT NULL DEFAULT (unixepoch() * 1000)
) STRICT;

CREATE INDEX IF NOT EXISTS redlock_fences_at ON redlock_fences (at);

CREATE TABLE IF NOT EXISTS redlock_versions (
  entity TEXT NOT NULL PRIMARY KEY,
  version INTEGER NOT NULL,
  at INTEGER NOT NULL DEFAULT (unixepoch() * 1000)
) STRICT;

CREATE INDEX IF NOT EXISTS redlock_versions_at ON redlock_versions (at);

-- What the webhooks are about, such as `github:octo/demo#42`. `events` is incremented from the stored value, never from a
-- value that the handler read before.
CREATE TABLE IF NOT EXISTS entities (
  entity TEXT NOT NULL PRIMARY KEY,
  events INTEGER NOT NULL,
  fence INTEGER NOT NULL CHECK (fence > 0)
) STRICT;

-- One row for each effect of the last 30 days, which is longer than any sender retries. Deliberately not unique by
-- delivery: if an effect happened twice in spite of the inbox, this table would show it.
CREATE TABLE IF NOT EXISTS effects (
  delivery_key TEXT NOT NULL,
  event TEXT NOT NULL,
  entity TEXT NOT NULL,
  fence INTEGER NOT NULL CHECK (fence > 0),
  events INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS effects_delivery_key ON effects (delivery_key);

-- The journal of all deliveries, for people to read. No decision depends on it: a row may be missing (the Worker died
-- before it was written), and the rows are in the order of the answers. The newest 10 000 are kept.
--
--   executed  the effect was written
--   replayed  a duplicate, answered with the stored result
--   refused   not genuine, not understood, or of a sender that is not set up: it has no key, because nothing in it can be
--             relied on
--   retry     busy, no quorum, or a failure: the sender was asked to send it again
CREATE TABLE IF NOT EXISTS deliveries (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  sender TEXT NOT NULL,
  delivery_key TEXT,
  event TEXT,
  entity TEXT,
  outcome TEXT NOT NULL CHECK (outcome IN ('executed', 'replayed', 'refused', 'retry')),
  status INTEGER NOT NULL,
  reason TEXT
) STRICT;
