/**
 * Stored responses that all nodes read, continue and delete: sealed, under a name that only their owner's credential and
 * their id lead to.
 *
 * A response is a list of pieces, which go by a name made of what they hold: its body, and the items of its conversation, of
 * which a response that continues another shares all pieces but the last. Pieces are written and read by plain commands of
 * bounded size on a connection of their own. The list makes them a response, once all of them are there; a piece that
 * becomes part of none expires.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { hash } from "node:crypto"
import type { StoreCommand } from "../../../cluster/store/client.ts"
import { pieceBytes, piecesOf } from "../../../cluster/store/pieces.ts"
import type { Store } from "../../../cluster/store/Store.ts"
import { StoreUnavailable } from "../../../cluster/store/StoreError.ts"
import type { ConfigStore } from "../../../config/ConfigStore.ts"
import type { Json } from "../../../domain/Conversation.ts"
import { type GatewayError, gatewayError } from "../../../domain/GatewayError.ts"
import type { OpenResponse, ResponsesStoreShape, StoredResponse } from "./StoredResponse.ts"

/** A response that is still being made is kept for so many seconds at most. */
const longestMaking = 86_400
/** So is a piece that belongs to no response yet. */
const longestWriting = 120

// Sealed by a node, so that it is JSON all through; there may be very much of it.
const decodeItems = (text: string): ReadonlyArray<Json> => JSON.parse(text)

const unavailable = (): GatewayError =>
  gatewayError("store_unavailable", "The gateway's shared store does not answer", { retryAfter: 1 })

/** Items of a piece at least, and the part of the conversation before it, so that pieces stay few and the last one small. */
const itemsPerPiece = 16
const partPerPiece = 64
/** Pieces that are read or written at once, and their names that are remembered as being there. */
const piecesAtOnce = 8
const mostRemembered = 10_000
/** Times that a response is read or written again because its pieces have gone meanwhile. */
const mostTries = 4
/** Calls that make room after a response was stored; the next response that is stored goes on with it. */
const mostCalls = 100

/** The items in pieces of whole lines, an item each; those of a longer conversation begin like those of a shorter one. */
function* piecesOfItems(items: ReadonlyArray<Json>): Generator<string, void> {
  let [piece, count, bytes, before] = ["", 0, 0, 0]
  for (const item of items) {
    const line = `${JSON.stringify(item)}\n`
    const size = Buffer.byteLength(line)
    const isFull = count >= itemsPerPiece && bytes >= before / partPerPiece
    if (count > 0 && (isFull || bytes + size > pieceBytes)) {
      yield* piecesOf(piece)
      before += bytes
      piece = ""
      count = bytes = 0
    }
    piece += line
    count++
    bytes += size
  }
  yield* piecesOf(piece)
}

/** An attempt to store. */
interface Attempt {
  /** Whether a piece need not be written. */
  readonly isThere: (piece: string) => boolean
  /** Pieces that were written, in this attempt or an earlier one. */
  readonly sent: Set<string>
}

