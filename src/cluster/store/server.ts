/**
 * What the store's server must be: recent enough, of the kind that its address says, and one that evicts no keys.
 */
import * as Effect from "effect/Effect"
import type { StoreAddress } from "./address.ts"
import type { About } from "./Availability.ts"
import type { StoreClient } from "./client.ts"
import { textOf, unusable } from "./connection.ts"
import { StoreInvalid, type StoreUnavailable } from "./StoreShape.ts"

/** Interval between checks of the server's eviction policy, in milliseconds. */
const evictionMillis = 30_000

/** A field of a reply to `INFO`. */
const infoField = (info: string, field: string): string =>
  new RegExp(`^${field}:(.*)$`, "m").exec(info)?.[1]?.trim() ?? ""

/** Describes an eviction policy that may remove keys; `undefined` for a safe one. */
const evictionOf = (info: string): string | undefined => {
  const policy = infoField(info, "maxmemory_policy")
  return Number(infoField(info, "maxmemory")) > 0 && policy !== "" && policy !== "noeviction"
    ? `may evict keys (maxmemory-policy ${policy}): use noeviction`
    : undefined
}

/** Fails for a server that is too old, may evict keys, or has another kind of address. Returns its version. */
export const checkServer = Effect.fnUntraced(function*(
  client: StoreClient,
  address: StoreAddress
): Effect.fn.Return<string, StoreInvalid> {
  const info = yield* client.connection().redis.send<unknown>("INFO").pipe(
    Effect.map(String),
    Effect.mapError(unusable(address))
  )
  const version = infoField(info, "redis_version")
  if (!(Number.parseInt(version, 10) >= 7)) {
    return yield* new StoreInvalid({
      message: `the server of GATEWAY_STORE_URL has version ${version || "unknown"}; 7.0 or later is required`
    })
  }
  const eviction = evictionOf(info)
  if (eviction !== undefined) {
    return yield* new StoreInvalid({ message: `the server of GATEWAY_STORE_URL ${eviction}` })
  }
  if (!("guides" in address)) {
    if (infoField(info, "redis_mode") === "sentinel") {
      return yield* new StoreInvalid({
        message: "the server of GATEWAY_STORE_URL is a sentinel: use redis+sentinel://host:port/NAME"
      })
    }
    const found = yield* Effect.result(client.connection().redis.send<unknown>("EXISTS", "gw:{main}:epoch"))
    if (found._tag === "Failure" && textOf(found.failure).startsWith("MOVED")) {
      return yield* new StoreInvalid({
        message: "the server of GATEWAY_STORE_URL is a node of a cluster: use redis+cluster://host:port"
      })
    }
  }
  return infoField(info, "valkey_version") || version
})

/** Watches the server's eviction policy, which may change at run time. `now` is in milliseconds. */
export class EvictionWatch {
  readonly #client: Pick<StoreClient, "send">
  readonly #now: () => number
  readonly #about: About
  #seenAt: number
  #fault: string | undefined

  constructor(client: Pick<StoreClient, "send">, now: () => number, about: About) {
    this.#client = client
    this.#now = now
    this.#about = about
    this.#seenAt = now()
  }

  /** Why the server may lose keys; `undefined` for a safe policy. */
  get fault(): string | undefined {
    return this.#fault
  }

  /** Asks for the policy, at most once in `evictionMillis`, and logs a change. */
  readonly check: Effect.Effect<void, StoreUnavailable> = Effect.suspend(() => {
    if (this.#now() - this.#seenAt < evictionMillis) return Effect.void
    return Effect.flatMap(this.#client.send("INFO", "memory"), (info) => {
      const fault = evictionOf(String(info))
      this.#seenAt = this.#now()
      if (fault === this.#fault) return Effect.void
      this.#fault = fault
      return this.#about(
        fault === undefined
          ? Effect.logInfo("The store no longer evicts keys")
          : Effect.logWarning(`The store ${fault}`)
      )
    })
  })
}
