/** Whether what is written to the store outlives its server. */
import * as Effect from "effect/Effect"
import type { StoreShape } from "./StoreShape.ts"

/**
 * True for a server that appends each write to a file. Snapshots now and then do not count: they miss what came last. False
 * while the store does not answer.
 */
export const keepsData = (store: Pick<StoreShape, "send">): Effect.Effect<boolean> =>
  store.send("INFO", "persistence").pipe(
    Effect.map((info) => /^aof_enabled:1\b/m.test(String(info))),
    Effect.orElseSucceed(() => false)
  )