/** Makes the stored responses of a node. `lost` hears of each copy that could not be written. */
export const makeSharedResponses = (
  store: Store["Service"],
  config: ConfigStore["Service"],
  lost: () => void
): ResponsesStoreShape => {
  const nameOf = (owner: string, id: string) =>
    `${store.nameOf(`response ${owner}\n${id}`)}${store.nameOf(`${id}\n${owner}`)}`
  const piecePlace = (piece: string) => `gw:{main}:item:${piece}`
  const pieceName = (owner: string, text: string) => {
    const digest = hash("sha256", text)
    return `${store.nameOf(`item ${owner}\n${digest}`)}${store.nameOf(`${digest}\n${owner}`)}`
  }
  /** Pieces of items that this node has stored; they may be gone meanwhile, which the store says. */
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

  /** Writes the pieces that are not there, a few at a time, and notes them; the names of all, in order. */
  const write = Effect.fnUntraced(function*(owner: string, pieces: Iterable<string>, { isThere, sent }: Attempt) {
    const names: Array<string> = []
    let commands: Array<StoreCommand> = []
    let length = 0
    for (const text of pieces) {
      const name = pieceName(owner, text)
      names.push(name)
      if (isThere(name) || sent.has(name)) {
        yield* Effect.yieldNow
        continue
      }
      sent.add(name)
      // One that is there already may belong to a response, and is kept as long as that.
      const sealed = store.seal(piecePlace(name), text)
      commands.push(["SET", piecePlace(name), sealed, "NX", "EX", String(longestWriting)])
      length += sealed.length
      if (length < pieceBytes && commands.length < piecesAtOnce) continue
      yield* store.bulk(commands)
      commands = []
      length = 0
    }
    if (commands.length > 0) yield* store.bulk(commands)
    return names
  })

  /**
   * Attempts to store until no piece is gone, then makes room for what was stored. What is not stored in the end, because it
   * failed, was given up or has no place any more, leaves no pieces.
   */
  const attempted = (attempt: (each: Attempt) => Effect.Effect<ReadonlyArray<string>, StoreUnavailable>) =>
    Effect.suspend(() => {
      const sent = new Set<string>()
      const attempts = Effect.gen(function*() {
        let isThere = (piece: string) => remembered.has(piece)
        for (let tries = 0; tries < mostTries; tries++) {
          const [said, ...missing] = yield* attempt({ isThere, sent })
          if (said === "0") return false
          if (said === "missing") {
            const gone = new Set(missing)
            isThere = (piece) => !gone.has(piece)
            for (const piece of missing) sent.delete(piece)
            continue
          }
          let more = said === "more"
          for (let calls = 0; more && calls < mostCalls; calls++) {
            more = (yield* store.run("respond", "bound", ...bounds()))[0] === "more"
          }
          return true
        }
        return yield* new StoreUnavailable({ message: "The pieces of a response do not stay" })
      })
      const forget = Effect.suspend(() => Effect.ignore(store.run("respond", "forget", [...sent].join(" "))))
      return Effect.onExit(attempts, (exit) => Exit.isSuccess(exit) && exit.value ? Effect.void : forget)
    })

  const put = (owner: string, { body, id, items }: StoredResponse, share: string, seconds: string) =>
    written(attempted(Effect.fnUntraced(function*(each) {
      const own = yield* write(owner, piecesOf(body), each)
      const shared = yield* write(owner, piecesOfItems(items), each)
      const facts = [store.nameOf(`share ${share}`), String(own.length), [...own, ...shared].join(" "), seconds]
      const reply = yield* store.run("respond", "put", nameOf(owner, id), ...facts, ...bounds())
      if (reply[0] !== "missing") { for (const piece of shared) remember(piece) }
      return reply
    })))

  const settle = (owner: string, id: string, body: string) =>
    written(attempted(Effect.fnUntraced(function*(each) {
      const own = yield* write(owner, piecesOf(body), each)
      return yield* store.run("respond", "settle", nameOf(owner, id), own.join(" "), lifetime(), ...bounds())
    })))

  /** Hands on what pieces hold, in order; false where one is gone. */
  const read = Effect.fnUntraced(function*(pieces: ReadonlyArray<string>, take: (text: string) => void) {
    for (let from = 0; from < pieces.length; from += piecesAtOnce) {
      const some = pieces.slice(from, from + piecesAtOnce)
      const sealed = yield* store.bulk(some.map((piece): StoreCommand => ["GET", piecePlace(piece)]))
      for (const [i, piece] of some.entries()) {
        if (i > 0) yield* Effect.yieldNow
        const found = sealed[i]
        const text = typeof found === "string" ? store.open(piecePlace(piece), found) : undefined
        if (text === undefined) return false
        take(text)
      }
    }
    return true
  })

  const get = Effect.fnUntraced(function*(owner: string, id: string) {
    let known: string | undefined
    for (let tries = 0; tries < mostTries; tries++) {
      const [count, list] = yield* store.run("respond", "get", nameOf(owner, id))
      // The pieces of a list that has changed are gone because of that.
      if (list === undefined || list === known) return undefined
      known = list
      const pieces = list.split(" ").filter((piece) => piece !== "")
      let body = ""
      let line = ""
      const items: Array<Json> = []
      const isWhole = (yield* read(pieces.slice(0, Number(count)), (text) => {
        body += text
      })) && (yield* read(pieces.slice(Number(count)), (text) => {
        const end = text.lastIndexOf("\n")
        if (end >= 0) {
          const lines = decodeItems(`[${`${line}${text.slice(0, end)}`.replaceAll("\n", ",")}]`)
          for (const item of lines) items.push(item)
          line = ""
        }
        line += text.slice(end + 1)
      }))
      if (isWhole) return { id, body, items }
    }
    return undefined
  })

  return {
    get: (owner, id) => Effect.mapError(get(owner, id), unavailable),
    put: (owner, response, share = owner) => put(owner, response, share, lifetime()),
    openUnsafe(owner, response, share = owner) {
      let pending: Effect.Effect<void> | undefined = put(owner, response, share, String(longestMaking))
      const open: OpenResponse = {
        settleUnsafe(body) {
          const settled = settle(owner, response.id, body)
          pending = pending === undefined ? settled : Effect.andThen(pending, settled)
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
