/** An upstream that only supports logins, for benchmarks of pools, which lease accounts without calls. */
import * as Effect from "effect/Effect"
import { type Driver, sendsNothing } from "../src/upstream/Upstream.ts"

const unused = Effect.die("not called")
export const idleDriver: Driver = {
  name: "embedded",
  contract: undefined,
  isAnonymous: true,
  sends: sendsNothing,
  models: [],
  secrets: [],
  verify: () => Effect.void,
  complete: () => unused,
  capabilities: {
    login: () => Effect.succeed("token"),
    sessions: { create: () => unused, list: () => unused, delete: () => unused, deleteAll: () => unused }
  }
}
