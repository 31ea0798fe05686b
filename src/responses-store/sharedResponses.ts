/**
 * Stored responses that all nodes read, continue and delete: sealed, under a name that only their owner's credential and
 * their id lead to.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { ConfigStore } from "../config/ConfigStore.ts"
import type { Json } from "../domain/Conversation.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import type { Store } from "../store/Store.ts"
import type { OpenResponse, ResponsesStoreShape, StoredResponse } from "./StoredResponse.ts"

/** A response that is still being made is kept for so many seconds at most. */
const longestMaking = 86_400

// Sealed by a node, so that it is JSON all through; there may be very much of it.
const Items = Schema.fromJsonString(Schema.Array(Schema.Unknown))
const decodeItems = Schema.decodeUnknownOption(Items)

const unavailable = (): GatewayError =>
  gatewayError("store_unavailable", "The gateway's shared store does not answer", { retryAfter: 1 })

/** Makes the stored responses of a node. `lost` hears of each copy that could not be written. */
export const makeSharedResponses = (
  store: Store["Service"],
  config: ConfigStore["Service"],
  lost: () => void
): ResponsesStoreShape => {
  const nameOf = (owner: string, id: string) =>
    `${store.nameOf(`response ${owner}\n${id}`)}${store.nameOf(`${id}\n${owner}`)}`
  const bodyPlace = (name: string) => `gw:{main}:resp:${name}`
  const itemsPlace = (name: string) => `gw:{main}:items:${name}`
  const bounds = () => {
    const { limits: { stored_bytes, stored_responses } } = config.unsafeCurrent()
    return [String(stored_responses), String(stored_bytes)]
  }
  const lifetime = () => String(config.unsafeCurrent().responses.store_ttl_seconds)

  /** The reply is given all the same where its copy fails. */
  const written = (effect: Effect.Effect<unknown, unknown>) =>
    Effect.catch(Effect.asVoid(effect), () => Effect.sync(lost))

  const put = (owner: string, { body, id, items }: StoredResponse, seconds: string) =>
    Effect.suspend(() => {
      const name = nameOf(owner, id)
      const sealed = [
        store.seal(bodyPlace(name), body),
        store.seal(itemsPlace(name), JSON.stringify(items))
      ]
      return written(store.run("respond", "put", name, ...sealed, seconds, ...bounds()))
    })

  return {
    get: (owner, id) =>
      Effect.gen(function*() {
        const name = nameOf(owner, id)
        const reply = yield* Effect.mapError(store.send("MGET", bodyPlace(name), itemsPlace(name)), unavailable)
        const [sealedBody, sealedItems] = Array.isArray(reply) ? reply : []
        if (typeof sealedBody !== "string" || typeof sealedItems !== "string") return undefined
        const body = store.open(bodyPlace(name), sealedBody)
        const items = decodeItems(store.open(itemsPlace(name), sealedItems))
        return body === undefined || items._tag === "None"
          ? undefined
          : { id, body, items: items.value as ReadonlyArray<Json> }
      }),
    put: (owner, response) => put(owner, response, lifetime()),
    openUnsafe(owner, response) {
      let pending: Effect.Effect<void> | undefined = put(owner, response, String(longestMaking))
      const open: OpenResponse = {
        settleUnsafe(body) {
          const name = nameOf(owner, response.id)
          const settle = Effect.suspend(() =>
            written(store.run("respond", "settle", name, store.seal(bodyPlace(name), body), lifetime(), ...bounds()))
          )
          pending = pending === undefined ? settle : Effect.andThen(pending, settle)
        },
        written() {
          const now = pending
          pending = undefined
          return now
        }
      }
      return open
    },
    remove: (owner, id) =>
      Effect.mapBoth(store.run("respond", "remove", nameOf(owner, id)), {
        onSuccess: ([removed]) => removed === "1",
        onFailure: unavailable
      }),
    held: Effect.map(
      Effect.orElseSucceed(store.run("respond", "held"), (): ReadonlyArray<string> => []),
      ([count, bytes]) => ({ count: Number(count ?? 0), bytes: Number(bytes ?? 0) })
    )
  }
}
