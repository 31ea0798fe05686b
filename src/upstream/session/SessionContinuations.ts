/**
 * One reply over all its rounds: the completion's stream, then a `chat/continue` whenever it was cut (upstream-protocol, "The
 * document"). The result is one seamless stream of upstream events.
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import type * as Stream from "effect/Stream"
import { pause } from "../../config/clock/retry.ts"
import { type MessageId, ReplyDecoder } from "../../contracts/session/readReply.ts"
import type { ReplyTrouble, RoundEnd } from "../../contracts/session/roundEnd.ts"
import { mayHaveArrived } from "../../domain/failureReasons.ts"
import { makeSseDecoder, type SseEvent } from "../../domain/stream/sse.ts"
import { type ChunkPull, fromPullOnce, takePullUnsafe, through } from "../../domain/stream/transduce.ts"
import { clear } from "../../domain/stream/transducer.ts"
import { type UpstreamEvent, UpstreamFinish } from "../../domain/UpstreamEvent.ts"
import { type FailurePhase, UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { RequestBudget } from "../budget.ts"
import type { BodyDecoder } from "../decodeBody.ts"
import type { Exchange } from "../Exchange.ts"
import type { RoundRecorder } from "../Upstream.ts"

/** Milliseconds of silence that end the body. After the final status only usage and `close` may follow; after `close` nothing. */
const endAfterStatus = 2_000
const endAfterClose = 100

/** A round that was sent. */
export interface Round {
  readonly exchange: Exchange
  readonly recorder: RoundRecorder | undefined
}

/** Opens a `chat/continue` of the message; `begun` receives the round as soon as it is sent. */
type OpenContinue = (
  messageId: MessageId,
  begun: (round: Round) => void
) => Effect.Effect<Round, UpstreamFailure>

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
class RoundBody implements BodyDecoder<UpstreamEvent> {
  /** The budget of bytes is exceeded. */
  tooMany = false
  /** The budget of characters is exceeded, and the end of the reply was emitted. */
  isFull = false
  private readonly rounds: SessionContinuations
  private readonly reply: ReplyDecoder
  private readonly budget: RequestBudget
  private readonly exchange: Exchange
  private readonly recorder: RoundRecorder | undefined
  private readonly sse = makeSseDecoder()
  private readonly events: Array<SseEvent> = []
  private ended = false
  private endExpected: number | undefined = undefined

  constructor(rounds: SessionContinuations, reply: ReplyDecoder, budget: RequestBudget, { exchange, recorder }: Round) {
    this.rounds = rounds
    this.reply = reply
    this.budget = budget
    this.exchange = exchange
    this.recorder = recorder
  }

  get overflowed(): boolean {
    return this.sse.overflowed
  }

  push(bytes: Uint8Array, out: Array<UpstreamEvent>): void {
    if (this.isFull || this.tooMany) return
    const { budget, events, reply } = this
    this.recorder?.bytes(bytes)
    if (!budget.addBytes(bytes.length)) {
      this.tooMany = true
      return
    }
    this.sse.push(bytes, events)
    const from = out.length
    for (let i = 0; i < events.length; i++) reply.push(events[i]!, out)
    clear(events)
    this.isFull = budget.admit(out, from)
    this.expectEnd(reply.closed ? endAfterClose : reply.final ? endAfterStatus : undefined)
  }

  end(out: Array<UpstreamEvent>): void {
    this.unterminated(out)
    this.rounds.endOfBody(out, this)
  }

  /** Decodes the unterminated last event of a body that ended or broke off. */
  unterminated(out: Array<UpstreamEvent>): void {
    if (this.ended || this.isFull || this.tooMany) return
    this.ended = true
    this.sse.end(this.events)
    const from = out.length
    for (const event of this.events) this.reply.pushUnterminated(event, out)
    clear(this.events)
    this.isFull = this.budget.admit(out, from)
  }

