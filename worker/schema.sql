-- The Worker's tables in D1 (SQLite). Every statement can be repeated on a database that has the tables already: after
-- an update of the Worker, apply the file again before you deploy. A database without counters then gets them, with
-- the numbers of its existing rows.
-- Comments contain no semicolons. An empty line follows every statement, and no statement contains one, so the file can
-- also be split there and run piece by piece.
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

-- What the webhooks are about, e.g. `github:octo/demo#42`, as the newest lock holder wrote it.
--
-- `events` is incremented from the stored value, never from a value that the handler read before.
CREATE TABLE IF NOT EXISTS entities (
  entity TEXT NOT NULL PRIMARY KEY,
  events INTEGER NOT NULL,
  last_event TEXT NOT NULL,
  last_delivery TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  fence INTEGER NOT NULL CHECK (fence > 0)
) STRICT;

-- The page shows the entities that changed last, and D1 bills every row that a query reads.
CREATE INDEX IF NOT EXISTS entities_updated_at ON entities (updated_at);

-- One row for each effect that was performed in the last 30 days, which is longer than any sender retries. Deliberately
-- not unique by delivery: if an effect happened twice in spite of the inbox, this table would show it. Such a delivery has
-- two rows. The page shows how many there are (`effects repeated` in the counters), and this query finds them. It reads
-- every row, and D1 bills them:
--
--   SELECT delivery_key, count(*) FROM effects GROUP BY delivery_key HAVING count(*) > 1
--
-- `delivery_key` is the provider's name, what the id is unique within (for Shopify the topic) and the delivery's id,
-- because ids of two senders may be equal.
CREATE TABLE IF NOT EXISTS effects (
  delivery_key TEXT NOT NULL,
  entity TEXT NOT NULL,
  event TEXT NOT NULL,
  fence INTEGER NOT NULL CHECK (fence > 0),
  at INTEGER NOT NULL
) STRICT;

-- For the query above, which then reads only the index, and for the trigger that counts.
CREATE INDEX IF NOT EXISTS effects_delivery_key ON effects (delivery_key);

-- A journal of all deliveries and their outcomes, for people to read. No decision depends on it: a row may be missing
-- (the Worker died before it was written), and the rows are in the order of the answers, not of the events.
--
--   executed  the effect was written (or a challenge was answered, which has no effect and no fence)
--   replayed  a duplicate, answered with the stored result
--   busy      a duplicate of a delivery that was still running, or the entity's lock was held for too long
--   refused   not genuine, not understood, or of a sender that is not set up (most columns are empty then, because
--             nothing in the delivery can be relied on)
--   failed    the handler or the store failed, and the sender is asked to try again
--
-- The journal is bounded: the newest 10 000 rows are kept, and each isolate writes at most 60 refused deliveries a
-- minute.
--
-- `fence` is that of the effect, so only executed deliveries have one. `requests` and `commands` are the cost of this
-- delivery in Redis (HTTP requests and billed commands), as far as known when it was answered.
CREATE TABLE IF NOT EXISTS deliveries (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  provider TEXT NOT NULL,
  delivery TEXT,
  event TEXT,
  entity TEXT,
  outcome TEXT NOT NULL CHECK (outcome IN ('executed', 'replayed', 'busy', 'refused', 'failed')),
  status INTEGER NOT NULL,
  fence INTEGER CHECK (fence > 0),
  requests INTEGER NOT NULL DEFAULT 0,
  commands INTEGER NOT NULL DEFAULT 0,
  ms INTEGER NOT NULL
) STRICT;

-- The page shows the copies of a delivery under its first, and searches that here. Refused deliveries have no id.
CREATE INDEX IF NOT EXISTS deliveries_delivery ON deliveries (provider, delivery) WHERE delivery IS NOT NULL;

-- Why a delivery of the journal was busy, refused or failed: a row with the same id. A table of its own, so that the
-- others cost no row more. `votes` is JSON: what each endpoint answered, where there was no quorum.
CREATE TABLE IF NOT EXISTS delivery_problems (
  id INTEGER PRIMARY KEY,
  reason TEXT NOT NULL,
  votes TEXT
) STRICT;

-- Used before there were counters. An unused index costs a written row for each delivery.
DROP INDEX IF EXISTS deliveries_outcome;

-- Totals for the page. D1 bills every row that a query reads, and anyone may open the page, so nothing is counted on
-- request: the triggers below count when rows are written, in the same transaction. Deleting old rows does not decrease
-- the counters.
--
--   effects performed     every effect
--   effects repeated      deliveries with more than one effect, must be 0
--   deliveries executed, deliveries replayed, …    rows of the journal by outcome
CREATE TABLE IF NOT EXISTS counters (
  name TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT;

-- The three inserts count the rows from before there were counters, and do nothing after that.
INSERT OR IGNORE INTO counters (name, value)
  SELECT 'effects performed', count(*) FROM effects;

INSERT OR IGNORE INTO counters (name, value)
  SELECT 'effects repeated', count(*)
  FROM (SELECT 1 FROM effects GROUP BY delivery_key HAVING count(*) > 1);

INSERT OR IGNORE INTO counters (name, value)
  SELECT 'deliveries ' || outcome, count(*) FROM deliveries GROUP BY outcome;

-- A delivery counts as repeated once, with its second effect. The limit bounds the rows that are read.
CREATE TRIGGER IF NOT EXISTS effects_counted AFTER INSERT ON effects BEGIN
  UPDATE counters SET value = value + 1 WHERE name = 'effects performed';
  UPDATE counters SET value = value + 1 WHERE name = 'effects repeated' AND 2 =
    (SELECT count(*) FROM (SELECT 1 FROM effects WHERE delivery_key = NEW.delivery_key LIMIT 3));
END;

CREATE TRIGGER IF NOT EXISTS deliveries_counted AFTER INSERT ON deliveries BEGIN
  INSERT INTO counters (name, value) VALUES ('deliveries ' || NEW.outcome, 1)
    ON CONFLICT (name) DO UPDATE SET value = counters.value + 1;
END;
