const schemaOf = (keys: string, marks: (mark: "fence" | "version") => string): string =>
  [keys, marks("fence"), marks("version")].join("\n\n").concat("\n");

/**
 * The tables in D1, libSQL and other SQLite: a row for each delivery, and each entity's highest fence and version. `at`
 * is in ms since 1970. Every statement can be repeated.
 */
export const d1Schema: string = schemaOf(
  `CREATE TABLE IF NOT EXISTS redlock_inbox (
  key TEXT NOT NULL PRIMARY KEY,
  at INTEGER NOT NULL DEFAULT (unixepoch() * 1000)
) STRICT;`,
  (mark) => `CREATE TABLE IF NOT EXISTS redlock_${mark}s (
  entity TEXT NOT NULL PRIMARY KEY,
  ${mark} INTEGER NOT NULL,
  at INTEGER NOT NULL DEFAULT (unixepoch() * 1000)
) STRICT;

CREATE INDEX IF NOT EXISTS redlock_${mark}s_at ON redlock_${mark}s (at);`,
);

/** {@link d1Schema} for Postgres. */
export const postgresSchema: string = schemaOf(
  `CREATE TABLE IF NOT EXISTS redlock_inbox (
  key text PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX IF NOT EXISTS redlock_inbox_at ON redlock_inbox (at);`,
  (mark) => `CREATE TABLE IF NOT EXISTS redlock_${mark}s (
  entity text PRIMARY KEY,
  ${mark} bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX IF NOT EXISTS redlock_${mark}s_at ON redlock_${mark}s (at);`,
);

// Bytes, because a collation would make keys equal that differ in case or in spaces at the end. 800 characters have at
// most 2 400, and InnoDB's index takes 3 072. `attempt` is the call that has inserted the row, because answers to an
// insertion that changes nothing differ.
/** {@link d1Schema} for MySQL 8 and MariaDB. `at` is UTC. */
export const mysqlSchema: string = schemaOf(
  `CREATE TABLE IF NOT EXISTS redlock_inbox (
  \`key\` VARBINARY(2400) NOT NULL PRIMARY KEY,
  attempt CHAR(33) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  INDEX redlock_inbox_at (at)
) ENGINE = InnoDB;`,
  (mark) => `CREATE TABLE IF NOT EXISTS redlock_${mark}s (
  entity VARBINARY(2400) NOT NULL PRIMARY KEY,
  ${mark} BIGINT NOT NULL,
  at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  INDEX redlock_${mark}s_at (at)
) ENGINE = InnoDB;`,
);
