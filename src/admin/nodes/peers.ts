/**
 * Queries between nodes through the store, for data that each node keeps in its memory. Their forms are in `Query.ts`.
 *
 * A query is delivered at most once, and every wait for a reply has a timeout.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { randomBytes } from "node:crypto"
import { piecesOf } from "../../cluster/store/encryption.ts"
import type { StoreShape } from "../../cluster/store/Store.ts"
import type { StoreUnavailable } from "../../cluster/store/StoreShape.ts"
import { errorTable, type GatewayError, gatewayError } from "../../domain/GatewayError.ts"

/** Timeouts in milliseconds: of a query to all nodes and of a query to one node. */
const allTimeout = 1_000
const oneTimeout = 5_000

/** Lifetime of an unread reply, in milliseconds. */
const answerMillis = "10000"

/** Maximum length of a reply to a query to all nodes. */
export const longestReply = 8 * 1024 * 1024

/** The replies of other nodes. */
interface Answers {
  /** Replies by node id, without those of nodes that failed. */
  readonly answers: ReadonlyMap<string, string>
  /** Nodes without a reply in time. */
  readonly missing: ReadonlyArray<string>
}

/** Replies to queries of one kind; query and reply are texts. There is no reply to a query of another form. */
export type QueryHandler = (question: string) => Effect.Effect<string, GatewayError | Schema.SchemaError>

/** Sends queries to other nodes and replies to theirs. */
export interface Peers {
  /** Queries all other nodes. */
  readonly queryAll: (kind: string, question: string) => Effect.Effect<Answers>
  /** Queries one node. Fails with its error. `undefined` if there is no such node. */
  readonly queryOne: (node: string, kind: string, question: string) => Effect.Effect<string | undefined, GatewayError>
  /** Registers the handler for queries of a kind. */
  readonly answers: (kind: string, answerer: QueryHandler) => void
}

/** A single node has no peers. */
export const noPeers: Peers = {
  queryAll: () => Effect.succeed({ answers: new Map(), missing: [] }),
  queryOne: () => Effect.undefined,
  answers: () => undefined
}

const askPlace = (id: string) => `gw:{main}:ask:${id}`
const replyPlace = (id: string, node: string, piece: number) => `gw:{main}:reply:${id}:${node}:${piece}`

/** The kind of a query and its text; later versions may add to them. */
const QueryText = Schema.fromJsonString(
  Schema.TupleWithRest(Schema.Tuple([Schema.String, Schema.String]), [Schema.Unknown])
)
const readQuery = Schema.decodeUnknownEffect(QueryText)

const RefusalText = Schema.fromJsonString(
  Schema.Struct({ code: Schema.String, message: Schema.String, param: Schema.optionalKey(Schema.String) })
)
const readRefusal = Schema.decodeUnknownOption(RefusalText)

const refusedText = ({ code, message, param }: GatewayError): string => `-${JSON.stringify({ code, message, param })}`

/** The error of a node that does not answer. */
export const silentNode = (node: string): GatewayError =>
  gatewayError("store_unavailable", `The node ${node} does not answer`, { retryAfter: 1 })

/** The error of another node. */
const refusalOf = (node: string, text: string): GatewayError =>
  Option.match(readRefusal(text), {
    onNone: () => silentNode(node),
    onSome: ({ code, message, param }) => {
      const known = Object.keys(errorTable).find((each): each is keyof typeof errorTable => each === code)
      return gatewayError(known ?? "internal_error", message, { param })
    }
  })

interface Waiting {
  /** The number of chunks of each node's reply. */
  readonly answered: Map<string, number>
  expected: ReadonlySet<string> | undefined
  readonly done: Deferred.Deferred<void>
}

