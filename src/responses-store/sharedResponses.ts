/**
 * Stored responses that all nodes read, continue and delete: sealed, under a name that only their owner's credential and
 * their id lead to.
 *
 * The items of a conversation lie in pieces of so many, which go by a name made of what they hold: a response that continues
 * another shares all pieces but the last with it.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { hash } from "node:crypto"
import type { ConfigStore } from "../config/ConfigStore.ts"
import type { Json } from "../domain/Conversation.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import type { Store } from "../store/Store.ts"
import { StoreUnavailable } from "../store/StoreError.ts"
import type { OpenResponse, ResponsesStoreShape, StoredResponse } from "./StoredResponse.ts"

/** A response that is still being made is kept for so many seconds at most. */
const longestMaking = 86_400

// Sealed by a node, so that it is JSON all through; there may be very much of it.
const Items = Schema.fromJsonString(Schema.Array(Schema.Unknown))
const decodeItems = Schema.decodeUnknownOption(Items)

const unavailable = (): GatewayError =>
  gatewayError("store_unavailable", "The gateway's shared store does not answer", { retryAfter: 1 })

/** Items of a piece. */
const perPiece = 16
/** Pieces that are read at once, and their names that are remembered as being there. */
const piecesAtOnce = 64
const mostRemembered = 10_000

/** Makes the stored responses of a node. `lost` hears of each copy that could not be written. */
export const makeSharedResponses = (
  store: Store["Service"],
  config: ConfigStore["Service"],
  lost: () => void
): ResponsesStoreShape => {
  const nameOf = (owner: string, id: string) =>
    `${store.nameOf(`response ${owner}\n${id}`)}${store.nameOf(`${id}\n${owner}`)}`
  const bodyPlace = (name: string) => `gw:{main}:resp:${name}`
  const piecePlace = (piece: string) => `gw:{main}:item:${piece}`
  /** Pieces that this node has stored or seen; they may be gone meanwhile, which the store says. */
  const remembered = new Set<string>()
  const remember = (piece: string) => {
    remembered.delete(piece)
    remembered.add(piece)
    if (remembered.size > mostRemembered) { for (const oldest of remembered) return void remembered.delete(oldest) }
  }
  const bounds = () => {
    const { limits: { stored_bytes, stored_responses } } = config.unsafeCurrent()
    return [String(stored_responses), String(stored_bytes)]
  }
  const lifetime = () => String(config.unsafeCurrent().responses.store_ttl_seconds)

  /** The reply is given all the same where its copy fails. */
  const written = (effect: Effect.Effect<unknown, unknown>) =>
    Effect.catch(Effect.asVoid(effect), () => Effect.sync(lost))

  /** The names of the pieces of the items, and what each holds. */
  const cut = Effect.fnUntraced(function*(owner: string, items: ReadonlyArray<Json>) {
    const pieces = new Map<string, string>()
    const order: Array<string> = []
    for (let from = 0; from < items.length; from += perPiece) {
      if (from > 0) yield* Effect.yieldNow
      const text = JSON.stringify(items.slice(from, from + perPiece))
      const digest = hash("sha256", text)
      const piece = `${store.nameOf(`item ${owner}\n${digest}`)}${store.nameOf(`${digest}\n${owner}`)}`
      pieces.set(piece, text)
      order.push(piece)
    }
    return { pieces, order }
  })

  const put = Effect.fnUntraced(function*(
    owner: string,
    { body, id, items }: StoredResponse,
    share: string,
    seconds: string
  ) {
    const name = nameOf(owner, id)
    const { order, pieces } = yield* cut(owner, items)
    const sealedBody = store.seal(bodyPlace(name), body)
    const write = (given: ReadonlyArray<string>) => {
      const sealed = given.flatMap((piece) => [piece, store.seal(piecePlace(piece), pieces.get(piece) ?? "[]")])
      const named = [store.nameOf(`share ${share}`), sealedBody, order.join(" "), seconds]
      return store.run("respond", "put", name, ...named, ...bounds(), ...sealed)
    }
    const names = Array.from(pieces.keys())
    let [said, ...missing] = yield* write(names.filter((piece) => !remembered.has(piece)))
    // What this node remembers may have expired, and again while it is told.
    for (let tries = 0; said === "missing" && tries < 3; tries++) {
      ;[said, ...missing] = yield* write([...missing, ...names.filter((piece) => !remembered.has(piece))])
    }
    if (said === "missing") return yield* new StoreUnavailable({ message: "The pieces of a conversation do not stay" })
    for (const piece of names) remember(piece)
  }, written)

  /** The items of a response's pieces; `undefined` where one is gone. */
  const read = Effect.fnUntraced(function*(pieces: ReadonlyArray<string>) {
    const items: Array<Json> = []
    for (let from = 0; from < pieces.length; from += piecesAtOnce) {
      const some = pieces.slice(from, from + piecesAtOnce)
      const reply = yield* store.send("MGET", ...some.map(piecePlace))
      const sealed: ReadonlyArray<unknown> = Array.isArray(reply) ? reply : []
      for (const [i, piece] of some.entries()) {
        if (i > 0) yield* Effect.yieldNow
        const text = sealed[i]
        const found = decodeItems(typeof text === "string" ? store.open(piecePlace(piece), text) : undefined)
        if (found._tag === "None") return undefined
        for (const item of found.value as ReadonlyArray<Json>) items.push(item)
      }
    }
    return items
  })

  return {
    get: (owner, id) =>
      Effect.gen(function*() {
        const name = nameOf(owner, id)
        const [sealedBody, pieces] = yield* Effect.all([
          store.send("GET", bodyPlace(name)),
          store.send("HGET", "gw:{main}:resp-items", name)
        ])
        if (typeof sealedBody !== "string" || typeof pieces !== "string") return undefined
        const body = store.open(bodyPlace(name), sealedBody)
        const items = yield* read(pieces.split(" ").filter((piece) => piece !== ""))
        return body === undefined || items === undefined ? undefined : { id, body, items }
      }).pipe(Effect.mapError(unavailable)),
    put: (owner, response, share = owner) => put(owner, response, share, lifetime()),
    openUnsafe(owner, response, share = owner) {
      let pending: Effect.Effect<void> | undefined = put(owner, response, share, String(longestMaking))
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
