// A cron job on Vercel: each day's report is made once, even if Vercel delivers the same tick twice.

import { endpointsFromEnv, Redlock } from "redlock-edge";
import { Idempotency, InProgressError } from "redlock-edge/idempotency";

const maxDuration = 300; // seconds; the same number is in vercel.json
const idempotency = new Idempotency(new Redlock({ endpoints: endpointsFromEnv(process.env) }), {
  retention: 2 * 86_400_000, // ms; longer than any tick can be late
  lease: 60_000, // ms; after a crash the day is free again. The lease is renewed while the job runs
});
const reports = process.env.REPORTS_URL ?? "https://reports.example";

export async function GET(request: Request): Promise<Response> {
  // Vercel sends the secret. Without it, anybody who knows the URL could start the job.
  const secret = process.env.CRON_SECRET;
  if (!secret || request.headers.get("authorization") !== `Bearer ${secret}`) {
    return new Response(null, { status: 401 });
  }
  const day = new Date().toISOString().slice(0, 10);
  const deadline = Date.now() + maxDuration * 1_000 - 1_500; // early enough to free the key
  try {
    const { status } = await idempotency.run(`report:${day}`, { deadline }, ({ signal }) =>
      make(day, signal),
    );
    return Response.json({ day, status });
  } catch (error) {
    if (error instanceof InProgressError) return Response.json({ day, status: "in progress" });
    throw error; // 500: the key is free, and "Run" in Vercel's dashboard starts the job again
  }
}

async function make(day: string, signal: AbortSignal): Promise<void> {
  const made = await fetch(`${reports}/${day}`, { method: "PUT", signal });
  await made.body?.cancel();
  if (!made.ok) throw new Error(`the reports answered ${made.status}`);
}
