/**
 * One reply over all its rounds: the completion's own stream, then a `chat/continue` whenever it was cut (upstream-protocol,
 * "The document"). What comes out is one seamless stream of upstream events.
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type UpstreamEvent, UpstreamFinish } from "../../domain/UpstreamEvent.ts"
import { type FailurePhase, UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { makeSseDecoder, type SseEvent } from "../../stream/sse.ts"
import type { Budget } from "../budget.ts"
import { type BodyDecoder, type Connection, decodePull } from "../connection.ts"
import type { RoundRecorder } from "../Upstream.ts"
import { makeReplyDecoder, type MessageId, type ReplyDecoder, type ReplyTrouble } from "./decodeReply.ts"

/** After the final status only usage and `close` may follow; after `close` only the body's own end. Milliseconds. */
const settleAfterStatus = 2_000
const settleAfterClose = 100

/** A round whose reply has begun. */
export interface Round {
  readonly connection: Connection
  readonly recorder: RoundRecorder | undefined
}

/** Opens a `chat/continue` of the message; the scope holds its connection. */
export type OpenContinue = (messageId: MessageId) => Effect.Effect<Round, UpstreamFailure, Scope.Scope>

/** A reply that runs. */
export interface RunningReply {
  readonly events: Stream.Stream<UpstreamEvent, UpstreamFailure>
  /** The message to stop, while the upstream may still be at it and its id is known. */
  readonly unfinished: () => MessageId | undefined
}

const asFailure = (phase: FailurePhase, { kind, message, reason }: ReplyTrouble): UpstreamFailure =>
  new UpstreamFailure({
    phase,
    kind,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message })
  })

const tooLong: ReplyTrouble = {
  kind: "malformed",
  reason: undefined,
  message: "An event of the reply is too long"
}

const nothing: ReplyTrouble = { kind: "empty", reason: undefined, message: undefined }

/** Decodes one round's body. */
const startBody = (reply: ReplyDecoder, { connection, recorder }: Round, budget: Budget) => {
  const sse = makeSseDecoder()
  const events: Array<SseEvent> = []
  let ended = false
  let settled = 0
  let tooMany = false
  let isFull = false
  const settle = (millis: number) => {
    if (settled === millis) return
    settled = millis
    connection.settle(millis)
  }
  return {
    get overflowed() {
      return sse.overflowed
    },
    /** More bytes came than the request may cost. */
    get tooMany() {
      return tooMany
    },
    /** The reply has as many characters as it may have, and its end was given. */
    get isFull() {
      return isFull
    },
    push(bytes: Uint8Array, out: Array<UpstreamEvent>) {
      if (isFull || tooMany) return
      recorder?.bytes(bytes)
      if (!budget.addBytes(bytes.length)) {
        tooMany = true
        return
      }
      sse.push(bytes, events)
      const from = out.length
      for (let i = 0; i < events.length; i++) reply.push(events[i]!, out)
      events.length = 0
      isFull = budget.admit(out, from)
      if (reply.closed) settle(settleAfterClose)
      else if (reply.final) settle(settleAfterStatus)
    },
    end(out: Array<UpstreamEvent>) {
      if (ended || isFull || tooMany) return
      ended = true
      sse.end(events)
      const from = out.length
      for (const event of events) reply.pushUnterminated(event, out)
      events.length = 0
      isFull = budget.admit(out, from)
    }
  }
}

