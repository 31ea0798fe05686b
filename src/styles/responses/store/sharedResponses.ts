/**
 * Stored responses that all nodes read, continue and delete. They are encrypted; their key derives from the owner's credential
 * and the response's id.
 *
 * A response is a list of pieces, which are named by their content: pieces of its body, and pieces of its conversation's items.
 * A response that continues another shares all of its item pieces but the last. Pieces are written and read by plain commands
 * of bounded size on a separate connection. The list is stored once all pieces exist; a piece without a list expires.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { hash } from "node:crypto"
import { pieceBytes, piecesOf } from "../../../cluster/store/encryption.ts"
import { Store } from "../../../cluster/store/Store.ts"
import { type StoreCommand, StoreUnavailable } from "../../../cluster/store/StoreShape.ts"
import { CurrentSharedCalls } from "../../../completion/SealedCalls.ts"
import { ConfigStore } from "../../../config/ConfigStore.ts"
import { type GatewayError, gatewayError } from "../../../domain/GatewayError.ts"
import type { Json } from "../../../domain/json.ts"
import type { Maker } from "../../../domain/makers.ts"
import { type OpenResponse, ResponsesStore, type ResponsesStoreShape, type StoredResponse } from "./ResponsesStore.ts"

/** Seconds until a response in progress expires. */
const longestMaking = 86_400
/** Seconds until a piece expires that belongs to no response. */
const longestWriting = 120

// A node wrote and encrypted it, so it needs no check; it may be very long.
const decodeItems = (text: string): ReadonlyArray<Json> => JSON.parse(text)

const unavailable = (): GatewayError =>
  gatewayError("store_unavailable", "The gateway's shared store does not answer", { retryAfter: 1 })

/**
 * The minimum of items in a piece, and its minimum share of the conversation before it (1/64): pieces stay few and the last
 * piece small.
 */
const itemsPerPiece = 16
const partPerPiece = 64
/** Pieces read or written by one command, and names of existing pieces that a node remembers. */
const piecesAtOnce = 8
const mostRemembered = 10_000
/** Attempts to read or write a response whose pieces expire meanwhile. */
const mostTries = 4
/** Calls that evict responses after one was stored; the next stored response continues the eviction. */
const mostCalls = 100

/** Splits items into pieces of lines, one item per line. A longer conversation starts with the pieces of a shorter one. */
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

const readHolder = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.NullOr(Schema.Tuple([Schema.String, Schema.String, Schema.optionalKey(Schema.String)]))
  )
)

/** A line with the account by which a server stores the response too, and the body. */
const withHolder = (body: string, heldBy: Maker | undefined): string => {
  if (heldBy === undefined) return `null\n${body}`
  const { account, organization, upstream } = heldBy
  return `${JSON.stringify([upstream, account, ...(organization === undefined ? [] : [organization])])}\n${body}`
}

/** The body and the holder of what `withHolder` has made. */
const splitHolder = (text: string): Pick<StoredResponse, "body" | "heldBy"> => {
  const end = text.indexOf("\n")
  const body = text.slice(end + 1)
  const found = Option.getOrNull(readHolder(text.slice(0, end)))
  if (found === null) return { body }
  const [upstream, account, organization] = found
  return { body, heldBy: { upstream, account, organization } }
}

/** An attempt to store. */
interface Attempt {
  /** True for a piece that need not be written. */
  readonly isThere: (piece: string) => boolean
  /** Pieces written in this attempt or an earlier one. */
  readonly sent: Set<string>
}

