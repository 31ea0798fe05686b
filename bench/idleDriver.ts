/** An upstream that only supports logins, for benchmarks of pools, which lease accounts without calls. */
import * as Effect from "effect/Effect"
import type { Driver } from "../src/upstream/Upstream.ts"

const unused = Effect.die("not called")
export const idleDriver: Driver = {
  name: "embedded",
  capabilities: { login: true, sessions: true, anonymous: true, sampling: true },
  models: [],
  login: () => Effect.succeed("token"),
  verify: () => Effect.void,
  complete: () => unused,
  createSession: () => unused,
  listSessions: () => unused,
  deleteSession: () => unused,
  deleteAllSessions: () => unused
}