/** Makes the peers of a node; `fork` runs the handlers. */
export const makePeers = (
  store: Pick<StoreShape, "membership" | "run" | "bulk" | "listen" | "secrets">,
  fork: (effect: Effect.Effect<void>) => void
): Peers => {
  const answerers = new Map<string, QueryHandler>()
  const waiting = new Map<string, Waiting>()
  /** The other nodes at the last query. */
  let known: ReadonlyArray<string> = []

  const answer = (id: string, asker: string, sealed: string) =>
    Effect.gen(function*() {
      const [kind, question] = yield* readQuery(store.secrets.open(askPlace(id), sealed))
      const answerer = answerers.get(kind)
      if (answerer === undefined) return
      const text = yield* answerer(question).pipe(
        Effect.map((said) => `+${said}`),
        Effect.catchTag("GatewayError", (error) => Effect.succeed(refusedText(error)))
      )
      let pieces = 0
      for (const piece of piecesOf(text)) {
        const place = replyPlace(id, store.membership.node, pieces++)
        yield* store.bulk([["SET", place, store.secrets.seal(place, piece), "PX", answerMillis]])
      }
      yield* store.run("tell", asker, `answer ${id} ${store.membership.node} ${pieces}`)
    }).pipe(Effect.ignore)

  store.listen((event) => {
    if (event._tag === "ask") fork(answer(event.id, event.node, event.question))
    else if (event._tag === "answer") {
      const one = waiting.get(event.id)
      if (one === undefined) return
      one.answered.set(event.node, event.chunks)
      completeWhenAnswered(one)
    }
  })

  const completeWhenAnswered = ({ answered, done, expected }: Waiting) => {
    if (expected === undefined) return
    for (const node of expected) if (!answered.has(node)) return
    Deferred.doneUnsafe(done, Exit.void)
  }

  /** Reads a node's reply; empty if a chunk has expired. */
  const take = Effect.fnUntraced(function*(id: string, node: string, pieces: number) {
    let text = ""
    for (let i = 0; i < pieces; i++) {
      const place = replyPlace(id, node, i)
      const [sealed] = yield* store.bulk([["GETDEL", place]])
      const piece = typeof sealed === "string" ? store.secrets.open(place, sealed) : undefined
      if (piece === undefined) return ""
      text += piece
    }
    return text
  })

  /** Sends a query; returns the queried nodes and their replies. */
  const ask = Effect.fnUntraced(function*(
    to: string,
    kind: string,
    question: string,
    time: number
  ): Effect.fn.Return<{ readonly asked: ReadonlyArray<string>; readonly said: Map<string, string> }, StoreUnavailable> {
    const id = randomBytes(9).toString("base64url")
    const one: Waiting = { answered: new Map(), expected: undefined, done: Deferred.makeUnsafe() }
    waiting.set(id, one)
    return yield* Effect.gen(function*() {
      const sealed = store.secrets.seal(askPlace(id), JSON.stringify([kind, question]))
      const asked = yield* store.run("tell", to, `ask ${id} ${store.membership.node} ${sealed}`)
      one.expected = new Set(asked)
      completeWhenAnswered(one)
      yield* Effect.timeoutOption(Deferred.await(one.done), time)
      const said = new Map<string, string>()
      for (const [node, pieces] of one.answered) {
        const text = yield* take(id, node, pieces)
        if (text !== "") said.set(node, text)
      }
      return { asked, said }
    }).pipe(Effect.ensuring(Effect.sync(() => waiting.delete(id))))
  })

  return {
    queryAll: (kind, question) =>
      Effect.matchEffect(ask("", kind, question, allTimeout), {
        // No node can be queried while the store is lost.
        onFailure: () => Effect.succeed({ answers: new Map(), missing: known }),
        onSuccess: ({ asked, said }) =>
          Effect.sync(() => {
            known = asked
            const answers = new Map<string, string>()
            for (const [node, text] of said) if (text.startsWith("+")) answers.set(node, text.slice(1))
            return { answers, missing: asked.filter((node) => !said.has(node)).sort() }
          })
      }),
    queryOne: (node, kind, question) =>
      Effect.matchEffect(ask(node, kind, question, oneTimeout), {
        onFailure: () =>
          Effect.fail(
            gatewayError("store_unavailable", "The gateway's shared store does not answer", { retryAfter: 1 })
          ),
        onSuccess: ({ asked, said }) => {
          if (asked.length === 0) return Effect.undefined
          const text = said.get(node)
          if (text === undefined) return Effect.fail(silentNode(node))
          return text.startsWith("+") ? Effect.succeed(text.slice(1)) : Effect.fail(refusalOf(node, text.slice(1)))
        }
      }),
    answers: (kind, answerer) => {
      answerers.set(kind, answerer)
    }
  }
}
