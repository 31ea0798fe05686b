/**
 * Queries between nodes with their forms, so that two versions of the gateway understand each other or do not answer: a node that does not
 * know a question leaves it without an answer, and an answer of another form counts as none.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { type Peers, silentNode } from "./peers.ts"

/** A kind of questions. The texts of question and answer are what nodes of other versions read. */
export interface Query<Q, A> {
  readonly name: string
  readonly question: Schema.Codec<Q, string>
  readonly answer: Schema.Codec<A, string>
}

/** A question without content. */
export const noQuestion = Schema.Literal("")

/** The answers of other nodes. */
export interface Answers<A> {
  /** By node id, without those of nodes that failed. */
  readonly answers: ReadonlyMap<string, A>
  /** Nodes without an answer in time, or with one of another form. */
  readonly missing: ReadonlyArray<string>
}

/** Answers the questions of other nodes. What an answer holds is released once it is written. */
export const answerQuery = <Q, A>(
  peers: Peers,
  { answer, name, question }: Query<Q, A>,
  answerer: (question: Q) => Effect.Effect<A, GatewayError, Scope.Scope>
): void => {
  const [read, write] = [Schema.decodeUnknownEffect(question), Schema.encodeEffect(answer)]
  peers.answers(
    name,
    (text) => Effect.scoped(Effect.flatMap(Effect.flatMap(read(text), answerer), (found) => write(found)))
  )
}

/** Asks all other nodes. Decodes one answer at a time, since each may be long. */
export const askAll = <Q, A>(peers: Peers, { answer, name, question }: Query<Q, A>) => {
  const [write, read] = [Schema.encodeSync(question), Schema.decodeUnknownOption(answer)]
  return Effect.fnUntraced(function*(asked: Q): Effect.fn.Return<Answers<A>> {
    const { answers: texts, missing } = yield* peers.queryAll(name, write(asked))
    const answers = new Map<string, A>()
    const unread: Array<string> = []
    for (const [node, text] of texts) {
      yield* Effect.yieldNow
      const found = read(text)
      if (Option.isSome(found)) answers.set(node, found.value)
      else unread.push(node)
    }
    return { answers, missing: unread.length === 0 ? missing : [...missing, ...unread].sort() }
  })
}

/** Asks one node. Fails with its error, or if it does not answer. `undefined` if there is no such node. */
export const askOne = <Q, A>(peers: Peers, { answer, name, question }: Query<Q, A>) => {
  const [write, read] = [Schema.encodeSync(question), Schema.decodeUnknownOption(answer)]
  return (node: string, asked: Q): Effect.Effect<A | undefined, GatewayError> =>
    Effect.flatMap(peers.queryOne(node, name, write(asked)), (text) => {
      if (text === undefined) return Effect.undefined
      const found = read(text)
      return Option.isSome(found) ? Effect.succeed(found.value) : Effect.fail(silentNode(node))
    })
}
