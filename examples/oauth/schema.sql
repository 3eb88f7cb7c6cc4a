CREATE TABLE tokens (
  account TEXT PRIMARY KEY,
  access_token TEXT NOT NULL,
  refresh_token TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  fence INTEGER NOT NULL DEFAULT 0
);
