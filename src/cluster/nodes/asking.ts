/**
 * Questions that nodes ask one another through the store, for what each of them keeps to itself.
 *
 * The one thing to know: a question is heard once or not at all, and nobody waits for a node that does not answer.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { randomBytes } from "node:crypto"
import { errorTable, type GatewayError, gatewayError } from "../../domain/GatewayError.ts"
import { piecesOf } from "../store/pieces.ts"
import type { StoreShape } from "../store/Store.ts"
import type { StoreUnavailable } from "../store/StoreError.ts"

/** Time for an answer, in milliseconds; what is asked of one node alone may take longer. */
const patience = 1_000
const patienceForOne = 5_000

/** An answer that is not taken is kept for so many milliseconds. */
const answerMillis = "10000"

/** Characters of an answer to a question that goes to all. */
export const mostAnswered = 8 * 1024 * 1024

/** What other nodes said. */
export interface Answers {
  /** By node id; what nodes know that refused is left out. */
  readonly answers: ReadonlyMap<string, string>
  /** Nodes that did not answer in time. */
  readonly missing: ReadonlyArray<string>
}

/** Answers a question of one kind; both are texts. */
export type Answerer = (question: string) => Effect.Effect<string, GatewayError>

/** Asks other nodes, and answers them. */
export interface Peers {
  /** Asks all others. */
  readonly askAll: (kind: string, question: string) => Effect.Effect<Answers>
  /** Asks one node: its answer, or the error with which it refuses. `undefined`: there is no such node. */
  readonly askOne: (node: string, kind: string, question: string) => Effect.Effect<string | undefined, GatewayError>
  /** Says how this node answers questions of a kind. */
  readonly answers: (kind: string, answerer: Answerer) => void
}

/** A process alone has nobody to ask. */
export const noPeers: Peers = {
  askAll: () => Effect.succeed({ answers: new Map(), missing: [] }),
  askOne: () => Effect.undefined,
  answers: () => undefined
}

const askPlace = (id: string) => `gw:{main}:ask:${id}`
const replyPlace = (id: string, node: string, piece: number) => `gw:{main}:reply:${id}:${node}:${piece}`

const refusedText = ({ code, message, param }: GatewayError): string => `-${JSON.stringify({ code, message, param })}`

/** The error that another node refused with. */
const readRefusal = (text: string): GatewayError => {
  const { code, message, param } = JSON.parse(text) as { code: string; message: string; param?: string }
  const known = Object.keys(errorTable).find((each): each is keyof typeof errorTable => each === code)
  return gatewayError(known ?? "internal_error", message, { param })
}

interface Waiting {
  /** The pieces of each node's answer. */
  readonly answered: Map<string, number>
  expected: ReadonlySet<string> | undefined
  readonly done: Deferred.Deferred<void>
}

/** Makes the questions of a node; `fork` runs what answers others. */
export const makePeers = (
  store: Pick<StoreShape, "node" | "run" | "bulk" | "listen" | "seal" | "open">,
  fork: (effect: Effect.Effect<void>) => void
): Peers => {
  const answerers = new Map<string, Answerer>()
  const waiting = new Map<string, Waiting>()
  /** Who was there when somebody was asked last. */
  let known: ReadonlyArray<string> = []

  const answer = (id: string, asker: string, sealed: string) =>
    Effect.gen(function*() {
      const [kind = "", question = ""] = JSON.parse(store.open(askPlace(id), sealed) ?? "[]") as ReadonlyArray<
        string
      >
      const answerer = answerers.get(kind)
      if (answerer === undefined) return
      const text = yield* Effect.match(answerer(question), { onFailure: refusedText, onSuccess: (said) => `+${said}` })
      let pieces = 0
      for (const piece of piecesOf(text)) {
        const place = replyPlace(id, store.node, pieces++)
        yield* store.bulk([["SET", place, store.seal(place, piece), "PX", answerMillis]])
      }
      yield* store.run("ask", "answer", id, asker, String(pieces))
    }).pipe(Effect.ignore)

  store.listen((kind, rest) => {
    if (kind === "ask") {
      const [id = "", asker = "", sealed = ""] = rest.split(" ")
      fork(answer(id, asker, sealed))
    } else if (kind === "answer") {
      const [id = "", node = "", pieces = "0"] = rest.split(" ")
      const one = waiting.get(id)
      if (one === undefined) return
      one.answered.set(node, Number(pieces))
      settle(one)
    }
  })

  const settle = ({ answered, done, expected }: Waiting) => {
    if (expected === undefined) return
    for (const node of expected) if (!answered.has(node)) return
    Deferred.doneUnsafe(done, Exit.void)
  }

  /** A node's answer; empty where a piece of it is gone. */
  const take = Effect.fnUntraced(function*(id: string, node: string, pieces: number) {
    let text = ""
    for (let i = 0; i < pieces; i++) {
      const place = replyPlace(id, node, i)
      const [sealed] = yield* store.bulk([["GETDEL", place]])
      const piece = typeof sealed === "string" ? store.open(place, sealed) : undefined
      if (piece === undefined) return ""
      text += piece
    }
    return text
  })

  /** Who was asked, and what those said who answered. */
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
      const sealed = store.seal(askPlace(id), JSON.stringify([kind, question]))
      const asked = yield* store.run("ask", "ask", id, to, sealed)
      one.expected = new Set(asked)
      settle(one)
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
    askAll: (kind, question) =>
      Effect.matchEffect(ask("", kind, question, patience), {
        // While the store is lost nobody can be asked.
        onFailure: () => Effect.succeed({ answers: new Map(), missing: known }),
        onSuccess: ({ asked, said }) =>
          Effect.sync(() => {
            known = asked
            const answers = new Map<string, string>()
            for (const [node, text] of said) if (text.startsWith("+")) answers.set(node, text.slice(1))
            return { answers, missing: asked.filter((node) => !said.has(node)).sort() }
          })
      }),
    askOne: (node, kind, question) =>
      Effect.matchEffect(ask(node, kind, question, patienceForOne), {
        onFailure: () =>
          Effect.fail(
            gatewayError("store_unavailable", "The gateway's shared store does not answer", { retryAfter: 1 })
          ),
        onSuccess: ({ asked, said }) => {
          if (asked.length === 0) return Effect.undefined
          const text = said.get(node)
          if (text === undefined) {
            return Effect.fail(gatewayError("store_unavailable", `The node ${node} does not answer`, { retryAfter: 1 }))
          }
          return text.startsWith("+") ? Effect.succeed(text.slice(1)) : Effect.fail(readRefusal(text.slice(1)))
        }
      }),
    answers: (kind, answerer) => {
      answerers.set(kind, answerer)
    }
  }
}
