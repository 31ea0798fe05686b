/**
 * The history of admin changes in the store that nodes share: an encrypted list in the order of time, which every node adds to.
 */
import * as Effect from "effect/Effect"
import type { Encryption } from "../cluster/store/encryption.ts"
import type { StoreShape, StoreUnavailable } from "../cluster/store/StoreShape.ts"
import { type ChangePlace, mostChanges } from "./changes.ts"

const place = "gw:{main}:changes"

/** Makes the place of a store. */
export const changesInRedis = (
  store: Pick<StoreShape, "send"> & { readonly secrets: Pick<Encryption, "seal" | "open"> }
): ChangePlace<StoreUnavailable> => ({
  seal: (text) => store.secrets.seal(place, text),
  open: (text) => store.secrets.open(place, text),
  // A repeated write adds the same members again, which changes nothing.
  write: Effect.fnUntraced(function*(changes) {
    const members = changes.flatMap(({ position, text }) => [String(position), `${position} ${text}`])
    yield* store.send("ZADD", place, ...members)
    yield* store.send("ZREMRANGEBYRANK", place, "0", String(-mostChanges - 1))
  }),
  removeBefore: (oldest) => Effect.map(store.send("ZREMRANGEBYSCORE", place, "-inf", `(${oldest}`), Number),
  read: (before, oldest, limit) =>
    Effect.map(
      store.send("ZREVRANGEBYSCORE", place, `(${before}`, String(oldest), "LIMIT", "0", String(limit)),
      (reply) =>
        (Array.isArray(reply) ? reply.map(String) : []).map((member) => {
          const blank = member.indexOf(" ")
          return { position: Number(member.slice(0, blank)), text: member.slice(blank + 1) }
        })
    )
})
