/**
 * Secrets that all nodes of a store have in common: the first node stores each, encrypted.
 */
import * as Effect from "effect/Effect"
import { createHmac } from "node:crypto"
import type { StoreClient } from "./client.ts"
import type { Encryption } from "./encryption.ts"
import type { StoreUnavailable } from "./StoreShape.ts"

const place = "gw:{main}:secrets"

/** Agrees on a secret: the stored one, else the given one. `undefined` if it cannot be decrypted. */
export const agreeOn = Effect.fnUntraced(function*(
  client: Pick<StoreClient, "send">,
  seals: Encryption,
  field: string,
  ours: string
): Effect.fn.Return<string | undefined, StoreUnavailable> {
  const name = `${place}:${field}`
  yield* client.send("HSETNX", place, field, seals.seal(name, ours))
  const sealed = String(yield* client.send("HGET", place, field))
  const opened = seals.open(name, sealed)
  if (opened !== undefined && seals.isOld(name, sealed)) {
    yield* client.send("HSET", place, field, seals.seal(name, opened))
  }
  return opened
})

/** The secret of the names in the store. */
export class NameSecret {
  readonly #agree: (ours: string) => Effect.Effect<string | undefined, StoreUnavailable>
  #secret = ""

  constructor(agree: (ours: string) => Effect.Effect<string | undefined, StoreUnavailable>) {
    this.#agree = agree
  }

  /** Agrees with the other nodes, from a secret of this node or the one in use. Returns `changed`, `same` or `unreadable`. */
  agree(ours = this.#secret): Effect.Effect<"changed" | "same" | "unreadable", StoreUnavailable> {
    return Effect.map(this.#agree(ours), (agreed) => {
      if (agreed === undefined) return "unreadable"
      const changed = agreed !== this.#secret
      this.#secret = agreed
      return changed ? "changed" : "same"
    })
  }

  /** A pseudonym (16 hex digits) for a text. */
  nameOf(text: string): string {
    return createHmac("sha256", this.#secret).update(text).digest("hex").slice(0, 16)
  }
}