/** Runs a reply from its first round on. `scope` is to hold the connections of further rounds. */
export const runRounds = (
  first: Round,
  firstScope: Scope.Closeable,
  scope: Scope.Scope,
  openContinue: OpenContinue,
  budget: Budget
): RunningReply => {
  const reply = makeReplyDecoder()
  let running = true

  const pull = Effect.gen(function*() {
    let roundScope = firstScope
    let phase: FailurePhase = "stream"
    let finished = false

    const start = (round: Round) => {
      const body = startBody(reply, round, budget)
      const decoder: BodyDecoder<UpstreamEvent> = {
        push: body.push,
        end: body.end,
        failure: () =>
          body.tooMany ? budget.tooManyBytes(phase) : body.overflowed ? asFailure(phase, tooLong) : undefined,
        done: () => reply.failed || reply.withdrawn || body.isFull,
        complete: () => reply.final || reply.closed
      }
      return Effect.map(
        Scope.provide(round.connection.pull, roundScope),
        (bytes) => ({ pull: decodePull(bytes, decoder), body })
      )
    }

    let current = yield* start(first)

    const finish = (reason: UpstreamFinish["reason"]) => {
      finished = true
      running = false
      return Effect.as(Scope.close(roundScope, Exit.void), Arr.of<UpstreamEvent>(UpstreamFinish(reason)))
    }

    /** Opens the next round after a pause. One that cannot be opened is a resume that brought nothing. */
    const goOn = (messageId: MessageId, pause: number): Effect.Effect<void, UpstreamFailure> =>
      Effect.gen(function*() {
        yield* Scope.close(roundScope, Exit.void)
        if (pause > 0) yield* Effect.sleep(pause)
        reply.startRound()
        phase = "resume"
        roundScope = yield* Scope.fork(scope)
        running = true
        const round = yield* Scope.provide(openContinue(messageId), roundScope)
        current = yield* start(round)
      }).pipe(
        Effect.catch((failure) => {
          // The service's own refusal stands, and what is used up is; trouble on the way to it may pass.
          if (failure.kind === "refused" || failure.kind === "exhausted" || failure.kind === "overdue") {
            return Effect.fail(failure)
          }
          const next = budget.takeResume()
          return next === undefined ? Effect.fail(failure) : goOn(messageId, next)
        })
      )

    const endRound = (): Pull.Pull<Arr.NonEmptyReadonlyArray<UpstreamEvent>, UpstreamFailure> => {
      if (current.body.isFull) {
        // The end was given with the last events; whoever closes the scope has the upstream stopped.
        finished = true
        running = true
        return Cause.done()
      }
      const end = reply.endRound()
      const { messageId } = reply
      switch (end._tag) {
        case "Finished":
          return finish(end.reason)
        case "Failed":
          // Our own refusal to go on: the upstream does not know of it.
          running = reply.failed && end.trouble.kind !== "gave_up"
          return Effect.fail(asFailure(phase, end.trouble))
        case "Incomplete":
          if (messageId !== undefined && budget.takeContinue()) return Effect.andThen(goOn(messageId, 0), next)
          return reply.produced === 0 ? Effect.fail(asFailure(phase, nothing)) : finish("length")
        case "CutOff": {
          const pause = messageId === undefined ? undefined : budget.takeResume()
          return messageId === undefined || pause === undefined
            ? Effect.fail(asFailure(phase, end.trouble))
            : Effect.andThen(goOn(messageId, pause), next)
        }
      }
    }

    /** A connection that broke ends its round like one that ended early; what had come of a last event may be whole. */
    const breakOff = (failure: UpstreamFailure) => {
      if (failure.kind !== "transport") return Effect.fail(failure)
      const out: Array<UpstreamEvent> = []
      current.body.end(out)
      return Arr.isArrayNonEmpty(out) ? Effect.succeed(out) : endRound()
    }

    const next: Pull.Pull<Arr.NonEmptyReadonlyArray<UpstreamEvent>, UpstreamFailure> = Effect.suspend(() => {
      if (finished) return Cause.done()
      return Effect.matchCauseEffect(current.pull, {
        onSuccess: Effect.succeed,
        onFailure: (cause): Pull.Pull<Arr.NonEmptyReadonlyArray<UpstreamEvent>, UpstreamFailure> => {
          if (Pull.isDoneCause(cause)) {
            running = false
            return endRound()
          }
          const failure = Cause.findErrorOption(cause)
          return failure._tag === "Some" && failure.value._tag === "UpstreamFailure"
            ? breakOff(failure.value)
            : Effect.failCause(cause)
        }
      })
    })
    return next
  })

  return {
    events: Stream.fromPull(pull),
    unfinished: () => running ? reply.messageId : undefined
  }
}
