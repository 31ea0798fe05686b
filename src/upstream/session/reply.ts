/**
 * A reply over all of its rounds: the completion's stream, then `chat/continue` for what was cut at the upstream's limit or
 * broke off (upstream-protocol, "The event stream").
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type UpstreamEvent, UpstreamFinish } from "../../domain/UpstreamEvent.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { makeSseDecoder, type SseEvent } from "../../stream/sse.ts"
import type { Connection } from "../connection.ts"
import type { MessageId, ReplyDecoder, ReplyTrouble } from "./decodeReply.ts"
import { makeReplyDecoder } from "./decodeReply.ts"

/** Rounds of a reply that the upstream cuts at its output limit. */
const mostRounds = 16
/** Resumes in a row that bring nothing new. */
const mostFruitless = 3
/** After a final status little may follow, and nothing that must be waited for: it gets this long, in milliseconds. */
const settleMillis = 2_000

/** A round's stream, and what records it. */
export interface Round {
  readonly connection: Connection
  readonly record: ((chunk: Uint8Array) => void) | undefined
}

/** How a reply goes on. */
export interface ReplyRounds {
  /** The first round, already open. */
  readonly first: Round
  /** Its scope; closing it ends the connection. */
  readonly firstScope: Scope.Closeable
  /** Opens the next round of the message; fails with phase `resume`. */
  readonly next: (message: MessageId) => Effect.Effect<Round, UpstreamFailure, Scope.Scope>
  /** Told the decoder as soon as there is one, so that whoever ends the reply early knows its message. */
  readonly started: (decoder: ReplyDecoder) => void
  /** Told that the upstream is done with the reply: there is nothing to stop. */
  readonly ended: () => void
}

const failureOf = ({ kind, message, reason }: ReplyTrouble): UpstreamFailure =>
  new UpstreamFailure({
    phase: "stream",
    kind,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message })
  })

type Batch = Arr.NonEmptyReadonlyArray<UpstreamEvent>

/** The events of a reply: one array a network chunk, then `UpstreamFinish`, or a failure. */
export const replyEvents = (rounds: ReplyRounds): Stream.Stream<UpstreamEvent, UpstreamFailure> =>
  Stream.scoped(Stream.fromPull(Effect.gen(function*() {
    const scope = yield* Effect.scope
    const decoder = makeReplyDecoder()
    rounds.started(decoder)
    let round = rounds.first
    let roundScope = rounds.firstScope
    let sse = makeSseDecoder()
    let pull = yield* Stream.toPull(round.connection.bytes).pipe(Scope.provide(roundScope))
    let limited = 1
    let fruitless = 0
    let producedBefore = 0
    let over = false
    const events: Array<SseEvent> = []

    const decode = (out: Array<UpstreamEvent>) => {
      for (let i = 0; i < events.length; i++) decoder.push(events[i]!, out)
      events.length = 0
      if (decoder.final) round.connection.settle(settleMillis)
    }

    const emit = (out: Array<UpstreamEvent>): Pull.Pull<Batch, UpstreamFailure> =>
      Arr.isArrayNonEmpty(out) ? Effect.succeed(out) : next

    const finish = (reason: UpstreamFinish["reason"], out: Array<UpstreamEvent>) => {
      over = true
      rounds.ended()
      out.push(UpstreamFinish(reason))
      return emit(out)
    }

    /** Opens the next round; what is in `out` leaves first if it cannot. */
    const goOn = (out: Array<UpstreamEvent>, cause: UpstreamFailure): Pull.Pull<Batch, UpstreamFailure> => {
      const message = decoder.messageId
      if (message === undefined) return fail(cause, out)
      return Effect.gen(function*() {
        yield* Scope.close(roundScope, Exit.void)
        roundScope = yield* Scope.fork(scope)
        round = yield* Scope.provide(rounds.next(message), roundScope)
        sse = makeSseDecoder()
        decoder.startRound()
        producedBefore = decoder.produced
        pull = yield* Stream.toPull(round.connection.bytes).pipe(Scope.provide(roundScope))
      }).pipe(
        Effect.matchEffect({
          onSuccess: () => emit(out),
          onFailure: (failure) =>
            failure.kind === "refused" || ++fruitless > mostFruitless
              // What broke the reply off is what its caller is told, not what the resume met.
              ? fail(failure.kind === "refused" && cause.kind === "truncated" ? failure : cause, out)
              : goOn(out, cause)
        })
      )
    }

    let failed: UpstreamFailure | undefined
    const fail = (failure: UpstreamFailure, out: Array<UpstreamEvent>): Pull.Pull<Batch, UpstreamFailure> => {
      over = true
      failed = failure
      return Arr.isArrayNonEmpty(out) ? Effect.succeed(out) : Effect.fail(failure)
    }

    const endRound = (
      out: Array<UpstreamEvent>,
      broke: UpstreamFailure | undefined
    ): Pull.Pull<Batch, UpstreamFailure> => {
      const end = decoder.endRound()
      switch (end._tag) {
        case "Finished":
          return finish(end.reason, out)
        case "Failed":
          rounds.ended()
          return fail(failureOf(end.trouble), out)
        case "Incomplete":
          if (limited >= mostRounds) return finish("length", out)
          limited++
          fruitless = 0
          return goOn(out, broke ?? failureOf({ kind: "truncated", reason: undefined, message: undefined }))
        case "CutOff":
          fruitless = decoder.produced > producedBefore ? 0 : fruitless + 1
          if (fruitless > mostFruitless) return fail(broke ?? failureOf(end.trouble), out)
          return goOn(out, broke ?? failureOf(end.trouble))
      }
    }

    const next: Pull.Pull<Batch, UpstreamFailure> = Effect.suspend(() => {
      if (over) return failed === undefined ? Cause.done() : Effect.fail(failed)
      return Effect.matchCauseEffect(pull, {
        onSuccess: (chunks) => {
          const out: Array<UpstreamEvent> = []
          for (const chunk of chunks) {
            round.record?.(chunk)
            sse.push(chunk, events)
          }
          decode(out)
          if (sse.overflowed) {
            return fail(failureOf({ kind: "malformed", reason: undefined, message: "An event is too large" }), out)
          }
          return decoder.closed ? endRound(out, undefined) : emit(out)
        },
        onFailure: (cause) => {
          const out: Array<UpstreamEvent> = []
          sse.end(events)
          const last = events.pop()
          decode(out)
          if (last !== undefined) decoder.pushUnterminated(last, out)
          if (Pull.isDoneCause(cause)) return endRound(out, undefined)
          const error = Cause.findErrorOption(cause)
          if (error._tag === "None" || Cause.isDone(error.value)) return Effect.failCause(cause)
          return endRound(out, error.value)
        }
      })
    })
    return next
  })))