  failure(): UpstreamFailure | undefined {
    return this.tooMany
      ? this.budget.tooManyBytes(this.rounds.phase)
      : this.overflowed
      ? asFailure(this.rounds.phase, tooLong)
      : undefined
  }

  done(): boolean {
    const { exchange, isFull, reply } = this
    return reply.failed || reply.withdrawn || reply.cut || isFull || (exchange.isRead && this.failure() === undefined)
  }

  private expectEnd(millis: number | undefined): void {
    if (this.endExpected === millis) return
    this.endExpected = millis
    this.exchange.expectEnd(millis)
  }
}

const isRoundDone = (body: RoundBody): boolean => body.done()

/** One reply over all its rounds. One round runs at a time; it is left before the next one is opened. */
export class SessionContinuations {
  /** Made for the first byte of an answer. */
  private decoder: ReplyDecoder | undefined
  private readonly budget: RequestBudget
  private readonly openContinue: OpenContinue
  /** The phase of a failure. */
  phase: FailurePhase = "stream"
  private finished = false
  private abandoned = false
  /** The upstream may still be generating the reply. */
  private running = true
  private round: Round | undefined
  /** The end of the round that was read completely, until it is handled. */
  private roundEnd: RoundEnd | undefined
  private current:
    | { readonly pull: () => ChunkPull<UpstreamEvent, UpstreamFailure>; readonly body: RoundBody }
    | undefined

  constructor(budget: RequestBudget, openContinue: OpenContinue) {
    this.budget = budget
    this.openContinue = openContinue
  }

  private get reply(): ReplyDecoder {
    return this.decoder ??= new ReplyDecoder()
  }

  /** A round was sent; the one before it is left. */
  readonly begun = (round: Round): void => {
    this.leave()
    this.round = round
    if (this.abandoned) this.leave()
  }

  /** Ends the reply early: no other round is opened. */
  abandon(): void {
    this.abandoned = true
    this.leave()
  }

  /** Leaves the running round, if there is one. */
  leave(): void {
    const round = this.round
    this.round = undefined
    if (round === undefined) return
    round.exchange.leave()
    round.recorder?.closed(round.exchange.cause)
  }

  /** The message to stop, if the upstream may still be generating it and its id is known. */
  unfinished(): MessageId | undefined {
    return this.running ? this.decoder?.messageId : undefined
  }

  readonly isOver = (): boolean => this.unfinished() === undefined

  /**
   * The reply from its first round on.
   *
   * The rounds follow one another within one pull, which costs 13 primitives a chunk. As stages of streams that end in each other they cost
   * 15 (`mapPull` over `decodeBody`) or 17 (`Stream.concat`, with 24 more for each request); the budget is 14 (`test/hotPath`).
   */
  events(first: Round): Stream.Stream<UpstreamEvent, UpstreamFailure> {
    this.read(first)
    return fromPullOnce(this.next)
  }

  private read(round: Round): void {
    const body = new RoundBody(this, this.reply, this.budget, round)
    this.current = {
      pull: through(body, takePullUnsafe(round.exchange.bytes), isRoundDone, (end) => this.over(end)),
      body
    }
  }

  /** The end of the reply is emitted with its last events; any other end of a round is handled after they were read. */
  endOfBody(out: Array<UpstreamEvent>, body: RoundBody): void {
    if (this.finished || body.isFull || body.tooMany || body.overflowed) return
    const end = this.reply.endRound()
    if (end._tag === "Finished") {
      this.close()
      this.finishWith(end.reason, out)
    } else this.roundEnd = end
  }

  private readonly next: ChunkPull<UpstreamEvent, UpstreamFailure> = Effect.suspend(() =>
    this.finished ? Cause.done() : this.current!.pull()
  )

  /** The body of a round has ended. */
  private over(end: Cause.Cause<UpstreamFailure | Cause.Done>): ChunkPull<UpstreamEvent, UpstreamFailure> {
    if (Pull.isDoneCause(end)) {
      this.running = false
      return this.endRound()
    }
    const failure = Cause.findErrorOption(end)
    return failure._tag === "Some" && failure.value._tag === "UpstreamFailure"
      ? this.breakOff(failure.value)
      : Effect.failCause(end)
  }

