/**
 * Longer than any test waits, in ms: what has so much time is ended by the test's own time-out, and by nothing before it. A
 * machine that is busy with other tests may be slow; that is no defect.
 */
export const beyondTests = 600_000;

/**
 * Defaults of clients in front of real servers: neither do these look silent, nor does a lock end, because the machine is busy.
 * Tests of timeouts and ttls set their own, or have a time of their own (`ownTime()`).
 */
export const patient = { timeout: beyondTests, ttl: beyondTests } as const;
