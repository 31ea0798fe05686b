/** An upstream that only supports logins, for benchmarks of pools, which lease accounts without calls. */
import * as Effect from "effect/Effect"
import type { Driver } from "../src/upstream/Upstream.ts"

const unused = Effect.die("not called")
export const idleDriver: Driver = {
  name: "embedded",
  isAnonymous: true,
  sends: {},
  models: [],
  login: () => Effect.succeed("token"),
  verify: () => Effect.void,
  complete: () => unused,
  sessions: { create: () => unused, list: () => unused, delete: () => unused, deleteAll: () => unused }
}