  /** The reply is over; the upstream may go on only if the gateway cut it. */
  private close(): void {
    this.finished = true
    this.running = this.reply.cut
    this.leave()
  }

  private finish(reason: UpstreamFinish["reason"]): ChunkPull<UpstreamEvent, UpstreamFailure> {
    this.close()
    const out: Array<UpstreamEvent> = []
    this.finishWith(reason, out)
    return Arr.isArrayNonEmpty(out) ? Effect.succeed(out) : Cause.done()
  }

  /** Appends what was held of the reply, then the end. */
  private finishWith(reason: UpstreamFinish["reason"], out: Array<UpstreamEvent>): void {
    const from = out.length
    this.reply.end(out)
    if (!this.budget.admit(out, from)) out.push(UpstreamFinish(reason))
  }

  /**
   * Opens the next round after a pause of `wait` milliseconds. A round that cannot be opened counts as a resume without new text.
   * `missed`: the round before timed out unanswered, and the upstream may count its text as sent.
   */
  private goOn(messageId: MessageId, wait: number, missed = false): Effect.Effect<void, UpstreamFailure> {
    const open = Effect.suspend(() => {
      if (this.abandoned) return Effect.interrupt
      this.reply.startRound(missed)
      this.phase = "resume"
      this.running = true
      return Effect.map(this.openContinue(messageId, this.begun), (round) => this.read(round))
    })
    this.leave()
    return Effect.catch(wait > 0 ? Effect.andThen(pause(wait), open) : open, (failure) => {
      // A refusal by the service and an exhausted budget are final; other failures may pass.
      if (failure.kind === "refused" || failure.kind === "exhausted" || failure.kind === "overdue") {
        return Effect.fail(failure)
      }
      const next = this.budget.takeResume()
      if (next === undefined) return Effect.fail(failure)
      const unanswered = failure.kind === "timeout" && failure.phase === "resume" && mayHaveArrived(failure)
      return this.goOn(messageId, next, unanswered)
    })
  }

  private endRound(): ChunkPull<UpstreamEvent, UpstreamFailure> {
    if (this.finished) return Cause.done()
    if (this.current?.body.isFull === true) {
      // The end was emitted with the last events; closing the scope stops the upstream.
      this.finished = true
      this.running = true
      return Cause.done()
    }
    const end = this.roundEnd ?? this.reply.endRound()
    this.roundEnd = undefined
    const { messageId } = this.reply
    switch (end._tag) {
      case "Finished":
        return this.finish(end.reason)
      case "Failed":
        // The gateway ends the reply itself; the upstream may still be generating it.
        this.running = this.reply.cut || (this.reply.failed && end.trouble.kind !== "gave_up")
        return Effect.fail(asFailure(this.phase, end.trouble))
      case "Incomplete":
        if (messageId !== undefined && this.budget.takeContinue()) {
          return Effect.andThen(this.goOn(messageId, 0), this.next)
        }
        return this.reply.produced === 0 ? Effect.fail(asFailure(this.phase, nothing)) : this.finish("length")
      case "CutOff": {
        const wait = messageId === undefined ? undefined : this.budget.takeResume()
        return messageId === undefined || wait === undefined
          ? Effect.fail(asFailure(this.phase, end.trouble))
          : Effect.andThen(this.goOn(messageId, wait), this.next)
      }
    }
  }

  /** A broken connection ends its round like an early end; its last event may be complete. */
  private breakOff(failure: UpstreamFailure): ChunkPull<UpstreamEvent, UpstreamFailure> {
    if (failure.kind !== "transport" || this.abandoned) return Effect.fail(failure)
    const out: Array<UpstreamEvent> = []
    this.current!.body.unterminated(out)
    return Arr.isArrayNonEmpty(out) ? Effect.succeed(out) : this.endRound()
  }
}
