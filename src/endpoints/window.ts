// How many commands may be on their way to one endpoint. More than it answers in time would be executed after their callers
// have given up, and then be rolled back: the faster they came, the less would be of use.
//
// Source: Van Jacobson and Michael Karels, "Congestion Avoidance and Control", 1988: TCP's congestion window (RFC 5681).
// A late answer narrows it, before one is lost: a command that was sent too early cannot be taken back.

/** The commands that may be in flight. */
export interface Window {
  readonly size: number;
  /** Below it the size grows up to fourfold with each window that is answered, above it by one command. */
  readonly threshold: number;
}

/** The window of an endpoint of which nothing is known. */
export const initialWindow: Window = { size: 100, threshold: Infinity };

/** The share of its timeout within which an answer is early: of twice as many commands, the answer would come in time. */
export const early = 0.4;

/** What a request has shown once it has ended. */
export interface Sent {
  readonly replies: number;
  /** The commands that were in flight with it, its own included. */
  readonly inFlight: number;
  /** How long it was on its way, as a share of its timeout. */
  readonly took: number;
}

/** The window after a request was answered. */
export function afterAnswer(window: Window, { replies, inFlight, took }: Sent): Window {
  const { size, threshold } = window;
  // Never less than the first: far endpoints are always late.
  if (took > early) return size > initialWindow.size ? halved(window, initialWindow.size) : window;
  // A window of which half is unused shows nothing.
  if (2 * inFlight < size) return window;
  // As much more as would be early, too.
  const more = size < threshold ? Math.min(3, early / took - 1) : 1 / size;
  return { size: size + replies * more, threshold };
}

/** The least window: where messages get lost, a few calls at once must not wait for each other. */
const least = 10;

/** The window after a request was not answered in time. */
export function afterTimeout(window: Window): Window {
  return halved(window, least);
}

function halved({ size }: Window, floor: number): Window {
  const half = Math.max(floor, size / 2);
  return { size: half, threshold: half };
}