/** Makes a node's access to the shared responses. `lost` is called for each response that could not be written. */
export const makeSharedResponses = (
  store: Store["Service"],
  config: ConfigStore["Service"],
  lost: () => void
): ResponsesStoreShape => {
  const nameOf = (owner: string, id: string) =>
    `${store.secrets.nameOf(`response ${owner}\n${id}`)}${store.secrets.nameOf(`${id}\n${owner}`)}`
  const piecePlace = (piece: string) => `gw:{main}:item:${piece}`
  /** Pieces of another key have other names, because they may be unreadable soon. */
  const pieceName = (owner: string, text: string) => {
    const content = `${store.secrets.keyName} ${hash("sha256", text)}`
    return `${store.secrets.nameOf(`item ${owner}\n${content}`)}${store.secrets.nameOf(`${content}\n${owner}`)}`
  }
  /** Item pieces that this node has stored. The store reports those that have expired since. */
  const remembered = new Set<string>()
  const remember = (piece: string) => {
    remembered.delete(piece)
    remembered.add(piece)
    if (remembered.size > mostRemembered) { for (const oldest of remembered) return void remembered.delete(oldest) }
  }
  const bounds = () => {
    const { limits: { stored_bytes, stored_responses } } = config.now()
    return [String(stored_responses), String(stored_bytes)]
  }
  const lifetime = () => String(config.now().responses.store_ttl_seconds)

  /** A failed write does not fail the reply. */
  const written = (effect: Effect.Effect<unknown, unknown>) =>
    Effect.catch(Effect.asVoid(effect), () => Effect.sync(lost))

  /** Writes the missing pieces in batches and notes them in `sent`. Returns the names of all pieces in order. */
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
      // NX keeps an existing piece with its expiry: it may belong to a response.
      const sealed = store.secrets.seal(piecePlace(name), text)
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
   * Attempts to store a response until all pieces exist, then evicts others beyond the limits. When the response is not stored,
   * its pieces are removed.
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
        return yield* new StoreUnavailable({ message: "The pieces of a response expire before it is stored" })
      })
      const forget = Effect.suspend(() => Effect.ignore(store.run("respond", "forget", [...sent].join(" "))))
      return Effect.onExit(attempts, (exit) => Exit.isSuccess(exit) && exit.value ? Effect.void : forget)
    })

  const put = (owner: string, { body, heldBy, id, items }: StoredResponse, share: string, seconds: string) =>
    written(attempted(Effect.fnUntraced(function*(each) {
      const own = yield* write(owner, piecesOf(withHolder(body, heldBy)), each)
      const shared = yield* write(owner, piecesOfItems(items), each)
      const facts = [store.secrets.nameOf(`share ${share}`), String(own.length), [...own, ...shared].join(" "), seconds]
      const reply = yield* store.run("respond", "put", nameOf(owner, id), ...facts, ...bounds())
      if (reply[0] !== "missing") { for (const piece of shared) remember(piece) }
      return reply
    })))

  const settle = (owner: string, id: string, body: string) =>
    written(attempted(Effect.fnUntraced(function*(each) {
      const own = yield* write(owner, piecesOf(body), each)
      return yield* store.run("respond", "settle", nameOf(owner, id), own.join(" "), lifetime(), ...bounds())
    })))

  /** Passes the content of pieces to `take`, in order. Returns false when a piece has expired. */
  const read = Effect.fnUntraced(function*(pieces: ReadonlyArray<string>, take: (text: string) => void) {
    for (let from = 0; from < pieces.length; from += piecesAtOnce) {
      const some = pieces.slice(from, from + piecesAtOnce)
      const sealed = yield* store.bulk(some.map((piece): StoreCommand => ["GET", piecePlace(piece)]))
      for (const [i, piece] of some.entries()) {
        if (i > 0) yield* Effect.yieldNow
        const found = sealed[i]
        const text = typeof found === "string" ? store.secrets.open(piecePlace(piece), found) : undefined
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
      // A changed list has other pieces to read; the missing pieces of an unchanged list stay missing.
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
      if (isWhole) return { id, items, ...splitHolder(body) }
    }
    return undefined
  })

  return {
    get: (owner, id) => Effect.mapError(get(owner, id), unavailable),
    put: (owner, response, share = owner) => put(owner, response, share, lifetime()),
    openUnsafe(owner, response, share = owner) {
      let pending: Effect.Effect<void> | undefined = put(owner, response, share, String(longestMaking))
      const open: OpenResponse = {
        finalizeUnsafe(body, heldBy) {
          const settled = settle(owner, response.id, withHolder(body, heldBy))
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

/** The stored responses of all nodes of a shared store, with the configured limits over all nodes. */
export const layerSharedResponses: Layer.Layer<ResponsesStore, never, ConfigStore | Store> = Layer.effect(
  ResponsesStore,
  Effect.gen(function*() {
    const store = yield* Store
    return ResponsesStore.of(makeSharedResponses(store, yield* ConfigStore, store.membership.countLostWrite))
  })
)

/**
 * Keeps sealed fields of calls beside the stored responses of a shared store: encrypted like them, within the same limits and
 * lifetime, and as a part of their caller's share. The owner's name differs, so that no response has their id.
 */
export const layerSharedCalls: Layer.Layer<never, never, ResponsesStore> = Layer.effect(
  CurrentSharedCalls,
  Effect.map(ResponsesStore, (responses) => ({
    put: (owner, id, body) => responses.put(`calls ${owner}`, { id, body, items: [] }, owner),
    get: (owner, id) => Effect.map(responses.get(`calls ${owner}`, id), (found) => found?.body)
  }))
)
